"""Graphs: reading, running, errors, inlets and outlets."""

import ctypes
import json
import pathlib
import pickle
import select
import subprocess
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import graph_of

import weir

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAIN = graph_of(("a", "Count", {"count": 3}), ("b", "Collect"))


@weir.operator
class Broken:
    inputs = ["in"]

    def compute(self, ctx):
        raise ValueError("the lens is broken")


def test_a_graph_is_read_from_a_file_a_text_and_a_dict(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(CHAIN))
    for graph in (weir.Graph.read(path), weir.Graph(json.dumps(CHAIN)), weir.Graph(CHAIN)):
        with graph:
            assert graph.run(backend="host").ticks == 6
            assert [list(a) for a in graph["b"].instance.seen] == [[0] * 4, [1] * 4, [2] * 4]


def test_a_run_may_be_repeated_and_begins_anew(chain):
    graph = chain(("a", "Count", {"count": 3}), ("b", "Collect"))
    first = graph.run(backend="host") and graph["b"].instance
    second = graph.run() and graph["b"].instance
    assert first is not second and len(first.seen) == len(second.seen) == 3


def test_set_changes_a_parameter(tmp_path):
    with weir.Graph(CHAIN, set=["a.count=7"]) as graph:
        graph.run(backend="host")
        assert len(graph["b"].instance.seen) == 7


def test_an_error_has_its_entity_beside_its_text(chain):
    @weir.operator
    class Empty:
        outputs = ["out"]

        def compute(self, ctx):
            raise ValueError("the bottle is empty")

    with pytest.raises(weir.Error) as raised:
        weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Empty"}, {"name": "b", "operator": "sink"}],
                    "connections": [["a.out", "b.in"]]}).run(backend="host")
    error = raised.value
    assert error.entity == error.outcome.entity == "a"
    assert error.said == error.outcome.text and error.said.startswith("ValueError: the bottle is empty")
    assert str(error) == f"'a': {error.said}"
    assert (error.cause, error.on) == (error.outcome.cause, error.outcome.cause_on) == ("compute", None)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.__dict__) == (str(error), error.__dict__) and type(again) is weir.Error


def test_a_start_that_fails_has_the_cause_start():
    @weir.operator
    class Unplugged:
        outputs = ["out"]

        def start(self, ctx):
            raise OSError("no camera")

        def compute(self, ctx):
            pass

    with pytest.raises(weir.Error) as raised:
        weir.Graph({"weir": 1, "entities": [{"name": "a", "operator": "Unplugged"}, {"name": "b", "operator": "sink"}],
                    "connections": [["a.out", "b.in"]]}).run(backend="host")
    assert (raised.value.entity, raised.value.cause) == ("a", "start") and raised.value.said.startswith("OSError: no camera")


class Full(weir.Error):
    """A program's own, with an __init__ of its own."""

    def __init__(self, entity, count):
        super().__init__(weir.Status.FAILED, f"{entity} has {count} already", entity)
        self.count = count


def test_an_error_of_a_call_has_no_cause_and_the_port_if_one_is_refused(chain):
    with pytest.raises(weir.Error) as raised:
        chain(("a", "Count"), ("b", "Collect")).outlet("nowhere.out")
    assert (raised.value.cause, raised.value.on) == (None, None)


@pytest.mark.parametrize("error", [weir.Closed(weir.Status.CLOSED, "done"), weir.Timeout(weir.Status.TIMEOUT, "late"), Full("b", 3)])
def test_errors_of_each_class_can_be_pickled(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.__dict__ == error.__dict__


def test_counts_and_where(chain):
    graph = chain(("a", "Count", {"count": 5}), ("b", "Collect"))
    graph.run(backend="host", workers=1)
    counts = graph.counts()
    assert graph.where == graph.backend == "host"
    assert counts["entities"]["b"]["received"] == 5
    assert counts["queues"][0]["from"] == "a.out" and counts["queues"][0]["delivered"] == 5


def test_statistics_are_those_of_the_counts(chain):
    graph = chain(("a", "Count", {"count": 5}), ("b", "Collect"))
    graph.run(backend="host", statistics=True, skip=2)
    statistics = graph.statistics()
    assert [entity["ticks"] for entity in statistics["entities"]] == [5, 5]
    assert statistics["entities"][1]["submit"]["count"] == 3
    assert statistics["paths"][0]["entities"] == ["a", "b"] and statistics["paths"][0]["count"] == 3
    graph.run(backend="host")
    with pytest.raises(weir.Error, match="WEIR_OBSERVE_STATISTICS"):
        graph.statistics()


def test_the_trace_has_the_ticks(chain, tmp_path):
    graph = chain(("a", "Count", {"count": 30}), ("b", "Collect"))
    graph.run(backend="host", trace=True)
    assert graph.write_trace(tmp_path / "trace.json") == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e.get("ph") == "B" and e.get("name") == "a" for e in events) == 30
    graph.run(backend="host", trace=True, trace_events=8)
    assert graph.write_trace(tmp_path / "trace.json") > 0
    graph.run(backend="host", trace=False)
    with pytest.raises(weir.Error):
        graph.write_trace(tmp_path / "trace.json")


