"""weir check of several graphs: what the remote connections between them cannot be is one line each, with its place and its remedy.

checked.py WEIR FOLDER PLUGIN: FOLDER is scratch.
"""
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
import process

FOLDER = pathlib.Path(sys.argv[2])
PLUGIN = os.path.abspath(sys.argv[3])
del sys.argv[2:4]
SINK = {"name": "end", "operator": "sink"}


def entity(name, operator, **parameters):
    return {"name": name, "operator": operator, "parameters": parameters}


def chain(*entities, **more):
    names = [one["name"] for one in entities]
    return {"weir": 1, "entities": list(entities), "connections": [[f"{a}.out", f"{b}.in"] for a, b in zip(names, names[1:])], **more}


def send(to, name="send"):
    return entity(name, "remote_send", to=to)


def receive(listen, name="receive", **parameters):
    return entity(name, "remote_receive", listen=listen, **parameters)


def sender(to):
    return chain(entity("read", "ping"), send(to))


def receiver(listen, **parameters):
    return chain(receive(listen, **parameters), SINK)


def check(weir, *graphs, options=(), **environment):
    """Of the graphs as a.json, b.json, ...; the lines on stderr."""
    paths = []
    for name, graph in zip("abcd", graphs):
        (FOLDER / f"{name}.json").write_text(json.dumps(graph))
        paths.append(f"{name}.json")
    env = {**process.environment(), **environment}
    ended = process.run(weir, "check", "--plugin", PLUGIN, *options, *paths, cwd=FOLDER, env=env)
    return ended.returncode, ended.stderr.splitlines(), ended.stdout.splitlines()


def e06_r05_latest_is_not_for_what_is_sent(weir):
    """Each tick would send the newest message again, and the link ticks for reasons of its own."""
    graph = sender("127.0.0.1:9100")
    graph["entities"][1]["ports"] = {"in": {"policy": "latest"}}
    assert '/entities/1/ports/in/policy: "latest" gives a message to tick after tick' in one(check(weir, graph))


def one(ended):
    """The one line, of a check that refuses."""
    assert ended[0] == 3 and len(ended[1]) == 1, ended
    return ended[1][0]


def well(ended):
    assert ended[:2] == (0, []), ended
    return ended[2][-1]


def e06_what_meets_is_said(weir):
    for to, listen in [
        ("127.0.0.1:9100", "127.0.0.1:9100"),
        ("127.0.0.1:9100", "0.0.0.0:9100"),
        ("camera.example:9100", "[::]:9100"),
        ("localhost:9100", ":9100"),
    ]:
        assert well(check(weir, sender(to), receiver(listen))) == f"a.json: send -> b.json: receive: {to}, no errors"


def e06_one_graph_is_looked_at_alone(weir):
    assert well(check(weir, sender("camera"))) == "a.json: no errors"


def e06_what_meets_nothing_is_a_note(weir):
    code, lines, _ = check(weir, sender("127.0.0.1:9100"), receiver("127.0.0.1:9101"))
    assert code == 0 and lines == [
        "a.json: note: send.to: no remote_receive of these files listens at 127.0.0.1:9100",
        "b.json: note: receive.listen: no remote_send of these files sends to 127.0.0.1:9101",
    ], lines


def e06_two_receivers_at_one_place_are_refused(weir):
    two = chain(receive("127.0.0.1:9100"), SINK)
    two["entities"] += [receive("127.0.0.1:9100", "second"), {**SINK, "name": "last"}]
    two["connections"] += [["second.out", "last.in"]]
    wanted = "error: {}.listen: 127.0.0.1:9100 is where 'receive' of {} listens: give each a port of its own"
    assert one(check(weir, sender("127.0.0.1:9100"), two)) == "b.json: " + wanted.format("second", "b.json")
    same = receiver("127.0.0.1:9100")
    assert one(check(weir, sender("127.0.0.1:9100"), same, same)) == "c.json: " + wanted.format("receive", "b.json")


def e06_one_port_of_two_machines_is_a_note(weir):
    code, lines, _ = check(weir, receiver("0.0.0.0:9100"), receiver("0.0.0.0:9100"), sender("10.0.0.1:9100"))
    assert code == 0 and lines[:2] == [
        "b.json: note: receive.listen: 0.0.0.0:9100 and 0.0.0.0:9100, of 'receive' of a.json, cannot be on one machine",
        "c.json: note: send.to: 2 remote_receive listen at the port of 10.0.0.1:9100: which one it is, these files do not say",
    ], lines


