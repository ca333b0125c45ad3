/* Client and server, as processes and as threads: connecting in any order, again and again; rejecting; times that pass; nobody there;
 * what each side hears of the other. */
#include "roles.h"

static void fill_attributes(VIP_VI_ATTRIBUTES *told)
{
    memset(told, 0xa5, sizeof *told);
}

/* The attributes and address of the other side come with the connection. RDMA enables need not match. */
static void attributes(side_t *side, int me)
{
    address_t here = role_address(side, me, "attributes"), there = role_address(side, 1 - me, "attributes"), remote;
    VIP_VI_ATTRIBUTES mine = vi_attributes(side, VIP_SERVICE_RELIABLE_DELIVERY), theirs;
    VIP_CONN_HANDLE waiting = NULL;
    mine.EnableRdmaWrite = me == 0;
    mine.EnableRdmaRead = me == 1;
    OK(VipCreateVi(side->nic, &mine, NULL, NULL, &side->vi));
    fill_attributes(&theirs);
    if (me == 1) {
        memset(&remote, 0xa5, sizeof remote);
        GIVES(SUCCESS, VipConnectWait(side->nic, &here.net, SOON, &remote.net, &theirs, &waiting));
        WANT_EQUAL(remote.net.HostAddressLen, there.net.HostAddressLen);
        WANT_EQUAL(remote.net.DiscriminatorLen, there.net.DiscriminatorLen);
        WANT(memcmp(remote.net.HostAddress, there.net.HostAddress,
                    (size_t)there.net.HostAddressLen + there.net.DiscriminatorLen) == 0);
        GIVES(SUCCESS, VipConnectAccept(waiting, side->vi));
        /* The request is used up. */
        GIVES(INVALID_PARAMETER, VipConnectAccept(waiting, side->vi));
        GIVES(INVALID_PARAMETER, VipConnectReject(waiting));
    } else {
        VIP_RETURN gave;
        while ((gave = VipConnectRequest(side->vi, &here.net, &there.net, SOON, &theirs)) == VIP_NO_MATCH)
            sleep_ms(1);
        GIVES(SUCCESS, gave);
    }
    WANT_EQUAL(theirs.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
    WANT_EQUAL(theirs.MaxTransferSize, TRANSFER_BYTES);
    WANT_EQUAL(!!theirs.EnableRdmaWrite, me == 1);
    WANT_EQUAL(!!theirs.EnableRdmaRead, me == 0);
    WANT(theirs.QoS == NULL && theirs.Ptag == NULL);
    WANT_EQUAL(state_of(side->vi), VIP_STATE_CONNECTED);
    meet();
    end_vi(side->vi);
    meet();
}

/* A hundred connections of one VI, who begins alternating; the first message comes right behind the connection, into a receive
 * that was posted before it. */
static void again_and_again(side_t *side, int me)
{
    unsigned round;
    side->vi = create_vi(side, VIP_SERVICE_RELIABLE_RECEPTION);
    for (round = 0; round < 60; round++) {
        VIP_DESCRIPTOR *receive = prepare(side, 0, 0, 64), *send = prepare(side, 1, 64, 64);
        fill(data_of(side, 64), 64, round);
        memset(data_of(side, 0), 0, 64);
        post_recv(side, receive);
        if (round & 1)
            meet();
        connect_roles(side, me);
        post_send(side, send);
        SENT(side, send, VIP_STATUS_OP_SEND);
        RECEIVED(side, receive, 0);
        WANT(is_filled(data_of(side, 0), 64, round));
        meet();
        /* One side ends it; the other hears so. */
        if ((int)(round / 2 & 1) != me)
            SOON_IS(state_of(side->vi) == VIP_STATE_ERROR);
        OK(VipDisconnect(side->vi));
        drain(VipRecvDone, side->vi);
        drain(VipSendDone, side->vi);
        meet();
    }
    OK(VipDestroyVi(side->vi));
}

/* Whom nobody waits for hears so at once, and is idle again with its receives. */
static void nobody(side_t *side)
{
    address_t here = role_address(side, 0, "nobody"), there = role_address(side, 1, "nobody");
    VIP_DESCRIPTOR *receive = prepare(side, 0, 0, 64), *taken;
    unsigned long begun = now_ms();
    side->vi = create_vi(side, VIP_SERVICE_UNRELIABLE);
    post_recv(side, receive);
    IN(side->vi, IDLE, INVALID_PARAMETER, VipConnectRequest(side->vi, &here.net, &there.net, 0, NULL));
    IN(side->vi, IDLE, NO_MATCH, VipConnectRequest(side->vi, &here.net, &there.net, 600000, NULL));
    WANT(now_ms() - begun < SOON);
    IN(side->vi, IDLE, NOT_DONE, VipRecvDone(side->vi, &taken));
    end_vi(side->vi);
}

/* A server that does not answer, one that says no, one that looks once, one whose time passes. */
static void answers(side_t *side, int me)
{
    address_t here = role_address(side, me, "answers"), there = role_address(side, 1 - me, "answers");
    VIP_DESCRIPTOR *receive = prepare(side, 0, 0, 64), *taken;
    VIP_CONN_HANDLE waiting = NULL;
    unsigned long begun;
    VIP_RETURN gave;
    unsigned i;
    side->vi = create_vi(side, VIP_SERVICE_RELIABLE_DELIVERY);
    post_recv(side, receive);
    if (me == 1) {
        begun = now_ms();
        GIVES(TIMEOUT, VipConnectWait(side->nic, &here.net, 0, NULL, NULL, &waiting));
        GIVES(TIMEOUT, VipConnectWait(side->nic, &here.net, 50, NULL, NULL, &waiting));
        WANT(now_ms() - begun >= 50 && waiting == NULL);
        meet();
        for (i = 0; i < 2; i++) {
            GIVES(SUCCESS, VipConnectWait(side->nic, &here.net, SOON, NULL, NULL, &waiting));
            if (i == 0) {
                meet();
                /* Its client has given up. */
                GIVES(TIMEOUT, VipConnectAccept(waiting, side->vi));
                WANT_EQUAL(state_of(side->vi), VIP_STATE_IDLE);
            } else
                GIVES(SUCCESS, VipConnectReject(waiting));
            GIVES(INVALID_PARAMETER, VipConnectReject(waiting));
        }
        /* A server that looks now and then. */
        begun = now_ms();
        while ((gave = VipConnectWait(side->nic, &here.net, 0, NULL, NULL, &waiting)) == VIP_TIMEOUT && now_ms() - begun < SOON)
            sleep_ms(1);
        GIVES(SUCCESS, gave);
        GIVES(SUCCESS, VipConnectAccept(waiting, side->vi));
    } else {
        meet();
        begun = now_ms();
        while ((gave = VipConnectRequest(side->vi, &here.net, &there.net, 200, NULL)) == VIP_NO_MATCH)
            sleep_ms(1);
        GIVES(TIMEOUT, gave);
        CHECKS(TIMEOUT, VipConnectRequest);
        WANT(now_ms() - begun >= 200);
        IN(side->vi, IDLE, NOT_DONE, VipRecvDone(side->vi, &taken));
        meet();
        while ((gave = VipConnectRequest(side->vi, &here.net, &there.net, SOON, NULL)) == VIP_NO_MATCH)
            sleep_ms(1);
        GIVES(REJECT, gave);
        IN(side->vi, IDLE, NOT_DONE, VipRecvDone(side->vi, &taken));
        while ((gave = VipConnectRequest(side->vi, &here.net, &there.net, SOON, NULL)) == VIP_NO_MATCH)
            sleep_ms(1);
        GIVES(SUCCESS, gave);
    }
    meet();
    end_vi(side->vi);
    meet();
}

static void role(int me)
{
    side_t side;
    open_role(&side, me);
    attributes(&side, me);
    again_and_again(&side, me);
    if (me == 0)
        nobody(&side);
    meet();
    answers(&side, me);
    meet();
    close_side(&side);
}

int main(int count, char **arguments)
{
    return run_roles(count, arguments);
}
