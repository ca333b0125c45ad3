/* What the programs of these tests share: two sides that are connected, in one process.
 *
 * argv[1] and argv[2] name the NICs of the two sides; if they are the same, both sides use one handle. */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vipl.h>

/* Ends the program if an expression has not the value that it should have. */
#define IS(expression, expected)                                                                                       \
    do {                                                                                                               \
        long is_ = (long)(expression), should_ = (long)(expected);                                                     \
        if (is_ != should_) {                                                                                          \
            fprintf(stderr, "%s:%d: %s is %ld, not %s (%ld)\n", __FILE__, __LINE__, #expression, is_, #expected,      \
                    should_);                                                                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OK(expression) IS(expression, VIP_SUCCESS)
#define HOLDS(expression) IS(!!(expression), 1)

#define MEMORY_BYTES (1u << 20)
#define DESCRIPTORS 256
#define SOON 20000

/* Of a host's bytes and a discriminator's. */
typedef union {
    VIP_NET_ADDRESS address;
    unsigned char room[256];
} address_t;

typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE tag;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE handle;
    unsigned char *memory;
    const char *name;
} side_t;

static side_t one, other;

static VIP_VI_ATTRIBUTES vi_attributes(const side_t *side, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = level;
    attributes.MaxTransferSize = 65536;
    attributes.Ptag = side->tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = level == VIP_SERVICE_UNRELIABLE ? VIP_FALSE : VIP_TRUE;
    return attributes;
}

static VIP_NET_ADDRESS *at(address_t *address, const side_t *side, const char *discriminator)
{
    memset(address, 0, sizeof *address);
    OK(VipNSGetHostByName(side->nic, (VIP_CHAR *)side->name, &address->address, 0));
    address->address.DiscriminatorLen = (VIP_UINT16)strlen(discriminator);
    memcpy(address->address.HostAddress + address->address.HostAddressLen, discriminator, strlen(discriminator));
    return &address->address;
}

static void begin_side(side_t *side, const char *name, VIP_NIC_HANDLE known)
{
    VIP_MEM_ATTRIBUTES attributes;
    memset(side, 0, sizeof *side);
    side->name = name;
    side->nic = known;
    if (!known)
        OK(VipOpenNic(name, &side->nic));
    OK(VipCreatePtag(side->nic, &side->tag));
    HOLDS(posix_memalign((void **)&side->memory, 4096, MEMORY_BYTES) == 0);
    memset(side->memory, 0, MEMORY_BYTES);
    attributes.Ptag = side->tag;
    attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_TRUE;
    OK(VipRegisterMem(side->nic, side->memory, MEMORY_BYTES, &attributes, &side->handle));
}

static void begin(int argc, char **argv)
{
    HOLDS(argc >= 3);
    alarm(120);
    begin_side(&one, argv[1], NULL);
    begin_side(&other, argv[2], strcmp(argv[1], argv[2]) ? NULL : one.nic);
}

static void end(void)
{
    int same = one.nic == other.nic;
    OK(VipCloseNic(one.nic));
    if (!same)
        OK(VipCloseNic(other.nic));
    puts("ok");
}

/* Descriptor number `index` of a side, and byte `offset` of its buffers. */
static VIP_DESCRIPTOR *descriptor(side_t *side, int index)
{
    return (VIP_DESCRIPTOR *)(side->memory + 256 * index);
}

static unsigned char *buffer(side_t *side, unsigned offset)
{
    return side->memory + 256 * DESCRIPTORS + offset;
}

/* A descriptor of one segment. */
static VIP_DESCRIPTOR *plain(side_t *side, int index, unsigned offset, unsigned bytes)
{
    VIP_DESCRIPTOR *d = descriptor(side, index);
    memset(d, 0, 256);
    d->CS.SegCount = 1;
    d->CS.Length = bytes;
    d->DS[0].Local.Data.Address = buffer(side, offset);
    d->DS[0].Local.Handle = side->handle;
    d->DS[0].Local.Length = bytes;
    return d;
}

/* One of an RDMA operation with the same offset of the other side. */
static VIP_DESCRIPTOR *remote(side_t *side, int index, int operation, unsigned offset, unsigned bytes, side_t *target,
                              unsigned there)
{
    VIP_DESCRIPTOR *d = plain(side, index, offset, bytes);
    d->CS.Control = (VIP_UINT16)operation;
    d->CS.SegCount = 2;
    d->DS[1] = d->DS[0];
    memset(&d->DS[0], 0, sizeof d->DS[0]);
    d->DS[0].Remote.Data.Address = buffer(target, there);
    d->DS[0].Remote.Handle = target->handle;
    return d;
}

static void post_send(side_t *side, VIP_DESCRIPTOR *d)
{
    OK(VipPostSend(side->vi, d, side->handle));
}

static void post_receive(side_t *side, VIP_DESCRIPTOR *d)
{
    OK(VipPostRecv(side->vi, d, side->handle));
}

/* Waits for a completion and compares the descriptor and its status. */
static void sent(side_t *side, VIP_DESCRIPTOR *expected, VIP_UINT32 status)
{
    VIP_DESCRIPTOR *d = NULL;
    IS(VipSendWait(side->vi, SOON, &d), status & VIP_STATUS_ERROR_MASK ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS);
    HOLDS(d == expected);
    IS(d->CS.Status, status | VIP_STATUS_DONE);
}

static void received(side_t *side, VIP_DESCRIPTOR *expected, VIP_UINT32 status, VIP_UINT32 bytes)
{
    VIP_DESCRIPTOR *d = NULL;
    IS(VipRecvWait(side->vi, SOON, &d), status & VIP_STATUS_ERROR_MASK ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS);
    HOLDS(d == expected);
    IS(d->CS.Status, status | VIP_STATUS_DONE);
    IS(d->CS.Length, bytes);
}

static VIP_VI_STATE state_of(const side_t *side)
{
    VIP_VI_STATE state;
    OK(VipQueryVi(side->vi, &state, NULL, NULL, NULL));
    return state;
}

/* The other side accepts one connection with its VI. */
static void *accept_one(void *unused)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    address_t local, from;
    OK(VipConnectWait(other.nic, at(&local, &other, "port"), SOON, &from.address, &attributes, &connection));
    OK(VipConnectAccept(connection, other.vi));
    return unused;
}

