/* Rows 15 to 19: messages within one node. */
#include "check.h"

#define GARBAGE 0xdeadbeef

static mcapi_endpoint_t a, b;
static mcapi_request_t request;
static char buffer[64];
static size_t size;

static void send_refuses(void)
{
    static char large[MCAPI_MAX_MESSAGE_SIZE + 1];
    mcapi_status_t st;
    GIVES(15, ERR_ENDP_INVALID, mcapi_msg_send_i(GARBAGE, b, "x", 1, 0, &request, &st));
    GIVES(15, ERR_ENDP_INVALID, mcapi_msg_send_i(a, GARBAGE, "x", 1, 0, &request, &st));
    GIVES(15, ERR_MSG_SIZE, mcapi_msg_send_i(a, b, large, sizeof large, 0, &request, &st));
    GIVES(15, ERR_MSG_SIZE, mcapi_msg_send_i(a, b, large, (size_t)-1, 0, &request, &st));
    GIVES(15, ERR_PRIORITY, mcapi_msg_send_i(a, b, "x", 1, MCAPI_MIN_PRORITY + 1, &request, &st));
    GIVES(15, ERR_PARAMETER, mcapi_msg_send_i(a, b, NULL, 1, 0, &request, &st));
    GIVES(15, ERR_PARAMETER, mcapi_msg_send_i(a, b, "x", 1, 0, NULL, &st));
    GIVES(16, ERR_ENDP_INVALID, mcapi_msg_send(GARBAGE, b, "x", 1, 0, &st));
    GIVES(16, ERR_ENDP_INVALID, mcapi_msg_send(a, GARBAGE, "x", 1, 0, &st));
    GIVES(16, ERR_ENDP_INVALID, mcapi_msg_send(a, 0, "x", 1, 0, &st));
    GIVES(16, ERR_MSG_SIZE, mcapi_msg_send(a, b, large, sizeof large, 0, &st));
    GIVES(16, ERR_MSG_SIZE, mcapi_msg_send(a, b, large, (size_t)-1, 0, &st));
    GIVES(16, ERR_PRIORITY, mcapi_msg_send(a, b, "x", 1, MCAPI_MIN_PRORITY + 1, &st));
    GIVES(16, ERR_PRIORITY, mcapi_msg_send(a, b, "x", 1, (mcapi_priority_t)-1, &st));
    GIVES(16, ERR_PARAMETER, mcapi_msg_send(a, b, NULL, 1, 0, &st));
    PROVES("M9", mcapi_msg_available(b, &st) == 0 && st == MCAPI_SUCCESS);
}

static void receive_refuses(void)
{
    mcapi_status_t st;
    GIVES(17, ERR_ENDP_INVALID, mcapi_msg_recv_i(GARBAGE, buffer, sizeof buffer, &request, &st));
    GIVES(17, ERR_PARAMETER, mcapi_msg_recv_i(b, NULL, 1, &request, &st));
    GIVES(17, ERR_PARAMETER, mcapi_msg_recv_i(b, buffer, sizeof buffer, NULL, &st));
    GIVES(18, ERR_ENDP_INVALID, mcapi_msg_recv(GARBAGE, buffer, sizeof buffer, &size, &st));
    GIVES(18, ERR_PARAMETER, mcapi_msg_recv(b, NULL, 1, &size, &st));
    GIVES(18, ERR_PARAMETER, mcapi_msg_recv(b, buffer, sizeof buffer, NULL, &st));
    GIVES(19, ERR_ENDP_INVALID, WANT(mcapi_msg_available(GARBAGE, &st) == 0));
}

/* The largest, the empty, and lengths around what is carried in one piece. */
static void all_lengths(void)
{
    static unsigned char out[MCAPI_MAX_MESSAGE_SIZE], in[MCAPI_MAX_MESSAGE_SIZE];
    const size_t lengths[] = { 0, 1, 7, 8, 35, 36, 37, 59, 60, 61, 94, 95, 96, 97, 128, 700, 701, 4096, 65535, 65536 };
    mcapi_status_t st;
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t length = lengths[i];
        GIVES(16, SUCCESS, mcapi_msg_send(a, b, length ? out : NULL, length, i % (MCAPI_MIN_PRORITY + 1), &st));
        GIVES(19, SUCCESS, PROVES("M3", mcapi_msg_available(b, &st) == 1));
        size = 12345;
        memset(in, 0, sizeof in);
        GIVES(18, SUCCESS, mcapi_msg_recv(b, length ? in : NULL, length, &size, &st));
        PROVES("M3", size == length && memcmp(in, out, length) == 0);
    }
    mcapi_endp_attr_max_payload_size_t largest = 0;
    OK(mcapi_endpoint_get_attribute(a, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &largest, sizeof largest, &st));
    PROVES("M4", largest == MCAPI_MAX_MESSAGE_SIZE);
}

