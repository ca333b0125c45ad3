/* Random messages both ways at once, between processes and threads, with checksums: sends of random lengths and segments, writes
 * with and without immediate data, reads. Everything arrives whole, once, in order. `stress NIC NIC [SEED [MESSAGES]]`. */
#include "roles.h"

#define POSTED 32u
#define SLOT_BYTES 4096u
/* Where a peer's write number n goes: slots behind those of messages. */
#define WRITES_AT (2 * POSTED * SLOT_BYTES)
#define READ_AT (WRITES_AT + POSTED * SLOT_BYTES)

static unsigned long seed = 1;
static unsigned messages = 2000;

/* The next of a row of numbers that both sides can make: splitmix64. */
static unsigned draw(VIP_UINT64 *state, unsigned below)
{
    VIP_UINT64 z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) % below);
}

typedef struct row {
    VIP_UINT64 state;
} row_t;

/* What message number n of a role is; both sides ask for all in order. */
typedef struct plan {
    enum { SEND, WRITE, READ } kind;
    unsigned bytes, segments, number;
} plan_t;

static plan_t next_plan(row_t *row, unsigned number)
{
    plan_t plan;
    unsigned kind = draw(&row->state, 8);
    plan.kind = kind < 5 ? SEND : kind < 7 ? WRITE : READ;
    plan.bytes = draw(&row->state, 4) ? draw(&row->state, 200) : draw(&row->state, SLOT_BYTES + 1);
    plan.segments = 1 + draw(&row->state, 4);
    plan.number = number;
    return plan;
}

