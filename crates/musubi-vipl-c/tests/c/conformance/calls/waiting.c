/* Waiting: times of every size; several threads at one queue; signals that come meanwhile; a handler that closes its own NIC. */
#include "sides.h"

#include <limits.h>
#include <signal.h>
#include <sys/time.h>

static side_t one, other;

/* Times that no clock reaches, and what is all ones in 32 bits. */
static const VIP_ULONG endless[] = { VIP_INFINITE, VIP_INFINITE - 1, VIP_INFINITE / 2, VIP_INFINITE / 1000, 0xffffffffu };
#define ENDLESS (sizeof endless / sizeof *endless)

static void times_of_data(void)
{
    VIP_DESCRIPTOR *taken;
    unsigned i;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_RECEPTION);
    for (i = 0; i < ENDLESS; i++) {
        post_recv(&other, prepare(&other, 0, 0, 8));
        post_send(&one, prepare(&one, 0, 0, 8));
        GIVES(SUCCESS, VipRecvWait(other.vi, endless[i], &taken));
        GIVES(SUCCESS, VipSendWait(one.vi, endless[i], &taken));
    }
    end_sides(&one, &other);
}

static void times_of_connections(void)
{
    address_t from = address_of(&one, "one of two"), to = address_of(&other, "the other");
    unsigned i;
    for (i = 0; i < ENDLESS; i++) {
        char name[64];
        request_t request;
        VIP_CONN_HANDLE waiting;
        address_t here = address_of(&other, fresh_name(name));
        one.vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
        other.vi = create_vi(&other, VIP_SERVICE_UNRELIABLE);
        request.vi = one.vi;
        request.from = from;
        request.to = here;
        request.timeout = endless[i];
        WANT(pthread_create(&request.thread, NULL, run_request, &request) == 0);
        GIVES(SUCCESS, VipConnectWait(other.nic, &here.net, endless[i], NULL, NULL, &waiting));
        GIVES(SUCCESS, VipConnectAccept(waiting, other.vi));
        GIVES(SUCCESS, end_request(&request));
        OK(VipDisconnect(one.vi));
        OK(VipDisconnect(other.vi));
        GIVES(SUCCESS, VipConnectPeerRequest(one.vi, &from.net, &to.net, endless[i]));
        GIVES(SUCCESS, VipConnectPeerRequest(other.vi, &to.net, &from.net, endless[i]));
        GIVES(SUCCESS, VipConnectPeerWait(one.vi, NULL));
        GIVES(SUCCESS, VipConnectPeerWait(other.vi, NULL));
        end_sides(&one, &other);
    }
}

#define WAITERS 16u

static void *wait_for_one(void *to)
{
    GIVES(SUCCESS, VipRecvWait(other.vi, VIP_INFINITE, (VIP_DESCRIPTOR **)to));
    return NULL;
}

/* Each thread gets one, and no two the same. */
static void several_threads(void)
{
    pthread_t threads[WAITERS];
    VIP_DESCRIPTOR *taken[WAITERS];
    unsigned i, k;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    for (i = 0; i < WAITERS; i++)
        post_recv(&other, prepare(&other, i, i * 64, 64));
    for (i = 0; i < WAITERS; i++)
        WANT(pthread_create(&threads[i], NULL, wait_for_one, &taken[i]) == 0);
    sleep_ms(A_WHILE);
    for (i = 0; i < WAITERS; i++)
        post_send(&one, prepare(&one, i, 0, 64));
    for (i = 0; i < WAITERS; i++) {
        WANT(pthread_join(threads[i], NULL) == 0);
        for (k = 0; k < i; k++)
            WANT(taken[i] != taken[k]);
    }
    end_sides(&one, &other);
}

static volatile sig_atomic_t rang;

static void ring(int number)
{
    (void)number;
    rang = rang + 1;
}

/* No call ends early for them, and none is lost. */
static void signals(void)
{
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action, before;
    VIP_DESCRIPTOR *taken;
    unsigned long begun;
    unsigned i;
    memset(&action, 0, sizeof action);
    action.sa_handler = ring;
    WANT(sigaction(SIGALRM, &action, &before) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_RECEPTION);
    for (i = 0; i < 200; i++)
        exchange(i & 1 ? &one : &other, i & 1 ? &other : &one, i);
    post_recv(&one, prepare(&one, 0, 0, 8));
    begun = now_ms();
    GIVES(TIMEOUT, VipRecvWait(one.vi, 200, &taken));
    WANT(now_ms() - begun >= 200);
    WANT(rang > 0);
    end_sides(&one, &other);
    WANT(setitimer(ITIMER_REAL, &never, NULL) == 0 && sigaction(SIGALRM, &before, NULL) == 0);
    alarm(LONGEST);
}

static volatile int is_closed;

static void close_it(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    WANT(error->NicHandle == *(VIP_NIC_HANDLE *)context);
    GIVES(SUCCESS, VipCloseNic(error->NicHandle));
    is_closed = 1;
}

static void closing_in_a_handler(void)
{
    side_t side;
    open_side(&side, nic_names[0]);
    OK(VipErrorCallback(side.nic, &side.nic, close_it));
    side.vi = create_vi(&side, VIP_SERVICE_UNRELIABLE);
    GIVES(INVALID_PARAMETER, VipPostRecv(side.vi, NULL, side.handle));
    SOON_IS(is_closed);
    GIVES(INVALID_PARAMETER, VipQueryVi(side.vi, NULL, NULL, NULL, NULL));
    GIVES(INVALID_PARAMETER, VipCloseNic(side.nic));
    free(side.memory);
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    times_of_data();
    times_of_connections();
    several_threads();
    closing_in_a_handler();
    signals();
    close_side(&one);
    close_side(&other);
    return done();
}
