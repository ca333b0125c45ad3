/* The habits of ARMCI: the VIPL095 spelling; addresses put together by hand; VIs whose tag is left zero, though memory is registered
 * under one; asking again on NO_MATCH; descriptors rounded by hand; polling the status word's neighbours with VipSendDone. With
 * MUSUBI_VIPL_NULL_PTAG=1 all of it works, without that a VI needs a tag. */
#define VIPL095
#include "check.h"

#include <strings.h>

#ifdef VIP_ERROR_NOT_SUPPORTED
#define HAS_LATER_CODES 1
#else
#error VIP_ERROR_NOT_SUPPORTED is asked for by the preprocessor
#endif

#define ROUND_UP(p) ((char *)(((unsigned long)(p) + VIP_DESCRIPTOR_ALIGNMENT - 1) & ~(unsigned long)(VIP_DESCRIPTOR_ALIGNMENT - 1)))

typedef struct {
    VIP_NIC_HANDLE handle;
    VIP_NIC_ATTRIBUTES attr;
    VIP_PROTECTION_HANDLE ptag;
    VIP_VI_HANDLE vi;
    char *buf;
    VIP_MEM_HANDLE memhandle;
} nic_t;

static nic_t nics[2];
static char discriminator[32];

static VIP_RETURN create(nic_t *nic)
{
    VIP_VI_ATTRIBUTES vattr;
    bzero(&vattr, sizeof(vattr));
    vattr.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    vattr.MaxTransferSize = 32 * 1024;
    vattr.QoS = 0;
    vattr.EnableRdmaWrite = VIP_TRUE;
    return VipCreateVi(nic->handle, &vattr, 0, 0, &nic->vi);
}

static void init(nic_t *nic, const char *name)
{
    VIP_MEM_ATTRIBUTES mattr;
    GIVES(SUCCESS, VipOpenNic(name, &nic->handle));
    GIVES(SUCCESS, VipQueryNic(nic->handle, &nic->attr));
    GIVES(SUCCESS, VipCreatePtag(nic->handle, &nic->ptag));
    nic->buf = (char *)malloc(65536);
    bzero(nic->buf, 65536);
    mattr.Ptag = nic->ptag;
    mattr.EnableRdmaWrite = VIP_TRUE;
    mattr.EnableRdmaRead = VIP_FALSE;
    GIVES(SUCCESS, VipRegisterMem(nic->handle, nic->buf, 65536, &mattr, &nic->memhandle));
}

static VIP_NET_ADDRESS *make_address(nic_t *nic)
{
    VIP_NET_ADDRESS *address = (VIP_NET_ADDRESS *)malloc(sizeof(VIP_NET_ADDRESS) + nic->attr.NicAddressLen + sizeof discriminator);
    address->HostAddressLen = nic->attr.NicAddressLen;
    address->DiscriminatorLen = sizeof discriminator;
    memcpy(address->HostAddress, nic->attr.LocalNicAddress, nic->attr.NicAddressLen);
    memcpy(address->HostAddress + nic->attr.NicAddressLen, discriminator, sizeof discriminator);
    return address;
}

static void *client(void *unused)
{
    VIP_NET_ADDRESS *local = make_address(&nics[0]), *remote = make_address(&nics[1]);
    VIP_VI_ATTRIBUTES rattr;
    VIP_RETURN rc;
    (void)unused;
    do {
        rc = VipConnectRequest(nics[0].vi, local, remote, VIP_INFINITE, &rattr);
        if (rc == VIP_NO_MATCH)
            usleep(10000);
    } while (rc == VIP_NO_MATCH);
    WANT(rc == VIP_SUCCESS && rc != VIP_NOT_REACHABLE);
    free(local), free(remote);
    return NULL;
}

