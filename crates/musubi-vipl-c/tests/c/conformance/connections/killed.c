/* The peer is killed at random: the VI is in error in bounded time, CONN_LOST is told, everything that was posted completes or is
 * flushed in the order of its queue, none is missing, and after VipDisconnect the VI is as good as new. `killed NIC NIC [SEED [ROUNDS]]`. */
#include "roles.h"

#define POSTED 64u
#define MESSAGE_BYTES 8192u

static unsigned long seed = 1;
static unsigned rounds = 5;

static void role(int me)
{
    (void)me;
}

/* Sends and receives as fast as it can until it is killed. */
static void victim(int up)
{
    side_t side;
    unsigned i, sent = 0, back = 0, taken_back = 0;
    open_side(&side, nic_names[1]);
    side.vi = create_vi(&side, VIP_SERVICE_RELIABLE_RECEPTION);
    for (i = 0; i < POSTED; i++)
        post_recv(&side, prepare(&side, i, 0, MESSAGE_BYTES));
    WANT(write(up, "u", 1) == 1);
    connect_roles(&side, 1);
    for (;;) {
        VIP_DESCRIPTOR *taken;
        if (VipRecvDone(side.vi, &taken) == VIP_SUCCESS)
            post_recv(&side, prepare(&side, back++ % POSTED, 0, MESSAGE_BYTES));
        if (sent - taken_back < 4 && sent < back)
            post_send(&side, prepare(&side, POSTED + sent++ % 4, MESSAGE_BYTES, 64));
        if (VipSendDone(side.vi, &taken) == VIP_SUCCESS)
            taken_back++;
    }
}

/* Everything of a queue comes out in order: first what had completed, then what is flushed. */
static void comes_out(VIP_RETURN (*take)(VIP_VI_HANDLE, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi, VIP_DESCRIPTOR **posted,
                      unsigned first, unsigned last)
{
    int is_flushed = 0;
    VIP_DESCRIPTOR *taken = NULL;
    for (; first != last; first++) {
        VIP_RETURN gave = take(vi, &taken);
        WANT(gave == VIP_SUCCESS || gave == VIP_DESCRIPTOR_ERROR);
        WANT(taken == posted[first % (2 * POSTED)]);
        WANT(HEAD(taken).Status & VIP_STATUS_DONE);
        is_flushed |= gave == VIP_DESCRIPTOR_ERROR;
        WANT(gave == (is_flushed ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS));
        WANT(!is_flushed || HEAD(taken).Status & (VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR));
    }
    GIVES(DESCRIPTOR_ERROR, take(vi, &taken));
    WANT(taken == NULL);
}

typedef struct queue {
    VIP_DESCRIPTOR *posted[2 * POSTED];
    unsigned first, last;
} queue_t;

/* Takes back what is complete; says whether it is of the end. */
static int takes_one(VIP_RETURN (*take)(VIP_VI_HANDLE, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi, queue_t *queue)
{
    VIP_DESCRIPTOR *taken = NULL;
    VIP_RETURN gave = take(vi, &taken);
    if (gave == VIP_SUCCESS || taken != NULL)
        WANT(taken == queue->posted[queue->first++ % (2 * POSTED)]);
    return gave == VIP_DESCRIPTOR_ERROR && taken != NULL;
}

/* Posts and takes back for so long, then kills. */
static void live(side_t *side, pid_t child, unsigned ms, queue_t *sends, queue_t *receives)
{
    unsigned long begun = now_ms();
    int is_killed = 0;
    while (state_of(side->vi) == VIP_STATE_CONNECTED) {
        WANT(now_ms() - begun < ms + SOON);
        if (!is_killed && now_ms() - begun >= ms) {
            kill(child, SIGKILL);
            is_killed = 1;
        }
        while (receives->last - receives->first < POSTED) {
            unsigned i = receives->last++ % (2 * POSTED);
            receives->posted[i] = prepare(side, i, 0, MESSAGE_BYTES);
            post_recv(side, receives->posted[i]);
        }
        /* Fewer without an answer than the peer has receives. */
        if (sends->last - receives->first < POSTED / 2) {
            unsigned i = sends->last++ % (2 * POSTED);
            sends->posted[i] = prepare(side, 2 * POSTED + i, MESSAGE_BYTES, MESSAGE_BYTES);
            post_send(side, sends->posted[i]);
        }
        if (takes_one(VipSendDone, side->vi, sends) || takes_one(VipRecvDone, side->vi, receives))
            break;
    }
    WANT(is_killed);
}

static pid_t start_victim(void)
{
    int up[2];
    char c;
    pid_t child;
    WANT(pipe(up) == 0);
    child = fork();
    if (child == 0) {
        alarm(LONGEST);
        victim(up[1]);
    }
    WANT(read(up[0], &c, 1) == 1);
    close(up[0]);
    close(up[1]);
    return child;
}

int main(int count, char **arguments)
{
    side_t side;
    static ear_t ear;
    unsigned round;
    begin(count, arguments);
    if (count > 3)
        seed = strtoul(arguments[3], NULL, 0);
    if (count > 4)
        rounds = (unsigned)strtoul(arguments[4], NULL, 0);
    board = (board_t *)mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    WANT(board != MAP_FAILED);
    srand((unsigned)seed);
    open_side(&side, nic_names[0]);
    listen_to(&side, &ear);
    side.vi = create_vi(&side, VIP_SERVICE_RELIABLE_RECEPTION);
    for (round = 0; round < rounds; round++) {
        static queue_t sends, receives;
        unsigned i;
        pid_t child;
        memset(&sends, 0, sizeof sends);
        memset(&receives, 0, sizeof receives);
        snprintf(board->run, sizeof board->run, "k%ld-%u", (long)getpid(), round);
        child = start_victim();
        for (i = 0; i < POSTED; i++) {
            receives.posted[i] = prepare(&side, i, 0, MESSAGE_BYTES);
            post_recv(&side, receives.posted[i]);
        }
        receives.last = POSTED;
        connect_roles(&side, 0);
        live(&side, child, (unsigned)rand() % 60, &sends, &receives);
        WANT_EQUAL(state_of(side.vi), VIP_STATE_ERROR);
        HEARS(&ear, CONN_LOST, side.vi, NULL);
        comes_out(VipSendDone, side.vi, sends.posted, sends.first, sends.last);
        comes_out(VipRecvDone, side.vi, receives.posted, receives.first, receives.last);
        WANT(waitpid(child, NULL, 0) == child);
        OK(VipDisconnect(side.vi));
        printf("round %u: %u sent, %u received\n", round, sends.first, receives.first);
    }
    end_vi(side.vi);
    close_side(&side);
    return done();
}
