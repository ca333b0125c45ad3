#include "exchange.h"

#include "mcapi.h"

/* Ports of a life; those of the next differ, so that no life meets the peer's former one. */
enum { MESSAGES, PACKETS_IN, PACKETS_OUT, SCALARS_IN, SCALARS_OUT, PORTS };
/* The port of the task that relays: it is asked for when the peer's life is known. */
enum { RELAY = 2 * PORTS };
enum { WAIT_MS = 30000, BYTES_MAX = 4096, BYTES_STEP = 101, PRIORITY = 1 };
/* What tells bytes of one kind from another's. */
enum { OF_MESSAGE = 31, OF_PACKET = 61 };
/* Bytes of a tally in a message, four a number. */
enum { TALLY_NUMBERS = 6, TALLY_BYTES = 4 * TALLY_NUMBERS };

static uint8_t outgoing[BYTES_MAX];
static uint8_t incoming[BYTES_MAX];
/* The relaying task's. */
static uint8_t relayed[BYTES_MAX];

/* One life at one side. */
struct exchange {
    const struct exchange_side *side;
    uint32_t life;
    struct exchange_tally tally;
    mcapi_endpoint_t own[PORTS];
    mcapi_endpoint_t peer[PORTS];
    mcapi_status_t status;
};

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        call;                                                                                                          \
        if (x->status != MCAPI_SUCCESS) {                                                                              \
            return fails(x, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            return fails(x, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

static int fails(struct exchange *x, int line)
{
    x->tally.failed_at = (uint32_t)line;
    x->tally.status = x->status;
    return 0;
}

static mcapi_port_t port(uint32_t life, int which)
{
    return (life % 2) * PORTS + (uint32_t)which;
}

static size_t bytes_of(uint32_t number)
{
    return 1 + (size_t)number * BYTES_STEP;
}

/* Byte at a place of what the one that asks sent, or the other. */
static uint8_t byte_of(const struct exchange *x, uint32_t kind, uint32_t asks, uint32_t number, size_t place)
{
    return (uint8_t)(kind + 59 * asks + 101 * x->life + 7 * number + 13 * place + (place >> 8));
}

static void fill(struct exchange *x, uint32_t kind, uint32_t number)
{
    for (size_t place = 0; place < bytes_of(number); place++) {
        outgoing[place] = byte_of(x, kind, x->side->asks, number, place);
    }
}

static int is_right(struct exchange *x, uint32_t kind, uint32_t number, const uint8_t *bytes, size_t size)
{
    if (size != bytes_of(number)) {
        return 0;
    }
    for (size_t place = 0; place < size; place++) {
        if (bytes[place] != byte_of(x, kind, !x->side->asks, number, place)) {
            return 0;
        }
    }
    return 1;
}

/* What has begun and is not complete is no failure. */
static void begun(struct exchange *x)
{
    if (x->status == MCAPI_PENDING) {
        x->status = MCAPI_SUCCESS;
    }
}

/* Waits for a request that has begun. */
static void finish(struct exchange *x, mcapi_request_t request)
{
    size_t size;
    begun(x);
    if (x->status == MCAPI_SUCCESS) {
        mcapi_wait(&request, &size, WAIT_MS, &x->status);
    }
}

static int begin(struct exchange *x)
{
    mcapi_info_t info;
    TRY(mcapi_initialize(x->side->domain, x->side->node, MCAPI_NULL, MCAPI_NULL, &info, &x->status));
    CHECK(info.number_of_nodes == 2 && mcapi_node_id_get(&x->status) == x->side->node);
    mcapi_timeout_t patience = WAIT_MS;
    for (int which = 0; which < PORTS; which++) {
        TRY(x->own[which] = mcapi_endpoint_create(port(x->life, which), &x->status));
        TRY(mcapi_endpoint_set_attribute(x->own[which], MCAPI_ENDP_ATTR_TIMEOUT, &patience, sizeof patience, &x->status));
    }
    /* The one that answers waits for as long as nobody asks. */
    mcapi_timeout_t first = x->side->asks ? WAIT_MS : MCAPI_TIMEOUT_INFINITE;
    for (int which = 0; which < PORTS; which++) {
        TRY(x->peer[which] = mcapi_endpoint_get(x->side->domain, x->side->peer, port(x->life, which), first, &x->status));
        first = WAIT_MS;
    }
    return 1;
}

static int send_message(struct exchange *x, uint32_t number)
{
    fill(x, OF_MESSAGE, number);
    TRY(mcapi_msg_send(x->own[MESSAGES], x->peer[MESSAGES], outgoing, bytes_of(number), PRIORITY, &x->status));
    return 1;
}

static int receive_message(struct exchange *x, uint32_t number)
{
    size_t size;
    TRY(mcapi_msg_recv(x->own[MESSAGES], incoming, sizeof incoming, &size, &x->status));
    CHECK(is_right(x, OF_MESSAGE, number, incoming, size));
    x->tally.messages++;
    return 1;
}

static int connect(struct exchange *x)
{
    mcapi_request_t request;
    TRY(mcapi_pktchan_connect_i(x->own[PACKETS_OUT], x->peer[PACKETS_IN], &request, &x->status); finish(x, request));
    TRY(mcapi_pktchan_connect_i(x->peer[PACKETS_OUT], x->own[PACKETS_IN], &request, &x->status); finish(x, request));
    TRY(mcapi_sclchan_connect_i(x->own[SCALARS_OUT], x->peer[SCALARS_IN], &request, &x->status); finish(x, request));
    TRY(mcapi_sclchan_connect_i(x->peer[SCALARS_OUT], x->own[SCALARS_IN], &request, &x->status); finish(x, request));
    return 1;
}

static int send_packet(struct exchange *x, mcapi_pktchan_send_hndl_t to, uint32_t number)
{
    fill(x, OF_PACKET, number);
    TRY(mcapi_pktchan_send(to, outgoing, bytes_of(number), &x->status));
    return 1;
}

static int receive_packet(struct exchange *x, mcapi_pktchan_recv_hndl_t from, uint32_t number)
{
    void *packet;
    size_t size;
    TRY(mcapi_pktchan_recv(from, &packet, &size, &x->status));
    int right = is_right(x, OF_PACKET, number, packet, size);
    TRY(mcapi_pktchan_release(packet, &x->status));
    CHECK(right);
    x->tally.packets++;
    return 1;
}

static int packets(struct exchange *x)
{
    mcapi_pktchan_recv_hndl_t from;
    mcapi_pktchan_send_hndl_t to;
    mcapi_request_t receives, sends;
    /* Both begin before either is waited for: an end is open, and later closed, once the other one is, too. */
    TRY(mcapi_pktchan_recv_open_i(&from, x->own[PACKETS_IN], &receives, &x->status); begun(x));
    TRY(mcapi_pktchan_send_open_i(&to, x->own[PACKETS_OUT], &sends, &x->status); begun(x));
    TRY(finish(x, receives));
    TRY(finish(x, sends));
    for (uint32_t number = 0; number < EXCHANGE_PACKETS; number++) {
        int done = x->side->asks ? send_packet(x, to, number) && receive_packet(x, from, number)
                                 : receive_packet(x, from, number) && send_packet(x, to, number);
        if (!done) {
            return 0;
        }
    }
    TRY(mcapi_pktchan_send_close_i(to, &sends, &x->status); begun(x));
    TRY(mcapi_pktchan_recv_close_i(from, &receives, &x->status); begun(x));
    TRY(finish(x, sends));
    TRY(finish(x, receives));
    return 1;
}

static uint64_t scalar_of(const struct exchange *x, uint32_t asks, uint32_t number)
{
    return (0x0123456789abcdefu + number) * (3 + 2 * asks + 4 * x->life);
}

static int send_scalar(struct exchange *x, mcapi_sclchan_send_hndl_t to, uint32_t number)
{
    uint64_t value = scalar_of(x, x->side->asks, number);
    switch (number % 4) {
    case 0: TRY(mcapi_sclchan_send_uint64(to, value, &x->status)); break;
    case 1: TRY(mcapi_sclchan_send_uint32(to, (uint32_t)value, &x->status)); break;
    case 2: TRY(mcapi_sclchan_send_uint16(to, (uint16_t)value, &x->status)); break;
    default: TRY(mcapi_sclchan_send_uint8(to, (uint8_t)value, &x->status)); break;
    }
    return 1;
}

static int receive_scalar(struct exchange *x, mcapi_sclchan_recv_hndl_t from, uint32_t number)
{
    uint64_t expected = scalar_of(x, !x->side->asks, number);
    uint64_t value;
    switch (number % 4) {
    case 0: TRY(value = mcapi_sclchan_recv_uint64(from, &x->status)); break;
    case 1: TRY(value = mcapi_sclchan_recv_uint32(from, &x->status)); expected = (uint32_t)expected; break;
    case 2: TRY(value = mcapi_sclchan_recv_uint16(from, &x->status)); expected = (uint16_t)expected; break;
    default: TRY(value = mcapi_sclchan_recv_uint8(from, &x->status)); expected = (uint8_t)expected; break;
    }
    CHECK(value == expected);
    x->tally.scalars++;
    return 1;
}

static int scalars(struct exchange *x)
{
    mcapi_sclchan_recv_hndl_t from;
    mcapi_sclchan_send_hndl_t to;
    mcapi_request_t receives, sends;
    /* Both begin before either is waited for: an end is open, and later closed, once the other one is, too. */
    TRY(mcapi_sclchan_recv_open_i(&from, x->own[SCALARS_IN], &receives, &x->status); begun(x));
    TRY(mcapi_sclchan_send_open_i(&to, x->own[SCALARS_OUT], &sends, &x->status); begun(x));
    TRY(finish(x, receives));
    TRY(finish(x, sends));
    for (uint32_t number = 0; number < EXCHANGE_SCALARS; number++) {
        int done = x->side->asks ? send_scalar(x, to, number) && receive_scalar(x, from, number)
                                 : receive_scalar(x, from, number) && send_scalar(x, to, number);
        if (!done) {
            return 0;
        }
    }
    TRY(mcapi_sclchan_send_close_i(to, &sends, &x->status); begun(x));
    TRY(mcapi_sclchan_recv_close_i(from, &receives, &x->status); begun(x));
    TRY(finish(x, sends));
    TRY(finish(x, receives));
    return 1;
}

static int tell_tally(struct exchange *x)
{
    const uint32_t numbers[TALLY_NUMBERS] = {x->tally.messages, x->tally.packets,   x->tally.scalars,
                                             x->tally.relayed,  x->tally.failed_at, x->tally.status};
    for (int place = 0; place < TALLY_BYTES; place++) {
        outgoing[place] = (uint8_t)(numbers[place / 4] >> 8 * (place % 4));
    }
    TRY(mcapi_msg_send(x->own[MESSAGES], x->peer[MESSAGES], outgoing, TALLY_BYTES, PRIORITY, &x->status));
    return 1;
}

static int hear_tally(struct exchange *x, struct exchange_tally *theirs)
{
    uint32_t numbers[TALLY_NUMBERS] = {0};
    size_t size;
    TRY(mcapi_msg_recv(x->own[MESSAGES], incoming, sizeof incoming, &size, &x->status));
    CHECK(size == TALLY_BYTES);
    for (int place = 0; place < TALLY_BYTES; place++) {
        numbers[place / 4] |= (uint32_t)incoming[place] << 8 * (place % 4);
    }
    *theirs = (struct exchange_tally){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]};
    return 1;
}

/* The last message of a life goes by way of the other task, and comes back to the one that asks. */
static int last_message(struct exchange *x)
{
    size_t size;
    if (x->side->asks) {
        mcapi_endpoint_t relay;
        TRY(relay = mcapi_endpoint_get(x->side->domain, x->side->peer, RELAY, WAIT_MS, &x->status));
        fill(x, OF_MESSAGE, EXCHANGE_MESSAGES);
        TRY(mcapi_msg_send(x->own[MESSAGES], relay, outgoing, bytes_of(EXCHANGE_MESSAGES - 1), PRIORITY, &x->status));
    }
    TRY(mcapi_msg_recv(x->own[MESSAGES], incoming, sizeof incoming, &size, &x->status));
    CHECK(size == bytes_of(EXCHANGE_MESSAGES - 1));
    for (size_t place = 0; place < size; place++) {
        CHECK(incoming[place] == byte_of(x, OF_MESSAGE, 1, EXCHANGE_MESSAGES, place));
    }
    if (!x->side->asks) {
        TRY(mcapi_msg_send(x->own[MESSAGES], x->peer[MESSAGES], incoming, size, PRIORITY, &x->status));
    }
    x->tally.relayed++;
    return 1;
}

static int messages(struct exchange *x)
{
    for (uint32_t number = 0; number < EXCHANGE_MESSAGES; number++) {
        int done = x->side->asks ? send_message(x, number) && receive_message(x, number)
                                 : receive_message(x, number) && send_message(x, number);
        if (!done) {
            return 0;
        }
    }
    return 1;
}

static int all(struct exchange *x, struct exchange_tally *theirs)
{
    if (!begin(x) || !messages(x) || (x->side->asks && !connect(x)) || !packets(x) || !scalars(x) || !last_message(x)) {
        return 0;
    }
    return x->side->asks ? tell_tally(x) && hear_tally(x, theirs) : hear_tally(x, theirs) && tell_tally(x);
}

struct exchange_tally exchange_live(const struct exchange_side *side, uint32_t life, struct exchange_tally *theirs)
{
    struct exchange now = {.side = side, .life = life};
    struct exchange *x = &now;
    *theirs = (struct exchange_tally){0};
    int done = all(x, theirs);
    mcapi_finalize(&x->status);
    if (done && x->status != MCAPI_SUCCESS) {
        fails(x, __LINE__);
    }
    return x->tally;
}

/* Relays in one life; returns when that has ended, or has not begun. */
static void relay_once(const struct exchange_side *side)
{
    mcapi_status_t status;
    mcapi_endpoint_t own = mcapi_endpoint_create(RELAY, &status);
    size_t size;
    while (status == MCAPI_SUCCESS) {
        /* Without limit; meanwhile the other task sends and receives. */
        mcapi_msg_recv(own, relayed, sizeof relayed, &size, &status);
        for (uint32_t life = 0; life < 2 && status == MCAPI_SUCCESS; life++) {
            mcapi_endpoint_t to = mcapi_endpoint_get(side->domain, side->node, port(life, MESSAGES), 0, &status);
            if (status == MCAPI_SUCCESS) {
                mcapi_msg_send(own, to, relayed, size, PRIORITY, &status);
            } else if (status == MCAPI_TIMEOUT) {
                status = MCAPI_SUCCESS;
            }
        }
    }
}

void exchange_relay(const struct exchange_side *side, void (*pause)(void))
{
    for (;;) {
        relay_once(side);
        pause();
    }
}