static VIP_DESCRIPTOR *fill(nic_t *nic, size_t at, size_t data, VIP_UINT32 bytes)
{
    VIP_DESCRIPTOR *pdesc = (VIP_DESCRIPTOR *)(void *)ROUND_UP(nic->buf + at);
    bzero(pdesc, sizeof(VIP_DESCRIPTOR));
    pdesc->CS.SegCount = 1;
    pdesc->CS.Control = VIP_CONTROL_OP_SENDRECV;
    pdesc->CS.Length = bytes;
    pdesc->DS[0].Local.Data.Address = nic->buf + data;
    pdesc->DS[0].Local.Handle = nic->memhandle;
    pdesc->DS[0].Local.Length = bytes;
    return pdesc;
}

static void talk(void)
{
    VIP_DESCRIPTOR *receive = fill(&nics[1], 0, 1024, 4096), *send = fill(&nics[0], 0, 1024, 13), *pdesc, *put;
    VIP_NET_ADDRESS *local = make_address(&nics[1]);
    char remote_room[sizeof(VIP_NET_ADDRESS) + 256];
    VIP_VI_ATTRIBUTES rattr;
    VIP_CONN_HANDLE con_hndl;
    VIP_RETURN rc;
    pthread_t thread;
    GIVES(SUCCESS, VipPostRecv(nics[1].vi, receive, nics[1].memhandle));
    WANT(pthread_create(&thread, NULL, client, NULL) == 0);
    GIVES(SUCCESS, VipConnectWait(nics[1].handle, local, VIP_INFINITE, (VIP_NET_ADDRESS *)(void *)remote_room, &rattr, &con_hndl));
    GIVES(SUCCESS, VipConnectAccept(con_hndl, nics[1].vi));
    WANT(pthread_join(thread, NULL) == 0);
    strcpy(nics[0].buf + 1024, "hello, armci");
    GIVES(SUCCESS, VipPostSend(nics[0].vi, send, nics[0].memhandle));
    do
        rc = VipSendDone(nics[0].vi, &pdesc);
    while (rc == VIP_NOT_DONE);
    WANT(rc == VIP_SUCCESS && pdesc == send && pdesc->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
    GIVES(SUCCESS, VipRecvWait(nics[1].vi, VIP_INFINITE, &pdesc));
    WANT(pdesc == receive && pdesc->CS.Length == 13 && strcmp(nics[1].buf + 1024, "hello, armci") == 0);
    /* A put, and the wait for its completion. */
    put = fill(&nics[0], 256, 1024, 13);
    put->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    put->CS.SegCount = 2;
    put->DS[1] = put->DS[0];
    put->DS[0].Remote.Data.Address = nics[1].buf + 8192;
    put->DS[0].Remote.Handle = nics[1].memhandle;
    put->DS[0].Remote.Reserved = 0;
    GIVES(SUCCESS, VipPostSend(nics[0].vi, put, nics[0].memhandle));
    GIVES(SUCCESS, VipSendWait(nics[0].vi, VIP_INFINITE, &pdesc));
    SOON_IS(strcmp(nics[1].buf + 8192, "hello, armci") == 0 || (VipRecvDone(nics[1].vi, &pdesc), 0));
    free(local);
}

int main(int count, char **arguments)
{
    const char *is_lax = getenv("MUSUBI_VIPL_NULL_PTAG");
    int i;
    begin(count, arguments);
    snprintf(discriminator, sizeof discriminator, "armci %ld", (long)getpid());
    for (i = 0; i < 2; i++)
        init(&nics[i], nic_names[i]);
    if (is_lax == NULL || strcmp(is_lax, "1") != 0) {
        GIVES(INVALID_PTAG, create(&nics[0]));
        puts("ok, refused");
        return done();
    }
    for (i = 0; i < 2; i++)
        GIVES(SUCCESS, create(&nics[i]));
    talk();
    for (i = 0; i < 2; i++) {
        GIVES(SUCCESS, VipDisconnect(nics[i].vi));
        GIVES(SUCCESS, VipDestroyVi(nics[i].vi));
        GIVES(SUCCESS, VipDeregisterMem(nics[i].handle, nics[i].buf, nics[i].memhandle));
        GIVES(SUCCESS, VipDestroyPtag(nics[i].handle, nics[i].ptag));
        GIVES(SUCCESS, VipCloseNic(nics[i].handle));
        free(nics[i].buf);
    }
    return done();
}
