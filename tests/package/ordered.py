"""Every function of the library, compiled for 64-bit Arm, has the ordered instructions that the operations of its source say, which
house.orders compares with tests/models/orders.txt. An access of an atomic that names no order, or a macro of base/atomic.h with
another order than that of its name, shows here.

ordered.py ROOT COMMANDS COMPILER: COMMANDS is the compile_commands.json of a build for aarch64.

Each file is compiled anew without optimization, so that each operation of the source is one instruction of its own function, and
for ARMv8.1, which has one for each. GCC has `ldar` for loads that acquire and for those that are seq_cst, `stlr` likewise for
stores: they cannot be told apart, nor need they be. A relaxed load or store is a plain one, so it shows only if it is ordered.

First a file with one fault of each kind must be reported.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT, COMMANDS, COMPILER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(ROOT / "tests/house"))
import orders  # noqa: E402
import source  # noqa: E402

PLAIN = ["-O0", "-U_FORTIFY_SOURCE", "-UNDEBUG", "-fno-inline", "-Dalways_inline=noinline", "-march=armv8.1-a", "-w", "-S", "-o", "-"]
# Of a file that needs a package: what its command has where the package is.
OPTIONAL = {"trace/nvtx.c": "-DWEIR_WITH_NVTX"}
ORDERED = re.compile(r"\s(?:(ldap?r)|(stlr)|(?:swp|cas|ld(?:add|clr|set|eor|[su]max|[su]min)|st(?:add|clr|set|eor))(al|a|l|))[bh]?\s")
LABEL = re.compile(r"(\w+):$")
SUFFIX = {"relaxed": "relaxed", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel", "seq_cst": "acq_rel"}


def shown(what, order):
    """An operation as the instruction shows it; None: a plain one."""
    if what == "rmw":
        return what, SUFFIX[order]
    if order == "relaxed":
        return None
    return what, "acquire" if what == "load" else "release"


def compiled(text):
    """{function: its ordered instructions} of an assembler file."""
    found, name = {}, None
    functions = set(re.findall(r"\.type\s+(\w+), ?[%@]function", text))
    for line in text.splitlines():
        label = LABEL.match(line)
        if label and label[1] in functions:
            name = label[1]
            found[name] = collections.Counter()
        hit = ORDERED.search(line) if name else None
        if hit:
            rmw = {"": "relaxed", "a": "acquire", "l": "release", "al": "acq_rel"}
            found[name][("load", "acquire") if hit[1] else ("store", "release") if hit[2] else ("rmw", rmw[hit[3]])] += 1
    return found


def wanted(root, operations):
    """{(file, function): its ordered instructions} by the source."""
    found, lines = collections.defaultdict(collections.Counter), {}
    for _, what, order, function, place in operations:
        one, (file, _, line) = shown(what, order), place.rpartition(":")
        if not one or not function:  # a macro's: its users have it
            continue
        found[file, function][one] += 1
        text = lines.setdefault(file, (root / file).read_text().splitlines())
        if "wr_stack_push" in text[int(line) - 1]:  # base/stack.h: it looks first
            found[file, function]["load", "acquire"] += 1
    return found


def assembler(command, folder, path):
    words = [word for word in shlex.split(command) if word != "-c"]
    if "-o" in words:
        at = words.index("-o")
        del words[at:at + 2]
    ended = subprocess.run([*words, *PLAIN], cwd=folder, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"{path}: {ended.stderr}")
    return ended.stdout


def listed(counter):
    return ", ".join(f"{count} {what} {order}" for (what, order), count in sorted(counter.items())) or "none"


def compare(root, commands, operations):
    """(faults, the functions that were compared). commands: (file, command, folder)."""
    by_source, faults, seen = wanted(root, operations), set(), set()
    headers = {function: file for file, function in by_source if file.endswith(".h")}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda one: assembler(one[1], one[2], one[0]), commands)
        for (path, _, _), text in zip(commands, texts):
            file = pathlib.Path(path).relative_to(root).as_posix()
            for function, has in compiled(text).items():
                home = file if (file, function) in by_source else headers.get(function, file)
                should = by_source.get((home, function), collections.Counter())
                seen.add((home, function))
                if has != should:
                    faults.add(f"{home}: {function} has {listed(has)}; its source says {listed(should)}")
    files = {pathlib.Path(path).relative_to(root).as_posix(): command for path, command, _ in commands}
    files = {file for file, command in files.items() if OPTIONAL.get(file, "") in command}
    faults |= {f"{file}: {function} was not found in what is compiled" for file, function in by_source
               if (file, function) not in seen and (file in files or file.endswith(".h"))}
    return sorted(faults), {key for key in seen if by_source.get(key)}


FAULTY = """#include <stdatomic.h>
_Atomic int word;
#define wr_store_release(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define wr_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define wr_fetch_add(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acquire)
void named_otherwise(void)
{
	wr_store_release(&word, 1);
}
int without_a_name(void)
{
	return word + wr_load_relaxed(&word);
}
void too_weak(void)
{
	wr_fetch_add(&word, 1);
}
int right(void)
{
	return wr_load_relaxed(&word);
}
"""
FAULTS = ["base/faulty.c: named_otherwise has none; its source says 1 store release",
          "base/faulty.c: too_weak has 1 rmw acquire; its source says 1 rmw acq_rel",
          "base/faulty.c: without_a_name has 1 load acquire; its source says none"]


def can_fail(options):
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / "base").mkdir()
        (root / "base/faulty.c").write_text(FAULTY)
        command = shlex.join([COMPILER, *options, "-c", str(root / "base/faulty.c")])
        faults, _ = compare(root, [(root / "base/faulty.c", command, root)], orders.operations(root)[0])
    assert faults == FAULTS, faults


def main():
    library = {str(path) for room in source.LIBRARY for path in source.files(ROOT, room) if path.suffix == ".c"}
    commands = [(one["file"], one["command"], one["directory"]) for one in json.loads(COMMANDS.read_text())
                if one["file"] in library and "weir_objects.dir" in one["command"]]
    if not commands:
        sys.exit(f"{COMMANDS}: no file of the library")
    can_fail([word for word in shlex.split(commands[0][1]) if word.startswith("--sysroot")])
    operations = [*orders.operations(ROOT)[0]]
    faults, functions = compare(ROOT, commands, operations)
    source.verdict(faults, f"{len(commands)} files: {len(functions)} functions have the ordered instructions that their source says")


main()
