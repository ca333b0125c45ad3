/* Completion queues, handlers, errors, limits, tags, names, attributes of NICs, peers that ask each other. */
#include "check.h"

static volatile int called, errors[16];
static VIP_DESCRIPTOR *volatile handed;
static VIP_VI_HANDLE volatile about;

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
    HOLDS(context == (VIP_PVOID)&called && nic == other.nic);
    handed = d;
    about = vi;
    __sync_fetch_and_add(&called, 1);
}

static void on_queue(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive)
{
    HOLDS(context == (VIP_PVOID)&called && nic == other.nic && is_receive);
    about = vi;
    __sync_fetch_and_add(&called, 1);
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    HOLDS(context == (VIP_PVOID)&errors);
    HOLDS(error->NicHandle == other.nic);
    about = error->ViHandle;
    __sync_fetch_and_add(&errors[error->ErrorCode], 1);
}

static void until(volatile int *count, int value)
{
    int tries;
    for (tries = 0; *count < value && tries < 20000; tries++)
        usleep(1000);
    IS(*count, value);
}

static void queues(void)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;
    VIP_DESCRIPTOR *d, *receive;
    create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    IS(VipCreateCQ(other.nic, 0, &queue), VIP_INVALID_PARAMETER);
    IS(VipCreateCQ(other.nic, 1ul << 40, &queue), VIP_ERROR_RESOURCE);
    IS(VipCreateCQ(other.nic, 10, NULL), VIP_INVALID_PARAMETER);
    OK(VipCreateCQ(other.nic, 10, &queue));
    OK(VipCreateVi(other.nic, &attributes, queue, queue, &other.vi));
    IS(VipCreateVi(other.nic, &attributes, other.vi, NULL, &vi), VIP_INVALID_PARAMETER);
    join();
    IS(VipCQDone(queue, &vi, &is_receive), VIP_NOT_DONE);
    IS(VipCQWait(queue, 10, &vi, &is_receive), VIP_TIMEOUT);
    IS(VipCQWait(queue, 0, &vi, &is_receive), VIP_TIMEOUT);
    receive = plain(&other, 1, 0, 10);
    post_receive(&other, receive);
    post_send(&one, plain(&one, 1, 0, 10));
    OK(VipCQWait(queue, SOON, &vi, &is_receive));
    HOLDS(vi == other.vi && is_receive);
    OK(VipRecvDone(vi, &d));
    HOLDS(d == receive);
    IS(VipRecvWait(other.vi, 10, &d), VIP_ERROR_RESOURCE);
    IS(VipRecvNotify(other.vi, NULL, on_descriptor), VIP_ERROR_RESOURCE);
    IS(VipDestroyCQ(queue), VIP_ERROR_RESOURCE);
    OK(VipResizeCQ(queue, 20));
    IS(VipResizeCQ(queue, 0), VIP_INVALID_PARAMETER);
    /* A handler of the queue is called once. */
    called = 0;
    IS(VipCQNotify(queue, NULL, NULL), VIP_INVALID_PARAMETER);
    OK(VipCQNotify(queue, (VIP_PVOID)&called, on_queue));
    post_receive(&other, receive);
    post_receive(&other, plain(&other, 2, 0, 10));
    post_send(&one, plain(&one, 2, 0, 10));
    until(&called, 1);
    HOLDS(about == other.vi);
    post_send(&one, plain(&one, 3, 0, 10));
    OK(VipCQWait(queue, SOON, &vi, &is_receive));
    IS(called, 1);
    part(&one);
    part(&other);
    OK(VipDestroyCQ(queue));
    IS(VipCQDone(queue, &vi, &is_receive), VIP_INVALID_PARAMETER);
}

static void handlers(void)
{
    VIP_DESCRIPTOR *receive, *d;
    connected(VIP_SERVICE_RELIABLE_DELIVERY);
    called = 0;
    receive = plain(&other, 1, 0, 10);
    IS(VipRecvNotify(other.vi, NULL, NULL), VIP_INVALID_PARAMETER);
    OK(VipRecvNotify(other.vi, (VIP_PVOID)&called, on_descriptor));
    post_receive(&other, receive);
    post_send(&one, plain(&one, 1, 0, 10));
    until(&called, 1);
    HOLDS(handed == receive && about == other.vi);
    /* It is for one completion. */
    post_receive(&other, receive);
    post_send(&one, plain(&one, 2, 0, 10));
    received(&other, receive, VIP_STATUS_OP_RECEIVE, 10);
    IS(called, 1);
    OK(VipSendNotify(other.vi, (VIP_PVOID)&called, on_descriptor));
    post_receive(&one, plain(&one, 5, 0, 10));
    d = plain(&other, 3, 0, 10);
    post_send(&other, d);
    until(&called, 2);
    HOLDS(handed == d);
    part(&one);
    part(&other);
}

