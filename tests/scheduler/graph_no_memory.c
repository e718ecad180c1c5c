/*
 * F40: any one allocation in the life of a graph fails, or all from one on. Each call then fails, or does all
 * of its work; nothing half-built remains, and everything can still be destroyed.
 */
#include <string.h>

#include "base/memory.h"
#include "rig_scratch.h"

enum { MOST = 4000 };

/* --- the end --- */

static void run_and_end_without_memory(void)
{
	struct rig *rig = rig_of("source ticks=3 work=1us -> p:pass work=1us -> end gate=in");
	weir_status status;

	assert_int_equal(rig_run(rig), WEIR_OK);
	wr_memory_fail_at(0, true);
	status = weir_scheduler_destroy(rig->scheduler);
	if (!status)
		status = weir_graph_destroy(rig->graph);
	wr_memory_fail_at(-1, false);
	assert_int_equal(status, WEIR_OK);
	rig->scheduler = NULL;
	rig->graph = NULL;
	rig_destroy(rig);
}

static void xb31_what_was_made_ends_without_memory(void **state)
{
	(void)state;
	run_and_end_without_memory(); /* each call enters the graph's own world */
	rig_everywhere(run_and_end_without_memory);
}

/* --- a whole life --- */

/*
 * One of each: a fan-in of many senders, initial messages, pools, partitions, flags, an inlet and outlets;
 * statistics, with the GPU time of every second tick.
 */
static const char all_kinds[] =
	"a1:source ticks=1 -> many:end; a2:source ticks=1 -> many; a3:source ticks=1 -> many; "
	"a4:source ticks=1 -> many; a5:source ticks=1 -> many; a6:source ticks=1 -> many; "
	"a7:source ticks=1 -> many; a8:source ticks=1 -> many; a9:source ticks=1 -> many; "
	"gpu:source ticks=2 work=1us pool=part -> p:pass pool=p work=1us -> gated:end gate=in,flag; "
	"gpu3:source ticks=2 work=1us -> all:call pool=p -> x:end; all.out2 -> y:end; "
	"c:pass capacity=2 -> d:pass count=3 initial_messages=1 -> c initial_messages=1; fed:end gate=in; "
	"out:pass -> "
	"sink:end; gpu2:source ticks=2 work=1us -> out";
static const char resources[] = "{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [8]}, "
				"\"part\": {\"type\": \"stream_pool\", \"green_context\": \"g\"}, "
				"\"p\": {\"type\": \"stream_pool\", \"reserved_size\": 1}}";

struct life {
	struct rig *rig;
	weir_description *description;
	weir_inlet *inlet;
	weir_outlet *late, *early;
	unsigned explained;
};

static weir_status graph_make(struct life *life)
{
	struct rig *rig = life->rig;
	weir_status status = weir_graph_create(rig->registry, life->description, &rig->graph);

	if (!status)
		status = weir_graph_add_inlet(rig->graph, "fed.in", &life->inlet);
	if (!status)
		status = weir_graph_add_outlet(rig->graph, "out.out2", 1, 0, &life->late);
	if (!status)
		status = weir_graph_add_outlet(rig->graph, "p.out2", 4, WEIR_OUTLET_EARLY, &life->early);
	if (!status)
		status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	return status;
}

/* The message is pushed, or the caller still owns it. */
static weir_status number_push(struct life *life)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_bytes(life->rig->graph, sizeof(int64_t), &message);

	if (!status)
		status = weir_inlet_push(life->inlet, message, 0);
	if (status)
		weir_message_unref(message);
	return status;
}

static void count_line(const weir_unmet *unmet, void *arg)
{
	struct life *life = arg;

	assert_non_null(unmet->entity);
	assert_non_null(unmet->condition);
	assert_non_null(unmet->verdict);
	assert_non_null(unmet->detail);
	life->explained++;
}

/* The answer is whole, or out of memory. Time goes on meanwhile, so its words may change. */
static weir_status run_explain(struct life *life)
{
	char *line = NULL;
	weir_status status = weir_scheduler_explain_line(life->rig->scheduler, &line);

	assert_true(!status == (line != NULL));
	weir_text_free(line);
	weir_scheduler_explain(life->rig->scheduler, count_line, life);
	return status;
}

static weir_status run_print_statistics(struct life *life)
{
	char *text = NULL;
	weir_status status = weir_scheduler_print_statistics(life->rig->scheduler, &text);

	assert_true(!status == (text != NULL));
	weir_text_free(text);
	return status;
}

