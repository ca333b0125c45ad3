/* Mistakes of a program are answered with a code and change nothing: misuse sender | receiver | memory | lifecycle. */
#include "common.h"

#include <sys/wait.h>

#define CH MUSUBI_FIFO_SIZE_64
#define OTHER MUSUBI_FIFO_SIZE_49
#define BACK MUSUBI_FIFO_BACK

static mdcom_usage_t usage_of(mdcom_ch_t ch)
{
    mdcom_usage_t usage;
    OK(mdcom_sense_fifo(ch, &usage));
    return usage;
}

/* None of these is a block in our hands. */
static void refuse_block(mdcom_ch_t ch, mdcom_block_t block)
{
    void *data = NULL;
    size_t bytes = 0;
    mdcom_usage_t before = usage_of(ch), after;
    GIVES(MDCOM_E_BLOCK, mdcom_fifoch_free(ch, block));
    GIVES(MDCOM_E_BLOCK, mdcom_fifoch_get(ch, block, &data));
    GIVES(MDCOM_E_BLOCK, mdcom_fifoch_get_len(ch, block, &data, &bytes));
    WANT(data == NULL && bytes == 0);
    after = usage_of(ch);
    WANT(memcmp(&before, &after, sizeof before) == 0);
}

static void refuse_blocks(mdcom_ch_t ch, mdcom_block_t near)
{
    const mdcom_block_t made_up[] = { 0, 1, 2, 3, 16384, UINT32_MAX, UINT64_MAX, near + 1, near - 1, near ^ 1,
                                      near + ((mdcom_block_t)1 << 24), near + ((mdcom_block_t)1 << 48), ~near };
    for (size_t i = 0; i < sizeof made_up / sizeof made_up[0]; i++)
        refuse_block(ch, made_up[i]);
}

static void refuse_null_and_channels(void)
{
    const mdcom_ch_t bad[] = { MUSUBI_FIFO_FOREIGN + 1, MUSUBI_FIFO_FOREIGN + 1000, 1023, 1024, 65536 + CH, UINT32_MAX };
    mdcom_block_t block = 77;
    void *data;
    size_t bytes;
    uint32_t number;
    mdcom_ch_t found;
    int fd;
    mdcom_usage_t usage;
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_alloc(CH, MDCOM_POLL, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_get(CH, 1, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_get_len(CH, 1, &data, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_get_len(CH, 1, NULL, &bytes));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_dequeue(CH, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_dequeue_len(CH, NULL, &bytes));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_dequeue_len(CH, &block, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_sense_fifo(CH, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_sense_process(0, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_find(NULL, &found));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_find("size-64", NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_find("\xff\xfe", &found));
    GIVES(MDCOM_E_ARGUMENT, mdcom_smemch_find(NULL, &found));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_fd(CH, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_fifoch_arm(CH, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_smemch_get(0, NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_smemch_get_len(0, &data, NULL));
    GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_find("nobody", &found));
    GIVES(MDCOM_E_CHANNEL, mdcom_smemch_find("size-64", &found));
    GIVES(MDCOM_E_DOMAIN, mdcom_sense_process(99, &number));
    GIVES(MDCOM_E_DOMAIN, mdcom_sense_process(65536, &number));
    OK(mdcom_fifoch_find("size-64", &found));
    WANT(found == CH);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_alloc(bad[i], MDCOM_POLL, &block));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_free(bad[i], 1));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_get(bad[i], 1, &data));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_enqueue(bad[i], 1));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_dequeue(bad[i], &block));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_notify(bad[i]));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_wait(bad[i], MDCOM_FOREVER));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_filter_set(bad[i], NULL));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_init(bad[i]));
        GIVES(MDCOM_E_CHANNEL, mdcom_sense_fifo(bad[i], &usage));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_fd(bad[i], &fd));
        GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_arm(bad[i], &number));
        GIVES(MDCOM_E_CHANNEL, mdcom_smemch_get(bad[i], &data));
        GIVES(MDCOM_E_CHANNEL, mdcom_smemch_trylock(bad[i]));
        GIVES(MDCOM_E_CHANNEL, mdcom_smemch_unlock(bad[i]));
    }
    WANT(block == 77);
}

