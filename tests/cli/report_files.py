"""weir report as a process: what it finds in simulated runs with one planted bottleneck, what it refuses, and what it
leaves. `report_files.py WEIR FOLDER` checks some seeds, with `all` after it a hundred.
"""
import json
import os
import pathlib
import subprocess
import sys

import process
import simulated

HERE = pathlib.Path(__file__).parent / "report"
RUN, TRACE = str(HERE / "run.json"), str(HERE / "trace.json")
FOLDER = pathlib.Path(sys.argv[2])
ALL = "all" in sys.argv[3:]


def findings(weir, world):
    ended = process.run(weir, "report", "--json", "-", input=json.dumps(world.run()))
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["findings"]


def planted_bottlenecks_are_named(weir):
    wrong, count = [], 100 if ALL else 16
    for seed in range(count):
        world, (entities, cause) = simulated.planted(seed, simulated.CAUSES[seed % len(simulated.CAUSES)])
        found = findings(weir, world)
        if not found or found[0]["cause"] != cause or (entities and found[0]["entity"] not in entities):
            wrong.append((seed, cause, entities, [(each["entity"], each["cause"]) for each in found]))
    assert len(wrong) <= count // 20, wrong


def balanced_graphs_have_no_finding_but_a_period(weir):
    for seed in range(20 if ALL else 4):
        world = simulated.balanced(seed)[0]
        found = [(each["entity"], each["cause"]) for each in findings(weir, world)]
        assert found == ([("read", "period")] if world.period else []), (seed, found)


def refused(weir, text, line, code=3, trace=None):
    """The command prints one line, has that exit code and leaves no file."""
    given, page = FOLDER / "given.json", FOLDER / "page.html"
    given.write_bytes(text if isinstance(text, bytes) else text.encode())
    files = [RUN, str(given)] if trace else [str(given)]
    before = sorted(os.listdir(FOLDER))
    ended = process.run(weir, "report", *files, "-o", str(page))
    assert ended.returncode == code, (line, ended.returncode, ended.stderr)
    assert ended.stderr.startswith(f"weir report: {given}: ") and ended.stderr.count("\n") == 1, ended.stderr
    assert line in ended.stderr, (line, ended.stderr)
    assert sorted(os.listdir(FOLDER)) == before, "a file was left"


