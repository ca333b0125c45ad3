/* Programs that exit without finalize: what they have sent arrives, and who sent them what they have received hears so.
 * One node stays; the other's program is begun anew each time, as a child of this one. */
#define _DEFAULT_SOURCE
#include "check.h"

#include <sys/wait.h>

#define ROUNDS 5
#define PORT 7
#define MESSAGES 60
/* Enough to wait for the receiver's system, which takes only so much at once. */
#define PACKETS 60
#define PACKET_BYTES 1000

static mcapi_endpoint_t mine, theirs;

static void begin(mcapi_node_t node)
{
    mcapi_status_t st;
    initialize(node);
    OK(mine = mcapi_endpoint_create(PORT, &st));
    set_timeout(mine, SOON);
}

/* Exits with what has arrived, before anything can be said about it. */
static void receives_and_exits(void)
{
    mcapi_status_t st;
    mcapi_uint_t word = 0;
    size_t size;
    begin(NODE_B);
    OK(mcapi_msg_recv(mine, &word, sizeof word, &size, &st));
    exit(word == 7 ? 0 : 1);
}

static void sends_and_exits(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_pktchan_send_hndl_t out;
    mcapi_endpoint_t channel;
    size_t size;
    char packet[PACKET_BYTES] = { 0 };
    begin(NODE_B);
    OK(channel = mcapi_endpoint_create(PORT + 1, &st));
    OK(theirs = mcapi_endpoint_get(DOMAIN, NODE_A, PORT, SOON, &st));
    mcapi_pktchan_send_open_i(&out, channel, &request, &st);
    WANT(mcapi_wait(&request, &size, SOON, &st));
    for (mcapi_uint_t i = 0; i < MESSAGES; i++)
        OK(mcapi_msg_send(mine, theirs, &i, sizeof i, 0, &st));
    for (int i = 0; i < PACKETS; i++) {
        packet[0] = (char)i;
        OK(mcapi_pktchan_send(out, packet, sizeof packet, &st));
    }
    exit(0);
}

static pid_t child_of(void (*what)(void))
{
    pid_t child = fork();
    if (child == 0)
        what();
    return child;
}

static void ended_well(pid_t child)
{
    mcapi_status_t st = 0;
    int status = 0;
    WANT(waitpid(child, &status, 0) == child && status == 0);
}

static void what_was_received_is_known(void)
{
    mcapi_status_t st;
    for (int round = 0; round < ROUNDS; round++) {
        mcapi_uint_t word = 7;
        pid_t child = child_of(receives_and_exits);
        OK(theirs = mcapi_endpoint_get(DOMAIN, NODE_B, PORT, SOON, &st));
        mcapi_msg_send(mine, theirs, &word, sizeof word, 0, &st);
        PROVES("M12", st == MCAPI_SUCCESS);
        ended_well(child);
    }
}

static void what_was_sent_arrives(void)
{
    mcapi_status_t st;
    mcapi_request_t request;
    mcapi_pktchan_recv_hndl_t in;
    mcapi_endpoint_t channel;
    size_t size;
    pid_t child = child_of(sends_and_exits);
    OK(channel = mcapi_endpoint_create(PORT + 1, &st));
    set_timeout(channel, SOON);
    OK(theirs = mcapi_endpoint_get(DOMAIN, NODE_B, PORT + 1, SOON, &st));
    DOES(mcapi_pktchan_connect_i(theirs, channel, &request, &st));
    mcapi_pktchan_recv_open_i(&in, channel, &request, &st);
    WANT(mcapi_wait(&request, &size, SOON, &st));
    ended_well(child);
    for (mcapi_uint_t i = 0; i < MESSAGES; i++) {
        mcapi_uint_t word = 0;
        mcapi_msg_recv(mine, &word, sizeof word, &size, &st);
        PROVES("C24", st == MCAPI_SUCCESS && word == i);
    }
    for (int i = 0; i < PACKETS; i++) {
        void *packet = NULL;
        mcapi_pktchan_recv(in, &packet, &size, &st);
        PROVES("C24", st == MCAPI_SUCCESS && size == PACKET_BYTES && *(char *)packet == (char)i);
        OK(mcapi_pktchan_release(packet, &st));
    }
}

int main(void)
{
    begin(NODE_A);
    what_was_received_is_known();
    what_was_sent_arrives();
    finalize();
    return 0;
}
