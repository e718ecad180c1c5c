"""What the Python package promises on a GPU, seen with CuPy and torch: prints a table, "row | wanted | seen | holds".

Each program has a time limit; a row is printed as soon as it is known, and the table again at the end. --backend host runs
the rows that need no GPU, with NumPy, as a check of this script. --rows NAME,... runs some of the functions below alone.
"""
import argparse
import glob
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import acceptance
import calls as recorded

SANITIZER = "/usr/local/cuda/bin/compute-sanitizer"
STREAMS = acceptance.ROOT / "examples/python/streams.py"
NETWORK = acceptance.ROOT / "examples/python/network.py"
SYNCHRONIZES = re.compile(r".*Synchronize.*|(cuda|cu)Mem(cpy|set)(?!.*Async).*|cudaFree.*|cuMemFree(?!Async).*")
ALLOCATES = re.compile(r"cuda(Malloc|Host(Alloc|Register)).*|cuMem(Alloc|HostAlloc|Create).*")
rows, printing = [], threading.Lock()


def row(name, wanted, seen, holds):
    with printing:
        rows.append((name, wanted, seen, "yes" if holds else "NO" if holds is not None else "-"))
        acceptance.report(" | ".join(rows[-1]))


def tail(ended):
    return " ".join((ended.stderr.strip() or ended.stdout).splitlines()[-2:])[-300:]


def program(given, name, wanted, words, limit, before=(), **env):
    """A Python program's CompletedProcess, or None: the row says why."""
    settings = {"PYTHONPATH": given.package, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"CUDA_DEVICE_MAX_CONNECTIONS": "32", **env}
    command = [*before, sys.executable, *words]
    try:
        ended = acceptance.run(command, limit, acceptance.environment(**settings))
    except AssertionError as error:
        row(name, wanted, str(error)[:120], False)
        return None
    if ended.returncode and not before:
        row(name, wanted, f"exit {ended.returncode}: {tail(ended)}", False)
        return None
    return ended


def lines_of(ended):
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


def libraries(given):
    return ("cupy", "torch") if given.backend == "cuda" else ("numpy",)


def applications_of(given):
    """(library, what the row says, arguments)"""
    for library in libraries(given):
        for what, more in (("streams", []), ("default stream", ["--default-stream"])):
            yield library, f"{library}, {what}", [STREAMS, "--library", library, *more]


def together(given, tasks):
    """Runs (function, arguments...) beside each other: rows in which time does not matter."""
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in [pool.submit(task[0], given, *task[1:]) for task in tasks]:
            done.result()


# --- the applications ---


def application(given, _library, what, words):
    name, wanted = f"1 application, {what}", f"{given.count} results, the right numbers"
    ended = program(given, name, wanted, [*words, "--count", given.count], 60)
    if ended:
        row(name, wanted, ended.stdout.strip(), f": {given.count} results" in ended.stdout)


def applications(given):
    together(given, [(application, *each) for each in applications_of(given)])


# --- replay ---


def replay_one(given, library, on="0,0"):
    count = 1000
    name, wanted = f"6 replay, {library}{', devices ' + on if on != '0,0' else ''}", f"{count} right, half of them replayed"
    words = [acceptance.HERE / "python_replay.py", "--library", library, "--count", count, "--devices", on]
    ended = program(given, name, wanted, words, 60)
    if ended:
        found = lines_of(ended)[-1]
        seen = f"{found['right']} right, {found['hits']} replayed, {found['captures']} captured, {found['failures']} failed"
        replayed = found["hits"] >= count // 2 and not found["failures"] or given.backend != "cuda"
        row(name, wanted, seen, found["right"] == count and replayed)


def replays(given):
    together(given, [(replay_one, library) for library in libraries(given)])


def devices(given):
    """On a machine with two GPUs: the second alone, and from each to the other."""
    if given.backend == "cuda" and len(glob.glob("/dev/nvidia[0-9]*")) < 2:
        row("6 replay, devices", "two GPUs", "one GPU", None)
        return
    together(given, [(replay_one, *each) for each in itertools.product(libraries(given), ("1,1", "0,1", "1,0"))])


# --- calls that synchronize ---


def places_of_cupti():
    own = os.environ.get("WEIR_CUPTI")
    inside = glob.glob(f"{sys.prefix}/lib/python3*/site-packages/nvidia/*/lib/libcupti.so*")
    return [path for path in dict.fromkeys([own, *sorted(inside), recorded.cupti()]) if path]


