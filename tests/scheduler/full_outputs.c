/* Outputs that may be full (S3): a tick waits for room behind them only if a condition of the operator's
 * does. */
#include "rig.h"

#define TEST(name) static void name(void **state_)

enum { MESSAGES = 20 };

struct eager {
	uint64_t emitted, full, refused;
};
static struct eager seen;
static bool *asks; /* of the condition: room makes a tick due */
static bool yes = true, no;

/* Emits the next number if there is room; else it looks what an emit says. */
static weir_status eager_compute(weir_context *context, void *state)
{
	struct eager *self = state;
	size_t room = weir_context_room(context, 0);
	weir_message *message = rig_number(context, (int64_t)self->emitted);
	weir_status status = weir_context_emit(context, 0, message);

	self->full += !room;
	self->refused += !room && status == WEIR_E_BUSY;
	self->emitted += room > 0;
	seen = *self;
	if (room && status)
		return status;
	if (room && weir_context_room(context, 0))
		return weir_context_fail(context, "more than max_emits");
	return self->emitted < MESSAGES ? WEIR_OK : weir_context_finish(context);
}

static const weir_port out[] = {{.size = sizeof *out, .name = "out", .flags = WEIR_PORT_FULL},
				{.name = NULL}};
static const weir_operator eager = {.size = sizeof eager,
				    .name = "eager",
				    .state_size = sizeof(struct eager),
				    .outputs = out,
				    .compute = eager_compute};

static weir_status look_compute(weir_context *context, void *state)
{
	int64_t *next = state;

	if (rig_value(weir_context_message(context, 0, 0)) != (*next)++)
		return weir_context_fail(context, "another number");
	return *next < MESSAGES ? WEIR_OK : weir_context_finish(context);
}

static const weir_port in[] = {{.size = sizeof *in, .name = "in", .capacity = 2}, {.name = NULL}};
static const weir_operator look = {.size = sizeof look,
				   .name = "look",
				   .state_size = sizeof(int64_t),
				   .inputs = in,
				   .compute = look_compute};

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (!*asks || weir_view_room(view, 0)) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "no room");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_ROOM, 0, 1);
}

static const weir_condition room_asked = {
	.size = sizeof room_asked, .name = "room_asked", .ask = ask, .flags = WEIR_CONDITION_TIMELESS};

/* A source that is due each millisecond, and a receiver each ten. */
static void run_eager(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"eager\", \"conditions\": ["
		"{\"type\": \"periodic\", \"period\": \"1ms\"}, {\"type\": \"room_asked\"}]},"
		"{\"name\": \"b\", \"operator\": \"look\", \"conditions\": [{\"type\": \"periodic\", "
		"\"period\": "
		"\"10ms\"}, {\"type\": \"message_available\", \"port\": \"in\"}]}],"
		"\"connections\": [[\"a.out\", \"b.in\"]]}",
		(const weir_operator *[]){&eager, &look, NULL});

	seen = (struct eager){0};
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, MESSAGES);
	rig_destroy(rig);
}

static void run_unasked(void)
{
	asks = &no;
	run_eager();
	assert_true(seen.full > MESSAGES); /* it ticks all the same, and nothing is lost */
	assert_int_equal(seen.refused, seen.full);
}

TEST(s03_an_output_that_may_be_full_holds_no_tick_back)
{
	(void)state_;
	rig_in_worlds(20, run_unasked);
}

static void run_asked(void)
{
	asks = &yes;
	run_eager();
	assert_int_equal(seen.full, 0);
}

TEST(s03_a_condition_that_asks_for_room_is_woken_by_it)
{
	(void)state_;
	rig_in_worlds(20, run_asked);
	rig_on_host(run_asked);
}

static weir_status burst_compute(weir_context *context, void *state)
{
	uint64_t *emitted = state;
	size_t most = weir_context_room(context, 0);
	weir_status status = WEIR_OK;

	if (most > 2)
		return weir_context_fail(context, "more room than the queue has");
	for (; most && !status && *emitted < MESSAGES; most--)
		status = weir_context_emit(context, 0, rig_number(context, (int64_t)(*emitted)++));
	if (!status && !most && weir_context_room(context, 0))
		return weir_context_fail(context, "there is room behind what took all");
	return status || *emitted < MESSAGES ? status : weir_context_finish(context);
}

static const weir_port many[] = {
	{.size = sizeof *many, .name = "out", .flags = WEIR_PORT_FULL, .max_emits = 64}, {.name = NULL}};
static const weir_operator burst = {.size = sizeof burst,
				    .name = "burst",
				    .state_size = sizeof(uint64_t),
				    .outputs = many,
				    .compute = burst_compute};

static void run_burst(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"burst\", "
		"\"conditions\": [{\"type\": \"downstream_message_affordable\", \"port\": \"out\"}]}, "
		"{\"name\": \"b\", \"operator\": \"look\"}], "
		"\"connections\": [[\"a.out\", \"b.in\"]]}",
		(const weir_operator *[]){&burst, &look, NULL});

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, MESSAGES);
	rig_destroy(rig);
}

TEST(s03_an_output_that_may_be_full_emits_what_fits_however_much_it_may)
{
	(void)state_;
	rig_in_worlds(20, run_burst);
	rig_on_host(run_burst);
}

