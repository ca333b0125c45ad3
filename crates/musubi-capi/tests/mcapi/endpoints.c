/* Rows 8 to 14: endpoints and their attributes, within one node. */
#include "check.h"

#define GARBAGE 0xdeadbeef

static void create_and_delete(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t one, any, again;
    GIVES(8, ERR_PORT_INVALID, mcapi_endpoint_create(MCAPI_MAX_PORT + 1, &st));
    GIVES(8, SUCCESS, one = mcapi_endpoint_create(100, &st));
    GIVES(8, ERR_ENDP_EXISTS, mcapi_endpoint_create(100, &st));
    GIVES(8, SUCCESS, any = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
    WANT(any != one && (int)one >= 0);
    GIVES(12, ERR_ENDP_INVALID, mcapi_endpoint_delete(GARBAGE, &st));
    GIVES(12, ERR_ENDP_INVALID, mcapi_endpoint_delete(0, &st));
    GIVES(12, SUCCESS, mcapi_endpoint_delete(one, &st));
    GIVES(12, ERR_ENDP_INVALID, mcapi_endpoint_delete(one, &st));
    OK(again = mcapi_endpoint_create(100, &st));
    PROVES("E6", again != one);
    GIVES(19, ERR_ENDP_INVALID, mcapi_msg_available(one, &st));
    GIVES(12, ERR_ENDP_INVALID, mcapi_endpoint_delete(one, &st));
    OK(mcapi_endpoint_delete(again, &st));
    OK(mcapi_endpoint_delete(any, &st));
    /* Largest port, smallest port. */
    OK(one = mcapi_endpoint_create(MCAPI_MAX_PORT, &st));
    OK(again = mcapi_endpoint_create(MCAPI_MIN_PORT, &st));
    OK(mcapi_endpoint_delete(one, &st));
    GIVES(8, ERR_ENDP_EXISTS, mcapi_endpoint_create(0, &st));
    GIVES(10, SUCCESS, WANT(mcapi_endpoint_get(DOMAIN, NODE_A, 0, SOON, &st) == again));
    GIVES(8, ERR_PORT_INVALID, mcapi_endpoint_create((mcapi_port_t)-2, &st));
    OK(mcapi_endpoint_delete(again, &st));
}

/* All endpoints that a node can have, and one more. */
static void as_many_as_there_are(void)
{
    static mcapi_endpoint_t all[MCAPI_MAX_ENDPOINTS];
    mcapi_status_t st;
    for (int i = 0; i < MCAPI_MAX_ENDPOINTS; i++)
        OK(all[i] = mcapi_endpoint_create(i % 2 == 0 ? (mcapi_port_t)MCAPI_PORT_ANY : (mcapi_port_t)i, &st));
    GIVES(8, ERR_PORT_INVALID, mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
    GIVES(8, ERR_PORT_INVALID, mcapi_endpoint_create(2, &st));
    GIVES(8, ERR_ENDP_EXISTS, mcapi_endpoint_create(1, &st));
    for (int i = 0; i < MCAPI_MAX_ENDPOINTS; i++)
        OK(mcapi_endpoint_delete(all[i], &st));
}

static void get(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t own, got = 0, later = 0;
    size_t size = 99;
    uint64_t begin;
    GIVES(9, ERR_DOMAIN_INVALID, mcapi_endpoint_get_i(MCAPI_MAX_DOMAIN + 1, NODE_A, 100, &got, &request, &st));
    GIVES(9, ERR_NODE_INVALID, mcapi_endpoint_get_i(DOMAIN, MCAPI_MAX_NODE + 1, 100, &got, &request, &st));
    GIVES(9, ERR_PORT_INVALID, mcapi_endpoint_get_i(DOMAIN, NODE_A, MCAPI_MAX_PORT + 1, &got, &request, &st));
    GIVES(9, ERR_PORT_INVALID, mcapi_endpoint_get_i(DOMAIN, NODE_A, (mcapi_port_t)MCAPI_PORT_ANY, &got, &request, &st));
    GIVES(9, ERR_PARAMETER, mcapi_endpoint_get_i(DOMAIN, NODE_A, 100, NULL, &request, &st));
    GIVES(9, ERR_PARAMETER, mcapi_endpoint_get_i(DOMAIN, NODE_A, 100, &got, NULL, &st));
    GIVES(10, ERR_DOMAIN_INVALID, mcapi_endpoint_get(MCAPI_MAX_DOMAIN + 1, NODE_A, 100, 0, &st));
    GIVES(10, ERR_NODE_INVALID, mcapi_endpoint_get(DOMAIN, MCAPI_MAX_NODE + 1, 100, 0, &st));
    GIVES(10, ERR_PORT_INVALID, mcapi_endpoint_get(DOMAIN, NODE_A, MCAPI_MAX_PORT + 1, 0, &st));
    GIVES(10, TIMEOUT, mcapi_endpoint_get(DOMAIN, NODE_A, 100, MCAPI_TIMEOUT_IMMEDIATE, &st));
    begin = now_ms();
    GIVES(10, TIMEOUT, mcapi_endpoint_get(DOMAIN, NODE_A, 100, 50, &st));
    WANT(now_ms() - begin >= 49);
    /* Neither the port nor the node is there yet: that is no error. */
    begin = now_ms();
    GIVES(10, TIMEOUT, mcapi_endpoint_get(DOMAIN, NODE_NEVER, 100, 50, &st));
    PROVES("E1", now_ms() - begin >= 49);
    GIVES(9, PENDING, mcapi_endpoint_get_i(DOMAIN, NODE_A, 100, &later, &request, &st));
    PROVES("E2", later == 0);
    OK(own = mcapi_endpoint_create(100, &st));
    OK(mcapi_wait(&request, &size, SOON, &st));
    PROVES("E1", later == own && size == 99);
    GIVES(10, SUCCESS, got = mcapi_endpoint_get(DOMAIN, NODE_A, 100, MCAPI_TIMEOUT_IMMEDIATE, &st));
    WANT(got == own);
    GIVES(9, SUCCESS, mcapi_endpoint_get_i(DOMAIN, NODE_A, 100, &got, &request, &st));
    WANT(got == own);
    COMPLETES(request);
    /* What was cancelled or timed out has left nothing behind. */
    mcapi_endp_attr_get_count_t count = 99;
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
    PROVES("E3", count == 3);
    GIVES(11, ERR_ENDP_INVALID, mcapi_endpoint_release(GARBAGE, &st));
    for (int i = 0; i < 3; i++)
        GIVES(11, SUCCESS, mcapi_endpoint_release(own, &st));
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
    WANT(count == 0);
    OK(mcapi_endpoint_delete(own, &st));
    GIVES(11, ERR_ENDP_INVALID, mcapi_endpoint_release(own, &st));
}

static void *cancels(void *request)
{
    mcapi_status_t st;
    sleep_ms(50);
    OK(mcapi_cancel(request, &st));
    return NULL;
}

/* An infinite get of what never appears is ended by a cancellation. */
static void cancelled_get(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t got = 0, own;
    size_t size;
    pthread_t thread;
    mcapi_endpoint_get_i(DOMAIN, NODE_NEVER, 9, &got, &request, &st);
    WANT(st == MCAPI_PENDING);
    WANT(pthread_create(&thread, NULL, cancels, &request) == 0);
    GIVES(47, ERR_REQUEST_CANCELLED, mcapi_wait(&request, &size, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE, &st));
    pthread_join(thread, NULL);
    mcapi_endpoint_get_i(DOMAIN, NODE_A, 9, &got, &request, &st);
    OK(mcapi_cancel(&request, &st));
    OK(own = mcapi_endpoint_create(9, &st));
    mcapi_endp_attr_get_count_t count = 99;
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
    PROVES("R7", count == 0 && got == 0);
    OK(mcapi_endpoint_delete(own, &st));
}

/* An endpoint that is for a channel has one getter. */
static void get_limit(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t own, got;
    mcapi_endp_attr_type_t type = MCAPI_ENDP_ATTR_TYPE_PKTCHAN;
    mcapi_request_t request;
    OK(own = mcapi_endpoint_create(101, &st));
    OK(mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_TYPE, &type, sizeof type, &st));
    OK(mcapi_endpoint_get(DOMAIN, NODE_A, 101, SOON, &st));
    GIVES(10, ERR_ENDP_GET_LIMIT, mcapi_endpoint_get(DOMAIN, NODE_A, 101, SOON, &st));
    GIVES(9, ERR_ENDP_GET_LIMIT, mcapi_endpoint_get_i(DOMAIN, NODE_A, 101, &got, &request, &st));
    mcapi_endp_attr_get_count_t count = 99;
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
    PROVES("E4", count == 1);
    OK(mcapi_endpoint_delete(own, &st));
}

/* What a new endpoint has. */
static void defaults(mcapi_endpoint_t own)
{
    mcapi_status_t st;
    mcapi_endp_attr_get_source_t source = { 1, 1 };
    const struct {
        mcapi_uint_t number, value;
    } words[] = {
        { MCAPI_ENDP_ATTR_TYPE, MCAPI_ENDP_ATTR_TYPE_MESSAGE },
        { MCAPI_ENDP_ATTR_GET_COUNT, 0 },
        { MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, MCAPI_MAX_MESSAGE_SIZE },
        { MCAPI_ENDP_ATTR_BUFFER_TYPE, MCAPI_ENDP_ATTR_FIFO_BUFFER },
        { MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_LOCAL_MEMORY | MCAPI_ENDP_ATTR_BLOCK_ON_MEM_LIMIT },
        { MCAPI_ENDP_ATTR_NUM_PRIORITIES, MCAPI_MIN_PRORITY + 1 },
        { MCAPI_ENDP_ATTR_PRIORITY, MCAPI_MAX_PRORITY },
        { MCAPI_ENDP_ATTR_ENDP_STATUS, 0 },
        { MCAPI_ENDP_ATTR_TIMEOUT, (mcapi_uint_t)MCAPI_TIMEOUT_INFINITE },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        mcapi_uint_t value = 12345;
        GIVES(13, SUCCESS, mcapi_endpoint_get_attribute(own, words[i].number, &value, sizeof value, &st));
        PROVES("section 2.4", value == words[i].value);
    }
    GIVES(13, SUCCESS, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_GET_SOURCE, &source, sizeof source, &st));
    WANT(source.domain_id == (mcapi_domain_t)MCAPI_DOMAIN_INVALID && source.node_id == (mcapi_node_t)MCAPI_NODE_INVALID);
    mcapi_endp_attr_num_send_buffers_t sending = 0;
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS, &sending, sizeof sending, &st));
    WANT(sending > 0);
}

