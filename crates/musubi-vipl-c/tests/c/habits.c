/* Habits of programs of the period: either spelling of descriptors, VIs without a tag, variable-length addresses on the heap,
 * preprocessor tests, handles' addresses for handles, the usual order of ending. Compiled as C and as C++. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIPL095
#include <vipl.h>

#ifndef VIP_ERROR_NOT_SUPPORTED
#error "programs ask for this by the preprocessor"
#endif
#ifndef VIP_NOT_REACHABLE
#error "likewise"
#endif

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv)
{
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_VI_ATTRIBUTES vi_attributes;
    VIP_MEM_ATTRIBUTES memory_attributes;
    VIP_PROTECTION_HANDLE tag;
    VIP_MEM_HANDLE memory_handle;
    VIP_VI_HANDLE vi;
    VIP_NET_ADDRESS *address;
    VIP_DESCRIPTOR *d, *done;
    VIP_RETURN status;
    char *heap;
    size_t bytes;
    int is_lax = argc > 1 && strcmp(argv[1], "lax") == 0;

    CHECK(VipOpenNic("/dev/clanvi0", &nic) == VIP_SUCCESS);
    CHECK(VipQueryNic(nic, &attributes) == VIP_SUCCESS);
    CHECK(VipCreatePtag(nic, &tag) == VIP_SUCCESS);

    /* An address with room behind it, the discriminator behind the host. */
    address = (VIP_NET_ADDRESS *)calloc(1, sizeof(VIP_NET_ADDRESS) + attributes.NicAddressLen + sizeof(int));
    address->HostAddressLen = attributes.NicAddressLen;
    memcpy(address->HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    address->DiscriminatorLen = sizeof(int);
    memset(address->HostAddress + attributes.NicAddressLen, 7, sizeof(int));

    memset(&vi_attributes, 0, sizeof vi_attributes);
    vi_attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    vi_attributes.MaxTransferSize = attributes.MaxTransferSize;
    status = VipCreateVi(nic, &vi_attributes, NULL, NULL, &vi);
    CHECK(status == (is_lax ? VIP_SUCCESS : VIP_INVALID_PTAG));
    if (!is_lax) {
        vi_attributes.Ptag = tag;
        CHECK(VipCreateVi(nic, &vi_attributes, NULL, NULL, &vi) == VIP_SUCCESS);
    }
    CHECK(VipConnectRequest(vi, address, address, 1000, &vi_attributes) == VIP_NO_MATCH);

    memory_attributes.Ptag = tag;
    memory_attributes.EnableRdmaWrite = memory_attributes.EnableRdmaRead = VIP_TRUE;
    heap = (char *)malloc(4096 + 2 * VIP_DESCRIPTOR_ALIGNMENT);
    CHECK(VipRegisterMem(nic, heap, 4096 + 2 * VIP_DESCRIPTOR_ALIGNMENT, &memory_attributes, &memory_handle) == VIP_SUCCESS);
    bytes = VIP_DESCRIPTOR_ALIGNMENT - (size_t)heap % VIP_DESCRIPTOR_ALIGNMENT;
    d = (VIP_DESCRIPTOR *)(void *)(heap + bytes);
    memset(d, 0, sizeof *d);
    d->Control.Control = VIP_CONTROL_OP_SENDRECV;
    d->Control.SegCount = 1;
    d->Data[0].Data.Address = heap + 1024;
    d->Data[0].Handle = memory_handle;
    d->Data[0].Length = 100;
    d->CS.Length = d->DS[0].Local.Length;
    CHECK(d->CS.Length == 100);
    CHECK(VipPostRecv(vi, d, memory_handle) == VIP_SUCCESS);

    CHECK(VipDisconnect(vi) == VIP_SUCCESS);
    do
        status = VipRecvDone(vi, &done);
    while (status == VIP_SUCCESS || (status == VIP_DESCRIPTOR_ERROR && done));
    do
        status = VipSendDone(vi, &done);
    while (status == VIP_SUCCESS || (status == VIP_DESCRIPTOR_ERROR && done));
    CHECK(VipDestroyVi((VIP_VI_HANDLE)&vi) == VIP_INVALID_PARAMETER);
    CHECK(VipDestroyVi(vi) == VIP_SUCCESS);
    CHECK(VipDeregisterMem(nic, heap, memory_handle) == VIP_SUCCESS);
    CHECK(VipDestroyPtag(nic, tag) == VIP_SUCCESS);
    CHECK(VipCloseNic(nic) == VIP_SUCCESS);
    CHECK(VipCloseNic(nic) == VIP_INVALID_PARAMETER);
    free(heap);
    free(address);
    puts("ok");
    return 0;
}
