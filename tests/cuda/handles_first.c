/*
 * The graph as a user writes it first: a source and a stage that launch kernels, a copy to the host, and an
 * entity that adds up the numbers. No streams, fences or gates are declared; every sum is right.
 */
#include <stdio.h>

#include "handles.h"
#include "../calls.h"

enum { FRAMES = 4, NUMBERS = 1 << 16, STEP = 7919 };

/* --- operators of the user --- */

static weir_status numbers_on(weir_context *context, weir_message **out)
{
	static const int64_t count = NUMBERS;
	static const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 32};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status emit_launched(weir_context *context, weir_stream *stream, const weir_kernel *kernel,
				 const void *arguments, size_t bytes, weir_message *out)
{
	weir_status status = stream ? weir_stream_launch(stream, kernel, arguments, bytes)
				    : weir_context_fail(context, "no stream: %s", weir_last_error());

	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static weir_status tone_compute(weir_context *context, void *state)
{
	struct handles_fill work = {
		.count = NUMBERS, .ns = MS / 5, .first = (uint32_t)weir_context_tick(context) * STEP};
	weir_message *out = NULL;
	weir_status status = numbers_on(context, &out);

	(void)state;
	if (status)
		return status;
	work.to = weir_message_data(out);
	return emit_launched(context, current_stream(context), &handles_fill_kernel, &work, sizeof work, out);
}

static weir_status gain_on(weir_context *context, weir_stream *stream)
{
	struct handles_triple work = {.from = weir_message_data(weir_context_message(context, 0, 0)),
				      .count = NUMBERS};
	weir_message *out = NULL;
	weir_status status = numbers_on(context, &out);

	if (status)
		return status;
	work.to = weir_message_data(out);
	return emit_launched(context, stream, &handles_triple_kernel, &work, sizeof work, out);
}

static weir_status gain_compute(weir_context *context, void *state)
{
	(void)state;
	return gain_on(context, current_stream(context));
}

/* The work is on a second stream, which waits for the input; the first one is not ordered after it. */
static weir_status aside_compute(weir_context *context, void *state)
{
	weir_stream *first = current_stream(context), *second = NULL;
	weir_status status = weir_context_allocate_stream(context, "second", &second);

	(void)state;
	if (!status)
		status = weir_context_synchronize_streams(context, &first, 1, second);
	return status ? status : gain_on(context, second);
}

struct sum {
	uint32_t frame;
};

/* The numbers arrive as a single frame, or as several in a batch. */
static weir_status sum_compute(weir_context *context, void *state)
{
	struct sum *self = state;

	for (size_t i = 0; i < weir_context_count(context, 0); i++, self->frame++) {
		const uint32_t *found = weir_message_data(weir_context_message(context, 0, i));
		uint64_t sum = 0, right = 0;

		for (uint32_t k = 0; k < NUMBERS; k++) {
			sum += found[k];
			right += (uint32_t)(3 * (self->frame * STEP + k) + 1);
		}
		if (sum != right)
			return weir_context_fail(context, "frame %u adds up to %llu instead of %llu",
						 self->frame, (unsigned long long)sum,
						 (unsigned long long)right);
	}
	return WEIR_OK;
}

static weir_status sum_start(weir_context *context, void *state, const weir_values *values)
{
	(void)context, (void)values;
	((struct sum *)state)->frame = 0;
	return WEIR_OK;
}

static const weir_port out[] = {{.size = sizeof *out, .name = "out", .kinds = WEIR_KIND_TENSOR},
				{.name = NULL}};
static const weir_port in[] = {{.size = sizeof *in, .name = "in", .kinds = WEIR_KIND_TENSOR}, {.name = NULL}};
static const weir_operator tone = {.size = sizeof tone,
				   .name = "tone",
				   .help = "a ramp",
				   .flags = WEIR_OPERATOR_STREAM,
				   .outputs = out,
				   .compute = tone_compute};
static const weir_operator gain = {.size = sizeof gain,
				   .name = "gain",
				   .help = "3 x + 1",
				   .flags = WEIR_OPERATOR_STREAM,
				   .inputs = in,
				   .outputs = out,
				   .compute = gain_compute};
static const weir_operator aside = {.size = sizeof aside,
				    .name = "aside",
				    .help = "gain, on a second stream",
				    .flags = WEIR_OPERATOR_STREAM,
				    .inputs = in,
				    .outputs = out,
				    .compute = aside_compute};
static const weir_operator sum = {.size = sizeof sum,
				  .name = "sum",
				  .help = "adds up",
				  .state_size = sizeof(struct sum),
				  .inputs = in,
				  .start = sum_start,
				  .compute = sum_compute};

/* A condition of the user's: there is a message. */
struct any {
	unsigned input;
};

static weir_status any_start(void *state, const weir_values *values)
{
	((struct any *)state)->input = (unsigned)weir_values_int(values, "input");
	return WEIR_OK;
}

static void any_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	unsigned input = ((const struct any *)state)->input;
	bool closed = weir_view_closed(view, input);

	if (weir_view_count(view, input))
		weir_verdict_ready(verdict);
	else if (closed)
		weir_verdict_never(verdict, "closed");
	else
		weir_verdict_wait(verdict, "no message");
}

static const weir_parameter any_parameters[] = {
	{.size = sizeof *any_parameters, .name = "input", .type = WEIR_TYPE_INPUT, .help = "the port"},
	{.name = NULL}};
static const weir_condition any = {.size = sizeof any,
				   .name = "any",
				   .help = "there is a message",
				   .state_size = sizeof(struct any),
				   .parameters = any_parameters,
				   .phase = WEIR_PHASE_GATHERING,
				   .start = any_start,
				   .ask = any_ask};

