/* What the header says, compared with what is published: sizes, places, values, in both spellings. Compiles as C of 1989 with
 * long long to C17 and as C++98 to C++20. */
#include <vipl.h>

#include <stdio.h>

#ifndef VIP_ERROR_NOT_SUPPORTED
#error no macro of that name
#endif
#ifndef VIP_NOT_REACHABLE
#error no macro of that name
#endif

static int wrong;

#define IS(expression, value)                                                                            \
    do {                                                                                                 \
        if ((unsigned long)(expression) != (unsigned long)(value)) {                                     \
            fprintf(stderr, "%s is %lu, not %s\n", #expression, (unsigned long)(expression), #value);    \
            wrong = 1;                                                                                   \
        }                                                                                                \
    } while (0)

static void sizes(void)
{
    IS(sizeof(VIP_BOOLEAN), 4);
    IS(sizeof(VIP_ULONG), sizeof(long));
    IS(sizeof(VIP_USHORT), 2);
    IS(sizeof(VIP_MEM_HANDLE), 4);
    IS(sizeof(VIP_RELIABILITY_LEVEL), 2);
    IS(sizeof(VIP_PVOID64), 8);
    IS(sizeof(VIP_CONTROL_SEGMENT), 32);
    IS(sizeof(VIP_ADDRESS_SEGMENT), 16);
    IS(sizeof(VIP_DATA_SEGMENT), 16);
    IS(sizeof(VIP_DESCRIPTOR_SEGMENT), 16);
    IS(sizeof(VIP_DESCRIPTOR), 64);
    IS(sizeof(VIP_NET_ADDRESS), 8);
    IS(offsetof(VIP_NET_ADDRESS, HostAddress), 4);
    IS(offsetof(VIP_CONTROL_SEGMENT, NextHandle), 8);
    IS(offsetof(VIP_CONTROL_SEGMENT, SegCount), 12);
    IS(offsetof(VIP_CONTROL_SEGMENT, Control), 14);
    IS(offsetof(VIP_CONTROL_SEGMENT, Reserved), 16);
    IS(offsetof(VIP_CONTROL_SEGMENT, ImmediateData), 20);
    IS(offsetof(VIP_CONTROL_SEGMENT, Length), 24);
    IS(offsetof(VIP_CONTROL_SEGMENT, Status), 28);
    IS(offsetof(VIP_DATA_SEGMENT, Handle), 8);
    IS(offsetof(VIP_DATA_SEGMENT, Length), 12);
    if (sizeof(void *) == 8) {
        IS(sizeof(VIP_NIC_ATTRIBUTES), 200);
        IS(sizeof(VIP_VI_ATTRIBUTES), 40);
        IS(sizeof(VIP_MEM_ATTRIBUTES), 16);
        IS(sizeof(VIP_ERROR_DESCRIPTOR), 48);
    }
    IS(sizeof(VIP_MUSUBI_QOS), 48);
    IS(offsetof(VIP_MUSUBI_QOS, Size), 0);
}

static void spellings(void)
{
    VIP_DESCRIPTOR descriptor;
    IS((char *)&descriptor.CS - (char *)&descriptor, 0);
    IS((char *)&descriptor.Control - (char *)&descriptor, 0);
    IS((char *)&descriptor.DS[1].Local - (char *)&descriptor, 48);
    IS((char *)&descriptor.DS[0].Remote - (char *)&descriptor, 32);
    IS((char *)&descriptor.Data[1] - (char *)&descriptor, 48);
    IS((char *)&descriptor.Data[1].Data.Address - (char *)&descriptor.DS[1].Local.Data.AddressBits, 0);
    descriptor.CS.Next.Descriptor = &descriptor;
    IS((char *)descriptor.Control.Next.Address - (char *)&descriptor, 0);
}

static void values(void)
{
    IS(VIP_TRUE, 1);
    IS(VIP_FALSE, 0);
    IS(VIP_INFINITE, ~0ul);
    IS(VIP_SERVICE_UNRELIABLE, 1);
    IS(VIP_SERVICE_RELIABLE_DELIVERY, 2);
    IS(VIP_SERVICE_RELIABLE_RECEPTION, 4);
    IS(VIP_DESCRIPTOR_ALIGNMENT, 64);
    IS(VIP_CONTROL_OP_SENDRECV, 0);
    IS(VIP_CONTROL_OP_RDMAWRITE, 1);
    IS(VIP_CONTROL_OP_RDMAREAD, 2);
    IS(VIP_CONTROL_OP_RESERVED, 3);
    IS(VIP_CONTROL_OP_MASK, 3);
    IS(VIP_CONTROL_IMMEDIATE, 4);
    IS(VIP_CONTROL_QFENCE, 8);
    IS(VIP_CONTROL_RESERVED, 0xfff0);
    IS(VIP_STATUS_DONE, 1);
    IS(VIP_STATUS_FORMAT_ERROR, 2);
    IS(VIP_STATUS_PROTECTION_ERROR, 4);
    IS(VIP_STATUS_LENGTH_ERROR, 8);
    IS(VIP_STATUS_PARTIAL_ERROR, 0x10);
    IS(VIP_STATUS_DESC_FLUSHED_ERROR, 0x20);
    IS(VIP_STATUS_TRANSPORT_ERROR, 0x40);
    IS(VIP_STATUS_RDMA_PROT_ERROR, 0x80);
    IS(VIP_STATUS_REMOTE_DESC_ERROR, 0x100);
    IS(VIP_STATUS_ERROR_MASK, 0x1fe);
    IS(VIP_STATUS_OP_SEND, 0);
    IS(VIP_STATUS_OP_RECEIVE, 0x10000);
    IS(VIP_STATUS_OP_RDMA_WRITE, 0x20000);
    IS(VIP_STATUS_OP_REMOTE_RDMA_WRITE, 0x30000);
    IS(VIP_STATUS_OP_RDMA_READ, 0x40000);
    IS(VIP_STATUS_OP_MASK, 0x70000);
    IS(VIP_STATUS_IMMEDIATE, 0x80000);
    IS(VIP_STATUS_RESERVED, 0xfff0fe00);
    IS(VIP_SMI_AUTODISCOVERY, 1);
}

static void codes(void)
{
    IS(VIP_SUCCESS, 0);
    IS(VIP_NOT_DONE, 1);
    IS(VIP_INVALID_PARAMETER, 2);
    IS(VIP_ERROR_RESOURCE, 3);
    IS(VIP_TIMEOUT, 4);
    IS(VIP_REJECT, 5);
    IS(VIP_INVALID_RELIABILITY_LEVEL, 6);
    IS(VIP_INVALID_MTU, 7);
    IS(VIP_INVALID_QOS, 8);
    IS(VIP_INVALID_PTAG, 9);
    IS(VIP_INVALID_RDMAREAD, 10);
    IS(VIP_DESCRIPTOR_ERROR, 11);
    IS(VIP_INVALID_STATE, 12);
    IS(VIP_ERROR_NAMESERVICE, 13);
    IS(VIP_NO_MATCH, 14);
    IS(VIP_NOT_REACHABLE, 15);
    IS(VIP_ERROR_NOT_SUPPORTED, 16);
    IS(VIP_STATE_IDLE, 0);
    IS(VIP_STATE_CONNECTED, 1);
    IS(VIP_STATE_CONNECT_PENDING, 2);
    IS(VIP_STATE_ERROR, 3);
    IS(VIP_ERROR_POST_DESC, 0);
    IS(VIP_ERROR_CONN_LOST, 1);
    IS(VIP_ERROR_RECVQ_EMPTY, 2);
    IS(VIP_ERROR_VI_OVERRUN, 3);
    IS(VIP_ERROR_RDMAW_PROT, 4);
    IS(VIP_ERROR_RDMAW_DATA, 5);
    IS(VIP_ERROR_RDMAW_ABORT, 6);
    IS(VIP_ERROR_RDMAR_PROT, 7);
    IS(VIP_ERROR_COMP_PROT, 8);
    IS(VIP_ERROR_RDMA_TRANSPORT, 9);
    IS(VIP_ERROR_CATASTROPHIC, 10);
    IS(VIP_RESOURCE_NIC, 0);
    IS(VIP_RESOURCE_VI, 1);
    IS(VIP_RESOURCE_CQ, 2);
    IS(VIP_RESOURCE_DESCRIPTOR, 3);
}

/* All 41 are there to be called. */
typedef void (*call_t)(void);
#define CALL(name) (call_t)(name)
static const call_t calls[] = {
    CALL(VipOpenNic), CALL(VipCloseNic), CALL(VipQueryNic), CALL(VipCreateVi), CALL(VipDestroyVi), CALL(VipSetViAttributes),
    CALL(VipQueryVi), CALL(VipConnectWait), CALL(VipConnectAccept), CALL(VipConnectReject), CALL(VipConnectRequest),
    CALL(VipDisconnect), CALL(VipConnectPeerRequest), CALL(VipConnectPeerDone), CALL(VipConnectPeerWait), CALL(VipCreatePtag),
    CALL(VipDestroyPtag), CALL(VipRegisterMem), CALL(VipDeregisterMem), CALL(VipQueryMem), CALL(VipSetMemAttributes),
    CALL(VipPostSend), CALL(VipPostRecv), CALL(VipSendDone), CALL(VipSendWait), CALL(VipRecvDone), CALL(VipRecvWait),
    CALL(VipSendNotify), CALL(VipRecvNotify), CALL(VipCreateCQ), CALL(VipResizeCQ), CALL(VipDestroyCQ), CALL(VipCQDone),
    CALL(VipCQWait), CALL(VipCQNotify), CALL(VipErrorCallback), CALL(VipQuerySystemManagementInfo), CALL(VipNSInit),
    CALL(VipNSShutdown), CALL(VipNSGetHostByName), CALL(VipNSGetHostByAddr),
};

int main(void)
{
    sizes();
    spellings();
    values();
    codes();
    IS(sizeof calls / sizeof *calls, 41);
    if (wrong)
        return 1;
    puts("ok");
    return 0;
}