static weir_status run_end(struct life *life)
{
	weir_status status;

	weir_inlet_close(life->inlet);
	for (int i = 0; i < 4; i++) {
		rig_take(life->late, 10 * MS);
		rig_take(life->early, 10 * MS);
	}
	weir_scheduler_stop(life->rig->scheduler, WEIR_STOP_DRAIN);
	status = weir_scheduler_wait(life->rig->scheduler, 60 * SECOND, &life->rig->outcome);
	assert_int_not_equal(status, WEIR_E_TIMEOUT);
	return status;
}

static weir_status life_run(struct life *life)
{
	weir_status status = graph_make(life), ended;

	if (status)
		return status;
	rig_here(life->rig);
	status = weir_scheduler_start(life->rig->scheduler);
	if (status)
		return status;
	weir_scheduler_wait(life->rig->scheduler, 10 * MS, NULL);
	status = number_push(life);
	if (!status || status == WEIR_E_CLOSED) /* the run has failed meanwhile */
		status = run_explain(life);
	if (!status)
		status = run_print_statistics(life);
	ended = run_end(life);
	return ended ? ended : status;
}

/* Returns true if there were at most n allocations. */
static bool life_with_failure(int64_t n, bool all)
{
	struct life life = {0};
	int64_t before;
	weir_status status;

	rig_resources = resources;
	life.rig = rig_described(all_kinds, &life.description);
	rig_resources = NULL;
	life.rig->options.observe = WEIR_OBSERVE_STATISTICS;
	life.rig->options.gpu_time = 2;
	rig_on(life.rig, "all", rig_emit_on_all);
	before = wr_memory_count();
	wr_memory_fail_at(n, all);
	status = life_run(&life);
	wr_memory_fail_at(-1, false);
	if (status != WEIR_OK && status != WEIR_E_NOMEM && status != WEIR_E_FAILED && status != WEIR_E_DEVICE)
		fail_msg("allocation %lld failed: %s: %s", (long long)n, weir_status_text(status),
			 weir_last_error());
	weir_description_destroy(life.description);
	rig_destroy(life.rig);
	if (wr_memory_count() - before > n)
		return false;
	assert_int_equal(status, WEIR_OK);
	assert_true(life.explained);
	return true;
}

static void fail_each(bool all)
{
	int64_t n = 0;

	while (n < MOST && !life_with_failure(n, all))
		n++;
	assert_in_range(n, 200, MOST - 1);
}

static void f40_any_one_allocation_of_a_graphs_life_fails(void **state)
{
	(void)state;
	fail_each(false);
}

static void f40_all_allocations_fail_from_one_on_in_a_graphs_life(void **state)
{
	(void)state;
	fail_each(true);
}

/* --- work on the device --- */

static const char all_means[] =
	"c:call count=9 pool=p pool=m pool=h replay=1 -> x:end gate=in; c.out2 -> y:end";

/* Returns true if there were at most n allocations. */
static bool means_with_failure(int64_t n, bool all)
{
	struct rig *rig;
	int64_t before;
	weir_status status;

	rig_resources = rig_means_resources;
	rig = rig_of(all_means);
	rig_resources = NULL;
	rig_on(rig, "c", rig_emit_by_all_means);
	before = wr_memory_count();
	wr_memory_fail_at(n, all);
	status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (!status) {
		rig_here(rig);
		status = weir_scheduler_start(rig->scheduler);
	}
	if (!status)
		status = weir_scheduler_wait(rig->scheduler, -1, &rig->outcome);
	wr_memory_fail_at(-1, false);
	assert_true(!status || status == WEIR_E_NOMEM || status == WEIR_E_FAILED);
	if (!status)
		assert_string_equal(rig_text(rig, "x"), "3 6 9 12 15 18 21 24 27");
	if (!status)
		assert_string_equal(rig_text(rig, "y"), "0 1 2 3 4 5 6 7 8");
	n -= wr_memory_count() - before;
	rig_destroy(rig);
	return n >= 0;
}

static void f40_t11_t13_s03_any_one_allocation_of_work_on_the_device_fails(void **state)
{
	int64_t n = 0;

	(void)state;
	while (n < MOST && !means_with_failure(n, false))
		n++;
	assert_in_range(n, 100, MOST - 1);
	for (n = 0; n < MOST && !means_with_failure(n, true); n++)
		;
}

