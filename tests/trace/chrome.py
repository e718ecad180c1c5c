"""Reading a timeline that weir wrote, as the documentation of Chrome's trace event format says it is read, and what must hold in any."""
import collections
import json
import re

GROUPS = {1: "workers", 2: "device", 3: "entities", 4: "queues", 5: "memory pools", 6: "ticks in flight"}
PHASES = set("MBEXiCsf")


class Timeline:
    """The rows of a file. `slices` is {(group, row): [(name, begin, end, args)]}; times are ns of the run."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.whole = json.load(file)
        self.about = self.whole["otherData"]
        self.events = self.whole["traceEvents"]
        self.groups, self.rows = {}, {}
        self.slices = collections.defaultdict(list)
        self.instants, self.counters = collections.Counter(), collections.defaultdict(list)
        self.begun, self.ended = collections.Counter(), collections.Counter()
        for event in self.events:
            assert event["ph"] in PHASES, event
            if event["ph"] == "M":
                self.name(event)
        self.check_rows()

    def name(self, event):
        if event["name"] == "process_name":
            self.groups[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            assert event["tid"] not in self.rows, f"two rows have the number of {event}"
            self.rows[event["tid"]] = (GROUPS[event["pid"]], event["args"]["name"])

    def check_rows(self):
        """Slices of a row nest, its times never decrease, arrows begin and end within slices, counters are at least 0."""
        assert self.groups == GROUPS, self.groups
        last, opened, arrows = {}, collections.defaultdict(list), {}
        for event in self.events:
            if event["ph"] == "M":
                continue
            assert re.fullmatch(r"\d+\.\d{3}", f"{event['ts']:.3f}"), event
            at = round(event["ts"] * 1000)
            if event["ph"] == "C":
                self.count(event, at)
                continue
            row = event["tid"]
            assert at >= last.get(row, 0), f"{event} lies before {last[row]}"
            last[row] = at
            {"B": self.begin, "E": self.end, "X": self.span, "i": self.instant}.get(event["ph"], lambda *rest: None)(
                event, at, opened[row])
            if event["ph"] in "sf":
                assert opened[row], f"{event} lies in no slice"
                self.arrow(event, at, arrows)
        for row, left in opened.items():
            assert not left, f"{self.rows[row]}: {left} has no end"

    def begin(self, event, at, opened):
        opened.append((event["name"], at, event.get("args", {})))

    def end(self, event, at, opened):
        assert opened, f"{event} ends nothing"
        name, begin, args = opened.pop()
        self.slices[self.rows[event["tid"]]].append((name, begin, at, args))

    def span(self, event, at, opened):
        row = self.slices[self.rows[event["tid"]]]
        assert not row or row[-1][2] <= at, f"{event} overlaps {row[-1]}"
        row.append((event["name"], at, at + round(event["dur"] * 1000), event["args"]))

    def instant(self, event, at, opened):
        self.instants[self.rows[event["tid"]][1], event["name"], event.get("args", {}).get("queue")] += 1

    def count(self, event, at):
        (value,) = event["args"].values()
        assert value >= 0, event
        values = self.counters[GROUPS[event["pid"]], event["name"]]
        assert not values or values[-1][0] <= at, f"{event} lies before {values[-1]}"
        values.append((at, value))

    def arrow(self, event, at, arrows):
        if event["ph"] == "s":
            assert event["id"] not in arrows, f"{event} begins twice"
            arrows[event["id"]] = (event["name"], at)
            self.begun[event["name"]] += 1
        else:
            name, begin = arrows.pop(event["id"], (None, 0))
            assert name == event["name"], f"{event} has no begin"
            assert begin <= at, f"{event} ends before it begins"
            self.ended[name] += 1

    def ticks(self):
        """{entity: number of its ticks}, and of those that were marked READY before."""
        ticks, ready = collections.Counter(), collections.Counter()
        for (group, row), slices in self.slices.items():
            for name, _, _, args in slices if group == "workers" else []:
                if "tick" in args:
                    ticks[name] += 1
                    ready[name] += "ready" in args
        return ticks, ready

    def dropped(self):
        """{queue: messages that its policy dropped}"""
        found = collections.Counter()
        for (_, name, queue), count in self.instants.items():
            if name == "drop":
                found[queue] += count
        return found


def check_conserved(timeline, counts):
    """counts: {"entities": [{name, ticks}], "queues": [{name, pushed, delivered, dropped, queued, closed, abandoned}]}"""
    ticks, ready = timeline.ticks()
    dropped = timeline.dropped()
    assert not timeline.about["dropped_records"]
    for entity in counts["entities"]:
        seen = ticks[entity["name"]], ready[entity["name"]]
        assert seen == (entity["ticks"], entity["ticks"]), f"{entity}: ticks and ready in the file: {seen}"
    for queue in counts["queues"]:
        seen = timeline.begun[queue["name"]], timeline.ended[queue["name"]], dropped[queue["name"]]
        wanted = queue["pushed"], queue["delivered"], queue["dropped"]
        assert seen == wanted, f"{queue}: pushed, delivered, dropped in the file: {seen}"
