/* What every ping-pong in C shares: options, pinning, the clock, the payload's marks, and the statistics.
 *
 * The measured loop is the same everywhere: ping writes the round's number into the first and the last cache line of
 * the payload and sends; pong receives, checks both, writes both into its own payload and sends it back; ping receives
 * and checks. A sample is the time from one completed round to the next; half of it is called one way.
 */
#ifndef PINGPONG_H
#define PINGPONG_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Largest payload in bytes. */
#define PAYLOAD_BYTES_MAX (1u << 20)
/* Rounds before the first sample. */
#define WARM_UP 2000u

struct options {
    const char *mode;  /* what to measure, where a program can do several things */
    size_t bytes;      /* payload of a message, at least 8 */
    uint32_t samples;  /* rounds that count */
    const char *raw;   /* file that receives every sample: round trips in ns, 32-bit, in the machine's byte order */
};

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, errno != 0 ? strerror(errno) : "failed");
    exit(EXIT_FAILURE);
}

/* Reads --mode, --bytes, --samples and --raw. */
static struct options read_options(int argc, char **argv)
{
    struct options o = { .mode = "poll", .bytes = 8, .samples = 20000, .raw = NULL };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--mode") == 0)
            o.mode = argv[i + 1];
        else if (strcmp(argv[i], "--bytes") == 0)
            o.bytes = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--samples") == 0)
            o.samples = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--raw") == 0)
            o.raw = argv[i + 1];
        else
            fail(argv[i]);
    }
    if (o.bytes < 8 || o.bytes > PAYLOAD_BYTES_MAX || o.samples == 0)
        fail("--bytes must be 8 to 1048576, --samples at least 1");
    return o;
}

/* Pins the caller to the side-th core that it may use. */
static void pin(int side)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        fail("sched_getaffinity");
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || seen++ != side)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            fail("sched_setaffinity");
        return;
    }
    fail("two cores are needed");
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Marks the first and the last cache line of a payload. */
static inline void mark(void *payload, size_t bytes, uint64_t round)
{
    memcpy(payload, &round, sizeof round);
    memcpy((char *)payload + bytes - sizeof round, &round, sizeof round);
}

/* Checks both marks. */
static inline void check(const void *payload, size_t bytes, uint64_t round)
{
    uint64_t first, last;
    memcpy(&first, payload, sizeof first);
    memcpy(&last, (const char *)payload + bytes - sizeof last, sizeof last);
    if (first != round || last != round)
        fail("a payload is wrong");
}

/* A payload buffer, touched, on a page boundary. */
static inline void *payload_buffer(size_t bytes)
{
    void *buffer = NULL;
    if (posix_memalign(&buffer, 4096, (bytes + 4095) / 4096 * 4096) != 0)
        fail("posix_memalign");
    memset(buffer, 0, bytes);
    return buffer;
}

struct samples {
    uint32_t *rtt_ns;
    uint32_t n;
    uint64_t before_ns;
};

static struct samples begin_samples(const struct options *o)
{
    struct samples s = { .rtt_ns = malloc(o->samples * sizeof(uint32_t)) };
    if (s.rtt_ns == NULL)
        fail("malloc");
    memset(s.rtt_ns, 0, o->samples * sizeof(uint32_t));
    s.before_ns = now_ns();
    return s;
}

/* Notes that a round is complete. */
static inline void add_sample(struct samples *s, uint64_t round)
{
    uint64_t now = now_ns();
    if (round > WARM_UP)
        s->rtt_ns[s->n++] = now - s->before_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)(now - s->before_ns);
    s->before_ns = now;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Writes the samples to the file, and one JSON line of one-way times to standard output. */
static void report(const char *peer, const struct options *o, struct samples *s)
{
    if (o->raw != NULL) {
        FILE *file = fopen(o->raw, "wb");
        if (file == NULL || fwrite(s->rtt_ns, sizeof(uint32_t), s->n, file) != s->n || fclose(file) != 0)
            fail(o->raw);
    }
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->rtt_ns[i];
    qsort(s->rtt_ns, s->n, sizeof(uint32_t), compare);
    printf("{\"peer\":\"%s\",\"mode\":\"%s\",\"bytes\":%zu,\"unit\":\"ns\",\"n\":%u,\"p50\":%.1f,\"p99\":%.1f,"
           "\"p999\":%.1f,\"max\":%.1f,\"mean\":%.1f}\n",
           peer, o->mode, o->bytes, s->n, s->rtt_ns[s->n / 2] / 2.0, s->rtt_ns[(uint64_t)s->n * 99 / 100] / 2.0,
           s->rtt_ns[(uint64_t)s->n * 999 / 1000] / 2.0, s->rtt_ns[s->n - 1] / 2.0, sum / s->n / 2.0);
    fflush(stdout);
}

#endif
