/* Channels between two nodes, connected by either or by a third one. */
#define ROLES 3
#include "roles.h"

#define DOMAIN_C 0
#define NODE_C 2
#define PORT 100
#define COUNT 1000
#define LARGE 100000

/* Roles may be threads. */
static _Thread_local mcapi_endpoint_t mine, out_end, in_end;
static _Thread_local mcapi_request_t request;
static _Thread_local size_t size;

/* Who connects (s: the sender's node, r: the receiver's, 3: the third), and when. */
struct plan {
    char connects;
    const char *order;
};

static const struct plan plans[] = {
    { 's', "csr" }, { 's', "crs" }, { 's', "scr" }, { 's', "rcs" }, { 's', "src" }, { 's', "rsc" },
    { 'r', "csr" }, { 'r', "rsc" }, { '3', "csr" }, { '3', "src" }, { '3', "rcs" },
};

/* Who connects gets both endpoints; others know their own. */
static void get_ends(int me, const struct plan *plan)
{
    mcapi_status_t st;
    if (me == 0)
        out_end = mine;
    if (me == 1)
        in_end = mine;
    if (plan->connects == "sr3"[me]) {
        OK(out_end = mcapi_endpoint_get(DOMAIN, NODE_A, PORT, SOON, &st));
        OK(in_end = mcapi_endpoint_get(DOMAIN, NODE_B, PORT, SOON, &st));
    }
}

