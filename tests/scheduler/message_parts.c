/* Messages of named parts: making, misuse, inlets and outlets, counts (T9). */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "rig_inside.h"
#include "rig_parts.h"

static weir_message *number_of(struct rig *rig, int64_t number)
{
	return rig_message(rig, number);
}

static weir_message *pack_of(struct rig *rig, const weir_part *parts, size_t count)
{
	weir_message *pack = NULL;

	assert_int_equal(weir_message_pack(rig->graph, parts, count, &pack), WEIR_OK);
	return pack;
}

/* --- making --- */

static void t09_a_message_of_parts_gives_them_by_name_and_by_place(void **state)
{
	struct rig *rig = rig_of("end");
	weir_message *image = number_of(rig, 1), *boxes = number_of(rig, 2);
	const weir_part parts[] = {rig_part("image", image), rig_part("boxes", boxes)};
	weir_message *pack = pack_of(rig, parts, 2);

	(void)state;
	assert_int_equal(weir_message_kind(pack), WEIR_KIND_PARTS);
	assert_int_equal(weir_message_parts(pack), 2);
	assert_ptr_equal(weir_message_part(pack, "boxes"), boxes);
	assert_ptr_equal(weir_message_part_at(pack, 0), image);
	assert_string_equal(weir_message_part_name(pack, 1), "boxes");
	assert_null(weir_message_part(pack, "scores"));
	assert_null(weir_message_part(pack, NULL));
	assert_null(weir_message_part_at(pack, 2));
	assert_null(weir_message_part_name(pack, 2));
	assert_null(weir_message_data(pack));
	assert_int_equal(weir_message_size(pack), 0);
	assert_int_equal(weir_message_parts(image), 0);
	assert_null(weir_message_part_at(image, 0));
	weir_message_unref(pack);
	rig_destroy(rig);
}

static void t09_sixty_four_long_names_fit_and_are_copied(void **state)
{
	struct rig *rig = rig_of("end");
	char names[WEIR_PARTS_MAX][WEIR_PART_NAME_MAX + 1];
	weir_part parts[WEIR_PARTS_MAX];
	weir_message *pack;

	(void)state;
	for (int i = 0; i < WEIR_PARTS_MAX; i++) {
		memset(names[i], 'a', WEIR_PART_NAME_MAX);
		names[i][0] = (char)('0' + i / 10);
		names[i][1] = (char)('0' + i % 10);
		names[i][2] = '/';
		names[i][WEIR_PART_NAME_MAX] = 0;
		parts[i] = rig_part(names[i], number_of(rig, i));
	}
	pack = pack_of(rig, parts, WEIR_PARTS_MAX);
	for (int i = 0; i < WEIR_PARTS_MAX; i++) {
		assert_int_equal(rig_value(weir_message_part(pack, names[i])), i);
		assert_string_equal(weir_message_part_name(pack, (size_t)i), names[i]);
	}
	names[7][0] = 'x';
	assert_int_equal(weir_message_part_name(pack, 7)[0], '0');
	weir_message_unref(pack);
	rig_destroy(rig);
}

static void refused(struct rig *rig, const weir_part *parts, size_t count, const char *text)
{
	weir_message *pack = NULL;

	assert_int_equal(weir_message_pack(rig->graph, parts, count, &pack), WEIR_E_INVALID);
	assert_null(pack);
	assert_says(weir_last_error(), text);
}

static void t09_parts_that_cannot_be_are_refused_by_name(void **state)
{
	struct rig *rig = rig_of("end"), *other = rig_of("end");
	char long_name[WEIR_PART_NAME_MAX + 2];
	weir_message *a = number_of(rig, 1), *foreign = number_of(other, 2);
	weir_part parts[WEIR_PARTS_MAX + 1] = {rig_part("a", weir_message_ref(a))};
	weir_message *pack = pack_of(rig, parts, 1);

	(void)state;
	memset(long_name, 'n', sizeof long_name);
	long_name[sizeof long_name - 1] = 0;
	refused(rig, parts, 0, "1 to 64 parts, not 0");
	refused(rig, parts, WEIR_PARTS_MAX + 1, "1 to 64 parts, not 65");
	refused(rig, NULL, 1, "1 to 64 parts, not 0");
	refused(rig, (weir_part[]){{0, "a", a}}, 1, "weir_part: size is 0");
	refused(rig, (weir_part[]){rig_part(NULL, a)}, 1, "part 0: it has no name");
	refused(rig, (weir_part[]){rig_part("a", a), rig_part("", a)}, 2, "part 1: it has no name");
	refused(rig, (weir_part[]){rig_part(long_name, a)}, 1, "its name has 128 bytes, at most 127 fit");
	refused(rig, (weir_part[]){rig_part("a", a), rig_part("b", a), rig_part("a", a)}, 3,
		"'a': two parts have");
	refused(rig, (weir_part[]){rig_part("a", NULL)}, 1, "part 'a': it has no message");
	refused(rig, (weir_part[]){rig_part("a", foreign)}, 1,
		"part 'a': the message belongs to another graph");
	refused(rig, (weir_part[]){rig_part("a", pack)}, 1, "part 'a': it has parts itself");
	assert_int_equal(rig_references(a), 3); /* a failure takes none */
	weir_message_unref(pack);
	assert_int_equal(rig_references(a), 1);
	weir_message_unref(a);
	weir_message_unref(foreign);
	rig_destroy(rig);
	rig_destroy(other);
}

