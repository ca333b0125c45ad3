/* Rows 1 to 7 and 50, 51: nodes, and names for people. One process; nodes are its threads. */
#include "check.h"

#define GARBAGE 0xdeadbeef

/* Every function says NOTINIT before it looks at anything else, and touches nothing. */
static void without_a_node(void)
{
    mcapi_status_t st;
    mcapi_request_t request = 7, *requests[1] = { &request };
    mcapi_endpoint_t endpoint = 8;
    unsigned handle = 9, value = 10;
    void *buffer = &value;
    size_t size = 11;
    GIVES(2, ERR_NODE_NOTINIT, mcapi_finalize(&st));
    GIVES(3, ERR_NODE_NOTINIT, WANT(mcapi_domain_id_get(&st) == (mcapi_domain_t)MCAPI_DOMAIN_INVALID));
    GIVES(4, ERR_NODE_NOTINIT, WANT(mcapi_node_id_get(&st) == (mcapi_node_t)MCAPI_NODE_INVALID));
    GIVES(7, ERR_NODE_NOTINIT, mcapi_node_get_attribute(9999, 9999, 99, NULL, 0, &st));
    GIVES(8, ERR_NODE_NOTINIT, mcapi_endpoint_create(0, &st));
    GIVES(9, ERR_NODE_NOTINIT, mcapi_endpoint_get_i(9999, 9999, 99999, NULL, NULL, &st));
    GIVES(10, ERR_NODE_NOTINIT, mcapi_endpoint_get(9999, 9999, 99999, 0, &st));
    GIVES(11, ERR_NODE_NOTINIT, mcapi_endpoint_release(GARBAGE, &st));
    GIVES(12, ERR_NODE_NOTINIT, mcapi_endpoint_delete(GARBAGE, &st));
    GIVES(13, ERR_NODE_NOTINIT, mcapi_endpoint_get_attribute(GARBAGE, 99, NULL, 0, &st));
    GIVES(14, ERR_NODE_NOTINIT, mcapi_endpoint_set_attribute(GARBAGE, 99, NULL, 0, &st));
    GIVES(15, ERR_NODE_NOTINIT, mcapi_msg_send_i(GARBAGE, GARBAGE, NULL, 1, 99, NULL, &st));
    GIVES(16, ERR_NODE_NOTINIT, mcapi_msg_send(GARBAGE, GARBAGE, NULL, 1, 99, &st));
    GIVES(17, ERR_NODE_NOTINIT, mcapi_msg_recv_i(GARBAGE, NULL, 1, NULL, &st));
    GIVES(18, ERR_NODE_NOTINIT, mcapi_msg_recv(GARBAGE, NULL, 1, NULL, &st));
    GIVES(19, ERR_NODE_NOTINIT, WANT(mcapi_msg_available(GARBAGE, &st) == 0));
    GIVES(20, ERR_NODE_NOTINIT, mcapi_pktchan_connect_i(GARBAGE, GARBAGE, NULL, &st));
    GIVES(21, ERR_NODE_NOTINIT, mcapi_pktchan_recv_open_i(NULL, GARBAGE, NULL, &st));
    GIVES(22, ERR_NODE_NOTINIT, mcapi_pktchan_send_open_i(NULL, GARBAGE, NULL, &st));
    GIVES(23, ERR_NODE_NOTINIT, mcapi_pktchan_send_i(GARBAGE, NULL, 1, NULL, &st));
    GIVES(24, ERR_NODE_NOTINIT, mcapi_pktchan_send(GARBAGE, NULL, 1, &st));
    GIVES(25, ERR_NODE_NOTINIT, mcapi_pktchan_recv_i(GARBAGE, NULL, NULL, &st));
    GIVES(26, ERR_NODE_NOTINIT, mcapi_pktchan_recv(GARBAGE, NULL, NULL, &st));
    GIVES(27, ERR_NODE_NOTINIT, WANT(mcapi_pktchan_available(GARBAGE, &st) == 0));
    GIVES(28, ERR_NODE_NOTINIT, mcapi_pktchan_release(buffer, &st));
    GIVES(29, ERR_NODE_NOTINIT, WANT(!mcapi_pktchan_release_test(buffer, &st)));
    GIVES(30, ERR_NODE_NOTINIT, mcapi_pktchan_recv_close_i(GARBAGE, NULL, &st));
    GIVES(31, ERR_NODE_NOTINIT, mcapi_pktchan_send_close_i(GARBAGE, NULL, &st));
    GIVES(32, ERR_NODE_NOTINIT, mcapi_sclchan_connect_i(GARBAGE, GARBAGE, NULL, &st));
    GIVES(33, ERR_NODE_NOTINIT, mcapi_sclchan_recv_open_i(NULL, GARBAGE, NULL, &st));
    GIVES(34, ERR_NODE_NOTINIT, mcapi_sclchan_send_open_i(NULL, GARBAGE, NULL, &st));
    GIVES(35, ERR_NODE_NOTINIT, mcapi_sclchan_send_uint64(GARBAGE, 1, &st));
    GIVES(36, ERR_NODE_NOTINIT, mcapi_sclchan_send_uint32(GARBAGE, 1, &st));
    GIVES(37, ERR_NODE_NOTINIT, mcapi_sclchan_send_uint16(GARBAGE, 1, &st));
    GIVES(38, ERR_NODE_NOTINIT, mcapi_sclchan_send_uint8(GARBAGE, 1, &st));
    GIVES(39, ERR_NODE_NOTINIT, mcapi_sclchan_recv_uint64(GARBAGE, &st));
    GIVES(40, ERR_NODE_NOTINIT, mcapi_sclchan_recv_uint32(GARBAGE, &st));
    GIVES(41, ERR_NODE_NOTINIT, mcapi_sclchan_recv_uint16(GARBAGE, &st));
    GIVES(42, ERR_NODE_NOTINIT, mcapi_sclchan_recv_uint8(GARBAGE, &st));
    GIVES(43, ERR_NODE_NOTINIT, WANT(mcapi_sclchan_available(GARBAGE, &st) == 0));
    GIVES(44, ERR_NODE_NOTINIT, mcapi_sclchan_recv_close_i(GARBAGE, NULL, &st));
    GIVES(45, ERR_NODE_NOTINIT, mcapi_sclchan_send_close_i(GARBAGE, NULL, &st));
    GIVES(46, ERR_NODE_NOTINIT, WANT(!mcapi_test(NULL, NULL, &st)));
    GIVES(47, ERR_NODE_NOTINIT, WANT(!mcapi_wait(NULL, NULL, 0, &st)));
    GIVES(48, ERR_NODE_NOTINIT, WANT(mcapi_wait_any(0, NULL, NULL, 0, &st) == (mcapi_uint_t)MCAPI_RETURN_VALUE_INVALID));
    GIVES(48, ERR_NODE_NOTINIT, mcapi_wait_any(1, requests, &size, 0, &st));
    GIVES(49, ERR_NODE_NOTINIT, mcapi_cancel(NULL, &st));
    GIVES(9, ERR_NODE_NOTINIT, mcapi_endpoint_get_i(DOMAIN, NODE_A, 5, &endpoint, &request, &st));
    GIVES(21, ERR_NODE_NOTINIT, mcapi_pktchan_recv_open_i(&handle, GARBAGE, &request, &st));
    mcapi_display_state(NULL);
    PROVES("N5", request == 7 && endpoint == 8 && handle == 9 && value == 10 && size == 11);
}