/* Connects the VIs of both sides. */
static void join(void)
{
    VIP_VI_ATTRIBUTES attributes;
    address_t local, remote_address;
    pthread_t thread;
    VIP_RETURN result;
    HOLDS(pthread_create(&thread, NULL, accept_one, NULL) == 0);
    do
        result = VipConnectRequest(one.vi, at(&local, &one, "client"), at(&remote_address, &other, "port"), SOON,
                                   &attributes);
    while (result == VIP_NO_MATCH && usleep(1000) == 0);
    OK(result);
    HOLDS(pthread_join(thread, NULL) == 0);
}

static void create(side_t *side, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, level);
    OK(VipCreateVi(side->nic, &attributes, NULL, NULL, &side->vi));
}

static void connected(VIP_RELIABILITY_LEVEL level)
{
    create(&one, level);
    create(&other, level);
    join();
}

/* Takes everything back that was posted, and the VI. */
static void part(side_t *side)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN result;
    OK(VipDisconnect(side->vi));
    do
        result = VipRecvDone(side->vi, &d);
    while (result == VIP_SUCCESS || (result == VIP_DESCRIPTOR_ERROR && d));
    do
        result = VipSendDone(side->vi, &d);
    while (result == VIP_SUCCESS || (result == VIP_DESCRIPTOR_ERROR && d));
    OK(VipDestroyVi(side->vi));
}

/* Waits until a VI is in a state. */
static void becomes(const side_t *side, VIP_VI_STATE state)
{
    int tries;
    for (tries = 0; state_of(side) != state && tries < 20000; tries++)
        usleep(1000);
    IS(state_of(side), state);
}

static void fill(unsigned char *bytes, unsigned count, unsigned seed)
{
    unsigned place;
    for (place = 0; place < count; place++)
        bytes[place] = (unsigned char)(place * 31 + seed);
}

static const VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                               VIP_SERVICE_RELIABLE_RECEPTION};

#endif
