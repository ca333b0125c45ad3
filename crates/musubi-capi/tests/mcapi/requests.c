/* Rows 46 to 49: test, wait, wait_any, cancel, within one node. */
#include "check.h"

#define GARBAGE 0xdeadbeef
#define FOREVER ((mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE)

static mcapi_endpoint_t a, b;
static char buffer[64];
static size_t size;

static void refused(void)
{
    mcapi_status_t st;
    mcapi_request_t request = GARBAGE, *requests[2] = { &request, NULL };
    GIVES(46, ERR_REQUEST_INVALID, WANT(!mcapi_test(&request, &size, &st)));
    GIVES(46, ERR_PARAMETER, WANT(!mcapi_test(NULL, &size, &st)));
    GIVES(46, ERR_PARAMETER, WANT(!mcapi_test(&request, NULL, &st)));
    GIVES(47, ERR_REQUEST_INVALID, WANT(!mcapi_wait(&request, &size, FOREVER, &st)));
    GIVES(47, ERR_PARAMETER, mcapi_wait(NULL, &size, FOREVER, &st));
    GIVES(47, ERR_PARAMETER, mcapi_wait(&request, NULL, FOREVER, &st));
    GIVES(48, ERR_REQUEST_INVALID, WANT(mcapi_wait_any(1, requests, &size, FOREVER, &st) == (mcapi_uint_t)MCAPI_RETURN_VALUE_INVALID));
    GIVES(48, ERR_PARAMETER, WANT(mcapi_wait_any(0, requests, &size, FOREVER, &st) == (mcapi_uint_t)MCAPI_RETURN_VALUE_INVALID));
    GIVES(48, ERR_PARAMETER, mcapi_wait_any(2, requests, &size, FOREVER, &st));
    GIVES(48, ERR_PARAMETER, mcapi_wait_any(1, NULL, &size, FOREVER, &st));
    GIVES(48, ERR_PARAMETER, mcapi_wait_any(1, requests, NULL, FOREVER, &st));
    GIVES(48, ERR_PARAMETER, mcapi_wait_any((size_t)-1, requests, &size, FOREVER, &st));
    GIVES(49, ERR_REQUEST_INVALID, mcapi_cancel(&request, &st));
    GIVES(49, ERR_PARAMETER, mcapi_cancel(NULL, &st));
    request = 0;
    GIVES(46, ERR_REQUEST_INVALID, mcapi_test(&request, &size, &st));
}

static void tested_and_waited(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    uint64_t begin;
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &request, &st));
    GIVES(46, PENDING, WANT(!mcapi_test(&request, &size, &st)));
    GIVES(47, TIMEOUT, WANT(!mcapi_wait(&request, &size, MCAPI_TIMEOUT_IMMEDIATE, &st)));
    begin = now_ms();
    GIVES(47, TIMEOUT, WANT(!mcapi_wait(&request, &size, 50, &st)));
    PROVES("R4", now_ms() - begin >= 49 && now_ms() - begin < SOON);
    OK(mcapi_msg_send(a, b, "hello", 5, 0, &st));
    size = 0;
    GIVES(46, SUCCESS, WANT(mcapi_test(&request, &size, &st)));
    PROVES("R3", size == 5 && memcmp(buffer, "hello", 5) == 0);
    /* A test does not release it. */
    size = 0;
    GIVES(46, SUCCESS, WANT(mcapi_test(&request, &size, &st)));
    PROVES("R1", size == 5);
    size = 0;
    GIVES(47, SUCCESS, WANT(mcapi_wait(&request, &size, FOREVER, &st)));
    PROVES("R1", size == 5);
    GIVES(47, ERR_REQUEST_INVALID, mcapi_wait(&request, &size, FOREVER, &st));
    GIVES(46, ERR_REQUEST_INVALID, mcapi_test(&request, &size, &st));
    GIVES(49, ERR_REQUEST_INVALID, mcapi_cancel(&request, &st));
    PROVES("R1", st == MCAPI_ERR_REQUEST_INVALID);
}

