"""remote/: a receiver behind which nothing takes more tells its sender, so that processes before it end well.

enough.py WEIR FOLDER PLUGIN: as processes.py.
"""
import signal

import processes
from processes import Ended, SINK, address, beating, beside, chain, entity, listening, receive, send, start, wait_until


def r05_a_receiver_that_takes_no_more_drains_the_sender(weir):
    to = address()
    few = {**SINK, "conditions": [{"type": "count", "count": 10}, {"type": "message_available", "port": "in"}]}
    b = start(weir, "b", chain(receive(to), few))
    a = Ended(start(weir, "a", chain(beating(bytes=100), send(to))))
    assert a.code == 0 and "takes no more messages" in a.stderr + a.stdout, a
    b = Ended(b)
    assert b.code == 0 and b.counts("end")[0] == 10, b


def r05_a_receiver_that_takes_no_more_says_so_while_its_run_goes_on(weir):
    """Its sender hears it at once, not when the run ends or `keepalive` is over; and so does each that comes later."""
    to = address()
    few = {**SINK, "conditions": [{"type": "count", "count": 10}, {"type": "message_available", "port": "in"}]}
    b = start(weir, "b", beside(chain(receive(to, keepalive="0s"), few)))
    a = Ended(start(weir, "a", chain(beating(bytes=100), send(to, keepalive="0s"))))
    assert a.code == 0 and "takes no more messages" in a.stderr, a
    for _ in range(2):
        a = Ended(start(weir, "a", chain(beating(), send(to))))
        assert a.code == 0 and a.counts("send")[0] == 0 and "takes no more messages" in a.stderr, a
    b.send_signal(signal.SIGINT)
    b = Ended(b)
    assert b.code == 130 and b.counts("end")[0] == 10 and b.counts("receive")[1] >= 10, b


def r05_who_takes_no_more_before_its_sender_comes_tells_it_then(weir):
    to = address()
    any_of = [{"type": "message_available", "port": "in"}, {"type": "periodic", "period": "1ms"}]
    early = {**SINK, "conditions": [{"type": "count", "count": 1}, {"type": "any_of", "conditions": any_of}]}
    b = start(weir, "b", beside(chain(receive(to), early)))
    host, port = to.split(":")
    wait_until(b, lambda: (host, int(port)) in listening(b))
    a = Ended(start(weir, "a", chain(beating(), send(to))))
    assert a.code == 0 and a.counts("send")[0] == 0 and "takes no more messages" in a.stderr, a
    b.send_signal(signal.SIGINT)
    assert Ended(b).code == 130, b
    b = Ended(start(weir, "b", chain(receive(to), early)))  # holds no run open
    assert b.code == 0 and b.counts("receive")[1] == 0, b


def r05_that_the_last_process_takes_no_more_drains_all_before_it(weir):
    to, last = address(), address()
    c = start(weir, "c", chain(receive(last), {**SINK, "conditions": [{"type": "count", "count": 5}]}))
    b = start(weir, "b", chain(receive(to), send(last)))
    a = start(weir, "a", chain(beating(bytes=8), send(to)))
    a, b, c = Ended(a), Ended(b), Ended(c)
    assert (a.code, b.code, c.code) == (0, 0, 0) and c.counts("end")[0] == 5, (a, b, c)


def r05_a_cycle_of_two_processes_ends_where_one_takes_no_more(weir):
    for count in (2, 3, 10, 11, 12, 50, 51, 52, 500):
        there, back = address(), address()
        step = {**entity("step", "pass"), "conditions": [{"type": "count", "count": count}]}
        throws = {"weir": 1, "entities": [receive(back), step, send(there)],
                  "connections": [{"from": "receive.out", "to": "step.in", "initial_messages": 1}, ["step.out", "send.in"]]}
        b, a = start(weir, "b", chain(receive(there), send(back))), start(weir, "a", throws)
        a, b = Ended(a), Ended(b)
        assert (a.code, b.code) == (0, 0), (count, a, b)


def r05_a_run_that_sends_to_itself_ends(weir):
    """A cycle by way of the link, in one process: the one that takes no more ends, and drains the run."""
    to = address()
    step = {**entity("step", "pass"), "conditions": [{"type": "count", "count": 20}]}
    cycle = {"weir": 1, "entities": [receive(to), step, send(to)],
             "connections": [["receive.out", "step.in"], {"from": "step.out", "to": "send.in", "initial_messages": 1}]}
    a = Ended(start(weir, "a", cycle))
    assert a.code == 0 and a.counts("step")[0] == 20 and "takes no more messages" in a.stderr, a


if __name__ == "__main__":
    processes.process.main(
        [
            r05_a_receiver_that_takes_no_more_drains_the_sender,
            r05_a_receiver_that_takes_no_more_says_so_while_its_run_goes_on,
            r05_who_takes_no_more_before_its_sender_comes_tells_it_then,
            r05_that_the_last_process_takes_no_more_drains_all_before_it,
            r05_a_cycle_of_two_processes_ends_where_one_takes_no_more,
            r05_a_run_that_sends_to_itself_ends,
        ]
    )
