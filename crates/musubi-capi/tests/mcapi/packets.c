/* Rows 20 to 31: packet channels within one node. */
#include "check.h"

#define KIND pktchan
#define OTHER sclchan
#define TYPE MCAPI_ENDP_ATTR_TYPE_PKTCHAN
#define ROW_CONNECT 20
#define ROW_RECV_OPEN 21
#define ROW_SEND_OPEN 22
#define ROW_SEND 24
#define ROW_RECV 26
#define ROW_AVAILABLE 27
#define ROW_RECV_CLOSE 30
#define ROW_SEND_CLOSE 31
#define ROW_RECV_OPEN_OTHER 33
#define ROW_SEND_OPEN_OTHER 34
#define ROW_RECV_CLOSE_OTHER 44
#define ROW_SEND_CLOSE_OTHER 45

static void put(unsigned out, unsigned value)
{
    mcapi_status_t st;
    OK(mcapi_pktchan_send(out, &value, sizeof value, &st));
}

static unsigned take(unsigned in)
{
    mcapi_status_t st;
    void *buffer = NULL;
    size_t bytes = 0;
    unsigned value;
    OK(mcapi_pktchan_recv(in, &buffer, &bytes, &st));
    WANT(bytes == sizeof value);
    memcpy(&value, buffer, sizeof value);
    OK(mcapi_pktchan_release(buffer, &st));
    return value;
}

static void exchange(unsigned out, unsigned in)
{
    mcapi_status_t st = 0;
    put(out, 77);
    PROVES("row 27", mcapi_pktchan_available(in, &st) == 1 && st == MCAPI_SUCCESS);
    WANT(take(in) == 77);
}

static void *packet;
#define SEND_CALL(out) mcapi_pktchan_send(out, "x", 1, &st)
#define RECV_CALL(in) mcapi_pktchan_recv(in, &packet, &size, &st)
static void open_both(unsigned *out, unsigned *in);

#include "channels.h"

static void refused_data(unsigned out, unsigned in)
{
    static char large[MCAPI_MAX_PACKET_SIZE + 1];
    mcapi_status_t st;
    GIVES(23, ERR_CHAN_INVALID, mcapi_pktchan_send_i(GARBAGE, "x", 1, &request, &st));
    GIVES(23, ERR_CHAN_INVALID, mcapi_pktchan_send_i(in, "x", 1, &request, &st));
    GIVES(23, ERR_PKT_SIZE, mcapi_pktchan_send_i(out, large, sizeof large, &request, &st));
    GIVES(23, ERR_PARAMETER, mcapi_pktchan_send_i(out, NULL, 1, &request, &st));
    GIVES(23, ERR_PARAMETER, mcapi_pktchan_send_i(out, "x", 1, NULL, &st));
    GIVES(24, ERR_CHAN_INVALID, mcapi_pktchan_send(GARBAGE, "x", 1, &st));
    GIVES(24, ERR_PKT_SIZE, mcapi_pktchan_send(out, large, sizeof large, &st));
    GIVES(24, ERR_PARAMETER, mcapi_pktchan_send(out, NULL, 1, &st));
    GIVES(24, ERR_PKT_SIZE, mcapi_pktchan_send(out, "x", (size_t)-1, &st));
    GIVES(25, ERR_CHAN_INVALID, mcapi_pktchan_recv_i(GARBAGE, &packet, &request, &st));
    GIVES(25, ERR_CHAN_INVALID, mcapi_pktchan_recv_i(out, &packet, &request, &st));
    GIVES(25, ERR_PARAMETER, mcapi_pktchan_recv_i(in, NULL, &request, &st));
    GIVES(25, ERR_PARAMETER, mcapi_pktchan_recv_i(in, &packet, NULL, &st));
    GIVES(26, ERR_CHAN_INVALID, mcapi_pktchan_recv(GARBAGE, &packet, &size, &st));
    GIVES(26, ERR_PARAMETER, mcapi_pktchan_recv(in, NULL, &size, &st));
    GIVES(26, ERR_PARAMETER, mcapi_pktchan_recv(in, &packet, NULL, &st));
    GIVES(27, ERR_CHAN_INVALID, mcapi_pktchan_available(out, &st));
}

