/* Accepting: attributes that must be alike; a failed accept is not told to the client, the server changes its VI and accepts again.
 * Addresses: what matches, what cannot be. Several clients of one server. */
#include "sides.h"

static side_t one, other;

/* A client whose request waits at the server. */
static VIP_CONN_HANDLE waiting_client(request_t *request, VIP_VI_HANDLE client)
{
    char name[64];
    VIP_CONN_HANDLE waiting = NULL;
    address_t at = address_of(&other, fresh_name(name));
    begin_request(request, client, address_of(&one, "client"), at);
    OK(VipConnectWait(other.nic, &at.net, SOON, NULL, NULL, &waiting));
    return waiting;
}

static void mismatches(void)
{
    VIP_VI_ATTRIBUTES wanted = vi_attributes(&other, VIP_SERVICE_RELIABLE_DELIVERY), wrong = wanted;
    VIP_MUSUBI_QOS urgent;
    request_t request;
    VIP_CONN_HANDLE waiting;
    memset(&urgent, 0, sizeof urgent);
    urgent.Size = sizeof urgent;
    urgent.Class = 1;
    one.vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    wrong.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
    OK(VipCreateVi(other.nic, &wrong, NULL, NULL, &other.vi));
    waiting = waiting_client(&request, one.vi);
    IN(other.vi, IDLE, INVALID_RELIABILITY_LEVEL, VipConnectAccept(waiting, other.vi));
    WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECT_PENDING);
    wrong = wanted;
    wrong.MaxTransferSize /= 2;
    OK(VipSetViAttributes(other.vi, &wrong));
    IN(other.vi, IDLE, INVALID_MTU, VipConnectAccept(waiting, other.vi));
    wrong = wanted;
    wrong.QoS = &urgent;
    OK(VipSetViAttributes(other.vi, &wrong));
    IN(other.vi, IDLE, INVALID_QOS, VipConnectAccept(waiting, other.vi));
    GIVES(INVALID_PARAMETER, VipConnectAccept(waiting, NULL));
    GIVES(INVALID_PARAMETER, VipConnectAccept(waiting, one.vi));
    GIVES(INVALID_PARAMETER, VipConnectAccept(NULL, other.vi));
    /* What the peer may do need not be alike. */
    wrong = wanted;
    wrong.EnableRdmaRead = wrong.EnableRdmaWrite = VIP_FALSE;
    OK(VipSetViAttributes(other.vi, &wrong));
    GIVES(SUCCESS, VipConnectAccept(waiting, other.vi));
    GIVES(SUCCESS, end_request(&request));
    WANT(!request.theirs.EnableRdmaWrite && !request.theirs.EnableRdmaRead);
    exchange(&one, &other, 1);
    end_sides(&one, &other);
}

/* The class of the quality of service; what else it has is each side's own. */
static void qualities(void)
{
    VIP_VI_ATTRIBUTES mine = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY), told;
    VIP_VI_ATTRIBUTES theirs = vi_attributes(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MUSUBI_QOS quality, short_one;
    VIP_VI_HANDLE vi = NULL;
    memset(&quality, 0, sizeof quality);
    quality.Size = sizeof quality;
    mine.QoS = &quality;
    quality.Class = VIP_MUSUBI_QOS_CLASSES;
    GIVES(INVALID_QOS, VipCreateVi(one.nic, &mine, NULL, NULL, &vi));
    quality.Class = 2;
    quality.Size = 7;
    GIVES(INVALID_QOS, VipCreateVi(one.nic, &mine, NULL, NULL, &vi));
    quality.Size = sizeof quality;
    GIVES(SUCCESS, VipCreateVi(one.nic, &mine, NULL, NULL, &one.vi));
    OK(VipQueryVi(one.vi, NULL, &told, NULL, NULL));
    WANT(told.QoS != NULL && ((VIP_MUSUBI_QOS *)told.QoS)->Class == 2);
    WANT(((VIP_MUSUBI_QOS *)told.QoS)->Size >= 8);
    /* The shortest that there can be. */
    memset(&short_one, 0xa5, sizeof short_one);
    short_one.Size = 8;
    short_one.Class = 2;
    theirs.QoS = &short_one;
    GIVES(SUCCESS, VipCreateVi(other.nic, &theirs, NULL, NULL, &other.vi));
    connect_vis(&one, one.vi, &other, other.vi);
    exchange(&one, &other, 1);
    exchange(&other, &one, 2);
    end_sides(&one, &other);
}

