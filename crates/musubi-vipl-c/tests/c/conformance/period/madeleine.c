/* The habits of Madeleine: Control and Data[i]; long descriptors of a control segment and 252 data segments, allocated by size and rounded;
 * the length of a message in the immediate data of one without segments; receives posted before connecting; the discriminator's
 * length set again after VipNSGetHostByName; a server that accepts in a loop. */
#include "check.h"

#define MAX_SEGMENTS 252
#define DESCRIPTOR_SIZE (sizeof(VIP_DESCRIPTOR) + MAX_SEGMENTS * sizeof(VIP_DATA_SEGMENT))
#define LIMIT 32768

typedef struct {
    int host_id, channel_id;
} discriminator_t;

typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_PROTECTION_HANDLE tag;
    VIP_VI_HANDLE vi;
    char *descriptors, *buffer;
    VIP_MEM_HANDLE of_descriptors, of_buffer;
    const char *name;
} adapter_t;

static adapter_t adapters[2];

static void *aligned(size_t bytes)
{
    void *room = NULL;
    WANT(posix_memalign(&room, VIP_DESCRIPTOR_ALIGNMENT, bytes) == 0);
    memset(room, 0, bytes);
    return room;
}

static VIP_MEM_HANDLE registered(adapter_t *adapter, void *memory, size_t bytes)
{
    VIP_MEM_ATTRIBUTES attributes;
    VIP_MEM_HANDLE handle;
    attributes.Ptag = adapter->tag;
    attributes.EnableRdmaWrite = VIP_FALSE;
    attributes.EnableRdmaRead = VIP_FALSE;
    OK(VipRegisterMem(adapter->nic, memory, bytes, &attributes, &handle));
    return handle;
}

static size_t rounded(void)
{
    return (DESCRIPTOR_SIZE + VIP_DESCRIPTOR_ALIGNMENT - 1) / VIP_DESCRIPTOR_ALIGNMENT * VIP_DESCRIPTOR_ALIGNMENT;
}

static VIP_DESCRIPTOR *descriptor(adapter_t *adapter, int which)
{
    return (VIP_DESCRIPTOR *)(void *)(adapter->descriptors + (size_t)which * rounded());
}

static void init(adapter_t *adapter, const char *name)
{
    VIP_VI_ATTRIBUTES attributes;
    adapter->name = name;
    OK(VipOpenNic(name, &adapter->nic));
    OK(VipQueryNic(adapter->nic, &adapter->attributes));
    WANT(adapter->attributes.MaxSegmentsPerDesc >= MAX_SEGMENTS);
    OK(VipNSInit(adapter->nic, NULL));
    OK(VipCreatePtag(adapter->nic, &adapter->tag));
    adapter->descriptors = (char *)aligned(4 * rounded());
    adapter->buffer = (char *)aligned(2 * LIMIT);
    adapter->of_descriptors = registered(adapter, adapter->descriptors, 4 * rounded());
    adapter->of_buffer = registered(adapter, adapter->buffer, 2 * LIMIT);
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = LIMIT;
    attributes.Ptag = adapter->tag;
    OK(VipCreateVi(adapter->nic, &attributes, NULL, NULL, &adapter->vi));
}

/* The address of a name; the call leaves the discriminator to the caller, who sets its length before and after. */
static VIP_NET_ADDRESS *address_of(adapter_t *asks, const char *name, int channel)
{
    discriminator_t discriminator;
    VIP_NET_ADDRESS *address;
    discriminator.host_id = (int)getpid();
    discriminator.channel_id = channel;
    address = (VIP_NET_ADDRESS *)aligned(sizeof(VIP_NET_ADDRESS) + asks->attributes.NicAddressLen + sizeof discriminator);
    address->HostAddressLen = asks->attributes.NicAddressLen;
    address->DiscriminatorLen = sizeof discriminator;
    OK(VipNSGetHostByName(asks->nic, (VIP_CHAR *)(uintptr_t)name, address, 0));
    address->DiscriminatorLen = sizeof discriminator;
    memcpy(address->HostAddress + address->HostAddressLen, &discriminator, sizeof discriminator);
    return address;
}

static void post_receive(adapter_t *adapter, int which, int bytes)
{
    VIP_DESCRIPTOR *desc = descriptor(adapter, which);
    desc->Data[0].Data.Address = adapter->buffer;
    desc->Data[0].Length = (VIP_UINT32)bytes;
    desc->Data[0].Handle = adapter->of_buffer;
    desc->Control.SegCount = bytes > 0;
    desc->Control.Control = 0;
    desc->Control.Length = (VIP_UINT32)bytes;
    desc->Control.Status = 0;
    desc->Control.Reserved = 0;
    OK(VipPostRecv(adapter->vi, desc, adapter->of_descriptors));
}

