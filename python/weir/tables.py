"""What `weir run` prints at the end of a run: its summary, and the tables of --stats. The same lines as those of the
command without --python (cli/summary.c, cli/statistics.c), which a test compares.
"""

from weir import _weir

LISTED, PATHS_LISTED = 64, 32
NAME_WIDTH = 24  # of --stats: longer names move the columns of their line
LOST = [("dropped", "dropped"), ("closed", "closed"), ("queued", "left over"), ("abandoned", "abandoned")]
OF_POOL = [("refused", "waits for memory"), ("busy", "refused as busy"), ("used", "still in use")]


def duration_text(ns):
    """Three digits and a unit: "1.23 s"; never an exponent."""
    for unit, name in ((1e9, "s"), (1e6, "ms")):
        if ns >= 0.9995 * unit:
            return f"{ns / unit:.0f} {name}" if ns >= 0.9995e12 else f"{ns / unit:.3g} {name}"
    return f"{ns / 1e3:.3g} us"


def rate_text(rate):
    if rate >= 999.5:
        return f"{rate:,.0f}"
    return f"{rate:.6f}" if rate < 0.001 else f"{rate:.4g}"


def _listing(before, counts, names):
    """", 3 dropped, 1 closed" of the counts that are not 0."""
    found = [f"{counts[key]} {what}" for key, what in names if counts[key]]
    return before + ", ".join(found) if found else ""


# ---- the summary


def _headline(path, graph, outcome, entities, ending):
    sinks = [c["ticks"] for c in entities.values() if c["received"] and not c["emitted"] and not c["unconnected"]]
    rate = f", {rate_text(min(sinks) / outcome.duration)} frames/s" if sinks and outcome.duration > 0 else ""
    took = duration_text(round(outcome.duration * 1e9))
    yield f"{_weir.escape(path)}: {ending} after {took} on {graph.where}{rate}"


def _entity(name, width, device, c):
    line = f"  {name:{width}}  {c['ticks']:>10}  {c['received']:>10}  {c['emitted']:>10}"
    yield f"{line}  {duration_text(c['compute_ns']):>12}" + (f"  {c['most_in_flight']:>14}" if device else "")
    replay = c["replay"]
    more = [
        (c["unconnected"], "emitted on an output that is not connected"),
        (c["lost"], "beats lost"),
        (c["most_scratch"], "bytes of scratch memory at most"),
    ]
    for count, what in more:
        if count:
            yield f"  {'':{width}}  {count:>10} {what}"
    if any(replay.values()):
        yield (f"  {'':{width}}  {replay['hits']:>10} replayed, {replay['captures']} captured, "
               f"{replay['evictions']} evicted, {replay['failures']} failed")


def _entities(entities):
    listed = list(entities.items())[:LISTED]
    width = max([len("entity"), *(len(name) for name, _ in listed)])
    device = any(c["most_in_flight"] for c in entities.values())
    head = f"  {'entity':{width}}  {'ticks':>10}  {'received':>10}  {'emitted':>10}  {'in compute':>12}"
    yield head + ("  most in flight" if device else "")
    for name, counts in listed:
        yield from _entity(name, width, device, counts)
    if len(entities) > LISTED:
        yield f"  and {len(entities) - LISTED} more"


