/* What the examples over the VI Architecture share: two processes, `--role server` and `--role client`, in any order; each with one NIC,
 * one registered memory, and descriptors in it. Where the other is, only the description knows that MUSUBI_SYSTEM names. */
#ifndef VI_H
#define VI_H

#include <vipl.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Longest that an example waits for anything, milliseconds. */
#define PATIENCE 30000ul
/* A descriptor of one segment, or of an address and one segment, takes its own size. */
#define DESCRIPTOR_BYTES sizeof(VIP_DESCRIPTOR)

static const char *program_name;

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2), noreturn))
#endif
static inline void give_up(const char *why, ...)
{
    va_list arguments;
    va_start(arguments, why);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, why, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static inline const char *reason(VIP_RETURN code)
{
    static const char *const reasons[] = {
        "success", "not done", "an invalid parameter", "no resources, or in use", "nobody answered in time", "rejected",
        "the levels of reliability differ", "the largest messages differ", "the qualities of service differ",
        "no such protection tag", "reads are not possible", "a descriptor completed with an error", "not in this state",
        "no such name", "nobody waits there", "no such NIC can be reached", "not supported",
    };
    return (size_t)code < sizeof reasons / sizeof *reasons ? reasons[code] : "an unknown code";
}

/* Ends the program if a call did not succeed. */
static inline void must(VIP_RETURN code, const char *what)
{
    if (code != VIP_SUCCESS)
        give_up("%s: %s", what, reason(code));
}

/* ---- the command line ---- */

typedef struct options {
    int is_server;
    const char *nic; /* own */
    const char *peer; /* the server's, for the client */
    unsigned long count;
    unsigned long bytes;
} options_t;

static inline unsigned long number(const char *text, const char *option)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || value == 0)
        give_up("%s: not a number above 0: %s", option, text);
    return value;
}

/* Reads the command line; `about` says what the example does, `of_count` what --count counts. */
static inline options_t read_options(int count, char **arguments, const char *about, const char *of_count, options_t defaults)
{
    options_t options = defaults;
    const char *role = NULL;
    int i;
    program_name = arguments[0];
    for (i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(arguments[i], "--help") == 0) {
            printf("%s\n\nusage: %s --role server|client [--nic NAME] [--peer NAME] [--count N] [--bytes N]\n\n"
                   "  --role    which of the two this is; they may be started in any order\n"
                   "  --nic     the NIC to open [default: %s for the server, %s for the client]\n"
                   "  --peer    the server's NIC, for the client [default: %s]\n"
                   "  --count   %s, alike at both [default: %lu]\n"
                   "  --bytes   bytes of one, alike at both [default: %lu]\n\n"
                   "MUSUBI_SYSTEM names the description; without one both are on this machine.\n",
                   about, arguments[0], "right", "left", "right", of_count, defaults.count, defaults.bytes);
            exit(0);
        }
        if (value == NULL)
            give_up("%s is not an option, or lacks its value; see --help", arguments[i]);
        if (strcmp(arguments[i], "--role") == 0)
            role = value;
        else if (strcmp(arguments[i], "--nic") == 0)
            options.nic = value;
        else if (strcmp(arguments[i], "--peer") == 0)
            options.peer = value;
        else if (strcmp(arguments[i], "--count") == 0)
            options.count = number(value, "--count");
        else if (strcmp(arguments[i], "--bytes") == 0)
            options.bytes = number(value, "--bytes");
        else
            give_up("%s is not an option; see --help", arguments[i]);
        i++;
    }
    if (role == NULL || (strcmp(role, "server") != 0 && strcmp(role, "client") != 0))
        give_up("--role must be server or client; see --help");
    options.is_server = strcmp(role, "server") == 0;
    if (options.nic == NULL)
        options.nic = options.is_server ? "right" : "left";
    if (options.peer == NULL)
        options.peer = "right";
    return options;
}

/* ---- a NIC with memory ---- */

typedef struct node {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES limits;
    VIP_PROTECTION_HANDLE tag;
    unsigned char *memory; /* descriptors first, then data */
    unsigned char *data;
    VIP_MEM_HANDLE handle;
} node_t;

/* Opens the NIC and registers memory for so many descriptors and bytes, which peers may write. */
static inline node_t open_node(const char *name, unsigned long descriptors, unsigned long bytes)
{
    node_t node;
    void *memory = NULL;
    size_t size = descriptors * DESCRIPTOR_BYTES + bytes;
    VIP_MEM_ATTRIBUTES attributes;
    memset(&node, 0, sizeof node);
    must(VipOpenNic(name, &node.nic), "open the NIC");
    must(VipQueryNic(node.nic, &node.limits), "ask the NIC");
    must(VipCreatePtag(node.nic, &node.tag), "create a protection tag");
    if (posix_memalign(&memory, VIP_DESCRIPTOR_ALIGNMENT, size) != 0)
        give_up("no memory for %lu descriptors and %lu bytes", descriptors, bytes);
    memset(memory, 0, size);
    node.memory = (unsigned char *)memory;
    node.data = node.memory + descriptors * DESCRIPTOR_BYTES;
    attributes.Ptag = node.tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = VIP_FALSE;
    must(VipRegisterMem(node.nic, memory, size, &attributes, &node.handle), "register memory");
    return node;
}

