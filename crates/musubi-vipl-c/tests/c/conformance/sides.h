/* Two sides in one process: each has a NIC opened, memory, a tag; VIs of theirs get connected. */
#ifndef SIDES_H
#define SIDES_H

#include "check.h"

/* Memory of a side: descriptors first, room for one long descriptor, then data. */
#define DESCRIPTOR_BYTES 128u
#define DESCRIPTORS 512u
#define LONG_DESCRIPTOR_AT (DESCRIPTORS * DESCRIPTOR_BYTES)
#define DATA_AT (2u * LONG_DESCRIPTOR_AT)
#define MEMORY_BYTES (2u << 20)
#define DATA_BYTES (MEMORY_BYTES - DATA_AT)
/* Largest message of the VIs here. */
#define TRANSFER_BYTES (64u << 10)

typedef struct side {
    const char *name;
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES limits;
    VIP_PROTECTION_HANDLE tag;
    unsigned char *memory;
    VIP_MEM_HANDLE handle;
    VIP_VI_HANDLE vi;
} side_t;

/* An address with room for every discriminator. */
typedef union address {
    VIP_NET_ADDRESS net;
    unsigned char room[512];
} address_t;

static inline void set_discriminator(address_t *address, const void *bytes, size_t count)
{
    memcpy(address->net.HostAddress + address->net.HostAddressLen, bytes, count);
    address->net.DiscriminatorLen = (VIP_UINT16)count;
}

/* A side's address with a discriminator of text. */
static inline address_t address_of(const side_t *side, const char *discriminator)
{
    address_t address;
    memset(&address, 0, sizeof address);
    address.net.HostAddressLen = side->limits.NicAddressLen;
    memcpy(address.net.HostAddress, side->limits.LocalNicAddress, side->limits.NicAddressLen);
    set_discriminator(&address, discriminator, strlen(discriminator));
    return address;
}

static inline VIP_MEM_HANDLE register_memory(const side_t *side, void *memory, size_t bytes, int write, int read)
{
    VIP_MEM_ATTRIBUTES attributes = { side->tag, write, read };
    VIP_MEM_HANDLE handle = 0;
    OK(VipRegisterMem(side->nic, memory, bytes, &attributes, &handle));
    return handle;
}

static inline void open_side(side_t *side, const char *name)
{
    void *memory = NULL;
    memset(side, 0, sizeof *side);
    side->name = name;
    OK(VipOpenNic(name, &side->nic));
    OK(VipQueryNic(side->nic, &side->limits));
    OK(VipCreatePtag(side->nic, &side->tag));
    WANT(posix_memalign(&memory, 4096, MEMORY_BYTES) == 0);
    memset(memory, 0, MEMORY_BYTES);
    side->memory = (unsigned char *)memory;
    side->handle = register_memory(side, memory, MEMORY_BYTES, VIP_TRUE, VIP_TRUE);
}

static inline void close_side(side_t *side)
{
    OK(VipCloseNic(side->nic));
    free(side->memory);
}

static inline VIP_VI_ATTRIBUTES vi_attributes(const side_t *side, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = level;
    attributes.MaxTransferSize = TRANSFER_BYTES;
    attributes.Ptag = side->tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = (side->limits.RDMAReadSupport & level) != 0;
    return attributes;
}

static inline VIP_VI_HANDLE create_vi(const side_t *side, VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, level);
    VIP_VI_HANDLE vi = NULL;
    OK(VipCreateVi(side->nic, &attributes, NULL, NULL, &vi));
    return vi;
}

/* ---- connections ---- */

typedef struct request {
    pthread_t thread;
    VIP_VI_HANDLE vi;
    address_t from, to;
    VIP_ULONG timeout;
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN gave;
} request_t;

static inline void *run_request(void *of)
{
    request_t *request = (request_t *)of;
    /* Who is faster than the server is told so; period programs ask again. */
    unsigned long begun = now_ms();
    do {
        request->gave = VipConnectRequest(request->vi, &request->from.net, &request->to.net, request->timeout,
                                          &request->theirs);
    } while (request->gave == VIP_NO_MATCH && now_ms() - begun < SOON && (sleep_ms(1), 1));
    return NULL;
}

/* A client in a thread of its own. */
static inline void begin_request(request_t *request, VIP_VI_HANDLE vi, address_t from, address_t to)
{
    request->vi = vi;
    request->from = from;
    request->to = to;
    request->timeout = SOON;
    WANT(pthread_create(&request->thread, NULL, run_request, request) == 0);
}

static inline VIP_RETURN end_request(request_t *request)
{
    WANT(pthread_join(request->thread, NULL) == 0);
    return request->gave;
}

