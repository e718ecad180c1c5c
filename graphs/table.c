/* Tables of operators and conditions: their ports by name, and a check when they are added, so that a
 * plugin's errors show early. */
#include "graphs/table.h"

#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/text.h"
#include "graphs/parameter.h"
#include "graphs/type.h"

/* --- by name --- */

size_t wr_port_count(const weir_port *ports)
{
	size_t count = 0;

	while (ports && ports[count].name)
		count++;
	return count;
}

int wr_port_index(const weir_port *ports, const char *name)
{
	for (int i = 0; ports && ports[i].name; i++)
		if (!strcmp(ports[i].name, name))
			return i;
	return -1;
}

int wr_port_find(struct wr_reports *reports, const struct wr_at *at, struct wr_place place,
		 const weir_operator *kind, const char *name, bool input)
{
	const weir_port *ports = input ? kind->inputs : kind->outputs;
	const char *direction = input ? "input" : "output";
	struct wr_nearest nearest = {.wanted = name};
	struct wr_offer offer = {.what = direction};
	int index = wr_port_index(ports, name);

	if (index >= 0)
		return index;
	for (size_t i = 0; i < wr_port_count(ports); i++) {
		wr_nearest_try(&nearest, ports[i].name);
		wr_offer_add(&offer, ports[i].name);
	}
	if (wr_port_index(input ? kind->outputs : kind->inputs, name) >= 0)
		wr_report(reports, WR_W_DIRECTION, at, place,
			  "'%s' of operator '%s' is an %s, but an %s is needed here%s", name, kind->name,
			  input ? "output" : "input", direction, wr_offer_hint(&offer, &nearest));
	else
		wr_report(reports, WR_W_UNKNOWN_PORT, at, place, "operator '%s' has no %s '%s'%s", kind->name,
			  direction, wr_shown(name).text, wr_offer_hint(&offer, &nearest));
	return -1;
}

/* --- the check --- */

/* The table that is checked, for its errors. */
struct subject {
	const char *kind, *name;
};

static weir_status table_error(const struct subject *subject, const char *part, const char *why)
{
	return wr_fail(WEIR_E_INVALID, "table of %s '%s': '%s' %s", subject->kind,
		       wr_shown(subject->name).text, wr_shown(part).text, why);
}

static weir_status table_check_input(const struct subject *subject, const weir_port *port)
{
	uint32_t capacity = port->capacity ? port->capacity : 1;
	uint32_t take = port->take ? port->take : 1;

	if (capacity > WR_PORT_CAPACITY_MAX)
		return table_error(subject, port->name, "has a capacity of more than 65536");
	if (take != WEIR_TAKE_ALL && take > capacity)
		return table_error(subject, port->name, "has a take larger than its capacity");
	if (port->policy > WEIR_POLICY_LATEST)
		return table_error(subject, port->name, "has an unknown policy");
	if (port->policy == WEIR_POLICY_LATEST && (capacity > 1 || take > 1))
		return table_error(subject, port->name,
				   "is 'latest' with a capacity or a take: leave both 0");
	if (port->policy == WEIR_POLICY_LATEST && port->flags & WEIR_PORT_ANY_SIZE)
		return table_error(subject, port->name, "is both 'latest' and an any-size port");
	if (port->policy == WEIR_POLICY_LATEST && port->flags & WEIR_PORT_ONCE)
		return table_error(subject, port->name, "is 'latest', and takes each message once");
	if (port->flags & WEIR_PORT_DEVICE && port->flags & WEIR_PORT_HOST)
		return table_error(subject, port->name,
				   "is both a device port and a host port: set one of the flags");
	if (port->ahead)
		return table_error(subject, port->name, "is an input: only outputs have 'ahead'");
	return WEIR_OK;
}

