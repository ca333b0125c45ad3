/* One side of a conversation: peer COMMAND DOMAIN CHANNEL [COUNT] [BYTES]. */
#include "common.h"

#include <sys/epoll.h>

static mdcom_ch_t ch;
static uint32_t count;
static size_t bytes;

/* Sends COUNT messages of BYTES, or of every length up to BYTES where that is 0. */
static void send_all(void)
{
    mdcom_usage_t usage;
    OK(mdcom_sense_fifo(ch, &usage));
    for (uint32_t n = 0; n < count; n++)
        send_number(ch, n, bytes ? bytes : n % (usage.block_bytes + 1));
    drain(ch);
}

static void receive_all(void)
{
    mdcom_usage_t usage;
    OK(mdcom_sense_fifo(ch, &usage));
    for (uint32_t n = 0; n < count;) {
        mdcom_block_t block;
        size_t got, again;
        void *data;
        OK(mdcom_fifoch_wait(ch, MDCOM_MS(20000)));
        while (mdcom_fifoch_dequeue_len(ch, &block, &got) == MDCOM_OK) {
            OK(mdcom_fifoch_get_len(ch, block, &data, &again));
            WANT(got == again && got == (bytes ? bytes : n % (usage.block_bytes + 1)));
            WANT((uintptr_t)data % 16 == 0);
            WANT(is_filled(data, got, n));
            OK(mdcom_fifoch_free(ch, block));
            n++;
        }
    }
}

/* Holds all blocks of the channel at once, frees them in another order, and so on. */
static void receive_in_bundles(void)
{
    mdcom_usage_t usage;
    OK(mdcom_sense_fifo(ch, &usage));
    for (uint32_t n = 0; n < count; n += usage.blocks) {
        mdcom_block_t blocks[64];
        WANT(usage.blocks <= 64);
        for (uint32_t i = 0; i < usage.blocks; i++) {
            OK(mdcom_fifoch_wait(ch, MDCOM_MS(20000)));
            OK(mdcom_fifoch_dequeue(ch, &blocks[i]));
        }
        OK(mdcom_sense_fifo(ch, &usage));
        WANT(usage.held == usage.blocks);
        for (uint32_t i = 0; i < usage.blocks; i++) {
            uint32_t other = (i * 3 + 1) % usage.blocks;
            void *data;
            OK(mdcom_fifoch_get(ch, blocks[other], &data));
            WANT(is_filled(data, bytes, n + other));
            OK(mdcom_fifoch_free(ch, blocks[other]));
        }
    }
}

/* The same at the sender: all blocks are written before the first is sent. */
static void send_in_bundles(void)
{
    mdcom_usage_t usage;
    OK(mdcom_sense_fifo(ch, &usage));
    for (uint32_t n = 0; n < count; n += usage.blocks) {
        mdcom_block_t blocks[64];
        WANT(usage.blocks <= 64);
        for (uint32_t i = 0; i < usage.blocks; i++) {
            void *data;
            blocks[i] = block_of(ch);
            OK(mdcom_fifoch_get(ch, blocks[i], &data));
            fill(data, bytes, n + i);
        }
        mdcom_block_t none;
        GIVES(MDCOM_E_NO_BLOCK, mdcom_fifoch_alloc(ch, MDCOM_POLL, &none));
        for (uint32_t i = 0; i < usage.blocks; i++)
            OK(mdcom_fifoch_enqueue_len(ch, blocks[i], bytes));
        OK(mdcom_fifoch_notify(ch));
    }
    drain(ch);
}

/* Sleeps in epoll until one of these bits is there. */
static void sleep_until(int loop, uint32_t wanted)
{
    uint64_t limit = now_ms() + 20000;
    uint32_t ready;
    OK(mdcom_fifoch_arm(ch, &ready));
    while (!(ready & wanted)) {
        struct epoll_event event;
        WANT(now_ms() < limit);
        WANT(epoll_wait(loop, &event, 1, 20000) == 1);
        OK(mdcom_fifoch_arm(ch, &ready));
    }
}

