"""Branch coverage of rooms, from the .gcda files of a build with --coverage (scripts/coverage).

    coverage.py BUILD LIST ROOM...

Prints covered and all branches per file and room, then every branch that no test takes, but for those that LIST
explains. The same line in several objects counts once: the library and its seam build, headers. Lines with
assert are left out.

Exits with 1 if such a line is left, if a room has less than 95 % of its branches taken, or if an entry of LIST explains
nothing, unless its reason begins with "sometimes: ": then threads decide whether a run takes the branch.
"""
import collections
import fnmatch
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LEAST = 95  # % of the branches of a room, with or without a reason
ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = re.compile(r"\bassert\(|_Static_assert")


def objects(build, rooms):
    """The .gcda files of the rooms' objects."""
    for path in sorted(build.resolve().rglob("*.gcda")):
        if any(f"/{room}/" in str(path) for room in rooms) or "/tests/" in str(path):
            yield path


def documents(paths):
    """What gcov says about each object."""
    with tempfile.TemporaryDirectory() as folder:
        for at in range(0, len(paths), 50):
            command = ["gcov", "--json-format", "--branch-probabilities", "--hash-filenames", *map(str, paths[at : at + 50])]
            subprocess.run(command, cwd=folder, capture_output=True, check=False)
            for path in pathlib.Path(folder).glob("*.gz"):
                yield json.loads(gzip.decompress(path.read_bytes()))
                path.unlink()


def merge(build, rooms):
    """{file: {line: [count of each branch]}}; a line whose objects differ in branches keeps the larger set."""
    merged = collections.defaultdict(dict)
    for document in documents(list(objects(build, rooms))):
        for entry in document["files"]:
            name = os.path.relpath(os.path.join(document["current_working_directory"], entry["file"]), ROOT)
            name = re.sub(r"^build[^/]*/seam/", "", name)
            if name.split("/")[0] not in rooms or not (ROOT / name).exists():  # an object of a file that is gone
                continue
            lines = collections.defaultdict(list)
            for line in entry["lines"]:
                lines[(line["line_number"], line.get("function_name"))] += [b["count"] for b in line["branches"]]
            for (number, _), counts in lines.items():
                known = merged[name].get(number, [])
                if len(known) == len(counts):
                    counts = [a + b for a, b in zip(known, counts)]
                elif len(known) > len(counts):
                    continue
                merged[name][number] = counts
    return merged


def read_list(path):
    """[(reason, file, pattern of a line)]: a file may end in *"""
    listed, reason = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            reason = line[3:]
        elif line and not line.startswith("#"):
            name, pattern = line.split(": ", 1)
            listed.append((reason, name, re.compile(pattern)))
    return listed


def reason_of(listed, used, name, text):
    for entry in listed:
        if fnmatch.fnmatch(name, entry[1]) and entry[2].search(text):
            used[entry] += 1
            return entry[0]
    return None


def main(build, list_file, *rooms):
    listed, used = read_list(pathlib.Path(list_file)), collections.Counter()
    per_room, uncovered, reasons = collections.Counter(), [], collections.Counter()
    for name, lines in sorted(merge(pathlib.Path(build), rooms).items()):
        source = (ROOT / name).read_text().splitlines()
        taken = total = excused = 0
        for number, counts in sorted(lines.items()):
            text = source[number - 1].strip() if number <= len(source) else ""
            if not counts or LEFT_OUT.search(text):
                continue
            missed = counts.count(0)
            taken, total = taken + len(counts) - missed, total + len(counts)
            reason = reason_of(listed, used, name, text) if missed else None
            if reason:
                reasons[reason] += missed
                excused += missed
            elif missed:
                uncovered.append(f"{name}:{number}: {missed} of {len(counts)}: {text}")
        room = name.split("/")[0]
        per_room.update({(room, "taken"): taken, (room, "total"): total, (room, "excused"): excused})
        if total:
            print(f"{name:30} {taken:5} of {total:5}  {100 * taken / total:5.1f} %, with a reason {excused}")
    print(f"\n{len(uncovered)} lines with a branch that no test takes and {list_file} does not explain:", *uncovered, sep="\n")
    print("\nbranches left, by reason:", *(f"{count:5}  {reason}" for reason, count in reasons.most_common()), sep="\n")
    print()
    for room in rooms:
        taken, total, excused = (per_room[room, what] for what in ("taken", "total", "excused"))
        print(f"{room:10} {taken:5} of {total:5} branches, {100 * taken / max(total, 1):.1f} %; {excused} are left with a reason; "
              f"of the others {100 * taken / max(total - excused, 1):.1f} %")
    stale = [entry for entry in listed if not used[entry] and not entry[0].startswith("sometimes: ")]
    print(*(f"{list_file}: nothing is left that '{name}: {pattern.pattern}' explains" for _, name, pattern in stale), sep="\n")
    low = [room for room in rooms if 100 * per_room[room, "taken"] < LEAST * per_room[room, "total"]]
    print(*(f"{room}: less than {LEAST} % of the branches are taken: add tests" for room in low), sep="\n")
    if uncovered:
        print(f"{len(uncovered)} lines (listed above) need a test, or a reason in {list_file}")
    return bool(stale or uncovered or low)


sys.exit(main(*sys.argv[1:]))
