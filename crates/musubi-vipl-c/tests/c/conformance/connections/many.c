/* Many VIs between two processes, and threads: all connected, all busy at once, each with what is its own. */
#include "roles.h"

#define MANY 128u

static VIP_VI_HANDLE vis[MANY];

static void role(int me)
{
    side_t side;
    VIP_CQ_HANDLE cq = NULL;
    unsigned i, round, got = 0;
    VIP_VI_HANDLE *mine = me == 0 ? vis : (VIP_VI_HANDLE *)calloc(MANY, sizeof *mine);
    unsigned numbers[MANY] = { 0 };
    open_role(&side, me);
    OK(VipCreateCQ(side.nic, 4 * MANY, &cq));
    for (i = 0; i < MANY; i++) {
        VIP_VI_ATTRIBUTES attributes = vi_attributes(&side, levels[1 + i % 2]);
        OK(VipCreateVi(side.nic, &attributes, NULL, cq, &mine[i]));
        OK(VipPostRecv(mine[i], prepare(&side, 2 * i, i * 256, 128), side.handle));
        side.vi = mine[i];
        connect_roles(&side, me);
    }
    meet();
    /* Each VI plays ping-pong by itself; role 0 begins. */
    for (i = 0; i < MANY && me == 0; i++) {
        VIP_DESCRIPTOR *send = prepare(&side, 2 * i + 1, i * 256 + 128, 4);
        memcpy(data_of(&side, i * 256 + 128), &i, 4);
        HEAD(send).Control = VIP_CONTROL_IMMEDIATE;
        OK(VipPostSend(mine[i], send, side.handle));
    }
    for (round = 20 * MANY; got < round; got++) {
        VIP_VI_HANDLE vi = NULL;
        VIP_BOOLEAN receives = VIP_FALSE;
        VIP_DESCRIPTOR *receive = NULL, *send, *taken = NULL;
        unsigned who;
        GIVES(SUCCESS, VipCQWait(cq, SOON, &vi, &receives));
        GIVES(SUCCESS, VipRecvDone(vi, &receive));
        for (i = 0; mine[i] != vi; i++)
            WANT(i + 1 < MANY);
        WANT(receives && receive == descriptor_of(&side, 2 * i) && HEAD(receive).Length == 4);
        memcpy(&who, data_of(&side, i * 256), 4);
        WANT_EQUAL(who, i);
        WANT_EQUAL(HEAD(receive).ImmediateData, numbers[i]);
        numbers[i]++;
        if (me == 0 && numbers[i] == 20)
            continue;
        send = descriptor_of(&side, 2 * i + 1);
        if (me == 0 || numbers[i] > 1) {
            GIVES(SUCCESS, VipSendWait(vi, SOON, &taken));
            WANT(taken == send);
        }
        OK(VipPostRecv(vi, prepare(&side, 2 * i, i * 256, 128), side.handle));
        send = prepare(&side, 2 * i + 1, i * 256 + 128, 4);
        memcpy(data_of(&side, i * 256 + 128), &i, 4);
        HEAD(send).Control = VIP_CONTROL_IMMEDIATE;
        HEAD(send).ImmediateData = numbers[i] - (VIP_UINT32)me;
        OK(VipPostSend(vi, send, side.handle));
    }
    meet();
    for (i = 0; i < MANY; i++)
        end_vi(mine[i]);
    OK(VipDestroyCQ(cq));
    close_side(&side);
    if (me == 1)
        free(mine);
    meet();
}

int main(int count, char **arguments)
{
    return run_roles(count, arguments);
}