static void lengths(unsigned out, unsigned in)
{
    static unsigned char data[MCAPI_MAX_PACKET_SIZE];
    const size_t all[] = { 0, 1, 60, 95, 96, 700, 4096, 65536, 100000, MCAPI_MAX_PACKET_SIZE };
    mcapi_status_t st;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 13 + i / 251);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        GIVES(24, SUCCESS, mcapi_pktchan_send(out, all[i] ? data : NULL, all[i], &st));
        GIVES(27, SUCCESS, WANT(mcapi_pktchan_available(in, &st) == 1));
        packet = NULL;
        GIVES(26, SUCCESS, mcapi_pktchan_recv(in, &packet, &size, &st));
        PROVES("M3", packet != NULL && size == all[i] && memcmp(packet, data, size) == 0);
        GIVES(28, SUCCESS, mcapi_pktchan_release(packet, &st));
        GIVES(23, SUCCESS, mcapi_pktchan_send_i(out, data, all[i], &request, &st));
        WANT(COMPLETES(request) == all[i]);
        packet = NULL;
        GIVES(25, SUCCESS, mcapi_pktchan_recv_i(in, &packet, &request, &st));
        WANT(packet != NULL && COMPLETES(request) == all[i] && memcmp(packet, data, all[i]) == 0);
        OK(mcapi_pktchan_release(packet, &st));
    }
    GIVES(25, PENDING, mcapi_pktchan_recv_i(in, &packet, &request, &st));
    OK(mcapi_pktchan_send(out, "later", 5, &st));
    packet = NULL;
    WANT(COMPLETES(request) == 5 && memcmp(packet, "later", 5) == 0);
    OK(mcapi_pktchan_release(packet, &st));
}

/* A cancelled receive does not eat the next packet. */
static void cancelled_receive(unsigned out, unsigned in)
{
    mcapi_status_t st;
    packet = NULL;
    GIVES(25, PENDING, mcapi_pktchan_recv_i(in, &packet, &request, &st));
    OK(mcapi_cancel(&request, &st));
    put(out, 5);
    PROVES("R6", mcapi_pktchan_available(in, &st) == 1 && packet == NULL && take(in) == 5);
}

static void *releases(void *buffer)
{
    mcapi_status_t st;
    GIVES(28, SUCCESS, mcapi_pktchan_release(buffer, &st));
    return NULL;
}

static void *releases_elsewhere(void *buffer)
{
    mcapi_status_t st;
    initialize(NODE_B);
    GIVES(28, ERR_BUF_INVALID, mcapi_pktchan_release(buffer, &st));
    PROVES("C15", st == MCAPI_ERR_BUF_INVALID);
    finalize();
    return NULL;
}

/* Buffers belong to the library until they are released: in any order, once, by the receiving node. */
static void release(unsigned out, unsigned in)
{
    mcapi_status_t st;
    void *held[5], *foreign = &st;
    pthread_t thread;
    for (unsigned i = 0; i < 5; i++)
        put(out, i);
    for (unsigned i = 0; i < 5; i++) {
        OK(mcapi_pktchan_recv(in, &held[i], &size, &st));
        PROVES("row 28", (uintptr_t)held[i] % sizeof(mcapi_uint64_t) == 0);
    }
    for (unsigned i = 0; i < 5; i++)
        WANT(memcmp(held[i], &i, sizeof i) == 0);
    GIVES(28, ERR_BUF_INVALID, mcapi_pktchan_release(NULL, &st));
    GIVES(28, ERR_BUF_INVALID, mcapi_pktchan_release(foreign, &st));
    GIVES(28, ERR_BUF_INVALID, mcapi_pktchan_release((char *)held[1] + 1, &st));
    WANT(pthread_create(&thread, NULL, releases_elsewhere, held[3]) == 0);
    pthread_join(thread, NULL);
    GIVES(28, SUCCESS, mcapi_pktchan_release(held[3], &st));
    GIVES(28, ERR_BUF_INVALID, mcapi_pktchan_release(held[3], &st));
    GIVES(28, SUCCESS, mcapi_pktchan_release(held[0], &st));
    WANT(pthread_create(&thread, NULL, releases, held[4]) == 0);
    pthread_join(thread, NULL);
    GIVES(28, SUCCESS, mcapi_pktchan_release(held[1], &st));
    PROVES("C15", memcmp(held[2], &(unsigned){ 2 }, sizeof(unsigned)) == 0);
    GIVES(28, SUCCESS, mcapi_pktchan_release(held[2], &st));
}

static void release_test(unsigned out, unsigned in)
{
    static char sent[16];
    mcapi_status_t st;
    GIVES(29, ERR_PARAMETER, WANT(!mcapi_pktchan_release_test(NULL, &st)));
    GIVES(29, ERR_BUF_INVALID, WANT(!mcapi_pktchan_release_test(sent, &st)));
    OK(mcapi_pktchan_send(out, sent, sizeof sent, &st));
    GIVES(29, SUCCESS, WANT(mcapi_pktchan_release_test(sent, &st)));
    PROVES("C18", st == MCAPI_SUCCESS);
    OK(mcapi_pktchan_recv(in, &packet, &size, &st));
    OK(mcapi_pktchan_release(packet, &st));
}

