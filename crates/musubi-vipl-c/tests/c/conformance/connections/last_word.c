/* Who gets the last message may end the connection at once: at the reliable levels the sender's descriptor has completed well, as its
 * message was accepted before the end. */
#include "sides.h"

static side_t one, other;

static void last_word(VIP_RELIABILITY_LEVEL level, unsigned bytes)
{
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, TRANSFER_BYTES), *send = prepare(&one, 0, 0, bytes);
    connect_sides(&one, &other, level);
    post_recv(&other, receive);
    post_send(&one, send);
    RECEIVED(&other, receive, 0);
    OK(VipDisconnect(other.vi));
    SENT(&one, send, VIP_STATUS_OP_SEND);
    SOON_IS(state_of(one.vi) == VIP_STATE_ERROR);
    end_sides(&one, &other);
}

int main(int count, char **arguments)
{
    unsigned round;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    for (round = 0; round < 30; round++)
        last_word(levels[1 + round % 2], round % 3 == 0 ? 0 : round % 3 == 1 ? 64 : TRANSFER_BYTES);
    close_side(&one);
    close_side(&other);
    return done();
}
