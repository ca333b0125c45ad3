/* A NIC is opened, asked, closed; several handles of one know nothing of each other. */
#include "sides.h"

static void attributes(void)
{
    VIP_NIC_HANDLE nic = NULL;
    VIP_NIC_ATTRIBUTES told;
    memset(&told, 0xa5, sizeof told);
    GIVES(INVALID_PARAMETER, VipOpenNic(NULL, &nic));
    GIVES(INVALID_PARAMETER, VipOpenNic(nic_names[0], NULL));
    WANT(nic == NULL);
    GIVES(SUCCESS, VipOpenNic(nic_names[0], &nic));
    WANT(nic != NULL);
    GIVES(INVALID_PARAMETER, VipQueryNic(nic, NULL));
    GIVES(SUCCESS, VipQueryNic(nic, &told));
    WANT(memchr(told.Name, 0, sizeof told.Name) != NULL && strcmp(told.Name, nic_names[0]) == 0);
    WANT(told.NicAddressLen > 0 && told.LocalNicAddress != NULL);
    WANT_EQUAL(told.ThreadSafe, VIP_TRUE);
    WANT(told.MaxDiscriminatorLen >= 16);
    WANT(told.MaxVI >= 256 && told.MaxCQ >= 16 && told.MaxPtags >= 16 && told.MaxCQEntries >= 1024);
    WANT(told.MaxRegisterRegions >= 1024 && told.MaxRegisterBlockBytes >= 1ul << 30);
    WANT(told.MaxRegisterBytes >= told.MaxRegisterBlockBytes);
    /* What period programs take for granted: 252 segments (and an address segment), 32 KiB. */
    WANT(told.MaxSegmentsPerDesc >= 253 && told.MaxTransferSize >= 32768 && told.MaxDescriptorsPerQueue >= 128);
    WANT(told.NativeMTU > 0);
    WANT_EQUAL(told.ReliabilityLevelSupport, 7);
    WANT_EQUAL(told.RDMAReadSupport, VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION);
    GIVES(SUCCESS, VipCloseNic(nic));
    GIVES(INVALID_PARAMETER, VipCloseNic(nic));
    GIVES(INVALID_PARAMETER, VipQueryNic(nic, &told));
    GIVES(INVALID_PARAMETER, VipCloseNic(NULL));
}

/* What belongs to one handle is not known to the other, also of the same NIC. */
static void handles_apart(void)
{
    side_t one, other;
    VIP_VI_ATTRIBUTES of_vi;
    VIP_MEM_ATTRIBUTES of_memory;
    VIP_VI_HANDLE vi = NULL;
    VIP_CQ_HANDLE queue = NULL;
    VIP_MEM_HANDLE handle;
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[0]);
    WANT(one.nic != other.nic);
    of_vi = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    GIVES(INVALID_PTAG, VipCreateVi(other.nic, &of_vi, NULL, NULL, &vi));
    GIVES(INVALID_PTAG, VipDestroyPtag(other.nic, one.tag));
    of_memory.Ptag = one.tag;
    of_memory.EnableRdmaWrite = of_memory.EnableRdmaRead = VIP_FALSE;
    GIVES(INVALID_PTAG, VipRegisterMem(other.nic, one.memory, 64, &of_memory, &handle));
    GIVES(INVALID_PARAMETER, VipDeregisterMem(other.nic, one.memory, one.handle));
    GIVES(INVALID_PARAMETER, VipQueryMem(other.nic, one.memory, one.handle, &of_memory));
    of_vi = vi_attributes(&other, VIP_SERVICE_UNRELIABLE);
    OK(VipCreateCQ(one.nic, 16, &queue));
    GIVES(INVALID_PARAMETER, VipCreateVi(other.nic, &of_vi, queue, NULL, &vi));
    GIVES(INVALID_PARAMETER, VipCreateVi(other.nic, &of_vi, NULL, queue, &vi));
    WANT(vi == NULL);
    /* The end of one leaves the other alone, and takes everything along that is its own. */
    vi = create_vi(&other, VIP_SERVICE_UNRELIABLE);
    one.vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    close_side(&one);
    GIVES(INVALID_PARAMETER, VipDestroyVi(one.vi));
    GIVES(INVALID_PARAMETER, VipDestroyCQ(queue));
    GIVES(INVALID_PARAMETER, VipQueryVi(one.vi, NULL, NULL, NULL, NULL));
    GIVES(SUCCESS, VipDestroyVi(vi));
    close_side(&other);
}

/* Names that are none: with a description of several NICs they are refused; where there is one, every name is its. */
static void names(void)
{
    VIP_NIC_HANDLE nic = NULL;
    char endless[300];
    VIP_RETURN gave = VipOpenNic("no NIC of that name", &nic);
    WANT(gave == VIP_SUCCESS || gave == VIP_INVALID_PARAMETER);
    if (gave == VIP_SUCCESS)
        OK(VipCloseNic(nic));
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    GIVES(INVALID_PARAMETER, VipOpenNic(endless, &nic));
}

int main(int count, char **arguments)
{
    int round;
    begin(count, arguments);
    /* What was closed can be opened again, and nothing is used up. */
    for (round = 0; round < 20; round++)
        attributes();
    handles_apart();
    names();
    return done();
}
