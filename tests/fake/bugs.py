"""Each seeded bug of streams/cuda (bugs.txt) is found by the contract of streams/ on the fake CUDA, with these words.

    bugs.py STREAMS			that program of this folder; under the thread sanitizer --thread
"""
import os
import re
import subprocess
import sys

LIMIT = 100  # seconds

# name: what says so; and what says so under the thread sanitizer, if that comes first
BUGS = {
    "cuda_wait_left_out": (r"FAILED.*t2_a_wait_orders_two_streams", r"data race"),
    "cuda_event_forgotten": (r"fake CUDA: at the end: event \d+ was not destroyed", None),
    "cuda_graph_destroyed_early": (r"fake CUDA: cuda\w+: graph \d+ was destroyed by cudaGraphDestroy, called from .*graph_make", None),
    "cuda_order_left_out": (r"FAILED.*t13_a_fork_that_is_joined_is_captured", None),
}


def run(program, bug):
    environment = {**os.environ, **({"WEIR_MUTANT": bug} if bug else {})}
    ended = subprocess.run(
        [program, "cuda"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=LIMIT
    )
    return ended.returncode, ended.stdout


def main(program, thread):
    code, said = run(program, None)
    failed = [] if code == 0 else [f"without a bug: exit code {code}: {said[-600:]}"]
    for name, (words, race) in BUGS.items():
        code, said = run(program, name)
        if code == 0 or not re.search(race if thread and race else words, said):
            failed.append(f"{name} was not found: exit code {code}: {said[-600:]}")
        else:
            print(f"found: {name}")
    print(*failed, sep="\n")
    sys.exit(bool(failed))


main(sys.argv[1], "--thread" in sys.argv)
