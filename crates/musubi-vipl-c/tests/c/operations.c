/* Every operation at every level: bytes, lengths, immediate data, many segments, descriptors that are none. */
#include "check.h"

static void messages(void)
{
    static const unsigned lengths[] = {0, 1, 4, 7, 8, 9, 63, 64, 400, 401, 4096, 65535, 65536};
    unsigned place;
    for (place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        VIP_DESCRIPTOR *receive = plain(&other, 1, 0, 65536), *send = plain(&one, 2, 100000, lengths[place]);
        fill(buffer(&one, 100000), lengths[place], place);
        memset(buffer(&other, 0), 0xee, 70000);
        post_receive(&other, receive);
        post_send(&one, send);
        received(&other, receive, VIP_STATUS_OP_RECEIVE, lengths[place]);
        sent(&one, send, VIP_STATUS_OP_SEND);
        HOLDS(memcmp(buffer(&other, 0), buffer(&one, 100000), lengths[place]) == 0);
        IS(buffer(&other, 0)[lengths[place]], 0xee);
    }
}

static void immediate_and_empty(void)
{
    VIP_DESCRIPTOR *receive = plain(&other, 1, 0, 0), *send = plain(&one, 2, 0, 0);
    receive->CS.SegCount = 0;
    send->CS.SegCount = 0;
    send->CS.Control = VIP_CONTROL_IMMEDIATE;
    send->CS.ImmediateData = 0xdeadbeef;
    post_receive(&other, receive);
    post_send(&one, send);
    received(&other, receive, VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE, 0);
    IS(receive->CS.ImmediateData, 0xdeadbeef);
    sent(&one, send, VIP_STATUS_OP_SEND);
}

static void many_segments(void)
{
    /* 250 segments of a byte each are gathered, and scattered to three places. */
    VIP_DESCRIPTOR *send = (VIP_DESCRIPTOR *)buffer(&one, 8192), *receive = plain(&other, 1, 0, 100);
    unsigned place;
    memset(send, 0, sizeof(VIP_CONTROL_SEGMENT) + 250 * sizeof(VIP_DATA_SEGMENT));
    send->Control.SegCount = 250;
    send->Control.Length = 250;
    for (place = 0; place < 250; place++) {
        VIP_DATA_SEGMENT *segment = (VIP_DATA_SEGMENT *)(send + 1) - 2 + place;
        buffer(&one, 3 * place)[0] = (unsigned char)(place + 1);
        segment->Data.Address = buffer(&one, 3 * place);
        segment->Handle = one.handle;
        segment->Length = 1;
    }
    HOLDS((void *)send->Data == (void *)((VIP_DATA_SEGMENT *)(send + 1) - 2));
    receive->CS.SegCount = 3;
    for (place = 0; place < 3; place++) {
        VIP_DATA_SEGMENT *segment = &receive->Data[0] + place;
        segment->Data.Address = buffer(&other, 1000 * place);
        segment->Handle = other.handle;
        segment->Length = 100;
    }
    post_receive(&other, receive);
    post_send(&one, send);
    received(&other, receive, VIP_STATUS_OP_RECEIVE, 250);
    sent(&one, send, VIP_STATUS_OP_SEND);
    for (place = 0; place < 250; place++)
        IS(buffer(&other, 1000 * (place / 100))[place % 100], (unsigned char)(place + 1));
}

