/* RDMA writes, with and without immediate data; reads; fences; of many segments; at each level that has them. */
#include "sides.h"

static side_t one, other;

static void *remote(size_t at)
{
    return data_of(&other, at);
}

/* A write is not told to the target, and takes no receive; a message behind it proves that it is there. */
static void writes(void)
{
    static const unsigned some[] = { 1, 3, 64, 65, 4096, 5000, TRANSFER_BYTES };
    unsigned i;
    for (i = 0; i < sizeof some / sizeof *some; i++) {
        VIP_DESCRIPTOR *receive = prepare(&other, 0, DATA_BYTES - 64, 64), *taken;
        VIP_DESCRIPTOR *write, *send = prepare(&one, 1, 0, 8);
        memset(remote(0), 0xee, TRANSFER_BYTES + 64);
        fill(data_of(&one, 5), some[i], i);
        write = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAWRITE, 5, some[i], remote(7), other.handle);
        post_recv(&other, receive);
        post_send(&one, write);
        SENT(&one, write, VIP_STATUS_OP_RDMA_WRITE);
        GIVES(NOT_DONE, VipRecvDone(other.vi, &taken));
        post_send(&one, send);
        RECEIVED(&other, receive, 0);
        SENT(&one, send, VIP_STATUS_OP_SEND);
        WANT(is_all((unsigned char *)remote(0), 7, 0xee) && is_filled((unsigned char *)remote(7), some[i], i));
        WANT(is_all((unsigned char *)remote(7 + some[i]), TRANSFER_BYTES + 64 - 7 - some[i], 0xee));
    }
}

/* With immediate data it takes one receive, whose segments stay as they are, and which may have none. */
static void writes_with_immediate(void)
{
    unsigned how;
    for (how = 0; how < 3; how++) {
        VIP_DESCRIPTOR *receive = prepare(&other, 0, 8192, how == 1 ? 64 : 0);
        unsigned bytes = how == 2 ? 0 : 1234;
        VIP_DESCRIPTOR *write = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 0, bytes, remote(0),
                                             other.handle);
        HEAD(write).ImmediateData = 0x12345678;
        memset(remote(0), 0, 1234);
        memset(remote(8192), 0xee, 64);
        fill(data_of(&one, 0), 1234, 8);
        post_recv(&other, receive);
        post_send(&one, write);
        TAKES(VipRecvWait, &other, receive, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
        SENT(&one, write, VIP_STATUS_OP_RDMA_WRITE);
        WANT_EQUAL(HEAD(receive).ImmediateData, 0x12345678);
        WANT_EQUAL(HEAD(receive).Length, bytes);
        WANT(is_filled((unsigned char *)remote(0), bytes, 8) && is_all((unsigned char *)remote(8192), 64, 0xee));
    }
}

static void reads(void)
{
    static const unsigned some[] = { 0, 1, 63, 4096, 5000, TRANSFER_BYTES };
    unsigned i;
    for (i = 0; i < sizeof some / sizeof *some; i++) {
        VIP_DESCRIPTOR *read = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAREAD, 3, some[i], remote(9), other.handle);
        memset(data_of(&one, 0), 0xee, TRANSFER_BYTES + 64);
        fill((unsigned char *)remote(9), some[i], i);
        post_send(&one, read);
        SENT(&one, read, VIP_STATUS_OP_RDMA_READ);
        WANT(is_all(data_of(&one, 0), 3, 0xee) && is_filled(data_of(&one, 3), some[i], i));
        WANT(is_all(data_of(&one, 3 + some[i]), TRANSFER_BYTES + 61 - some[i], 0xee));
    }
}

/* Of several segments: gathered by a write, scattered by a read. */
static void segments(void)
{
    VIP_DESCRIPTOR *write = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAWRITE, 0, 100, remote(0), other.handle);
    VIP_DESCRIPTOR *read = prepare_rdma(&one, 1, VIP_CONTROL_OP_RDMAREAD, 1000, 100, remote(0), other.handle);
    unsigned i;
    HEAD(write).SegCount = HEAD(read).SegCount = 5;
    HEAD(write).Length = HEAD(read).Length = 400;
    for (i = 1; i < 5; i++) {
        LOCAL(write, i).Data.Address = data_of(&one, (4 - i) * 200);
        LOCAL(write, i).Handle = LOCAL(read, i).Handle = one.handle;
        LOCAL(write, i).Length = LOCAL(read, i).Length = 100;
        LOCAL(read, i).Data.Address = data_of(&one, 1000 + i * 200);
        fill(data_of(&one, (4 - i) * 200), 100, i);
    }
    post_send(&one, write);
    SENT(&one, write, VIP_STATUS_OP_RDMA_WRITE);
    post_send(&one, read);
    SENT(&one, read, VIP_STATUS_OP_RDMA_READ);
    for (i = 1; i < 5; i++)
        WANT(is_filled((unsigned char *)remote((i - 1) * 100), 100, i) && is_filled(data_of(&one, 1000 + i * 200), 100, i));
}

/* Reads, writes and sends complete in the order of posting; what has a fence begins when the reads before it have ended:
 * a fenced write of what a read brings says so. */
static void order(void)
{
    unsigned round, i;
    for (round = 0; round < 50; round++) {
        VIP_DESCRIPTOR *read = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAREAD, 0, 4096, remote(0), other.handle);
        VIP_DESCRIPTOR *write = prepare_rdma(&one, 1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, 0, 4096, remote(8192),
                                             other.handle);
        VIP_DESCRIPTOR *send = prepare(&one, 2, 0, 4096), *receive = prepare(&other, 0, 16384, 4096);
        HEAD(send).Control = VIP_CONTROL_QFENCE;
        fill((unsigned char *)remote(0), 4096, round);
        memset(data_of(&one, 0), 0, 4096);
        post_recv(&other, receive);
        post_send(&one, read);
        post_send(&one, write);
        post_send(&one, send);
        SENT(&one, read, VIP_STATUS_OP_RDMA_READ);
        SENT(&one, write, VIP_STATUS_OP_RDMA_WRITE);
        SENT(&one, send, VIP_STATUS_OP_SEND);
        RECEIVED(&other, receive, 0);
        WANT(is_filled((unsigned char *)remote(8192), 4096, round) && is_filled((unsigned char *)remote(16384), 4096, round));
    }
    /* More reads than can be under way wait for each other. */
    for (i = 0; i < 100; i++)
        post_send(&one, prepare_rdma(&one, i, VIP_CONTROL_OP_RDMAREAD, i * 1000, 1000, remote(i * 1000), other.handle));
    for (i = 0; i < 100; i++)
        SENT(&one, descriptor_of(&one, i), VIP_STATUS_OP_RDMA_READ);
    WANT(memcmp(data_of(&one, 0), remote(0), 100000) == 0);
}

int main(int count, char **arguments)
{
    unsigned level;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    for (level = 0; level < 3; level++) {
        connect_sides(&one, &other, levels[level]);
        writes();
        writes_with_immediate();
        if (one.limits.RDMAReadSupport & levels[level]) {
            reads();
            segments();
            order();
        }
        end_sides(&one, &other);
    }
    close_side(&one);
    close_side(&other);
    return done();
}
