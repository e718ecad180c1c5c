"""Pictures of graphs, and what weir.report says of a run."""

import json
import time
import xml.etree.ElementTree

import pytest

import weir


def slow(value):
    time.sleep(0.002)
    return value


def upto(count=40):
    yield from range(count)


def built(**others):
    graph = weir.Graph(name="slow")
    graph.add(upto, **others) >> graph.add(slow) >> graph.add("sink")
    return graph


def texts_of(svg):
    return [element.text for element in xml.etree.ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_graph_has_a_picture():
    graph = built()
    graph["slow"].out >> graph.add("sink", name="b")
    svg = graph._repr_svg_()
    assert texts_of(svg) == ["upto", "upto", "slow", "slow", "sink", "sink", "b", "sink"] and "slow.out → b.in" in svg


def test_a_picture_has_cycles_and_names_of_any_kind(tmp_path):
    graph = weir.Graph({"weir": 1, "entities": [{"name": "a" * 64, "operator": "pass"}, {"name": "b", "operator": "pass"}],
                        "connections": [["a" * 64 + ".out", "b.in"], {"from": "b.out", "to": "a" * 64 + ".in", "initial_messages": 1}]})
    assert texts_of(graph._repr_svg_())[0] == "a" * 17 + "…" and texts_of(weir.Graph()._repr_svg_()) == []


def test_a_picture_of_too_many_entities_says_how_many():
    many = weir.Graph({"weir": 1, "entities": [{"name": f"e{i}", "operator": "ping"} for i in range(401)]})
    assert texts_of(many._repr_svg_()) == ["a graph of 401 entities"]


def test_the_report_of_a_run_names_what_limits_it(tmp_path):
    graph = built()
    graph.run(statistics=True, workers=1)
    report = weir.report(graph)
    assert report[0].entity == "slow" and report[0].percent > 50 and list(report) == report.findings and len(report) >= 1
    assert str(report).startswith(f"1. {report[0].title}: 'slow' is in compute") and repr(report) == f"<weir.Report of 'slow': {report[0].title} of 'slow'>"
    assert "1" in texts_of(report._repr_svg_()) and report._repr_html_().count("<li>") == len(report)
    report.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert json.loads(json.dumps(report.statistics)) == graph.statistics()


def test_statistics_that_cannot_be_read_are_refused():
    with pytest.raises(weir.Error, match="1:21: a number is expected"):
        weir.Report({"weir_statistics": "none"}, [])


def test_a_report_needs_statistics_and_a_tick():
    graph = built()
    for begin in (lambda: None, lambda: graph.run()):
        begin()
        with pytest.raises(weir.Error, match=r"no statistics to report of: graph.run\(statistics=True\)"):
            weir.report(graph)
    empty = weir.Graph()
    empty.run(statistics=True)
    with pytest.raises(weir.Error, match=r"the run had no tick, .* graph.explain_line\(\)"):
        weir.report(empty)


def test_a_report_without_findings_says_so_once():
    report = weir.Report(_quiet(), [])
    assert report.findings == [] and str(report).count("nothing stands out") == 1
    assert repr(report).endswith("nothing stands out>") and report._repr_html_().count("nothing stands out") == 1


def _quiet():
    """The statistics of a run that hardly did anything."""
    graph = weir.Graph()
    graph.add("ping", conditions=[{"type": "count", "count": 100}]) >> graph.add("sink")
    graph.run(statistics=True)
    statistics = graph.statistics()
    return {**statistics, "duration": 1000 * statistics["duration"]}
