"""The public ABI changes by additions alone, as long as WEIR_ABI stays.

    abi.py ROOT COMPILER [KEPT]     compares include/weir.h with tests/house/weir.abi (or with KEPT); 77: no abidiff here
    abi.py ROOT COMPILER --renew    writes tests/house/weir.abi: when WEIR_ABI has grown, and to keep what was added;
                                    and tests/package/abi/weir-N.h, the header as it is, if N has none yet
    abi.py ROOT COMPILER --open     writes tests/house/weir.abi so that nothing is compared until the next --renew, for
                                    a new WEIR_ABI that several changes make; removes weir-N.h. Not in a weir 1.0

The dump is that of a library whose functions are those of weir.h with empty bodies, so it depends on the header
alone, not on a build of weir, and has no type that is not public. tests/house/exports.py sees that the real
library exports the same functions, the compiler that it defines them with the same types.

Allowed: new functions and constants; new fields at the end of the structs in MAY_GROW, which are read and filled as far as
their `size` says. All else breaks programs or plugins: it needs a larger WEIR_ABI, in the same commit as the new
dump.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import source

KEPT = "tests/house/weir.abi"
HEADERS = "tests/package/abi"
MAY_GROW = ["scheduler_options", "outcome", "entity_counts", "queue_counts", "operator", "port", "parameter",
            "tensor", "kernel", "unmet", "error"]
SUPPRESSION = """[suppress_type]
name_regexp = ^({})$
type_kind = struct
has_data_member_inserted_at = end
"""
FUNCTION = re.compile(r"^WEIR_API\s[^;{}]*?\bweir_\w+\s*\([^;{}]*\)\s*(?:WEIR_PRINTF\([^)]*\))?\s*;", re.M)
DUMP = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--no-architecture",
        "--no-parameter-names", "--no-write-default-sizes"]


def abi_number(text):
    return int(re.search(r"#define WEIR_ABI\s+(\d+)u", text)[1])


def stub(text):
    """A C file that defines every function of the header."""
    plain = source.without_comments(text)
    plain = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", plain, flags=re.M)
    bodies = (re.sub(r"\s*(WEIR_PRINTF\([^)]*\))?\s*;$", "\n{\n\t__builtin_trap();\n}\n", f) for f in FUNCTION.findall(plain))
    return '#include "weir.h"\n' + "".join(bodies)


def constants(header, compiler, folder):
    """{name: value} of every enumerator and of every macro that is a number."""
    plain = source.without_comments(header.read_text())
    names = re.findall(r"\b(WEIR_\w+)\b", " ".join(re.findall(r"\benum\s*\w*\s*\{(.*?)\}", plain, re.S)))
    names += re.findall(r"^#define (WEIR_\w+)[ \t]+\(?(?:-?\d|UINT)", plain, re.M)
    names += re.findall(r"^[ \t]*X\((WEIR_\w+),", plain, re.M)
    names = sorted(name for name in set(names) - {"WEIR_ABI"} if not name.endswith(("_ENUM", "_TABLE")))
    lines = "".join(f'\tprintf("{name} %lld\\n", (long long){name});\n' for name in names)
    (folder / "constants.c").write_text(f'#include <stdio.h>\n#include "weir.h"\nint main(void)\n{{\n{lines}\treturn 0;\n}}\n')
    subprocess.run([compiler, "-I", header.parent, "-o", "constants", "constants.c"], cwd=folder, check=True)
    told = subprocess.run([folder / "constants"], check=True, capture_output=True, text=True).stdout
    return dict(line.split() for line in told.splitlines())


def dump(header, compiler, script, folder):
    """The path of the dump of a header's ABI."""
    (folder / "stub.c").write_text(stub(header.read_text()))
    subprocess.run([compiler, "-g", "-O0", "-std=c11", "-w", "-fPIC", "-shared", "-I", header.parent, "-o", "libweir.so",
                    "stub.c", f"-Wl,--version-script={script}", "-Wl,-soname,libweir.so"], cwd=folder, check=True)
    out = folder / "weir.abi"
    subprocess.run([*DUMP, "--out-file", out, "libweir.so"], cwd=folder, check=True)
    return out


def without_language(text):
    """The compiler's word for C is left out."""
    return re.sub(r" language='[^']*'", "", text)


