/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * vipl.h: VIPL 1.0, the interface of the VI Architecture: pairs of work queues (VIs) that a program posts descriptors to and
 * polls, without a call to the kernel; messages, and reads and writes of the peer's memory.
 *
 *     client                                                    server
 *     VipOpenNic("left", &nic);                                 VipOpenNic("right", &nic);
 *     VipCreatePtag(nic, &tag);                                 VipCreatePtag(nic, &tag);
 *     VipRegisterMem(nic, memory, bytes, &of_memory, &handle);  VipRegisterMem(nic, memory, bytes, &of_memory, &handle);
 *     VipCreateVi(nic, &of_vi, NULL, NULL, &vi);                VipCreateVi(nic, &of_vi, NULL, NULL, &vi);
 *     VipConnectRequest(vi, here, there, 1000, &theirs);        VipPostRecv(vi, descriptor, handle);
 *     VipPostSend(vi, descriptor, handle);                      VipConnectWait(nic, here, 1000, there, &theirs, &request);
 *     VipSendWait(vi, 1000, &done);                             VipConnectAccept(request, vi);
 *                                                               VipRecvWait(vi, 1000, &done);
 *
 * Rules for all functions:
 *  - They may be called from any thread at any time, several at once, also on one VI, and by handlers; not from a signal
 *    handler. They return a VIP_RETURN. Where they fail they change nothing and write nothing, unless they say otherwise.
 *  - A handle is a name that is looked up. One that is none, was given back, is of another kind (a pointer to a handle, say) or
 *    of another opening of the NIC is VIP_INVALID_PARAMETER (a tag: VIP_INVALID_PTAG), whatever else is wrong; so is NULL
 *    where a pointer is needed.
 *  - Times are milliseconds. 0 looks once, VIP_INFINITE waits as long as it takes. VipCloseNic() ends every wait.
 *  - A child made by fork() has none of its parent's NICs and may open its own.
 *
 * VIP_LIBRARY: what the environment says to the library (libvipl.so, pkg-config vipl).
 *  - MUSUBI_SYSTEM names the description of the system, a TOML file whose [[nic]] tables are the NICs: the same for all
 *    programs of a system. Without it all programs of this machine meet over shared memory in one system of one NIC.
 *  - MUSUBI_NIC names the [[nic]] that VipOpenNic() opens where the device's name ("VINIC", "/dev/via_lo") is none of the
 *    description's, so that a program with a name of its own need not be changed. A description with one NIC needs no such help.
 *  - MUSUBI_VIPL_NULL_PTAG=1: VIs may be created with a NULL tag, which then is the tag that was the first to be created with
 *    that NIC handle. For programs that register memory under a tag and leave that of their VIs zero. Otherwise that is
 *    VIP_INVALID_PTAG.
 *
 * docs/vipl-conformance.md says which code is for what in which state, and what was decided where the standard is silent.
 */
#ifndef VIPL_H
#define VIPL_H

#include <stddef.h>
#include <stdint.h>

/* Unions and structs without a name, in standards that do not know them. */
#if defined(__GNUC__)
#define VIP_UNNAMED __extension__
#else
#define VIP_UNNAMED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ------------------------------------------------------------------------------------------------------- */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef uint64_t VIP_UINT64;
typedef uint32_t VIP_UINT32;
typedef uint16_t VIP_UINT16;
typedef uint8_t VIP_UINT8;

#define VIP_TRUE 1
#define VIP_FALSE 0
/* A time without an end. */
#define VIP_INFINITE ((VIP_ULONG)~0UL)

/* Handles. */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
/* Of a registered region: 32 bits, which descriptors hold and programs tell their peers. */
typedef VIP_UINT32 VIP_MEM_HANDLE;

