/* Every form of send, receive, read and write between two processes over the provider `vi`, contents and completions
 * checked; how connections end; and waiting.
 *
 * Usage: forms CASE; ends with 0 if all is as it should be. */
#include "connection.h"

#include <signal.h>

#define CONTEXT(number) ((void *)(intptr_t)(number))
#define DATA 0xC0FFEE01u

static struct iovec piece(char *at, size_t bytes) {
    return (struct iovec){at, bytes};
}

static void receive(struct side *side, int number) {
    char *to = side->memory + number * MESSAGE_BYTES;
    DO(fi_recv(side->ep, to, MESSAGE_BYTES, fi_mr_desc(side->mr), 0, CONTEXT(number)));
}

/* The completion of receive `number`, with so many bytes of a message of the same number, in one piece. */
static void expect_message(struct side *side, int number, size_t bytes, int has_data) {
    struct fi_cq_data_entry entry;
    EXPECT(next_completion(side, &entry) == 1);
    EXPECT(entry.op_context == CONTEXT(number) && entry.len == bytes);
    EXPECT((entry.flags & (FI_MSG | FI_RECV)) == (FI_MSG | FI_RECV));
    EXPECT(!(entry.flags & FI_REMOTE_CQ_DATA) == !has_data);
    EXPECT(!has_data || entry.data == DATA);
}

/* Completions of what was asked to be told, and of no more. */
static void expect_only(struct side *side, int first, int last, uint64_t kind) {
    struct fi_cq_data_entry entry;
    for (int number = first; number <= last; number++) {
        EXPECT(next_completion(side, &entry) == 1);
        EXPECT(entry.op_context == CONTEXT(number) && (entry.flags & kind) == kind);
    }
    EXPECT(fi_cq_read(side->cq, &entry, 1) == -FI_EAGAIN);
}

/* ---- messages ---- */

static void serve_messages(struct side *side) {
    void *desc[2] = {fi_mr_desc(side->mr), fi_mr_desc(side->mr)};
    char *at = side->memory;
    struct iovec two[2] = {piece(at + 2 * MESSAGE_BYTES, 100), piece(at + 2 * MESSAGE_BYTES + 200, 2000)};
    struct iovec last[2] = {piece(at + 3 * MESSAGE_BYTES, 700), piece(at + 3 * MESSAGE_BYTES + 700, 3000)};
    struct fi_msg message = {.msg_iov = last, .desc = desc, .iov_count = 2, .context = CONTEXT(3)};
    receive(side, 1);
    DO(fi_recvv(side->ep, two, desc, 2, 0, CONTEXT(2)));
    DO(fi_recvmsg(side->ep, &message, 0));
    for (int number = 4; number <= 6; number++)
        receive(side, number);
    accept_request(side);
    expect_message(side, 1, 1000, 0);
    expect_bytes(at + MESSAGE_BYTES, 1000, 1);
    expect_message(side, 2, 1500, 0);
    expect_bytes(at + 2 * MESSAGE_BYTES, 100, 2);
    for (size_t byte = 100; byte < 1500; byte++)
        EXPECT(at[2 * MESSAGE_BYTES + 100 + byte] == byte_of(2, byte));
    for (size_t byte = 100; byte < 200; byte++)
        EXPECT(at[2 * MESSAGE_BYTES + byte] == 0);
    expect_message(side, 3, 2000, 1);
    expect_bytes(at + 3 * MESSAGE_BYTES, 2000, 3);
    expect_message(side, 4, 300, 1);
    expect_bytes(at + 4 * MESSAGE_BYTES, 300, 4);
    expect_message(side, 5, 128, 1);
    expect_bytes(at + 5 * MESSAGE_BYTES, 128, 5);
    expect_message(side, 6, 0, 0);
    expect_event(side, FI_SHUTDOWN);
}

