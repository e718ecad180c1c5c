"""What a timeline shows is what the scheduler counted, exactly: ticks, READY, messages pushed, delivered, dropped.

conserved.py PROGRAM SEEDS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import chrome

AT_ONCE = 50  # seeds per process: their files take room


def check(program, folder, first, count):
    """Messages that were seen, and dropped."""
    subprocess.run([program, folder, str(first), str(count)], check=True)
    pushed = dropped = 0
    for seed in range(first, first + count):
        timeline = chrome.Timeline(folder / f"{seed}.json")
        counts = json.loads((folder / f"{seed}.counts").read_text())
        try:
            chrome.check_conserved(timeline, counts)
        except AssertionError as error:
            sys.exit(f"seed {seed}: {error}")
        pushed += sum(queue["pushed"] for queue in counts["queues"])
        dropped += sum(queue["dropped"] for queue in counts["queues"])
    return pushed, dropped


def main(program, seeds):
    pushed = dropped = 0
    for first in range(0, seeds, AT_ONCE):
        with tempfile.TemporaryDirectory() as folder:
            some = check(program, pathlib.Path(folder), first, min(AT_ONCE, seeds - first))
        pushed, dropped = pushed + some[0], dropped + some[1]
    print(f"{seeds} timelines: {pushed} messages, {dropped} of them dropped")
    assert pushed and dropped


main(sys.argv[1], int(sys.argv[2]))
