/* A program with functions of its own called send and recv, which the library must not call. */
#include "check.h"

static int calls;

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
