/* Stamps travel with the data; how old messages are where nothing follows (T10). */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

enum { SHARED = 40 };

static weir_stamp stamp_of(int64_t time, uint64_t tag)
{
	return (weir_stamp){time, tag};
}

static void note_stamp(struct rig *rig, weir_context *context, weir_stamp stamp)
{
	char text[64];

	snprintf(text, sizeof text, "%lld:%llu", (long long)stamp.time, (unsigned long long)stamp.tag);
	rig_note(rig, context, text);
}

/* The stamp of each message received, input by input. */
static weir_status note_stamps(struct rig *rig, weir_context *context)
{
	for (unsigned input = 0; input < 2; input++)
		for (size_t i = 0; i < weir_context_count(context, input); i++)
			note_stamp(rig, context, weir_message_stamp(weir_context_message(context, input, i)));
	return WEIR_OK;
}

/* --- what a tick emits --- */

/* Tick 0: none. Tick 1: of the message. Tick 2: of the tick, which the message's own stamp wins over. */
static weir_status emit_stamped(struct rig *rig, weir_context *context)
{
	weir_message *first = rig_number(context, rig_tick(context)), *second = rig_number(context, 9);

	if (rig_tick(context) == 1)
		HOLDS(rig, !weir_message_set_stamp(first, stamp_of(1, 10)));
	if (rig_tick(context) == 2) {
		HOLDS(rig, !weir_message_set_stamp(first, stamp_of(2, 20)));
		HOLDS(rig, !weir_context_set_stamp(context, stamp_of(3, 30)));
	}
	if (rig_tick(context) == 2)
		weir_context_finish(context);
	weir_context_emit(context, 0, first);
	return weir_context_emit(context, 1, second);
}

static void explicit_stamps(void)
{
	struct rig *rig = rig_of("a:call -> b:call; a.out2 -> c:call");

	rig_on(rig, "a", emit_stamped);
	rig_on(rig, "b", note_stamps);
	rig_on(rig, "c", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "0:0 1:10 2:20");
	assert_string_equal(rig_text(rig, "c"), "0:0 0:0 3:30");
	rig_destroy(rig);
}

static void t10_a_stamp_of_the_message_wins_over_that_of_the_tick(void **state)
{
	(void)state;
	rig_everywhere(explicit_stamps);
}

static weir_status emit_tagged(struct rig *rig, weir_context *context)
{
	bool second = !strcmp(weir_entity_name(weir_context_entity(context)), "b");

	HOLDS(rig,
	      !weir_context_set_stamp(context, stamp_of(5, (second ? 100 : 0) + weir_context_tick(context))));
	return weir_context_emit(context, 0, rig_number(context, rig_tick(context)));
}

/* One message made here, one passed on from input 1, and device work that makes a third. */
static weir_status emit_made_and_passed(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	HOLDS(rig, stream);
	HOLDS(rig, !rig_emit_sum(context, 0, stream, 1, MS));
	return weir_context_emit(context, 1, weir_message_ref(weir_context_message(context, 1, 0)));
}

static void inherited_stamps(void)
{
	struct rig *rig =
		rig_of("a:call count=3 -> m:call -> p:pass work=1ms -> x:call; b:call count=3 -> m.in2; "
		       "m.out2 -> y:call");

	rig_on(rig, "a", emit_tagged);
	rig_on(rig, "b", emit_tagged);
	rig_on(rig, "m", emit_made_and_passed);
	rig_on(rig, "x", note_stamps);
	rig_on(rig, "y", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "x"), "5:0 5:1 5:2"); /* of m's first input */
	assert_string_equal(rig_text(rig, "y"), "5:100 5:101 5:102");
	rig_destroy(rig);
}

static void
t10_what_a_tick_makes_gets_the_stamp_of_its_first_input_and_what_it_passes_on_keeps_its(void **state)
{
	(void)state;
	rig_everywhere(inherited_stamps);
}

