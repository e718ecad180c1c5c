"""What pipelines, memory pools and replay promise on a GPU, measured: prints one table of rows, "row | wanted | seen".

Each program has a time limit; a row is printed as soon as it is known, and the table again at the end. With
--backend host the rows that need no GPU are run, with few repeats, as a check of this script. --rows NAME,... runs
some of the functions below alone.
"""
import json
import os
import re
import shutil
import tempfile
from collections import Counter

import acceptance
import calls as recorded
import observed as observers

SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
FRAMES = 400
WARM = 50  # frames of bench/pipeline that do not count
rows = []


def row(name, wanted, seen, holds):
    mark = "yes" if holds else "NO" if holds is not None else "-"
    rows.append((name, wanted, seen, mark))
    acceptance.report(" | ".join(rows[-1]))



def program(given, name, *arguments, limit=120, env=None, before=()):
    """Its output, or None: the row says why."""
    folder = given.bench if name in ("pipeline", "lines", "lives") else given.programs
    command = [*before, os.path.join(folder, name), *arguments]
    try:
        ended = acceptance.run(command, limit, env)
    except AssertionError as error:
        row(name, "ends in time", str(error), False)
        return None
    if ended.returncode:
        row(name, "exit 0", f"exit {ended.returncode}: {(ended.stderr or ended.stdout)[-300:].strip()}", False)
        return None
    return ended.stdout + ended.stderr


# --- the pipeline ---

LINE = re.compile(
    r"  (.{36}) +([\d.]+) frames/s, latency p50 +([\d.]+) ms, p99 +([\d.]+) ms(?:, ([\d.]+) of the slowest)?"
)


def forms_of(output):
    """{work: {form: (frames/s, p99, part of the slowest stage)}}"""
    found, work = {}, ""
    for line in output.splitlines():
        match = LINE.match(line)
        if match:
            name, rate, _, tail, part = match.groups()
            found[work][name.strip()] = (float(rate), float(tail), float(part or 0))
        elif ": " in line and "rounds of" in line:
            work = line.split(":")[0]
            found[work] = {}
    return found


def compare(signal, work, forms, form):
    rate, tail, part = forms[form]
    three, graphs = forms["three streams, events, one thread"], forms["a stream and a graph for each frame"]
    by_stage = f"{part:.3f} of the slowest stage, " if part else ""
    beside = f"{rate / three[0]:.3f} of three streams, p99 {tail / three[1]:.2f} x, {rate / graphs[0]:.3f} of graphs"
    good = rate >= 0.97 * three[0] and tail <= 1.1 * three[1] and rate >= 0.99 * graphs[0]
    if work.startswith("2 ms"):
        good = good and part >= 0.95
    row(f"1 {form}, {signal}, {work}", "0.95 (2, 3, 2 ms); 0.97, 1.1 x; not behind", by_stage + beside, good)


def pipelines(given):
    for signal in ("callback", "flag"):
        options = ["--rounds", given.rounds, "--frames", FRAMES, "--signal", signal]
        output = program(given, "pipeline", *options, limit=170)
        for work, forms in forms_of(output or "").items():
            for form in ("weir", "weir with replay"):
                compare(signal, work, forms, form)


def one_core(given):
    core = max(os.sched_getaffinity(0))
    for signal in ("callback", "flag"):
        options = ["--work", "short", "--forms", "weir", "--workers", 1, "--rounds", given.rounds, "--signal", signal]
        output = program(given, "pipeline", *options, before=("taskset", "-c", core))
        for forms in forms_of(output or "").values():
            part = forms["weir"][2]
            row(f"1 one core, 200, 300, 200 us, {signal}", "0.90 of the slowest stage", f"{part:.3f}", part >= 0.9)


def steady_calls(path):
    """Calls from the end of the 50th tick of `end` to that of the last."""
    events = recorded.read_events(path)
    ends = [end for name, _, end in recorded.ticks(events) if name == "end"]
    return Counter(name for at, _, kind, name in events if kind in ("runtime", "driver") and ends[WARM] < at < ends[-1])