/* The peer frees what it receives and notifies. */
static void sender(void)
{
    mdcom_block_t block, second, old;
    void *data;
    attach("control");
    refuse_null_and_channels();
    old = block_of(CH);
    refuse_blocks(CH, old);
    refuse_block(OTHER, old);
    GIVES(MDCOM_E_BLOCK, mdcom_fifoch_enqueue(OTHER, old));
    GIVES(MDCOM_E_TOO_LONG, mdcom_fifoch_enqueue_len(CH, old, 65));
    GIVES(MDCOM_E_TOO_LONG, mdcom_fifoch_enqueue_len(CH, old, (size_t)1 << 32));
    GIVES(MDCOM_E_TOO_LONG, mdcom_fifoch_enqueue_len(CH, old, SIZE_MAX));
    OK(mdcom_fifoch_get(CH, old, &data));
    OK(mdcom_fifoch_free(CH, old));
    refuse_block(CH, old);
    /* The same memory again, under another name: the old name does not free it. */
    block = block_of(CH);
    WANT(block != old);
    refuse_block(CH, old);
    GIVES(MDCOM_E_BLOCK, mdcom_fifoch_enqueue(CH, old));
    OK(mdcom_fifoch_enqueue(CH, block));
    GIVES(MDCOM_E_BLOCK, mdcom_fifoch_enqueue(CH, block));
    refuse_block(CH, block);
    /* The other side's functions. */
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_dequeue(CH, &second));
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_alloc(BACK, MDCOM_POLL, &second));
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_enqueue(BACK, 1));
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_filter_set(BACK, NULL));
    /* The regulation lets one through at once. */
    send_number(MUSUBI_FIFO_SLOW, 0, 4);
    block = block_of(MUSUBI_FIFO_SLOW);
    GIVES(MDCOM_E_THROTTLED, mdcom_fifoch_enqueue(MUSUBI_FIFO_SLOW, block));
    WANT(strstr(mdcom_last_error(), "regulator") != NULL);
    OK(mdcom_fifoch_free(MUSUBI_FIFO_SLOW, block));
    /* Initialising again: what is in hand is void, all blocks are free, and the channel works. */
    block = block_of(OTHER);
    second = block_of(OTHER);
    OK(mdcom_fifo_init(OTHER));
    refuse_block(OTHER, block);
    refuse_block(OTHER, second);
    WANT(usage_of(OTHER).free == 4 && usage_of(OTHER).held == 0);
    OK(mdcom_fifoch_notify(CH));
    drain(CH);
    send_number(CH, 1, 64);
    drain(CH);
    OK(mdcom_term());
}

/* The peer sends messages of 64 bytes. */
static void receiver(void)
{
    mdcom_block_t block, old, held[3];
    void *data;
    size_t bytes;
    attach("remote");
    OK(mdcom_fifoch_wait(CH, MDCOM_FOREVER));
    OK(mdcom_fifoch_dequeue_len(CH, &old, &bytes));
    WANT(bytes == 64);
    refuse_blocks(CH, old);
    refuse_block(OTHER, old);
    OK(mdcom_fifoch_free(CH, old));
    refuse_block(CH, old);
    OK(mdcom_fifoch_wait(CH, MDCOM_FOREVER));
    OK(mdcom_fifoch_dequeue(CH, &block));
    WANT(block != old);
    refuse_block(CH, old);
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_alloc(CH, MDCOM_POLL, &old));
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_enqueue(CH, block));
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_enqueue_len(CH, block, 1));
    GIVES(MDCOM_E_SIDE, mdcom_filter_set(CH, NULL));
    GIVES(MDCOM_E_SIDE, mdcom_fifoch_dequeue(BACK, &old));
    OK(mdcom_fifoch_get(CH, block, &data));
    WANT(is_filled(data, 64, 1));
    OK(mdcom_fifoch_free(CH, block));
    /* Initialising again with blocks in hand: they go back, the peer can send all its blocks. */
    for (int i = 0; i < 3; i++) {
        OK(mdcom_fifoch_wait(CH, MDCOM_FOREVER));
        OK(mdcom_fifoch_dequeue(CH, &held[i]));
    }
    OK(mdcom_fifoch_init(CH));
    for (int i = 0; i < 3; i++)
        refuse_block(CH, held[i]);
    WANT(usage_of(CH).held == 0);
    OK(mdcom_fifoch_notify(CH));
    OK(mdcom_fifoch_wait(CH, MDCOM_FOREVER));
    OK(mdcom_fifoch_dequeue(CH, &block));
    OK(mdcom_fifoch_get(CH, block, &data));
    WANT(is_filled(data, 64, 99));
    OK(mdcom_fifoch_free(CH, block));
    OK(mdcom_term());
}

