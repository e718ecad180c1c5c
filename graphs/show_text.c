/* Prints a plan as text. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "graphs/parameter.h"
#include "graphs/show.h"
#include "streams/streams.h"

static void text_duration(struct wr_text *text, const char *name, bool given, int64_t ns)
{
	if (given)
		wr_text_add(text, ", %s %s", name, ns < 0 ? "for ever" : wr_duration_shown(ns).text);
}

static void text_in_flight(struct wr_text *text, int64_t most)
{
	if (most)
		wr_text_add(text, "max_in_flight %" PRId64, most);
	else
		wr_text_add(text, "max_in_flight unbounded");
}

static void text_scheduler(struct wr_text *text, const struct wr_plan_scheduler *scheduler)
{
	if (scheduler->workers)
		wr_text_add(text, "scheduler: workers %u", scheduler->workers);
	else
		wr_text_add(text, "scheduler: workers one per core");
	wr_text_add(text, ", signal %s",
		    wr_signal_text(scheduler->signal < 0 ? WR_SIGNAL_AUTO : scheduler->signal));
	wr_text_add(text, ", backend %s", scheduler->backend ? scheduler->backend : "auto");
	if (scheduler->has_seed)
		wr_text_add(text, ", seed %" PRIu64, scheduler->seed);
	text_duration(text, "drain", true, scheduler->has_drain ? scheduler->drain_ns : 5000000000);
	wr_text_add(text, ", ");
	text_in_flight(text, scheduler->max_in_flight < 0 ? WR_IN_FLIGHT : scheduler->max_in_flight);
	if (scheduler->gpu_time >= 0)
		wr_text_add(text, ", gpu_time %s", wr_sampling_shown(scheduler->gpu_time).text);
	text_duration(text, "deadlock_grace", scheduler->has_grace, scheduler->deadlock_grace_ns);
	text_duration(text, "max_duration", scheduler->has_duration, scheduler->max_duration_ns);
	text_duration(text, "worker_spin", scheduler->has_spin, scheduler->worker_spin_ns);
	wr_text_add(text, ", device_memory %s", wr_size_shown(scheduler->device_memory).text);
	wr_text_add(text, ", host_memory %s\n", wr_size_shown(scheduler->host_memory).text);
}

static void text_values(struct wr_text *text, const struct wr_plan_entity *entity, const weir_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		wr_text_add(text, " %s=", values->settings[i].parameter->name);
		wr_show_setting(text, entity, &values->settings[i], true);
	}
}

/* What no table says. */
static void text_type(struct wr_text *text, const struct wr_plan_entity *entity,
		      const struct wr_port_type *type)
{
	if (entity->described && wr_port_type_says(type))
		wr_text_add(text, ", %s", wr_port_type_text(type).text);
}

/*
 * Names the port's own gate; a gate that is a condition is listed there. Device ports have none. A `latest`
 * port has neither capacity nor take, and its gate is implied.
 */
static void text_ports(struct wr_text *text, const struct wr_plan_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		const struct wr_plan_input *input = &entity->inputs[i];
		bool latest = input->policy == WEIR_POLICY_LATEST;
		wr_text_add(text, "  input %s: ", input->port->name);
		if (!latest)
			wr_text_add(text, "capacity %u, take ", input->capacity);
		if (input->take == WEIR_TAKE_ALL)
			wr_text_add(text, "all, ");
		else if (!latest)
			wr_text_add(text, "%u, ", input->take);
		wr_text_add(text, "%s%s%s", wr_policy_text(input->policy),
			    latest                   ? ""
			    : input->gate            ? input->gate_given < 0 ? ", gate (default)" : ", gate"
			    : input->device          ? ", device"
			    : input->gate_given == 0 ? ", no gate"
						     : "",
			    input->connections || input->inlet ? "" : ", not connected");
		text_type(text, entity, &input->type);
		wr_text_add(text, "\n");
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		const struct wr_plan_output *output = &entity->outputs[i];
		wr_text_add(text, "  output %s: max_emits %u%s", output->port->name, output->max_emits,
			    output->connections || output->outlet ? "" : ", not connected");
		text_type(text, entity, &output->type);
		wr_text_add(text, "\n");
	}
}

