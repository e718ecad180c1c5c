"""Runs Nsight Systems, and reads what it recorded: ranges and marks of weir's domain, threads, work on the GPU."""
import bisect
import glob
import os
import pathlib
import shutil
import sqlite3
import subprocess
from collections import Counter, defaultdict, namedtuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 120  # seconds, of each process
MARK, DOMAIN, CATEGORY, PUSH_POP, START_END = 34, 75, 33, 59, 60  # of the export's ENUM_NSYS_EVENT_TYPE

Event = namedtuple("Event", "begin end category name payload thread ended_on")
Work = namedtuple("Work", "begin end stream enqueued thread")


class Missing(Exception):
    """What the checks need is not there."""


def find_nsys():
    places = sorted(glob.glob("/opt/nvidia/nsight-systems/*/bin/nsys"), reverse=True) + ["/usr/local/cuda/bin/nsys"]
    found = os.environ.get("NSYS") or shutil.which("nsys") or next(filter(os.path.exists, places), None)
    if not found:
        raise Missing("no nsys in PATH; NSYS=FILE names one")
    return found


def run(command, folder):
    """In the root of the tree, with an environment of a few names: a report contains it."""
    names = ("PATH", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    ended = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=LIMIT, cwd=ROOT,
        env={**kept, "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C"},
    )
    assert ended.returncode == 0, f"{command[:2]}: exit {ended.returncode}: {(ended.stdout + ended.stderr)[-600:]}"
    return ended.stdout


def profile(nsys, folder, name, command, backend="host"):
    """Runs the command under nsys. Returns its output, the report and its export."""
    report, export = folder / f"{name}.nsys-rep", folder / f"{name}.sqlite"
    options = ["--trace=nvtx,cuda", "--cuda-graph-trace=node"] if backend == "cuda" else ["--trace=nvtx"]
    options += ["--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "-o", report]
    try:
        output = run([nsys, "profile", *options, *command], folder)
    except AssertionError as error:  # its service sometimes does not come up
        if not str(error).endswith("End of file\n"):
            raise
        output = run([nsys, "profile", *options, *command], folder)
    assert report.exists(), f"nsys wrote no report: {output[-600:]}"
    run([nsys, "export", "--type=sqlite", "--force-overwrite=true", "-o", export, report], folder)
    return output, report, export


class Export:
    """The rows of weir's domain, by kind and in order of time; kernels, if CUDA was traced."""

    def __init__(self, path):
        self.file = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.tables = {name for (name,) in self.file.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
        if "NVTX_EVENTS" not in self.tables:
            raise AssertionError("the export has no NVTX events")
        domains = self.all("SELECT domainId FROM NVTX_EVENTS WHERE eventType = ? AND text = 'weir'", DOMAIN)
        assert len(domains) == 1, f"{len(domains)} domains 'weir'"
        (self.domain,) = domains[0]
        self.categories = dict(self.all(
            "SELECT category, text FROM NVTX_EVENTS WHERE eventType = ? AND domainId = ?", CATEGORY, self.domain))
        self.ranges = self.events(PUSH_POP)
        self.process_ranges = self.events(START_END)
        self.marks = self.events(MARK)
        process = self.ranges[0].thread >> 24 if self.ranges else None  # the tool names the threads of all processes
        self.threads = {thread: name for thread, name in self.all(
            "SELECT t.globalTid, s.value FROM ThreadNames t JOIN StringIds s ON s.id = t.nameId")
            if thread >> 24 == process and name.startswith("weir:")}

    def all(self, query, *values):
        return self.file.execute(query, values).fetchall()

    def events(self, kind):
        rows = self.all(
            "SELECT start, end, category, COALESCE(s.value, text), uint64Value, globalTid, COALESCE(endGlobalTid, globalTid)"
            " FROM NVTX_EVENTS LEFT JOIN StringIds s ON s.id = textId"
            " WHERE eventType = ? AND domainId = ? ORDER BY start", kind, self.domain)
        return [Event(*row[:2], self.categories.get(row[2]), *row[3:]) for row in rows]

    def of(self, category, events=None):
        return [event for event in (self.ranges if events is None else events) if event.category == category]

    def gpu_work(self):
        """Kernels and copies on the GPU, each with the time and thread of the call that enqueued it."""
        found = []
        for kind in ("KERNEL", "MEMCPY", "MEMSET"):
            if f"CUPTI_ACTIVITY_KIND_{kind}" in self.tables:
                found += [Work(*row) for row in self.all(
                    f"SELECT w.start, w.end, w.streamId, call.start, call.globalTid FROM CUPTI_ACTIVITY_KIND_{kind} w"
                    " JOIN CUPTI_ACTIVITY_KIND_RUNTIME call ON call.correlationId = w.correlationId")]
        return sorted(found)

    def gpu_work_of_ticks(self):
        """(entity, work) of all of it; entity None: no tick enqueued it."""
        by_thread = defaultdict(list)
        for tick in self.of("tick"):
            by_thread[tick.thread].append(tick)
        begins = {thread: [tick.begin for tick in ticks] for thread, ticks in by_thread.items()}
        for work in self.gpu_work():
            at = bisect.bisect_right(begins.get(work.thread, []), work.enqueued) - 1
            tick = by_thread[work.thread][at] if at >= 0 else None
            yield tick.name if tick and work.enqueued <= tick.end else None, work

    def projected(self):
        """{entity: ns on the GPU} of the work that its ticks enqueued."""
        times = Counter()
        for entity, work in self.gpu_work_of_ticks():
            times[entity] += work.end - work.begin
        return times
