/* The device work of messages of named parts: gates, waits, fences of parts alone, lives (T4, T7, T9). */
#include <stdio.h>
#include <string.h>

#include "rig_inside.h"
#include "rig_parts.h"
#include "tests/calls.h"

/* --- fences: of device work that writes parts on several streams --- */

static void gated_reader(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=3 -> h:host capacity=2");

		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", rig_detect);
		rig_on(rig, "h", rig_note_parts);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "h"), "10/20/30 11/21/31 12/22/32");
		assert_int_equal(rig_queue(rig, "h.in").delivered, 3);
		rig_destroy(rig);
	}
}

static void t09_c08_a_gate_waits_for_every_part(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, gated_reader);
	rig_on_host(gated_reader);
}

static weir_status see_the_union(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);
	weir_fence fences[4];

	HOLDS(rig, weir_message_fences(weir_message_part(pack, "image"), 4, fences) == 2);
	HOLDS(rig, rig_carried_fences(weir_message_part(pack, "image"), fences, 4) == 1);
	HOLDS(rig, weir_message_fences(weir_message_part(pack, "scores"), 4, fences) == 2);
	HOLDS(rig, weir_message_fences(pack, 4, fences) == 2);
	HOLDS(rig, fences[0].stream != fences[1].stream);
	HOLDS(rig, weir_message_fences(pack, 2, fences) == 2);
	HOLDS(rig, weir_message_fences(pack, 1, fences) >= 2); /* may be too large, never too small */
	HOLDS(rig, weir_message_fences(pack, 0, NULL) >= 2);
	HOLDS(rig, rig_carried_fences(pack, fences, 4) == 1);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 0, NULL) == 1);
	return WEIR_OK;
}

static void unions(void)
{
	struct rig *rig = rig_of("a:call count=3 -> c:call capacity=2");

	rig_on(rig, "a", rig_detect);
	rig_on(rig, "c", see_the_union);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t09_the_fences_of_a_pack_are_the_union_of_those_of_its_parts(void **state)
{
	(void)state;
	rig_in_worlds(20, unions);
}

/* The output's messages carry "other", which alone writes the part; the current stream works, too. */
static weir_status pack_on_a_set_stream(struct rig *rig, weir_context *context)
{
	weir_stream *other = NULL;
	weir_part parts[1] = {rig_part("image", NULL)};
	weir_message *pack = NULL, *aside = NULL;

	HOLDS(rig, !weir_context_allocate_stream(context, "other", &other));
	HOLDS(rig, !rig_write_part(context, current_stream(context), 1, 5 * MS, &aside));
	HOLDS(rig, !rig_write_part(context, other, 7, MS, &parts[0].message));
	weir_message_unref(aside);
	HOLDS(rig, !weir_context_set_stream(context, 0, other));
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 1, &pack));
	return weir_context_emit(context, 0, pack);
}

static weir_status expect_the_set_stream(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);
	weir_fence fences[4];

	HOLDS(rig, weir_message_fences(pack, 4, fences) == 1);
	HOLDS(rig, rig_carried_fences(weir_message_part(pack, "image"), fences, 4) == 1);
	return WEIR_OK;
}

static void set_streams(void)
{
	struct rig *rig = rig_of("a:call count=3 -> c:call capacity=2; a -> h:host capacity=2");

	rig_on(rig, "a", pack_on_a_set_stream);
	rig_on(rig, "c", expect_the_set_stream);
	rig_on(rig, "h", rig_note_image);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "h"), "7 7 7");
	rig_destroy(rig);
}

static void t09_t07_a_part_made_in_the_tick_carries_the_streams_that_were_set(void **state)
{
	(void)state;
	rig_in_worlds(20, set_streams);
	rig_on_host(set_streams);
}