/* `m` receives at in2 alone in its ticks that in has nothing for: the first input that received any. */
static weir_status emit_one(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_emit(context, 0, rig_number(context, rig_tick(context)));
}

static void second_input_alone(void)
{
	struct rig *rig = rig_of("m:call -> x:call; b:call count=2 -> m.in2");

	rig_on(rig, "b", emit_tagged);
	rig_on(rig, "m", emit_one);
	rig_on(rig, "x", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "x"), "5:100 5:101");
	rig_destroy(rig);
}

static void t10_the_first_input_is_the_first_that_received_any(void **state)
{
	(void)state;
	rig_everywhere(second_input_alone);
}

/* An unstamped message that others hold stays as it is, also where the tick has a stamp. */
static weir_status stamp_what_is_passed_on(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, !weir_context_set_stamp(context, stamp_of(1, 1)));
	rig_refused(rig, weir_message_set_stamp(message, stamp_of(2, 2)), WEIR_E_INVALID,
		    "call weir_message_set_stamp on a message before it is pushed or emitted");
	return weir_context_emit(context, 0, weir_message_ref(message));
}

static void delivered_stamps(void)
{
	struct rig *rig =
		rig_of("source ticks=3 -> p:call capacity=3 -> x:call; source -> y:call capacity=3");

	rig_on(rig, "p", stamp_what_is_passed_on);
	rig_on(rig, "x", note_stamps);
	rig_on(rig, "y", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "x"), "0:0 0:0 0:0");
	assert_string_equal(rig_text(rig, "y"), "0:0 0:0 0:0");
	rig_destroy(rig);
}

static void t10_a_stamp_never_changes_on_a_delivered_message(void **state)
{
	(void)state;
	rig_everywhere(delivered_stamps);
}

static weir_status outside_of_compute;

static weir_status set_in_start(struct rig *rig, weir_context *context)
{
	(void)rig;
	outside_of_compute = weir_context_set_stamp(context, stamp_of(7, 7));
	return WEIR_OK;
}

/* Fails once in a run; its stamp must not reach the next run's first tick. */
static weir_status set_and_fail(struct rig *rig, weir_context *context)
{
	if (rig_text(rig, "b")[0])
		return weir_context_emit(context, 0, rig_number(context, 1));
	rig_note(rig, context, "failed");
	HOLDS(rig, !weir_context_set_stamp(context, stamp_of(8, 8)));
	rig_note(rig, context, "failed");
	snprintf(rig_entity(rig, "b")->text, 4, "-");
	return weir_context_fail(context, "once");
}

static void t10_a_stamp_is_of_one_tick(void **state)
{
	struct rig *rig = rig_of("a:call count=1 -> b:call");

	(void)state;
	rig_entity(rig, "a")->start = set_in_start;
	rig_on(rig, "a", set_and_fail);
	rig_on(rig, "b", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_int_equal(outside_of_compute, WEIR_E_INVALID);
	rig_entity(rig, "b")->length = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "0:0");
	rig_destroy(rig);
}

static weir_status set_in_the_first(struct rig *rig, weir_context *context)
{
	if (!rig_tick(context))
		HOLDS(rig, !weir_context_set_stamp(context, stamp_of(5, 7)));
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static void t10_a_later_tick_has_no_stamp_of_an_earlier_one(void **state)
{
	struct rig *rig = rig_of("a:call count=3 -> b:call");

	(void)state;
	rig_on(rig, "a", set_in_the_first);
	rig_on(rig, "b", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "5:7 0:0 0:0");
	rig_destroy(rig);
}

static void t10_the_stamp_that_compute_sets_wins_over_that_of_what_it_received(void **state)
{
	struct rig *rig = rig_of("b:call count=2 -> a:call -> c:call");

	(void)state;
	rig_on(rig, "b", emit_tagged);
	rig_on(rig, "a", emit_tagged);
	rig_on(rig, "c", note_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "c"), "5:0 5:1");
	rig_destroy(rig);
}

