/* A control loop over scalar channels: node 1 controls the speed of the motor that is node 2.
 *
 *     ./control                    both as threads
 *     ./control --node 1           one of them; either may be the one of examples/rust
 *
 * With MUSUBI_SYSTEM it runs on the machines of that system. One channel carries the measured speed, 32 bits a period, the
 * other the new voltage. */
#include "nodes.h"

/* Periods that the loop runs; the speed that is wanted, in thousandths of a turn a second. */
#define PERIODS 2000u
#define WANTED 50000
/* Ports: the speed comes in at the controller's, the voltage at the motor's. */
#define SPEED 1
#define VOLTAGE 2

/* Both ends of a node. */
struct ends {
    mcapi_sclchan_recv_hndl_t input;
    mcapi_sclchan_send_hndl_t output;
};

/* It receives at `port`, and sends to the other's. Each side connects the channel that it sends on. */
static struct ends join(mcapi_port_t port, mcapi_node_t other, mcapi_port_t other_port)
{
    struct ends ends;
    mcapi_status_t receives, sends, connects;
    mcapi_request_t receiving, sending, connecting;
    mcapi_endpoint_t input = endpoint(port), output = endpoint(ANY_PORT);
    mcapi_endpoint_t to = endpoint_of(other, other_port);
    mcapi_sclchan_recv_open_i(&ends.input, input, &receiving, &receives);
    mcapi_sclchan_connect_i(output, to, &connecting, &connects);
    complete(&connecting, connects, "connect");
    mcapi_sclchan_send_open_i(&ends.output, output, &sending, &sends);
    complete(&receiving, receives, "open the input");
    complete(&sending, sends, "open the output");
    return ends;
}

static void part(struct ends ends)
{
    mcapi_status_t receives, sends;
    mcapi_request_t receiving, sending;
    mcapi_sclchan_recv_close_i(ends.input, &receiving, &receives);
    mcapi_sclchan_send_close_i(ends.output, &sending, &sends);
    complete(&receiving, receives, "close the input");
    complete(&sending, sends, "close the output");
}

static int32_t receive(struct ends ends)
{
    mcapi_status_t status;
    int32_t value = (int32_t)mcapi_sclchan_recv_uint32(ends.input, &status);
    must(status, "receive");
    return value;
}

static void transmit(struct ends ends, int32_t value)
{
    mcapi_status_t status;
    mcapi_sclchan_send_uint32(ends.output, (uint32_t)value, &status);
    must(status, "send");
}

/* A controller with a proportional and an integral part. */
static void controller(void)
{
    struct ends ends = join(SPEED, 2, VOLTAGE);
    int32_t sum = 0, speed = 0;
    for (unsigned period = 0; period < PERIODS; period++) {
        speed = receive(ends);
        int32_t error = WANTED - speed;
        sum += error;
        transmit(ends, error / 4 + sum / 64);
    }
    printf("after %u periods the speed is %d, wanted are %d\n", PERIODS, (int)speed, WANTED);
    part(ends);
}

/* A motor that follows its voltage with delay, and has friction. */
static void motor(void)
{
    struct ends ends = join(VOLTAGE, 1, SPEED);
    int32_t speed = 0;
    for (unsigned period = 0; period < PERIODS; period++) {
        transmit(ends, speed);
        speed += (2 * receive(ends) - speed) / 16;
    }
    part(ends);
}

int main(int arguments, char **argument)
{
    static role_t *const roles[] = { controller, motor };
    return run(roles, 2, arguments, argument);
}
