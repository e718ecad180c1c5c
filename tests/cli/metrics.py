"""--metrics: what is served is what the text format of Prometheus allows, agrees with itself, and never holds a run."""
import http.client
import json
import pathlib
import re
import signal
import socket
import tempfile
import time

import process

SAMPLE = re.compile(r"(\w+)(?:\{((?:\w+=\"[^\"\\]*\",?)+)\})? ([0-9.]+)$")
LISTENS = re.compile(r"weir run: metrics: http://(?:\[::1\]|127\.0\.0\.1):(\d+)/metrics\n")
GRAPH = {"weir": 1, "name": "watched",
         "entities": [{"name": "tick", "operator": "ping", "conditions": [{"type": "periodic", "period": "1ms"}]},
                      {"name": "other", "operator": "ping", "conditions": [{"type": "count", "count": 3}]},
                      {"name": "end", "operator": "sink", "ports": {"in": {"capacity": 4}}}],
         "connections": [["tick.out", "end.in"], ["other.out", "end.in"]]}


def start(weir, *arguments):
    """A run of GRAPH for up to a minute that serves metrics; gives it, and its port."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "watched.json")
        path.write_text(json.dumps(GRAPH))
        child = process.start(weir, "run", path, "--backend", "host", "--duration", "1min", "--metrics", "0", *arguments)
        line = child.stderr.readline()
    assert LISTENS.fullmatch(line), (line, child.poll())
    return child, int(LISTENS.fullmatch(line)[1])


def end(child):
    """Drains the run, which waits for no client: it would have gone on for longer."""
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=process.LIMIT)
    assert child.returncode == 130 and time.monotonic() - begun < 20, (child.returncode, err)


def ask(port, path="/metrics", method="GET", host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=process.LIMIT)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def read(text):
    """{(name, labels): value}, and {family: type}; each family has one head, before its samples."""
    samples, types, family = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in types, line
        elif line.startswith("# TYPE "):
            assert line.split()[2] == family, line
            types[family] = line.split()[3]
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert re.fullmatch(family + ("(_bucket|_sum|_count)" if types[family] == "histogram" else ""), name), line
            assert types[family] != "counter" or name.endswith("_total"), line
            assert (name, labels) not in samples, line
            samples[name, labels] = float(value)
    return samples, types


def check_histogram(samples, family):
    """Of each entity or path: buckets grow, the last one has all."""
    rows = {}
    for (name, labels), value in samples.items():
        if name == family + "_bucket":
            whose, bound = re.fullmatch(r'(.*),le="(.*)"', labels).groups()
            rows.setdefault(whose, []).append((float(bound), value))
    assert rows, family
    for whose, row in rows.items():
        assert row == sorted(row) and [v for _, v in row] == sorted(v for _, v in row), row
        assert row[-1][0] == float("inf") and row[-1][1] == samples[family + "_count", whose] > 0, row
        assert len(row) == 27 and samples[family + "_sum", whose] >= 0, row


def has_run(samples):
    """For a while: 20 ticks, with waits between them, and all of the other source have come."""
    return (samples.get(("weir_ticks_total", 'entity="tick"'), 0) > 20
            and samples.get(("weir_wait_seconds_total", 'entity="tick",cause="time",on=""'), 0) > 0.02
            and samples.get(("weir_path_latency_seconds_count", 'path="other > end"')) == 3)


def what_is_served_is_valid_and_agrees_with_itself(weir):
    child, port = start(weir)
    earlier, turns, until = {}, 0, time.monotonic() + process.LIMIT
    while turns < 20 or not has_run(earlier):
        assert time.monotonic() < until, earlier
        turns += 1
        status, kind, text = ask(port)
        samples, types = read(text)
        assert status == 200 and kind == "text/plain; version=0.0.4; charset=utf-8", (status, kind)
        for (name, labels), value in earlier.items():
            assert not name.endswith(("_total", "_count", "_bucket", "_sum")) or samples[name, labels] >= value, (name, labels)
        earlier = samples
        time.sleep(0.02)
    assert samples["weir_running", None] == 1 and samples["weir_queue_capacity", 'queue="0",from="tick.out",to="end.in"'] == 4
    assert samples["weir_ticks_total", 'entity="other"'] == samples["weir_emitted_messages_total", 'entity="other"'] == 3
    for family in ("weir_compute_seconds", "weir_ready_seconds", "weir_path_latency_seconds"):
        check_histogram(samples, family)
    assert samples["weir_path_latency_seconds_count", 'path="other > end"'] == 3
    assert types["weir_worker_busy_seconds_total"] == "counter"
    end(child)


def other_requests_are_refused(weir):
    child, port = start(weir)
    assert ask(port, "/") == (404, "text/plain", "the metrics are at /metrics\n")
    assert ask(port, "/metrics/../etc")[0] == 404
    assert ask(port, "/metrics?x=1")[0] == 200
    assert ask(port, method="HEAD")[0] == 200
    assert ask(port, method="DELETE")[0] in (405, 501)
    assert ask(port, "/" + "x" * 100000)[0] in (400, 413, 414)
    end(child)


def clients_that_are_silent_broken_or_gone_hold_nobody(weir):
    child, port = start(weir)
    kept = []
    for number in range(100):
        client = socket.create_connection(("127.0.0.1", port), timeout=process.LIMIT)
        client.sendall([b"", b"GET /metrics HTTP/1.1\r\n", b"\x00\xff\x16\x03\x01" * 100, b"GET /metrics HTTP/1.0\r\n\r\n"][number % 4])
        kept.append(client)
        if number % 3 == 0:
            client.close()
    assert ask(port)[0] == 200
    end(child)
    for client in kept:
        client.close()


def an_address_that_is_taken_or_none_is_refused(weir):
    child, port = start(weir)
    ended = process.run(weir, "run", process.graph("ping.json"), "--backend", "host", "--metrics", f"127.0.0.1:{port}")
    line = f"weir run: --metrics 127.0.0.1:{port}: another program listens there: give another port, or 0 for any\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", line), ended
    assert read(ask(port)[2])[0]["weir_running", None] == 1
    end(child)
    for wrong in ("", "abc", "localhost:80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "[::1]", "::1:80", "[]:80", "1.2.3.4.5:6", "a" * 200):
        ended = process.run(weir, "run", process.graph("ping.json"), "--metrics", wrong)
        assert ended.returncode == 2 and ended.stderr == (
            f"weir run: --metrics '{wrong}': expected an address in digits with a port, such as 127.0.0.1:9464, [::1]:9464 or 9464\n"), ended


def a_quiet_run_says_nothing_and_a_simulated_one_ends_as_without(weir):
    quiet = process.run(weir, "run", process.graph("ping.json"), "--backend", "host", "--quiet", "--metrics", "0")
    assert (quiet.returncode, quiet.stderr) == (0, ""), quiet
    plain, served = (process.run(weir, "run", process.graph("ping.json"), "--backend", "sim", "--seed", "5", *more)
                     for more in ([], ["--metrics", "0"]))
    assert (plain.returncode, plain.stdout) == (served.returncode, served.stdout), served
    assert LISTENS.fullmatch(served.stderr), served


def the_page_and_the_board_name_what_is_there(weir):
    """A metric of pools or of the GPU is not in every run, so the names are those of the table."""
    top = pathlib.Path(__file__).parents[2]
    known = set(re.findall(r'\{"(weir_\w+)", "(?:gauge|counter|histogram)"', top.joinpath("report/metrics.c").read_text()))
    child, port = start(weir)
    served = set(read(ask(port)[2])[1])
    end(child)
    rows = [line.split("|")[1] for line in top.joinpath("docs/metrics.md").read_text().splitlines() if line.startswith("| `weir_")]
    board = json.loads(top.joinpath("examples/grafana/weir.json").read_text())
    asked = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"weir_\w+", target["expr"])}
    assert len(known) > 20 and served < known, served - known
    assert {name for row in rows for name in re.findall(r"weir_\w+", row)} == known, rows
    assert len(asked) > 10 and {re.sub("_(bucket|sum|count)$", "", name) for name in asked} <= known, asked


process.main([what_is_served_is_valid_and_agrees_with_itself, other_requests_are_refused,
              clients_that_are_silent_broken_or_gone_hold_nobody, an_address_that_is_taken_or_none_is_refused,
              a_quiet_run_says_nothing_and_a_simulated_one_ends_as_without, the_page_and_the_board_name_what_is_there])
