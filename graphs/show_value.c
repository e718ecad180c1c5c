/* How the values of a plan are shown in text, JSON and DOT: words, names of ports and resources, settings. */
#include <inttypes.h>

#include "base/units.h"
#include "graphs/parameter.h"
#include "graphs/show.h"
#include "streams/streams.h"

/* --- words --- */

const char *wr_policy_text(weir_policy policy)
{
	static const char *const texts[] = {"block", "pop", "reject", "fault", "latest"};

	return texts[policy];
}

const char *wr_stream_flags_text(unsigned flags)
{
	return flags & WR_STREAM_BLOCKING ? "blocking" : "non_blocking";
}

const char *wr_plan_output_name(const struct wr_plan *plan, const struct wr_plan_connection *c)
{
	return plan->entities[c->from].outputs[c->output].port->name;
}

const char *wr_plan_input_name(const struct wr_plan *plan, const struct wr_plan_connection *c)
{
	return plan->entities[c->to].inputs[c->input].port->name;
}

/* Implied pools come last in their list, and an implied context has a pool that is not implied. */
bool wr_plan_has_resources(const struct wr_plan *plan)
{
	return plan->green_context_pool_count || plan->memory_pool_count ||
	       (plan->stream_pool_count && !plan->stream_pools[0].implied);
}

const char *wr_plan_used_resource(const struct wr_plan *plan, const struct wr_plan_entity *entity)
{
	const struct wr_plan_stream_pool *pool;

	if (entity->stream_pool == WR_NO_POOL)
		return NULL;
	pool = &plan->stream_pools[entity->stream_pool];
	if (!pool->implied)
		return pool->name;
	return pool->green_context == WR_NO_CONTEXT ? NULL : plan->green_contexts[pool->green_context].name;
}

/* --- values --- */

static void add_ports(struct wr_text *text, const struct wr_plan_entity *entity,
		      const struct wr_setting *setting)
{
	bool list =
		setting->parameter->type == WEIR_TYPE_INPUTS || setting->parameter->type == WEIR_TYPE_OUTPUTS;

	if (list)
		wr_text_add(text, "[");
	for (size_t i = 0; i < setting->port_count; i++) {
		unsigned port = setting->ports[i];
		wr_text_add(text, "%s\"%s\"", i ? ", " : "",
			    wr_parameter_is_input(setting->parameter) ? entity->inputs[port].port->name
								      : entity->outputs[port].port->name);
	}
	if (list)
		wr_text_add(text, "]");
}

static void add_numbers(struct wr_text *text, const struct wr_setting *setting)
{
	wr_text_add(text, "[");
	for (size_t i = 0; i < setting->number_count; i++) {
		wr_text_add(text, "%s", i ? ", " : "");
		wr_text_real(text, setting->numbers[i]);
	}
	wr_text_add(text, "]");
}

void wr_show_duration(struct wr_text *text, int64_t ns)
{
	if (ns > 0)
		wr_text_add(text, "\"%s\"", wr_duration_shown(ns).text);
	else
		wr_text_add(text, "%" PRId64, ns);
}

void wr_show_setting(struct wr_text *text, const struct wr_plan_entity *entity,
		     const struct wr_setting *setting, bool people)
{
	switch (setting->parameter->type) {
	case WEIR_TYPE_BOOL:
		wr_text_add(text, "%s", setting->integer ? "true" : "false");
		break;
	case WEIR_TYPE_NUMBER:
		wr_text_real(text, setting->number);
		break;
	case WEIR_TYPE_STRING:
	case WEIR_TYPE_CHOICE:
	case WEIR_TYPE_READ_FILE:
	case WEIR_TYPE_WRITE_FILE:
		wr_text_string(text, setting->string);
		break;
	case WEIR_TYPE_INPUT:
	case WEIR_TYPE_OUTPUT:
	case WEIR_TYPE_INPUTS:
	case WEIR_TYPE_OUTPUTS:
		add_ports(text, entity, setting);
		break;
	case WEIR_TYPE_NUMBERS:
		add_numbers(text, setting);
		break;
	case WEIR_TYPE_DURATION:
		if (people)
			wr_text_add(text, "%s", wr_duration_shown(setting->integer).text);
		else
			wr_show_duration(text, setting->integer);
		break;
	case WEIR_TYPE_INT:
	case WEIR_TYPE_SIZE:
	case WEIR_TYPE_READ_DESCRIPTOR:
	case WEIR_TYPE_WRITE_DESCRIPTOR:
		if (people && setting->parameter->type == WEIR_TYPE_SIZE)
			wr_text_add(text, "%s", wr_size_shown(setting->integer).text);
		else
			wr_text_add(text, "%" PRId64, setting->integer);
		break;
	}
}
