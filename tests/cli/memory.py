"""Each allocation of the real malloc fails once: the command reports that memory ran out, or succeeds.

memory.py WEIR LIBRARY FOLDER [all]: some allocations, spread, or all of them. FOLDER is scratch.
"""
import os
import pathlib
import re
import subprocess
import sys

import process

LIBRARY, FOLDER, ALL = sys.argv[2], pathlib.Path(sys.argv[3]), "all" in sys.argv[4:]
del sys.argv[2:]
HERE = pathlib.Path(__file__).resolve().parent
EDGES = HERE.parents[1] / "examples" / "edges.json"
FIGURES = re.compile(r" *\b\d[\d,]*(\.\d+)?(e-?\d+)? (s|ms|us|frames/s)\b")
NO_MEMORY = re.compile(r"out of memory|no \d+ bytes of host memory|insufficient memory|cannot be started: Resource temporarily|Cannot allocate", re.I)
# One line, after those of warnings, which names the file.
PLACE = re.compile(r"(\S+\.json:\S+ warning [^\n]*\n)*weir (run|show|report): (\S+\.json|-|the command line): [^\n]+\n")
FEW = 40


def run(weir, arguments, **settings):
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:allocator_may_return_null=1"
    environment = {**process.environment(), "LD_PRELOAD": LIBRARY, "ASAN_OPTIONS": asan, **settings}
    return subprocess.run([weir, *arguments], capture_output=True, text=True, errors="replace", timeout=process.LIMIT,
                          env=environment, cwd=FOLDER)


IN_FLIGHT = re.compile(r"( <figure>) +\d+$", re.M)	# the last column, the ticks in flight, varies
WAITING = re.compile(r"^  waiting for something from outside: .*\n", re.M)


def figures_aside(text):
    """Also drops the line of what waits outside, which is left out when memory is short."""
    return IN_FLIGHT.sub(r"\1", FIGURES.sub(" <figure>", WAITING.sub("", text)))


def expect(weir, *arguments):
    count = FOLDER / "allocations"
    right = run(weir, arguments, FAIL_COUNT=str(count))
    total = int(count.read_text())
    assert total > 100, (arguments, total)
    step = 1 if ALL else max(1, total // FEW)
    for n in range(step // 2, total, step):
        ended = run(weir, arguments, FAIL_AT=str(n))
        told = (arguments, n, ended.returncode, ended.stdout, ended.stderr)
        assert "Sanitizer" not in ended.stderr and ended.returncode >= 0, told
        if ended.returncode == right.returncode:
            same = figures_aside(ended.stdout) == figures_aside(right.stdout)
            assert same or NO_MEMORY.search(ended.stderr), (told, right.stdout)
        else:
            assert ended.returncode == 1 and NO_MEMORY.search(ended.stderr) and PLACE.fullmatch(ended.stderr), told


def xb31_a_graph_that_is_shown(weir):
    for graph in (EDGES, process.graph("ping.json"), process.graph("resources.json")):
        expect(weir, "show", "--json", str(graph))


def xb31_a_graph_that_is_run(weir):
    for backend in ("host", "sim"):
        expect(weir, "run", "--backend", backend, "--workers", "2", process.graph("ping.json"))


def xb31_a_graph_that_reads_and_writes_pictures(weir):
    options = ["--set", f"read.path={EDGES.parent}/images/coffee.png", "--set", "read.repeat=20"]
    options += ["--set", f"write.directory={FOLDER}/pictures", "--set", "write.every=1"]
    expect(weir, "run", "--backend", "host", "--workers", "2", *options, str(EDGES))


def xb31_a_graph_that_is_stuck(weir):
    expect(weir, "run", "--backend", "host", "--workers", "2", process.graph("stuck.json"))


def xb31_a_report(weir):
    """The page goes to a file: an old one stays if memory runs out."""
    page = FOLDER / "page.html"
    files = [str(EDGES.parents[1] / "tests/cli/report" / name) for name in ("run.json", "trace.json")]
    expect(weir, "report", *files, "-o", "-")
    count = FOLDER / "allocations"
    assert run(weir, ["report", *files, "-o", str(page)], FAIL_COUNT=str(count)).returncode == 0
    whole, total = page.read_text(), int(count.read_text())
    for n in range(0, total, 1 if ALL else max(1, total // FEW)):
        page.write_text("OLD")
        ended = run(weir, ["report", *files, "-o", str(page)], FAIL_AT=str(n), FAIL_ALL="1")
        told = (n, ended.returncode, ended.stderr, len(page.read_text()))
        assert page.read_text() == (whole if ended.returncode == 0 else "OLD"), told
        assert ended.returncode in (0, 1) and (not ended.returncode or "out of memory" in ended.stderr), told
    assert not list(FOLDER.glob(".weir-*")), "a part was left"


process.main(
    [
        xb31_a_graph_that_is_shown,
        xb31_a_graph_that_is_run,
        xb31_a_graph_that_reads_and_writes_pictures,
        xb31_a_graph_that_is_stuck,
        xb31_a_report,
    ]
)
