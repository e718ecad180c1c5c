"""What limits a run: the findings of `weir report`, as objects and as a page."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from weir import _weir
from weir.draw import svg_of
from weir.errors import Status, make
from weir.graph import Graph
from weir.options import Path, text_of


@dataclass(frozen=True)
class Finding:
    """One of the things that limit a run; docs/report.md explains the causes.

    percent of the run (of drops: of the messages), or None; set: the key of the graph that would help, and to which value.
    """

    entity: str | None
    cause: str
    of: str | None
    percent: int | None
    set: str | None
    to: int | None
    title: str
    text: str


class Report:
    """What limits a run: its findings, the first limits it most. str() is their sentences; a notebook shows them beside the graph."""

    def __init__(self, statistics: dict[str, Any], connections: list[tuple[str, str]]):
        found, self._page = _weir.report_of(json.dumps(statistics))
        said = json.loads(found)
        self._statistics, self._connections = statistics, connections
        self._findings = [Finding(**one) for one in said["findings"]]
        self._title: str = "" if self._findings else said["title"]
        self._none: str = "" if self._findings else said["text"]

    @property
    def findings(self) -> list[Finding]:
        """The findings. None: nothing stands out, and str() says what that means."""
        return list(self._findings)

    @property
    def statistics(self) -> dict[str, Any]:
        """The statistics that it is made of, as graph.statistics() gives them."""
        return self._statistics

    def write(self, path: Path) -> None:
        """Writes the page of `weir report`: one file, for a browser."""
        with open(text_of("path", path), "w", encoding="utf-8") as file:
            file.write(self._page)

    def __iter__(self) -> Iterator[Finding]:
        """The findings."""
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, i: int) -> Finding:
        """One of them; [0] limits the run most."""
        return self._findings[i]

    def __str__(self) -> str:
        return "\n".join(f"{i}. {one.title}: {one.text}" for i, one in enumerate(self._findings, 1)) or self._none

    def __repr__(self) -> str:
        first = self._findings[0] if self._findings else None
        about = f"{first.title} of {first.entity!r}" if first and first.entity else first.title if first else self._title
        return f"<weir.Report of {self._statistics['graph']!r}: {about}>"

    def _repr_svg_(self) -> str:
        duration = self._statistics["duration"] or 1
        lines, shares, numbers = {}, {}, {}
        for entity in self._statistics["entities"]:
            lines[entity["name"]] = f"{entity['operator']}, {entity['ticks']} ticks"
            shares[entity["name"]] = min(1.0, entity["submit"]["sum"] / duration)
        for i, one in reversed(list(enumerate(self._findings))):
            if one.entity:
                numbers[one.entity] = i
        return svg_of(lines, self._connections, shares, numbers)

    def _repr_html_(self) -> str:
        rows = "".join(f"<li><b>{escape(one.title)}</b>: {escape(one.text)}</li>" for one in self._findings)
        return f"{self._repr_svg_()}<ol>{rows}</ol>" if rows else f"{self._repr_svg_()}<p>{escape(self._none)}</p>"


def report(graph: Graph) -> Report:
    """What limits the current or last run of the graph, of run(statistics=True)."""
    if not (graph._made or {}).get("statistics"):
        raise make(Status.STATE, "there are no statistics to report of: graph.run(statistics=True)")
    statistics = graph.statistics()
    made = Report(statistics, list(graph._description.connections()))
    if not made.findings and not any(entity["ticks"] for entity in statistics["entities"]):
        raise make(Status.STATE, "the run had no tick, so there is nothing to report; graph.explain_line() says why nothing runs")
    return made
