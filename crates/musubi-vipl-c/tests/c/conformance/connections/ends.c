/* A process ends, in every way that there is, after what it sent is complete: the other side has all of it, then the end, in that order. The
 * other side, which goes on, does so again and again, with children that it makes between uses of its NIC. */
#include "roles.h"

enum way { IN_ORDER, CLOSED_ONLY, LEFT, RETURNED, KILLED, WAYS };
#define MESSAGES 64u

static unsigned runs;

static void role(int me)
{
    (void)me;
}

static void child(enum way way, VIP_RELIABILITY_LEVEL level)
{
    side_t side;
    unsigned i;
    alarm(LONGEST);
    open_side(&side, nic_names[0]);
    side.vi = create_vi(&side, level);
    connect_roles(&side, 0);
    for (i = 0; i < MESSAGES; i++) {
        VIP_DESCRIPTOR *send = prepare(&side, i, 0, 4096);
        HEAD(send).Control = VIP_CONTROL_IMMEDIATE;
        HEAD(send).ImmediateData = i;
        post_send(&side, send);
    }
    for (i = 0; i < MESSAGES; i++)
        SENT(&side, descriptor_of(&side, i), VIP_STATUS_OP_SEND);
    if (way == KILLED)
        kill(getpid(), SIGKILL);
    if (way == IN_ORDER)
        end_vi(side.vi);
    if (way == IN_ORDER || way == CLOSED_ONLY)
        close_side(&side);
    if (way == RETURNED)
        exit(0);
    _exit(0);
}

static void ends(enum way way, VIP_RELIABILITY_LEVEL level)
{
    side_t side;
    unsigned i;
    int status = 0;
    pid_t other;
    VIP_DESCRIPTOR *last = NULL;
    snprintf(board->run, sizeof board->run, "e%ld-%u", (long)getpid(), runs++);
    other = fork();
    if (other == 0)
        child(way, level);
    open_side(&side, nic_names[1]);
    side.vi = create_vi(&side, level);
    for (i = 0; i <= MESSAGES; i++)
        post_recv(&side, prepare(&side, i, i * 4096, 4096));
    connect_roles(&side, 1);
    WANT(waitpid(other, &status, 0) == other);
    WANT(way == KILLED ? WIFSIGNALED(status) : status == 0);
    for (i = 0; i < MESSAGES; i++) {
        RECEIVED(&side, descriptor_of(&side, i), VIP_STATUS_IMMEDIATE);
        WANT_EQUAL(HEAD(descriptor_of(&side, i)).ImmediateData, i);
    }
    GIVES(DESCRIPTOR_ERROR, VipRecvWait(side.vi, SOON, &last));
    WANT(last == descriptor_of(&side, MESSAGES));
    WANT_EQUAL(HEAD(last).Status, VIP_STATUS_OP_RECEIVE | VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR);
    WANT_EQUAL(HEAD(last).Length, 0);
    WANT_EQUAL(state_of(side.vi), VIP_STATE_ERROR);
    end_vi(side.vi);
    close_side(&side);
}

int main(int count, char **arguments)
{
    int way;
    begin(count, arguments);
    board = (board_t *)mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    WANT(board != MAP_FAILED);
    for (way = 0; way < WAYS; way++)
        ends((enum way)way, levels[1 + way % 2]);
    for (way = 0; way < 10; way++)
        ends(IN_ORDER, VIP_SERVICE_RELIABLE_DELIVERY);
    return done();
}
