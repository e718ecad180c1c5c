"""Text from a file, a plugin or the command line never reaches the terminal raw: no C0 except newlines, no
DEL, no C1, no direction marks, and only UTF-8.

shown.py WEIR PLUGIN FOLDER: FOLDER is scratch.
"""
import copy
import json
import os
import pathlib
import subprocess
import sys

import process

PLUGIN, FOLDER = sys.argv[2], pathlib.Path(sys.argv[3])
del sys.argv[2:4]
STRANGE = "x\x1b[31m\x07\x7f\x9bm\u202ey\u2066\u200b\ufeff\u200f\nz"
HARMFUL = {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200B, 0xFEFF, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)} - {0x0A}
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
COMMANDS = [["check"], ["show"], ["show", "--json"], ["show", "--dot"], ["run", "--backend", "sim"]]


def said(weir, *arguments):
    """stdout and stderr as bytes; asserts that it did not crash."""
    environment = process.environment()
    ended = subprocess.run([weir, *arguments], capture_output=True, timeout=process.LIMIT, env=environment, cwd=FOLDER)
    assert ended.returncode >= 0, (arguments, ended)
    return ended.stdout + ended.stderr


def expect_harmless(weir, *arguments):
    text = said(weir, *arguments).decode("utf-8")  # strict: raises on a raw byte
    found = sorted({hex(ord(c)) for c in text if ord(c) in HARMFUL})
    assert not found, (arguments, found, text)
    return text


def places(value, path=()):
    """Every key and every string of a JSON value, as (path, is_key)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key), True
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))
    elif isinstance(value, str):
        yield path, False


def changed(graph, path, is_key, how):
    graph = copy.deepcopy(graph)
    inner = graph
    for step in path[:-1]:
        inner = inner[step]
    if is_key:
        renamed = {how(key) if key == path[-1] else key: value for key, value in inner.items()}
        inner.clear()
        inner.update(renamed)
    else:
        inner[path[-1]] = how(inner[path[-1]])
    return graph


GRAPH = {
    "weir": 1,
    "name": "g",
    "scheduler": {"workers": 1, "signal": "callback", "drain": "1s", "backend": "sim"},
    "resources": {"pool": {"type": "stream_pool", "max_size": 2}},
    "entities": [
        {"name": "a", "operator": "ping", "parameters": {"count": 2}},
        {"name": "b", "operator": "delay", "parameters": {"duration": "1us"}, "resources": ["pool"]},
        {
            "name": "c",
            "operator": "print",
            "ports": {"in": {"policy": "block", "take": "all"}},
            "conditions": [{"type": "message_available", "name": "m", "port": "in"}],
        },
    ],
    "connections": [["a.out", "b.in"], {"from": "b.out", "to": ["c.in"]}],
}


def write(name, graph):
    path = FOLDER / name
    path.write_text(graph if isinstance(graph, str) else json.dumps(graph))
    return str(path)


def xa07_no_string_or_key_of_a_graph_is_printed_raw(weir):
    for number, (path, is_key) in enumerate(places(GRAPH)):
        for how in (lambda word: STRANGE, lambda word: word + "\x1b", lambda word: word + "\x9b"):
            file = write("strange.json", changed(GRAPH, path, is_key, how))
            for command in COMMANDS if number % 3 else COMMANDS[:2]:
                expect_harmless(weir, *command, file)


def xa07_a_hint_that_is_strange_itself_is_printed_as_escapes(weir):
    graph = {"weir": 1, "resources": {"ab\x1b[2Jx": {"type": "stream_pool"}}}
    graph["entities"] = [{"name": "a", "operator": "sink", "resources": ["ab\x1b[2J"]}]
    assert "\\u001b[2Jx" in expect_harmless(weir, "check", write("hint.json", graph))


def xa07_what_operators_say_of_files_is_printed_as_escapes(weir):
    picture = str(EXAMPLES / "images" / "coffee.png")
    graph = {
        "weir": 1,
        "entities": [
            {"name": "r", "operator": "png_read", "parameters": {"path": picture}},
            {"name": "w", "operator": "png_write", "parameters": {"directory": "out" + STRANGE}},
        ],
        "connections": [["r.out", "w.in"]],
    }
    assert "wrote to outx\\u001b" in expect_harmless(weir, "run", "--backend", "host", write("directory.json", graph))
    graph["entities"][0]["parameters"]["path"] = "no" + STRANGE
    assert "nox\\u001b" in expect_harmless(weir, "run", "--backend", "host", write("path.json", graph))


def xa07_what_a_plugin_says_is_printed_as_escapes(weir):
    plugin = ["--plugin", PLUGIN]
    for command in (["operators"], ["operators", "strange"], ["conditions"], ["conditions", "never_there"]):
        assert "help x\\u001b" in expect_harmless(weir, *command, *plugin), command
    entity = {"name": "s", "operator": "strange"}
    for mode, wanted in (("fail", "cannot go on x\\u001b"), ("start", "cannot start x\\u001b"), ("no", "'no' is not one")):
        graph = {"weir": 1, "entities": [{**entity, "parameters": {"mode": mode}}]}
        assert wanted in expect_harmless(weir, "run", "--backend", "sim", *plugin, write("plugin.json", graph)), mode
    graph = {"weir": 1, "entities": [{**entity, "conditions": [{"type": "never_there"}]}]}
    for command in COMMANDS:
        text = expect_harmless(weir, *command, *plugin, write("waits.json", graph))
    assert "waits x\\u001b" in text, text


def xa07_the_command_line_is_printed_as_escapes(weir):
    graph = write("right.json", GRAPH)
    for arguments in (
        ["run", f"no{STRANGE}.json"],
        ["check", f"no{STRANGE}.json"],
        ["run", graph, "--set", f"a{STRANGE}.count=1"],
        ["run", graph, "--set", f"a.{STRANGE}=1"],
        ["run", graph, "--backend", STRANGE],
        ["run", graph, "--plugin", STRANGE],
        ["run", graph, f"--{STRANGE}"],
        ["run", graph, STRANGE],
        ["operators", STRANGE],
        ["help", STRANGE],
        [STRANGE],
    ):
        expect_harmless(weir, *arguments)
    for command in COMMANDS:
        os.replace(write("right.json", GRAPH), FOLDER / f"right{STRANGE}.json")
        expect_harmless(weir, *command, f"right{STRANGE}.json")


process.main(
    [
        xa07_no_string_or_key_of_a_graph_is_printed_raw,
        xa07_a_hint_that_is_strange_itself_is_printed_as_escapes,
        xa07_what_operators_say_of_files_is_printed_as_escapes,
        xa07_what_a_plugin_says_is_printed_as_escapes,
        xa07_the_command_line_is_printed_as_escapes,
    ]
)
