"""weir report on real runs: graphs with one planted bottleneck, run on `sim`, whose virtual time is the same on every
machine. `report_findings.py WEIR PLUGIN FOLDER` runs some seeds, with `all` after it a hundred.
"""
import json
import pathlib
import random
import sys

import process

PLUGIN, FOLDER = sys.argv[2], pathlib.Path(sys.argv[3])
ALL = "all" in sys.argv[4:]
CAUSES = ["compute", "device", "queue", "workers", "pool", "in_flight", "drops"]
FRAMES = 60


def stage(name, host=0, device=0, **keys):
    return {"name": name, "operator": "stage", "parameters": {"host": f"{host}us", "device": f"{device}us"}, **keys}


def chain(rng, on_device):
    """A source, some stages of 2 ms, every second one on the device, and a sink."""
    entities = [stage("read", 2000, conditions=[{"type": "count", "count": FRAMES}])]
    for i in range(rng.randint(2, 5)):
        entities.append(stage(f"stage{i}", 20, 2000) if on_device and i % 2 == 1 else stage(f"stage{i}", 2000))
    entities.append(stage("write", 2000))
    for entity in entities[1:]:
        entity["ports"] = {"in": {"capacity": 8}}
    connections = [[f"{a['name']}.out", f"{b['name']}.in"] for a, b in zip(entities, entities[1:])]
    return {"weir": 1, "scheduler": {"workers": 16}, "entities": entities, "connections": connections}