/* --- parts --- */

static weir_status emit_pack(struct rig *rig, weir_context *context)
{
	weir_part parts[] = {{sizeof(weir_part), "own", rig_number(context, 1)},
			     {sizeof(weir_part), "new", rig_number(context, 2)},
			     {sizeof(weir_part), "old", NULL}};
	weir_message *pack = NULL;

	parts[2].message = weir_message_ref(weir_context_message(context, 0, 0));
	HOLDS(rig, !weir_message_set_stamp(parts[0].message, stamp_of(1, 1)));
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 3, &pack));
	HOLDS(rig, !weir_context_set_stamp(context, stamp_of(2, 2)));
	return weir_context_emit(context, 0, pack);
}

static weir_status note_part_stamps(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);

	note_stamp(rig, context, weir_message_stamp(pack));
	for (size_t i = 0; i < weir_message_parts(pack); i++)
		note_stamp(rig, context, weir_message_stamp(weir_message_part_at(pack, i)));
	return WEIR_OK;
}

static void stamped_parts(void)
{
	struct rig *rig = rig_of("source ticks=1 -> a:call -> b:call");

	rig_on(rig, "a", emit_pack);
	rig_on(rig, "b", note_part_stamps);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "2:2 1:1 2:2 0:0");
	rig_destroy(rig);
}

static void t10_t09_a_new_part_gets_the_stamp_of_its_pack(void **state)
{
	(void)state;
	rig_everywhere(stamped_parts);
}

static weir_inlet *inlet_of(struct rig *rig, const char *port)
{
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, port, &inlet), WEIR_OK);
	return inlet;
}

static void t10_t09_an_inlet_stamps_the_parts_of_what_is_pushed(void **state)
{
	struct rig *rig = rig_of("b:call");
	weir_inlet *inlet = inlet_of(rig, "b.in");
	weir_part parts[] = {{sizeof(weir_part), "a", rig_message(rig, 1)}};
	weir_message *pack = NULL;

	(void)state;
	rig_on(rig, "b", note_part_stamps);
	assert_int_equal(weir_message_pack(rig->graph, parts, 1, &pack), WEIR_OK);
	assert_int_equal(weir_message_set_stamp(pack, stamp_of(3, 4)), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, pack, 0), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "3:4 3:4");
	rig_destroy(rig);
}

/* Two threads push a message each, with a part that both messages have. */
struct sharer {
	weir_inlet *inlet;
	weir_message *messages[SHARED];
};

static void push_shared(void *arg)
{
	struct sharer *sharer = arg;

	for (int i = 0; i < SHARED; i++)
		weir_inlet_push(sharer->inlet, sharer->messages[i], SECOND);
	weir_inlet_close(sharer->inlet);
}

/* Time and tag of the part are of one message, as those of the message are. */
static weir_status check_shared(struct rig *rig, weir_context *context)
{
	const weir_message *message = weir_context_message(context, 0, 0);
	weir_stamp whole = weir_message_stamp(message),
		   part = weir_message_stamp(weir_message_part(message, "a"));

	HOLDS(rig, whole.tag == (uint64_t)whole.time);
	HOLDS(rig, part.tag == (uint64_t)part.time && part.time / 2 == rig_tick(context) + 1);
	return WEIR_OK;
}

