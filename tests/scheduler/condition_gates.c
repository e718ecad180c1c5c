/*
 * Host code receives complete messages only (C8): the implied gate of a host port, whatever conditions the
 * graph declares, and on whatever stream the work was (T7).
 */
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

#ifdef WR_TSAN
#define SEEDS     1
#define HOST_RUNS 2
#elif defined WR_ASAN
#define SEEDS     30
#define HOST_RUNS 5
#else
#define SEEDS     300
#define HOST_RUNS 5
#endif

static const char *const signals[] = {"callback", "callback_inline", "flag"};

/* --- a graph without explicit gates --- */

static void assert_text_of(const char *graph, const char *entity, const char *text)
{
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		struct rig *rig = rig_of(graph);
		rig->options.signal = signals[i];
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, entity), text);
		rig_destroy(rig);
	}
}

static void seeds_and_host(void (*body)(void))
{
	rig_in_worlds(SEEDS, body);
	for (int i = 0; i < HOST_RUNS; i++)
		rig_on_host(body);
}

static void plain(void)
{
	assert_text_of("source ticks=4 work=300us -> pass work=200us -> end", "end", "0 1 2 3");
}

static void xa03_a_host_port_gives_finished_messages(void **state)
{
	(void)state;
	seeds_and_host(plain);
}

static void with_conditions(void)
{
	assert_text_of("source ticks=4 work=300us -> end min=1", "end", "0 1 2 3");
	assert_text_of("source ticks=4 work=300us -> end capacity=2 take=2 min=2", "end", "0,1 2,3");
	assert_text_of("source ticks=4 work=300us -> end condition=some", "end", "0 1 2 3");
	assert_text_of("a:source ticks=2 work=1ms -> end; b:source ticks=2 first=10 work=2ms -> end.in2",
		       "end", "0|10 1|11");
}

static void xa03_an_explicit_condition_leaves_the_gate(void **state)
{
	(void)state;
	seeds_and_host(with_conditions);
}

static void take_all(void)
{
	struct rig *rig = rig_of("source ticks=6 work=100us -> end capacity=4 take=all");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_null(strchr(rig_text(rig, "end"), '?'));
	assert_int_equal(rig_queue(rig, "end.in").delivered, 6);
	rig_destroy(rig);
}

static void xa03_every_message_of_a_batch_is_finished(void **state)
{
	(void)state;
	seeds_and_host(take_all);
}

static void xa03_a_gate_that_is_off_lets_host_code_look(void **state)
{
	(void)state;
	assert_text_of("source ticks=2 work=300us -> end gated=false", "end", "? ?");
}

static void xa03_a_gate_that_is_on_makes_a_device_port_wait(void **state)
{
	(void)state;
	assert_text_of("source ticks=2 work=300us -> pass -> x:end gated=false", "pass", "? ?");
	assert_text_of("source ticks=2 work=300us -> pass gated=true -> x:end gated=false", "pass", "0 1");
}

/* --- which entity did the work, and on which stream --- */

static int write_number(const void *arguments)
{
	weir_sleep(2 * MS);
	**(int64_t *const *)arguments = 7;
	return 0;
}

static const weir_kernel writing = {sizeof(weir_kernel), "write", write_number, NULL};

static weir_status emit_seven(weir_context *context, weir_stream *stream)
{
	weir_message *message = rig_number(context, -1);
	void *to = message ? weir_message_data(message) : NULL;
	weir_status status =
		stream && message ? weir_stream_launch(stream, &writing, &to, sizeof to) : WEIR_E_NOMEM;

	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

/* Its current stream was used too; the two are not joined. */
static weir_status on_a_side_stream(struct rig *rig, weir_context *context)
{
	weir_stream *side = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	HOLDS(rig, current_stream(context) && side);
	return status ? status : emit_seven(context, side);
}

static weir_status on_the_default_stream(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_seven(context, device_stream(context));
}

static weir_status on_what_there_is(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_seven(context, current_stream(context));
}

static void assert_waits(const char *graph, rig_fn *work)
{
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		struct rig *rig = rig_of(graph);
		rig->options.signal = signals[i];
		rig_on(rig, "a", work);
		if (strstr(graph, "b:call"))
			rig_on(rig, "b", work);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "7 7 7");
		rig_destroy(rig);
	}
}

