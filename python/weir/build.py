"""What a graph is made of: a description as in a graph file, and what no file can say: the operators and objects of Python.

A graph of a file or a text is that text until the program adds to it.
"""

import inspect
import json
import re
import weakref
from typing import Any

from weir import _weir
from weir.entity import as_json
from weir.errors import Diagnostic, Error, Status, make
from weir.functions import class_of_function
from weir.operators import ATTRIBUTES, Parameter, check_class, check_constructor, class_of, make_kind, registered, word_of

UNFINISHED = (27, 28, 29, 33, 54)  # of an entity alone: what depends on its connections, and on what they set of its ports
SETTINGS = ("effects", "max_in_flight", "replay", "main", "instances", "default_stream_pool", "use_default_stream")
OF_INPUTS = ("capacity", "take", "policy", "gate")
OBJECT = "its object is one of the program, and is not in this file"
CLASS = "its operator is one of the program: a run of this file needs it registered, by weir.operator"

added: dict[int, "weakref.ref[Description]"] = {}  # by id of the object: where it was added


class Description:
    """The description of one graph, and its operators in Python."""

    def __init__(self, text: str, is_path: bool, sets: list[Any], plugins: list[Any]):
        self.text, self.is_path, self.sets, self.plugins = text, is_path, sets, plugins
        self.kinds = dict(registered)  # by operator: (class or function, handle)
        self.instances: dict[str, Any] = {}  # by entity
        self.unsaid: dict[str, str] = {}  # by entity: what a file does not have
        self.tables: dict[str, Any] = {}  # of operators
        self._content: Any = None  # the text as a dict, once it is asked for; the next two are of it
        self._entities: dict[str, Any] | None = None
        self._connections: dict[tuple[str, str], None] | None = None
        self._used: set[str] | None = None  # operators
        self._numbers: tuple[dict[str, int], dict[str, int]] = {}, {}  # of names of entities, and of operators
        self.changed = False

    def source(self, check_writes: bool) -> tuple[Any, ...]:
        """What the module makes a graph of."""
        text, is_path = (json.dumps(self.content), False) if self.changed else (self.text, self.is_path)
        return text, is_path, self.sets, self.plugins, self.handles(), dict(self.instances), check_writes

    def handles(self) -> list[_weir.Kind]:
        return [handle for _, handle in self.kinds.values()]

    @property
    def content(self) -> Any:
        if self._content is None:
            if self.is_path and self.text == "-":
                raise make(Status.UNSUPPORTED, "a graph that was read from standard input is not known to Python: read it by sys.stdin.read()")
            if self.is_path:
                with open(self.text, "rb") as file:
                    self._content = json.load(file)
            else:
                self._content = json.loads(self.text)
        return self._content

    # ---- what is there

    def entities(self) -> dict[str, Any]:
        if self._entities is None:
            self._entities = {entity["name"]: entity for entity in self.content["entities"]}
        return self._entities

    def operator_of(self, entity: str) -> str:
        operator: str = self.entities()[entity]["operator"]
        return operator

    def is_of_python(self, entity: str) -> bool:
        return self.operator_of(entity) in self.kinds

    def table(self, operator: str) -> Any:
        """Ports and parameters of an operator."""
        if operator not in self.tables:
            self.tables[operator] = _weir.operator_table(operator, self.plugins, self.handles())
        return self.tables[operator] or {"inputs": [], "outputs": [], "parameters": {}, "describes": False}

    def describes_ports(self, entity: str) -> bool:
        """Whether its parameters may add ports: only what is made of the description knows these."""
        describes: bool = self.table(self.operator_of(entity))["describes"]
        return describes

    def ports_of(self, entity: str, direction: str) -> list[str]:
        """Those of its operator; where parameters add some, those of them that are connected, too."""
        ports: list[str] = self.table(self.operator_of(entity))[direction]
        if not self.describes_ports(entity):
            return ports
        ends = (one[direction == "inputs"].partition(".") for one in self.connections())
        return list(dict.fromkeys([*ports, *(port for name, _, port in ends if name == entity)]))

    def parameters_of(self, entity: str) -> dict[str, Any]:
        described = self.entities()[entity]
        defaults = self.table(described["operator"])["parameters"]
        values = {name: None if text is None else json.loads(text) for name, text in defaults.items()}
        values.update((name, value) for name, value in described.get("parameters", {}).items() if name != "comment" or name in values)
        for one in self.sets:
            place, _, text = str(one).partition("=")
            name, _, parameter = place.partition(".")
            if name == entity and parameter in values:
                values[parameter] = _value_of(text)
        return values

    def connections(self) -> dict[tuple[str, str], None]:
        """(from, to) of each, as "entity.port", in order."""
        if self._connections is None:
            self._connections = {}
            for one in self.content.get("connections", []):
                source, target = one if isinstance(one, list) else (one["from"], one["to"])
                self._connections.update({(source, to): None for to in (target if isinstance(target, list) else [target])})
        return self._connections

    def to_json(self) -> str:
        for entity, thing in self.instances.items():
            name = _exported(type(thing))
            if name:
                raise make(Status.UNSUPPORTED, f"'{entity}': a graph file cannot tell its object, and would run with a new {type(thing).__name__}() in its place: "
                           f"add the operator by its class and parameters, graph.add({type(thing).__name__}, ...), or an object of a class without @weir.operator",
                           entity)
        content = json.loads(json.dumps(self.content))
        for entity in content["entities"]:
            if entity["name"] in self.unsaid:
                entity["comment"] = self.unsaid[entity["name"]]
        return json.dumps(content, indent=2)

    # ---- what is added

    def add(self, thing: Any, name: str | None, settings: dict[str, Any]) -> str:
        """Adds an entity, checked, and gives its name. settings: keys of the entity in a file."""
        operator, handle, unsaid = self._operator_of(thing)
        name = self._name_for(operator, name)
        is_object = unsaid == OBJECT
        if is_object:
            settings["parameters"] = {**_own_values(thing, name), **settings["parameters"]}
        kept = {key: value for key, value in settings.items() if value not in (None, {}, [])}
        entity = as_json({"name": name, "operator": operator, **kept}, f"entity '{name}'")
        self._check([entity], [] if handle is None else [handle])
        self.content["entities"].append(entity)
        self.entities()[name] = entity
        self.used().add(operator)
        self.tables.pop(operator, None)
        if handle is not None:
            self.kinds[operator] = _class_or_function(thing), handle
        self.changed = True
        if unsaid:
            self.unsaid[name] = unsaid
        if is_object:
            self.instances[name] = thing
            _note(self, thing)
        return name

    def _operator_of(self, thing: Any) -> tuple[str, _weir.Kind | None, str | None]:
        """(name, handle, what a file does not have) of the operator; the handle of one in C is None."""
        if isinstance(thing, str):
            return thing, *self._registered(thing)
        if isinstance(thing, type) or _is_named(thing):
            found = _exported(thing)
            if found:
                return found, *self._registered(found)
            cls = class_of(thing)
            check_constructor(cls)
            return cls.__name__, self._own_kind(thing, cls.__name__, cls), CLASS
        if callable(getattr(thing, "compute", None)):
            return self._of_object(thing)
        if not callable(thing):
            raise TypeError(f"{thing!r} is no operator: add the name of one, an object with compute(self, ctx), a class of such, or a function")
        cls = class_of_function(thing, {})
        there = _weir.operator_table(cls.__name__, self.plugins, [])  # print is one in C, too
        name = _free(cls.__name__ + "_" * (there is not None), self.used(), self._numbers[1])
        return name, make_kind(cls, name), CLASS

    def _of_object(self, thing: Any) -> tuple[str, _weir.Kind, str]:
        cls = type(thing)
        _refuse_twice(self, thing)
        described = _described(thing)
        check_class(described)
        name = _exported(cls) or cls.__name__
        if described is cls:
            return name, self._own_kind(cls, name), OBJECT
        name = _free(name, self.used(), self._numbers[1])  # its ports are its own
        return name, make_kind(described, name), OBJECT

    def used(self) -> set[str]:
        """The names of the operators that entities have."""
        if self._used is None:
            self._used = {entity["operator"] for entity in self.content["entities"]}
        return self._used

    def _registered(self, name: str) -> tuple[_weir.Kind | None, str | None]:
        now = registered.get(name)
        if name in self.used() and name in self.kinds:
            if now and now[1] is not self.kinds[name][1] and now[0] is not self.kinds[name][0]:
                raise TypeError(f"operator '{name}' was registered anew since this graph took it: make the graph anew")
            return self.kinds[name][1], None
        return (now[1] if now else None), None

    def _own_kind(self, thing: Any, name: str, cls: Any = None) -> _weir.Kind:
        """The handle of a class or function of this graph. cls: the class that calls the function."""
        known = self.kinds.get(name) if name in self.used() else None
        if known and known[0] is not thing:
            raise TypeError(f"{word_of(thing)}: this graph has another operator '{name}', {word_of(known[0], f'{known[0].__module__}.{known[0].__qualname__}')}: "
                            "give one of them another name")
        return known[1] if known else make_kind(cls or thing, name)

    def _name_for(self, operator: str, name: str | None) -> str:
        there = self.entities()
        if name is None:
            base = re.sub(r"[^A-Za-z0-9_-]", "", operator).lower()[:56] or "entity"
            base = base if re.match("[a-z_]", base) else f"_{base}"
            return _free(base, there, self._numbers[0])
        if name in there:
            raise ValueError(f"there is an entity '{name}' already: give this one another name")
        return name

    def _check(self, entities: list[Any], handles: list[_weir.Kind], resources: Any = None) -> None:
        """Raises what is wrong with the entities, or resources, whatever they are connected with."""
        alone = {"weir": 1, "entities": entities, "resources": resources or self.content.get("resources", {})}
        try:
            rows = _weir.check_graph(json.dumps(alone), False, [], self.plugins, handles)
        except Error as error:
            rows = [(d.number, d.file, d.pointer, d.line, d.column, d.text, d.warning) for d in error.diagnostics]
            if not rows:
                raise
        wrong = [row for row in rows if not row[6] and row[0] not in UNFINISHED]
        if wrong:
            raise self.named(make(Status.INVALID, "", diagnostics=wrong), entities)

    def named(self, error: Error, entities: Any = None) -> Error:
        """The error of a graph that has no file: it names entities, not lines of a text that nobody has written."""
        if not error.diagnostics:
            return error
        names = [entity["name"] for entity in (self.content["entities"] if entities is None else entities)]

        def row(d: Diagnostic) -> tuple[Any, ...]:
            found = re.match(r"/entities/(\d+)", d.pointer or "")
            pointer = d.pointer and (f"/entities/{names[int(found[1])]}" + d.pointer[found.end():] if found else d.pointer)
            return d.number, None, pointer, 0, 0, d.text, d.warning

        return make(error.status, "", error.entity, [row(d) for d in error.diagnostics])

    def add_resource(self, name: str, settings: dict[str, Any]) -> None:
        there = self.content.setdefault("resources", {})
        if name in there:
            raise ValueError(f"there is a resource '{name}' already: give this one another name")
        made = as_json(settings, f"resource '{name}'")
        self._check([], [], {**there, name: made})
        there[name], self.changed = made, True

    # ---- what is connected

    def connect(self, source: str, target: str, initial_messages: int | None, ports: dict[str, Any]) -> None:
        """Connects "entity.port" with "entity.port". ports: settings of them."""
        if (source, target) in self.connections():
            raise ValueError(f"{source} is connected with {target} already")
        if source.partition(".")[0] == target.partition(".")[0]:
            raise ValueError(f"{source} -> {target}: an entity is not connected with itself: put a 'pass' between")
        changed = [self._with_settings(end, {key: value for key, value in ports.items() if (key in OF_INPUTS) == (end is target)})
                   for end in (source, target)]
        self._check(changed, [self.kinds[name][1] for name in {each["operator"] for each in changed} if name in self.kinds])
        link = {"from": source, "to": target, "initial_messages": initial_messages}
        made = as_json([source, target] if initial_messages is None else link, f"{source} -> {target}")
        for entity in changed:
            self.entities()[entity["name"]].update(entity)
        self.content.setdefault("connections", []).append(made)
        self.connections()[source, target] = None
        self.changed = True

    def _with_settings(self, end: str, settings: dict[str, Any]) -> dict[str, Any]:
        """A copy of the entity, with settings of that port."""
        name, _, port = end.partition(".")
        entity: dict[str, Any] = json.loads(json.dumps(self.entities()[name]))
        there = entity.get("ports", {}).get(port, {})
        for key, value in settings.items():
            if there.get(key, value) != value:
                raise ValueError(f"{key} of {end} is {there[key]} already: it is one for all connections of the port")
        if settings:
            entity.setdefault("ports", {})[port] = {**there, **as_json(settings, end)}
        return entity


