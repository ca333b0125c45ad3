/* A stream: the client sends with many descriptors posted at once; the server has as many receives, and says after each half of them
 * that they are posted again. Both compute a checksum of all bytes and compare it.
 *
 *     ./stream --role server & ./stream --role client
 *
 * Shows: that a receiver who wants nothing lost must let the sender know how many receives there are (credit): a message that
 * finds none breaks a reliable connection. And immediate data: the numbers of the messages. */
#include "vi.h"

/* Receives that are posted, and messages that may be under way. A credit is half of them. */
#define POSTED 32ul
#define CREDIT (POSTED / 2)
/* Descriptors: those of the stream, then those of credits. */
#define CREDITS_AT POSTED
#define CREDIT_RECEIVES 4ul
#define LAST (CREDITS_AT + CREDIT_RECEIVES)
#define DESCRIPTORS (LAST + 1)
#define NAME "example stream"

static VIP_UINT32 sum_of(VIP_UINT32 sum, const unsigned char *bytes, unsigned long count)
{
    unsigned long i;
    for (i = 0; i < count; i++)
        sum = (sum << 5 | sum >> 27) + bytes[i];
    return sum;
}

/* A message without data whose immediate data says something. */
static void say(node_t *node, VIP_VI_HANDLE vi, unsigned long i, VIP_UINT32 what)
{
    VIP_DESCRIPTOR *descriptor = descriptor_of(node, i);
    descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    descriptor->CS.ImmediateData = what;
    must(VipPostSend(vi, descriptor, node->handle), "post a word");
}

static VIP_UINT32 said(VIP_DESCRIPTOR *descriptor)
{
    if (!(descriptor->CS.Status & VIP_STATUS_IMMEDIATE))
        give_up("a message without its number");
    return descriptor->CS.ImmediateData;
}

static void serve(node_t *node, VIP_VI_HANDLE vi, const options_t *options)
{
    unsigned long n, bytes = options->bytes;
    VIP_UINT32 sum = 0;
    for (n = 0; n < POSTED; n++)
        must(VipPostRecv(vi, message_of(node, n, node->data + n * bytes, bytes), node->handle), "post a receive");
    accept_client(node, options->nic, NAME, vi);
    for (n = 0; n < options->count; n++) {
        VIP_DESCRIPTOR *descriptor = completed(VipRecvWait, vi, "receive");
        unsigned long slot = n % POSTED;
        if (said(descriptor) != (VIP_UINT32)n || descriptor->CS.Length != bytes)
            give_up("message %lu: number or length is wrong; are --count and --bytes alike at both?", n);
        sum = sum_of(sum, node->data + slot * bytes, bytes);
        must(VipPostRecv(vi, message_of(node, slot, node->data + slot * bytes, bytes), node->handle), "post a receive");
        if ((n + 1) % CREDIT == 0) {
            say(node, vi, CREDITS_AT, (VIP_UINT32)(n + 1));
            completed(VipSendWait, vi, "give a credit");
        }
    }
    say(node, vi, LAST, sum);
    completed(VipSendWait, vi, "tell the checksum");
    printf("%lu messages of %lu bytes, checksum %08x\n", options->count, bytes, (unsigned)sum);
}

static VIP_UINT32 hear(node_t *node, VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *descriptor = completed(VipRecvWait, vi, "hear from the server");
    VIP_UINT32 what = said(descriptor);
    memset(descriptor, 0, sizeof *descriptor);
    must(VipPostRecv(vi, descriptor, node->handle), "post a receive");
    return what;
}

static void ask(node_t *node, VIP_VI_HANDLE vi, const options_t *options)
{
    unsigned long n, taken_back = 0, received = 0, i, bytes = options->bytes;
    VIP_UINT32 sum = 0, theirs;
    VIP_DESCRIPTOR *ended = NULL;
    for (i = 0; i < CREDIT_RECEIVES; i++)
        must(VipPostRecv(vi, descriptor_of(node, CREDITS_AT + i), node->handle), "post a receive");
    connect_to(node, options, NAME, vi);
    for (n = 0; n < options->count; n++) {
        unsigned long slot = n % POSTED;
        unsigned char *data = node->data + slot * bytes;
        VIP_DESCRIPTOR *descriptor;
        while (n - received >= POSTED)
            received = hear(node, vi);
        if (n - taken_back >= POSTED) {
            completed(VipSendWait, vi, "send");
            taken_back++;
        }
        for (i = 0; i < bytes; i++)
            data[i] = (unsigned char)(n * 7 + i * i);
        sum = sum_of(sum, data, bytes);
        descriptor = message_of(node, slot, data, bytes);
        descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
        descriptor->CS.ImmediateData = (VIP_UINT32)n;
        must(VipPostSend(vi, descriptor, node->handle), "post a send");
    }
    while (taken_back < options->count) {
        completed(VipSendWait, vi, "send");
        taken_back++;
    }
    for (; received + CREDIT <= options->count; received += CREDIT)
        if (hear(node, vi) != (VIP_UINT32)(received + CREDIT))
            give_up("a credit is missing");
    theirs = hear(node, vi);
    if (theirs != sum)
        give_up("the server's checksum is %08x, not %08x", (unsigned)theirs, (unsigned)sum);
    printf("%lu messages of %lu bytes, checksum %08x\n", options->count, bytes, (unsigned)sum);
    /* What is posted for credits is flushed when the server has ended. */
    if (VipRecvWait(vi, PATIENCE, &ended) != VIP_DESCRIPTOR_ERROR || ended == NULL)
        give_up("the server does not end the connection");
}

int main(int count, char **arguments)
{
    options_t options = read_options(count, arguments, "Sends a stream with many posted descriptors.", "messages",
                                     (options_t){ 0, NULL, NULL, 10000, 4096 });
    node_t node = open_node(options.nic, DESCRIPTORS, POSTED * options.bytes);
    VIP_VI_HANDLE vi = create_vi(&node, options.bytes, NULL, NULL);
    if (options.is_server)
        serve(&node, vi, &options);
    else
        ask(&node, vi, &options);
    end_vi(vi);
    close_node(&node);
    return 0;
}