static void work_anywhere(void)
{
	assert_waits("a:call count=3 -> end", on_a_side_stream);
	assert_waits("a:call count=3 -> end gate=in", on_a_side_stream);
	assert_waits("a:call count=3 -> end", on_the_default_stream);
	assert_waits("a:call count=3 -> end gate=in", on_the_default_stream);
	assert_waits("a:call count=3 pool=none -> end", on_what_there_is);
	rig_resources = "{\"p\": {\"type\": \"stream_pool\", \"max_size\": 1, \"default\": true}}";
	assert_waits("a:call count=3 -> end; b:call count=3 -> x:end gated=false", on_what_there_is);
	assert_waits("b:call count=3 -> x:end gated=false; a:call count=3 -> end gate=in", on_what_there_is);
	rig_resources = NULL;
}

static void xa04_a_gate_waits_for_work_wherever_it_is(void **state)
{
	(void)state;
	rig_in_worlds((SEEDS + 4) / 5, work_anywhere);
	rig_on_host(work_anywhere);
}

/* It never uses the device: it passes on what it received. */
static weir_status pass_it_on(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !rig_own_stream_count(context));
	return weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)));
}

static void passing_on(void)
{
	struct rig *rig = rig_of("source ticks=3 work=1ms -> p:call -> end");

	rig_on(rig, "p", pass_it_on);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void xa03_what_an_entity_only_passes_on_is_waited_for(void **state)
{
	(void)state;
	rig_everywhere(passing_on);
}

/* The receiver's current stream is not the one that wrote the message, but still comes after its work. */
static int64_t seen_by_the_device;

static int look(const void *arguments)
{
	seen_by_the_device = **(int64_t *const *)arguments;
	return 0;
}

static const weir_kernel looking = {sizeof(weir_kernel), "look", look, NULL};

static weir_status look_on_the_device(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);
	const void *from = weir_message_data(message);
	weir_stream *stream = current_stream(context), *found;

	HOLDS(rig, weir_message_fences(message, 0, NULL) > 0);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 1, &found) == 0);
	return weir_stream_launch(stream, &looking, &from, sizeof from);
}

static void device_waits(void)
{
	struct rig *rig = rig_of("a:call count=1 -> p:call");

	seen_by_the_device = 0;
	rig_on(rig, "a", on_the_default_stream);
	rig_on(rig, "p", look_on_the_device);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(seen_by_the_device, 7);
	rig_destroy(rig);
}

static void t03_t07_xa04_a_fence_without_its_stream_is_waited_for_on_the_device(void **state)
{
	(void)state;
	rig_everywhere(device_waits);
}

/* --- what a gate is, and is not --- */