static void share_parts(void)
{
	struct rig *rig = rig_of("b:call; c:call");
	struct sharer sharers[2] = {{.inlet = inlet_of(rig, "b.in")}, {.inlet = inlet_of(rig, "c.in")}};
	struct wr_thread threads[2];

	rig_on(rig, "b", check_shared);
	rig_on(rig, "c", check_shared);
	for (int i = 0; i < SHARED; i++) {
		weir_part first = {sizeof first, "a", rig_message(rig, i)}, second = first;

		weir_message_ref(first.message);
		assert_int_equal(weir_message_pack(rig->graph, &first, 1, &sharers[0].messages[i]), WEIR_OK);
		assert_int_equal(weir_message_pack(rig->graph, &second, 1, &sharers[1].messages[i]), WEIR_OK);
		for (int k = 0; k < 2; k++)
			weir_message_set_stamp(sharers[k].messages[i],
					       stamp_of(2 * i + k + 2, (uint64_t)(2 * i + k + 2)));
	}
	rig_start(rig);
	for (int k = 0; k < 2; k++)
		wr_thread_start(&threads[k], "pusher", push_shared, &sharers[k]);
	for (int k = 0; k < 2; k++)
		wr_thread_join(&threads[k]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b") + rig_ticks(rig, "c"), 2 * SHARED);
	rig_destroy(rig);
}

static void t10_t09_two_threads_that_push_messages_with_a_common_part_stamp_it_once(void **state)
{
	(void)state;
	rig_everywhere(share_parts);
}

/* --- how old messages are --- */

/* Tick k: born (k + 1) * 10 ms ago; tick 2 has no time. */
static weir_status emit_aged(struct rig *rig, weir_context *context)
{
	int64_t now = weir_context_now(context), age = (rig_tick(context) + 1) * 10 * MS;

	HOLDS(rig, !weir_context_set_stamp(context, stamp_of(rig_tick(context) == 2 ? 0 : now - age, 1)));
	return weir_context_emit(context, 0, rig_number(context, rig_tick(context)));
}

static void latencies(void)
{
	struct rig *rig =
		rig_of("a:call count=3 -> p:pass -> x:end delay=5ms; p -> y:end; source ticks=2 -> z:end");
	struct rig_age age;

	rig_on(rig, "a", emit_aged);
	for (int run = 0; run < 2; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		age = rig_age(rig, "x");
		assert_int_equal(age.count, 2);
		assert_true(age.max >= 25 * MS && age.max < 20 * SECOND);
		assert_true(age.sum >= 40 * MS);
		assert_true(age.sum >= age.max);
		assert_true(age.sum <= 2 * age.max);
		age = rig_age(rig, "y");
		assert_int_equal(age.count, 2);
		assert_int_equal(rig_age(rig, "p").count, 0); /* it has receivers */
		assert_int_equal(rig_age(rig, "a").count, 0);
		assert_int_equal(rig_age(rig, "z").count, 0);
		assert_int_equal(rig_age(rig, "z").max, 0);
	}
	rig_destroy(rig);
}

static void t10_the_age_of_messages_is_counted_where_they_end(void **state)
{
	(void)state;
	rig_everywhere(latencies);
}

static void outlet_latencies(void)
{
	struct rig *rig = rig_of("a:call count=3 -> z:end capacity=3");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 3, 0);

	rig_on(rig, "a", emit_aged);
	for (int run = 0; run < 2; run++) {
		rig_start(rig);
		for (int i = 0; i < 3; i++)
			assert_int_equal(rig_take(outlet, 60 * SECOND), i);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(rig_age_at(rig, "outlet").count, 2);
		assert_true(rig_age_at(rig, "outlet").max >= 20 * MS);
		assert_true(rig_age_at(rig, "outlet").sum >= 30 * MS);
		assert_int_equal(rig_age_at(rig, "z.in").count, 0);
		assert_int_equal(rig_age(rig, "a").count, 0);
	}
	rig_destroy(rig);
}

static void t10_the_age_of_messages_is_counted_at_outlets(void **state)
{
	(void)state;
	rig_everywhere(outlet_latencies);
}

static weir_status emit_from_the_future(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_context_set_stamp(context, stamp_of(weir_context_now(context) + 3600 * SECOND, 0)));
	return weir_context_emit(context, 0, rig_number(context, 0));
}

static void t10_what_has_a_later_time_than_now_is_not_old(void **state)
{
	struct rig *rig = rig_of("a:call count=1 -> end");

	(void)state;
	rig_on(rig, "a", emit_from_the_future);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_age(rig, "end").count, 1);
	assert_int_equal(rig_age(rig, "end").sum, 0);
	rig_destroy(rig);
}