/* The sum of both parts, by a kernel that reads them when it begins. */
static weir_status add_parts(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);
	weir_message *message = NULL;
	struct rig_sum sum = {.from = {weir_message_data(weir_message_part(pack, "image")),
				       weir_message_data(weir_message_part(pack, "boxes"))}};
	weir_stream *stream = current_stream(context);

	HOLDS(rig, !weir_context_create_tensor(context, &rig_one_number, 0, &message));
	sum.to = weir_message_data(message);
	HOLDS(rig, !weir_stream_launch(stream, &rig_adder, &sum, sizeof sum));
	return weir_context_emit(context, 0, message);
}

static void device_reader(void)
{
	struct rig *rig = rig_of("a:call count=3 -> b:call capacity=2 -> end gate=in");

	rig_on(rig, "a", rig_detect);
	rig_on(rig, "b", add_parts);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "30 32 34");
	rig_destroy(rig);
}

static void t09_t03_a_stream_waits_for_every_part(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, device_reader);
	rig_on_host(device_reader);
}

/* Takes a part out and emits it alone, in this tick and, kept, in the next one; uses no stream. */
static weir_status take_out(struct rig *rig, weir_context *context)
{
	weir_message **kept = rig->own;
	const weir_message *pack = weir_context_message(context, 0, 0);
	weir_status status =
		weir_context_emit(context, 0, weir_message_ref(weir_message_part(pack, "image")));

	HOLDS(rig, rig_uses_no_stream(rig, "b"));
	if (*kept && !status)
		status = weir_context_emit(context, 1, *kept);
	*kept = weir_message_ref(weir_message_part(pack, "boxes"));
	return status;
}

static void parts_alone(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=3 -> b:call capacity=2 -> end; b.out2 -> other:end");
		weir_message *kept = NULL;

		rig->options.signal = rig_signals[i];
		rig->own = &kept;
		rig_on(rig, "a", rig_detect);
		rig_on(rig, "b", take_out);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "10 11 12");
		assert_string_equal(rig_text(rig, "other"), "20 21");
		assert_int_equal(rig_value(kept), 22);
		weir_message_unref(kept);
		rig_destroy(rig);
	}
}

static void t09_c08_a_part_that_is_taken_out_carries_its_fences(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, parts_alone);
	rig_on_host(parts_alone);
}

/* A pack that is kept, while the work of its parts is fenced, and emitted by the next tick. */
static weir_status emit_later(struct rig *rig, weir_context *context)
{
	weir_message **kept = rig->own;
	weir_part parts[1] = {rig_part("image", NULL)};

	if (rig_tick(context) == 1) {
		weir_context_finish(context);
		return weir_context_emit(context, 0, *kept);
	}
	HOLDS(rig, !rig_write_part(context, current_stream(context), 7, 20 * MS, &parts[0].message));
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 1, kept));
	return WEIR_OK;
}

static void late_pack(void)
{
	struct rig *rig = rig_of("a:call -> h:host");
	weir_message *kept = NULL;

	rig->own = &kept;
	rig_on(rig, "a", emit_later);
	rig_on(rig, "h", rig_note_image);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "h"), "7");
	rig_destroy(rig);
}

static void t09_a_pack_that_is_emitted_later_has_the_fences_of_its_parts(void **state)
{
	(void)state;
	rig_in_worlds(20, late_pack);
	rig_on_host(late_pack);
}

/* --- memory: lives until the last reader of the pack is done --- */

struct reading {
	const int64_t *from;
	int64_t *to, ns;
};

/* Reads at its end: a payload that was freed meanwhile is poisoned. */
static int read_late(const void *arguments)
{
	const struct reading *reading = arguments;

	weir_sleep(reading->ns);
	*reading->to += *reading->from;
	return 0;
}

static const weir_kernel late_reader = {sizeof(weir_kernel), "late_reader", read_late, NULL};

struct lives {
	struct rig_payload payloads[6];
	int64_t sums[2];
};