/* --- instances, ports that are joined, a tree of conditions --- */

static weir_status count_ticks(weir_context *context, void *state)
{
	(void)context, (void)state;
	return WEIR_OK;
}

static const weir_port joined_ports[] = {{.size = sizeof(weir_port), .name = "in"},
					 {.size = sizeof(weir_port), .name = "in2"},
					 {.name = NULL}};
static const weir_operator joins = {.size = sizeof(weir_operator),
				    .name = "joins",
				    .help = "receives what belongs together",
				    .inputs = joined_ports,
				    .compute = count_ticks};

/* p emits at fences of its own, which `completes` completes when it hears of them. */
static weir_fence promised[8];
static _Atomic size_t promised_count, heard_of;

static weir_status promise(weir_context *context, void *state)
{
	size_t place = wr_load(&promised_count);
	weir_message *messages[2] = {NULL};
	weir_status status = weir_graph_create_fence(weir_context_graph(context), &promised[place]);

	(void)state;
	if (status)
		return status;
	wr_store(&promised_count, place + 1);
	for (int i = 0; !status && i < 2; i++)
		status = weir_message_create_empty(weir_context_graph(context), &messages[i]);
	if (status) {
		weir_message_unref(messages[0]);
		return status;
	}
	status = weir_context_emit_at(context, 0, messages[0], promised[place]);
	if (!status)
		return weir_context_emit(context, 1, messages[1]);
	weir_message_unref(messages[1]);
	return status;
}

static weir_status complete(weir_context *context, void *state)
{
	(void)state;
	return weir_fence_complete(weir_context_graph(context), promised[wr_fetch_add(&heard_of, 1)], WEIR_OK,
				   NULL);
}

static const weir_port promised_ports[] = {{.size = sizeof(weir_port), .name = "out"},
					   {.size = sizeof(weir_port), .name = "word"},
					   {.name = NULL}};
static const weir_operator promises = {.size = sizeof(weir_operator),
				       .name = "promises",
				       .help = "emits what is not finished",
				       .outputs = promised_ports,
				       .compute = promise};
