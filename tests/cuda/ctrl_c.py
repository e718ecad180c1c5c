"""SIGINT at random instants: exit 130 within the drain and a second, nothing lost; the second one exits at
once.

--runs N or WEIR_SIGINT_RUNS: number of runs; --random-only 1: nothing else. A failure prints the seed,
which WEIR_SIGINT_SEED repeats.
"""
import concurrent.futures
import os
import random
import re
import signal
import subprocess
import time

import acceptance

DRAIN = 5  # seconds that a drain may take
GRACE = {"cuda": 1}  # seconds after the drain; an ordinary test shares its cores with others
SHORT, LONG = "work.duration=50ms", "work.duration=20s"
LOST = re.compile(r"messages were lost|emitted \d+ to \d+ connections")
CHAIN = ["source", "work", "end"]
JOBS = 4


class Child:
    def __init__(self, given, workers, *sets):
        command = [given.weir, "run", acceptance.graph("endless.json"), "--backend", given.backend]
        command += ["--signal", given.signal, "--workers", str(workers)]
        for word in sets:
            command += ["--set", word]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=acceptance.ROOT, env=acceptance.environment(), **pipes)

    def mask(self, field):
        """True if a mask of /proc/PID/status has SIGINT; False after the process has ended."""
        try:
            with open(f"/proc/{self.process.pid}/status") as status:
                lines = dict(line.rstrip("\n").split(":", 1) for line in status)
        except (FileNotFoundError, ProcessLookupError):
            return False
        return bool(int(lines.get(field, "0"), 16) >> (signal.SIGINT - 1) & 1)

    def interrupt(self):
        """Sends the signal; returns exit code, stdout, stderr, and the seconds until the end."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            out, err = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            acceptance.end(self.process)
            raise AssertionError("still there 30 s after SIGINT") from None
        return self.process.returncode, out, err, time.monotonic() - begin

    def await_ticks(self):
        """Waits for the line that `say` prints in its first tick; the kernels start with it."""
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=10)
        time.sleep(0.1)

    def await_taken(self):
        until = time.monotonic() + 5
        while self.mask("ShdPnd") and time.monotonic() < until:
            time.sleep(0.002)


def conserved(out):
    """In the summary's table, each entity received what the one before it emitted, or the rest is listed as
    left over. True if there was a table.
    """
    rows = {row[0]: row for row in re.findall(r"^  (\w+) +(\d+) +(\d+) +(\d+) ", out, re.M)}
    if not {*CHAIN} <= {*rows}:
        return False
    for sender, receiver in zip(CHAIN, CHAIN[1:]):
        line = re.search(rf"^  {sender}\.out -> {receiver}\.in: (.*)$", out, re.M)
        left = sum(int(n) for n in re.findall(r"\d+", line[1])) if line else 0
        assert int(rows[sender][3]) == int(rows[receiver][2]) + left, f"{sender} -> {receiver}: {out}"
    return True


def check_end(came, ours, limit):
    """Returns True if a run had begun."""
    code, out, err, seconds = came
    if code == -signal.SIGINT and not ours:  # main had not begun: the default action ended it
        return False
    assert code == 130, (code, out, err)
    assert seconds < limit, f"the end took {seconds:.2f} s"
    assert not LOST.search(err), err
    return conserved(out)


def one_turn(given, seed, turn):
    dice = random.Random(f"{seed} {turn}")
    instants = [0.05, 1, 3, 6] if given.backend == "cuda" else [0.02, 0.3, 1, 2]  # opening four devices at once takes time
    workers, most = dice.choice([1, 2, 8]), dice.choice(instants)
    child = Child(given, workers, SHORT)
    time.sleep(dice.random() * most)
    ours = child.mask("SigBlk")
    try:
        came = child.interrupt()
        return check_end(came, ours, DRAIN + GRACE.get(given.backend, 3)), came[3]
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, turn {turn}: {error}") from None


def f45_sigint_at_random_instants(given):
    runs = int(os.environ.get("WEIR_SIGINT_RUNS", given.runs))
    seed = int(os.environ.get("WEIR_SIGINT_SEED", time.time_ns() % 10**9))
    with concurrent.futures.ThreadPoolExecutor(JOBS if given.backend == "cuda" else 2) as pool:
        ends = list(pool.map(lambda turn: one_turn(given, seed, turn), range(runs)))
    begun = sum(had_begun for had_begun, _ in ends)
    slowest = max(seconds for _, seconds in ends)
    acceptance.report(
        f"Ctrl-C ({given.backend}, {given.signal}): {runs} times, {begun} of them in a run, all counts conserved; "
        f"slowest end {slowest:.2f} s (seed {seed})"
    )


def e04_s07_sigint_while_a_kernel_takes_20_s(given):
    for workers in (1, 8) if given.backend == "cuda" else (2,):
        child = Child(given, workers, LONG)
        child.await_ticks()
        came = child.interrupt()
        check_end(came, True, DRAIN + GRACE.get(given.backend, 3))
        assert came[3] > DRAIN - 1, f"it did not wait for the drain: {came}"
        assert "abandoned" in came[2] and "was not freed" in came[2], came
        acceptance.report(f"Ctrl-C ({given.backend}, {given.signal}): a kernel of 20 s, exit 130 after {came[3]:.2f} s")


def s07_the_second_sigint_exits_at_once(given):
    child = Child(given, 2, LONG)
    child.await_ticks()
    child.process.send_signal(signal.SIGINT)
    child.await_taken()
    code, out, err, seconds = child.interrupt()
    acceptance.report(
        f"Ctrl-C ({given.backend}, {given.signal}): twice, a kernel of 20 s, exit {code} after {seconds:.3f} s"
    )
    assert code == 130, (code, out, err)
    assert seconds < 1, f"the second SIGINT took {seconds:.2f} s"


given = acceptance.arguments(runs=10, random_only=0)
checks = [f45_sigint_at_random_instants]
if not given.random_only:
    checks += [e04_s07_sigint_while_a_kernel_takes_20_s, s07_the_second_sigint_exits_at_once]
acceptance.main(checks, given)