/* A discriminator that nobody else of this machine uses. */
static inline const char *fresh_name(char room[64])
{
    static unsigned count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    snprintf(room, 64, "%ld-%u", (long)getpid(), ++count);
    pthread_mutex_unlock(&lock);
    return room;
}

/* Connects a VI of the client with one of the server. */
static inline void connect_vis(side_t *client, VIP_VI_HANDLE from, side_t *server, VIP_VI_HANDLE to)
{
    char name[64];
    request_t request;
    VIP_CONN_HANDLE waiting = NULL;
    address_t here = address_of(server, fresh_name(name));
    begin_request(&request, from, address_of(client, "client"), here);
    OK(VipConnectWait(server->nic, &here.net, SOON, NULL, NULL, &waiting));
    OK(VipConnectAccept(waiting, to));
    GIVES(SUCCESS, end_request(&request));
    WANT_EQUAL(state_of(from), VIP_STATE_CONNECTED);
    WANT_EQUAL(state_of(to), VIP_STATE_CONNECTED);
}

/* Gives each side a VI of this level, connected with the other's. */
static inline void connect_sides(side_t *one, side_t *other, VIP_RELIABILITY_LEVEL level)
{
    one->vi = create_vi(one, level);
    other->vi = create_vi(other, level);
    connect_vis(one, one->vi, other, other->vi);
}

/* Dequeues what has completed; gives how many with an error. */
static inline unsigned drain(VIP_RETURN (*take)(VIP_VI_HANDLE, VIP_DESCRIPTOR **), VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *descriptor;
    unsigned errors = 0;
    VIP_RETURN gave;
    while ((gave = take(vi, &descriptor)) == VIP_SUCCESS || (gave == VIP_DESCRIPTOR_ERROR && descriptor != NULL))
        errors += gave == VIP_DESCRIPTOR_ERROR;
    WANT_EQUAL(gave, VIP_DESCRIPTOR_ERROR);
    return errors;
}

/* The period's way to end a VI. */
static inline void end_vi(VIP_VI_HANDLE vi)
{
    OK(VipDisconnect(vi));
    drain(VipRecvDone, vi);
    drain(VipSendDone, vi);
    OK(VipDestroyVi(vi));
}

static inline void end_sides(side_t *one, side_t *other)
{
    end_vi(one->vi);
    end_vi(other->vi);
}

/* ---- descriptors ---- */

static inline VIP_DESCRIPTOR *descriptor_of(const side_t *side, unsigned i)
{
    return (VIP_DESCRIPTOR *)(void *)(side->memory + (size_t)i * DESCRIPTOR_BYTES);
}

static inline unsigned char *data_of(const side_t *side, size_t at)
{
    return side->memory + DATA_AT + at;
}

/* Descriptor i of a side as one of so many bytes of its data; 0 bytes have no segment. */
static inline VIP_DESCRIPTOR *prepare(const side_t *side, unsigned i, size_t at, size_t bytes)
{
    VIP_DESCRIPTOR *descriptor = descriptor_of(side, i);
    memset(descriptor, 0, sizeof *descriptor);
    HEAD(descriptor).Length = (VIP_UINT32)bytes;
    if (bytes > 0) {
        HEAD(descriptor).SegCount = 1;
        LOCAL(descriptor, 0).Data.Address = data_of(side, at);
        LOCAL(descriptor, 0).Handle = side->handle;
        LOCAL(descriptor, 0).Length = (VIP_UINT32)bytes;
    }
    return descriptor;
}

/* The same as a read or write of the peer's memory. */
static inline VIP_DESCRIPTOR *prepare_rdma(const side_t *side, unsigned i, unsigned operation, size_t at, size_t bytes,
                                           void *remote, VIP_MEM_HANDLE handle)
{
    VIP_DESCRIPTOR *descriptor = prepare(side, i, at, 0);
    HEAD(descriptor).Control = (VIP_UINT16)operation;
    HEAD(descriptor).Length = (VIP_UINT32)bytes;
    HEAD(descriptor).SegCount = bytes > 0 ? 2 : 1;
    REMOTE(descriptor).Data.Address = remote;
    REMOTE(descriptor).Handle = handle;
    if (bytes > 0) {
        LOCAL(descriptor, 1).Data.Address = data_of(side, at);
        LOCAL(descriptor, 1).Handle = side->handle;
        LOCAL(descriptor, 1).Length = (VIP_UINT32)bytes;
    }
    return descriptor;
}

#define post_send(side, descriptor) OK(VipPostSend((side)->vi, descriptor, (side)->handle))
#define post_recv(side, descriptor) OK(VipPostRecv((side)->vi, descriptor, (side)->handle))

