/*
 * Memory pools: the resource, the entities that use it, and `memory_available`, what a tick claims of it.
 * A claim that is not in the text is implied: a block for each message that a tick may emit.
 */
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "graphs/build.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"

#define BLOCKS_MAX ((int64_t)1 << 20)
#define BYTES_MAX  ((int64_t)1 << 48)

/* --- the resource --- */

/* Returns 0 if it is absent or has an error, which is reported. */
static uint64_t read_size(struct wr_build *build, const struct wr_at *up, const char *key,
			  const struct wr_value *value)
{
	struct wr_at at = {up, key, 0};
	const char *wrong = NULL;
	int64_t bytes = 0;

	if (!value)
		return 0;
	if (value->type == WR_INTEGER)
		bytes = value->integer;
	else
		wrong = wr_size_read(value->string, &bytes);
	if (wrong)
		wr_report(&build->reports, WR_W_SIZE, &at, value->place, WR_SIZE_WRONG,
			  wr_shown(value->string).text, wrong);
	else if (bytes < 1 || bytes > BYTES_MAX)
		wr_report(&build->reports, WR_W_RANGE, &at, value->place,
			  "%lld bytes are out of range: must be 1 to %lld", (long long)bytes,
			  (long long)BYTES_MAX);
	return wrong || bytes < 1 || bytes > BYTES_MAX ? 0 : (uint64_t)bytes;
}

static int read_place(struct wr_build *build, const struct wr_at *at, const struct wr_value *device,
		      const struct wr_value *place)
{
	if (!place)
		return (int)wr_field_integer(&build->reports, &(struct wr_at){at, "device", 0}, device, 0,
					     WR_DEVICE_MAX, 0);
	wr_field_choice(&build->reports, &(struct wr_at){at, "place", 0}, place, "host");
	if (device)
		wr_report(
			&build->reports, WR_W_POOL_SIZES, &(struct wr_at){at, "device", 0}, device->place,
			"the pool has a \"place\" as well: keep \"device\" for memory of a GPU, or \"place\" "
			"for memory of the host");
	return WEIR_DEVICE_HOST;
}

/*
 * The pool has either blocks or max_size; a missing key of one form is reported at the resource. A key whose
 * value has a wrong type, which is reported, is there.
 */
static void check_form(struct wr_build *build, const struct wr_value *object, const struct wr_at *at)
{
	const struct wr_value *size = wr_value_find(object, "block_size");
	const struct wr_value *blocks = wr_value_find(object, "blocks");
	const struct wr_value *max = wr_value_find(object, "max_size");

	if (max && (size || blocks))
		wr_report(&build->reports, WR_W_POOL_SIZES, &(struct wr_at){at, "max_size", 0}, max->place,
			  "the pool has blocks as well: keep \"max_size\", or \"block_size\" and \"blocks\"");
	else if (!max && !size && !blocks)
		wr_report(&build->reports, WR_W_MISSING_KEY, at, object->place,
			  "a memory_pool needs \"block_size\" and \"blocks\", or \"max_size\"");
	else if (!max && (!size || !blocks))
		wr_report(&build->reports, WR_W_MISSING_KEY, at, object->place,
			  "a memory_pool of blocks needs the key '%s'", size ? "blocks" : "block_size");
}

weir_status wr_build_memory_pool(struct wr_build *build, struct wr_resource *resource, const struct wr_at *at)
{
	enum { TYPE, DEVICE, PLACE, SIZE, BLOCKS, MAX, KEYS };
	static const struct wr_field fields[KEYS + 1] = {
		[TYPE] = {"type", WR_STRING, true},
		[DEVICE] = {"device", WR_INTEGER, false},
		[PLACE] = {"place", WR_STRING, false},
		[SIZE] = {"block_size", WR_INTEGER | WR_STRING, false},
		[BLOCKS] = {"blocks", WR_INTEGER, false},
		[MAX] = {"max_size", WR_INTEGER | WR_STRING, false},
	};
	struct wr_plan_memory_pool *pool = &build->plan->memory_pools[resource->index];
	const struct wr_value *found[KEYS];

	wr_fields_read(&build->reports, at, &resource->member->value, "a memory_pool", fields, found);
	pool->device = read_place(build, at, found[DEVICE], found[PLACE]);
	check_form(build, &resource->member->value, at);
	pool->block_size = read_size(build, at, "block_size", found[SIZE]);
	pool->blocks = (uint32_t)wr_field_integer(&build->reports, &(struct wr_at){at, "blocks", 0},
						  found[BLOCKS], 1, BLOCKS_MAX, 0);
	pool->max_size = read_size(build, at, "max_size", found[MAX]);
	return WEIR_OK;
}

