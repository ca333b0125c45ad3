/* Registered memory: of every kind, at any address; several registrations of the same bytes; what handles and addresses must agree
 * on; giving up what is in use; the memory of a parent process. */
#include "sides.h"

#include <sys/mman.h>
#include <sys/wait.h>

static side_t one, other;
static unsigned char in_static[5000];

/* Sends from these bytes and receives there again, and writes and reads them from the other side. */
static void works(unsigned char *bytes, unsigned count)
{
    VIP_MEM_HANDLE handle = register_memory(&one, bytes, count, VIP_TRUE, VIP_TRUE);
    VIP_DESCRIPTOR *send = prepare(&one, 0, 0, count), *receive = prepare(&other, 0, 0, count), *rdma;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_RECEPTION);
    LOCAL(send, 0).Data.Address = bytes;
    LOCAL(send, 0).Handle = handle;
    fill(bytes, count, 1);
    post_recv(&other, receive);
    post_send(&one, send);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    RECEIVED(&other, receive, 0);
    WANT(is_filled(data_of(&other, 0), count, 1));
    receive = prepare(&one, 0, 0, count);
    LOCAL(receive, 0).Data.Address = bytes;
    LOCAL(receive, 0).Handle = handle;
    fill(data_of(&other, 0), count, 2);
    post_recv(&one, receive);
    post_send(&other, prepare(&other, 0, 0, count));
    RECEIVED(&one, receive, 0);
    SENT(&other, descriptor_of(&other, 0), VIP_STATUS_OP_SEND);
    WANT(is_filled(bytes, count, 2));
    rdma = prepare_rdma(&other, 0, VIP_CONTROL_OP_RDMAREAD, 8192, count, bytes, handle);
    post_send(&other, rdma);
    SENT(&other, rdma, VIP_STATUS_OP_RDMA_READ);
    WANT(is_filled(data_of(&other, 8192), count, 2));
    fill(data_of(&other, 0), count, 3);
    rdma = prepare_rdma(&other, 0, VIP_CONTROL_OP_RDMAWRITE, 0, count, bytes, handle);
    post_send(&other, rdma);
    SENT(&other, rdma, VIP_STATUS_OP_RDMA_WRITE);
    WANT(is_filled(bytes, count, 3));
    end_sides(&one, &other);
    GIVES(SUCCESS, VipDeregisterMem(one.nic, bytes, handle));
    /* The program's own again, as it was. */
    WANT(is_filled(bytes, count, 3));
    memset(bytes, 0, count);
}

static void every_kind(void)
{
    unsigned char on_stack[5000], *heap = (unsigned char *)malloc(5000), *mapped, *shared;
    works(on_stack, 5000);
    works(on_stack + 3, 4097);
    works(in_static + 1, 4999);
    works(heap + 5, 1);
    works(heap + 7, 4093);
    mapped = (unsigned char *)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = (unsigned char *)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    /* Across pages that were never touched. */
    works(mapped + 4095, 50000);
    works(shared + 17, 50000);
    munmap(mapped, 1 << 16);
    munmap(shared, 1 << 16);
    free(heap);
}

/* Memory whose middle was given back. */
static void *holed(void)
{
    unsigned char *mapped = (unsigned char *)mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WANT(mapped != MAP_FAILED && munmap(mapped + 65536, 65536) == 0);
    return mapped;
}