def type_text(types, number):
    """A type in words that do not depend on the numbers of a dump."""
    item = types[number]
    inner = type_text(types, item.get("type-id")) if item.tag in ("pointer-type-def", "qualified-type-def") else ""
    if item.tag == "function-type":
        inner = ", ".join(type_text(types, part.get("type-id")) for part in item if part.get("type-id"))
    return f"{item.tag} {item.get('name', '')} {inner}"


def members(path, struct):
    """(name, place, type) of every field."""
    types = {item.get("id"): item for item in xml.etree.ElementTree.parse(path).iter() if item.get("id")}
    whole = next((t for t in types.values() if t.tag == "class-decl" and t.get("name") == struct and len(t)), ())
    return [(f[0].get("name"), f.get("layout-offset-in-bits"), type_text(types, f[0].get("type-id"))) for f in whole]


def grown(kept, now):
    """Those of MAY_GROW that have got new fields at their ends, and no other change."""
    for struct in (f"weir_{name}" for name in MAY_GROW):
        old, new = members(kept, struct), members(now, struct)
        if len(new) > len(old) and new[:len(old)] == old:
            yield struct


def compare(kept, now, folder):
    """The report of abidiff on what is not allowed; empty if there is none."""
    allowed = folder / "allowed"  # a rule without a new field would hide every other change of the struct
    allowed.write_text("".join(SUPPRESSION.format(struct) for struct in grown(kept, now)))
    ended = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", allowed, kept, now], capture_output=True, text=True)
    return ended.stdout + ended.stderr if ended.returncode else ""


def renew(root, number, values, now):
    told = "".join(f"{name} {value}\n" for name, value in values.items())
    (root / KEPT).write_text(f"<!-- WEIR_ABI {number}\n{told}-->\n" + without_language(now.read_text()))
    header = root / HEADERS / f"weir-{number}.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    if not header.exists():
        header.write_bytes((root / "include/weir.h").read_bytes())


def leave_open(root, number):
    (root / KEPT).write_text(f"<!-- WEIR_ABI {number} open\n-->\n")
    (root / HEADERS / f"weir-{number}.h").unlink(missing_ok=True)


def check_open(root, number):
    """Nothing is compared, but the number is that of the header, which no release has."""
    faults = []
    if (root / HEADERS / f"weir-{number}.h").exists():
        faults += [f"WEIR_ABI {number} is open and has a kept header: python3 tests/house/abi.py . cc --renew"]
    if not re.search(r'#define WEIR_VERSION\s+"0\.', (root / "include/weir.h").read_text()):
        faults += [f"WEIR_ABI {number} is open, which only a weir 0 may be: python3 tests/house/abi.py . cc --renew"]
    source.verdict(faults, f"ABI {number} is open: nothing is compared until abi.py --renew")


def main(root, compiler, *more):
    root = pathlib.Path(root).resolve()
    header, script, kept = root / "include/weir.h", root / "cmake/libweir.map", root / KEPT
    number = abi_number(header.read_text())
    if more[:1] == ("--open",):
        return leave_open(root, number)
    if not shutil.which("abidiff") or not shutil.which("abidw"):
        print("skipped: no abidiff here (Debian: abigail-tools)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        now = dump(header, compiler, script, folder)
        values = constants(header, compiler, folder)
        if more[:1] == ("--renew",):
            return renew(root, number, values, now)
        head, body = (pathlib.Path(more[0]) if more else kept).read_text().split("-->\n", 1)
        first, *rest = head.removeprefix("<!-- ").splitlines()
        of, left = first.split()[1], first.split()[2:]
        if of != str(number):
            source.verdict([f"{KEPT} is not that of WEIR_ABI {number}: python3 tests/house/abi.py . cc --renew"], "")
        if left == ["open"]:
            return check_open(root, number)
        was = dict(line.split() for line in rest)
        (folder / "kept.abi").write_text(body)  # abidiff wants no comment first
        faults = [f"{name} was {value}, is {values.get(name)}" for name, value in was.items() if values.get(name) != value]
        faults += filter(None, [compare(folder / "kept.abi", now, folder)])
        advice = "weir.h breaks what was built before: undo it, or raise WEIR_ABI and renew the dump"
        source.verdict(faults and [advice, *faults], f"ABI {number}: nothing but additions")


if __name__ == "__main__":
    main(*sys.argv[1:])