def calls_by_recorder(given, form, signal, library):
    with tempfile.TemporaryDirectory(prefix="weir-rows-") as folder:
        record, recorder = os.path.join(folder, "calls"), given.program("recorder.so")
        env = acceptance.environment(
            NVTX_INJECTION64_PATH=recorder, CUDA_INJECTION64_PATH=recorder, WEIR_CUPTI=library, WEIR_RECORD=record
        )
        options = ["--work", "short", "--forms", form, "--rounds", 1, "--frames", 300, "--signal", signal]
        if program(given, "pipeline", *options, env=env) is None:
            return None
        return steady_calls(record)


def quiet(given):
    library = os.environ.get("WEIR_CUPTI") or recorded.cupti()
    for form, signal in (("weir", "callback"), ("weir", "flag"), ("replay", "callback")):
        name = f"1 calls from frame {WARM} to the last, {form}, {signal}"
        calls = calls_by_recorder(given, form, signal, library) if library else None
        if calls is None:
            row(name, "0 that wait, allocate or create", "no libcupti: set WEIR_CUPTI" if not library else "-", None)
            continue
        bad = {call: n for call, n in calls.items() if recorded.FORBIDDEN.fullmatch(call)}
        seen = f"{sum(calls.values())} calls, forbidden: {bad or 0}"
        row(name, "0 that wait, allocate or create", seen, not bad and bool(calls))


# --- lines, replay ---


def lines(given):
    size = ["--frames", 4000, "--rounds", given.rounds]
    if given.backend != "cuda":
        size = ["--lines", 4, "--frames", 50, "--rounds", 1]
    for signal in ("flag", "callback"):
        options = ["--backend", given.backend, "--signal", signal, "--workers", 1, *size]
        output = program(given, "lines", *options) or ""
        for count, form, part in re.findall(r"(\d+) lines.*? us (\w+), 1 workers.*?, ([\d.]+) of \d+", output):
            wanted = signal == "flag" and form == "replayed" and given.backend == "cuda"
            name = f"2 {count} lines of one frame, {form}, {signal}, 1 worker"
            row(name, "0.85" if wanted else "-", part, float(part) >= 0.85 if wanted else None)


def replay_part(given, name, ticks, limit=120, fails=False):
    """The last line of JSON of a part of replay.c, or None: the row says why."""
    try:
        ended = acceptance.run([given.program("replay"), name, ticks], limit)
    except AssertionError as error:
        row(f"replay {name}", "ends in time", str(error), False)
        return None
    found = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if not found or (ended.returncode != 0) != fails:
        said = (ended.stdout + ended.stderr)[-300:].strip()
        row(f"replay {name}", "exit 0", f"exit {ended.returncode}: {said}", False)
        return None
    return json.loads(found[-1])


def replay_cost(came):
    raw, tick, eager = came["raw_ns"], came["replayed_ns"], came["enqueued_ns"]
    seen = f"{tick / 1e3:.2f} us, by hand {raw / 1e3:.2f}, {eager / tick:.1f} x"
    holds = tick <= raw + 1500 and eager >= 5 * tick
    row("2 a replayed tick of 10 kernels", "by hand + 1.5 us; 5 x cheaper", seen, holds)


def replay_many(came):
    host, device = (came[f"late_{place}"] - came[f"early_{place}"] for place in ("host", "device"))
    seen = f"{came['hits']} hits, {host / 1e6:+.1f} MB, device {device / 1e6:+.1f} MB"
    row("2 10^6 replays", "memory flat", seen, host < 4e6 and device <= 0)


def replay_keys(came):
    seen = f"{came['captures']} captures, {came['hits']} hits, {came['wrong']} wrong"
    holds = came["captures"] == 16 and came["hits"] == 100000 - 32 and not came["wrong"]
    row("3 10^5 ticks over 4 x 4 blocks", "16 captures", seen, holds)


def replay_evicted(came):
    seen = f"{came['captures']} captures, {came['evictions']} evictions, {came['wrong']} wrong of {came['checked']}"
    holds = came["captures"] == 500 and came["evictions"] == 492 and not came["wrong"] and came["checked"] == 2000
    row("3 instances 8 of 16 keys", "500 captures, 492 evictions, results right", seen, holds)


def replay_captures(came):
    seen = f"{came['captures']} captures, {came['failures']} failures, {came['wrong']} wrong"
    holds = came["captures"] == 10000 and not came["failures"] and not came["wrong"]
    row("4 10^4 captures beside others", "no failure", seen, holds)


