"""Entities with several instances in whole graphs: what the command says of them, and pools of the least size around them.

instances.py WEIR FOLDER: FOLDER is scratch.
"""
import copy
import json
import pathlib
import re
import shutil
import sys

import process

FOLDER = pathlib.Path(sys.argv[2]) / "instances"
del sys.argv[2]
FRAMES, SIDE = 41, 8
SEEDS = 6


def fresh():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "in.rgb").write_bytes(b"".join(bytes([i]) * (SIDE * SIDE * 3) for i in range(FRAMES)))


def entity(name, operator=None, pool=None, **more):
    return {"name": name, "operator": operator or name, **({"resources": [pool]} if pool else {}), **more}


def chain(*entities, **more):
    """One behind the other, and the pools `p` on the device and `h` on the host if they are used."""
    used = {each for one in entities for each in one.get("resources", [])}
    pools = {"p": {"type": "memory_pool", "blocks": 4096, "block_size": SIDE * SIDE * 4},
             "h": {"type": "memory_pool", "place": "host", "blocks": 4096, "block_size": SIDE * SIDE * 4}}
    return {"weir": 1, "resources": {name: pool for name, pool in pools.items() if name in used}, "entities": list(entities),
            "connections": [[f"{a['name']}.out", f"{b['name']}.in"] for a, b in zip(entities, entities[1:])], **more}


def written(graph):
    path = FOLDER / "graph.json"
    path.write_text(json.dumps(graph))
    return str(path)


def least(weir, graph):
    """The pools get as many blocks as the command says; behind instances one less is refused."""
    for name, pool in graph["resources"].items():
        pool["blocks"] = 4096
        ended = process.run(weir, "check", written(graph))
        said = re.search(rf"memory pool {name}: 4096 blocks; with (\d+) it cannot stall", ended.stdout)
        assert said, (name, ended)
        pool["blocks"] = int(said[1]) - 1
        ended = process.run(weir, "check", written(graph))
        assert ended.returncode == 3 and f"with {said[1]} blocks it cannot stall" in ended.stderr or name == "h", (name, ended)
        pool["blocks"] += 1
    return graph


READ = entity("read", "frames_read", parameters={"path": str(FOLDER / "in.rgb"), "width": SIDE, "height": SIDE})
WRITE = entity("write", "frames_write", parameters={"path": str(FOLDER / "out.rgb")})
IN = {"ports": {"in": {"capacity": 4}}}
SLOW = {"parameters": {"duration": "30us"}}
UPLOAD = entity("upload", pool="p")
PNG = entity("png", "png_write", instances=3, parameters={"directory": str(FOLDER / "out"), "compression": 0},
             ports={"in": {"capacity": 4, "take": 3}}, conditions=[{"type": "message_available", "port": "in", "min_size": 1}])


def in_mid_chain():
    return chain(READ, UPLOAD, entity("blur", pool="p", instances=3), entity("download", pool="h", instances=2), WRITE)


def behind_queues_of_four():
    return chain(READ, UPLOAD, entity("blur", pool="p", instances=4, **IN), entity("download", pool="h", **IN),
                 entity("slow", "delay", instances=3, **SLOW, **IN), WRITE)


def two_of_one_pool():
    return chain(READ, UPLOAD, entity("blur", pool="p", instances=2), entity("sobel", pool="p", instances=3, **IN), entity("download", pool="h"),
                 WRITE)


def with_two_receivers():
    graph = chain(READ, UPLOAD, entity("blur", pool="p", instances=3), entity("download", pool="h"), WRITE)
    graph["entities"].append(entity("slow", "delay", instances=2, **SLOW))
    graph["connections"].append(["blur.out", "slow.in"])
    return graph


def behind_latest():
    return chain(READ, UPLOAD, entity("sobel", pool="p", ports={"in": {"policy": "latest"}}), entity("blur", pool="p", instances=3, **IN),
                 entity("download", pool="h"), WRITE)


def in_batches():
    return chain(READ, UPLOAD, entity("blur", pool="p", instances=2), entity("download", pool="h", **IN), PNG)


GRAPHS = [in_mid_chain, behind_queues_of_four, two_of_one_pool, with_two_receivers, behind_latest, in_batches]