static void xb31_without_memory_a_pack_takes_nothing(void **state)
{
	struct rig *rig = rig_of("end");
	char name[WEIR_PART_NAME_MAX + 1];
	weir_message *a = number_of(rig, 1), *pack = NULL;
	weir_status status;

	(void)state;
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = 0;
	const weir_part parts[] = {rig_part(name, a), rig_part(name + 1, weir_message_ref(a))};
	wr_memory_fail_at(0, true);
	status = weir_message_pack(rig->graph, parts, 2, &pack);
	wr_memory_fail_at(-1, false);
	assert_int_equal(status, WEIR_E_NOMEM);
	assert_null(pack);
	assert_int_equal(rig_references(a), 2);
	pack = pack_of(rig, parts, 2);
	weir_message_unref(pack);
	rig_destroy(rig);
}

/* --- misuse --- */

static weir_status give_without_reference(struct rig *rig, weir_context *context)
{
	weir_message *pack = weir_context_message(context, 0, 0), *out = NULL;
	weir_message *image = weir_message_part(pack, "image");
	const weir_part parts[1] = {rig_part("again", image)};

	rig_refused(rig, weir_message_pack(weir_context_graph(context), parts, 1, &out), WEIR_E_INVALID,
		    "part 'again': the operator holds no reference to it");
	rig_refused(rig, weir_context_emit(context, 0, image), WEIR_E_INVALID,
		    "b.out: emitted a message without a reference of its own");
	return weir_context_emit(context, 0, weir_message_ref(image));
}

/* As many parts as there may be, of which any two may have one name. */
static void t09_every_pair_of_equal_names_is_found(void **state)
{
	struct rig *rig = rig_of("a:call -> end");
	weir_message *message = NULL, *pack = NULL;
	weir_part parts[WEIR_PARTS_MAX];
	char names[WEIR_PARTS_MAX][8];

	(void)state;
	assert_int_equal(weir_message_create_empty(rig->graph, &message), WEIR_OK);
	for (size_t i = 0; i < WEIR_PARTS_MAX; i++) {
		snprintf(names[i], sizeof names[i], "%zu", i);
		parts[i] = rig_part(names[i], message);
	}
	for (size_t i = 0; i < WEIR_PARTS_MAX; i++) {
		for (size_t k = 0; k < i; k++) {
			parts[i].name = names[k];
			refused(rig, parts, WEIR_PARTS_MAX, "two parts have this name");
		}
		parts[i].name = names[i];
	}
	for (size_t i = 1; i < WEIR_PARTS_MAX; i++)
		weir_message_ref(message);
	assert_int_equal(weir_message_pack(rig->graph, parts, WEIR_PARTS_MAX, &pack), WEIR_OK);
	weir_message_unref(pack);
	rig_destroy(rig);
}

/* The pack is emitted twice, behind another message, and holds its part once. */
static weir_status emit_pack_twice(struct rig *rig, weir_context *context)
{
	const weir_part parts[1] = {rig_part("image", rig_number(context, rig_tick(context)))};
	weir_message *image = parts[0].message, *pack = NULL;

	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 1, &pack));
	HOLDS(rig, !weir_context_emit(context, 0, rig_number(context, 7)));
	HOLDS(rig, !weir_context_emit(context, 0, weir_message_ref(pack)));
	HOLDS(rig, !weir_context_emit(context, 1, pack));
	rig_refused(rig, weir_context_emit(context, 1, image), WEIR_E_INVALID,
		    "a.out2: emitted a message without a reference of its own");
	return weir_context_emit(context, 1, weir_message_ref(image));
}

static void t09_xb04_a_part_of_an_emitted_pack_needs_a_reference(void **state)
{
	struct rig *rig =
		rig_of("a:call count=2 -> x:end take=2 capacity=2; a.out2 -> y:end take=2 capacity=2; "
		       "a.out max_emits=2; a.out2 max_emits=2");

	(void)state;
	rig_on(rig, "a", emit_pack_twice);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").emitted, 8);
	rig_destroy(rig);
}

