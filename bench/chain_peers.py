#!/usr/bin/env python3
"""Instructions and locked instructions a tick of a chain of empty stages, in weir's peers, by callgrind, as tests/bench/instructions.py counts weir's.

    chain_peers.py [--entities N] [--taskflow FOLDER]

Needs a C++ compiler, valgrind and objdump; libtbb-dev for oneTBB, a clone of Taskflow (its headers) for Taskflow. One thread computes; all are
counted. Two runs of different lengths, so that starts and ends are not in it.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent / "tests/bench"))
import instructions

SHORT, LONG = 2000, 12000


def built(peer, folder, *flags):
    program = f"{folder}/{peer}"
    subprocess.run(["cc", "-O2", f"-DPEER={peer}", "-c", BENCH / "chain_once.c", "-o", f"{program}.o"], check=True)
    subprocess.run(["c++", "-O2", "-std=c++20", BENCH / f"chain_{peer}.cpp", f"{program}.o", "-o", program, *flags, "-pthread"], check=True)
    return program


def counted(program, entities, messages):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*instructions.tool(folder), program, str(entities), str(messages)], check=True, capture_output=True)
        threads = [instructions.read(path, None) for path in pathlib.Path(folder).glob("out-*")]
    return [sum(thread[i] for thread in threads) for i in (0, 1)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entities", type=int, default=8)
    parser.add_argument("--taskflow")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = {"oneTBB": built("tbb", folder, "-ltbb")}
        if given.taskflow:
            programs["Taskflow"] = built("taskflow", folder, f"-I{given.taskflow}")
        for name, program in programs.items():
            few, many = (counted(program, given.entities, messages) for messages in (SHORT, LONG))
            per_tick = [(b - a) / ((LONG - SHORT) * given.entities) for a, b in zip(few, many)]
            print(f"  {name:10} {per_tick[0]:8.1f} instructions, {per_tick[1]:5.2f} locked, a tick of {given.entities} stages", flush=True)


if __name__ == "__main__":
    main()
