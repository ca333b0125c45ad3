/* Programs of two roles, which run as two processes and then as two threads of one process. A program defines role(), calls
 * run_roles(); the roles meet at barriers and show each other words in memory that they share. */
#ifndef ROLES_H
#define ROLES_H

#include "sides.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

typedef struct board {
    pthread_barrier_t barrier;
    /* Where a side's memory is, and its handle: what programs tell each other before they write or read it. */
    VIP_UINT64 addresses[2];
    VIP_MEM_HANDLE handles[2];
    volatile VIP_UINT32 words[16];
    /* Tells runs apart, so that each has addresses of its own. */
    char run[32];
} board_t;
static board_t *board;

static void role(int me);

static inline void meet(void)
{
    pthread_barrier_wait(&board->barrier);
}

/* This side of the two, opened, with what the other needs to know of it written down. */
static inline void open_role(side_t *side, int me)
{
    open_side(side, nic_names[me]);
    board->addresses[me] = (VIP_UINT64)(uintptr_t)side->memory;
    board->handles[me] = side->handle;
    meet();
}

/* The address of a role: both know it without asking each other. */
static inline address_t role_address(const side_t *side, int who, const char *what)
{
    char name[96];
    address_t address = address_of(side, "");
    if (strcmp(nic_names[who], side->name) != 0)
        OK(VipNSGetHostByName(side->nic, (VIP_CHAR *)(uintptr_t)nic_names[who], &address.net, 0));
    snprintf(name, sizeof name, "%s-%s-%d", board->run, what, who);
    set_discriminator(&address, name, strlen(name));
    return address;
}

/* Role 0 asks, role 1 waits and accepts. Period programs ask again while nobody waits. */
static inline void connect_roles(side_t *side, int me)
{
    address_t here = role_address(side, me, "connect"), there = role_address(side, 1 - me, "connect");
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE waiting;
    unsigned long begun = now_ms();
    VIP_RETURN gave;
    if (me == 1) {
        OK(VipConnectWait(side->nic, &here.net, SOON, NULL, NULL, &waiting));
        OK(VipConnectAccept(waiting, side->vi));
        return;
    }
    while ((gave = VipConnectRequest(side->vi, &here.net, &there.net, SOON, &theirs)) == VIP_NO_MATCH &&
           now_ms() - begun < SOON)
        sleep_ms(1);
    GIVES(SUCCESS, gave);
}

static inline void *role_thread(void *me)
{
    role((int)(intptr_t)me);
    return NULL;
}

static inline void run_as_processes(void)
{
    pid_t children[2];
    int me, left;
    for (me = 0; me < 2; me++)
        if ((children[me] = fork()) == 0) {
            alarm(LONGEST);
            role(me);
            _exit(0);
        }
    for (left = 2; left > 0; left--) {
        int status = 0;
        pid_t ended = wait(&status);
        if (status != 0) {
            kill(children[ended == children[0]], SIGKILL);
            fail_at(__FILE__, __LINE__, "role %d as a process: status 0x%x", ended == children[1], (unsigned)status);
        }
    }
    puts("ok as processes");
}

static inline void run_as_threads(void)
{
    pthread_t threads[2];
    int me;
    for (me = 0; me < 2; me++)
        WANT(pthread_create(&threads[me], NULL, role_thread, (void *)(intptr_t)me) == 0);
    for (me = 0; me < 2; me++)
        WANT(pthread_join(threads[me], NULL) == 0);
    puts("ok as threads");
}

static inline int run_roles(int count, char **arguments)
{
    pthread_barrierattr_t shared;
    begin(count, arguments);
    board = (board_t *)mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    WANT(board != MAP_FAILED && pthread_barrier_init(&board->barrier, &shared, 2) == 0);
    snprintf(board->run, sizeof board->run, "p%ld", (long)getpid());
    run_as_processes();
    snprintf(board->run, sizeof board->run, "t%ld", (long)getpid());
    run_as_threads();
    return done();
}

#endif
