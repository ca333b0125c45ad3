/* A node is killed while channels with it are open and operations pending: all that waits hears of it in bounded time, what
 * had arrived can be read first, and the ends can be closed and used again. Two processes. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

enum { IN, LATER_IN, OUT, LATER_OUT, SCL_IN, SCL_OUT, HALF, CLOSING, PORTS };
#define PORT 100

static mcapi_endpoint_t mine[PORTS], theirs[PORTS];
static unsigned handles[PORTS];
static mcapi_request_t requests[PORTS];

static int sends(int port)
{
    return port == OUT || port == LATER_OUT || port == SCL_OUT || port == HALF || port == CLOSING;
}

static int is_scalar(int port)
{
    return port == SCL_IN || port == SCL_OUT;
}

/* Begins to open this node's ends; `ours`: of the node that lives. */
static void open_ends(int ours)
{
    mcapi_status_t st;
    for (int port = 0; port < PORTS; port++) {
        int out = sends(port) == ours;
        if (port == HALF && !ours)
            continue;
        if (is_scalar(port) && out)
            mcapi_sclchan_send_open_i(&handles[port], mine[port], &requests[port], &st);
        else if (is_scalar(port))
            mcapi_sclchan_recv_open_i(&handles[port], mine[port], &requests[port], &st);
        else if (out)
            mcapi_pktchan_send_open_i(&handles[port], mine[port], &requests[port], &st);
        else
            mcapi_pktchan_recv_open_i(&handles[port], mine[port], &requests[port], &st);
        WANT(st == MCAPI_PENDING || st == MCAPI_SUCCESS);
    }
    for (int port = 0; port < PORTS; port++)
        if (port != HALF)
            completes_at(__FILE__, __LINE__, &requests[port], MCAPI_PENDING);
}

static void create(mcapi_node_t node)
{
    mcapi_status_t st;
    initialize(node);
    for (int port = 0; port < PORTS; port++) {
        OK(mine[port] = mcapi_endpoint_create(PORT + (mcapi_port_t)port, &st));
        if (node == NODE_A)
            set_timeout(mine[port], SOON);
    }
}

/* The node that is killed. */
static void victim(int up)
{
    mcapi_status_t st;
    create(NODE_B);
    open_ends(0);
    OK(mcapi_pktchan_send(handles[IN], "last words", 10, &st));
    OK(mcapi_sclchan_send_uint16(handles[SCL_IN], 7, &st));
    WANT(write(up, "u", 1) == 1);
    for (;;)
        pause();
}

static void connect_all(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    for (int port = 0; port < PORTS; port++) {
        OK(theirs[port] = mcapi_endpoint_get(DOMAIN, NODE_B, PORT + (mcapi_port_t)port, SOON, &st));
        mcapi_endpoint_t from = sends(port) ? mine[port] : theirs[port];
        mcapi_endpoint_t to = sends(port) ? theirs[port] : mine[port];
        if (is_scalar(port))
            DOES(mcapi_sclchan_connect_i(from, to, &request, &st));
        else
            DOES(mcapi_pktchan_connect_i(from, to, &request, &st));
    }
}

/* Sends until one waits; gives its request. */
static mcapi_request_t sent_in_vain(unsigned out)
{
    mcapi_status_t st;
    mcapi_request_t request;
    for (int i = 0; i < 1000; i++) {
        size_t size;
        mcapi_pktchan_send_i(out, "x", 1, &request, &st);
        if (st == MCAPI_PENDING && !mcapi_wait(&request, &size, 100, &st) && st == MCAPI_TIMEOUT)
            return request;
        WANT(st == MCAPI_SUCCESS);
    }
    WANT(0);
    return 0;
}

