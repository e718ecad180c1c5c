/*
 * Inputs that belong together, of messages that the device still writes: each is filled with a poison before
 * its kernel is launched, and what a tick receives must be whole. With --frames 10000 the kernels of a run
 * and the ticks overlap in many ways.
 */
#include <inttypes.h>
#include <stdio.h>

#include "handles.h"
#include "../calls.h"

#define WORDS  64
#define POISON UINT32_C(0xfefefefe)

static int64_t received, with_newer; /* by the ticks of the only reader */

struct send {
	int64_t duration;
};

static const weir_parameter send_parameters[] = {{.size = sizeof(weir_parameter),
						  .name = "duration",
						  .type = WEIR_TYPE_DURATION,
						  .fallback = "0",
						  .help = "of its kernel"},
						 {.name = NULL}};

static weir_status send_start(weir_context *context, void *state, const weir_values *values)
{
	(void)context;
	((struct send *)state)->duration = weir_values_int(values, "duration");
	return WEIR_OK;
}

static weir_status send_compute(weir_context *context, void *state)
{
	static const int64_t shape = WORDS;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &shape, .code = 1, .bits = 32};
	uint32_t number = (uint32_t)weir_context_tick(context) + 1, *words;
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);

	if (status)
		return status;
	words = weir_message_data(message);
	for (int i = 0; i < WORDS; i++)
		words[i] = POISON;
	status = weir_stream_launch(
		current_stream(context), &handles_fill_kernel,
		&(struct handles_fill){words, WORDS, ((struct send *)state)->duration, number * WORDS},
		sizeof(struct handles_fill));
	if (!status)
		status = weir_message_set_stamp(message, (weir_stamp){.time = 0, .tag = number});
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

/* The number of a whole message, as its stamp says; 0 after a failure. */
static uint32_t number_of(weir_context *context, unsigned input)
{
	const weir_message *message = weir_context_message(context, input, 0);
	const uint32_t *words = weir_message_data(message);
	uint32_t number = (uint32_t)weir_message_stamp(message).tag;

	for (uint32_t i = 0; i < WORDS; i++)
		if (words[i] != number * WORDS + i) {
			weir_context_fail(context, "input %u: word %u of message %u is %#x", input, i, number,
					  words[i]);
			return 0;
		}
	return number;
}

static weir_status newest_compute(weir_context *context, void *state)
{
	uint32_t *last = state, number = number_of(context, 0), with = number ? number_of(context, 1) : 0;

	if (!with)
		return WEIR_E_FAILED;
	if (number != ++received || with < *last)
		return weir_context_fail(context, "tick %" PRId64 " has message %u, with %u after %u",
					 received, number, with, *last);
	with_newer += with > *last;
	*last = with;
	return WEIR_OK;
}

static const weir_port outputs[] = {{.size = sizeof *outputs, .name = "out"}, {.name = NULL}};
static const weir_port inputs[] = {
	{.size = sizeof *inputs, .name = "in"}, {.size = sizeof *inputs, .name = "with"}, {.name = NULL}};
static const weir_operator sends = {.size = sizeof sends,
				    .name = "send_numbers",
				    .flags = WEIR_OPERATOR_STREAM,
				    .state_size = sizeof(struct send),
				    .parameters = send_parameters,
				    .outputs = outputs,
				    .start = send_start,
				    .compute = send_compute};
static const weir_operator newest = {.size = sizeof newest,
				     .name = "newest",
				     .state_size = sizeof(uint32_t),
				     .inputs = inputs,
				     .compute = newest_compute};

static const char latest[] =
	"{\"weir\": 1, \"name\": \"latest\", \"entities\": ["
	"{\"name\": \"frames\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"20us\"}},"
	"{\"name\": \"slow\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"150us\"}},"
	"{\"name\": \"show\", \"operator\": \"newest\", \"ports\": {\"with\": {\"policy\": \"latest\"}}}],"
	" \"connections\": [[\"frames.out\", \"show.in\"], [\"slow.out\", \"show.with\"]]}";

static void c04_what_a_latest_port_shows_is_whole(void)
{
	struct handles_rig rig;

	handles_begin(&rig, latest);
	handles_expect(!weir_registry_add_operator(rig.registry, &sends) &&
			       !weir_registry_add_operator(rig.registry, &newest),
		       "the operators: %s", weir_last_error());
	handles_put(&rig, "/entities/0/conditions", "[{\"type\": \"count\", \"count\": %lld}]",
		    (long long)handles_settings.frames);
	if (handles_open(&rig) && handles_start(&rig)) {
		handles_wait(&rig, 50 * SECOND);
		handles_expect(received == handles_settings.frames && with_newer > 1,
			       "%" PRId64 " of %" PRId64 " frames came, with %" PRId64 " others", received,
			       handles_settings.frames, with_newer);
		printf("told %" PRId64 " frames with %" PRId64 " newest messages, all whole\n", received,
		       with_newer);
	}
	handles_close(&rig);
}

const struct handles_check handles_joins[] = {
	{"c04_what_a_latest_port_shows_is_whole", c04_what_a_latest_port_shows_is_whole, 0},
	{.name = NULL},
};
