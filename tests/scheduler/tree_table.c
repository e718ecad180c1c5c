/*
 * All trees any_of [A, B, all_of [C, D]] of what a condition can say (C11), against a reference: the answer,
 * the time, and the fences in groups. The graph does not run.
 */
#include "ask_rig.h"

enum says { READY, POKE, EARLY, LATE, FENCE, ZERO, OUTSIDE, NEVER, SAYS };
enum { LEAVES = 4, T1 = 1, T2 = 2, TREE = 1 /* behind in_flight */ };

static enum says said[LEAVES];

static weir_status says_start(void *state, const weir_values *values)
{
	*(int64_t *)state = weir_values_int(values, "leaf");
	return WEIR_OK;
}

/* Times that lie ahead. */
static int64_t time_of(enum says says)
{
	return INT64_MAX / 2 + (says == EARLY ? T1 : T2);
}

static weir_fence fence_of(size_t leaf)
{
	return said[leaf] == ZERO ? (weir_fence){0, 0} : (weir_fence){leaf + 1, 1};
}

static void says_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	size_t leaf = (size_t) * (const int64_t *)state;

	(void)view;
	switch (said[leaf]) {
	case READY:
		weir_verdict_ready(verdict);
		return;
	case NEVER:
		weir_verdict_never(verdict, "never");
		return;
	case EARLY:
	case LATE:
		weir_verdict_until(verdict, time_of(said[leaf]));
		return;
	case FENCE:
	case ZERO: /* it is complete at all times */
		weir_verdict_fence(verdict, fence_of(leaf));
		return;
	case OUTSIDE:
		weir_verdict_external(verdict);
		return;
	case POKE:
	case SAYS:
		weir_verdict_wait(verdict, "a poke");
	}
}

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "leaf", .type = WEIR_TYPE_INT, .help = "its index"},
	{.name = NULL}};
static const weir_condition says_kind = {.size = sizeof(weir_condition),
					 .name = "says",
					 .help = "what the test says",
					 .state_size = sizeof(int64_t),
					 .parameters = parameters,
					 .phase = WEIR_PHASE_GATHERING,
					 .start = says_start,
					 .ask = says_ask};
static const weir_operator nothing = {
	.size = sizeof(weir_operator), .name = "nothing", .help = "has no ports"};

/* --- the reference --- */

struct wait {
	enum says answer; /* READY, NEVER, or POKE: it waits */
	int64_t at;
	bool outside;
	size_t groups;
	weir_fence fences[LEAVES];
};

static struct wait wait_of(size_t leaf)
{
	enum says says = said[leaf];

	return (struct wait){.answer = says == READY || says == NEVER ? says : POKE,
			     .at = says == EARLY || says == LATE ? time_of(says) : INT64_MAX,
			     .outside = says == OUTSIDE,
			     .groups = says == FENCE || says == ZERO,
			     .fences = {fence_of(leaf)}};
}

/* The one that only a poke ends, else the one for outside, for a fence, for the later time. */
static struct wait both(size_t a, size_t b)
{
	static const int order[SAYS] = {[READY] = 0, [EARLY] = 1,   [LATE] = 2, [FENCE] = 3,
					[ZERO] = 3,  [OUTSIDE] = 4, [POKE] = 5, [NEVER] = 6};

	return wait_of(order[said[b]] > order[said[a]] ? b : a);
}

static struct wait either(struct wait a, struct wait b)
{
	if (a.answer == READY || b.answer == NEVER)
		return a;
	if (b.answer == READY || a.answer == NEVER)
		return b;
	a.at = a.at < b.at ? a.at : b.at;
	a.outside |= b.outside;
	for (size_t i = 0; i < b.groups; i++)
		a.fences[a.groups++] = b.fences[i];
	return a;
}

static struct wait expected(void)
{
	return either(either(wait_of(0), wait_of(1)), both(2, 3));
}

/* --- the comparison --- */

static void check(weir_entity *entity)
{
	static const enum wr_answer answers[SAYS] = {
		[READY] = WR_READY, [POKE] = WR_WAIT, [NEVER] = WR_NEVER};
	const weir_verdict *verdict = &entity->verdict;
	struct wait wait = expected();

	assert_int_equal(wr_entity_ask(entity, false), answers[wait.answer]);
	if (wait.answer != POKE)
		return;
	assert_int_equal(verdict->at, wait.at);
	assert_int_equal(verdict->external,
			 (wait.outside ? WR_OUTSIDE : 0) | (wait.groups > 1 ? WR_ALTERNATIVES : 0));
	assert_int_equal(verdict->fence_count, wait.groups);
	for (size_t i = 0; i < verdict->fence_count; i++) {
		assert_int_equal(entity->conditions[TREE].ends[i], i + 1);
		assert_int_equal(verdict->fences[i].stream, wait.fences[i].stream);
		assert_int_equal(verdict->fences[i].value, wait.fences[i].value);
	}
}

static void c11_c02_a_tree_waits_for_the_first_of_its_alternatives(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"x\", \"operator\": \"nothing\", \"conditions\": "
		"[{\"type\": \"any_of\", \"conditions\": [{\"type\": \"says\", \"leaf\": 0}, {\"type\": "
		"\"says\", \"leaf\": 1}, {\"type\": \"all_of\", \"conditions\": [{\"type\": \"says\", "
		"\"leaf\": 2}, {\"type\": \"says\", \"leaf\": 3}]}]}]}], \"connections\": []}";
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_graph *graph = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &nothing), WEIR_OK);
	assert_int_equal(weir_registry_add_condition(registry, &says_kind), WEIR_OK);
	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(registry, description, &graph), WEIR_OK);
	weir_description_destroy(description);
	reset_graph(graph);
	for (unsigned i = 0; i < SAYS * SAYS * SAYS * SAYS; i++) {
		unsigned rest = i;
		for (size_t k = 0; k < LEAVES; k++, rest /= SAYS)
			said[k] = (enum says)(rest % SAYS);
		check(weir_graph_entity(graph, "x"));
	}
	weir_graph_destroy(graph);
	weir_registry_destroy(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c11_c02_a_tree_waits_for_the_first_of_its_alternatives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