static inline void close_node(node_t *node)
{
    must(VipCloseNic(node->nic), "close the NIC");
    free(node->memory);
}

/* Descriptor i, empty. */
static inline VIP_DESCRIPTOR *descriptor_of(const node_t *node, unsigned long i)
{
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)(node->memory + i * DESCRIPTOR_BYTES);
    memset(descriptor, 0, sizeof *descriptor);
    return descriptor;
}

/* Descriptor i for a message from, or into, so many bytes of data. */
static inline VIP_DESCRIPTOR *message_of(const node_t *node, unsigned long i, unsigned char *data, unsigned long bytes)
{
    VIP_DESCRIPTOR *descriptor = descriptor_of(node, i);
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = (VIP_UINT32)bytes;
    descriptor->DS[0].Local.Data.Address = data;
    descriptor->DS[0].Local.Handle = node->handle;
    descriptor->DS[0].Local.Length = (VIP_UINT32)bytes;
    return descriptor;
}

/* ---- VIs and connections ---- */

static inline VIP_VI_HANDLE create_vi(node_t *node, unsigned long bytes, VIP_CQ_HANDLE sends, VIP_CQ_HANDLE receives)
{
    VIP_VI_HANDLE vi = NULL;
    VIP_VI_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = bytes;
    attributes.Ptag = node->tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    must(VipCreateVi(node->nic, &attributes, sends, receives, &vi), "create a VI");
    return vi;
}

/* An address of a NIC by name, with the discriminator of an example. */
typedef union address {
    VIP_NET_ADDRESS net;
    unsigned char room[256];
} address_t;

static inline address_t address_of(node_t *node, const char *name, const char *discriminator)
{
    address_t address;
    memset(&address, 0, sizeof address);
    must(VipNSGetHostByName(node->nic, (VIP_CHAR *)(uintptr_t)name, &address.net, 0), name);
    address.net.DiscriminatorLen = (VIP_UINT16)strlen(discriminator);
    memcpy(address.net.HostAddress + address.net.HostAddressLen, discriminator, strlen(discriminator));
    return address;
}

/* Server: accepts the next client with this VI. Receives should be posted before. */
static inline void accept_client(node_t *node, const char *name, const char *discriminator, VIP_VI_HANDLE vi)
{
    address_t here = address_of(node, name, discriminator);
    VIP_CONN_HANDLE request = NULL;
    must(VipConnectWait(node->nic, &here.net, PATIENCE, NULL, NULL, &request), "wait for a client");
    must(VipConnectAccept(request, vi), "accept the client");
}

/* Client: connects this VI with the server, who may not be there yet. */
static inline void connect_to(node_t *node, const options_t *options, const char *discriminator, VIP_VI_HANDLE vi)
{
    address_t here = address_of(node, options->nic, discriminator), there = address_of(node, options->peer, discriminator);
    struct timespec pause = { 0, 10000000 };
    time_t begun = time(NULL);
    VIP_RETURN gave;
    while ((gave = VipConnectRequest(vi, &here.net, &there.net, PATIENCE, NULL)) == VIP_NO_MATCH &&
           time(NULL) - begun < (time_t)(PATIENCE / 1000))
        nanosleep(&pause, NULL);
    must(gave, "connect to the server");
}

/* The next completed descriptor of a queue. */
static inline VIP_DESCRIPTOR *completed(VIP_RETURN (*wait)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi,
                                        const char *what)
{
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN gave = wait(vi, PATIENCE, &descriptor);
    if (gave == VIP_DESCRIPTOR_ERROR && descriptor != NULL)
        give_up("%s: status 0x%x", what, (unsigned)descriptor->CS.Status);
    must(gave, what);
    return descriptor;
}

/* Waits until the peer has ended the connection: a further receive is flushed then. Who has sent the last message ends first, when that
 * has completed, so that its completion is not flushed. `i`: a free descriptor. */
static inline void await_end(node_t *node, VIP_VI_HANDLE vi, unsigned long i)
{
    VIP_DESCRIPTOR *descriptor = NULL;
    must(VipPostRecv(vi, descriptor_of(node, i), node->handle), "post a receive");
    if (VipRecvWait(vi, PATIENCE, &descriptor) != VIP_DESCRIPTOR_ERROR || descriptor == NULL)
        give_up("the other side does not end the connection");
}

/* Ends a connection and takes back what was posted. */
static inline void end_vi(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *descriptor = NULL;
    must(VipDisconnect(vi), "disconnect");
    while (VipRecvDone(vi, &descriptor) == VIP_SUCCESS || descriptor != NULL)
        descriptor = NULL;
    while (VipSendDone(vi, &descriptor) == VIP_SUCCESS || descriptor != NULL)
        descriptor = NULL;
    must(VipDestroyVi(vi), "destroy the VI");
}

#endif
