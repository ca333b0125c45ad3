/* A program with functions of its own by names of the system's, which the library must not call. */
#include "check.h"

static int calls;

/* Those by whose names the library would open files and sockets, read, write and close them; the last three are declared already. */
int open(const char *path, int flags, ...);
int connect(int port, const void *what, unsigned size);

static int called(void)
{
    calls++;
    return -1;
}

int open(const char *path, int flags, ...)
{
    (void)path, (void)flags;
    return called();
}

int connect(int port, const void *what, unsigned size)
{
    (void)port, (void)what, (void)size;
    return called();
}

int close(int port)
{
    (void)port;
    return called();
}

ssize_t read(int port, void *into, size_t size)
{
    (void)port, (void)into, (void)size;
    return called();
}

ssize_t write(int port, const void *from, size_t size)
{
    (void)port, (void)from, (void)size;
    return called();
}

void send(mcapi_endpoint_t from, mcapi_endpoint_t to, const char *text);
void recv(mcapi_endpoint_t at, const char *text);

void send(mcapi_endpoint_t from, mcapi_endpoint_t to, const char *text)
{
    mcapi_status_t st;
    calls++;
    OK(mcapi_msg_send(from, to, text, strlen(text), 1, &st));
}

void recv(mcapi_endpoint_t at, const char *text)
{
    mcapi_status_t st;
    char buffer[64];
    size_t size;
    calls++;
    OK(mcapi_msg_recv(at, buffer, sizeof buffer, &size, &st));
    WANT(size == strlen(text) && memcmp(buffer, text, size) == 0);
}

static void *other(void *unused)
{
    mcapi_status_t st;
    mcapi_endpoint_t mine, theirs;
    char buffer[64];
    size_t size;
    (void)unused;
    initialize(NODE_B);
    OK(mine = mcapi_endpoint_create(5, &st));
    OK(theirs = mcapi_endpoint_get(DOMAIN, NODE_A, 5, SOON, &st));
    OK(mcapi_msg_recv(mine, buffer, sizeof buffer, &size, &st));
    OK(mcapi_msg_send(mine, theirs, buffer, size, 0, &st));
    finalize();
    return NULL;
}

int main(void)
{
    mcapi_status_t st = 0;
    pthread_t thread;
    mcapi_endpoint_t mine, theirs;
    initialize(NODE_A);
    OK(mine = mcapi_endpoint_create(5, &st));
    WANT(pthread_create(&thread, NULL, other, NULL) == 0);
    OK(theirs = mcapi_endpoint_get(DOMAIN, NODE_B, 5, SOON, &st));
    send(mine, theirs, "there and back");
    recv(mine, "there and back");
    pthread_join(thread, NULL);
    finalize();
    WANT(calls == 2);
    return 0;
}
