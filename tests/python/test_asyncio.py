"""The ends in asyncio: push_async, take_async, async for."""

import asyncio
import gc
import os
import time

import pytest

import weir


@weir.operator
class Ticks:
    outputs = ["out"]

    def compute(self, ctx):
        ctx.emit("out", ctx.tick)


def test_async_with_async_for_and_take_async():
    async def serve():
        graph = weir.Graph({"weir": 1, "entities": [{"name": "e", "operator": "Ticks"}]})
        outlet = graph.outlet("e.out")
        async with graph.start(backend="host"):
            first = await outlet.take_async()
            async for message in outlet:
                if message.object == 5:
                    break
        assert not graph.running
        async with graph:
            graph.start(backend="host")
            graph.stop(drain=False)
            await graph.wait_async()
            with pytest.raises(weir.Closed):
                await outlet.take_async()
        with pytest.raises(weir.Error, match="was not started"):
            graph.counts()
        return first.object, message.object

    assert asyncio.run(asyncio.wait_for(serve(), 20)) == (0, 5)


def test_push_async_is_woken_and_does_not_poll():
    async def stalled():
        graph = weir.Graph({"weir": 1, "entities": [{"name": "c", "operator": "Collect", "conditions": [{"type": "boolean"}]}]})
        inlet = graph.inlet("c.in")
        graph.start(backend="host", workers=1)
        graph.tell("c", "boolean", "wait")
        await inlet.push_async(0)
        calls, push = 0, inlet._inlet.try_push

        class Counted:
            fileno = inlet._inlet.fileno
            close = inlet._inlet.close

            def try_push(self, *arguments):
                nonlocal calls
                calls += 1
                return push(*arguments)

        inlet._inlet = Counted()
        pushing = [asyncio.create_task(inlet.push_async(i)) for i in (1, 2)]
        begun = -1
        while begun != calls:  # until both sleep
            begun = calls
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)
        before = calls
        graph.tell("c", "boolean", "ready")
        await asyncio.gather(*pushing)
        inlet.close()
        await graph.wait_async()
        seen = sorted(graph["c"].instance.seen)
        graph.close()
        return begun, before, seen

    begun, before, seen = asyncio.run(asyncio.wait_for(stalled(), 20))
    assert begun == before <= 2 * (3 + weir.ends.TURNS) and seen == [0, 1, 2]


def waits_noted(outlet):
    """The list to which each further try of the outlet adds how long it may wait."""
    waits, own = [], outlet._outlet

    class Noted:
        fileno, close = own.fileno, own.close

        def try_take(self, *wait):
            waits.extend(wait)
            return own.try_take(*wait)

    outlet._outlet = Noted()
    return waits


@pytest.mark.parametrize("take", ["take_async", "async for"])
def test_what_comes_seldom_is_slept_for(take):
    """After a brief wait that did not suffice there are pauses."""
    async def taken():
        graph, inlet, outlet = of_pass()
        graph.start(backend="host", workers=1)
        waits = waits_noted(outlet)
        messages = outlet.__aiter__()
        for i in range(40):
            taking = asyncio.ensure_future(outlet.take_async() if take == "take_async" else messages.__anext__())
            while not (outlet._watch and outlet._watch.waiting):  # for a time might be too short: then a turn takes the message
                await asyncio.sleep(0.001)
            await inlet.push_async(i)
            assert (await taking).object == i
        graph.close()
        return waits

    waits = asyncio.run(asyncio.wait_for(taken(), 20))
    waits = [wait for wait in waits if wait]
    assert 1 <= len(waits) <= 6 and max(waits) <= weir.ends.BRIEF


def test_a_loop_that_is_busy_is_not_held_up():
    async def turns():
        graph, inlet, outlet = of_pass()
        graph.start(backend="host", workers=1)
        waits = waits_noted(outlet)
        taking = asyncio.create_task(outlet.take_async())
        await asyncio.sleep(0)  # it has asked once
        until = time.perf_counter_ns() + 2 * weir.ends.BRIEF
        while time.perf_counter_ns() < until:
            pass
        while len(waits) < weir.ends.TURNS:  # not for a time: a message that comes before the last turn is taken by it
            await asyncio.sleep(0)
        await inlet.push_async(0)
        await taking
        graph.close()
        return waits

    waits = asyncio.run(asyncio.wait_for(turns(), 20))
    assert waits == [0] * weir.ends.TURNS