static void *client(void *unused)
{
    VIP_NET_ADDRESS *local = address_of(&adapters[0], adapters[0].name, 1);
    VIP_NET_ADDRESS *remote = address_of(&adapters[0], adapters[1].name, 2);
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN status;
    (void)unused;
    do
        status = VipConnectRequest(adapters[0].vi, local, remote, 1000, &theirs);
    while (status == VIP_TIMEOUT || status == VIP_NO_MATCH);
    GIVES(SUCCESS, status);
    free(local), free(remote);
    return NULL;
}

static VIP_DESCRIPTOR *wait_for(VIP_RETURN (*wait)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *desc = NULL;
    VIP_RETURN status;
    do
        status = wait(vi, 10, &desc);
    while (status == VIP_TIMEOUT);
    GIVES(SUCCESS, status);
    return desc;
}

/* The length first, by immediate data; then the message, of as many segments as there can be. */
static void talk(void)
{
    VIP_DESCRIPTOR *desc = descriptor(&adapters[0], 0);
    int bytes = 0, i;
    desc->Control.Length = 0;
    desc->Control.Status = 0;
    desc->Control.Control = VIP_CONTROL_OP_SENDRECV;
    desc->Control.SegCount = 0;
    for (i = 0; i < MAX_SEGMENTS; i++)
        bytes += i % 100;
    desc->Control.ImmediateData = (VIP_UINT32)bytes;
    desc->Control.Control |= VIP_CONTROL_IMMEDIATE;
    OK(VipPostSend(adapters[0].vi, desc, adapters[0].of_descriptors));
    WANT(wait_for(VipSendWait, adapters[0].vi) == desc);
    desc = wait_for(VipRecvWait, adapters[1].vi);
    WANT((desc->Control.Status & VIP_STATUS_IMMEDIATE) && desc->Control.Length == 0);
    WANT_EQUAL(desc->Control.ImmediateData, bytes);
    desc = descriptor(&adapters[0], 1);
    desc->Control.Control = VIP_CONTROL_OP_SENDRECV;
    desc->Control.Status = 0;
    desc->Control.Length = 0;
    for (i = 0; i < MAX_SEGMENTS; i++) {
        desc->Data[desc->Control.SegCount].Data.Address = adapters[0].buffer + desc->Control.Length;
        desc->Data[desc->Control.SegCount].Handle = adapters[0].of_buffer;
        desc->Data[desc->Control.SegCount].Length = (VIP_UINT32)(i % 100);
        memset(adapters[0].buffer + desc->Control.Length, i, (size_t)i % 100);
        desc->Control.Length += (VIP_UINT32)(i % 100);
        desc->Control.SegCount++;
    }
    OK(VipPostSend(adapters[0].vi, desc, adapters[0].of_descriptors));
    WANT(wait_for(VipSendWait, adapters[0].vi) == desc);
    desc = wait_for(VipRecvWait, adapters[1].vi);
    WANT_EQUAL(desc->Control.Length, bytes);
    WANT(memcmp(adapters[0].buffer, adapters[1].buffer, (size_t)bytes) == 0);
}

int main(int count, char **arguments)
{
    VIP_NET_ADDRESS *local, *remote;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE connection;
    pthread_t thread;
    int i;
    begin(count, arguments);
    for (i = 0; i < 2; i++)
        init(&adapters[i], nic_names[i]);
    local = address_of(&adapters[1], adapters[1].name, 2);
    remote = address_of(&adapters[1], adapters[0].name, 0);
    post_receive(&adapters[1], 0, 0);
    post_receive(&adapters[1], 1, LIMIT);
    WANT(pthread_create(&thread, NULL, client, NULL) == 0);
    OK(VipConnectWait(adapters[1].nic, local, VIP_INFINITE, remote, &theirs, &connection));
    OK(VipConnectAccept(connection, adapters[1].vi));
    WANT(pthread_join(thread, NULL) == 0);
    talk();
    for (i = 0; i < 2; i++) {
        OK(VipDisconnect(adapters[i].vi));
        OK(VipDestroyVi(adapters[i].vi));
        OK(VipDeregisterMem(adapters[i].nic, adapters[i].buffer, adapters[i].of_buffer));
        OK(VipDeregisterMem(adapters[i].nic, adapters[i].descriptors, adapters[i].of_descriptors));
        OK(VipDestroyPtag(adapters[i].nic, adapters[i].tag));
        OK(VipNSShutdown(adapters[i].nic));
        OK(VipCloseNic(adapters[i].nic));
        free(adapters[i].descriptors), free(adapters[i].buffer);
    }
    free(local), free(remote);
    return done();
}
