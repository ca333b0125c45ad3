/* Messages: of every length, of no bytes, of many segments, with immediate data, at each level; order; what a completion says. */
#include "sides.h"

static side_t one, other;

static void lengths(void)
{
    static const unsigned some[] = { 1, 2, 3, 4, 7, 8, 31, 64, 65, 1000, 4095, 4096, 4097, 32768, 65535, 65536 };
    unsigned i;
    for (i = 0; i < sizeof some / sizeof *some; i++) {
        VIP_DESCRIPTOR *receive = prepare(&other, 0, 64, TRANSFER_BYTES), *send = prepare(&one, 0, 32, some[i]);
        /* The longest may fill what was posted; every byte beside is left alone. */
        memset(data_of(&other, 0), 0xee, TRANSFER_BYTES + 256);
        fill(data_of(&one, 32), some[i], i);
        post_recv(&other, receive);
        post_send(&one, send);
        RECEIVED(&other, receive, 0);
        SENT(&one, send, VIP_STATUS_OP_SEND);
        WANT_EQUAL(HEAD(receive).Length, some[i]);
        WANT_EQUAL(HEAD(send).Length, some[i]);
        WANT(is_filled(data_of(&other, 64), some[i], i));
        WANT(is_all(data_of(&other, 0), 64, 0xee));
        WANT(is_all(data_of(&other, 64 + some[i]), TRANSFER_BYTES + 256 - 64 - some[i], 0xee));
    }
}

/* No bytes: without a segment, or with one of no bytes, which need not be registered; with and without immediate data. */
static void no_bytes(void)
{
    unsigned how;
    for (how = 0; how < 4; how++) {
        VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, how & 1 ? 64 : 0), *send = prepare(&one, 0, 0, 0);
        VIP_UINT32 bits = how & 2 ? VIP_STATUS_IMMEDIATE : 0;
        if (how & 1) {
            HEAD(send).SegCount = 1;
            LOCAL(send, 0).Data.Address = data_of(&one, 0);
            LOCAL(send, 0).Handle = one.handle;
        }
        if (how & 2) {
            HEAD(send).Control |= VIP_CONTROL_IMMEDIATE;
            HEAD(send).ImmediateData = 0xfeed0000u + how;
        }
        HEAD(receive).Length = 7777;
        post_recv(&other, receive);
        post_send(&one, send);
        RECEIVED(&other, receive, bits);
        SENT(&one, send, VIP_STATUS_OP_SEND);
        WANT_EQUAL(HEAD(receive).Length, 0);
        WANT(!(how & 2) || HEAD(receive).ImmediateData == 0xfeed0000u + how);
    }
}

static void immediate(void)
{
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 512), *send = prepare(&one, 0, 0, 300);
    fill(data_of(&one, 0), 300, 5);
    HEAD(send).Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    HEAD(send).ImmediateData = 0xffffffffu;
    post_recv(&other, receive);
    post_send(&one, send);
    RECEIVED(&other, receive, VIP_STATUS_IMMEDIATE);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    WANT_EQUAL(HEAD(receive).ImmediateData, 0xffffffffu);
    WANT(HEAD(receive).Length == 300 && is_filled(data_of(&other, 0), 300, 5));
}

/* The long descriptor of a side, of segments of so many bytes each, in turn from the end of the data to its beginning. */
static VIP_DESCRIPTOR *long_descriptor(const side_t *side, unsigned segments, unsigned bytes)
{
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)(side->memory + LONG_DESCRIPTOR_AT);
    unsigned i;
    memset(descriptor, 0, sizeof *descriptor);
    HEAD(descriptor).SegCount = (VIP_UINT16)segments;
    HEAD(descriptor).Length = segments * bytes;
    for (i = 0; i < segments; i++) {
        LOCAL(descriptor, i).Data.Address = data_of(side, (size_t)(segments - 1 - i) * (bytes + 1));
        LOCAL(descriptor, i).Handle = side->handle;
        LOCAL(descriptor, i).Length = bytes;
    }
    return descriptor;
}

static void segments(unsigned count)
{
    VIP_DESCRIPTOR *receive = long_descriptor(&other, count, 5), *send = long_descriptor(&one, count, 7);
    unsigned i, total = 5 * count;
    unsigned char sum[5 * 4096];
    WANT(total <= sizeof sum);
    /* A send of segments of 7 bytes into segments of 5. */
    HEAD(send).Length = total;
    for (i = 0; i < count; i++) {
        unsigned left = total > 7 * i ? total - 7 * i : 0;
        LOCAL(send, i).Length = left < 7 ? left : 7;
        memset(LOCAL(send, i).Data.Address, (int)(i & 0xff), 7);
    }
    memset(data_of(&other, 0), 0xee, 6 * count);
    post_recv(&other, receive);
    post_send(&one, send);
    RECEIVED(&other, receive, 0);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    WANT_EQUAL(HEAD(receive).Length, total);
    for (i = 0; i < count; i++) {
        memcpy(sum + 5 * i, LOCAL(receive, i).Data.Address, 5);
        WANT(((unsigned char *)LOCAL(receive, i).Data.Address)[5] == 0xee);
    }
    for (i = 0; i < total; i++)
        WANT_EQUAL(sum[i], (i / 7) & 0xff);
}

