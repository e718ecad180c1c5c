"""Each seeded bug of streams/cuda (bugs.txt) is found by the contract of streams/ on the fake CUDA, with these words.

    bugs.py STREAMS			that program of this folder; under the thread sanitizer --thread
"""
import os
import re
import subprocess
import sys

LIMIT = 100  # seconds

# name: the tests that run; what is said then, and what under the thread sanitizer, if that comes first
BUGS = {
    "cuda_wait_left_out": ("t2_*", r"FAILED.*t2_a_wait_orders_two_streams", r"data race"),
    "cuda_event_forgotten": ("t13_*", r"fake CUDA: at the end: event \d+ was not destroyed", None),
    "cuda_graph_destroyed_early": ("t13_*", r"fake CUDA: cuda\w+: graph \d+ was destroyed by cudaGraphDestroy, called from", None),
    "cuda_order_left_out": ("t13_*", r"FAILED.*t13_a_fork_that_is_joined_is_captured", r"data race"),
}


def run(program, only, **more):
    environment = {**os.environ, "RIG_ONLY": only, **more}
    ended = subprocess.run(
        [program, "cuda"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=LIMIT
    )
    return ended.returncode, ended.stdout


def check(program, thread, name):
    """What is wrong, or None."""
    only, words, race = BUGS[name]
    code, said = run(program, only)
    if code:
        return f"{only} fails without a bug: exit code {code}: {said[-600:]}"
    code, said = run(program, only, WEIR_MUTANT=name)
    if code == 0 or not re.search(race if thread and race else words, said):
        return f"{name} was not found: exit code {code}: {said[-600:]}"
    print(f"found: {name}")
    return None


def main(program, thread):
    faults = [fault for fault in (check(program, thread, name) for name in BUGS) if fault]
    print(*faults, sep="\n")
    sys.exit(bool(faults))


main(sys.argv[1], "--thread" in sys.argv)