static void release_ends(int me, const struct plan *plan)
{
    mcapi_status_t st;
    mcapi_uint_t count;
    if (plan->connects == "sr3"[me]) {
        OK(mcapi_endpoint_release(out_end, &st));
        OK(mcapi_endpoint_release(in_end, &st));
        /* An answer from each, so that the releases have come. */
        OK(mcapi_endpoint_get_attribute(out_end, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
        OK(mcapi_endpoint_get_attribute(in_end, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
    }
    meet();
}

#define OPEN_BY_PLAN(kind, me, plan, handle)                                                  \
    do {                                                                                      \
        int opened = 0;                                                                       \
        mcapi_request_t opens = 0;                                                            \
        get_ends(me, plan);                                                                   \
        meet();                                                                               \
        for (const char *step = (plan)->order; *step; step++) {                               \
            if (*step == 'c' && (plan)->connects == "sr3"[me])                                \
                DOES(mcapi_##kind##_connect_i(out_end, in_end, &request, &st));               \
            /* Both were got by who connects. */                                              \
            if (*step == 'c' && (plan)->connects == "sr3"[me])                                \
                PROVES("C8", status_of(in_end) & MUSUBI_ENDP_STATUS_CONNECTED);               \
            if (*step == 's' && me == 0) {                                                    \
                mcapi_##kind##_send_open_i(&handle, out_end, &opens, &st);                    \
                WANT(st == MCAPI_PENDING || st == MCAPI_SUCCESS);                             \
                opened = 1;                                                                   \
            }                                                                                 \
            if (*step == 'r' && me == 1) {                                                    \
                mcapi_##kind##_recv_open_i(&handle, in_end, &opens, &st);                     \
                WANT(st == MCAPI_PENDING || st == MCAPI_SUCCESS);                             \
                opened = 1;                                                                   \
            }                                                                                 \
            meet();                                                                           \
        }                                                                                     \
        if (opened)                                                                           \
            completes_at(__FILE__, __LINE__, &opens, MCAPI_PENDING);                          \
    } while (0)

/* The sender closes first: what it sent can still be read. */
#define CLOSE_SENDER_FIRST(kind, me, handle)                                                  \
    do {                                                                                      \
        if (me == 0) {                                                                        \
            mcapi_##kind##_send_close_i(handle, &request, &st);                               \
            WANT(st == MCAPI_PENDING || st == MCAPI_SUCCESS);                                 \
            completes_at(__FILE__, __LINE__, &request, st);                                   \
        }                                                                                     \
    } while (0)

/* Short ones, ones that have a place of their own, large ones. */
static size_t length_of(unsigned n)
{
    return n % 100 == 99 ? LARGE : n % 10 == 3 ? 300 : n % 10 == 7 ? 4096 : 4 + n % 64;
}

static void packets(int me, const struct plan *plan)
{
    static _Thread_local unsigned char data[LARGE];
    mcapi_status_t st;
    unsigned handle = 0;
    OPEN_BY_PLAN(pktchan, me, plan, handle);
    if (me == 0) {
        for (unsigned n = 0; n < COUNT; n++) {
            size_t length = length_of(n);
            memset(data, (int)n, length);
            memcpy(data, &n, sizeof n);
            GIVES(24, SUCCESS, mcapi_pktchan_send(handle, data, length, &st));
        }
    } else if (me == 1) {
        void *last = NULL, *packet;
        for (unsigned n = 0; n < COUNT; n++) {
            size_t length = length_of(n);
            GIVES(26, SUCCESS, mcapi_pktchan_recv(handle, &packet, &size, &st));
            PROVES("C9", size == length && memcmp(packet, &n, sizeof n) == 0);
            WANT(size == 4 || ((unsigned char *)packet)[size - 1] == (unsigned char)n);
            PROVES("C23", ((unsigned char *)packet)[size] == 0);
            /* Released out of order: each one after the next. */
            if (last)
                GIVES(28, SUCCESS, mcapi_pktchan_release(last, &st));
            last = packet;
        }
        OK(mcapi_pktchan_release(last, &st));
        GIVES(26, ERR_CHAN_INVALID, mcapi_pktchan_recv(handle, &packet, &size, &st));
        PROVES("C12", st == MCAPI_ERR_CHAN_INVALID);
        DOES(mcapi_pktchan_recv_close_i(handle, &request, &st));
    }
    CLOSE_SENDER_FIRST(pktchan, me, handle);
    meet();
    release_ends(me, plan);
}

static void scalars(int me, const struct plan *plan)
{
    mcapi_status_t st;
    unsigned handle = 0;
    OPEN_BY_PLAN(sclchan, me, plan, handle);
    if (me == 0) {
        for (unsigned n = 0; n < COUNT; n++) {
            GIVES(36, SUCCESS, mcapi_sclchan_send_uint32(handle, n, &st));
            GIVES(35, SUCCESS, mcapi_sclchan_send_uint64(handle, (mcapi_uint64_t)n << 33, &st));
            GIVES(37, SUCCESS, mcapi_sclchan_send_uint16(handle, (mcapi_uint16_t)n, &st));
            GIVES(38, SUCCESS, mcapi_sclchan_send_uint8(handle, (mcapi_uint8_t)n, &st));
        }
    } else if (me == 1) {
        for (unsigned n = 0; n < COUNT; n++) {
            GIVES(40, SUCCESS, WANT(mcapi_sclchan_recv_uint32(handle, &st) == n));
            GIVES(39, SUCCESS, WANT(mcapi_sclchan_recv_uint64(handle, &st) == (mcapi_uint64_t)n << 33));
            GIVES(41, SUCCESS, WANT(mcapi_sclchan_recv_uint16(handle, &st) == (mcapi_uint16_t)n));
            GIVES(42, SUCCESS, WANT(mcapi_sclchan_recv_uint8(handle, &st) == (mcapi_uint8_t)n));
        }
        GIVES(40, ERR_CHAN_INVALID, mcapi_sclchan_recv_uint32(handle, &st));
        DOES(mcapi_sclchan_recv_close_i(handle, &request, &st));
    }
    CLOSE_SENDER_FIRST(sclchan, me, handle);
    meet();
    release_ends(me, plan);
}

/* An endpoint that a node got which neither connects nor owns an end is not connected. */
static void got_by_another(int me)
{
    mcapi_status_t st;
    if (me == 2)
        OK(in_end = mcapi_endpoint_get(DOMAIN, NODE_B, PORT, SOON, &st));
    meet();
    if (me == 0) {
        mcapi_status_t first;
        OK(in_end = mcapi_endpoint_get(DOMAIN, NODE_B, PORT, SOON, &st));
        mcapi_pktchan_connect_i(mine, in_end, &request, &first);
        if (first == MCAPI_PENDING)
            GIVES(20, ERR_ENDP_GET_LIMIT, mcapi_wait(&request, &size, SOON, &st));
        mcapi_sclchan_connect_i(mine, in_end, &request, &first);
        if (first == MCAPI_PENDING)
            GIVES(32, ERR_ENDP_GET_LIMIT, mcapi_wait(&request, &size, SOON, &st));
        PROVES("C4", first == MCAPI_PENDING || first == MCAPI_ERR_ENDP_GET_LIMIT);
        OK(mcapi_endpoint_release(in_end, &st));
    }
    meet();
    if (me == 2)
        OK(mcapi_endpoint_release(in_end, &st));
    if (me == 2) {
        mcapi_uint_t count;
        OK(mcapi_endpoint_get_attribute(in_end, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &st));
    }
    meet();
}

/* The receiver closes first: the sender hears of it, and closes too. */
static void receiver_closes(int me)
{
    const struct plan plan = { 's', "csr" };
    mcapi_status_t st;
    unsigned handle = 0, sent = 0;
    uint64_t begin = now_ms();
    OPEN_BY_PLAN(pktchan, me, &plan, handle);
    if (me == 1)
        DOES(mcapi_pktchan_recv_close_i(handle, &request, &st));
    if (me == 0) {
        do {
            mcapi_pktchan_send(handle, "x", 1, &st);
            sent++;
            WANT(now_ms() - begin < SOON);
        } while (st == MCAPI_SUCCESS);
        PROVES("C11", st == MCAPI_ERR_CHAN_INVALID);
        DOES(mcapi_pktchan_send_close_i(handle, &request, &st));
    }
    meet();
    release_ends(me, &plan);
}

/* Buffers in hand hold the sender back across nodes; nothing is lost. */
static void held_back(int me)
{
    const struct plan plan = { 'r', "csr" };
    static _Thread_local void *held[1000];
    mcapi_status_t st;
    unsigned handle = 0, n = 0;
    if (me == 0)
        set_timeout(mine, 200);
    meet();
    OPEN_BY_PLAN(pktchan, me, &plan, handle);
    if (me == 0) {
        while (mcapi_pktchan_send(handle, &n, sizeof n, &st), st == MCAPI_SUCCESS)
            WANT(++n < 1000);
        PROVES("C16", st == MCAPI_TIMEOUT);
        board->words[0] = n;
    } else if (me == 1) {
        uint64_t begin = now_ms();
        while (board->words[0] == 0) {
            WANT(now_ms() - begin < SOON);
            if (mcapi_pktchan_available(handle, &st) > 0)
                OK(mcapi_pktchan_recv(handle, &held[n++], &size, &st));
        }
    }
    meet();
    if (me == 1) {
        while (n < board->words[0])
            OK(mcapi_pktchan_recv(handle, &held[n++], &size, &st));
        for (unsigned i = n; i-- > 0;) {
            PROVES("C16", memcmp(held[i], &i, sizeof i) == 0);
            OK(mcapi_pktchan_release(held[i], &st));
        }
        void *packet;
        OK(mcapi_pktchan_recv(handle, &packet, &size, &st));
        OK(mcapi_pktchan_release(packet, &st));
        DOES(mcapi_pktchan_recv_close_i(handle, &request, &st));
    }
    if (me == 0)
        OK(mcapi_pktchan_send(handle, "go on", 5, &st));
    CLOSE_SENDER_FIRST(pktchan, me, handle);
    meet();
    release_ends(me, &plan);
}

/* A node ends with a channel open: the other side hears of it, and can use its endpoint again. */
static void ended(int me)
{
    const struct plan plan = { '3', "csr" };
    mcapi_status_t st;
    unsigned handle = 0;
    uint64_t begin;
    OPEN_BY_PLAN(sclchan, me, &plan, handle);
    if (me == 1)
        OK(WANT(mcapi_sclchan_recv_uint8(handle, &st) == 9));
    if (me == 0)
        OK(mcapi_sclchan_send_uint8(handle, 9, &st));
    meet();
    if (me == 1)
        finalize();
    meet();
    if (me == 0) {
        begin = now_ms();
        do {
            mcapi_sclchan_send_uint8(handle, 1, &st);
            WANT(now_ms() - begin < SOON);
        } while (st == MCAPI_SUCCESS);
        PROVES("N2", st == MCAPI_ERR_TRANSMISSION || st == MCAPI_ERR_CHAN_INVALID);
        mcapi_sclchan_send_close_i(handle, &request, &st);
        WANT(st == MCAPI_SUCCESS || st == MCAPI_PENDING || st == MCAPI_ERR_CHAN_INVALID);
        if (st == MCAPI_SUCCESS || st == MCAPI_PENDING)
            COMPLETES(request);
        PROVES("N2", (status_of(mine) >> 16) == 0);
        OK(mcapi_endpoint_delete(mine, &st));
    }
    if (me != 1)
        finalize();
    meet();
}

/* A node ends as soon as it has sent: what it has sent with success arrives. `kind`: a packet, a scalar, a message. */
static void last_words(int me, int kind)
{
    mcapi_status_t st;
    mcapi_info_t info;
    unsigned handle = 0;
    void *packet;
    char text[16];
    if (me == 2)
        return meet(), meet();
    OK(mcapi_initialize(DOMAIN, me ? NODE_B : NODE_A, NULL, NULL, &info, &st));
    OK(mine = mcapi_endpoint_create(PORT, &st));
    /* Who only sends a message may have gone before anybody else asks for its endpoint. */
    if (me == 1 && kind < 2)
        OK(out_end = mcapi_endpoint_get(DOMAIN, NODE_A, PORT, SOON, &st));
    else if (me == 0 && kind == 2)
        OK(in_end = mcapi_endpoint_get(DOMAIN, NODE_B, PORT, SOON, &st));
    if (kind == 2 && me == 0)
        OK(mcapi_msg_send(mine, in_end, "last words", 10, 0, &st));
    if (kind < 2) {
        if (me == 0 && kind == 0)
            DOES(mcapi_pktchan_send_open_i(&handle, mine, &request, &st));
        else if (me == 0)
            DOES(mcapi_sclchan_send_open_i(&handle, mine, &request, &st));
        else if (kind == 0) {
            DOES(mcapi_pktchan_connect_i(out_end, mine, &request, &st));
            DOES(mcapi_pktchan_recv_open_i(&handle, mine, &request, &st));
        } else {
            DOES(mcapi_sclchan_connect_i(out_end, mine, &request, &st));
            DOES(mcapi_sclchan_recv_open_i(&handle, mine, &request, &st));
        }
    }
    if (me == 0 && kind == 0)
        OK(mcapi_pktchan_send(handle, "last words", 10, &st));
    if (me == 0 && kind == 1)
        OK(mcapi_sclchan_send_uint32(handle, 7, &st));
    if (me == 0)
        finalize();
    meet();
    /* The sender has gone by now. */
    if (me == 1 && kind == 0) {
        OK(mcapi_pktchan_recv(handle, &packet, &size, &st));
        PROVES("C24", size == 10 && strcmp(packet, "last words") == 0);
        OK(mcapi_pktchan_release(packet, &st));
        mcapi_pktchan_recv(handle, &packet, &size, &st);
        PROVES("C24", st == MCAPI_ERR_TRANSMISSION || st == MCAPI_ERR_CHAN_INVALID);
    } else if (me == 1 && kind == 1) {
        PROVES("C24", mcapi_sclchan_recv_uint32(handle, &st) == 7 && st == MCAPI_SUCCESS);
    } else if (me == 1) {
        OK(mcapi_msg_recv(mine, text, sizeof text, &size, &st));
        PROVES("C24", size == 10 && memcmp(text, "last words", 10) == 0);
    }
    if (me == 1)
        finalize();
    meet();
}

static void role(int me)
{
    mcapi_status_t st;
    mcapi_info_t info;
    OK(mcapi_initialize(me == 2 ? DOMAIN_C : DOMAIN, me == 2 ? NODE_C : me ? NODE_B : NODE_A, NULL, NULL, &info, &st));
    if (me < 2)
        OK(mine = mcapi_endpoint_create(PORT, &st));
    meet();
    got_by_another(me);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        packets(me, &plans[i]);
        scalars(me, &plans[i]);
    }
    receiver_closes(me);
    held_back(me);
    ended(me);
    for (int kind = 0; kind < 3; kind++)
        last_words(me, kind);
}
