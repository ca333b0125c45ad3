/* Descriptors that are none: forms that can be written down and mean nothing, lengths that are wrong. They complete in their turn, with
 * an error; an unreliable connection goes on, a reliable one ends. */
#include "sides.h"

static side_t one, other;

enum mistake {
    OP_RESERVED, RESERVED_LOWEST, RESERVED_HIGHEST, WRITE_WITHOUT_SEGMENT, READ_WITHOUT_SEGMENT, READ_IMMEDIATE, TOO_MANY_SEGMENTS,
    LENGTH_TOO_LONG, LENGTH_TOO_SHORT, TRANSFER_TOO_LONG, WRITE_TOO_LONG, MISTAKES
};

/* A descriptor with the mistake; gives the error that it completes with. */
static VIP_UINT32 make(enum mistake mistake, VIP_DESCRIPTOR **made)
{
    VIP_DESCRIPTOR *descriptor = prepare(&one, 1, 0, 64);
    *made = descriptor;
    switch (mistake) {
    case OP_RESERVED:
        HEAD(descriptor).Control = VIP_CONTROL_OP_RESERVED;
        return VIP_STATUS_FORMAT_ERROR;
    case RESERVED_LOWEST:
        HEAD(descriptor).Control = 0x10;
        return VIP_STATUS_FORMAT_ERROR;
    case RESERVED_HIGHEST:
        HEAD(descriptor).Control = 0x8000 | VIP_CONTROL_IMMEDIATE;
        return VIP_STATUS_FORMAT_ERROR;
    case WRITE_WITHOUT_SEGMENT:
    case READ_WITHOUT_SEGMENT:
        HEAD(descriptor).Control = mistake == WRITE_WITHOUT_SEGMENT ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD;
        HEAD(descriptor).SegCount = 0;
        HEAD(descriptor).Length = 0;
        return VIP_STATUS_FORMAT_ERROR;
    case READ_IMMEDIATE:
        *made = prepare_rdma(&one, 1, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE, 0, 64, data_of(&other, 0), other.handle);
        return VIP_STATUS_FORMAT_ERROR;
    case TOO_MANY_SEGMENTS:
        *made = (VIP_DESCRIPTOR *)(void *)(one.memory + LONG_DESCRIPTOR_AT);
        memset(*made, 0, LONG_DESCRIPTOR_AT);
        HEAD(*made).SegCount = (VIP_UINT16)(one.limits.MaxSegmentsPerDesc + 1);
        return VIP_STATUS_FORMAT_ERROR;
    case LENGTH_TOO_LONG:
        HEAD(descriptor).Length = 65;
        return VIP_STATUS_LENGTH_ERROR;
    case LENGTH_TOO_SHORT:
        HEAD(descriptor).Length = 63;
        return VIP_STATUS_LENGTH_ERROR;
    case TRANSFER_TOO_LONG:
        *made = prepare(&one, 1, 0, TRANSFER_BYTES + 1);
        return VIP_STATUS_LENGTH_ERROR;
    case WRITE_TOO_LONG:
        *made = prepare_rdma(&one, 1, VIP_CONTROL_OP_RDMAWRITE, 0, TRANSFER_BYTES + 1, data_of(&other, 0), other.handle);
        return VIP_STATUS_LENGTH_ERROR;
    case MISTAKES:
        break;
    }
    abort();
}

/* A good message, the mistake, a good message, posted at once. */
static void sends(VIP_RELIABILITY_LEVEL level, enum mistake mistake)
{
    VIP_DESCRIPTOR *first = prepare(&one, 0, 0, 32), *last = prepare(&one, 2, 0, 16), *wrong, *taken = NULL;
    VIP_DESCRIPTOR *receives[2];
    VIP_UINT32 error, length;
    connect_sides(&one, &other, level);
    receives[0] = prepare(&other, 0, 0, 64);
    receives[1] = prepare(&other, 1, 64, 64);
    post_recv(&other, receives[0]);
    post_recv(&other, receives[1]);
    error = make(mistake, &wrong);
    length = HEAD(wrong).Length;
    GIVES(SUCCESS, VipPostSend(one.vi, first, one.handle));
    GIVES(SUCCESS, VipPostSend(one.vi, wrong, one.handle));
    GIVES(SUCCESS, VipPostSend(one.vi, last, one.handle));
    SENT(&one, first, VIP_STATUS_OP_SEND);
    GIVES(DESCRIPTOR_ERROR, VipSendWait(one.vi, SOON, &taken));
    WANT(taken == wrong);
    WANT_EQUAL(HEAD(wrong).Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK), VIP_STATUS_DONE | error);
    /* Programs that post it again have to mend only what was wrong. */
    WANT_EQUAL(HEAD(wrong).Length, length);
    RECEIVED(&other, receives[0], 0);
    WANT_EQUAL(HEAD(receives[0]).Length, 32);
    if (level == VIP_SERVICE_UNRELIABLE) {
        SENT(&one, last, VIP_STATUS_OP_SEND);
        RECEIVED(&other, receives[1], 0);
        WANT_EQUAL(HEAD(receives[1]).Length, 16);
        WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECTED);
    } else {
        SENT(&one, last, VIP_STATUS_DESC_FLUSHED_ERROR);
        RECEIVED(&other, receives[1], VIP_STATUS_DESC_FLUSHED_ERROR);
        WANT_EQUAL(state_of(one.vi), VIP_STATE_ERROR);
        SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
    }
    end_sides(&one, &other);
}

