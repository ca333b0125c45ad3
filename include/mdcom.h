/*
 * mdcom.h - the MDCOM interface of Musubi: messages and shared memory between domains.
 *
 * One description file says which domains and channels there are. A program names its domain in mdcom_init(); from then
 * on it uses channels by their numbers, which `musubi generate` writes into a header (MUSUBI_FIFO_name, MUSUBI_SMEM_name).
 *
 *     sender                                          receiver
 *     mdcom_init(&config);                            mdcom_init(&config);
 *     mdcom_fifoch_alloc(ch, MDCOM_FOREVER, &block);  mdcom_fifoch_wait(ch, MDCOM_FOREVER);
 *     mdcom_fifoch_get(ch, block, &data);             mdcom_fifoch_dequeue(ch, &block);
 *     memcpy(data, ...);                              mdcom_fifoch_get(ch, block, &data);
 *     mdcom_fifoch_enqueue(ch, block);                memcpy(..., data, ...);
 *     mdcom_fifoch_notify(ch);                        mdcom_fifoch_free(ch, block);
 *     mdcom_fifoch_wait(ch, MDCOM_FOREVER);           mdcom_fifoch_notify(ch);
 *
 * Rules for all functions, unless one says otherwise:
 *  - They may be called from any thread at any time, several at once, also on one channel; not from a signal handler.
 *  - They return MDCOM_OK (0) or a negative code of enum mdcom_status, and change nothing where they fail.
 *    A NULL where a pointer is needed is MDCOM_E_ARGUMENT. Before mdcom_init(): MDCOM_E_NOT_INIT; once mdcom_term() has
 *    begun: MDCOM_E_TERMINATED; in a child made by fork(): MDCOM_E_FORKED. What they write to is unspecified on failure.
 *  - Times are nanoseconds from the call on. Nothing waits longer than its timeout. A signal does not end a wait.
 *  - Which side of a channel the caller is on follows from its domain. An end of a channel is used by one process of
 *    the domain at a time: the first that calls a function of the channel has it until it ends or calls mdcom_term();
 *    for others the functions return MDCOM_E_BUSY meanwhile.
 *
 * On bare metal (an image with an RTOS) the same functions are for its tasks, and "process" reads "image", "thread" reads
 * "task". Differences:
 *  - The plan is compiled in. mdcom_config_t: `description` must be NULL (else MDCOM_E_DESCRIPTION), `instance` NULL (else
 *    MDCOM_E_ARGUMENT), `domain` the image's own (else MDCOM_E_DOMAIN), `slot` -1 or a slot of the domain; `flags` have no
 *    effect, as memory is always there; `plan_hash` and `timeout` are as described below.
 *  - There are no descriptors: mdcom_fifoch_fd() and _arm() are MDCOM_E_SYSTEM. There is no fork.
 *  - Nothing is allocated: channels from number 32 and SMEM channels from number 8 on, and a 65th block in the hands of
 *    tasks, are MDCOM_E_SYSTEM.
 *  - A task that waits is blocked in the RTOS. mdcom_term() ends waits within 50 ms.
 *  - mdcom_last_error() gives the code's text or a fixed one, and knows the last 16 tasks that failed.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef MDCOM_H
#define MDCOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Results. Negative codes are failures; nothing was changed unless the function says so. */
typedef enum mdcom_status {
    /** Done. */
    MDCOM_OK = 0,

    /* What happens in normal operation. */

    /** The timeout has passed. */
    MDCOM_E_TIMEOUT = -1,
    /** No message is queued. */
    MDCOM_E_EMPTY = -2,
    /** No block is free (only with MDCOM_POLL; else MDCOM_E_TIMEOUT). */
    MDCOM_E_NO_BLOCK = -3,
    /** Another participant or thread holds the lock. */
    MDCOM_E_LOCKED = -4,
    /** The peer at the other end has gone. Told once a loss, by a call that would otherwise wait; go on calling, its
     *  successor is taken up by itself. */
    MDCOM_E_PEER = -5,
    /** The regulation of the channel holds the message back; the block is still yours. Try again later. */
    MDCOM_E_THROTTLED = -6,
    /** The memory or the members of the SMEM channel are not there yet. Try again. */
    MDCOM_E_NOT_READY = -7,
    /** mdcom_term() was called. */
    MDCOM_E_TERMINATED = -8,
    /** The peer wrote what the description does not allow. The message was skipped and counted. */
    MDCOM_E_PEER_FAULT = -9,

    /* Mistakes of the caller. */

    /** An argument is NULL or out of range. */
    MDCOM_E_ARGUMENT = -20,
    /** There is no such channel, or the caller's domain has no part in it. */
    MDCOM_E_CHANNEL = -21,
    /** The function is for the other side of the channel. */
    MDCOM_E_SIDE = -22,
    /** The block is not in the caller's hands: never was, of another channel, freed or enqueued already, or void
     *  because the channel was initialised again. */
    MDCOM_E_BLOCK = -23,
    /** The length is larger than a block. */
    MDCOM_E_TOO_LONG = -24,
    /** The calling thread does not hold the lock. */
    MDCOM_E_NOT_HELD = -25,
    /** mdcom_init() was not called, or has not returned. */
    MDCOM_E_NOT_INIT = -26,
    /** mdcom_init() was called before. */
    MDCOM_E_ALREADY = -27,
    /** This process is a fork of the one that called mdcom_init(). Use exec, or fork before mdcom_init(). */
    MDCOM_E_FORKED = -28,
    /** Another process of the domain has this end of the channel, or all slots of the domain are taken. */
    MDCOM_E_BUSY = -29,

    /* What stands in the way of an attachment. */

    /** The description cannot be read or has mistakes; mdcom_last_error() shows them. */
    MDCOM_E_DESCRIPTION = -40,
    /** The description has no such domain or slot, or the domain is not one of Linux processes. */
    MDCOM_E_DOMAIN = -41,
    /** The program or a peer was built from another description. */
    MDCOM_E_PLAN = -42,
    /** A peer speaks another version of Musubi. */
    MDCOM_E_VERSION = -43,
    /** The description does not allow this user, or a permission or limit is missing. */
    MDCOM_E_PERMISSION = -44,
    /** The operating system refused; mdcom_last_error() says what. */
    MDCOM_E_SYSTEM = -45,
    /** A mistake in Musubi. */
    MDCOM_E_INTERNAL = -46
} mdcom_status_t;

