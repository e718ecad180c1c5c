"""Replay on a GPU: what it costs, alternating keys, captures beside the work of others, what a capture refuses, and
a fault in a replayed kernel. replay.c describes the parts. The cost is printed; the test fails if a replayed tick
costs 3 us more than the launch by hand (which itself varies by 2 us), or is less than 5 times cheaper than enqueueing.
"""
import json

import acceptance

KEYS = 16  # 4 x 4 addresses


def part(given, name, ticks, limit=60, fails=False, env=None):
    ended = acceptance.run([given.program("replay"), name, ticks], limit, env)
    assert (ended.returncode != 0) == fails, (ended.returncode, ended.stdout, ended.stderr)
    return json.loads(ended.stdout.splitlines()[-1])


def t13_a_replayed_tick_costs_little_more_than_a_launch_by_hand(given):
    came = part(given, "cost", 20000)
    raw, replayed, enqueued = came["raw_ns"], came["replayed_ns"], came["enqueued_ns"]
    acceptance.report(
        f"replay of 10 empty kernels: {replayed / 1e3:.2f} us a tick, cudaGraphLaunch and cudaEventRecord by hand "
        f"{raw / 1e3:.2f} us, enqueued {enqueued / 1e3:.2f} us ({enqueued / replayed:.1f} x)"
    )
    assert replayed < raw + 3000 and enqueued > 5 * replayed, came


def t13_alternating_keys_are_captured_once(given):
    came = part(given, "keys", given.ticks)
    assert came["captures"] == KEYS and came["hits"] == given.ticks - 2 * KEYS, came
    assert came["failures"] == came["evictions"] == came["wrong"] == 0 and came["checked"] == given.ticks, came


def t13_keys_that_are_evicted_are_captured_again(given):
    rounds = 125  # each of 16 ticks: four keys warm up, are captured, and replayed twice
    came = part(given, "evicted", 16 * rounds)
    assert came["captures"] == 4 * rounds and came["hits"] == 8 * rounds, came
    assert came["evictions"] == 4 * rounds - 8, came
    assert came["failures"] == came["wrong"] == 0 and came["checked"] == 16 * rounds, came


def t13_runs_with_captures_and_launches_in_flight_may_be_stopped(given):
    came = part(given, "stops", 20)
    assert came["wrong"] == 0 and came["checked"] > 0, came


def t13_captures_and_other_threads_do_not_disturb_each_other(given):
    ticks = 2 * int(given.captures)
    came = part(given, "captures", ticks, limit=300)
    acceptance.report(f"{came['captures']} captures beside the work of others in {came['seconds']:.1f} s")
    assert came["captures"] == ticks // 2 and came["failures"] == came["wrong"] == 0 and came["checked"] == ticks, came


def t13_what_a_capture_refuses_is_enqueued(given):
    came = part(given, "refused", 200)
    assert came["wrong"] == 0 and came["checked"] == 200, came
    assert came["failures"] > 0 and came["refused"] > 0 and came["hits"] == 0, came
    assert came["captured"] == 200 // 8, came


def t13_a_key_without_the_addresses_is_found(given):
    wrong = part(given, "forgets", 1000)
    assert wrong["wrong"] > 800 and wrong["failures"] == 0, wrong
    came = part(given, "forgets", 1000, env=acceptance.environment(WEIR_DEBUG_REPLAY="1"))
    acceptance.report(f"a key without the addresses: {came['wrong']} wrong results, then: {came['said']}")
    assert came["failures"] == 2 and came["wrong"] < 200 and came["checked"] == 1000, came
    assert came["said"].startswith("a:") and "parameter" in came["said"], came


def f60_t13_a_fault_in_a_replayed_kernel_ends_the_run_and_names_the_entity(given):
    came = part(given, "fault", 100000, fails=True)
    acceptance.report(f"a fault in a replayed kernel ended the run after {came['seconds']:.2f} s: {came['text']}")
    assert came["status"] == "device failed" and came["seconds"] < 2 and "'a'" in came["text"], came


given = acceptance.arguments(captures=10000, ticks=20000, cost=1)  # --cost 0: on the fake, which is no device
acceptance.main(
    [t13_a_replayed_tick_costs_little_more_than_a_launch_by_hand] * given.cost
    + [
        t13_alternating_keys_are_captured_once,
        t13_keys_that_are_evicted_are_captured_again,
        t13_runs_with_captures_and_launches_in_flight_may_be_stopped,
        t13_captures_and_other_threads_do_not_disturb_each_other,
        t13_what_a_capture_refuses_is_enqueued,
        t13_a_key_without_the_addresses_is_found,
        f60_t13_a_fault_in_a_replayed_kernel_ends_the_run_and_names_the_entity,
    ],
    given,
)