/* Receives with mistakes hear of them when a message comes for them. A fence or immediate bit there means nothing. */
static void receives(void)
{
    VIP_DESCRIPTOR *wrong = prepare(&other, 0, 0, 64), *right = prepare(&other, 1, 64, 64), *send = prepare(&one, 0, 0, 8);
    VIP_DESCRIPTOR *again = prepare(&one, 1, 0, 8);
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    HEAD(wrong).Control = VIP_CONTROL_OP_RDMAWRITE;
    HEAD(right).Control = VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE;
    HEAD(right).Length = 3;
    post_recv(&other, wrong);
    post_recv(&other, right);
    post_send(&one, send);
    RECEIVED(&other, wrong, VIP_STATUS_FORMAT_ERROR);
    post_send(&one, again);
    RECEIVED(&other, right, 0);
    WANT_EQUAL(HEAD(right).Length, 8);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    SENT(&one, again, VIP_STATUS_OP_SEND);
    end_sides(&one, &other);
}

/* Words that are not the program's to fill may hold anything, as those of free lists do; they stay. What a posted descriptor says is read
 * when it is posted. */
static void left_overs(void)
{
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 64), *send = prepare(&one, 0, 0, 32);
    VIP_DESCRIPTOR *both[2];
    unsigned i;
    both[0] = receive, both[1] = send;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_RECEPTION);
    for (i = 0; i < 2; i++) {
        HEAD(both[i]).Next.AddressBits = 0x1122334455667788u;
        HEAD(both[i]).NextHandle = 0x99aabbcc;
        HEAD(both[i]).Reserved = ~0u;
        HEAD(both[i]).Status = ~0u;
    }
    fill(data_of(&one, 0), 32, 5);
    memset(data_of(&other, 0), 0, 128);
    post_recv(&other, receive);
    LOCAL(receive, 0).Data.Address = data_of(&other, 64);
    LOCAL(receive, 0).Length = 1;
    HEAD(receive).SegCount = 7;
    post_send(&one, send);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    RECEIVED(&other, receive, 0);
    WANT(is_filled(data_of(&other, 0), 32, 5) && is_all(data_of(&other, 64), 64, 0));
    for (i = 0; i < 2; i++) {
        WANT_EQUAL(HEAD(both[i]).Next.AddressBits, 0x1122334455667788u);
        WANT_EQUAL(HEAD(both[i]).NextHandle, 0x99aabbcc);
        WANT_EQUAL(HEAD(both[i]).Reserved, ~0u);
    }
    end_sides(&one, &other);
}

/* What is posted nowhere near a descriptor: the call says so, and the error handler; the queue stays as it was. */
static void no_descriptors(ear_t *ear)
{
    VIP_DESCRIPTOR *good = prepare(&one, 0, 0, 8), *taken;
    VIP_DESCRIPTOR *crooked = (VIP_DESCRIPTOR *)(void *)(one.memory + DESCRIPTOR_BYTES + 8);
    VIP_DESCRIPTOR *elsewhere, *at_the_end = (VIP_DESCRIPTOR *)(void *)(one.memory + MEMORY_BYTES - 64);
    VIP_ERROR_DESCRIPTOR error;
    void *room = NULL;
    unsigned i;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    WANT(posix_memalign(&room, 64, 64) == 0);
    elsewhere = (VIP_DESCRIPTOR *)room;
    memset(elsewhere, 0, 64);
    memset(crooked, 0, sizeof *crooked);
    memset(at_the_end, 0, 64);
    HEAD(at_the_end).SegCount = 3;
    for (i = 0; i < 10; i++) {
        VIP_DESCRIPTOR *wrong = i < 2 ? crooked : i < 4 ? elsewhere : i < 6 ? at_the_end : i < 8 ? good : NULL;
        VIP_MEM_HANDLE handle = i < 6 ? one.handle : i < 8 ? one.handle + 0x10000000u : one.handle;
        GIVES(INVALID_PARAMETER, i & 1 ? VipPostRecv(one.vi, wrong, handle) : VipPostSend(one.vi, wrong, handle));
        HEARS(ear, POST_DESC, one.vi, &error);
        WANT_EQUAL(error.ResourceCode, VIP_RESOURCE_DESCRIPTOR);
        WANT(error.DescriptorPtr == wrong && error.NicHandle == one.nic);
    }
    GIVES(DESCRIPTOR_ERROR, VipSendDone(one.vi, &taken));
    WANT(taken == NULL);
    GIVES(DESCRIPTOR_ERROR, VipRecvDone(one.vi, &taken));
    WANT(taken == NULL);
    exchange(&one, &other, 1);
    end_sides(&one, &other);
    free(room);
}

int main(int count, char **arguments)
{
    unsigned level;
    int mistake;
    static ear_t ear;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    listen_to(&one, &ear);
    for (level = 0; level < 3; level++)
        for (mistake = 0; mistake < MISTAKES; mistake++)
            sends(levels[level], (enum mistake)mistake);
    receives();
    left_overs();
    no_descriptors(&ear);
    close_side(&one);
    close_side(&other);
    return done();
}
