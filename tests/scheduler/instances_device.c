/* Device work of several instances (C13): streams, gates, and memory pools of exactly the size that the load
 * requires. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rig.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)
#define OPERATOR   .size = sizeof(weir_operator)
#define PORT       .size = sizeof(weir_port)

enum { SETS = 40, STREAMS = 8 };

static unsigned instances;
static struct {
	_Atomic unsigned next, received;
	_Atomic(weir_stream *) streams[STREAMS]; /* of each instance, by its turn */
} seen;

struct job {
	int64_t *to, value, ns;
};

static int write_value(const void *arguments)
{
	const struct job *job = arguments;

	weir_sleep(job->ns);
	*job->to = job->value;
	return 0;
}

static const weir_kernel writer = {sizeof(weir_kernel), "writer", write_value, NULL};

static weir_status from_compute(weir_context *context, void *state)
{
	(void)state;
	if (weir_context_tick(context) + 1 == SETS)
		weir_context_finish(context);
	return weir_context_emit(context, 0, rig_number(context, (int64_t)weir_context_tick(context)));
}

/* Emits two messages, one or none; the device writes the number of the set into each, later. */
static weir_status work_compute(weir_context *context, void *state)
{
	static const int64_t one = 1;
	static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};
	int64_t set = (int64_t)weir_context_tick(context);
	weir_stream *stream = current_stream(context);
	weir_status status = stream ? WEIR_OK : WEIR_E_DEVICE;

	(void)state;
	wr_store(&seen.streams[set % instances], stream);
	for (int64_t i = 0; !status && i < set % 3; i++) {
		struct job job = {NULL, set, (set * 11 % 7) * 20 * US};
		weir_message *message = NULL;

		status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);
		if (status)
			break;
		job.to = weir_message_data(message);
		*job.to = -1;
		status = weir_stream_launch(stream, &writer, &job, sizeof job);
		status = status ? status : weir_context_emit(context, 0, message);
	}
	return status;
}

/* A host port: what it takes is finished. */
static weir_status to_compute(weir_context *context, void *state)
{
	int64_t number = *(const int64_t *)weir_message_data(weir_context_message(context, 0, 0));
	unsigned next = wr_load(&seen.next);

	(void)state;
	if (number < (int64_t)next)
		return weir_context_fail(context, "%lld comes after %u", (long long)number, next);
	wr_store(&seen.next, (unsigned)number);
	wr_fetch_add(&seen.received, 1);
	return WEIR_OK;
}

static const weir_port in[] = {{PORT, .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{PORT, .name = "out"}, {.name = NULL}};
static const weir_port two[] = {{PORT, .name = "out", .max_emits = 2, .kinds = WEIR_KIND_TENSOR},
				{.name = NULL}};
static const weir_operator from = {OPERATOR, .name = "from", .outputs = out, .compute = from_compute};
static const weir_operator work = {
	OPERATOR,     .name = "work", .flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.inputs = in, .outputs = two, .compute = work_compute};
static const weir_operator to = {OPERATOR, .name = "to", .inputs = in, .compute = to_compute};
static const weir_operator *const operators[] = {&from, &work, &to, NULL};

static void check_device(void)
{
	char json[700];
	struct rig *rig;
	unsigned emitted = 0;

	memset(&seen, 0, sizeof seen);
	snprintf(
		json, sizeof json,
		"{\"weir\":1,\"resources\":{\"p\":{\"type\":\"memory_pool\",\"place\":\"host\",\"blocks\":%u,"
		"\"block_size\":256}},"
		"\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
		"{\"name\":\"x\",\"operator\":\"work\",\"resources\":[\"p\"],\"instances\":%u},"
		"{\"name\":\"b\",\"operator\":\"to\",\"ports\":{\"in\":{\"capacity\":2}}}],"
		"\"connections\":[[\"a.out\",\"x.in\"],[\"x.out\",\"b.in\"]]}",
		5 * instances + 2, instances);
	rig = rig_of_json(json, operators);
	rig->options.workers = 3;
	if (rig_run(rig))
		fail_msg("%s", rig->outcome.text);
	for (unsigned i = 0; i < SETS; i++)
		emitted += i % 3;
	assert_int_equal(wr_load(&seen.received), emitted);
	for (unsigned k = 1; k < instances; k++)
		assert_ptr_not_equal(wr_load(&seen.streams[k]), wr_load(&seen.streams[0]));
	rig_destroy(rig);
}

TEST(c13_c08_s03_instances_have_streams_and_a_pool_of_the_least_size_is_enough)
{
	(void)state_;
	for (instances = 2; instances <= 4; instances++) {
		rig_in_worlds(60, check_device);
		rig_on_host(check_device);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c13_c08_s03_instances_have_streams_and_a_pool_of_the_least_size_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
