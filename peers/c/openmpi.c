/* Open MPI: MPI_Send and MPI_Recv between two ranks on this machine. */
#define _GNU_SOURCE
#include <mpi.h>
#include <unistd.h>

#include "pingpong.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct options o = read_options(argc, argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2)
        fail("two ranks are needed");
    pin(rank);
    alarm(120);
    char *out = payload_buffer(o.bytes), *in = payload_buffer(o.bytes);
    int bytes = (int)o.bytes;
    MPI_Barrier(MPI_COMM_WORLD);
    struct samples samples = begin_samples(&o);
    for (uint64_t round = 1; round <= WARM_UP + o.samples; round++) {
        if (rank == 0) {
            mark(out, o.bytes, round);
            MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(in, o.bytes, round);
            add_sample(&samples, round);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(in, o.bytes, round);
            mark(out, o.bytes, round);
            MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0)
        report("openmpi", &o, &samples);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