def c13_s03_pools_of_the_least_size_run_to_the_end(weir):
    for make in GRAPHS:
        fresh()
        graph = least(weir, make())
        plain = copy.deepcopy(graph)
        for one in plain["entities"]:
            one.pop("instances", None)
        assert process.run(weir, "run", written(plain), "--quiet", "--backend", "sim").returncode == 0, make.__name__
        whole = (FOLDER / "out.rgb").read_bytes() if make is not in_batches else b""
        for backend, seed, workers in [("sim", seed, workers) for seed in range(SEEDS) for workers in (1, 4)] + [("host", 0, 3)] * 2:
            shutil.rmtree(FOLDER / "out", ignore_errors=True)
            ended = process.run(weir, "run", written(graph), "--quiet", "--backend", backend, "--workers", str(workers),
                                *(["--seed", str(seed)] if backend == "sim" else []))
            assert ended.returncode == 0, (make.__name__, backend, seed, workers, ended)
            if make is in_batches:
                assert len(list((FOLDER / "out").iterdir())) == FRAMES, (make.__name__, backend, seed, workers)
            elif make is not behind_latest:
                assert (FOLDER / "out.rgb").read_bytes() == whole, (make.__name__, backend, seed, workers)


def slow_chain(instances=1):
    return {"weir": 1, "scheduler": {"workers": 4}, "entities": [
        entity("a", "ping", conditions=[{"type": "count", "count": 60}]), entity("x", "delay", instances=instances, parameters={"duration": "8ms"}),
        entity("y", "delay", parameters={"duration": "3ms"}), entity("z", "sink")],
        "connections": [["a.out", "x.in"], ["x.out", "y.in"], ["y.out", "z.in"]]}


def ran(weir, graph, *more):
    record = FOLDER / "run.json"
    ended = process.run(weir, "run", written(graph), "--backend", "sim", "--quiet", "--stats-file", str(record), *more)
    assert ended.returncode == 0, ended
    report = process.run(weir, "report", "--json", str(record))
    assert report.returncode == 0, report
    return json.loads(record.read_text()), json.loads(report.stdout)["findings"]


def c13_the_report_proposes_as_many_as_make_the_next_entity_the_slowest(weir):
    fresh()
    one, found = ran(weir, slow_chain())
    assert (found[0]["entity"], found[0]["set"], found[0]["to"]) == ("x", "instances", 3), found
    assert 'set "instances" of it, to 3 for a start, as fast as \'y\' is, the next' in found[0]["text"], found
    many, found = ran(weir, slow_chain(found[0]["to"]))
    assert one["duration"] / many["duration"] > 2, (one["duration"], many["duration"])
    assert found[0]["entity"] == "y" and "'x x3'" not in found[0]["text"].split(";")[0], found


def c13_statistics_and_summary_show_one_place(weir):
    fresh()
    said, found = ran(weir, slow_chain(2))
    x = next(each for each in said["entities"] if each["name"] == "x")
    assert [each["name"] for each in said["entities"]] == list("axyz") and x["instances"] == 2 and x["unsent"] == 0, x
    assert x["submit"]["count"] == 60 and x["submit"]["p50"] >= 8_000_000 and x["ready_to_compute"]["count"] == 60, x
    assert all(wait["on"] != "turn" and "instance" not in wait["why"] for wait in x["waits"]), x["waits"]
    assert "'x x2'" in found[0]["text"], found
    ended = process.run(weir, "run", written(slow_chain(2)), "--backend", "sim", "--stats")
    assert ended.returncode == 0 and ended.stdout.count("x x2 ") == 2 and "x.turn" not in ended.stdout, ended


def c13_a_trace_shows_ticks_as_the_entity_s_and_a_row_for_each_instance(weir):
    fresh()
    trace = FOLDER / "trace.json"
    ran(weir, slow_chain(3), "--trace", str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    ticks = [each["args"] for each in events if each["ph"] == "B" and each["name"] == "x"]
    assert sorted(each["tick"] for each in ticks) == list(range(60)) and all(each["instance"] == each["tick"] % 3 for each in ticks), ticks
    rows = [each["args"]["name"] for each in events if each["ph"] == "M" and each["name"] == "thread_name" and each["pid"] == 3]
    assert sorted(rows) == ["a", "x", "x: order", "x[0]", "x[1]", "x[2]", "y", "z"], rows
    assert not any("turn" in json.dumps(each) for each in events if "name" in each and "whose turn" not in each["name"])
    page = FOLDER / "page.html"
    ended = process.run(weir, "report", str(FOLDER / "run.json"), str(trace), "-o", str(page))
    assert ended.returncode == 0, ended
    ways = re.findall(r'"steps": \[(.*?)\],\n  "around"', page.read_text(), re.S)
    assert ways and all(re.findall(r'"entity": (\d)', way) == list("0123") for way in ways), ways


process.main([
    c13_s03_pools_of_the_least_size_run_to_the_end, c13_the_report_proposes_as_many_as_make_the_next_entity_the_slowest,
    c13_statistics_and_summary_show_one_place, c13_a_trace_shows_ticks_as_the_entity_s_and_a_row_for_each_instance,
])
