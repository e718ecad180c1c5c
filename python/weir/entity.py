"""Entities of a graph and their ports, as a program sees them."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weir.errors import Status, make

if TYPE_CHECKING:
    from weir.graph import Graph


class End:
    """A port of an entity, `blur.out` or `blur["in"]`: where a connection begins or ends.

    `camera.out >> blur["in"]` connects them and gives the entity that receives. str(end) is its name, "blur.in".
    """

    def __init__(self, entity: "Entity", port: str):
        self.entity, self.port = entity, port

    def __rshift__(self, receiver: "Entity | End") -> "Entity":
        """Connects it with a port of the receiver, and gives the receiver."""
        return self.entity.graph._connect(self, receiver)

    def __str__(self) -> str:
        return f"{self.entity.name}.{self.port}"

    def __repr__(self) -> str:
        return f"<weir.End {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, End) and (self.entity, self.port) == (other.entity, other.port)

    def __hash__(self) -> int:
        return hash((self.entity, self.port))


class Entity:
    """An entity of a graph: what graph.add and graph["blur"] give.

    Its ports are `entity["in"]`, and `entity.out` where the name is no word of Python and none of these attributes.
    `entity >> other` connects the only output of one with the only input of the other, and gives `other`.
    """

    def __init__(self, graph: "Graph", name: str):
        self._graph, self._name = graph, name

    @property
    def graph(self) -> "Graph":
        """The graph that it is of."""
        return self._graph

    @property
    def name(self) -> str:
        """Its name in the graph."""
        return self._name

    @property
    def operator(self) -> str:
        """The name of its operator."""
        return self._graph._description.operator_of(self._name)

    @property
    def inputs(self) -> list[End]:
        """Its input ports; of those that come of its parameters (onnx) the ones that are connected."""
        return [End(self, port) for port in self._graph._description.ports_of(self._name, "inputs")]

    @property
    def outputs(self) -> list[End]:
        """Its output ports, likewise."""
        return [End(self, port) for port in self._graph._description.ports_of(self._name, "outputs")]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of its operator as the graph sets them, or as they are by default; None: required and not set."""
        return self._graph._description.parameters_of(self._name)

    @property
    def counts(self) -> dict[str, Any]:
        """Its counters in the current or last run: "ticks", "received", "emitted" ..."""
        counts: dict[str, Any] = self._graph.counts()["entities"][self._name]
        return counts

    @property
    def instance(self) -> Any:
        """The object of Python whose compute is called: the one that was added, else that of the current or last run."""
        added = self._graph._description.instances
        if self._name in added:
            return added[self._name]
        instances = self._graph._core.instances
        if self._name in instances:
            return instances[self._name]
        why = "has not run yet" if self._graph._description.is_of_python(self._name) else "is of an operator in C"
        raise make(Status.STATE, f"'{self._name}' {why}: it has no object of Python", self._name)

    def __getitem__(self, port: str) -> End:
        """The port of that name."""
        if port not in self and not self._graph._description.describes_ports(self._name):
            raise KeyError(f"entity '{self._name}' has no port {port!r}; its ports are: {', '.join(self) or 'none'}")
        return End(self, port)

    def __getattr__(self, port: str) -> End:
        if port.startswith("_"):
            raise AttributeError(port)
        if port in self or self._graph._description.describes_ports(self._name):
            return End(self, port)
        raise AttributeError(f"entity '{self._name}' has no port '{port}'; its ports are: {', '.join(self) or 'none'}. "
                             f"Attributes of its object of Python are those of graph[{self._name!r}].instance")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __iter__(self) -> Iterator[str]:
        """The names of its ports: inputs, then outputs."""
        return iter(dict.fromkeys(end.port for end in (*self.inputs, *self.outputs)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, port: object) -> bool:
        return port in list(iter(self))

    def __rshift__(self, receiver: "Entity | End") -> "Entity":
        """Connects its output with the receiver's input, and gives the receiver."""
        return self._graph._connect(self, receiver)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entity) and (self._graph, self._name) == (other._graph, other._name)

    def __hash__(self) -> int:
        return hash((self._graph, self._name))

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(end.port for end in ends) for ends in (self.inputs, self.outputs))
        return f"<weir.Entity {self._name!r}: {self.operator}({inputs}){' -> ' * bool(outputs)}{outputs}>"


def plain(value: Any) -> Any:
    """What JSON has, of values that are nearly that: numbers of NumPy, paths. For json.dumps."""
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if hasattr(value, "tolist"):  # NumPy, torch
        return value.tolist()
    if hasattr(value, "__index__"):
        return int(value)
    raise TypeError(f"{value!r} is nothing that a graph file can say")


def as_json(value: Any, place: str) -> Any:
    """A copy of the value as JSON has it."""
    try:
        return json.loads(json.dumps(value, default=plain))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{place}: {error}: give objects of Python to the constructor of a class") from None
