/* Ping-pong: the client sends, the server sends it back, each checks what it got.
 *
 *     ./ping_pong --role server & ./ping_pong --role client
 *
 * Shows: a receive that is posted before the connection is there and before each answer; waiting for completions. */
#include "vi.h"

enum { RECEIVE, SEND, DESCRIPTORS };
#define NAME "example ping-pong"

static void fill(unsigned char *bytes, unsigned long count, unsigned long turn)
{
    unsigned long i;
    for (i = 0; i < count; i++)
        bytes[i] = (unsigned char)(turn * 31 + i);
}

static void check(const unsigned char *bytes, unsigned long count, unsigned long turn)
{
    unsigned long i;
    for (i = 0; i < count; i++)
        if (bytes[i] != (unsigned char)(turn * 31 + i))
            give_up("turn %lu: byte %lu is wrong", turn, i);
}

static void post_receive(node_t *node, VIP_VI_HANDLE vi, unsigned long bytes)
{
    must(VipPostRecv(vi, message_of(node, RECEIVE, node->data, bytes), node->handle), "post a receive");
}

static void send(node_t *node, VIP_VI_HANDLE vi, unsigned long bytes)
{
    must(VipPostSend(vi, message_of(node, SEND, node->data + bytes, bytes), node->handle), "post a send");
    completed(VipSendWait, vi, "send");
}

static void receive(VIP_VI_HANDLE vi, unsigned long bytes)
{
    VIP_DESCRIPTOR *descriptor = completed(VipRecvWait, vi, "receive");
    if (descriptor->CS.Length != bytes)
        give_up("%lu bytes came, not %lu: are --count and --bytes alike at both?", (unsigned long)descriptor->CS.Length, bytes);
}

int main(int count, char **arguments)
{
    options_t options = read_options(count, arguments, "Sends a message to and fro.", "turns", (options_t){ 0, NULL, NULL, 10000, 64 });
    unsigned long turn, bytes = options.bytes;
    node_t node = open_node(options.nic, DESCRIPTORS, 2 * bytes);
    VIP_VI_HANDLE vi = create_vi(&node, bytes, NULL, NULL);
    post_receive(&node, vi, bytes);
    if (options.is_server)
        accept_client(&node, options.nic, NAME, vi);
    else
        connect_to(&node, &options, NAME, vi);
    for (turn = 0; turn < options.count; turn++) {
        if (!options.is_server) {
            fill(node.data + bytes, bytes, turn);
            send(&node, vi, bytes);
        }
        receive(vi, bytes);
        check(node.data, bytes, turn);
        if (options.is_server)
            memcpy(node.data + bytes, node.data, bytes);
        /* Before the answer, so that what follows it finds a receive. */
        if (turn + 1 < options.count)
            post_receive(&node, vi, bytes);
        if (options.is_server)
            send(&node, vi, bytes);
    }
    printf("%lu turns of %lu bytes, all as they were sent\n", options.count, bytes);
    if (!options.is_server)
        await_end(&node, vi, RECEIVE);
    end_vi(vi);
    close_node(&node);
    return 0;
}
