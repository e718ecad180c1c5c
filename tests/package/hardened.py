"""The built files are hardened: full RELRO, immediate binding, no executable stack, stack protector, checked functions of
libc; a program is position-independent. Arguments: readelf, the C compiler, "fortified" or "", files (a pattern; none need match).

First a library that is built without all of that must be reported.
"""
import glob
import pathlib
import re
import subprocess
import sys
import tempfile

SOFT = ["-shared", "-fPIC", "-O2", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-Wl,-z,norelro,-z,lazy,-z,execstack"]


def faults(readelf, path, fortified):
    def shown(*options):
        return subprocess.run([readelf, "-W", *options, path], capture_output=True, text=True, check=True).stdout

    header, segments, dynamic, symbols = shown("-h"), shown("-l"), shown("-d"), shown("--dyn-syms")
    stack = re.search(r"GNU_STACK.*?\s(R\S*)\s", segments)
    is_program = "INTERP" in segments
    wanted = {
        "no segment is read-only after relocation (-z relro)": "GNU_RELRO" in segments,
        "symbols are bound late (-z now)": re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic),
        "its stack is executable (-z noexecstack)": stack and "E" not in stack[1],
        "it has relocations of code (-fPIC)": "TEXTREL" not in dynamic,
        "no function has a stack protector (-fstack-protector-strong)": "__stack_chk_fail" in symbols,
        "no function of libc is checked (_FORTIFY_SOURCE)": not fortified or re.search(r"__\w+_chk@", symbols),
        "the program is not position-independent (-pie)": not is_program or (re.search(r"Type:\s+DYN", header) and re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic)),
    }
    return [f"{path}: {fault}" for fault, right in wanted.items() if not right]


def soft_library(compiler, folder):
    source, library = pathlib.Path(folder) / "soft.c", pathlib.Path(folder) / "soft.so"
    source.write_text("#include <stdio.h>\nint soft(char *s);\nint soft(char *s)\n{\n\tchar b[9];\n\tsprintf(b, \"%s\", s);\n\treturn *b;\n}\n")
    subprocess.run([compiler, *SOFT, source, "-o", library], check=True)
    return library


def main(readelf, compiler, fortified, *patterns):
    with tempfile.TemporaryDirectory() as folder:
        reported = faults(readelf, soft_library(compiler, folder), True)
        assert len(reported) == 5, reported
    found = [fault for pattern in patterns for path in glob.glob(pattern) for fault in faults(readelf, path, fortified)]
    print("\n".join(found) or "hardened")
    return bool(found)


sys.exit(main(*sys.argv[1:]))