static VIP_UINT32 checksum(const unsigned char *bytes, size_t count)
{
    VIP_UINT32 a = 1, b = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Cuts a message's bytes into segments; segment `first` is the first of them. */
static void cut(VIP_DESCRIPTOR *descriptor, const side_t *side, unsigned first, const plan_t *plan, size_t at)
{
    unsigned i, done_bytes = 0;
    for (i = 0; i < plan->segments; i++) {
        unsigned rest = plan->bytes - done_bytes, part = i + 1 == plan->segments ? rest : rest / 2;
        LOCAL(descriptor, first + i).Data.Address = data_of(side, at + done_bytes);
        LOCAL(descriptor, first + i).Handle = side->handle;
        LOCAL(descriptor, first + i).Length = part;
        done_bytes += part;
    }
    HEAD(descriptor).SegCount = (VIP_UINT16)(first + plan->segments);
    HEAD(descriptor).Length = plan->bytes;
}

/* Bytes of the memory that the peer may read; they never change. */
static void fill_readable(side_t *side, int me)
{
    fill(data_of(side, READ_AT), SLOT_BYTES, 1000u + (unsigned)me);
}

static void post_plan(side_t *side, int me, const plan_t *plan)
{
    unsigned slot = plan->number % POSTED;
    size_t at = (size_t)slot * SLOT_BYTES;
    VIP_DESCRIPTOR *descriptor = prepare(side, slot, at, 0);
    unsigned char *remote = (unsigned char *)(uintptr_t)board->addresses[1 - me] + DATA_AT;
    if (plan->kind == READ) {
        memset(data_of(side, at), 0, SLOT_BYTES);
        descriptor = prepare_rdma(side, slot, VIP_CONTROL_OP_RDMAREAD, at, 0, remote + READ_AT, board->handles[1 - me]);
        cut(descriptor, side, 1, plan, at);
    } else {
        fill(data_of(side, at), plan->bytes, plan->number);
        if (plan->kind == WRITE) {
            descriptor = prepare_rdma(side, slot, VIP_CONTROL_OP_RDMAWRITE, at, 0, remote + WRITES_AT + slot * SLOT_BYTES,
                                      board->handles[1 - me]);
            cut(descriptor, side, 1, plan, at);
        } else
            cut(descriptor, side, 0, plan, at);
        HEAD(descriptor).Control |= VIP_CONTROL_IMMEDIATE;
        HEAD(descriptor).ImmediateData = checksum(data_of(side, at), plan->bytes);
    }
    post_send(side, descriptor);
}

static void check_received(side_t *side, const plan_t *plan, VIP_DESCRIPTOR *receive)
{
    unsigned slot = plan->number % POSTED;
    unsigned char *place = plan->kind == WRITE ? data_of(side, WRITES_AT + slot * SLOT_BYTES)
                                               : (unsigned char *)LOCAL(receive, 0).Data.Address;
    VIP_UINT32 operation = plan->kind == WRITE ? VIP_STATUS_OP_REMOTE_RDMA_WRITE : VIP_STATUS_OP_RECEIVE;
    WANT_EQUAL(HEAD(receive).Status, VIP_STATUS_DONE | VIP_STATUS_IMMEDIATE | operation);
    WANT_EQUAL(HEAD(receive).Length, plan->bytes);
    WANT_EQUAL(HEAD(receive).ImmediateData, checksum(place, plan->bytes));
    WANT(is_filled(place, plan->bytes, plan->number));
}

static void post_receive(side_t *side, unsigned i)
{
    post_recv(side, prepare(side, POSTED + i, (POSTED + i) * SLOT_BYTES, SLOT_BYTES));
}

/* This side's sends, and the peer's as they come. A side has at most half of what is posted there under way: who has checked a
 * message says so in the board's word. */
static void both_ways(side_t *side, int me)
{
    row_t mine = { seed * 2 + (unsigned)me }, theirs = { seed * 2 + (unsigned)(1 - me) }, reaped = mine;
    volatile VIP_UINT32 *checked = &board->words[me], *peer_checked = &board->words[1 - me];
    unsigned sent = 0, taken_back = 0, told = 0, received = 0, i;
    unsigned long begun = now_ms();
    for (i = 0; i < POSTED; i++)
        post_receive(side, i);
    meet();
    connect_roles(side, me);
    while (taken_back < messages || received < messages) {
        VIP_DESCRIPTOR *taken = NULL;
        VIP_RETURN gave;
        if (now_ms() - begun > 100000)
            fail_at(__FILE__, __LINE__, "role %d stands at %u sent, %u back, %u received, peer at %u; state %d", me, sent, taken_back,
                    received, (unsigned)*peer_checked, (int)state_of(side->vi));
        if (sent < messages && sent - taken_back < POSTED / 2 && (int)(sent - *peer_checked) < (int)POSTED / 2) {
            plan_t plan = next_plan(&mine, sent++);
            post_plan(side, me, &plan);
        }
        gave = VipSendDone(side->vi, &taken);
        if (gave == VIP_SUCCESS) {
            plan_t plan = next_plan(&reaped, taken_back);
            WANT(taken == descriptor_of(side, taken_back % POSTED));
            if (plan.kind == READ)
                WANT(memcmp(data_of(side, (size_t)(taken_back % POSTED) * SLOT_BYTES), data_of(side, READ_AT + SLOT_BYTES),
                            plan.bytes) == 0);
            taken_back++;
        } else
            WANT(gave == VIP_NOT_DONE || (gave == VIP_DESCRIPTOR_ERROR && taken == NULL));
        /* The peer's reads say nothing here, so they count before they come. */
        while (received < messages) {
            row_t look = theirs;
            if (next_plan(&look, received).kind != READ)
                break;
            theirs = look;
            *checked = ++received;
        }
        gave = VipRecvDone(side->vi, &taken);
        if (gave == VIP_SUCCESS) {
            plan_t plan = next_plan(&theirs, received);
            WANT(taken == descriptor_of(side, POSTED + told % POSTED));
            check_received(side, &plan, taken);
            post_receive(side, told++ % POSTED);
            *checked = ++received;
        } else
            WANT(gave == VIP_NOT_DONE);
    }
}

static void role(int me)
{
    side_t side;
    unsigned level;
    open_role(&side, me);
    fill_readable(&side, me);
    /* What a read must bring. */
    fill(data_of(&side, READ_AT + SLOT_BYTES), SLOT_BYTES, 1000u + (unsigned)(1 - me));
    for (level = 1; level < 3; level++) {
        board->words[me] = 0;
        side.vi = create_vi(&side, levels[level]);
        both_ways(&side, me);
        meet();
        end_vi(side.vi);
        meet();
    }
    close_side(&side);
}

int main(int count, char **arguments)
{
    if (count > 3)
        seed = strtoul(arguments[3], NULL, 0);
    if (count > 4)
        messages = (unsigned)strtoul(arguments[4], NULL, 0);
    return run_roles(count, arguments);
}
