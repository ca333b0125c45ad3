/* The table of reliability: each event at each level. */
#include "sides.h"

static side_t one, other;
static ear_t ear, far_ear;

static int is_reliable(VIP_RELIABILITY_LEVEL level)
{
    return level != VIP_SERVICE_UNRELIABLE;
}

/* The next send completes: without an error, or with one of those. Delivery may have been told before it is known. */
static void send_ends(VIP_DESCRIPTOR *send, VIP_RELIABILITY_LEVEL level, VIP_UINT32 error)
{
    VIP_DESCRIPTOR *taken = NULL;
    VIP_RETURN gave = VipSendWait(one.vi, SOON, &taken);
    VIP_UINT32 errors;
    WANT((gave == VIP_SUCCESS || gave == VIP_DESCRIPTOR_ERROR) && taken == send);
    errors = HEAD(send).Status & VIP_STATUS_ERROR_MASK;
    if (level == VIP_SERVICE_UNRELIABLE)
        WANT_EQUAL(errors, 0);
    if (level == VIP_SERVICE_RELIABLE_DELIVERY)
        WANT(errors == 0 || errors & (error | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR));
    if (level == VIP_SERVICE_RELIABLE_RECEPTION)
        WANT_EQUAL(errors, error);
}

/* The connection goes on, or both ends are in error and their handlers know. */
static void outcome(VIP_RELIABILITY_LEVEL level)
{
    if (!is_reliable(level)) {
        exchange(&one, &other, 1);
        exchange(&other, &one, 2);
        WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECTED);
    } else {
        SOON_IS(state_of(one.vi) == VIP_STATE_ERROR);
        SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
        HEARS(&ear, CONN_LOST, one.vi, NULL);
        HEARS(&far_ear, CONN_LOST, other.vi, NULL);
    }
    end_sides(&one, &other);
}

static void no_receive(VIP_RELIABILITY_LEVEL level)
{
    VIP_DESCRIPTOR *send = prepare(&one, 0, 0, 64);
    connect_sides(&one, &other, level);
    post_send(&one, send);
    send_ends(send, level, VIP_STATUS_REMOTE_DESC_ERROR);
    HEARS(&far_ear, RECVQ_EMPTY, other.vi, NULL);
    outcome(level);
}

/* Unreliable is no back pressure: a thousand messages that nobody takes hold nobody up. */
static void floods_are_dropped(void)
{
    unsigned i;
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    OK(VipErrorCallback(other.nic, NULL, NULL));
    for (i = 0; i < 1000; i++) {
        VIP_DESCRIPTOR *send = prepare(&one, 0, 0, 4096);
        post_send(&one, send);
        SENT(&one, send, VIP_STATUS_OP_SEND);
    }
    listen_to(&other, &far_ear);
    /* All of them have come when a later one has. While nothing is posted, what is under way is dropped. */
    for (i = 0;; i++) {
        VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 64), *send = prepare(&one, 0, 0, 1), *taken = NULL;
        WANT(i < 1000);
        HEAD(send).Control = VIP_CONTROL_IMMEDIATE;
        HEAD(send).ImmediateData = i;
        post_recv(&other, receive);
        post_send(&one, send);
        SENT(&one, send, VIP_STATUS_OP_SEND);
        if (VipRecvWait(other.vi, SOON, &taken) == VIP_SUCCESS && HEAD(taken).ImmediateData == i)
            break;
        WANT(taken == receive);
        sleep_ms(20);
    }
    exchange(&one, &other, 4);
    end_sides(&one, &other);
    listen_to(&other, &far_ear);
}

static void too_long(VIP_RELIABILITY_LEVEL level)
{
    VIP_DESCRIPTOR *send = prepare(&one, 0, 0, 65), *receive = prepare(&other, 0, 0, 64);
    connect_sides(&one, &other, level);
    memset(data_of(&other, 0), 0xee, 128);
    post_recv(&other, receive);
    post_send(&one, send);
    RECEIVED(&other, receive, VIP_STATUS_LENGTH_ERROR);
    WANT(is_all(data_of(&other, 64), 64, 0xee));
    send_ends(send, level, VIP_STATUS_REMOTE_DESC_ERROR);
    outcome(level);
}

/* A write that is refused: without immediate data the handler hears of it, with it the receive that it would have taken. */
static void refused_write(VIP_RELIABILITY_LEVEL level, int immediate)
{
    VIP_MEM_HANDLE closed = register_memory(&other, data_of(&other, 0), 4096, VIP_FALSE, VIP_TRUE);
    VIP_DESCRIPTOR *write = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAWRITE | (immediate ? VIP_CONTROL_IMMEDIATE : 0u), 0, 64,
                                         data_of(&other, 0), closed);
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 8192, 64), *taken;
    VIP_ERROR_DESCRIPTOR error;
    connect_sides(&one, &other, level);
    memset(data_of(&other, 0), 0xee, 64);
    fill(data_of(&one, 0), 64, 1);
    post_recv(&other, receive);
    post_send(&one, write);
    if (immediate)
        TAKES(VipRecvWait, &other, receive, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR);
    else {
        HEARS(&far_ear, RDMAW_PROT, other.vi, &error);
        WANT_EQUAL(error.OpCode, VIP_STATUS_OP_REMOTE_RDMA_WRITE);
    }
    send_ends(write, level, VIP_STATUS_RDMA_PROT_ERROR);
    WANT(is_all(data_of(&other, 0), 64, 0xee));
    if (!immediate && is_reliable(level))
        RECEIVED(&other, receive, VIP_STATUS_DESC_FLUSHED_ERROR);
    else if (!immediate) {
        VIP_DESCRIPTOR *send = prepare(&one, 1, 0, 8);
        GIVES(NOT_DONE, VipRecvDone(other.vi, &taken));
        post_send(&one, send);
        RECEIVED(&other, receive, 0);
        SENT(&one, send, VIP_STATUS_OP_SEND);
    }
    outcome(level);
    OK(VipDeregisterMem(other.nic, data_of(&other, 0), closed));
}

