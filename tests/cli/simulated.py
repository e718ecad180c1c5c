"""Statistics of runs that were not run: pipelines simulated in discrete time, with planted bottlenecks, in the
format of `weir run --stats-file`, and their traces. `simulated.py KIND SEED NAME [ENTITIES]` writes NAME.json and
NAME.trace.json.

An entity ticks when each input has a message (of a host port: one whose device work is finished), each queue
behind it has room, fewer than max_in_flight of its ticks are on the device, and its pool has a block; then it
waits for a worker. Its device work runs on a stream of its own, after that of what it received.
"""
import collections
import heapq
import itertools
import json
import random
import sys

US, MS = 1_000, 1_000_000


class Histogram:
    """The oldest 2^4 steps per power of two: at most 3 % wide."""

    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(max(0, int(value)))

    def json(self):
        if not self.values:
            return {"count": 0}
        values = sorted(self.values)
        buckets = collections.Counter(self.bucket(v) for v in values)
        at = lambda q: values[min(len(values) - 1, int(q * len(values)))]
        return {
            "count": len(values), "sum": sum(values), "min": values[0], "max": values[-1],
            "p50": at(0.5), "p90": at(0.9), "p99": at(0.99),
            "buckets": [[low, high, n] for (low, high), n in sorted(buckets.items())],
        }

    @staticmethod
    def bucket(value):
        shift = max(0, value.bit_length() - 6)
        low = value >> shift << shift
        return low, low + (1 << shift)


class Entity:
    def __init__(self, name, host=0, device=0, gate=False, blocked=0.0, pool=None, max_in_flight=64, operator="delay", jitter=0.05, replay=False):
        self.name, self.host, self.device, self.gate, self.blocked = name, host, device, gate, blocked
        self.pool, self.max_in_flight, self.operator, self.jitter, self.replay = pool, max_in_flight, operator, jitter, replay
        self.inputs, self.outputs = [], []
        self.state, self.since, self.reason = "idle", 0, None
        self.ticks = self.received = self.emitted = self.flight = self.most_in_flight = 0
        self.stream_free = 0
        self.submit, self.blocked_time, self.span, self.done, self.to_compute = (Histogram() for _ in range(5))
        self.waits = collections.defaultdict(Histogram)


class Queue:
    def __init__(self, sender, receiver, capacity, policy, number):
        self.sender, self.receiver, self.capacity, self.policy = sender, receiver, capacity, policy
        self.port = "in" if number == 0 else f"in{number}"
        self.messages = collections.deque()
        self.pushed = self.delivered = self.dropped = self.full = self.changed = self.area = self.max = 0

    def account(self, now):
        self.area += len(self.messages) * (now - self.changed)
        self.full += (now - self.changed) if len(self.messages) >= self.capacity else 0
        self.changed = now


class Pool:
    def __init__(self, name, capacity):
        self.name, self.capacity, self.used, self.most, self.allocations = name, capacity, 0, 0, 0
        self.wait = Histogram()