static void c08_a_gate_asks_for_no_number_of_messages(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=5ms -> end condition=any");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	assert_true(rig_ticks(rig, "end") > 0); /* it ticked without a message */
	assert_null(strchr(rig_text(rig, "end"), '?'));
	assert_int_equal(weir_entity_tell(weir_graph_entity(rig->graph, "end"), "any", WEIR_TOLD_NEVER),
			 WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void content_after_gates(void)
{
	struct rig *rig = rig_of("source ticks=3 work=300us -> end condition=not_minus_one");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void c08_a_content_condition_looks_at_finished_messages(void **state)
{
	(void)state;
	seeds_and_host(content_after_gates);
}

static void c08_without_device_work_no_gate_is_asked(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> end");

	(void)state;
	assert_true(rig_gate(rig, "end").implied);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(rig_gate(rig, "end").marked || rig_gate(rig, "end").asked);
	rig_destroy(rig);
}

static weir_status work_in_the_first_run(struct rig *rig, weir_context *context)
{
	if (wr_load(&rig->told))
		return weir_context_emit(context, 0, rig_number(context, 1));
	return emit_seven(context, current_stream(context));
}

static void c08_s08_a_start_forgets_that_there_was_device_work(void **state)
{
	struct rig *rig = rig_of("a:call count=2 -> end");

	(void)state;
	rig_on(rig, "a", work_in_the_first_run);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_gate(rig, "end").marked && rig_gate(rig, "end").asked);
	wr_store(&rig->told, 1);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(rig_gate(rig, "end").marked || rig_gate(rig, "end").asked);
	assert_string_equal(rig_text(rig, "end"), "7 7 1 1");
	rig_destroy(rig);
}

static void c05_c08_explain_says_what_a_gate_waits_for(void **state)
{
	struct rig *rig = rig_of("blur:source ticks=1 work=5ms -> end");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	assert_non_null(strstr(rig_explain(rig),
			       "end: gate on in: WAIT_EVENT (waits for device work on 'in': 1 fence "
			       "pending, oldest "));
	assert_non_null(strstr(rig->explained, "producer blur"));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* The second look notes that the work of b is complete; the poke then has the entity reviewed. */
static void c05_c08_what_is_explained_waits_for_all_its_fences(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 work=10ms -> end gate=in; "
				 "b:source ticks=1 first=10 work=6ms -> end.in2 gate=in2");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 3 * MS, NULL);
	assert_non_null(strstr(rig_explain(rig), "end: cuda_stream on in2: WAIT_EVENT"));
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	assert_null(strstr(rig_explain(rig), "in2"));
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "end")), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0|10");
	rig_destroy(rig);
}

static weir_status must_not_run(struct rig *rig, weir_context *context)
{
	(void)context;
	rig_break(rig);
	return WEIR_OK;
}

static void faulting(void)
{
	struct rig *rig = rig_of("source ticks=1 work=1ms fault=true -> p:host");

	rig_on(rig, "p", must_not_run);
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE);
	rig_destroy(rig);
}

static void c08_e02_host_code_sees_nothing_of_a_failed_device(void **state)
{
	(void)state;
	rig_everywhere(faulting);
}

/* An outlet may give an incomplete message; it goes into an inlet, here of the same graph. */
static void c08_b02_what_an_inlet_is_given_is_waited_for(void **state)
{
	struct rig *rig = rig_of("a:call count=1; end");
	weir_inlet *inlet = NULL;
	weir_outlet *outlet = NULL;
	weir_message *message = NULL;

	(void)state;
	rig_on(rig, "a", on_what_there_is);
	assert_int_equal(weir_graph_add_outlet(rig->graph, "a.out", 1, WEIR_OUTLET_EARLY, &outlet), WEIR_OK);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, -1, &message), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 0, NULL), 1);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "7");
	assert_true(rig_gate(rig, "end").marked);
	rig_destroy(rig);
}

/* --- what a check reports --- */

/* An operator of the user whose output is host memory that the device writes. */
static const weir_port fetch_in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port fetch_out[] = {{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_HOST},
				      {.name = NULL}};
static const weir_operator fetch = {.size = sizeof(weir_operator),
				    .name = "fetch",
				    .flags = WEIR_OPERATOR_STREAM,
				    .inputs = fetch_in,
				    .outputs = fetch_out};

static void note_number(const weir_diagnostic *report, void *arg)
{
	*(int *)arg = report->number;
}

