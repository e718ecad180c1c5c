"""What pipelines, memory pools and replay promise on a GPU, measured: prints one table of rows, "row | wanted | seen".

Each program has a time limit; a row is printed as soon as it is known, and the table again at the end. With
--backend host the rows that need no GPU are run, with few repeats, as a check of this script. --rows NAME,... runs
some of the functions below alone.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import tempfile
from collections import Counter

import acceptance
import calls as recorded
import observed as observers

SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
FRAMES = {"long": 200, "short": 1000, "upscale": 3000}  # of bench/pipeline: runs of about half a second
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

FORM = re.compile(r"  (\S.{35}) +[\d.]+ frames/s, latency p50 +[\d.]+ ms, p99 +[\d.]+ ms(.*)")
BEST = re.compile(r"    best of the rounds: [\d.]+ frames/s, p99 [\d.]+ ms(.*)")
STAGE = re.compile(r", ([\d.]+) of the slowest")
BESIDE = re.compile(r"beside three streams ([\d.]+), p99 ([\d.]+); beside graphs ([\d.]+)")


def figures_of(text):
    """(part of the slowest stage or None, (rate and p99 beside three streams, rate beside graphs) or ())"""
    part, beside = STAGE.search(text), BESIDE.search(text)
    return float(part[1]) if part else None, tuple(map(float, beside.groups())) if beside else ()


def forms_of(output):
    """{work: {form: (the figures by medians, those of the best rounds)}}"""
    found, work, form = {}, "", ""
    for line in output.splitlines():
        if match := FORM.match(line):
            form = match[1].strip()
            found[work][form] = figures_of(match[2]), None
        elif match := BEST.match(line):
            found[work][form] = found[work][form][0], figures_of(match[1])
        elif ": " in line and "rounds of" in line:
            work = line.split(":")[0]
            found[work] = {}
    return found


def figures_said(figures):
    part, (rate, tail, of_graphs) = figures
    by_stage = f"{part:.3f} of the slowest stage, " if part else ""
    return f"{by_stage}{rate:.3f} of three streams, p99 {tail:.2f} x, {of_graphs:.3f} of graphs"


def compare(signal, work, medians, best, form):
    """The best rounds are judged: a stall of the machine makes a round worse and none better."""
    part, (rate, tail, of_graphs) = best
    seen = f"{figures_said(best)} in the best rounds; medians {figures_said(medians)}"
    holds = rate >= 0.97 and tail <= 1.1 and of_graphs >= 0.99 and (part or 0) >= (0.95 if work.startswith("2 ms") else 0)
    row(f"1 {form}, {signal}, {work}", "0.95 (2, 3, 2 ms); 0.97, 1.1 x; not behind", seen, holds)


def pipeline(given, signal, work, *more, limit=90):
    """Its forms, by name; its output is printed, as it says where time went."""
    options = ["--rounds", given.rounds, "--frames", FRAMES[work], "--signal", signal, "--work", work, *more]
    output = program(given, "pipeline", *options, limit=limit) or ""
    print(output, end="", flush=True)
    return forms_of(output), output


def pipelines(given):
    for signal, work in itertools.product(("callback", "flag"), FRAMES):
        for name, forms in pipeline(given, signal, work)[0].items():
            for form in ("weir", "weir with replay"):
                compare(signal, name, *forms[form], form)


WENT = re.compile(r"    (a frame each .*)")


def gaps(given):
    """Where time goes: by flag, by a flag whose poller never sleeps, by callback."""
    for work, (signal, *more) in itertools.product(("long", "short"), (("flag",), ("flag", "--spin", 20), ("callback",))):
        forms, output = pipeline(given, signal, work, "--forms", "three,weir", "--rounds", 3, *more)
        went = WENT.findall(output)
        for name, figures in forms.items():
            for (form, ((part, _), _)), why in zip(figures.items(), went):
                row(f"1 {name}, {form}, {' '.join(map(str, (signal, *more)))}", "-", f"{part:.3f}; {why}", None)


def few_cores(given):
    """The whole process on one core, and on two."""
    cores = sorted(os.sched_getaffinity(0))
    works = ("short", "200, 300, 200 us", 1, 0.9), ("long", "2, 3, 2 ms", 2, 0.95)
    for signal, (work, times, count, wanted) in itertools.product(("callback", "flag"), works):
        options = ["--work", work, "--forms", "weir", "--workers", count, "--frames", FRAMES[work], "--signal", signal]
        on = ("taskset", "-c", ",".join(map(str, cores[-count:])))
        output = program(given, "pipeline", *options, "--rounds", given.rounds, before=on)
        for forms in forms_of(output or "").values():
            (part, _), (best, _) = forms["weir"]
            seen = f"{best:.3f} in the best round, median {part:.3f}"
            row(f"1 cores: {count}, {times}, {signal}", f"{wanted:.2f} of the slowest stage", seen, best >= wanted)


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


def replay_part(given, name, ticks, limit=120, fails=False, env=None):
    """The last line of JSON of a part of replay.c, or None: the row says why."""
    try:
        ended = acceptance.run([given.program("replay"), name, ticks], limit, env)
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


def replay_keys(came):
    seen = f"{came['captures']} captures, {came['hits']} hits, {came['wrong']} wrong"
    holds = came["captures"] == 16 and came["hits"] == 100000 - 32 and not came["wrong"]
    row("3 10^5 ticks over 4 x 4 blocks", "16 captures", seen, holds)


def replay_evicted(came):
    seen = f"{came['captures']} captures, {came['evictions']} evictions, {came['wrong']} wrong of {came['checked']}"
    holds = came["captures"] == 500 and came["evictions"] == 492 and not came["wrong"] and came["checked"] == 2000
    row("3 keys 8 of 16", "500 captures, 492 evictions, results right", seen, holds)


def replay_captures(came):
    seen = f"{came['captures']} captures, {came['failures']} failures, {came['wrong']} wrong"
    holds = came["captures"] == 10000 and not came["failures"] and not came["wrong"]
    row("4 10^4 captures beside others", "no failure", seen, holds)


def replay_fault(came):
    seen = f"{came['seconds']:.2f} s: {came['text'][:60]}"
    row("5 a fault in a replayed kernel", "2 s, names the entity", seen, came["seconds"] < 2 and "'a'" in came["text"])


def replay_forgets(came):
    seen = f"{came['wrong']} of {came['checked']} wrong, then {came['failures']} FAILED: {came['said'][:110]}"
    holds = came["failures"] == 2 and came["wrong"] < 200 and "parameter" in came["said"]
    row("3 a key without an address, WEIR_DEBUG_REPLAY=1", "found after 61 replays, named", seen, holds)


def replay_refused(came):
    seen = f"{came['refused']} calls, {came['failures']} FAILED, {came['wrong']} of {came['checked']} wrong"
    seen += f"; {came['captured']} replays while the operator captures: {came['said'][:110]}"
    holds = came["failures"] and came["refused"] and not came["wrong"] and not came["hits"] and came["captured"] == 25
    row("4 cudaMalloc, a synchronization in enqueue; an own capture", "FAILED, results right", seen, bool(holds))


def replays(given):
    for check, ticks in (
        (replay_cost, 20000),
        (replay_keys, 100000),
        (replay_evicted, 2000),
        (replay_captures, 20000),
        (replay_forgets, 1000),
        (replay_refused, 200),
        (replay_fault, 100000),
    ):
        name = check.__name__.removeprefix("replay_")
        env = acceptance.environment(WEIR_DEBUG_REPLAY="1") if name == "forgets" else None
        came = replay_part(given, name, ticks, fails=name == "fault", env=env)
        if came:
            check(came)


REPLAYS = 2000000
GROWS = 16 << 20  # bytes: what the driver may take, 2 MiB at a time, when more launches are queued than ever before


def steps_of(bytes_after):
    return " ".join(f"{(late - early) / 1e6:+.1f}" for early, late in zip(bytes_after, bytes_after[1:]))


def flat(given):
    """Memory after each tenth of many replays. A leak of three bytes a replay would be a chunk of the driver's or more
    in the second half; some chunks before that are the driver's own.
    """
    came = replay_part(given, "many", REPLAYS)
    if not came:
        return
    host, device = zip(*came["memory"])
    half, last = len(device) // 2 - 1, len(device) - 1
    holds = device[last] <= device[half] and device[last] <= device[0] + GROWS and host[last] < host[0] + 1e6
    seen = f"{came['hits']} hits; MB more in each tenth: host {steps_of(host)}, device {steps_of(device)}"
    row(f"2 {REPLAYS} replays", "memory flat: none in the 2nd half, 16 MiB in the first", seen, holds and came["hits"] > 0)


# --- an earlier point of a tick ---

BEGINS = re.compile(r"begins ([-\d.]+) us after .*?; 9 of 10 within ([-\d.]+) us, the last after ([-\d.]+) us")


def early(given):
    """emit_at: from the end of a tick's first kernel, as a polling thread sees it, to the first output's reader."""
    check = "t12_a_reader_begins_before_the_second_kernel_ends"
    for signal in ("flag", "callback"):
        found = []
        for _ in range(3):
            output = program(given, "handles", "--backend", given.backend, "--signal", signal, check)
            found += [tuple(map(float, match)) for match in BEGINS.findall(output or "")]
        if not found:
            continue
        half, most, last = sorted(found)[len(found) // 2]
        seen = f"p50 {half:.1f} us, p90 {most:.1f}, last {last:.1f} (100 ticks; {len(found)} runs)"
        wanted = signal == "flag" and given.backend == "cuda"
        name = f"6 emit_at, second kernel 5 ms: first reader, {signal}"
        row(name, "20 us after the first kernel" if wanted else "-", seen, most <= 20 if wanted else None)


# --- the examples ---

def pictures_of(given, backend, signal, workers, replay):
    """{name: bytes} of the pictures that upscale writes, and how often it replayed."""

    def few_blocks(graph):  # few keys, so that some frames are replayed
        for pool in "frames", "upscaled":
            graph["resources"][pool]["blocks"] = 2

    with tempfile.TemporaryDirectory(prefix="weir-rows-") as folder:
        settings = ["read.repeat=3", f"write.directory={folder}/out", "write.every=1", f"upscale.replay={replay}"]
        options = [word for setting in settings for word in ("--set", setting)]
        options += ["--backend", backend, "--signal", signal, "--workers", workers]
        try:
            output = acceptance.run_changed(given, "upscale", "upscale/upscale.json", folder, few_blocks, *options)
        except AssertionError as error:
            return {"none": str(error).encode()}, -1
        found = {path.name: path.read_bytes() for path in pathlib.Path(folder, "out").iterdir()}
    hits = acceptance.REPLAYED.search(output)
    return found, int(hits[1]) if hits else 0


def upscaled(given):
    """Several runs at once: only their results count. The signal means nothing without a GPU, so each is run once there."""
    backends = ["host", "sim"] + ["cuda"] * (given.backend == "cuda")
    variants = [
        (backend, signal, workers, replay)
        for backend in backends
        for signal, workers in itertools.product(("callback", "flag"), (1, 8))
        for replay in ("true", "false")
        if backend == "cuda" or (signal == "flag") == (workers == 8)
    ]
    with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
        runs = list(pool.map(lambda variant: (variant, *pictures_of(given, *variant)), variants))
    wanted = runs[0][1]
    different = [" ".join(map(str, variant)) for variant, found, _ in runs if found != wanted]
    unused = [" ".join(map(str, variant)) for variant, _, hits in runs if (hits > 0) != (variant[3] == "true")]
    seen = f"{len(wanted)} pictures, {len(runs)} runs, different: {different or 0}"
    seen += f", not replayed as set: {unused}" if unused else ""
    holds = len(wanted) == 9 and len(set(wanted.values())) == 3 and not different and not unused
    row(f"9 upscale on {', '.join(backends)}; 1, 8 workers; both signals; replay on, off", "identical", seen, holds)


def libraries(given):
    """cuBLAS and NPP, enqueued in a replay on the native handle. WEIR_DEBUG_REPLAY captures them again, and compares."""

    def many_frames(graph):
        graph["entities"][0]["conditions"][0]["count"] = 500

    for (name, library), debug in itertools.product((("gemm", "cuBLAS"), ("addc", "NPP")), ("0", "1")):
        env = acceptance.environment(WEIR_DEBUG_REPLAY=debug)
        title = f"2 {library} in a replay{', WEIR_DEBUG_REPLAY=1' if debug == '1' else ''}"
        if not os.path.exists(os.path.join(given.examples, f"lib{name}.so")):
            row(title, "results right", f"{library} was not found by the build", None)
            continue
        with tempfile.TemporaryDirectory(prefix="weir-rows-") as folder:
            try:
                path = f"libraries/{name}.json"
                output = acceptance.run_changed(given, name, path, folder, many_frames, "--backend", given.backend, env=env)
            except AssertionError as error:
                row(title, "results right", str(error), False)
                continue
        right, counts = re.search(r"compare: (.*)", output), acceptance.REPLAYED.search(output)
        hits, captures, _, failed = map(int, counts.groups()) if counts else (0, 0, 0, 0)
        why = re.search(r"replay FAILED: (.*)", output)
        seen = f"{right and right[1]}; {hits} replayed, {captures} captured, {failed} failed"
        seen += f": {why[1][:160]}" if why else ""
        holds = right and right[1].startswith("500 frames") and hits > 400 and not failed
        row(title, "results right, replayed, none failed", seen, bool(holds))


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
    handles = [given.program("handles"), "--signal", "flag", "t11_scratch_memory_of_streams_that_overlap_keeps_its_contents"]
    for tool in ("memcheck", "racecheck"):
        sanitize(given, f"8 {tool}, scratch memory of streams that overlap", tool, handles, 60)
    replay = given.program("replay")
    stops = "5 memcheck, runs stopped with captures and launches in flight"
    sanitize(given, stops, "memcheck", [replay, "stops", 20], 90)
    sanitize(given, "5 memcheck, evictions and destroyed graphs", "memcheck", [replay, "evicted", 500], 60)


# --- many graphs ---


def lives(given):
    graphs = 2000 if given.backend == "cuda" else 80
    output = program(given, "lives", "--backend", given.backend, "--graphs", graphs, limit=150) or ""
    found = re.search(r"([\d.]+) s; heap (\d+) bytes after a tenth, (\d+) at the end; resident ([\d.]+) MB, ([\d.]+)", output)
    if found:
        early, late = int(found[2]), int(found[3])
        flat = late < early + 300000 and float(found[5]) < float(found[4]) + 16
        seen = f"heap {early} -> {late}, resident {found[4]} -> {found[5]} MB, {found[1]} s"
        row(f"8 {graphs} graphs on 8 threads", "bytes flat", seen, flat)


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
    for check in (observers.contract, observers.truths, observers.cost):
        for found in check(given):
            row(*found)


def main():
    given = acceptance.arguments(bench=".", examples=".", rounds=5, rows="")
    steps = [replays, flat, early, upscaled, libraries, lines, few_cores, quiet, sanitized]
    steps += [lives, observed, nsight, pipelines, gaps]
    chosen = given.rows.split(",") if given.rows else [step.__name__ for step in steps]
    if not given.rows and given.backend != "cuda":
        chosen = ["lives", "lines"]
    for step in steps:
        if step.__name__ in chosen:
            before = len(rows)
            step(given)
            if len(rows) == before:  # what a program prints is read otherwise
                row(step.__name__, "a row", "none: the output of its programs has another form", False)
    print("\nrow | wanted | seen | holds", flush=True)
    for line in rows:
        print(" | ".join(line), flush=True)
    return 1 if not rows or any(line[3] == "NO" for line in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
