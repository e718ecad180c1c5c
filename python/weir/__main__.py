"""python3 -m weir run|check|show GRAPH: what the command weir does with --python FILE."""

import argparse
import os
import signal
import sys
import traceback

from weir import _weir
from weir.errors import Error, Status, Timeout
from weir.graph import Graph, check, show
from weir.operators import load_file

FAILED, USAGE, REFUSED = 1, 2, 3
CODES = {Status.OK: 0, Status.INVALID: REFUSED, Status.DEADLOCK: 4, Status.ABANDONED: 5}
TURN = 0.2  # seconds between two looks at the counters
MOST = 64  # entities listed
LEVELS = ["off", "error", "warn", "info", "debug"]
TIMES = ["max_duration", "explain_after"]


def duration_text(seconds):
    """Three digits and a unit: "1.23 s"."""
    for unit, name in ((1, "s"), (1e-3, "ms")):
        if seconds >= 0.9995 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.3g} us"


def say(command, text):
    sys.stdout.flush()
    print(f"weir {command}: {text}", file=sys.stderr)


def parser():
    top = argparse.ArgumentParser(prog="weir", description="Runs graphs with operators in C and in Python.")
    commands = top.add_subparsers(dest="command", required=True)
    for name, help_ in (("run", "runs a graph to its end"), ("check", "finds every error of a graph"),
                        ("show", "prints what a graph resolves to")):
        own = commands.add_parser(name, help=help_)
        own.add_argument("graph", metavar="GRAPH", help="a file; -: standard input")
        own.add_argument("--python", action="append", default=[], metavar="FILE",
                         help="runs a Python file that registers operators")
        own.add_argument("--plugin", action="append", default=[], metavar="FILE",
                         help="loads operators and conditions in C")
        own.add_argument("--set", action="append", default=[], metavar="E.P=VALUE", help="sets a parameter")
    show_ = commands.choices["show"]
    show_.add_argument("--json", dest="format", action="store_const", const="json", default="text")
    show_.add_argument("--dot", dest="format", action="store_const", const="dot")
    add_run_options(commands.choices["run"])
    return top


def add_run_options(run):
    run.add_argument("--workers", type=int, metavar="N")
    run.add_argument("--backend", choices=["auto", "cuda", "host", "sim"])
    run.add_argument("--signal", choices=["callback", "callback_inline", "flag"])
    run.add_argument("--seed", type=int, metavar="N")
    run.add_argument("--max-in-flight", type=int, metavar="N", help="0: no bound")
    run.add_argument("--duration", dest="max_duration", metavar="TIME", help="drains after this time: 500ms, 10s")
    run.add_argument("--explain-after", metavar="TIME", help="explains a standstill after this time")
    run.add_argument("--root", metavar="DIR", help="confines the files of the built-in operators")
    run.add_argument("--quiet", action="store_true", help="prints errors only")


class Signals:
    """SIGINT and SIGTERM: the first drains the run, the second exits at once. SIGUSR1 explains."""

    def __init__(self, graph, quiet):
        self.graph, self.quiet, self.first = graph, quiet, 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)
        signal.signal(signal.SIGUSR1, lambda *_: explain(graph))

    def stop(self, number, _):
        if self.first:
            os._exit(128 + number)
        self.first = number
        if not self.quiet:
            say("run", "stopping: work in flight is finished; a second Ctrl-C or SIGTERM exits at once")
        self.graph.stop()


def explain(graph):
    say("run", graph.explain_line() or "no entity waits")


def wait(graph, explain_after):
    """Waits for the end; explains a standstill once whenever no entity has ticked for that time (seconds)."""
    if not explain_after or graph.where.startswith("sim"):
        return graph.wait()
    before, stood = None, 0
    while True:
        try:
            return graph.wait(TURN)
        except Timeout as timeout:
            if timeout.outcome:
                raise
        ticks = sum(counts["ticks"] for counts in graph.counts()["entities"].values())
        stood = stood + TURN if ticks == before else 0
        before = ticks
        if explain_after <= stood < explain_after + TURN:
            explain(graph)