class World:
    def __init__(self, seed, workers=8, frames=300, period=0):
        self.random = random.Random(seed)
        self.name = "simulated.json"
        self.workers, self.frames, self.period = workers, frames, period
        self.entities, self.queues, self.pools = [], [], []
        self.now, self.events, self.count = 0, [], itertools.count()
        self.idle, self.ready = list(range(workers)), collections.deque()
        self.busy, self.did = [0] * workers, [0] * workers
        self.paths = collections.defaultdict(Histogram)
        self.trace = []

    def entity(self, name, **options):
        self.entities.append(Entity(name, **options))
        return self.entities[-1]

    def connect(self, sender, receiver, capacity=4, policy="block"):
        queue = Queue(sender, receiver, capacity, policy, len(receiver.inputs))
        sender.outputs.append(queue)
        receiver.inputs.append(queue)
        self.queues.append(queue)
        return queue

    def at(self, when, call, *arguments):
        heapq.heappush(self.events, (when, next(self.count), call, arguments))

    def note(self, phase, group, row, at, **more):
        self.trace.append({"ph": phase, "pid": group, "tid": row, "ts": at / 1000, **more})

    def chrome(self):
        """The trace of the run, as `weir run --trace FILE.json` writes it."""
        names = [{"ph": "M", "pid": 3, "tid": 1000 + i, "name": "thread_name", "args": {"name": e.name}} for i, e in enumerate(self.entities)]
        about = {"weir_trace": 1, "version": "0.1.0", "graph": self.name, "where": "host", "workers": self.workers, "duration_ns": self.now, "dropped_records": 0, "from_ns": 0}
        return {"displayTimeUnit": "ns", "otherData": about, "traceEvents": names + sorted(self.trace, key=lambda event: event["ts"])}

    def why_not(self, entity):
        for queue in entity.inputs:
            if not queue.messages:
                return "messages", queue.port, queue.port, "too few messages"
            if entity.gate and queue.messages[0]["done"] > self.now:
                return "device", queue.port, queue.port, "work on the device is not finished"
        for queue in entity.outputs:
            if queue.policy == "block" and len(queue.messages) >= queue.capacity:
                return "room", "out", "room", "no room behind an output"
        if entity.flight >= entity.max_in_flight:
            return "bound", None, "in_flight", "max_in_flight of its ticks are on the device"
        if not entity.inputs and self.period and entity.ticks * self.period > self.now:
            self.at(entity.ticks * self.period, self.review, entity)
            return "time", None, "periodic", "the period is not over"
        if entity.pool and entity.pool.used >= entity.pool.capacity:
            return "memory", entity.pool.name, "memory_available", f"too little free memory in pool '{entity.pool.name}'"
        return None

    def note_wait(self, entity, reason):
        if entity.reason and entity.reason != reason:
            entity.waits[entity.reason].add(self.now - entity.since)
            if entity.reason[0] == "memory":
                entity.pool.wait.add(self.now - entity.since)
        if entity.reason and entity.reason != reason:
            self.note("E", 3, 1000 + self.entities.index(entity), self.now)
        if reason and entity.reason != reason:
            self.note("B", 3, 1000 + self.entities.index(entity), self.now, name=": ".join(reason[2:]), args={"cause": reason[0]})
        if entity.reason != reason:
            entity.since, entity.reason = self.now, reason

    def review(self, entity):
        if entity.state != "idle" or (not entity.inputs and entity.ticks >= self.frames):
            return
        reason = self.why_not(entity)
        self.note_wait(entity, reason)
        if reason:
            return
        entity.state, entity.since = "ready", self.now
        if entity.pool:
            entity.pool.used += 1
            entity.pool.allocations += 1
            entity.pool.most = max(entity.pool.most, entity.pool.used)
        self.ready.append(entity)
        self.dispatch()

    def dispatch(self):
        while self.ready and self.idle:
            self.begin(self.ready.popleft(), self.idle.pop())

    def begin(self, entity, worker):
        entity.state = "running"
        entity.to_compute.add(self.now - entity.since + 2 * US)
        taken = []
        for queue in entity.inputs:
            queue.account(self.now)
            taken.append(queue.messages.popleft())
            queue.delivered += 1
            entity.received += 1
            self.at(self.now, self.review, queue.sender)
        took = max(1 * US, int(entity.host * self.random.gauss(1, entity.jitter)))
        self.note("B", 1, worker + 1, self.now, name=entity.name, args={"tick": entity.ticks, "ready": entity.since / 1000})
        for queue, message in zip(entity.inputs, taken):
            self.note("f", 1, worker + 1, self.now, name="message", id=hex(self.queues.index(queue) << 40 | message["sequence"]), bp="e")
        self.at(self.now + took, self.end, entity, worker, taken, self.now, entity.since)

    def end(self, entity, worker, taken, began, ready):
        took = self.now - began
        entity.ticks += 1
        self.busy[worker] += took
        self.did[worker] += 1
        entity.submit.add(took)
        entity.blocked_time.add(took * entity.blocked)
        done = max([self.now] + [m["done"] for m in taken])
        if entity.device:
            begin = max(done, entity.stream_free)
            done = entity.stream_free = begin + max(1 * US, int(entity.device * self.random.gauss(1, entity.jitter)))
            entity.span.add(done - begin)
            entity.flight += 1
            entity.most_in_flight = max(entity.most_in_flight, entity.flight)
            self.at(done, self.complete, entity)
            entity.done.add(done - ready)
            self.note("X", 2, 2000 + self.entities.index(entity), begin, name=entity.name, dur=(done - begin) / 1000, args={"tick": entity.ticks - 1})
        self.at(max(done, self.now), self.release, [m["pool"] for m in taken if m["pool"]])
        origins = {(entity.name,): began} if not entity.inputs else {}
        for message in taken:
            for path, origin in message["origins"].items():
                if len(origins) < 8:
                    origins[path + (entity.name,)] = origin
        self.emit(entity, done, origins, worker)
        self.note("E", 1, worker + 1, self.now)
        entity.state, entity.reason = "idle", None
        self.idle.append(worker)
        self.at(self.now, self.review, entity)
        self.dispatch()

    def emit(self, entity, done, origins, worker):
        if not entity.outputs:
            for path, origin in origins.items():
                self.paths[path].add(max(done, self.now) - origin)
        for i, queue in enumerate(entity.outputs):
            queue.account(self.now)
            self.note("s", 1, worker + 1, self.now, name="message", id=hex(self.queues.index(queue) << 40 | queue.pushed))
            queue.pushed += 1
            message = {"sequence": queue.pushed - 1, "done": done, "origins": origins, "pool": entity.pool if i == 0 else None}
            if len(queue.messages) >= queue.capacity:
                queue.dropped += 1
                old = queue.messages.popleft()
                if old["pool"]:
                    old["pool"].used -= 1
            queue.messages.append(message)
            queue.max = max(queue.max, len(queue.messages))
            entity.emitted += 1
            self.at(self.now, self.review, queue.receiver)
            if done > self.now:
                self.at(done, self.review, queue.receiver)

    def complete(self, entity):
        entity.flight -= 1
        self.review(entity)

    def release(self, pools):
        for pool in pools:
            pool.used -= 1
        for entity in self.entities if pools else []:
            if entity.pool in pools:
                self.review(entity)

    def run(self):
        for entity in self.entities:
            self.review(entity)
        while self.events:
            self.now, _, call, arguments = heapq.heappop(self.events)
            call(*arguments)
        for queue in self.queues:
            queue.account(self.now)
        return self.json()

    def json(self):
        entities = [
            {
                "name": e.name, "operator": e.operator, "ticks": e.ticks, "received": e.received, "emitted": e.emitted, "lost": 0,
                "most_in_flight": e.most_in_flight, "max_in_flight": e.max_in_flight,
                "submit": e.submit.json(), "blocked": e.blocked_time.json() if e.blocked else {"count": 0},
                "gpu_span": e.span.json(), "done_latency": e.done.json(), "done_source": "timers", "ready_to_compute": e.to_compute.json(),
                "waits": [{"cause": cause, "on": on, "of": of, "why": why, "time": h.json()} for (cause, on, of, why), h in sorted(e.waits.items(), key=str)],
                "gpu_ticks": len(e.span.values),
                **({"replay": {"hits": e.ticks - 1, "captures": 1, "evictions": 0, "failures": 0}} if e.replay else {}),
            }
            for e in self.entities
        ]
        queues = [
            {
                "from": f"{q.sender.name}.out", "to": f"{q.receiver.name}.{q.port}", "sender": q.sender.name, "receiver": q.receiver.name,
                "capacity": q.capacity, "policy": q.policy, "pushed": q.pushed, "delivered": q.delivered, "dropped": q.dropped,
                "closed": 0, "queued": len(q.messages), "abandoned": 0,
                "depth": {"mean": round(q.area / max(1, self.now), 3), "max": q.max, "full_time": q.full},
            }
            for q in self.queues
        ]
        pools = [
            {"name": p.name, "capacity": p.capacity, "unit": "blocks", "most_used": p.most, "allocations": p.allocations,
             "waits": len(p.wait.values), "wait_time": p.wait.json()}
            for p in self.pools
        ]
        latency = Histogram()
        for entity in self.entities:
            for value in entity.to_compute.values[:100] if entity.gate else []:
                latency.add(value + 20 * US)
        return {
            "weir_statistics": 1, "version": "0.1.0", "graph": self.name, "where": "host", "backend": "host", "signal": "callback",
            "gpu_time": "all", "skip": 0, "workers_count": self.workers, "duration": self.now, "ending": "finished", "cause": "done", "cause_entity": None, "cause_on": None,
            "entities": entities, "queues": queues, "pools": pools,
            "workers": [{"ticks": n, "busy": b, "asleep": self.now - b, "steals": 0, "wakes": n} for n, b in zip(self.did, self.busy)],
            "signals": [{"kind": "callback", "count": len(latency.values), "latency": latency.json()}] if latency.values else [],
            "paths": [{"entities": list(p), "count": len(h.values), "measured": len(h.values), "latency": h.json()} for p, h in self.paths.items()],
            "notes": [],
        }