static void memory(void)
{
    mdcom_config_t alone = MDCOM_CONFIG_INIT;
    void *data, *again;
    size_t bytes;
    uint64_t begin;
    attach("control");
    OK(mdcom_smemch_get_len(MUSUBI_SMEM_SHARED, &data, &bytes));
    WANT(bytes == 256 && (uintptr_t)data % 4096 == 0);
    GIVES(MDCOM_E_NOT_HELD, mdcom_smemch_unlock(MUSUBI_SMEM_SHARED));
    OK(mdcom_smemch_trylock(MUSUBI_SMEM_SHARED));
    GIVES(MDCOM_E_LOCKED, mdcom_smemch_trylock(MUSUBI_SMEM_SHARED));
    GIVES(MDCOM_E_LOCKED, mdcom_smemch_lock(MUSUBI_SMEM_SHARED, MDCOM_MS(10)));
    GIVES(MDCOM_E_LOCKED, mdcom_smemch_lock(MUSUBI_SMEM_SHARED, MDCOM_POLL));
    OK(mdcom_smemch_get(MUSUBI_SMEM_SHARED, &again));
    WANT(again == data);
    OK(mdcom_smemch_unlock(MUSUBI_SMEM_SHARED));
    GIVES(MDCOM_E_NOT_HELD, mdcom_smemch_unlock(MUSUBI_SMEM_SHARED));
    OK(mdcom_smemch_lock(MUSUBI_SMEM_SHARED, MDCOM_MS(10)));
    OK(mdcom_term());
    GIVES(MDCOM_E_TERMINATED, mdcom_smemch_unlock(MUSUBI_SMEM_SHARED));
    /* A lock that was held at the end does not stay. */
    attach("control");
    OK(mdcom_smemch_trylock(MUSUBI_SMEM_SHARED));
    OK(mdcom_term());
    alone.domain = "remote";
    alone.timeout = MDCOM_POLL;
    OK(mdcom_init(&alone));
    GIVES(MDCOM_E_CHANNEL, mdcom_smemch_trylock(MUSUBI_SMEM_OTHERS));
    /* The Master makes the memory, and there is none. */
    begin = now_ms();
    GIVES(MDCOM_E_NOT_READY, mdcom_smemch_get(MUSUBI_SMEM_SHARED, &data));
    WANT(now_ms() - begin < 500 + SLACK_MS);
    OK(mdcom_term());
}

/* Every function, with arguments that would be right, gives this code. */
static void all_give(mdcom_status_t code)
{
    mdcom_block_t block;
    mdcom_usage_t usage;
    mdcom_filter_t filter = MDCOM_FILTER_EACH;
    void *data;
    size_t bytes;
    uint32_t number;
    int fd;
    GIVES(code, mdcom_sense_process(0, &number));
    GIVES(code, mdcom_sense_fifo(CH, &usage));
    GIVES(code, mdcom_fifoch_find("size-64", &number));
    GIVES(code, mdcom_smemch_find("shared", &number));
    GIVES(code, mdcom_fifoch_alloc(CH, MDCOM_FOREVER, &block));
    GIVES(code, mdcom_fifo_alloc(CH, MDCOM_FOREVER, &block));
    GIVES(code, mdcom_fifoch_free(CH, 1));
    GIVES(code, mdcom_fifo_free(CH, 1));
    GIVES(code, mdcom_fifoch_get(CH, 1, &data));
    GIVES(code, mdcom_fifo_get(CH, 1, &data));
    GIVES(code, mdcom_fifoch_get_len(CH, 1, &data, &bytes));
    GIVES(code, mdcom_fifo_get_len(CH, 1, &data, &bytes));
    GIVES(code, mdcom_fifoch_enqueue(CH, 1));
    GIVES(code, mdcom_fifo_enqueue(CH, 1));
    GIVES(code, mdcom_fifoch_enqueue_len(CH, 1, 1));
    GIVES(code, mdcom_fifo_enqueue_len(CH, 1, 1));
    GIVES(code, mdcom_fifoch_dequeue(CH, &block));
    GIVES(code, mdcom_fifo_dequeue(CH, &block));
    GIVES(code, mdcom_fifoch_dequeue_len(CH, &block, &bytes));
    GIVES(code, mdcom_fifo_dequeue_len(CH, &block, &bytes));
    GIVES(code, mdcom_fifoch_notify(CH));
    GIVES(code, mdcom_fifo_notify(CH));
    GIVES(code, mdcom_fifoch_wait(CH, MDCOM_FOREVER));
    GIVES(code, mdcom_fifo_wait(CH, MDCOM_FOREVER));
    GIVES(code, mdcom_fifoch_filter_set(CH, &filter));
    GIVES(code, mdcom_filter_set(CH, &filter));
    GIVES(code, mdcom_fifoch_init(CH));
    GIVES(code, mdcom_fifo_init(CH));
    GIVES(code, mdcom_fifoch_fd(CH, &fd));
    GIVES(code, mdcom_fifo_fd(CH, &fd));
    GIVES(code, mdcom_fifoch_arm(CH, &number));
    GIVES(code, mdcom_fifo_arm(CH, &number));
    GIVES(code, mdcom_smemch_get(0, &data));
    GIVES(code, mdcom_smemch_get_len(0, &data, &bytes));
    GIVES(code, mdcom_smemch_trylock(0));
    GIVES(code, mdcom_smemch_lock(0, MDCOM_FOREVER));
    GIVES(code, mdcom_smemch_unlock(0));
}