static weir_status emit_payloads(struct rig *rig, weir_context *context)
{
	struct lives *lives = rig->own;
	int64_t tick = rig_tick(context);
	weir_part parts[2] = {rig_part("a", NULL), rig_part("b", NULL)};
	weir_message *pack = NULL;
	weir_tensor like = rig_one_number;

	for (int i = 0; i < 2; i++) {
		struct rig_payload *payload = &lives->payloads[2 * tick + i];
		*payload = (struct rig_payload){1 + i, 0};
		like.data = &payload->value;
		HOLDS(rig, !weir_message_wrap_tensor(weir_context_graph(context), &like, rig_poison, payload,
						     &parts[i].message));
	}
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 2, &pack));
	return weir_context_emit(context, 0, pack);
}

static weir_status read_parts(struct rig *rig, weir_context *context)
{
	struct lives *lives = rig->own;
	bool second = !strcmp(weir_entity_name(weir_context_entity(context)), "y");
	const weir_message *pack = weir_context_message(context, 0, 0);
	struct reading reading = {weir_message_data(weir_message_part(pack, second ? "b" : "a")),
				  &lives->sums[second], (second ? 3 : 20) * MS};

	return weir_stream_launch(current_stream(context), &late_reader, &reading, sizeof reading);
}

static void readers(void)
{
	struct rig *rig = rig_of("a:call count=3 -> x:call; a -> y:call");
	struct lives lives = {.sums = {0}};

	rig->own = &lives;
	rig_on(rig, "a", emit_payloads);
	rig_on(rig, "x", read_parts);
	rig_on(rig, "y", read_parts);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(lives.sums[0], 3);
	assert_int_equal(lives.sums[1], 6);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	for (int i = 0; i < 6; i++)
		assert_int_equal(lives.payloads[i].freed, 1);
	rig_destroy(rig);
}

static void t09_t04_a_part_lives_until_all_readers_of_the_pack_are_done(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, readers);
	rig_on_host(readers);
}

/* --- what is passed on --- */

static weir_status pass_pack_on(struct rig *rig, weir_context *context)
{
	HOLDS(rig, current_stream(context));
	return weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)));
}

static weir_status expect_two(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);
	bool alone = !strcmp(weir_entity_name(weir_context_entity(context)), "z");
	weir_fence fences[8];

	HOLDS(rig, weir_message_fences(pack, 8, fences) == (alone ? 3 : 2));
	return WEIR_OK;
}

/* `keep` holds every pack until the others have seen theirs. */
static void passing_on(void)
{
	struct rig *rig =
		rig_of("a:call count=2 -> p:call capacity=2 -> x:call; a -> keep:call asynchronous=1 "
		       "capacity=2; b:call count=2 -> q:call capacity=2 -> z:call");

	rig_on(rig, "a", rig_detect);
	rig_on(rig, "b", rig_detect);
	rig_on(rig, "p", pass_pack_on);
	rig_on(rig, "q", pass_pack_on);
	rig_on(rig, "x", expect_two);
	rig_on(rig, "z", expect_two);
	weir_entity_tell(weir_graph_entity(rig->graph, "keep"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	weir_entity_tell(weir_graph_entity(rig->graph, "keep"), "asynchronous", WEIR_TOLD_EVENT_DONE);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "x") + rig_ticks(rig, "z"), 4);
	rig_destroy(rig);
}

static void t09_t07_a_pack_that_is_passed_on_has_new_producers_only_if_nothing_else_holds_it(void **state)
{
	(void)state;
	rig_in_worlds(20, passing_on);
}

static weir_message *kept;

static weir_status keep_image_and_pass_on(struct rig *rig, weir_context *context)
{
	kept = weir_message_ref(weir_message_part(weir_context_message(context, 0, 0), "image"));
	return pass_pack_on(rig, context);
}

static weir_status expect_two_of_image(struct rig *rig, weir_context *context)
{
	const weir_message *image = weir_message_part(weir_context_message(context, 0, 0), "image");

	HOLDS(rig, weir_message_fences(image, 0, NULL) == 2);
	return WEIR_OK;
}

