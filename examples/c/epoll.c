/*
 * A receiver in an event loop: one epoll set watches a channel and anything else. Plays the Remote of figure4.c.
 *
 *     figure4 master        in one terminal
 *     epoll                 in another, before or after
 */
#include <mdcom.h>
#include <musubi_talk.h> /* written by `musubi generate talk.toml` */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MESSAGES 5

static void check(mdcom_status_t status, const char *call)
{
    if (status != MDCOM_OK) {
        fprintf(stderr, "%s: %s\n", call, mdcom_last_error());
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

/* Takes all messages that are there; gives how many. */
static int receive_all(void)
{
    mdcom_status_t status;
    mdcom_block_t block;
    int count = 0;
    while ((status = mdcom_fifoch_dequeue(MUSUBI_FIFO_GREETINGS, &block)) == MDCOM_OK) {
        char text[MUSUBI_BLOCK_BYTES_GREETINGS];
        void *data;
        CHECK(mdcom_fifoch_get(MUSUBI_FIFO_GREETINGS, block, &data));
        memcpy(text, data, sizeof text);
        text[sizeof text - 1] = '\0';
        CHECK(mdcom_fifoch_free(MUSUBI_FIFO_GREETINGS, block));
        CHECK(mdcom_fifoch_notify(MUSUBI_FIFO_GREETINGS));
        printf("epoll: %s\n", text);
        count++;
    }
    if (status != MDCOM_E_EMPTY)
        check(status, "mdcom_fifoch_dequeue");
    return count;
}

int main(void)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    struct epoll_event event = { .events = EPOLLIN };
    int loop = epoll_create1(EPOLL_CLOEXEC);
    int fd, received = 0;

    config.domain = "panel";
    config.plan_hash = MUSUBI_PLAN_HASH;
    CHECK(mdcom_init(&config));
    CHECK(mdcom_fifoch_fd(MUSUBI_FIFO_GREETINGS, &fd));
    if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) != 0) {
        perror("epoll");
        return EXIT_FAILURE;
    }
    while (received < MESSAGES) {
        uint32_t ready;
        CHECK(mdcom_fifoch_arm(MUSUBI_FIFO_GREETINGS, &ready));
        if (!(ready & MDCOM_READY_EVENT) && epoll_wait(loop, &event, 1, 5000) == 0) {
            fprintf(stderr, "nothing came for 5 s\n");
            return EXIT_FAILURE;
        }
        received += receive_all();
    }
    close(fd);
    close(loop);
    CHECK(mdcom_term());
    return EXIT_SUCCESS;
}
