/*
 * What `weir check` says of ways that meet again comes true: with less than the capacity that it names a run
 * stands still or is slower, with that capacity it is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

struct said {
	int number;
	unsigned capacity; /* that the line names */
};

static void note_warning(const weir_diagnostic *diagnostic, void *arg)
{
	struct said *said = arg;
	const char *to = strstr(diagnostic->text, "' to ");

	if (!diagnostic->warning)
		return;
	said->number = diagnostic->number;
	for (; to; to = strstr(to + 1, "' to "))
		said->capacity = (unsigned)strtoul(to + 5, NULL, 10);
}

static weir_status pass_all(struct rig *rig, weir_context *context)
{
	weir_status status = WEIR_OK;

	(void)rig;
	for (size_t i = 0; !status && i < weir_context_count(context, 0); i++)
		status = weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, i)));
	return status;
}

/* How the run of the graph ends, after what check says. */
static weir_status checked_run(const char *text, struct said *said, int64_t *duration)
{
	weir_description *description;
	struct rig *rig = rig_described(text, &description);
	weir_status status;

	*said = (struct said){0};
	assert_int_equal(weir_description_check(description, rig->registry, note_warning, said), WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	rig->options.workers = 8;
	for (size_t i = 0; i < rig->entity_count; i++)
		rig->entities[i].compute = pass_all; /* of a `call` */
	status = rig_run(rig);
	*duration = rig->outcome.duration_ns;
	rig_destroy(rig);
	return status;
}

static void stand_still(void)
{
	struct said said;
	int64_t duration;
	char text[256];

	for (unsigned capacity = 1; capacity <= 5; capacity++) {
		bool stuck = capacity < 4;
		snprintf(text, sizeof text,
			 "source ticks=8 -> x:call capacity=4 take=4 max_emits=4 -> j:end capacity=4; "
			 "source -> j.in2 capacity=%u",
			 capacity);
		assert_int_equal(checked_run(text, &said, &duration), stuck ? WEIR_E_DEADLOCK : WEIR_OK);
		assert_int_equal(said.number, stuck ? 52 : capacity < 5 ? 53 : 0);
		assert_int_equal(said.capacity, stuck ? 4 : capacity < 5 ? 5 : 0);
	}
}

TEST(xb52_with_less_than_the_named_capacity_a_join_stands_still)
{
	(void)state_;
	rig_in_world(1, stand_still);
}

static void overlap(void)
{
	int64_t before = INT64_MAX, duration;
	struct said said;
	char text[256];

	for (unsigned capacity = 1; capacity <= 6; capacity++) {
		snprintf(text, sizeof text,
			 "source ticks=50 -> a:pass delay=10ms -> b:pass delay=10ms -> c:pass delay=10ms -> "
			 "d:pass delay=10ms -> j:end; a -> j.in2 capacity=%u",
			 capacity);
		assert_int_equal(checked_run(text, &said, &duration), WEIR_OK);
		assert_int_equal(said.number, capacity < 4 ? 53 : 0);
		assert_int_equal(said.capacity, capacity < 4 ? 4 : 0);
		assert_true(capacity <= 4 ? duration < before - 50 * MS : duration > before - 20 * MS);
		before = duration;
	}
}

TEST(xb52_the_named_capacity_is_the_least_with_which_all_entities_work_at_once)
{
	(void)state_;
	rig_in_world(1, overlap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb52_with_less_than_the_named_capacity_a_join_stands_still),
		cmocka_unit_test(xb52_the_named_capacity_is_the_least_with_which_all_entities_work_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