static void initialize_refuses(void)
{
    mcapi_status_t st;
    mcapi_info_t info;
    mcapi_node_attributes_t attributes;
    GIVES(1, ERR_PARAMETER, mcapi_initialize(DOMAIN, NODE_A, NULL, NULL, NULL, &st));
    GIVES(1, ERR_DOMAIN_INVALID, mcapi_initialize(MCAPI_MAX_DOMAIN + 1, NODE_A, NULL, NULL, &info, &st));
    GIVES(1, ERR_DOMAIN_INVALID, mcapi_initialize((mcapi_domain_t)MCAPI_DOMAIN_INVALID, NODE_A, NULL, NULL, &info, &st));
    GIVES(1, ERR_NODE_INVALID, mcapi_initialize(DOMAIN, MCAPI_MAX_NODE + 1, NULL, NULL, &info, &st));
    GIVES(1, ERR_NODE_INVALID, mcapi_initialize(DOMAIN, (mcapi_node_t)MCAPI_NODE_INVALID, NULL, NULL, &info, &st));
    memset(&attributes, 0xa5, sizeof attributes);
    GIVES(1, ERR_PARAMETER, mcapi_initialize(DOMAIN, NODE_A, &attributes, NULL, &info, &st));
}

static void attributes_of_a_node_to_be(void)
{
    mcapi_status_t st;
    mcapi_info_t info;
    mcapi_node_attributes_t attributes;
    mcapi_node_attr_type_t type = MCAPI_NODE_ATTR_TYPE_REGULAR;
    memset(&attributes, 0, sizeof attributes);
    GIVES(1, SUCCESS, mcapi_initialize(DOMAIN, NODE_A, &attributes, NULL, &info, &st));
    finalize();
    GIVES(5, ERR_PARAMETER, mcapi_node_init_attributes(NULL, &st));
    GIVES(5, SUCCESS, mcapi_node_init_attributes(&attributes, &st));
    GIVES(6, SUCCESS, mcapi_node_set_attribute(&attributes, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &st));
    GIVES(6, ERR_PARAMETER, mcapi_node_set_attribute(NULL, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &st));
    GIVES(6, ERR_PARAMETER, mcapi_node_set_attribute(&attributes, MCAPI_NODE_ATTR_TYPE, NULL, sizeof type, &st));
    GIVES(6, ERR_ATTR_NUM, mcapi_node_set_attribute(&attributes, MCAPI_NODE_ATTR_END, &type, sizeof type, &st));
    GIVES(6, ERR_ATTR_SIZE, mcapi_node_set_attribute(&attributes, MCAPI_NODE_ATTR_TYPE, &type, 1, &st));
    type = MCAPI_NODE_ATTR_TYPE_END;
    GIVES(6, ERR_ATTR_VALUE, mcapi_node_set_attribute(&attributes, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &st));
    GIVES(1, SUCCESS, mcapi_initialize(DOMAIN, NODE_A, &attributes, NULL, &info, &st));
    WANT(info.mcapi_version == MCAPI_VERSION && info.organization_id == MCA_ORG_ID_TBA);
    WANT(info.number_of_domains >= 1 && info.number_of_nodes >= 3);
    WANT(info.number_of_ports == MCAPI_MAX_PORT - MCAPI_MIN_PORT + 1);
    WANT(strcmp(info.impl_info->implementation, "Musubi") == 0 && info.impl_info->version[0] != 0);
}

