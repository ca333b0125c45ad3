/* What holds for both kinds of channels, as rows of the kind KIND (pktchan or sclchan) and against the other kind. To be
 * included once KIND, OTHER and the rows' numbers ROW_... are defined. */
#define NAME_(kind, rest) mcapi_##kind##_##rest
#define NAME(kind, rest) NAME_(kind, rest)
#define ROWS_(row, code, call) GIVES(row, code, call)
#define ROW(row, code, call) ROWS_(row, code, call)

#define GARBAGE 0xdeadbeef

static mcapi_endpoint_t a, b, c;
static mcapi_request_t request;
static size_t size;

static void refused(void)
{
    mcapi_status_t st;
    unsigned handle = 5;
    ROW(ROW_CONNECT, ERR_ENDP_INVALID, NAME(KIND, connect_i)(GARBAGE, b, &request, &st));
    ROW(ROW_CONNECT, ERR_ENDP_INVALID, NAME(KIND, connect_i)(a, GARBAGE, &request, &st));
    ROW(ROW_CONNECT, ERR_ENDP_INVALID, NAME(KIND, connect_i)(a, a, &request, &st));
    PROVES("C4", st == MCAPI_ERR_ENDP_INVALID);
    ROW(ROW_CONNECT, ERR_PARAMETER, NAME(KIND, connect_i)(a, b, NULL, &st));
    ROW(ROW_RECV_OPEN, ERR_ENDP_INVALID, NAME(KIND, recv_open_i)(&handle, GARBAGE, &request, &st));
    ROW(ROW_SEND_OPEN, ERR_ENDP_INVALID, NAME(KIND, send_open_i)(&handle, GARBAGE, &request, &st));
    ROW(ROW_RECV_OPEN, ERR_PARAMETER, NAME(KIND, recv_open_i)(NULL, b, &request, &st));
    ROW(ROW_SEND_OPEN, ERR_PARAMETER, NAME(KIND, send_open_i)(NULL, a, &request, &st));
    ROW(ROW_RECV_OPEN, ERR_PARAMETER, NAME(KIND, recv_open_i)(&handle, b, NULL, &st));
    ROW(ROW_SEND_OPEN, ERR_PARAMETER, NAME(KIND, send_open_i)(&handle, a, NULL, &st));
    ROW(ROW_RECV_CLOSE, ERR_CHAN_INVALID, NAME(KIND, recv_close_i)(GARBAGE, &request, &st));
    ROW(ROW_SEND_CLOSE, ERR_CHAN_INVALID, NAME(KIND, send_close_i)(GARBAGE, &request, &st));
    ROW(ROW_RECV_CLOSE, ERR_PARAMETER, NAME(KIND, recv_close_i)(GARBAGE, NULL, &st));
    ROW(ROW_SEND_CLOSE, ERR_PARAMETER, NAME(KIND, send_close_i)(GARBAGE, NULL, &st));
    ROW(ROW_AVAILABLE, ERR_CHAN_INVALID, WANT(NAME(KIND, available)(GARBAGE, &st) == 0));
    WANT(handle == 5);
}

/* The six orders of connecting and opening. */
static void orders(void)
{
    static const char *const all[] = { "csr", "crs", "scr", "rcs", "src", "rsc" };
    mcapi_status_t st;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *steps = all[i];
        mcapi_request_t requests[3];
        unsigned out = 0, in = 0;
        for (int step = 0; step < 3; step++) {
            st = 0;
            if (steps[step] == 'c')
                NAME(KIND, connect_i)(a, b, &requests[step], &st);
            else if (steps[step] == 's')
                NAME(KIND, send_open_i)(&out, a, &requests[step], &st);
            else
                NAME(KIND, recv_open_i)(&in, b, &requests[step], &st);
            WANT(st == MCAPI_SUCCESS || st == MCAPI_PENDING);
            if (step < 2 && steps[step] != 'c')
                PROVES("C3", st == MCAPI_PENDING);
        }
        st = MCAPI_PENDING;
        for (int step = 0; step < 3; step++)
            COMPLETES(requests[step]);
        PROVES("C2", out != 0 && in != 0);
        WANT(status_of(a) & MUSUBI_ENDP_STATUS_OPEN && status_of(b) & MUSUBI_ENDP_STATUS_OPEN);
        exchange(out, in);
        CLOSE_LOCAL_OF(KIND, out, in);
        PROVES("C13", (status_of(a) & MUSUBI_ENDP_STATUS_CONNECTED) == 0);
    }
}

