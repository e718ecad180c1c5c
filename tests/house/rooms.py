"""A room uses only the rooms below it; operators, plugins, remote/ and the examples use weir.h alone, the command also some headers of
base/, conditions a door of scheduler/."""
import sys

import source

READERS = ["plugins", "examples", "bench"]  # built separately; they may include files of their own folder
DOORS = ["scheduler/view.h"]  # includes weir.h alone, so that no room comes in behind it


def faults(root):
    for room, below in source.MAY_USE.items():
        for path in source.files(root, room):
            for line, kind, name in source.includes(path):
                other = source.room_of(name)
                place = f"{path.relative_to(root)}:{line}"
                if kind == '"' and name != "weir.h" and "/" not in name and room not in READERS:
                    yield f'{place}: "{name}": include from the top, "{room}/{name}"'
                elif other and other != room and other not in below and name not in below:
                    yield f"{place}: {room} must not use {name}"
                elif path.relative_to(root).as_posix() in DOORS and kind == '"' and name != "weir.h":
                    yield f"{place}: a door includes weir.h alone, not {name}"


source.verdict(list(faults(sys.argv[1])), "rooms use only what is below them")
