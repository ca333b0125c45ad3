/* What two nodes do with each other's endpoints and messages. */
#define ROLES 2
#include "roles.h"

#define PORT 100
#define LATE 300
#define COUNT 2000

/* Roles may be threads. */
static _Thread_local mcapi_endpoint_t mine, theirs;
static _Thread_local size_t size;

static mcapi_endpoint_t get(mcapi_node_t node, mcapi_port_t port)
{
    mcapi_status_t st;
    mcapi_endpoint_t endpoint;
    GIVES(10, SUCCESS, endpoint = mcapi_endpoint_get(DOMAIN, node, port, SOON, &st));
    return endpoint;
}

/* The first node asks before there is a second one. */
static void beginning(int me)
{
    mcapi_status_t st;
    if (me == 0) {
        initialize(NODE_A);
        OK(mine = mcapi_endpoint_create(PORT, &st));
        meet();
        GIVES(10, TIMEOUT, mcapi_endpoint_get(DOMAIN, NODE_B, PORT, MCAPI_TIMEOUT_IMMEDIATE, &st));
        theirs = get(NODE_B, PORT);
        PROVES("E1", theirs != mine);
    } else {
        meet();
        sleep_ms(50);
        initialize(NODE_B);
        sleep_ms(50);
        OK(mine = mcapi_endpoint_create(PORT, &st));
        theirs = get(NODE_A, PORT);
    }
    meet();
}

/* What only the owner may, and what anybody may. */
static void of_others(int me)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_uint_t value = 5;
    char byte;
    unsigned handle = 0;
    mcapi_node_attr_type_t type = 99;
    mcapi_endp_attr_get_source_t source;
    GIVES(7, SUCCESS, mcapi_node_get_attribute(DOMAIN, me ? NODE_A : NODE_B, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &st));
    WANT(type == MCAPI_NODE_ATTR_TYPE_REGULAR);
    GIVES(13, SUCCESS, mcapi_endpoint_get_attribute(theirs, MCAPI_ENDP_ATTR_NUM_PRIORITIES, &value, sizeof value, &st));
    WANT(value == MCAPI_MIN_PRORITY + 1);
    GIVES(13, SUCCESS, mcapi_endpoint_get_attribute(theirs, MCAPI_ENDP_ATTR_GET_SOURCE, &source, sizeof source, &st));
    PROVES("E7", source.domain_id == DOMAIN && source.node_id == (mcapi_node_t)(me ? NODE_B : NODE_A));
    GIVES(13, ERR_ATTR_SIZE, mcapi_endpoint_get_attribute(theirs, MCAPI_ENDP_ATTR_TIMEOUT, &value, 1, &st));
    GIVES(13, ERR_ATTR_NUM, mcapi_endpoint_get_attribute(theirs, MCAPI_ENDP_ATTR_END, &value, 4, &st));
    GIVES(14, ERR_ENDP_REMOTE, mcapi_endpoint_set_attribute(theirs, MCAPI_ENDP_ATTR_TIMEOUT, &value, sizeof value, &st));
    GIVES(12, ERR_ENDP_NOTOWNER, mcapi_endpoint_delete(theirs, &st));
    PROVES("E5", st == MCAPI_ERR_ENDP_NOTOWNER);
    GIVES(17, ERR_ENDP_INVALID, mcapi_msg_recv_i(theirs, &byte, 1, &request, &st));
    GIVES(18, ERR_ENDP_INVALID, mcapi_msg_recv(theirs, &byte, 1, &size, &st));
    GIVES(19, ERR_ENDP_INVALID, mcapi_msg_available(theirs, &st));
    GIVES(21, ERR_ENDP_INVALID, mcapi_pktchan_recv_open_i(&handle, theirs, &request, &st));
    GIVES(22, ERR_ENDP_INVALID, mcapi_pktchan_send_open_i(&handle, theirs, &request, &st));
    GIVES(33, ERR_ENDP_INVALID, mcapi_sclchan_recv_open_i(&handle, theirs, &request, &st));
    GIVES(34, ERR_ENDP_INVALID, mcapi_sclchan_send_open_i(&handle, theirs, &request, &st));
    GIVES(16, ERR_ENDP_INVALID, mcapi_msg_send(theirs, mine, "x", 1, 0, &st));
    PROVES("E7", handle == 0);
    meet();
}

