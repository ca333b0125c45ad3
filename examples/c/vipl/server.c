/* A server with one completion queue for many VIs: each VI of the client asks for sums of numbers; the server waits at one place, sees
 * which VI has a question, and answers there. The client checks each answer.
 *
 *     ./server --role server & ./server --role client
 *
 * Shows: completion queues; that an entry says which VI and which queue, and that the descriptor is dequeued from that VI; many VIs
 * served in the order in which they ask. */
#include "vi.h"

/* VIs of the client. */
#define VIS 16ul
/* Of each VI: a receive and a send, here and there. */
enum { RECEIVE, SEND, EACH };
#define NAME "example server"

static unsigned char *data_of(node_t *node, const options_t *options, unsigned long vi, unsigned long which)
{
    return node->data + (vi * EACH + which) * options->bytes;
}

static void post_receive(node_t *node, const options_t *options, VIP_VI_HANDLE vi, unsigned long i)
{
    VIP_DESCRIPTOR *descriptor = message_of(node, i * EACH + RECEIVE, data_of(node, options, i, RECEIVE), options->bytes);
    must(VipPostRecv(vi, descriptor, node->handle), "post a receive");
}

static void send(node_t *node, const options_t *options, VIP_VI_HANDLE vi, unsigned long i, unsigned long bytes)
{
    VIP_DESCRIPTOR *descriptor = message_of(node, i * EACH + SEND, data_of(node, options, i, SEND), bytes);
    must(VipPostSend(vi, descriptor, node->handle), "post a send");
    completed(VipSendWait, vi, "send");
}

static VIP_UINT32 sum_of(const unsigned char *bytes, unsigned long count)
{
    VIP_UINT32 sum = 0;
    while (count-- > 0)
        sum += *bytes++;
    return sum;
}

/* Which of our VIs is this? */
static unsigned long place_of(VIP_VI_HANDLE *vis, VIP_VI_HANDLE vi)
{
    unsigned long i;
    for (i = 0; i < VIS; i++)
        if (vis[i] == vi)
            return i;
    give_up("a completion of a VI that is none of ours");
}

static void serve(node_t *node, const options_t *options)
{
    VIP_VI_HANDLE vis[VIS];
    VIP_CQ_HANDLE questions = NULL;
    unsigned long i, n;
    /* Each VI has one receive posted, so there is one completion of each at most. */
    must(VipCreateCQ(node->nic, VIS, &questions), "create a completion queue");
    for (i = 0; i < VIS; i++) {
        vis[i] = create_vi(node, options->bytes, NULL, questions);
        post_receive(node, options, vis[i], i);
        accept_client(node, options->nic, NAME, vis[i]);
    }
    for (n = 0; n < options->count * VIS; n++) {
        VIP_VI_HANDLE vi = NULL;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        VIP_DESCRIPTOR *descriptor = NULL;
        VIP_UINT32 sum;
        must(VipCQWait(questions, PATIENCE, &vi, &is_receive), "wait for a question");
        i = place_of(vis, vi);
        must(VipRecvDone(vi, &descriptor), "take the question");
        sum = sum_of(data_of(node, options, i, RECEIVE), descriptor->CS.Length);
        post_receive(node, options, vi, i);
        memcpy(data_of(node, options, i, SEND), &sum, sizeof sum);
        send(node, options, vi, i, sizeof sum);
    }
    for (i = 0; i < VIS; i++)
        end_vi(vis[i]);
    must(VipDestroyCQ(questions), "destroy the completion queue");
    printf("%lu questions of %lu VIs answered\n", n, VIS);
}

static void ask(node_t *node, const options_t *options)
{
    VIP_VI_HANDLE vis[VIS];
    VIP_UINT32 expected[VIS];
    unsigned long i, j, n;
    for (i = 0; i < VIS; i++) {
        vis[i] = create_vi(node, options->bytes, NULL, NULL);
        connect_to(node, options, NAME, vis[i]);
    }
    for (n = 0; n < options->count; n++) {
        for (i = 0; i < VIS; i++) {
            unsigned long bytes = 1 + (n * 13 + i) % options->bytes;
            unsigned char *question = data_of(node, options, i, SEND);
            for (j = 0; j < bytes; j++)
                question[j] = (unsigned char)(n + i * j);
            expected[i] = sum_of(question, bytes);
            post_receive(node, options, vis[i], i);
            send(node, options, vis[i], i, bytes);
        }
        for (i = 0; i < VIS; i++) {
            VIP_UINT32 answer;
            completed(VipRecvWait, vis[i], "wait for the answer");
            memcpy(&answer, data_of(node, options, i, RECEIVE), sizeof answer);
            if (answer != expected[i])
                give_up("VI %lu, question %lu: the answer is %lu, not %lu", i, n, (unsigned long)answer, (unsigned long)expected[i]);
        }
    }
    for (i = 0; i < VIS; i++) {
        await_end(node, vis[i], i * EACH + RECEIVE);
        end_vi(vis[i]);
    }
    printf("%lu questions of %lu VIs, all answered right\n", n * VIS, VIS);
}

int main(int count, char **arguments)
{
    options_t options = read_options(count, arguments, "Serves many VIs with one completion queue.", "questions of each VI",
                                     (options_t){ 0, NULL, NULL, 500, 256 });
    node_t node;
    if (options.bytes < sizeof(VIP_UINT32))
        give_up("--bytes must be 4 or more");
    node = open_node(options.nic, VIS * EACH, VIS * EACH * options.bytes);
    if (options.is_server)
        serve(&node, &options);
    else
        ask(&node, &options);
    close_node(&node);
    return 0;
}
