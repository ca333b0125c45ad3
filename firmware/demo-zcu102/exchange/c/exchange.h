/*
 * What two nodes of MCAPI exchange in one life of theirs: messages, packets and scalars, both ways.
 *
 * One asks and the other answers; the same functions run on both. All that is received is compared, byte by byte.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdint.h>

/* How many of each there are, each way. */
enum { EXCHANGE_MESSAGES = 40, EXCHANGE_PACKETS = 40, EXCHANGE_SCALARS = 64 };

/* A node and its peer. */
struct exchange_side {
    uint32_t domain;
    uint32_t node;
    uint32_t peer;
    uint32_t asks; /* 1: asks, and connects the channels. 0: answers. */
};

/* What one of them received as it was sent. */
struct exchange_tally {
    uint32_t messages;
    uint32_t packets;
    uint32_t scalars;
    uint32_t relayed; /* The last message, which another task of the one that answers received and handed on. */
    uint32_t failed_at; /* 0, or the line of the first call that failed or gave something else. */
    uint32_t status; /* What that call said. */
};

/* Lives one life: initialises the node, exchanges, finalises. The peer's own tally goes to *theirs. */
struct exchange_tally exchange_live(const struct exchange_side *side, uint32_t life, struct exchange_tally *theirs);

/*
 * For another task of the one that answers: hands the last message of each life on to the task that lives it. Does not
 * return; `pause` lets others run for a while.
 */
void exchange_relay(const struct exchange_side *side, void (*pause)(void));

#endif
