/* The habits of Iometer: one completion queue for all; messages of one segment of no bytes with immediate data; asking again on four
 * codes; VipDestroyVi with a pointer to the handle on an error path, which must be refused; its order of shutting down. */
#include "sides.h"

static side_t one, other;

/* VipDisconnect, drain the receive queue, drain the send queue, VipDestroyVi. */
static void shut_down(VIP_VI_HANDLE vi, unsigned flushed_receives)
{
    VIP_DESCRIPTOR *descriptor;
    VIP_RETURN result;
    unsigned count = 0;
    GIVES(SUCCESS, VipDisconnect(vi));
    while ((result = VipRecvDone(vi, &descriptor)) == VIP_SUCCESS || (result == VIP_DESCRIPTOR_ERROR && descriptor))
        count++;
    WANT_EQUAL(count, flushed_receives);
    do
        result = VipSendDone(vi, &descriptor);
    while (result == VIP_SUCCESS || (result == VIP_DESCRIPTOR_ERROR && descriptor));
    /* The error path: the address of the handle for the handle. */
    GIVES(INVALID_PARAMETER, VipDestroyVi(&vi));
    GIVES(SUCCESS, VipDestroyVi(vi));
}

static void *ask(void *of)
{
    request_t *request = (request_t *)of;
    unsigned long begun = now_ms();
    do {
        request->gave = VipConnectRequest(request->vi, &request->from.net, &request->to.net, 50, &request->theirs);
        WANT(now_ms() - begun < SOON);
    } while (request->gave == VIP_TIMEOUT || request->gave == VIP_NO_MATCH || request->gave == VIP_ERROR_RESOURCE ||
             (request->gave == VIP_REJECT && (sleep_ms(1), 1)));
    return NULL;
}

/* A server that is late, then rejects twice, then accepts; some clients have given up by then. */
static void connect_late(VIP_CQ_HANDLE cq)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    request_t request;
    char name[64];
    unsigned rejected = 0;
    VIP_RETURN gave;
    memset(&request, 0, sizeof request);
    request.from = address_of(&one, "iometer");
    request.to = address_of(&other, fresh_name(name));
    OK(VipCreateVi(other.nic, &attributes, cq, cq, &other.vi));
    request.vi = one.vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    WANT(pthread_create(&request.thread, NULL, ask, &request) == 0);
    sleep_ms(A_WHILE);
    do {
        VIP_CONN_HANDLE waiting = NULL;
        GIVES(SUCCESS, VipConnectWait(other.nic, &request.to.net, SOON, NULL, NULL, &waiting));
        if (rejected < 2) {
            /* Who has given up meanwhile cannot be rejected any more. */
            gave = VipConnectReject(waiting);
            WANT(gave == VIP_SUCCESS || gave == VIP_INVALID_PARAMETER);
            rejected += gave == VIP_SUCCESS;
            gave = VIP_REJECT;
        } else
            gave = VipConnectAccept(waiting, other.vi);
        WANT(gave == VIP_SUCCESS || gave == VIP_REJECT || gave == VIP_TIMEOUT || gave == VIP_INVALID_PARAMETER);
    } while (gave != VIP_SUCCESS);
    GIVES(SUCCESS, end_request(&request));
}

static void zero_length_with_immediate(VIP_CQ_HANDLE cq)
{
    unsigned i;
    for (i = 0; i < 50; i++) {
        VIP_DESCRIPTOR *receive = prepare(&other, i, 0, 64), *send = prepare(&one, 0, 0, 1), *taken = NULL;
        VIP_VI_HANDLE vi = NULL;
        VIP_BOOLEAN receives = VIP_FALSE;
        HEAD(send).Length = LOCAL(send, 0).Length = 0;
        HEAD(send).Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
        HEAD(send).ImmediateData = i;
        post_recv(&other, receive);
        post_send(&one, send);
        GIVES(SUCCESS, VipCQWait(cq, VIP_INFINITE, &vi, &receives));
        WANT(vi == other.vi && receives);
        GIVES(SUCCESS, VipRecvDone(vi, &taken));
        WANT(taken == receive && HEAD(taken).Length == 0 && HEAD(taken).ImmediateData == i);
        SENT(&one, send, VIP_STATUS_OP_SEND);
    }
}

int main(int count, char **arguments)
{
    VIP_CQ_HANDLE cq = NULL;
    unsigned round, i;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    OK(VipCreateCQ(other.nic, 256, &cq));
    for (round = 0; round < 5; round++) {
        connect_late(cq);
        zero_length_with_immediate(cq);
        for (i = 0; i < 10; i++)
            post_recv(&other, prepare(&other, i, 0, 64));
        shut_down(one.vi, 0);
        SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
        shut_down(other.vi, 10);
    }
    GIVES(SUCCESS, VipDestroyCQ(cq));
    close_side(&one);
    close_side(&other);
    return done();
}