def planted(seed, cause):
    """The graph, and the entities that may be named (none: any)."""
    rng = random.Random(seed)
    graph = chain(rng, cause in ("device", "queue", "in_flight") or rng.random() < 0.5)
    entities = graph["entities"]
    at = rng.randrange(1, len(entities) - 1)
    chosen, slow = entities[at], rng.randint(5000, 16000)
    if cause == "compute":
        chosen["parameters"] = {"host": f"{slow}us"}
    elif cause == "device":
        chosen = entities[2]
        chosen["parameters"] = {"host": "20us", "device": f"{slow}us"}
    elif cause == "queue" and rng.random() < 0.5:  # a short way around long ones: the last one takes from both
        graph["connections"].append(["read.out", "write.also"])
        chosen = entities[-1]
    elif cause == "queue":  # behind device work, whose messages lie in it until they are finished
        entities[2]["parameters"] = {"host": "2000us", "device": f"{rng.randint(1200, 2000)}us"}
        chosen = entities[3]
        chosen["ports"]["in"]["capacity"] = 1
    elif cause == "workers":
        graph["scheduler"]["workers"] = max(1, len(entities) // 2)
        return graph, set()
    elif cause == "pool":  # the block is in use from the tick that takes it to the end of its receiver's
        graph["resources"] = {"frames": {"type": "memory_pool", "block_size": 64, "blocks": 1}}
        chosen["resources"] = ["frames"]
        chosen["parameters"] = entities[at + 1]["parameters"] = {"host": "2000us"}
    elif cause == "in_flight":
        chosen = entities[2]
        chosen["parameters"] = {"host": "2000us", "device": "2000us"}
        chosen["max_in_flight"] = 1
    elif cause == "drops":
        chosen["parameters"] = {"host": f"{slow}us"}
        chosen["ports"]["in"] = {"capacity": 1, "policy": "pop"}
    return graph, {chosen["name"]}


def findings(weir, graph, seed):
    path, statistics = FOLDER / "graph.json", FOLDER / "run.json"
    path.write_text(json.dumps(graph))
    ended = process.run(weir, "run", str(path), "--plugin", PLUGIN, "--backend", "sim", "--seed", str(seed), "--gpu-time", "all", "--quiet",
                        "--stats-file", str(statistics))
    assert ended.returncode == 0, ended.stderr
    ended = process.run(weir, "report", "--json", str(statistics))
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["findings"]


def pool_waits_are_those_of_its_entities(run):
    waits = [wait["time"] for entity in run["entities"] for wait in entity["waits"] if wait["of"] == "memory_available"]
    time = run["pools"][0]["wait_time"]
    assert time["count"] == sum(each["count"] for each in waits) > 0, (time, waits)
    assert time["sum"] == sum(each["sum"] for each in waits) > 0, (time, waits)


def planted_bottlenecks_are_named(weir):
    wrong, count = [], 100 if ALL else len(CAUSES)
    for seed in range(count):
        cause = CAUSES[seed % len(CAUSES)]
        graph, entities = planted(seed, cause)
        found = findings(weir, graph, seed)
        if not found or found[0]["cause"] != cause or (entities and found[0]["entity"] not in entities):
            wrong.append((seed, cause, entities, [(each["entity"], each["cause"]) for each in found]))
        if cause == "pool":
            pool_waits_are_those_of_its_entities(json.loads((FOLDER / "run.json").read_text()))
    assert len(wrong) <= count // 20, f"{len(wrong)} of {count}: {wrong}"


def balanced_graphs_have_no_finding(weir):
    for seed in range(20 if ALL else 2):
        rng = random.Random(seed)
        graph = chain(rng, rng.random() < 0.5)
        if seed % 4 == 3:  # a source that sets the pace
            graph["entities"][0]["conditions"].append({"type": "periodic", "period": "5ms"})
        found = findings(weir, graph, seed)
        assert not found, (seed, found)


def computes_that_wait_are_told_from_those_that_work(weir):
    """On real threads, with one stage that is slow in compute."""
    for works, cause in ((False, "blocks"), (True, "compute")):
        graph = {"weir": 1, "scheduler": {"workers": 3}, "entities": [
            stage("read", 500, conditions=[{"type": "count", "count": 20}]), stage("slow", 5000), stage("write", 500)],
            "connections": [["read.out", "slow.in"], ["slow.out", "write.in"]]}
        graph["entities"][1]["parameters"]["works"] = works
        path, statistics = FOLDER / "threads.json", FOLDER / "threads-run.json"
        path.write_text(json.dumps(graph))
        ended = process.run(weir, "run", str(path), "--plugin", PLUGIN, "--backend", "host", "--quiet", "--stats-file", str(statistics))
        assert ended.returncode == 0, ended.stderr
        cpu = json.loads(statistics.read_text())["entities"][1]["cpu"]
        assert cpu["count"] == 20 and cpu["of"] > 90_000_000, cpu
        assert cpu["time"] > 90_000_000 if works else cpu["time"] < 50_000_000 and cpu["waits"] >= 20, cpu
        found = json.loads(process.run(weir, "report", "--json", str(statistics)).stdout)["findings"]
        assert [(each["entity"], each["cause"]) for each in found] == [("slow", cause)], (cpu, found)


def drops_before_a_stage_that_waits_for_room_name_what_follows_it(weir):
    stages = [stage("read", 2000, conditions=[{"type": "count", "count": FRAMES}]),
              stage("decode", 500, ports={"in": {"policy": "pop"}}), stage("slow", 9000), stage("write", 100)]
    connections = [[f"{a['name']}.out", f"{b['name']}.in"] for a, b in zip(stages, stages[1:])]
    found = findings(weir, {"weir": 1, "scheduler": {"workers": 4}, "entities": stages, "connections": connections}, 1)
    assert [(each["entity"], each["cause"]) for each in found[:2]] == [("decode", "drops"), ("slow", "compute")], found
    assert "of the run for room: what follows it is too slow" in found[0]["text"], found


sys.argv = sys.argv[:2]
options = process.run(sys.argv[1], "run", "--help").stdout
if "--stats-file" not in options or "--gpu-time" not in options:
    print("skipped: this weir records no statistics")
    sys.exit(77)
FOLDER.mkdir(exist_ok=True)
process.main(
    [
        planted_bottlenecks_are_named,
        balanced_graphs_have_no_finding,
        computes_that_wait_are_told_from_those_that_work,
        drops_before_a_stage_that_waits_for_room_name_what_follows_it,
    ]
)
