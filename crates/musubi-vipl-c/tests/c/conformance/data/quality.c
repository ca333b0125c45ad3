/* Quality of service beyond the class: each side's own, taken as it is given; a rate holds the sender back and nobody else; an
 * interval lets sleepers lie while completions come. */
#include "sides.h"

static side_t one, other;

static VIP_VI_HANDLE vi_of(side_t *side, VIP_MUSUBI_QOS *quality)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(side, VIP_SERVICE_RELIABLE_DELIVERY), told;
    VIP_VI_HANDLE vi = NULL;
    quality->Size = sizeof *quality;
    attributes.QoS = quality;
    OK(VipCreateVi(side->nic, &attributes, NULL, NULL, &vi));
    OK(VipQueryVi(vi, NULL, &told, NULL, NULL));
    WANT(told.QoS != NULL && told.QoS != quality);
    WANT(memcmp(told.QoS, quality, sizeof *quality) == 0);
    return vi;
}

/* Every field may differ but the class. */
static void unlike(void)
{
    VIP_MUSUBI_QOS near_quality, far_quality;
    memset(&near_quality, 0, sizeof near_quality);
    memset(&far_quality, 0, sizeof far_quality);
    near_quality.Class = far_quality.Class = 3;
    near_quality.MessageRate = 1000000, near_quality.MessageBurst = 1000;
    near_quality.ByteRate = (VIP_UINT64)1 << 33, near_quality.ByteBurst = 1 << 20;
    far_quality.MessageRate = 2000000;
    near_quality.Weight = 255, far_quality.Weight = 3;
    one.vi = vi_of(&one, &near_quality);
    other.vi = vi_of(&other, &far_quality);
    connect_vis(&one, one.vi, &other, other.vi);
    exchange(&one, &other, 1);
    exchange(&other, &one, 2);
    end_sides(&one, &other);
}

/* 100 messages a second, 10 at once: 40 of them take 300 ms at least; what comes the other way is not held back. */
static void rate(int of_bytes)
{
    VIP_MUSUBI_QOS slow, plain;
    unsigned long begun;
    unsigned i;
    memset(&slow, 0, sizeof slow);
    memset(&plain, 0, sizeof plain);
    if (of_bytes)
        slow.ByteRate = 100 * 1000, slow.ByteBurst = 10 * 1000;
    else
        slow.MessageRate = 100, slow.MessageBurst = 10;
    one.vi = vi_of(&one, &slow);
    other.vi = vi_of(&other, &plain);
    connect_vis(&one, one.vi, &other, other.vi);
    for (i = 0; i < 40; i++)
        post_recv(&other, prepare(&other, i, i * 1000, 1000));
    begun = now_ms();
    for (i = 0; i < 40; i++)
        post_send(&one, prepare(&one, i, 0, 1000));
    for (i = 0; i < 40; i++)
        RECEIVED(&other, descriptor_of(&other, i), 0);
    WANT(now_ms() - begun >= 280);
    for (i = 0; i < 40; i++)
        SENT(&one, descriptor_of(&one, i), VIP_STATUS_OP_SEND);
    begun = now_ms();
    for (i = 0; i < 200; i++)
        exchange(&other, &one, i);
    WANT(now_ms() - begun < SOON);
    end_sides(&one, &other);
}

