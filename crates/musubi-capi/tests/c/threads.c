/* Several threads on several channels: threads send | receive | term. */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define CHANNELS 4
#define EACH 2000u

static const mdcom_ch_t channels[CHANNELS] = { MUSUBI_FIFO_SIZE_7, MUSUBI_FIFO_SIZE_48, MUSUBI_FIFO_SIZE_49,
                                               MUSUBI_FIFO_SIZE_64 };

/* Each thread sends EACH messages on each channel, numbered so that all numbers of a channel differ. */
static void *send_some(void *argument)
{
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (uint32_t n = 0; n < EACH; n++)
        for (int c = 0; c < CHANNELS; c++)
            send_number(channels[(c + me) % CHANNELS], me * EACH + n, 7);
    return NULL;
}

static atomic_uchar seen[CHANNELS][THREADS * EACH];
static atomic_uint received[CHANNELS];

static void *receive_some(void *argument)
{
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (unsigned turn = me;; turn++) {
        int c = turn % CHANNELS, left = 0;
        mdcom_block_t block;
        void *data;
        for (int i = 0; i < CHANNELS; i++)
            left += atomic_load(&received[i]) < THREADS * EACH;
        if (!left)
            return NULL;
        mdcom_status_t status = mdcom_fifoch_wait(channels[c], MDCOM_MS(1));
        if (status == MDCOM_E_TIMEOUT)
            continue;
        OK(status);
        /* Another thread may have been faster. */
        while ((status = mdcom_fifoch_dequeue(channels[c], &block)) == MDCOM_OK) {
            uint32_t number = 0;
            OK(mdcom_fifoch_get(channels[c], block, &data));
            memcpy(&number, data, 4);
            WANT(is_filled(data, 7, number) && number < THREADS * EACH);
            OK(mdcom_fifoch_free(channels[c], block));
            WANT(atomic_exchange(&seen[c][number], 1) == 0);
            atomic_fetch_add(&received[c], 1);
        }
        GIVES(MDCOM_E_EMPTY, status);
    }
}

/* Calls that wait, and what they must give once mdcom_term() was called. */
static void *wait_for_event(void *argument)
{
    (void)argument;
    GIVES(MDCOM_E_TERMINATED, mdcom_fifoch_wait(MUSUBI_FIFO_SIZE_64, MDCOM_FOREVER));
    return NULL;
}

static void *wait_for_message(void *argument)
{
    (void)argument;
    GIVES(MDCOM_E_TERMINATED, mdcom_fifoch_wait(MUSUBI_FIFO_BACK, MDCOM_MS(30000)));
    return NULL;
}

static void *wait_for_block(void *argument)
{
    mdcom_block_t block;
    (void)argument;
    GIVES(MDCOM_E_TERMINATED, mdcom_fifoch_alloc(MUSUBI_FIFO_SIZE_64, MDCOM_FOREVER, &block));
    return NULL;
}

static void *wait_for_lock(void *argument)
{
    (void)argument;
    GIVES(MDCOM_E_TERMINATED, mdcom_smemch_lock(MUSUBI_SMEM_SHARED, MDCOM_FOREVER));
    return NULL;
}

static atomic_int got_block;

static void *get_block(void *argument)
{
    mdcom_block_t block;
    (void)argument;
    OK(mdcom_fifoch_alloc(MUSUBI_FIFO_SIZE_64, MDCOM_MS(20000), &block));
    atomic_store(&got_block, 1);
    return NULL;
}

static void *unlock_foreign(void *argument)
{
    (void)argument;
    GIVES(MDCOM_E_LOCKED, mdcom_smemch_trylock(MUSUBI_SMEM_SHARED));
    GIVES(MDCOM_E_NOT_HELD, mdcom_smemch_unlock(MUSUBI_SMEM_SHARED));
    GIVES(MDCOM_E_TIMEOUT, mdcom_smemch_lock(MUSUBI_SMEM_SHARED, MDCOM_MS(20)));
    return NULL;
}

static void term(void)
{
    void *(*const waits[])(void *) = { wait_for_event, wait_for_event, wait_for_message, wait_for_message,
                                       wait_for_block, wait_for_block, wait_for_lock,    wait_for_lock };
    enum { COUNT = sizeof waits / sizeof waits[0] };
    for (int round = 0; round < 5; round++) {
        pthread_t threads[COUNT], other;
        mdcom_block_t blocks[4];
        uint64_t begin;
        attach("control");
        OK(mdcom_fifoch_notify(MUSUBI_FIFO_BACK));
        OK(mdcom_smemch_lock(MUSUBI_SMEM_SHARED, MDCOM_FOREVER));
        WANT(pthread_create(&other, NULL, unlock_foreign, NULL) == 0);
        WANT(pthread_join(other, NULL) == 0);
        for (int i = 0; i < 4; i++)
            OK(mdcom_fifoch_alloc(MUSUBI_FIFO_SIZE_64, MDCOM_POLL, &blocks[i]));
        /* A block that this process gives back wakes a thread of it that waits for one. */
        atomic_store(&got_block, 0);
        WANT(pthread_create(&other, NULL, get_block, NULL) == 0);
        sleep_ms(20);
        WANT(!atomic_load(&got_block));
        begin = now_ms();
        OK(mdcom_fifoch_free(MUSUBI_FIFO_SIZE_64, blocks[2]));
        WANT(pthread_join(other, NULL) == 0);
        WANT(now_ms() - begin < SLACK_MS);
        for (int i = 0; i < COUNT; i++)
            WANT(pthread_create(&threads[i], NULL, waits[i], NULL) == 0);
        sleep_ms(round * 10);
        begin = now_ms();
        OK(mdcom_term());
        for (int i = 0; i < COUNT; i++)
            WANT(pthread_join(threads[i], NULL) == 0);
        WANT(now_ms() - begin < SLACK_MS);
    }
}

static void *init_without_master(void *argument)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    (void)argument;
    config.domain = "remote";
    GIVES(MDCOM_E_TERMINATED, mdcom_init(&config));
    return NULL;
}

/* A Remote that waits for its Master can be told to stop. */
static void stop_init(void)
{
    pthread_t thread;
    uint64_t begin;
    WANT(pthread_create(&thread, NULL, init_without_master, NULL) == 0);
    sleep_ms(300);
    begin = now_ms();
    OK(mdcom_term());
    WANT(pthread_join(thread, NULL) == 0);
    WANT(now_ms() - begin < 500 + SLACK_MS);
    GIVES(MDCOM_E_NOT_INIT, mdcom_term());
}

static void run(void *(*what)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        WANT(pthread_create(&threads[i], NULL, what, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        WANT(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    WANT(argc == 2);
    if (strcmp(argv[1], "term") == 0) {
        term();
        stop_init();
        return 0;
    }
    attach(strcmp(argv[1], "send") == 0 ? "control" : "remote");
    run(strcmp(argv[1], "send") == 0 ? send_some : receive_some);
    if (strcmp(argv[1], "send") == 0)
        for (int c = 0; c < CHANNELS; c++)
            drain(channels[c]);
    OK(mdcom_term());
    return 0;
}
