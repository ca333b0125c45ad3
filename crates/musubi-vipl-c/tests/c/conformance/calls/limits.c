/* The limits of a NIC hold: as many as it says, and one more is refused; what was given back can be had again. */
#include "sides.h"

static side_t one, other;

/* Makes things until one is refused; gives how many there were. */
#define UNTIL_REFUSED(made, limit, make)                                                                  \
    do {                                                                                                  \
        VIP_ULONG made_ = 0;                                                                              \
        VIP_RETURN last_;                                                                                 \
        while ((last_ = (make)) == VIP_SUCCESS)                                                           \
            WANT(++made_ <= (limit));                                                                     \
        GIVES(ERROR_RESOURCE, last_);                                                                     \
        made = made_;                                                                                     \
    } while (0)

static void vis(void)
{
    VIP_ULONG limit = one.limits.MaxVI, made, i;
    VIP_VI_HANDLE *handles = (VIP_VI_HANDLE *)calloc(limit + 1, sizeof *handles);
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&one, VIP_SERVICE_UNRELIABLE);
    UNTIL_REFUSED(made, limit, VipCreateVi(one.nic, &attributes, NULL, NULL, &handles[made_]));
    WANT_EQUAL(made, limit);
    GIVES(SUCCESS, VipDestroyVi(handles[limit / 2]));
    GIVES(SUCCESS, VipCreateVi(one.nic, &attributes, NULL, NULL, &handles[limit / 2]));
    GIVES(ERROR_RESOURCE, VipCreateVi(one.nic, &attributes, NULL, NULL, &handles[limit]));
    for (i = 0; i < limit; i++)
        GIVES(SUCCESS, VipDestroyVi(handles[i]));
    free(handles);
}

static void tags(void)
{
    VIP_ULONG limit = one.limits.MaxPtags, made, i;
    VIP_PROTECTION_HANDLE *handles = (VIP_PROTECTION_HANDLE *)calloc(limit + 1, sizeof *handles);
    /* One is the side's own. */
    UNTIL_REFUSED(made, limit, VipCreatePtag(one.nic, &handles[made_]));
    CHECKS(ERROR_RESOURCE, VipCreatePtag);
    WANT_EQUAL(made, limit - 1);
    for (i = 0; i < made; i++)
        GIVES(SUCCESS, VipDestroyPtag(one.nic, handles[i]));
    GIVES(INVALID_PTAG, VipDestroyPtag(one.nic, handles[0]));
    free(handles);
}

static void queues(void)
{
    VIP_ULONG limit = one.limits.MaxCQ, made, i;
    VIP_CQ_HANDLE *handles = (VIP_CQ_HANDLE *)calloc(limit + 1, sizeof *handles);
    GIVES(ERROR_RESOURCE, VipCreateCQ(one.nic, one.limits.MaxCQEntries + 1, &handles[0]));
    GIVES(ERROR_RESOURCE, VipCreateCQ(one.nic, ~0ul, &handles[0]));
    GIVES(SUCCESS, VipCreateCQ(one.nic, one.limits.MaxCQEntries, &handles[0]));
    GIVES(SUCCESS, VipDestroyCQ(handles[0]));
    UNTIL_REFUSED(made, limit, VipCreateCQ(one.nic, 16, &handles[made_]));
    WANT_EQUAL(made, limit);
    for (i = 0; i < limit; i++)
        GIVES(SUCCESS, VipDestroyCQ(handles[i]));
    free(handles);
}

static void regions(void)
{
    VIP_ULONG limit = one.limits.MaxRegisterRegions, made, i;
    VIP_MEM_HANDLE *handles = (VIP_MEM_HANDLE *)calloc(limit + 1, sizeof *handles), handle;
    VIP_MEM_ATTRIBUTES attributes = { one.tag, VIP_FALSE, VIP_FALSE };
    /* Nothing is touched of a region that is refused, so its bytes need not be there. */
    GIVES(ERROR_RESOURCE, VipRegisterMem(one.nic, one.memory, one.limits.MaxRegisterBlockBytes + 1, &attributes, &handle));
    UNTIL_REFUSED(made, limit, VipRegisterMem(one.nic, one.memory + made_ % 4096, 64, &attributes, &handles[made_]));
    WANT_EQUAL(made, limit - 1);
    for (i = 0; i < made; i++)
        GIVES(SUCCESS, VipDeregisterMem(one.nic, one.memory + i % 4096, handles[i]));
    GIVES(INVALID_PARAMETER, VipDeregisterMem(one.nic, one.memory, handles[0]));
    free(handles);
}

/* Descriptors that are posted and not given back; also when they are complete already. */
static void descriptors(void)
{
    VIP_ULONG limit = one.limits.MaxDescriptorsPerQueue, i;
    size_t bytes = (limit + 1) * 64;
    void *room = NULL;
    VIP_DESCRIPTOR *all, *taken;
    VIP_MEM_HANDLE handle;
    static ear_t ear;
    WANT(posix_memalign(&room, 64, bytes) == 0);
    memset(room, 0, bytes);
    all = (VIP_DESCRIPTOR *)room;
    handle = register_memory(&one, room, bytes, 0, 0);
    listen_to(&one, &ear);
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    for (i = 0; i < limit; i++)
        GIVES(SUCCESS, VipPostRecv(one.vi, &all[i], handle));
    GIVES(ERROR_RESOURCE, VipPostRecv(one.vi, &all[limit], handle));
    HEARS(&ear, VI_OVERRUN, one.vi, NULL);
    WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECTED);
    OK(VipDisconnect(one.vi));
    GIVES(ERROR_RESOURCE, VipPostRecv(one.vi, &all[limit], handle));
    HEARS(&ear, VI_OVERRUN, one.vi, NULL);
    for (i = 0; i < limit; i++) {
        GIVES(DESCRIPTOR_ERROR, VipRecvDone(one.vi, &taken));
        WANT(taken == &all[i]);
    }
    memset(room, 0, bytes);
    for (i = 0; i < limit; i++)
        GIVES(SUCCESS, VipPostSend(one.vi, &all[i], handle));
    GIVES(ERROR_RESOURCE, VipPostSend(one.vi, &all[limit], handle));
    HEARS(&ear, VI_OVERRUN, one.vi, NULL);
    WANT_EQUAL(drain(VipSendDone, one.vi), limit);
    end_sides(&one, &other);
    OK(VipErrorCallback(one.nic, NULL, NULL));
    OK(VipDeregisterMem(one.nic, room, handle));
    free(room);
}

int main(int count, char **arguments)
{
    unsigned round;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    for (round = 0; round < 2; round++) {
        vis();
        tags();
        queues();
        regions();
        descriptors();
    }
    close_side(&one);
    close_side(&other);
    return done();
}
