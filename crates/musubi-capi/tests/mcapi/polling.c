/* Programs of one thread that open (or close) one end of a channel and ask until that is complete, before they turn to the
 * other end. That ends only where both ends are of one node, and only after many questions and some time. */
#include "check.h"

/* Few enough that an opening stays pending. */
#define SOME 300

static mcapi_endpoint_t from_end, to_end;

/* Asks so often; the answer is "not yet". */
static void not_yet(mcapi_request_t *request)
{
    mcapi_status_t st;
    size_t size;
    for (int i = 0; i < SOME; i++) {
        GIVES(46, PENDING, mcapi_test(request, &size, &st));
        if (i % 10 == 0)
            sleep_ms(1);
    }
    uint64_t begin = now_ms();
    GIVES(47, TIMEOUT, mcapi_wait(request, &size, 30, &st));
    PROVES("C22", now_ms() - begin >= 30);
}

static void until_complete(mcapi_request_t *request)
{
    mcapi_status_t st;
    size_t size;
    while (!mcapi_test(request, &size, &st))
        PROVES("C21", st == MCAPI_PENDING);
    PROVES("C21", st == MCAPI_SUCCESS);
}

/* What both kinds do in the same way. `first_recv`: the receiving end is opened and closed first. */
#define ONE_AFTER_THE_OTHER(kind)                                      \
    static void kind##_opens(int first_recv, unsigned *out, unsigned *in)                     \
    {                                                                                         \
        mcapi_status_t st;                                                                    \
        mcapi_request_t request;                                                              \
        DOES(mcapi_##kind##_connect_i(from_end, to_end, &request, &st));                      \
        if (first_recv)                                                                       \
            mcapi_##kind##_recv_open_i(in, to_end, &request, &st);                            \
        else                                                                                  \
            mcapi_##kind##_send_open_i(out, from_end, &request, &st);                         \
        PROVES("C3", st == MCAPI_PENDING);                                                    \
        not_yet(&request);                                                                    \
        PROVES("C22", status_of(first_recv ? to_end : from_end) & MUSUBI_ENDP_STATUS_OPEN_PENDING); \
        until_complete(&request);                                                             \
        PROVES("C21", status_of(first_recv ? to_end : from_end) & MUSUBI_ENDP_STATUS_OPEN);   \
        PROVES("C21", !(status_of(first_recv ? from_end : to_end) & MUSUBI_ENDP_STATUS_OPEN)); \
    }                                                                                         \
                                                                                              \
    static void kind##_opens_other(int first_recv, unsigned *out, unsigned *in)               \
    {                                                                                         \
        mcapi_status_t st;                                                                    \
        mcapi_request_t request;                                                              \
        if (first_recv)                                                                       \
            mcapi_##kind##_send_open_i(out, from_end, &request, &st);                         \
        else                                                                                  \
            mcapi_##kind##_recv_open_i(in, to_end, &request, &st);                            \
        until_complete(&request);                                                             \
    }                                                                                         \
                                                                                              \
    static void kind##_closes(int first_recv, unsigned out, unsigned in)                      \
    {                                                                                         \
        mcapi_status_t st;                                                                    \
        mcapi_request_t request;                                                              \
        if (first_recv)                                                                       \
            mcapi_##kind##_recv_close_i(in, &request, &st);                                   \
        else                                                                                  \
            mcapi_##kind##_send_close_i(out, &request, &st);                                  \
        PROVES("C10", st == MCAPI_PENDING);                                                   \
        not_yet(&request);                                                                    \
        until_complete(&request);                                                             \
        PROVES("C21", status_of(first_recv ? to_end : from_end) & MUSUBI_ENDP_STATUS_CLOSE_PENDING); \
        if (first_recv)                                                                       \
            mcapi_##kind##_send_close_i(out, &request, &st);                                  \
        else                                                                                  \
            mcapi_##kind##_recv_close_i(in, &request, &st);                                   \
        until_complete(&request);                                                             \
        PROVES("C21", !(status_of(from_end) & MUSUBI_ENDP_STATUS_CONNECTED));                 \
    }

ONE_AFTER_THE_OTHER(pktchan)
ONE_AFTER_THE_OTHER(sclchan)

static void expect_packet(unsigned in, const char *text)
{
    mcapi_status_t st;
    void *packet = NULL;
    size_t size = 0;
    OK(mcapi_pktchan_recv(in, &packet, &size, &st));
    PROVES("C21", size == strlen(text) && memcmp(packet, text, size) == 0);
    OK(mcapi_pktchan_release(packet, &st));
}

static void packets(int first_recv)
{
    mcapi_status_t st;
    unsigned out = 0, in = 0;
    if (first_recv)
        set_timeout(to_end, 50);
    pktchan_opens(first_recv, &out, &in);
    if (!first_recv) {
        /* The other end is not open yet: what is sent waits for it. */
        OK(mcapi_pktchan_send(out, "early", 5, &st));
        WANT(mcapi_pktchan_available(in, &st) == 0 && st == MCAPI_ERR_CHAN_INVALID);
    } else {
        void *packet = NULL;
        size_t size = 0;
        GIVES(27, SUCCESS, PROVES("C21", mcapi_pktchan_available(in, &st) == 0));
        GIVES(26, TIMEOUT, mcapi_pktchan_recv(in, &packet, &size, &st));
    }
    pktchan_opens_other(first_recv, &out, &in);
    if (!first_recv)
        expect_packet(in, "early");
    OK(mcapi_pktchan_send(out, "later", 5, &st));
    expect_packet(in, "later");
    pktchan_closes(first_recv, out, in);
}

static void scalars(int first_recv)
{
    mcapi_status_t st;
    unsigned out = 0, in = 0;
    sclchan_opens(first_recv, &out, &in);
    if (!first_recv)
        OK(mcapi_sclchan_send_uint32(out, 7, &st));
    sclchan_opens_other(first_recv, &out, &in);
    if (first_recv)
        OK(mcapi_sclchan_send_uint32(out, 7, &st));
    PROVES("C21", mcapi_sclchan_recv_uint32(in, &st) == 7 && st == MCAPI_SUCCESS);
    /* What was sent before a close that completed alone can be read. */
    OK(mcapi_sclchan_send_uint8(out, 9, &st));
    if (!first_recv) {
        mcapi_request_t request;
        mcapi_sclchan_send_close_i(out, &request, &st);
        until_complete(&request);
        PROVES("C21", mcapi_sclchan_recv_uint8(in, &st) == 9 && st == MCAPI_SUCCESS);
        GIVES(42, ERR_CHAN_INVALID, mcapi_sclchan_recv_uint8(in, &st));
        mcapi_sclchan_recv_close_i(in, &request, &st);
        until_complete(&request);
    } else {
        sclchan_closes(first_recv, out, in);
    }
}

/* Programs that wait for each send in a loop before they receive anything. */
static void sends(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    unsigned char value, got;
    size_t size;
    unsigned out = 0, in = 0;
    for (value = 0; value < MCAPI_MAX_QUEUE_ELEMENTS + 2; value++) {
        mcapi_msg_send_i(from_end, to_end, &value, 1, 0, &request, &st);
        PROVES("C21", st == (value < MCAPI_MAX_QUEUE_ELEMENTS ? MCAPI_SUCCESS : MCAPI_PENDING));
        if (st == MCAPI_PENDING)
            not_yet(&request);
        until_complete(&request);
    }
    for (value = 0; value < MCAPI_MAX_QUEUE_ELEMENTS + 2; value++) {
        OK(mcapi_msg_recv(to_end, &got, 1, &size, &st));
        PROVES("C21", got == value);
    }
    pktchan_opens(1, &out, &in);
    pktchan_opens_other(1, &out, &in);
    for (value = 0; value < MCAPI_MAX_QUEUE_ELEMENTS + 2; value++) {
        mcapi_pktchan_send_i(out, &value, 1, &request, &st);
        until_complete(&request);
    }
    for (value = 0; value < MCAPI_MAX_QUEUE_ELEMENTS + 2; value++) {
        void *packet = NULL;
        OK(mcapi_pktchan_recv(in, &packet, &size, &st));
        PROVES("C21", size == 1 && *(unsigned char *)packet == value);
        OK(mcapi_pktchan_release(packet, &st));
    }
    pktchan_closes(1, out, in);
}

int main(void)
{
    mcapi_status_t st;
    initialize(NODE_A);
    for (int first_recv = 0; first_recv < 2; first_recv++) {
        OK(from_end = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
        OK(to_end = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
        scalars(first_recv);
        packets(first_recv);
        if (first_recv)
            sends();
        OK(mcapi_endpoint_delete(from_end, &st));
        OK(mcapi_endpoint_delete(to_end, &st));
    }
    finalize();
    return 0;
}
