/* Wrong handles, of every call: NULL, a pointer to a handle, another kind, one that was given back, any bits. Each is answered with a
 * code, and nothing is looked up behind it. */
#include "sides.h"

static side_t side;
static address_t here;

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    (void)context, (void)nic, (void)vi, (void)descriptor;
    WANT(!"called");
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receives)
{
    (void)context, (void)nic, (void)vi, (void)receives;
    WANT(!"called");
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context, (void)error;
    WANT(!"called");
}

static void as_nic(VIP_PVOID wrong)
{
    VIP_NIC_ATTRIBUTES nic;
    VIP_VI_ATTRIBUTES of_vi = vi_attributes(&side, VIP_SERVICE_UNRELIABLE);
    VIP_MEM_ATTRIBUTES of_memory = { side.tag, VIP_FALSE, VIP_FALSE };
    VIP_AUTODISCOVERY_LIST list = { 0, NULL, 0 };
    VIP_PVOID made = NULL;
    VIP_MEM_HANDLE handle = 0;
    VIP_CHAR name[64];
    VIP_ULONG length = sizeof name;
    GIVES(INVALID_PARAMETER, VipCloseNic(wrong));
    GIVES(INVALID_PARAMETER, VipQueryNic(wrong, &nic));
    GIVES(INVALID_PARAMETER, VipCreateVi(wrong, &of_vi, NULL, NULL, &made));
    GIVES(INVALID_PARAMETER, VipConnectWait(wrong, &here.net, 10, NULL, NULL, &made));
    GIVES(INVALID_PARAMETER, VipCreatePtag(wrong, &made));
    GIVES(INVALID_PARAMETER, VipDestroyPtag(wrong, side.tag));
    GIVES(INVALID_PARAMETER, VipRegisterMem(wrong, side.memory, 64, &of_memory, &handle));
    GIVES(INVALID_PARAMETER, VipDeregisterMem(wrong, side.memory, side.handle));
    GIVES(INVALID_PARAMETER, VipQueryMem(wrong, side.memory, side.handle, &of_memory));
    GIVES(INVALID_PARAMETER, VipSetMemAttributes(wrong, side.memory, side.handle, &of_memory));
    GIVES(INVALID_PARAMETER, VipCreateCQ(wrong, 16, &made));
    GIVES(INVALID_PARAMETER, VipErrorCallback(wrong, NULL, on_error));
    GIVES(INVALID_PARAMETER, VipQuerySystemManagementInfo(wrong, VIP_SMI_AUTODISCOVERY, &list));
    GIVES(INVALID_PARAMETER, VipNSInit(wrong, NULL));
    GIVES(INVALID_PARAMETER, VipNSShutdown(wrong));
    GIVES(INVALID_PARAMETER, VipNSGetHostByName(wrong, (VIP_CHAR *)(uintptr_t)side.name, &here.net, 0));
    GIVES(INVALID_PARAMETER, VipNSGetHostByAddr(wrong, &here.net, name, &length));
    WANT(made == NULL && handle == 0);
}

static void as_vi(VIP_PVOID wrong)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&side, VIP_SERVICE_UNRELIABLE);
    VIP_VI_STATE state;
    VIP_DESCRIPTOR *descriptor = prepare(&side, 0, 0, 8), *taken = descriptor;
    GIVES(INVALID_PARAMETER, VipDestroyVi(wrong));
    GIVES(INVALID_PARAMETER, VipSetViAttributes(wrong, &attributes));
    GIVES(INVALID_PARAMETER, VipQueryVi(wrong, &state, NULL, NULL, NULL));
    GIVES(INVALID_PARAMETER, VipConnectRequest(wrong, &here.net, &here.net, 10, NULL));
    GIVES(INVALID_PARAMETER, VipConnectPeerRequest(wrong, &here.net, &here.net, 10));
    GIVES(INVALID_PARAMETER, VipConnectPeerDone(wrong, NULL));
    GIVES(INVALID_PARAMETER, VipConnectPeerWait(wrong, NULL));
    GIVES(INVALID_PARAMETER, VipDisconnect(wrong));
    GIVES(INVALID_PARAMETER, VipPostSend(wrong, descriptor, side.handle));
    GIVES(INVALID_PARAMETER, VipPostRecv(wrong, descriptor, side.handle));
    GIVES(INVALID_PARAMETER, VipSendDone(wrong, &taken));
    GIVES(INVALID_PARAMETER, VipRecvDone(wrong, &taken));
    GIVES(INVALID_PARAMETER, VipSendWait(wrong, 10, &taken));
    GIVES(INVALID_PARAMETER, VipRecvWait(wrong, 10, &taken));
    GIVES(INVALID_PARAMETER, VipSendNotify(wrong, NULL, on_descriptor));
    GIVES(INVALID_PARAMETER, VipRecvNotify(wrong, NULL, on_descriptor));
    WANT(taken == descriptor && HEAD(descriptor).Status == 0);
}

