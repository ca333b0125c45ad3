/* With a description that cannot be used no node starts. */
#include "check.h"

int main(void)
{
    mcapi_status_t st;
    mcapi_info_t info;
    GIVES(1, ERR_NODE_INITFAILED, mcapi_initialize(DOMAIN, NODE_A, NULL, NULL, &info, &st));
    /* What has been said is not said again. */
    GIVES(1, ERR_NODE_INITFAILED, mcapi_initialize(DOMAIN, NODE_A, NULL, NULL, &info, &st));
    GIVES(4, ERR_NODE_NOTINIT, mcapi_node_id_get(&st));
    return 0;
}
