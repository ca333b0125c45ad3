/*
 * The C interface called by C tasks: an echo, misuse, two tasks at one channel, and an end while a task waits.
 *
 * Each test gives 0, or the line of what did not hold. src/c_tasks.rs runs them in tasks; the other participant is Rust.
 */
#include <mdcom.h>

#include <string.h>

/* The channels of the suite's plan (testsuite/src/plan.rs). */
#define DOWN 0
#define UP 1
#define SINGLE 2
#define SHARED 0
#define MESSAGES 100
#define PATIENCE MDCOM_MS(5000)

#define WANT(condition)      \
    do {                     \
        if (!(condition))    \
            return __LINE__; \
    } while (0)

int tests_before_init(void)
{
    mdcom_block_t block;
    WANT(mdcom_fifoch_alloc(UP, MDCOM_POLL, &block) == MDCOM_E_NOT_INIT);
    WANT(mdcom_term() == MDCOM_E_NOT_INIT);
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    WANT(mdcom_init(NULL) == MDCOM_E_ARGUMENT);
    WANT(mdcom_init(&config) == MDCOM_E_ARGUMENT);
    config.domain = "nobody";
    WANT(mdcom_init(&config) == MDCOM_E_DOMAIN);
    config.domain = "remote";
    config.plan_hash = 1;
    WANT(mdcom_init(&config) == MDCOM_E_PLAN);
    config.plan_hash = 0;
    config.description = "system.toml";
    WANT(mdcom_init(&config) == MDCOM_E_DESCRIPTION);
    WANT(strlen(mdcom_last_error()) > 20);
    return 0;
}

int tests_init(void)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    config.domain = "remote";
    config.plan_hash = 0x7e570001;
    config.timeout = PATIENCE;
    WANT(mdcom_init(&config) == MDCOM_OK);
    WANT(mdcom_init(&config) == MDCOM_E_ALREADY);
    return 0;
}

/* Every message of the Master goes back to it. */
int tests_echo(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        mdcom_block_t in, out;
        void *from, *to;
        size_t bytes;
        mdcom_status_t status;
        while ((status = mdcom_fifoch_dequeue_len(DOWN, &in, &bytes)) == MDCOM_E_EMPTY)
            WANT(mdcom_fifoch_wait(DOWN, PATIENCE) == MDCOM_OK);
        WANT(status == MDCOM_OK);
        WANT(mdcom_fifoch_get(DOWN, in, &from) == MDCOM_OK);
        WANT(mdcom_fifoch_alloc(UP, PATIENCE, &out) == MDCOM_OK);
        WANT(mdcom_fifoch_get(UP, out, &to) == MDCOM_OK);
        memcpy(to, from, bytes);
        WANT(mdcom_fifoch_free(DOWN, in) == MDCOM_OK);
        WANT(mdcom_fifoch_enqueue_len(UP, out, bytes) == MDCOM_OK);
        WANT(mdcom_fifoch_notify(UP) == MDCOM_OK);
    }
    return 0;
}

int tests_misuse(void)
{
    mdcom_block_t block, other;
    mdcom_usage_t usage;
    void *data;
    int fd;
    uint32_t ready;
    mdcom_ch_t ch;
    WANT(mdcom_fifoch_find("up", &ch) == MDCOM_OK && ch == UP);
    WANT(mdcom_fifoch_find("nothing", &ch) == MDCOM_E_CHANNEL);
    WANT(mdcom_fifoch_alloc(77, MDCOM_POLL, &block) == MDCOM_E_CHANNEL);
    WANT(mdcom_fifoch_alloc(DOWN, MDCOM_POLL, &block) == MDCOM_E_SIDE);
    WANT(mdcom_fifoch_alloc(UP, MDCOM_POLL, NULL) == MDCOM_E_ARGUMENT);
    WANT(mdcom_fifoch_alloc(UP, MDCOM_POLL, &block) == MDCOM_OK);
    WANT(mdcom_fifoch_enqueue_len(UP, block, 65) == MDCOM_E_TOO_LONG);
    WANT(mdcom_fifoch_get(DOWN, block, &data) == MDCOM_E_BLOCK);
    WANT(mdcom_fifoch_free(UP, block) == MDCOM_OK);
    WANT(mdcom_fifoch_free(UP, block) == MDCOM_E_BLOCK);
    WANT(mdcom_fifoch_alloc(UP, MDCOM_POLL, &other) == MDCOM_OK && other != block);
    WANT(mdcom_fifoch_enqueue(UP, block) == MDCOM_E_BLOCK);
    WANT(mdcom_fifoch_init(UP) == MDCOM_OK);
    WANT(mdcom_fifoch_free(UP, other) == MDCOM_E_BLOCK);
    WANT(mdcom_fifoch_dequeue(DOWN, &block) == MDCOM_E_EMPTY);
    WANT(mdcom_fifoch_wait(DOWN, MDCOM_MS(3)) == MDCOM_E_TIMEOUT);
    WANT(mdcom_sense_fifo(UP, &usage) == MDCOM_OK && usage.blocks == 8 && usage.block_bytes == 64 && usage.held == 0);
    WANT(mdcom_fifoch_fd(UP, &fd) == MDCOM_E_SYSTEM);
    WANT(mdcom_fifoch_arm(UP, &ready) == MDCOM_E_SYSTEM);
    WANT(memcmp(mdcom_last_error(), "this target has no descriptors", 31) == 0);
    return 0;
}

int tests_shared_memory(void)
{
    void *data;
    size_t bytes;
    WANT(mdcom_smemch_get_len(SHARED, &data, &bytes) == MDCOM_OK && bytes == 64);
    WANT(mdcom_smemch_unlock(SHARED) == MDCOM_E_NOT_HELD);
    WANT(mdcom_smemch_lock(SHARED, PATIENCE) == MDCOM_OK);
    WANT(mdcom_smemch_trylock(SHARED) == MDCOM_E_LOCKED);
    WANT(mdcom_smemch_lock(SHARED, MDCOM_MS(3)) == MDCOM_E_LOCKED);
    ((volatile unsigned char *)data)[5] = 42;
    WANT(mdcom_smemch_unlock(SHARED) == MDCOM_OK);
    WANT(mdcom_smemch_trylock(SHARED) == MDCOM_OK);
    WANT(mdcom_smemch_unlock(SHARED) == MDCOM_OK);
    return 0;
}

/* Run by two tasks at once: each takes one message, whichever comes to it. */
int tests_take_one(void)
{
    mdcom_block_t block;
    mdcom_status_t status;
    while ((status = mdcom_fifoch_dequeue(DOWN, &block)) == MDCOM_E_EMPTY)
        WANT(mdcom_fifoch_wait(DOWN, PATIENCE) == MDCOM_OK);
    WANT(status == MDCOM_OK);
    WANT(mdcom_fifoch_free(DOWN, block) == MDCOM_OK);
    return 0;
}

/* Waits where nothing comes, until another task ends the attachment. */
int tests_wait_for_the_end(void)
{
    WANT(mdcom_fifoch_wait(SINGLE, MDCOM_FOREVER) == MDCOM_E_TERMINATED);
    return 0;
}

int tests_term(void)
{
    WANT(mdcom_term() == MDCOM_OK);
    WANT(mdcom_term() == MDCOM_E_TERMINATED);
    return 0;
}