static void attributes(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t own;
    mcapi_uint_t value = 77, before, after;
    OK(own = mcapi_endpoint_create(102, &st));
    defaults(own);
    GIVES(13, ERR_ENDP_INVALID, mcapi_endpoint_get_attribute(GARBAGE, 0, &value, sizeof value, &st));
    GIVES(13, ERR_ATTR_NUM, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_END, &value, sizeof value, &st));
    GIVES(13, ERR_ATTR_NUM, mcapi_endpoint_get_attribute(own, 0x7fffffff, &value, sizeof value, &st));
    GIVES(13, ERR_ATTR_SIZE, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, &value, 3, &st));
    GIVES(13, ERR_ATTR_SIZE, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_GET_SOURCE, &value, 4, &st));
    GIVES(13, ERR_ATTR_NOTSUPPORTED, mcapi_endpoint_get_attribute(own, mcapi_start_endp_attribute(0), &value, 4, &st));
    GIVES(13, ERR_PARAMETER, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, NULL, 4, &st));
    WANT(value == 77);
    GIVES(14, ERR_ENDP_INVALID, mcapi_endpoint_set_attribute(GARBAGE, MCAPI_ENDP_ATTR_TIMEOUT, &value, 4, &st));
    GIVES(14, ERR_ATTR_NUM, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_END, &value, 4, &st));
    GIVES(14, ERR_ATTR_SIZE, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, &value, 8, &st));
    GIVES(14, ERR_ATTR_NOTSUPPORTED, mcapi_endpoint_set_attribute(own, mcapi_start_endp_attribute(1), &value, 4, &st));
    GIVES(14, ERR_PARAMETER, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, NULL, 4, &st));
    GIVES(14, ERR_ATTR_READONLY, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_GET_COUNT, &value, 4, &st));
    GIVES(14, ERR_ATTR_READONLY, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_ENDP_STATUS, &value, 4, &st));
    GIVES(14, ERR_ATTR_READONLY, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &value, 4, &st));
    GIVES(14, ERR_ATTR_VALUE, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_BUFFER_TYPE, &value, 4, &st));
    GIVES(14, ERR_ATTR_VALUE, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_PRIORITY, &value, 4, &st));
    GIVES(14, ERR_ATTR_VALUE, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_NUM_PRIORITIES, &value, 4, &st));
    value = 3;
    GIVES(14, ERR_ATTR_VALUE, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_MEMORY_TYPE, &value, 4, &st));
    value = 1234;
    GIVES(14, SUCCESS, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, &value, 4, &st));
    GIVES(14, SUCCESS, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &value, 4, &st));
    value = 0;
    GIVES(13, SUCCESS, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, &value, sizeof value, &st));
    WANT(value == 1234);
    /* The throttle: receive buffers that are free. */
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &before, sizeof before, &st));
    OK(mcapi_msg_send(own, own, "x", 1, 0, &st));
    OK(mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &after, sizeof after, &st));
    PROVES("section 2.4", after == before - 1);
    OK(mcapi_endpoint_delete(own, &st));
    GIVES(13, ERR_ENDP_INVALID, mcapi_endpoint_get_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, &value, sizeof value, &st));
    GIVES(14, ERR_ENDP_INVALID, mcapi_endpoint_set_attribute(own, MCAPI_ENDP_ATTR_TIMEOUT, &value, sizeof value, &st));
}