def replay_fault(came):
    seen = f"{came['seconds']:.2f} s: {came['text'][:60]}"
    row("5 a fault in a replayed kernel", "2 s, names the entity", seen, came["seconds"] < 2 and "'a'" in came["text"])


def replays(given):
    for check, ticks in (
        (replay_cost, 20000),
        (replay_many, 1000000),
        (replay_keys, 100000),
        (replay_evicted, 2000),
        (replay_captures, 20000),
        (replay_fault, 100000),
    ):
        name = check.__name__.removeprefix("replay_")
        came = replay_part(given, name, ticks, fails=name == "fault")
        if came:
            check(came)


# --- compute-sanitizer ---


def sanitize(given, name, tool, command, limit):
    if not os.path.exists(SANITIZER):
        row(name, "0 errors", "no compute-sanitizer", None)
        return
    try:
        ended = acceptance.run([SANITIZER, "--tool", tool, "--error-exitcode", "99", *command], limit)
    except AssertionError as error:
        row(name, "0 errors", str(error)[:80], False)
        return
    summary = [line.strip("= ") for line in (ended.stdout + ended.stderr).splitlines() if "SUMMARY" in line]
    row(name, "0 errors", f"exit {ended.returncode}, {' '.join(summary)}", ended.returncode == 0 and bool(summary))


def sanitized(given):
    pipeline = [os.path.join(given.bench, "pipeline"), "--work", "short", "--rounds", 1, "--frames", 80, "--forms"]
    for tool in ("memcheck", "racecheck"):
        for form in ("weir", "replay"):
            sanitize(given, f"1 {tool} on blocks that are used again, {form}", tool, [*pipeline, form], 60)
    replay = given.program("replay")
    stops = "5 memcheck, runs stopped with captures and launches in flight"
    sanitize(given, stops, "memcheck", [replay, "stops", 20], 90)
    sanitize(given, "5 memcheck, evictions and destroyed graphs", "memcheck", [replay, "evicted", 500], 60)


# --- many graphs ---


def lives(given):
    graphs = 5000 if given.backend == "cuda" else 80
    output = program(given, "lives", "--backend", given.backend, "--graphs", graphs, limit=150) or ""
    found = re.search(r"heap (\d+) bytes after a tenth, (\d+) at the end; resident ([\d.]+) MB, ([\d.]+)", output)
    if found:
        early, late = int(found[1]), int(found[2])
        flat = late < early + 300000 and float(found[4]) < float(found[3]) + 16
        row(f"8 {graphs} graphs on 8 threads", "bytes flat", f"heap {early} -> {late}, resident {found[3]} -> {found[4]} MB", flat)


def nsight(given):
    """What Nsight Systems exports, against what the runs did; GPU time per entity against kernels of known duration."""
    check = [acceptance.ROOT / "scripts" / "nsight-check", "--weir", given.weir, "--backend", given.backend]
    ended = acceptance.run(check, 400, {**acceptance.environment(), "PYTHONUNBUFFERED": "1"})
    lines = [line for line in ended.stdout.splitlines() if line]
    for line in lines if ended.returncode != 77 else []:
        mark, seen = line.split(maxsplit=1)
        name, _, seen = seen.partition(": ")
        row(f"6 Nsight Systems, {name}", "each tick, sleep, mark; GPU time within 5 %", seen or name, mark == "ok")
    if ended.returncode == 77 or not lines:
        row("6 Nsight Systems", "an export that agrees", (lines or [ended.stderr.strip()])[-1], None if lines else False)


def observed(given):
    for check in (observers.truths, observers.cost):
        for found in check(given):
            row(*found)


def main():
    given = acceptance.arguments(bench=".", rounds=5, rows="")
    steps = [lives, lines]
    if given.backend == "cuda":
        steps = [replays, lines, one_core, quiet, sanitized, lives, observed, nsight, pipelines]
    for step in steps:
        if not given.rows or step.__name__ in given.rows.split(","):
            step(given)
    print("\nrow | wanted | seen | holds", flush=True)
    for line in rows:
        print(" | ".join(line), flush=True)
    return 1 if not rows or any(line[3] == "NO" for line in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
