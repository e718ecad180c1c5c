"""
The memory order of every atomic operation is the one that tests/models/orders.txt states for its word.

orders.txt has a paragraph for each word, a struct's field or a variable:

    STRUCT.FIELD: MODEL or a reason
        OPERATION ORDER [in FUNCTION FUNCTION ...] [needs ORDER]

OPERATION is load, store or rmw; ORDER as in base/atomic.h. A line with functions is for these alone: a function that
is named for an operation of the word has no other order for it. `needs` is what the model requires; an order may be stronger.
A word without lines has only seq_cst operations. Every atomic word of the library has a paragraph, and every line an operation.

What a model requires stands at the access in its source, `/* order: WORD OPERATION ORDER */`; a paragraph names it by
`MODEL (WORD)`, and `needs` is the strongest of these lines. The access, on the line of the comment or the next, has that order
(RLX, ACQ, REL, ACQREL, SEQ), unless the comment ends with `, argued`: a step of a model that knows no orders, or a stronger one.
"""
import re
import sys

import source

# base/atomic.h and base/stack.h: what each operation does, and its order.
WORDS = {"base/atomic.h", "base/stack.h"}
OPERATIONS = {
    "wr_load": ("load", "seq_cst"), "wr_load_acquire": ("load", "acquire"), "wr_load_relaxed": ("load", "relaxed"),
    "wr_read": ("load", "relaxed"),
    "wr_store": ("store", "seq_cst"), "wr_store_release": ("store", "release"), "wr_store_relaxed": ("store", "relaxed"),
    "wr_note": ("store", "relaxed"), "wr_count": ("store", "relaxed"),
    "wr_stack_push": ("rmw", "seq_cst"),
    "wr_add_relaxed": ("rmw", "relaxed"), "wr_sub_acq_rel": ("rmw", "acq_rel"),
    **{f"wr_{name}": ("rmw", "seq_cst") for name in ("exchange", "cas", "fetch_add", "fetch_sub", "fetch_or", "fetch_and")},
}
CALL = re.compile(rf"\b({'|'.join(OPERATIONS)}|atomic_(?:load|store|exchange|compare_exchange|fetch)\w*)\s*\(")
STRENGTH = {"relaxed": 0, "acquire": 1, "release": 1, "acq_rel": 2, "seq_cst": 3}
TYPE = r"(?:struct \w+|(?:weir|wr)_\w+)"
ATOMIC = re.compile(r"_Atomic\b(?:\((?:[^()]|\([^()]*\))*\))?([^;]*);|\bwr_live ([^;()]*);")


def closing(text, start):
    """The place after the bracket that closes the one at start."""
    depth = 0
    for at in range(start, len(text)):
        depth += text[at] in "([{"
        depth -= text[at] in ")]}"
        if not depth:
            return at + 1
    return len(text)


def tag(name):
    """struct wr_queue and its typedef are one: wr_queue."""
    return name.removeprefix("struct ").strip()


def expanded(text):
    """Lists of members by an X-macro, `LIST(DECLARE)` within a struct, written out."""
    lists = {found[1]: re.findall(r"\bX\((\w+)\)", found[2])
             for found in re.finditer(r"#define (\w+)\(X\)((?:.*\\\n)*.*)", text)}
    for found in re.finditer(r"#define (\w+)\(name\) (_Atomic \w+) name;\n", text):
        for name, members in lists.items():
            text = re.sub(rf"\b{name}\({found[1]}\)", " ".join(f"{found[2]} {member};" for member in members), text)
        text = text.replace(found[0], "")
    return text