/* What a completion promises and what an error does. One bit for a VI, several where a NIC tells what it can. */
typedef VIP_USHORT VIP_RELIABILITY_LEVEL;
/* A send is complete when it is handed over. What does not fit at the receiver is dropped there. */
#define VIP_SERVICE_UNRELIABLE ((VIP_RELIABILITY_LEVEL)0x01)
/* A send is complete when the remote NIC has it: once, in order. What does not fit breaks the connection. */
#define VIP_SERVICE_RELIABLE_DELIVERY ((VIP_RELIABILITY_LEVEL)0x02)
/* A send is complete when its data is in the target's memory; what does not fit is told in its descriptor besides. */
#define VIP_SERVICE_RELIABLE_RECEPTION ((VIP_RELIABILITY_LEVEL)0x04)

/* An address: HostAddressLen bytes that name the NIC and, directly behind them, DiscriminatorLen bytes that tell those apart
 * who wait there. An address takes VIP_NET_ADDRESS_BYTES(host, discriminator) bytes. */
typedef struct VIP_NET_ADDRESS {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[4]; /* and as many more as the lengths say */
} VIP_NET_ADDRESS;
#define VIP_NET_ADDRESS_BYTES(host, discriminator) (offsetof(VIP_NET_ADDRESS, HostAddress) + (host) + (discriminator))

/* Quality of service: points to a VIP_MUSUBI_QOS. NULL is best effort: the least urgent class and no limits. */
typedef VIP_PVOID VIP_QOS;

/* Classes of VIP_MUSUBI_QOS. */
#define VIP_MUSUBI_QOS_CLASSES 8

/* What VIP_QOS points to. Only the class must be alike at both ends; everything else is this side's own business. Fields that
 * lie beyond Size are as if 0, which means no limit, no bound or nothing asked for, so what later versions add asks
 * nothing of programs of today. */
VIP_UNNAMED typedef struct VIP_MUSUBI_QOS {
    VIP_UINT32 Size; /* sizeof(VIP_MUSUBI_QOS); less than 8 is VIP_INVALID_QOS */
    VIP_UINT32 Class; /* 0 the most urgent, to VIP_MUSUBI_QOS_CLASSES - 1; more is VIP_INVALID_QOS */
    /* What this side sends at most; what is posted beyond waits in its queue. */
    VIP_UINT32 MessageRate; /* messages a second */
    VIP_UINT32 MessageBurst; /* messages that may go at once after a pause */
    VIP_UINT64 ByteRate; /* bytes a second */
    VIP_UINT64 ByteBurst; /* bytes that may go at once after a pause; less than one message lets one go */
    /* When completions of this VI wake who sleeps here, within what rules of the description allow its class. Those who poll
     * see every completion at once, errors wake at once, and who is woken for anything else finds all that is there. */
    VIP_UINT32 NotifyLatest; /* microseconds after a completion at which its sleeper is woken at the latest, although NotifyInterval
                                is not over; 0: when it is over */
    VIP_UINT32 NotifyInterval; /* microseconds that lie between two wakings at least; 0: each completion wakes at once */
    VIP_UINT32 ResponseBudget; /* microseconds from the completion of a descriptor until the program takes it: those that take longer
                                  are counted, see `musubi status`; 0: none are */
    VIP_UNNAMED union {
        VIP_UINT32 Weight; /* what this VI sends beside others of its class when not all can go: 1 to 255 parts; 0 is 1 */
        VIP_UINT32 Reserved;
    };
} VIP_MUSUBI_QOS;