static weir_status emit_pack_by_two_ways(struct rig *rig, weir_context *context)
{
	const weir_part parts[1] = {rig_part("image", rig_number(context, rig_tick(context)))};
	weir_message *pack = NULL;

	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 1, &pack));
	HOLDS(rig, !weir_context_emit(context, 0, weir_message_ref(pack)));
	return weir_context_emit(context, 1, pack);
}

static weir_status emit_two_packs(struct rig *rig, weir_context *context)
{
	for (unsigned i = 0; i < 2; i++) {
		const weir_part parts[1] = {rig_part("image", rig_number(context, i))};
		weir_message *pack = NULL;

		HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 1, &pack));
		HOLDS(rig, !weir_context_emit(context, i, pack));
	}
	return WEIR_OK;
}

static weir_status pass_part_of_second(struct rig *rig, weir_context *context)
{
	weir_message *image = weir_message_part(weir_context_message(context, 1, 0), "image");

	rig_refused(rig, weir_context_emit(context, 0, image), WEIR_E_INVALID,
		    "b.out: emitted a message without a reference of its own");
	return weir_context_emit(context, 0, weir_message_ref(image));
}

static void t09_xb04_a_part_of_the_second_pack_needs_a_reference(void **state)
{
	struct rig *rig = rig_of("a:call count=2 -> b:call -> end; a.out2 -> b.in2");

	(void)state;
	rig_on(rig, "a", emit_two_packs);
	rig_on(rig, "b", pass_part_of_second);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "1 1");
	rig_destroy(rig);
}

static weir_status pass_part_of_both(struct rig *rig, weir_context *context)
{
	weir_message *pack = weir_context_message(context, 0, 0);
	weir_message *image = weir_message_part(pack, "image");

	HOLDS(rig, pack == weir_context_message(context, 1, 0));
	rig_refused(rig, weir_context_emit(context, 0, image), WEIR_E_INVALID,
		    "b.out: emitted a message without a reference of its own");
	return weir_context_emit(context, 0, weir_message_ref(image));
}

static void t09_xb04_a_pack_that_came_by_two_ways_holds_its_part_once(void **state)
{
	struct rig *rig = rig_of("a:call count=3 -> b:call -> end; a.out2 -> b.in2");

	(void)state;
	rig_on(rig, "a", emit_pack_by_two_ways);
	rig_on(rig, "b", pass_part_of_both);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void t09_xb04_giving_a_part_away_needs_a_reference(void **state)
{
	struct rig *rig = rig_of("a:call count=3 -> b:call -> end");

	(void)state;
	rig_on(rig, "a", rig_detect);
	rig_on(rig, "b", give_without_reference);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "10 11 12");
	rig_destroy(rig);
}

/* The pack is received and emitted: it is the same one, which holds its part twice and not four times. */
static weir_status give_the_whole_and_a_part(struct rig *rig, weir_context *context)
{
	weir_message *pack = weir_context_message(context, 0, 0);
	weir_status status = weir_context_emit(context, 0, weir_message_ref(pack));

	(void)rig;
	return status ? status
		      : weir_context_emit(context, 0, weir_message_ref(weir_message_part(pack, "image")));
}

static void t09_xb04_a_pack_and_its_part_are_given_away_in_one_tick(void **state)
{
	struct rig *rig = rig_of("a:call count=3 -> b:call max_emits=2 -> h:host capacity=2");

	(void)state;
	rig_on(rig, "a", rig_detect);
	rig_on(rig, "b", give_the_whole_and_a_part);
	rig_on(rig, "h", rig_note_image);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "h"), "10 -2 11 -2 12 -2");
	rig_destroy(rig);
}

/* --- the program's side: inlets and outlets --- */

static weir_inlet *inlet_of(struct rig *rig, const char *port)
{
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, port, &inlet), WEIR_OK);
	return inlet;
}

static weir_fence enqueue_number(weir_stream *stream, weir_message *message, int64_t number, int64_t ns)
{
	struct rig_sum sum = {weir_message_data(message), {NULL, NULL}, number, ns};
	weir_fence fence = {0, 0};

	assert_int_equal(weir_stream_launch(stream, &rig_adder, &sum, sizeof sum), WEIR_OK);
	assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
	return fence;
}

static weir_message *device_number(struct rig *rig)
{
	weir_message *message = NULL;
	weir_tensor like = rig_one_number;

	assert_int_equal(weir_message_create_tensor(rig->graph, &like, &message), WEIR_OK);
	*(int64_t *)weir_message_data(message) = -1;
	return message;
}

