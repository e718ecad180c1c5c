"""python3 -m weir run|check|show GRAPH, operators [NAME]: what the command weir does with --python FILE."""

import argparse
import os
import signal
import sys
import traceback

from weir import _weir
from weir.errors import Error, Timeout, line_of
from weir.graph import FORMATS, GPU_TIME, Graph
from weir.operators import handles, load_file

FAILED, REFUSED = 1, 3
TURN = 0.2  # seconds between two looks at the counters


def shown(text):
    """Text of files, exceptions and command lines as it may reach a terminal: escaped, line by line."""
    lines = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0").split("\n")
    return "\n".join(map(_weir.escape, lines))


def say(command, text):
    sys.stdout.flush()
    _weir.flush()  # C's
    print(shown(f"weir {command}: {text}"), file=sys.stderr)


def show_exception(error, trace):
    print(shown("".join(traceback.format_exception(type(error), error, trace))), end="", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    def _print_message(self, message, file=None):
        super()._print_message(shown(message), file)


def parser():
    top = Parser(prog="weir", description="Runs graphs with operators in C and in Python.")
    commands = top.add_subparsers(dest="command", required=True)
    for name, help_ in (("run", "runs a graph to its end"), ("check", "finds every error of a graph"),
                        ("show", "prints what a graph resolves to")):
        own = commands.add_parser(name, help=help_)
        own.add_argument("graph", metavar="GRAPH", help="a file; -: standard input")
        own.add_argument("--set", action="append", default=[], metavar="E.P=VALUE", help="sets a parameter")
    kinds = commands.add_parser("operators", help="lists the operators, or all about one")
    kinds.add_argument("graph", nargs="?", metavar="NAME")
    for own in commands.choices.values():
        own.add_argument("--python", action="append", default=[], metavar="FILE",
                         help="runs a Python file that registers operators")
        own.add_argument("--plugin", action="append", default=[], metavar="FILE",
                         help="loads operators and conditions in C")
    for name in ("run", "check", "show"):
        commands.choices[name].add_argument("--max-file", type=size, metavar="SIZE", default=0, help="the largest file that is read (256MiB)")
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
    run.add_argument("--duration", dest="max_duration", type=seconds, metavar="TIME", help="drains after this time: 500ms, 10s")
    run.add_argument("--drain", type=seconds, metavar="TIME", help="how long a drain may stand still")
    run.add_argument("--explain-after", type=seconds, metavar="TIME", help="explains a standstill after this time")
    run.add_argument("--root", metavar="DIR", help="confines the files of the built-in operators")
    run.add_argument("--gpu-time", type=sampling, metavar="off|all|sample:N",
                     help="the ticks whose time on the device is measured")
    run.add_argument("--trace", metavar="FILE", help="writes the run's timeline, for Perfetto")
    run.add_argument("--trace-events", type=positive, metavar="N", help="records that the timeline keeps per worker")
    run.add_argument("--stats", action="store_true", help="prints times of entities and paths")
    run.add_argument("--stats-file", metavar="FILE", help="writes all statistics as JSON")
    run.add_argument("--stats-skip", type=natural, metavar="N", help="leaves the first N ticks of each entity out")
    run.add_argument("--quiet", action="store_true", help="prints errors only")


def natural(text):
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no number")
    return int(text)


def seconds(text):
    try:
        return _weir.parse_duration(text) / 1e9
    except Error as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def size(text):
    try:
        return _weir.parse_size(text)
    except Error as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text):
    return natural(text) or natural("0 is too few;")


def sampling(text):
    if not GPU_TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is neither off, all nor sample:N")
    return text


class Signals:
    """SIGINT, SIGTERM and SIGHUP: the first drains the run, a second SIGINT or SIGTERM exits at once. SIGUSR1 explains."""

    def __init__(self, graph, quiet):
        self.graph, self.quiet, self.first = graph, quiet, 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.stop)
        signal.signal(signal.SIGUSR1, lambda *_: explain(graph))

    def stop(self, number, _):
        if self.first and number == signal.SIGHUP:
            return
        if self.first:
            os._exit(128 + number)
        self.first = number
        if not self.quiet:
            say("run", "stopping: work in flight is finished; a second Ctrl-C or SIGTERM exits at once")
        self.graph.stop()


def explain(graph, since=""):
    say("run", since + (graph.explain_line() or "no entity waits"))


def longest_stand(graph, queues):
    """The queue that has longest held messages of which none was taken, and for how long."""
    for queue in graph.counts()["queues"]:
        name = f"{queue['from']} -> {queue['to']}"
        delivered, held = queues.get(name, (None, 0))
        stands = queue["queued"] and queue["delivered"] == delivered
        queues[name] = queue["delivered"], held + TURN if stands else 0
    return max(((name, held) for name, (_, held) in queues.items()), key=lambda one: one[1], default=("", 0))


