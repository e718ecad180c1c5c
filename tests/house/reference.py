"""weir.h is the reference: every public function has a thread rule and failures, its results last, a fitting name.

    reference.py ROOT

- A part of the header (`/* ---- name -- */`) that declares functions has a comment "Default. Thread: ... Fails: ...";
  a function has its own `Thread:` or `Fails:` where it differs. A default of failures is needed only where a
  function of the part returns weir_status.
- `Thread:` begins with a word of the preamble's list; `Fails:` names statuses of the table, "nothing else" or "never".
- What comes out is called `out` and is the last argument; a list's `room` comes right before it.
- What makes something has a verb of VERBS, what returns a value has none.
"""
import pathlib
import re
import sys

import source

PART = re.compile(r"^/\* -{10,} (.*) -- \*/$", re.M)
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
FUNCTION = re.compile(r"^WEIR_API\s+([^;{}()]*?)\b(weir_\w+)\s*\((.*?)\)\s*(?:WEIR_PRINTF\([^)]*\))?\s*;", re.S | re.M)
THREADS = ("any", "one", "owner", "review", "the one that started")
# verbs of making: a function with one of them gives something through `out`, or puts it into the object
MAKING = {"create", "open", "read", "parse", "wrap", "pack", "allocate", "receive", "record", "print", "explain", "take", "add"}
DOING = {
    "collect", "destroy", "free", "ref", "unref", "unwrap", "load", "set", "put", "use", "connect", "check", "poke", "tell", "watch",
    "start", "run", "wait", "stop", "turn", "push", "close", "launch", "copy", "query", "enqueue", "emit", "forward", "finish", "complete",
    "drain", "hold", "limit", "fail", "sleep", "synchronize", "escape", "replay", "write",
}
NOUNS = "status|log|error|graph|entity|scheduler|inlet|outlet|message|stream|fence|context|values|view|verdict|registry|ports|description|text|duration"
# named by what they return, though the word is a verb elsewhere; and a result that is no weir_status
VALUES = {
    "weir_view_take": "the port's `take`",
    "weir_message_ref": "returns its argument",
    "weir_context_receive_streams": "returns how many",
    "weir_text_escape": "returns how many",
    "weir_running_entity": "a getter without an object",
    "weir_context_scratch": "named by what it gives, which the tick's end takes back",
    "weir_stream_copies": "named by its list; the fence is beside what it does",
}
GETS_OUT = {  # through `out`, with a status or a bool: they read, they do not make
    "weir_scheduler_entity_counts", "weir_scheduler_queue_counts", "weir_scheduler_frames",
    "weir_view_pending", "weir_message_fences", "weir_scheduler_pool_counts", "weir_description_pool_needs", "weir_description_sent_bytes", "weir_scheduler_write_trace",
    "weir_running_device_memory", "weir_error_last", "weir_context_allocation", "weir_context_stream", "weir_context_default_stream", "weir_outlet_fd", "weir_inlet_fd", "weir_scheduler_fd",
}


def words(comment):
    return " ".join(re.sub(r"^\s*\*", "", line) for line in comment.splitlines()).replace("  ", " ")


def rule(text, name):
    """What stands behind `name:` up to the next rule; None if it is not there."""
    found = re.search(rf"\b{name}: (.*?)(?=\bThread: |\bFails: |$)", text, re.S)
    return found[1].strip() if found else None


def parts(text):
    """(line, name, text) of every part."""
    found = list(PART.finditer(text))
    for this, after in zip(found, found[1:] + [None]):
        yield text.count("\n", 0, this.start()) + 1, this[1], text[this.end():after.start() if after else len(text)]


def functions(part, line):
    """(line, comment right above, result, name, arguments) of every function."""
    for found in FUNCTION.finditer(part):
        before = part[:found.start()]
        above = re.search(r"/\*((?:(?!\*/).)*)\*/\n\Z", before, re.S)
        inner = source.without_comments(found[3])
        arguments = [" ".join(a.split()) for a in re.split(r",(?![^()]*\))", inner)]
        yield line + before.count("\n"), words(above[1]) if above else "", " ".join(found[1].split()), found[2], arguments