/* --- its use --- */

void wr_build_use_memory(struct wr_build *build, struct wr_plan_entity *entity,
			 const struct wr_resource *resource, const struct wr_value *name,
			 const struct wr_at *at)
{
	const struct wr_plan_memory_pool *pools = build->plan->memory_pools;
	bool host = pools[resource->index].device == WEIR_DEVICE_HOST;

	for (size_t i = 0; i < entity->memory_count; i++) {
		const struct wr_plan_memory_pool *other = &pools[entity->memory[i].pool];

		if ((other->device == WEIR_DEVICE_HOST) != host)
			continue;
		wr_report(&build->reports, WR_W_TWO_POOLS, at, name->place,
			  "'%s' and '%s' are both memory pools of %s, but an entity has one of each place: "
			  "remove "
			  "one of them",
			  wr_shown(name->string).text, wr_shown(other->name).text,
			  host ? "the host" : "a device");
		return;
	}
	size_t at_end = entity->memory_count++;
	bool first = at_end && entity->memory[0].pool > resource->index;

	if (first)
		entity->memory[1] = entity->memory[0];
	entity->memory[first ? 0 : at_end] = (struct wr_plan_memory){.pool = resource->index};
	build->plan->memory_pools[resource->index].users++;
}

/* A device's pool must be of the device that the entity works on. */
void wr_build_check_memory_device(struct wr_build *build, const struct wr_plan_entity *entity,
				  const struct wr_value *resources, const struct wr_at *up)
{
	for (size_t i = 0; i < entity->memory_count; i++) {
		const struct wr_plan_memory_pool *pool = &build->plan->memory_pools[entity->memory[i].pool];

		if (pool->device != WEIR_DEVICE_HOST && pool->device != entity->device)
			wr_report(
				&build->reports, WR_W_RESOURCE_TYPE, &(struct wr_at){up, "resources", 0},
				resources->place,
				"memory pool '%s' is on device %d, but the entity works on device %d: name a "
				"pool of that device",
				wr_shown(pool->name).text, pool->device, entity->device);
	}
}

/* --- claims --- */

static bool sends_tensors(const struct wr_plan_output *output)
{
	return output->kinds & WEIR_KIND_TENSOR;
}

/* Reports at "resources" of the entity, which is where it names the pool. */
static void report_use(struct wr_build *build, const struct wr_plan_entity *of, const char *line)
{
	size_t index = (size_t)(of - build->plan->entities);
	struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, index}, here = {&at, "resources", 0};
	const struct wr_value *entity = &wr_value_at(build->entities, index)->value;

	wr_report(&build->reports, WR_W_CLAIM, &here, wr_value_find(entity, "resources")->place, "%s", line);
}

/* Also where no output is connected: what is made there is dropped in the tick that emits it. */
static uint64_t messages_ahead(const struct wr_plan_entity *entity)
{
	uint64_t ahead = 0;

	for (size_t i = 0; i < entity->output_count; i++)
		ahead += sends_tensors(&entity->outputs[i]) ? entity->outputs[i].port->ahead : 0;
	return ahead;
}

/*
 * One block for each message that a tick may emit; at least one, for what the tick itself needs. One for each
 * message that is made ahead.
 */
static void imply_units(struct wr_build *build, const struct wr_plan_entity *entity,
			struct wr_plan_memory *memory)
{
	const struct wr_plan_memory_pool *pool = &build->plan->memory_pools[memory->pool];
	struct wr_words line;
	char text[400];
	uint64_t units = 0;