/** A duration in nanoseconds. */
typedef uint64_t mdcom_ns_t;

/** Do not wait. */
#define MDCOM_POLL ((mdcom_ns_t)0)
/** Wait as long as it takes. */
#define MDCOM_FOREVER ((mdcom_ns_t)UINT64_MAX)
/** Microseconds. */
#define MDCOM_US(x) ((mdcom_ns_t)(x) * 1000u)
/** Milliseconds. */
#define MDCOM_MS(x) ((mdcom_ns_t)(x) * 1000000u)

/** Number of a channel, from the generated header. FIFO and SMEM channels are numbered separately. */
typedef uint32_t mdcom_ch_t;

/** Name of a block in the caller's hands. Valid on its channel until it is freed or enqueued; never 0. */
typedef uint64_t mdcom_block_t;

/* ------------------------------------------------------------------------------------------------------------------ */

/** What mdcom_init() needs. Begin with MDCOM_CONFIG_INIT, then set `domain` and what else differs. */
typedef struct mdcom_config {
    /** sizeof(mdcom_config_t). */
    size_t struct_size;
    /** Path of the description file; NULL: the environment variable MUSUBI_SYSTEM names it. */
    const char *description;
    /** Name of the caller's domain. */
    const char *domain;
    /** Tells several runs of one description apart; NULL: the environment variable MUSUBI_INSTANCE, else "default". */
    const char *instance;
    /** MUSUBI_PLAN_HASH of the generated header, so that it and the description cannot differ unnoticed; 0: no check. */
    uint64_t plan_hash;
    /** How long a Remote waits for the Master. MDCOM_POLL: not at all, it will be linked when it comes. */
    mdcom_ns_t timeout;
    /** Slot of the domain to take, counted from 0; -1: any that is free. */
    int32_t slot;
    /** MDCOM_PREFAULT or MDCOM_LOCK_MEMORY, or 0. */
    uint32_t flags;
} mdcom_config_t;