/* What a NIC is and has. The limits hold: one more is refused. */
typedef struct VIP_NIC_ATTRIBUTES {
    VIP_CHAR Name[64]; /* as it was opened */
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen; /* bytes of the host part of an address */
    const VIP_UINT8 *LocalNicAddress; /* this NIC's; stays until the NIC is closed */
    VIP_BOOLEAN ThreadSafe; /* VIP_TRUE */
    VIP_UINT16 MaxDiscriminatorLen;
    VIP_ULONG MaxRegisterBytes; /* all regions together */
    VIP_ULONG MaxRegisterRegions;
    VIP_ULONG MaxRegisterBlockBytes; /* one region */
    VIP_ULONG MaxVI;
    VIP_ULONG MaxDescriptorsPerQueue; /* posted and not given back */
    VIP_ULONG MaxSegmentsPerDesc; /* an address segment counts */
    VIP_ULONG MaxCQ;
    VIP_ULONG MaxCQEntries; /* of one completion queue */
    VIP_ULONG MaxTransferSize; /* bytes of one message, read or write */
    VIP_ULONG NativeMTU; /* bytes that travel in one piece */
    VIP_ULONG MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* bits of the levels that VIs may have */
    VIP_RELIABILITY_LEVEL RDMAReadSupport; /* bits of the levels at which RDMA reads are possible */
} VIP_NIC_ATTRIBUTES;

typedef struct VIP_VI_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL ReliabilityLevel; /* alike at both ends */
    VIP_ULONG MaxTransferSize; /* bytes of a message, read or write; alike at both ends */
    VIP_QOS QoS; /* alike at both ends. Where a call gives it, it is the library's and stays until the NIC is closed. */
    VIP_PROTECTION_HANDLE Ptag; /* the VI uses memory of this tag; of a remote VI NULL */
    VIP_BOOLEAN EnableRdmaWrite; /* the peer may write regions that permit it */
    VIP_BOOLEAN EnableRdmaRead; /* the peer may read regions that permit it; not at VIP_SERVICE_UNRELIABLE */
} VIP_VI_ATTRIBUTES;

typedef struct VIP_MEM_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag; /* VIs of this tag may use the region */
    VIP_BOOLEAN EnableRdmaWrite; /* their peers may write it */
    VIP_BOOLEAN EnableRdmaRead; /* their peers may read it */
} VIP_MEM_ATTRIBUTES;

typedef enum VIP_VI_STATE {
    VIP_STATE_IDLE = 0,
    VIP_STATE_CONNECTED = 1,
    VIP_STATE_CONNECT_PENDING = 2,
    VIP_STATE_ERROR = 3 /* the connection broke; VipDisconnect() makes it idle */
} VIP_VI_STATE;

/* What functions return. */
typedef enum VIP_RETURN {
    VIP_SUCCESS = 0,
    VIP_NOT_DONE = 1, /* nothing has completed yet */
    VIP_INVALID_PARAMETER = 2,
    VIP_ERROR_RESOURCE = 3, /* a limit is reached, or what is to be given back is in use */
    VIP_TIMEOUT = 4,
    VIP_REJECT = 5, /* the server rejected the connection */
    VIP_INVALID_RELIABILITY_LEVEL = 6,
    VIP_INVALID_MTU = 7, /* the largest message */
    VIP_INVALID_QOS = 8,
    VIP_INVALID_PTAG = 9,
    VIP_INVALID_RDMAREAD = 10, /* reads are not possible at that level */
    VIP_DESCRIPTOR_ERROR = 11, /* a descriptor that completed with an error; with NULL: nothing is posted */
    VIP_INVALID_STATE = 12, /* not in this state of the VI; or the NIC was closed meanwhile */
    VIP_ERROR_NAMESERVICE = 13, /* no such name */
    VIP_NO_MATCH = 14, /* nobody waits there */
    VIP_NOT_REACHABLE = 15, /* the system has no NIC of that address */
    VIP_ERROR_NOT_SUPPORTED = 16
} VIP_RETURN;
/* Programs ask the preprocessor for these. */
#define VIP_NOT_REACHABLE VIP_NOT_REACHABLE
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED

/* What is told to error handlers. */
typedef enum VIP_ERROR_CODE {
    VIP_ERROR_POST_DESC = 0, /* what was posted is no descriptor: alignment, or not in one region of the handle */
    VIP_ERROR_CONN_LOST = 1, /* the connection ended, not by this side */
    VIP_ERROR_RECVQ_EMPTY = 2, /* a message came and nothing was posted for it */
    VIP_ERROR_VI_OVERRUN = 3, /* more was posted than a queue holds, or has completed than a completion queue holds */
    VIP_ERROR_RDMAW_PROT = 4, /* a write of the peer's was refused */
    VIP_ERROR_RDMAW_DATA = 5, /* a write of the peer's was damaged */
    VIP_ERROR_RDMAW_ABORT = 6, /* a write of the peer's ended in the middle */
    VIP_ERROR_RDMAR_PROT = 7, /* a read of the peer's was refused */
    VIP_ERROR_COMP_PROT = 8, /* a completion could not be written */
    VIP_ERROR_RDMA_TRANSPORT = 9, /* what carries the connection failed */
    VIP_ERROR_CATASTROPHIC = 10 /* a mistake in the library */
} VIP_ERROR_CODE;

typedef enum VIP_RESOURCE_CODE {
    VIP_RESOURCE_NIC = 0,
    VIP_RESOURCE_VI = 1,
    VIP_RESOURCE_CQ = 2,
    VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

/* A descriptor begins at a multiple of this. */
#define VIP_DESCRIPTOR_ALIGNMENT 64

typedef union VIP_PVOID64 {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
    struct VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

/* How a descriptor begins. */
typedef struct VIP_CONTROL_SEGMENT {
    VIP_PVOID64 Next; /* the program's; the library's while the descriptor is posted */
    VIP_MEM_HANDLE NextHandle; /* as Next */
    VIP_UINT16 SegCount; /* segments that follow, an address segment counted */
    VIP_UINT16 Control; /* VIP_CONTROL_... */
    VIP_UINT32 Reserved;
    VIP_UINT32 ImmediateData;
    VIP_UINT32 Length; /* bytes of all data segments; of a completed receive those that came */
    VIP_UINT32 Status; /* VIP_STATUS_...; 0 when posted; written last */
} VIP_CONTROL_SEGMENT;

/* The peer's memory: the first segment of reads and writes. */
typedef struct VIP_ADDRESS_SEGMENT {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* Memory of this side. */
typedef struct VIP_DATA_SEGMENT {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union VIP_DESCRIPTOR_SEGMENT {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/* A control segment and room for two more; further ones follow without a gap, up to MaxSegmentsPerDesc. Programs write CS and DS[i]
 * or Control and Data[i]: the same bytes. */
VIP_UNNAMED typedef struct VIP_DESCRIPTOR {
    VIP_UNNAMED union {
        VIP_CONTROL_SEGMENT CS;
        VIP_CONTROL_SEGMENT Control;
    };
    VIP_UNNAMED union {
        VIP_DESCRIPTOR_SEGMENT DS[2];
        VIP_DATA_SEGMENT Data[2];
    };
} VIP_DESCRIPTOR;

/* What is to be done. */
#define VIP_CONTROL_OP_SENDRECV 0x0
#define VIP_CONTROL_OP_RDMAWRITE 0x1
#define VIP_CONTROL_OP_RDMAREAD 0x2
#define VIP_CONTROL_OP_RESERVED 0x3
#define VIP_CONTROL_OP_MASK 0x3
/* ImmediateData goes with it, and takes a receive of the peer's also with a write. */
#define VIP_CONTROL_IMMEDIATE 0x4
/* Wait until all reads of this VI that were posted before have ended. */
#define VIP_CONTROL_QFENCE 0x8
#define VIP_CONTROL_RESERVED 0xFFF0

/* What became of it. */
#define VIP_STATUS_DONE 0x1
#define VIP_STATUS_FORMAT_ERROR 0x2
#define VIP_STATUS_PROTECTION_ERROR 0x4
#define VIP_STATUS_LENGTH_ERROR 0x8
#define VIP_STATUS_PARTIAL_ERROR 0x10
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x20
#define VIP_STATUS_TRANSPORT_ERROR 0x40
#define VIP_STATUS_RDMA_PROT_ERROR 0x80
#define VIP_STATUS_REMOTE_DESC_ERROR 0x100
#define VIP_STATUS_ERROR_MASK 0x1FE
#define VIP_STATUS_OP_SEND 0x0
#define VIP_STATUS_OP_RECEIVE 0x10000
#define VIP_STATUS_OP_RDMA_WRITE 0x20000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x30000 /* a receive that the peer's write with immediate data took */
#define VIP_STATUS_OP_RDMA_READ 0x40000
#define VIP_STATUS_OP_MASK 0x70000
#define VIP_STATUS_IMMEDIATE 0x80000 /* ImmediateData came */
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* What an error handler gets; it is the library's and stays until the handler returns. */
typedef struct VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle; /* NULL if it is about none; so the next two */
    VIP_CQ_HANDLE CQHandle;
    VIP_DESCRIPTOR *DescriptorPtr;
    VIP_ULONG OpCode; /* VIP_STATUS_OP_... where the error can only be of one operation, else 0 */
    VIP_RESOURCE_CODE ResourceCode; /* which of the above it is about */
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* For VipQuerySystemManagementInfo(): the NICs of the system. */
#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)
typedef struct VIP_AUTODISCOVERY_LIST {
    VIP_ULONG NumberOfHops; /* out: 1 */
    VIP_NET_ADDRESS **ADAddrArray; /* in: that many addresses with room for the host part; entries may be NULL */
    VIP_ULONG NumAdAddrs; /* in: entries of the array; out: NICs */
} VIP_AUTODISCOVERY_LIST;

#if defined(__LP64__) && defined(__cplusplus) && __cplusplus >= 201103L
#define VIP_ASSERT_LAYOUT(condition) static_assert(condition, #condition)
#elif defined(__LP64__) && !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define VIP_ASSERT_LAYOUT(condition) _Static_assert(condition, #condition)
#endif
#ifdef VIP_ASSERT_LAYOUT
VIP_ASSERT_LAYOUT(sizeof(VIP_NET_ADDRESS) == 8 && offsetof(VIP_NET_ADDRESS, HostAddress) == 4);
VIP_ASSERT_LAYOUT(sizeof(VIP_MUSUBI_QOS) == 48 && offsetof(VIP_MUSUBI_QOS, NotifyLatest) == 32);
VIP_ASSERT_LAYOUT(sizeof(VIP_NIC_ATTRIBUTES) == 200 && sizeof(VIP_VI_ATTRIBUTES) == 40);
VIP_ASSERT_LAYOUT(sizeof(VIP_MEM_ATTRIBUTES) == 16 && sizeof(VIP_ERROR_DESCRIPTOR) == 48);
VIP_ASSERT_LAYOUT(sizeof(VIP_PVOID64) == 8 && sizeof(VIP_CONTROL_SEGMENT) == 32);
VIP_ASSERT_LAYOUT(offsetof(VIP_CONTROL_SEGMENT, NextHandle) == 8 && offsetof(VIP_CONTROL_SEGMENT, SegCount) == 12);
VIP_ASSERT_LAYOUT(offsetof(VIP_CONTROL_SEGMENT, Control) == 14 && offsetof(VIP_CONTROL_SEGMENT, Reserved) == 16);
VIP_ASSERT_LAYOUT(offsetof(VIP_CONTROL_SEGMENT, ImmediateData) == 20 && offsetof(VIP_CONTROL_SEGMENT, Length) == 24);
VIP_ASSERT_LAYOUT(offsetof(VIP_CONTROL_SEGMENT, Status) == 28 && sizeof(VIP_DESCRIPTOR_SEGMENT) == 16);
VIP_ASSERT_LAYOUT(sizeof(VIP_ADDRESS_SEGMENT) == 16 && offsetof(VIP_ADDRESS_SEGMENT, Handle) == 8);
VIP_ASSERT_LAYOUT(sizeof(VIP_DATA_SEGMENT) == 16 && offsetof(VIP_DATA_SEGMENT, Length) == 12);
VIP_ASSERT_LAYOUT(sizeof(VIP_DESCRIPTOR) == 64 && offsetof(VIP_DESCRIPTOR, DS) == 32);
VIP_ASSERT_LAYOUT(offsetof(VIP_DESCRIPTOR, Control) == 0 && offsetof(VIP_DESCRIPTOR, Data) == 32);
VIP_ASSERT_LAYOUT(sizeof(VIP_RETURN) == 4 && sizeof(VIP_VI_STATE) == 4 && sizeof(VIP_MEM_HANDLE) == 4);
#undef VIP_ASSERT_LAYOUT
#endif

/* ---- NICs -------------------------------------------------------------------------------------------------------- */

/* Opens a NIC. It may be opened several times; what belongs to one handle is not known to another.
 * VIP_INVALID_PARAMETER if there is none of that name; VIP_ERROR_RESOURCE if it cannot be opened now, which is said on stderr. */
VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle);
/* Closes it and takes back everything that was made with its handle. Who waits for any of that gets VIP_INVALID_STATE. When it
 * returns no handler of the NIC runs, except one that called it. */
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle);
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *NicAttributes);

/* ---- VIs --------------------------------------------------------------------------------------------------------- */

/* Makes a VI, idle. A completion queue of NULL is none. VIP_INVALID_RELIABILITY_LEVEL, _MTU, _QOS, _PTAG, _RDMAREAD: an
 * attribute that cannot be; VIP_ERROR_RESOURCE: no more of them. */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *ViAttributes, VIP_CQ_HANDLE SendCQHandle,
                       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE *ViHandle);
/* VIP_INVALID_STATE unless it is idle and all its descriptors were given back. */
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle);
/* VIP_INVALID_STATE unless it is idle; else as VipCreateVi(). */
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *ViAttributes);
/* Pointers that are NULL ask for nothing. A queue is empty when all its descriptors were given back. */
VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *ViAttributes,
                      VIP_BOOLEAN *SendQueueEmpty, VIP_BOOLEAN *RecvQueueEmpty);

