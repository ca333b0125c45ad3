/* Asks for an endpoint of a node that it cannot have a link with: nothing comes, and the deadline holds. */
#include "check.h"

int main(int count, char **words)
{
    const mcapi_timeout_t timeout_ms = 1500;
    mcapi_status_t st;
    mcapi_info_t info;
    mcapi_node_t me = count > 1 ? (mcapi_node_t)atoi(words[1]) : 1;
    OK(mcapi_initialize(1, me, NULL, NULL, &info, &st));
    if (me == 1) {
        OK(mcapi_endpoint_create(5, &st));
        puts("up");
        fflush(stdout);
        sleep_ms(60 * 1000);
        return 0;
    }
    uint64_t begin = now_ms();
    GIVES(10, TIMEOUT, mcapi_endpoint_get(1, 1, 5, timeout_ms, &st));
    WANT(now_ms() - begin >= timeout_ms && now_ms() - begin < timeout_ms + SOON);
    OK(mcapi_finalize(&st));
    return 0;
}