static weir_status table_check_ports(const struct subject *subject, const weir_port *ports, bool input,
				     const weir_port *inputs)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < wr_port_count(ports) && !status; i++) {
		if (!wr_name_ok(ports[i].name))
			status = table_error(subject, ports[i].name, "is not a valid port name");
		else if (wr_port_index(ports, ports[i].name) != (int)i)
			status = table_error(subject, ports[i].name, "appears twice");
		else if (input)
			status = table_check_input(subject, &ports[i]);
		else if (ports[i].flags & WEIR_PORT_DEVICE)
			status = table_error(subject, ports[i].name,
					     "is an output: the device flag is for inputs");
		else if (ports[i].like && wr_port_index(inputs, ports[i].like) < 0)
			status = table_error(subject, ports[i].name, "is like an input that is not there");
		else if (ports[i].max_emits > WR_PORT_CAPACITY_MAX)
			status = table_error(subject, ports[i].name, "has max_emits of more than 65536");
		else if (ports[i].ahead > WR_PORT_CAPACITY_MAX)
			status = table_error(subject, ports[i].name, "has an 'ahead' of more than 65536");
	}
	return status;
}

/* The names of sizes are those of all ports together. */
static weir_status table_check_types(const struct subject *subject, const weir_port *ports,
				     struct wr_scope *scope)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < wr_port_count(ports) && !status; i++) {
		char text[WR_TYPE_WHY];
		struct wr_words why = wr_words_in(text, sizeof(text));
		struct wr_port_type type;

		status = wr_port_type_read(&type, scope, &ports[i], &why);
		if (status == WEIR_E_INVALID)
			table_error(subject, ports[i].name, why.text);
		else if (!status && wr_port_type_says(&type) &&
			 !(wr_port_kinds(&ports[i]) & WEIR_KIND_TENSOR))
			status = table_error(subject, ports[i].name,
					     "has a dtype, a place or a shape, but its kinds are without "
					     "WEIR_KIND_TENSOR");
		wr_port_type_finish(&type);
	}
	return status;
}

static bool is_prefix(const weir_parameter *parameters, const char *name)
{
	while (parameters->name && strcmp(parameters->name, name))
		parameters++;
	return parameters->name && parameters->type == WEIR_TYPE_STRING;
}

static const char *parameter_fault(const weir_parameter *parameters, const weir_parameter *parameter,
				   bool condition)
{
	const weir_parameter *first = parameters;
	const char *name = parameter->name;

	while (strcmp(first->name, name))
		first++;
	if (!wr_name_ok(name) ||
	    (condition && (!strcmp(name, "type") || !strcmp(name, "name") || !strcmp(name, "signal"))))
		return "is not a valid parameter name";
	if (first != parameter)
		return "appears twice";
	if (parameter->type < WEIR_TYPE_BOOL || parameter->type > WEIR_TYPE_WRITE_DESCRIPTOR)
		return "has an unknown type";
	if (parameter->type == WEIR_TYPE_CHOICE && (!parameter->choices || !*parameter->choices))
		return "has no choices";
	if (parameter->type == WEIR_TYPE_WRITE_FILE && parameter->choices &&
	    !is_prefix(parameters, parameter->choices))
		return "has choices that name no parameter of type WEIR_TYPE_STRING";
	if (parameter->min > parameter->max)
		return "has a minimum above its maximum";
	return NULL;
}

/* Keeps what the first report says. */
static void keep_first(const weir_diagnostic *report, void *arg)
{
	struct wr_shown *why = arg;

	if (!*why->text)
		*why = wr_shown(report->text);
}

/*
 * Reads the default as in a description. Defaults that name ports depend on the operator that the condition
 * is given to; they are checked with the entity.
 */
static weir_status table_check_fallback(const struct subject *subject, const weir_parameter *parameter)
{
	const weir_parameter alone[] = {*parameter, {0}};
	struct wr_values_source source = {.kind = subject->kind, .name = subject->name, .parameters = alone};
	struct wr_reports reports = {0};
	struct wr_shown why = {{0}};
	weir_values *values = NULL;
	weir_status status;

	if (!parameter->fallback || wr_parameter_is_input(parameter) || wr_parameter_is_output(parameter))
		return WEIR_OK;
	status = wr_values_create(&values, &source, &reports);
	wr_values_destroy(values);
	if (!status)
		status = wr_reports_deliver(&reports, keep_first, &why);
	else
		wr_reports_deliver(&reports, NULL, NULL);
	return status == WEIR_E_INVALID
		       ? wr_fail(status, "table of %s '%s': '%s' has a default that does not fit it: %s",
				 subject->kind, wr_shown(subject->name).text, wr_shown(parameter->name).text,
				 why.text)
		       : status;
}

