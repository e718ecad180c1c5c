/* multi_message_available, expiring_message_available: compared with a reference in all states of the ports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conditions/conditions.h"
#include "tests/conditions/rig.h"

enum { MOST = 4, TIMEOUT = 100 };

struct state {
	size_t counts[2];
	bool closed[2];
	int64_t now;
};

/* What the rule says before any tick of a run that began at 0, as one reads it. */
static enum answer reference(const struct state *s, size_t sum, const size_t *sizes, int64_t timeout)
{
	size_t all = s->counts[0] + s->counts[1];
	bool closed = s->closed[0] && s->closed[1];
	bool met = sum ? all >= sum : s->counts[0] >= sizes[0] && s->counts[1] >= sizes[1];
	bool over = closed;

	for (int i = 0; !sum && i < 2; i++)
		over |= s->closed[i] && s->counts[i] < sizes[i];
	if (met)
		return READY;
	if (over)
		return all ? READY : NEVER;
	return timeout && all && s->now >= timeout ? READY : WAIT;
}

static void compare(const char *parameters, size_t sum, const size_t *sizes, int64_t timeout)
{
	struct rig rig = rig_of(&wr_multi_message_available, parameters);

	for (int i = 0; i < (MOST + 1) * (MOST + 1) * 8; i++) {
		struct state s = {{(size_t)(i / 8 % (MOST + 1)), (size_t)(i / 8 / (MOST + 1))},
				  {i & 1, i & 2},
				  i & 4 ? TIMEOUT : TIMEOUT - 1};
		enum answer expected = reference(&s, sum, sizes, timeout);

		for (int k = 0; k < 2; k++) {
			rig.view.ports[2 * k].count = s.counts[k];
			rig.view.ports[2 * k].closed = s.closed[k];
		}
		rig.view.now = s.now;
		assert_int_equal(rig_ask(&rig), expected);
		if (expected != WAIT)
			continue;
		assert_int_equal(rig.verdict.at, s.counts[0] + s.counts[1] ? timeout : 0);
		assert_int_equal(rig.verdict.cause, WEIR_CAUSE_MESSAGES);
		assert_true(rig.verdict.needed > rig.view.ports[rig.verdict.port].count);
		assert_false(rig.view.ports[rig.verdict.port].closed);
	}
}

static void c02_s05_all_states_of_a_sum(void **state)
{
	char text[80];

	(void)state;
	for (size_t sum = 1; sum <= MOST + 1; sum++)
		for (int64_t timeout = 0; timeout <= TIMEOUT; timeout += TIMEOUT) {
			snprintf(text, sizeof text, "ports=0,2 min_sum=%zu min_sizes= timeout=%d", sum,
				 (int)timeout);
			compare(text, sum, NULL, timeout);
		}
}

static void c02_s05_all_states_of_sizes(void **state)
{
	char text[80];

	(void)state;
	for (size_t i = 0; i < 9; i++)
		for (int64_t timeout = 0; timeout <= TIMEOUT; timeout += TIMEOUT) {
			size_t sizes[2] = {1 + i % 3, 1 + i / 3};

			snprintf(text, sizeof text, "ports=0,2 min_sum=0 min_sizes=%zu,%zu timeout=%d",
				 sizes[0], sizes[1], (int)timeout);
			compare(text, 0, sizes, timeout);
		}
}

static void c02_the_timeout_counts_from_the_last_tick(void **state)
{
	struct rig rig = rig_of(&wr_multi_message_available, "ports=0,2 min_sum=4 min_sizes= timeout=100");

	(void)state;
	rig.view.started = 1000;
	rig.view.now = 1099;
	rig.view.ports[0].count = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.at, 1100);
	rig.view.ports[0].count = 4;
	rig_tick(&rig);
	rig.view.ports[0].count = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.at, 1199);
	rig.view.now = 1199;
	rig_tick(&rig);
	rig.view.ports[0].count = 0;
	rig.view.now = 1299; /* with nothing it waits on */
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.at, 0);
}

