/* Completion queues: polled, waited for, of one, several and both queues of VIs; made larger and smaller; overrun. */
#include "sides.h"

static side_t one, other;
static VIP_CQ_HANDLE cq;

static VIP_VI_HANDLE vi_with(side_t *side, VIP_CQ_HANDLE sends, VIP_CQ_HANDLE receives)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_HANDLE vi = NULL;
    OK(VipCreateVi(side->nic, &attributes, sends, receives, &vi));
    return vi;
}

/* One entry names this VI and queue; the descriptor that comes out there is this one. */
static void entry_is(VIP_VI_HANDLE vi, VIP_BOOLEAN receives, VIP_DESCRIPTOR *expected)
{
    VIP_VI_HANDLE named = NULL;
    VIP_BOOLEAN is_receive = 7;
    VIP_DESCRIPTOR *taken = NULL;
    GIVES(SUCCESS, VipCQWait(cq, SOON, &named, &is_receive));
    WANT(named == vi && is_receive == receives);
    GIVES(SUCCESS, receives ? VipRecvDone(vi, &taken) : VipSendDone(vi, &taken));
    WANT(taken == expected);
}

static void no_entry(void)
{
    VIP_VI_HANDLE named;
    VIP_BOOLEAN is_receive;
    unsigned long begun = now_ms();
    GIVES(NOT_DONE, VipCQDone(cq, &named, &is_receive));
    GIVES(TIMEOUT, VipCQWait(cq, 0, &named, &is_receive));
    GIVES(TIMEOUT, VipCQWait(cq, 30, &named, &is_receive));
    WANT(now_ms() - begun >= 30);
}

static void of_both_queues(void)
{
    VIP_DESCRIPTOR *send = prepare(&other, 0, 0, 64), *receive = prepare(&other, 1, 64, 64), *taken;
    VIP_DESCRIPTOR *near_send = prepare(&one, 0, 0, 64), *near_receive = prepare(&one, 1, 64, 64);
    VIP_VI_HANDLE named;
    VIP_BOOLEAN is_receive;
    unsigned i;
    other.vi = vi_with(&other, cq, cq);
    one.vi = vi_with(&one, NULL, NULL);
    GIVES(ERROR_RESOURCE, VipDestroyCQ(cq));
    connect_vis(&one, one.vi, &other, other.vi);
    no_entry();
    post_recv(&other, receive);
    no_entry();
    post_send(&one, near_send);
    entry_is(other.vi, VIP_TRUE, receive);
    SENT(&one, near_send, VIP_STATUS_OP_SEND);
    post_recv(&one, near_receive);
    post_send(&other, send);
    entry_is(other.vi, VIP_FALSE, send);
    RECEIVED(&one, near_receive, 0);
    no_entry();
    /* Such a queue is waited for at its completion queue. */
    post_recv(&other, prepare(&other, 1, 0, 64));
    GIVES(ERROR_RESOURCE, VipRecvWait(other.vi, 10, &taken));
    GIVES(ERROR_RESOURCE, VipSendWait(other.vi, 10, &taken));
    GIVES(NOT_DONE, VipRecvDone(other.vi, &taken));
    /* What is flushed has entries too. */
    post_recv(&other, prepare(&other, 2, 0, 64));
    OK(VipDisconnect(other.vi));
    for (i = 0; i < 2; i++) {
        GIVES(SUCCESS, VipCQDone(cq, &named, &is_receive));
        WANT(named == other.vi && is_receive);
        GIVES(DESCRIPTOR_ERROR, VipRecvDone(other.vi, &taken));
        WANT(taken == descriptor_of(&other, 1 + i));
    }
    no_entry();
    end_sides(&one, &other);
}

/* Several VIs, one of whose queues each names the queue. */
static void of_many_vis(void)
{
    enum { MANY = 16 };
    VIP_VI_HANDLE near_vis[MANY], far_vis[MANY], named;
    unsigned i, j, counts[MANY] = { 0 };
    VIP_BOOLEAN is_receive;
    VIP_DESCRIPTOR *taken;
    for (i = 0; i < MANY; i++) {
        near_vis[i] = vi_with(&one, NULL, NULL);
        far_vis[i] = vi_with(&other, NULL, cq);
        connect_vis(&one, near_vis[i], &other, far_vis[i]);
        for (j = 0; j < 4; j++)
            OK(VipPostRecv(far_vis[i], prepare(&other, i * 4 + j, (i * 4 + j) * 64, 64), other.handle));
    }
    for (j = 0; j < 4; j++)
        for (i = 0; i < MANY; i++)
            OK(VipPostSend(near_vis[i], prepare(&one, i * 4 + j, 0, 64), one.handle));
    for (i = 0; i < 4 * MANY; i++) {
        GIVES(SUCCESS, VipCQWait(cq, SOON, &named, &is_receive));
        WANT(is_receive);
        for (j = 0; far_vis[j] != named; j++)
            WANT(j + 1 < MANY);
        GIVES(SUCCESS, VipRecvDone(named, &taken));
        WANT(taken == descriptor_of(&other, j * 4 + counts[j]));
        counts[j]++;
    }
    no_entry();
    for (i = 0; i < MANY; i++) {
        end_vi(near_vis[i]);
        end_vi(far_vis[i]);
    }
    no_entry();
}

