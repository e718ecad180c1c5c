"""The lists of operators and conditions, and the page of each."""
import json

import process

OPERATORS = {"files", "png_decode", "png_read", "upload", "resize", "normalize", "convert", "top", "draw", "blur", "sobel", "download", "png_write", "ping", "print", "delay", "pass", "spin",
             "sink", "frames_read", "frames_write"}
CONDITIONS = {
    "in_flight", "message_available", "downstream_message_affordable", "count", "periodic", "boolean", "asynchronous",
    "cuda_stream", "fence", "file_descriptor", "any_of", "all_of",
}


def names(weir, command):
    ended = process.run(weir, command)
    assert ended.returncode == 0 and not ended.stderr, ended
    lines = [line.split(None, 1) for line in ended.stdout.splitlines()]
    assert all(len(line) == 2 for line in lines), "a kind without help"
    return [line[0] for line in lines]


def the_lists_are_sorted_and_complete(weir):
    for command, wanted in (("operators", OPERATORS), ("conditions", CONDITIONS)):
        found = names(weir, command)
        assert found == sorted(found), found
        assert wanted <= set(found), wanted - set(found)


def every_kind_has_a_page_that_begins_with_its_line(weir):
    for command in ("operators", "conditions"):
        for name in names(weir, command):
            ended = process.run(weir, command, name)
            assert ended.returncode == 0 and not ended.stderr, ended
            assert ended.stdout.startswith(f"{name}: "), ended.stdout
            assert "?" not in ended.stdout.split("\n\n")[0], ended.stdout


def every_parameter_and_port_says_what_it_means(weir):
    for command in ("operators", "conditions"):
        for name in names(weir, command):
            lines = process.run(weir, command, name).stdout.splitlines()
            for line, below in zip(lines, lines[1:] + [""]):
                if line.startswith("  ") and not line.startswith("      "):
                    assert below.startswith("      "), f"{name}: no help under '{line}'"


def the_operators_as_json_are_those_of_the_pages(weir):
    listed = json.loads(process.run(weir, "operators", "--json").stdout)["operators"]
    assert [one["name"] for one in listed] == names(weir, "operators")
    for one in listed:
        alone = process.run(weir, "operators", one["name"], "--json")
        assert json.loads(alone.stdout) == {"operators": [one]}, alone
        page = process.run(weir, "operators", one["name"]).stdout
        for part in one["parameters"] + one["inputs"] + one["outputs"]:
            assert f"\n  {part['name']}: " in page and part["help"] in page, part
            assert all(part[key] in page for key in ("dtype", "shape") if part.get(key)), part


def an_unknown_operator_prints_no_json(weir):
    ended = process.run(weir, "operators", "blurr", "--json")
    assert ended.returncode == 2 and not ended.stdout and "'blur'" in ended.stderr, ended


def what_show_prints_as_json_is_the_same_graph(weir):
    first = process.run(weir, "show", "--json", process.graph("ping.json"))
    assert first.returncode == 0, first
    second = process.run(weir, "show", "--json", "/dev/stdin", input=first.stdout)
    assert second.stdout == first.stdout, second


process.main(
    [
        the_lists_are_sorted_and_complete,
        every_kind_has_a_page_that_begins_with_its_line,
        every_parameter_and_port_says_what_it_means,
        the_operators_as_json_are_those_of_the_pages,
        an_unknown_operator_prints_no_json,
        what_show_prints_as_json_is_the_same_graph,
    ]
)