def wait(graph, explain_after):
    """Waits for the end; explains a standstill once whenever no entity has ticked for that time (seconds), or a
    queue has held messages of which none was taken."""
    if not explain_after or graph.backend == "sim":
        return graph.wait()
    before, stood, queues = None, 0, {}
    while True:
        try:
            return graph.wait(TURN)
        except Timeout as timeout:
            if timeout.outcome:
                raise
        ticks = sum(counts["ticks"] for counts in graph.counts()["entities"].values())
        stood = stood + TURN if ticks == before else 0
        before = ticks
        queue, held = longest_stand(graph, queues)
        if explain_after <= stood < explain_after + TURN:
            explain(graph)
        elif stood < explain_after / 2 and explain_after <= held < explain_after + TURN:
            explain(graph, f"nothing taken from {queue} for {explain_after:g} s: ")


def run_options(options):
    given = {name: getattr(options, name) for name in ("workers", "backend", "signal", "seed", "root")}
    given["max_in_flight"] = -1 if options.max_in_flight == 0 else options.max_in_flight
    for name in ("max_duration", "drain", "gpu_time", "trace_events"):
        given[name] = getattr(options, name)
    given["statistics"] = bool(options.stats or options.stats_file)
    given["trace"], given["skip"] = options.trace is not None, options.stats_skip
    return {name: value for name, value in given.items() if value is not None} | {"measure": not options.quiet}


def run(options):
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    loaded = _weir.load_graph(options.graph, options.set, options.plugin, options.max_file, handles())
    if isinstance(loaded, int):
        return loaded
    graph = Graph._of(loaded)
    files = {"stats-file": options.stats_file, "trace": options.trace}
    graph._core.name_files([(b"--python", os.fsencode(path), False) for path in options.python] +
                           [(b"--" + option.encode(), os.fsencode(path), True) for option, path in files.items() if path])
    outputs = [_weir.Output(option, path and os.fsencode(path)) for option, path in files.items()]
    try:
        if not all(output.begin() for output in reversed(outputs)):
            return FAILED
        return run_graph(options, graph, outputs)
    finally:
        for output in outputs:
            output.give_up()
        graph.close()


def run_graph(options, graph, outputs):
    signals = Signals(graph, options.quiet)
    error = None
    try:
        graph._prepare(run_options(options))
        graph.start()
        if options.seed is not None and not options.quiet and graph.backend != "sim":
            say("run", "warning: --seed has no effect without --backend sim")
        outcome = wait(graph, options.explain_after)
    except Error as failure:
        error, outcome = failure, failure.outcome
        if failure.__cause__ and not options.quiet:
            show_exception(failure.__cause__, failure.__cause__.__traceback__)
    if outcome:
        report(options, graph, outcome, signals.first)
        for output in outputs:
            output.write(graph._core)
    if error:
        say("run", f"{options.graph}: {error}")
    elif outcome.text:
        say("run", f"{options.graph}: drained: {outcome.text}")
    return 128 + signals.first if signals.first else code_of(error)


def report(options, graph, outcome, first):
    """Prints the summary and the statistics; not behind frames that went to standard output."""
    sys.stdout.flush()
    if graph._core.writes_to_stdout():
        os.dup2(2, 1)
    if not options.quiet:
        graph._core.print_summary(options.graph, outcome.status, first, outcome.duration, outcome.discarded,
                                  outcome.waiting, outcome.held)
    if options.stats:
        graph._core.print_statistics()


def code_of(error):
    return _weir.code_of(error.status) if error else 0


def execute(options):
    if options.command == "run":
        return run(options)
    sets, format_ = getattr(options, "set", []), FORMATS.index(getattr(options, "format", "text"))
    return _weir.run_command(options.command, options.graph, sets, options.plugin, format_, getattr(options, "max_file", 0), handles())


def load(command, path):
    """Runs a file of --python. A failure ends in one line; one within the file is printed with its traceback."""
    if not os.path.isfile(path):
        say(command, f"--python {path}: no such Python file")
        return False
    try:
        load_file(path)
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        show_exception(error, trace)
        say(command, f"--python {path}: {line_of(error)}")
        return False
    return True


def main(words=None):
    options = parser().parse_args(words)
    _weir.become_command(options.command, options.command == "run" and options.quiet)
    for path in options.python:
        if not load(options.command, path):
            return REFUSED
    code = execute(options)
    sys.stdout.flush()
    return _weir.end_output(code)


if __name__ == "__main__":
    sys.exit(main())
