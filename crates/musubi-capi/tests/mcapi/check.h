/* What the conformance programs share. A program ends with success only if every check was so.
 *
 * A check names what it is about: GIVES(row, STATUS, call) a function (its number in docs/mcapi-conformance.md) and a
 * status that it can give; PROVES("X1", condition) a sentence of that page. A test compares the names with the page. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <mcapi.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The nodes of the tests' descriptions: 1:1 and 1:2; 1:3 is never started. */
#define DOMAIN 1
#define NODE_A 1
#define NODE_B 2
#define NODE_NEVER 3

/* Longest that something may take that must happen. Machines that run tests are busy. */
#define SOON 20000u

static inline void fail_at(const char *file, int line, const char *what, mcapi_status_t got)
{
    char name[MCAPI_MAX_STATUS_MSG_LEN];
    const char *text = mcapi_display_status(got, name, sizeof name);
    fprintf(stderr, "%s:%d: %s; the status is %s (%u)\n", file, line, what, text ? text : "none", got);
    exit(1);
}

/* The call, which puts its status into `st`, gives this one. */
#define GIVES(row, code, call)                                                    \
    do {                                                                          \
        st = 0;                                                                   \
        call;                                                                     \
        if (st != (mcapi_status_t)MCAPI_##code)                                   \
            fail_at(__FILE__, __LINE__, "row " #row ": not " #code ": " #call, st); \
    } while (0)

/* The call gives SUCCESS; not what is tested here. */
#define OK(call)                                                      \
    do {                                                              \
        st = 0;                                                       \
        call;                                                         \
        if (st != MCAPI_SUCCESS)                                      \
            fail_at(__FILE__, __LINE__, "not SUCCESS: " #call, st); \
    } while (0)

/* A sentence of the page, or what belongs to the check before. */
#define PROVES(name, condition)                                               \
    do {                                                                      \
        if (!(condition))                                                     \
            fail_at(__FILE__, __LINE__, name " not so: " #condition, st); \
    } while (0)
#define WANT(condition) PROVES("check", condition)

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };
    nanosleep(&time, NULL);
}

static inline void initialize(mcapi_node_t node)
{
    mcapi_status_t st;
    mcapi_info_t info;
    mcapi_param_t garbage;
    memset(&garbage, 0xa5, sizeof garbage);
    OK(mcapi_initialize(DOMAIN, node, NULL, &garbage, &info, &st));
}

static inline void finalize(void)
{
    mcapi_status_t st;
    OK(mcapi_finalize(&st));
}

/* Waits for a request that `_i` began with this status; gives the size. */
static inline size_t completes_at(const char *file, int line, mcapi_request_t *request, mcapi_status_t began)
{
    mcapi_status_t st = began;
    size_t size = 0;
    if (began != MCAPI_SUCCESS && began != MCAPI_PENDING)
        fail_at(file, line, "did not begin", began);
    mcapi_wait(request, &size, SOON, &st);
    if (st != MCAPI_SUCCESS)
        fail_at(file, line, "does not complete", st);
    return size;
}
#define COMPLETES(request) completes_at(__FILE__, __LINE__, &(request), st)

/* Begins by the call and waits. */
#define DOES(call)                                                                      \
    do {                                                                                \
        st = 0;                                                                         \
        call;                                                                           \
        completes_at(__FILE__, __LINE__, &request, st);                                 \
    } while (0)

/* A channel within this node: both ends open. */
#define LOCAL_CHANNEL(kind, out, in)                                      \
    do {                                                                  \
        mcapi_request_t opens[2];                                         \
        DOES(mcapi_##kind##_connect_i(out##_end, in##_end, &request, &st)); \
        mcapi_##kind##_send_open_i(&out, out##_end, &opens[0], &st);      \
        WANT(st == MCAPI_PENDING);                                        \
        mcapi_##kind##_recv_open_i(&in, in##_end, &opens[1], &st);        \
        completes_at(__FILE__, __LINE__, &opens[1], st);                  \
        completes_at(__FILE__, __LINE__, &opens[0], MCAPI_PENDING);       \
    } while (0)

#define CLOSE_LOCAL_OF(kind, out, in) CLOSE_LOCAL(kind, out, in)

/* Closes both ends. */
#define CLOSE_LOCAL(kind, out, in)                                  \
    do {                                                            \
        mcapi_request_t closes[2];                                  \
        mcapi_##kind##_send_close_i(out, &closes[0], &st);          \
        WANT(st == MCAPI_PENDING || st == MCAPI_SUCCESS);           \
        mcapi_##kind##_recv_close_i(in, &closes[1], &st);           \
        completes_at(__FILE__, __LINE__, &closes[1], st);           \
        completes_at(__FILE__, __LINE__, &closes[0], MCAPI_PENDING); \
    } while (0)

/* The status attribute's bits that mean one thing. */
static inline mcapi_endp_attr_status_t status_of(mcapi_endpoint_t endpoint)
{
    mcapi_status_t st;
    mcapi_endp_attr_status_t bits = 0;
    OK(mcapi_endpoint_get_attribute(endpoint, MCAPI_ENDP_ATTR_ENDP_STATUS, &bits, sizeof bits, &st));
    return bits;
}

static inline void set_timeout(mcapi_endpoint_t endpoint, mcapi_timeout_t timeout)
{
    mcapi_status_t st;
    OK(mcapi_endpoint_set_attribute(endpoint, MCAPI_ENDP_ATTR_TIMEOUT, &timeout, sizeof timeout, &st));
}

#endif
