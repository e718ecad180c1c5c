"""Graphs with one planted bottleneck, for the plugin report_plugin.c, each with what its report must say and a way to mend it.

`make(kind, seed)` gives a Plant. Stages take 2 ms, as long as nothing is planted; what is planted takes 2.5 to 8 times as long.
"""
import dataclasses
import random
import typing

FRAMES = 60
MS = 1000  # a stage's times are in microseconds


@dataclasses.dataclass
class Plant:
    graph: dict
    roots: set  # of (entity, cause): the first finding is one of these; empty: there must be none
    mend: typing.Callable = None  # (graph, finding): does what the finding says
    ends: tuple = (0,)  # exit codes of the run


def stage(name, host=2 * MS, device=0, operator="stage", **keys):
    return {"name": name, "operator": operator, "parameters": {"host": f"{host}us", "device": f"{device}us"}, **keys}


def counted(name, host=2 * MS, frames=FRAMES, **keys):
    return stage(name, host, conditions=[{"type": "count", "count": frames}], **keys)


def entity(graph, name):
    return next(each for each in graph["entities"] if each["name"] == name)


def line(graph, *names):
    graph["connections"] += [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])]


def wide(graph, capacity):
    """A capacity of every input that is connected."""
    for to in sorted({to for _, to in graph["connections"]}):
        name, port = to.split(".")
        entity(graph, name).setdefault("ports", {}).setdefault(port, {}).setdefault("capacity", capacity)


def chain(rng, on_device=False, stages=None, frames=FRAMES, workers=16):
    """A source, some stages, with on_device every second one on the device, and a sink."""
    entities = [counted("read", frames=frames)]
    for i in range(stages or rng.randint(2, 5)):
        entities.append(stage(f"stage{i}", 20, 2 * MS) if on_device and i % 2 == 1 else stage(f"stage{i}"))
    entities.append(stage("write"))
    graph = {"weir": 1, "scheduler": {"workers": workers}, "entities": entities, "connections": []}
    line(graph, *(each["name"] for each in entities))
    wide(graph, rng.choice([2, 8]))
    return graph


def middle(rng, graph):
    return rng.choice(graph["entities"][1:-1])["name"]


def slow_of(rng):
    return rng.randint(5 * MS, 16 * MS)


def slow_down(graph, name, host):
    entity(graph, name)["parameters"] = {"host": f"{host}us"}


# --- what a finding says is done ---


def shorter(graph, finding):
    """The compute or the kernels of the entity take a third."""
    times = entity(graph, finding["entity"])["parameters"]
    for key in ("host", "device"):
        times[key] = f"{int(times.get(key, '0us')[:-2]) // 3}us"


def set_to(graph, finding):
    """The key that the finding names gets the value that it names."""
    key, value = finding["set"], finding["to"]
    assert value, finding
    if key == "workers":
        graph["scheduler"]["workers"] = value
    elif key == "capacity":
        name, port = finding["of"].split(".")
        entity(graph, name)["ports"][port][key] = value
    elif key == "blocks":
        graph["resources"][finding["of"]][key] = value
    elif key == "period":
        next(each for each in entity(graph, finding["entity"])["conditions"] if each["type"] == "periodic")[key] = f"{value}ns"
    else:
        entity(graph, finding["entity"])[key] = value


def faster(name):
    """What is at the pipe's other end ticks three times as often."""

    def mend(graph, finding):
        beat = next(each for each in entity(graph, name)["conditions"] if each["type"] == "periodic")
        beat["period"] = f"{int(beat['period'][:-2]) // 3}ms"

    return mend


# --- the kinds ---

BUSY = ("compute", "blocks")


def busy(*names):
    return {(name, cause) for name in names for cause in BUSY}


def compute(rng):
    graph = chain(rng, rng.random() < 0.5)
    name = middle(rng, graph)
    slow_down(graph, name, slow_of(rng))
    return Plant(graph, busy(name), shorter)


