/*
 * An SMEM channel: the panel sets parameters, the control loop takes them over; the lock keeps them consistent.
 *
 *     parameters control    in one terminal
 *     parameters panel      in another, before or after
 */
#define _POSIX_C_SOURCE 200809L
#include <mdcom.h>
#include <musubi_talk.h> /* written by `musubi generate talk.toml` */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct parameters {
    uint32_t version;  /* counts the panel's changes; 0: never set */
    uint32_t accepted; /* the version that the control loop uses */
    double gain;
    double limit;
};

static const struct timespec period = { 0, 1000000 };

static void check(mdcom_status_t status, const char *call)
{
    if (status != MDCOM_OK) {
        fprintf(stderr, "%s: %s\n", call, mdcom_last_error());
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

static void panel(struct parameters *shared)
{
    uint32_t version, accepted = 0;
    CHECK(mdcom_smemch_lock(MUSUBI_SMEM_PARAMETERS, MDCOM_MS(1000)));
    shared->gain = 2.5;
    shared->limit = 100;
    version = ++shared->version;
    CHECK(mdcom_smemch_unlock(MUSUBI_SMEM_PARAMETERS));
    for (int i = 0; i < 5000 && accepted != version; i++) {
        nanosleep(&period, NULL);
        CHECK(mdcom_smemch_lock(MUSUBI_SMEM_PARAMETERS, MDCOM_MS(1000)));
        accepted = shared->accepted;
        CHECK(mdcom_smemch_unlock(MUSUBI_SMEM_PARAMETERS));
    }
    if (accepted != version)
        exit(EXIT_FAILURE);
    printf("panel: version %u is in use\n", (unsigned)version);
}

/* A control loop must not wait, so it only tries, and goes on with what it has while the panel is writing. */
static void control(struct parameters *shared)
{
    struct parameters now = { 0, 0, 1, 10 };
    for (int i = 0; i < 5000 && now.version == 0; i++) {
        if (mdcom_smemch_trylock(MUSUBI_SMEM_PARAMETERS) == MDCOM_OK) {
            now = *shared;
            shared->accepted = now.version;
            CHECK(mdcom_smemch_unlock(MUSUBI_SMEM_PARAMETERS));
        }
        nanosleep(&period, NULL);
    }
    if (now.version == 0)
        exit(EXIT_FAILURE);
    printf("control: gain %g, limit %g\n", now.gain, now.limit);
}

int main(int argc, char **argv)
{
    int is_control = argc == 2 && strcmp(argv[1], "control") == 0;
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    void *data;
    config.domain = is_control ? "control" : "panel";
    config.plan_hash = MUSUBI_PLAN_HASH;
    CHECK(mdcom_init(&config));
    CHECK(mdcom_smemch_get(MUSUBI_SMEM_PARAMETERS, &data));
    if (is_control)
        control(data);
    else
        panel(data);
    CHECK(mdcom_term());
    return EXIT_SUCCESS;
}