class Structs:
    """The structs of the library: their members' types, and their atomic members."""

    def __init__(self, texts):
        self.members, self.atomics, self.returns, self.typedefs = {}, {}, {}, {}
        for text in texts:
            for found in re.finditer(rf"\b({TYPE}) \*?(?:const )?\*?\s*(\w+)\s*\([^;{{]*\)\s*[;{{]", text):
                self.returns[found[2]] = tag(found[1])
        for text in map(expanded, texts):
            for found in re.finditer(r"\btypedef struct (\w+) (\w+);", text):
                self.typedefs[found[2]] = found[1]
            for found in re.finditer(r"\bstruct (\w+) \{|\}\s*(\w+)\s*;", text):
                if found[1]:
                    self.read(found[1], text[found.end():closing(text, found.end() - 1) - 1])

    def read(self, name, body):
        body = re.sub(r"\(\*\w+\)\([^;]*\)", "", body)  # functions: their parameters are no members
        for inner in re.finditer(r"\bstruct (\w*)\s*\{", body):  # a struct within: its members are its own
            end = closing(body, inner.end() - 1)
            after = re.match(r"\s*(\w+)", body[end:])
            inside = inner[1] or (f"{name}.{after[1]}" if after else name)
            if after:
                self.members.setdefault(name, {})[after[1]] = inside
            self.read(inside, body[inner.end():end - 1])
            body = body[:inner.start()] + " " * (end - inner.start()) + body[end:]
        for found in ATOMIC.finditer(body):
            for declared in (found[1] or found[2]).split(","):
                field = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", declared)
                if field:
                    self.atomics.setdefault(field[1], set()).add(name)
        for found in re.finditer(rf"\b({TYPE})\b([^;]*);", body):
            for declared in found[2].split(","):
                field = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", declared)
                if field:
                    self.members.setdefault(name, {})[field[1]] = tag(found[1])

    def type_of(self, chain, context):
        """The struct that an expression such as worker->scheduler->live or pages[i].streams lies in, without its last part."""
        chain = re.sub(r"\[[^\]]*\]", "", chain)
        cast = re.match(rf"\(?\(({TYPE}) \*\)\s*(?:\(void \*\))?\s*\(?\w+(?:\([^()]*\))?\)?", chain)
        call = re.match(r"(\w+)\((?:[^()]|\([^()]*\))*\)", chain)
        if cast:
            here, rest = tag(cast[1]), chain[cast.end():].lstrip(")")
        elif call:
            here, rest = self.returns.get(call[1]) or self.inner(call, chain), chain[call.end():]
        else:
            first = re.match(r"\(?(\w+)\)?", chain)
            here, rest = first and self.declared(first[1], context), chain[first.end():] if first else ""
        for part in re.findall(r"(?:->|\.)(\w+)", rest):
            here = self.members.get(self.typedefs.get(here, here), {}).get(part)
        return here

    def inner(self, call, chain):
        """wr_load(&x->y)->z: the type of the member y."""
        found = re.match(r"wr_\w+\(&?(.*)\)$", call[0])
        if not found or "->" not in found[1]:
            return None
        before, _, last = found[1].rpartition("->")
        return None if "," in before else self.members.get(last)

    def declared(self, name, context):
        found = re.findall(rf"\b({TYPE})\b(?=[^;(){{}}]*?\b{name}\b)", context)
        near = re.findall(rf"\b({TYPE}) (?:const )?\*?(?:const )?{name}\b", context)
        many = re.findall(rf"\b({TYPE}) [^;{{}}]*?,\s*\*?{name}\b\s*[,;=]", context)
        return tag((near or many or found or [""])[0]) or None


def functions(text):
    """(name, start, end) of each function."""
    for found in re.finditer(r"^[a-z_][^;{}#=]*?\b(\w+)\([^;{}]*\)\s*\n\{", text, re.M):
        yield found[1], found.start(), closing(text, found.end() - 1)


