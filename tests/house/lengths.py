"""No function is longer than 60 lines; prints the median and the 90th percentile."""
import sys

import source

LONGEST = 60


def functions(path):
    """(first line, lines) of every function: from the opening to the closing brace at the margin."""
    start = None
    for number, line in enumerate(source.code(path).splitlines(), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start:
            yield start, number - start + 1
            start = None


def main(root):
    faults, lengths = [], []
    for room in source.MAY_USE:
        for path in source.files(root, room):
            for line, length in functions(path):
                lengths.append(length)
                if length > LONGEST:
                    faults.append(f"{path.relative_to(root)}:{line}: a function of {length} lines; {LONGEST} is the most")
    lengths.sort()
    at = lambda share: lengths[int(share * (len(lengths) - 1))] if lengths else 0
    source.verdict(faults, f"{len(lengths)} functions: median {at(0.5)} lines, 90th percentile {at(0.9)}, longest {at(1)}")


main(sys.argv[1])
