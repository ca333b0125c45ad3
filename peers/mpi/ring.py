"""Messages around a ring, sums, objects, and writes to the others' memory; every result is compared with what it must be.

Prints "one_way_us N" and "wrong N"; exit code 1 if anything was wrong.
"""
import sys

import numpy
from mpi4py import MPI

ROUNDS = 1000
WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
LEFT, RIGHT = (RANK - 1) % RANKS, (RANK + 1) % RANKS


def around(count):
    wrong = 0
    for turn in range(10):
        out = numpy.full(count, RANK + turn, dtype="u1")
        into = numpy.zeros(count, dtype="u1")
        WORLD.Sendrecv(out, RIGHT, recvbuf=into, source=LEFT)
        wrong += int(not (into == LEFT + turn).all())
    return wrong


def objects():
    told = WORLD.sendrecv({"rank": RANK, "text": "x" * 50_000}, RIGHT, source=LEFT)
    return int(told != {"rank": LEFT, "text": "x" * 50_000})


def memory():
    words = numpy.zeros(64, dtype="i8")
    own = numpy.array([RANK + 1], dtype="i8")
    window = MPI.Win.Create(words, disp_unit=8, comm=WORLD)
    window.Fence()
    window.Put(own, RIGHT, target=RANK)
    window.Accumulate(own, 0, target=63, op=MPI.SUM)
    window.Fence()
    wrong = int(words[LEFT] != LEFT + 1) + int(RANK == 0 and words[63] != RANKS * (RANKS + 1) // 2)
    window.Free()
    return wrong


def one_way_us():
    byte = numpy.zeros(1, dtype="u1")
    begin = MPI.Wtime()
    for _ in range(ROUNDS if RANK < 2 else 0):
        if RANK == 0:
            WORLD.Send(byte, 1)
        WORLD.Recv(byte, 1 - RANK)
        if RANK == 1:
            WORLD.Send(byte, 0)
    return (MPI.Wtime() - begin) / ROUNDS / 2 * 1e6


wrong = sum(around(count) for count in (1, 64, 1000, 16_000, 20_000, 200_000, 1 << 20))
wrong += int(WORLD.allreduce(RANK + 1) != RANKS * (RANKS + 1) // 2)
wrong += objects() + memory()
us = one_way_us()
wrong = WORLD.allreduce(wrong)
if RANK == 0:
    print(f"one_way_us {us:.2f}\nwrong {wrong}", flush=True)
sys.exit(wrong != 0)
