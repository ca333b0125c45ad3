/* Equals, as processes and as threads: both ask at once, or one after the other; one connection comes of it; times that pass;
 * attributes that do not match. */
#include "roles.h"

static void works(side_t *side, unsigned round)
{
    VIP_DESCRIPTOR *send = prepare(side, 1, 64, 64), *receive = descriptor_of(side, 0);
    fill(data_of(side, 64), 64, round);
    post_send(side, send);
    SENT(side, send, VIP_STATUS_OP_SEND);
    RECEIVED(side, receive, 0);
    WANT(HEAD(receive).Length == 64 && is_filled(data_of(side, 0), 64, round));
}

static void together(side_t *side, int me)
{
    address_t here = role_address(side, me, "peers"), there = role_address(side, 1 - me, "peers");
    VIP_VI_ATTRIBUTES theirs;
    unsigned round;
    side->vi = create_vi(side, VIP_SERVICE_RELIABLE_DELIVERY);
    for (round = 0; round < 60; round++) {
        VIP_RETURN gave;
        memset(&theirs, 0, sizeof theirs);
        post_recv(side, prepare(side, 0, 0, 64));
        /* At once; then one before the other. */
        if (round % 3 == 0)
            meet();
        else if ((int)(round % 3) - 1 == me)
            sleep_ms(round % 7);
        IN(side->vi, IDLE, SUCCESS, VipConnectPeerRequest(side->vi, &here.net, &there.net, SOON));
        if (round & 1) {
            while ((gave = VipConnectPeerDone(side->vi, &theirs)) == VIP_NOT_DONE)
                sleep_ms(1);
            GIVES(SUCCESS, gave);
            CHECKS(SUCCESS, VipConnectPeerDone);
        } else
            GIVES(SUCCESS, VipConnectPeerWait(side->vi, &theirs));
        WANT_EQUAL(theirs.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
        WANT_EQUAL(theirs.MaxTransferSize, TRANSFER_BYTES);
        works(side, round);
        meet();
        OK(VipDisconnect(side->vi));
        drain(VipRecvDone, side->vi);
        drain(VipSendDone, side->vi);
        meet();
    }
    OK(VipDestroyVi(side->vi));
}

static void alone(side_t *side, int me)
{
    address_t here = role_address(side, me, "alone"), there = role_address(side, 1 - me, "alone");
    VIP_DESCRIPTOR *taken;
    unsigned long begun = now_ms();
    side->vi = create_vi(side, VIP_SERVICE_UNRELIABLE);
    post_recv(side, prepare(side, 0, 0, 64));
    if (me == 0) {
        GIVES(INVALID_PARAMETER, VipConnectPeerRequest(side->vi, &here.net, &there.net, 0));
        IN(side->vi, IDLE, SUCCESS, VipConnectPeerRequest(side->vi, &here.net, &there.net, 150));
        IN(side->vi, CONNECT_PENDING, NOT_DONE, VipConnectPeerDone(side->vi, NULL));
        GIVES(TIMEOUT, VipConnectPeerWait(side->vi, NULL));
        WANT(now_ms() - begun >= 150);
        IN(side->vi, IDLE, INVALID_STATE, VipConnectPeerWait(side->vi, NULL));
        IN(side->vi, IDLE, NOT_DONE, VipRecvDone(side->vi, &taken));
        /* The time passes also for who only looks. */
        IN(side->vi, IDLE, SUCCESS, VipConnectPeerRequest(side->vi, &here.net, &there.net, 50));
        sleep_ms(60);
        SOON_IS(VipConnectPeerDone(side->vi, NULL) == VIP_TIMEOUT);
        CHECKS(TIMEOUT, VipConnectPeerDone);
        IN(side->vi, IDLE, INVALID_STATE, VipConnectPeerDone(side->vi, NULL));
    }
    end_vi(side->vi);
    meet();
}

/* Both hear that they do not fit, and why; `what` differs. */
static void unlike(side_t *side, int me, int what)
{
    address_t here = role_address(side, me, "unlike"), there = role_address(side, 1 - me, "unlike");
    VIP_VI_ATTRIBUTES mine = vi_attributes(side, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MUSUBI_QOS urgent;
    VIP_RETURN gave;
    memset(&urgent, 0, sizeof urgent);
    urgent.Size = sizeof urgent;
    if (me == 1 && what == 0)
        mine.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
    if (me == 1 && what == 1)
        mine.MaxTransferSize--;
    if (me == 1 && what == 2)
        mine.QoS = &urgent;
    OK(VipCreateVi(side->nic, &mine, NULL, NULL, &side->vi));
    GIVES(SUCCESS, VipConnectPeerRequest(side->vi, &here.net, &there.net, SOON));
    /* One waits for it, the other looks again and again. */
    if (me == 1)
        while ((gave = VipConnectPeerDone(side->vi, NULL)) == VIP_NOT_DONE)
            sleep_ms(1);
    else
        gave = VipConnectPeerWait(side->vi, NULL);
    if (what == 0)
        GIVES(INVALID_RELIABILITY_LEVEL, gave);
    else if (what == 1)
        GIVES(INVALID_MTU, gave);
    else
        GIVES(INVALID_QOS, gave);
    CHECKS(INVALID_RELIABILITY_LEVEL, VipConnectPeerDone VipConnectPeerWait);
    CHECKS(INVALID_MTU, VipConnectPeerDone VipConnectPeerWait);
    CHECKS(INVALID_QOS, VipConnectPeerDone VipConnectPeerWait);
    WANT_EQUAL(state_of(side->vi), VIP_STATE_IDLE);
    meet();
    end_vi(side->vi);
    meet();
}

static void role(int me)
{
    side_t side;
    int what;
    open_role(&side, me);
    together(&side, me);
    alone(&side, me);
    for (what = 0; what < 3; what++)
        unlike(&side, me, what);
    close_side(&side);
}

int main(int count, char **arguments)
{
    return run_roles(count, arguments);
}
