/* A pipeline over packet channels: node 1 measures, node 2 halves the rate, node 3 sums up.
 *
 *     ./pipeline                   all three as threads
 *     ./pipeline --node 2          one of them; any may be the one of examples/rust
 *
 * With MUSUBI_SYSTEM it runs on the machines of that system. Over shared memory a packet lies where its sender put it until
 * its receiver releases it. */
#include "nodes.h"

/* Packets that are measured, samples of each, where each stage gets its packets. */
#define PACKETS 500u
#define SAMPLES 512u
#define INPUT 1

/* The sending end of a channel to the next stage. */
static mcapi_pktchan_send_hndl_t connect_to(mcapi_node_t next)
{
    mcapi_status_t status;
    mcapi_request_t request;
    mcapi_pktchan_send_hndl_t output;
    mcapi_endpoint_t from = endpoint(ANY_PORT), to = endpoint_of(next, INPUT);
    mcapi_pktchan_connect_i(from, to, &request, &status);
    complete(&request, status, "connect");
    mcapi_pktchan_send_open_i(&output, from, &request, &status);
    complete(&request, status, "open the output");
    return output;
}

/* The receiving end, once the stage before has connected it. */
static mcapi_pktchan_recv_hndl_t accept_input(void)
{
    mcapi_status_t status;
    mcapi_request_t request;
    mcapi_pktchan_recv_hndl_t input;
    mcapi_pktchan_recv_open_i(&input, endpoint(INPUT), &request, &status);
    complete(&request, status, "open the input");
    return input;
}

static void put(mcapi_pktchan_send_hndl_t output, const uint32_t *samples, size_t count)
{
    mcapi_status_t status;
    mcapi_pktchan_send(output, samples, count * sizeof *samples, &status);
    must(status, "send");
}

/* The next packet; NULL once the stage before has closed the channel and all is read. */
static const uint32_t *next(mcapi_pktchan_recv_hndl_t input, size_t *count)
{
    mcapi_status_t status;
    void *packet = NULL;
    size_t bytes;
    mcapi_pktchan_recv(input, &packet, &bytes, &status);
    if (status == MCAPI_ERR_CHAN_INVALID)
        return NULL;
    must(status, "receive");
    *count = bytes / sizeof(uint32_t);
    return packet;
}

static void release(const uint32_t *packet)
{
    mcapi_status_t status;
    mcapi_pktchan_release((void *)packet, &status);
    must(status, "release");
}

static void close_output(mcapi_pktchan_send_hndl_t output)
{
    mcapi_status_t status;
    mcapi_request_t request;
    mcapi_pktchan_send_close_i(output, &request, &status);
    complete(&request, status, "close the output");
}

static void close_input(mcapi_pktchan_recv_hndl_t input)
{
    mcapi_status_t status;
    mcapi_request_t request;
    mcapi_pktchan_recv_close_i(input, &request, &status);
    complete(&request, status, "close the input");
}

static void measure(void)
{
    mcapi_pktchan_send_hndl_t output = connect_to(2);
    uint32_t samples[SAMPLES];
    for (uint32_t packet = 0; packet < PACKETS; packet++) {
        for (uint32_t i = 0; i < SAMPLES; i++)
            samples[i] = packet + i;
        put(output, samples, SAMPLES);
    }
    close_output(output);
}

static void halve(void)
{
    mcapi_pktchan_recv_hndl_t input = accept_input();
    mcapi_pktchan_send_hndl_t output = connect_to(3);
    uint32_t means[SAMPLES / 2];
    const uint32_t *samples;
    size_t count;
    while ((samples = next(input, &count)) != NULL) {
        for (size_t i = 0; i < count / 2; i++)
            means[i] = (samples[2 * i] + samples[2 * i + 1]) / 2;
        release(samples);
        put(output, means, count / 2);
    }
    close_input(input);
    close_output(output);
}

static void sum_up(void)
{
    mcapi_pktchan_recv_hndl_t input = accept_input();
    unsigned packets = 0;
    unsigned long long sum = 0;
    const uint32_t *samples;
    size_t count;
    while ((samples = next(input, &count)) != NULL) {
        packets++;
        for (size_t i = 0; i < count; i++)
            sum += samples[i];
        release(samples);
    }
    printf("%u packets, their samples add up to %llu\n", packets, sum);
    close_input(input);
}

int main(int arguments, char **argument)
{
    static role_t *const roles[] = { measure, halve, sum_up };
    return run(roles, 3, arguments, argument);
}