/* `q` holds the pack as what it received and as what it emits, and the part once more. */
static void keeping_a_part(void)
{
	struct rig *rig = rig_of("a:call count=1 -> q:call -> z:call");

	rig_on(rig, "a", rig_detect);
	rig_on(rig, "q", keep_image_and_pass_on);
	rig_on(rig, "z", expect_two_of_image);
	assert_int_equal(rig_run(rig), WEIR_OK);
	weir_message_unref(kept);
	rig_destroy(rig);
}

static void t09_t07_a_part_that_is_held_beside_the_pack_that_is_passed_on_has_no_new_producer(void **state)
{
	(void)state;
	rig_in_worlds(20, keeping_a_part);
}

/* The part of a pack that no one else holds, packed again: it may have been written in place. */
static weir_status pack_again(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);
	weir_part parts[1] = {rig_part("image", weir_message_ref(weir_message_part(pack, "image")))};
	weir_message *again = NULL;
	struct rig_sum sum = {weir_message_data(parts[0].message), {NULL, NULL}, 50 + rig_tick(context), MS};

	HOLDS(rig, !weir_stream_launch(current_stream(context), &rig_adder, &sum, sizeof sum));
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 1, &again));
	return weir_context_emit(context, 0, again);
}

static void packed_again(void)
{
	struct rig *rig = rig_of("a:call count=3 -> b:call capacity=2 -> h:host");

	rig_on(rig, "a", rig_detect);
	rig_on(rig, "b", pack_again);
	rig_on(rig, "h", rig_note_image);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "h"), "50 51 52");
	rig_destroy(rig);
}

static void t09_t07_a_part_of_the_only_holder_counts_as_written(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, packed_again);
	rig_on_host(packed_again);
}

/* --- devices --- */

static weir_status on_two_devices(struct rig *rig, weir_context *context)
{
	weir_stream *own = current_stream(context);
	const weir_message *received = weir_context_message(context, 0, 0);
	weir_part parts[2] = {rig_part("image", NULL), rig_part("boxes", NULL)};
	weir_message *pack = NULL;

	HOLDS(rig, weir_message_tensor(received)->device == 0);
	parts[0].message = weir_message_ref(weir_context_message(context, 0, 0));
	HOLDS(rig, !rig_write_part(context, own, 20 + rig_tick(context), 5 * MS, &parts[1].message));
	HOLDS(rig, weir_message_tensor(parts[1].message)->device == 1);
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 2, &pack));
	return weir_context_emit(context, 0, pack);
}

static void two_devices(void)
{
	rig_resources = "{\"p\": {\"type\": \"stream_pool\", \"device\": 1}}";
	struct rig *rig = rig_of("a:call count=3 -> b:call pool=p -> h:host");

	rig_resources = NULL;
	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "b", on_two_devices);
	rig_on(rig, "h", rig_note_parts);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "h"), "0/20/-2 1/21/-2 2/22/-2");
	rig_destroy(rig);
}

static void t09_parts_may_be_on_different_devices(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 10, two_devices);
	rig_on_host(two_devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t09_c08_a_gate_waits_for_every_part),
		cmocka_unit_test(t09_the_fences_of_a_pack_are_the_union_of_those_of_its_parts),
		cmocka_unit_test(t09_t07_a_part_made_in_the_tick_carries_the_streams_that_were_set),
		cmocka_unit_test(t09_t03_a_stream_waits_for_every_part),
		cmocka_unit_test(t09_c08_a_part_that_is_taken_out_carries_its_fences),
		cmocka_unit_test(t09_a_pack_that_is_emitted_later_has_the_fences_of_its_parts),
		cmocka_unit_test(t09_t04_a_part_lives_until_all_readers_of_the_pack_are_done),
		cmocka_unit_test(
			t09_t07_a_pack_that_is_passed_on_has_new_producers_only_if_nothing_else_holds_it),
		cmocka_unit_test(
			t09_t07_a_part_that_is_held_beside_the_pack_that_is_passed_on_has_no_new_producer),
		cmocka_unit_test(t09_t07_a_part_of_the_only_holder_counts_as_written),
		cmocka_unit_test(t09_parts_may_be_on_different_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
