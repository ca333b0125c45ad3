/* A peer that stands still (SIGSTOP) and goes on: a send at the level of reception is not done meanwhile, nothing is lost, nothing ends. */
#include "roles.h"

static void role(int me)
{
    (void)me;
}

static void victim(int up)
{
    side_t side;
    VIP_DESCRIPTOR *taken = NULL;
    open_side(&side, nic_names[1]);
    side.vi = create_vi(&side, VIP_SERVICE_RELIABLE_RECEPTION);
    post_recv(&side, prepare(&side, 0, 0, 64));
    post_recv(&side, prepare(&side, 1, 64, 64));
    connect_roles(&side, 1);
    RECEIVED(&side, descriptor_of(&side, 0), 0);
    WANT(write(up, "u", 1) == 1);
    RECEIVED(&side, descriptor_of(&side, 1), 0);
    WANT(is_filled(data_of(&side, 64), 64, 2));
    /* Until the other side ends it. */
    post_recv(&side, prepare(&side, 0, 0, 64));
    GIVES(DESCRIPTOR_ERROR, VipRecvWait(side.vi, SOON, &taken));
    end_vi(side.vi);
    close_side(&side);
    _exit(0);
}

int main(int count, char **arguments)
{
    side_t side;
    VIP_DESCRIPTOR *send, *taken = NULL;
    int up[2], status = 0;
    char c;
    pid_t child;
    begin(count, arguments);
    board = (board_t *)mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    WANT(board != MAP_FAILED && pipe(up) == 0);
    snprintf(board->run, sizeof board->run, "s%ld", (long)getpid());
    child = fork();
    if (child == 0) {
        alarm(LONGEST);
        victim(up[1]);
    }
    open_side(&side, nic_names[0]);
    side.vi = create_vi(&side, VIP_SERVICE_RELIABLE_RECEPTION);
    connect_roles(&side, 0);
    send = prepare(&side, 0, 0, 64);
    post_send(&side, send);
    SENT(&side, send, VIP_STATUS_OP_SEND);
    WANT(read(up[0], &c, 1) == 1);
    kill(child, SIGSTOP);
    WANT(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    send = prepare(&side, 1, 64, 64);
    fill(data_of(&side, 64), 64, 2);
    IN(side.vi, CONNECTED, SUCCESS, VipPostSend(side.vi, send, side.handle));
    IN(side.vi, CONNECTED, NOT_DONE, VipSendDone(side.vi, &taken));
    IN(side.vi, CONNECTED, TIMEOUT, VipSendWait(side.vi, A_WHILE, &taken));
    IN(side.vi, CONNECTED, TIMEOUT, VipSendWait(side.vi, 0, &taken));
    WANT(taken == NULL);
    kill(child, SIGCONT);
    SENT(&side, send, VIP_STATUS_OP_SEND);
    end_vi(side.vi);
    WANT(waitpid(child, &status, 0) == child);
    WANT_EQUAL(status, 0);
    close_side(&side);
    return done();
}