/* A cancelled get leaves nothing at the other node; a waiting one is answered. */
static void gets(int me)
{
    mcapi_status_t st;
    mcapi_request_t cancelled, waiting;
    mcapi_endpoint_t none = 0, late = 0;
    mcapi_endp_attr_get_count_t count = 99;
    if (me == 0) {
        GIVES(9, PENDING, mcapi_endpoint_get_i(DOMAIN, NODE_B, LATE, &none, &cancelled, &st));
        OK(mcapi_cancel(&cancelled, &st));
        GIVES(9, PENDING, mcapi_endpoint_get_i(DOMAIN, NODE_B, LATE + 1, &late, &waiting, &st));
    }
    meet();
    if (me == 1) {
        OK(none = mcapi_endpoint_create(LATE, &st));
        OK(late = mcapi_endpoint_create(LATE + 1, &st));
        board->words[0] = late;
    }
    meet();
    if (me == 0) {
        st = MCAPI_PENDING;
        COMPLETES(waiting);
        WANT(late == board->words[0] && none == 0);
        GIVES(11, SUCCESS, mcapi_endpoint_release(late, &st));
        /* An answer after it, so that the release has come. */
        OK(mcapi_endpoint_get_attribute(late, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
        PROVES("E3", count == 0);
    }
    meet();
    if (me == 1) {
        OK(mcapi_endpoint_get_attribute(none, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
        PROVES("R7", count == 0);
        OK(mcapi_endpoint_delete(none, &st));
        OK(mcapi_endpoint_delete(late, &st));
    }
    meet();
}

/* An endpoint of the second node that both have. */
static mcapi_endpoint_t shared_endpoint(int me)
{
    mcapi_status_t st;
    mcapi_endpoint_t at = 0;
    if (me == 1)
        OK(at = mcapi_endpoint_create(LATE, &st));
    else
        at = get(NODE_B, LATE);
    meet();
    return at;
}

/* An endpoint that is created again is another one. */
static void stale(int me)
{
    mcapi_status_t st;
    mcapi_endpoint_t old = shared_endpoint(me), again = 0;
    mcapi_uint_t value;
    if (me == 1) {
        OK(mcapi_endpoint_delete(old, &st));
        OK(again = mcapi_endpoint_create(LATE, &st));
        PROVES("E6", again != old);
    }
    meet();
    if (me == 0) {
        GIVES(16, SUCCESS, mcapi_msg_send(mine, old, "dropped", 7, 0, &st));
        PROVES("M7", st == MCAPI_SUCCESS);
        GIVES(13, ERR_ENDP_INVALID, mcapi_endpoint_get_attribute(old, MCAPI_ENDP_ATTR_TYPE, &value, sizeof value, &st));
        WANT(get(NODE_B, LATE) != old);
    }
    meet();
    if (me == 1) {
        PROVES("E6", mcapi_msg_available(again, &st) == 0 && st == MCAPI_SUCCESS);
        OK(mcapi_endpoint_delete(again, &st));
    }
    meet();
}

/* A send that has succeeded can be cancelled, whichever way it went: it is released, and what was sent stays. */
static void cancelled_too_late(int me)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t at = shared_endpoint(me);
    if (me == 0) {
        mcapi_msg_send_i(mine, at, "first", 5, 0, &request, &st);
        /* Behind it: so the first has arrived too. */
        OK(mcapi_msg_send(mine, at, "second", 6, 0, &st));
        OK(mcapi_cancel(&request, &st));
        mcapi_cancel(&request, &st);
        WANT(st == MCAPI_ERR_REQUEST_INVALID);
    }
    meet();
    if (me == 1) {
        WANT(mcapi_msg_available(at, &st) == 2);
        OK(mcapi_endpoint_delete(at, &st));
    }
    meet();
}

/* What the first node knows by name, the second one connects: the first hears so when it sends. */
static void connected_meanwhile(int me)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t at = 0, end = 0;
    if (me == 1) {
        OK(at = mcapi_endpoint_create(LATE, &st));
        board->words[0] = at;
        OK(end = mcapi_endpoint_create(LATE + 1, &st));
        DOES(mcapi_pktchan_connect_i(end, at, &request, &st));
    }
    meet();
    if (me == 0) {
        at = board->words[0];
        /* The news is on its way; a message that overtakes it is received. */
        do
            mcapi_msg_send(mine, at, "x", 1, 0, &st);
        while (st == MCAPI_SUCCESS);
        GIVES(16, ERR_GENERAL, mcapi_msg_send(mine, at, "x", 1, 0, &st));
        GIVES(15, ERR_GENERAL, mcapi_msg_send_i(mine, at, "x", 1, 0, &request, &st));
        GIVES(47, ERR_GENERAL, mcapi_wait(&request, &size, SOON, &st));
        PROVES("M8", st == MCAPI_ERR_GENERAL);
    }
    meet();
    if (me == 1) {
        OK(mcapi_endpoint_release(at, &st));
        OK(mcapi_endpoint_delete(end, &st));
        OK(mcapi_endpoint_delete(at, &st));
    }
    meet();
}

/* The receiving end was got, and connected, by the other node, as programs do; nobody opens it, and its owner gives it up. */
static void given_up(int me)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t out = 0, in = 0;
    uint64_t begin = now_ms();
    if (me == 1)
        OK(in = mcapi_endpoint_create(LATE + 2, &st));
    else
        OK(out = mcapi_endpoint_create(LATE + 2, &st));
    meet();
    if (me == 0) {
        in = get(NODE_B, LATE + 2);
        DOES(mcapi_pktchan_connect_i(out, in, &request, &st));
    }
    meet();
    if (me == 1) {
        GIVES(12, ERR_CHAN_CONNECTED, mcapi_endpoint_delete(in, &st));
        GIVES(11, SUCCESS, mcapi_endpoint_release(in, &st));
        mcapi_endpoint_delete(in, &st);
        PROVES("E9", st == MCAPI_SUCCESS);
    }
    meet();
    if (me == 0) {
        /* The news is on its way. */
        do {
            mcapi_endpoint_delete(out, &st);
            WANT(now_ms() - begin < SOON);
        } while (st == MCAPI_ERR_CHAN_CONNECTED);
        PROVES("E9", st == MCAPI_SUCCESS);
    }
    meet();
}

static void wait_for_messages(mcapi_uint_t count)
{
    mcapi_status_t st = 0;
    uint64_t begin = now_ms();
    while (mcapi_msg_available(mine, &st) < count)
        WANT(now_ms() - begin < SOON);
}

/* What was sent with SUCCESS is there: counted at once. */
static void counted(int me)
{
    mcapi_status_t st;
    char text[16];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 20 && me == 0; i++)
            OK(mcapi_msg_send(mine, theirs, "counted", 7, 1, &st));
        meet();
        if (me == 1)
            GIVES(19, SUCCESS, PROVES("M11", mcapi_msg_available(mine, &st) == 20));
        for (int i = 0; i < 20 && me == 1; i++)
            OK(mcapi_msg_recv(mine, text, sizeof text, &size, &st));
        meet();
    }
}