static void from_outside(void)
{
	struct rig *rig = rig_of("p:pass -> h:host");
	weir_inlet *inlet = inlet_of(rig, "p.in");
	weir_stream *stream = NULL;

	rig_on(rig, "h", rig_note_parts);
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	rig_start(rig);
	for (int i = 0; i < 3; i++) {
		weir_message *image = device_number(rig), *boxes = device_number(rig), *pack;
		const weir_part parts[] = {rig_part("image", image), rig_part("boxes", boxes)};

		pack = pack_of(rig, parts, 2);
		/* of a part after it was packed, and of the whole */
		assert_int_equal(
			weir_message_add_producer(image, enqueue_number(stream, image, 40 + i, 5 * MS)),
			WEIR_OK);
		assert_int_equal(
			weir_message_add_producer(pack, enqueue_number(stream, boxes, 60 + i, 5 * MS)),
			WEIR_OK);
		assert_int_equal(weir_inlet_push(inlet, pack, 60 * SECOND), WEIR_OK);
	}
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "h"), "40/60/-2 41/61/-2 42/62/-2");
	rig_destroy(rig);
}

static void t09_xb24_a_program_names_producers_of_a_part_or_of_the_whole(void **state)
{
	(void)state;
	rig_everywhere(from_outside);
}

static void outlet_of_packs(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=6");
		weir_outlet *outlet = rig_outlet(rig, "a.out", 2, 0);
		weir_message *pack = NULL, *image;

		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", rig_detect);
		rig_start(rig);
		for (int64_t k = 0; k < 6; k++) {
			assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &pack), WEIR_OK);
			assert_int_equal(rig_part_value(pack, "image"), 10 + k);
			assert_int_equal(rig_part_value(pack, "boxes"), 20 + k);
			image = weir_message_ref(weir_message_part(pack, "image"));
			weir_message_unref(pack);
			assert_int_equal(rig_value(image), 10 + k); /* it outlives the pack */
			weir_message_unref(image);
		}
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(rig_queue(rig, "outlet").delivered, 6);
		rig_destroy(rig);
	}
}

static void t09_xa03_an_outlet_gives_packs_whose_parts_are_finished(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, outlet_of_packs);
	rig_on_host(outlet_of_packs);
}