static void expect(const char *text)
{
    mcapi_status_t st;
    memset(buffer, 0, sizeof buffer);
    OK(mcapi_msg_recv(b, buffer, sizeof buffer, &size, &st));
    PROVES("M1", size == strlen(text) && memcmp(buffer, text, size) == 0);
}

/* Most urgent first; in order within a priority. */
static void priorities(void)
{
    mcapi_status_t st;
    OK(mcapi_msg_send(a, b, "3 first", 7, 3, &st));
    OK(mcapi_msg_send(a, b, "1 first", 7, 1, &st));
    OK(mcapi_msg_send(a, b, "0 first", 7, 0, &st));
    OK(mcapi_msg_send(a, b, "1 second", 8, 1, &st));
    OK(mcapi_msg_send(a, b, "3 second", 8, 3, &st));
    OK(mcapi_msg_send(a, b, "0 second", 8, MCAPI_MAX_PRORITY, &st));
    expect("0 first");
    expect("0 second");
    expect("1 first");
    expect("1 second");
    expect("3 first");
    expect("3 second");
}

/* Receives that wait are served in their order by what arrives, whatever its priority. */
static void waiting_receives(void)
{
    mcapi_status_t st;
    mcapi_request_t first, second;
    char one[16] = "", two[16] = "";
    GIVES(17, PENDING, mcapi_msg_recv_i(b, one, sizeof one, &first, &st));
    GIVES(17, PENDING, mcapi_msg_recv_i(b, two, sizeof two, &second, &st));
    GIVES(15, SUCCESS, mcapi_msg_send_i(a, b, "late", 4, 3, &request, &st));
    COMPLETES(request);
    OK(mcapi_msg_send(a, b, "urgent", 6, 0, &st));
    st = MCAPI_PENDING;
    PROVES("M2", COMPLETES(first) == 4 && memcmp(one, "late", 4) == 0);
    PROVES("M2", COMPLETES(second) == 6 && memcmp(two, "urgent", 6) == 0);
    OK(mcapi_msg_send(a, b, "there", 5, 0, &st));
    memset(one, 0, sizeof one);
    GIVES(17, SUCCESS, mcapi_msg_recv_i(b, one, sizeof one, &first, &st));
    /* Filled at once where it has completed at once. */
    WANT(memcmp(one, "there", 5) == 0);
    WANT(COMPLETES(first) == 5);
}

static void truncated(void)
{
    mcapi_status_t st;
    memset(buffer, 'x', sizeof buffer);
    OK(mcapi_msg_send(a, b, "0123456789", 10, 0, &st));
    GIVES(18, ERR_MSG_TRUNCATED, mcapi_msg_recv(b, buffer, 4, &size, &st));
    PROVES("M5", size == 4 && memcmp(buffer, "0123xxxx", 8) == 0);
    PROVES("M5", mcapi_msg_available(b, &st) == 0);
    OK(mcapi_msg_send(a, b, "0123456789", 10, 0, &st));
    GIVES(17, ERR_MSG_TRUNCATED, mcapi_msg_recv_i(b, buffer, 4, &request, &st));
    GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, 4, &request, &st));
    OK(mcapi_msg_send(a, b, "abcdefghij", 10, 0, &st));
    size = 0;
    GIVES(47, ERR_MSG_TRUNCATED, mcapi_wait(&request, &size, SOON, &st));
    PROVES("M5", size == 4 && memcmp(buffer, "abcdxxxx", 8) == 0);
}

