/* Much: messages, writes and reads of many megabytes; as many posted descriptors as a queue holds; an unreliable flood that finds no receive. */
#include "sides.h"

#include <sys/mman.h>

static side_t one, other;

#define LARGE_BYTES ((size_t)24 << 20)
enum what { MESSAGE, WRITE, READ, WHATS };

/* Memory of a side of its own. */
typedef struct area {
    unsigned char *bytes;
    VIP_MEM_HANDLE handle;
} area_t;

static area_t area_of(const side_t *side, size_t bytes)
{
    area_t area;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WANT(memory != MAP_FAILED);
    area.bytes = (unsigned char *)memory;
    area.handle = register_memory(side, memory, bytes, VIP_TRUE, VIP_TRUE);
    return area;
}

static void give_back(const side_t *side, area_t area, size_t bytes)
{
    OK(VipDeregisterMem(side->nic, area.bytes, area.handle));
    WANT(munmap(area.bytes, bytes) == 0);
}

static VIP_DESCRIPTOR *whole(VIP_DESCRIPTOR *descriptor, unsigned segment, area_t area)
{
    HEAD(descriptor).SegCount = (VIP_UINT16)(segment + 1);
    HEAD(descriptor).Length = (VIP_UINT32)LARGE_BYTES;
    LOCAL(descriptor, segment).Data.Address = area.bytes;
    LOCAL(descriptor, segment).Handle = area.handle;
    LOCAL(descriptor, segment).Length = (VIP_UINT32)LARGE_BYTES;
    return descriptor;
}

static VIP_VI_HANDLE large_vi(const side_t *side, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, level);
    VIP_VI_HANDLE vi = NULL;
    attributes.MaxTransferSize = LARGE_BYTES;
    OK(VipCreateVi(side->nic, &attributes, NULL, NULL, &vi));
    return vi;
}

static void large(VIP_RELIABILITY_LEVEL level, enum what what, area_t here, area_t there)
{
    static const unsigned controls[WHATS] = { 0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, VIP_CONTROL_OP_RDMAREAD };
    static const VIP_UINT32 sent[WHATS] = { VIP_STATUS_OP_SEND, VIP_STATUS_OP_RDMA_WRITE, VIP_STATUS_OP_RDMA_READ };
    unsigned char *from = what == READ ? there.bytes : here.bytes, *to = what == READ ? here.bytes : there.bytes;
    VIP_DESCRIPTOR *send = what == MESSAGE ? whole(prepare(&one, 0, 0, 1), 0, here) :
                                             whole(prepare_rdma(&one, 0, controls[what], 0, 1, there.bytes, there.handle), 1, here);
    VIP_DESCRIPTOR *receive = whole(prepare(&other, 0, 0, 1), 0, there);
    one.vi = large_vi(&one, level);
    other.vi = large_vi(&other, level);
    connect_vis(&one, one.vi, &other, other.vi);
    fill(from, LARGE_BYTES, level + (unsigned)what);
    memset(to, 0, LARGE_BYTES);
    if (what != READ)
        post_recv(&other, receive);
    post_send(&one, send);
    SENT(&one, send, sent[what]);
    if (what == MESSAGE)
        RECEIVED(&other, receive, 0);
    if (what == WRITE)
        TAKES(VipRecvWait, &other, receive, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
    WANT(what == READ || HEAD(receive).Length == LARGE_BYTES);
    WANT(is_filled(to, LARGE_BYTES, level + (unsigned)what));
    end_sides(&one, &other);
}

static void full_queues(void)
{
    VIP_ULONG limit = one.limits.MaxDescriptorsPerQueue, i;
    size_t bytes = limit * sizeof(VIP_DESCRIPTOR);
    area_t here = area_of(&one, bytes), there = area_of(&other, bytes);
    VIP_DESCRIPTOR *sends = (VIP_DESCRIPTOR *)(void *)here.bytes, *receives = (VIP_DESCRIPTOR *)(void *)there.bytes, *taken;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_RECEPTION);
    for (i = 0; i < limit; i++)
        OK(VipPostRecv(other.vi, &receives[i], there.handle));
    for (i = 0; i < limit; i++) {
        HEAD(&sends[i]).Control = VIP_CONTROL_IMMEDIATE;
        HEAD(&sends[i]).ImmediateData = (VIP_UINT32)i;
        OK(VipPostSend(one.vi, &sends[i], here.handle));
    }
    for (i = 0; i < limit; i++) {
        OK(VipRecvWait(other.vi, SOON, &taken));
        WANT(taken == &receives[i]);
        WANT_EQUAL(HEAD(taken).ImmediateData, i);
        OK(VipSendWait(one.vi, SOON, &taken));
        WANT(taken == &sends[i]);
    }
    end_sides(&one, &other);
    give_back(&one, here, bytes);
    give_back(&other, there, bytes);
}

static void flood(void)
{
    unsigned posted, taken_back = 0;
    VIP_DESCRIPTOR *taken;
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    for (posted = 0; posted < 20000; posted++) {
        if (posted - taken_back == DESCRIPTORS / 2) {
            OK(VipSendWait(one.vi, SOON, &taken));
            taken_back++;
        }
        post_send(&one, prepare(&one, posted % (DESCRIPTORS / 2), 0, 64));
    }
    for (; taken_back < posted; taken_back++)
        OK(VipSendWait(one.vi, SOON, &taken));
    /* What has not been dropped yet is not to find the next receive. */
    sleep_ms(10 * A_WHILE);
    WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECTED);
    exchange(&one, &other, 1);
    end_sides(&one, &other);
}

int main(int count, char **arguments)
{
    area_t here, there;
    unsigned level;
    int what;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    here = area_of(&one, LARGE_BYTES);
    there = area_of(&other, LARGE_BYTES);
    for (level = 0; level < 3; level++)
        for (what = 0; what < WHATS; what++)
            if (what != READ || (one.limits.RDMAReadSupport & levels[level]) != 0)
                large(levels[level], (enum what)what, here, there);
    full_queues();
    flood();
    close_side(&one);
    close_side(&other);
    return done();
}
