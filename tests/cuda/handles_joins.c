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
	int64_t duration, step;
};

static const weir_parameter send_parameters[] = {{.size = sizeof(weir_parameter),
						  .name = "duration",
						  .type = WEIR_TYPE_DURATION,
						  .fallback = "0",
						  .help = "of its kernel"},
						 {.size = sizeof(weir_parameter),
						  .name = "step",
						  .type = WEIR_TYPE_INT,
						  .fallback = "1",
						  .help = "from number to number"},
						 {.name = NULL}};

static weir_status send_start(weir_context *context, void *state, const weir_values *values)
{
	struct send *self = state;

	(void)context;
	self->duration = weir_values_int(values, "duration");
	self->step = weir_values_int(values, "step");
	return WEIR_OK;
}

/* Gives words that hold the poison; NULL after a failure. */
static weir_message *poisoned(weir_context *context)
{
	static const int64_t shape = WORDS;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &shape, .code = 1, .bits = 32};
	weir_message *message;
	uint32_t *words;

	if (weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message))
		return NULL;
	words = weir_message_data(message);
	for (int i = 0; i < WORDS; i++)
		words[i] = POISON;
	return message;
}

static weir_status send_compute(weir_context *context, void *state)
{
	const struct send *self = state;
	uint32_t number = (uint32_t)(weir_context_tick(context) * (uint64_t)self->step) + 1;
	weir_message *message = poisoned(context);
	weir_status status;

	if (!message)
		return WEIR_E_FAILED;
	status = weir_stream_launch(
		current_stream(context), &handles_fill_kernel,
		&(struct handles_fill){weir_message_data(message), WORDS, self->duration, number * WORDS},
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

static weir_status pair_compute(weir_context *context, void *state)
{
	uint32_t left = number_of(context, 0), right = left ? number_of(context, 1) : 0;

	(void)state;
	if (!right)
		return WEIR_E_FAILED;
	received++;
	return left == right ? WEIR_OK : weir_context_fail(context, "message %u beside %u", left, right);
}

/*
 * The last whole message of each third number, beside each number: that it is given again does not free it,
 * or let its block be written anew.
 */
static weir_status again_compute(weir_context *context, void *state)
{
	uint32_t third = number_of(context, 0), each = third ? number_of(context, 1) : 0;
	bool is_new = weir_context_age(context, 0) == -1;

	(void)state;
	if (!each)
		return WEIR_E_FAILED;
	if (each != ++received || third != each - (each - 1) % 3 || is_new != (third == each) ||
	    weir_message_unique(weir_context_message(context, 0, 0)))
		return weir_context_fail(context, "message %u beside %u, %s", each, third,
					 is_new ? "new" : "again");
	with_newer += !is_new;
	return received == handles_settings.frames ? weir_context_finish(context) : WEIR_OK;
}

/* One of several instances: each number n of what is received becomes 3 n + 1, after a while. */
static weir_status work_compute(weir_context *context, void *state)
{
	const weir_message *from = weir_context_message(context, 0, 0);
	weir_stream *stream = current_stream(context);
	weir_message *message = poisoned(context);
	weir_status status;

	(void)state;
	if (!message)
		return WEIR_E_FAILED;
	status = weir_stream_launch(
		stream, &handles_fill_kernel,
		&(struct handles_fill){weir_message_data(message), WORDS, 50000, (uint32_t)POISON},
		sizeof(struct handles_fill));
	if (!status)
		status = weir_stream_launch(
			stream, &handles_triple_kernel,
			&(struct handles_triple){weir_message_data(from), weir_message_data(message), WORDS},
			sizeof(struct handles_triple));
	if (!status)
		status = weir_message_set_stamp(message, weir_message_stamp(from));
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static weir_status order_compute(weir_context *context, void *state)
{
	const weir_message *message = weir_context_message(context, 0, 0);
	const uint32_t *words = weir_message_data(message);
	uint32_t number = (uint32_t)++received;

	(void)state;
	for (uint32_t i = 0; i < WORDS; i++)
		if (words[i] != 3 * (number * WORDS + i) + 1)
			return weir_context_fail(context, "word %u of result %u is %#x", i, number, words[i]);
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

static const weir_operator pair = {
	.size = sizeof pair, .name = "pair", .inputs = inputs, .compute = pair_compute};
static const weir_operator again = {
	.size = sizeof again, .name = "again", .inputs = inputs, .compute = again_compute};
static const weir_port one[] = {{.size = sizeof *one, .name = "in", .capacity = 4}, {.name = NULL}};
static const weir_operator work = {.size = sizeof work,
				   .name = "work",
				   .flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
				   .inputs = one,
				   .outputs = outputs,
				   .compute = work_compute};
static const weir_operator order = {
	.size = sizeof order, .name = "order", .inputs = one, .compute = order_compute};

/* Runs the graph, whose first entity makes so many messages, to its end. */
static void run_joined(const char *graph, int64_t count)
{
	static const weir_operator *const all[] = {&sends, &newest, &pair, &again, &work, &order};
	struct handles_rig rig;

	handles_begin(&rig, graph);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		handles_expect(!weir_registry_add_operator(rig.registry, all[i]), "%s: %s", all[i]->name,
			       weir_last_error());
	handles_put(&rig, "/entities/0/conditions", "[{\"type\": \"count\", \"count\": %lld}]",
		    (long long)count);
	if (handles_open(&rig) && handles_start(&rig))
		handles_wait(&rig, 50 * SECOND);
	handles_close(&rig);
}

static const char latest[] =
	"{\"weir\": 1, \"name\": \"latest\", \"entities\": ["
	"{\"name\": \"frames\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"20us\"}},"
	"{\"name\": \"slow\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"150us\"}},"
	"{\"name\": \"show\", \"operator\": \"newest\", \"ports\": {\"with\": {\"policy\": \"latest\"}}}],"
	" \"connections\": [[\"frames.out\", \"show.in\"], [\"slow.out\", \"show.with\"]]}";

static void c04_what_a_latest_port_shows_is_whole(void)
{
	run_joined(latest, handles_settings.frames);
	handles_expect(received == handles_settings.frames && with_newer > 0,
		       "%" PRId64 " of %" PRId64 " frames came, with %" PRId64 " others", received,
		       handles_settings.frames, with_newer);
	printf("told %" PRId64 " frames with %" PRId64 " newest messages, all whole\n", received, with_newer);
}

static const char aligned[] =
	"{\"weir\": 1, \"name\": \"aligned\", \"entities\": ["
	"{\"name\": \"third\", \"operator\": \"send_numbers\","
	" \"parameters\": {\"duration\": \"60us\", \"step\": 3}},"
	"{\"name\": \"each\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"20us\"}},"
	"{\"name\": \"pair\", \"operator\": \"pair\","
	" \"conditions\": [{\"type\": \"aligned\", \"ports\": [\"in\", \"with\"], \"by\": \"tag\"}]}],"
	" \"connections\": [[\"third.out\", \"pair.in\"], [\"each.out\", \"pair.with\"]]}";

static void c12_what_belongs_together_is_whole(void)
{
	int64_t wanted = handles_settings.frames / 3;

	run_joined(aligned, wanted);
	handles_expect(received == wanted, "%" PRId64 " of %" PRId64 " pairs came", received, wanted);
}

/* A pool of the least size: a block in the queue, one that is kept, one that is claimed. */
static const char reused[] =
	"{\"weir\": 1, \"name\": \"reused\", \"resources\": {\"blocks\": {\"type\": \"memory_pool\","
	" \"place\": \"host\", \"block_size\": 256, \"blocks\": 3}}, \"entities\": ["
	"{\"name\": \"each\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"20us\"}},"
	"{\"name\": \"third\", \"operator\": \"send_numbers\", \"resources\": [\"blocks\"],"
	" \"parameters\": {\"duration\": \"60us\", \"step\": 3}},"
	"{\"name\": \"again\", \"operator\": \"again\", \"ports\": {\"with\": {\"capacity\": 4}}, "
	"\"conditions\":"
	" [{\"type\": \"aligned\", \"ports\": [\"in\", \"with\"], \"by\": \"tag\", \"missing\": "
	"\"reuse\"}]}],"
	" \"connections\": [[\"third.out\", \"again.in\"], [\"each.out\", \"again.with\"]]}";

static void c12_what_is_given_again_is_whole(void)
{
	int64_t frames = handles_settings.frames;

	run_joined(reused, frames);
	handles_expect(received == frames && with_newer == frames - (frames + 2) / 3,
		       "%" PRId64 " of %" PRId64 " messages came, %" PRId64 " with one that was there before",
		       received, frames, with_newer);
}

static const char instances[] =
	"{\"weir\": 1, \"name\": \"instances\", \"entities\": ["
	"{\"name\": \"send\", \"operator\": \"send_numbers\", \"parameters\": {\"duration\": \"20us\"}},"
	"{\"name\": \"work\", \"operator\": \"work\", \"instances\": 3},"
	"{\"name\": \"order\", \"operator\": \"order\"}],"
	" \"connections\": [[\"send.out\", \"work.in\"], [\"work.out\", \"order.in\"]]}";

static void c13_results_of_instances_are_whole_and_in_order(void)
{
	run_joined(instances, handles_settings.frames);
	handles_expect(received == handles_settings.frames, "%" PRId64 " of %" PRId64 " results came",
		       received, handles_settings.frames);
}

const struct handles_check handles_joins[] = {
	{"c04_what_a_latest_port_shows_is_whole", c04_what_a_latest_port_shows_is_whole, 0},
	{"c12_what_belongs_together_is_whole", c12_what_belongs_together_is_whole, 0},
	{"c12_what_is_given_again_is_whole", c12_what_is_given_again_is_whole, 0},
	{"c13_results_of_instances_are_whole_and_in_order", c13_results_of_instances_are_whole_and_in_order,
	 0},
	{.name = NULL},
};
