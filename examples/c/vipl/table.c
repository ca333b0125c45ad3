/* A table that others update: the server tells where its table lies and then does nothing; the client writes lines of it by RDMA, many
 * at once, and says at the end that it has. The server's processor has no part in it until then; it checks every line.
 *
 *     ./table --role server & ./table --role client
 *
 * Shows: one-sided writes; that a message behind them finds them in place; that the peer reaches only what was registered with the
 * permission, and must be told address and handle. */
#include "vi.h"

/* Lines of the table; --bytes is of one line. */
#define LINES 256ul
#define POSTED 64ul
/* Descriptors: writes, then one for the word. */
#define WORD POSTED
#define DESCRIPTORS (WORD + 1)
#define NAME "example table"

/* What the server tells: where its table is. */
typedef struct invitation {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
    VIP_UINT32 line_bytes;
} invitation_t;

/* Which update a line shows last: line `update % LINES` gets it. */
static void draw_line(unsigned char *line, unsigned long bytes, unsigned long update)
{
    unsigned long i;
    for (i = 0; i < bytes; i++)
        line[i] = (unsigned char)(update + (i ^ update >> 8));
}

/* Behind the lines lies the word. */
static unsigned char *word_of(node_t *node, unsigned long bytes)
{
    return node->data + LINES * bytes;
}

static void check_table(node_t *node, const options_t *options)
{
    unsigned char *expected = (unsigned char *)malloc(options->bytes);
    unsigned long line;
    if (expected == NULL)
        give_up("no memory");
    for (line = 0; line < LINES; line++) {
        unsigned long last = options->count - 1 - (options->count - 1 + LINES - line) % LINES;
        memset(expected, 0, options->bytes);
        if (line < options->count)
            draw_line(expected, options->bytes, last);
        if (memcmp(expected, node->data + line * options->bytes, options->bytes) != 0)
            give_up("line %lu is not that of update %lu", line, last);
    }
    free(expected);
    printf("%lu updates of %lu bytes, all %lu lines as they should be\n", options->count, options->bytes, LINES);
}

static void serve(node_t *node, VIP_VI_HANDLE vi, const options_t *options)
{
    unsigned char *word = word_of(node, options->bytes);
    invitation_t invitation;
    VIP_DESCRIPTOR *descriptor;
    /* For the word that says that all is written. */
    must(VipPostRecv(vi, descriptor_of(node, 0), node->handle), "post a receive");
    accept_client(node, options->nic, NAME, vi);
    memset(&invitation, 0, sizeof invitation);
    invitation.address = (VIP_UINT64)(uintptr_t)node->data;
    invitation.handle = node->handle;
    invitation.line_bytes = (VIP_UINT32)options->bytes;
    memcpy(word, &invitation, sizeof invitation);
    must(VipPostSend(vi, message_of(node, WORD, word, sizeof invitation), node->handle), "post the invitation");
    completed(VipSendWait, vi, "send the invitation");
    descriptor = completed(VipRecvWait, vi, "wait until all is written");
    if (descriptor->CS.ImmediateData != (VIP_UINT32)options->count)
        give_up("the client wrote %lu updates: is --count alike at both?", (unsigned long)descriptor->CS.ImmediateData);
    check_table(node, options);
    await_end(node, vi, 0);
}

static void post_update(node_t *node, VIP_VI_HANDLE vi, const invitation_t *table, unsigned long update, unsigned long bytes)
{
    unsigned long slot = update % POSTED;
    unsigned char *line = node->data + slot * bytes;
    VIP_DESCRIPTOR *descriptor = descriptor_of(node, slot);
    draw_line(line, bytes, update);
    descriptor->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    descriptor->CS.SegCount = 2;
    descriptor->CS.Length = (VIP_UINT32)bytes;
    descriptor->DS[0].Remote.Data.AddressBits = table->address + update % LINES * bytes;
    descriptor->DS[0].Remote.Handle = table->handle;
    descriptor->DS[1].Local.Data.Address = line;
    descriptor->DS[1].Local.Handle = node->handle;
    descriptor->DS[1].Local.Length = (VIP_UINT32)bytes;
    must(VipPostSend(vi, descriptor, node->handle), "post a write");
}

static void ask(node_t *node, VIP_VI_HANDLE vi, const options_t *options)
{
    unsigned char *word = word_of(node, options->bytes);
    invitation_t table;
    VIP_DESCRIPTOR *descriptor;
    unsigned long update;
    must(VipPostRecv(vi, message_of(node, WORD, word, sizeof table), node->handle), "post a receive");
    connect_to(node, options, NAME, vi);
    completed(VipRecvWait, vi, "wait for the invitation");
    memcpy(&table, word, sizeof table);
    if (table.line_bytes != options->bytes)
        give_up("lines of the server have %lu bytes: is --bytes alike at both?", (unsigned long)table.line_bytes);
    for (update = 0; update < options->count; update++) {
        /* Its line of ours is free when the write before has completed. */
        if (update >= POSTED)
            completed(VipSendWait, vi, "write");
        post_update(node, vi, &table, update, options->bytes);
    }
    for (update = options->count < POSTED ? options->count : POSTED; update > 0; update--)
        completed(VipSendWait, vi, "write");
    descriptor = descriptor_of(node, 0);
    descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    descriptor->CS.ImmediateData = (VIP_UINT32)options->count;
    must(VipPostSend(vi, descriptor, node->handle), "post the last word");
    completed(VipSendWait, vi, "say that all is written");
    printf("%lu updates of %lu bytes written\n", options->count, options->bytes);
}

int main(int count, char **arguments)
{
    options_t options = read_options(count, arguments, "Updates a table in the server's memory by RDMA writes.", "updates",
                                     (options_t){ 0, NULL, NULL, 20000, 128 });
    node_t node = open_node(options.nic, DESCRIPTORS, LINES * options.bytes + sizeof(invitation_t));
    unsigned long largest = options.bytes > sizeof(invitation_t) ? options.bytes : sizeof(invitation_t);
    VIP_VI_HANDLE vi = create_vi(&node, largest, NULL, NULL);
    if (options.is_server)
        serve(&node, vi, &options);
    else
        ask(&node, vi, &options);
    end_vi(vi);
    close_node(&node);
    return 0;
}