static void as_cq(VIP_PVOID wrong)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&side, VIP_SERVICE_UNRELIABLE);
    VIP_VI_HANDLE vi = NULL;
    VIP_BOOLEAN receives;
    GIVES(INVALID_PARAMETER, VipResizeCQ(wrong, 32));
    GIVES(INVALID_PARAMETER, VipDestroyCQ(wrong));
    GIVES(INVALID_PARAMETER, VipCQDone(wrong, &vi, &receives));
    GIVES(INVALID_PARAMETER, VipCQWait(wrong, 10, &vi, &receives));
    GIVES(INVALID_PARAMETER, VipCQNotify(wrong, NULL, on_entry));
    if (wrong != NULL) {
        GIVES(INVALID_PARAMETER, VipCreateVi(side.nic, &attributes, wrong, NULL, &vi));
        GIVES(INVALID_PARAMETER, VipCreateVi(side.nic, &attributes, NULL, wrong, &vi));
    }
    WANT(vi == NULL);
}

static void as_request(VIP_PVOID wrong)
{
    GIVES(INVALID_PARAMETER, VipConnectAccept(wrong, side.vi));
    GIVES(INVALID_PARAMETER, VipConnectReject(wrong));
}

static void pointers(VIP_CQ_HANDLE cq)
{
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receives;
    GIVES(INVALID_PARAMETER, VipSendDone(side.vi, NULL));
    GIVES(INVALID_PARAMETER, VipRecvDone(side.vi, NULL));
    GIVES(INVALID_PARAMETER, VipSendWait(side.vi, 10, NULL));
    GIVES(INVALID_PARAMETER, VipRecvWait(side.vi, 10, NULL));
    GIVES(INVALID_PARAMETER, VipCQDone(cq, NULL, &receives));
    GIVES(INVALID_PARAMETER, VipCQDone(cq, &vi, NULL));
    GIVES(INVALID_PARAMETER, VipCQWait(cq, 10, NULL, &receives));
    GIVES(INVALID_PARAMETER, VipSendNotify(side.vi, NULL, NULL));
    GIVES(INVALID_PARAMETER, VipCreatePtag(side.nic, NULL));
    GIVES(SUCCESS, VipQueryVi(side.vi, NULL, NULL, NULL, NULL));
}

int main(int count, char **arguments)
{
    VIP_PVOID wrong[12], destroyed;
    VIP_CQ_HANDLE cq = NULL, gone_cq = NULL;
    unsigned i;
    VIP_PROTECTION_HANDLE tag;
    begin(count, arguments);
    open_side(&side, nic_names[0]);
    here = address_of(&side, "here");
    side.vi = create_vi(&side, VIP_SERVICE_UNRELIABLE);
    OK(VipCreateCQ(side.nic, 16, &cq));
    OK(VipCreateCQ(side.nic, 16, &gone_cq));
    OK(VipDestroyCQ(gone_cq));
    destroyed = create_vi(&side, VIP_SERVICE_UNRELIABLE);
    OK(VipDestroyVi(destroyed));
    wrong[0] = NULL;
    wrong[1] = &side.vi;
    wrong[2] = &wrong;
    wrong[3] = (VIP_PVOID)~(uintptr_t)0;
    wrong[4] = (VIP_PVOID)(uintptr_t)1;
    wrong[5] = (VIP_PVOID)(uintptr_t)0xdeadbeefdeadbeefu;
    wrong[6] = side.memory + 1;
    wrong[7] = (VIP_PVOID)(uintptr_t)main;
    wrong[8] = (VIP_PVOID)((uintptr_t)side.vi ^ 0x40000000u);
    wrong[9] = side.tag;
    wrong[10] = destroyed;
    wrong[11] = gone_cq;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        as_nic(wrong[i]);
        as_vi(wrong[i]);
        as_cq(wrong[i]);
        as_request(wrong[i]);
        if (i != 9)
            GIVES(INVALID_PTAG, VipDestroyPtag(side.nic, wrong[i]));
    }
    as_nic(side.vi);
    as_nic(cq);
    as_vi(side.nic);
    as_vi(cq);
    as_cq(side.nic);
    as_cq(side.vi);
    as_request(side.nic);
    as_request(side.vi);
    pointers(cq);
    OK(VipCreatePtag(side.nic, &tag));
    OK(VipDestroyPtag(side.nic, tag));
    GIVES(INVALID_PTAG, VipDestroyPtag(side.nic, tag));
    /* All that was refused has changed nothing. */
    WANT_EQUAL(state_of(side.vi), VIP_STATE_IDLE);
    OK(VipDestroyVi(side.vi));
    OK(VipDestroyCQ(cq));
    close_side(&side);
    return done();
}
