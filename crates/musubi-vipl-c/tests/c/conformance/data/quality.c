/* Quality of service beyond the class: each side's own, taken as it is given; a rate holds the sender back and nobody else. */
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

/* What is not there is not promised, and less than all of the structure is the rest as 0. */
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
        GIVES(INVALID_QOS, VipCreateVi(one.nic, &attributes, NULL, NULL, &vi));
    }
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

int main(int count, char **arguments)
{
    begin(count, arguments);
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    asked_for();
    unlike();
    rate(0);
    rate(1);
    close_side(&one);
    close_side(&other);
    return done();
}