/* Entries stay when the queue is made larger or smaller; smaller than what it has is refused. */
static void resized(void)
{
    unsigned i;
    GIVES(INVALID_PARAMETER, VipResizeCQ(cq, 0));
    GIVES(ERROR_RESOURCE, VipResizeCQ(cq, other.limits.MaxCQEntries + 1));
    GIVES(SUCCESS, VipResizeCQ(cq, 8));
    other.vi = vi_with(&other, NULL, cq);
    one.vi = vi_with(&one, NULL, NULL);
    connect_vis(&one, one.vi, &other, other.vi);
    for (i = 0; i < 12; i++)
        post_recv(&other, prepare(&other, i, i * 64, 64));
    for (i = 0; i < 6; i++) {
        VIP_DESCRIPTOR *send = prepare(&one, i, 0, 8);
        post_send(&one, send);
        SENT(&one, send, VIP_STATUS_OP_SEND);
    }
    entry_is(other.vi, VIP_TRUE, descriptor_of(&other, 0));
    SOON_IS(HEAD(descriptor_of(&other, 5)).Status & VIP_STATUS_DONE || (VipQueryVi(other.vi, NULL, NULL, NULL, NULL), 0));
    GIVES(ERROR_RESOURCE, VipResizeCQ(cq, 4));
    GIVES(SUCCESS, VipResizeCQ(cq, 5));
    entry_is(other.vi, VIP_TRUE, descriptor_of(&other, 1));
    GIVES(SUCCESS, VipResizeCQ(cq, 64));
    for (i = 6; i < 12; i++) {
        VIP_DESCRIPTOR *send = prepare(&one, i, 0, 8);
        post_send(&one, send);
        SENT(&one, send, VIP_STATUS_OP_SEND);
    }
    for (i = 2; i < 12; i++)
        entry_is(other.vi, VIP_TRUE, descriptor_of(&other, i));
    no_entry();
    end_sides(&one, &other);
}

/* One completion more than there is room for: the error handler hears of it, the descriptor can be dequeued all the same. */
static void overrun(void)
{
    VIP_CQ_HANDLE small = NULL;
    VIP_VI_HANDLE named;
    VIP_BOOLEAN is_receive;
    VIP_DESCRIPTOR *taken;
    VIP_ERROR_DESCRIPTOR error;
    static ear_t ear;
    unsigned i;
    listen_to(&other, &ear);
    OK(VipCreateCQ(other.nic, 4, &small));
    other.vi = vi_with(&other, NULL, small);
    one.vi = vi_with(&one, NULL, NULL);
    connect_vis(&one, one.vi, &other, other.vi);
    for (i = 0; i < 5; i++)
        post_recv(&other, prepare(&other, i, i * 64, 64));
    for (i = 0; i < 5; i++) {
        VIP_DESCRIPTOR *send = prepare(&one, i, 0, 8);
        post_send(&one, send);
        SENT(&one, send, VIP_STATUS_OP_SEND);
    }
    SOON_IS(has_heard(&ear, VIP_ERROR_VI_OVERRUN, other.vi, &error) || has_heard(&ear, VIP_ERROR_VI_OVERRUN, NULL, &error));
    WANT_EQUAL(error.ResourceCode, VIP_RESOURCE_CQ);
    WANT(error.CQHandle == small);
    for (i = 0; i < 4; i++) {
        GIVES(SUCCESS, VipCQDone(small, &named, &is_receive));
        GIVES(SUCCESS, VipRecvDone(other.vi, &taken));
    }
    GIVES(NOT_DONE, VipCQDone(small, &named, &is_receive));
    GIVES(SUCCESS, VipRecvDone(other.vi, &taken));
    WANT(taken == descriptor_of(&other, 4));
    end_sides(&one, &other);
    GIVES(SUCCESS, VipDestroyCQ(small));
    GIVES(INVALID_PARAMETER, VipDestroyCQ(small));
    OK(VipErrorCallback(other.nic, NULL, NULL));
}

/* A sleeper in VipCQWait() wakes for a completion that comes later. */
static void *send_later(void *unused)
{
    (void)unused;
    sleep_ms(A_WHILE);
    post_send(&one, prepare(&one, 0, 0, 64));
    return NULL;
}

static void sleeper(void)
{
    pthread_t thread;
    other.vi = vi_with(&other, NULL, cq);
    one.vi = vi_with(&one, NULL, NULL);
    connect_vis(&one, one.vi, &other, other.vi);
    post_recv(&other, prepare(&other, 0, 0, 64));
    WANT(pthread_create(&thread, NULL, send_later, NULL) == 0);
    entry_is(other.vi, VIP_TRUE, descriptor_of(&other, 0));
    pthread_join(thread, NULL);
    SENT(&one, descriptor_of(&one, 0), VIP_STATUS_OP_SEND);
    end_sides(&one, &other);
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    GIVES(INVALID_PARAMETER, VipCreateCQ(other.nic, 64, NULL));
    GIVES(INVALID_PARAMETER, VipCreateCQ(other.nic, 0, &cq));
    GIVES(SUCCESS, VipCreateCQ(other.nic, 1024, &cq));
    no_entry();
    of_both_queues();
    of_many_vis();
    sleeper();
    resized();
    overrun();
    GIVES(SUCCESS, VipDestroyCQ(cq));
    close_side(&one);
    close_side(&other);
    return done();
}