/* Timeouts of blocking calls, and what sends that do not wait say to a full endpoint. */
static void limits(void)
{
    static mcapi_request_t many[MCA_MAX_REQUESTS];
    mcapi_status_t st;
    uint64_t begin;
    int queued = 0, taken = 0;
    set_timeout(b, MCAPI_TIMEOUT_IMMEDIATE);
    GIVES(18, TIMEOUT, mcapi_msg_recv(b, buffer, sizeof buffer, &size, &st));
    set_timeout(b, 50);
    begin = now_ms();
    GIVES(18, TIMEOUT, mcapi_msg_recv(b, buffer, sizeof buffer, &size, &st));
    PROVES("M6", now_ms() - begin >= 49);
    set_timeout(a, 50);
    do {
        st = 0;
        mcapi_msg_send(a, b, "fill", 4, 0, &st);
        taken += st == MCAPI_SUCCESS;
    } while (st == MCAPI_SUCCESS && taken < 100000);
    GIVES(16, TIMEOUT, mcapi_msg_send(a, b, "over", 4, 0, &st));
    set_timeout(a, MCAPI_TIMEOUT_IMMEDIATE);
    GIVES(16, TIMEOUT, mcapi_msg_send(a, b, "over", 4, 0, &st));
    GIVES(15, PENDING, mcapi_msg_send_i(a, b, "wait", 4, 0, &many[queued++], &st));
    do {
        st = 0;
        mcapi_msg_send_i(a, b, "wait", 4, 0, &many[queued], &st);
        queued += st == MCAPI_PENDING;
    } while (st == MCAPI_PENDING && queued < MCA_MAX_REQUESTS);
    GIVES(15, ERR_MEM_LIMIT, mcapi_msg_send_i(a, b, "over", 4, 0, &request, &st));
    PROVES("M6", queued > 0);
    set_timeout(b, SOON);
    for (int i = 0; i < taken + queued; i++) {
        OK(mcapi_msg_recv(b, buffer, sizeof buffer, &size, &st));
        PROVES("M6", size == 4 && memcmp(buffer, i < taken ? "fill" : "wait", 4) == 0);
    }
    st = MCAPI_PENDING;
    for (int i = 0; i < queued; i++)
        WANT(COMPLETES(many[i]) == 4);
    /* The attribute that says to fail rather than to wait. */
    mcapi_endp_attr_memory_type_t fail = MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT;
    OK(mcapi_endpoint_set_attribute(a, MCAPI_ENDP_ATTR_MEMORY_TYPE, &fail, sizeof fail, &st));
    set_timeout(a, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE);
    for (int i = 0; i < taken; i++)
        OK(mcapi_msg_send(a, b, "fill", 4, 0, &st));
    mcapi_msg_send(a, b, "over", 4, 0, &st);
    PROVES("section 2.4", st == MCAPI_ERR_MEM_LIMIT);
    for (int i = 0; i < taken; i++)
        OK(mcapi_msg_recv(b, buffer, sizeof buffer, &size, &st));
    fail = 0;
    OK(mcapi_endpoint_set_attribute(a, MCAPI_ENDP_ATTR_MEMORY_TYPE, &fail, sizeof fail, &st));
}

/* All requests that a node can have, waiting; and what drops out of them. */
static void request_limit(void)
{
    static mcapi_request_t many[MCA_MAX_REQUESTS];
    mcapi_status_t st;
    mcapi_endpoint_t got;
    mcapi_pktchan_recv_hndl_t in;
    for (int i = 0; i < MCA_MAX_REQUESTS; i++)
        GIVES(17, PENDING, mcapi_msg_recv_i(b, buffer, 1, &many[i], &st));
    GIVES(17, ERR_REQUEST_LIMIT, mcapi_msg_recv_i(b, buffer, 1, &request, &st));
    GIVES(15, ERR_REQUEST_LIMIT, mcapi_msg_send_i(b, a, "x", 1, 0, &request, &st));
    GIVES(9, ERR_REQUEST_LIMIT, mcapi_endpoint_get_i(DOMAIN, NODE_A, 500, &got, &request, &st));
    GIVES(20, ERR_REQUEST_LIMIT, mcapi_pktchan_connect_i(a, b, &request, &st));
    GIVES(32, ERR_REQUEST_LIMIT, mcapi_sclchan_connect_i(a, b, &request, &st));
    GIVES(21, ERR_REQUEST_LIMIT, mcapi_pktchan_recv_open_i(&in, b, &request, &st));
    GIVES(22, ERR_REQUEST_LIMIT, mcapi_pktchan_send_open_i(&in, b, &request, &st));
    GIVES(33, ERR_REQUEST_LIMIT, mcapi_sclchan_recv_open_i(&in, b, &request, &st));
    GIVES(34, ERR_REQUEST_LIMIT, mcapi_sclchan_send_open_i(&in, b, &request, &st));
    GIVES(23, ERR_REQUEST_LIMIT, mcapi_pktchan_send_i(1, "x", 1, &request, &st));
    GIVES(25, ERR_REQUEST_LIMIT, mcapi_pktchan_recv_i(1, (void **)&many, &request, &st));
    GIVES(30, ERR_REQUEST_LIMIT, mcapi_pktchan_recv_close_i(1, &request, &st));
    GIVES(31, ERR_REQUEST_LIMIT, mcapi_pktchan_send_close_i(1, &request, &st));
    GIVES(44, ERR_REQUEST_LIMIT, mcapi_sclchan_recv_close_i(1, &request, &st));
    GIVES(45, ERR_REQUEST_LIMIT, mcapi_sclchan_send_close_i(1, &request, &st));
    for (int i = 0; i < MCA_MAX_REQUESTS; i++)
        OK(mcapi_cancel(&many[i], &st));
    OK(mcapi_msg_send(a, b, "kept", 4, 0, &st));
    expect("kept");
}

