"""Descriptors or memory run out: the program gets an exception and goes on, and what it makes later works."""

import os
import subprocess
import sys

import pytest

FAILING_MALLOC = os.environ.get("WEIR_FAILING_MALLOC")
LIMIT = 64

BEGIN = f"""
import os, resource, sys, threading
import weir

@weir.operator
class Numbers:
    outputs = ["out"]
    def compute(self, ctx):
        ctx.emit("out", weir.Object({{"tick": ctx.tick, "texts": ["a long text that needs memory of its own"] * 3}}))
        if ctx.tick == 2:
            ctx.finish()

@weir.operator
class Gather:
    inputs = ["in"]
    parameters = {{"name_of_the_file": "a default that is longer than a short string"}}
    def compute(self, ctx):
        seen.append(ctx.receive("in").object["tick"])

GRAPH = {{"weir": 1, "entities": [{{"name": "numbers_of_ticks_in_order", "operator": "Numbers"}}, {{"name": "gather", "operator": "Gather"}}],
         "connections": [["numbers_of_ticks_in_order.out", "gather.in"]]}}
seen = []

def live():
    seen.clear()
    with weir.Graph(GRAPH, set=["gather.name_of_the_file=another text that is long"]) as graph:
        outcome = graph.run(workers=2)
    assert seen == [0, 1, 2] and outcome.status == weir.Status.OK

def try_to_live():
    try:
        live()
        return ""
    except (MemoryError, weir.Error, OSError) as error:
        return str(error) or type(error).__name__

def take():
    held = []
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        return held

live()
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
"""


def script(text, **settings):
    return subprocess.run([sys.executable, "-c", BEGIN + text], capture_output=True, text=True, timeout=100,
                          env={**os.environ, **settings})


def test_f42_without_descriptors_the_program_goes_on():
    found = script("""
for free in range(13):
    held = take()
    for _ in range(free):
        os.close(held.pop())
    print(free, try_to_live())
    for fd in held:
        os.close(fd)
live()
""")
    assert found.returncode == 0 and not found.stderr, found
    words = [line.partition(" ")[2] for line in found.stdout.splitlines()]
    assert len(words) == 13 and words[0] and not words[-1]
    assert all("raise the limit of descriptors" in text for text in words if text), words
    assert words == sorted(words, key=lambda text: not text), "with more descriptors it fails again"


def test_f42_another_thread_may_take_the_descriptors_meanwhile():
    found = script("""
going = True
def taker():
    while going:
        for fd in take():
            os.close(fd)
thread = threading.Thread(target=taker)
thread.start()
words = [try_to_live() for _ in range(100)]
going = False
thread.join()
live()
print(len(words))
""")
    assert found.returncode == 0 and found.stdout == "100\n", found


# Of the thread that makes the graph and waits. In a new thread glibc and CPython end the process themselves if there is no memory for
# what they keep per thread; the workers' own allocations fail in tests/scheduler.
SWEEP = """
import ctypes
fail_at = ctypes.CDLL(None).fail_at
fail_at(-1)
live()
total = fail_at(-1)
for n in range(total + 20):
    print(n, flush=True)
    fail_at(n)
    try_to_live()
    fail_at(-1)
    live()
print(total, "done")
"""


@pytest.mark.skipif(not FAILING_MALLOC, reason="run.py --failing-malloc")
def test_f40_any_allocation_of_a_life_may_fail():
    found = script(SWEEP, LD_PRELOAD=FAILING_MALLOC)
    assert found.returncode == 0 and not found.stderr and found.stdout.endswith("done\n"), (found.stdout[-10:], found)
    assert int(found.stdout.split()[-2]) > 100


# In a child of each step, since the map of all objects, in which nanobind finds them, grows once.
WIDE = """
import ctypes
fail_at = ctypes.CDLL(None).fail_at
for i in range(40):
    GRAPH["entities"].append({"name": f"another_one_that_gathers_{i}", "operator": "Gather"})
    GRAPH["connections"].append(["numbers_of_ticks_in_order.out", f"another_one_that_gathers_{i}.in"])

def run(n):
    with weir.Graph(GRAPH) as graph:
        fail_at(n)
        try:
            graph.run(workers=2)
        except (MemoryError, weir.Error) as error:
            print(str(error) or type(error).__name__, flush=True)
        made = fail_at(-1)
    return GOES_ON if made > n else ENDS

GOES_ON, ENDS = 2, 3
n, code = 0, GOES_ON
while code == GOES_ON:
    child = os.fork()
    if not child:
        os._exit(run(n))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    n += 1
print(n, code == ENDS)
"""


@pytest.mark.skipif(not FAILING_MALLOC, reason="run.py --failing-malloc")
def test_f40_any_allocation_of_a_run_with_more_objects_than_before_may_fail():
    found = script(WIDE, LD_PRELOAD=FAILING_MALLOC)
    *texts, last = found.stdout.splitlines()
    assert found.returncode == 0 and not found.stderr and last.endswith(" True") and len(texts) > 100, (last, found)
    assert "std::bad_alloc" not in texts, "it went through frames of C"
    assert any("gathers_39: MemoryError" in text for text in texts)