	line = wr_words_in(text, sizeof text);
	for (size_t i = 0; i < entity->output_count; i++) {
		const struct wr_plan_output *output = &entity->outputs[i];
		/* The program may still give one that is not optional an outlet. */
		bool used =
			output->connections || output->outlet || !(output->port->flags & WEIR_PORT_OPTIONAL);

		units += used && sends_tensors(output) ? wr_plan_output_needs(output) : 0;
	}
	units = units && !memory->ahead ? units : 1;
	memory->units = units;
	if (!pool->blocks && pool->max_size)
		wr_words_add(&line,
			     "pool '%s' has no blocks: say what a tick takes by {\"type\": "
			     "\"memory_available\", \"min_bytes\": ...}",
			     wr_shown(pool->name).text);
	else if (pool->blocks && units > pool->blocks)
		wr_words_add(
			&line,
			"a tick may emit %llu messages, but pool '%s' has %u block%s: raise \"blocks\", or "
			"say by memory_available that it takes fewer",
			(unsigned long long)units, wr_shown(pool->name).text, pool->blocks,
			pool->blocks == 1 ? "" : "s");
	else
		return;
	report_use(build, entity, text);
}

struct claim_text {
	struct wr_build *build;
	struct wr_plan_entity *entity;
	const struct wr_at *at;
	struct wr_place place;
};

/* The entity's pool that the condition names, or its only one; NULL after a report. */
static struct wr_plan_memory *claim_pool(const struct claim_text *text, const char *name)
{
	struct wr_plan_entity *entity = text->entity;
	const struct wr_plan_memory_pool *pools = text->build->plan->memory_pools;

	for (size_t i = 0; i < entity->memory_count; i++)
		if (*name ? !strcmp(pools[entity->memory[i].pool].name, name) : entity->memory_count == 1)
			return &entity->memory[i];
	if (text->build->unresolved_resource)
		return NULL;
	if (*name)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "the entity uses no memory pool '%s': name it in its \"resources\"",
			  wr_shown(name).text);
	else if (entity->memory_count)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "the entity uses two memory pools: say which by \"pool\"");
	else
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "the entity uses no memory pool: name one in its \"resources\"");
	return NULL;
}

static void read_claim(const struct claim_text *text, const weir_values *values)
{
	struct wr_plan_memory *memory = claim_pool(text, weir_values_string(values, "pool"));
	int64_t blocks = weir_values_int(values, "min_blocks"), bytes = weir_values_int(values, "min_bytes");
	const struct wr_plan_memory_pool *pool =
		memory ? &text->build->plan->memory_pools[memory->pool] : NULL;

	if (!pool || (!pool->blocks && !pool->max_size))
		return;
	if (memory->units)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "an earlier memory_available claims of pool '%s': keep one of them",
			  wr_shown(pool->name).text);
	else if (pool->blocks ? bytes > 0 : blocks > 0)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "pool '%s' has %s: write \"%s\"", wr_shown(pool->name).text,
			  pool->blocks ? "blocks" : "no blocks", pool->blocks ? "min_blocks" : "min_bytes");
	else if (pool->blocks && blocks > pool->blocks)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "min_blocks is %lld, but pool '%s' has %u: the entity would wait for ever; raise "
			  "\"blocks\"",
			  (long long)blocks, wr_shown(pool->name).text, pool->blocks);
	else if (!pool->blocks && bytes > (int64_t)pool->max_size)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "min_bytes is %lld, but pool '%s' has %lld: the entity would wait for ever; raise "
			  "\"max_size\"",
			  (long long)bytes, wr_shown(pool->name).text, (long long)pool->max_size);
	else if (!pool->blocks && !bytes)
		wr_report(&text->build->reports, WR_W_CLAIM, text->at, text->place,
			  "pool '%s' has no blocks: say by min_bytes what a tick takes",
			  wr_shown(pool->name).text);
	else if (blocks || bytes)
		memory->units = (uint64_t)(pool->blocks ? blocks : bytes);
	else
		imply_units(text->build, text->entity, memory);
	memory->units = memory->units ? memory->units : 1; /* after an error: one that was reported */
}

