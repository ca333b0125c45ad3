/* How the examples of MCAPI start: without arguments all nodes run, each in a thread; with `--node N` the program is node N
 * alone. Where the others are, and what lies between, only the description knows that MUSUBI_SYSTEM names. */
#ifndef NODES_H
#define NODES_H

#include <mcapi.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest that an example waits for anything, milliseconds. */
#define PATIENCE 30000u
#define ANY_PORT ((mcapi_port_t)MCAPI_PORT_ANY)

/* What a node does. */
typedef void role_t(void);

/* Ends the program if a call did not say SUCCESS. */
static inline void must(mcapi_status_t status, const char *what)
{
    char name[MCAPI_MAX_STATUS_MSG_LEN];
    if (status != MCAPI_SUCCESS) {
        const char *text = mcapi_display_status(status, name, sizeof name);
        fprintf(stderr, "%s: %s\n", what, text ? text : "?");
        exit(1);
    }
}

/* Waits for what a function ending in _i has begun. */
static inline void complete(mcapi_request_t *request, mcapi_status_t begun, const char *what)
{
    mcapi_status_t status;
    size_t size;
    if (begun != MCAPI_PENDING)
        must(begun, what);
    mcapi_wait(request, &size, PATIENCE, &status);
    must(status, what);
}

/* An endpoint of this node, whose blocking calls have PATIENCE. */
static inline mcapi_endpoint_t endpoint(mcapi_port_t port)
{
    mcapi_status_t status;
    mcapi_timeout_t patience = PATIENCE;
    mcapi_endpoint_t made = mcapi_endpoint_create(port, &status);
    must(status, "create an endpoint");
    mcapi_endpoint_set_attribute(made, MCAPI_ENDP_ATTR_TIMEOUT, &patience, sizeof patience, &status);
    /* Who knows the port may have connected it already; then its calls wait for as long as it takes. */
    if (status != MCAPI_ERR_CHAN_CONNECTED)
        must(status, "set a timeout");
    return made;
}

/* One of another node, as soon as it is there. */
static inline mcapi_endpoint_t endpoint_of(mcapi_node_t node, mcapi_port_t port)
{
    mcapi_status_t status;
    mcapi_endpoint_t got = mcapi_endpoint_get(0, node, port, PATIENCE, &status);
    must(status, "get an endpoint");
    return got;
}

struct node {
    mcapi_node_t number;
    role_t *role;
};

/* A node's life. */
static inline void *live(void *of)
{
    const struct node *node = of;
    mcapi_status_t status;
    mcapi_info_t info;
    mcapi_initialize(0, node->number, NULL, NULL, &info, &status);
    must(status, "initialize");
    node->role();
    mcapi_finalize(&status);
    must(status, "finalize");
    return NULL;
}

/* Runs nodes 1, 2 and so on of domain 0, or the one that the command line names. */
static inline int run(role_t *const *roles, mcapi_node_t count, int arguments, char **argument)
{
    struct node nodes[8];
    pthread_t threads[8];
    for (mcapi_node_t i = 0; i < count; i++)
        nodes[i] = (struct node){ i + 1, roles[i] };
    if (arguments == 3 && strcmp(argument[1], "--node") == 0) {
        unsigned long number = strtoul(argument[2], NULL, 10);
        if (number >= 1 && number <= count) {
            live(&nodes[number - 1]);
            return 0;
        }
    }
    if (arguments != 1) {
        fprintf(stderr, "usage: %s [--node N], N from 1 to %u\n", argument[0], count);
        return 2;
    }
    for (mcapi_node_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, live, &nodes[i]) != 0)
            return 1;
    for (mcapi_node_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

#endif
