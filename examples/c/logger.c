/* Many to one over messages: nodes 2, 3 and 4 report, node 1 keeps the log. Alarms overtake what else is queued.
 *
 *     ./logger                     all four as threads
 *     ./logger --node 1            one of them; any may be the one of examples/rust
 *
 * With MUSUBI_SYSTEM it runs on the machines of that system. Messages need no connection; who sends to a log that is full
 * waits, and disturbs nobody else. */
#include "nodes.h"

/* Where the log is, how many report, lines of each; every line of ALARM_EVERY is an alarm. */
#define LOG 1
#define REPORTERS 3
#define LINES 200
#define ALARM_EVERY 50
/* Priorities: 0 is the most urgent. */
#define ALARM 0
#define NORMAL 2

static void keep_log(void)
{
    mcapi_endpoint_t log = endpoint(LOG);
    unsigned lines[REPORTERS + 2] = { 0 }, alarms[REPORTERS + 2] = { 0 };
    for (int ended = 0; ended < REPORTERS;) {
        char line[128], *number;
        size_t size;
        mcapi_status_t status;
        mcapi_msg_recv(log, line, sizeof line - 1, &size, &status);
        must(status, "receive");
        line[size] = 0;
        /* The last line of a reporter. As it is of normal priority, no line comes after it. */
        if (strcmp(line, "end") == 0) {
            ended++;
            continue;
        }
        number = strrchr(line, ':');
        unsigned long node = number ? strtoul(number + 1, NULL, 10) : 0;
        if (node >= 2 && node < REPORTERS + 2) {
            lines[node]++;
            alarms[node] += strncmp(line, "alarm", 5) == 0;
        }
    }
    for (int node = 2; node < REPORTERS + 2; node++)
        printf("node %d: %u lines, %u of them alarms\n", node, lines[node], alarms[node]);
}

static void report(void)
{
    mcapi_status_t status;
    mcapi_endpoint_t from = endpoint(ANY_PORT), log = endpoint_of(1, LOG);
    unsigned me = mcapi_node_id_get(&status);
    for (unsigned number = 1; number <= LINES; number++) {
        int alarm = number % ALARM_EVERY == 0;
        char line[128];
        int length = snprintf(line, sizeof line, "%s %u of node 0:%u", alarm ? "alarm" : "line", number, me);
        mcapi_msg_send(from, log, line, (size_t)length, alarm ? ALARM : NORMAL, &status);
        must(status, "send");
    }
    /* Sent means that the log's node has it: now this node may end. */
    mcapi_msg_send(from, log, "end", 3, NORMAL, &status);
    must(status, "send");
}

int main(int arguments, char **argument)
{
    static role_t *const roles[] = { keep_log, report, report, report };
    return run(roles, 1 + REPORTERS, arguments, argument);
}