/* ---- Connections: client and server ------------------------------------------------------------------------------ */

/* Server: waits for a client that asks for LocalAddr. RemoteAddr (NULL, or with room for MaxDiscriminatorLen) gets the
 * client's address, RemoteViAttributes (or NULL) its VI's. The connection stands once it is accepted. VIP_TIMEOUT. */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteViAttributes, VIP_CONN_HANDLE *ConnHandle);
/* Connects an idle VI with the client. VIP_INVALID_RELIABILITY_LEVEL, _MTU, _QOS: the VIs do not fit; the client still waits, so
 * change the VI's attributes and accept again, or reject. VIP_TIMEOUT: the client has given up. */
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle);
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle);
/* Client: asks for RemoteAddr and waits. VIP_NO_MATCH: nobody waits there; VIP_NOT_REACHABLE: there is no such NIC; VIP_REJECT;
 * VIP_TIMEOUT. A Timeout of 0 is VIP_INVALID_PARAMETER. Where it fails the VI is idle again, its receives still posted. */
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES *RemoteViAttributes);
/* Ends a connection, an attempt or an error: the VI is idle, everything that was posted is complete (flushed) and remains to be
 * dequeued. The peer's VI is in VIP_STATE_ERROR. */
VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle);

/* ---- Connections between equals ---------------------------------------------------------------------------------- */

