"""weir report of several runs: what is known of the remote connections between them, and of the paths that go by these.

joined.py WEIR FOLDER PLUGIN: FOLDER is scratch.
"""
import json

from processes import FOLDER, PLUGIN, address, chain, entity, process

COUNT = 200
SHIFT = 10**15  # ns between the clocks of two machines


def run_all(weir, options=(), **graphs):
    """Each with NAME-run.json and NAME-trace.json; all of them at once."""
    children = []
    for name, graph in graphs.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(graph))
        files = "--stats-file", f"{name}-run.json", "--trace", f"{name}-trace.json"
        more = "--plugin", PLUGIN, "--backend", "host", "--quiet", *options
        children.append(process.start(weir, "run", *more, *files, f"{name}.json", cwd=FOLDER))
    for child in children:
        _, said = child.communicate(timeout=process.LIMIT)
        assert child.returncode == 0, said


def report(weir, *files, code=0):
    ended = process.run(weir, "report", *files, cwd=FOLDER)
    assert ended.returncode == code, ended
    return ended


def joined(weir, *files):
    return json.loads(report(weir, "--json", *files).stdout)


def pair(weir, options=()):
    to = address()
    source = {**entity("source", "ping"), "conditions": [{"type": "count", "count": COUNT}]}
    a = chain(source, entity("pass", "pass"), entity("send", "remote_send", to=to))
    b = chain(entity("receive", "remote_receive", listen=to), entity("end", "sink"))
    run_all(weir, options, a=a, b=b)
    return "a-run.json", "a-trace.json", "b-run.json", "b-trace.json"


def record(run, name):
    return next(one for one in run["entities"] if one["name"] == name)["record"]["weir_remote"]


def change(file, how):
    """Writes FILE anew, under another name, which it returns."""
    text = json.loads((FOLDER / file).read_text())
    how(text)
    (FOLDER / f"other-{file}").write_text(json.dumps(text, separators=(",", ":")))
    return f"other-{file}"


def t07_r08_both_sides_count_the_same_messages(weir):
    _, _, b, _ = pair(weir)
    found = joined(weir, "a-run.json", b)
    (one,) = found["connections"]
    assert (one["sent"], one["received"], one["lost"], one["way"]["count"]) == (COUNT, COUNT, 0, COUNT), one
    assert one["sender"] == {"run": "a-run.json", "entity": "send"} and one["receiver"] == {"run": b, "entity": "receive"}, one
    assert found["paths"] == []


def r08_two_processes_of_one_machine_have_one_clock(weir):
    pair(weir)
    (one,) = joined(weir, "a-run.json", "b-run.json")["connections"]
    clock = one["clock"]
    assert clock["exchanges"] > COUNT / 8 and abs(clock["offset"]) <= clock["error"], clock
    assert one["way"]["min"] >= -clock["error"], one


def r08_paths_go_from_a_source_of_one_process_to_a_sink_of_another(weir):
    found = joined(weir, *pair(weir))
    (path,) = found["paths"]
    names = ["source", "pass", "send", "receive", "end"]
    assert [stop["entity"] for stop in path["entities"]] == names, path
    assert [stop["run"] for stop in path["entities"]] == 3 * ["a-run.json"] + 2 * ["b-run.json"], path
    latency = path["latency"]
    assert latency["count"] == COUNT and latency["error"] == found["connections"][0]["clock"]["error"], path
    assert -latency["error"] <= latency["min"] <= latency["p50"] <= latency["p99"] <= latency["max"], path
    text = report(weir, "a-run.json", "a-trace.json", "b-run.json", "b-trace.json").stdout
    assert "a-run.json: source > pass > send > b-run.json: receive > end\n  messages 200, latency: " in text, text


def r08_the_offset_of_the_clocks_is_taken_off(weir):
    files = pair(weir)
    before = joined(weir, *files)

    def run(text):
        way = record(text, "receive")["way"]
        way.update({key: way[key] + SHIFT for key in ("min", "p50", "p99", "max")})

    def trace(text):
        text["otherData"]["begun_ns"] += SHIFT

    def sender(text):
        record(text, "send")["offset"] += SHIFT

    after = joined(weir, change(files[0], sender), files[1], change(files[2], run), change(files[3], trace))
    assert after["connections"][0]["way"] == before["connections"][0]["way"]
    assert after["paths"][0]["latency"] == before["paths"][0]["latency"]


