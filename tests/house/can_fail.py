"""Runs every check of this folder on a sound tree, and then with one thing broken, which it must report."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SKIPPED = 77
PART = "/* ------------ part -- */\n/* Default. Thread: any. Fails: nothing else. */\n\n"
HEADER = "#define WEIR_API __attribute__((visibility(\"default\")))\n/* WEIR_API int weir_no(void); */\n" + PART + "WEIR_API int weir_yes(void);\n"
SOUND = {
    ".clang-format": (HERE / "../../.clang-format").read_text(),
    "include/weir.h": HEADER,
    "scheduler/queue.c": '#include "base/memory.h"\n#include "graphs/plan.h"\n#include "weir.h"\n/* free(x) */\nvoid f(void)\n{\n\tg("free(x)");\n\tt->free(x);\n}\n',
    "streams/backend.h": "struct wr_backend {\n\tint (*query)(void *self);\n\tvoid (*open)(void **out);\n};\n",
    "streams/system.c": "int f(struct s *s)\n{\n\treturn s->backend->query(s->native);\n}\n",
    "streams/stream.c": "bool f(struct s *s)\n{\n\treturn s->backend->query && g(s->backend->name);\n}\n",
    "graphs/text.c": '#include "streams/streams.h"\n#include "graphs/text.h"\n',
    "scheduler/ask.c": '#include "graphs/text.h"\n#include "scheduler/graph.h"\n',
    "operators/blur.c": '#include "weir.h"\n#include <stdlib.h>\nvoid f(void)\n{\n\tfree(malloc(1));\n}\n',
    "scheduler/loop.c": "#include <event2/event.h>\n",
    "docs/a.md": "# A thing\n\n[here](#a-thing)\n\n```c example\n#include <weir.h>\n```\n",
    "docs/dev/rules.md": "# The rules\n\n- **C4** the bound\n",
    "base/word.c": "struct wr_word {\n\t_Atomic int value;\n};\nvoid set(struct wr_word *word)\n{\n\twr_store_release(&word->value, 1);\n}\n",
    "tests/models/m1_poke.c": "enum { VALUE };\nstore(VALUE, REL); /* order: VALUE store release */\n",
    "tests/models/orders.txt": "wr_word.value: m1_poke (VALUE)\n\tstore release in set needs release\n",
    "tests/bugs/mutants.txt": "# rules\n\n## set_one: two\n-\twr_store_release(&word->value, 1);\n+\twr_store_release(&word->value, 2);\n",
    "python/module.cpp": "PyList_New(0); /* PyDict_Copy */\n",
    "tests/house/stable.txt": "# names\nPyList_New\n",
    "tests/house/ids.txt": "C4 bound\n-F50 later\n",
    "tests/base/c.c": "static void c04_what_arrives_later_waits(void **state)\n{\n\tint weir_no;\n}\n",
    "a/0.c": "void f1(void);\nvoid f0(void)\n{\n\tf1();\n}\n",
    "a/1.c": "void f0(void);\nvoid f1(void)\n{\n\tf0();\n}\n",
    "base/has.c": 'static const char *const functions[] = {\n\t"weir_yes",\n};\n',
    "tests/skips.txt": "cuda.* | release | anywhere | no GPU\n",
    "tests.xml": '<testsuite><testcase name="cuda.a"><skipped message="77"/></testcase><testcase name="b"/></testsuite>',
    "yes.c": '#include "include/weir.h"\nint weir_yes(void)\n{\n\treturn 1;\n}\n',
}
CIRCLE = {f"a/{i}.c": f"void f{(i + 1) % 5}(void);\nvoid f{i}(void)\n{{\n\tf{(i + 1) % 5}();\n}}\n" for i in range(5)}


def header(declaration, default="Thread: any. Fails: nothing else."):
    table = "#define WEIR_STATUS_TABLE(X) X(WEIR_E_IO, -10, \"\")\n"
    return {"include/weir.h": HEADER.replace("Thread: any. Fails: nothing else.", default) + table + declaration + "\n"}


ABI = """#define WEIR_API __attribute__((visibility("default")))
#define WEIR_ABI 1u
#include <stddef.h>
typedef struct {
	size_t size;
	int status;
} weir_outcome;
typedef struct {
	size_t size;
	int flags;
} weir_thing;
enum { WEIR_PORT_HOST = 1 };
WEIR_API int weir_wait(weir_outcome *out);
WEIR_API int weir_flags(const weir_thing *port);
"""
EXTRA = {"abi": {"include/weir.h": ABI, "cmake/libweir.map": "WEIR_0.1 {\nglobal:\n\tweir_*;\nlocal:\n\t*;\n};\n"}}
GROWN = ABI.replace("int status;", "int status;\n\tint ticks;") + "WEIR_API int weir_more(void);\n"


def abi(was, now):
    assert was in ABI
    return {"include/weir.h": ABI.replace(was, now)}


LONG = "void f(void)\n{\n" + "\tg();\n" * 79 + "}\n"
STEP = "static int step(void)\n{\n\treturn 1;\n}\n\n"
ONCE = STEP + "int f(void)\n{\n\treturn step();\n}\n"
HAS = "static bool has(const char *text, const char *part)\n{\n\treturn strstr(text, part);\n}\n"
MODEL = SOUND["tests/models/m1_poke.c"]
WORD = SOUND["base/word.c"]
# check, files to change, text that the report must contain
BROKEN = [
    ("rooms", {"trace/count.c": '#include "scheduler/scheduler.h"\n'}, "trace/count.c:1"),
    ("rooms", {"operators/blur.c": '#include "base/memory.h"\n'}, "operators/blur.c:1"),
    ("rooms", {"graphs/text.c": '#include "scheduler/queue.h"\n'}, "graphs must not use scheduler/queue.h"),
    ("rooms", {"conditions/count.c": '#include "scheduler/view.h"\n#include "scheduler/entity.h"\n'}, "conditions/count.c:2"),
    ("rooms", {"scheduler/view.h": '#include "weir.h"\n#include "scheduler/queue.h"\n'}, "scheduler/view.h:2: a door"),
    ("rooms", {"graphs/text.c": '\n#include "text.h"\n'}, '"graphs/text.h"'),
    ("rooms", {"streams/host/host.c": '#include "graphs/plan.h"\n'}, "streams/host/host.c:1"),
    ("rooms", {"cli/main.c": '#include "graphs/json.h"\n'}, "cli/main.c:1"),
    ("rooms", {"cli/main.c": '#include "base/words.h"\n#include "base/memory.h"\n'}, "cli/main.c:2"),
    ("rooms", {"scheduler/queue.c": '\n#include "queue.h"\n'}, "scheduler/queue.c:2"),
    ("direct", {"scheduler/queue.c": "void f(void)\n{\n\tfree(0);\n}\n"}, "scheduler/queue.c:3: free"),
    ("direct", {"graphs/text.c": "void f(void)\n{\n\tfree(0);\n}\n"}, "graphs/text.c:3: free"),
    ("direct", {"operators/blur.c": "int x = clock_gettime(0, 0);\n"}, "clock_gettime"),
    ("direct", {"scheduler/loop.c": "#include <pthread.h>\n"}, "pthread.h"),
    ("direct", {"trace/count.c": "int x = atomic_load(&y);\n"}, "atomic_load"),
    ("doors", {"scheduler/queue.c": "#include <jansson.h>\n"}, "jansson"),
    ("doors", {"graphs/text.c": "#include <jansson.h>\n"}, "jansson"),
    ("doors", {"streams/host/host.c": "#include <cuda_runtime.h>\n"}, "CUDA"),
    ("doors", {"scheduler/timer.c": "#include <event2/event.h>\n"}, "libevent"),
    ("doors", {"trace/count.c": "#include <other/thing.h>\n"}, "other/thing.h"),
    ("device", {"streams/stream.c": "int x = s->backend->query(s->native);\n"}, "streams/stream.c:1: calls the backend's query"),
    ("device", {"streams/stream.c": "const struct wr_backend *table = b;\nint x = (table->query)(s);\n"}, "streams/stream.c:2"),
    ("device", {"streams/host/sim.c": "int x = wr_backend_host.query(s);\n"}, "streams/host/sim.c:1"),
    ("device", {"streams/backend.h": "\n"}, "no table"),
    ("rooms", {"streams/stream.c": '#include "streams/host/host.h"\n'}, "streams must not use streams/host/host.h"),
    ("rooms", {"streams/host/host.c": '#include "streams/cuda/cuda.h"\n'}, "streams/host must not use"),
    ("lengths", {"scheduler/queue.c": LONG}, "81 lines"),
    ("lengths", {"python/module.cpp": LONG}, "81 lines"),
    ("lengths", {"python/weir/a.py": "def f():\n" + "    g()\n" * 40}, "python/weir/a.py:1: f has 41 lines"),
    ("rooms", {"python/module.cpp": '#include "base/memory.h"\n'}, "python/module.cpp:1"),
    ("doors", {"python/module.cpp": "#include <nanobind/nanobind.h>\n"}, "nanobind enters by python/module"),
    ("doors", {"python/module.h": "#include <nanobind/nanobind.h>\n#include <jansson.h>\n"}, "jansson"),
    ("doors", {"cli/main.c": "#include <Python.h>\n"}, "nanobind enters by"),
    ("doors", {"graphs/more.cpp": "#include <vector>\n"}, "the C++ of the library is in python/"),
    ("format", {"python/module.cpp": "int  x;\n"}, "python/module.cpp:1"),
    ("lengths", {"graphs/text.c": LONG}, "81 lines"),
    ("once", {"sim/walk.c": ONCE}, "sim: 50.0 % of the functions are called once"),
    ("once", {"sim/walk.c": ONCE}, "sim: 50.0 % of the functions have at most 12 lines and are called once"),
    ("once", {"sim/walk.c": LONG}, "sim/walk.c:1: f has 81 lines"),
    ("once", {"sim/walk.c": LONG.replace("\tg();\n" * 40, "")}, "sim: the 90th percentile is 41 lines"),
    ("lengths", {"tests/base/c.c": SOUND["tests/base/c.c"] + "\n" * 600}, "tests/base/c.c: 60"),
    ("inside", {"tests/base/c.c": '#include "scheduler/queue.h"\n'}, "tests/base/c.c:1: includes scheduler/queue.h"),
    ("inside", {"tests/streams/rig.h": '#include "scheduler/queue.h"\n'}, "tests/streams/rig.h:1: includes scheduler/queue.h"),
    ("inside", {"tests/streams/rig.h": '#include "base/memory.h"\n'}, "tests/streams/rig.h need not be listed"),
    ("texts", {"cli/main.c": "int x = strcmp(wait->why, f());\n"}, "cli/main.c:1: compares 'why'"),
    ("texts", {"cli/main.c": "void f(void)\n{\n\tconst char *t = weir_last_error();\n\n\tg(strncmp(t, n, 3));\n}\n"}, "cli/main.c:5: compares 't'"),
    ("texts", {"cli/main.c": HAS + "int x = has(wait->why, p);\n"}, "cli/main.c:5: compares 'why'"),
    ("texts", {"python/module.cpp": 'bool x = !strncmp(weir_scheduler_where(s), "sim", 3);\n'}, "python/module.cpp:1"),
    ("texts", {"cli/page/report.js": 'if (wait.why.includes("device"))\n'}, "cli/page/report.js:1: compares 'why.includes('"),
    ("texts", {"cli/page/report.js": 'if (/^sim/.test(run.where || ""))\n'}, "cli/page/report.js:1"),
    ("texts", {"python/weir/a.py": 'x = graph.where.startswith("sim")\n'}, "python/weir/a.py:1"),
    ("texts", {"scheduler/replay.c": "int x;\n"}, "scheduler/replay.c need not be listed"),
    ("seeded", {"base/word.c": WORD.replace("1)", "0)")}, "must be in the source exactly once, is not there:"),
    ("seeded", {"base/b.c": "wr_store_release(&word->value, 1);\n"}, "is base/b.c, base/word.c:"),
    ("orders", {"base/word.c": WORD.replace("_release", "_relaxed")}, "base/word.c:6: set does a store of wr_word.value"),
    ("orders", {"base/word.c": WORD.replace("{\n\twr", "{\n\twr_load(&word->value);\n\twr")}, "base/word.c:6: set does a load"),
    ("orders", {"base/word.c": WORD.replace("int value;", "int value;\n\t_Atomic bool other;")}, "wr_word.other: an atomic"),
    ("orders", {"tests/models/orders.txt": "\n"}, "base/word.c:6: set does an atomic store of wr_word.value"),
    ("orders", {"tests/models/orders.txt": "wr_word.value: m1_poke\n\tstore release needs seq_cst\n"}, "the model needs seq_cst"),
    ("orders", {"tests/models/orders.txt": "wr_word.value: m1_poke\n\tstore release in set reset\n"}, "reset does not do this"),
    ("orders", {"tests/models/orders.txt": "wr_word.value: m2_claim\n\tstore release\n"}, "no model m2_claim.c"),
    ("orders", {"tests/models/orders.txt": "wr_word.value: m1_poke\n\tstore release in set needs release\n"}, "its models say None"),
    ("orders", {"tests/models/orders.txt": "wr_word.value: m1_poke (VALUE)\n\tstore release in set\n"}, "m1_poke.c:2: no `needs`"),
    ("orders", {"tests/models/m1_poke.c": MODEL.replace("store release", "store relaxed").replace("REL", "RLX")}, "its models say relaxed"),
    ("orders", {"tests/models/m1_poke.c": MODEL.replace("REL", "RLX")}, "m1_poke.c:2: the access of VALUE does not have the order REL"),
    ("orders", {"tests/models/m1_poke.c": MODEL.replace("enum { VALUE };", "").replace("(VALUE", "(")}, "m1_poke.c:2: VALUE or release"),
    ("orders", {"tests/models/m1_poke.c": MODEL.replace("store release", "release")}, "m1_poke.c:2: not `/* order:"),
    ("words", {"scheduler/queue.c": "/* Nobody waits.\n * Who waits? */\n"}, "scheduler: 2 words"),
    ("stable", {"python/module.cpp": "PyList_New(0);\nPyUnicode_AsUTF8(text);\n"}, "python/module.cpp:2: PyUnicode_AsUTF8"),
    ("stable", {"python/module.cpp": "f();\n"}, "PyList_New is not used"),
    ("accessors", {"python/a.cpp": "f();\nx = PyTuple_GetItem(of_user, 1);\n"}, "python/a.cpp:2: PyTuple_GetItem without a check"),
    ("accessors", {"python/a.h": "y = nb::borrow<nb::dict>(of_user);\n"}, "python/a.h:1: nb::borrow<"),
    ("accessors", {"python/a.cpp": "if (PyTuple_Size(t) == 2)\n" + "f();\n" * 5 + "PyTuple_GET_ITEM(t, 0);\n"}, "python/a.cpp:7"),
    ("words", {"docs/a.md": "Nobody waits.\n\nWho waits?\n"}, "docs/a.md:1: Nobody"),
    ("names", {"scheduler/queue.c": "/* Taken by wr_queue_gone. */\n"}, "scheduler/queue.c:1: wr_queue_gone"),
    ("names", {"scheduler/queue.c": "/* What is\n * gone() is set. */\n"}, "scheduler/queue.c:2: gone"),
    ("names", {"scheduler/queue.c": "/* The mark `gone` is set. */\n"}, "scheduler/queue.c:1: gone"),
    ("names", {"scheduler/queue.c": "/* Set by scheduler/gone.c. */\n"}, "scheduler/queue.c:1: scheduler/gone.c"),
    ("names", {"docs/a.md": "Call `weir_gone`.\n"}, "docs/a.md:1: weir_gone"),
    ("names", {"docs/a.md": "It is in `graphs/gone/`.\n"}, "docs/a.md:1: graphs/gone"),
    ("names", {"docs/dev/design.md": "### graphs/\n\n| files |\n|---|\n| `text` `gone` |\n"}, "graphs/gone: there is no such file"),
    ("names", {"docs/dev/design.md": "### scheduler/\n\n| files |\n|---|\n| `queue` `ask` |\n"}, "scheduler/loop.c is not listed"),
    ("format", {"scheduler/queue.c": "int  x;\n"}, "scheduler/queue.c:1"),
    ("ids", {"tests/base/c.c": "static void c05_other(void **state)\n{\n}\n"}, "C4 bound: claimed"),
    ("ids", {"tests/base/c.c": "/* c04_what_arrives */\n"}, "C4 bound: claimed"),
    ("ids", {"docs/dev/rules.md": "- **C4** the bound\n- **S2** one owner\n"}, "s02: docs/dev/rules.md has it"),
    ("ids", {"docs/dev/rules.md": "# The rules\n"}, "c04: docs/dev/rules.md lacks it"),
    ("exports", {"yes.c": SOUND["yes.c"].replace("weir_yes", "weir_none")}, "weir_yes: declared"),
    ("exports", {"yes.c": SOUND["yes.c"] + "int weir_more(void)\n{\n\treturn 1;\n}\n"}, "weir_more: exported"),
    ("exports", {"include/weir.h": HEADER + "#define WEIR_ABI 3u\n"}, "soname None: WEIR_ABI is 3"),
    ("exports", {"base/has.c": "\n"}, "weir_yes: not in the list"),
    ("exports", {"base/has.c": '\t"weir_more",\n\t"weir_yes",\n'}, "weir_more: in the list"),
    ("exports", {"base/has.c": '\t"weir_yes",\n\t"weir_yes",\n'}, "weir_yes: the list of weir_has() is sorted"),
    ("abi", abi("WEIR_API int weir_flags(const weir_thing *port);\n", ""), "1 Removed"),
    ("abi", abi("int flags;", "int flags;\n\tint take;"), "weir_flags"),
    ("abi", abi("int status;", "int ticks;\n\tint status;"), "weir_wait"),
    ("abi", abi("int status;", "long status;"), "weir_wait"),
    ("abi", abi("int status;", "long status;\n\tint ticks;"), "weir_wait"),
    ("abi", abi("weir_wait(weir_outcome *out)", "weir_wait(int timeout, weir_outcome *out)"), "weir_wait"),
    ("abi", abi("WEIR_PORT_HOST = 1", "WEIR_PORT_HOST = 2"), "WEIR_PORT_HOST was 1, is 2"),
    ("abi", abi("enum { WEIR_PORT_HOST = 1 };\n", ""), "WEIR_PORT_HOST was 1, is None"),
    ("abi", abi("WEIR_ABI 1u", "WEIR_ABI 2u"), "--renew"),
    ("abi", {"open": "", "include/weir.h": ABI + '#define WEIR_VERSION "1.0.0"\n'}, "only a weir 0 may be"),
    ("circles", CIRCLE, "circle of 5 files: a/0.c a/1.c a/2.c a/3.c a/4.c"),
    ("papers", {"docs/a.md": "[x](b.md)\n"}, "docs/a.md:1: b.md"),
    ("papers", {"docs/a.md": "# A thing\n\n[x](#other-thing)\n"}, "docs/a.md:3: #other-thing"),
    ("papers", {"docs/a.md": "words\n\n```cpp example\nint f() { return no; }\n```\n"}, "docs/a.md:4"),
    ("papers", {"docs/a.md": "words\n\n```c example\nint f(void)\n{\n\treturn no;\n}\n```\n"}, "docs/a.md:6"),
    ("papers", {"docs/a.md": "words\n\n```c file a.c\nint f(void)\n{\n\treturn no;\n}\n```\n"}, "docs/a.md:6"),
    ("reference", header("", "Fails: nothing else."), "weir_yes: no Thread: of its own"),
    ("reference", header("WEIR_API weir_status weir_graph_run(weir_graph *graph);", "Thread: any."), "weir_graph_run: no Fails: of its own"),
    ("reference", header("/* Thread: mine. */\nWEIR_API void weir_graph_run(weir_graph *graph);"), "weir_graph_run: Thread: mine"),
    ("reference", header("/* Fails: WEIR_E_ODD. */\nWEIR_API weir_status weir_graph_run(weir_graph *graph);"), "there is no WEIR_E_ODD"),
    ("reference", header("/* Fails: sometimes. */\nWEIR_API weir_status weir_graph_run(weir_graph *graph);"), "names no status"),
    ("reference", header("WEIR_API weir_status weir_graph_create(weir_graph **out, int i);"), "weir_graph_create: out is not the last"),
    ("reference", header("WEIR_API weir_status weir_graph_create(int i, weir_graph **graph);"), "'weir_graph **graph' comes out"),
    ("reference", header("WEIR_API size_t weir_graph_fences(size_t room, int i, weir_fence *out);"), "room stands right before out"),
    ("reference", header("WEIR_API weir_status weir_graph_inlet(weir_graph *graph, weir_inlet **out);"), "weir_graph_inlet: makes something"),
    ("reference", header("WEIR_API weir_inlet *weir_graph_open_inlet(weir_graph *graph);"), "a noun names it"),
    ("reference", header("WEIR_API weir_status weir_graph_create(weir_graph *graph);"), "'create' gives something"),
    ("reference", header("WEIR_API weir_status weir_graph_inlet(weir_graph *graph);"), "no verb of the list: 'inlet'"),
    ("reference", {"include/weir.h": HEADER.replace(PART, "")}, "0 of them in a part"),
    ("skips", {"tests/skips.txt": ""}, "cuda.a was skipped, which"),
    ("skips", {"tests/skips.txt": "cuda.* | clang | anywhere | no GPU\n"}, "cuda.a was skipped, which"),
    ("skips", {"tests/skips.txt": "cuda.* | release | home | no GPU\n"}, "in preset release on CI"),
    ("skips", {"tests/skips.txt": "cuda.* | release | no GPU\n"}, "skips.txt:1: not 'PATTERN"),
    ("skips", {"tests.xml": "<testsuite/>"}, "no tests"),
    ("header", {"include/weir.h": "typedef int weir_class;\nint f(void) { return {}; }\n"}, "weir.h"),
    ("header", {"include/weir.h": "int f(int class);\n"}, "weir.h"),
]
OPEN = ABI.replace("int weir_flags", "long weir_flags") + '#define WEIR_VERSION "0.9.0"\n'
ALLOWED = [
    ("abi", {"include/weir.h": GROWN}),
    ("abi", {"open": "", "include/weir.h": OPEN}),
    ("once", {"sim/walk.c": ONCE.replace("step();\n}\n", "step() + step();\n}\n")}),
    ("once", {"sim/walk.c": ONCE.replace("return step()", "return g(step)")}),
    ("once", {"sim/walk.c": ONCE.replace("static int", "__attribute__((noinline)) static int")}),
]


def command(check, root, compiler):
    if check == "header":
        return ["sh", HERE / "header.sh", compiler, root / "include/weir.h"]
    script = [sys.executable, "-B", HERE / f"{check}.py"]
    if check == "exports":
        subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", root / "yes.so", root / "yes.c"], check=True)
        return script + [root / "include/weir.h", root / "yes.so", root / "base/has.c"]
    if check == "abi":
        now = (root / "include/weir.h").read_text()
        (root / "include/weir.h").write_text(ABI)
        (root / "tests/house").mkdir(parents=True, exist_ok=True)
        subprocess.run([*script, root, compiler, "--renew"])
        (root / "include/weir.h").write_text(now)
        if (root / "open").exists():
            subprocess.run([*script, root, compiler, "--open"])
        return script + [root, compiler]
    if check == "circles":
        for path in root.glob("a/*.c"):
            (root / "objects/a").mkdir(parents=True, exist_ok=True)
            subprocess.run([compiler, "-c", "-o", root / f"objects/a/{path.name}.o", path], check=True)
        return script + [root, root / "objects"]
    if check == "skips":
        return script + [root / "tests/skips.txt", "release", root / "tests.xml"]
    if check == "papers":
        return script + [root, compiler]
    return script + [root / "tests" if check == "ids" else root]


def run(check, changes, compiler):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**SOUND, **EXTRA.get(check, {}), **changes}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        environment = {**os.environ, "CI": "true"}
        return subprocess.run(command(check, root, compiler), capture_output=True, text=True, env=environment)


def main(compiler):
    wrong, skipped = 0, set()
    for check in sorted({check for check, _, _ in BROKEN}):
        result = run(check, {}, compiler)
        if result.returncode == SKIPPED:
            skipped.add(check)
        elif result.returncode:
            wrong += 1
            print(f"{check}: finds fault with a sound tree:\n{result.stdout}{result.stderr}")
    for check, changes in ALLOWED:
        result = run(check, changes, compiler)
        if result.returncode not in (0, SKIPPED):
            wrong += 1
            print(f"{check}: finds fault with what is allowed:\n{result.stdout}{result.stderr}")
    for check, changes, names in BROKEN:
        if check in skipped:
            continue
        result = run(check, changes, compiler)
        if not result.returncode or names not in result.stdout + result.stderr:
            wrong += 1
            print(f"{check}: does not see {changes}:\n{result.stdout}{result.stderr}")
    print(f"{len(BROKEN)} broken trees, {wrong} surprises")
    sys.exit(1 if wrong else 0)


main(sys.argv[1])