def word_of(argument, structs, context, function):
    """The word that an argument names, or None."""
    argument = re.sub(r"\s+", " ", argument.strip())
    if "?" in argument:
        argument = argument.rpartition(":")[2].strip()
    argument = re.sub(r"^\((?:const )?_Atomic[^)]*\)", "", argument)
    inner = re.fullmatch(r"(?:&?\*?)wr_load\w*\((&.*)\)", argument)  # what a pointer that is itself atomic points to
    if inner:
        return "*" + word_of(inner[1], structs, context, function)
    argument = re.sub(r"^[&*]\s*", "", argument)
    parts = re.match(r"(.*)(?:->|\.)(\w+)(?:\[.*\])?$", argument)
    if not parts:
        return re.sub(r"\[.*\]", "", argument)
    homes = structs.atomics.get(parts[2], set())
    if len(homes) == 1:
        return f"{next(iter(homes))}.{parts[2]}"
    home = structs.type_of(parts[1], context)
    home = structs.typedefs.get(home, home)
    return f"{home}.{parts[2]}"


def done(call, arguments):
    """What a call does, and in which order; base/memory.c has some of C11's own."""
    if call in OPERATIONS:
        return OPERATIONS[call]
    what = call.split("_")[1]
    return what if what in ("load", "store") else "rmw", (re.findall(r"memory_order_(\w+)", arguments) or ["seq_cst"])[0]


def operations(root):
    """(word, what, order, function, place) of each operation in the library."""
    texts = {path: source.code(path) for room in source.LIBRARY for path in source.files(root, room)
             if path.relative_to(root).as_posix() not in WORDS}
    structs = Structs(texts.values())
    found = []
    for path, text in texts.items():
        spans = list(functions(text))
        for call in CALL.finditer(text):
            name, start, end = next((f for f in spans if f[1] <= call.start() < f[2]), ("", 0, 0))
            inside = text[call.end():closing(text, call.end() - 1) - 1]
            depth, at = 0, 0
            while at < len(inside) and (depth or inside[at] != ","):
                depth += inside[at] in "([{"
                depth -= inside[at] in ")]}"
                at += 1
            word = word_of(inside[:at], structs, text[start:end], name)
            place = f"{path.relative_to(root).as_posix()}:{text.count(chr(10), 0, call.start()) + 1}"
            found.append((word, *done(call[1], inside), name, place))
    return found, structs


LINE = re.compile(r"\t(load|store|rmw) (\w+)(?: in ([\w ]+?))?(?: needs (\w+))?$")


class Word:
    def __init__(self, place, why):
        self.place, self.why, self.lines = place, why, []

    def allowed(self, what, order, function):
        """The line that lets this function do this, or None."""
        if not self.lines:
            return self if order == "seq_cst" else None
        mine = [line for line in self.lines if line["what"] == what]
        named = [line for line in mine if function in line["in"]]
        return next((line for line in named or mine if line["order"] == order and (named or not line["in"])), None)


def table(path):
    """The words of orders.txt, and what is wrong with its form."""
    words, wrong, word = {}, [], None
    for number, text in enumerate(path.read_text().splitlines(), 1):
        place = f"{path.name}:{number}"
        if not text.strip() or text.startswith("#"):
            continue
        if not text.startswith("\t"):
            names, _, why = text.partition(": ")
            word = Word(place, why)
            wrong += [f"{place}: {name} is stated twice" for name in names.split() if name in words]
            wrong += [] if why else [f"{place}: {names} has no model and no reason"]
            words.update((name, word) for name in names.split())
            continue
        line = LINE.match(text)
        if not line or not word or line[2] not in STRENGTH or (line[4] or "relaxed") not in STRENGTH:
            wrong.append(f"{place}: not a line: {text.strip()}")
            continue
        word.lines.append({"place": place, "what": line[1], "order": line[2], "in": (line[3] or "").split(), "needs": line[4]})
        if line[4] and STRENGTH[line[4]] > STRENGTH[line[2]] or {line[2], line[4]} == {"acquire", "release"}:
            wrong.append(f"{place}: the model needs {line[4]}, the code has {line[2]}")
    return words, wrong


MODEL_LINE = re.compile(r"/\* order: (\w+) (load|store|rmw) (\w+)(, argued)? \*/")
SPELLED = {"relaxed": "RLX", "acquire": "ACQ", "release": "REL", "acq_rel": "ACQREL", "seq_cst": "SEQ"}
NAMED = re.compile(r"\b(m\d+_\w+)(?: \((\w+))?")


