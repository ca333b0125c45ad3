/* The state table, row by row; what becomes of posted descriptors when a connection ends; reliability, row by row. */
#include "check.h"

static void row_of_idle(void)
{
    VIP_DESCRIPTOR *d = NULL, *receive = plain(&one, 1, 0, 10), *send = plain(&one, 2, 0, 10);
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY), told;
    VIP_BOOLEAN sends_empty, receives_empty;
    VIP_VI_STATE state;
    create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    IS(VipRecvDone(one.vi, &d), VIP_DESCRIPTOR_ERROR);
    HOLDS(d == NULL);
    IS(VipSendDone(one.vi, &d), VIP_DESCRIPTOR_ERROR);
    HOLDS(d == NULL);
    IS(VipRecvWait(one.vi, 10, &d), VIP_DESCRIPTOR_ERROR);
    post_receive(&one, receive);
    IS(VipRecvDone(one.vi, &d), VIP_NOT_DONE);
    IS(VipRecvWait(one.vi, 10, &d), VIP_TIMEOUT);
    IS(VipRecvWait(one.vi, 0, &d), VIP_TIMEOUT);
    post_send(&one, send);
    sent(&one, send, VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR);
    attributes.MaxTransferSize = 100;
    OK(VipSetViAttributes(one.vi, &attributes));
    OK(VipQueryVi(one.vi, &state, &told, &sends_empty, &receives_empty));
    IS(state, VIP_STATE_IDLE);
    IS(told.MaxTransferSize, 100);
    HOLDS(told.Ptag == one.tag && told.QoS == NULL);
    IS(sends_empty, VIP_TRUE);
    IS(receives_empty, VIP_FALSE);
    IS(VipDestroyVi(one.vi), VIP_INVALID_STATE);
    /* Disconnecting an idle VI flushes its receives. */
    OK(VipDisconnect(one.vi));
    received(&one, receive, VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR, 0);
    OK(VipDestroyVi(one.vi));
}

/* An attempt that nobody answers, in another thread. */
static VIP_RETURN ended;

static void *ask(void *unused)
{
    VIP_VI_ATTRIBUTES attributes;
    address_t local, to;
    ended = VipConnectRequest(one.vi, at(&local, &one, "client"), at(&to, &other, "slow"), SOON, &attributes);
    return unused;
}

static void row_of_pending(void)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR *receive = plain(&one, 1, 0, 10), *send = plain(&one, 2, 0, 10), *d;
    VIP_CONN_HANDLE connection;
    address_t local, to, from;
    pthread_t thread;
    create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    /* The server is there first, so that the attempt is not over at once. */
    IS(VipConnectWait(other.nic, at(&to, &other, "slow"), 1, &from.address, &attributes, &connection), VIP_TIMEOUT);
    HOLDS(pthread_create(&thread, NULL, ask, NULL) == 0);
    OK(VipConnectWait(other.nic, at(&to, &other, "slow"), SOON, &from.address, &attributes, &connection));
    IS(state_of(&one), VIP_STATE_CONNECT_PENDING);
    post_receive(&one, receive);
    IS(VipRecvDone(one.vi, &d), VIP_NOT_DONE);
    post_send(&one, send);
    sent(&one, send, VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR);
    IS(VipConnectRequest(one.vi, at(&local, &one, "x"), &to.address, SOON, &attributes), VIP_INVALID_STATE);
    IS(VipConnectPeerRequest(one.vi, &local.address, &to.address, SOON), VIP_INVALID_STATE);
    attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    IS(VipSetViAttributes(one.vi, &attributes), VIP_INVALID_STATE);
    IS(VipDestroyVi(one.vi), VIP_INVALID_STATE);
    OK(VipDisconnect(one.vi));
    HOLDS(pthread_join(thread, NULL) == 0);
    IS(ended, VIP_INVALID_STATE);
    IS(state_of(&one), VIP_STATE_IDLE);
    /* The server's caller has gone. */
    create(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    do
        ended = VipConnectAccept(connection, other.vi);
    while (ended == VIP_SUCCESS && VipDisconnect(other.vi) == VIP_SUCCESS);
    IS(ended, VIP_TIMEOUT);
    IS(state_of(&other), VIP_STATE_IDLE);
    part(&one);
    part(&other);
}

static void rows_of_connected_and_error(void)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_DESCRIPTOR *receives[3], *d;
    address_t local, to;
    int index;
    connected(VIP_SERVICE_RELIABLE_DELIVERY);
    attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    IS(state_of(&one), VIP_STATE_CONNECTED);
    IS(VipSetViAttributes(one.vi, &attributes), VIP_INVALID_STATE);
    IS(VipDestroyVi(one.vi), VIP_INVALID_STATE);
    IS(VipConnectRequest(one.vi, at(&local, &one, "x"), at(&to, &other, "port"), SOON, &attributes), VIP_INVALID_STATE);
    for (index = 0; index < 3; index++) {
        receives[index] = plain(&other, index, 0, 10);
        post_receive(&other, receives[index]);
    }
    OK(VipDisconnect(one.vi));
    IS(state_of(&one), VIP_STATE_IDLE);
    becomes(&other, VIP_STATE_ERROR);
    for (index = 0; index < 3; index++)
        received(&other, receives[index], VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR, 0);
    post_receive(&other, receives[0]);
    received(&other, receives[0], VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR, 0);
    d = plain(&other, 5, 0, 10);
    post_send(&other, d);
    sent(&other, d, VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR);
    IS(VipDestroyVi(other.vi), VIP_INVALID_STATE);
    attributes = vi_attributes(&other, VIP_SERVICE_RELIABLE_DELIVERY);
    IS(VipSetViAttributes(other.vi, &attributes), VIP_INVALID_STATE);
    IS(VipConnectRequest(other.vi, at(&local, &other, "x"), at(&to, &one, "port"), SOON, &attributes), VIP_INVALID_STATE);
    OK(VipDisconnect(other.vi));
    IS(state_of(&other), VIP_STATE_IDLE);
    /* Both can be connected again. */
    join();
    part(&one);
    part(&other);
}