def test_an_end_of_a_simulated_run_does_not_execute_it():
    """A brief wait would."""
    async def asked():
        graph, inlet, outlet = of_pass()
        graph.start(backend="sim")
        begun = graph.now
        taking = asyncio.create_task(outlet.take_async())
        await asyncio.sleep(0.01)
        found = taking.done(), graph.now - begun
        taking.cancel()
        graph.close()
        return found

    assert asyncio.run(asyncio.wait_for(asked(), 20)) == (False, 0)


def test_a_value_that_waits_for_room_is_made_a_message_once():
    async def pushed(value):
        graph, inlet, outlet = of_pass()
        graph.start(backend="host", workers=1)
        for i in range(2):  # in the outlet, in the inlet
            await inlet.push_async(i)
        pushing = asyncio.create_task(inlet.push_async(value, stamp=(5, 6)))
        await asyncio.sleep(0.05)
        assert not pushing.done()
        value[:] = b"b"  # too late
        found = [await outlet.take_async() for _ in range(3)]
        await pushing
        graph.close()
        return bytes(found[-1]), found[-1].stamp

    assert asyncio.run(asyncio.wait_for(pushed(bytearray(b"a")), 20)) == (b"a", (5, 6))


def of_pass():
    graph = weir.Graph()
    entity = graph.add("pass")
    return graph, graph.inlet(entity), graph.outlet(entity)


def test_tasks_that_take_from_one_outlet_are_all_woken_and_lose_nothing():
    async def taken():
        graph, inlet, outlet = of_pass()
        graph.start(backend="host", workers=1)
        takers = [asyncio.create_task(outlet.take_async()) for _ in range(6)]
        await asyncio.sleep(0.02)
        takers[0].cancel()
        pushers = [asyncio.create_task(inlet.push_async(i)) for i in range(5)]
        await asyncio.gather(*pushers)
        found = sorted([(await taker).object for taker in takers[1:]])
        inlet.close()
        with pytest.raises(weir.Closed):
            await outlet.take_async()
        await graph.wait_async()
        graph.close()
        return found

    assert asyncio.run(asyncio.wait_for(taken(), 20)) == [0, 1, 2, 3, 4]


def test_an_outlet_serves_one_loop_after_another():
    graph, inlet, outlet = of_pass()
    graph.start(backend="host", workers=1)

    async def one(i):
        taking = asyncio.create_task(outlet.take_async())
        await asyncio.sleep(0)
        await inlet.push_async(i)
        return (await taking).object

    before = len(os.listdir("/proc/self/fd"))
    assert [asyncio.run(asyncio.wait_for(one(i), 20)) for i in range(4)] == [0, 1, 2, 3]
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 6  # a descriptor of each end, and those of its watch
    graph.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_many_messages_pass_through_asyncio_at_capacity_1():
    async def passed():
        graph, inlet, outlet = of_pass()
        async with graph.start(backend="host", workers=2):
            async def feed():
                for i in range(3000):
                    await inlet.push_async(i)
                inlet.close()

            feeding = asyncio.create_task(feed())
            seen = [message.object async for message in outlet]
            await feeding
        graph.close()
        return seen

    assert asyncio.run(asyncio.wait_for(passed(), 60)) == list(range(3000))


def test_push_async_is_woken_by_the_end_of_the_run():
    async def ended():
        graph = weir.Graph({"weir": 1, "entities": [{"name": "c", "operator": "Collect", "conditions": [{"type": "boolean"}]}]})
        inlet = graph.inlet("c.in")
        graph.start(backend="host", workers=1)
        graph.tell("c", "boolean", "wait")
        await inlet.push_async(0)
        pushing = asyncio.create_task(inlet.push_async(1))
        await asyncio.sleep(0.05)
        graph.stop(drain=False)
        with pytest.raises(weir.Closed):
            await pushing
        graph.close()

    asyncio.run(asyncio.wait_for(ended(), 20))
