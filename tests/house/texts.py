"""Texts are for people: no product code compares or searches one. What code acts on is a value: a cause, a status, a name.

    texts.py ROOT

In C and C++: a call of a function of COMPARES, or of one of the file's own that hands a parameter to one, with an argument that
is a text for people (PEOPLE), or a variable that got one in the lines before. In JavaScript and Python: a comparison of, or a
search in, such a text. Names (of kinds, ports, entities, options) and words of a file's format are values.
"""
import re
import sys

import source

COMPARES = re.compile(r"\b(?:str(?:n|case|ncase)?cmp|strcasestr|strstr|strchr|strrchr|strspn|strcspn|strpbrk|memcmp|memmem|cli_slice_is)\(")
PEOPLE = re.compile(
    r"\b(?:why|why_of|detail|reason|waiting|where|ending|said|help|misuse|failure|verdict|weir_last_error(?:_text)?|wr_error_text"
    r"|weir_status_text|weir_cause_text|weir_scheduler_where|wr_system_where|wr_says_text)\b|\b(?:outcome|error|diagnostic|finding)(?:->|\.)text\b"
)
FUNCTION = re.compile(r"^static [\w *]+?\b(\w+)\(([^)]*)\)\n\{\n(.*?)^\}", re.M | re.S)
GOT = re.compile(r"\b(\w+) = ([^;,]*)[;,]")
NEAR = 1500  # characters: of a function
FIELD = r"\b(?:why|detail|reason|waiting|where|ending|said|verdict|outcome\.text|error\.text|finding\.text)\b(?:\s*\|\|\s*\"\"\))?"
SEARCHED = [
    re.compile(FIELD + r"\s*(?:[!=]==?\s*['\"`]|\.(?:includes|startsWith|endsWith|indexOf|match|search|split)\()"),
    re.compile(r"/\.(?:test|exec)\([^)]*" + FIELD),
    re.compile(FIELD + r"\s*(?:[!=]=\s*f?['\"]|\.(?:startswith|endswith|removeprefix|removesuffix|find|index|split|partition)\()"),
    re.compile(r"['\"] (?:not )?in (?:\w+\.)*" + FIELD),
    re.compile(r"\bstr\(\w*(?:error|exception|failure)\w*\)\.(?:startswith|endswith|removeprefix|find|index|split|partition)\("),
]
# Files that may, and why.
MAY = {
    "scheduler/replay.c": "one line is not logged twice",
    "graphs/plugin.c": "the text is the linker's, and what is cut off is the path that it was given",
}


def arguments(text, at):
    """The text between the parenthesis that ends before `at` and the one that closes it."""
    depth, end = 1, at
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at : end - 1]


def comparers(text):
    """COMPARES, and the functions of the file that hand a parameter to one of them."""
    own = []
    for name, parameters, body in FUNCTION.findall(text):
        names = re.findall(r"(\w+)(?:,|$)", parameters)
        calls = [arguments(body, call.end()) for call in COMPARES.finditer(body)]
        if any(re.search(rf"\b{word}\b", call) for word in names for call in calls if "char" in parameters):
            own.append(name)
    return re.compile("|".join([COMPARES.pattern, *(rf"\b{name}\(" for name in own)]))


def is_text(text, call, at):
    """What in the arguments of a call is a text for people, directly or by a variable; None: nothing."""
    found = PEOPLE.search(call)
    if found:
        return found[0]
    before = text[max(0, at - NEAR) : at].rsplit("\n}\n", 1)[-1]
    got = {name for name, value in GOT.findall(before) if PEOPLE.search(value)}
    return next((name for name in re.findall(r"\b\w+\b", call) if name in got), None)


def of_c(root):
    for room in source.MAY_USE:
        if room in ("examples", "bench"):
            continue
        for path in source.files(root, room):
            text = source.code(path)
            for call in comparers(text).finditer(text):
                found = is_text(text, arguments(text, call.end()), call.start())
                if found:
                    yield path.relative_to(root).as_posix(), text.count("\n", 0, call.start()) + 1, found


def of_scripts(root):
    for path in sorted([*root.glob("cli/page/*.js"), *root.glob("python/weir/*.py")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern in SEARCHED:
                found = pattern.search(line)
                if found:
                    yield path.relative_to(root).as_posix(), number, found[0]
                    break


def faults(root):
    used = set()
    for name, line, text in [*of_c(root), *of_scripts(root)]:
        used.add(name)
        if name not in MAY:
            yield f"{name}:{line}: compares '{text}', a text for people: let it be a value (weir_cause, a status, an entity)"
    for name in MAY:
        if name not in used and (root / name).exists():
            yield f"tests/house/texts.py: {name} need not be listed"


source.verdict(list(faults(source.pathlib.Path(sys.argv[1]))), f"no code compares a text for people, but in {len(MAY)} files")