static void send_messages(struct side *side) {
    char *at = side->memory;
    void *desc[3] = {fi_mr_desc(side->mr), fi_mr_desc(side->mr), fi_mr_desc(side->mr)};
    for (int number = 1; number <= 5; number++)
        fill(at + number * MESSAGE_BYTES, 2000, number);
    char *one = at + MESSAGE_BYTES;
    struct iovec three[3] = {piece(one, 10), piece(one + 10, 490), piece(one + 500, 500)};
    DO(fi_sendv(side->ep, three, desc, 3, 0, CONTEXT(91)));
    struct iovec two[2] = {piece(at + 2 * MESSAGE_BYTES, 1), piece(at + 2 * MESSAGE_BYTES + 1, 1499)};
    struct fi_msg message = {.msg_iov = two, .desc = desc, .iov_count = 2, .context = CONTEXT(1)};
    DO(fi_sendmsg(side->ep, &message, FI_COMPLETION));
    struct iovec whole = piece(at + 3 * MESSAGE_BYTES, 2000);
    message = (struct fi_msg){.msg_iov = &whole, .desc = desc, .iov_count = 1, .context = CONTEXT(2), .data = DATA};
    DO(fi_sendmsg(side->ep, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA));
    DO(fi_senddata(side->ep, at + 4 * MESSAGE_BYTES, 300, desc[0], DATA, 0, CONTEXT(92)));
    DO(fi_injectdata(side->ep, at + 5 * MESSAGE_BYTES, 128, DATA, 0));
    message = (struct fi_msg){.context = CONTEXT(3)};
    DO(fi_sendmsg(side->ep, &message, FI_COMPLETION));
    expect_only(side, 1, 3, FI_MSG | FI_SEND);
    DO(fi_shutdown(side->ep, 0));
}

/* ---- the peer's memory ---- */

static void serve_memory(struct side *side) {
    receive(side, 15);
    accept_request(side);
    expect_message(side, 15, 1, 0);
    expect_bytes(side->memory, 1000, 1);
    expect_bytes(side->memory + 2000, 1200, 2);
    expect_bytes(side->memory + 5000, 700, 3);
    expect_bytes(side->memory + 8000, 100, 4);
    const size_t untouched[4][2] = {{1000, 2000}, {3200, 5000}, {5700, 8000}, {8100, 15 * MESSAGE_BYTES}};
    for (int gap = 0; gap < 4; gap++)
        for (size_t byte = untouched[gap][0]; byte < untouched[gap][1]; byte++)
            EXPECT(side->memory[byte] == 0);
    expect_event(side, FI_SHUTDOWN);
}

static void write_memory(struct side *side, void **desc) {
    char *from = side->memory;
    uint64_t to = side->peer.address, key = side->peer.key;
    fill(from, 1000, 1);
    fill(from + 2000, 1200, 2);
    fill(from + 5000, 700, 3);
    fill(from + 8000, 100, 4);
    DO(fi_write(side->ep, from, 1000, desc[0], 0, to, key, CONTEXT(93)));
    struct iovec two[2] = {piece(from + 2000, 33), piece(from + 2033, 1167)};
    DO(fi_writev(side->ep, two, desc, 2, 0, to + 2000, key, CONTEXT(94)));
    DO(fi_inject_write(side->ep, from + 8000, 100, 0, to + 8000, key));
    struct iovec third[2] = {piece(from + 5000, 699), piece(from + 5699, 1)};
    struct fi_rma_iov place = {.addr = to + 5000, .len = 700, .key = key};
    struct fi_msg_rma message = {.msg_iov = third, .desc = desc, .iov_count = 2, .rma_iov = &place, .rma_iov_count = 1};
    message.context = CONTEXT(1);
    DO(fi_writemsg(side->ep, &message, FI_COMPLETION));
    expect_only(side, 1, 1, FI_RMA | FI_WRITE);
    /* What is not there says so. */
    EXPECT(fi_writedata(side->ep, from, 8, desc[0], DATA, 0, to, key, NULL) == -FI_ENOSYS);
    EXPECT(fi_inject_writedata(side->ep, from, 8, DATA, 0, to, key) == -FI_ENOSYS);
    EXPECT(fi_writemsg(side->ep, &message, FI_REMOTE_CQ_DATA) == -FI_ENOSYS);
}