/** Description and instance from the environment, any slot, no check of the plan, wait for the Master. */
#define MDCOM_CONFIG_INIT { sizeof(mdcom_config_t), NULL, NULL, NULL, 0, MDCOM_FOREVER, -1, 0 }

/** Touch all of the own shared memory in mdcom_init(), so that no page fault comes later. */
#define MDCOM_PREFAULT 1u
/** The same, and keep it in memory (needs RLIMIT_MEMLOCK or CAP_IPC_LOCK). */
#define MDCOM_LOCK_MEMORY 2u

/**
 * Attaches this process to its domain. The sides of a system may be started in any order.
 *
 * A Master returns at once. A Remote waits for the Master; if that does not come in time the process is not attached
 * (MDCOM_E_TIMEOUT) and may try again. For a free slot of the domain it waits up to the timeout, at most 5 seconds.
 *
 * @return MDCOM_OK; MDCOM_E_ALREADY; MDCOM_E_DESCRIPTION, _DOMAIN, _PLAN, _VERSION, _PERMISSION, _SYSTEM; MDCOM_E_BUSY
 *         if all slots are taken; MDCOM_E_TIMEOUT; MDCOM_E_TERMINATED if mdcom_term() was called meanwhile.
 */
mdcom_status_t mdcom_init(const mdcom_config_t *config);

/**
 * Detaches. Calls of other threads that wait return MDCOM_E_TERMINATED. Peers see at once that the process has gone.
 * Pointers to blocks and SMEM memory are void from here on. Afterwards mdcom_init() may be called again.
 *
 * @return MDCOM_OK; MDCOM_E_NOT_INIT; MDCOM_E_TERMINATED if it was called before.
 */
mdcom_status_t mdcom_term(void);

/** How many processes of a domain (MUSUBI_DOMAIN_name) are attached, the caller included. */
mdcom_status_t mdcom_sense_process(uint32_t domain, uint32_t *count);

/** How full a FIFO channel is, as the caller's side sees it. */
typedef struct mdcom_usage {
    /** Blocks of the channel. */
    uint32_t blocks;
    /** Payload bytes of a block. */
    uint32_t block_bytes;
    /** Blocks that can be allocated; known to the sender only, else 0. */
    uint32_t free;
    /** Messages that are enqueued and not dequeued. */
    uint32_t queued;
    /** Blocks in the caller's hands. */
    uint32_t held;
    /** 1 if a process has the other end, else 0. */
    uint32_t connected;
} mdcom_usage_t;

/** Usage of a FIFO channel. */
mdcom_status_t mdcom_sense_fifo(mdcom_ch_t ch, mdcom_usage_t *usage);

/** Number of the FIFO channel of this name. @return MDCOM_OK; MDCOM_E_CHANNEL. */
mdcom_status_t mdcom_fifoch_find(const char *name, mdcom_ch_t *ch);

/** Number of the SMEM channel of this name. @return MDCOM_OK; MDCOM_E_CHANNEL. */
mdcom_status_t mdcom_smemch_find(const char *name, mdcom_ch_t *ch);

/* ---- FIFO channels. Every name exists as mdcom_fifoch_* and, as in table 2 of the paper, as mdcom_fifo_*. ---------- */

/**
 * Sender: takes a block, waiting for one until the timeout.
 *
 * @return MDCOM_OK; MDCOM_E_NO_BLOCK (with MDCOM_POLL) or MDCOM_E_TIMEOUT; MDCOM_E_PEER; MDCOM_E_TERMINATED;
 *         MDCOM_E_CHANNEL, _SIDE, _BUSY.
 */
mdcom_status_t mdcom_fifoch_alloc(mdcom_ch_t ch, mdcom_ns_t timeout, mdcom_block_t *block);
mdcom_status_t mdcom_fifo_alloc(mdcom_ch_t ch, mdcom_ns_t timeout, mdcom_block_t *block);

/** Sender: gives an allocated block back unsent. Receiver: gives a dequeued block back. @return MDCOM_OK; MDCOM_E_BLOCK. */
mdcom_status_t mdcom_fifoch_free(mdcom_ch_t ch, mdcom_block_t block);
mdcom_status_t mdcom_fifo_free(mdcom_ch_t ch, mdcom_block_t block);