static int first_report(const char *json)
{
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	int number = 0;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	rig_add_kinds(registry);
	assert_int_equal(weir_registry_add_operator(registry, &fetch), WEIR_OK);
	assert_int_equal(weir_description_parse(json, strlen(json), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_description_check(description, registry, note_number, &number), WEIR_OK);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return number;
}

#define FETCHED(fetcher, operator, ports)                                                                    \
	"{\"weir\": 1, \"entities\": [{\"name\": \"s\", \"operator\": \"spin\"}, {\"name\": \"d\", "         \
	"\"operator\": \"" fetcher "\"}, {\"name\": \"x\", \"operator\": \""                                 \
	operator"\"" ports "}],"                                                                             \
		" \"connections\": [[\"s.out\", \"d.in\"], [\"d.out\", \"x.in\"]]}"

static void xa03_host_memory_that_leads_into_a_device_port_is_noted(void **state)
{
	(void)state;
	assert_int_equal(first_report(FETCHED("download", "call", "")), 47);
	assert_int_equal(first_report(FETCHED("fetch", "call", "")), 47);
	assert_int_equal(first_report(FETCHED("spin", "call", "")), 0);
	assert_int_equal(first_report(FETCHED("download", "call", ", \"ports\": {\"in\": {\"gate\": true}}")),
			 0);
	assert_int_equal(
		first_report(FETCHED("download", "call", ", \"ports\": {\"in\": {\"gate\": false}}")), 0);
	assert_int_equal(first_report(FETCHED("download", "host", "")), 0);
	assert_int_equal(first_report(FETCHED("download", "spin", "")), 0); /* an operator of weir */
}

/* --- conditions of the user --- */

#define CONDITION(text) .size = sizeof(weir_condition), .name = text, .parameters = port

static const weir_parameter port[] = {{.size = sizeof(weir_parameter),
				       .name = "port",
				       .type = WEIR_TYPE_INPUT,
				       .fallback = "\"in\"",
				       .help = "input"},
				      {.name = NULL}};

static void ask_some(const void *state, weir_view *view, weir_verdict *verdict)
{
	bool closed = weir_view_closed(view, 0);

	(void)state;
	if (weir_view_count(view, 0))
		weir_verdict_ready(verdict);
	else if (closed)
		weir_verdict_never(verdict, "no more");
	else
		weir_verdict_wait(verdict, "none");
}

/* It reads content, so the message must be complete. */
static void ask_number(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (rig_value(weir_view_message(view, 0, 0)) < 0)
		weir_verdict_never(verdict, "looked at what is not finished");
	else
		weir_verdict_ready(verdict);
}

/* READY without a message at times. */
static void ask_any(const void *state, weir_view *view, weir_verdict *verdict)
{
	const int64_t *next = state;

	if (weir_view_told(view) == WEIR_TOLD_NEVER)
		weir_verdict_never(verdict, "told so");
	else if (weir_view_now(view) >= *next)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, *next);
}

static void any_ticked(void *state, weir_view *view)
{
	*(int64_t *)state = weir_view_now(view) + 100 * US;
}

static const weir_condition some = {CONDITION("some"), .phase = WEIR_PHASE_GATHERING, .ask = ask_some};
static const weir_condition not_minus_one = {CONDITION("not_minus_one"), .phase = WEIR_PHASE_CONTENT,
					     .ask = ask_number};
static const weir_condition any = {CONDITION("any"), .state_size = sizeof(int64_t),
				   .phase = WEIR_PHASE_GATHERING, .ask = ask_any, .ticked = any_ticked};
static const weir_condition *const conditions[] = {&some, &not_minus_one, &any, NULL};

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xa03_a_host_port_gives_finished_messages),
		cmocka_unit_test(xa03_an_explicit_condition_leaves_the_gate),
		cmocka_unit_test(xa03_every_message_of_a_batch_is_finished),
		cmocka_unit_test(xa03_a_gate_that_is_off_lets_host_code_look),
		cmocka_unit_test(xa03_a_gate_that_is_on_makes_a_device_port_wait),
		cmocka_unit_test(xa04_a_gate_waits_for_work_wherever_it_is),
		cmocka_unit_test(xa03_what_an_entity_only_passes_on_is_waited_for),
		cmocka_unit_test(t03_t07_xa04_a_fence_without_its_stream_is_waited_for_on_the_device),
		cmocka_unit_test(c08_a_gate_asks_for_no_number_of_messages),
		cmocka_unit_test(c08_a_content_condition_looks_at_finished_messages),
		cmocka_unit_test(c08_without_device_work_no_gate_is_asked),
		cmocka_unit_test(c08_s08_a_start_forgets_that_there_was_device_work),
		cmocka_unit_test(c05_c08_explain_says_what_a_gate_waits_for),
		cmocka_unit_test(c05_c08_what_is_explained_waits_for_all_its_fences),
		cmocka_unit_test(c08_e02_host_code_sees_nothing_of_a_failed_device),
		cmocka_unit_test(c08_b02_what_an_inlet_is_given_is_waited_for),
		cmocka_unit_test(xa03_host_memory_that_leads_into_a_device_port_is_noted),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
