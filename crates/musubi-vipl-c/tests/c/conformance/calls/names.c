/* The name service, and what the management information tells. */
#include "sides.h"

static side_t one, other;

static void by_name(void)
{
    address_t found = address_of(&one, "kept"), before;
    VIP_CHAR host[256] = { 0 };
    unsigned i;
    memset(found.net.HostAddress, 0xcc, found.net.HostAddressLen);
    found.net.HostAddressLen = 0;
    before = found;
    for (i = 0; i < 2; i++) {
        const side_t *side = i == 0 ? &one : &other;
        /* The host part alone is written; the caller sets the discriminator. */
        GIVES(SUCCESS, VipNSGetHostByName(one.nic, (VIP_CHAR *)(uintptr_t)side->name, &found.net, 0));
        WANT_EQUAL(found.net.HostAddressLen, side->limits.NicAddressLen);
        WANT(memcmp(found.net.HostAddress, side->limits.LocalNicAddress, side->limits.NicAddressLen) == 0);
        WANT_EQUAL(found.net.DiscriminatorLen, before.net.DiscriminatorLen);
        WANT(memcmp(found.net.HostAddress + found.net.HostAddressLen, before.net.HostAddress + found.net.HostAddressLen, 8) == 0);
    }
    /* This machine's own name is the asking NIC's. */
    WANT(gethostname(host, sizeof host - 1) == 0);
    GIVES(SUCCESS, VipNSGetHostByName(other.nic, host, &found.net, 0));
    WANT(memcmp(found.net.HostAddress, other.limits.LocalNicAddress, other.limits.NicAddressLen) == 0);
    GIVES(SUCCESS, VipNSGetHostByName(one.nic, (VIP_CHAR *)(uintptr_t) "localhost", &found.net, 0));
    WANT(memcmp(found.net.HostAddress, one.limits.LocalNicAddress, one.limits.NicAddressLen) == 0);
    GIVES(ERROR_NAMESERVICE, VipNSGetHostByName(one.nic, (VIP_CHAR *)(uintptr_t)one.name, &found.net, 1));
    GIVES(ERROR_NAMESERVICE, VipNSGetHostByName(one.nic, (VIP_CHAR *)(uintptr_t) "no such host anywhere", &found.net, 0));
    GIVES(INVALID_PARAMETER, VipNSGetHostByName(one.nic, NULL, &found.net, 0));
    GIVES(INVALID_PARAMETER, VipNSGetHostByName(one.nic, (VIP_CHAR *)(uintptr_t)one.name, NULL, 0));
}

static void by_address(void)
{
    address_t address = address_of(&other, "any");
    VIP_CHAR name[64];
    VIP_ULONG length = sizeof name, needed = strlen(other.name) + 1;
    memset(name, 0xcc, sizeof name);
    GIVES(SUCCESS, VipNSGetHostByAddr(one.nic, &address.net, name, &length));
    WANT(strcmp(name, other.name) == 0);
    WANT_EQUAL(length, needed);
    /* Exactly enough; one less; and NULL, to ask for the length. */
    GIVES(SUCCESS, VipNSGetHostByAddr(one.nic, &address.net, name, &length));
    memset(name, 0xcc, sizeof name);
    length = needed - 1;
    GIVES(ERROR_RESOURCE, VipNSGetHostByAddr(one.nic, &address.net, name, &length));
    WANT_EQUAL(length, needed);
    WANT(is_all((unsigned char *)name, sizeof name, 0xcc));
    length = 0;
    GIVES(ERROR_RESOURCE, VipNSGetHostByAddr(one.nic, &address.net, NULL, &length));
    WANT_EQUAL(length, needed);
    GIVES(INVALID_PARAMETER, VipNSGetHostByAddr(one.nic, NULL, name, &length));
    GIVES(INVALID_PARAMETER, VipNSGetHostByAddr(one.nic, &address.net, name, NULL));
    length = sizeof name;
    memset(address.net.HostAddress, 0xfd, address.net.HostAddressLen);
    GIVES(ERROR_NAMESERVICE, VipNSGetHostByAddr(one.nic, &address.net, name, &length));
}

static void autodiscovery(void)
{
    VIP_AUTODISCOVERY_LIST list;
    address_t addresses[64];
    VIP_NET_ADDRESS *places[64];
    unsigned i, found = 0;
    for (i = 0; i < 64; i++)
        places[i] = &addresses[i].net;
    memset(addresses, 0, sizeof addresses);
    list.NumberOfHops = 77;
    list.ADAddrArray = places;
    list.NumAdAddrs = 64;
    GIVES(SUCCESS, VipQuerySystemManagementInfo(one.nic, VIP_SMI_AUTODISCOVERY, &list));
    WANT(list.NumAdAddrs >= 1 && list.NumAdAddrs <= 64 && list.NumberOfHops != 77);
    for (i = 0; i < list.NumAdAddrs; i++)
        found += addresses[i].net.HostAddressLen == one.limits.NicAddressLen &&
                 memcmp(addresses[i].net.HostAddress, one.limits.LocalNicAddress, one.limits.NicAddressLen) == 0;
    WANT_EQUAL(found, 1);
    i = (unsigned)list.NumAdAddrs;
    list.NumAdAddrs = 0;
    GIVES(ERROR_RESOURCE, VipQuerySystemManagementInfo(one.nic, VIP_SMI_AUTODISCOVERY, &list));
    WANT_EQUAL(list.NumAdAddrs, i);
    GIVES(INVALID_PARAMETER, VipQuerySystemManagementInfo(one.nic, VIP_SMI_AUTODISCOVERY, NULL));
    GIVES(ERROR_NOT_SUPPORTED, VipQuerySystemManagementInfo(one.nic, 2, &list));
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    /* Names are there with and without it. */
    by_name();
    GIVES(SUCCESS, VipNSInit(one.nic, NULL));
    by_name();
    by_address();
    GIVES(SUCCESS, VipNSShutdown(one.nic));
    by_address();
    autodiscovery();
    close_side(&one);
    close_side(&other);
    return done();
}