static void use_memory(struct side *side) {
    void *desc[2] = {fi_mr_desc(side->mr), fi_mr_desc(side->mr)};
    write_memory(side, desc);
    char *to = side->memory + 20000;
    uint64_t from = side->peer.address, key = side->peer.key;
    DO(fi_read(side->ep, to, 1000, desc[0], 0, from, key, CONTEXT(95)));
    struct iovec two[2] = {piece(to + 2000, 33), piece(to + 3000, 1167)};
    DO(fi_readv(side->ep, two, desc, 2, 0, from + 2000, key, CONTEXT(96)));
    struct iovec third = piece(to + 5000, 3100);
    struct fi_rma_iov place = {.addr = from + 5000, .len = 3100, .key = key};
    struct fi_msg_rma message = {.msg_iov = &third, .desc = desc, .iov_count = 1, .rma_iov = &place, .rma_iov_count = 1};
    message.context = CONTEXT(2);
    DO(fi_readmsg(side->ep, &message, FI_COMPLETION));
    expect_only(side, 2, 2, FI_RMA | FI_READ);
    expect_bytes(to, 1000, 1);
    expect_bytes(to + 2000, 33, 2);
    for (size_t byte = 33; byte < 1200; byte++)
        EXPECT(to[3000 + byte - 33] == byte_of(2, byte));
    expect_bytes(to + 5000, 700, 3);
    expect_bytes(to + 8000, 100, 4);
    struct iovec end = piece(side->memory, 1);
    struct fi_msg last = {.msg_iov = &end, .desc = desc, .iov_count = 1, .context = CONTEXT(3)};
    DO(fi_sendmsg(side->ep, &last, FI_COMPLETION));
    expect_only(side, 3, 3, FI_MSG | FI_SEND);
}

/* ---- a message that finds no receive waits ---- */

#define LATE 12

static void serve_late(struct side *side) {
    accept_request(side);
    usleep(300000);
    struct fi_cq_data_entry entry;
    EXPECT(fi_cq_read(side->cq, &entry, 1) == -FI_EAGAIN);
    for (int number = 1; number <= LATE; number++)
        receive(side, number);
    for (int number = 1; number <= LATE; number++) {
        expect_message(side, number, 1000, 0);
        expect_bytes(side->memory + number * MESSAGE_BYTES, 1000, number);
    }
    expect_event(side, FI_SHUTDOWN);
}

static void send_early(struct side *side) {
    void *desc = fi_mr_desc(side->mr);
    for (int number = 1; number <= LATE; number++) {
        struct iovec whole = piece(side->memory + number * MESSAGE_BYTES, 1000);
        fill(whole.iov_base, 1000, number);
        struct fi_msg message = {.msg_iov = &whole, .desc = &desc, .iov_count = 1, .context = CONTEXT(number)};
        DO(fi_sendmsg(side->ep, &message, FI_COMPLETION));
    }
    expect_only(side, 1, LATE, FI_MSG | FI_SEND);
}

/* ---- waiting ---- */

#define ROUNDS 50

static void to_and_fro(struct side *side, int begins) {
    for (int round = 0; round < ROUNDS; round++) {
        if (begins)
            DO(fi_inject(side->ep, &round, sizeof round, 0));
        expect_message(side, 1, sizeof round, 0);
        EXPECT(memcmp(side->memory + MESSAGE_BYTES, &round, sizeof round) == 0);
        receive(side, 1);
        if (round % 10 == 0)
            usleep(20000);
        if (!begins)
            DO(fi_inject(side->ep, &round, sizeof round, 0));
    }
}

static void serve_waits(struct side *side) {
    receive(side, 1);
    accept_request(side);
    to_and_fro(side, 0);
    expect_event(side, FI_SHUTDOWN);
}

static void use_waits(struct side *side) {
    struct fi_cq_data_entry entry;
    struct fi_eq_entry written = {.context = side, .data = 77}, read_back;
    uint32_t kind = 0;
    EXPECT(fi_cq_sread(side->cq, &entry, 1, NULL, 50) == -FI_EAGAIN);
    EXPECT(fi_eq_sread(side->eq, &kind, &read_back, sizeof read_back, 50, 0) == -FI_EAGAIN);
    EXPECT(fi_eq_write(side->eq, FI_NOTIFY, &written, sizeof written, 0) == (ssize_t)sizeof written);
    EXPECT(next_event(side, &kind, &read_back, sizeof read_back) == (ssize_t)sizeof read_back);
    EXPECT(kind == FI_NOTIFY && read_back.context == side && read_back.data == 77);
    receive(side, 1);
    to_and_fro(side, 1);
}

/* ---- a peer that is lost ---- */

#define POSTED 8

static void expect_canceled(struct side *side, int first, int last) {
    struct fi_cq_data_entry entry;
    for (int number = first; number <= last; number++) {
        struct fi_cq_err_entry error = {0};
        EXPECT(next_completion(side, &entry) == -FI_EAVAIL);
        EXPECT(fi_cq_readerr(side->cq, &error, 0) == 1);
        EXPECT(error.op_context == CONTEXT(number) && error.err == FI_ECANCELED);
    }
    EXPECT(fi_cq_read(side->cq, &entry, 1) == -FI_EAGAIN);
}