def test_the_time_on_the_device_is_measured_where_it_is_asked_for(chain):
    graph = chain(("a", "Count", {"count": 30}), ("up", "upload"), ("down", "download"), ("b", "Collect"))
    for gpu_time, ticks in (("all", 30), ("sample:10", 5), ("off", 0)):
        graph.run(backend="host", statistics=True, gpu_time=gpu_time)
        entities = {entity["name"]: entity for entity in graph.statistics()["entities"]}
        assert entities["up"]["gpu_ticks"] == ticks, gpu_time
    for wrong in ("sample:0", "sample:1000001", "some", 3):
        with pytest.raises(ValueError, match="gpu_time is 'off', 'all' or 'sample:N'"):
            graph.run(gpu_time=wrong)


def test_xb62_statistics_count_how_long_a_compute_waited_for_the_gil(chain):
    graph = chain(("a", "Count", {"count": 30}), ("up", "upload"), ("b", "Collect"))
    graph.run(backend="host", statistics=True)
    entities = {entity["name"]: entity for entity in graph.statistics()["entities"]}
    for name in ("a", "b"):
        lock = entities[name]["lock"]
        assert (lock["name"], lock["count"]) == ("GIL", 30) and 0 <= lock["time"] <= entities[name]["submit"]["sum"], lock
    assert "lock" not in entities["up"]


def test_xb60_xb61_xb62_statistics_say_what_stands_whose_frames_and_how_it_ended():
    given = graph_of(("a", "ping"), ("b", "Collect"))
    given["entities"][0].update(conditions=[{"type": "count", "count": 1}])
    given["entities"][1].update(main=True, conditions=[{"type": "boolean", "enable_tick": False}], ports={"in": {"capacity": 4}})
    with weir.Graph(given) as graph:
        inlet = graph.inlet("b.in")  # it holds the run
        with graph.start(backend="host", statistics=True):
            opens, end = [0], time.monotonic() + 30
            while len(set(opens)) < 3 and time.monotonic() < end:  # until it has grown
                said = graph.statistics()
                waits = said["entities"][1]["waits"]
                opens.append(waits[0].get("open", 0) if waits else 0)
            assert len(set(opens)) == 3 and opens == sorted(opens), opens
            assert (said["ending"], said["status"], said["cause"]) == ("running", None, "none")
            assert (said["main"], said["frames"], waits[0]["cause"], waits[0]["of"]) == ("b", 0, "told", "boolean")
            inlet.push(b"one")
            graph.tell("b", "boolean", "ready")
        said = graph.statistics()
        assert (said["ending"], said["status"], said["main"], said["frames"]) == ("finished", "ok", "b", 2)
        assert "open" not in said["entities"][1]["waits"][-1]
        assert said["entities"][1]["waits"][-1]["time"]["sum"] >= opens[-1]


def test_xb62_statistics_say_where_a_run_failed_and_why():
    with weir.Graph(graph_of(("a", "ping"), ("b", "Broken"))) as graph:
        with pytest.raises(weir.Error):
            graph.run(backend="host", statistics=True)
        said = graph.statistics()
    assert (said["status"], said["cause"], said["cause_entity"], said["main"]) == ("operator failed", "compute", "b", "b")
    assert "the lens is broken" in said["text"] and not said["drained"]