class Needs:
    """What the models require: {(model, word, operation): {order: place}}."""

    def __init__(self, models):
        self.lines, self.wrong, self.used = {}, [], set()
        for path in sorted(models.glob("m*.c")):
            self.read(path, path.read_text().splitlines())

    def read(self, path, lines):
        text = "\n".join(lines)
        for number, line in enumerate(lines, 1):
            place = f"{path.name}:{number}"
            found = MODEL_LINE.findall(line)
            if line.count("/* order:") != len(found):
                self.wrong.append(f"{place}: not `/* order: WORD OPERATION ORDER */`")
            access = MODEL_LINE.sub("", line) + "\n" + "".join(lines[number:number + 1])
            for word, what, order, argued in found:
                if order not in SPELLED or not re.search(rf"\b{word}\b", MODEL_LINE.sub("", text)):
                    self.wrong.append(f"{place}: {word} or {order} is not of this model")
                elif not argued and not re.search(rf"\b{SPELLED[order]}\b", access):
                    self.wrong.append(f"{place}: the access of {word} does not have the order {SPELLED[order]}")
                self.lines.setdefault((path.stem, word, what), {})[order] = place

    def strongest(self, why, what):
        """The order that the models and words that a paragraph names require for an operation, or None."""
        keys = [(model, word, what) for model, word in NAMED.findall(why) if (model, word, what) in self.lines]
        self.used.update(keys)
        orders = {order for key in keys for order in self.lines[key]}
        if {"acquire", "release"} <= orders:
            orders.add("acq_rel")
        return max(orders, key=STRENGTH.get) if orders else None

    def compare(self, words):
        for word in {id(word): word for word in words.values()}.values():
            for line in word.lines:
                strongest = line["needs"] and self.strongest(word.why, line["what"])
                if strongest != line["needs"]:
                    yield f"{line['place']}: needs {line['needs']}, its models say {strongest}"
        for key in sorted(set(self.lines) - self.used):
            yield f"{min(self.lines[key].values())}: no `needs` of orders.txt is {key[2]} of {key[0]} ({key[1]})"


def main(root):
    root = source.pathlib.Path(root)
    models = root / "tests/models"
    words, faults = table(models / "orders.txt")
    needs = Needs(models)
    faults += needs.wrong + [*needs.compare(words)]
    found, structs = operations(root)
    used = set()
    for word, what, order, function, place in found:
        if word not in words:
            faults.append(f"{place}: {function} does an atomic {what} of {word}, which tests/models/orders.txt does not state")
            continue
        line = words[word].allowed(what, order, function)
        used.add(word)
        if line is None:
            faults.append(f"{place}: {function} does a {what} of {word} with order {order}: not what {words[word].place} states")
        elif line is not words[word]:
            used.update([line["place"], *((line["place"], function) for _ in line["in"][:1])])
    declared = {f"{struct}.{field}" for field, homes in structs.atomics.items() for struct in homes}
    for name, word in words.items():
        if name not in used and (name not in declared or not any(words[other] is word for other in used & set(words))):
            faults.append(f"{word.place}: no operation on {name}")
        for model in re.findall(r"\bm\d+_\w+", word.why):
            if not (models / f"{model}.c").exists():
                faults.append(f"{word.place}: no model {model}.c")
    for line in {id(line): line for word in words.values() for line in word.lines}.values():
        if line["place"] not in used:
            faults.append(f"{line['place']}: no such operation")
        faults += [f"{line['place']}: {function} does not do this" for function in line["in"]
                   if (line["place"], function) not in used and line["place"] in used]
    faults += [f"{name}: an atomic field without an operation that is stated" for name in sorted(declared - set(words))]
    source.verdict(faults, f"{len(found)} atomic operations on {len(words)} words have the order that is stated")


if __name__ == "__main__":
    main(sys.argv[1])
