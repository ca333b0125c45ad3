/* The other node stops for longer than links are resumed: what was on its way is TRANSMISSION, in bounded time. The test
 * that runs this stops the other one (`mortal serve`) once "ready" is written, and then closes the input. */
#include "check.h"

static mcapi_endpoint_t mine, server;

/* The blocking form, as long as it takes. */
static void *sends(void *other)
{
    mcapi_status_t st;
    GIVES(16, ERR_TRANSMISSION, mcapi_msg_send(*(mcapi_endpoint_t *)other, server, "x", 1, 0, &st));
    return NULL;
}

int main(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t other;
    pthread_t thread;
    mcapi_request_t request;
    size_t size, sent = 0;
    uint64_t begin;
    char answer[8];
    initialize(NODE_A);
    OK(mine = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
    OK(other = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
    OK(server = mcapi_endpoint_get(DOMAIN, NODE_B, 100, SOON, &st));
    OK(mcapi_msg_send(mine, server, &mine, sizeof mine, 0, &st));
    OK(mcapi_msg_recv(mine, answer, sizeof answer, &size, &st));
    puts("ready");
    fflush(stdout);
    getchar();
    begin = now_ms();
    WANT(pthread_create(&thread, NULL, sends, &other) == 0);
    mcapi_msg_send_i(mine, server, &mine, sizeof mine, 0, &request, &st);
    if (st == MCAPI_PENDING) {
        GIVES(15, ERR_TRANSMISSION, mcapi_wait(&request, &size, SOON, &st));
        sent++;
    }
    pthread_join(thread, NULL);
    /* Who goes on waits until it was tried for in vain, or as long as the endpoint's timeout says. */
    set_timeout(mine, 1);
    mcapi_msg_send(mine, server, &mine, sizeof mine, 0, &st);
    PROVES("N2", st == MCAPI_TIMEOUT || st == MCAPI_ERR_TRANSMISSION);
    GIVES(16, ERR_TRANSMISSION, mcapi_msg_send(other, server, &mine, sizeof mine, 0, &st));
    PROVES("N2", sent == 1 && now_ms() - begin < SOON);
    finalize();
    return 0;
}