def test_an_error_in_a_file_has_its_place(tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text('{"weir": 1,\n "entities": [\n  {"name": "a", "operator": "Cuont"}]}')
    with pytest.raises(weir.Error, match="did you mean 'Count'") as caught:
        weir.Graph.read(path)
    error = caught.value
    assert error.status == weir.Status.INVALID
    assert (error.file, error.line) == (str(path), 3)
    assert error.diagnostics[0].number == 16


def test_a_file_that_is_not_there():
    with pytest.raises(weir.Error, match="nowhere.json") as caught:
        weir.Graph.read("nowhere.json")
    assert caught.value.status == weir.Status.IO


def test_check_lists_all_errors_and_show_fills_in_defaults():
    wrong = graph_of(("a", "Cuont"), ("b", "Colect"))
    assert [d.number for d in weir.check(wrong) if not d.warning] == [16, 16]
    assert weir.check(CHAIN) == []
    assert json.loads(weir.show(CHAIN, format="json"))["entities"][0]["operator"] == "Count"


def test_an_unknown_option_is_named(chain):
    with pytest.raises(TypeError, match="no option 'worker'.*workers"):
        chain(("a", "Count"), ("b", "Collect")).run(worker=1)


@pytest.mark.parametrize("name, value, text", [
    ("workers", -1, "workers is a whole number from 0"),
    ("workers", "4", "not '4'"),
    ("workers", True, "not True"),
    ("seed", 2**64, "seed is a whole number from 0 to 18446744073709551615"),
    ("max_in_flight", 2**31, "max_in_flight is a whole number from -"),
    ("drain", "5s", "drain is a number of seconds, not '5s'"),
    ("max_duration", float("nan"), "max_duration is a number of seconds"),
    ("trace", 1, "trace is True or False"),
    ("backend", 3, "backend is a text"),
])
def test_an_option_of_another_type_is_named(chain, name, value, text):
    with pytest.raises(TypeError, match=text):
        chain(("a", "Count"), ("b", "Collect")).run(**{name: value})


def test_options_take_numbers_of_numpy_and_any_time(chain):
    graph = chain(("a", "Count"), ("b", "Collect"))
    assert graph.run(workers=np.int64(2), drain=np.float32(0.5), max_duration=float("inf"), deadlock_grace=-1).ticks == 20


def test_one_text_is_no_list_of_them():
    for name in ("set", "plugins"):
        with pytest.raises(TypeError, match=f"{name} is a list, not one: "):
            weir.Graph(CHAIN, **{name: "one"})


def test_a_text_that_c_would_cut_is_refused(chain):
    nul = "cut\0off"
    for given in ({"set": [f"a.text={nul}"]}, {"plugins": [nul]}, {"path": nul}):
        with pytest.raises(ValueError, match=rf"{next(iter(given))} has a NUL character: '.*cut\\x00off'"):
            weir.Graph(**({"graph": CHAIN} | given))
    for name in ("backend", "signal", "root"):
        with pytest.raises(ValueError, match=f"{name} has a NUL character: "):
            chain(("a", "Count"), ("b", "Collect")).run(**{name: nul})


def test_a_graph_of_what_json_lacks_is_refused():
    for wrong in (b"{}", {"weir": np.int64(1)}):
        with pytest.raises(TypeError, match="a graph is a dict of what JSON has, or a text: "):
            weir.Graph(wrong)
    with pytest.raises(ValueError, match="format is one of text, json, dot, not 'xml'"):
        weir.show(CHAIN, format="xml")


def test_an_entity_that_is_not_there_is_named(chain):
    graph = chain(("a", "Count"), ("b", "Collect"))
    for call in (lambda: graph.tell("x", "boolean", "ready"), lambda: graph.poke("x")):
        with pytest.raises(KeyError, match="the graph has no entity 'x'"):
            call()
    graph.run()
    with pytest.raises(KeyError, match="the graph has no entity 'x'; there are: a, b"):
        graph["x"]


def test_timeouts_and_stamps_of_another_type_are_named():
    graph = weir.Graph({"weir": 1, "entities": [{"name": "b", "operator": "Collect"}], "connections": []})
    inlet = graph.inlet("b.in")
    with graph.start():
        for call in (lambda: inlet.push(None, timeout="1"), lambda: graph.wait("1")):
            with pytest.raises(TypeError, match="a timeout is a number of seconds, or None, not '1'"):
                call()
        for stamp in (3, (1, 2, 3), ("now", 1), (0.5, 1)):
            with pytest.raises(TypeError, match="a stamp is \\(time, tag\\)"):
                inlet.push(None, stamp=stamp)
        with pytest.raises(ValueError, match="64 bits"):
            inlet.push(None, stamp=(0, -1))
        inlet.push(None, timeout=np.float32(1), stamp=(np.int64(5), np.uint8(7)))
    assert graph.counts()["entities"]["b"]["received"] == 1
    graph.close()


def test_the_end_of_a_runs_block_keeps_what_it_counted_and_that_of_a_graph_does_not():
    with weir.Graph(CHAIN) as graph:
        for _ in range(2):
            with graph.start(statistics=True):
                pass
            assert graph.counts()["entities"]["b"]["received"] == 3
            assert graph.statistics()["ending"] == "finished"
            assert len(graph["b"].instance.seen) == 3
        assert not graph.running
    with pytest.raises(weir.Error, match="was not started"):
        graph.counts()
    with pytest.raises(ValueError), graph.start():
        raise ValueError
    with pytest.raises(weir.Error, match="was not started"):
        graph.counts()



def test_an_unknown_backend_is_refused(chain):
    with pytest.raises(weir.Error, match="backend"):
        chain(("a", "Count"), ("b", "Collect")).run(backend="tpu")


def test_operators_in_python_are_refused_on_sim(chain):
    with pytest.raises(weir.Error, match="sim") as caught:
        chain(("a", "Count"), ("b", "Collect")).run(backend="sim")
    assert caught.value.status == weir.Status.UNSUPPORTED and caught.value.entity == "a"


def test_operators_in_c_run_on_sim():
    ping = {"name": "a", "operator": "ping", "conditions": [{"type": "count", "count": 4}]}
    text = {"weir": 1, "entities": [ping, {"name": "b", "operator": "sink"}], "connections": [["a.out", "b.in"]]}
    with weir.Graph(text) as graph:
        assert graph.run(backend="sim", seed=3).ticks == 8


def test_operators_in_c_and_python_mix():
    ping = {"name": "a", "operator": "ping", "parameters": {"bytes": 8}, "conditions": [{"type": "count", "count": 4}]}
    text = {"weir": 1, "entities": [ping, {"name": "b", "operator": "Collect"}], "connections": [["a.out", "b.in"]]}
    with weir.Graph(text) as graph:
        graph.run(backend="host")
        assert len(graph["b"].instance.seen) == 4 and len(graph["b"].instance.seen[0]) == 8


def test_a_run_that_waits_is_explained(chain):
    graph = chain(("a", "Pass"))
    inlet, _ = graph.inlet("a.in"), graph.outlet("a.out")
    graph.start(backend="host")
    with pytest.raises(weir.Timeout):
        graph.wait(0.05)
    assert graph.running and "a" in graph.explain_line() and graph.explain()[0][0] == "a"
    (unmet,) = graph.explain_causes()
    assert (unmet.entity, unmet.cause, unmet.on, unmet.blames, unmet.verdict) == ("a", "messages", "in", None, "WAIT")
    assert unmet.condition == graph.explain()[0][1] and unmet.detail == graph.explain()[0][3]
    inlet.close()
    outcome = graph.wait(5)
    assert outcome.ticks == 0 and outcome.cause == "done" and outcome.cause_entity is None and not graph.running


def test_a_disabled_entity_is_named_by_the_outcome():
    text = graph_of(("a", "Count"), ("b", "Collect"))
    text["entities"][0]["conditions"] = [{"type": "boolean"}]
    with weir.Graph(text) as graph:
        graph.tell("a", "boolean", "wait")
        assert "a" in graph.run(backend="host").waiting


@weir.operator
class KeepTwo:
    """Keeps the first messages of all runs."""

    inputs = ["in"]
    kept = []

    def compute(self, ctx):
        message = ctx.receive("in")
        if len(KeepTwo.kept) < 2:
            KeepTwo.kept.append(message)


def test_messages_that_are_kept_are_counted_by_the_outcome(chain):
    graph = chain(("a", "Count", {"count": 5}), ("b", "KeepTwo"))
    assert graph.run(backend="host").held == 2
    assert graph.run().held == 2  # still
    assert graph.counts()["entities"]["b"]["held"] == 0  # by the program: weir sees no further
    KeepTwo.kept[:] = [None, None]
    assert graph.run().held == 0


def test_a_part_that_stands_for_ever_beside_another_one_is_told_by_the_outcome():
    described = graph_of(("a", "ping"), ("s", "spin"), ("t", "spin"), ("end", "sink"),
                         resources={"two": {"type": "memory_pool", "blocks": 2, "block_size": 4096}})
    for entity in described["entities"][1:3]:
        entity["resources"] = ["two"]
    described["entities"][2]["ports"] = {"in": {"capacity": 2}}
    beat = graph_of(("beat", "ping"), ("live", "sink"))
    beat["entities"][0]["conditions"] = [{"type": "periodic", "period": "100ms"}]
    both = {**described, **{key: described[key] + beat[key] for key in ("entities", "connections")}}
    with weir.Graph(both) as graph, pytest.raises(weir.Error, match="circular wait: t waits") as caught:
        graph.run(backend="sim", max_duration=3)
    assert (caught.value.entity, caught.value.cause, caught.value.on) == ("t", "memory", "two")
    assert caught.value.status == weir.Status.DEADLOCK and caught.value.outcome.stuck == caught.value.outcome.text
    assert (caught.value.outcome.cause, caught.value.outcome.cause_entity, caught.value.outcome.cause_on) == ("memory", "t", "two")
    with weir.Graph(beat) as graph:
        assert graph.run(backend="sim", max_duration=3).stuck is None


def test_device_memory_is_closed_on_sim():
    upload = graph_of(("a", "frames_read", {"path": "/dev/zero", "width": 4, "height": 1}), ("b", "upload"))
    upload["entities"][0]["conditions"] = [{"type": "count", "count": 1}]
    for options in ({}, {"strict": True}, {"strict": False}):
        with weir.Graph(upload) as graph:
            outlet = graph.outlet("b.out")
            with graph.start(backend="sim", **options):
                message = outlet.take(5)
            if options.get("strict") is False:
                assert not np.asarray(message).any()
                continue
            for read in (np.from_dlpack, memoryview):
                with pytest.raises((weir.Error, BufferError), match="closed to the host"):
                    read(message)
            del message
    with pytest.raises(TypeError, match="strict is True or False"):
        weir.Graph(upload).run(strict=1)


# ---- between two runs


def test_collect_frees_what_the_device_still_used_when_it_was_dropped(tmp_path):
    plugin = tmp_path / "libgate.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", plugin, ROOT / "tests/python/gate_plugin.c"], check=True)
    with weir.Graph(graph_of(("keep", "keep_one")), plugins=[plugin]) as graph:
        gate, array = ctypes.CDLL(plugin), np.arange(10.0).view(type("Own", (np.ndarray,), {}))
        gone = weakref.ref(array)
        graph.collect()  # there is nothing before the first run
        inlet = graph.inlet("keep.in")
        with graph.start(backend="host"):
            inlet.push(array)
            del array
            with pytest.raises(weir.Error, match="a run is on, its workers collect") as caught:
                graph.collect()
            assert caught.value.status == weir.Status.STATE
        assert gate.drop_behind_gate() == weir.Status.OK
        try:
            for timeout in (0, 0.05):
                with pytest.raises(weir.Timeout, match="the device still uses 1 message"):
                    graph.collect(timeout)
            assert gone() is not None
        finally:
            threading.Timer(0.05, gate.open_gate).start()  # in Python, so it needs that the wait gives the GIL away
        graph.collect()
        assert gone() is None


