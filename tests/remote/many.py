"""remote/: rows of two, three and eight processes, and eight around one; what arrives is what was sent, in order.

many.py WEIR FOLDER PLUGIN [--long]: FOLDER is scratch; the engine's transports are those of UCX_TLS. --long: ten million messages between
two processes, a million through eight, and a receiver that is slow for a minute.
"""
import array
import signal
import struct
import time

import processes
from processes import LONG, Ended, address, beating, chain, entity, frames, receive, resident, send, start, wait_until

PROCESSES = 8
ROW = 1800 if LONG else processes.process.LIMIT  # seconds for a row


def numbered(name, count, bytes):
    """A file of that many frames, each of which begins with its number."""
    path = processes.FOLDER / name
    if bytes == 8:
        path.write_bytes(array.array("Q", range(count)).tobytes())
    else:
        path.write_bytes(b"".join(struct.pack("<Q", number) + bytes_of(number, bytes - 8) for number in range(count)))
    return path


def bytes_of(number, count):
    return bytes([number % 251]) * count


def read(path, bytes):
    return entity("read", "frames_read", path=str(path), bytes=bytes)


def write(path):
    path.unlink(missing_ok=True)
    return entity("write", "frames_write", path=str(path))


def row_is_conserved(weir, length, count, size):
    raw, copy = numbered("raw", count, size), processes.FOLDER / "copy"
    ways = [address() for _ in range(length - 1)]
    row = [start(weir, "0", chain(read(raw, size), send(ways[0])))]
    for n in range(1, length - 1):
        row.append(start(weir, str(n), chain(receive(ways[n - 1], credits=64), send(ways[n]))))
    row.append(start(weir, "last", chain(receive(ways[-1], credits=64), write(copy))))
    began = time.monotonic()
    for ended in [Ended(child, ROW) for child in row]:
        assert ended.code == 0 and not ended.stderr, ended
    assert copy.read_bytes() == raw.read_bytes()
    print(f"{count} messages of {size} bytes through {length} processes in {time.monotonic() - began:.1f} s")


def e05_r01_r02_two_processes(weir):
    row_is_conserved(weir, 2, *((10000000, 8) if LONG else (20000, 8)))


def e05_r01_r02_three_processes_in_a_row(weir):
    row_is_conserved(weir, 3, 5000, 1000)


def e05_r01_r02_eight_processes_in_a_row(weir):
    row_is_conserved(weir, PROCESSES, *((1000000, 8) if LONG else (5000, 1000)))


def e05_r01_r02_seven_processes_around_one(weir):
    """Each sends to an entity of its own."""
    ways = [address() for _ in range(PROCESSES - 1)]
    raws = [numbered(f"raw{n}", 2000, 500 + 8 * n) for n in range(len(ways))]
    copies = [processes.FOLDER / f"copy{n}" for n in range(len(ways))]
    graph = {"weir": 1, "entities": [], "connections": []}
    for n, way in enumerate(ways):
        graph["entities"] += [receive(way, name=f"receive{n}"), {**write(copies[n]), "name": f"write{n}"}]
        graph["connections"].append([f"receive{n}.out", f"write{n}.in"])
    children = [start(weir, "hub", graph)]
    for n, way in enumerate(ways):
        children.append(start(weir, str(n), chain(read(raws[n], 500 + 8 * n), send(way))))
    for ended in [Ended(child) for child in children]:
        assert ended.code == 0 and not ended.stderr, ended
    for raw, copy in zip(raws, copies):
        assert copy.read_bytes() == raw.read_bytes(), copy


def r01_a_receiver_that_is_slow_for_long_costs_the_sender_no_memory(weir):
    """A frame of 1 MB each 200 ms, from a source that would send 500 a second."""
    to, (end, seen) = address(), processes.slow("200ms")
    b = start(weir, "b", chain(receive(to, max_message=1000000), end))
    a = start(weir, "a", chain(beating(bytes=1000000), send(to)))
    wait_until(b, lambda: frames(seen) > 10000000)
    first, most, until = resident(a), 0, time.monotonic() + (60 if LONG else 3)
    while time.monotonic() < until:
        most = max(most, resident(a))
        time.sleep(0.2)
    print(f"resident: {first >> 10} KiB, then at most {most >> 10} KiB")
    assert most - first < 4 << 20, (first, most)
    a.send_signal(signal.SIGINT)
    a, b = Ended(a), Ended(b)
    seen.unlink()
    assert (a.code, b.code) == (130, 0) and a.counts("send")[0] == b.counts("end")[0], (a, b)


if __name__ == "__main__":
    processes.process.main(
        [
            e05_r01_r02_two_processes,
            e05_r01_r02_three_processes_in_a_row,
            e05_r01_r02_eight_processes_in_a_row,
            e05_r01_r02_seven_processes_around_one,
            r01_a_receiver_that_is_slow_for_long_costs_the_sender_no_memory,
        ]
    )