def calls_of(given, name, wanted, words, library, first):
    """[(ns, name)] of the calls of CUDA from the end of the last entity's tick number `first` to that of its last one."""
    with tempfile.TemporaryDirectory(prefix="weir-python-") as folder:
        record = os.path.join(folder, "calls")
        env = {"NVTX_INJECTION64_PATH": given.recorder, "CUDA_INJECTION64_PATH": given.recorder}
        ended = program(given, name, wanted, words, 60, WEIR_CUPTI=library, WEIR_RECORD=record, **env)
        if not ended:
            return None
        if not os.path.exists(record):
            return [], 0
        events = recorded.read_events(record)
    ends = sorted(end for entity, _, end in recorded.ticks(events) if entity in ("sink", "top"))[first - 1 :]
    if not ends:
        return [], 0
    calls = [(at, call) for at, _, kind, call in events if kind in ("runtime", "driver")]
    return [(at, call) for at, call in calls if min(ends) < at <= max(ends)], len(ends)


def quiet_one(given, what, words, first=1):
    name, wanted = f"2 calls from frame {first + 1} on, {what}", "0 that synchronize"
    for library in places_of_cupti():
        found = calls_of(given, name, wanted, words, library, first)
        if found is None:
            return
        calls, frames = found
        if calls:
            break
    else:
        row(name, wanted, "nothing was recorded: set WEIR_CUPTI to libcupti", None)
        return
    bad = Counter(call for _, call in calls if SYNCHRONIZES.fullmatch(call))
    allocations = sum(bool(ALLOCATES.fullmatch(call)) for _, call in calls)
    launches = sum("Launch" in call for _, call in calls)
    seen = f"{len(calls)} calls, {launches} launches, {allocations} allocations in {frames - 1} frames; "
    most = Counter(call for _, call in calls).most_common(5)
    seen += f"most: {', '.join(f'{call} {n / (frames - 1):.1f}' for call, n in most)} a frame; "
    row(name, wanted, seen + f"that synchronize: {dict(bad) or 0}", not bad and launches >= frames)


