/* Prints a plan as a graph file that gives the same plan. */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "graphs/parameter.h"
#include "graphs/show.h"
#include "streams/streams.h"

static void json_values(struct wr_text *text, const struct wr_plan_entity *entity, const weir_values *values,
			const char *before)
{
	for (size_t i = 0; i < values->count; i++) {
		wr_text_add(text, "%s\"%s\": ", i ? ", " : before, values->settings[i].parameter->name);
		wr_show_setting(text, entity, &values->settings[i], false);
	}
}

static void json_duration(struct wr_text *text, const char *key, int64_t ns)
{
	wr_text_add(text, "\"%s\": ", key);
	wr_show_duration(text, ns);
	wr_text_add(text, ", ");
}

static void json_scheduler(struct wr_text *text, const struct wr_plan_scheduler *scheduler)
{
	wr_text_add(text, "  \"scheduler\": {");
	if (scheduler->workers)
		wr_text_add(text, "\"workers\": %u, ", scheduler->workers);
	if (scheduler->signal >= 0)
		wr_text_add(text, "\"signal\": \"%s\", ", wr_signal_text(scheduler->signal));
	if (scheduler->backend)
		wr_text_add(text, "\"backend\": \"%s\", ", scheduler->backend);
	if (scheduler->max_in_flight >= 0)
		wr_text_add(text, "\"max_in_flight\": %" PRId64 ", ", scheduler->max_in_flight);
	if (scheduler->gpu_time >= 0)
		wr_text_add(text, "\"gpu_time\": \"%s\", ", wr_sampling_shown(scheduler->gpu_time).text);
	if (scheduler->has_seed)
		wr_text_add(text, "\"seed\": %" PRIu64 ", ", scheduler->seed);
	if (scheduler->has_drain)
		json_duration(text, "drain", scheduler->drain_ns);
	if (scheduler->has_grace)
		json_duration(text, "deadlock_grace", scheduler->deadlock_grace_ns);
	if (scheduler->has_duration)
		json_duration(text, "max_duration", scheduler->max_duration_ns);
	if (scheduler->has_spin)
		json_duration(text, "worker_spin", scheduler->worker_spin_ns);
	wr_text_add(text, "\"device_memory\": %" PRId64 ", \"host_memory\": %" PRId64 "},\n",
		    scheduler->device_memory, scheduler->host_memory);
}

/* Implied gates too: written out they mean the same. */
static void json_ports(struct wr_text *text, const struct wr_plan_entity *entity)
{
	const char *before = ",\n     \"ports\": {";

	for (size_t i = 0; i < entity->input_count; i++, before = ", ") {
		const struct wr_plan_input *input = &entity->inputs[i];
		wr_text_add(text, "%s\"%s\": {", before, input->port->name);
		if (input->policy == WEIR_POLICY_LATEST) {
			wr_text_add(text, "\"policy\": \"latest\"}");
			continue;
		}
		wr_text_add(text, "\"capacity\": %u, ", input->capacity);
		if (input->take == WEIR_TAKE_ALL)
			wr_text_add(text, "\"take\": \"all\", ");
		else
			wr_text_add(text, "\"take\": %u, ", input->take);
		wr_text_add(text, "\"policy\": \"%s\"%s}", wr_policy_text(input->policy),
			    input->gate              ? ", \"gate\": true"
			    : input->gate_given == 0 ? ", \"gate\": false"
						     : "");
	}
	for (size_t i = 0; i < entity->output_count; i++, before = ", ")
		wr_text_add(text, "%s\"%s\": {\"max_emits\": %u}", before, entity->outputs[i].port->name,
			    entity->outputs[i].max_emits);
	if (entity->input_count + entity->output_count)
		wr_text_add(text, "}");
}

/* Implied resources are left out: they follow from the others and from the entities. */
static void json_stream_pool(struct wr_text *text, const struct wr_plan *plan,
			     const struct wr_plan_stream_pool *pool)
{
	wr_text_add(text, "    \"%s\": {\"type\": \"stream_pool\", \"device\": %d, \"flags\": \"%s\", ",
		    pool->name, pool->device, wr_stream_flags_text(pool->flags));
	wr_text_add(text, "\"priority\": %d, \"reserved_size\": %u, \"max_size\": %u", pool->priority,
		    pool->reserved_size, pool->max_size);
	if (pool->green_context != WR_NO_CONTEXT)
		wr_text_add(text, ", \"green_context\": \"%s\"",
			    plan->green_contexts[pool->green_context].name);
	wr_text_add(text, "%s}", pool->is_default ? ", \"default\": true" : "");
}