/* The other port is open: what comes there for ever must not keep the entity alive. */
static void s05_an_input_that_ends_alone_is_flushed_and_ends_the_entity(void **state)
{
	struct rig rig = rig_of(&wr_multi_message_available, "ports=0,2 min_sum=0 min_sizes=2,2 timeout=0");
	int ticks = 0;

	(void)state;
	rig.view.ports[0].closed = true;
	rig.view.ports[0].count = 1;
	rig.view.ports[2].count = 3;
	for (; rig_ask(&rig) == READY && ticks < 9; ticks++) {
		rig_tick(&rig);
		rig.view.ports[0].count = 0;
	}
	assert_in_range(ticks, 1, 2);
	assert_int_equal(rig_ask(&rig), NEVER);
}

static void s05_what_is_left_when_all_are_closed_is_received_however_many_ticks_it_takes(void **state)
{
	struct rig rig = rig_of(&wr_multi_message_available, "ports=0,2 min_sum=0 min_sizes=2,2 timeout=0");

	(void)state;
	rig.view.ports[0].closed = rig.view.ports[2].closed = true;
	for (rig.view.ports[2].count = 7; rig.view.ports[2].count; rig.view.ports[2].count--)
		rig_tick(&rig);
	assert_int_equal(rig_ask(&rig), NEVER);
}

static void c01_an_unconnected_port_counts_for_nothing(void **state)
{
	struct rig rig = rig_of(&wr_multi_message_available, "ports=0,2 min_sum=0 min_sizes=1,1 timeout=0");

	(void)state;
	rig.view.ports[2].unconnected = true;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[0].count = 1;
	assert_int_equal(rig_ask(&rig), READY);
	rig.view.ports[0].count = 0;
	rig.view.ports[0].closed = true;
	assert_int_equal(rig_ask(&rig), NEVER);
}

static void c04_a_held_port_needs_no_message(void **state)
{
	struct rig rig = rig_of(&wr_multi_message_available, "ports=0,2 min_sum=2 min_sizes= timeout=0");
	struct rig one = rig_of(&wr_expiring_message_available, "port=1 max_batch=3 max_delay=100");

	(void)state;
	rig.view.ports[0] = (struct rig_port){.take = 0, .count = 5, .closed = true};
	rig.view.ports[2].count = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[2].count = 2;
	assert_int_equal(rig_ask(&rig), READY);
	rig.view.ports[2] = (struct rig_port){.take = 0, .closed = true};
	assert_int_equal(rig_ask(&rig), READY);
	one.view.ports[1] = (struct rig_port){.take = 0, .closed = true};
	assert_int_equal(rig_ask(&one), READY);
}

/* --- expiring_message_available --- */

static void c02_s05_all_states_of_a_batch_that_expires(void **state)
{
	struct rig rig = rig_of(&wr_expiring_message_available, "port=1 max_batch=3 max_delay=100");

	(void)state;
	for (int i = 0; i < (MOST + 1) * 2 * 3; i++) {
		size_t count = (size_t)(i % (MOST + 1));
		bool closed = i / (MOST + 1) % 2;
		int64_t now = 1099 + i / (MOST + 1) / 2;
		enum answer expected = count >= 3 || (count && (closed || now >= 1100)) ? READY
				       : closed                                         ? NEVER
											: WAIT;

		rig.view.ports[1] =
			(struct rig_port){.take = 1, .count = count, .closed = closed, .oldest = 1000};
		rig.view.now = now;
		assert_int_equal(rig_ask(&rig), expected);
		if (expected == WAIT)
			assert_int_equal(rig.verdict.at, count ? 1100 : 0);
	}
	rig.view.ports[1] = (struct rig_port){.take = 1, .unconnected = true};
	assert_int_equal(rig_ask(&rig), READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c02_s05_all_states_of_a_sum),
		cmocka_unit_test(c02_s05_all_states_of_sizes),
		cmocka_unit_test(c02_the_timeout_counts_from_the_last_tick),
		cmocka_unit_test(s05_an_input_that_ends_alone_is_flushed_and_ends_the_entity),
		cmocka_unit_test(
			s05_what_is_left_when_all_are_closed_is_received_however_many_ticks_it_takes),
		cmocka_unit_test(c01_an_unconnected_port_counts_for_nothing),
		cmocka_unit_test(c04_a_held_port_needs_no_message),
		cmocka_unit_test(c02_s05_all_states_of_a_batch_that_expires),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