def test_a_wait_for_the_device_gives_the_gil_away(tmp_path):
    plugin = tmp_path / "libgate.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", plugin, ROOT / "tests/python/gate_plugin.c"], check=True)
    with weir.Graph(graph_of(("a", "behind_gate")), plugins=[plugin]) as graph:
        inlet, outlet = graph.inlet("a.in"), graph.outlet("a.out", early=True)
        with graph.start(backend="host"):
            inlet.push(np.arange(10.0))
            inlet.close()
            message = outlet.take(10)
            threading.Timer(0.05, ctypes.CDLL(plugin).open_gate).start()
            assert np.asarray(message).sum() == 45


def test_a_graph_that_runs_again_is_not_readable_by_the_end_of_the_run_before():
    def is_readable(timeout):
        return bool(select.select([graph], [], [], timeout)[0])

    with weir.Graph(graph_of(("a", "Collect"))) as graph:
        inlet = graph.inlet("a.in")
        for _ in range(2):
            graph.start(backend="host")
            assert not is_readable(0)
            inlet.close()
            graph.wait(10)
            assert is_readable(10)  # a moment later: another thread writes it


@pytest.mark.parametrize("timeout, kind", [("1", TypeError), (-1, weir.Error)])
def test_a_timeout_of_collect_that_is_none_is_refused(chain, timeout, kind):
    with pytest.raises(kind, match="a timeout is a number of seconds, or None"):
        chain(("a", "Count")).collect(timeout)


