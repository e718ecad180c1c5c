/* Checks that need all entities and connections: kinds of messages, capacities, sizes in conditions. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graphs/build.h"
#include "graphs/parameter.h"

void wr_build_report_origin(struct wr_build *build, enum wr_error error, size_t connection, const char *line)
{
	const struct wr_connection_origin *origin = &build->origins[connection];
	struct wr_at all = {NULL, "connections", 0}, item = {&all, NULL, origin->item}, to = {&item, "to", 0};
	struct wr_at listed = {&to, NULL, origin->to}, initial = {&item, "initial_messages", 0};
	const struct wr_at *at = origin->to == WR_ORIGIN_PAIR     ? &item
				 : origin->to == WR_ORIGIN_STRING ? &to
								  : &listed;

	if (error == WR_W_INITIAL || error == WR_W_ALIGNED)
		wr_report(&build->reports, error, &initial, origin->initial, "%s", line);
	else
		wr_report(&build->reports, error, at, origin->place, "%s", line);
}

void wr_build_report_connection(struct wr_build *build, enum wr_error error, size_t connection,
				const char *format, ...)
{
	const struct wr_plan_connection *c = &build->plan->connections[connection];
	const struct wr_plan_entity *from = &build->plan->entities[c->from],
				    *to = &build->plan->entities[c->to];
	struct wr_text line = {0};
	va_list list;

	wr_text_add(&line, "%s.%s -> %s.%s: ", from->name, from->outputs[c->output].port->name, to->name,
		    to->inputs[c->input].port->name);
	va_start(list, format);
	wr_text_vadd(&line, format, list);
	va_end(list);
	if (line.status)
		build->reports.status = line.status;
	else
		wr_build_report_origin(build, error, connection, line.text);
	wr_text_finish(&line);
}

/* "bytes or tensors" */
static struct wr_shown kinds_shown(unsigned kinds)
{
	static const char *const words[] = {"empty messages", "bytes", "tensors", "user pointers", "parts"};
	struct wr_shown shown = {{0}};
	struct wr_words list = wr_words_in(shown.text, sizeof(shown.text));

	for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
		if (kinds & 1u << i)
			wr_words_add(&list, "%s%s", list.length ? " or " : "", words[i]);
	return shown;
}

static void check_kinds(struct wr_build *build, size_t i, const struct wr_plan_output *output,
			const struct wr_plan_input *input)
{
	unsigned given = output->kinds, taken = input->kinds;

	if (!(given & taken))
		wr_build_report_connection(build, WR_W_KINDS, i,
					   "sends %s, but the input takes %s: put an operator between them",
					   kinds_shown(given).text, kinds_shown(taken).text);
	else if (build->plan->connections[i].initial_messages && !(taken & WEIR_KIND_EMPTY))
		wr_build_report_connection(build, WR_W_KINDS, i,
					   "initial messages are empty, but the input takes %s: put "
					   "\"initial_messages\" on another connection",
					   kinds_shown(taken).text);
}

/* The receiver's queue must be able to hold what the sender's conditions need room for. */
static void check_wanted_room(struct wr_build *build, size_t i, uint32_t capacity)
{
	const struct wr_plan_connection *c = &build->plan->connections[i];
	const struct wr_plan_entity *sender = &build->plan->entities[c->from];

	for (size_t k = 0; k < sender->condition_count; k++) {
		const struct wr_plan_condition *condition = &sender->conditions[k];
		const struct wr_setting *size = wr_values_setting(condition->values, "min_size");
		if (size && size->integer > capacity && wr_condition_names(condition, c->output, false))
			wr_build_report_connection(
				build, WR_W_MIN_SIZE, i,
				"condition '%s' needs room for %lld, but only %u fit: it would wait "
				"for ever; raise the capacity",
				condition->name, (long long)size->integer, capacity);
	}
}

static void check_connection(struct wr_build *build, size_t i)
{
	const struct wr_plan_connection *c = &build->plan->connections[i];
	const struct wr_plan_output *output = &build->plan->entities[c->from].outputs[c->output];
	const struct wr_plan_input *input = &build->plan->entities[c->to].inputs[c->input];

	if (c->from == c->to)
		wr_build_report_connection(
			build, WR_W_SELF_CONNECTION, i,
			"an entity cannot be connected to itself: put another one between");
	check_kinds(build, i, output, input);
	if (c->initial_messages > input->capacity)
		wr_build_report_connection(
			build, WR_W_INITIAL, i, "%u initial messages do not fit into the capacity %u: %s",
			c->initial_messages, input->capacity,
			input->policy == WEIR_POLICY_LATEST ? "\"latest\" begins with one at the most"
							    : "raise the capacity");
	if (input->policy == WEIR_POLICY_BLOCK && wr_plan_output_needs(output) > input->capacity)
		wr_build_report_connection(
			build, WR_W_MAX_EMITS, i,
			"one tick may emit %u, but only %u fit: raise the capacity, or lower max_emits",
			output->max_emits, input->capacity);
	if (input->policy == WEIR_POLICY_BLOCK)
		check_wanted_room(build, i, input->capacity);
}

void wr_build_check_connections(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->connection_count; i++)
		check_connection(build, i);
}

/* The place of a condition in the tree. */
struct condition_place {
	const struct wr_at *at;
	struct wr_place place;
};