/* A write with immediate data that finds no receive: as a message that finds none. */
static void write_without_receive(VIP_RELIABILITY_LEVEL level)
{
    VIP_DESCRIPTOR *write = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 0, 64, data_of(&other, 0),
                                         other.handle);
    connect_sides(&one, &other, level);
    post_send(&one, write);
    send_ends(write, level, VIP_STATUS_REMOTE_DESC_ERROR);
    HEARS(&far_ear, RECVQ_EMPTY, other.vi, NULL);
    outcome(level);
}

/* A read that is refused brings nothing and breaks the connection; where there are no reads it is no descriptor. */
static void refused_read(VIP_RELIABILITY_LEVEL level)
{
    VIP_MEM_HANDLE closed = register_memory(&other, data_of(&other, 0), 4096, VIP_TRUE, VIP_FALSE);
    VIP_DESCRIPTOR *read = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAREAD, 0, 64, data_of(&other, 0), closed);
    VIP_ERROR_DESCRIPTOR error;
    connect_sides(&one, &other, level);
    memset(data_of(&one, 0), 0xee, 64);
    fill(data_of(&other, 0), 64, 1);
    post_send(&one, read);
    if (is_reliable(level)) {
        SENT(&one, read, VIP_STATUS_OP_RDMA_READ | VIP_STATUS_RDMA_PROT_ERROR);
        HEARS(&far_ear, RDMAR_PROT, other.vi, &error);
        WANT_EQUAL(error.OpCode, VIP_STATUS_OP_RDMA_READ);
    } else
        SENT(&one, read, VIP_STATUS_OP_RDMA_READ | VIP_STATUS_FORMAT_ERROR);
    WANT(is_all(data_of(&one, 0), 64, 0xee));
    outcome(level);
    OK(VipDeregisterMem(other.nic, data_of(&other, 0), closed));
}

/* What was complete before the connection broke says so; what was not is flushed, in order, the culprit first. */
static void what_is_posted_is_flushed(VIP_RELIABILITY_LEVEL level)
{
    VIP_DESCRIPTOR *receives[4], *taken;
    unsigned i;
    connect_sides(&one, &other, level);
    for (i = 0; i < 4; i++) {
        receives[i] = prepare(&other, i, i * 64, i == 1 ? 8 : 64);
        post_recv(&other, receives[i]);
    }
    for (i = 0; i < 4; i++) {
        fill(data_of(&one, i * 64), 64, i);
        post_send(&one, prepare(&one, i, i * 64, 64));
    }
    RECEIVED(&other, receives[0], 0);
    WANT(is_filled(data_of(&other, 0), 64, 0));
    RECEIVED(&other, receives[1], VIP_STATUS_LENGTH_ERROR);
    RECEIVED(&other, receives[2], VIP_STATUS_DESC_FLUSHED_ERROR);
    RECEIVED(&other, receives[3], VIP_STATUS_DESC_FLUSHED_ERROR);
    GIVES(DESCRIPTOR_ERROR, VipRecvDone(other.vi, &taken));
    WANT(taken == NULL);
    for (i = 0; i < 4; i++) {
        VIP_RETURN gave = VipSendWait(one.vi, SOON, &taken);
        WANT(taken == descriptor_of(&one, i));
        if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
            static const VIP_UINT32 errors[] = { 0, VIP_STATUS_REMOTE_DESC_ERROR, VIP_STATUS_DESC_FLUSHED_ERROR,
                                                 VIP_STATUS_DESC_FLUSHED_ERROR };
            /* The last ones may have been refused or have not gone at all. */
            VIP_UINT32 is = HEAD(taken).Status & VIP_STATUS_ERROR_MASK & ~(VIP_UINT32)VIP_STATUS_PARTIAL_ERROR;
            WANT(is == errors[i] || (i > 1 && gave == VIP_DESCRIPTOR_ERROR));
        }
    }
    outcome(level);
}

int main(int count, char **arguments)
{
    unsigned i;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    listen_to(&one, &ear);
    listen_to(&other, &far_ear);
    for (i = 0; i < 3; i++) {
        no_receive(levels[i]);
        too_long(levels[i]);
        refused_write(levels[i], 0);
        refused_write(levels[i], 1);
        write_without_receive(levels[i]);
        refused_read(levels[i]);
        if (is_reliable(levels[i]))
            what_is_posted_is_flushed(levels[i]);
    }
    floods_are_dropped();
    close_side(&one);
    close_side(&other);
    return done();
}