static mcapi_endp_attr_type_t type_of(mcapi_endpoint_t endpoint)
{
    mcapi_status_t st;
    mcapi_endp_attr_type_t type = 0;
    OK(mcapi_endpoint_get_attribute(endpoint, MCAPI_ENDP_ATTR_TYPE, &type, sizeof type, &st));
    return type;
}

/* Life of a channel, step by step, with what is refused at each. */
static void life(void)
{
    mcapi_status_t st;
    mcapi_request_t connects, sends, receives;
    unsigned out = 0, in = 0, other = 0;
    ROW(ROW_SEND_OPEN, PENDING, NAME(KIND, send_open_i)(&out, a, &sends, &st));
    ROW(ROW_SEND_OPEN, ERR_CHAN_OPENPENDING, NAME(KIND, send_open_i)(&other, a, &request, &st));
    WANT(status_of(a) & MUSUBI_ENDP_STATUS_OPEN_PENDING && status_of(a) & MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING);
    ROW(ROW_RECV_CLOSE, ERR_CHAN_DIRECTION, NAME(KIND, recv_close_i)(out, &request, &st));
    ROW(ROW_SEND_CLOSE_OTHER, ERR_CHAN_TYPE, NAME(OTHER, send_close_i)(out, &request, &st));
    ROW(ROW_SEND_CLOSE, ERR_CHAN_NOTOPEN, NAME(KIND, send_close_i)(out, &request, &st));
    NAME(KIND, connect_i)(a, b, &connects, &st);
    WANT(st == MCAPI_SUCCESS || st == MCAPI_PENDING);
    COMPLETES(connects);
    PROVES("C1", (status_of(a) & MUSUBI_ENDP_STATUS_OPEN) == 0 && status_of(b) & MUSUBI_ENDP_STATUS_CONNECTED);
    PROVES("C6", type_of(a) == TYPE && type_of(b) == TYPE);
    WANT((status_of(a) & (MUSUBI_ENDP_STATUS_SEND | MUSUBI_ENDP_STATUS_RECEIVE)) == MUSUBI_ENDP_STATUS_SEND);
    WANT((status_of(b) & (MUSUBI_ENDP_STATUS_SEND | MUSUBI_ENDP_STATUS_RECEIVE)) == MUSUBI_ENDP_STATUS_RECEIVE);
    ROW(ROW_CONNECT, ERR_CHAN_CONNECTED, NAME(KIND, connect_i)(a, c, &request, &st));
    ROW(ROW_CONNECT, ERR_CHAN_CONNECTED, NAME(KIND, connect_i)(c, b, &request, &st));
    ROW(ROW_CONNECT, ERR_CHAN_CONNECTED, NAME(OTHER, connect_i)(a, b, &request, &st));
    PROVES("C5", st == MCAPI_ERR_CHAN_CONNECTED);
    ROW(ROW_RECV_OPEN, ERR_CHAN_DIRECTION, NAME(KIND, recv_open_i)(&other, a, &request, &st));
    ROW(ROW_SEND_OPEN, ERR_CHAN_DIRECTION, NAME(KIND, send_open_i)(&other, b, &request, &st));
    ROW(ROW_RECV_OPEN_OTHER, ERR_CHAN_TYPE, NAME(OTHER, recv_open_i)(&other, b, &request, &st));
    ROW(ROW_SEND_OPEN_OTHER, ERR_CHAN_TYPE, NAME(OTHER, send_open_i)(&other, a, &request, &st));
    PROVES("C3", st == MCAPI_ERR_CHAN_TYPE);
    ROW(ROW_SEND_CLOSE, ERR_CHAN_NOTOPEN, NAME(KIND, send_close_i)(out, &request, &st));
    ROW(ROW_RECV_OPEN, SUCCESS, NAME(KIND, recv_open_i)(&in, b, &receives, &st));
    ROW(ROW_RECV_OPEN, ERR_CHAN_OPEN, NAME(KIND, recv_open_i)(&other, b, &request, &st));
    st = MCAPI_PENDING;
    COMPLETES(sends);
    ROW(ROW_SEND_OPEN, ERR_CHAN_OPEN, NAME(KIND, send_open_i)(&other, a, &request, &st));
    exchange(out, in);
    ROW(ROW_RECV_CLOSE, ERR_CHAN_DIRECTION, NAME(KIND, recv_close_i)(out, &request, &st));
    ROW(ROW_SEND_CLOSE, ERR_CHAN_DIRECTION, NAME(KIND, send_close_i)(in, &request, &st));
    ROW(ROW_RECV_CLOSE_OTHER, ERR_CHAN_TYPE, NAME(OTHER, recv_close_i)(in, &request, &st));
    ROW(ROW_SEND_CLOSE_OTHER, ERR_CHAN_TYPE, NAME(OTHER, send_close_i)(out, &request, &st));
    ROW(ROW_SEND_CLOSE, PENDING, NAME(KIND, send_close_i)(out, &sends, &st));
    PROVES("C10", (status_of(a) & MUSUBI_ENDP_STATUS_CLOSE_PENDING) != 0);
    NAME(KIND, send_close_i)(out, &request, &st);
    PROVES("C14", st == MCAPI_ERR_CHAN_CLOSEPENDING || st == MCAPI_ERR_CHAN_NOTOPEN || st == MCAPI_ERR_CHAN_INVALID);
    ROW(ROW_SEND_OPEN, ERR_CHAN_CLOSEPENDING, NAME(KIND, send_open_i)(&other, a, &request, &st));
    ROW(ROW_CONNECT, ERR_CHAN_CLOSEPENDING, NAME(KIND, connect_i)(a, c, &request, &st));
    ROW(ROW_RECV_CLOSE, SUCCESS, NAME(KIND, recv_close_i)(in, &receives, &st));
    st = MCAPI_PENDING;
    COMPLETES(sends);
    NAME(KIND, recv_close_i)(in, &request, &st);
    PROVES("C14", st == MCAPI_ERR_CHAN_NOTOPEN || st == MCAPI_ERR_CHAN_INVALID);
    PROVES("C6", type_of(a) == MCAPI_ENDP_ATTR_TYPE_MESSAGE && type_of(b) == MCAPI_ENDP_ATTR_TYPE_MESSAGE);
    WANT((status_of(a) >> 16) == 0 && (status_of(b) >> 16) == 0);
}

