/* The table of states: what each call does to an idle, a pending, a connected VI and to one in error. */
#include "sides.h"

static side_t one, other;
static address_t here, there;

/* What must not be asked of a VI that is not idle. */
#define NOT_IDLE_REFUSES(state, vi)                                                                          \
    do {                                                                                                     \
        VIP_VI_ATTRIBUTES same = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY);                         \
        IN(vi, state, INVALID_STATE, VipConnectRequest(vi, &here.net, &there.net, 1000, NULL));              \
        IN(vi, state, INVALID_STATE, VipConnectPeerRequest(vi, &here.net, &there.net, 1000));                \
        IN(vi, state, INVALID_STATE, VipSetViAttributes(vi, &same));                                         \
        IN(vi, state, INVALID_STATE, VipDestroyVi(vi));                                                      \
        IN(vi, state, INVALID_STATE, accept_somebody(vi));                                                   \
    } while (0)

/* VipConnectAccept() with this VI, of a client who is then turned away. */
static VIP_RETURN accept_somebody(VIP_VI_HANDLE vi)
{
    char name[64];
    request_t request;
    VIP_CONN_HANDLE waiting = NULL;
    VIP_VI_HANDLE asks = create_vi(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    address_t at = address_of(&one, fresh_name(name));
    VIP_RETURN gave;
    begin_request(&request, asks, address_of(&other, "asks"), at);
    OK(VipConnectWait(one.nic, &at.net, SOON, NULL, NULL, &waiting));
    gave = VipConnectAccept(waiting, vi);
    GIVES(SUCCESS, VipConnectReject(waiting));
    GIVES(REJECT, end_request(&request));
    OK(VipDestroyVi(asks));
    return gave;
}

static void is_flushed(VIP_VI_HANDLE vi, int receives, VIP_DESCRIPTOR *expected)
{
    VIP_DESCRIPTOR *taken = NULL;
    GIVES(DESCRIPTOR_ERROR, receives ? VipRecvDone(vi, &taken) : VipSendDone(vi, &taken));
    WANT(taken == expected);
    WANT_EQUAL(HEAD(taken).Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
               VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR);
    WANT_EQUAL(HEAD(taken).Status & VIP_STATUS_OP_MASK, receives ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND);
}

static void is_empty(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *taken = descriptor_of(&one, 0);
    VIP_BOOLEAN sends = VIP_FALSE, receives = VIP_FALSE;
    GIVES(DESCRIPTOR_ERROR, VipRecvDone(vi, &taken));
    WANT(taken == NULL);
    taken = descriptor_of(&one, 0);
    GIVES(DESCRIPTOR_ERROR, VipSendDone(vi, &taken));
    WANT(taken == NULL);
    GIVES(DESCRIPTOR_ERROR, VipRecvWait(vi, SOON, &taken));
    WANT(taken == NULL);
    OK(VipQueryVi(vi, NULL, NULL, &sends, &receives));
    WANT(sends && receives);
}

static void idle(void)
{
    VIP_VI_HANDLE vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_ATTRIBUTES wanted = vi_attributes(&one, VIP_SERVICE_UNRELIABLE), told;
    VIP_DESCRIPTOR *receive = prepare(&one, 0, 0, 64), *later = prepare(&one, 1, 64, 64), *send = prepare(&one, 2, 128, 64);
    VIP_DESCRIPTOR *taken = receive;
    VIP_BOOLEAN sends, receives;
    is_empty(vi);
    wanted.EnableRdmaRead = wanted.EnableRdmaWrite = VIP_FALSE;
    IN(vi, IDLE, SUCCESS, VipSetViAttributes(vi, &wanted));
    OK(VipQueryVi(vi, NULL, &told, NULL, NULL));
    WANT(told.ReliabilityLevel == VIP_SERVICE_UNRELIABLE && !told.EnableRdmaWrite && !told.EnableRdmaRead);
    WANT(told.MaxTransferSize == TRANSFER_BYTES && told.Ptag == one.tag && told.QoS == NULL);
    /* Receives are kept; sends have nobody to go to. */
    IN(vi, IDLE, SUCCESS, VipPostRecv(vi, receive, one.handle));
    IN(vi, IDLE, SUCCESS, VipPostRecv(vi, later, one.handle));
    IN(vi, IDLE, NOT_DONE, VipRecvDone(vi, &taken));
    IN(vi, IDLE, TIMEOUT, VipRecvWait(vi, 10, &taken));
    IN(vi, IDLE, TIMEOUT, VipRecvWait(vi, 0, &taken));
    IN(vi, IDLE, SUCCESS, VipPostSend(vi, send, one.handle));
    is_flushed(vi, 0, send);
    OK(VipQueryVi(vi, NULL, NULL, &sends, &receives));
    WANT(sends && !receives);
    IN(vi, IDLE, INVALID_STATE, VipDestroyVi(vi));
    /* Disconnecting is harmless, and flushes what is posted, in order. */
    IN(vi, IDLE, SUCCESS, VipDisconnect(vi));
    is_flushed(vi, 1, receive);
    is_flushed(vi, 1, later);
    is_empty(vi);
    IN(vi, IDLE, SUCCESS, VipDisconnect(vi));
    IN(vi, IDLE, SUCCESS, VipDestroyVi(vi));
    GIVES(INVALID_PARAMETER, VipDestroyVi(vi));
}

static void pending(void)
{
    VIP_VI_HANDLE vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR *receive = prepare(&one, 0, 0, 64), *send = prepare(&one, 2, 128, 64), *taken;
    IN(vi, IDLE, SUCCESS, VipConnectPeerRequest(vi, &here.net, &there.net, VIP_INFINITE));
    NOT_IDLE_REFUSES(CONNECT_PENDING, vi);
    IN(vi, CONNECT_PENDING, SUCCESS, VipPostRecv(vi, receive, one.handle));
    IN(vi, CONNECT_PENDING, NOT_DONE, VipRecvDone(vi, &taken));
    IN(vi, CONNECT_PENDING, SUCCESS, VipPostSend(vi, send, one.handle));
    is_flushed(vi, 0, send);
    IN(vi, CONNECT_PENDING, NOT_DONE, VipConnectPeerDone(vi, NULL));
    IN(vi, CONNECT_PENDING, SUCCESS, VipDisconnect(vi));
    is_flushed(vi, 1, receive);
    is_empty(vi);
    IN(vi, IDLE, INVALID_STATE, VipConnectPeerDone(vi, NULL));
    IN(vi, IDLE, INVALID_STATE, VipConnectPeerWait(vi, NULL));
    IN(vi, IDLE, SUCCESS, VipDestroyVi(vi));
}

static void connected(void)
{
    VIP_DESCRIPTOR *taken, *receives[3];
    unsigned i;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    NOT_IDLE_REFUSES(CONNECTED, one.vi);
    IN(one.vi, CONNECTED, INVALID_STATE, VipConnectPeerDone(one.vi, NULL));
    IN(one.vi, CONNECTED, INVALID_STATE, VipConnectPeerWait(one.vi, NULL));
    is_empty(one.vi);
    exchange(&one, &other, 1);
    exchange(&other, &one, 2);
    post_recv(&other, prepare(&other, 0, 0, 64));
    IN(one.vi, CONNECTED, SUCCESS, VipPostSend(one.vi, prepare(&one, 0, 0, 64), one.handle));
    SENT(&one, descriptor_of(&one, 0), VIP_STATUS_OP_SEND);
    RECEIVED(&other, descriptor_of(&other, 0), 0);
    for (i = 0; i < 3; i++) {
        receives[i] = prepare(&one, i, i * 64, 64);
        IN(one.vi, CONNECTED, SUCCESS, VipPostRecv(one.vi, receives[i], one.handle));
    }
    IN(one.vi, CONNECTED, NOT_DONE, VipRecvDone(one.vi, &taken));
    IN(one.vi, CONNECTED, TIMEOUT, VipRecvWait(one.vi, 10, &taken));
    IN(one.vi, CONNECTED, SUCCESS, VipDisconnect(one.vi));
    WANT_EQUAL(state_of(one.vi), VIP_STATE_IDLE);
    for (i = 0; i < 3; i++)
        is_flushed(one.vi, 1, receives[i]);
    is_empty(one.vi);
}

/* The peer of connected() has disconnected. */
static void in_error(ear_t *ear)
{
    VIP_ERROR_DESCRIPTOR error;
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 64), *send = prepare(&other, 1, 64, 64), *left;
    address_t address;
    side_t swap;
    SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
    HEARS(ear, CONN_LOST, other.vi, &error);
    WANT_EQUAL(error.ResourceCode, VIP_RESOURCE_VI);
    WANT(error.NicHandle == other.nic);
    /* NOT_IDLE_REFUSES() asks of `one`, from `here`. */
    swap = one, one = other, other = swap;
    address = here, here = there, there = address;
    NOT_IDLE_REFUSES(ERROR, one.vi);
    swap = one, one = other, other = swap;
    address = here, here = there, there = address;
    IN(other.vi, ERROR, INVALID_STATE, VipConnectPeerDone(other.vi, NULL));
    IN(other.vi, ERROR, INVALID_STATE, VipConnectPeerWait(other.vi, NULL));
    IN(other.vi, ERROR, SUCCESS, VipPostRecv(other.vi, receive, other.handle));
    is_flushed(other.vi, 1, receive);
    IN(other.vi, ERROR, SUCCESS, VipPostSend(other.vi, send, other.handle));
    is_flushed(other.vi, 0, send);
    is_empty(other.vi);
    left = prepare(&other, 2, 0, 64);
    IN(other.vi, ERROR, SUCCESS, VipPostRecv(other.vi, left, other.handle));
    IN(other.vi, ERROR, SUCCESS, VipDisconnect(other.vi));
    is_flushed(other.vi, 1, left);
    WANT_EQUAL(state_of(other.vi), VIP_STATE_IDLE);
    /* Both are as good as new. */
    connect_vis(&other, other.vi, &one, one.vi);
    exchange(&one, &other, 3);
    exchange(&other, &one, 4);
    end_sides(&one, &other);
}

/* What had completed before the connection was lost can be dequeued after it, as it was. */
static void completed_stays(void)
{
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 64), *pending_receive = prepare(&other, 1, 64, 64);
    VIP_DESCRIPTOR *send = prepare(&one, 0, 0, 64);
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_RECEPTION);
    fill(data_of(&one, 0), 64, 9);
    post_recv(&other, receive);
    post_recv(&other, pending_receive);
    post_send(&one, send);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    OK(VipDisconnect(one.vi));
    SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
    RECEIVED(&other, receive, 0);
    WANT(HEAD(receive).Length == 64 && is_filled(data_of(&other, 0), 64, 9));
    RECEIVED(&other, pending_receive, VIP_STATUS_DESC_FLUSHED_ERROR);
    end_sides(&one, &other);
}

int main(int count, char **arguments)
{
    static ear_t ear;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    listen_to(&other, &ear);
    here = address_of(&one, "nobody asks from here");
    there = address_of(&other, "nobody asks from there");
    idle();
    pending();
    connected();
    in_error(&ear);
    completed_stays();
    close_side(&one);
    close_side(&other);
    return done();
}