static weir_status table_check_parameters(const struct subject *subject, const weir_parameter *parameters,
					  bool condition)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; parameters && parameters[i].name && !status; i++) {
		const char *fault = parameter_fault(parameters, &parameters[i], condition);
		status = fault ? table_error(subject, parameters[i].name, fault)
			       : table_check_fallback(subject, &parameters[i]);
	}
	return status;
}

/* A larger size can only be a mistake, such as a negative number. */
#define STATE_MAX (UINT64_C(1) << 40)

static weir_status table_check_state(const struct subject *subject, size_t bytes)
{
	return bytes > STATE_MAX ? table_error(subject, subject->name, "has a state_size of more than a TiB")
				 : WEIR_OK;
}

static weir_status table_check_name(const struct subject *subject)
{
	if (!subject->name || !wr_name_ok(subject->name))
		return wr_fail(WEIR_E_INVALID, "table of %s: '%s' is not a valid name", subject->kind,
			       wr_shown(subject->name ? subject->name : "").text);
	return WEIR_OK;
}

static bool names_ports(const weir_parameter *parameters)
{
	for (; parameters && parameters->name; parameters++)
		if (wr_parameter_is_input(parameters) || wr_parameter_is_output(parameters))
			return true;
	return false;
}

weir_status wr_operator_check(const weir_operator *table)
{
	struct subject subject = {"an operator", table->name};
	struct wr_scope scope = {0};
	weir_status status = table_check_name(&subject);

	subject.kind = "operator";
	if (!status)
		status = table_check_state(&subject, table->state_size);
	if (!status)
		status = table_check_parameters(&subject, table->parameters, false);
	if (!status)
		status = table_check_ports(&subject, table->inputs, true, NULL);
	if (!status)
		status = table_check_ports(&subject, table->outputs, false, table->inputs);
	for (size_t i = 0; !status && i < wr_port_count(table->outputs); i++)
		if (table->outputs[i].flags & WEIR_PORT_FULL && table->flags & WEIR_OPERATOR_INSTANCES)
			status = table_error(&subject, table->outputs[i].name,
					     "may be full, which no operator with instances has");
		else if (table->outputs[i].ahead && table->flags & WEIR_OPERATOR_INSTANCES)
			status = table_error(&subject, table->outputs[i].name,
					     "has 'ahead', which no operator with instances has");
	if (!status)
		status = table_check_types(&subject, table->inputs, &scope);
	if (!status)
		status = table_check_types(&subject, table->outputs, &scope);
	wr_scope_finish(&scope);
	if (!status && table->describe && names_ports(table->parameters))
		status = table_error(&subject, table->name,
				     "describes its ports and has a parameter that names one: use a string");
	for (size_t i = 0; !status && i < wr_port_count(table->inputs); i++)
		if (wr_port_index(table->outputs, table->inputs[i].name) >= 0)
			status = table_error(&subject, table->inputs[i].name,
					     "is both an input and an output");
	return status;
}

weir_status wr_condition_check(const weir_condition *table)
{
	struct subject subject = {"a condition", table->name};
	weir_status status = table_check_name(&subject);

	subject.kind = "condition";
	if (!status)
		status = table_check_state(&subject, table->state_size);
	if (!status)
		status = table_check_parameters(&subject, table->parameters, true);
	if (!status && table->phase != WEIR_PHASE_GATHERING && table->phase != WEIR_PHASE_CONTENT)
		status = table_error(&subject, table->name, "has an unknown phase");
	if (!status && !table->ask)
		status = table_error(&subject, table->name, "has no function ask: set it");
	return status;
}
