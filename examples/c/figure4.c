/*
 * The flow of the paper's figure 4: the Master sends messages, the Remote tells it that each has arrived.
 *
 *     figure4 master        in one terminal
 *     figure4 remote        in another, before or after
 */
#include <mdcom.h>
#include <musubi_talk.h> /* written by `musubi generate talk.toml` */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 5

static void check(mdcom_status_t status, const char *call)
{
    if (status != MDCOM_OK) {
        fprintf(stderr, "%s: %s\n", call, mdcom_last_error());
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

static void master(void)
{
    for (int i = 1; i <= MESSAGES; i++) {
        mdcom_block_t block;
        void *data;
        CHECK(mdcom_fifoch_alloc(MUSUBI_FIFO_GREETINGS, MDCOM_FOREVER, &block));
        CHECK(mdcom_fifoch_get(MUSUBI_FIFO_GREETINGS, block, &data));
        snprintf(data, MUSUBI_BLOCK_BYTES_GREETINGS, "greeting %d", i);
        CHECK(mdcom_fifoch_enqueue(MUSUBI_FIFO_GREETINGS, block));
        CHECK(mdcom_fifoch_notify(MUSUBI_FIFO_GREETINGS));
        /* The Remote says that it has arrived. */
        CHECK(mdcom_fifoch_wait(MUSUBI_FIFO_GREETINGS, MDCOM_MS(5000)));
    }
    printf("master: all %d have arrived\n", MESSAGES);
}

static void remote(void)
{
    for (int i = 1; i <= MESSAGES; i++) {
        mdcom_block_t block;
        void *data;
        char text[MUSUBI_BLOCK_BYTES_GREETINGS];
        CHECK(mdcom_fifoch_wait(MUSUBI_FIFO_GREETINGS, MDCOM_MS(5000)));
        CHECK(mdcom_fifoch_dequeue(MUSUBI_FIFO_GREETINGS, &block));
        CHECK(mdcom_fifoch_get(MUSUBI_FIFO_GREETINGS, block, &data));
        memcpy(text, data, sizeof text);
        text[sizeof text - 1] = '\0';
        CHECK(mdcom_fifoch_free(MUSUBI_FIFO_GREETINGS, block));
        CHECK(mdcom_fifoch_notify(MUSUBI_FIFO_GREETINGS));
        printf("remote: %s\n", text);
    }
}

int main(int argc, char **argv)
{
    int is_master = argc == 2 && strcmp(argv[1], "master") == 0;
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    config.domain = is_master ? "control" : "panel";
    config.plan_hash = MUSUBI_PLAN_HASH;
    CHECK(mdcom_init(&config));
    if (is_master)
        master();
    else
        remote();
    CHECK(mdcom_term());
    return EXIT_SUCCESS;
}
