"""A graph as SVG: entities in columns from the sources on, connections between them."""

from collections.abc import Iterable, Mapping
from html import escape

WIDTH, HEIGHT, GAP, ROW = 132, 40, 56, 60  # of a box; between columns; from row to row
MOST = 400  # entities: more are no picture


def _columns(names: list[str], edges: list[tuple[str, str]]) -> dict[str, int]:
    """The column of each entity: behind all that send to it, but for connections that close a cycle."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        after[source].append(target)
    column = dict.fromkeys(names, 0)
    order, state = [], dict.fromkeys(names, 0)  # 1: on the way, 2: done
    for root in names:
        stack = [] if state[root] else [(root, iter(after[root]))]
        state[root] = state[root] or 1
        while stack:
            name, left = stack[-1]
            follower = next((one for one in left if state[one] == 0), None)
            if follower:
                state[follower] = 1
                stack.append((follower, iter(after[follower])))
            else:
                state[name] = 2
                order.append(name)
                stack.pop()
    place = {name: i for i, name in enumerate(reversed(order))}
    for name in sorted(names, key=place.__getitem__):
        for follower in after[name]:
            if place[follower] > place[name]:
                column[follower] = max(column[follower], column[name] + 1)
    return column


def _places(names: list[str], edges: list[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """x and y of each box: in a column near those that send to it."""
    column = _columns(names, edges)
    rank: dict[str, float] = {}
    places = {}
    for number in range(max(column.values(), default=0) + 1):
        there = [name for name in names if column[name] == number]
        before = {name: [rank[s] for s, t in edges if t == name and s in rank] for name in there}
        there.sort(key=lambda name: sum(before[name]) / len(before[name]) if before[name] else 0)
        for row, name in enumerate(there):
            rank[name] = row
            places[name] = 8 + number * (WIDTH + GAP), 8 + row * ROW
    return places


def _box(name: str, place: tuple[int, int], text: str, share: float, number: int | None) -> str:
    x, y = place
    shown = name if len(name) < 19 else f"{name[:17]}…"
    made = [f'<g transform="translate({x},{y})"><title>{escape(name)}: {escape(text)}</title>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="7" fill="#fff" stroke="{"#c33" if number is not None else "#567"}"/>',
            f'<rect x="6" y="{HEIGHT - 6}" width="{round(share * (WIDTH - 12), 1)}" height="3" fill="#4a7"/>' if share else "",
            f'<text x="8" y="17" font-weight="bold">{escape(shown)}</text><text x="8" y="31" font-size="10">{escape(text[:24])}</text>']
    if number is not None:
        made.append(f'<circle cx="{WIDTH - 2}" cy="2" r="8" fill="#c33"/><text x="{WIDTH - 2}" y="6" fill="#fff" text-anchor="middle">{number + 1}</text>')
    return "".join([*made, "</g>"])


def _line(begin: tuple[int, int], end: tuple[int, int], text: str) -> str:
    x1, y1, x2, y2 = begin[0] + WIDTH, begin[1] + HEIGHT / 2, end[0], end[1] + HEIGHT / 2
    bend = GAP / 2 if x2 > x1 else GAP
    drop = 0 if x2 > x1 else ROW * 0.6  # back, below the boxes
    return (f'<path d="M{x1} {y1}C{x1 + bend} {y1 + drop} {x2 - bend} {y2 + drop} {x2} {y2}" fill="none" stroke="#567" '
            f'marker-end="url(#weir-end)"><title>{escape(text)}</title></path>')


def svg_of(entities: Mapping[str, str], connections: Iterable[tuple[str, str]], shares: Mapping[str, float] = {},
           numbers: Mapping[str, int] = {}) -> str:
    """entities: a line about each; connections: "entity.port" pairs; shares: how busy it was; numbers: of the findings about it."""
    if len(entities) > MOST:
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="24"><text y="16">a graph of {len(entities)} entities</text></svg>'
    pairs = list(connections)
    places = _places(list(entities), [(a.partition(".")[0], b.partition(".")[0]) for a, b in pairs])
    width = max((x for x, _ in places.values()), default=0) + WIDTH + 20
    height = max((y for _, y in places.values()), default=0) + HEIGHT + 24
    lines = [_line(places[a.partition(".")[0]], places[b.partition(".")[0]], f"{a} → {b}") for a, b in pairs]
    boxes = [_box(name, place, entities[name], shares.get(name, 0), numbers.get(name)) for name, place in places.items()]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="12" fill="#123"><defs><marker id="weir-end" markerWidth="8" markerHeight="8" refX="7" refY="4" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="#567"/></marker></defs>{"".join(lines)}{"".join(boxes)}</svg>')