/* An open that waits is contradicted by a connection. */
static void contradicted(void)
{
    mcapi_status_t st;
    mcapi_request_t opens;
    unsigned handle, out = 0, in = 0;
    ROW(ROW_RECV_OPEN, PENDING, NAME(KIND, recv_open_i)(&handle, a, &opens, &st));
    DOES(NAME(KIND, connect_i)(a, b, &request, &st));
    GIVES(47, ERR_CHAN_DIRECTION, mcapi_wait(&opens, &size, SOON, &st));
    PROVES("C3", st == MCAPI_ERR_CHAN_DIRECTION);
    NAME(KIND, send_open_i)(&out, a, &opens, &st);
    WANT(st == MCAPI_PENDING);
    DOES(NAME(KIND, recv_open_i)(&in, b, &request, &st));
    st = MCAPI_PENDING;
    COMPLETES(opens);
    CLOSE_LOCAL_OF(KIND, out, in);
    NAME(OTHER, send_open_i)(&handle, a, &opens, &st);
    WANT(st == MCAPI_PENDING);
    DOES(NAME(KIND, connect_i)(a, b, &request, &st));
    GIVES(47, ERR_CHAN_TYPE, mcapi_wait(&opens, &size, SOON, &st));
    PROVES("C3", st == MCAPI_ERR_CHAN_TYPE);
    NAME(KIND, send_open_i)(&out, a, &opens, &st);
    WANT(st == MCAPI_PENDING);
    DOES(NAME(KIND, recv_open_i)(&in, b, &request, &st));
    st = MCAPI_PENDING;
    COMPLETES(opens);
    CLOSE_LOCAL_OF(KIND, out, in);
}