/* Sent in another order than received; counted first, or received at once after both sides have met. */
static void priorities(int me, int counts)
{
    static const char *const order[] = { "0 one", "0 two", "1 one", "1 two", "3 one" };
    mcapi_status_t st;
    char text[16];
    if (me == 0) {
        OK(mcapi_msg_send(mine, theirs, "3 one", 5, 3, &st));
        OK(mcapi_msg_send(mine, theirs, "1 one", 5, 1, &st));
        OK(mcapi_msg_send(mine, theirs, "0 one", 5, 0, &st));
        OK(mcapi_msg_send(mine, theirs, "1 two", 5, 1, &st));
        OK(mcapi_msg_send(mine, theirs, "0 two", 5, 0, &st));
        if (!counts)
            meet();
    } else {
        if (counts)
            wait_for_messages(5);
        else
            meet();
        for (int i = 0; i < 5; i++) {
            GIVES(18, SUCCESS, mcapi_msg_recv(mine, text, sizeof text, &size, &st));
            PROVES("M1", size == 5 && memcmp(text, order[i], 5) == 0);
        }
    }
    meet();
}

/* Lengths there and back. */
static void lengths(int me)
{
    static _Thread_local unsigned char data[MCAPI_MAX_MESSAGE_SIZE], back[MCAPI_MAX_MESSAGE_SIZE];
    const size_t all[] = { 0, 1, 35, 36, 37, 60, 95, 96, 700, 701, 5000, 16384, 65536 };
    mcapi_status_t st;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (me == 0) {
            for (size_t j = 0; j < all[i]; j++)
                data[j] = (unsigned char)(i + j * 3 + j / 256);
            GIVES(16, SUCCESS, mcapi_msg_send(mine, theirs, data, all[i], 0, &st));
            GIVES(18, SUCCESS, mcapi_msg_recv(mine, back, sizeof back, &size, &st));
            PROVES("M3", size == all[i] && memcmp(back, data, size) == 0);
        } else {
            OK(mcapi_msg_recv(mine, data, sizeof data, &size, &st));
            WANT(size == all[i]);
            OK(mcapi_msg_send(mine, theirs, data, size, 0, &st));
        }
    }
    meet();
}