# ---- inlets and outlets


def test_messages_go_in_and_come_out(chain):
    graph = chain(("a", "Pass"))
    inlet, outlet = graph.inlet("a.in"), graph.outlet("a.out", capacity=4)
    with graph.start(backend="host"):
        for value in (np.arange(3.0), b"bytes", "text", {"x": np.zeros(2, np.uint8)}, None):
            inlet.push(value)
            message = outlet.take(5)
            assert message.kind == {bytes: "bytes", str: "object", dict: "parts", type(None): "empty"}.get(
                type(value), "tensor")
        inlet.close()
        assert list(outlet) == []


def test_an_outlet_is_iterable_and_names_its_end(chain):
    graph = chain(("a", "Count", {"count": 6}))
    outlet = graph.outlet("a.out")
    with graph.start(backend="host"):
        assert [np.asarray(m)[0] for m in outlet] == [0, 1, 2, 3, 4, 5]
        with pytest.raises(weir.Closed):
            outlet.take(0)


def test_timeouts_of_push_and_take(chain):
    graph = chain(("a", "Pass"))
    inlet, outlet = graph.inlet("a.in"), graph.outlet("a.out")
    with graph.start(backend="host"):
        with pytest.raises(weir.Timeout):
            outlet.take(0.02)
        with pytest.raises(TimeoutError):
            for _ in range(10):
                inlet.push(1, timeout=0.02)
        with pytest.raises(weir.Error) as caught:
            inlet.push(1, timeout=0)
        assert caught.value.status == weir.Status.BUSY
        graph.stop(drain=False)