static void any(void)
{
    mcapi_status_t st;
    mcapi_request_t one, two, three, *requests[3] = { &one, &two, &three };
    mcapi_endpoint_t got = 0;
    char first[8], second[8];
    GIVES(17, PENDING, mcapi_msg_recv_i(a, first, sizeof first, &one, &st));
    GIVES(17, PENDING, mcapi_msg_recv_i(b, second, sizeof second, &two, &st));
    GIVES(9, PENDING, mcapi_endpoint_get_i(DOMAIN, NODE_A, 400, &got, &three, &st));
    GIVES(48, TIMEOUT, WANT(mcapi_wait_any(3, requests, &size, 0, &st) == (mcapi_uint_t)MCAPI_RETURN_VALUE_INVALID));
    GIVES(48, TIMEOUT, mcapi_wait_any(3, requests, &size, 20, &st));
    OK(mcapi_msg_send(a, b, "two", 3, 0, &st));
    GIVES(48, SUCCESS, WANT(mcapi_wait_any(3, requests, &size, FOREVER, &st) == 1));
    PROVES("R3", size == 3 && memcmp(second, "two", 3) == 0);
    GIVES(48, ERR_REQUEST_INVALID, mcapi_wait_any(3, requests, &size, 0, &st));
    requests[1] = &three;
    OK(mcapi_msg_send(b, a, "one", 3, 0, &st));
    GIVES(48, SUCCESS, WANT(mcapi_wait_any(2, requests, &size, FOREVER, &st) == 0));
    mcapi_endpoint_t created;
    OK(created = mcapi_endpoint_create(400, &st));
    size = 77;
    GIVES(48, SUCCESS, WANT(mcapi_wait_any(1, &requests[2], &size, FOREVER, &st) == 0));
    PROVES("R3", got == created && size == 77);
    OK(mcapi_endpoint_delete(created, &st));
}

static void *canceller(void *request)
{
    mcapi_status_t st;
    sleep_ms(50);
    OK(mcapi_cancel(request, &st));
    return NULL;
}

static void cancelled(void)
{
    mcapi_status_t st;
    mcapi_request_t request, other, *requests[2] = { &other, &request };
    pthread_t thread;
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &request, &st));
    GIVES(49, SUCCESS, mcapi_cancel(&request, &st));
    GIVES(46, ERR_REQUEST_INVALID, WANT(!mcapi_test(&request, &size, &st)));
    GIVES(49, ERR_REQUEST_INVALID, mcapi_cancel(&request, &st));
    GIVES(47, ERR_REQUEST_CANCELLED, mcapi_wait(&request, &size, FOREVER, &st));
    GIVES(47, ERR_REQUEST_INVALID, mcapi_wait(&request, &size, FOREVER, &st));
    memset(buffer, 'x', sizeof buffer);
    char next[8] = "";
    OK(mcapi_msg_send(a, b, "next", 4, 0, &st));
    PROVES("R6", mcapi_msg_available(b, &st) == 1 && buffer[0] == 'x');
    OK(mcapi_msg_recv(b, next, sizeof next, &size, &st));
    PROVES("R6", size == 4 && memcmp(next, "next", 4) == 0);
    /* Waiters hear of it. */
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &request, &st));
    WANT(pthread_create(&thread, NULL, canceller, &request) == 0);
    GIVES(47, ERR_REQUEST_CANCELLED, WANT(!mcapi_wait(&request, &size, FOREVER, &st)));
    PROVES("R5", st == MCAPI_ERR_REQUEST_CANCELLED);
    pthread_join(thread, NULL);
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &request, &st));
    GIVES(17, PENDING, mcapi_msg_recv_i(a, next, sizeof next, &other, &st));
    WANT(pthread_create(&thread, NULL, canceller, &request) == 0);
    GIVES(48, ERR_REQUEST_CANCELLED, WANT(mcapi_wait_any(2, requests, &size, FOREVER, &st) == (mcapi_uint_t)MCAPI_RETURN_VALUE_INVALID));
    PROVES("R5", st == MCAPI_ERR_REQUEST_CANCELLED);
    pthread_join(thread, NULL);
    OK(mcapi_cancel(&other, &st));
}