def bad_statistics_are_refused_in_one_line(weir):
    good = pathlib.Path(RUN).read_text()
    data = json.loads(good)
    refused(weir, good.replace('"weir_statistics": 1', '"weir_statistics": 2'), "statistics of version 2, this command reads version 1")
    refused(weir, good[: len(good) // 2], "the text ends here, too early: it was cut short; let the run write it again")
    refused(weir, "", "empty; weir run --stats-file FILE.json writes such files")
    refused(weir, "no JSON", "1:1: an object is expected")
    refused(weir, '{"weir": 1, "entities": []}', "no statistics of a run: weir run --stats-file FILE.json writes them")
    refused(weir, pathlib.Path(TRACE).read_text(), "a trace, not statistics; give the file of weir run --stats-file first")
    refused(weir, json.dumps({**data, "entities": [{**entity, "ticks": 0} for entity in data["entities"]]}), "the run had no tick")
    refused(weir, json.dumps({**data, "duration": "long"}), "a number is expected")
    refused(weir, json.dumps({key: value for key, value in data.items() if key != "entities"}), 'the object lacks "entities"')
    refused(weir, json.dumps({**data, "entities": data["entities"] * 2}), "two entities have the same name")
    refused(weir, json.dumps({**data, "entities": data["entities"][1:]}), "a queue names an entity that is not in the list")


def xb63_what_a_file_does_not_say_is_unknown(weir):
    """Without an outcome, as of a run that was on or of an older weir, and with causes of a later one: read, with one line each."""
    data = json.loads(pathlib.Path(RUN).read_text())
    outcome = {"status": "ok", "cause": "done", "ending": "finished"}
    later = [{**each, "waits": [{**wait, "cause": "later"} for wait in each["waits"]]} for each in data["entities"]]
    for changed, line in [
        ({**outcome, "status": None}, "warning: it does not say how the run ended"),
        ({**outcome, "cause": "later"}, "warning: it does not say how the run ended"),
        ({**outcome, "entities": later}, "warning: waits without a cause, as another version of weir wrote them"),
        (outcome, ""),
    ]:
        ended = process.run(weir, "report", "--json", "-", input=json.dumps({**data, **changed}))
        assert ended.returncode == 0 and "findings" in json.loads(ended.stdout), ended
        assert line in ended.stderr and ended.stderr.count("\n") == bool(line), (changed, ended.stderr)


def bad_traces_are_refused_in_one_line(weir):
    good = pathlib.Path(TRACE).read_text()
    data = json.loads(good)
    about = lambda **more: json.dumps({**data, "otherData": {**data["otherData"], **more}})
    refused(weir, about(graph="other.json"), "the trace of another run (other.json, 77.2 ms) than the statistics (simulated.json, 77.2 ms)", trace=True)
    refused(weir, about(duration_ns=10**9), "the trace of another run", trace=True)
    refused(weir, about(duration_ns=data["otherData"]["duration_ns"] + 1), "the trace of another run", trace=True)
    refused(weir, about(weir_trace=2), "a trace of version 2, this command reads version 1", trace=True)
    refused(weir, good.replace('"stage0"', '"other"'), "the trace of another run", trace=True)
    refused(weir, json.dumps({**data, "traceEvents": []}), "the trace has no tick; leave it out", trace=True)
    refused(weir, good[: len(good) // 2], "the text ends here, too early", trace=True)
    refused(weir, "[]", "1:1: an object is expected", trace=True)
    refused(weir, "{}", "no trace of weir: weir run --trace FILE.json writes them", trace=True)


def page_is_whole_or_not_there(weir):
    page = FOLDER / "whole.html"
    ended = process.run(weir, "report", RUN, TRACE, "-o", str(page))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), ended
    assert page.read_text().rstrip().endswith("</html>") and "://" not in page.read_text().replace("http://www.w3.org/2000/svg", "")
    mask = os.umask(0o22)
    os.umask(mask)
    assert page.stat().st_mode & 0o777 == 0o666 & ~mask, oct(page.stat().st_mode)
    for path, reason in [("/dev/full", "No space left on device"), (str(FOLDER / "no" / "page.html"), "No such file or directory"), (str(FOLDER), "Is a directory")]:
        ended = process.run(weir, "report", RUN, "-o", path)
        assert ended.returncode == 1 and ended.stderr == f"weir report: {path}: the page cannot be written: {reason}\n", ended
    ended = process.run(weir, "report", RUN, "-o", str(page), **process.small_files(2000))
    assert ended.returncode == 1 and ended.stderr == f"weir report: {page}: the page cannot be written: File too large\n", ended
    assert page.read_text().rstrip().endswith("</html>"), "the old page is lost"
    page.unlink()
    ended = process.run(weir, "report", RUN, "-o", str(page), **process.small_files(2000))
    assert ended.returncode == 1 and not page.exists(), "a part was left"
    assert not list(FOLDER.glob(".weir-*")), "a part was left"
    os.mkfifo(page)
    ended = process.run(weir, "report", RUN, "-o", str(page))
    assert ended.returncode == 1 and ended.stderr == f"weir report: {page}: the page cannot be written: the FIFO has no reader\n", ended
    with open("/dev/full", "w") as full:
        ended = process.run(weir, "report", RUN, "-o", "-", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1 and ended.stderr == "weir report: -: the page cannot be written: No space left on device\n", ended
    ended = process.run(weir, "report", RUN, "-o", "-")
    assert ended.returncode == 0 and ended.stdout.endswith("</html>\n")
    page.unlink()


def names_with_markup_stay_text(weir):
    data = json.loads(pathlib.Path(RUN).read_text())
    text = json.dumps(data, ensure_ascii=False).replace("stage0", "</script><img src=x onerror=alert(1)>\u2028")
    ended = process.run(weir, "report", "-", "-o", "-", input=text)
    assert ended.returncode == 0, ended.stderr
    assert "<img" not in ended.stdout and "\u2028" not in ended.stdout and "\\u003c/script>\\u003cimg src=x" in ended.stdout


TESTS = [
    planted_bottlenecks_are_named, balanced_graphs_have_no_finding_but_a_period, bad_statistics_are_refused_in_one_line,
    xb63_what_a_file_does_not_say_is_unknown, bad_traces_are_refused_in_one_line, page_is_whole_or_not_there, names_with_markup_stay_text,
]
sys.argv = sys.argv[:2]
FOLDER.mkdir(exist_ok=True)
process.main(TESTS[:2] if ALL else TESTS)