/* Queues are strictly first in, first out, also when much is posted at once. */
static void in_order(void)
{
    unsigned i, count = 200;
    for (i = 0; i < count; i++)
        post_recv(&other, prepare(&other, i, i * 512, 512));
    for (i = 0; i < count; i++) {
        VIP_DESCRIPTOR *send = prepare(&one, i, i * 512, i % 500);
        fill(data_of(&one, i * 512), i % 500, i);
        HEAD(send).Control = VIP_CONTROL_IMMEDIATE;
        HEAD(send).ImmediateData = i;
        post_send(&one, send);
    }
    for (i = 0; i < count; i++) {
        RECEIVED(&other, descriptor_of(&other, i), VIP_STATUS_IMMEDIATE);
        WANT_EQUAL(HEAD(descriptor_of(&other, i)).ImmediateData, i);
        WANT_EQUAL(HEAD(descriptor_of(&other, i)).Length, i % 500);
        WANT(is_filled(data_of(&other, i * 512), i % 500, i));
        SENT(&one, descriptor_of(&one, i), VIP_STATUS_OP_SEND);
    }
}

/* A completion that is seen in the status word is no dequeue; after it everything else of the descriptor stands. */
static void looking(void)
{
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 64), *send = prepare(&one, 0, 0, 64), *taken;
    VIP_BOOLEAN empty = VIP_TRUE;
    unsigned long begun = now_ms();
    fill(data_of(&one, 0), 64, 77);
    post_recv(&other, receive);
    post_send(&one, send);
    while (!(__atomic_load_n(&HEAD(receive).Status, __ATOMIC_ACQUIRE) & VIP_STATUS_DONE)) {
        /* Somebody has to drive what comes; asking for anything does. */
        VipQueryVi(other.vi, NULL, NULL, NULL, NULL);
        WANT(now_ms() - begun < SOON);
    }
    WANT(HEAD(receive).Length == 64 && is_filled(data_of(&other, 0), 64, 77));
    OK(VipQueryVi(other.vi, NULL, NULL, NULL, &empty));
    WANT(!empty);
    GIVES(SUCCESS, VipRecvDone(other.vi, &taken));
    WANT(taken == receive);
    SENT(&one, send, VIP_STATUS_OP_SEND);
}

/* A message of the greatest length that the NIC says. */
static void greatest(VIP_RELIABILITY_LEVEL level)
{
    size_t bytes = one.limits.MaxTransferSize < (4ul << 20) ? one.limits.MaxTransferSize : 4ul << 20;
    VIP_VI_ATTRIBUTES attributes;
    unsigned char *from = (unsigned char *)malloc(bytes), *to = (unsigned char *)malloc(bytes);
    VIP_MEM_HANDLE of_from = register_memory(&one, from, bytes, 0, 0), of_to = register_memory(&other, to, bytes, 0, 0);
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 1), *send = prepare(&one, 0, 0, 1);
    attributes = vi_attributes(&one, level);
    attributes.MaxTransferSize = bytes;
    OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &one.vi));
    attributes.Ptag = other.tag;
    OK(VipCreateVi(other.nic, &attributes, NULL, NULL, &other.vi));
    connect_vis(&one, one.vi, &other, other.vi);
    fill(from, bytes, 3);
    LOCAL(send, 0).Data.Address = from, LOCAL(send, 0).Handle = of_from;
    LOCAL(receive, 0).Data.Address = to, LOCAL(receive, 0).Handle = of_to;
    HEAD(send).Length = LOCAL(send, 0).Length = LOCAL(receive, 0).Length = (VIP_UINT32)bytes;
    post_recv(&other, receive);
    post_send(&one, send);
    RECEIVED(&other, receive, 0);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    WANT(HEAD(receive).Length == bytes && is_filled(to, bytes, 3));
    end_sides(&one, &other);
    OK(VipDeregisterMem(one.nic, from, of_from));
    OK(VipDeregisterMem(other.nic, to, of_to));
    free(from), free(to);
}

int main(int count, char **arguments)
{
    unsigned level;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    for (level = 0; level < 3; level++) {
        unsigned many = (unsigned)one.limits.MaxSegmentsPerDesc;
        connect_sides(&one, &other, levels[level]);
        lengths();
        no_bytes();
        immediate();
        segments(1);
        segments(2);
        segments(3);
        segments(252);
        segments(many < 4000 ? many : 4000);
        in_order();
        looking();
        end_sides(&one, &other);
        greatest(levels[level]);
    }
    close_side(&one);
    close_side(&other);
    return done();
}