/* What has completed cannot be cancelled any more, and is not lost. */
static void cancelled_too_late(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &request, &st));
    OK(mcapi_msg_send(a, b, "late", 4, 0, &st));
    GIVES(49, ERR_REQUEST_INVALID, mcapi_cancel(&request, &st));
    GIVES(47, SUCCESS, mcapi_wait(&request, &size, FOREVER, &st));
    WANT(size == 4 && memcmp(buffer, "late", 4) == 0);
}

static mcapi_request_t shared;

static void *waiter(void *unused)
{
    mcapi_status_t st;
    size_t got;
    (void)unused;
    do {
        mcapi_wait(&shared, &got, FOREVER, &st);
    } while (st == MCAPI_ERR_WAIT_PENDING);
    WANT(st == MCAPI_SUCCESS);
    return NULL;
}

static void two_waiters(void)
{
    mcapi_status_t st;
    mcapi_request_t *requests[1] = { &shared };
    pthread_t thread;
    uint64_t begin = now_ms();
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &shared, &st));
    WANT(pthread_create(&thread, NULL, waiter, NULL) == 0);
    do {
        /* In between nobody waits, so that the thread comes to it whatever the scheduler. */
        sleep_ms(2);
        mcapi_wait(&shared, &size, 1, &st);
        WANT(now_ms() - begin < SOON);
    } while (st == MCAPI_TIMEOUT);
    PROVES("R5", st == MCAPI_ERR_WAIT_PENDING);
    GIVES(47, ERR_WAIT_PENDING, WANT(!mcapi_wait(&shared, &size, FOREVER, &st)));
    GIVES(48, ERR_WAIT_PENDING, mcapi_wait_any(1, requests, &size, FOREVER, &st));
    OK(mcapi_msg_send(a, b, "x", 1, 0, &st));
    pthread_join(thread, NULL);
}

/* How an operation failed comes out of test and wait: also for one that failed at once. */
static void failed(void)
{
    mcapi_status_t st;
    mcapi_request_t request, *requests[1] = { &request };
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, 2, &request, &st));
    OK(mcapi_msg_send(a, b, "long", 4, 0, &st));
    GIVES(46, ERR_MSG_TRUNCATED, WANT(!mcapi_test(&request, &size, &st)));
    PROVES("R8", size == 2);
    /* A loop that looks at the returned value only ends. */
    GIVES(46, ERR_MSG_TRUNCATED, WANT(mcapi_test(&request, &size, &st)));
    GIVES(47, ERR_MSG_TRUNCATED, WANT(!mcapi_wait(&request, &size, FOREVER, &st)));
    GIVES(47, ERR_REQUEST_INVALID, mcapi_wait(&request, &size, FOREVER, &st));
    GIVES(15, ERR_PRIORITY, mcapi_msg_send_i(a, b, "x", 1, 99, &request, &st));
    GIVES(46, ERR_PRIORITY, mcapi_test(&request, &size, &st));
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, 2, &request, &st));
    OK(mcapi_msg_send(a, b, "long", 4, 0, &st));
    GIVES(48, ERR_MSG_TRUNCATED, WANT(mcapi_wait_any(1, requests, &size, FOREVER, &st) == (mcapi_uint_t)MCAPI_RETURN_VALUE_INVALID));
}

/* A request means something on its own node only. */
static void *other_node(void *request)
{
    mcapi_status_t st;
    size_t got;
    initialize(NODE_B);
    GIVES(46, ERR_REQUEST_INVALID, mcapi_test(request, &got, &st));
    GIVES(49, ERR_REQUEST_INVALID, mcapi_cancel(request, &st));
    PROVES("R9", st == MCAPI_ERR_REQUEST_INVALID);
    finalize();
    return NULL;
}

static void of_another_node(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    pthread_t thread;
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, sizeof buffer, &request, &st));
    WANT(pthread_create(&thread, NULL, other_node, &request) == 0);
    pthread_join(thread, NULL);
    OK(mcapi_cancel(&request, &st));
}

int main(void)
{
    mcapi_status_t st;
    initialize(NODE_A);
    OK(a = mcapi_endpoint_create(100, &st));
    OK(b = mcapi_endpoint_create(200, &st));
    refused();
    tested_and_waited();
    any();
    cancelled();
    cancelled_too_late();
    two_waiters();
    failed();
    of_another_node();
    finalize();
    return 0;
}
