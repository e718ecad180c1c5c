"""What observers see on a GPU, and what they cost: rows of rows.py, each (name, wanted, seen, holds)."""
import json
import os
import re
import statistics
import tempfile

import acceptance

RAW = acceptance.ROOT / "examples" / "frames.json"
SPINS = acceptance.ROOT / "tests" / "trace" / "graphs" / "spins.json"
KERNELS = {"short": 500_000, "long": 2_000_000, "middle": 1_000_000}  # ns of each kernel of spins.json
ROUNDS = 9
FRAMES = 6000


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


def frames_per_second(given, frames, *options):
    """Of examples/frames.json, which reads raw frames: decoding pictures would bound the rate, and hide a cost."""
    command = [given.weir, "run", RAW, "--backend", given.backend, "--set", f"read.path={frames}"]
    ended = acceptance.run([*command, "--set", "write.path=/dev/null", *options])
    found = re.search(r"([\d.,]+) frames/s", ended.stdout)
    assert ended.returncode == 0 and found, (ended.returncode, ended.stderr[-300:])
    return float(found[1].replace(",", ""))


def cost(given):
    """Statistics with sampled GPU time, beside none: interleaved runs. The spread of none against itself is allowed for."""
    rates = {"none": [], "observed": [], "none again": []}
    with tempfile.TemporaryDirectory(prefix="weir-observed-") as folder:
        frames = os.path.join(folder, "frames.rgb")
        with open(frames, "wb") as file:
            file.truncate(FRAMES * 640 * 480 * 3)
        seen = ["--gpu-time", "sample:64", "--stats-file", os.path.join(folder, "run.json")]
        for turn in range(ROUNDS):
            for i in range(3):
                kind = list(rates)[(turn + i) % 3]
                rates[kind].append(frames_per_second(given, frames, *(seen if kind == "observed" else ())))
    rate = {kind: statistics.median(values) for kind, values in rates.items()}
    none = (rate["none"] + rate["none again"]) / 2
    middle, spread = rate["observed"] / none, abs(rate["none"] - rate["none again"]) / none
    said = f"{middle:.3f} of {none:.0f} frames/s as the medians of {ROUNDS} runs each; none against itself {spread:.3f}"
    name = "12 examples/frames with statistics and sample:64"
    yield name, ">= 0.98 of its frames/s, less the spread", said, middle >= 0.98 - spread
