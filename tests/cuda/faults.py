"""A kernel that faults ends the run within 2 s, with the error, the suspects and exit code 1, whichever way
the run waits.
"""
import re

import acceptance

WITHIN = 2  # seconds, from the start of the run: the kernels that fault take 20 ms
ERROR = {"cuda": r"CUDA: .* \(cudaError\w+\)", "host": r"kernel 'spin'"}
ACCUSED = re.compile(r"; the work of '([^']+)' was not complete")
SUSPECTS = re.compile(r"; suspects, oldest first: (.*)$")


def suspects(text):
    one, several = ACCUSED.search(text), SUSPECTS.search(text)
    if one:
        return {one[1]}
    return set(re.findall(r"(\S+) \(\d", several[1])) if several else set()


def seconds(summary):
    """The time in the headline: '...: device failed after 53.1 ms on cuda: NVIDIA H100'."""
    found = re.search(r"device failed after ([\d.e+]+) (s|ms|us) on ", summary)
    assert found, f"no headline about the device: {summary!r}"
    return float(found[1]) * {"s": 1, "ms": 1e-3, "us": 1e-6}[found[2]]


def check_text(given, text):
    assert re.search(ERROR[given.backend], text), f"the error is not named: {text}"
    named = suspects(text)
    assert "guilty" in named, f"suspects are {sorted(named)}: {text}"
    return named


def check_command(given, name):
    ended = acceptance.run(
        [given.weir, "run", acceptance.graph(name), "--backend", given.backend, "--signal", given.signal]
    )
    lines = ended.stderr.splitlines()
    assert ended.returncode == 1, ended
    assert len(lines) == 1 and "device failed" in lines[0], f"not one line about the device: {ended.stderr}"
    check_text(given, lines[0])
    assert "device failed in 'innocent'" not in lines[0], lines[0]
    took = seconds(ended.stdout)
    assert took < WITHIN, f"the run took {took} s: {ended.stdout}"
    return took


def check_outcome(given, name):
    came = acceptance.run_json(
        [given.program("probe"), acceptance.graph(name), "--backend", given.backend, "--signal", given.signal]
    )
    assert came["status"] == "device failed" and came["conserved"], came
    named = check_text(given, came["text"])
    assert came["entity"] == ("guilty" if named == {"guilty"} else None), f"accused: {came}"
    assert came["seconds"] < WITHIN, came
    return came["seconds"]


def check_both(given, name):
    took = [check_command(given, name), check_outcome(given, name)]
    acceptance.report(
        f"fault ({given.backend}, {given.signal}): {name} ended after {took[0]:.3f} s and {took[1]:.3f} s"
    )


def f60_a_fault_that_a_condition_waits_for_ends_the_run(given):
    check_both(given, "fault_gated.json")


def f60_a_fault_without_a_waiter_ends_the_run(given):
    check_both(given, "fault_ungated.json")


def f60_a_fault_in_the_last_tick_ends_the_run(given):
    check_both(given, "fault_last.json")


def e03_of_two_kernels_in_flight_the_innocent_is_never_accused_alone(given):
    for _ in range(given.runs):
        check_both(given, "fault_two.json")


acceptance.main(
    [
        f60_a_fault_that_a_condition_waits_for_ends_the_run,
        f60_a_fault_without_a_waiter_ends_the_run,
        f60_a_fault_in_the_last_tick_ends_the_run,
        e03_of_two_kernels_in_flight_the_innocent_is_never_accused_alone,
    ],
    acceptance.arguments(runs=3),
)
