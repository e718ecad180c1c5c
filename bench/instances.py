#!/usr/bin/env python3
"""How much faster a stage with instances is: PNG files are read and written again, by one instance of each stage on one worker, and by
N on N workers. Both write the same bytes in the same order, or the program fails.

    instances.py WEIR [--instances N] [--rounds N] [--frames N] [--images FOLDER] [--least RATIO] [--compression N]

--instances: as many as there are cores by default. Rounds are interleaved; printed are frames per second of each round, the median of the
ratios, and the most memory of each. Exit code 1: other bytes, more memory than N times that of one, or a median below --least.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

IMAGES = pathlib.Path(__file__).resolve().parents[1] / "examples" / "images"


def graph(images, out, repeat, instances, compression):
    entities = [
        {"name": "files", "operator": "files", "parameters": {"path": str(images), "repeat": repeat}},
        {"name": "decode", "operator": "png_decode", "instances": instances, "ports": {"in": {"capacity": 4}}},
        {"name": "write", "operator": "png_write", "instances": instances, "ports": {"in": {"capacity": 4}},
         "parameters": {"directory": str(out), "compression": compression}},
    ]
    return {"weir": 1, "name": f"instances_{instances}", "scheduler": {"workers": instances}, "entities": entities,
            "connections": [["files.out", "decode.in"], ["decode.out", "write.in"]]}


def digest(folder):
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        whole.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def run(options, folder, instances):
    """Frames per second, KiB of memory, and what was written."""
    out, path, record = folder / "out", folder / "graph.json", folder / "run.json"
    shutil.rmtree(out, ignore_errors=True)
    repeat = max(1, options.frames // len(list(options.images.glob("*.png"))))
    path.write_text(json.dumps(graph(options.images, out, repeat, instances, options.compression)))
    child = subprocess.Popen([options.weir, "run", str(path), "--backend", "host", "--quiet", "--stats-file", str(record)])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"instances.py: weir run ended with {child.returncode}")
    said = json.loads(record.read_text())
    return said["frames"] * 1e9 / said["duration"], usage.ru_maxrss, digest(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("--instances", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--images", type=pathlib.Path, default=IMAGES)
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--compression", type=int, default=3)
    options = parser.parse_args()
    ratios, wrong = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in range(options.rounds):
            one, many = run(options, folder, 1), run(options, folder, options.instances)
            ratios.append(many[0] / one[0])
            print(f"round {number}: 1 instance {one[0]:.1f} frames/s, {one[1] / 1024:.1f} MiB; {options.instances} instances "
                  f"{many[0]:.1f} frames/s, {many[1] / 1024:.1f} MiB: {ratios[-1]:.2f} times as fast", flush=True)
            if one[2] != many[2]:
                wrong.append("other bytes, or another order")
            if many[1] > options.instances * one[1]:
                wrong.append("more memory than that many times one")
    median = statistics.median(ratios)
    print(f"{options.instances} instances: {median:.2f} times as fast (median of {options.rounds})")
    if median < options.least:
        wrong.append(f"less than {options.least} times")
    if wrong:
        sys.exit("instances.py: " + "; ".join(sorted(set(wrong))))


if __name__ == "__main__":
    main()