static void t09_a_pack_is_unique_if_each_part_is(void **state)
{
	struct rig *rig = rig_of("p:pass");
	weir_inlet *inlet = inlet_of(rig, "p.in");
	weir_outlet *outlet = rig_outlet(rig, "p.out", 1, 0);
	weir_message *image, *pack, *same = NULL;
	weir_part parts[2];
	weir_stream *stream = NULL;

	(void)state;
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	rig_start(rig);
	image = device_number(rig);
	parts[0] = rig_part("image", weir_message_ref(image));
	parts[1] = rig_part("boxes", device_number(rig));
	pack = pack_of(rig, parts, 2);
	assert_int_equal(weir_inlet_push(inlet, pack, 0), WEIR_OK);
	assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &same), WEIR_OK);
	assert_ptr_equal(same, pack);
	assert_false(weir_message_unique(pack)); /* `image` is referenced here */
	assert_false(
		weir_message_unique(weir_message_part_at(pack, 1))); /* the pack may have other holders */
	assert_int_equal(weir_message_add_producer(pack, (weir_fence){0, 0}), WEIR_E_INVALID);
	assert_int_equal(weir_message_add_producer(image, (weir_fence){0, 0}), WEIR_E_INVALID);
	weir_message_unref(image);
	assert_int_equal(weir_message_add_reader(
				 pack, enqueue_number(stream, weir_message_part_at(pack, 1), 3, SECOND)),
			 WEIR_OK);
	assert_int_equal(rig_uses(weir_message_part_at(pack, 0)), 1);
	assert_false(weir_message_unique(pack)); /* work still reads it */
	weir_sleep(2 * SECOND);
	assert_int_equal(weir_fence_wait(rig->graph, (weir_fence){0, 0}, 0), WEIR_OK);
	while (!weir_message_unique(pack))
		weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	assert_false(weir_message_unique(weir_message_part_at(pack, 0))); /* the whole was asked for */
	assert_int_equal(
		weir_message_add_producer(weir_message_part_at(pack, 0),
					  enqueue_number(stream, weir_message_part_at(pack, 0), 4, SECOND)),
		WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, pack, 0), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &same), WEIR_OK);
	assert_int_equal(rig_part_value(same, "image"), 4);
	weir_message_unref(same);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t09_a_producer_of_a_pack_with_a_delivered_part_is_refused(void **state)
{
	struct rig *rig = rig_of("end capacity=2");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_message *old, *pack;
	weir_stream *stream = NULL;
	weir_part parts[2];
	weir_fence fence;

	(void)state;
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	rig_start(rig);
	old = rig_message(rig, 5);
	assert_int_equal(weir_inlet_push(inlet, weir_message_ref(old), 0), WEIR_OK);
	parts[0] = rig_part("new", device_number(rig));
	parts[1] = rig_part("old", old);
	fence = enqueue_number(stream, parts[0].message, 1, MS);
	pack = pack_of(rig, parts, 2);
	assert_int_equal(weir_message_add_producer(pack, fence), WEIR_E_INVALID);
	assert_says(weir_last_error(), "part 'old' was pushed or emitted before");
	assert_int_equal(weir_message_fences(pack, 0, NULL), 0);
	assert_int_equal(weir_message_add_producer(weir_message_part(pack, "new"), fence), WEIR_OK);
	assert_int_equal(weir_message_fences(pack, 0, NULL), 1);
	weir_message_unref(pack);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- counts, leftovers, policies: a pack is one message --- */

static void t09_e05_packs_that_are_left_over_count_once_and_free_their_parts(void **state)
{
	struct rig *rig = rig_of("h:host enabled=false capacity=3");
	weir_inlet *inlet = inlet_of(rig, "h.in");
	struct rig_payload payloads[6] = {{0}};

	(void)state;
	for (int run = 0; run < 2; run++) {
		rig_start(rig);
		for (int i = 0; i < 3; i++) {
			weir_tensor like = rig_one_number;
			weir_part parts[2] = {rig_part("a", NULL), rig_part("b", rig_message(rig, 1))};
			like.data = &payloads[3 * run + i].value;
			assert_int_equal(weir_message_wrap_tensor(rig->graph, &like, rig_poison,
								  &payloads[3 * run + i], &parts[0].message),
					 WEIR_OK);
			assert_int_equal(weir_inlet_push(inlet, pack_of(rig, parts, 2), 0), WEIR_OK);
		}
		weir_inlet_close(inlet);
		weir_scheduler_stop(rig->scheduler, 0);
		(void)rig_wait(rig);
		assert_int_equal(rig_queue(rig, "h.in").pushed, 3);
		assert_int_equal(rig_queue(rig, "h.in").abandoned, 3);
		assert_int_equal(payloads[3 * run].freed, 1);
	}
	rig_destroy(rig);
	for (int i = 0; i < 6; i++)
		assert_int_equal(payloads[i].freed, 1);
}

static void evicting(void)
{
	struct rig *rig = rig_of("a:call count=50 -> h:host period=10ms policy=pop");

	rig_on(rig, "a", rig_detect);
	rig_on(rig, "h", rig_note_image);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "h.in").pushed, 50);
	assert_null(strstr(rig_text(rig, "h"), "-"));
	rig_destroy(rig);
}

static void t09_c04_evicted_packs_free_their_parts(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 10, evicting);
	rig_on_host(evicting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t09_a_message_of_parts_gives_them_by_name_and_by_place),
		cmocka_unit_test(t09_sixty_four_long_names_fit_and_are_copied),
		cmocka_unit_test(t09_parts_that_cannot_be_are_refused_by_name),
		cmocka_unit_test(t09_every_pair_of_equal_names_is_found),
		cmocka_unit_test(xb31_without_memory_a_pack_takes_nothing),
		cmocka_unit_test(t09_xb04_a_part_of_an_emitted_pack_needs_a_reference),
		cmocka_unit_test(t09_xb04_a_part_of_the_second_pack_needs_a_reference),
		cmocka_unit_test(t09_xb04_a_pack_that_came_by_two_ways_holds_its_part_once),
		cmocka_unit_test(t09_xb04_giving_a_part_away_needs_a_reference),
		cmocka_unit_test(t09_xb04_a_pack_and_its_part_are_given_away_in_one_tick),
		cmocka_unit_test(t09_xb24_a_program_names_producers_of_a_part_or_of_the_whole),
		cmocka_unit_test(t09_xa03_an_outlet_gives_packs_whose_parts_are_finished),
		cmocka_unit_test(t09_a_pack_is_unique_if_each_part_is),
		cmocka_unit_test(t09_a_producer_of_a_pack_with_a_delivered_part_is_refused),
		cmocka_unit_test(t09_e05_packs_that_are_left_over_count_once_and_free_their_parts),
		cmocka_unit_test(t09_c04_evicted_packs_free_their_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