static void text_condition(struct wr_text *text, const struct wr_plan_entity *entity,
			   const struct wr_plan_condition *condition, int depth)
{
	wr_text_add(text, "  %*s%s %s", 2 * depth, "", depth ? "-" : "when", condition->kind->name);
	if (strcmp(condition->name, condition->kind->name))
		wr_text_add(text, " '%s'", condition->name);
	text_values(text, entity, condition->values);
	if (condition->signal >= 0)
		wr_text_add(text, " signal=%s", wr_signal_text(condition->signal));
	wr_text_add(text, "%s\n",
		    condition->implied   ? " (default)"
		    : condition->brought ? " (of the operator)"
					 : "");
}

#define USERS_SHOWN 8 /* of a pool, at most */

/* The entities of each stream pool, as a linked list in their order. */
struct users {
	uint32_t *first; /* of each pool; WR_NO_ENTITY: none */
	uint32_t *next;  /* of each entity; WR_NO_ENTITY: the last */
};

static weir_status users_make(struct users *users, const struct wr_plan *plan)
{
	users->first = wr_alloc(plan->stream_pool_count + 1, sizeof(*users->first));
	users->next = wr_alloc(plan->entity_count + 1, sizeof(*users->next));
	if (!users->first || !users->next)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < plan->stream_pool_count; i++)
		users->first[i] = WR_NO_ENTITY;
	for (size_t i = plan->entity_count; i-- > 0;) {
		uint32_t pool = plan->entities[i].stream_pool;
		if (pool == WR_NO_POOL)
			continue;
		users->next[i] = users->first[pool];
		users->first[pool] = (uint32_t)i;
	}
	return WEIR_OK;
}

static void text_stream_pool(struct wr_text *text, const struct wr_plan *plan, const struct users *users,
			     size_t index)
{
	const struct wr_plan_stream_pool *pool = &plan->stream_pools[index];
	size_t shown = 0;

	wr_text_add(text, "stream pool %s: device %d, %s, priority %d, reserved %u, ", pool->name,
		    pool->device, wr_stream_flags_text(pool->flags), pool->priority, pool->reserved_size);
	if (pool->max_size)
		wr_text_add(text, "at most %u stream%s", pool->max_size, pool->max_size == 1 ? "" : "s");
	else
		wr_text_add(text, "unbounded");
	if (pool->green_context != WR_NO_CONTEXT)
		wr_text_add(text, ", in green context %s", plan->green_contexts[pool->green_context].name);
	wr_text_add(text, "%s%s%s", pool->is_default ? ", default" : "", pool->implied ? " (implied)" : "",
		    pool->users ? ", used by " : ", not used");
	for (uint32_t i = users->first[index]; i != WR_NO_ENTITY && shown < USERS_SHOWN;
	     i = users->next[i], shown++)
		wr_text_add(text, "%s%s", shown ? ", " : "", plan->entities[i].name);
	if (pool->users > shown)
		wr_text_add(text, " and %zu more", pool->users - shown);
	wr_text_add(text, "\n");
}

static void text_partition(struct wr_text *text, int index)
{
	if (index < 0)
		wr_text_add(text, "the remainder");
	else
		wr_text_add(text, "partition %d", index);
}

static void text_context_pool(struct wr_text *text, const struct wr_plan_green_context_pool *pool)
{
	wr_text_add(text, "green context pool %s: device %d, partitions of", pool->name, pool->device);
	for (size_t i = 0; i < pool->count; i++)
		wr_text_add(text, "%s %u", i ? "," : "", pool->sizes[i]);
	wr_text_add(text, " SMs and the remainder, min_sm_size %u, default context ", pool->min_sm_size);
	text_partition(text, pool->default_index);
	wr_text_add(text, "%s\n", pool->is_default ? ", default" : "");
}

static void text_memory_pool(struct wr_text *text, const struct wr_plan *plan, uint32_t index)
{
	const struct wr_plan_memory_pool *pool = &plan->memory_pools[index];
	const char *before = ", used by ";

	wr_text_add(text, "memory pool %s: ", pool->name);
	if (pool->device == WEIR_DEVICE_HOST)
		wr_text_add(text, "host, ");
	else
		wr_text_add(text, "device %d, ", pool->device);
	if (pool->blocks)
		wr_text_add(text, "%u block%s of %s (with %llu it cannot stall)", pool->blocks,
			    pool->blocks == 1 ? "" : "s", wr_size_shown((int64_t)pool->block_size).text,
			    (unsigned long long)(pool->reached + pool->claimed));
	else
		wr_text_add(text, "at most %s", wr_size_shown((int64_t)pool->max_size).text);
	for (size_t i = 0; i < plan->entity_count; i++)
		for (size_t k = 0; k < plan->entities[i].memory_count; k++) {
			if (plan->entities[i].memory[k].pool != index)
				continue;
			wr_text_add(text, "%s%s", before, plan->entities[i].name);
			if (plan->entities[i].memory[k].ahead)
				wr_text_add(text, " (keeps up to %llu)",
					    (unsigned long long)wr_plan_memory_most(
						    &plan->entities[i].memory[k]));
			before = ", ";
		}
	wr_text_add(text, "%s\n", pool->users ? "" : ", not used");
}