static void attributes_of_a_node(void)
{
    mcapi_status_t st;
    mcapi_node_attr_type_t type = 99;
    GIVES(7, ERR_DOMAIN_INVALID, mcapi_node_get_attribute(MCAPI_MAX_DOMAIN + 1, NODE_A, 0, &type, sizeof type, &st));
    GIVES(7, ERR_NODE_INVALID, mcapi_node_get_attribute(DOMAIN, MCAPI_MAX_NODE + 1, 0, &type, sizeof type, &st));
    GIVES(7, ERR_ATTR_NUM, mcapi_node_get_attribute(DOMAIN, NODE_A, MCAPI_NODE_ATTR_END, &type, sizeof type, &st));
    GIVES(7, ERR_ATTR_SIZE, mcapi_node_get_attribute(DOMAIN, NODE_A, MCAPI_NODE_ATTR_TYPE, &type, 2, &st));
    GIVES(7, ERR_PARAMETER, mcapi_node_get_attribute(DOMAIN, NODE_A, MCAPI_NODE_ATTR_TYPE, NULL, sizeof type, &st));
    WANT(type == 99);
    GIVES(7, SUCCESS, mcapi_node_get_attribute(DOMAIN, NODE_A, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &st));
    WANT(type == MCAPI_NODE_ATTR_TYPE_REGULAR);
}

