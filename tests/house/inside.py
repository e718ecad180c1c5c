"""
A test reaches the inside of the library through the rig of its room alone, so that a change of a struct is a change of one file.

Headers of base/ and sim/ are free: every room is written in their words.
"""
import fnmatch
import sys

import source

FREE = ("base/", "sim/")
# Files that may include headers of the library, whose headers, and why.
MAY = [
    ("tests/scheduler/rig_inside.[ch]", ("scheduler", "streams", "trace"), "the rig of runs"),
    ("tests/scheduler/rest.h", ("scheduler", "streams"), "the rig of a world at rest"),
    ("tests/scheduler/certificate.h", ("scheduler",), "the end of a run, from counts and the plan"),
    ("tests/scheduler/dst*.h", ("scheduler", "streams"), "the rig of simulated worlds"),
    ("tests/scheduler/queue_rig.h", ("scheduler",), "the rig of queues, which have no public form"),
    ("tests/scheduler/ask_*.[ch]", ("scheduler",), "states of queues are plain data: they are what is enumerated"),
    ("tests/scheduler/align.c", ("scheduler",), "the choice of a set is a function of plain data"),
    ("tests/scheduler/message_rig.h", ("scheduler",), "the rig of messages without a graph"),
    ("tests/scheduler/memory_claims_rig.h", ("scheduler",), "the rig of claims, which have no public form"),
    ("tests/scheduler/memory_blocks_rig.h", ("scheduler",), "the rig of blocks, which have no public form"),
    ("tests/scheduler/system.[ch]", ("scheduler",), "stands for streams/ beside them"),
    ("tests/streams/rig.h", ("streams",), "the rig of systems"),
    ("tests/fake/test_backend.c", ("streams",), "the table of a backend is its door"),
    ("tests/graphs/*", ("graphs",), "descriptions and plans are plain data: they are what is compared"),
    ("tests/graphs/plan_test.c", ("graphs", "streams"), "a bound of streams/ is a bound of plans"),
    ("tests/trace/*", ("trace",), "an observer is a table of functions"),
    ("tests/conditions/*", ("conditions",), "the tables of the built-in conditions are their door"),
    ("tests/conditions/rig.c", ("scheduler",), "stands for the door that these conditions use"),
    ("tests/operators/*", ("operators",), "the tables of the built-in operators, and the reader of pictures"),
    ("tests/fuzz/fuzz_picture.c", ("operators",), "the reader of pictures"),
    ("tests/cli/log.c", ("cli",), "the command's lines of the log"),
    ("tests/cli/report.c", ("cli",), "plain data of weir report"),
    ("tests/cli/findings_rig.h", ("cli",), "plain data of weir report"),
    ("tests/cli/recorded.c", ("cli",), "the record of a run, plain data"),
    ("tests/remote/*", ("remote",), "what the two sides say is plain data, and a transport is a table of functions"),
    ("tests/fuzz/fuzz_wire.c", ("remote",), "the reader of heads"),
    ("tests/fuzz/fuzz_record.c", ("cli",), "the reader of records"),
]


def faults(root):
    tests = root / "tests"
    used = set()
    for path in sorted(tests.rglob("*")):
        if path.suffix not in source.SUFFIXES:
            continue
        name = path.relative_to(root).as_posix()
        may = [(pattern, rooms) for pattern, rooms, _ in MAY if fnmatch.fnmatch(name, pattern)]
        for line, _, header in source.includes(path):
            room = source.room_of(header)
            if not room or header.startswith(FREE):
                continue
            found = {pattern for pattern, rooms in may if room.split("/")[0] in rooms}
            used |= found
            if not found:
                yield f"{name}:{line}: includes {header}: use the rig of the room, or let it have a function for this"
    for pattern, _, _ in MAY:
        if pattern not in used and list(root.glob(pattern)):
            yield f"tests/house/inside.py: {pattern} need not be listed"


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), f"{len(MAY)} rules let tests see the inside of the library")