static mdcom_status_t init_with(const char *description, const char *domain, uint64_t hash, int slot, unsigned flags)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    config.description = description;
    config.domain = domain;
    config.plan_hash = hash;
    config.slot = slot;
    config.flags = flags;
    config.timeout = MDCOM_MS(100);
    return mdcom_init(&config);
}

static void lifecycle(void)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    uint32_t count;
    uint64_t begin;
    pid_t child;
    int status;
    all_give(MDCOM_E_NOT_INIT);
    GIVES(MDCOM_E_NOT_INIT, mdcom_term());
    /* What is wrong with a configuration. */
    GIVES(MDCOM_E_ARGUMENT, mdcom_init(NULL));
    GIVES(MDCOM_E_ARGUMENT, mdcom_init(&config));
    config.domain = "control";
    config.struct_size = 8;
    GIVES(MDCOM_E_ARGUMENT, mdcom_init(&config));
    GIVES(MDCOM_E_ARGUMENT, init_with(NULL, "control", 0, -2, 0));
    GIVES(MDCOM_E_ARGUMENT, init_with(NULL, "control", 0, 70000, 0));
    GIVES(MDCOM_E_ARGUMENT, init_with(NULL, "control", 0, -1, 8));
    GIVES(MDCOM_E_DESCRIPTION, init_with("/nowhere.toml", "control", 0, -1, 0));
    WANT(strstr(mdcom_last_error(), "/nowhere.toml") != NULL);
    GIVES(MDCOM_E_DESCRIPTION, init_with(BROKEN, "control", 0, -1, 0));
    WANT(strstr(mdcom_last_error(), ":2:") != NULL);
    GIVES(MDCOM_E_DOMAIN, init_with(NULL, "nobody", 0, -1, 0));
    WANT(strstr(mdcom_last_error(), "control") != NULL);
    GIVES(MDCOM_E_DOMAIN, init_with(NULL, "control", 0, 2, 0));
    GIVES(MDCOM_E_PLAN, init_with(NULL, "control", MUSUBI_PLAN_HASH + 1, -1, 0));
    all_give(MDCOM_E_NOT_INIT);
    /* A Remote without a Master gives up in time, and does not wait at all if told so. */
    begin = now_ms();
    GIVES(MDCOM_E_TIMEOUT, init_with(NULL, "remote", 0, -1, 0));
    WANT(now_ms() - begin >= 99 && now_ms() - begin < 600 + SLACK_MS);
    all_give(MDCOM_E_NOT_INIT);
    config.struct_size = sizeof config;
    config.domain = "remote";
    config.timeout = MDCOM_POLL;
    OK(mdcom_init(&config));
    OK(mdcom_sense_process(MUSUBI_DOMAIN_CONTROL, &count));
    WANT(count == 0);
    OK(mdcom_sense_process(MUSUBI_DOMAIN_REMOTE, &count));
    WANT(count == 1);
    GIVES(MDCOM_E_CHANNEL, mdcom_fifoch_notify(MUSUBI_FIFO_FOREIGN));
    GIVES(MDCOM_E_ALREADY, mdcom_init(&config));
    GIVES(MDCOM_E_ALREADY, init_with("/nowhere.toml", "control", 0, -1, 0));
    /* A fork has no part. */
    child = fork();
    if (child == 0) {
        all_give(MDCOM_E_FORKED);
        GIVES(MDCOM_E_FORKED, mdcom_init(&config));
        GIVES(MDCOM_E_FORKED, mdcom_term());
        _exit(0);
    }
    WANT(waitpid(child, &status, 0) == child && status == 0);
    OK(mdcom_fifoch_notify(CH));
    OK(mdcom_term());
    all_give(MDCOM_E_TERMINATED);
    GIVES(MDCOM_E_TERMINATED, mdcom_term());
    /* And again, several times. */
    for (int i = 0; i < 20; i++) {
        mdcom_block_t block;
        OK(init_with(NULL, "control", MUSUBI_PLAN_HASH, i % 2, i % 2 ? MDCOM_PREFAULT : 0));
        block = block_of(CH);
        OK(mdcom_fifoch_enqueue(CH, block));
        OK(mdcom_term());
        GIVES(MDCOM_E_TERMINATED, mdcom_fifoch_free(CH, block));
    }
    WANT(strcmp(mdcom_strerror(MDCOM_OK), "done") == 0);
    WANT(strlen(mdcom_strerror((mdcom_status_t)12345)) > 0);
}

int main(int argc, char **argv)
{
    WANT(argc == 2);
    if (strcmp(argv[1], "sender") == 0)
        sender();
    else if (strcmp(argv[1], "receiver") == 0)
        receiver();
    else if (strcmp(argv[1], "memory") == 0)
        memory();
    else
        lifecycle();
    return 0;
}