static void closed_and_deleted(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    size_t size;
    for (int port = 0; port < PORTS; port++) {
        if (port == HALF || port == CLOSING)
            st = MCAPI_ERR_CHAN_INVALID;
        else if (is_scalar(port) && sends(port))
            mcapi_sclchan_send_close_i(handles[port], &request, &st);
        else if (is_scalar(port))
            mcapi_sclchan_recv_close_i(handles[port], &request, &st);
        else if (sends(port))
            mcapi_pktchan_send_close_i(handles[port], &request, &st);
        else
            mcapi_pktchan_recv_close_i(handles[port], &request, &st);
        if (st == MCAPI_PENDING)
            mcapi_wait(&request, &size, SOON, &st);
        PROVES("N2", st == MCAPI_SUCCESS || st == MCAPI_ERR_CHAN_INVALID);
        PROVES("N2", (status_of(mine[port]) & MUSUBI_ENDP_STATUS_CONNECTED) == 0);
        OK(mcapi_endpoint_delete(mine[port], &st));
    }
}

int main(void)
{
    mcapi_status_t st;
    mcapi_request_t waiting, full;
    void *packet = NULL;
    size_t size = 0;
    char c;
    int up[2];
    uint64_t begin;
    WANT(pipe(up) == 0);
    pid_t child = fork();
    if (child == 0)
        victim(up[1]);
    create(NODE_A);
    connect_all();
    open_ends(1);
    WANT(read(up[0], &c, 1) == 1);
    mcapi_pktchan_recv_i(handles[LATER_IN], &packet, &waiting, &st);
    WANT(st == MCAPI_PENDING);
    full = sent_in_vain(handles[LATER_OUT]);
    mcapi_pktchan_send_close_i(handles[CLOSING], &requests[CLOSING], &st);
    WANT(st == MCAPI_PENDING);
    /* What is still being opened is not closed, also if it is connected. */
    GIVES(31, ERR_CHAN_NOTOPEN, mcapi_pktchan_send_close_i(handles[HALF], &(mcapi_request_t){ 0 }, &st));
    begin = now_ms();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    GIVES(25, ERR_TRANSMISSION, mcapi_wait(&waiting, &size, SOON, &st));
    GIVES(25, ERR_TRANSMISSION, mcapi_pktchan_recv_i(handles[LATER_IN], &packet, &waiting, &st));
    GIVES(23, ERR_TRANSMISSION, mcapi_wait(&full, &size, SOON, &st));
    GIVES(23, ERR_TRANSMISSION, mcapi_pktchan_send_i(handles[LATER_OUT], "x", 1, &full, &st));
    GIVES(22, ERR_TRANSMISSION, mcapi_wait(&requests[HALF], &size, SOON, &st));
    GIVES(31, SUCCESS, mcapi_wait(&requests[CLOSING], &size, SOON, &st));
    GIVES(26, SUCCESS, mcapi_pktchan_recv(handles[IN], &packet, &size, &st));
    PROVES("N2", size == 10 && memcmp(packet, "last words", 10) == 0);
    GIVES(26, ERR_TRANSMISSION, mcapi_pktchan_recv(handles[IN], &packet, &size, &st));
    GIVES(28, SUCCESS, mcapi_pktchan_release(packet, &st));
    do
        mcapi_pktchan_send(handles[OUT], "x", 1, &st);
    while (st == MCAPI_SUCCESS);
    GIVES(24, ERR_TRANSMISSION, mcapi_pktchan_send(handles[OUT], "x", 1, &st));
    OK(WANT(mcapi_sclchan_recv_uint16(handles[SCL_IN], &st) == 7));
    mcapi_sclchan_recv_uint16(handles[SCL_IN], &st);
    PROVES("N2", st == MCAPI_ERR_TRANSMISSION);
    do
        mcapi_sclchan_send_uint8(handles[SCL_OUT], 1, &st);
    while (st == MCAPI_SUCCESS);
    PROVES("N2", st == MCAPI_ERR_TRANSMISSION && now_ms() - begin < SOON);
    closed_and_deleted();
    finalize();
    return 0;
}
