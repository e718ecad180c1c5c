/* Batches by the messages that wait, and by how long: runs of a graph that counts what its ticks receive. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

static char received[512];
static size_t length;

static weir_status note_batch(weir_context *context, void *state)
{
	(void)state;
	length +=
		(size_t)snprintf(received + length, sizeof received - length, "%s%zu,%zu", length ? " " : "",
				 weir_context_count(context, 0), weir_context_count(context, 1));
	return WEIR_OK;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"},
				   {.size = sizeof(weir_port), .name = "in2", .flags = WEIR_PORT_OPTIONAL},
				   {.name = NULL}};
static const weir_operator batch = {.size = sizeof(weir_operator),
				    .name = "batch",
				    .help = "notes how many messages its ticks receive",
				    .inputs = inputs,
				    .compute = note_batch};

/* Ten messages at 0, 10, ... 90 ms, and five at 5, 25, ... 85 ms, for the other port if the condition names
 * it. */
static void run(const char *condition, const char *policy, const char *expected)
{
	char json[1400];
	struct rig *rig;

	snprintf(json, sizeof json,
		 "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"ping\", \"conditions\": "
		 "[{\"type\": "
		 "\"periodic\", \"period\": \"10ms\"}, {\"type\": \"count\", \"count\": 10}]}, {\"name\": "
		 "\"c\", "
		 "\"operator\": \"ping\", \"conditions\": [{\"type\": \"periodic\", \"period\": \"20ms\", "
		 "\"offset\": \"5ms\"}, "
		 "{\"type\": "
		 "\"count\", \"count\": 5}]}, {\"name\": \"b\", \"operator\": \"batch\", \"ports\": {\"in\": "
		 "{\"capacity\": "
		 "4, \"take\": \"all\", \"policy\": \"%s\"}, \"in2\": {\"capacity\": 4, \"take\": \"all\"}}, "
		 "\"conditions\": [%s]}], \"connections\": [[\"a.out\", \"b.in\"], [\"c.out\", \"%s\"]]}",
		 policy, condition, strstr(condition, "in2") ? "b.in2" : "b.in");
	length = 0;
	received[0] = 0;
	rig = rig_of_json(json, (const weir_operator *[]){&batch, NULL});
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, 15);
	rig_destroy(rig);
	if (expected)
		assert_string_equal(received, expected);
}

#define SUM "{\"type\": \"multi_message_available\", \"ports\": [\"in\", \"in2\"], \"min_sum\": 4%s}"
#define EXPIRE                                                                                               \
	"{\"type\": \"expiring_message_available\", \"port\": \"in\", \"max_batch\": 4, \"max_delay\": "     \
	"\"%s\"}"

static void sums(void)
{
	char text[300];

	snprintf(text, sizeof text, SUM, "");
	run(text, "block", "3,1 2,2 3,1 2,1");
	snprintf(text, sizeof text, SUM, ", \"timeout\": \"11ms\"");
	run(text, "block", "2,1 1,0 1,1 1,0 1,1 1,1 1,0 1,1 1,0");
}

static void sizes(void)
{
	run("{\"type\": \"multi_message_available\", \"ports\": [\"in\", \"in2\"], \"min_sizes\": [2, 1]}",
	    "block", "2,1 2,1 2,1 2,1 2,1");
}

/* Both senders at one port. */
static void delays(void)
{
	char text[300];

	snprintf(text, sizeof text, EXPIRE, "15ms");
	run(text, "block", "3,0 3,0 3,0 3,0 3,0");
	run(text, "pop", "3,0 3,0 3,0 3,0 3,0");
	snprintf(text, sizeof text, EXPIRE, "1s");
	run(text, "block", "4,0 4,0 4,0 3,0");
}

/* On a real clock the batches are what they are; nothing is lost. */
static void some_batches(void)
{
	char text[300];

	snprintf(text, sizeof text, SUM, ", \"timeout\": \"3ms\"");
	run(text, "block", NULL);
	snprintf(text, sizeof text, EXPIRE, "3ms");
	run(text, "block", NULL);
	run(text, "pop", NULL);
}

static void e05_batches_of_real_threads_lose_nothing(void **state)
{
	(void)state;
	rig_on_host(some_batches);
}

static void c02_a_batch_by_the_sum_of_several_inputs(void **state)
{
	(void)state;
	rig_in_worlds(20, sums);
}

static void c02_a_batch_of_so_many_of_each(void **state)
{
	(void)state;
	rig_in_worlds(20, sizes);
}

static void c02_c04_a_batch_expires_so_long_after_its_oldest_message_was_pushed(void **state)
{
	(void)state;
	rig_in_worlds(20, delays);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c02_a_batch_by_the_sum_of_several_inputs),
		cmocka_unit_test(c02_a_batch_of_so_many_of_each),
		cmocka_unit_test(c02_c04_a_batch_expires_so_long_after_its_oldest_message_was_pushed),
		cmocka_unit_test(e05_batches_of_real_threads_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