static void json_memory_pool(struct wr_text *text, const struct wr_plan_memory_pool *pool)
{
	wr_text_add(text, "    \"%s\": {\"type\": \"memory_pool\", ", pool->name);
	if (pool->device == WEIR_DEVICE_HOST)
		wr_text_add(text, "\"place\": \"host\", ");
	else
		wr_text_add(text, "\"device\": %d, ", pool->device);
	if (pool->blocks)
		wr_text_add(text, "\"block_size\": %" PRIu64 ", \"blocks\": %u}", pool->block_size,
			    pool->blocks);
	else
		wr_text_add(text, "\"max_size\": %" PRIu64 "}", pool->max_size);
}

static void json_resources(struct wr_text *text, const struct wr_plan *plan)
{
	const char *before = "  \"resources\": {\n";

	for (size_t i = 0; i < plan->green_context_pool_count; i++, before = ",\n") {
		const struct wr_plan_green_context_pool *pool = &plan->green_context_pools[i];

		wr_text_add(text, "%s    \"%s\": {\"type\": \"green_context_pool\", \"device\": %d, ", before,
			    pool->name, pool->device);
		wr_text_add(text, "\"flags\": %u, \"sms_per_partition\": [", pool->flags);
		for (size_t k = 0; k < pool->count; k++)
			wr_text_add(text, "%s%u", k ? ", " : "", pool->sizes[k]);
		wr_text_add(text, "], \"min_sm_size\": %u, \"default_context_index\": %d%s}",
			    pool->min_sm_size, pool->default_index,
			    pool->is_default ? ", \"default\": true" : "");
	}
	for (size_t i = 0; i < plan->green_context_count && !plan->green_contexts[i].implied;
	     i++, before = ",\n") {
		const struct wr_plan_green_context *context = &plan->green_contexts[i];
		const struct wr_plan_green_context_pool *pool = &plan->green_context_pools[context->pool];

		wr_text_add(text, "%s    \"%s\": {\"type\": \"green_context\", \"pool\": \"%s\"", before,
			    context->name, pool->name);
		/* No index, or -1, is the pool's default in a file, so the remainder has a word. */
		if (context->index != pool->default_index && context->index < 0)
			wr_text_add(text, ", \"index\": \"remainder\"");
		else if (context->index != pool->default_index)
			wr_text_add(text, ", \"index\": %d", context->index);
		wr_text_add(text, "}");
	}
	for (size_t i = 0; i < plan->stream_pool_count && !plan->stream_pools[i].implied;
	     i++, before = ",\n") {
		wr_text_add(text, "%s", before);
		json_stream_pool(text, plan, &plan->stream_pools[i]);
	}
	for (size_t i = 0; i < plan->memory_pool_count; i++, before = ",\n") {
		wr_text_add(text, "%s", before);
		json_memory_pool(text, &plan->memory_pools[i]);
	}
	if (wr_plan_has_resources(plan))
		wr_text_add(text, "\n  },\n");
}

static void json_streams(struct wr_text *text, const struct wr_plan *plan,
			 const struct wr_plan_entity *entity)
{
	const char *resource = wr_plan_used_resource(plan, entity);

	const char *before = ",\n     \"resources\": [";

	if (resource) {
		wr_text_add(text, "%s\"%s\"", before, resource);
		before = ", ";
	}
	for (size_t i = 0; i < entity->memory_count; i++, before = ", ")
		wr_text_add(text, "%s\"%s\"", before, plan->memory_pools[entity->memory[i].pool].name);
	if (before[1] == ' ') /* some were listed */
		wr_text_add(text, "]");
	if (entity->stream_pool == WR_NO_POOL)
		wr_text_add(text, ",\n     \"default_stream_pool\": false");
	if (entity->use_default_stream)
		wr_text_add(text, ",\n     \"use_default_stream\": true");
}