def chain(world, length, device):
    """read -> ... -> write: in the middle some stages on the host, some on the device, 2 ms each."""
    stages = [world.entity("read", host=2 * MS, operator="png_read")]
    for i in range(length - 2):
        on_device = device and i % 2 == 1
        options = {"host": 20 * US, "device": 2 * MS, "operator": "spin"} if on_device else {"host": 2 * MS, "gate": True}
        stages.append(world.entity(f"stage{i}", **options))
    stages.append(world.entity("write", host=2 * MS, gate=True, operator="png_write"))
    for before, after in itertools.pairwise(stages):
        world.connect(before, after, capacity=8 if before.device else 4)
    return stages


def balanced(seed):
    world = World(seed, frames=200)
    rng = world.random
    world.workers = rng.choice([8, 12])
    world.__init__(seed, world.workers, 200, rng.choice([0, 0, 0, 5 * MS]))
    chain(world, rng.randint(3, 7), rng.random() < 0.5)
    return world, None


def planted(seed, cause):
    """A chain with one bottleneck. Returns the world and (entities that may be named, cause)."""
    world = World(seed, 12, 200)
    rng = world.random
    stages = chain(world, rng.randint(4, 7), cause in ("device", "queue", "in_flight", "pool") or rng.random() < 0.5)
    at = rng.randrange(1, len(stages) - 1)
    if cause == "compute":
        stages[at].host, stages[at].device = int(rng.uniform(4, 16) * MS), 0
    elif cause == "device":
        stages[2].device = int(rng.uniform(4, 16) * MS)
        return world, ({stages[2].name}, cause)
    elif cause == "blocks":
        stages[at].host, stages[at].device, stages[at].blocked = int(rng.uniform(4, 16) * MS), 0, rng.uniform(0.8, 1)
    elif cause == "queue" and rng.random() < 0.5:  # a short way around long ones: the join takes from both
        world.connect(stages[0], stages[-1], capacity=1)
        return world, ({stages[-1].name}, cause)
    elif cause == "queue":  # behind device work, whose messages lie in it until they are finished
        world.queues[2].capacity = 1
        stages[2].host, stages[2].device = 2 * MS, int(rng.uniform(1, 2) * MS)
        return world, ({stages[3].name}, cause)
    elif cause == "workers":
        world.workers = max(1, len(stages) // 2)
        world.idle, world.busy, world.did = list(range(world.workers)), [0] * world.workers, [0] * world.workers
        return world, (set(), cause)
    elif cause == "in_flight":
        stages[2].device, stages[2].max_in_flight = 2 * MS, 1
        stages[2].host = 2 * MS
        return world, ({stages[2].name}, cause)
    elif cause == "pool":
        world.pools.append(Pool("frames", 1))
        stages[at].pool = world.pools[0]
        return world, ({stages[at].name}, cause)
    elif cause == "drops":
        world.queues[at].policy, world.queues[at].capacity = "pop", 1
        stages[at + 1].host, stages[at + 1].device = 8 * MS, 0
    return world, ({stages[at].name} if cause != "drops" else {stages[at + 1].name}, cause)


def wide(seed, entities):
    """A graph of any size: layers of random width, each entity with one to three senders."""
    world = World(seed, 16, max(10, min(200, 20_000 // entities)))
    rng = world.random
    layers, made = [], 0
    while made < entities:
        width = min(entities - made, rng.randint(1, max(1, int(entities**0.5))))
        layer = []
        for i in range(width):
            device = rng.random() < 0.4 and layers
            layer.append(world.entity(
                f"{rng.choice(['read', 'blur', 'edge', 'scale', 'mix', 'count'])}_{len(layers)}_{i}", host=int(rng.uniform(0.02, 2) * MS),
                device=int(rng.uniform(0.5, 4) * MS) if device else 0, gate=bool(layers) and not device, operator="spin" if device else "delay"))
        for entity in layer:
            for sender in rng.sample(layers[-1], min(len(layers[-1]), rng.choice([1, 1, 1, 2, 3]))) if layers else []:
                world.connect(sender, entity, rng.choice([1, 2, 4, 8]))
        layers.append(layer)
        made += width
    return world, None


CAUSES = ["compute", "device", "blocks", "queue", "workers", "in_flight", "pool", "drops"]


def make(kind, seed, entities=12):
    return balanced(seed) if kind == "balanced" else wide(seed, entities) if kind == "wide" else planted(seed, kind)


if __name__ == "__main__":
    world, _ = make(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[4:]))
    with open(sys.argv[3] + ".json", "w") as statistics, open(sys.argv[3] + ".trace.json", "w") as trace:
        json.dump(world.run(), statistics)
        json.dump(world.chrome(), trace)
