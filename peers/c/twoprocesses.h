/* Two processes with a socket between them, for what they must tell each other outside the measured path. */
#ifndef TWOPROCESSES_H
#define TWOPROCESSES_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pingpong.h"

/* Seconds after which a run that hangs ends itself. */
#define SECONDS_MAX 120

struct side {
    int number;    /* 0 ping, 1 pong */
    int socket;    /* to the other */
    pid_t child;   /* of ping */
};

/* Forks; ping gets side 0, pong side 1, each on a core of its own. */
static struct side split(void)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0)
        fail("socketpair");
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    struct side s = { .number = child == 0, .child = child };
    s.socket = sockets[s.number];
    close(sockets[!s.number]);
    if (s.number == 1)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SECONDS_MAX);
    pin(s.number);
    return s;
}

/* Gives the other side `mine` and receives what it gave. */
static inline size_t exchange(const struct side *s, const void *mine, size_t mine_bytes, void *theirs, size_t theirs_max)
{
    if (send(s->socket, mine, mine_bytes, MSG_NOSIGNAL) != (ssize_t)mine_bytes)
        fail("send");
    ssize_t n = recv(s->socket, theirs, theirs_max, 0);
    if (n <= 0)
        fail("recv");
    return (size_t)n;
}

/* Waits until the other side is here too. */
static inline void meet(const struct side *s)
{
    char mine = 'm', theirs;
    exchange(s, &mine, 1, &theirs, 1);
}

/* Pong ends here; ping waits for it. */
static void join(const struct side *s)
{
    if (s->number == 1)
        _exit(EXIT_SUCCESS);
    int status = 0;
    if (waitpid(s->child, &status, 0) != s->child || status != 0)
        fail("pong failed");
}

#endif
