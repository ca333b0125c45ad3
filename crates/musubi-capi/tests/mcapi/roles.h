/* Programs of several nodes, which run as threads of one process or as processes: `PROGRAM threads`, `PROGRAM processes`.
 * A program defines ROLES and role(). The roles meet at barriers and show each other words in memory that they share. */
#ifndef ROLES_H
#define ROLES_H

#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Longest that a program may take, seconds. */
#define LONGEST 50u

static struct board {
    pthread_barrier_t barrier;
    mcapi_uint_t words[16];
} *board;

static void role(int me);

static inline void meet(void)
{
    pthread_barrier_wait(&board->barrier);
}

static void *role_thread(void *me)
{
    role((int)(intptr_t)me);
    return NULL;
}

static inline int as_threads(void)
{
    pthread_t threads[ROLES];
    for (int me = 0; me < ROLES; me++)
        if (pthread_create(&threads[me], NULL, role_thread, (void *)(intptr_t)me) != 0)
            return 1;
    for (int me = 0; me < ROLES; me++)
        pthread_join(threads[me], NULL);
    return 0;
}

static inline int as_processes(void)
{
    pid_t children[ROLES];
    int bad = 0;
    for (int me = 0; me < ROLES; me++) {
        children[me] = fork();
        if (children[me] == 0) {
            alarm(LONGEST);
            role(me);
            exit(0);
        }
    }
    for (int left = ROLES; left > 0; left--) {
        int status = 0;
        wait(&status);
        if (status != 0 && !bad) {
            bad = 1;
            for (int me = 0; me < ROLES; me++)
                kill(children[me], SIGKILL);
        }
    }
    return bad;
}

int main(int count, char **arguments)
{
    pthread_barrierattr_t shared;
    if (count != 2)
        return 2;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (board == MAP_FAILED || pthread_barrier_init(&board->barrier, &shared, ROLES) != 0)
        return 2;
    alarm(LONGEST);
    return strcmp(arguments[1], "threads") == 0 ? as_threads() : as_processes();
}

#endif