static void check_input_size(struct wr_build *build, const struct condition_place *where,
			     const struct wr_plan_input *input, const char *key, int64_t size)
{
	if (input->policy == WEIR_POLICY_LATEST && size > 1)
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "%s %lld is more than the one message that \"latest\" gives at '%s': leave "
			  "it out",
			  key, (long long)size, input->port->name);
	else if (size > input->capacity)
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "%s %lld is larger than the capacity %u of '%s': it would wait for ever; "
			  "raise the capacity",
			  key, (long long)size, input->capacity, input->port->name);
	else if (input->take != WEIR_TAKE_ALL && size > input->take)
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "%s %lld is larger than the take %u of '%s': raise the take (or make it "
			  "\"all\")",
			  key, (long long)size, input->take, input->port->name);
}

/* With less than max_emits, compute could emit more than the room that the condition has seen (S3). */
static void check_output_size(struct wr_build *build, const struct condition_place *where,
			      const struct wr_plan_output *output, int64_t size)
{
	if (size && size < wr_plan_output_needs(output))
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "min_size %lld is less than the max_emits %u of '%s': leave it out, or lower "
			  "max_emits",
			  (long long)size, output->max_emits, output->port->name);
}

/* Of multi_message_available: either a sum, or a size for each port, that its ports can hold and a tick can
 * take. */
static void check_batch(struct wr_build *build, const struct wr_plan_entity *entity,
			const struct wr_plan_condition *condition, const struct condition_place *where)
{
	const struct wr_setting *ports = wr_values_setting(condition->values, "ports");
	size_t count = weir_values_count(condition->values, "ports"),
	       sizes = weir_values_count(condition->values, "min_sizes");
	int64_t sum = weir_values_int(condition->values, "min_sum");
	uint64_t held = 0, taken = 0;

	for (size_t i = 0; i < count; i++) {
		const struct wr_plan_input *input = &entity->inputs[ports->ports[i]];
		double size = weir_values_number_at(condition->values, "min_sizes", i);

		uint64_t queues = input->connections + input->inlet;

		if (!queues && build->open_ports)
			queues = 1;
		held += queues * input->capacity;
		taken += input->take == WEIR_TAKE_ALL || !queues ? queues * input->capacity : input->take;
		if (i < sizes && (size < 1 || size > UINT32_MAX))
			wr_report(&build->reports, WR_W_RANGE, where->at, where->place,
				  "min_sizes has %.15g for '%s': a size is an integer from 1 to 4294967295",
				  size, input->port->name);
		else if (i < sizes && size != (double)(int64_t)size)
			wr_report(&build->reports, WR_W_TYPE, where->at, where->place,
				  "min_sizes has %.15g for '%s': a size is an integer", size,
				  input->port->name);
		else if (i < sizes)
			check_input_size(build, where, input, "min_sizes", (int64_t)size);
	}
	if (!sizes == !sum)
		wr_report(&build->reports, WR_W_MISSING_KEY, where->at, where->place,
			  "condition '%s' needs one of min_sum and min_sizes, and not both", condition->name);
	else if (sizes && sizes != count)
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "min_sizes has %zu number%s for %zu port%s: give one for each port", sizes,
			  sizes == 1 ? "" : "s", count, count == 1 ? "" : "s");
	else if (count && sum > (int64_t)held)
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "min_sum %lld is larger than the capacities of its ports together (%llu): it would "
			  "wait "
			  "for ever; raise the capacities",
			  (long long)sum, (unsigned long long)held);
	else if (count && sum > (int64_t)taken)
		wr_report(&build->reports, WR_W_MIN_SIZE, where->at, where->place,
			  "min_sum %lld is larger than what a tick takes from its ports together (%llu): "
			  "raise the "
			  "takes (or make them \"all\")",
			  (long long)sum, (unsigned long long)taken);
}

static void check_condition(struct wr_build *build, uint32_t entity,
			    const struct wr_plan_condition *condition, const struct condition_place *where)
{
	const struct wr_setting *size = wr_values_setting(condition->values, "min_size");

	if (!strcmp(condition->kind->name, "multi_message_available"))
		check_batch(build, &build->plan->entities[entity], condition, where);
	if (!strcmp(condition->kind->name, "expiring_message_available"))
		size = wr_values_setting(condition->values, "max_batch");
	for (size_t i = 0; size && size->parameter->type == WEIR_TYPE_INT && i < condition->values->count;
	     i++) {
		const struct wr_setting *port = &condition->values->settings[i];
		for (size_t k = 0; k < port->port_count; k++)
			if (wr_parameter_is_input(port->parameter))
				check_input_size(build, where,
						 &build->plan->entities[entity].inputs[port->ports[k]],
						 size->parameter->name, size->integer);
			else
				check_output_size(build, where,
						  &build->plan->entities[entity].outputs[port->ports[k]],
						  size->integer);
	}
}

static void check_condition_size(struct wr_build *build, size_t entity, size_t condition,
				 const struct wr_value *value, const struct wr_at *at)
{
	const struct wr_value *size = wr_value_find(value, "min_size");
	struct wr_at inside = {at, "min_size", 0};
	struct condition_place where = {size ? &inside : at, size ? size->place : value->place};

	check_condition(build, (uint32_t)entity, &build->plan->entities[entity].conditions[condition],
			&where);
}

void wr_build_check_conditions(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->entity_count; i++) {
		const struct wr_plan_entity *entity = &build->plan->entities[i];
		struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, i};
		struct condition_place where = {&at, wr_value_at(build->entities, i)->value.place};

		if (!entity->kind)
			continue;
		wr_build_each_condition(build, i, check_condition_size);
		/* One that is brought is reported at the entity, as the text has no such condition. */
		for (size_t k = 0; k < entity->condition_count; k++)
			if (entity->conditions[k].brought)
				check_condition(build, (uint32_t)i, &entity->conditions[k], &where);
	}
}