static void error_callback(void)
{
    connected(VIP_SERVICE_UNRELIABLE);
    memset((void *)errors, 0, sizeof errors);
    OK(VipErrorCallback(other.nic, (VIP_PVOID)&errors, on_error));
    post_send(&one, plain(&one, 1, 0, 10));
    until(&errors[VIP_ERROR_RECVQ_EMPTY], 1);
    HOLDS(about == other.vi);
    IS(VipPostRecv(other.vi, descriptor(&other, 1), other.handle + 1), VIP_INVALID_PARAMETER);
    until(&errors[VIP_ERROR_POST_DESC], 1);
    part(&one);
    until(&errors[VIP_ERROR_CONN_LOST], 1);
    OK(VipErrorCallback(other.nic, NULL, NULL));
    part(&other);
}

static void limits(void)
{
    VIP_NIC_ATTRIBUTES nic;
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MEM_ATTRIBUTES memory, told;
    VIP_PROTECTION_HANDLE tag;
    VIP_MEM_HANDLE handle, again;
    VIP_ULONG count;
    VIP_DESCRIPTOR *d;
    OK(VipQueryNic(one.nic, &nic));
    IS(VipQueryNic(one.nic, NULL), VIP_INVALID_PARAMETER);
    IS(VipQueryNic(&nic, &nic), VIP_INVALID_PARAMETER);
    IS(strcmp(nic.Name, one.name), 0);
    IS(nic.ThreadSafe, VIP_TRUE);
    IS(nic.ReliabilityLevelSupport, 7);
    IS(nic.RDMAReadSupport, 6);
    attributes.MaxTransferSize = nic.MaxTransferSize;
    OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &one.vi));
    attributes.MaxTransferSize++;
    IS(VipSetViAttributes(one.vi, &attributes), VIP_INVALID_MTU);
    attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.Ptag = NULL;
    IS(VipSetViAttributes(one.vi, &attributes), VIP_INVALID_PTAG);
    attributes = vi_attributes(&one, 3);
    IS(VipSetViAttributes(one.vi, &attributes), VIP_INVALID_RELIABILITY_LEVEL);
    attributes = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    attributes.EnableRdmaRead = VIP_TRUE;
    IS(VipSetViAttributes(one.vi, &attributes), VIP_INVALID_RDMAREAD);
    for (count = 0; count < nic.MaxDescriptorsPerQueue; count++)
        post_receive(&one, plain(&one, 1, 0, 0));
    IS(VipPostRecv(one.vi, descriptor(&one, 1), one.handle), VIP_ERROR_RESOURCE);
    part(&one);
    /* Memory at any address, in any number of registrations of the same bytes. */
    OK(VipCreatePtag(one.nic, &tag));
    memory.Ptag = tag;
    memory.EnableRdmaWrite = VIP_TRUE;
    memory.EnableRdmaRead = VIP_FALSE;
    OK(VipRegisterMem(one.nic, one.memory + 3, 1, &memory, &handle));
    OK(VipRegisterMem(one.nic, one.memory + 3, 1, &memory, &again));
    HOLDS(handle != again);
    IS(VipRegisterMem(one.nic, one.memory, 0, &memory, &again), VIP_INVALID_PARAMETER);
    IS(VipRegisterMem(one.nic, NULL, 10, &memory, &again), VIP_INVALID_PARAMETER);
    IS(VipDestroyPtag(one.nic, tag), VIP_ERROR_RESOURCE);
    OK(VipQueryMem(one.nic, one.memory + 3, handle, &told));
    HOLDS(told.Ptag == tag && told.EnableRdmaWrite && !told.EnableRdmaRead);
    IS(VipQueryMem(one.nic, one.memory, handle, &told), VIP_INVALID_PARAMETER);
    IS(VipDeregisterMem(one.nic, one.memory, handle), VIP_INVALID_PARAMETER);
    OK(VipDeregisterMem(one.nic, one.memory + 3, handle));
    IS(VipDeregisterMem(one.nic, one.memory + 3, handle), VIP_INVALID_PARAMETER);
    OK(VipDeregisterMem(one.nic, one.memory + 3, again));
    OK(VipDestroyPtag(one.nic, tag));
    IS(VipDestroyPtag(one.nic, tag), VIP_INVALID_PTAG);
    d = NULL;
    (void)d;
}

static void qualities(void)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY), told;
    VIP_MUSUBI_QOS quality;
    memset(&quality, 0, sizeof quality);
    attributes.QoS = &quality;
    IS(VipCreateVi(one.nic, &attributes, NULL, NULL, &one.vi), VIP_INVALID_QOS);
    quality.Size = sizeof quality;
    quality.Class = VIP_MUSUBI_QOS_CLASSES;
    IS(VipCreateVi(one.nic, &attributes, NULL, NULL, &one.vi), VIP_INVALID_QOS);
    quality.Class = 2;
    OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &one.vi));
    OK(VipQueryVi(one.vi, NULL, &told, NULL, NULL));
    IS(((VIP_MUSUBI_QOS *)told.QoS)->Class, 2);
    part(&one);
    /* A structure of a time that knew the class only. */
    quality.Size = 8;
    quality.MessageRate = 77;
    OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &one.vi));
    part(&one);
}