/* It emits without end, and says goodbye in a tick of its own. */
static weir_status polite_compute(weir_context *context, void *state)
{
	struct eager *self = state;

	if (weir_context_receivers_done(context, 1) || weir_context_receivers_done(context, 2))
		return weir_context_fail(context, "an output has no receiver, or is not there");
	if (!weir_context_receivers_done(context, 0))
		return weir_context_emit(context, 0, rig_number(context, (int64_t)self->emitted++));
	seen = *self;
	seen.full = 1;
	return weir_context_finish(context);
}

static const weir_port two[] = {
	{.size = sizeof *two, .name = "out", .flags = WEIR_PORT_FULL},
	{.size = sizeof *two, .name = "no", .flags = WEIR_PORT_FULL | WEIR_PORT_OPTIONAL},
	{.name = NULL}};
static const weir_operator polite = {.size = sizeof polite,
				     .name = "polite",
				     .flags = WEIR_OPERATOR_EFFECTS,
				     .state_size = sizeof(struct eager),
				     .outputs = two,
				     .compute = polite_compute};

static void ask_for_end(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (!weir_view_receivers_done(view, 1) &&
	    (weir_view_receivers_done(view, 0) || weir_view_room(view, 0)))
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, "no room");
}

static const weir_condition end_asked = {
	.size = sizeof end_asked, .name = "end_asked", .ask = ask_for_end, .flags = WEIR_CONDITION_TIMELESS};

/* Of its two receivers one is done sooner. */
static void run_polite(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"polite\", "
		"\"conditions\": [{\"type\": \"end_asked\"}]}, "
		"{\"name\": \"b\", \"operator\": \"look\"}, {\"name\": \"c\", \"operator\": \"look\", "
		"\"conditions\": [{\"type\": \"count\", \"count\": 2}, "
		"{\"type\": \"message_available\", \"port\": \"in\"}]}], "
		"\"connections\": [{\"from\": \"a.out\", \"to\": [\"b.in\", \"c.in\"]}]}",
		(const weir_operator *[]){&polite, &look, NULL});

	seen = (struct eager){0};
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, MESSAGES);
	assert_int_equal(rig_counts(rig, "c").received, 2);
	assert_int_equal(seen.full, 1);
	assert_true(seen.emitted >= MESSAGES);
	rig_destroy(rig);
}

TEST(s05_the_end_of_all_receivers_makes_a_tick_due_that_hears_of_it)
{
	(void)state_;
	rig_in_worlds(20, run_polite);
	rig_on_host(run_polite);
}

static weir_status held_start(weir_context *context, void *state, const weir_values *values)
{
	(void)state, (void)values;
	return weir_context_hold(context, 0, 0);
}

static weir_status held_compute(weir_context *context, void *state)
{
	(void)state;
	seen.full += weir_context_stopping(context);
	return weir_context_finish(context);
}

static weir_status endless_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static const weir_port endless_out[] = {{.size = sizeof *endless_out, .name = "out"}, {.name = NULL}};
static const weir_operator endless = {
	.size = sizeof endless, .name = "endless", .outputs = endless_out, .compute = endless_compute};
static const weir_port held_in[] = {{.size = sizeof *held_in, .name = "in"}, {.name = NULL}};
static const weir_operator held = {
	.size = sizeof held, .name = "held", .inputs = held_in, .start = held_start, .compute = held_compute};

static void ask_for_drain(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_stopping(view)) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "no drain");
	weir_verdict_external(verdict);
}

static const weir_condition drain_asked = {.size = sizeof drain_asked,
					   .name = "drain_asked",
					   .ask = ask_for_drain,
					   .flags = WEIR_CONDITION_TIMELESS};

/* No sender of the held input closes: between them stands an entity without room. */
static void run_held(void)
{
	struct rig *rig =
		rig_of_json("{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"endless\"}, "
			    "{\"name\": \"between\", \"operator\": \"pass\"}, "
			    "{\"name\": \"b\", \"operator\": \"held\", \"conditions\": [{\"type\": "
			    "\"drain_asked\"}]}], "
			    "\"connections\": [[\"a.out\", \"between.in\"], [\"between.out\", \"b.in\"]]}",
			    (const weir_operator *[]){&endless, &held, NULL});

	seen = (struct eager){0};
	rig->options.drain_ns = INT64_MAX;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(seen.full, 1);
	assert_int_equal(rig_ticks(rig, "b"), 1);
	rig_destroy(rig);
}

TEST(s07_a_condition_is_asked_when_a_drain_begins_and_sees_it)
{
	(void)state_;
	rig_in_worlds(20, run_held);
	rig_on_host(run_held);
}

TEST(s03_no_operator_with_instances_has_an_output_that_may_be_full)
{
	weir_operator table = eager;
	weir_registry *registry;

	(void)state_;
	table.flags = WEIR_OPERATOR_INSTANCES;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_E_INVALID);
	assert_says(weir_last_error(), "may be full");
	weir_registry_destroy(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_an_output_that_may_be_full_holds_no_tick_back),
		cmocka_unit_test(s03_a_condition_that_asks_for_room_is_woken_by_it),
		cmocka_unit_test(s03_an_output_that_may_be_full_emits_what_fits_however_much_it_may),
		cmocka_unit_test(s05_the_end_of_all_receivers_makes_a_tick_due_that_hears_of_it),
		cmocka_unit_test(s07_a_condition_is_asked_when_a_drain_begins_and_sees_it),
		cmocka_unit_test(s03_no_operator_with_instances_has_an_output_that_may_be_full),
	};
	static const weir_condition *const conditions[] = {&room_asked, &end_asked, &drain_asked, NULL};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