/* --- the graphs --- */

static void begin(struct handles_rig *rig, const char *stage, bool with_sum)
{
	handles_begin(rig, "{\"weir\": 1, \"name\": \"first\","
			   " \"scheduler\": {\"device_memory\": \"8MiB\", \"host_memory\": \"8MiB\"},"
			   " \"entities\": [{\"name\": \"tone\", \"operator\": \"tone\"},"
			   " {\"name\": \"gain\", \"operator\": \"gain\"},"
			   " {\"name\": \"fetch\", \"operator\": \"download\"}],"
			   " \"connections\": [[\"tone.out\", \"gain.in\"], [\"gain.out\", \"fetch.in\"]]}");
	for (const weir_operator *const *table =
		     (const weir_operator *const[]){&tone, &gain, &aside, &sum, NULL};
	     *table && !rig->status; table++)
		rig->status = weir_registry_add_operator(rig->registry, *table);
	if (!rig->status)
		rig->status = weir_registry_add_condition(rig->registry, &any);
	handles_put(rig, "/entities/0/conditions", "[{\"type\": \"count\", \"count\": %d}]", FRAMES);
	handles_put(rig, "/entities/1/operator", "\"%s\"", stage);
	if (with_sum) {
		handles_put(rig, "/entities/3", "{\"name\": \"sum\", \"operator\": \"sum\"}");
		handles_put(rig, "/connections/-", "[\"fetch.out\", \"sum.in\"]");
	}
}

/* Runs the graph with this stage, conditions and ports, and checks the sums. */
static void sums_are_right(const char *stage, const char *conditions, const char *ports)
{
	struct handles_rig rig;
	unsigned run = 0;

	begin(&rig, stage, true);
	if (conditions)
		handles_put(&rig, "/entities/3/conditions", "%s", conditions);
	if (ports)
		handles_put(&rig, "/entities/3/ports", "{\"in\": %s}", ports);
	handles_open(&rig);
	while (run < handles_settings.runs && handles_start(&rig) && handles_wait(&rig, 10 * SECOND))
		run++;
	handles_expect(run == handles_settings.runs, "%u of %u runs were right", run, handles_settings.runs);
	handles_close(&rig);
}

static void xa03_the_first_graph_of_a_user_is_right(void)
{
	sums_are_right("gain", NULL, NULL);
}

static void xa03_with_an_explicit_message_available(void)
{
	sums_are_right("gain", "[{\"type\": \"message_available\", \"port\": \"in\", \"min_size\": 1}]",
		       NULL);
	sums_are_right("gain", "[{\"type\": \"message_available\", \"port\": \"in\", \"min_size\": 2}]",
		       "{\"capacity\": 2, \"take\": 2}");
}

static void xa03_with_a_condition_of_ones_own(void)
{
	sums_are_right("gain", "[{\"type\": \"any\", \"input\": \"in\"}]", NULL);
}

static void xa03_taking_all(void)
{
	sums_are_right("gain", NULL, "{\"capacity\": 4, \"take\": \"all\"}");
}

static void xa04_behind_a_stream_that_was_not_joined(void)
{
	sums_are_right("aside", NULL, NULL);
}

static bool frame_is_right(weir_outlet *outlet, uint32_t frame)
{
	weir_message *message = NULL;
	weir_status status = weir_outlet_take(outlet, 10 * SECOND, &message);
	const uint32_t *found = status ? NULL : weir_message_data(message);
	bool right = handles_expect(!status, "frame %u: %s", frame, weir_last_error());

	for (uint32_t k = 0; right && k < NUMBERS; k++)
		right = handles_expect(found[k] == 3 * (frame * STEP + k) + 1, "frame %u: number %u is %u",
				       frame, k, found[k]);
	weir_message_unref(message);
	return right;
}

static void xa03_taken_from_an_outlet(void)
{
	struct handles_rig rig;
	weir_outlet *outlet = NULL;
	const weir_scheduler_options options = {.size = sizeof options,
						.workers = 4,
						.backend = handles_settings.backend,
						.signal = handles_settings.signal};
	bool right;

	begin(&rig, "gain", false);
	right = handles_expect(!rig.status && !weir_graph_create(rig.registry, rig.description, &rig.graph) &&
				       !weir_graph_add_outlet(rig.graph, "fetch.out", 2, 0, &outlet) &&
				       !weir_scheduler_create(rig.graph, &options, &rig.scheduler),
			       "opened: %s", weir_last_error());
	for (unsigned run = 0; right && run < handles_settings.runs; run++) {
		right = handles_start(&rig);
		for (uint32_t frame = 0; right && frame < FRAMES; frame++)
			right = frame_is_right(outlet, frame);
		right = handles_wait(&rig, 10 * SECOND) && right;
	}
	handles_close(&rig);
}

const struct handles_check handles_first[] = {
	{"xa03_the_first_graph_of_a_user_is_right", xa03_the_first_graph_of_a_user_is_right, HANDLES_RUNS},
	{"xa03_with_an_explicit_message_available", xa03_with_an_explicit_message_available, HANDLES_RUNS},
	{"xa03_with_a_condition_of_ones_own", xa03_with_a_condition_of_ones_own, HANDLES_RUNS},
	{"xa03_taking_all", xa03_taking_all, HANDLES_RUNS},
	{"xa04_behind_a_stream_that_was_not_joined", xa04_behind_a_stream_that_was_not_joined, HANDLES_RUNS},
	{"xa03_taken_from_an_outlet", xa03_taken_from_an_outlet, HANDLES_RUNS},
	{.name = NULL},
};