static void who_am_i(void)
{
    mcapi_status_t st;
    mcapi_info_t info;
    GIVES(3, SUCCESS, WANT(mcapi_domain_id_get(&st) == DOMAIN));
    GIVES(4, SUCCESS, WANT(mcapi_node_id_get(&st) == NODE_A));
    GIVES(1, ERR_NODE_INITIALIZED, mcapi_initialize(DOMAIN, NODE_A, NULL, NULL, &info, &st));
    GIVES(1, ERR_NODE_INITIALIZED, mcapi_initialize(DOMAIN, NODE_B, NULL, NULL, &info, &st));
}

/* A thread that never initialises is of the process's first node; one that does is a node of its own. */
static void *helper(void *argument)
{
    mcapi_status_t st;
    mcapi_info_t info;
    (void)argument;
    st = 0;
    PROVES("N1", mcapi_node_id_get(&st) == NODE_A && st == MCAPI_SUCCESS);
    GIVES(1, ERR_NODE_INITIALIZED, mcapi_initialize(DOMAIN, NODE_A, NULL, NULL, &info, &st));
    OK(mcapi_initialize(DOMAIN, NODE_B, NULL, NULL, &info, &st));
    PROVES("N1", mcapi_node_id_get(&st) == NODE_B);
    OK(mcapi_finalize(&st));
    GIVES(4, ERR_NODE_NOTINIT, mcapi_node_id_get(&st));
    return NULL;
}

static void *forgets_to_finalize(void *argument)
{
    (void)argument;
    initialize(NODE_B);
    return NULL;
}

