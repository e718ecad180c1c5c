"""Each call of CUDA fails at its N-th time in a small run. The run then ends by itself, with one line that names the error
or as if nothing had been; nothing is left over, nothing is used after its end.

    sweep.py FOLDER WHAT TIMES	FOLDER: of the programs for the fake CUDA; WHAT: auto, callback, callback_inline, flag or replay;
				TIMES: which calls of each name fail, as 1,3
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 60  # seconds, for one run
CODES = {2: "cudaErrorMemoryAllocation", 1: "cudaErrorInvalidValue", 719: "cudaErrorLaunchFailure"}
# What says nothing about the device, or is no call at all.
SILENT = {"cudaGetLastError", "cudaThreadExchangeStreamCaptureMode"}
PROBLEMS = re.compile(r"fake CUDA: (?!it has no driver)|Sanitizer|runtime error")
NAMED = re.compile(r"\bcu\w+|CUDA|driver 13")


def command(folder, what):
    if what == "replay":
        return [os.path.join(folder, "replay"), "keys", "48"]
    graph = str(HERE / "sweep.json")
    return [os.path.join(folder, "weir"), "run", graph, "--backend", "cuda", "--signal", what, "--quiet", "--stats-file", "/dev/null"]


def run(words, **more):
    return subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **more}, timeout=LIMIT
    )


def counts(words):
    with tempfile.TemporaryDirectory(prefix="weir-sweep-") as folder:
        path = pathlib.Path(folder, "counts")
        ended = run(words, FAKE_CUDA_COUNT=str(path))
        assert ended.returncode == 0 and not ended.stderr, ended
        return {name: int(count) for name, count in (line.split() for line in path.read_text().splitlines())}


def wrong(ended):
    """What is wrong with how a run ended, or None."""
    said = ended.stderr.strip()
    if ended.returncode not in (0, 1) or PROBLEMS.search(said):
        return "did not end by itself"
    if ended.returncode == 1 and not NAMED.search(said):
        return "names no error"
    if ended.returncode == 0 and re.search(r'"wrong": [1-9]', ended.stdout):
        return "succeeded with a wrong result"
    if ended.returncode == 1 and len(said.splitlines()) > 2:
        return "says more than it has to"
    return None


def case(given):
    """The exit code, and what is wrong or None."""
    words, call, nth, code = given
    fault = f"{call}:{nth}:{code}"
    try:
        ended = run(words, FAKE_CUDA_FAIL=fault)
    except subprocess.TimeoutExpired:
        return 0, f"FAKE_CUDA_FAIL={fault}: still there after {LIMIT} s"
    what = wrong(ended)
    return ended.returncode, what and f"FAKE_CUDA_FAIL={fault} ({CODES[code]}): {what}: exit code {ended.returncode}: {ended.stderr[-700:]}"


def main(folder, what, times):
    words = command(folder, what)
    made = counts(words)
    cases = [
        (words, call, nth, code)
        for call, count in made.items()
        if call not in SILENT
        for nth in map(int, times.split(","))
        if nth <= count
        for code in CODES
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(case, cases))
    faults = [fault for _, fault in ends if fault]
    failed = sum(code != 0 for code, _ in ends)
    if failed < len(cases) / 2:
        faults.append("most runs did not notice that a call had failed")
    print(f"{len(made)} calls, {len(cases)} runs of {what}, {failed} ended with an error, {len(faults)} were wrong")
    print(*faults, sep="\n")
    sys.exit(bool(faults))


main(*sys.argv[1:])