def quiet(given):
    tasks = [(quiet_one, what, [*words, "--count", given.count]) for _, what, words in applications_of(given)]
    words = [NETWORK, "--library", "torch", "--backend", "cuda", "--frames", given.count]
    tasks.append((quiet_one, "network, replay", words))
    # torch makes a handle of cuDNN for each worker that launches a layer for the first time.
    tasks.append((quiet_one, "network, no replay", [*words, "--no-replay"], given.count // 2))
    together(given, tasks)


# --- finished data ---


def finished_run(given, name, wanted, *more, limit=150):
    words = [acceptance.HERE / "python_finished.py", "--backend", given.backend, *more]
    ended = program(given, name, wanted, words, limit)
    return lines_of(ended)[-1] if ended else None


def finished(given):
    count = given.messages - given.messages % 16
    name = "3 data of another library behind a spin of 1 ms, 16 lines at once"
    wanted = f"{count} seen, 0 wrong elements"
    found = finished_run(given, name, wanted, "--count", count)
    if found:
        wrong = {key: value for key, value in found.items() if key.startswith("wrong")}
        row(name, wanted, f"{found['seen']} seen in {found['seconds']:.1f} s, {wrong}",
            found["seen"] == count and not any(wrong.values()))
    if given.backend != "cuda":
        return
    name, wanted = "3 the same without the order, which must fail", "wrong elements in both libraries"
    found = finished_run(given, name, wanted, "--count", 1600, "--unordered")
    if found:
        wrong = {key: value for key, value in found.items() if "wrong" in key}
        row(name, wanted, f"{found['seen']} seen, {wrong}", found["wrong_in_cupy"] > 0 and found["wrong_in_torch"] > 0)


# --- memcheck ---


def sanitize_one(given, what, words, more):
    name, wanted = f"4 memcheck, {what}", "0 errors"
    # CuPy and torch probe for functions that a driver lacks: errors of calls are not errors of memory.
    limit = 50 if given.quick else 180
    # In each launch it takes Python's stack, under a lock of its own and with the GIL: a deadlock with a thread that holds
    # the GIL in a call of CUDA.
    quietly = ["--report-api-errors", "no", "--show-backtrace", "no"]
    before = ["timeout", "-k", "5", str(limit), SANITIZER, "--tool", "memcheck", *quietly]
    ended = program(given, name, wanted, words, limit + 20, [*before, "--error-exitcode", "99"], **more)
    if ended:
        summary = [line.strip("= ") for line in (ended.stdout + ended.stderr).splitlines() if "SUMMARY" in line]
        seen = f"exit {ended.returncode}, {' '.join(summary) or tail(ended)}"
        row(name, wanted, seen, ended.returncode == 0 and bool(summary))


def sanitized(given):
    if not os.path.exists(SANITIZER):
        row("4 memcheck", "0 errors", "no compute-sanitizer", None)
        return
    # Without torch's cache each tensor is an allocation, and a use after its end is seen.
    bare = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    tasks = [(sanitize_one, what, [*words, "--count", 5], bare) for _, what, words in applications_of(given)]
    lines = [acceptance.HERE / "python_finished.py", "--count", 64, "--spin-us", 100, "--limit", 45 if given.quick else 170]
    frames = [NETWORK, "--library", "torch", "--backend", "cuda", "--frames", 8, "--size", 64]
    tasks += [(sanitize_one, "lines of two libraries", lines, {}), (sanitize_one, "network, replay", frames, {})]
    tasks.append((sanitize_one, "network, no replay", [*frames, "--no-replay"], {}))
    together(given, tasks[:3:2] if given.quick else tasks)


# --- the network ---


def network_form(found, replay, workers):
    """(median part of the frames/s by hand, what the row says) with that many workers; None: not measured."""
    rounds = [line for line in found if (line["replay"], line["workers"]) == (replay, workers)]
    if not rounds:
        return None
    parts = [line["weir"] / line["hand"] for line in rounds]
    rates = [statistics.median(line[side] for line in rounds) for side in ("weir", "hand")]
    text = f"{workers.replace('d', ' direct')} workers {statistics.median(parts):.3f} ({', '.join(f'{part:.3f}' for part in parts)})"
    return statistics.median(parts), f"{text}, {rates[0]:.0f} frames/s, by hand {rates[1]:.0f}"


def networks(given):
    wanted = "0.90 of the frames/s by hand, the same bytes"
    words = [acceptance.HERE / "python_network.py", "--frames", given.frames, "--rounds", given.rounds]
    words += ["--backend", given.backend]
    if given.backend != "cuda":
        words += ["--library", "numpy", "--size", 64, "--workers", 2, "2d"]
    elif given.quick:
        words += ["--workers", 1, 4, "1d", "4d"]
    ended = program(given, "5 network", wanted, [*words, *given.network.split()], 150)
    lines = lines_of(ended) if ended else []
    for times in [line for line in lines if "times" in line]:
        workers = times.pop("times")
        row(f"5 us from READY to compute + in compute, {workers.replace('d', ' direct')} workers", "-", str(times), None)
    found = [line for line in lines if "round" in line]
    for replay in (True, False):
        forms = [network_form(found, replay, workers) for workers in sorted({line["workers"] for line in found})]
        forms = [form for form in forms if form]
        if not forms:
            continue
        rounds = [line for line in found if line["replay"] == replay]
        differ, distinct = sum(line["differ"] for line in rounds), rounds[0]["distinct"]
        seen = "; ".join(text for _, text in forms)
        ours, hand = (max(line[side] for line in rounds) for side in ("weir", "hand"))
        seen += f"; best rounds {ours:.0f} beside {hand:.0f} by hand"
        seen += f"; {differ} of {sum(line['frames'] for line in rounds)} differ, {distinct} different ones"
        fast = max(part for part, _ in forms) >= 0.9 or given.backend != "cuda"
        row(f"5 network, {'CUDA graphs' if replay else 'each kernel launched'}, 4 of 640 x 480 in flight", wanted, seen,
            fast and not differ and distinct == min(16, given.frames))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=os.path.abspath, help="folder of the package weir")
    parser.add_argument("--recorder", type=os.path.abspath, default="recorder.so")
    parser.add_argument("--backend", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--network", default="", help="more arguments of python_network.py")
    given = parser.parse_args()
    small = given.quick or given.backend != "cuda"
    given.count, given.messages, given.frames = (50, 4000, 300) if small else (300, 100000, 2000)
    given.rounds = 1 if small else given.rounds
    given.frames = 40 if given.backend != "cuda" else given.frames
    given.jobs = max(3, min(8, (os.cpu_count() or 2) // 2))
    return given


def main():
    given = arguments()
    groups = [[applications, replays, devices, quiet], [networks], [finished], [sanitized]]
    if given.quick:
        groups[2:] = [[finished, sanitized]]
    for group in groups:
        steps = [step for step in group if not given.rows or step.__name__ in given.rows.split(",")]
        steps = [step for step in steps if given.backend == "cuda" or step not in (quiet, sanitized)]
        if steps:
            together(given, [(step,) for step in steps])
    print("\nrow | wanted | seen | holds", flush=True)
    for line in sorted(rows):
        print(" | ".join(line), flush=True)
    return 1 if not rows or any(line[3] == "NO" for line in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
