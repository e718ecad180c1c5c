"""What Nsight Systems shows of a run, read from its export to sqlite, and compared with what the run did.

usage: nsight.py WEIR [--backend host|cuda] [--keep FOLDER]

Profiles examples/edges.json, examples/slow.json and graphs/spins.json with the nsys of PATH or of the variable NSYS. Checked:
every tick is one range of its entity on the thread of a worker, with the payload entity << 40 | tick; sleeps, ready
marks, waits and signals; names of threads. On `cuda` also the GPU time that the tool projects onto each entity.
Exits with 77 if there is no nsys. A report contains the machine's processes and environment: it is deleted at the end
unless --keep names a folder for it.
"""
import argparse
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict

from nsight_export import ROOT, Export, Missing, find_nsys, profile, run

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77

# --- checks of one export. `counted`: {entity: ticks}, in the order of the graph ---


def ticks_of(output):
    """The table that `weir run` prints at its end."""
    rows = re.findall(r"^  (\S+) +(\d+) +\d+ +\d+ +[\d.]+ \S?s", output, re.M)
    assert rows, f"no table of entities in: {output[-400:]}"
    return {name: int(ticks) for name, ticks in rows}


def check_ticks(export, counted):
    """Each tick is one range, named as its entity, numbered, on a worker's thread."""
    seen = defaultdict(list)
    for tick in export.of("tick"):
        assert tick.end is not None and tick.end >= tick.begin, f"a tick of {tick.name} has no end"
        assert tick.ended_on == tick.thread, f"a tick of {tick.name} ended on another thread"
        assert re.fullmatch(r"weir:\d+", export.threads.get(tick.thread, "")), f"{tick.name} ticked on no worker"
        seen[tick.name].append(tick.payload)
    for number, (name, count) in enumerate(counted.items()):
        wanted = [number << 40 | tick for tick in range(count)]
        assert sorted(seen.pop(name, [])) == wanted, f"{name}: not {count} ticks, each once"
    assert not seen, f"ranges of what is no entity: {sorted(seen)}"


def check_ready(export, counted):
    """Before each tick its entity was marked READY, on the same thread."""
    marks = export.of("ready", export.marks)
    for number, (name, count) in enumerate(counted.items()):
        ready = [mark for mark in marks if mark.name == name]
        assert all(mark.payload == number << 40 for mark in ready), f"{name}: payload of a ready mark"
        ticks = [tick for tick in export.of("tick") if tick.name == name]
        assert len(ready) == count, f"{name}: {len(ready)} ready marks, {count} ticks"
        for mark, tick in zip(ready, ticks):
            assert mark.begin <= tick.begin and mark.thread == tick.thread, f"{name}: a tick before its ready mark"


def check_sleeps(export):
    """A worker that sleeps says its number, and does not tick."""
    sleeps = export.of("sleep")
    assert sleeps, "no worker slept"
    for sleep in sleeps:
        assert export.threads.get(sleep.thread) == f"weir:{sleep.payload}", "a sleep on the thread of another worker"
    rows = defaultdict(list)
    for event in sleeps + export.of("tick"):
        rows[event.thread].append((event.begin, event.end, event.category))
    for row in rows.values():
        row.sort()
        for (_, end, one), (begin, _, two) in zip(row, row[1:]):
            assert end is None or end <= begin, f"{one} and {two} at once on one thread"


def check_waits(export, counted):
    """What an entity waits for is marked once per reason between two ticks."""
    marks = export.of("wait", export.marks)
    numbers = {name: number for number, name in enumerate(counted)}
    assert marks, "no entity waited"
    for mark in marks:
        name, reason = mark.name.split(" waits: ", 1)
        assert numbers[name] << 40 == mark.payload and ": " in reason, f"'{mark.name}', payload {mark.payload:#x}"


def check_process_ranges(export, counted, gated):
    """One run; signals, closed, within it, one of an entity at a time; those with gates have some."""
    runs = export.of("run", export.process_ranges)
    assert len(runs) == 1 and runs[0].end is not None, f"{len(runs)} runs"
    last = defaultdict(int)
    for signal in export.of("signal", export.process_ranges):
        name = signal.name.removesuffix(" signal")
        assert list(counted)[signal.payload >> 40] == name, f"'{signal.name}', payload {signal.payload:#x}"
        assert runs[0].begin <= signal.begin and signal.end is not None and signal.end <= runs[0].end, f"{signal.name}: open"
        assert signal.begin >= last[name], f"two signals of {name} at once"
        last[name] = signal.end
    assert set(gated) <= set(last), f"signals of {sorted(last)}, gated: {gated}"