/* The next of a queue completes, is this one, and has this status besides DONE. */
#define TAKES(take, side_, descriptor_, status_)                                                                       \
    do {                                                                                                               \
        VIP_DESCRIPTOR *taken_ = NULL;                                                                                 \
        VIP_RETURN gave_ = take((side_)->vi, SOON, &taken_);                                                           \
        VIP_UINT32 should_be_ = (VIP_UINT32)(status_) | VIP_STATUS_DONE;                                               \
        if (gave_ != VIP_SUCCESS && gave_ != VIP_DESCRIPTOR_ERROR)                                                     \
            fail_at(__FILE__, __LINE__, "%s: nothing completes", code_name(gave_));                                    \
        if (taken_ != (descriptor_))                                                                                   \
            fail_at(__FILE__, __LINE__, "%p completes, not %s", (void *)taken_, #descriptor_);                         \
        if (HEAD(taken_).Status != should_be_)                                                                         \
            fail_at(__FILE__, __LINE__, "status 0x%x, not 0x%x", (unsigned)HEAD(taken_).Status, (unsigned)should_be_); \
        WANT((gave_ == VIP_DESCRIPTOR_ERROR) == ((should_be_ & VIP_STATUS_ERROR_MASK) != 0));                          \
    } while (0)
#define SENT(side, descriptor, status) TAKES(VipSendWait, side, descriptor, status)
#define RECEIVED(side, descriptor, status) TAKES(VipRecvWait, side, descriptor, VIP_STATUS_OP_RECEIVE | (status))

/* Byte i of something with this number. */
static inline unsigned char pattern(unsigned number, size_t i)
{
    return (unsigned char)(number * 37u + i * 11u + (i >> 8));
}

static inline void fill(unsigned char *bytes, size_t count, unsigned number)
{
    size_t i;
    for (i = 0; i < count; i++)
        bytes[i] = pattern(number, i);
}

static inline int is_filled(const unsigned char *bytes, size_t count, unsigned number)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (bytes[i] != pattern(number, i))
            return 0;
    return 1;
}

static inline int is_all(const unsigned char *bytes, size_t count, unsigned char byte)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (bytes[i] != byte)
            return 0;
    return 1;
}

/* One message from a side to the other, both ways of whose connection work. */
static inline void exchange(side_t *from, side_t *to, unsigned number)
{
    VIP_DESCRIPTOR *receive = prepare(to, DESCRIPTORS - 1, DATA_BYTES - 4096, 4096);
    VIP_DESCRIPTOR *send = prepare(from, DESCRIPTORS - 2, DATA_BYTES - 8192, 100);
    fill(data_of(from, DATA_BYTES - 8192), 100, number);
    memset(data_of(to, DATA_BYTES - 4096), 0, 4096);
    post_recv(to, receive);
    post_send(from, send);
    SENT(from, send, VIP_STATUS_OP_SEND);
    RECEIVED(to, receive, 0);
    WANT_EQUAL(HEAD(receive).Length, 100);
    WANT(is_filled(data_of(to, DATA_BYTES - 4096), 100, number));
    WANT(is_all(data_of(to, DATA_BYTES - 4096 + 100), 3996, 0));
}

/* ---- errors ---- */

/* What an error handler has heard and no check has asked for, as far as there is room. */
typedef struct ear {
    pthread_mutex_t lock;
    unsigned count;
    VIP_ERROR_DESCRIPTOR heard[256];
} ear_t;

static inline void hear(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    ear_t *ear = (ear_t *)context;
    pthread_mutex_lock(&ear->lock);
    if (ear->count < sizeof ear->heard / sizeof *ear->heard)
        ear->heard[ear->count++] = *error;
    pthread_mutex_unlock(&ear->lock);
}

static inline void listen_to(side_t *side, ear_t *ear)
{
    memset(ear, 0, sizeof *ear);
    pthread_mutex_init(&ear->lock, NULL);
    OK(VipErrorCallback(side->nic, ear, hear));
}

/* Takes out one error of this code and VI. */
static inline int has_heard(ear_t *ear, VIP_ERROR_CODE code, VIP_VI_HANDLE vi, VIP_ERROR_DESCRIPTOR *what)
{
    unsigned i;
    int found = 0;
    pthread_mutex_lock(&ear->lock);
    for (i = 0; i < ear->count && !found; i++)
        if (ear->heard[i].ErrorCode == code && ear->heard[i].ViHandle == vi) {
            if (what != NULL)
                *what = ear->heard[i];
            ear->heard[i] = ear->heard[--ear->count];
            found = 1;
        }
    pthread_mutex_unlock(&ear->lock);
    return found;
}
#define HEARS(ear, code, vi, what) SOON_IS(has_heard(ear, VIP_ERROR_##code, vi, what))

static inline unsigned heard_count(ear_t *ear)
{
    unsigned count;
    pthread_mutex_lock(&ear->lock);
    count = ear->count;
    pthread_mutex_unlock(&ear->lock);
    return count;
}

#endif