/**
 * The memory of a block in the caller's hands, aligned to 16 bytes. A receiver can only read it: it is the sender's,
 * which may be hostile, so copy first and check the copy.
 *
 * @return MDCOM_OK; MDCOM_E_BLOCK.
 */
mdcom_status_t mdcom_fifoch_get(mdcom_ch_t ch, mdcom_block_t block, void **data);
mdcom_status_t mdcom_fifo_get(mdcom_ch_t ch, mdcom_block_t block, void **data);
/** The same, with the bytes that may be used: of the message at the receiver, of the block at the sender. */
mdcom_status_t mdcom_fifoch_get_len(mdcom_ch_t ch, mdcom_block_t block, void **data, size_t *bytes);
mdcom_status_t mdcom_fifo_get_len(mdcom_ch_t ch, mdcom_block_t block, void **data, size_t *bytes);

/**
 * Sender: sends a whole block. It leaves the caller's hands; mdcom_fifoch_notify() then wakes the receiver.
 *
 * @return MDCOM_OK; MDCOM_E_BLOCK; MDCOM_E_THROTTLED; MDCOM_E_SIDE.
 */
mdcom_status_t mdcom_fifoch_enqueue(mdcom_ch_t ch, mdcom_block_t block);
mdcom_status_t mdcom_fifo_enqueue(mdcom_ch_t ch, mdcom_block_t block);
/** The same with a message of this many bytes. @return also MDCOM_E_TOO_LONG. */
mdcom_status_t mdcom_fifoch_enqueue_len(mdcom_ch_t ch, mdcom_block_t block, size_t bytes);
mdcom_status_t mdcom_fifo_enqueue_len(mdcom_ch_t ch, mdcom_block_t block, size_t bytes);

/**
 * Receiver: takes the next message without waiting. Several may be in the caller's hands at once.
 *
 * @return MDCOM_OK; MDCOM_E_EMPTY; MDCOM_E_PEER_FAULT; MDCOM_E_SIDE.
 */
mdcom_status_t mdcom_fifoch_dequeue(mdcom_ch_t ch, mdcom_block_t *block);
mdcom_status_t mdcom_fifo_dequeue(mdcom_ch_t ch, mdcom_block_t *block);
/** The same, with the bytes of the message. */
mdcom_status_t mdcom_fifoch_dequeue_len(mdcom_ch_t ch, mdcom_block_t *block, size_t *bytes);
mdcom_status_t mdcom_fifo_dequeue_len(mdcom_ch_t ch, mdcom_block_t *block, size_t *bytes);

/** Either side: raises an event at the other. The sender's filter may hold it back, but never for ever. */
mdcom_status_t mdcom_fifoch_notify(mdcom_ch_t ch);
mdcom_status_t mdcom_fifo_notify(mdcom_ch_t ch);

/**
 * Either side: waits for an event of the other. At the receiver it returns as long as a notified message has not been
 * dequeued, so both one wait a message and one wait for many are right; an event may also come without a message.
 *
 * @return MDCOM_OK; MDCOM_E_TIMEOUT (also with MDCOM_POLL); MDCOM_E_PEER; MDCOM_E_TERMINATED.
 */
mdcom_status_t mdcom_fifoch_wait(mdcom_ch_t ch, mdcom_ns_t timeout);
mdcom_status_t mdcom_fifo_wait(mdcom_ch_t ch, mdcom_ns_t timeout);

/** Which notifications are raised. A held-back one is raised together with the next, and at `latest` at the latest. */
typedef struct mdcom_filter {
    /** Raise every n-th request; 0 counts as 1. */
    uint32_t every;
    /** Raise as soon as this many messages are queued; 0: no such condition. */
    uint32_t level;
    /** Least time between two raised notifications. */
    mdcom_ns_t interval;
    /** Longest time that one is held back; 0: 100 ms. */
    mdcom_ns_t latest;
} mdcom_filter_t;