/* More than fits: the sender waits, nothing is lost, the order stays. Then the same without waiting. */
static void many(int me)
{
    static _Thread_local mcapi_request_t requests[COUNT];
    mcapi_status_t st;
    unsigned n;
    if (me == 0) {
        for (n = 0; n < COUNT; n++)
            GIVES(16, SUCCESS, mcapi_msg_send(mine, theirs, &n, sizeof n, n % 4 == 3, &st));
    } else {
        unsigned next[2] = { 0, 3 };
        sleep_ms(50);
        for (int i = 0; i < COUNT; i++) {
            OK(mcapi_msg_recv(mine, &n, sizeof n, &size, &st));
            int urgent = n % 4 == 3;
            PROVES("M10", n == next[urgent]);
            next[urgent] = urgent ? n + 4 : n + 1 + (n % 4 == 2);
        }
    }
    meet();
    if (me == 0) {
        for (n = 0; n < COUNT; n++) {
            uint64_t begin = now_ms();
            do {
                mcapi_msg_send_i(mine, theirs, &n, sizeof n, 0, &requests[n], &st);
                WANT(now_ms() - begin < SOON);
            } while (st == MCAPI_ERR_MEM_LIMIT);
            WANT(st == MCAPI_SUCCESS || st == MCAPI_PENDING);
        }
        st = MCAPI_PENDING;
        for (n = 0; n < COUNT; n++)
            WANT(COMPLETES(requests[n]) == sizeof n);
    } else {
        for (unsigned i = 0; i < COUNT; i++) {
            mcapi_request_t request;
            mcapi_msg_recv_i(mine, &n, sizeof n, &request, &st);
            WANT(COMPLETES(request) == sizeof n);
            PROVES("M10", n == i);
        }
    }
    meet();
}

/* The other node's free buffers can be seen: the throttle. */
static void throttle(int me)
{
    mcapi_status_t st;
    mcapi_endp_attr_num_recv_buffers_t before, after;
    if (me == 0) {
        OK(mcapi_endpoint_get_attribute(theirs, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &before, sizeof before, &st));
        OK(mcapi_msg_send(mine, theirs, "a", 1, 0, &st));
        OK(mcapi_msg_send(mine, theirs, "b", 1, 0, &st));
        meet();
        OK(mcapi_endpoint_get_attribute(theirs, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &after, sizeof after, &st));
        PROVES("E7", after == before - 2);
    } else {
        meet();
        wait_for_messages(2);
    }
    meet();
}

/* The other node ends. */
static void ending(int me)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_endpoint_t late;
    if (me == 1) {
        finalize();
        meet();
        meet();
        initialize(NODE_B);
        OK(mcapi_endpoint_create(LATE, &st));
    } else {
        meet();
        mcapi_msg_send(mine, theirs, "x", 1, 0, &st);
        PROVES("M7", st == MCAPI_SUCCESS || st == MCAPI_ERR_TRANSMISSION);
        mcapi_endpoint_get_i(DOMAIN, NODE_B, LATE, &late, &request, &st);
        WANT(st == MCAPI_PENDING);
        meet();
        COMPLETES(request);
        PROVES("N4", late != theirs);
    }
    meet();
    finalize();
}

static void role(int me)
{
    beginning(me);
    of_others(me);
    gets(me);
    stale(me);
    cancelled_too_late(me);
    connected_meanwhile(me);
    given_up(me);
    counted(me);
    for (int round = 0; round < 20; round++)
        priorities(me, round % 2);
    lengths(me);
    many(me);
    throttle(me);
    ending(me);
}
