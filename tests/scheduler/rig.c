#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/simulation.h"

_Thread_local const char *rig_backend = "sim";
_Thread_local const char *rig_resources;
const char *const rig_signals[3] = {"callback", "callback_inline", "flag"};

void rig_break(struct rig *rig)
{
	wr_fetch_add(&rig->broken, 1);
}

void assert_says(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' does not say '%s'", text ? text : "(nothing)", part);
}

/* --- messages, which hold one number each --- */

weir_message *rig_number(weir_context *context, int64_t number)
{
	weir_message *message = NULL;

	if (!weir_message_create_bytes(weir_context_graph(context), sizeof number, &message))
		*(int64_t *)weir_message_data(message) = number;
	return message;
}

weir_message *rig_message(struct rig *rig, int64_t number)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_bytes(rig->graph, sizeof number, &message), WEIR_OK);
	*(int64_t *)weir_message_data(message) = number;
	return message;
}

int64_t rig_value(const weir_message *message)
{
	return weir_message_size(message) == sizeof(int64_t) ? *(int64_t *)weir_message_data(message) : -9;
}

/* --- graphs and runs --- */

struct rig *rig_described(const char *text, weir_description **out)
{
	struct rig *rig = calloc(1, sizeof *rig);
	weir_description *description = NULL;

	assert_non_null(rig);
	rig->options = (weir_scheduler_options){
		.size = sizeof rig->options, .backend = rig_backend, .workers = 2, .seed = 1};
	rig->outcome.size = sizeof rig->outcome;
	rig->options.strict = WEIR_NONE; /* its computes look at device memory, to see what is early */
	assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	rig_add_kinds(rig->registry);
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	if (rig_resources && weir_description_put(description, "/resources", rig_resources))
		fail_msg("/resources: %s", weir_last_error());
	rig_parse(rig, description, text);
	*out = description;
	return rig;
}

struct rig *rig_of_json(const char *json, const weir_operator *const *operators)
{
	struct rig *rig = calloc(1, sizeof *rig);
	weir_description *description = NULL;

	assert_non_null(rig);
	rig->options =
		(weir_scheduler_options){.size = sizeof rig->options, .backend = rig_backend, .workers = 1};
	assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	for (; *operators; operators++)
		assert_int_equal(weir_registry_add_operator(rig->registry, *operators), WEIR_OK);
	for (const weir_condition *const *kind = rig_conditions; kind && *kind; kind++)
		assert_int_equal(weir_registry_add_condition(rig->registry, *kind), WEIR_OK);
	assert_int_equal(weir_description_parse(json, strlen(json), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	return rig;
}

struct rig *rig_of(const char *text)
{
	weir_description *description = NULL;
	struct rig *rig = rig_described(text, &description);

	if (weir_graph_create(rig->registry, description, &rig->graph))
		fail_msg("%s: %s", text, weir_last_error());
	weir_description_destroy(description);
	return rig;
}

struct rig *rig_observed(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	return rig;
}

struct rig_entity *rig_entity(struct rig *rig, const char *name)
{
	for (size_t i = 0; i < rig->entity_count; i++)
		if (!strcmp(rig->entities[i].name, name))
			return &rig->entities[i];
	fail_msg("the rig has no entity %s", name);
	return NULL;
}

void rig_tell(struct rig *rig, const char *entity, weir_told told)
{
	assert_int_equal(weir_entity_tell(weir_graph_entity(rig->graph, entity), "boolean", told), WEIR_OK);
}

void rig_on(struct rig *rig, const char *entity, rig_fn *compute)
{
	rig_entity(rig, entity)->compute = compute;
}

void rig_make(struct rig *rig)
{
	if (weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler))
		fail_msg("%s", weir_last_error());
}

void rig_start(struct rig *rig)
{
	if (!rig->scheduler)
		rig_make(rig);
	rig_here(rig);
	if (weir_scheduler_start(rig->scheduler))
		fail_msg("%s", weir_last_error());
}

static void assert_conserved(struct rig *rig)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_queue_counts(rig->scheduler, i, &counts); i++)
		assert_int_equal(counts.pushed, counts.delivered + counts.dropped + counts.unmatched +
							counts.closed + counts.queued + counts.abandoned);
}

