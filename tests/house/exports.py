"""libweir.so exports exactly the functions that weir.h declares WEIR_API; the list of weir_has() has them, sorted. Its soname carries WEIR_ABI."""
import pathlib
import re
import subprocess
import sys

import source


def declared(header):
    text = source.code(pathlib.Path(header))
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return set(re.findall(r"^WEIR_API\b[^;{}(]*?\b(weir_\w+)\s*\(", text, flags=re.M))


def exported(nm, library):
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = (line.split() for line in lines.splitlines())
    return {name.split("@")[0] for _, kind, name in symbols if kind != "A"}


def listed(table):
    return re.findall(r'^\t"(\w+)",$', pathlib.Path(table).read_text(), flags=re.M)


def abi_faults(header, library):
    abi = re.search(r"^#define WEIR_ABI +(\d+)", pathlib.Path(header).read_text(), flags=re.M)
    told = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
    soname = re.search(r"\(SONAME\).*\[(.*)\]", told)
    if abi and (not soname or soname.group(1) != f"libweir.so.{abi.group(1)}"):
        yield f"soname {soname and soname.group(1)}: WEIR_ABI is {abi.group(1)}"


def main(header, library, table, nm="nm"):
    promised, given, names = declared(header), exported(nm, library), listed(table)
    faults = [f"{name}: declared in weir.h, not exported" for name in sorted(promised - given)]
    faults += [f"{name}: exported, not declared in weir.h" for name in sorted(given - promised)]
    faults += [f"{name}: not in the list of weir_has()" for name in sorted(promised - set(names))]
    faults += [f"{name}: in the list of weir_has(), not declared in weir.h" for name in sorted(set(names) - promised)]
    faults += [f"{b}: the list of weir_has() is sorted, without twins" for a, b in zip(names, names[1:]) if a >= b]
    faults += abi_faults(header, library)
    source.verdict(faults, f"{len(given)} functions are declared and exported")


main(*sys.argv[1:])
