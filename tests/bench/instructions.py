"""Counts the cost of a tick exactly: instructions of the worker, and locked ones, under callgrind.

    instructions.py [--update] TABLE COMPILER PROGRAM

Each scenario runs twice with different lengths; the difference, divided by the ticks between, excludes
start and end. The other threads are not counted: the work of the health watch depends on the time. The
figures are compared with the table if this compiler measured it: each may be off by 3 %, or by 0.15 of an
instruction; by another one the test is skipped (77), as without valgrind or objdump. --update rewrites the
table.
"""
import functools
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

# name, arguments, messages of the shorter and the longer run, repetitions: the least counts, since contention
# adds to it
SCENARIOS = [
    ("chain_8_capacity_1", ["chain", "8", "1"], 2000, 6000, 1),
    ("chain_8_capacity_64", ["chain", "8", "64"], 2000, 6000, 1),
    ("fan_in_1000", ["fan_in", "1000", "4"], 2, 4, 1),
    ("fan_in_10000", ["fan_in", "10000", "4"], 2, 4, 1),
    ("fan_out_100", ["fan_out", "100", "1"], 20, 40, 1),
    ("fan_out_10000", ["fan_out", "10000", "1"], 2, 4, 1),
    ("gated", ["gated", "0", "1"], 200, 600, 4),
]
OFF, LEAST = 0.03, 0.15
SKIPPED = 77
LOCKED = re.compile(r"^\s*([0-9a-f]+):\s+(?:lock\s|xchg\s+[^#\n]*\()", re.M)


@functools.cache
def locked_addresses(path):
    """Addresses of a file's locking instructions: those with the prefix, and xchg with memory, which locks
    without it.
    """
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    return {int(address, 16) for address in LOCKED.findall(listing)}


def read(path, function="wr_worker_main"):
    """(instructions, locked ones) that callgrind counted in one thread, or None if it did not run that function."""
    instructions = locked = 0
    addresses, called, worker = set(), False, not function
    for line in path.read_text().splitlines():
        if line.startswith("ob="):
            name = line[3:]
            addresses = locked_addresses(name) if name.startswith("/") else set()
        elif line.startswith("calls="):
            called = True
        elif line.startswith("fn="):
            worker |= line == f"fn={function}"
        elif line.startswith("0x"):
            address, count = line.split()
            if not called:  # the line after a call has the callee's cost
                instructions += int(count)
                locked += int(count) if int(address, 16) in addresses else 0
            called = False
    return (instructions, locked) if worker else None


def tool(folder):
    """The command that counts, one file for each thread."""
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--separate-threads=yes", "--dump-instr=yes", "--dump-line=no",
            "--compress-pos=no", "--compress-strings=no", "--fair-sched=yes"]


def run(program, arguments, messages):
    """(ticks, instructions, locked ones) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([*tool(folder), program, *arguments, str(messages)], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{' '.join(arguments)}: {result.stderr}")
        workers = [found for found in map(read, pathlib.Path(folder).glob("out-*")) if found]
        if len(workers) != 1:
            sys.exit(f"{' '.join(arguments)}: {len(workers)} threads ran wr_worker_main, one was due")
        return int(result.stdout), *workers[0]


def measure(program):
    """{scenario: (instructions, locked ones) a tick}"""
    figures = {}
    for name, arguments, short, long, times in SCENARIOS:
        few, many = (min(run(program, arguments, length) for _ in range(times)) for length in (short, long))
        figures[name] = tuple((many[i] - few[i]) / (many[0] - few[0]) for i in (1, 2))
    return figures


def table(path):
    """(the compiler, {scenario: figures}) of a table."""
    figures, compiler = {}, None
    for line in open(path):
        if line.startswith("compiler "):
            compiler = line.split(maxsplit=1)[1].strip()
        elif line.strip() and not line.startswith("#"):
            name, *numbers = line.split()
            figures[name] = tuple(float(number) for number in numbers)
    return compiler, figures


def write(path, compiler, figures):
    with open(path, "w") as out:
        out.write("# Instructions and locked instructions a tick: instructions.py --update writes this. A commit that changes what a\n"
                  "# tick costs updates it, and says why.\n")
        out.write(f"compiler {compiler}\n")
        for name, (instructions, locked) in figures.items():
            out.write(f"{name:<22}{instructions:>10.1f}{locked:>9.2f}\n")


def off(is_now, was):
    return abs(is_now - was) > max(OFF * was, LEAST)


def judge(path, compiler, figures):
    """Prints all figures; returns the exit code."""
    measured_by, due = table(path)
    judged, right = measured_by == compiler, True
    if not judged:
        print(f"skipped: the table was measured by {measured_by}, this is {compiler}")
    for name, found in figures.items():
        was = due.get(name)
        wrong = judged and (not was or any(off(*pair) for pair in zip(found, was)))
        right &= not wrong
        print(f"{name:<22}{found[0]:>10.1f}{found[1]:>9.2f}   table: {was}{'   OFF' if wrong else ''}")
    return (0 if right else 1) if judged else SKIPPED


def main(arguments):
    update = "--update" in arguments
    path, compiler, program = [argument for argument in arguments if argument != "--update"]
    missing = [tool for tool in ("valgrind", "objdump") if not shutil.which(tool)]
    if missing or platform.machine() != "x86_64":
        print(f"skipped: needs x86_64, valgrind and objdump (missing: {', '.join(missing) or 'x86_64'}); scripts/install-deps tests")
        return SKIPPED
    figures = measure(program)
    if update:
        write(path, compiler, figures)
    code = judge(path, compiler, figures)
    if code == 1:
        print("more than 3 % off: if that is meant, write the table anew (ninja -C build update_instructions)")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