/* Asks for the peer that asks for this side with the same two addresses; does not wait. */
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                                 VIP_ULONG Timeout);
/* What became of it: VIP_SUCCESS, VIP_NOT_DONE, VIP_TIMEOUT (and the VI is idle), VIP_INVALID_RELIABILITY_LEVEL, _MTU, _QOS. */
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttributes);
/* Waits for that, no longer than the request's time. */
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttributes);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *ProtectionHandle);
/* VIP_ERROR_RESOURCE while a VI or region has it. */
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE ProtectionHandle);
/* Registers any memory of this process, from any address; it must stay mapped until it is given up. Each registration has a
 * handle of its own, also of the same bytes. VIP_INVALID_PARAMETER where a part of it is no memory. */
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES *MemAttributes, VIP_MEM_HANDLE *MemoryHandle);
/* VirtualAddress is the one that was registered. What is still posted and uses the region completes with a protection error. */
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemoryHandle,
                       VIP_MEM_ATTRIBUTES *MemAttributes);
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemoryHandle,
                               VIP_MEM_ATTRIBUTES *MemAttributes);

/* ---- Work queues ------------------------------------------------------------------------------------------------- */

/* Puts a descriptor into a queue. From here on it, and what it names, is the library's until it is dequeued. MemoryHandle is of
 * the one region in which the descriptor lies. What is not in order comes out of the queue with an error in its turn; what is no
 * descriptor at all (alignment, region) or finds the queue full is refused, and the error handler hears of it. */
VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr, VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr, VIP_MEM_HANDLE MemoryHandle);
/* Takes the oldest descriptor out, if it is complete: VIP_SUCCESS, or VIP_DESCRIPTOR_ERROR if it completed with an error. VIP_NOT_DONE:
 * it is not. VIP_DESCRIPTOR_ERROR with NULL in *DescriptorPtr: nothing is posted. */
VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr);
/* The same, waiting for it: VIP_TIMEOUT instead of VIP_NOT_DONE. VIP_ERROR_RESOURCE if the queue has a completion queue. */
VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr);
/* Has a thread of the library dequeue one descriptor, when one is complete, and hand it to the handler. Each call is for one
 * descriptor; several may wait. VIP_ERROR_RESOURCE as above. */
VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                         void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                         VIP_DESCRIPTOR *DescriptorPtr));
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                         void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                         VIP_DESCRIPTOR *DescriptorPtr));

/* ---- Completion queues ------------------------------------------------------------------------------------------- */

/* Has an entry for each completion of the queues that name it. One that finds no room is told to the error handler
 * (VIP_ERROR_VI_OVERRUN); its descriptor can be dequeued all the same. */
VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle);
/* Entries stay. VIP_ERROR_RESOURCE: there are more than that, or a NIC has no such room. */
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount);
/* Handlers that wait for it are not called any more. VIP_ERROR_RESOURCE while a VI names it. */
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle);
/* Takes an entry out: one descriptor of that VI's queue is complete and is the caller's to dequeue. VIP_NOT_DONE. */
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);
/* The same, waiting for one. VIP_TIMEOUT. */
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);
/* Has a thread of the library take one entry out, when there is one, and hand it to the handler, which dequeues. */
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context,
                       void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                       VIP_BOOLEAN RecvQueue));

/* ---- Errors, management, names ----------------------------------------------------------------------------------- */

/* Who hears of errors that no descriptor tells, by a thread of the library. NULL: they are said on stderr, as in the
 * beginning. A call of the former handler that has begun may still run when this returns. */
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                            void (*Handler)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc));
/* VIP_SMI_AUTODISCOVERY with a VIP_AUTODISCOVERY_LIST: VIP_ERROR_RESOURCE if there are more NICs than entries; NumAdAddrs then
 * says how many. Anything else is VIP_ERROR_NOT_SUPPORTED. */
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo);
/* The name service knows the description's NICs, with or without these two. */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo);
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle);
/* The host part of a NIC's address, by the NIC's name, or its machine's or the host of its network address in the description;
 * this machine's own names are the asking NIC's. The discriminator is left as it is. NameIndex counts those of one name from 0.
 * VIP_ERROR_NAMESERVICE. */
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address, VIP_ULONG NameIndex);
/* The name of a NIC. *NameLen: in: bytes at Name; out: bytes of the name with its end. VIP_ERROR_RESOURCE if those are more;
 * VIP_ERROR_NAMESERVICE. */
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name, VIP_ULONG *NameLen);

#ifdef __cplusplus
}
#endif

#endif
