"""Seeded bugs of streams/cuda (bugs.txt) are found on the fake CUDA, with these words: by its own test of the backend, or by a test of the
contract of streams/. scripts/mutants tries all of them, with more tests.

    bugs.py FOLDER			of the programs for the fake CUDA; under the thread sanitizer --thread
"""
import concurrent.futures
import os
import re
import subprocess
import sys

LIMIT = 100  # seconds
RUNS = 5
RACE = "data race"
ORDER, CAPTURE = "t1_a_stream_keeps_its_order", "t13_captured_work_runs_at_each_launch_and_not_before"


def left(what):
    return rf"fake CUDA: at the end: {what} was not destroyed"


# name: a test of the contract, or None: all of test_backend; what is said; True: under the thread sanitizer it is a race
BUGS = {
    "cuda_wait_left_out": ("t2_a_wait_orders_two_streams", "FAILED", True),
    "cuda_order_left_out": ("t13_a_fork_that_is_joined_is_captured", "FAILED", True),
    "cuda_busy_is_done": (ORDER, "FAILED", True),
    "cuda_copy_elsewhere": (ORDER, "FAILED", True),
    "cuda_flag_early": ("g4_a_flag_is_written_when_the_work_before_it_is_done", "FAILED", True),
    "cuda_graph_destroyed_early": (CAPTURE, r"fake CUDA: cuda\w+: graph \d+ was destroyed by cudaGraphDestroy, called from", False),
    "cuda_probe_destroyed": (None, r"fake CUDA: cudaEventDestroy: event \d+ was destroyed by", False),
    "cuda_default_destroyed": (None, "fake CUDA: cudaStreamDestroy: 0x1 is no handle of a stream", False),
    "cuda_event_forgotten": (CAPTURE, left(r"event \d+"), False),
    "cuda_exec_forgotten": (CAPTURE, left(r"executable \d+"), False),
    "cuda_graph_forgotten": (None, left(r"graph \d+"), False),
    "cuda_stream_forgotten": (ORDER, left(r"stream \d+"), False),
    "cuda_event_kept": (ORDER, left(r"event \d+"), False),
    "cuda_pinned_forgotten": (ORDER, r"fake CUDA: at the end: \d+ bytes at \w+ were not freed; cudaHostAlloc", False),
    "cuda_clock_forgotten": ("t15_a_copy_begins_a_span", left(r"stream \d+"), False),
    "cuda_partition_forgotten": ("t1_streams_of_all_partitions_run", left(r"green context \d+"), False),
    "cuda_flag_trial_leaks": (None, left(r"stream \d+"), False),
    "cuda_device_stays": (None, "FAILED.*a_call_leaves_the_threads_device", False),
    "cuda_mode_stays": (None, "FAILED.*a_call_leaves_the_threads_device", False),
    "cuda_device_not_set": (None, "FAILED.*a_call_leaves_the_threads_device", False),
    "cuda_mode_not_relaxed": (None, "FAILED.*a_call_leaves_the_threads_device", False),
    "cuda_capture_mode_stays": (None, "FAILED.*t13_a_capture_leaves_the_threads_capture_mode", False),
    "cuda_error_stays": (None, "FAILED.*an_error_of_one_call_does_not_stay", False),
    "cuda_older_error_told": (None, "FAILED.*a_launch_is_not_told_an_older_error", False),
}


def run(folder, only, **more):
    command = [os.path.join(folder, "streams"), "cuda"] if only else [os.path.join(folder, "test_backend")]
    environment = {**os.environ, **({"RIG_ONLY": only} if only else {}), **more}
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=LIMIT)
    return ended.returncode, ended.stdout


def without(folder, only):
    """What is wrong without a bug, or None."""
    code, said = run(folder, only)
    return f"{only or 'test_backend'} fails without a bug: exit code {code}: {said[-600:]}" if code else None


def find(folder, thread, name):
    """What is wrong, or None. On a busy machine threads may run in the right order by chance, so a race has a few runs."""
    only, words, race = BUGS[name]
    for _ in range(RUNS if race else 1):
        code, said = run(folder, only, WEIR_MUTANT=name)
        if code and re.search(RACE if thread and race else words, said):
            return None
    return f"{name} was not found: exit code {code}: {said[-600:]}"


def main(folder, thread):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = list(pool.map(lambda only: without(folder, only), {only for only, _, _ in BUGS.values()}))
        faults += pool.map(lambda name: find(folder, thread, name), BUGS)
    faults = [fault for fault in faults if fault]
    print(f"{len(BUGS)} bugs", *faults, sep="\n")
    sys.exit(bool(faults))


main(sys.argv[1], "--thread" in sys.argv)
