"""Shared by the checks on a GPU: arguments, a device or a skip, processes with a time limit, figures for the
report.

Every script takes the command's path, --programs FOLDER, --backend and --signal; with --backend host all of
them run without a GPU (one_worker with --busy 1: the host has only a few threads that run kernels).
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EDGES = ROOT / "examples" / "edges.json"
SKIPPED = 77
LIMIT = 60  # seconds: nothing hangs
REPLAYED = re.compile(r"(\d+) replayed, (\d+) captured, (\d+) evicted, (\d+) failed")  # in a summary


def graph(name):
    return str(HERE / "graphs" / name)


def environment(**more):
    """The environment without settings of the user who runs the checks; English messages of the system."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_") or name == "WEIR_MUTANT"}
    return {**kept, "LC_ALL": "C", **more}


def end(child):
    """A process that hangs in the driver may survive even SIGKILL, so the wait for it is bounded."""
    child.kill()
    try:
        child.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        print(f"process {child.pid} survives SIGKILL", flush=True)


def run(command, limit=LIMIT, env=None):
    """Runs it in the root of the tree."""
    command = [str(word) for word in command]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env or environment()
    )
    try:
        out, err = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        end(child)
        raise AssertionError(f"still there after {limit} s: {' '.join(command)}") from None
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def run_json(command, limit=LIMIT):
    """The line of JSON that a program printed."""
    ended = run(command, limit)
    assert ended.returncode == 0, (ended.returncode, ended.stdout, ended.stderr)
    return json.loads(ended.stdout)


def run_changed(given, plugin, path, folder, change, *more, limit=60, env=None):
    """Runs an example's graph after `change` was called with its JSON; returns its output."""
    graph = json.loads((ROOT / "examples" / path).read_text())
    change(graph)
    changed = os.path.join(folder, "graph.json")
    with open(changed, "w") as file:
        json.dump(graph, file)
    library = os.path.join(given.examples, f"lib{plugin}.so")
    ended = run([given.weir, "run", "--plugin", library, changed, *more], limit, env)
    assert ended.returncode == 0, (ended.returncode, (ended.stdout + ended.stderr)[-300:])
    return ended.stdout + ended.stderr


def report(line):
    """Prints a figure on stdout and, since ctest hides that, appends it to the file WEIR_REPORT."""
    print(line, flush=True)
    if os.environ.get("WEIR_REPORT"):
        with open(os.environ["WEIR_REPORT"], "a") as file:
            file.write(line + "\n")


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(1 if os.environ.get("WEIR_REQUIRE_CUDA", "0") not in ("", "0") else SKIPPED)


def arguments(**more):
    parser = argparse.ArgumentParser()
    parser.add_argument("weir", type=os.path.abspath)
    parser.add_argument("--programs", type=os.path.abspath, default=".", help="of this folder's programs")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--signal", default=os.environ.get("WEIR_CUDA_SIGNAL", "callback"))
    for name, default in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    given = parser.parse_args()
    given.program = lambda name: os.path.join(given.programs, name)
    return given


def need_device(given):
    if given.backend != "cuda":
        return
    ended = run([given.weir, "run", graph("one.json"), "--backend", "cuda", "--quiet"], limit=60)
    if ended.returncode:
        skip(ended.stderr.strip())


def main(checks, given):
    """Runs every check, reports every failure."""
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    need_device(given)
    failed = 0
    for check in checks:
        try:
            check(given)
            print(f"ok      {check.__name__}")
        except AssertionError as error:
            failed += 1
            report(f"FAILED  {check.__name__} ({given.backend}, {given.signal}): {error}")
    sys.exit(1 if failed else 0)