static void calls(void)
{
    VIP_MEM_ATTRIBUTES attributes = { one.tag, VIP_TRUE, VIP_FALSE }, told;
    VIP_MEM_HANDLE first = 0, second = 0;
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, in_static, 0, &attributes, &first));
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, NULL, 64, &attributes, &first));
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, (void *)(~(uintptr_t)0 - 10), 64, &attributes, &first));
    /* Where there is no memory, or not all of it. */
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, (void *)64, 64, &attributes, &first));
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, holed(), 3 * 65536, &attributes, &first));
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, in_static, 64, NULL, &first));
    GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, in_static, 64, &attributes, NULL));
    attributes.Ptag = one.nic;
    GIVES(INVALID_PTAG, VipRegisterMem(one.nic, in_static, 64, &attributes, &first));
    attributes.Ptag = NULL;
    GIVES(INVALID_PTAG, VipRegisterMem(one.nic, in_static, 64, &attributes, &first));
    WANT_EQUAL(first, 0);
    attributes.Ptag = one.tag;
    GIVES(SUCCESS, VipRegisterMem(one.nic, in_static, 64, &attributes, &first));
    GIVES(SUCCESS, VipRegisterMem(one.nic, in_static, 64, &attributes, &second));
    WANT(first != second && first != 0 && second != 0);
    GIVES(SUCCESS, VipQueryMem(one.nic, in_static, first, &told));
    WANT(told.Ptag == one.tag && told.EnableRdmaWrite && !told.EnableRdmaRead);
    attributes.EnableRdmaWrite = VIP_FALSE;
    attributes.EnableRdmaRead = VIP_TRUE;
    GIVES(SUCCESS, VipSetMemAttributes(one.nic, in_static, first, &attributes));
    GIVES(SUCCESS, VipQueryMem(one.nic, in_static, first, &told));
    WANT(!told.EnableRdmaWrite && told.EnableRdmaRead);
    /* The other registration is not concerned. */
    GIVES(SUCCESS, VipQueryMem(one.nic, in_static, second, &told));
    WANT(told.EnableRdmaWrite && !told.EnableRdmaRead);
    GIVES(INVALID_PARAMETER, VipQueryMem(one.nic, in_static + 1, first, &told));
    GIVES(INVALID_PARAMETER, VipSetMemAttributes(one.nic, in_static + 1, first, &attributes));
    GIVES(INVALID_PARAMETER, VipDeregisterMem(one.nic, in_static + 1, first));
    GIVES(INVALID_PARAMETER, VipQueryMem(one.nic, in_static, first, NULL));
    GIVES(INVALID_PARAMETER, VipSetMemAttributes(one.nic, in_static, first, NULL));
    attributes.Ptag = &attributes;
    GIVES(INVALID_PTAG, VipSetMemAttributes(one.nic, in_static, first, &attributes));
    GIVES(SUCCESS, VipDeregisterMem(one.nic, in_static, first));
    GIVES(INVALID_PARAMETER, VipDeregisterMem(one.nic, in_static, first));
    GIVES(INVALID_PARAMETER, VipQueryMem(one.nic, in_static, first, &told));
    GIVES(SUCCESS, VipDeregisterMem(one.nic, in_static, second));
}

/* A region that is given up while receives and writes refer to it: nothing is written there any more. */
static void given_up_in_use(void)
{
    unsigned char *bytes = (unsigned char *)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VIP_MEM_HANDLE handle = register_memory(&other, bytes, 1 << 16, VIP_TRUE, VIP_TRUE);
    VIP_DESCRIPTOR *receive = prepare(&other, 0, 0, 4096), *send = prepare(&one, 0, 0, 4096), *write;
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    LOCAL(receive, 0).Data.Address = bytes;
    LOCAL(receive, 0).Handle = handle;
    post_recv(&other, receive);
    GIVES(SUCCESS, VipDeregisterMem(other.nic, bytes, handle));
    munmap(bytes, 1 << 16);
    write = prepare_rdma(&one, 1, VIP_CONTROL_OP_RDMAWRITE, 0, 4096, bytes, handle);
    post_send(&one, write);
    post_send(&one, send);
    SENT(&one, write, VIP_STATUS_OP_RDMA_WRITE);
    SENT(&one, send, VIP_STATUS_OP_SEND);
    RECEIVED(&other, receive, VIP_STATUS_PROTECTION_ERROR);
    end_sides(&one, &other);
}

/* Memory that was unmapped, and is still registered, is the program's mistake: an error, not a crash, and not of others. */
static void unmapped(void)
{
    unsigned char *bytes = (unsigned char *)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VIP_MEM_ATTRIBUTES attributes = { one.tag, VIP_FALSE, VIP_FALSE };
    VIP_MEM_HANDLE handle = 0;
    munmap(bytes, 1 << 16);
    /* Registering what is not there may be refused, or taken for what may come there. */
    if (VipRegisterMem(one.nic, bytes, 1 << 16, &attributes, &handle) == VIP_SUCCESS)
        OK(VipDeregisterMem(one.nic, bytes, handle));
}

/* A child made by fork has none of its parent's NICs, opens its own, and leaves its parent's connections alone. */
static void forked(void)
{
    int status = 0;
    pid_t child;
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    child = fork();
    if (child == 0) {
        VIP_MEM_ATTRIBUTES attributes = { one.tag, VIP_FALSE, VIP_FALSE };
        VIP_MEM_HANDLE handle;
        VIP_DESCRIPTOR *taken;
        alarm(LONGEST);
        GIVES(INVALID_PARAMETER, VipRegisterMem(one.nic, in_static, 64, &attributes, &handle));
        GIVES(INVALID_PARAMETER, VipPostSend(one.vi, prepare(&one, 0, 0, 8), one.handle));
        GIVES(INVALID_PARAMETER, VipRecvDone(one.vi, &taken));
        GIVES(INVALID_PARAMETER, VipDisconnect(one.vi));
        GIVES(INVALID_PARAMETER, VipCloseNic(one.nic));
        _exit(0);
    }
    WANT(waitpid(child, &status, 0) == child);
    WANT_EQUAL(status, 0);
    exchange(&one, &other, 7);
    exchange(&other, &one, 8);
    end_sides(&one, &other);
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    every_kind();
    calls();
    given_up_in_use();
    unmapped();
    forked();
    close_side(&one);
    close_side(&other);
    return done();
}