def e06_two_senders_of_one_receiver_are_refused(weir):
    a = sender("127.0.0.1:9100")
    assert "2 entities send to 127.0.0.1:9100, which takes one at a time" in one(check(weir, a, a, receiver("127.0.0.1:9100")))
    code, lines, _ = check(weir, a, a, receiver("127.0.0.1:9100", on_lost="wait"))
    assert code == 0 and "note: receive.listen: 2 entities send" in lines[0], lines


def r06_names_have_addresses_of_the_file_or_the_environment(weir):
    (FOLDER / "names").write_text("camera 10.0.0.1:9100\n")
    graphs = sender("camera"), receiver("0.0.0.0:9100")
    assert "no address of 'camera'" in check(weir, *graphs)[1][0]
    assert well(check(weir, *graphs, options=["--remote", "names"])).endswith("receive: camera, no errors")
    assert well(check(weir, *graphs, WEIR_REMOTE="names"))
    assert well(check(weir, *graphs, WEIR_REMOTE_CAMERA="10.0.0.1:9100"))


def e06_a_name_that_the_file_lacks_is_refused(weir):
    (FOLDER / "names").write_text("other 10.0.0.1:9100\n")
    code, lines, _ = check(weir, sender("camera"), receiver("camera"), options=["--remote", "names"])
    wanted = "{}: no address of 'camera': names has no line that begins with it"
    assert (code, lines) == (3, ["a.json: error: " + wanted.format("send.to"), "b.json: error: " + wanted.format("receive.listen")]), lines
    assert one(check(weir, sender("camera"), options=["--remote", "names"])) == "a.json: error: " + wanted.format("send.to")
    assert well(check(weir, sender("other"), options=["--remote", "names"])) == "a.json: no errors"


def e06_what_could_start_nowhere_is_refused_of_one_graph_as_by_a_run(weir):
    """By one line that names the file, the entity, the key and the remedy."""
    place = "127.0.0.1:9100"
    for graph, why in [
        (sender("127.0.0.1:70000"), "'to': '127.0.0.1:70000' has no port of 1 to 65535"),
        (receiver("host:"), "'listen': 'host:' has no port of 1 to 65535"),
        (sender(""), "'to': no address of '': write HOST:PORT, or name it in the environment or a file: see docs/distributed.md"),
        (receiver("[::1:9301"), "'listen': '[::1:9301' is no HOST:PORT: brackets stand around an IPv6 address, as in [::1]:9100"),
        (chain(entity("read", "ping"), entity("send", "remote_send", to=place, keepalive="50ms")), "'keepalive' is shorter than 100 ms: a longer one, or 0"),
        (receiver(place, keepalive="99ms"), "'keepalive' is shorter than 100 ms: a longer one, or 0"),
        (receiver(place, peers=","), "'peers' names no IP address, so no machine could connect: name some, or leave it out"),
        (receiver(place, peers="localhost"), "'peers' takes IP addresses, as 10.0.0.2 and fd00::2, separated by commas: 'localhost' is none"),
    ]:
        at = [one["operator"].startswith("remote_") for one in graph["entities"]].index(True)
        line = one(check(weir, graph))
        assert re.fullmatch(r"a\.json:1:\d+: error W060: " + re.escape(f"/entities/{at}/parameters: {why}"), line), line
        ran = process.run(weir, "run", "--plugin", PLUGIN, "a.json", cwd=FOLDER)
        assert (ran.returncode, ran.stderr.splitlines()[0]) == (3, line), ran.stderr


def c10_types_are_compared_across(weir):
    a = chain(entity("read", "png_read", path="."), entity("up", "upload"), entity("n", "normalize"), entity("down", "download"), send("x"))
    b = chain(receive("x"), entity("up", "upload"), entity("blur", "blur"), SINK)
    code, lines, _ = check(weir, a, b, WEIR_REMOTE_X="127.0.0.1:9100")
    assert code == 3 and lines == [
        "b.json: error: blur.in: W055: with the graphs together, up-2.out -> blur.in: sends float32|float16|bfloat16 [1, 1..4, H, W] on a "
        "device, but the input takes uint8 [H, W] | [H, W, 1..4] on a device: put a conversion of the dtype and a change of the shape between them"
    ], lines