/** Each request raises a notification. */
#define MDCOM_FILTER_EACH { 1, 0, 0, 0 }
/** Every n-th request does; 2 is the example of the paper. */
#define MDCOM_FILTER_EVERY(n) { (n), 0, 0, 0 }

/** Sender: replaces the filter of a channel; NULL: the one of the description. */
mdcom_status_t mdcom_fifoch_filter_set(mdcom_ch_t ch, const mdcom_filter_t *filter);
mdcom_status_t mdcom_filter_set(mdcom_ch_t ch, const mdcom_filter_t *filter);

/**
 * Either side: initialises one channel again while others go on. Queued messages are void, blocks in the caller's hands
 * go back (their names too are void), and the filter is that of the description. Blocks in the peer's hands stay there.
 */
mdcom_status_t mdcom_fifoch_init(mdcom_ch_t ch);
mdcom_status_t mdcom_fifo_init(mdcom_ch_t ch);

/* ---- Event loops. -------------------------------------------------------------------------------------------------- */

/** Something is there: at the receiver, mdcom_fifoch_wait() would return; at the sender, an event of the receiver. */
#define MDCOM_READY_EVENT 1u
/** A block can be allocated (sender). */
#define MDCOM_READY_BLOCK 2u
/** A peer was lost; the next mdcom_fifoch_wait() or _alloc() that finds nothing else will say so. */
#define MDCOM_READY_PEER 4u

/**
 * A descriptor for poll() and epoll that becomes readable when the other side rings after mdcom_fifoch_arm(). Do not
 * read it. It is the caller's to close.
 */
mdcom_status_t mdcom_fifoch_fd(mdcom_ch_t ch, int *fd);
mdcom_status_t mdcom_fifo_fd(mdcom_ch_t ch, int *fd);

/**
 * Clears the descriptor and arms it. `ready` gets what is there already, as bits of MDCOM_READY_*: where that is what
 * the caller waits for, do not go to sleep now, but use it up and arm again.
 */
mdcom_status_t mdcom_fifoch_arm(mdcom_ch_t ch, uint32_t *ready);
mdcom_status_t mdcom_fifo_arm(mdcom_ch_t ch, uint32_t *ready);

/* ---- SMEM channels. ------------------------------------------------------------------------------------------------ */

/**
 * The memory of an SMEM channel, aligned to a page, at the same address until mdcom_term(). Every member can write it
 * at any time; the lock is what keeps order. The first call may wait up to 500 ms for the member that makes the memory.
 *
 * @return MDCOM_OK; MDCOM_E_NOT_READY; MDCOM_E_CHANNEL.
 */
mdcom_status_t mdcom_smemch_get(mdcom_ch_t ch, void **data);
/** The same, with the bytes of the channel. */
mdcom_status_t mdcom_smemch_get_len(mdcom_ch_t ch, void **data, size_t *bytes);

/**
 * Tries to take the lock for the calling thread, without waiting (but see mdcom_smemch_get()). A holder whose process
 * dies is passed over; one that only hangs is not, nor a thread that ends without giving the lock back.
 *
 * @return MDCOM_OK; MDCOM_E_LOCKED, also if this thread has it; MDCOM_E_NOT_READY; MDCOM_E_CHANNEL.
 */
mdcom_status_t mdcom_smemch_trylock(mdcom_ch_t ch);

/** Takes the lock, first come first served between processes. @return MDCOM_OK; MDCOM_E_TIMEOUT; as trylock. */
mdcom_status_t mdcom_smemch_lock(mdcom_ch_t ch, mdcom_ns_t timeout);

/** Gives the lock back. @return MDCOM_OK; MDCOM_E_NOT_HELD if the calling thread does not have it. */
mdcom_status_t mdcom_smemch_unlock(mdcom_ch_t ch);

/* ---- Texts. -------------------------------------------------------------------------------------------------------- */

/** What a code means, in English, for ever valid; never NULL. May be called at any time. */
const char *mdcom_strerror(mdcom_status_t status);

/**
 * What went wrong in the last call of this thread that did not return MDCOM_OK, in more detail: for example all mistakes
 * of a description with their places. Valid until the next call of this thread; never NULL. May be called at any time.
 */
const char *mdcom_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* MDCOM_H */
