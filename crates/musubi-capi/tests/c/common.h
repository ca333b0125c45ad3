/* What the test programs share. A program ends with success only if everything it wanted was so. */
#ifndef COMMON_H
#define COMMON_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <mdcom.h>
#include <musubi_capi_tests.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Bounds of the tests are wide, because machines that run tests are busy. */
#define SLACK_MS 400u

#define WANT(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__, #condition, mdcom_last_error()); \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The code is the one wanted. */
#define GIVES(code, call)                                                                                              \
    do {                                                                                                               \
        mdcom_status_t got = (call);                                                                                   \
        if (got != (code)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s gave %d, not %s; last error: %s\n", __FILE__, __LINE__, #call, (int)got, #code, \
                    mdcom_last_error());                                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define OK(call) GIVES(MDCOM_OK, call)

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };
    nanosleep(&time, NULL);
}

static inline void attach(const char *domain)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    config.domain = domain;
    config.plan_hash = MUSUBI_PLAN_HASH;
    config.timeout = MDCOM_MS(10000);
    OK(mdcom_init(&config));
}

/* Byte i of message number n. The number itself comes first, as far as there is room. */
static inline unsigned char pattern(uint32_t n, size_t i)
{
    return i < 4 ? (unsigned char)(n >> (8 * i)) : (unsigned char)(n * 31 + i);
}

static inline void fill(unsigned char *data, size_t bytes, uint32_t n)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = pattern(n, i);
}

static inline int is_filled(const unsigned char *data, size_t bytes, uint32_t n)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != pattern(n, i))
            return 0;
    return 1;
}

/* Takes a block, also if a peer was lost meanwhile. */
static inline mdcom_block_t block_of(mdcom_ch_t ch)
{
    mdcom_block_t block = 0;
    mdcom_status_t status;
    while ((status = mdcom_fifoch_alloc(ch, MDCOM_MS(20000), &block)) == MDCOM_E_PEER) {
    }
    OK(status);
    return block;
}

/* Sends message number n. */
static inline void send_number(mdcom_ch_t ch, uint32_t n, size_t bytes)
{
    mdcom_block_t block = block_of(ch);
    void *data = NULL;
    OK(mdcom_fifoch_get(ch, block, &data));
    WANT((uintptr_t)data % 16 == 0);
    fill(data, bytes, n);
    OK(mdcom_fifoch_enqueue_len(ch, block, bytes));
    OK(mdcom_fifoch_notify(ch));
}

/* Waits until the receiver has dequeued all. */
static inline void drain(mdcom_ch_t ch)
{
    uint64_t limit = now_ms() + 20000;
    mdcom_usage_t usage;
    do {
        OK(mdcom_sense_fifo(ch, &usage));
        if (now_ms() >= limit) {
            fprintf(stderr, "not drained: %u queued, %u of %u free, %u held, connected %u\n", (unsigned)usage.queued,
                    (unsigned)usage.free, (unsigned)usage.blocks, (unsigned)usage.held, (unsigned)usage.connected);
            exit(1);
        }
        sleep_ms(1);
    } while (usage.queued > 0 || usage.free < usage.blocks);
}

#endif