def _free(name: str, taken: Any, numbers: dict[str, int]) -> str:
    """The name, with a number from the second on. numbers: those that are taken by now, by name."""
    while (one := f"{name}{numbers[name]}" if name in numbers else name) in taken:
        numbers[name] = numbers.get(name, 1) + 1
    return one


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_named(thing: Any) -> bool:
    """A function of a def: its name is that of its operator."""
    return inspect.isfunction(thing) and thing.__name__ != "<lambda>"


def _exported(thing: Any) -> str | None:
    """The name by which it is registered."""
    return next((name for name, (known, _) in registered.items() if known is thing), None)


def _class_or_function(thing: Any) -> Any:
    if isinstance(thing, str):
        return registered[thing][0] if thing in registered else None
    return type(thing) if callable(getattr(thing, "compute", None)) and not isinstance(thing, type) else thing


def _described(thing: Any) -> Any:
    """The class of an object, with the ports and parameters that the object has of its own."""
    cls: Any = type(thing)
    own = getattr(thing, "__dict__", {})
    set_itself = {name: own[name] for name in ATTRIBUTES if name in own}
    return type(cls)(cls.__name__, (cls,), set_itself) if set_itself else cls


def _own_values(thing: Any, entity: str) -> dict[str, Any]:
    """Parameters that the object's constructor has set."""
    own, listed = getattr(thing, "__dict__", {}), getattr(thing, "parameters", {})
    attributes = {name for base in type(thing).__mro__ for name, value in vars(base).items() if isinstance(value, Parameter)}
    return {name: as_json(own[name], f"entity '{entity}': parameter '{name}' of its object")
            for name in {*attributes, *listed} if name in own and not isinstance(own[name], Parameter)}


def _note(description: Description, thing: Any) -> None:
    added[id(thing)] = weakref.ref(description, lambda _, number=id(thing): added.pop(number, None))  # type: ignore[misc]


def _refuse_twice(description: Description, thing: Any) -> None:
    """One object is one entity."""
    place = added.get(id(thing))
    other = place() if place else None
    for name, one in (other.instances if other else {}).items():
        if one is thing:
            where = "of this graph" if other is description else "of another graph"
            raise ValueError(f"this object of {word_of(type(thing))} is the entity '{name}' {where} already: make another one")