/* A cancelled open leaves the endpoint as it was. */
static void cancelled_open(void)
{
    mcapi_status_t st;
    unsigned handle;
    ROW(ROW_SEND_OPEN, PENDING, NAME(KIND, send_open_i)(&handle, a, &request, &st));
    OK(mcapi_cancel(&request, &st));
    PROVES("R7", (status_of(a) >> 16) == 0);
    OK(mcapi_msg_send(a, b, "x", 1, 0, &st));
    char byte;
    OK(mcapi_msg_recv(b, &byte, 1, &size, &st));
    ROW(ROW_RECV_OPEN, PENDING, NAME(KIND, recv_open_i)(&handle, a, &request, &st));
    OK(mcapi_cancel(&request, &st));
}

/* Attributes that must be equal. */
static void incompatible(void)
{
    const struct {
        mcapi_uint_t number, other, usual;
    } attributes[] = {
        { MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_SHARED_MEMORY, MCAPI_ENDP_ATTR_LOCAL_MEMORY },
        { MCAPI_ENDP_ATTR_PRIORITY, 1, 0 },
        { MCAPI_ENDP_ATTR_NUM_PRIORITIES, 2, MCAPI_MIN_PRORITY + 1 },
        { MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, 1000, MCAPI_MAX_MESSAGE_SIZE },
    };
    mcapi_status_t st;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        mcapi_endpoint_t one, two;
        OK(one = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
        OK(two = mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, &st));
        OK(mcapi_endpoint_set_attribute(one, attributes[i].number, &attributes[i].other, 4, &st));
        ROW(ROW_CONNECT, ERR_ATTR_INCOMPATIBLE, NAME(KIND, connect_i)(one, two, &request, &st));
        PROVES("C7", (status_of(one) >> 16) == 0);
        OK(mcapi_endpoint_set_attribute(two, attributes[i].number, &attributes[i].other, 4, &st));
        unsigned out = 0, in = 0;
        mcapi_request_t opens;
        DOES(NAME(KIND, connect_i)(one, two, &request, &st));
        NAME(KIND, send_open_i)(&out, one, &opens, &st);
        DOES(NAME(KIND, recv_open_i)(&in, two, &request, &st));
        st = MCAPI_PENDING;
        COMPLETES(opens);
        exchange(out, in);
        CLOSE_LOCAL_OF(KIND, out, in);
        OK(mcapi_endpoint_delete(one, &st));
        OK(mcapi_endpoint_delete(two, &st));
    }
}

