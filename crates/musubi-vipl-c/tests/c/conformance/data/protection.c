/* Protection: tags, enables, bounds to the byte, regions that were given up; of descriptors, of this side's segments, of the peer's. */
#include "sides.h"

static side_t one, other;
static unsigned char *guarded;
#define GUARDED_BYTES 4096u

/* The next send of `one` has a protection error and nothing was moved. The connection is unreliable, so it goes on. */
static void is_refused_here(VIP_DESCRIPTOR *send)
{
    VIP_UINT32 length = 0;
    unsigned i;
    for (i = HEAD(send).Control != VIP_CONTROL_OP_SENDRECV; i < HEAD(send).SegCount; i++)
        length += LOCAL(send, i).Length;
    HEAD(send).Length = length;
    HEAD(send).Status = 0;
    post_send(&one, send);
    SENT(&one, send, (HEAD(send).Control == VIP_CONTROL_OP_RDMAWRITE ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_SEND) |
                         VIP_STATUS_PROTECTION_ERROR);
    WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECTED);
}

static void local_segments(void)
{
    VIP_PROTECTION_HANDLE mine = one.tag;
    VIP_MEM_HANDLE foreign, given_up, closed;
    VIP_DESCRIPTOR *send, *receive = prepare(&other, 0, 0, 64);
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    post_recv(&other, receive);
    /* Another tag's region. */
    OK(VipCreatePtag(one.nic, &one.tag));
    foreign = register_memory(&one, guarded, GUARDED_BYTES, VIP_TRUE, VIP_TRUE);
    send = prepare(&one, 0, 0, 64);
    LOCAL(send, 0).Data.Address = guarded;
    LOCAL(send, 0).Handle = foreign;
    is_refused_here(send);
    /* The same region with the right tag; no enable is needed for what this side does itself. */
    {
        VIP_MEM_ATTRIBUTES attributes = { mine, VIP_FALSE, VIP_FALSE };
        GIVES(ERROR_RESOURCE, VipDestroyPtag(one.nic, one.tag));
        GIVES(SUCCESS, VipSetMemAttributes(one.nic, guarded, foreign, &attributes));
        GIVES(SUCCESS, VipDestroyPtag(one.nic, one.tag));
    }
    one.tag = mine;
    /* One byte before and behind. */
    send = prepare(&one, 0, 0, 64);
    LOCAL(send, 0).Handle = foreign;
    LOCAL(send, 0).Data.Address = guarded - 1;
    is_refused_here(send);
    LOCAL(send, 0).Data.Address = guarded + GUARDED_BYTES - 63;
    is_refused_here(send);
    /* Ends that wrap around. */
    LOCAL(send, 0).Data.AddressBits = ~(VIP_UINT64)0 - 10;
    is_refused_here(send);
    LOCAL(send, 0).Handle = 0;
    LOCAL(send, 0).Data.Address = guarded;
    is_refused_here(send);
    /* Only its second segment is wrong; of a write too. */
    send = prepare_rdma(&one, 0, VIP_CONTROL_OP_RDMAWRITE, 0, 64, data_of(&other, 0), other.handle);
    HEAD(send).SegCount = 3;
    HEAD(send).Length = 128;
    LOCAL(send, 2) = LOCAL(send, 1);
    LOCAL(send, 2).Data.Address = guarded + GUARDED_BYTES - 63;
    LOCAL(send, 2).Handle = foreign;
    is_refused_here(send);
    /* Given up. */
    given_up = register_memory(&one, guarded, GUARDED_BYTES, VIP_TRUE, VIP_TRUE);
    GIVES(SUCCESS, VipDeregisterMem(one.nic, guarded, given_up));
    send = prepare(&one, 0, 0, 64);
    LOCAL(send, 0).Data.Address = guarded;
    LOCAL(send, 0).Handle = given_up;
    is_refused_here(send);
    /* Nothing of all that has arrived; what is right does. The last byte of a region is a part of it. */
    send = prepare(&one, 0, 0, 64);
    fill(guarded + GUARDED_BYTES - 64, 64, 9);
    LOCAL(send, 0).Data.Address = guarded + GUARDED_BYTES - 64;
    LOCAL(send, 0).Handle = foreign;
    post_send(&one, send);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    RECEIVED(&other, receive, 0);
    WANT(HEAD(receive).Length == 64 && is_filled(data_of(&other, 0), 64, 9));
    /* A receive whose segment is not its VI's: the message has no place. */
    closed = register_memory(&other, data_of(&other, 0), 64, VIP_FALSE, VIP_FALSE);
    OK(VipDeregisterMem(other.nic, data_of(&other, 0), closed));
    receive = prepare(&other, 0, 0, 64);
    LOCAL(receive, 0).Handle = closed;
    send = prepare(&one, 0, 0, 64);
    post_recv(&other, receive);
    post_send(&one, send);
    RECEIVED(&other, receive, VIP_STATUS_PROTECTION_ERROR);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    end_sides(&one, &other);
    OK(VipDeregisterMem(one.nic, guarded, foreign));
}

