"""Draws what Nsight Systems recorded as an SVG: a row per worker (ticks, sleeps), signals, a row per stream of the GPU.

usage: nsight_picture.py EXPORT.sqlite -o PICTURE.svg [--from MS] [--length MS] [--title TEXT]

The time 0 is the begin of the run. The colours suit light and dark surroundings.
"""
import argparse
import pathlib
from collections import defaultdict
from html import escape

from nsight_export import Export

LEFT, WIDTH, ROW, GAP = 110, 686, 24, 8
COLOURS = ["#2f6fd0", "#b8591b", "#1f8a4c", "#7a56c2", "#a8325e", "#0f7c8a", "#8a6d0f", "#5b6470"]
STYLE = """text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px } .label { fill: #59636e } .in { text-anchor: middle; fill: #fff; font-size: 11px }
.card { fill: #fff; stroke: #d1d9e0 } .sleep { fill: #eef1f4; stroke: #b4bcc5; stroke-width: 0.5 } .axis { stroke: #d1d9e0 }
.time { text-anchor: middle; fill: #59636e } .asleep { text-anchor: middle; fill: #59636e; font-size: 11px }
@media (prefers-color-scheme: dark) {
	text { fill: #e6edf3 } .label, .time, .asleep { fill: #9198a1 } .in { fill: #fff }
	.card { fill: #0d1117; stroke: #3d444d } .sleep { fill: #21262d; stroke: #484f58 } .axis { stroke: #30363d }
}"""


class Drawing:
    """Times in ns; x is cut at both ends of the picture."""

    def __init__(self, begin, length, names):
        self.begin, self.length, self.lines = begin, length, []
        self.colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}

    def x(self, time):
        return LEFT + WIDTH * min(max((time - self.begin) / self.length, 0), 1)

    def box(self, y, begin, end, name, what, height=ROW):
        left, right = self.x(begin), self.x(end)
        if end <= self.begin or begin >= self.begin + self.length:
            return
        width = max(right - left, 0.8)
        look = 'class="sleep"' if what == "sleep" else f'fill="{self.colours[name]}"'
        self.lines.append(f'<rect {look} x="{left:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="{min(3, width / 3):.1f}"/>')
        if width > 7 * len(name) + 6:
            text = "asleep" if what == "sleep" else "in"
            self.lines.append(f'<text class="{text}" x="{left + width / 2:.1f}" y="{y + height / 2 + 4}">{escape(name)}</text>')

    def text(self, kind, x, y, text):
        self.lines.append(f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>')


def axis(drawing, top, bottom):
    """A line at each round number of ms, 5 to 10 of them."""
    ms = drawing.length / 1e6
    step = next(size * 10**power for power in range(-3, 5) for size in (1, 2, 5) if ms / (size * 10**power) <= 10)
    for i in range(int(ms / step) + 1):
        x = LEFT + WIDTH * i * step / ms
        drawing.lines.insert(0, f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        drawing.text("time", round(x, 1), bottom + 15, f"{drawing.start_ms + i * step:g}{' ms' if i == 0 else ''}")


def rows_of(export):
    """(label, [(begin, end, entity, what)]) in the order of the tool: threads, process ranges, streams."""
    rows = defaultdict(list)
    for event in export.ranges:
        if event.category in ("tick", "sleep"):
            rows[export.threads.get(event.thread, "?")].append((event.begin, event.end, event.name, event.category))
    found = sorted(rows.items())
    signals = defaultdict(list)
    for event in export.of("signal", export.process_ranges):
        signals[event.name].append((event.begin, event.end, event.name.removesuffix(" signal"), "signal"))
    streams = defaultdict(list)
    for entity, work in export.gpu_work_of_ticks():
        streams[f"GPU stream {work.stream}"].append((work.begin, work.end, entity, "gpu"))
    return found + sorted(signals.items()) + sorted(streams.items())


def draw(export, title, start, length):
    (run,) = export.of("run", export.process_ranges)
    rows = rows_of(export)
    names = list(dict.fromkeys(event.name for event in sorted(export.of("tick"), key=lambda event: event.payload)))
    drawing = Drawing(run.begin + int(start * 1e6), min(int(length * 1e6), run.end - run.begin - int(start * 1e6)), names)
    drawing.start_ms = start
    y = 44
    for label, events in rows:
        drawing.text("label", 16, y + 16, label)
        for begin, end, name, what in sorted(events):
            if name in drawing.colours or what == "sleep":
                drawing.box(y, begin, end, name, what)
        y += ROW + GAP
    axis(drawing, 40, y)
    x = LEFT
    for name, colour in drawing.colours.items():
        drawing.lines.append(f'<rect fill="{colour}" x="{x}" y="{y + 28}" width="10" height="10" rx="2"/>')
        drawing.text("label", x + 14, y + 37, name)
        x += 30 + 7 * len(name)
    height = y + 52
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {height}" width="820" height="{height}" role="img"'
        f' aria-label="{escape(title)}">\n<style>\n{STYLE}\n</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="819" height="{height - 1}" rx="8"/>\n'
        f'<text class="title" x="16" y="26">{escape(title)}</text>\n'
    )
    return head + "\n".join(drawing.lines) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--from", dest="start", type=float, default=0)
    parser.add_argument("--length", type=float, default=50)
    parser.add_argument("--title", default="")
    given = parser.parse_args()
    given.output.write_text(draw(Export(given.export), given.title, given.start, given.length))


if __name__ == "__main__":
    main()
