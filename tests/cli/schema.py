"""docs/graph.schema.json and `weir check` know the same keys, and both accept the examples.

The command lists an object's keys when it meets an unknown one. Arguments: the command.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "graph.schema.json").read_text())
UNKNOWN = "qqqqqqqqqqqq"
GRAPH = {
    "weir": 1,
    "scheduler": {},
    "resources": {
        "a": {"type": "stream_pool"},
        "b": {"type": "green_context_pool", "sms_per_partition": [8]},
        "c": {"type": "green_context", "pool": "b"},
    },
    "entities": [{"name": "e", "operator": "delay", "ports": {"in": {}, "out": {}}, "replay": {}}],
    "connections": [{"from": "e.out", "to": "e.in"}],
    "inlets": [{"port": "e.in"}],
    "outlets": [{"port": "e.out"}],
}
OBJECTS = {  # objects of the schema, and their place in the graph
    None: [],
    "scheduler": ["scheduler"],
    "stream_pool": ["resources", "a"],
    "green_context_pool": ["resources", "b"],
    "green_context": ["resources", "c"],
    "entity": ["entities", 0],
    "replay": ["entities", 0, "replay"],
    "input": ["entities", 0, "ports", "in"],
    "output": ["entities", 0, "ports", "out"],
    "link": ["connections", 0],
    "inlet": ["inlets", 0],
    "outlet": ["outlets", 0],
}


def check(weir, graph, folder):
    path = pathlib.Path(folder) / "graph.json"
    path.write_text(json.dumps(graph))
    return subprocess.run([weir, "check", path], capture_output=True, text=True, check=False).stderr


def keys_of_command(weir, place, folder):
    graph = copy.deepcopy(GRAPH)
    target = graph
    for step in place:
        target = target[step]
    target[UNKNOWN] = 1
    return set(re.search(rf"'{UNKNOWN}' \(keys: ([^)]*)\)", check(weir, graph, folder)).group(1).split(", "))


def resolved(schema):
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def is_type(value, name):
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    return isinstance(value, types[name]) and not (name == "integer" and isinstance(value, bool))


def fits(value, schema):
    """The part of JSON Schema that this one uses."""
    schema = resolved(schema)
    types = schema.get("type", [])
    if types and not any(is_type(value, name) for name in ([types] if isinstance(types, str) else types)):
        return False
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return False
    if "anyOf" in schema and not any(fits(value, one) for one in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(value, one) for one in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, int) and not isinstance(value, bool):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    if isinstance(value, list):
        bounds = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return bounds and all(fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict):
        rest = schema.get("additionalProperties", {})
        known = schema.get("properties", {})
        return all(key in value for key in schema.get("required", [])) and all(
            fits(item, known[key]) if key in known else rest is not False and fits(item, rest)
            for key, item in value.items()
        )
    return True


def xb12_the_schema_has_the_keys_that_the_command_has(weir, folder):
    for name, place in OBJECTS.items():
        schema = SCHEMA if name is None else SCHEMA["$defs"][name]
        keys = set(schema["properties"])
        told = keys_of_command(weir, place, folder)
        assert keys == told, f"{name or 'the graph'}: only in the schema {keys - told}, only in the command {told - keys}"


def xb12_right_graphs_fit_the_schema(_weir, _folder):
    graphs = [*ROOT.glob("examples/**/*.json"), *(ROOT / "tests" / "cli" / "graphs").glob("*.json")]
    graphs = [path for path in graphs if path.stem not in ("wrong", "syntax", "resources_wrong") and path.parent.name != "grafana"]
    assert len(graphs) > 10
    for path in graphs:
        assert fits(json.loads(path.read_text()), SCHEMA), path


def xb12_wrong_graphs_do_not(_weir, _folder):
    def wrong(**change):
        return not fits({**GRAPH, **change}, SCHEMA)

    assert fits(GRAPH, SCHEMA)
    assert wrong(weir=2) and wrong(nonsense=1) and wrong(comment=1) and wrong(inlets=["e"])
    assert wrong(scheduler={"drain": 30}) and wrong(scheduler={"drain": "30"}) and wrong(entities=[{"name": "e"}])
    assert wrong(connections=[["a.b"]]) and wrong(resources={"a": {"type": "pool"}})


def main(weir):
    tests = [value for name, value in globals().items() if name.startswith("xb12_")]
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            test(weir, folder)
    print(f"{len(tests)} tests, {len(OBJECTS)} objects")


main(*sys.argv[1:])