static const weir_port word_ports[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_operator completes = {.size = sizeof(weir_operator),
					.name = "completes",
					.help = "completes fences",
					.inputs = word_ports,
					.compute = complete};

static const char joined[] =
	"{\"weir\":1,\"entities\":["
	"{\"name\":\"a\",\"operator\":\"ping\",\"parameters\":{\"stamp\":true},\"conditions\":[{\"type\":"
	"\"count\",\"count\":3}]},"
	"{\"name\":\"f\",\"operator\":\"ping\",\"parameters\":{\"stamp\":true},\"conditions\":[{\"type\":"
	"\"count\",\"count\":3}]},"
	"{\"name\":\"p\",\"operator\":\"promises\",\"conditions\":[{\"type\":\"count\",\"count\":3}]},"
	"{\"name\":\"w\",\"operator\":\"completes\"},{\"name\":\"z\",\"operator\":\"delay\"},"
	"{\"name\":\"x\",\"operator\":\"spin\",\"instances\":2},{\"name\":\"y\",\"operator\":\"delay\","
	"\"instances\":2},"
	"{\"name\":\"l\",\"operator\":\"sink\",\"ports\":{\"in\":{\"policy\":\"latest\"}}},"
	"{\"name\":\"e\",\"operator\":\"sink\",\"ports\":{\"in\":{\"capacity\":4,\"take\":\"all\"}},"
	"\"conditions\":["
	"{\"type\":\"expiring_message_available\",\"port\":\"in\",\"max_batch\":2,\"max_delay\":\"1ms\"}]},"
	"{\"name\":\"b\",\"operator\":\"joins\",\"ports\":{\"in\":{\"capacity\":4},\"in2\":{\"capacity\":4}},"
	"\"conditions\":["
	"{\"type\":\"aligned\",\"ports\":[\"in\",\"in2\"],\"by\":\"tag\",\"within\":0}]},"
	"{\"name\":\"r\",\"operator\":\"joins\",\"ports\":{\"in\":{\"capacity\":4},\"in2\":{\"capacity\":4}},"
	"\"conditions\":["
	"{\"type\":\"aligned\",\"ports\":[\"in\",\"in2\"],\"by\":\"tag\",\"within\":0,\"missing\":\"reuse\","
	"\"timeout\":\"1s\"}]},"
	"{\"name\":\"c\",\"operator\":\"joins\",\"ports\":{\"in\":{\"capacity\":4},\"in2\":{\"capacity\":4}},"
	"\"conditions\":["
	"{\"type\":\"any_of\",\"conditions\":[{\"type\":\"message_available\",\"port\":\"in\"},"
	"{\"type\":\"all_of\",\"conditions\":[{\"type\":\"message_available\",\"port\":\"in2\"},"
	"{\"type\":\"periodic\",\"period\":\"1ms\"}]}]}]}],"
	"\"connections\":[[\"p.out\",\"z.in\"],[\"p.word\",\"w.in\"],[\"a.out\",\"x.in\"],[\"x.out\",\"y."
	"in\"],[\"f.out\",\"l.in\"],[\"f.out\",\"e.in\"]"
	",[\"y.out\",\"b.in\"],"
	"[\"f.out\",\"b.in2\"],[\"y.out\",\"r.in\"],[\"f.out\",\"r.in2\"],[\"a.out\",\"c.in\"],[\"f.out\","
	"\"c.in2\"]]}";

/* Shows the graph in each form. */
static weir_status show_all(const weir_description *description, const weir_registry *registry)
{
	weir_status status = WEIR_OK;

	for (weir_format format = WEIR_FORMAT_TEXT; !status && format <= WEIR_FORMAT_DOT; format++) {
		char *text = NULL;

		status = weir_description_print(description, registry, format, &text);
		assert_true(!status == (text != NULL));
		weir_text_free(text);
	}
	return status;
}

static weir_status joined_run(struct rig *rig, weir_description *description)
{
	weir_status status = show_all(description, rig->registry);

	if (!status)
		status = weir_graph_create(rig->registry, description, &rig->graph);
	if (!status)
		status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (status)
		return status;
	rig_here(rig);
	status = weir_scheduler_start(rig->scheduler);
	return status ? status : weir_scheduler_wait(rig->scheduler, -1, &rig->outcome);
}

/* Returns true if there were at most n allocations. */
static bool joined_with_failure(int64_t n, bool all)
{
	weir_description *description;
	struct rig *rig = rig_described("", &description);
	int64_t before;
	weir_status status;

	weir_description_destroy(description);
	assert_int_equal(weir_registry_add_operator(rig->registry, &joins), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(rig->registry, &promises), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(rig->registry, &completes), WEIR_OK);
	wr_store(&promised_count, 0);
	wr_store(&heard_of, 0);
	assert_int_equal(weir_description_parse(joined, strlen(joined), NULL, NULL, &description), WEIR_OK);
	before = wr_memory_count();
	wr_memory_fail_at(n, all);
	status = joined_run(rig, description);
	wr_memory_fail_at(-1, false);
	if (status && status != WEIR_E_NOMEM && status != WEIR_E_FAILED)
		fail_msg("allocation %lld failed: %s: %s", (long long)n, weir_status_text(status),
			 weir_last_error());
	if (!status) {
		assert_int_equal(rig_ticks(rig, "y"), 3);
		assert_int_equal(rig_ticks(rig, "b"), 3);
		assert_int_equal(rig_ticks(rig, "z"), 3);
	}
	for (size_t i = wr_load(&heard_of); i < wr_load(&promised_count); i++)
		weir_fence_complete(rig->graph, promised[i], WEIR_OK, NULL);
	n -= wr_memory_count() - before;
	weir_description_destroy(description);
	rig_destroy(rig);
	return n >= 0;
}

static void f40_c11_c12_c13_any_one_allocation_of_what_joins_fails(void **state)
{
	int64_t n = 0;

	(void)state;
	while (n < MOST && !joined_with_failure(n, false))
		n++;
	assert_in_range(n, 200, MOST - 1);
	for (n = 0; n < MOST && !joined_with_failure(n, true); n++)
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb31_what_was_made_ends_without_memory),
		cmocka_unit_test(f40_any_one_allocation_of_a_graphs_life_fails),
		cmocka_unit_test(f40_all_allocations_fail_from_one_on_in_a_graphs_life),
		cmocka_unit_test(f40_t11_t13_s03_any_one_allocation_of_work_on_the_device_fails),
		cmocka_unit_test(f40_c11_c12_c13_any_one_allocation_of_what_joins_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
