/* Whoever waits for something of a NIC wakes when another thread closes it: in every call that waits. */
#include "sides.h"

static side_t one, other;
static address_t nowhere;

typedef struct sleeper {
    pthread_t thread;
    VIP_RETURN (*sleep)(void);
    VIP_RETURN gave;
} sleeper_t;

static VIP_RETURN in_connect_wait(void)
{
    VIP_CONN_HANDLE waiting;
    address_t at = address_of(&one, "nobody comes here");
    return VipConnectWait(one.nic, &at.net, VIP_INFINITE, NULL, NULL, &waiting);
}

/* A server that listens and never answers. */
static void *listener(void *unused)
{
    VIP_CONN_HANDLE waiting;
    (void)unused;
    return (void *)(intptr_t)VipConnectWait(other.nic, &nowhere.net, SOON, NULL, NULL, &waiting);
}

static VIP_RETURN in_connect_request(void)
{
    address_t here = address_of(&one, "asks");
    VIP_VI_HANDLE vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    VIP_RETURN gave;
    while ((gave = VipConnectRequest(vi, &here.net, &nowhere.net, VIP_INFINITE, NULL)) == VIP_NO_MATCH)
        sleep_ms(1);
    return gave;
}

static VIP_RETURN in_peer_wait(void)
{
    address_t here = address_of(&one, "a peer"), there = address_of(&other, "no peer");
    VIP_VI_HANDLE vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    OK(VipConnectPeerRequest(vi, &here.net, &there.net, VIP_INFINITE));
    return VipConnectPeerWait(vi, NULL);
}

static VIP_RETURN in_recv_wait(void)
{
    VIP_DESCRIPTOR *taken;
    post_recv(&one, prepare(&one, 0, 0, 64));
    return VipRecvWait(one.vi, VIP_INFINITE, &taken);
}

static VIP_RETURN in_cq_wait(void)
{
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receives;
    OK(VipCreateCQ(one.nic, 8, &cq));
    return VipCQWait(cq, VIP_INFINITE, &vi, &receives);
}

static void *run_sleeper(void *of)
{
    sleeper_t *sleeper = (sleeper_t *)of;
    sleeper->gave = sleeper->sleep();
    return NULL;
}

int main(int count, char **arguments)
{
    sleeper_t sleepers[] = { { .sleep = in_connect_wait }, { .sleep = in_connect_request }, { .sleep = in_peer_wait },
                             { .sleep = in_recv_wait }, { .sleep = in_cq_wait } };
    unsigned i, round, many = sizeof sleepers / sizeof *sleepers;
    void *heard;
    begin(count, arguments);
    for (round = 0; round < 5; round++) {
        pthread_t listens;
        char name[64];
        open_side(&one, nic_names[0]);
        open_side(&other, nic_names[1]);
        nowhere = address_of(&other, fresh_name(name));
        connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
        WANT(pthread_create(&listens, NULL, listener, NULL) == 0);
        for (i = 0; i < many; i++)
            WANT(pthread_create(&sleepers[i].thread, NULL, run_sleeper, &sleepers[i]) == 0);
        WANT(pthread_join(listens, &heard) == 0);
        WANT_EQUAL((intptr_t)heard, VIP_SUCCESS);
        sleep_ms(A_WHILE);
        GIVES(SUCCESS, VipCloseNic(one.nic));
        for (i = 0; i < many; i++) {
            WANT(pthread_join(sleepers[i].thread, NULL) == 0);
            GIVES(INVALID_STATE, sleepers[i].gave);
            CHECKS(INVALID_STATE, VipConnectWait VipConnectRequest VipConnectPeerWait VipRecvWait VipCQWait);
        }
        /* The other side of a connection hears of the end. */
        SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
        end_vi(other.vi);
        close_side(&other);
        free(one.memory);
    }
    return done();
}
