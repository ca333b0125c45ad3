/* The machine's own limits: what two processes on two cores cannot beat.
 *
 * --mode poll: a cache line each way, written with release and read with acquire order, nothing else.
 * --mode block: a futex each way; the waiting side is asleep in the kernel.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "pingpong.h"
#include "twoprocesses.h"

/* Apart by more than the pairs of lines that some machines fetch together. */
#define APART 1024

static _Atomic uint32_t *word_of(char *shared, int side)
{
    return (_Atomic uint32_t *)(shared + APART * side);
}

static void see(_Atomic uint32_t *word, uint32_t round)
{
    while (atomic_load_explicit(word, memory_order_acquire) != round)
        ;
}

static void sleep_until(_Atomic uint32_t *word, uint32_t round)
{
    while (atomic_load_explicit(word, memory_order_acquire) != round)
        syscall(SYS_futex, word, FUTEX_WAIT, round - 1, NULL, NULL, 0);
}

static void tell(_Atomic uint32_t *word, uint32_t round)
{
    atomic_store_explicit(word, round, memory_order_release);
}

static void wake(_Atomic uint32_t *word, uint32_t round)
{
    tell(word, round);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    int memory = memfd_create("pingpong", 0);
    if (memory < 0 || ftruncate(memory, 4096) != 0)
        fail("memfd_create");
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    int blocks = strcmp(o.mode, "block") == 0;
    void (*const send)(_Atomic uint32_t *, uint32_t) = blocks ? wake : tell;
    void (*const receive)(_Atomic uint32_t *, uint32_t) = blocks ? sleep_until : see;

    struct side s = split();
    _Atomic uint32_t *mine = word_of(shared, s.number), *theirs = word_of(shared, !s.number);
    struct samples samples = begin_samples(&o);
    meet(&s);
    for (uint32_t round = 1; round <= WARM_UP + o.samples; round++) {
        if (s.number == 0) {
            send(mine, round);
            receive(theirs, round);
            add_sample(&samples, round);
        } else {
            receive(theirs, round);
            send(mine, round);
        }
    }
    join(&s);
    report(blocks ? "futex" : "cacheline", &o, &samples);
    return EXIT_SUCCESS;
}