def summary(path, graph, outcome, first):
    counts = graph.counts()
    ending = f"stopped by {signal.Signals(first).name}" if first else "finished"
    if outcome.status and not first:
        ending = outcome.status.name.lower()
    print(f"{path}: {ending} after {duration_text(outcome.duration)} on {graph.where}")
    width = max([len("entity"), *map(len, counts["entities"])])
    print(f"  {'entity':{width}}  {'ticks':>10}  {'received':>10}  {'emitted':>10}  {'in compute':>12}")
    for name, c in list(counts["entities"].items())[:MOST]:
        spent = duration_text(c["compute_ns"] / 1e9)
        print(f"  {name:{width}}  {c['ticks']:>10}  {c['received']:>10}  {c['emitted']:>10}  {spent:>12}")
    if len(counts["entities"]) > MOST:
        print(f"  and {len(counts['entities']) - MOST} more")
    for queue in counts["queues"]:
        lost = [(queue["dropped"], "dropped"), (queue["closed"], "closed"), (queue["queued"], "left over"),
                (queue["abandoned"], "abandoned")]
        if any(count for count, _ in lost):
            print(f"  {queue['from']} -> {queue['to']}: {', '.join(f'{n} {what}' for n, what in lost if n)}")


def run_options(options):
    given = {name: getattr(options, name) for name in ("workers", "backend", "signal", "seed", "root")}
    given["max_in_flight"] = -1 if options.max_in_flight == 0 else options.max_in_flight
    given["max_duration"] = options.max_duration
    return {name: value for name, value in given.items() if value is not None} | {"measure": not options.quiet}


def run(options, source):
    for name in TIMES:
        if getattr(options, name) is not None:
            setattr(options, name, _weir.parse_duration(getattr(options, name)) / 1e9)
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    graph = Graph(**source)
    for warning in graph.warnings:
        print(warning, file=sys.stderr)
    signals = Signals(graph, options.quiet)
    error = None
    try:
        outcome = wait(graph.start(**run_options(options)), options.explain_after)
    except Error as failure:
        error, outcome = failure, failure.outcome
        if failure.__cause__ and not options.quiet:
            traceback.print_exception(failure.__cause__)
    if outcome and not options.quiet:
        summary(options.graph, graph, outcome, signals.first)
    if error:
        say("run", f"{options.graph}: {error}")
    graph.close()
    return 128 + signals.first if signals.first else code_of(error)


def code_of(error):
    return CODES.get(error.status, FAILED) if error else 0


def refuse(options, error):
    for found in error.diagnostics:
        print(found, file=sys.stderr)
    if not error.diagnostics:
        say(options.command, f"{error}")
    return REFUSED if error.status in (Status.INVALID, Status.IO) else FAILED


def execute(options, source):
    if options.command == "run":
        return run(options, source)
    if options.command == "show":
        sys.stdout.write(show(format=options.format, **source))
        return 0
    found = check(**source)
    for diagnostic in found:
        print(diagnostic, file=sys.stderr)
    if any(not d.warning for d in found):
        return REFUSED
    print(f"{options.graph}: no errors{f', {len(found)} warnings' if found else ''}")
    return 0


def main(words=None):
    options = parser().parse_args(words)
    level = os.environ.get("WEIR_LOG", "off")
    _weir.log_to_stderr(LEVELS.index(level) if level in LEVELS else 0)
    try:
        for path in options.python:
            load_file(path)
    except Exception as error:
        traceback.print_exception(error)
        say(options.command, f"--python {error if isinstance(error, OSError) else options.python}")
        return REFUSED
    source = {"path": options.graph, "set": options.set, "plugins": options.plugin}
    try:
        return execute(options, source)
    except Error as error:
        return refuse(options, error)


if __name__ == "__main__":
    sys.exit(main())
