/* A server that is killed and comes back with the same number, and its client. */
#include "check.h"

#define PORT 100

static void serve(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t mine, client;
    size_t size;
    initialize(NODE_B);
    OK(mine = mcapi_endpoint_create(PORT, &st));
    puts("up");
    fflush(stdout);
    for (;;) {
        /* The client's endpoint comes in the message: endpoints are the same numbers everywhere. */
        OK(mcapi_msg_recv(mine, &client, sizeof client, &size, &st));
        PROVES("section 2.1", size == sizeof client);
        OK(mcapi_msg_send(mine, client, "pong", 4, 0, &st));
    }
}

static void ask(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t mine, server;
    char answer[8];
    size_t size;
    initialize(NODE_A);
    OK(mine = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
    OK(server = mcapi_endpoint_get(DOMAIN, NODE_B, PORT, SOON, &st));
    OK(mcapi_msg_send(mine, server, &mine, sizeof mine, 0, &st));
    set_timeout(mine, SOON);
    OK(mcapi_msg_recv(mine, answer, sizeof answer, &size, &st));
    PROVES("N2", size == 4 && memcmp(answer, "pong", 4) == 0);
    finalize();
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "serve") == 0)
        serve();
    else
        ask();
    return 0;
}
