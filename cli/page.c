/* Prints the full description of one operator or condition. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char *type_of(weir_parameter_type type)
{
	switch (type) {
	case WEIR_TYPE_BOOL:
		return "true or false";
	case WEIR_TYPE_INT:
		return "integer";
	case WEIR_TYPE_NUMBER:
		return "number";
	case WEIR_TYPE_STRING:
		return "string";
	case WEIR_TYPE_DURATION:
		return "duration";
	case WEIR_TYPE_SIZE:
		return "size";
	case WEIR_TYPE_CHOICE:
		return "one of";
	case WEIR_TYPE_INPUT:
		return "input port";
	case WEIR_TYPE_OUTPUT:
		return "output port";
	case WEIR_TYPE_INPUTS:
		return "input ports";
	case WEIR_TYPE_OUTPUTS:
		return "output ports";
	}
	return "?";
}

struct unit {
	const char *name;
	int64_t of;
};
static const struct unit durations[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
static const struct unit sizes[] = {
	{"TiB", INT64_C(1) << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {" bytes", 1}};

/* Prints the value in the largest unit that gives a whole number. */
static void print_bound(weir_parameter_type type, int64_t value)
{
	const struct unit *unit = type == WEIR_TYPE_DURATION ? durations : sizes;

	if (type != WEIR_TYPE_DURATION && type != WEIR_TYPE_SIZE) {
		printf("%lld", (long long)value);
		return;
	}
	while (unit->of > 1 && (value % unit->of || !value))
		unit++;
	printf("%lld%s", (long long)(value / unit->of), unit->name);
}

static void print_bounds(const weir_parameter *parameter)
{
	if (!parameter->min && !parameter->max)
		return;
	if (parameter->max == INT64_MAX) {
		printf(", at least ");
		print_bound(parameter->type, parameter->min);
		return;
	}
	printf(", ");
	print_bound(parameter->type, parameter->min);
	printf(" to ");
	print_bound(parameter->type, parameter->max);
}

static void print_choices(const char *choices)
{
	char shown[64];

	putchar(' ');
	while (*choices) {
		weir_text_escape(&choices, sizeof shown, shown);
		for (const char *at = shown; *at; at++)
			if (*at == '|')
				fputs(", ", stdout);
			else
				putchar(*at);
	}
}

static void print_help(const char *help)
{
	if (!help || !*help)
		return;
	fputs("      ", stdout);
	cli_put(stdout, help);
	putchar('\n');
}

static void print_parameters(const weir_parameter *parameters)
{
	if (!parameters || !parameters->name)
		return;
	puts("\nparameters");
	for (const weir_parameter *parameter = parameters; parameter->name; parameter++) {
		printf("  %s: %s", parameter->name, type_of(parameter->type));
		if (parameter->choices)
			print_choices(parameter->choices);
		print_bounds(parameter);
		fputs(parameter->fallback ? "; default " : "; required", stdout);
		cli_put(stdout, parameter->fallback ? parameter->fallback : "");
		putchar('\n');
		print_help(parameter->help);
	}
}

static void print_kinds_of_messages(unsigned mask)
{
	static const char *const names[] = {"empty", "bytes", "tensor", "user"};
	const char *between = "";

	if (!mask) {
		fputs("any message", stdout);
		return;
	}
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (mask & 1u << i) {
			printf("%s%s", between, names[i]);
			between = " or ";
		}
}

static void print_flags(unsigned flags)
{
	if (flags & WEIR_PORT_ANY_SIZE)
		fputs(", any number of connections", stdout);
	if (flags & WEIR_PORT_OPTIONAL)
		fputs(", may stay unconnected", stdout);
}

/*
 * Returns true if compute orders itself after the producers on the device; else it receives finished
 * messages.
 */
static bool is_device_port(const weir_operator *kind, const weir_port *port)
{
	if (port->flags & WEIR_PORT_HOST)
		return false;
	return port->flags & WEIR_PORT_DEVICE || kind->flags & WEIR_OPERATOR_STREAM;
}

static uint32_t or_one(uint32_t value)
{
	return value ? value : 1;
}

static const char *policy_name(weir_policy policy)
{
	switch (policy) {
	case WEIR_POLICY_BLOCK:
		return "block";
	case WEIR_POLICY_POP:
		return "pop";
	case WEIR_POLICY_REJECT:
		return "reject";
	case WEIR_POLICY_FAULT:
		return "fault";
	}
	return "?";
}

static void print_inputs(const weir_operator *kind)
{
	const weir_port *ports = kind->inputs;

	if (!ports || !ports->name)
		return;
	puts("\ninputs");
	for (const weir_port *port = ports; port->name; port++) {
		printf("  %s: ", port->name);
		print_kinds_of_messages(port->kinds);
		if (port->take == WEIR_TAKE_ALL)
			printf("; capacity %u, takes all", or_one(port->capacity));
		else
			printf("; capacity %u, takes %u", or_one(port->capacity), or_one(port->take));
		printf(", %s when full", policy_name(port->policy));
		print_flags(port->flags);
		fputs(is_device_port(kind, port) ? ", device port\n" : ", host port\n", stdout);
		print_help(port->help);
	}
}

static void print_outputs(const weir_port *ports)
{
	if (!ports || !ports->name)
		return;
	puts("\noutputs");
	for (const weir_port *port = ports; port->name; port++) {
		printf("  %s: ", port->name);
		print_kinds_of_messages(port->kinds);
		printf("; at most %u a tick", or_one(port->max_emits));
		print_flags(port->flags);
		putchar('\n');
		print_help(port->help);
	}
}

static void print_title(const char *name, const char *help)
{
	printf("%s: ", name);
	cli_put(stdout, help ? help : "");
	putchar('\n');
}

void cli_page_operator(const weir_registry *registry, size_t i)
{
	const weir_operator *kind = weir_registry_operator(registry, i);

	print_title(kind->name, kind->help);
	if (kind->flags & WEIR_OPERATOR_STREAM)
		puts("\nuses a stream of its entity's pool in every tick");
	if (kind->flags & WEIR_OPERATOR_EFFECTS)
		puts("\nhas side effects: ends with its inputs, not when its receivers are done");
	print_parameters(kind->parameters);
	print_inputs(kind);
	print_outputs(kind->outputs);
}

/* The keys beside the parameters belong to the scheduler, not to the condition's table. */
static void print_keys(const weir_condition *kind)
{
	puts("\nbeside the parameters\n"
	     "  name: string; default the type\n"
	     "      the name by which a program addresses it");
	if (!strcmp(kind->name, "cuda_stream"))
		puts("  signal: one of callback, callback_inline, flag; default the scheduler's\n"
		     "      how finished device work wakes the entity");
}

void cli_page_condition(const weir_registry *registry, size_t i)
{
	const weir_condition *kind = weir_registry_condition(registry, i);

	print_title(kind->name, kind->help);
	printf("\n%s condition: %s\n", kind->phase == WEIR_PHASE_CONTENT ? "content" : "gathering",
	       kind->phase == WEIR_PHASE_CONTENT ? "looks into the messages that the next tick receives"
						 : "asked before the messages of the next tick are chosen");
	print_parameters(kind->parameters);
	print_keys(kind);
}