/* Level by level: a message without a receive, and one that is longer than its receive. */
static void what_does_not_fit(VIP_RELIABILITY_LEVEL level)
{
    int is_long;
    for (is_long = 0; is_long < 2; is_long++) {
        VIP_DESCRIPTOR *send = plain(&one, 2, 0, 20), *receive = plain(&other, 1, 0, 10), *later;
        connected(level);
        if (is_long)
            post_receive(&other, receive);
        post_send(&one, send);
        if (level == VIP_SERVICE_UNRELIABLE) {
            sent(&one, send, VIP_STATUS_OP_SEND);
            if (is_long)
                received(&other, receive, VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR, 0);
            /* The connection stays: the next one comes. Until the first was dropped it may take a moment. */
            usleep(is_long ? 0 : 200000);
            later = plain(&other, 3, 0, 20);
            post_receive(&other, later);
            post_send(&one, plain(&one, 4, 0, 20));
            received(&other, later, VIP_STATUS_OP_RECEIVE, 20);
        } else {
            if (level == VIP_SERVICE_RELIABLE_RECEPTION)
                sent(&one, send, VIP_STATUS_OP_SEND | VIP_STATUS_REMOTE_DESC_ERROR);
            becomes(&one, VIP_STATE_ERROR);
            becomes(&other, VIP_STATE_ERROR);
            if (is_long)
                received(&other, receive, VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR, 0);
        }
        part(&one);
        part(&other);
    }
}

/* Writes and reads that the target does not permit. */
static void what_is_not_permitted(VIP_RELIABILITY_LEVEL level)
{
    int which;
    for (which = 0; which < 6; which++) {
        VIP_MEM_ATTRIBUTES memory;
        VIP_VI_ATTRIBUTES attributes = vi_attributes(&other, level);
        VIP_DESCRIPTOR *d;
        VIP_PROTECTION_HANDLE tag;
        unsigned char before[256];
        int is_read = which == 5;
        if (is_read && level == VIP_SERVICE_UNRELIABLE)
            continue;
        if (which == 0)
            attributes.EnableRdmaWrite = VIP_FALSE;
        create(&one, level);
        OK(VipCreateVi(other.nic, &attributes, NULL, NULL, &other.vi));
        join();
        OK(VipCreatePtag(other.nic, &tag));
        memory.Ptag = which == 1 ? tag : other.tag;
        memory.EnableRdmaWrite = which == 2 ? VIP_FALSE : VIP_TRUE;
        memory.EnableRdmaRead = VIP_FALSE;
        OK(VipSetMemAttributes(other.nic, other.memory, other.handle, &memory));
        fill(buffer(&one, 0), 256, 9);
        fill(buffer(&other, 0), 256, 1);
        memcpy(before, buffer(&other, 0), sizeof before);
        d = remote(&one, 2, is_read ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE, 0, 16, &other, 8);
        if (which == 3)
            d->DS[0].Remote.Handle += 1;
        if (which == 4)
            d->DS[0].Remote.Data.Address = other.memory + MEMORY_BYTES - 15;
        post_send(&one, d);
        if (level == VIP_SERVICE_UNRELIABLE) {
            sent(&one, d, VIP_STATUS_OP_RDMA_WRITE);
            usleep(50000);
        } else {
            becomes(&one, VIP_STATE_ERROR);
            becomes(&other, VIP_STATE_ERROR);
            if (level == VIP_SERVICE_RELIABLE_RECEPTION || is_read)
                sent(&one, d, VIP_STATUS_RDMA_PROT_ERROR | (is_read ? VIP_STATUS_OP_RDMA_READ : VIP_STATUS_OP_RDMA_WRITE));
        }
        HOLDS(memcmp(before, buffer(&other, 0), sizeof before) == 0);
        memory.Ptag = other.tag;
        memory.EnableRdmaWrite = memory.EnableRdmaRead = VIP_TRUE;
        OK(VipSetMemAttributes(other.nic, other.memory, other.handle, &memory));
        OK(VipDestroyPtag(other.nic, tag));
        part(&one);
        part(&other);
    }
}

int main(int argc, char **argv)
{
    unsigned level;
    begin(argc, argv);
    row_of_idle();
    row_of_pending();
    rows_of_connected_and_error();
    for (level = 0; level < 3; level++) {
        what_does_not_fit(levels[level]);
        what_is_not_permitted(levels[level]);
    }
    end();
    return 0;
}
