"""What observers see on a GPU, and what they cost: rows of rows.py, each (name, wanted, seen, holds)."""
import json
import os
import re
import statistics
import tempfile

import acceptance

SPINS = acceptance.ROOT / "tests" / "trace" / "graphs" / "spins.json"
KERNELS = {"short": 500_000, "long": 2_000_000, "middle": 1_000_000}  # ns of each kernel of spins.json
ROUNDS = 5


def entities_of(given, signal, folder):
    """{name: what --stats-file says of the entity}"""
    path = os.path.join(folder, "run.json")
    command = [given.weir, "run", SPINS, "--backend", given.backend, "--signal", signal]
    ended = acceptance.run([*command, "--quiet", "--gpu-time", "all", "--stats-file", path])
    assert ended.returncode == 0, ended.stderr[-300:]
    with open(path) as file:
        return {entity["name"]: entity for entity in json.load(file)["entities"]}


def contract(given):
    """The truths of tests/streams/contract_timers.c: spans of enqueued work, of waits, of launches."""
    test = os.path.join(given.programs, "..", "streams", "cuda")
    ended = acceptance.run([test, given.backend])
    lines = ended.stdout + ended.stderr
    good, bad = lines.count("[       OK ] t15_"), re.findall(r"\[  FAILED  \] (t15_\w+)", lines)
    seen = f"{good} hold; failed: {', '.join(dict.fromkeys(bad)) or 0}"
    yield "12 truths of spans", "all hold", seen, good >= 10 and not bad


def truths(given):
    """Kernels of known duration behind each other, enqueued far ahead: each entity's own time, not its producer's."""
    for signal in ("callback", "flag"):
        with tempfile.TemporaryDirectory(prefix="weir-observed-") as folder:
            entities = entities_of(given, signal, folder)
        spans = {name: entities[name].get("gpu_span", {"count": 0, "sum": 0}) for name in KERNELS}
        parts = {name: span["sum"] / max(1, span["count"]) / KERNELS[name] for name, span in spans.items()}
        seen = ", ".join(f"{name} {part:.3f} of {spans[name]['count']}" for name, part in parts.items())
        holds = all(abs(part - 1) <= 0.05 and spans[name]["count"] >= 10 for name, part in parts.items())
        yield f"12 GPU time of 0.5, 2, 1 ms kernels, {signal}", "within 5 %", seen, holds


def frames_per_second(given, *options):
    command = [given.weir, "run", acceptance.EDGES, "--backend", given.backend, "--set", "read.repeat=15"]
    ended = acceptance.run([*command, "--set", "write.every=1000", *options])
    found = re.search(r"([\d.]+) frames/s", ended.stdout)
    assert ended.returncode == 0 and found, (ended.returncode, ended.stderr[-300:])
    return float(found[1])


def cost(given):
    """Statistics with sampled GPU time, beside none: interleaved runs of examples/edges."""
    with tempfile.TemporaryDirectory(prefix="weir-observed-") as folder:
        seen = ["--gpu-time", "sample:64", "--stats-file", os.path.join(folder, "run.json")]
        pairs = [(frames_per_second(given, *seen), frames_per_second(given)) for _ in range(ROUNDS)]
    ratio = statistics.median(with_them / without for with_them, without in pairs)
    rates = statistics.median(without for _, without in pairs)
    name = "12 examples/edges with statistics and sample:64"
    yield name, ">= 0.98 of its frames/s", f"{ratio:.3f} of {rates:.0f} frames/s, {ROUNDS} rounds", ratio >= 0.98
