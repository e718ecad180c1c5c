/* What is emitted and pushed must fit the type of the port, and of the ports that receive it (C10). */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

/* What the sender emits, one a tick: [n, n] or [n, n + 1] of uint8 or float32. */
struct draft {
	int64_t rows, columns;
	uint8_t code, bits;
};
static const struct draft *drafts;
static size_t draft_count;

static weir_status make_draft(weir_graph *graph, const struct draft *draft, weir_message **out)
{
	const int64_t shape[] = {draft->rows, draft->columns};
	const weir_tensor like = {.size = sizeof like,
				  .device = WEIR_DEVICE_HOST,
				  .dimensions = 2,
				  .shape = shape,
				  .code = draft->code,
				  .bits = draft->bits};

	return weir_message_create_tensor(graph, &like, out);
}

static weir_status emit_draft(weir_context *context, void *state)
{
	uint64_t tick = weir_context_tick(context);
	weir_message *message = NULL;
	weir_status status = make_draft(weir_context_graph(context), &drafts[tick], &message);

	(void)state;
	if (tick + 1 == draft_count)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static struct rig *rig_typed(weir_port out, weir_port in)
{
	static const char json[] = "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"sender\"},"
				   "{\"name\": \"p\", \"operator\": \"pass\"},"
				   "{\"name\": \"b\", \"operator\": \"receiver\"}],"
				   "\"connections\": [[\"a.out\", \"p.in\"], [\"p.out\", \"b.in\"]]}";
	static weir_port ports[4];
	static weir_operator sender, receiver;

	out.size = in.size = sizeof out;
	out.name = "out";
	in.name = "in";
	ports[0] = out;
	ports[2] = in;
	sender = (weir_operator){
		.size = sizeof sender, .name = "sender", .outputs = &ports[0], .compute = emit_draft};
	receiver = (weir_operator){.size = sizeof receiver, .name = "receiver", .inputs = &ports[2]};
	return rig_of_json(json, (const weir_operator *[]){&sender, &receiver, NULL});
}

static const struct draft square[] = {{2, 2, 1, 8}, {2, 2, 1, 8}, {3, 3, 1, 8}};
static const struct draft then_oblong[] = {{2, 2, 1, 8}, {2, 2, 1, 8}, {2, 3, 1, 8}};
static const struct draft then_floats[] = {{2, 2, 1, 8}, {2, 2, 2, 32}};
static const struct draft empty[] = {{0, 0, 1, 8}};
#define EMIT(list) (drafts = list, draft_count = sizeof list / sizeof *list)

static void assert_fails(struct rig *rig, const char *entity, const char *text)
{
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, text);
	assert_string_equal(rig->outcome.entity, entity);
	rig_destroy(rig);
}

static void c10_a_tensor_that_does_not_fit_its_own_port_fails_the_run(void **state)
{
	(void)state;
	EMIT(then_oblong);
	assert_fails(rig_typed((weir_port){.dtype = "uint8", .shape = "[N, N]"}, (weir_port){0}), "a",
		     "a.out: emitted uint8 [2, 3] in host memory, but the port gives uint8 [N, N]");
	EMIT(then_floats);
	assert_fails(rig_typed((weir_port){.dtype = "uint8|int8"}, (weir_port){0}), "a",
		     "a.out: emitted float32 [2, 2] in host memory, but the port gives uint8|int8");
	EMIT(square);
	assert_fails(rig_typed((weir_port){.place = "device"}, (weir_port){0}), "a",
		     "a.out: emitted uint8 [2, 2] in host memory, but the port gives tensors on a device");
}

/* `pass` says nothing, so only what it emits shows it. */
static void c10_a_tensor_that_does_not_fit_a_receiver_fails_the_run(void **state)
{
	(void)state;
	EMIT(then_floats);
	assert_fails(rig_typed((weir_port){0}, (weir_port){.dtype = "uint8"}), "p",
		     "p.out: emitted float32 [2, 2] in host memory, but b.in takes uint8");
}

static void c10_what_fits_arrives_also_with_sizes_of_zero(void **state)
{
	static const weir_port wide = {.dtype = "uint8", .place = "host", .shape = "[N, N]"};
	struct rig *rig;

	(void)state;
	EMIT(square);
	rig = rig_typed(wide, wide);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig->outcome.ticks, 9);
	rig_destroy(rig);
	EMIT(empty);
	rig = rig_typed(wide, wide);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c10_a_port_that_says_nothing_passes_anything(void **state)
{
	struct rig *rig;

	(void)state;
	EMIT(then_floats);
	rig = rig_typed((weir_port){0}, (weir_port){0});
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c10_a_push_of_what_does_not_fit_is_refused_and_the_next_goes_on(void **state)
{
	static const struct draft pushed[] = {{2, 2, 1, 8}, {2, 3, 1, 8}, {2, 2, 1, 8}, {2, 2, 2, 32}};
	struct rig *rig;
	weir_inlet *inlet = NULL;

	(void)state;
	EMIT(empty);
	rig = rig_typed(
		(weir_port){0},
		(weir_port){.flags = WEIR_PORT_ANY_SIZE, .capacity = 8, .dtype = "uint8", .shape = "[N, N]"});
	assert_int_equal(weir_graph_add_inlet(rig->graph, "b.in", &inlet), WEIR_OK);
	rig_start(rig);
	for (size_t i = 0; i < sizeof pushed / sizeof *pushed; i++) {
		weir_message *message = NULL;
		weir_status status = make_draft(rig->graph, &pushed[i], &message);

		assert_int_equal(status, WEIR_OK);
		status = weir_inlet_push(inlet, message, 0);
		assert_int_equal(status, i % 2 ? WEIR_E_INVALID : WEIR_OK);
		if (status)
			weir_message_unref(message);
	}
	assert_says(weir_last_error(),
		    "inlet of b.in: float32 [2, 2] in host memory was pushed, but the port "
		    "takes uint8 [N, N]");
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c10_a_tensor_that_does_not_fit_its_own_port_fails_the_run),
		cmocka_unit_test(c10_a_tensor_that_does_not_fit_a_receiver_fails_the_run),
		cmocka_unit_test(c10_what_fits_arrives_also_with_sizes_of_zero),
		cmocka_unit_test(c10_a_port_that_says_nothing_passes_anything),
		cmocka_unit_test(c10_a_push_of_what_does_not_fit_is_refused_and_the_next_goes_on),
	};

	return cmocka_run_group_tests_name("scheduler/typed", tests, NULL, NULL);
}
