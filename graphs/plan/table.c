/* Whether the table of an operator or condition is fit to be used: what a plugin gets wrong is said when it
 * is added. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/plan/port_names.h"
#include "graphs/plan/registry.h"
#include "graphs/plan/text.h"
#include "graphs/plan/values.h"

/* What all messages begin with. */
struct subject {
	const char *kind, *name;
};

static weir_status wrong(const struct subject *subject, const char *part, const char *why)
{
	return wr_fail(WEIR_E_INVALID, "table of %s '%s': '%s' %s", subject->kind,
		       wr_shown(subject->name).text, wr_shown(part).text, why);
}

static weir_status check_input(const struct subject *subject, const weir_port *port)
{
	uint32_t capacity = port->capacity ? port->capacity : 1;
	uint32_t take = port->take ? port->take : 1;

	if (capacity > WR_PORT_CAPACITY_MAX)
		return wrong(subject, port->name, "has a capacity of more than 65536");
	if (take != WEIR_ALL && take > capacity)
		return wrong(subject, port->name, "has a take larger than its capacity");
	if (port->policy > WEIR_FAULT)
		return wrong(subject, port->name, "has an unknown policy");
	if (port->flags & WEIR_PORT_DEVICE && port->flags & WEIR_PORT_HOST)
		return wrong(subject, port->name, "is a device port and a host port: take one of the flags");
	return WEIR_OK;
}

static weir_status check_ports(const struct subject *subject, const weir_port *ports, bool input)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < wr_port_count(ports) && !status; i++) {
		if (ports[i].size != sizeof(weir_port))
			status = wrong(subject, ports[i].name,
				       "has a wrong size: set size to sizeof(weir_port)");
		else if (!wr_name_ok(ports[i].name))
			status = wrong(subject, ports[i].name, "is no name of a port");
		else if (wr_port_index(ports, ports[i].name) != (int)i)
			status = wrong(subject, ports[i].name, "is there twice");
		else if (input)
			status = check_input(subject, &ports[i]);
		else if (ports[i].flags & (WEIR_PORT_DEVICE | WEIR_PORT_HOST))
			status = wrong(subject, ports[i].name, "is an output: device and host are for inputs");
		else if (ports[i].max_emits > WR_PORT_CAPACITY_MAX)
			status = wrong(subject, ports[i].name, "has max_emits of more than 65536");
	}
	return status;
}

static bool is_reserved(const char *name)
{
	return !strcmp(name, "type") || !strcmp(name, "name") || !strcmp(name, "signal");
}

static bool is_twice(const weir_parameter *parameters, const weir_parameter *parameter)
{
	const weir_parameter *first = parameters;

	while (strcmp(first->name, parameter->name))
		first++;
	return first != parameter;
}

static const char *parameter_fault(const weir_parameter *parameters, const weir_parameter *parameter,
				   bool condition)
{
	if (parameter->size != sizeof(weir_parameter))
		return "has a wrong size: set size to sizeof(weir_parameter)";
	if (!wr_name_ok(parameter->name) || (condition && is_reserved(parameter->name)))
		return "is no name of a parameter";
	if (is_twice(parameters, parameter))
		return "is there twice";
	if (parameter->type < WEIR_BOOL || parameter->type > WEIR_OUTPUTS)
		return "has an unknown type";
	if (parameter->type == WEIR_CHOICE && (!parameter->choices || !*parameter->choices))
		return "has no choices";
	if (parameter->min > parameter->max)
		return "has a minimum above its maximum";
	return NULL;
}

/*
 * Reads the default as a description would. Those that name ports depend on the operator that a condition is
 * given to: an entity's check reads them.
 */
static weir_status check_fallback(const struct subject *subject, const weir_parameter *parameter)
{
	const weir_parameter alone[] = {*parameter, {0}};
	struct wr_values_source source = {.kind = subject->kind, .name = subject->name, .parameters = alone};
	struct wr_reports reports = {0};
	weir_values *values = NULL;
	weir_status status;

	if (!parameter->fallback || parameter->type >= WEIR_INPUT)
		return WEIR_OK;
	status = wr_values_create(&values, &source, &reports);
	wr_values_destroy(values);
	if (!status)
		status = wr_reports_deliver(&reports, NULL, NULL);
	else
		wr_reports_deliver(&reports, NULL, NULL);
	return status == WEIR_E_INVALID
		       ? wrong(subject, parameter->name, "has a default that does not fit it")
		       : status;
}

static weir_status check_parameters(const struct subject *subject, const weir_parameter *parameters,
				    bool condition)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; parameters && parameters[i].name && !status; i++) {
		const char *fault = parameter_fault(parameters, &parameters[i], condition);
		status = fault ? wrong(subject, parameters[i].name, fault)
			       : check_fallback(subject, &parameters[i]);
	}
	return status;
}

/* More is what a wrong count of bytes comes to. */
#define STATE_MAX (UINT64_C(1) << 40)

static weir_status check_state(const struct subject *subject, size_t bytes)
{
	return bytes > STATE_MAX ? wrong(subject, subject->name, "has a state_size of more than a TiB") : WEIR_OK;
}

static weir_status check_head(const struct subject *subject, size_t size, size_t expected)
{
	if (size != expected)
		return wr_fail(WEIR_E_INVALID,
			       "table of %s: its size is %zu, must be %zu: set size to sizeof of its type",
			       subject->kind, size, expected);
	if (!subject->name || !wr_name_ok(subject->name))
		return wr_fail(WEIR_E_INVALID, "table of %s: '%s' is no name", subject->kind,
			       wr_shown(subject->name ? subject->name : "").text);
	return WEIR_OK;
}

weir_status wr_operator_check(const weir_operator *table)
{
	struct subject subject = {"an operator", table ? table->name : NULL};
	weir_status status = check_head(&subject, table ? table->size : 0, sizeof(*table));

	subject.kind = "operator";
	if (!status)
		status = check_state(&subject, table->state_size);
	if (!status)
		status = check_parameters(&subject, table->parameters, false);
	if (!status)
		status = check_ports(&subject, table->inputs, true);
	if (!status)
		status = check_ports(&subject, table->outputs, false);
	for (size_t i = 0; !status && i < wr_port_count(table->inputs); i++)
		if (wr_port_index(table->outputs, table->inputs[i].name) >= 0)
			status = wrong(&subject, table->inputs[i].name, "is both an input and an output");
	return status;
}

weir_status wr_condition_check(const weir_condition *table)
{
	struct subject subject = {"a condition", table ? table->name : NULL};
	weir_status status = check_head(&subject, table ? table->size : 0, sizeof(*table));

	subject.kind = "condition";
	if (!status)
		status = check_state(&subject, table->state_size);
	if (!status)
		status = check_parameters(&subject, table->parameters, true);
	if (!status && table->phase != WEIR_GATHERING && table->phase != WEIR_CONTENT)
		status = wrong(&subject, table->name, "has an unknown phase");
	if (!status && !table->ask)
		status = wrong(&subject, table->name, "cannot be asked: set ask");
	return status;
}