/* A write and a read of the peer's memory that must touch nothing. The level tells the initiator. */
static void is_refused_there(VIP_VI_ATTRIBUTES *theirs, void *at, VIP_MEM_HANDLE handle, unsigned bytes, int write, int may)
{
    VIP_DESCRIPTOR *rdma = prepare_rdma(&one, 0, write ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD, 0, bytes, at, handle);
    VIP_UINT32 operation = write ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_RDMA_READ;
    one.vi = create_vi(&one, VIP_SERVICE_RELIABLE_RECEPTION);
    OK(VipCreateVi(other.nic, theirs, NULL, NULL, &other.vi));
    connect_vis(&one, one.vi, &other, other.vi);
    fill(data_of(&one, 0), bytes, 1);
    memset(data_of(&other, 0), 0xee, 3 * GUARDED_BYTES);
    post_send(&one, rdma);
    SENT(&one, rdma, operation | (may ? 0 : VIP_STATUS_RDMA_PROT_ERROR));
    if (!may) {
        WANT(is_all(data_of(&other, 0), 3 * GUARDED_BYTES, 0xee));
        WANT(is_filled(data_of(&one, 0), bytes, 1));
        SOON_IS(state_of(other.vi) == VIP_STATE_ERROR);
    } else
        WANT_EQUAL(state_of(one.vi), VIP_STATE_CONNECTED);
    end_sides(&one, &other);
}

/* A region in the middle of memory that is not registered besides, of every kind; its neighbours never change. */
static void remote_memory(int write)
{
    unsigned char *middle = data_of(&other, GUARDED_BYTES);
    VIP_VI_ATTRIBUTES theirs = vi_attributes(&other, VIP_SERVICE_RELIABLE_RECEPTION), closed = theirs;
    VIP_PROTECTION_HANDLE mine = other.tag, foreign;
    VIP_MEM_HANDLE open, shut, of_foreign;
    closed.EnableRdmaWrite = !write;
    closed.EnableRdmaRead = write;
    open = register_memory(&other, middle, GUARDED_BYTES, write, !write);
    shut = register_memory(&other, middle, GUARDED_BYTES, !write, write);
    OK(VipCreatePtag(other.nic, &foreign));
    other.tag = foreign;
    of_foreign = register_memory(&other, middle, GUARDED_BYTES, VIP_TRUE, VIP_TRUE);
    other.tag = mine;
    is_refused_there(&theirs, middle, open, GUARDED_BYTES, write, 1);
    is_refused_there(&theirs, middle, shut, 64, write, 0);
    is_refused_there(&closed, middle, open, 64, write, 0);
    is_refused_there(&theirs, middle, of_foreign, 64, write, 0);
    is_refused_there(&theirs, middle - 1, open, 64, write, 0);
    is_refused_there(&theirs, middle + GUARDED_BYTES - 63, open, 64, write, 0);
    is_refused_there(&theirs, middle + GUARDED_BYTES - 64, open, 64, write, 1);
    is_refused_there(&theirs, (void *)(uintptr_t)(~(uintptr_t)0 - 20), open, 64, write, 0);
    is_refused_there(&theirs, NULL, open, 64, write, 0);
    is_refused_there(&theirs, middle, 0, 64, write, 0);
    is_refused_there(&theirs, middle, open ^ 0x5a5a5a5au, 64, write, 0);
    OK(VipDeregisterMem(other.nic, middle, open));
    is_refused_there(&theirs, middle, open, 64, write, 0);
    OK(VipDeregisterMem(other.nic, middle, shut));
    OK(VipDeregisterMem(other.nic, middle, of_foreign));
    OK(VipDestroyPtag(other.nic, foreign));
}

/* A VI's tag also holds for its descriptors. */
static void descriptors_have_a_tag(void)
{
    VIP_PROTECTION_HANDLE mine = one.tag;
    VIP_MEM_HANDLE foreign;
    VIP_DESCRIPTOR *send = prepare(&one, 0, 0, 8);
    static ear_t ear;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    listen_to(&one, &ear);
    OK(VipCreatePtag(one.nic, &one.tag));
    foreign = register_memory(&one, one.memory, 4096, VIP_TRUE, VIP_TRUE);
    GIVES(INVALID_PARAMETER, VipPostSend(one.vi, send, foreign));
    HEARS(&ear, POST_DESC, one.vi, NULL);
    GIVES(INVALID_PARAMETER, VipPostRecv(one.vi, send, foreign));
    HEARS(&ear, POST_DESC, one.vi, NULL);
    exchange(&one, &other, 1);
    OK(VipErrorCallback(one.nic, NULL, NULL));
    OK(VipDeregisterMem(one.nic, one.memory, foreign));
    OK(VipDestroyPtag(one.nic, one.tag));
    one.tag = mine;
    end_sides(&one, &other);
    /* In use by VIs and regions. */
    one.vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    GIVES(ERROR_RESOURCE, VipDestroyPtag(one.nic, one.tag));
    OK(VipDestroyVi(one.vi));
    GIVES(ERROR_RESOURCE, VipDestroyPtag(one.nic, one.tag));
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    guarded = (unsigned char *)malloc(GUARDED_BYTES + 2) + 1;
    local_segments();
    remote_memory(1);
    remote_memory(0);
    descriptors_have_a_tag();
    close_side(&one);
    close_side(&other);
    free(guarded - 1);
    return done();
}