/* Of a list in [from, to), with the trees in it; `before` begins the list. */
static void json_conditions(struct wr_text *text, const struct wr_plan_entity *entity, size_t from, size_t to,
			    const char *before, const char *between)
{
	for (size_t i = from; i < to; i += 1 + entity->conditions[i].span) {
		const struct wr_plan_condition *condition = &entity->conditions[i];

		wr_text_add(text, "%s{\"type\": \"%s\"", i > from ? between : before, condition->kind->name);
		if (strcmp(condition->name, condition->kind->name))
			wr_text_add(text, ", \"name\": \"%s\"", condition->name);
		if (condition->signal >= 0)
			wr_text_add(text, ", \"signal\": \"%s\"", wr_signal_text(condition->signal));
		json_values(text, entity, condition->values, ", ");
		json_conditions(text, entity, i + 1, i + 1 + condition->span, ", \"conditions\": [", ", ");
		wr_text_add(text, "}");
	}
	wr_text_add(text, "%s", from < to ? "]" : "");
}

static void json_entity(struct wr_text *text, const struct wr_plan *plan, const struct wr_plan_entity *entity)
{
	wr_text_add(text, "    {\"name\": \"%s\", \"operator\": \"%s\"", entity->name, entity->kind->name);
	if (entity->values->count) {
		json_values(text, entity, entity->values, ",\n     \"parameters\": {");
		wr_text_add(text, "}");
	}
	json_streams(text, plan, entity);
	if (entity->effects != ((entity->kind->flags & WEIR_OPERATOR_EFFECTS) != 0)) /* not the operator's */
		wr_text_add(text, ",\n     \"effects\": %s", entity->effects ? "true" : "false");
	if (entity->max_in_flight >= 0)
		wr_text_add(text, ",\n     \"max_in_flight\": %" PRId64, entity->max_in_flight);
	if (entity->replay_given && entity->replay_keys)
		wr_text_add(text, ",\n     \"replay\": {\"keys\": %u, \"warm_up\": %u}", entity->replay_keys,
			    entity->replay_warm_up);
	else if (entity->replay_given)
		wr_text_add(text, ",\n     \"replay\": false");
	if (entity->main)
		wr_text_add(text, ",\n     \"main\": true");
	if (entity->instances > 1)
		wr_text_add(text, ",\n     \"instances\": %u", entity->instances);
	json_ports(text, entity);
	/* Implied conditions too: written out they mean the same. */
	json_conditions(text, entity, 0, entity->condition_count, ",\n     \"conditions\": [",
			",\n                    ");
	wr_text_add(text, "}");
}

static void json_ends(struct wr_text *text, const struct wr_plan *plan)
{
	for (size_t i = 0; i < plan->inlet_count; i++)
		wr_text_add(text, "%s\"%s.%s\"%s", i ? ", " : ",\n  \"inlets\": [",
			    plan->entities[plan->inlets[i].entity].name, wr_plan_inlet(plan, i)->port->name,
			    i + 1 == plan->inlet_count ? "]" : "");
	for (size_t i = 0; i < plan->outlet_count; i++)
		wr_text_add(text, "%s{\"port\": \"%s.%s\", \"capacity\": %u}%s",
			    i ? ", " : ",\n  \"outlets\": [", plan->entities[plan->outlets[i].entity].name,
			    wr_plan_outlet(plan, i)->port->name, wr_plan_outlet(plan, i)->outlet,
			    i + 1 == plan->outlet_count ? "]" : "");
}

void wr_show_json(struct wr_text *text, const struct wr_plan *plan)
{
	wr_text_add(text, "{\n  \"weir\": 1, \"name\": \"%s\",\n", plan->name);
	json_scheduler(text, &plan->scheduler);
	json_resources(text, plan);
	wr_text_add(text, "  \"entities\": [");
	for (size_t i = 0; i < plan->entity_count; i++) {
		wr_text_add(text, i ? ",\n" : "\n");
		json_entity(text, plan, &plan->entities[i]);
	}
	wr_text_add(text, "\n  ],\n  \"connections\": [");
	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];
		bool keys = c->initial_messages;

		wr_text_add(text, "%s    %s\"%s.%s\", %s\"%s.%s\"", i ? ",\n" : "\n",
			    keys ? "{\"from\": " : "[", plan->entities[c->from].name,
			    wr_plan_output_name(plan, c), keys ? "\"to\": " : "", plan->entities[c->to].name,
			    wr_plan_input_name(plan, c));
		if (keys)
			wr_text_add(text, ", \"initial_messages\": %u", c->initial_messages);
		wr_text_add(text, keys ? "}" : "]");
	}
	wr_text_add(text, "\n  ]");
	json_ends(text, plan);
	wr_text_add(text, "\n}\n");
}
