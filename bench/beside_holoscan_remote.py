#!/usr/bin/env python3
"""Two processes joined by UCX, weir's and those of PyPI's holoscan-cu13 in turns, on one machine, without a GPU.

    beside_holoscan_remote.py WEIR PLUGIN [--rounds N]

    latency  p50 of one way, a message each 5 ms. weir: begin of the source's tick to the end of the sink's, by `weir report` of both traces; Holoscan: compute of
             the source to compute of the sink, both in Python
    rate     messages a second, as fast as they go; of weir that of so many messages more, so that starts are not in it

With a python3 that has holoscan-cu13, whose --driver and --worker are used. Both choose their transports (UCX_TLS, if it is set).
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PERIOD_MS, PACED, FIRST, HOLOSCAN, WEIR = 5, 300, 50, 500, 200000


def holoscan_app(count, paced):
    """Its arguments are in sys.argv."""
    from holoscan.conditions import CountCondition, PeriodicCondition
    from holoscan.core import Application, Fragment, Operator

    class Source(Operator):
        def setup(self, spec):
            spec.output("out")

        def compute(self, _, output, context):
            output.emit(time.monotonic_ns(), "out")

    class Sink(Operator):
        def setup(self, spec):
            spec.input("in")

        def compute(self, given, _, context):
            sent = given.receive("in")
            print("came", sent, time.monotonic_ns(), flush=True)

    class Sending(Fragment):
        def compose(self):
            beat = [PeriodicCondition(self, PERIOD_MS * 1000000, name="beat")] if paced else []
            self.add_operator(Source(self, CountCondition(self, count), *beat, name="source"))

    class Receiving(Fragment):
        def compose(self):
            self.add_operator(Sink(self, name="sink"))

    class Ping(Application):
        def compose(self):
            self.add_flow(Sending(self, name="sending"), Receiving(self, name="receiving"), {("source.out", "sink.in")})

    Ping([sys.argv[0], *sys.argv[4:]]).run()


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def holoscan(count, paced):
    """(sent, came) of each message, ns."""
    mine = sys.executable, __file__, "--holoscan", str(count), str(int(paced)), "--worker", "--address", free_address()
    quiet = {**os.environ, "HOLOSCAN_LOG_LEVEL": "ERROR"}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "env": quiet}
    with subprocess.Popen([*mine, "--driver", "--fragments", "receiving"], **options) as receiver:
        with subprocess.Popen([*mine, "--fragments", "sending"], **options) as sender:
            said = receiver.communicate(timeout=120)[0]
            sender.communicate(timeout=60)
    came = [tuple(map(int, line.split()[1:])) for line in said.splitlines() if line.startswith("came ")]
    assert len(came) == count, f"{len(came)} of {count} messages came"
    return came


def weir(command, plugin, folder, count, paced):
    """Runs both, with a-run.json and so on in the folder."""
    to = free_address()
    beat = [{"type": "periodic", "period": f"{PERIOD_MS}ms"}] if paced else []
    source = {"name": "source", "operator": "ping", "conditions": [{"type": "count", "count": count}, *beat]}
    graphs = {
        "a": [source, {"name": "send", "operator": "remote_send", "parameters": {"to": to}}],
        "b": [{"name": "receive", "operator": "remote_receive", "parameters": {"listen": to, "credits": 64}}, {"name": "sink", "operator": "sink"}],
    }
    runs = []
    for name, entities in graphs.items():
        graph = {"weir": 1, "entities": entities, "connections": [[f"{entities[0]['name']}.out", f"{entities[1]['name']}.in"]]}
        (folder / f"{name}.json").write_text(json.dumps(graph))
        files = ["--stats-file", f"{name}-run.json", *(["--trace", f"{name}-trace.json"] if paced else [])]
        runs.append(subprocess.Popen([command, "run", "--quiet", "--plugin", plugin, *files, f"{name}.json"], cwd=folder))
    assert [run.wait(120) for run in runs] == [0, 0]


def weir_latency(command, plugin, folder):
    weir(command, plugin, folder, PACED, True)
    files = [f"{side}-{what}.json" for side in "ab" for what in ("run", "trace")]
    said = subprocess.run([command, "report", "--json", *files], cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(said)["paths"][0]["latency"]["p50"]


def weir_rate(command, plugin, folder):
    took = []
    for count in (WEIR // 10, WEIR):
        weir(command, plugin, folder, count, False)
        took.append(json.loads((folder / "b-run.json").read_text())["duration"])
    return (WEIR - WEIR // 10) / (took[1] - took[0]) * 1e9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir", type=os.path.abspath)
    parser.add_argument("plugin", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rows = {"latency, us: weir": [], "latency, us: Holoscan": [], "messages/s: weir": [], "messages/s: Holoscan": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            mine = given.weir, given.plugin, pathlib.Path(folder)
            paced, fast = holoscan(PACED, True)[FIRST:], holoscan(HOLOSCAN, False)[FIRST:]
            rows["latency, us: weir"].append(weir_latency(*mine) / 1e3)
            rows["latency, us: Holoscan"].append(statistics.median(came - sent for sent, came in paced) / 1e3)
            rows["messages/s: weir"].append(weir_rate(*mine))
            rows["messages/s: Holoscan"].append((len(fast) - 1) / (fast[-1][1] - fast[0][1]) * 1e9)
    for name, values in rows.items():
        print(f"{name:24} {statistics.median(values):10.0f}  ({min(values):.0f} to {max(values):.0f})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--holoscan"]:
        holoscan_app(int(sys.argv[2]), sys.argv[3] == "1")
    else:
        main()
