"""Shared by the tests of the command: running it, and running a list of checks that reports every failure."""
import os
import random
import resource
import select
import socket
import subprocess
import sys
import tempfile

GRAPHS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs")
LIMIT = 300  # seconds: the command never hangs, even on a machine that is busy
keepers = []  # a socket for each port that was given
started = []  # processes that a failing test may leave running
counts = tempfile.TemporaryDirectory()  # of branches, see small_files


def environment():
    """The environment without settings of the user who runs the tests; English messages of the system."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    return {**kept, "LC_ALL": "C"}


def small_files(limit):
    """Options of a process whose files may have so many bytes: a disk that is full. In a build that counts branches its counts
    go elsewhere, since files of counts that are cut off would spoil those of all processes."""
    elsewhere = {"GCOV_PREFIX": counts.name, "GCOV_ERROR_FILE": "/dev/null"}
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), "env": {**environment(), **elsewhere}}


def free_port():
    """One of 127.0.0.1 that nothing uses; below those that the system gives to connections. No test beside this one gets it before a
    process listens there, or after: a socket keeps it, which a listener that reuses addresses may join."""
    while True:
        keeper, port = socket.socket(), random.randrange(10000, 30000)
        try:
            keeper.bind(("127.0.0.1", port))
        except OSError:
            keeper.close()
            continue
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keepers.append(keeper)
        return port


def graph(name):
    return os.path.join(GRAPHS, name)


def start(weir, *arguments, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    options = {**pipes, "env": environment(), **options}
    started.append(subprocess.Popen([weir, *arguments], **options))
    return started[-1]


def run(weir, *arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": LIMIT, "env": environment(), **options}
    return subprocess.run([weir, *arguments], **options)


def run_into_fifo(fifo, weir, *arguments, **options):
    """Runs it while the FIFO has a reader; gives what that read until the FIFO was closed, too. The reader is there before the command,
    which does not wait for one, and waits for nothing without limit: a command that does not open the FIFO is a failure, no hang."""
    reader, parts = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), []
    child = start(weir, *arguments, **options)
    while select.select([reader], [], [], LIMIT)[0] and (part := os.read(reader, 1 << 16)):
        parts.append(part)
    os.close(reader)
    stdout, stderr = child.communicate(timeout=LIMIT)
    return subprocess.CompletedProcess(child.args, child.returncode, stdout, stderr), b"".join(parts).decode()


def left_out_here():
    """The tests of this script that tests/skips.txt leaves out of a build that is emulated (cmake/Emulated.cmake)."""
    script = f"cli.{os.path.basename(sys.argv[0]).removesuffix('.py')}."
    return [name.removeprefix(script) for name in os.environ.get("WEIR_LEFT_OUT", "").split() if name.startswith(script)]


def main(tests):
    """Runs every function of `tests` with the command's path; an argument names a single one."""
    weir, failed, left_out = os.path.abspath(sys.argv[1]), 0, set(left_out_here())
    assert left_out <= {test.__name__ for test in tests}, left_out
    chosen = [test for test in tests if (test.__name__ == sys.argv[2] if len(sys.argv) > 2 else test.__name__ not in left_out)]
    assert chosen, "no such test"
    for test in chosen:
        try:
            test(weir)
            print(f"ok      {test.__name__}")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"FAILED  {test.__name__}: {error}")
        finally:
            for child in started:
                child.kill()
    sys.exit(1 if failed else 0)