def source_compute(rng):
    graph = chain(rng)
    slow_down(graph, "read", slow_of(rng))
    return Plant(graph, busy("read"), shorter)


def sink_compute(rng):
    graph = chain(rng)
    slow_down(graph, "write", slow_of(rng))
    return Plant(graph, busy("write"), shorter)


def source_period(rng):
    graph = chain(rng, rng.random() < 0.3)
    entity(graph, "read")["conditions"].append({"type": "periodic", "period": f"{rng.randint(6, 16)}ms"})
    return Plant(graph, {("read", "period")}, set_to)


def beat(name, operator, period, count):
    return {"name": name, "operator": operator, "parameters": {"count": count},
            "conditions": [{"type": "periodic", "period": f"{period}ms"}]}


def tapped(rng, graph, name):
    """The source gets what it emits from a pipe that another entity fills slowly. On `sim` a pipe is looked at every 10 ms."""
    at = next(i for i, each in enumerate(graph["entities"]) if each["name"] == name)
    graph["entities"][at] = {"name": name, "operator": "tap"}
    graph["entities"].append(beat("feed", "feed", rng.choice([30, 40, 60]), FRAMES // 2))


def source_descriptor(rng):
    graph = chain(rng)
    tapped(rng, graph, "read")
    return Plant(graph, {("read", "descriptor")}, faster("feed"))


def sink_descriptor(rng):
    graph = chain(rng, frames=FRAMES // 2)
    ports = entity(graph, "write")["ports"]
    graph["entities"][-1] = {"name": "write", "operator": "spill", "ports": ports}
    graph["entities"].append(beat("drain", "drain", rng.choice([30, 40, 60]), FRAMES // 2))
    return Plant(graph, {("write", "descriptor")}, faster("drain"))


def join(rng, capacity=None, two_sources=True):
    """Two ways, of which `left` is made slow, meet in `both`: in either order of its ports."""
    sources = [counted("one"), counted("two")] if two_sources else [counted("read")]
    graph = {"weir": 1, "scheduler": {"workers": 16}, "connections": [],
             "entities": [*sources, stage("left"), stage("right"), stage("both"), stage("write")]}
    first, second = ("one", "two") if two_sources else ("read", "read")
    ports = ["in", "also"] if rng.random() < 0.5 else ["also", "in"]
    graph["connections"] = [[f"{first}.out", "left.in"], [f"{second}.out", "right.in"], ["left.out", f"both.{ports[0]}"],
                            ["right.out", f"both.{ports[1]}"], ["both.out", "write.in"]]
    rng.shuffle(graph["entities"])
    wide(graph, capacity or rng.choice([1, 4, 8]))
    return graph


def join_compute(rng):
    graph = join(rng, two_sources=rng.random() < 0.5)
    slow_down(graph, "left", slow_of(rng))
    return Plant(graph, busy("left"), shorter)


def join_period(rng):
    """The slow side waits for its period: its source, or a stage of it."""
    graph = join(rng)
    name = rng.choice(["one", "left"])
    entity(graph, name).setdefault("conditions", []).append({"type": "periodic", "period": f"{rng.randint(6, 16)}ms"})
    return Plant(graph, {(name, "period")}, set_to)


def join_descriptor(rng):
    graph = join(rng)
    tapped(rng, graph, "one")
    entity(graph, "two")["conditions"][0]["count"] = FRAMES // 2
    return Plant(graph, {("one", "descriptor")}, faster("feed"))


def join_behind(rng):
    """A side is fed by a stage that is slow in compute, two stages before the join."""
    graph = join(rng)
    slow_down(graph, "one", slow_of(rng))
    return Plant(graph, busy("one"), shorter)


def side_branch(rng):
    """A second sink is slow, and holds up the source of both."""
    graph = chain(rng)
    graph["entities"].append(stage("preview", slow_of(rng), ports={"in": {"capacity": rng.choice([1, 4])}}))
    graph["connections"].append(["read.out", "preview.in"])
    return Plant(graph, busy("preview"), shorter)


def heartbeat(rng):
    """Beside the main path something ticks now and then."""
    plant = rng.choice([compute, source_compute, sink_compute])(rng)
    beats = counted("beat", 10, frames=3)
    beats["conditions"].append({"type": "periodic", "period": f"{rng.choice([20, 50])}ms"})
    plant.graph["entities"][:0] = [beats, stage("say", 10)]
    line(plant.graph, "beat", "say")
    return plant


def pool(rng):
    """The block is in use from the tick that takes it to the end of its receiver's."""
    graph = chain(rng)
    at = rng.randrange(1, len(graph["entities"]) - 1)
    graph["resources"] = {"frames": {"type": "memory_pool", "block_size": 64, "blocks": 1}}
    graph["entities"][at]["resources"] = ["frames"]
    return Plant(graph, {(graph["entities"][at]["name"], "pool")}, set_to)


def pool_before_slow(rng):
    """A pool is used up because what follows is slow: that is the root."""
    graph = chain(rng, stages=4)
    graph["resources"] = {"frames": {"type": "memory_pool", "block_size": 64, "blocks": 3}}
    graph["entities"][1]["resources"] = ["frames"]
    for each in graph["entities"]:
        each.setdefault("ports", {}).setdefault("in", {})
    slow_down(graph, "stage1", slow_of(rng))
    return Plant(graph, busy("stage1"), shorter)


def bound(rng):
    graph = chain(rng, stages=rng.choice([3, 5]))
    entity(graph, "stage1").update(parameters={"host": "2000us", "device": "2000us"}, max_in_flight=1)
    return Plant(graph, {("stage1", "in_flight")}, set_to)


def workers(rng):
    graph = chain(rng, workers=1)
    graph["scheduler"]["workers"] = max(1, len(graph["entities"]) // 2)
    plant = Plant(graph, {(each["name"], "workers") for each in graph["entities"]}, set_to)
    return plant


def device(rng):
    graph = chain(rng, True, frames=400)
    entity(graph, "stage1")["parameters"] = {"host": "20us", "device": f"{slow_of(rng)}us"}
    return Plant(graph, {("stage1", "device")}, shorter)


def device_short(rng):
    """Of so few ticks one or two are sampled."""
    graph = chain(rng, True, stages=5, frames=rng.choice([14, 40]))
    entity(graph, "stage1")["parameters"] = {"host": "20us", "device": f"{slow_of(rng)}us"}
    return Plant(graph, {("stage1", "device"), (None, "unknown")}, shorter)


def stream(rng):
    """Three entities share the only stream of their pool."""
    graph = {"weir": 1, "scheduler": {"workers": 16}, "connections": [], "entities": [counted("read", 100, frames=400)],
             "resources": {"one": {"type": "stream_pool", "max_size": 1}}}
    for i in range(3):
        graph["entities"] += [stage(f"on{i}", 20, rng.randint(2 * MS, 3 * MS), resources=["one"]), stage(f"end{i}", 100)]
        graph["connections"].append(["read.out", f"on{i}.in"])
        line(graph, f"on{i}", f"end{i}")
    wide(graph, 8)
    return Plant(graph, {(f"on{i}", "stream") for i in range(3)}, lambda graph, _: graph["resources"]["one"].pop("max_size"))


def streams_crossing(rng):
    """Two pools of one stream, which the entities of two lines take: whoever gets none works on its sender's, behind that."""
    pools = {name: {"type": "stream_pool", "max_size": 1} for name in ("one", "two")}
    graph = {"weir": 1, "scheduler": {"workers": 16}, "connections": [], "entities": [counted("read", 100, frames=200)], "resources": pools}
    long = rng.randint(2500, 3500)
    for name, pool, device in (("a", "one", long), ("b", "two", 800), ("c", "two", 800), ("d", "one", long)):
        graph["entities"].append(stage(name, 20, device, resources=[pool]))
    graph["entities"] += [stage("end", 100), stage("last", 100)]
    line(graph, "read", "a", "c", "end")
    line(graph, "read", "b", "d", "last")
    wide(graph, rng.choice([4, 8]))

    def mend(graph, _):
        for pool in graph["resources"].values():
            pool.pop("max_size")

    return Plant(graph, {(name, cause) for name in "abcd" for cause in ("stream", "device")}, mend)


def device_behind_host(rng):
    """Device work, a host stage, and device work that is slow: the queue behind that is full of messages that are unfinished."""
    graph = {"weir": 1, "scheduler": {"workers": 16}, "connections": [], "entities": [
        counted("read", 20, frames=200), stage("first", 20, 1 * MS), stage("host", 500),
        stage("slow", 20, rng.randint(6, 12) * MS), stage("write", 100)]}
    line(graph, "read", "first", "host", "slow", "write")
    wide(graph, 4)
    return Plant(graph, {("slow", "device")}, shorter)


def disabled(rng):
    graph = chain(rng)
    name = middle(rng, graph)
    entity(graph, name)["conditions"] = [{"type": "boolean", "enable_tick": False}]
    return Plant(graph, {(name, "ending")}, lambda graph, _: entity(graph, name).pop("conditions"), ends=(4,))


def told_to_wait(rng):
    """The only sink is off, and what is sent to it is dropped."""
    graph = chain(rng, stages=2)
    entity(graph, "read")["conditions"].append({"type": "periodic", "period": "5ms"})
    entity(graph, "write").update(conditions=[{"type": "boolean", "enable_tick": False}], ports={"in": {"policy": "pop"}})
    return Plant(graph, {("write", "told"), ("write", "ending")}, lambda graph, _: entity(graph, "write").pop("conditions"),
                 ends=(0, 4))


def deadlock_join(rng):
    """One side gives its messages four at a time, and the other side's queue is too small for that."""
    graph = {"weir": 1, "scheduler": {"workers": 4}, "connections": [
        ["read.out", "fast.in"], ["read.out", "pair.in"], ["fast.out", "both.in"], ["pair.out", "both.also"]],
        "entities": [counted("read"), stage("fast"), stage("pair", ports={"in": {"capacity": 4, "take": 4}}),
                     stage("both", ports={"in": {"capacity": 1}})]}
    return Plant(graph, {(name, "ending") for name in ("read", "fast", "pair", "both", None)}, ends=(4,))


def deadlock_pool(rng):
    graph = chain(rng, stages=2)
    graph["resources"] = {"frames": {"type": "memory_pool", "block_size": 64, "blocks": 2}}
    entity(graph, "stage0")["resources"] = ["frames"]
    entity(graph, "stage1")["ports"] = {"in": {"capacity": 4, "take": 4}}
    return Plant(graph, {(name, "ending") for name in ("stage0", "stage1", None)}, ends=(4,),
                 mend=lambda graph, _: graph["resources"]["frames"].update(blocks=8))


def drain(rng):
    """What is left when the run's time is over takes longer than a drain may."""
    graph = chain(rng)
    slow_down(graph, middle(rng, graph), 400 * MS)
    graph["scheduler"].update(drain="50ms", max_duration="100ms")
    return Plant(graph, {(each["name"], "ending") for each in graph["entities"]} | {(None, "ending")}, ends=(5,))


def burst(rng):
    """The source emits many at once, then pauses; a queue of one keeps the rest of the burst back."""
    graph = {"weir": 1, "scheduler": {"workers": 4}, "connections": [], "entities": [counted("read", frames=96), stage("write")]}
    entity(graph, "read")["parameters"]["burst"] = rng.choice([6, 8, 12])
    line(graph, "read", "write")
    wide(graph, 1)
    return Plant(graph, {("write", "queue")}, set_to)


def queue(rng):
    """A short way around long ones: the last one takes from both."""
    graph = chain(rng, stages=rng.randint(3, 5))
    graph["connections"].append(["read.out", "write.also"])
    wide(graph, 1)
    return Plant(graph, {("write", "queue")}, set_to)


def queue_device(rng):
    """Behind device work, whose messages lie in the queue until they are finished."""
    graph = chain(rng, True, stages=rng.randint(3, 5))
    entity(graph, "stage1")["parameters"] = {"host": "2000us", "device": f"{rng.randint(1200, 2000)}us"}
    entity(graph, "stage2")["ports"]["in"]["capacity"] = 1
    return Plant(graph, {("stage2", "queue")}, set_to)


def drops(rng):
    graph = chain(rng)
    name = middle(rng, graph)
    slow_down(graph, name, slow_of(rng))
    entity(graph, name)["ports"]["in"] = {"capacity": 1, "policy": "pop"}
    return Plant(graph, {(name, "drops")})


def balanced(rng):
    return Plant(chain(rng, rng.random() < 0.5), set())


def short(rng):
    """A few messages go through: that tells nothing."""
    return Plant(chain(rng, stages=4, frames=rng.randint(1, 4)), {(None, "unknown")})


def lock(rng):
    """Two computes take one lock for all of their time: on a core at most one of them is."""
    graph = chain(rng, stages=rng.randint(2, 4))
    for each in graph["entities"]:
        each["parameters"] = {"host": "200us"}
    names = rng.sample([each["name"] for each in graph["entities"][1:-1]], 2)
    for name in names:
        entity(graph, name)["parameters"] = {"host": f"{rng.randint(3, 4)}ms", "works": True, "locks": True}
    return Plant(graph, {(name, "lock") for name in names}, mend=None)


def sleeps(rng):
    """A compute that waits, told from one that works."""
    plant = compute(rng)
    plant.roots = {(name, "blocks") for name, _ in plant.roots}
    return plant


def works(rng):
    plant = compute(rng)
    (name,) = {name for name, _ in plant.roots}
    entity(plant.graph, name)["parameters"]["works"] = True
    plant.roots = {(name, "compute")}
    return plant


def device_chain(rng):
    """Three entities whose work the device orders, without a gate between them."""
    graph = {"weir": 1, "scheduler": {"workers": 8}, "entities": [counted("read", 20, frames=400), stage("show", 100)], "connections": []}
    names = ["first", "second", "third"]
    slow = rng.choice(names)
    for name in names:
        duration = rng.randint(5, 9) if name == slow else 1
        graph["entities"].append({"name": name, "operator": "spin", "parameters": {"duration": f"{duration}ms"}})
    line(graph, "read", *names, "show")
    wide(graph, 4)
    return Plant(graph, {(slow, "device")}, lambda graph, finding: entity(graph, finding["entity"])["parameters"].update(duration="1ms"))


def device_chain_short(rng):
    """Of too few ticks nothing is known, and that is said."""
    plant = device_chain(rng)
    entity(plant.graph, "read")["conditions"][0]["count"] = 14
    plant.roots, plant.mend = {(None, "unknown")}, None
    return plant


def cycle(rng):
    """One message goes round a circle: no two of its entities ever work at once."""
    graph = {"weir": 1, "scheduler": {"workers": 8}, "connections": [],
             "entities": [stage("one", conditions=[{"type": "count", "count": FRAMES}]), stage("two"), stage("three")]}
    line(graph, "one", "two", "three")
    wide(graph, 4)
    graph["connections"].append({"from": "three.out", "to": "one.in", "initial_messages": 1})
    entity(graph, "one").setdefault("ports", {})["in"] = {"capacity": 4}
    return Plant(graph, {(name, "circle") for name in ("one", "two", "three")},
                 lambda graph, _: graph["connections"][-1].update(initial_messages=3))


def pool_side(rng):
    """The blocks of the pool lie before a slow side branch."""
    plant = side_branch(rng)
    plant.graph["resources"] = {"frames": {"type": "memory_pool", "block_size": 64, "blocks": 3}}
    entity(plant.graph, "read")["resources"] = ["frames"]
    entity(plant.graph, "preview")["ports"]["in"]["capacity"] = 8
    return plant


def fan_in(rng):
    """Two sources send to one port, both slowly."""
    graph = chain(rng, stages=2)
    graph["entities"].append(counted("other"))
    for name in ("read", "other"):
        entity(graph, name)["conditions"].append({"type": "periodic", "period": f"{rng.randint(12, 20)}ms"})
    graph["connections"].append(["other.out", "stage0.in"])

    def mend(graph, finding):
        for name in ("read", "other"):
            set_to(graph, {**finding, "entity": name})

    return Plant(graph, {("read", "period"), ("other", "period")}, mend)


def one_worker(rng):
    """A stage is slow, but not so slow that a second worker would not help more."""
    graph = chain(rng, stages=3, workers=1)
    slow_down(graph, middle(rng, graph), 4 * MS)
    return Plant(graph, {(each["name"], "workers") for each in graph["entities"]}, set_to)


def idle(rng):
    """Two independent lines of one graph, of which one has a beat and the other one more to do."""
    graph = chain(rng, stages=2)
    graph["entities"] += [counted("camera", 10, frames=5), stage("store", 10)]
    entity(graph, "camera")["conditions"].append({"type": "periodic", "period": "20ms"})
    line(graph, "camera", "store")
    slow_down(graph, "stage1", slow_of(rng))
    return Plant(graph, busy("stage1"), shorter)


def dag(rng):
    """Layers of stages with forks and joins, of which one stage is slow, or one source has a period; all end in one sink."""
    graph = {"weir": 1, "scheduler": {"workers": 24}, "connections": [], "entities": [counted("read")]}
    layers = [["read"]]
    for depth in range(rng.randint(2, 4)):
        layer = [f"s{depth}{i}" for i in range(rng.randint(1, 3))]
        for name in layer:
            graph["entities"].append(stage(name, rng.choice([500, 1000, 2000])))
            senders = rng.sample(layers[-1], min(len(layers[-1]), rng.choice([1, 2])))
            graph["connections"] += [[f"{sender}.out", f"{name}.{port}"] for sender, port in zip(senders, ("in", "also"))]
        layers.append(layer)
    used = {sender.split(".")[0] for sender, _ in graph["connections"]}
    loose = [name for layer in layers for name in layer if name not in used]
    while len(loose) > 1:  # joins of two, to one end
        name = f"join{len(loose)}"
        graph["entities"].append(stage(name, 500))
        graph["connections"] += [[f"{loose[0]}.out", f"{name}.in"], [f"{loose[1]}.out", f"{name}.also"]]
        loose = [*loose[2:], name]
    graph["entities"].append(stage("write", 500))
    line(graph, loose[0], "write")
    wide(graph, 8)
    slow = rng.choice(graph["entities"])["name"]
    if slow == "read" and rng.random() < 0.7:
        entity(graph, "read")["conditions"].append({"type": "periodic", "period": f"{rng.randint(8, 16)}ms"})
        return Plant(graph, {("read", "period")}, set_to)
    slow_down(graph, slow, rng.randint(6 * MS, 16 * MS))
    return Plant(graph, busy(slow), shorter)


KINDS = [compute, source_compute, sink_compute, source_period, source_descriptor, sink_descriptor, join_compute, join_period,
         join_descriptor, join_behind, side_branch, heartbeat, idle, fan_in, cycle, pool, pool_before_slow, pool_side, bound, workers,
         one_worker, device, device_short, device_behind_host, device_chain, device_chain_short, stream, streams_crossing, disabled,
         told_to_wait, deadlock_join, deadlock_pool, drain, burst, queue, queue_device, drops, short, dag, balanced]
ON_THREADS = [kind for kind in KINDS if kind not in (drain, device_chain, device_chain_short, cycle)] + [lock, sleeps, works]


def make(kind, seed):
    return kind(random.Random(f"{kind.__name__} {seed}"))