/* --- a service: requests by an inlet, results by outlets, matched by their tags --- */

enum { REQUESTS = 40 };

/* Even requests take the long way, so results do not come in the order of the requests. */
static weir_status choose_way(struct rig *rig, weir_context *context)
{
	weir_message *request = weir_context_message(context, 0, 0);

	(void)rig;
	return weir_context_emit(context, rig_value(request) % 2 ? 0 : 1, weir_message_ref(request));
}

/* A new message: the tag travels although the payload does not. */
static weir_status answer(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	bool slow = !strcmp(weir_entity_name(weir_context_entity(context)), "slow");

	HOLDS(rig, stream);
	return rig_emit_sum(context, 0, stream, 1000, (slow ? 9 : 1) * MS);
}

static void push_request(struct rig *rig, weir_inlet *inlet, int64_t i)
{
	weir_message *request = rig_message(rig, i);

	assert_int_equal(weir_message_set_stamp(
				 request, stamp_of(weir_scheduler_now(rig->scheduler), 7000 + (uint64_t)i)),
			 WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, request, 60 * SECOND), WEIR_OK);
}

static void service(void)
{
	struct rig *rig =
		rig_of("way:call -> fast:call -> f:pass; way.out2 -> slow:call capacity=40 -> s:pass");
	weir_inlet *inlet = inlet_of(rig, "way.in");
	weir_outlet *outlets[] = {rig_outlet(rig, "f.out", REQUESTS, 0),
				  rig_outlet(rig, "s.out", REQUESTS, 0)};
	int answered[REQUESTS] = {0};
	weir_message *result = NULL;

	rig_on(rig, "way", choose_way);
	rig_on(rig, "fast", answer);
	rig_on(rig, "slow", answer);
	rig_start(rig);
	for (int64_t i = 0; i < REQUESTS; i++)
		push_request(rig, inlet, i);
	weir_inlet_close(inlet);
	for (int o = 0; o < 2; o++) {
		while (!weir_outlet_take(outlets[o], 60 * SECOND, &result)) {
			uint64_t tag = weir_message_stamp(result).tag - 7000;
			assert_true(tag < REQUESTS);
			assert_int_equal(rig_value(result), 1000 + tag);
			assert_int_equal(answered[tag]++, 0);
			weir_message_unref(result);
		}
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(answered[i], 1);
	rig_destroy(rig);
}

static void t10_a_service_matches_results_to_requests_by_their_tags(void **state)
{
	(void)state;
	rig_everywhere(service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t10_a_stamp_of_the_message_wins_over_that_of_the_tick),
		cmocka_unit_test(
			t10_what_a_tick_makes_gets_the_stamp_of_its_first_input_and_what_it_passes_on_keeps_its),
		cmocka_unit_test(t10_the_first_input_is_the_first_that_received_any),
		cmocka_unit_test(t10_a_stamp_never_changes_on_a_delivered_message),
		cmocka_unit_test(t10_a_stamp_is_of_one_tick),
		cmocka_unit_test(t10_a_later_tick_has_no_stamp_of_an_earlier_one),
		cmocka_unit_test(t10_the_stamp_that_compute_sets_wins_over_that_of_what_it_received),
		cmocka_unit_test(t10_t09_a_new_part_gets_the_stamp_of_its_pack),
		cmocka_unit_test(t10_t09_an_inlet_stamps_the_parts_of_what_is_pushed),
		cmocka_unit_test(t10_t09_two_threads_that_push_messages_with_a_common_part_stamp_it_once),
		cmocka_unit_test(t10_the_age_of_messages_is_counted_where_they_end),
		cmocka_unit_test(t10_the_age_of_messages_is_counted_at_outlets),
		cmocka_unit_test(t10_what_has_a_later_time_than_now_is_not_old),
		cmocka_unit_test(t10_a_service_matches_results_to_requests_by_their_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