static void writes_and_reads(VIP_RELIABILITY_LEVEL level)
{
    VIP_DESCRIPTOR *receive = plain(&other, 1, 0, 0), *write = remote(&one, 2, VIP_CONTROL_OP_RDMAWRITE, 0, 50000, &other, 100003);
    VIP_DESCRIPTOR *read;
    unsigned char *target = buffer(&other, 100003);
    fill(buffer(&one, 0), 50000, 77);
    memset(buffer(&other, 100000), 0, 60000);
    post_receive(&other, receive);
    post_send(&one, write);
    sent(&one, write, VIP_STATUS_OP_RDMA_WRITE);
    /* Of the first nobody is told: the second comes behind it. */
    write = remote(&one, 2, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 0, 4, &other, 200000);
    write->CS.ImmediateData = 42;
    post_send(&one, write);
    received(&other, receive, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE, 4);
    IS(receive->CS.ImmediateData, 42);
    sent(&one, write, VIP_STATUS_OP_RDMA_WRITE);
    HOLDS(memcmp(target, buffer(&one, 0), 50000) == 0);
    IS(target[-1] | target[50000], 0);
    if (level == VIP_SERVICE_UNRELIABLE)
        return;
    read = remote(&one, 3, VIP_CONTROL_OP_RDMAREAD, 60000, 50000, &other, 100003);
    post_send(&one, read);
    write = remote(&one, 4, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, 8, 8, &other, 100003);
    post_send(&one, write);
    sent(&one, read, VIP_STATUS_OP_RDMA_READ);
    sent(&one, write, VIP_STATUS_OP_RDMA_WRITE);
    HOLDS(memcmp(buffer(&one, 60000), buffer(&one, 0), 50000) == 0);
}

/* What no descriptor may be: each with the error that it completes with. */
static void mistakes(VIP_RELIABILITY_LEVEL level)
{
    int which;
    for (which = 0; which < 8; which++) {
        VIP_DESCRIPTOR *d;
        VIP_UINT32 status = VIP_STATUS_FORMAT_ERROR, op = VIP_STATUS_OP_SEND;
        connected(level);
        d = plain(&one, 2, 0, 10);
        switch (which) {
        case 0: d->CS.Control = VIP_CONTROL_OP_RESERVED; break;
        case 1: d->CS.Control = 0x10; break;
        case 2: d->CS.Control = 0x8000; break;
        case 3: d->CS.Control = VIP_CONTROL_OP_RDMAWRITE; d->CS.SegCount = 0; op = VIP_STATUS_OP_RDMA_WRITE; break;
        case 4: d->CS.SegCount = 257; break;
        case 5: d->CS.Length = 11; status = VIP_STATUS_LENGTH_ERROR; break;
        case 6: d->DS[0].Local.Handle ^= 0x100000; status = VIP_STATUS_PROTECTION_ERROR; break;
        default:
            d = remote(&one, 2, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE, 0, 10, &other, 0);
            op = VIP_STATUS_OP_RDMA_READ;
        }
        post_send(&one, d);
        sent(&one, d, status | op);
        IS(state_of(&one), level == VIP_SERVICE_UNRELIABLE ? VIP_STATE_CONNECTED : VIP_STATE_ERROR);
        if (level != VIP_SERVICE_UNRELIABLE)
            becomes(&other, VIP_STATE_ERROR);
        part(&one);
        part(&other);
    }
}

static void what_is_refused_at_once(void)
{
    VIP_DESCRIPTOR *d = plain(&one, 2, 0, 10);
    create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    IS(VipPostSend(one.vi, NULL, one.handle), VIP_INVALID_PARAMETER);
    IS(VipPostSend(one.vi, (VIP_DESCRIPTOR *)((char *)d + 32), one.handle), VIP_INVALID_PARAMETER);
    IS(VipPostSend(one.vi, d, one.handle + 1), VIP_INVALID_PARAMETER);
    IS(VipPostRecv(one.vi, (VIP_DESCRIPTOR *)(one.memory + MEMORY_BYTES), one.handle), VIP_INVALID_PARAMETER);
    IS(VipPostRecv((VIP_VI_HANDLE)&one.vi, d, one.handle), VIP_INVALID_PARAMETER);
    IS(VipSendDone(one.vi, NULL), VIP_INVALID_PARAMETER);
    part(&one);
    IS(VipPostRecv(one.vi, d, one.handle), VIP_INVALID_PARAMETER);
    IS(VipDestroyVi(one.vi), VIP_INVALID_PARAMETER);
    IS(VipDestroyVi((VIP_VI_HANDLE)&one.vi), VIP_INVALID_PARAMETER);
}

int main(int argc, char **argv)
{
    unsigned level;
    begin(argc, argv);
    for (level = 0; level < 3; level++) {
        connected(levels[level]);
        messages();
        immediate_and_empty();
        many_segments();
        writes_and_reads(levels[level]);
        part(&one);
        part(&other);
        mistakes(levels[level]);
    }
    what_is_refused_at_once();
    end();
    return 0;
}