static void read_claim_at(struct wr_build *build, size_t index, size_t condition,
			  const struct wr_value *value, const struct wr_at *at)
{
	struct wr_plan_entity *entity = &build->plan->entities[index];

	if (entity->conditions[condition].claims)
		read_claim(&(struct claim_text){build, entity, at, value->place},
			   entity->conditions[condition].values);
}

weir_status wr_build_claims(struct wr_build *build)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < build->plan->entity_count; i++) {
		struct wr_plan_entity *entity = &build->plan->entities[i];

		if (!entity->kind)
			continue;
		for (size_t k = 0; k < entity->memory_count; k++)
			entity->memory[k].ahead = messages_ahead(entity);
		wr_build_each_condition(build, i, read_claim_at);
		for (size_t k = 0; !status && k < entity->memory_count; k++) {
			if (entity->memory[k].units)
				continue;
			imply_units(build, entity, &entity->memory[k]);
			status = wr_build_imply_claim(build, entity, &entity->memory[k]);
		}
	}
	return status;
}

/* --- sizes against queues --- */

/* The next entity that may pass a message of the pool on: one that takes none of that place itself. */
static bool passes_on(const struct wr_plan *plan, const struct wr_plan_entity *entity, bool host)
{
	for (size_t i = 0; i < entity->memory_count; i++)
		if ((plan->memory_pools[entity->memory[i].pool].device == WEIR_DEVICE_HOST) == host)
			return false;
	return true;
}

/* Marks those whose inputs may hold messages of marked ones and that may pass them on. */
static void mark_passing(const struct wr_plan *plan, bool host, bool *sends)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < plan->connection_count; i++) {
			const struct wr_plan_connection *c = &plan->connections[i];

			if (!sends[c->from] || sends[c->to] ||
			    !passes_on(plan, &plan->entities[c->to], host) ||
			    !sends_tensors(&plan->entities[c->from].outputs[c->output]))
				continue;
			sends[c->to] = more = true;
		}
	}
}

/*
 * A port whose last message may be given again holds that beside its queue.
 */
static uint32_t places_of(const struct wr_plan_input *input)
{
	return input->policy == WEIR_POLICY_LATEST ? WR_LATEST_PLACES : input->capacity + input->reused;
}

/* Messages that queues and outlets behind these entities hold. */
static uint64_t queued_behind(const struct wr_plan *plan, const bool *sends)
{
	uint64_t held = 0;

	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];

		if (sends[c->from] && sends_tensors(&plan->entities[c->from].outputs[c->output]))
			held += places_of(&plan->entities[c->to].inputs[c->input]);
	}
	for (size_t i = 0; i < plan->outlet_count; i++)
		if (sends[plan->outlets[i].entity])
			held += wr_plan_outlet(plan, i)->outlet;
	return held;
}

/*
 * What entities with instances keep beside the queues: the earliest set may wait for memory that later ones
 * have claimed, or that lies in their queues.
 */
static uint64_t hidden_in_instances(const struct wr_plan *plan, uint32_t index, const bool *sends)
{
	uint64_t hidden = 0;

	for (size_t i = 0; i < plan->entity_count; i++) {
		const struct wr_plan_entity *entity = &plan->entities[i];
		bool reached = sends[i];
		uint64_t claims = 0;
		for (size_t k = 0; k < plan->connection_count; k++)
			reached |= plan->connections[k].to == i && sends[plan->connections[k].from];
		for (size_t k = 0; k < entity->memory_count; k++)
			claims += entity->memory[k].pool == index ? entity->memory[k].units : 0;
		if (entity->instances > 1 && reached)
			hidden += wr_instances_places(entity) + (entity->instances - 1) * claims;
	}
	return hidden;
}

