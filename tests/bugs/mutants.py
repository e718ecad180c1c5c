"""Runs the tests of the rooms against the mutants of mutants.txt, in a build of the preset `mutants` (scripts/mutants).

    mutants.py BUILD [ROOM | FILE]...		none: all rooms; FILE: relative to the root, only its mutants
    mutants.py --rooms [ROOM | FILE]...		prints the rooms whose tests are needed

A mutant is seen if a test of its room fails with it and passes without it; one that does not end must do so twice, as the machine may be
busy. The tests that take least time go first, and before them the one that saw the mutant the last time. Exits with 1 if a mutant survives that has no line `unseen:` in mutants.txt, if one is seen that has, or if
a test fails without a mutant.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import seed

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIST = HERE / "mutants.txt"
FAKE, ON_FAKE = HERE.parent / "fake" / "bugs.txt", "streams/cuda/"  # only the tests on the fake CUDA see these
LOCKS = {}
LEFT_OUT = {"long", "models", "stress", "bench", "house", "cuda"}  # labels of tests

LATE = "not over after"


class Test:
    def __init__(self, described):
        properties = {item["name"]: item["value"] for item in described.get("properties", [])}
        self.name, self.command = described["name"], described["command"]
        self.labels = set(properties.get("LABELS", []))
        self.folder = properties.get("WORKING_DIRECTORY")
        self.settings = dict(line.split("=", 1) for line in properties.get("ENVIRONMENT", []))
        self.limit = properties.get("TIMEOUT", 60)
        self.skipped = properties.get("SKIP_RETURN_CODE")
        shared = "".join(properties.get("RESOURCE_LOCK", []))  # a folder of two tests
        self.lock = LOCKS.setdefault(shared or self.name, threading.Lock())  # some write files of one name
        self.took, self.passes = 0, True

    def run(self, mutant=None):
        """Why it failed, in a few words; None: it passed."""
        settings = {**os.environ, **self.settings, **({"WEIR_MUTANT": mutant} if mutant else {})}
        with self.lock:
            begin = time.monotonic()
            try:
                ran = subprocess.run(self.command, cwd=self.folder, env=settings, timeout=self.limit, capture_output=True, text=True,
                                     errors="replace", check=False)
            except subprocess.TimeoutExpired:
                return f"{LATE} {self.limit:.0f} s"
            if not mutant:
                self.took = time.monotonic() - begin
        if ran.returncode in (0, self.skipped):
            return None
        failed = re.search(r"\[  FAILED  \] (\w+)$|^FAILED \S+::(\w+)", ran.stdout + ran.stderr, re.M)
        return (failed[1] or failed[2]) if failed else f"exit code {ran.returncode}"

    def run_first(self):
        """Without a mutant: its limit follows from how long that takes."""
        why = self.run()
        self.passes = why is None
        self.limit = min(self.limit, 20 + 5 * self.took)
        return why


def tests_of(build, rooms):
    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    for described in json.loads(shown.stdout)["tests"]:
        test = Test(described) if "command" in described else None
        if not test or test.labels & LEFT_OUT or "_finds_" in test.name:
            continue
        if test.labels & rooms:
            yield test


def place_of(bug, texts):
    """The file that its first change is in."""
    old = bug.changes[0][0]
    return next((name for name, _ in seed.places(texts, old)), "nowhere")


def room_of(name):
    room = name.split("/")[0]
    return "scheduler" if room == "report" else room  # its tests look at runs


def mutants(asked):
    """(file, bug) of those that are asked for."""
    sources = [path for path in ROOT.glob("*/**/*.[ch]*") if path.suffix in (".c", ".h", ".cpp") and not path.parts[len(ROOT.parts)].startswith("build")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sources if path.relative_to(ROOT).parts[0] != "tests"}
    found = [(place_of(bug, texts), bug) for path in (LIST, FAKE) for bug in seed.bugs_of(path)]
    return [(name, bug) for name, bug in found if not asked or name in asked or room_of(name) in asked]


class Look:
    """One look at the mutants of some rooms."""

    def __init__(self, tests, noted):
        self.tests, self.noted = tests, noted

    def order(self, labels, bug):
        mine = [test for test in self.tests if test.passes and labels <= test.labels]
        return sorted(mine, key=lambda test: (test.name != self.noted.get(bug.name), test.took))

    def find(self, name, bug):
        """The test that sees it, and why it failed; None."""
        labels = {room_of(name)} | ({"fake"} if name.startswith(ON_FAKE) else set())  # other tests do not know its bugs
        for test in self.order(labels, bug):
            why = test.run(bug.name)
            if why and why.startswith(LATE):
                why = test.run(bug.name)
            if why and test.run() is None:
                self.noted[bug.name] = test.name
                return f"{test.name}: {why}"
        return None


def judge(name, bug, found):
    """The line of a mutant, and whether it is as it should be."""
    at = f"{name}: {bug.name}"
    if found:
        return f"{at}: seen by {found}" + (f"; but its list says: unseen: {bug.unseen}" if bug.unseen else ""), not bug.unseen
    if bug.unseen:
        return f"{at}: survives: {bug.unseen}", True
    return f"{at}: SURVIVES: {bug.says}: write a test, or a line `unseen: ` with the reason into its list", False


def main(build, *asked):
    chosen = mutants(set(asked))
    rooms = {room_of(name) for name, _ in chosen}
    if build == "--rooms":
        print(*sorted(rooms))
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send it; behind `&` a shell ignores it
    notes = pathlib.Path(build) / "mutants.json"
    look = Look(list(tests_of(build, rooms)), json.loads(notes.read_text()) if notes.exists() else {})
    wrong = 0
    if not any("fake" in test.labels for test in look.tests):  # no headers of CUDA: see tests/fake
        chosen = [(name, bug) for name, bug in chosen if not name.startswith(ON_FAKE)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for test, why in zip(look.tests, pool.map(Test.run_first, look.tests)):
            if why:
                print(f"{test.name} fails without a mutant: {why}", flush=True)
                wrong += 1
        results = {pool.submit(look.find, name, bug): (name, bug) for name, bug in chosen}
        for result in concurrent.futures.as_completed(results):
            line, right = judge(*results[result], result.result())
            print(line, flush=True)
            wrong += not right
            notes.write_text(json.dumps(dict(look.noted), indent=1))
    print(f"{len(chosen)} mutants, {len(look.tests)} tests, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