def rule_faults(name, thread, fails, statuses):
    if thread is not None and not thread.startswith(THREADS):
        yield f"{name}: Thread: {thread.split('.')[0]}: begins with none of: {', '.join(THREADS)}"
    if fails is None:
        return
    named = re.findall(r"\bWEIR_E_\w+", fails)
    if not named and not fails.startswith(("nothing else", "never")):
        yield f"{name}: Fails: names no status"
    for status in named:
        if status not in statuses:
            yield f"{name}: Fails: there is no {status}"


def argument_faults(name, result, arguments):
    names = [(re.search(r"\(\*(\w+)\)\(|(\w+)$", a) or [""])[0].strip("(*)") for a in arguments]
    for i, argument in enumerate(arguments):
        gives = re.search(r"\*\*\s*\w+$", argument) and not argument.startswith("const char **")
        if gives and names[i] != "out":
            yield f"{name}: '{argument}' comes out: call it out"
    if "out" in names and names[-1] != "out":
        yield f"{name}: out is not the last argument"
    if "room" in names and names[names.index("room") + 1:] != ["out"]:
        yield f"{name}: room stands right before out"


def name_faults(name, result, arguments):
    has_out = bool(re.search(r"\bout$", arguments[-1]))
    found = re.match(rf"weir_(?:{NOUNS})_(\w+?)(?:_|$)", name)
    first = found[1] if found else name.removeprefix("weir_")
    if name in VALUES or name in GETS_OUT:
        return
    if has_out and first not in MAKING:
        yield f"{name}: makes something without a verb ({', '.join(sorted(MAKING))})"
    if result not in ("void", "weir_status") and first in MAKING | DOING:
        yield f"{name}: returns a value, so a noun names it: no '{first}'"
    if first in MAKING - {"add", "explain"} and not has_out:
        yield f"{name}: '{first}' gives something: through out"
    if result == "weir_status" and first not in MAKING | DOING:
        yield f"{name}: no verb of the list: '{first}'"


def faults(text):
    statuses = set(re.findall(r"X\((WEIR_\w+),", text))
    for line, part, inside in parts(text):
        defaults = [words(c) for c in COMMENT.findall(inside) if re.search(r"\bDefault\. ", words(c))]
        default = defaults[0][defaults[0].index("Default. "):] if defaults else ""
        yield from (f"{line}: {f}" for f in rule_faults(part, rule(default, "Thread"), rule(default, "Fails"), statuses))
        for at, comment, result, name, arguments in functions(inside, line):
            thread, fails = rule(comment, "Thread"), rule(comment, "Fails")
            if thread is None and rule(default, "Thread") is None:
                yield f"{at}: {name}: no Thread: of its own, and '{part}' has no default"
            if fails is None and rule(default, "Fails") is None and result == "weir_status":
                yield f"{at}: {name}: no Fails: of its own, and '{part}' has no default"
            for found in (rule_faults(name, thread, fails, statuses), argument_faults(name, result, arguments),
                          name_faults(name, result, arguments)):
                yield from (f"{at}: {f}" for f in found)


def main(root):
    text = (pathlib.Path(root) / "include/weir.h").read_text()
    declared = len(re.findall(r"^WEIR_API\b(?! const weir_plugin)", text, re.M))
    seen = sum(len(list(functions(inside, line))) for line, _, inside in parts(text))
    found = [f"include/weir.h:{f}" for f in faults(text)]
    if seen != declared or not seen:
        found.append(f"include/weir.h: {declared} functions are declared, {seen} of them in a part")
    source.verdict(found, f"{seen} functions: a thread rule, failures, results last, a fitting name")


main(sys.argv[1])