static void serve_loss(struct side *side) {
    for (int number = 1; number <= POSTED; number++)
        receive(side, number);
    accept_request(side);
    expect_message(side, 1, 4, 0);
    DO(fi_inject(side->ep, "end", 4, 0));
    expect_event(side, FI_SHUTDOWN);
    expect_canceled(side, 2, POSTED);
    DO(fi_close(&side->ep->fid));
    side->ep = NULL;
}

static void be_lost(struct side *side) {
    struct fi_cq_data_entry entry;
    receive(side, 1);
    DO(fi_inject(side->ep, "here", 4, 0));
    /* Until the server has it. */
    EXPECT(next_completion(side, &entry) == 1);
    raise(SIGKILL);
}

/* ---- an endpoint that is closed with receives posted ---- */

static void serve_closing(struct side *side) {
    accept_request(side);
    expect_event(side, FI_SHUTDOWN);
}

static void close_early(struct side *side) {
    for (int number = 1; number <= POSTED; number++)
        receive(side, number);
    DO(fi_close(&side->ep->fid));
    side->ep = NULL;
    expect_canceled(side, 1, POSTED);
}

/* ---- a read of what is not the region's ---- */

static void serve_outside(struct side *side) {
    accept_request(side);
    expect_event(side, FI_SHUTDOWN);
}

static void read_outside(struct side *side) {
    struct fi_cq_data_entry entry;
    struct fi_cq_err_entry error = {0};
    uint64_t from = side->peer.address + REGION_BYTES - 4;
    DO(fi_read(side->ep, side->memory, 8, fi_mr_desc(side->mr), 0, from, side->peer.key, CONTEXT(1)));
    EXPECT(next_completion(side, &entry) == -FI_EAVAIL);
    EXPECT(fi_cq_readerr(side->cq, &error, 0) == 1);
    EXPECT(error.op_context == CONTEXT(1) && error.err != 0);
    for (int byte = 0; byte < 8; byte++)
        EXPECT(side->memory[byte] == 0);
}

/* ---- who runs what ---- */

typedef void (*part)(struct side *);

static const struct {
    const char *name;
    part serve, use;
} CASES[] = {
    {"messages", serve_messages, send_messages}, {"memory", serve_memory, use_memory},
    {"late", serve_late, send_early},            {"waits", serve_waits, use_waits},
    {"loss", serve_loss, be_lost},               {"closing", serve_closing, close_early},
    {"outside", serve_outside, read_outside},    {"refusal", NULL, NULL},
};

static int use(part part, int from) {
    struct side side = {0};
    role = "client";
    ask(&side, from);
    if (part) {
        connect_side(&side);
        part(&side);
    } else {
        uint32_t kind = 0;
        struct fi_eq_cm_entry entry;
        struct fi_eq_err_entry error = {0};
        DO(fi_connect(side.ep, side.info->dest_addr, "request", 8));
        EXPECT(next_event(&side, &kind, &entry, sizeof entry) == -FI_EAVAIL);
        EXPECT(fi_eq_readerr(side.eq, &error, 0) == sizeof error);
        EXPECT(error.fid == &side.ep->fid && error.err == FI_ECONNREFUSED);
        EXPECT(error.err_data_size == 8 && memcmp(error.err_data, "no room", 8) == 0);
    }
    close_side(&side);
    return 0;
}

static void serve(part part, int to) {
    struct side side = {0};
    role = "server";
    start_listening(&side, to);
    struct fi_info *request = next_request(&side);
    if (part) {
        make_endpoint(&side, request);
        part(&side);
    } else {
        DO(fi_reject(side.passive, request->handle, "no room", 8));
    }
    fi_freeinfo(request);
    close_side(&side);
}

int main(int count, char **words) {
    size_t at = 0, cases = sizeof CASES / sizeof *CASES;
    while (at < cases && (count < 2 || strcmp(words[1], CASES[at].name) != 0))
        at++;
    if (at == cases)
        return 2;
    by_descriptor = count > 2 && strcmp(words[2], "descriptor") == 0;
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return 2;
    pid_t client = fork();
    if (client == 0) {
        close(ends[1]);
        return use(CASES[at].use, ends[0]);
    }
    serve(CASES[at].serve, ends[1]);
    EXPECT(waitpid(client, &status, 0) == client);
    int is_lost = CASES[at].serve == serve_loss;
    return is_lost ? !WIFSIGNALED(status) : status != 0;
}