/* Buffers that are not released hold the sender back; nothing is lost. */
static void back_pressure(unsigned out, unsigned in)
{
    static mcapi_request_t waiting[MCA_MAX_REQUESTS];
    static unsigned values[MCA_MAX_REQUESTS];
    static void *held[MCA_MAX_REQUESTS];
    mcapi_status_t st;
    unsigned taken = 0, queued = 0, i;
    for (i = 0; i < MCA_MAX_REQUESTS; i++) {
        values[i] = i;
        st = 0;
        mcapi_pktchan_send_i(out, &values[i], sizeof values[i], &waiting[i], &st);
        if (st != MCAPI_SUCCESS)
            break;
        taken++;
        OK(mcapi_pktchan_recv(in, &held[i], &size, &st));
    }
    PROVES("C16", st == MCAPI_PENDING || st == MCAPI_ERR_MEM_LIMIT);
    WANT(taken < MCA_MAX_REQUESTS);
    queued++;
    values[taken + queued] = taken + queued;
    GIVES(23, PENDING, mcapi_pktchan_send_i(out, &values[taken + 1], sizeof values[0], &waiting[taken + 1], &st));
    while (st == MCAPI_PENDING && taken + queued + 1 < MCA_MAX_REQUESTS) {
        queued++;
        GIVES(29, PENDING, WANT(!mcapi_pktchan_release_test(&values[taken + queued - 1], &st)));
        values[taken + queued] = taken + queued;
        mcapi_pktchan_send_i(out, &values[taken + queued], sizeof values[0], &waiting[taken + queued], &st);
    }
    GIVES(23, ERR_MEM_LIMIT, mcapi_pktchan_send_i(out, "x", 1, &request, &st));
    for (i = 0; i < taken + queued; i++) {
        if (i >= taken)
            OK(mcapi_pktchan_recv(in, &held[i], &size, &st));
        PROVES("C16", memcmp(held[i], &values[i], sizeof i) == 0);
        OK(mcapi_pktchan_release(held[i], &st));
    }
    st = MCAPI_PENDING;
    for (i = taken; i < taken + queued; i++)
        WANT(COMPLETES(waiting[i]) == sizeof(unsigned));
}

/* The timeout attribute, set before the channel is connected. */
static void timeouts(void)
{
    mcapi_status_t st;
    unsigned out = 0, in = 0, count = 0;
    uint64_t begin;
    set_timeout(a, 50);
    set_timeout(b, 50);
    open_both(&out, &in);
    begin = now_ms();
    GIVES(26, TIMEOUT, mcapi_pktchan_recv(in, &packet, &size, &st));
    PROVES("M6", now_ms() - begin >= 49);
    do {
        mcapi_pktchan_send(out, &count, sizeof count, &st);
        count += st == MCAPI_SUCCESS;
    } while (st == MCAPI_SUCCESS && count < 100000);
    GIVES(24, TIMEOUT, mcapi_pktchan_send(out, "x", 1, &st));
    for (unsigned i = 0; i < count; i++)
        WANT(take(in) == i);
    CLOSE_LOCAL(pktchan, out, in);
    set_timeout(a, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE);
    set_timeout(b, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE);
}

/* What is in hand outlives its channel, and its node. */
static void held_for_long(void)
{
    mcapi_status_t st;
    unsigned out = 0, in = 0;
    void *one, *two;
    open_both(&out, &in);
    OK(mcapi_pktchan_send(out, "one", 4, &st));
    OK(mcapi_pktchan_send(out, "two", 4, &st));
    OK(mcapi_pktchan_recv(in, &one, &size, &st));
    OK(mcapi_pktchan_recv(in, &two, &size, &st));
    CLOSE_LOCAL(pktchan, out, in);
    PROVES("C17", strcmp(one, "one") == 0);
    GIVES(28, SUCCESS, mcapi_pktchan_release(one, &st));
    finalize();
    PROVES("C17", strcmp(two, "two") == 0);
    initialize(NODE_A);
    GIVES(28, SUCCESS, mcapi_pktchan_release(two, &st));
    GIVES(28, ERR_BUF_INVALID, mcapi_pktchan_release(two, &st));
}

int main(void)
{
    unsigned out = 0, in = 0;
    mcapi_status_t st;
    both_kinds();
    open_both(&out, &in);
    refused_data(out, in);
    lengths(out, in);
    cancelled_receive(out, in);
    release(out, in);
    release_test(out, in);
    back_pressure(out, in);
    CLOSE_LOCAL(pktchan, out, in);
    GIVES(23, ERR_CHAN_INVALID, mcapi_pktchan_send_i(out, "x", 1, &request, &st));
    GIVES(25, ERR_CHAN_INVALID, mcapi_pktchan_recv_i(in, &packet, &request, &st));
    timeouts();
    held_for_long();
    finalize();
    return 0;
}