def test_a_push_outside_of_a_run_is_refused(chain):
    graph = chain(("a", "Pass"))
    inlet, _ = graph.inlet("a.in"), graph.outlet("a.out")
    with pytest.raises(weir.Closed):
        inlet.push(1)


def test_stamps_travel_to_the_outlet(chain):
    graph = chain(("a", "Pass"))
    inlet, outlet = graph.inlet("a.in"), graph.outlet("a.out")
    with graph.start(backend="host"):
        now = graph.now
        inlet.push(np.zeros(1), stamp=(now, 42))
        assert outlet.take(5).stamp == (now, 42)


def test_an_unknown_port_is_refused(chain):
    graph = chain(("a", "Pass"))
    with pytest.raises(weir.Error, match="a.inn"):
        graph.inlet("a.inn")


def test_a_start_without_a_named_outlet_is_refused():
    with weir.Graph(graph_of(("a", "Count"), outlets=["a.out"])) as graph:
        with pytest.raises(weir.Error, match="a.out"):
            graph.start(backend="host")


@weir.operator
class Pass:
    inputs = ["in"]
    outputs = ["out"]

    def compute(self, ctx):
        ctx.emit("out", ctx.receive("in"))


@weir.operator
class Sizes:
    """Keeps how many messages its ticks received."""

    inputs = [weir.Port("in", capacity=32, take=-1)]

    def start(self, ctx):
        self.sizes = []

    def compute(self, ctx):
        self.sizes.append(len(ctx.receive_all("in")))


def test_a_condition_of_a_plugin_decides_when_an_operator_in_python_ticks(tmp_path):
    """That of docs/writing-conditions.md: batches of 8 and a rest."""
    page = (ROOT / "docs/writing-conditions.md").read_text()
    source, plugin = tmp_path / "batch.c", tmp_path / "libbatch.so"
    source.write_text(page.split("```c example\n")[1].split("```")[0])
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", plugin, source], check=True)
    described = graph_of(("a", "Count", {"count": 20}), ("b", "Sizes"))
    described["entities"][1]["conditions"] = [{"type": "batch", "port": "in", "size": 8}]
    with weir.Graph(described, plugins=[plugin]) as graph:
        graph.run(backend="host", workers=1)
        assert sum(graph["b"].instance.sizes) == 20 and all(size >= 8 for size in graph["b"].instance.sizes[:-1])
    assert any("batch" in d.text for d in weir.check(described))
