/* Handlers of completions: called once for each time they were set, in order, also for what is complete already; they may call
 * everything. */
#include "sides.h"

static side_t one, other;

/* What handlers were given. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VIP_DESCRIPTOR *given[512];
static unsigned given_count;
static VIP_PVOID contexts[512];

static unsigned calls(void)
{
    unsigned count;
    pthread_mutex_lock(&lock);
    count = given_count;
    pthread_mutex_unlock(&lock);
    return count;
}

static void note(VIP_PVOID context, VIP_DESCRIPTOR *descriptor)
{
    pthread_mutex_lock(&lock);
    WANT(given_count < 512);
    contexts[given_count] = context;
    given[given_count++] = descriptor;
    pthread_mutex_unlock(&lock);
}

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    const side_t *side = vi == one.vi ? &one : &other;
    WANT(nic == side->nic && vi == side->vi);
    WANT(HEAD(descriptor).Status & VIP_STATUS_DONE);
    note(context, descriptor);
}

/* Sends message i and takes its completion. */
static void send_one(unsigned i)
{
    VIP_DESCRIPTOR *send = prepare(&one, i, 0, 16);
    post_send(&one, send);
    SENT(&one, send, VIP_STATUS_OP_SEND);
}

static void receives(void)
{
    unsigned i;
    VIP_DESCRIPTOR *taken;
    given_count = 0;
    GIVES(INVALID_PARAMETER, VipRecvNotify(other.vi, NULL, NULL));
    for (i = 0; i < 6; i++)
        post_recv(&other, prepare(&other, i, i * 64, 64));
    /* Two are set, four messages come: two are handed over, two stay for whoever asks. */
    GIVES(SUCCESS, VipRecvNotify(other.vi, &contexts[0], on_descriptor));
    GIVES(SUCCESS, VipRecvNotify(other.vi, &contexts[1], on_descriptor));
    sleep_ms(A_WHILE);
    WANT_EQUAL(calls(), 0);
    for (i = 0; i < 4; i++)
        send_one(i);
    SOON_IS(calls() == 2);
    SOON_IS(HEAD(descriptor_of(&other, 3)).Status & VIP_STATUS_DONE || (VipQueryVi(other.vi, NULL, NULL, NULL, NULL), 0));
    sleep_ms(A_WHILE);
    WANT_EQUAL(calls(), 2);
    for (i = 0; i < 2; i++)
        WANT(given[i] == descriptor_of(&other, i) && contexts[i] == &contexts[i]);
    GIVES(SUCCESS, VipRecvDone(other.vi, &taken));
    WANT(taken == descriptor_of(&other, 2));
    /* What is complete already. */
    GIVES(SUCCESS, VipRecvNotify(other.vi, NULL, on_descriptor));
    SOON_IS(calls() == 3);
    WANT(given[2] == descriptor_of(&other, 3));
    /* What is flushed is handed over too. */
    GIVES(SUCCESS, VipRecvNotify(other.vi, NULL, on_descriptor));
    OK(VipDisconnect(other.vi));
    SOON_IS(calls() == 4);
    WANT(given[3] == descriptor_of(&other, 4));
    WANT(HEAD(given[3]).Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    WANT_EQUAL(drain(VipRecvDone, other.vi), 1);
}

static void sends(void)
{
    VIP_DESCRIPTOR *send = prepare(&one, 0, 0, 16);
    given_count = 0;
    post_recv(&other, prepare(&other, 0, 0, 64));
    GIVES(INVALID_PARAMETER, VipSendNotify(one.vi, NULL, NULL));
    GIVES(SUCCESS, VipSendNotify(one.vi, &given, on_descriptor));
    post_send(&one, send);
    SOON_IS(calls() == 1);
    WANT(given[0] == send && contexts[0] == &given);
    RECEIVED(&other, descriptor_of(&other, 0), 0);
}

/* A handler that posts the receive again, answers and sets itself again: a server that is only a handler. */
#define ECHOES 200u

static void echo(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    VIP_DESCRIPTOR *answer = descriptor_of(&other, 256), *taken;
    VIP_UINT32 number = HEAD(descriptor).ImmediateData;
    (void)nic;
    if (HEAD(descriptor).Status & VIP_STATUS_ERROR_MASK)
        return;
    GIVES(SUCCESS, VipRecvNotify(vi, context, echo));
    HEAD(descriptor).Status = 0;
    GIVES(SUCCESS, VipPostRecv(vi, descriptor, other.handle));
    answer = prepare(&other, 256, 0, 0);
    HEAD(answer).Control = VIP_CONTROL_IMMEDIATE;
    HEAD(answer).ImmediateData = number + 1;
    GIVES(SUCCESS, VipPostSend(vi, answer, other.handle));
    GIVES(SUCCESS, VipSendWait(vi, SOON, &taken));
    note(NULL, descriptor);
}

static void server_of_a_handler(void)
{
    unsigned i;
    given_count = 0;
    for (i = 0; i < 4; i++)
        post_recv(&other, prepare(&other, i, i * 64, 64));
    GIVES(SUCCESS, VipRecvNotify(other.vi, NULL, echo));
    for (i = 0; i < ECHOES; i++) {
        VIP_DESCRIPTOR *receive = prepare(&one, 1, 64, 64), *send = prepare(&one, 0, 0, 16);
        HEAD(send).Control = VIP_CONTROL_IMMEDIATE;
        HEAD(send).ImmediateData = 10 * i;
        post_recv(&one, receive);
        post_send(&one, send);
        SENT(&one, send, VIP_STATUS_OP_SEND);
        RECEIVED(&one, receive, VIP_STATUS_IMMEDIATE);
        WANT_EQUAL(HEAD(receive).ImmediateData, 10 * i + 1);
    }
    SOON_IS(calls() == ECHOES);
}

static VIP_CQ_HANDLE cq;

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive)
{
    VIP_DESCRIPTOR *taken = NULL;
    WANT(nic == other.nic && vi == other.vi && is_receive);
    GIVES(SUCCESS, VipRecvDone(vi, &taken));
    note(context, taken);
    if (context != NULL)
        GIVES(SUCCESS, VipCQNotify(cq, context, on_entry));
}

