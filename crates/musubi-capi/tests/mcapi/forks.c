/* A child made by fork has none of its parent's nodes, and may begin its own; its parent goes on. */
#include "check.h"

#include <sys/wait.h>

static void child(mcapi_endpoint_t parents)
{
    mcapi_status_t st;
    mcapi_endpoint_t mine, to;
    GIVES(4, ERR_NODE_NOTINIT, mcapi_node_id_get(&st));
    GIVES(16, ERR_NODE_NOTINIT, mcapi_msg_send(parents, parents, "x", 1, 0, &st));
    initialize(NODE_B);
    PROVES("N1", mcapi_node_id_get(&st) == NODE_B);
    OK(mine = mcapi_endpoint_create(5, &st));
    OK(to = mcapi_endpoint_get(DOMAIN, NODE_A, 5, SOON, &st));
    WANT(to == parents);
    OK(mcapi_msg_send(mine, to, "child", 5, 0, &st));
    finalize();
}

int main(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t mine;
    char text[8];
    size_t size;
    initialize(NODE_A);
    OK(mine = mcapi_endpoint_create(5, &st));
    for (int i = 0; i < 2; i++) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(30);
            child(mine);
            exit(0);
        }
        OK(mcapi_msg_recv(mine, text, sizeof text, &size, &st));
        WANT(size == 5 && memcmp(text, "child", 5) == 0);
        WANT(waitpid(pid, &status, 0) == pid && status == 0);
    }
    PROVES("N1", mcapi_node_id_get(&st) == NODE_A);
    finalize();
    return 0;
}