def c10_kinds_are_compared_across(weir):
    a = chain(entity("read", "ping"), send("127.0.0.1:9100"))
    b = chain(receive("127.0.0.1:9100"), entity("up", "upload"), SINK)
    assert "b.json: error: up.in: W026: " in one(check(weir, a, b))


def c10_types_are_compared_where_there_is_nothing_between(weir):
    a = chain(entity("spin", "spin"), send("127.0.0.1:9100"))
    b = chain(receive("127.0.0.1:9100", place="device"), entity("blur", "blur"), SINK)
    assert one(check(weir, a, b)).startswith("b.json: error: blur.in: W055: with the graphs together, spin.out -> blur.in: sends uint64 [2]")


def r09_tensors_may_change_their_place_on_the_way(weir):
    """From the device of one to memory of the other's host, or the other way round."""
    upload, download = entity("upload", "upload"), entity("download", "download")
    read, write = entity("read", "png_read", path=str(ROOT / "examples/images")), entity("write", "png_write", directory="out")
    for place, behind in (("host", [write]), ("device", [download, write]), ("sent", [download, write])):
        for before in ([read], [read, upload]):
            assert check(weir, chain(*before, send("127.0.0.1:9")), chain(receive("127.0.0.1:9", place=place), *behind))[:2] == (0, []), (place, before)


def r01_a_message_larger_than_the_places_is_refused(weir):
    a = chain({**entity("read", "spin"), "conditions": [{"type": "count", "count": 1}]}, entity("down", "download"), send("127.0.0.1:9100"))
    line = one(check(weir, a, receiver("127.0.0.1:9100", max_message="15B")))
    assert line == "b.json: error: receive.max_message: 15B, and 'send' of a.json sends messages of 16B: raise it", line
    assert well(check(weir, a, receiver("127.0.0.1:9100", max_message="16B")))


def r01_a_pool_has_a_block_for_each_credit(weir):
    def of(blocks):
        pool = {"pool": {"type": "memory_pool", "place": "host", "block_size": 4096, "blocks": blocks}}
        with_pool = {**receive("127.0.0.1:9100", credits=4), "resources": ["pool"]}
        return check(weir, sender("127.0.0.1:9100"), chain(with_pool, SINK, resources=pool))

    code, lines, _ = of(3)
    assert code == 0 and lines == [
        "b.json: warning: receive.credits: 4, and pool 'pool' has 3 blocks, so no more credits are given: give it more, or fewer credits"
    ], lines
    assert well(of(4))


def r01_s03_what_two_keep_of_one_pool_is_there_for_both(weir):
    """Else the first one keeps what the other waits for, though nothing comes from its sender."""

    def of(conditions=(), **size):
        both = [
            {**receive(f"127.0.0.1:910{k}", f"r{k}", credits=4), "resources": ["pool"], "conditions": list(conditions)} for k in (0, 1)
        ]
        ends = [{**SINK, "name": f"e{k}"} for k in (0, 1)]
        pool = {"pool": {"type": "memory_pool", "place": "host", **size}}
        connections = [["r0.out", "e0.in"], ["r1.out", "e1.in"]]
        return check(weir, {"weir": 1, "resources": pool, "entities": both + ends, "connections": connections})

    message = {"type": "memory_available", "min_bytes": "1KiB"}
    line = one(of([message], max_size="7KiB"))
    assert "W048: /resources/pool/max_size: pool 'pool' has 7168 bytes, but its users claim 8192, of which up to 8192 are kept" in line
    assert of([message], max_size="8KiB")[0] == 0
    assert "W048: /resources/pool/blocks: pool 'pool' has 9 blocks, but up to 8 are kept" in one(of(block_size=1024, blocks=9))
    assert of(block_size=1024, blocks=10)[0] == 0


def e06_an_error_of_one_graph_does_not_hide_those_of_another(weir):
    code, lines, _ = check(weir, chain(entity("read", "none"), SINK), chain(entity("read", "nix"), SINK))
    assert code == 3 and [line.split(":")[0] for line in lines] == ["a.json", "b.json"], lines


def e06_set_is_of_the_graph_that_has_the_entity(weir):
    graphs = sender("127.0.0.1:1"), receiver("127.0.0.1:9100")
    assert well(check(weir, *graphs, options=["--set", "send.to=127.0.0.1:9100"]))
    code, lines, _ = check(weir, *graphs, options=["--set", "none.to=1"])
    assert code == 2 and "no graph has that entity" in lines[0], lines


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    process.main([check for name, check in list(globals().items()) if name[0] in "cer" and name[1:3].isdigit()])