/* Prints nothing if the description has no resources: all entities then use the one implied pool. */
static void text_resources(struct wr_text *text, const struct wr_plan *plan)
{
	struct users users = {0};

	if (!wr_plan_has_resources(plan))
		return;
	if (users_make(&users, plan) && !text->status)
		text->status = WEIR_E_NOMEM;
	for (size_t i = 0; i < plan->green_context_pool_count; i++)
		text_context_pool(text, &plan->green_context_pools[i]);
	for (size_t i = 0; i < plan->green_context_count; i++) {
		const struct wr_plan_green_context *context = &plan->green_contexts[i];

		wr_text_add(text, "green context %s: ", context->name);
		text_partition(text, context->index);
		wr_text_add(text, " of %s%s\n", plan->green_context_pools[context->pool].name,
			    context->implied ? " (implied)" : "");
	}
	for (size_t i = 0; i < plan->stream_pool_count && !text->status; i++)
		text_stream_pool(text, plan, &users, i);
	wr_free(users.first);
	wr_free(users.next);
	for (size_t i = 0; i < plan->memory_pool_count; i++)
		text_memory_pool(text, plan, (uint32_t)i);
}

static void text_entity(struct wr_text *text, const struct wr_plan_entity *entity)
{
	wr_text_add(text, "%s: %s", entity->name, entity->kind->name);
	if (entity->instances > 1)
		wr_text_add(text, " x%u", entity->instances);
	text_values(text, entity, entity->values);
	wr_text_add(text, "\n");
	if (entity->use_default_stream)
		wr_text_add(text, "  works on the default stream of device %d\n", entity->device);
	if (entity->stream_pool == WR_NO_POOL)
		wr_text_add(text, "  no stream pool\n");
	/* Without outputs an entity has no receivers, so effects make no difference. */
	if (entity->effects && entity->output_count)
		wr_text_add(text, "  has effects of its own: keeps ticking when its receivers are done\n");
	if (entity->max_in_flight >= 0) {
		wr_text_add(text, "  ");
		text_in_flight(text, entity->max_in_flight);
		wr_text_add(text, "\n");
	}
	if (entity->replay_given && entity->replay_keys)
		wr_text_add(text, "  replay: %u keys, warm_up %u\n", entity->replay_keys,
			    entity->replay_warm_up);
	else if (entity->replay_given)
		wr_text_add(text, "  replay: off\n");
	if (entity->main)
		wr_text_add(text, "  main: what it receives are the frames of a run\n");
	text_ports(text, entity);
	for (size_t i = 0; i < entity->condition_count; i++)
		text_condition(text, entity, &entity->conditions[i], wr_condition_depth(entity, i));
}

void wr_show_text(struct wr_text *text, const struct wr_plan *plan)
{
	wr_text_add(text, "graph %s: %zu entit%s, %zu connection%s\n", plan->name, plan->entity_count,
		    plan->entity_count == 1 ? "y" : "ies", plan->connection_count,
		    plan->connection_count == 1 ? "" : "s");
	text_scheduler(text, &plan->scheduler);
	text_resources(text, plan);
	for (size_t i = 0; i < plan->entity_count; i++)
		text_entity(text, &plan->entities[i]);
	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];
		wr_text_add(text, "%s.%s -> %s.%s", plan->entities[c->from].name,
			    wr_plan_output_name(plan, c), plan->entities[c->to].name,
			    wr_plan_input_name(plan, c));
		if (c->initial_messages)
			wr_text_add(text, " (%u initial)", c->initial_messages);
		wr_text_add(text, "\n");
	}
	for (size_t i = 0; i < plan->inlet_count; i++)
		wr_text_add(text, "inlet -> %s.%s\n", plan->entities[plan->inlets[i].entity].name,
			    wr_plan_inlet(plan, i)->port->name);
	for (size_t i = 0; i < plan->outlet_count; i++)
		wr_text_add(text, "%s.%s -> outlet (capacity %u)\n",
			    plan->entities[plan->outlets[i].entity].name, wr_plan_outlet(plan, i)->port->name,
			    wr_plan_outlet(plan, i)->outlet);
}
