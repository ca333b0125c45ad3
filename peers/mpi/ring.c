/* Messages around a ring, sums, and writes to the others' memory; every result is compared with what it must be.
 * Prints "one_way_us N" and "wrong N"; exit code 1 if anything was wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 10, ROUNDS = 1000, WORDS = 64 };

static int rank, ranks;

static int around(size_t bytes)
{
    char *out = malloc(bytes), *in = malloc(bytes);
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, wrong = 0;
    for (int turn = 0; turn < REPEATS; turn++) {
        memset(out, rank + turn, bytes);
        MPI_Sendrecv(out, (int)bytes, MPI_CHAR, right, 7, in, (int)bytes, MPI_CHAR, left, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (size_t at = 0; at < bytes; at++)
            if (in[at] != (char)(left + turn)) {
                wrong++;
                break;
            }
    }
    free(out);
    free(in);
    return wrong;
}

static int sums(void)
{
    long own = rank + 1, all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all != (long)ranks * (ranks + 1) / 2;
}

static int memory(void)
{
    long own = rank + 1, *words;
    int left = (rank + ranks - 1) % ranks, wrong = 0;
    MPI_Win window;
    MPI_Win_allocate(WORDS * sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
    MPI_Win_fence(0, window);
    memset(words, 0, WORDS * sizeof *words);
    MPI_Win_fence(0, window);
    MPI_Put(&own, 1, MPI_LONG, (rank + 1) % ranks, rank, 1, MPI_LONG, window);
    MPI_Accumulate(&own, 1, MPI_LONG, 0, WORDS - 1, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_fence(0, window);
    wrong += words[left] != left + 1;
    wrong += rank == 0 && words[WORDS - 1] != (long)ranks * (ranks + 1) / 2;
    MPI_Win_free(&window);
    return wrong;
}

static double one_way_us(void)
{
    char byte = 0;
    double begin = MPI_Wtime();
    for (int round = 0; round < ROUNDS && rank < 2; round++) {
        if (rank == 0)
            MPI_Send(&byte, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&byte, 1, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begin) / ROUNDS / 2 * 1e6;
}

int main(int argc, char **argv)
{
    int wrong = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t bytes = 1; bytes <= 2 << 20; bytes *= 4)
        wrong += around(bytes);
    wrong += sums();
    wrong += memory();
    double us = one_way_us();
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("one_way_us %.2f\nwrong %d\n", us, all);
    MPI_Finalize();
    return all != 0;
}