static void entries(void)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE named;
    VIP_BOOLEAN is_receive;
    VIP_DESCRIPTOR *taken;
    unsigned i;
    given_count = 0;
    OK(VipCreateCQ(other.nic, 64, &cq));
    OK(VipCreateVi(other.nic, &attributes, cq, NULL, &other.vi));
    GIVES(ERROR_RESOURCE, VipSendNotify(other.vi, NULL, on_descriptor));
    OK(VipDestroyVi(other.vi));
    OK(VipCreateVi(other.nic, &attributes, NULL, cq, &other.vi));
    one.vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    connect_vis(&one, one.vi, &other, other.vi);
    GIVES(ERROR_RESOURCE, VipRecvNotify(other.vi, NULL, on_descriptor));
    GIVES(INVALID_PARAMETER, VipCQNotify(cq, NULL, NULL));
    for (i = 0; i < 20; i++)
        post_recv(&other, prepare(&other, i, i * 64, 64));
    send_one(0);
    SOON_IS(HEAD(descriptor_of(&other, 0)).Status & VIP_STATUS_DONE || (VipQueryVi(other.vi, NULL, NULL, NULL, NULL), 0));
    /* An entry that is there already; once. */
    GIVES(SUCCESS, VipCQNotify(cq, NULL, on_entry));
    SOON_IS(calls() == 1);
    send_one(1);
    GIVES(SUCCESS, VipCQWait(cq, SOON, &named, &is_receive));
    GIVES(SUCCESS, VipRecvDone(named, &taken));
    WANT_EQUAL(calls(), 1);
    /* One that sets itself again. */
    GIVES(SUCCESS, VipCQNotify(cq, &cq, on_entry));
    for (i = 2; i < 20; i++)
        send_one(i);
    SOON_IS(calls() == 19);
    for (i = 1; i < 19; i++)
        WANT(given[i] == descriptor_of(&other, i + 1));
    /* Destroying the queue cancels the one that is set. */
    end_sides(&one, &other);
    GIVES(SUCCESS, VipDestroyCQ(cq));
    WANT_EQUAL(calls(), 19);
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    receives();
    end_sides(&one, &other);
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    sends();
    server_of_a_handler();
    OK(VipDisconnect(other.vi));
    sleep_ms(A_WHILE);
    end_sides(&one, &other);
    entries();
    /* Handlers that are set and never called end with the NIC. */
    one.vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    GIVES(SUCCESS, VipRecvNotify(one.vi, NULL, on_descriptor));
    close_side(&one);
    close_side(&other);
    return done();
}