/* Attributes that no VI can have. */
static void impossible(void)
{
    VIP_VI_ATTRIBUTES wrong = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    VIP_MUSUBI_QOS quality;
    VIP_VI_HANDLE vi = NULL;
    GIVES(INVALID_PARAMETER, VipCreateVi(one.nic, NULL, NULL, NULL, &vi));
    GIVES(INVALID_PARAMETER, VipCreateVi(one.nic, &wrong, NULL, NULL, NULL));
    wrong.ReliabilityLevel = 0;
    GIVES(INVALID_RELIABILITY_LEVEL, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong.ReliabilityLevel = 3;
    GIVES(INVALID_RELIABILITY_LEVEL, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    wrong.MaxTransferSize = one.limits.MaxTransferSize + 1;
    GIVES(INVALID_MTU, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong.MaxTransferSize = 0;
    GIVES(INVALID_MTU, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    wrong.EnableRdmaRead = VIP_TRUE;
    GIVES(INVALID_RDMAREAD, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    wrong.Ptag = NULL;
    if (getenv("MUSUBI_VIPL_NULL_PTAG") == NULL)
        GIVES(INVALID_PTAG, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong.Ptag = one.nic;
    GIVES(INVALID_PTAG, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    wrong.Ptag = &wrong;
    GIVES(INVALID_PTAG, VipCreateVi(one.nic, &wrong, NULL, NULL, &vi));
    WANT(vi == NULL);
    vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    GIVES(INVALID_PARAMETER, VipSetViAttributes(vi, NULL));
    GIVES(INVALID_PTAG, VipSetViAttributes(vi, &wrong));
    wrong = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    wrong.MaxTransferSize = one.limits.MaxTransferSize + 1;
    GIVES(INVALID_MTU, VipSetViAttributes(vi, &wrong));
    wrong.MaxTransferSize = TRANSFER_BYTES;
    memset(&quality, 0, sizeof quality);
    quality.Size = sizeof quality;
    quality.Class = VIP_MUSUBI_QOS_CLASSES;
    wrong.QoS = &quality;
    GIVES(INVALID_QOS, VipSetViAttributes(vi, &wrong));
    wrong.QoS = NULL;
    wrong.EnableRdmaRead = VIP_TRUE;
    GIVES(INVALID_RDMAREAD, VipSetViAttributes(vi, &wrong));
    wrong.ReliabilityLevel = 7;
    GIVES(INVALID_RELIABILITY_LEVEL, VipSetViAttributes(vi, &wrong));
    OK(VipDestroyVi(vi));
}

/* Discriminators are strings of bytes of equal length; addresses beyond the limits are none. */
static void addresses(void)
{
    static const unsigned char bytes[4] = { 0, 1, 0, 255 };
    address_t here = address_of(&one, "x"), at = address_of(&other, ""), longer = at, wrong = at;
    request_t request;
    VIP_CONN_HANDLE waiting = NULL;
    unsigned char longest[400];
    VIP_RETURN gave;
    set_discriminator(&at, bytes, 3);
    set_discriminator(&longer, bytes, 4);
    one.vi = create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    other.vi = create_vi(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    begin_request(&request, one.vi, here, longer);
    GIVES(TIMEOUT, VipConnectWait(other.nic, &at.net, A_WHILE, NULL, NULL, &waiting));
    GIVES(SUCCESS, VipConnectWait(other.nic, &longer.net, SOON, NULL, NULL, &waiting));
    GIVES(SUCCESS, VipConnectAccept(waiting, other.vi));
    GIVES(SUCCESS, end_request(&request));
    OK(VipDisconnect(one.vi));
    OK(VipDisconnect(other.vi));
    /* No discriminator, and the longest. */
    set_discriminator(&at, bytes, 0);
    begin_request(&request, one.vi, address_of(&one, ""), at);
    GIVES(SUCCESS, VipConnectWait(other.nic, &at.net, SOON, NULL, NULL, &waiting));
    GIVES(SUCCESS, VipConnectReject(waiting));
    GIVES(REJECT, end_request(&request));
    memset(longest, 0x7f, sizeof longest);
    WANT(other.limits.MaxDiscriminatorLen < sizeof longest);
    set_discriminator(&at, longest, other.limits.MaxDiscriminatorLen);
    begin_request(&request, one.vi, here, at);
    GIVES(SUCCESS, VipConnectWait(other.nic, &at.net, SOON, NULL, NULL, &waiting));
    GIVES(SUCCESS, VipConnectReject(waiting));
    GIVES(REJECT, end_request(&request));
    set_discriminator(&at, longest, other.limits.MaxDiscriminatorLen + 1u);
    GIVES(INVALID_PARAMETER, VipConnectWait(other.nic, &at.net, 10, NULL, NULL, &waiting));
    GIVES(INVALID_PARAMETER, VipConnectRequest(one.vi, &here.net, &at.net, 10, NULL));
    GIVES(INVALID_PARAMETER, VipConnectPeerRequest(one.vi, &here.net, &at.net, 10));
    /* Hosts that there are not, or that are no address. */
    wrong.net.HostAddressLen--;
    GIVES(INVALID_PARAMETER, VipConnectRequest(one.vi, &here.net, &wrong.net, 10, NULL));
    wrong.net.HostAddressLen++;
    memset(wrong.net.HostAddress, 0xfd, wrong.net.HostAddressLen);
    gave = VipConnectRequest(one.vi, &here.net, &wrong.net, 10, NULL);
    GIVES(NOT_REACHABLE, gave);
    CHECKS(NOT_REACHABLE, VipConnectRequest);
    GIVES(NOT_REACHABLE, VipConnectPeerRequest(one.vi, &here.net, &wrong.net, 10));
    GIVES(INVALID_PARAMETER, VipConnectRequest(one.vi, &here.net, NULL, 10, NULL));
    GIVES(INVALID_PARAMETER, VipConnectRequest(one.vi, NULL, &longer.net, 10, NULL));
    GIVES(INVALID_PARAMETER, VipConnectWait(other.nic, NULL, 10, NULL, NULL, &waiting));
    GIVES(INVALID_PARAMETER, VipConnectWait(other.nic, &longer.net, 10, NULL, NULL, NULL));
    WANT_EQUAL(state_of(one.vi), VIP_STATE_IDLE);
    OK(VipDestroyVi(one.vi));
    OK(VipDestroyVi(other.vi));
}

/* Clients that come at once wait for their turn, none is lost. */
static void several(void)
{
    enum { CLIENTS = 8 };
    request_t requests[CLIENTS];
    VIP_VI_HANDLE accepted[CLIENTS];
    char name[64];
    address_t at = address_of(&other, fresh_name(name));
    unsigned i;
    for (i = 0; i < CLIENTS; i++)
        begin_request(&requests[i], create_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY), address_of(&one, "several"), at);
    for (i = 0; i < CLIENTS; i++) {
        VIP_CONN_HANDLE waiting = NULL;
        accepted[i] = create_vi(&other, VIP_SERVICE_RELIABLE_DELIVERY);
        GIVES(SUCCESS, VipConnectWait(other.nic, &at.net, SOON, NULL, NULL, &waiting));
        GIVES(SUCCESS, VipConnectAccept(waiting, accepted[i]));
    }
    for (i = 0; i < CLIENTS; i++)
        GIVES(SUCCESS, end_request(&requests[i]));
    for (i = 0; i < CLIENTS; i++) {
        end_vi(requests[i].vi);
        end_vi(accepted[i]);
    }
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    mismatches();
    qualities();
    impossible();
    addresses();
    several();
    close_side(&one);
    close_side(&other);
    return done();
}