/* Nothing of a connected endpoint can be set, and it cannot be deleted; one that waits to be connected can. */
static void connected(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t out_end, in_end, lone;
    mcapi_pktchan_send_hndl_t out;
    mcapi_pktchan_recv_hndl_t in;
    mcapi_timeout_t timeout = 5;
    size_t size;
    OK(out_end = mcapi_endpoint_create(110, &st));
    OK(in_end = mcapi_endpoint_create(111, &st));
    OK(lone = mcapi_endpoint_create(112, &st));
    OK(mcapi_endpoint_get(DOMAIN, NODE_A, 111, SOON, &st));
    LOCAL_CHANNEL(pktchan, out, in);
    GIVES(12, ERR_CHAN_CONNECTED, mcapi_endpoint_delete(out_end, &st));
    GIVES(12, ERR_CHAN_CONNECTED, mcapi_endpoint_delete(in_end, &st));
    GIVES(14, ERR_CHAN_CONNECTED, mcapi_endpoint_set_attribute(in_end, MCAPI_ENDP_ATTR_TIMEOUT, &timeout, 4, &st));
    PROVES("E8", st == MCAPI_ERR_CHAN_CONNECTED);
    GIVES(9, ERR_ENDP_GET_LIMIT, mcapi_endpoint_get_i(DOMAIN, NODE_A, 111, &lone, &request, &st));
    GIVES(10, ERR_ENDP_GET_LIMIT, mcapi_endpoint_get(DOMAIN, NODE_A, 110, SOON, &st));
    PROVES("E4", st == MCAPI_ERR_ENDP_GET_LIMIT);
    CLOSE_LOCAL(pktchan, out, in);
    GIVES(12, SUCCESS, mcapi_endpoint_delete(out_end, &st));
    GIVES(12, SUCCESS, mcapi_endpoint_delete(in_end, &st));
    OK(lone = mcapi_endpoint_get(DOMAIN, NODE_A, 112, SOON, &st));
    GIVES(21, PENDING, mcapi_pktchan_recv_open_i(&in, lone, &request, &st));
    GIVES(12, SUCCESS, mcapi_endpoint_delete(lone, &st));
    GIVES(21, ERR_ENDP_DELETED, mcapi_wait(&request, &size, SOON, &st));
    PROVES("E5", st == MCAPI_ERR_ENDP_DELETED);
}

/* What is connected and opened by nobody is given up by its owner. */
static void given_up(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t one, two;
    mcapi_request_t request;
    OK(one = mcapi_endpoint_create(120, &st));
    OK(two = mcapi_endpoint_create(121, &st));
    for (int by_sender = 0; by_sender < 2; by_sender++) {
        DOES(mcapi_pktchan_connect_i(one, two, &request, &st));
        GIVES(12, ERR_CHAN_CONNECTED, mcapi_endpoint_delete(two, &st));
        GIVES(11, SUCCESS, mcapi_endpoint_release(by_sender ? one : two, &st));
        PROVES("E9", (status_of(one) & MUSUBI_ENDP_STATUS_CONNECTED) == 0);
        PROVES("E9", (status_of(two) & MUSUBI_ENDP_STATUS_CONNECTED) == 0);
    }
    OK(mcapi_endpoint_delete(one, &st));
    OK(mcapi_endpoint_delete(two, &st));
}

int main(void)
{
    initialize(NODE_A);
    create_and_delete();
    as_many_as_there_are();
    get();
    cancelled_get();
    get_limit();
    attributes();
    connected();
    given_up();
    finalize();
    return 0;
}