/* Sends as `send` does, but waits in an event loop only; then waits for an event, and for the receiver's end. */
static void send_in_event_loop(void)
{
    int fd, loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    mdcom_status_t status;
    OK(mdcom_fifoch_fd(ch, &fd));
    WANT(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) == 0);
    for (uint32_t n = 0; n < count; n++) {
        mdcom_block_t block;
        void *data;
        while ((status = mdcom_fifoch_alloc(ch, MDCOM_POLL, &block)) == MDCOM_E_NO_BLOCK)
            sleep_until(loop, MDCOM_READY_BLOCK);
        OK(status);
        OK(mdcom_fifoch_get(ch, block, &data));
        fill(data, bytes, n);
        OK(mdcom_fifoch_enqueue_len(ch, block, bytes));
        OK(mdcom_fifoch_notify(ch));
    }
    sleep_until(loop, MDCOM_READY_EVENT);
    OK(mdcom_fifoch_wait(ch, MDCOM_POLL));
    sleep_until(loop, MDCOM_READY_PEER);
    GIVES(MDCOM_E_PEER, mdcom_fifoch_wait(ch, MDCOM_POLL));
    GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_wait(ch, MDCOM_POLL));
    close(fd);
    close(loop);
}

/* The other side of that, also in an event loop. */
static void receive_in_event_loop(void)
{
    int fd, loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    OK(mdcom_fifoch_fd(ch, &fd));
    WANT(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) == 0);
    for (uint32_t n = 0; n < count;) {
        mdcom_block_t block;
        void *data;
        sleep_until(loop, MDCOM_READY_EVENT);
        while (mdcom_fifoch_dequeue(ch, &block) == MDCOM_OK) {
            OK(mdcom_fifoch_get(ch, block, &data));
            WANT(is_filled(data, bytes, n));
            OK(mdcom_fifoch_free(ch, block));
            n++;
        }
    }
    OK(mdcom_fifoch_notify(ch));
    sleep_ms(100);
    close(fd);
    close(loop);
}

/* Answers each message with an event until the sender goes. */
static void echo(void)
{
    for (;;) {
        mdcom_block_t block;
        mdcom_status_t status = mdcom_fifoch_wait(ch, MDCOM_MS(20000));
        if (status == MDCOM_E_PEER)
            return;
        OK(status);
        while (mdcom_fifoch_dequeue(ch, &block) == MDCOM_OK)
            OK(mdcom_fifoch_free(ch, block));
        OK(mdcom_fifoch_notify(ch));
    }
}

/* The paper's example: only every second request is passed on; none is held back for ever. */
static void filter(void)
{
    mdcom_filter_t every_second = MDCOM_FILTER_EVERY(2);
    uint64_t begin;
    every_second.latest = MDCOM_MS(700);
    OK(mdcom_filter_set(ch, &every_second));
    for (uint32_t n = 0; n < 10; n += 2) {
        send_number(ch, n, 4);
        GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_wait(ch, MDCOM_MS(50)));
        send_number(ch, n + 1, 4);
        OK(mdcom_fifoch_wait(ch, MDCOM_MS(5000)));
    }
    begin = now_ms();
    send_number(ch, 10, 4);
    OK(mdcom_fifoch_wait(ch, MDCOM_MS(5000)));
    WANT(now_ms() - begin >= 650 && now_ms() - begin < 700 + SLACK_MS);
    OK(mdcom_fifoch_filter_set(ch, NULL));
    for (uint32_t n = 11; n < 20; n++) {
        begin = now_ms();
        send_number(ch, n, 4);
        OK(mdcom_fifoch_wait(ch, MDCOM_MS(5000)));
        WANT(now_ms() - begin < SLACK_MS);
    }
}

/* How long waits take at the sender, whose peer is `echo`, and what they give. */
static void sender_times(void)
{
    mdcom_block_t blocks[4], none;
    uint64_t begin = now_ms();
    GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_wait(ch, MDCOM_POLL));
    for (int i = 0; i < 4; i++)
        OK(mdcom_fifoch_alloc(ch, MDCOM_POLL, &blocks[i]));
    GIVES(MDCOM_E_NO_BLOCK, mdcom_fifoch_alloc(ch, MDCOM_POLL, &none));
    WANT(now_ms() - begin < SLACK_MS);
    for (unsigned ms = 1; ms <= 125; ms *= 5) {
        begin = now_ms();
        GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_alloc(ch, MDCOM_MS(ms), &none));
        WANT(now_ms() - begin >= ms - 1 && now_ms() - begin < ms + SLACK_MS);
        begin = now_ms();
        GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_wait(ch, MDCOM_US(1000u * ms)));
        WANT(now_ms() - begin >= ms - 1 && now_ms() - begin < ms + SLACK_MS);
    }
    OK(mdcom_fifoch_enqueue_len(ch, blocks[0], 4));
    OK(mdcom_fifoch_notify(ch));
    begin = now_ms();
    OK(mdcom_fifoch_alloc(ch, MDCOM_FOREVER, &none));
    OK(mdcom_fifoch_wait(ch, MDCOM_FOREVER));
    WANT(now_ms() - begin < SLACK_MS);
}

