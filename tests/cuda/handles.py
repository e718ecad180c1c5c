"""Streams of a program's own, and everything else that needs CUDA calls of the program: see handles.c.

Each check is a process with a time limit. Where CUDA leaves the result undefined, it may end in any way,
but must end. With --signal all, the default unless WEIR_CUDA_SIGNAL is set, every check runs with every
signal. --runs N: only the short runs, N of them.
"""
import os
import sys

import acceptance

SIGNALS = ["callback", "callback_inline", "flag"]
LIMIT = 60  # seconds per process


def program(given, signal, *more):
    return [given.program("handles"), "--backend", given.backend, "--signal", signal, *more]


def listed(given):
    for line in acceptance.run(program(given, "callback", "--list")).stdout.splitlines():
        name, *marks = line.split()
        if ("runs" in marks) == bool(given.runs) and given.only in name:
            yield name, marks


def tell(given, signal, ended):
    for line in ended.stdout.splitlines():
        if line.startswith("told"):
            acceptance.report(f"handles ({given.backend}, {signal}): {line}")


def judge(given, signal, name, marks):
    more = ["--frames", given.frames, "--runs", given.runs]
    ended = acceptance.run(program(given, signal, *more, name), LIMIT + given.runs)
    tell(given, signal, ended)
    if "undefined" in marks and ended.returncode < 0:
        crash = f"CUDA ended the process by signal {-ended.returncode}"
        acceptance.report(f"handles ({given.backend}, {signal}): {name}: {crash}")
    elif "two" in marks and ended.returncode == acceptance.SKIPPED and not REQUIRE_TWO:
        acceptance.report(f"handles ({given.backend}, {signal}): {name} needs two devices")
    else:
        told = (signal, ended.returncode, ended.stdout[-3000:], ended.stderr[-3000:])
        assert ended.returncode == 0 and f"ok {name}" in ended.stdout, told


def check_of(name, marks):
    def check(given):
        for signal in SIGNALS if given.signal == "all" else [given.signal]:
            judge(given, signal, name, marks)

    check.__name__ = name
    return check


given = acceptance.arguments(runs=0, frames=200, only="")
REQUIRE_TWO = os.environ.get("WEIR_REQUIRE_DEVICES", "1") not in ("", "1")
if "WEIR_CUDA_SIGNAL" not in os.environ and "--signal" not in sys.argv:
    given.signal = "all"
acceptance.main([check_of(*line) for line in listed(given)], given)