static void threads(void)
{
    pthread_t thread;
    mcapi_status_t st = 0;
    WANT(pthread_create(&thread, NULL, helper, NULL) == 0);
    pthread_join(thread, NULL);
    /* The number of a thread that ended without a word is free again. */
    for (int i = 0; i < 2; i++) {
        WANT(pthread_create(&thread, NULL, forgets_to_finalize, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

/* Blocked in other threads when the node ends. */
static void *blocked_receive(void *endpoint)
{
    mcapi_status_t st;
    char byte;
    size_t size;
    GIVES(18, ERR_NODE_NOTINIT, mcapi_msg_recv(*(mcapi_endpoint_t *)endpoint, &byte, 1, &size, &st));
    return NULL;
}

static void *blocked_wait(void *unused)
{
    mcapi_status_t st;
    mcapi_endpoint_t endpoint;
    mcapi_request_t request;
    size_t size;
    (void)unused;
    mcapi_endpoint_get_i(DOMAIN, NODE_A, 77, &endpoint, &request, &st);
    WANT(st == MCAPI_PENDING);
    GIVES(47, ERR_NODE_NOTINIT, mcapi_wait(&request, &size, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE, &st));
    return NULL;
}

static void finalize_wakes(void)
{
    mcapi_status_t st;
    pthread_t receiving, waiting;
    mcapi_endpoint_t endpoint;
    OK(endpoint = mcapi_endpoint_create(50, &st));
    WANT(pthread_create(&receiving, NULL, blocked_receive, &endpoint) == 0);
    WANT(pthread_create(&waiting, NULL, blocked_wait, NULL) == 0);
    sleep_ms(50);
    GIVES(2, SUCCESS, mcapi_finalize(&st));
    pthread_join(receiving, NULL);
    pthread_join(waiting, NULL);
    PROVES("N3", mcapi_msg_available(endpoint, &st) == 0 && st == MCAPI_ERR_NODE_NOTINIT);
}

static void again_and_again(void)
{
    mcapi_status_t st = 0;
    for (int i = 0; i < 50; i++) {
        mcapi_endpoint_t endpoint;
        initialize(NODE_A);
        OK(endpoint = mcapi_endpoint_create(60, &st));
        OK(mcapi_msg_send(endpoint, endpoint, "lost", 4, 0, &st));
        finalize();
    }
    initialize(NODE_A);
    mcapi_endpoint_t endpoint;
    OK(endpoint = mcapi_endpoint_create(60, &st));
    PROVES("N4", mcapi_msg_available(endpoint, &st) == 0 && st == MCAPI_SUCCESS);
    finalize();
    without_a_node();
}

static void null_statuses(void)
{
    mcapi_status_t st = 0;
    mcapi_info_t info;
    mcapi_initialize(DOMAIN, NODE_A, NULL, NULL, &info, NULL);
    PROVES("R10", mcapi_node_id_get(NULL) == NODE_A);
    mcapi_endpoint_create(0, NULL);
    mcapi_finalize(NULL);
    mcapi_finalize(NULL);
    PROVES("R10", mcapi_node_id_get(&st) == (mcapi_node_t)MCAPI_NODE_INVALID);
}

static void names(void)
{
    mcapi_status_t st = 0;
    char text[MCAPI_MAX_STATUS_MSG_LEN], small[8], large[2 * MCAPI_MAX_STATUS_MSG_LEN];
    for (mcapi_status_t code = MCAPI_SUCCESS; code < MCAPI_STATUSCODE_END; code++) {
        st = code;
        PROVES("row 50", mcapi_display_status(code, text, sizeof text) == text);
        PROVES("row 50", strncmp(text, "MCAPI_", 6) == 0 && strlen(text) < sizeof text);
        for (size_t size = 1; size <= sizeof small; size++) {
            memset(small, 'x', sizeof small);
            mcapi_display_status(code, small, size);
            PROVES("row 50", strlen(small) == size - 1 && strncmp(small, text, size - 1) == 0);
            PROVES("row 50", size == sizeof small || small[size] == 'x');
        }
    }
    mcapi_display_status(MCAPI_ERR_ATTR_INCOMPATIBLE, text, sizeof text);
    PROVES("row 50", strcmp(text, "MCAPI_ERR_ATTR_INCOMPATIBLE") == 0);
    PROVES("row 50", mcapi_display_status(0, text, sizeof text) == NULL && text[0] == 0);
    text[0] = 'x';
    PROVES("row 50", mcapi_display_status(MCAPI_STATUSCODE_END, text, sizeof text) == NULL && text[0] == 0);
    PROVES("row 50", mcapi_display_status((mcapi_status_t)-1, text, 1) == NULL);
    PROVES("row 50", mcapi_display_status(MCAPI_SUCCESS, NULL, 10) == NULL);
    text[0] = 'x';
    PROVES("row 50", mcapi_display_status(MCAPI_SUCCESS, text, 0) == NULL && text[0] == 'x');
    /* Whatever the status: the last byte is a NUL. */
    for (mcapi_status_t code = 0; code <= MCAPI_STATUSCODE_END; code++) {
        memset(large, 'x', sizeof large);
        mcapi_display_status(code, large, sizeof large);
        PROVES("row 50", large[sizeof large - 1] == 0);
    }
    mcapi_set_debug_level(6);
    mcapi_set_debug_level(0);
}

static int ended_first;

static void *is_being_cancelled(void *unused)
{
    mcapi_status_t st;
    mcapi_endpoint_t endpoint;
    char byte = 7;
    size_t size;
    (void)unused;
    pthread_cancel(pthread_self());
    initialize(NODE_A);
    OK(endpoint = mcapi_endpoint_create(1, &st));
    OK(mcapi_msg_send(endpoint, endpoint, &byte, 1, 0, &st));
    OK(mcapi_msg_recv(endpoint, &byte, 1, &size, &st));
    mcapi_endpoint_get(DOMAIN, NODE_NEVER, 1, 50, &st);
    WANT(st == MCAPI_TIMEOUT);
    finalize();
    ended_first = 1;
    pthread_testcancel();
    return NULL;
}

/* A thread that is being cancelled comes out of the library first: no call is a cancellation point. */
static void cancelled_thread(void)
{
    mcapi_status_t st = 0;
    pthread_t thread;
    void *how;
    WANT(pthread_create(&thread, NULL, is_being_cancelled, NULL) == 0);
    WANT(pthread_join(thread, &how) == 0);
    WANT(how == PTHREAD_CANCELED && ended_first);
}

int main(void)
{
    names();
    without_a_node();
    initialize_refuses();
    without_a_node();
    attributes_of_a_node_to_be();
    attributes_of_a_node();
    who_am_i();
    threads();
    finalize_wakes();
    without_a_node();
    again_and_again();
    null_statuses();
    cancelled_thread();
    return 0;
}