/* The same at the receiver, whose peer sends one message when this one has notified it. */
static void receiver_times(void)
{
    mdcom_block_t block;
    uint64_t begin = now_ms();
    GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_wait(ch, MDCOM_POLL));
    GIVES(MDCOM_E_EMPTY, mdcom_fifoch_dequeue(ch, &block));
    WANT(now_ms() - begin < SLACK_MS);
    for (unsigned ms = 1; ms <= 125; ms *= 5) {
        begin = now_ms();
        GIVES(MDCOM_E_TIMEOUT, mdcom_fifoch_wait(ch, MDCOM_MS(ms)));
        WANT(now_ms() - begin >= ms - 1 && now_ms() - begin < ms + SLACK_MS);
    }
    OK(mdcom_fifoch_notify(ch));
    begin = now_ms();
    OK(mdcom_fifoch_wait(ch, MDCOM_FOREVER));
    WANT(now_ms() - begin < SLACK_MS);
    OK(mdcom_fifoch_dequeue(ch, &block));
    OK(mdcom_fifoch_free(ch, block));
}

static void send_when_notified(void)
{
    OK(mdcom_fifoch_wait(ch, MDCOM_FOREVER));
    send_number(ch, 0, 4);
    drain(ch);
}

/* Writes the number of each message to standard output before it gives it back; never ends by itself. */
static void report(void)
{
    for (;;) {
        mdcom_block_t block;
        void *data;
        mdcom_status_t status = mdcom_fifoch_wait(ch, MDCOM_MS(20000));
        if (status == MDCOM_E_PEER)
            continue;
        OK(status);
        while (mdcom_fifoch_dequeue(ch, &block) == MDCOM_OK) {
            OK(mdcom_fifoch_get(ch, block, &data));
            WANT(write(STDOUT_FILENO, data, 4) == 4);
            OK(mdcom_fifoch_free(ch, block));
        }
    }
}

/* Adds one to a counter under the lock, COUNT times. */
static void add(void)
{
    void *data;
    volatile uint64_t *counter;
    OK(mdcom_smemch_get(ch, &data));
    counter = data;
    for (uint32_t n = 0; n < count; n++) {
        if (n % 2 || mdcom_smemch_trylock(ch) != MDCOM_OK)
            OK(mdcom_smemch_lock(ch, MDCOM_MS(20000)));
        *counter = *counter + 1;
        OK(mdcom_smemch_unlock(ch));
    }
    /* The memory lives as long as a member: wait for the other. */
    for (uint64_t limit = now_ms() + 20000; *counter < 2u * count; sleep_ms(1))
        WANT(now_ms() < limit);
    WANT(*counter == 2u * count);
    sleep_ms(50);
}

/* Another process of the domain has this end. */
static void is_busy(void)
{
    mdcom_usage_t usage;
    GIVES(MDCOM_E_BUSY, mdcom_sense_fifo(ch, &usage));
    GIVES(MDCOM_E_BUSY, mdcom_fifoch_wait(ch, MDCOM_FOREVER));
    GIVES(MDCOM_E_BUSY, mdcom_fifoch_notify(ch));
}

/* Takes the lock and waits to be killed. */
static void hold(void)
{
    OK(mdcom_smemch_lock(ch, MDCOM_MS(5000)));
    WANT(write(STDOUT_FILENO, "held", 4) == 4);
    pause();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } commands[] = {
        { "send", send_all },           { "receive", receive_all },
        { "send-bundles", send_in_bundles }, { "receive-bundles", receive_in_bundles },
        { "send-events", send_in_event_loop }, { "receive-events", receive_in_event_loop },
        { "echo", echo },               { "filter", filter },
        { "sender-times", sender_times }, { "receiver-times", receiver_times },
        { "send-when-notified", send_when_notified }, { "report", report },
        { "is-busy", is_busy },         { "add", add },                 { "hold", hold },
    };
    WANT(argc >= 4);
    count = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
    bytes = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
    attach(argv[2]);
    if (mdcom_fifoch_find(argv[3], &ch) != MDCOM_OK)
        OK(mdcom_smemch_find(argv[3], &ch));
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            commands[i].run();
            OK(mdcom_term());
            return 0;
        }
    fprintf(stderr, "no command %s\n", argv[1]);
    return 1;
}