/* Closing one side: what was sent can be read, then the channel is no more. */
static void half_closed(void)
{
    mcapi_status_t st;
    mcapi_request_t closes;
    unsigned out = 0, in = 0;
    open_both(&out, &in);
    put(out, 1);
    put(out, 2);
    NAME(KIND, send_close_i)(out, &closes, &st);
    WANT(st == MCAPI_PENDING);
    PROVES("C12", NAME(KIND, available)(in, &st) == 2 && take(in) == 1 && take(in) == 2);
    ROW(ROW_RECV, ERR_CHAN_INVALID, RECV_CALL(in));
    ROW(ROW_SEND, ERR_CHAN_INVALID, SEND_CALL(out));
    DOES(NAME(KIND, recv_close_i)(in, &request, &st));
    st = MCAPI_PENDING;
    COMPLETES(closes);
    open_both(&out, &in);
    put(out, 3);
    ROW(ROW_RECV_CLOSE, PENDING, NAME(KIND, recv_close_i)(in, &closes, &st));
    ROW(ROW_RECV_OPEN, ERR_CHAN_CLOSEPENDING, NAME(KIND, recv_open_i)(&in, b, &request, &st));
    ROW(ROW_SEND, ERR_CHAN_INVALID, SEND_CALL(out));
    PROVES("C11", st == MCAPI_ERR_CHAN_INVALID);
    ROW(ROW_SEND_CLOSE, SUCCESS, NAME(KIND, send_close_i)(out, &request, &st));
    COMPLETES(request);
    st = MCAPI_PENDING;
    COMPLETES(closes);
    open_both(&out, &in);
    PROVES("C11", NAME(KIND, available)(in, &st) == 0);
    exchange(out, in);
    CLOSE_LOCAL_OF(KIND, out, in);
}

static void open_both(unsigned *out, unsigned *in)
{
    mcapi_status_t st;
    mcapi_request_t opens;
    DOES(NAME(KIND, connect_i)(a, b, &request, &st));
    NAME(KIND, send_open_i)(out, a, &opens, &st);
    WANT(st == MCAPI_PENDING);
    DOES(NAME(KIND, recv_open_i)(in, b, &request, &st));
    st = MCAPI_PENDING;
    COMPLETES(opens);
}

/* The receiver opens first; and an opening whose endpoint is deleted. */
static void receiver_first(void)
{
    mcapi_status_t st;
    mcapi_request_t opens, sends;
    mcapi_endpoint_t gone;
    unsigned out = 0, in = 0, other = 0;
    ROW(ROW_RECV_OPEN, PENDING, NAME(KIND, recv_open_i)(&in, b, &opens, &st));
    ROW(ROW_RECV_OPEN, ERR_CHAN_OPENPENDING, NAME(KIND, recv_open_i)(&other, b, &request, &st));
    ROW(ROW_RECV_CLOSE, ERR_CHAN_NOTOPEN, NAME(KIND, recv_close_i)(in, &request, &st));
    ROW(ROW_CONNECT, SUCCESS, NAME(KIND, connect_i)(a, b, &request, &st));
    ROW(ROW_SEND_OPEN, SUCCESS, NAME(KIND, send_open_i)(&out, a, &sends, &st));
    st = MCAPI_PENDING;
    COMPLETES(opens);
    exchange(out, in);
    CLOSE_LOCAL_OF(KIND, out, in);
    OK(gone = mcapi_endpoint_create(301, &st));
    ROW(ROW_RECV_OPEN, PENDING, NAME(KIND, recv_open_i)(&in, gone, &opens, &st));
    OK(mcapi_endpoint_delete(gone, &st));
    ROW(ROW_RECV_OPEN, ERR_ENDP_DELETED, mcapi_wait(&opens, &size, SOON, &st));
    OK(gone = mcapi_endpoint_create(301, &st));
    ROW(ROW_SEND_OPEN, PENDING, NAME(KIND, send_open_i)(&out, gone, &opens, &st));
    OK(mcapi_endpoint_delete(gone, &st));
    ROW(ROW_SEND_OPEN, ERR_ENDP_DELETED, mcapi_wait(&opens, &size, SOON, &st));
}

static void both_kinds(void)
{
    mcapi_status_t st;
    initialize(NODE_A);
    OK(a = mcapi_endpoint_create(100, &st));
    OK(b = mcapi_endpoint_create(200, &st));
    OK(c = mcapi_endpoint_create(300, &st));
    refused();
    orders();
    life();
    contradicted();
    cancelled_open();
    incompatible();
    half_closed();
    receiver_first();
}
