/* Two processes: `exchange serve NIC` echoes messages; `exchange ask NIC OTHER COUNT` sends so many of random sizes and compares
 * what comes back; `exchange die NIC OTHER` ends in the middle. A server goes on with the next client. */
#include "check.h"

#define WINDOW 16
#define PART 40000

static void receives(void)
{
    int index;
    for (index = 0; index < WINDOW; index++)
        post_receive(&one, plain(&one, index, PART / 16 * (unsigned)index, PART / 16));
}

static void serve(const char *stop_after)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    address_t local, from;
    int clients = atoi(stop_after);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("up");
    while (clients-- > 0) {
        VIP_DESCRIPTOR *d;
        VIP_RETURN result;
        create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
        receives();
        OK(VipConnectWait(one.nic, at(&local, &one, "echo"), VIP_INFINITE, &from.address, &attributes, &connection));
        if (VipConnectAccept(connection, one.vi) == VIP_SUCCESS) {
            while ((result = VipRecvWait(one.vi, VIP_INFINITE, &d)) == VIP_SUCCESS) {
                VIP_DESCRIPTOR *send = plain(&one, 100, 100000, d->CS.Length), *sent_one;
                memcpy(buffer(&one, 100000), d->DS[0].Local.Data.Address, d->CS.Length);
                d->CS.Length = d->DS[0].Local.Length;
                d->CS.Status = 0;
                if (VipPostRecv(one.vi, d, one.handle) != VIP_SUCCESS || VipPostSend(one.vi, send, one.handle) != VIP_SUCCESS)
                    break;
                if (VipSendWait(one.vi, SOON, &sent_one) != VIP_SUCCESS)
                    break;
            }
        }
        part(&one);
        puts("gone");
    }
}

static void ask(int count, int dies)
{
    VIP_VI_ATTRIBUTES attributes;
    address_t local, to;
    VIP_RETURN result;
    unsigned seed = (unsigned)getpid();
    int round;
    create(&one, VIP_SERVICE_RELIABLE_DELIVERY);
    receives();
    at(&local, &one, "client");
    at(&to, &other, "echo");
    do
        result = VipConnectRequest(one.vi, &local.address, &to.address, SOON, &attributes);
    while (result == VIP_NO_MATCH && usleep(1000) == 0);
    OK(result);
    for (round = 0; round < count; round++) {
        unsigned bytes = (unsigned)rand_r(&seed) % (PART / 16);
        VIP_DESCRIPTOR *send = plain(&one, 100, 100000, bytes), *d;
        fill(buffer(&one, 100000), bytes, seed);
        post_send(&one, send);
        if (dies && round == count / 2)
            _exit(0);
        sent(&one, send, VIP_STATUS_OP_SEND);
        OK(VipRecvWait(one.vi, SOON, &d));
        IS(d->CS.Length, bytes);
        HOLDS(memcmp(d->DS[0].Local.Data.Address, buffer(&one, 100000), bytes) == 0);
        d->CS.Length = d->DS[0].Local.Length;
        d->CS.Status = 0;
        post_receive(&one, d);
    }
    part(&one);
}

int main(int argc, char **argv)
{
    HOLDS(argc >= 4);
    alarm(120);
    begin_side(&one, argv[2], NULL);
    other = one;
    if (strcmp(argv[1], "serve") == 0) {
        serve(argv[3]);
    } else {
        other.name = argv[3];
        ask(atoi(argv[4]), strcmp(argv[1], "die") == 0);
    }
    OK(VipCloseNic(one.nic));
    puts("ok");
    return 0;
}