def r06_r08_numbers_have_gaps_where_messages_were_lost(weir):
    files = pair(weir)

    def gap(text):
        record(text, "receive")["numbers"].append({"emitted": 100, "number": 150})

    def unknown(text):
        record(text, "receive")["all_numbers"] = False

    (path,) = joined(weir, files[0], files[1], change(files[2], gap), files[3])["paths"]
    assert path["latency"]["count"] == 150, path  # of the others the sender has none
    assert joined(weir, files[0], files[1], change(files[2], unknown), files[3])["paths"] == []


def r08_three_processes_in_a_row_are_one_path(weir):
    first, second = address(), address()
    source = {**entity("source", "ping"), "conditions": [{"type": "count", "count": COUNT}]}
    a = chain(source, entity("send", "remote_send", to=first))
    b = chain(entity("receive", "remote_receive", listen=first), entity("send", "remote_send", to=second))
    c = chain(entity("receive", "remote_receive", listen=second), entity("end", "sink"))
    run_all(weir, a=a, b=b, c=c)
    found = joined(weir, *(f"{name}-{kind}.json" for name in "cab" for kind in ("run", "trace")))  # in any order
    (path,) = found["paths"]
    assert [f"{stop['run'][0]}.{stop['entity']}" for stop in path["entities"]] == ["a.source", "a.send", "b.receive", "b.send", "c.receive", "c.end"]
    assert path["latency"]["count"] == COUNT
    assert path["latency"]["error"] == sum(one["clock"]["error"] for one in found["connections"])


def e06_a_trace_that_lost_its_begin_joins_no_path(weir):
    files = pair(weir, ["--trace-events", "64"])
    ended = report(weir, "--json", *files)
    assert "a-trace.json: warning: " in ended.stderr and "--trace-events keeps more" in ended.stderr, ended
    assert json.loads(ended.stdout)["paths"] == []


def e06_what_is_not_joined_is_refused(weir):
    pair(weir)
    said = report(weir, "a-run.json", "a-run.json", code=3).stderr
    assert said.startswith("weir report: no remote connection joins these runs") and said.count("\n") == 1, said
    (FOLDER / "page.html").unlink(missing_ok=True)
    said = report(weir, "a-run.json", "b-run.json", "-o", "page.html", code=2).stderr
    assert said.startswith("weir report: -o writes the page of one run: give the files of each run alone") and said.count("\n") == 1, said
    assert not (FOLDER / "page.html").exists()
    report(weir, "a-run.json", "a-trace.json", "-o", "page.html")  # as it says
    assert (FOLDER / "page.html").exists()
    said = report(weir, "a-run.json", "a-trace.json", "b-trace.json", code=3).stderr
    assert said.startswith("weir report: b-trace.json: a trace, not statistics"), said


def e06_figures_that_cannot_be_harm_nothing(weir):
    files = pair(weir)

    def absurd(text):
        record(text, "send").update(offset=-(2**63), error=2**63 - 1)

    def numbers(text):
        record(text, "receive")["numbers"] = [{"emitted": 0, "number": 2**63 - 2}]

    def begun(text):
        text["otherData"]["begun_ns"] = 2**63 - 1

    report(weir, change(files[0], absurd), change(files[1], begun), change(files[2], numbers), change(files[3], begun))
    report(weir, "other-a-run.json", "other-a-trace.json", files[2], "other-b-trace.json")

    def untyped(text):
        record(text, "send")["session"] = 5

    said = report(weir, change(files[0], untyped), files[2], code=3).stderr
    assert said.startswith("weir report: other-a-run.json:") and said.count("\n") == 1, said


if __name__ == "__main__":
    process.main([check for name, check in list(globals().items()) if name[0] in "tre" and name[1:3].isdigit()])