def check_names(export, workers):
    names = sorted(name for name in export.threads.values() if name != "weir:loop")
    assert set(names) == {f"weir:{n}" for n in range(workers)}, f"threads {names}"


def check_all(export, counted, gated, workers):
    check_ticks(export, counted)
    check_ready(export, counted)
    check_sleeps(export)
    check_waits(export, counted)
    check_process_ranges(export, counted, gated)
    check_names(export, workers)


def check_gpu(export, wanted, part=0.05):
    """{entity: seconds on the GPU}. Returns {entity: (seen, wanted)} in ns."""
    seen = export.projected()
    for name, ns in wanted.items():
        assert abs(seen[name] - ns) <= part * ns, f"{name}: {seen[name] / 1e6:.2f} ms on the GPU, {ns / 1e6:.2f} wanted"
    return {name: (seen[name], ns) for name, ns in wanted.items()}


def table_of_tool(nsys, folder, report):
    """{entity: ns} of the tool's own table of projected GPU time, whatever its version calls it; {} if it has none."""
    for name in ("nvtx_gpu_proj_sum", "nvtxgpuproj"):
        try:
            text = run([nsys, "stats", "--report", name, "--format", "csv", "--quiet", report], folder)
        except AssertionError:
            continue
        lines = text.splitlines()
        head = next((i for i, line in enumerate(lines) if "Range" in line and "Total Proj Time" in line), len(lines))
        rows = list(csv.DictReader(lines[head:]))
        if rows:
            time = next(key for key in rows[0] if key.startswith("Total Proj Time"))
            return {row["Range"].split(":", 1)[-1]: float(row[time].replace(",", "")) for row in rows if row[time]}
    return {}


# --- runs ---

GRAPHS = {  # graph: its options, and the entities that have gates
    "edges": ([ROOT / "examples" / "edges.json", "--set", "read.repeat=20"], ["write"]),
    "slow": ([ROOT / "examples" / "slow.json"], []),
    "spins": ([HERE / "graphs" / "spins.json"], []),  # its signals are those of the bound of ticks in flight
}
SPINS = {"short": 100 * 500_000, "long": 100 * 2_000_000, "middle": 100 * 1_000_000}  # ns on the GPU


def check_graph(nsys, weir, folder, name, backend):
    """Returns the line to print."""
    options, gated = GRAPHS[name]
    command = [weir, "run", *options, "--backend", backend, "--workers", "2"]
    if name == "edges":
        command += ["--set", f"write.directory={folder}/out"]
    output, report, path = profile(nsys, folder, name, command, backend)
    export, counted = Export(path), ticks_of(output)
    check_all(export, counted, gated if backend == "host" else [], 2)  # a GPU may be done before the entity is asked
    assert name != "spins" or len(export.process_ranges) > 1, "no tick waited for the bound"
    found = f"{sum(counted.values())} ticks, {len(export.of('sleep'))} sleeps, {len(export.marks)} marks, " \
            f"{len(export.process_ranges) - 1} signals"
    if name == "spins" and backend == "cuda":
        times = check_gpu(export, SPINS)
        found += "; on the GPU " + ", ".join(f"{entity} {seen / ns:.3f}" for entity, (seen, ns) in times.items())
        table = table_of_tool(nsys, folder, report)
        for entity, ns in SPINS.items():
            assert not table or abs(table.get(entity, 0) - ns) <= 0.05 * ns, f"{entity}: the tool's table says {table}"
        found += " of the wanted time" + (", as in the tool's table" if table else "; the tool has no such table")
    return f"{name} on {backend}: {found}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir", type=os.path.abspath)
    parser.add_argument("--backend", default="host")
    parser.add_argument("--keep", type=pathlib.Path)
    given = parser.parse_args()
    try:
        nsys = find_nsys()
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    folder = given.keep.absolute() if given.keep else pathlib.Path(tempfile.mkdtemp(prefix="weir-nsight-"))
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in GRAPHS:
        try:
            print("ok     ", check_graph(nsys, given.weir, folder, name, given.backend), flush=True)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            print("FAILED ", f"{name} on {given.backend}: {error}", flush=True)
    if not given.keep:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