static void names(void)
{
    VIP_CHAR name[64];
    VIP_ULONG length = sizeof name;
    address_t address;
    VIP_AUTODISCOVERY_LIST list;
    OK(VipNSInit(one.nic, NULL));
    OK(VipNSGetHostByName(one.nic, (VIP_CHAR *)other.name, &address.address, 0));
    IS(VipNSGetHostByName(one.nic, (VIP_CHAR *)other.name, &address.address, 1), VIP_ERROR_NAMESERVICE);
    IS(VipNSGetHostByName(one.nic, (VIP_CHAR *)"nobody", &address.address, 0), VIP_ERROR_NAMESERVICE);
    OK(VipNSGetHostByAddr(one.nic, &address.address, name, &length));
    IS(strcmp(name, other.name), 0);
    IS(length, strlen(other.name) + 1);
    length = 2;
    IS(VipNSGetHostByAddr(one.nic, &address.address, name, &length), VIP_ERROR_RESOURCE);
    IS(length, strlen(other.name) + 1);
    IS(VipQuerySystemManagementInfo(one.nic, 99, &list), VIP_ERROR_NOT_SUPPORTED);
    memset(&list, 0, sizeof list);
    IS(VipQuerySystemManagementInfo(one.nic, VIP_SMI_AUTODISCOVERY, &list), VIP_ERROR_RESOURCE);
    HOLDS(list.NumAdAddrs >= 1);
    OK(VipNSShutdown(one.nic));
}

static void peers(void)
{
    VIP_VI_ATTRIBUTES attributes;
    address_t here, there;
    create(&one, VIP_SERVICE_RELIABLE_RECEPTION);
    create(&other, VIP_SERVICE_RELIABLE_RECEPTION);
    at(&here, &one, "x");
    at(&there, &other, "y");
    IS(VipConnectPeerDone(one.vi, &attributes), VIP_INVALID_STATE);
    IS(VipConnectPeerRequest(one.vi, &here.address, &there.address, 0), VIP_INVALID_PARAMETER);
    OK(VipConnectPeerRequest(one.vi, &here.address, &there.address, 50));
    IS(VipConnectPeerWait(one.vi, &attributes), VIP_TIMEOUT);
    IS(state_of(&one), VIP_STATE_IDLE);
    OK(VipConnectPeerRequest(one.vi, &here.address, &there.address, SOON));
    IS(VipConnectPeerDone(one.vi, &attributes), VIP_NOT_DONE);
    OK(VipConnectPeerRequest(other.vi, &there.address, &here.address, SOON));
    OK(VipConnectPeerWait(one.vi, &attributes));
    OK(VipConnectPeerWait(other.vi, &attributes));
    IS(attributes.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
    post_receive(&other, plain(&other, 1, 0, 10));
    post_send(&one, plain(&one, 1, 0, 10));
    received(&other, descriptor(&other, 1), VIP_STATUS_OP_RECEIVE, 10);
    part(&one);
    part(&other);
}

static void servers(void)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    address_t local, to, from;
    create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    at(&local, &one, "client");
    at(&to, &other, "nobody");
    IS(VipConnectRequest(one.vi, &local.address, &to.address, 0, &attributes), VIP_INVALID_PARAMETER);
    IS(VipConnectRequest(one.vi, &local.address, &to.address, SOON, &attributes), VIP_NO_MATCH);
    IS(VipConnectRequest(one.vi, NULL, &to.address, SOON, &attributes), VIP_INVALID_PARAMETER);
    to.address.HostAddress[0] = 9;
    IS(VipConnectRequest(one.vi, &local.address, &to.address, SOON, &attributes), VIP_NOT_REACHABLE);
    to.address.HostAddressLen = 6;
    IS(VipConnectRequest(one.vi, &local.address, &to.address, SOON, &attributes), VIP_INVALID_PARAMETER);
    at(&to, &other, "nobody");
    IS(VipConnectWait(other.nic, &to.address, 0, &from.address, &attributes, &connection), VIP_TIMEOUT);
    IS(VipConnectWait(other.nic, &to.address, 10, &from.address, &attributes, NULL), VIP_INVALID_PARAMETER);
    IS(VipConnectAccept((VIP_CONN_HANDLE)&connection, one.vi), VIP_INVALID_PARAMETER);
    IS(VipConnectReject(one.vi), VIP_INVALID_PARAMETER);
    /* Nobody takes it in time. */
    IS(VipConnectRequest(one.vi, &local.address, &to.address, 50, &attributes), VIP_TIMEOUT);
    IS(state_of(&one), VIP_STATE_IDLE);
    part(&one);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    queues();
    handlers();
    error_callback();
    limits();
    qualities();
    names();
    peers();
    servers();
    end();
    return 0;
}