/* Each field can be asked for, and less than all of the structure is the rest as 0. */
static void asked_for(void)
{
    VIP_VI_ATTRIBUTES attributes = vi_attributes(&one, VIP_SERVICE_RELIABLE_DELIVERY), told;
    VIP_MUSUBI_QOS quality;
    VIP_VI_HANDLE vi = NULL, like = NULL;
    unsigned field;
    attributes.QoS = &quality;
    for (field = 0; field < 3; field++) {
        memset(&quality, 0, sizeof quality);
        quality.Size = sizeof quality;
        (&quality.NotifyLatest)[field] = 100;
        OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &vi));
        OK(VipQueryVi(vi, NULL, &told, NULL, NULL));
        WANT((&((VIP_MUSUBI_QOS *)told.QoS)->NotifyLatest)[field] == 100);
        OK(VipDestroyVi(vi));
    }
    memset(&quality, 0, sizeof quality);
    quality.Size = sizeof quality, quality.Weight = 256;
    GIVES(INVALID_QOS, VipCreateVi(one.nic, &attributes, NULL, NULL, &vi));
    quality.Weight = 255, quality.Class = VIP_MUSUBI_QOS_CLASSES;
    GIVES(INVALID_QOS, VipCreateVi(one.nic, &attributes, NULL, NULL, &vi));
    memset(&quality, 0xff, sizeof quality);
    quality.Size = 8, quality.Class = 2;
    OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &vi));
    OK(VipQueryVi(vi, NULL, &told, NULL, NULL));
    WANT(((VIP_MUSUBI_QOS *)told.QoS)->Class == 2 && ((VIP_MUSUBI_QOS *)told.QoS)->MessageRate == 0);
    /* It can be changed while the VI is idle; NULL is none. */
    memset(&quality, 0, sizeof quality);
    quality.Size = sizeof quality, quality.MessageRate = 7;
    OK(VipSetViAttributes(vi, &attributes));
    OK(VipCreateVi(one.nic, &attributes, NULL, NULL, &like));
    OK(VipQueryVi(vi, NULL, &told, NULL, NULL));
    WANT(((VIP_MUSUBI_QOS *)told.QoS)->MessageRate == 7);
    attributes.QoS = NULL;
    OK(VipSetViAttributes(vi, &attributes));
    /* What was told lies where it lay. */
    WANT(((VIP_MUSUBI_QOS *)told.QoS)->MessageRate == 7);
    OK(VipQueryVi(vi, NULL, &told, NULL, NULL));
    WANT(told.QoS == NULL);
    OK(VipDestroyVi(vi));
    OK(VipDestroyVi(like));
}

/* Waits for the first of two messages, which wakes at once, and for the second: gives how long that took. The first wait begins before
 * anything is sent. */
static VIP_VI_HANDLE waits_at;
static unsigned long second_took;

static void *two_waits(void *unused)
{
    VIP_DESCRIPTOR *done = NULL;
    unsigned long begun;
    (void)unused;
    OK(VipRecvWait(waits_at, VIP_INFINITE, &done));
    WANT(done == descriptor_of(&other, 0));
    begun = now_ms();
    OK(VipRecvWait(waits_at, VIP_INFINITE, &done));
    WANT(done == descriptor_of(&other, 1));
    second_took = now_ms() - begun;
    return NULL;
}

/* Two messages 300 ms apart to a VI that wakes once in `interval` milliseconds, each at `latest` at the latest: how long after the first
 * the second one's sleeper is up. */
static unsigned long woken_after(unsigned interval, unsigned latest)
{
    VIP_MUSUBI_QOS seldom, plain;
    pthread_t thread;
    unsigned i;
    memset(&seldom, 0, sizeof seldom);
    memset(&plain, 0, sizeof plain);
    seldom.Class = plain.Class = 4;
    seldom.NotifyInterval = interval * 1000, seldom.NotifyLatest = latest * 1000;
    seldom.ResponseBudget = 1000000;
    one.vi = vi_of(&one, &plain);
    other.vi = vi_of(&other, &seldom);
    connect_vis(&one, one.vi, &other, other.vi);
    for (i = 0; i < 2; i++)
        post_recv(&other, prepare(&other, i, i * 1000, 1000));
    waits_at = other.vi;
    WANT(pthread_create(&thread, NULL, two_waits, NULL) == 0);
    for (i = 0; i < 2; i++) {
        sleep_ms(300);
        post_send(&one, prepare(&one, i, 0, 1000));
        SENT(&one, descriptor_of(&one, i), VIP_STATUS_OP_SEND);
    }
    WANT(pthread_join(thread, NULL) == 0);
    /* Who polls sees a completion at once, however young the last waking is. */
    exchange(&one, &other, 5);
    end_sides(&one, &other);
    return second_took;
}

int main(int count, char **arguments)
{
    unsigned long took;
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    asked_for();
    unlike();
    rate(0);
    rate(1);
    WANT(woken_after(0, 0) < SOON);
    took = woken_after(100000, 500);
    WANT(took < SOON);
    /* Not when it comes, after 300 ms, but when somebody who sleeps looks. Where both sides are of one NIC, what the sender is told
     * wakes the other one, too. */
    if (strcmp(nic_names[0], nic_names[1]) != 0)
        WANT(took >= 450);
    close_side(&one);
    close_side(&other);
    return done();
}