/* A program that tests and never waits may go on for ever. */
static void tested_and_never_waited_for(void)
{
    mcapi_status_t st;
    for (int i = 0; i < 3 * MCA_MAX_REQUESTS; i++) {
        GIVES(15, SUCCESS, mcapi_msg_send_i(a, b, &i, sizeof i, 0, &request, &st));
        while (!mcapi_test(&request, &size, &st)) {
        }
        PROVES("R2", st == MCAPI_SUCCESS && size == sizeof i);
        int got = -1;
        GIVES(17, SUCCESS, mcapi_msg_recv_i(b, &got, sizeof got, &request, &st));
        PROVES("R2", got == i && mcapi_test(&request, &size, &st) && size == sizeof got);
    }
}

static void dropped(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t gone, again;
    OK(gone = mcapi_endpoint_create(300, &st));
    OK(mcapi_msg_send(a, gone, "dropped", 7, 0, &st));
    OK(mcapi_endpoint_delete(gone, &st));
    GIVES(16, SUCCESS, mcapi_msg_send(a, gone, "dropped", 7, 0, &st));
    GIVES(15, SUCCESS, mcapi_msg_send_i(a, gone, "dropped", 7, 0, &request, &st));
    PROVES("M7", st == MCAPI_SUCCESS);
    OK(again = mcapi_endpoint_create(300, &st));
    PROVES("E5", mcapi_msg_available(again, &st) == 0 && st == MCAPI_SUCCESS);
    OK(mcapi_endpoint_delete(again, &st));
}

/* Messages of a connected endpoint. */
static void connected(void)
{
    mcapi_status_t st;
    mcapi_endpoint_t out_end, in_end;
    mcapi_sclchan_send_hndl_t out;
    mcapi_sclchan_recv_hndl_t in;
    OK(out_end = mcapi_endpoint_create(310, &st));
    OK(in_end = mcapi_endpoint_create(311, &st));
    LOCAL_CHANNEL(sclchan, out, in);
    GIVES(16, ERR_GENERAL, mcapi_msg_send(a, in_end, "x", 1, 0, &st));
    GIVES(15, ERR_GENERAL, mcapi_msg_send_i(a, in_end, "x", 1, 0, &request, &st));
    PROVES("M8", st == MCAPI_ERR_GENERAL);
    GIVES(16, ERR_GENERAL, mcapi_msg_send(a, out_end, "x", 1, 0, &st));
    GIVES(16, SUCCESS, mcapi_msg_send(out_end, b, "x", 1, 0, &st));
    GIVES(15, SUCCESS, mcapi_msg_send_i(in_end, b, "y", 1, 0, &request, &st));
    OK(mcapi_msg_recv(b, buffer, 2, &size, &st));
    PROVES("M8", size == 1 && buffer[0] == 'x');
    OK(mcapi_msg_recv(b, buffer, 2, &size, &st));
    GIVES(18, ERR_GENERAL, mcapi_msg_recv(in_end, buffer, 1, &size, &st));
    GIVES(17, ERR_GENERAL, mcapi_msg_recv_i(in_end, buffer, 1, &request, &st));
    PROVES("M8", st == MCAPI_ERR_GENERAL);
    CLOSE_LOCAL(sclchan, out, in);
    GIVES(16, SUCCESS, mcapi_msg_send(out_end, in_end, "x", 1, 0, &st));
    OK(mcapi_endpoint_delete(out_end, &st));
    OK(mcapi_endpoint_delete(in_end, &st));
}

int main(void)
{
    mcapi_status_t st;
    initialize(NODE_A);
    OK(a = mcapi_endpoint_create(100, &st));
    OK(b = mcapi_endpoint_create(200, &st));
    send_refuses();
    receive_refuses();
    all_lengths();
    priorities();
    waiting_receives();
    truncated();
    limits();
    request_limit();
    tested_and_never_waited_for();
    dropped();
    connected();
    finalize();
    return 0;
}
