/* Rows 32 to 45: scalar channels within one node. */
#include "check.h"

#define KIND sclchan
#define OTHER pktchan
#define TYPE MCAPI_ENDP_ATTR_TYPE_SCLCHAN
#define ROW_CONNECT 32
#define ROW_RECV_OPEN 33
#define ROW_SEND_OPEN 34
#define ROW_SEND 36
#define ROW_RECV 40
#define ROW_AVAILABLE 43
#define ROW_RECV_CLOSE 44
#define ROW_SEND_CLOSE 45
#define ROW_RECV_OPEN_OTHER 21
#define ROW_SEND_OPEN_OTHER 22
#define ROW_RECV_CLOSE_OTHER 30
#define ROW_SEND_CLOSE_OTHER 31

static void put(unsigned out, unsigned value)
{
    mcapi_status_t st;
    GIVES(36, SUCCESS, mcapi_sclchan_send_uint32(out, value, &st));
}

static unsigned take(unsigned in)
{
    mcapi_status_t st;
    unsigned value;
    GIVES(40, SUCCESS, value = mcapi_sclchan_recv_uint32(in, &st));
    return value;
}

static void exchange(unsigned out, unsigned in)
{
    mcapi_status_t st;
    put(out, 0xfedcba98);
    GIVES(43, SUCCESS, WANT(mcapi_sclchan_available(in, &st) == 1));
    WANT(take(in) == 0xfedcba98);
    GIVES(43, SUCCESS, WANT(mcapi_sclchan_available(in, &st) == 0));
}

#define SEND_CALL(out) mcapi_sclchan_send_uint32(out, 1, &st)
#define RECV_CALL(in) mcapi_sclchan_recv_uint32(in, &st)
static void open_both(unsigned *out, unsigned *in);

#include "channels.h"

static void all_sizes(unsigned out, unsigned in)
{
    mcapi_status_t st;
    GIVES(35, SUCCESS, mcapi_sclchan_send_uint64(out, 0xfedcba9876543210u, &st));
    GIVES(36, SUCCESS, mcapi_sclchan_send_uint32(out, 0x89abcdefu, &st));
    GIVES(37, SUCCESS, mcapi_sclchan_send_uint16(out, 0xfedcu, &st));
    GIVES(38, SUCCESS, mcapi_sclchan_send_uint8(out, 0xabu, &st));
    GIVES(39, SUCCESS, WANT(mcapi_sclchan_recv_uint64(in, &st) == 0xfedcba9876543210u));
    GIVES(40, SUCCESS, WANT(mcapi_sclchan_recv_uint32(in, &st) == 0x89abcdefu));
    GIVES(41, SUCCESS, WANT(mcapi_sclchan_recv_uint16(in, &st) == 0xfedcu));
    GIVES(42, SUCCESS, WANT(mcapi_sclchan_recv_uint8(in, &st) == 0xabu));
}

/* Another size is an error, and the scalar stays. */
static void mismatch(unsigned out, unsigned in)
{
    mcapi_status_t st;
    OK(mcapi_sclchan_send_uint32(out, 7, &st));
    GIVES(39, ERR_GENERAL, mcapi_sclchan_recv_uint64(in, &st));
    GIVES(41, ERR_GENERAL, mcapi_sclchan_recv_uint16(in, &st));
    GIVES(42, ERR_GENERAL, mcapi_sclchan_recv_uint8(in, &st));
    PROVES("C19", mcapi_sclchan_available(in, &st) == 1 && take(in) == 7);
    OK(mcapi_sclchan_send_uint64(out, 8, &st));
    GIVES(40, ERR_GENERAL, mcapi_sclchan_recv_uint32(in, &st));
    OK(mcapi_sclchan_recv_uint64(in, &st));
}

static void refused_data(unsigned out, unsigned in)
{
    mcapi_status_t st;
    GIVES(35, ERR_CHAN_INVALID, mcapi_sclchan_send_uint64(GARBAGE, 1, &st));
    GIVES(36, ERR_CHAN_INVALID, mcapi_sclchan_send_uint32(in, 1, &st));
    GIVES(37, ERR_CHAN_INVALID, mcapi_sclchan_send_uint16(0, 1, &st));
    GIVES(38, ERR_CHAN_INVALID, mcapi_sclchan_send_uint8(GARBAGE, 1, &st));
    GIVES(39, ERR_CHAN_INVALID, mcapi_sclchan_recv_uint64(GARBAGE, &st));
    GIVES(40, ERR_CHAN_INVALID, mcapi_sclchan_recv_uint32(out, &st));
    GIVES(41, ERR_CHAN_INVALID, mcapi_sclchan_recv_uint16(0, &st));
    GIVES(42, ERR_CHAN_INVALID, mcapi_sclchan_recv_uint8(GARBAGE, &st));
    GIVES(43, ERR_CHAN_INVALID, mcapi_sclchan_available(out, &st));
    GIVES(23, ERR_CHAN_INVALID, mcapi_pktchan_send_i(out, "x", 1, &request, &st));
}

static unsigned reading;

static void *reads_late(void *count)
{
    sleep_ms(50);
    for (unsigned i = 0; i < *(unsigned *)count; i++)
        if (take(reading) != i)
            exit(1);
    return NULL;
}

/* A sender blocks while the channel is full, as long as its endpoint's attribute says. */
static void full(void)
{
    mcapi_status_t st;
    unsigned out = 0, in = 0, count = 0, more = 2000;
    pthread_t thread;
    set_timeout(a, 50);
    open_both(&out, &in);
    do {
        mcapi_sclchan_send_uint32(out, count, &st);
        count += st == MCAPI_SUCCESS;
    } while (st == MCAPI_SUCCESS && count < 1000000);
    PROVES("C20", st == MCAPI_TIMEOUT && count > 0 && mcapi_sclchan_available(in, &st) == count);
    for (unsigned i = 0; i < count; i++)
        WANT(take(in) == i);
    CLOSE_LOCAL(sclchan, out, in);
    set_timeout(a, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE);
    open_both(&out, &in);
    reading = in;
    WANT(pthread_create(&thread, NULL, reads_late, &more) == 0);
    for (unsigned i = 0; i < more; i++)
        put(out, i);
    pthread_join(thread, NULL);
    PROVES("C20", mcapi_sclchan_available(in, &st) == 0 && st == MCAPI_SUCCESS);
    CLOSE_LOCAL(sclchan, out, in);
}

int main(void)
{
    unsigned out = 0, in = 0;
    both_kinds();
    open_both(&out, &in);
    all_sizes(out, in);
    mismatch(out, in);
    refused_data(out, in);
    mcapi_status_t st;
    CLOSE_LOCAL(sclchan, out, in);
    GIVES(35, ERR_CHAN_INVALID, mcapi_sclchan_send_uint64(out, 1, &st));
    full();
    finalize();
    return 0;
}