static weir_status size_pool(struct wr_plan *plan, uint32_t index)
{
	struct wr_plan_memory_pool *pool = &plan->memory_pools[index];
	bool *sends = wr_alloc(plan->entity_count + 1, sizeof *sends);

	if (!sends)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < plan->entity_count; i++)
		for (size_t k = 0; k < plan->entities[i].memory_count; k++) {
			if (plan->entities[i].memory[k].pool != index)
				continue;
			sends[i] = true;
			pool->claimed += wr_plan_memory_most(&plan->entities[i].memory[k]);
			pool->kept += plan->entities[i].memory[k].ahead * plan->entities[i].memory[k].units;
		}
	pool->queued = queued_behind(plan, sends);
	mark_passing(plan, pool->device == WEIR_DEVICE_HOST, sends);
	pool->reached = queued_behind(plan, sends);
	pool->hidden = hidden_in_instances(plan, index, sends);
	pool->reached += pool->hidden;
	wr_free(sends);
	return WEIR_OK;
}

/* Beside instances a pool that may stall is refused: without them it need not. */
static void check_pool_size(struct wr_build *build, const struct wr_resource *resource)
{
	const struct wr_plan_memory_pool *pool = &build->plan->memory_pools[resource->index];
	const char *key = pool->blocks ? "blocks" : "max_size";
	const struct wr_shown name = wr_shown(pool->name);
	const struct wr_value *value = wr_value_find(&resource->member->value, key);
	struct wr_at all = {NULL, "resources", 0}, of = {&all, resource->member->key, 0}, at = {&of, key, 0};
	unsigned long long enough = pool->reached + pool->claimed;

	if (!value || !pool->users)
		return;
	if (pool->hidden && !pool->blocks)
		wr_report(&build->reports, WR_W_INSTANCES, &at, value->place,
			  "messages of pool '%s' pass through entities with \"instances\", which need a pool "
			  "of "
			  "blocks: write \"blocks\" and \"block_size\", or leave \"instances\" out",
			  name.text);
	else if (pool->hidden && pool->blocks < enough)
		wr_report(
			&build->reports, WR_W_INSTANCES, &at, value->place,
			"pool '%s' has %u block%s, but queues and instances behind it may hold all while one "
			"waits: with %llu blocks it cannot stall; raise \"blocks\", or lower capacities or "
			"\"instances\"",
			name.text, pool->blocks, pool->blocks == 1 ? "" : "s", enough);
	else if (pool->kept && pool->users > 1 && pool->blocks && pool->blocks < pool->queued + pool->claimed)
		wr_report(&build->reports, WR_W_CLAIM, &at, value->place,
			  "pool '%s' has %u block%s, but up to %llu are kept for messages that are made "
			  "ahead, so that "
			  "others that use it may wait for ever: with %llu blocks none does; raise "
			  "\"blocks\", or "
			  "give them a pool of their own",
			  name.text, pool->blocks, pool->blocks == 1 ? "" : "s",
			  (unsigned long long)pool->kept, enough);
	else if (pool->kept && pool->users > 1 && !pool->blocks && pool->max_size < pool->claimed)
		wr_report(&build->reports, WR_W_CLAIM, &at, value->place,
			  "pool '%s' has %llu bytes, but its users claim %llu, of which up to %llu are kept "
			  "for messages that are made ahead, so that others may wait for ever: raise "
			  "\"max_size\" to that and what the queues behind it hold, or give them a pool "
			  "of their own",
			  name.text, (unsigned long long)pool->max_size, (unsigned long long)pool->claimed,
			  (unsigned long long)pool->kept);
	else if (pool->blocks && pool->blocks < pool->queued)
		wr_report(&build->reports, WR_W_SMALL_POOL, &at, value->place,
			  "pool '%s' has %u block%s, but the queues behind it hold %llu messages: with %llu "
			  "blocks it cannot stall; raise \"blocks\", or lower their capacities",
			  name.text, pool->blocks, pool->blocks == 1 ? "" : "s",
			  (unsigned long long)pool->queued, enough);
}

weir_status wr_build_check_memory(struct wr_build *build)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < build->resource_count; i++) {
		if (build->resources[i].type != WR_MEMORY_POOL)
			continue;
		status = size_pool(build->plan, build->resources[i].index);
		if (!status && !build->unresolved)
			check_pool_size(build, &build->resources[i]);
	}
	return status;
}