weir_status rig_wait(struct rig *rig)
{
	weir_status status;

	rig->outcome.size = sizeof rig->outcome;
	status = weir_scheduler_wait(rig->scheduler, 60 * SECOND, &rig->outcome);
	assert_int_not_equal(status, WEIR_E_TIMEOUT);
	assert_int_equal(status, rig->outcome.status);
	assert_int_equal(wr_load(&rig->broken), 0);
	assert_conserved(rig);
	return status;
}

weir_status rig_run(struct rig *rig)
{
	rig_start(rig);
	return rig_wait(rig);
}

void rig_destroy(struct rig *rig)
{
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_OK);
	weir_registry_destroy(rig->registry);
	free(rig->explained);
	free(rig->own_backend);
	free(rig);
}

/* --- results --- */

const char *rig_text(struct rig *rig, const char *entity)
{
	return rig_entity(rig, entity)->text;
}

weir_entity_counts rig_counts(struct rig *rig, const char *entity)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(rig->scheduler, i, &counts); i++)
		if (!strcmp(counts.entity, entity))
			return counts;
	fail_msg("no counts of %s", entity);
	return counts;
}

uint64_t rig_ticks(struct rig *rig, const char *entity)
{
	return rig_counts(rig, entity).ticks;
}

bool rig_done(struct rig *rig, const char *entity)
{
	return rig_counts(rig, entity).done;
}

weir_queue_counts rig_queue(struct rig *rig, const char *to)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_queue_counts(rig->scheduler, i, &counts); i++)
		if (!strcmp(counts.to, to))
			return counts;
	fail_msg("no queue into %s", to);
	return counts;
}

static void explain_line(const weir_unmet *unmet, void *arg)
{
	char **text = arg, *longer = NULL;
	size_t room = strlen(*text) + strlen(unmet->entity) + strlen(unmet->condition) +
		      strlen(unmet->verdict) + strlen(unmet->detail) + 10;

	longer = malloc(room);
	if (!longer)
		return;
	snprintf(longer, room, "%s%s: %s: %s (%s)\n", *text, unmet->entity, unmet->condition, unmet->verdict,
		 unmet->detail);
	free(*text);
	*text = longer;
}

const char *rig_explain(struct rig *rig)
{
	free(rig->explained);
	rig->explained = calloc(1, 1);
	weir_scheduler_explain(rig->scheduler, explain_line, &rig->explained);
	return rig->explained;
}

/* --- backends and worlds --- */

static void run_body(void *arg)
{
	void (**body)(void) = arg;

	(*body)();
}

/* A failed assertion jumps out of its world, and another one in this process would wait for its threads. */
void rig_in_world(uint64_t seed, void (*body)(void))
{
	static bool inside;
	struct wr_sim *sim = NULL;

	if (inside) {
		print_error("the test before failed in a simulated world: the others are not run\n");
		fflush(NULL);
		_exit(1);
	}

	rig_backend = "sim";
	assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_BY_SEED), WEIR_OK);
	inside = true;
	if (wr_sim_call(sim, run_body, &body))
		fail_msg("seed %llu: %s", (unsigned long long)seed, weir_last_error());
	wr_sim_destroy(sim);
	inside = false;
}

void rig_in_worlds(uint64_t seeds, void (*body)(void))
{
	for (uint64_t seed = 1; seed <= seeds; seed++)
		rig_in_world(seed, body);
}

void rig_on_host(void (*body)(void))
{
	rig_backend = "host";
	body();
	rig_backend = "sim";
}

void rig_everywhere(void (*body)(void))
{
	rig_in_worlds(5, body);
	rig_on_host(body);
}