def _latencies(entities):
    for name, c in list(entities.items())[:LISTED]:
        if c["stamped"]:
            mean, most = duration_text(c["latency_ns"] // c["stamped"]), duration_text(c["max_latency_ns"])
            yield f"  latency: mean {mean}, max {most} at '{name}'"


def _pools(pools):
    for name, c in pools.items():
        unit = "blocks" if c["block_size"] else "bytes"
        most = f"at most {c['most_used']} of {c['capacity']} {unit} in use, {c['allocations']} allocations"
        yield f"  memory pool {name}: {most}{_listing(', ', c, OF_POOL)}"


def _directories(graph, entities):
    """An operator with a parameter `directory` writes its files there."""
    for name, c in list(entities.items())[:LISTED]:
        directory = graph._core.entity_values(name)[1].get("directory") if c["ticks"] else None
        if isinstance(directory, str):
            yield f"  {name} wrote to {_weir.escape(directory)}"


def summary(path, graph, outcome, ending):
    """Its lines."""
    counts = graph.counts()
    yield from _headline(path, graph, outcome, counts["entities"], ending)
    yield from _entities(counts["entities"])
    for queue in counts["queues"]:
        lost = _listing(": ", queue, LOST)
        if lost:
            yield f"  {queue['from']} -> {queue['to']}{lost}"
    yield from _latencies(counts["entities"])
    yield from _pools(counts["pools"])
    if outcome.discarded:
        yield f"  {outcome.discarded} left over by the run before were discarded"
    if outcome.waiting:
        yield f"  waiting for something from outside: {outcome.waiting}"
    yield from _directories(graph, counts["entities"])


# ---- statistics


def _time(durations, key):
    """ "-" where nothing was measured."""
    return f"  {duration_text(durations[key]) if durations['count'] else '-':>8}"


def _times(durations, *keys):
    return "".join(_time(durations, key) for key in keys or ("p50", "p99", "max"))


def _time_rows(times):
    width = max([len("entity"), *(min(len(name), NAME_WIDTH) for name in list(times)[:LISTED])])
    gpu = any(t["gpu_span"]["count"] for t in times.values())
    yield ""
    worker = "waited for worker   on the GPU" if gpu else "waited for worker"
    yield f"  {'':{width}}  {'in compute':28}  {'waited':18}  {worker}"
    names = ["p50", "p99", "max", "p50", "p99", "p50", "p99"] + ["p50", "p99", "max"] * gpu
    yield f"  {'entity':{width}}" + "".join(f"  {name:>8}" for name in names)
    for name, t in list(times.items())[:LISTED]:
        row = _times(t["submit"]) + _times(t["waited"], "p50", "p99") + _times(t["ready_to_compute"], "p50", "p99")
        source = "  by flag" if gpu and t["done_source"] == "flag" else ""
        yield f"  {name:{width}}{row}" + (_times(t["gpu_span"]) if gpu else "") + source
    if len(times) > LISTED:
        yield f"  and {len(times) - LISTED} more"


def _way(path):
    """ "read > blur > 3 more > write": the first two and the last, if there are many."""
    names = path["entities"]
    if len(names) > 6:
        names = [*names[:2], f"{len(names) - 4} more", *names[-2:]]
    return " > ".join(names) + (" (all other paths to it)" if path["other"] else "")


def _path(path):
    latency, count = path["latency"], path["count"]
    mean = {"count": latency["count"], "mean": latency["sum"] // max(latency["count"], 1)}
    yield f"  {count:>9}{_time(latency, 'min')}{_time(mean, 'mean')}{_times(latency)}  {_way(path)}"
    if 0 < latency["count"] < count:
        yield f"  {'':9}  of {latency['count']} of them, whose GPU time was measured"


def statistics(graph):
    """The lines of --stats. Paths that no message went are left out."""
    yield from _time_rows(graph._core.entity_times())
    paths = [path for path in graph._core.path_latencies() if path["count"]]
    if paths:
        yield ""
        yield "  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  path".format("messages", "min", "mean", "p50", "p99", "max")
    for path in paths[:PATHS_LISTED]:
        yield from _path(path)
    if len(paths) > PATHS_LISTED:
        yield f"  and {len(paths) - PATHS_LISTED} more paths"


def writes_to_stdout(graph, entities):
    """A frames_write does: then the summary goes to stderr, since it must not follow the frames."""
    for name in entities:
        kind, values = graph._core.entity_values(name)
        if kind == "frames_write" and (values["descriptor"] == 1 or values["descriptor"] < 0 and values["path"] == "-"):
            return True
    return False
