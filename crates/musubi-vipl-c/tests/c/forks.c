/* A child made by fork has no part in its parent's NICs: its calls say so, it may open its own, and its end takes nothing from the
 * parent. */
#include "check.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
    VIP_NIC_ATTRIBUTES attributes;
    VIP_NIC_HANDLE own;
    VIP_DESCRIPTOR *d;
    pid_t child;
    int status;
    begin(argc, argv);
    connected(VIP_SERVICE_RELIABLE_DELIVERY);
    child = fork();
    if (child == 0) {
        IS(VipQueryNic(one.nic, &attributes), VIP_INVALID_PARAMETER);
        IS(VipRecvDone(one.vi, &d), VIP_INVALID_PARAMETER);
        IS(VipPostSend(one.vi, plain(&one, 1, 0, 10), one.handle), VIP_INVALID_PARAMETER);
        IS(VipDisconnect(one.vi), VIP_INVALID_PARAMETER);
        IS(VipCloseNic(one.nic), VIP_INVALID_PARAMETER);
        OK(VipOpenNic(argv[1], &own));
        OK(VipQueryNic(own, &attributes));
        OK(VipCloseNic(own));
        exit(0);
    }
    HOLDS(waitpid(child, &status, 0) == child);
    IS(status, 0);
    post_receive(&other, plain(&other, 1, 0, 10));
    post_send(&one, plain(&one, 2, 0, 10));
    received(&other, descriptor(&other, 1), VIP_STATUS_OP_RECEIVE, 10);
    part(&one);
    part(&other);
    end();
    return 0;
}
