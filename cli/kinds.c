/* What weir operators and weir conditions print: a list of the registry's kinds, or all about one. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/report.h"

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
	case WEIR_TYPE_NUMBERS:
		return "numbers";
	case WEIR_TYPE_READ_FILE:
		return "file that is read";
	case WEIR_TYPE_WRITE_FILE:
		return "file that is written";
	case WEIR_TYPE_READ_DESCRIPTOR:
		return "descriptor that is read";
	case WEIR_TYPE_WRITE_DESCRIPTOR:
		return "descriptor that is written";
	}
	return "?";
}

static void print_bound(weir_parameter_type type, int64_t value)
{
	if (type == WEIR_TYPE_DURATION)
		fputs(wr_duration_shown(value).text, stdout);
	else if (type == WEIR_TYPE_SIZE)
		fputs(wr_size_shown(value).text, stdout);
	else
		printf("%lld", (long long)value);
}

static bool is_bounded(const weir_parameter *parameter)
{
	return parameter->min || parameter->max;
}

static void print_bounds(const weir_parameter *parameter)
{
	if (parameter->max == INT64_MAX)
		printf("at least ");
	print_bound(parameter->type, parameter->min);
	if (parameter->max == INT64_MAX)
		return;
	printf(" to ");
	print_bound(parameter->type, parameter->max);
}

static void print_choices(const char *choices)
{
	char shown[64];

	putchar(' ');
	while (*choices) {
		wr_shown_part(shown, sizeof shown, &choices);
		for (const char *at = shown; *at; at++)
			if (*at == '|')
				fputs(", ", stdout);
			else
				putchar(*at);
	}
}

/* "integer, 0 to 64", "one of pop, reject", "a list of 1 to 4 numbers". */
static void print_type(const weir_parameter *parameter)
{
	if (parameter->type == WEIR_TYPE_NUMBERS) {
		printf("a list of ");
		if (is_bounded(parameter)) {
			print_bounds(parameter);
			putchar(' ');
		}
	}
	fputs(parameter->type == WEIR_TYPE_WRITE_FILE && parameter->choices
		      ? "folder to write to, files begin with"
		      : type_of(parameter->type),
	      stdout);
	if (parameter->choices)
		print_choices(parameter->choices);
	if (is_bounded(parameter) && parameter->type != WEIR_TYPE_NUMBERS) {
		printf(", ");
		print_bounds(parameter);
	}
}

static void print_help(const char *help)
{
	if (!help || !*help)
		return;
	fputs("      ", stdout);
	cli_print_escaped(stdout, help);
	putchar('\n');
}

static void print_parameters(const weir_parameter *parameters)
{
	if (!parameters || !parameters->name)
		return;
	puts("\nparameters");
	for (const weir_parameter *parameter = parameters; parameter->name; parameter++) {
		printf("  %s: ", parameter->name);
		print_type(parameter);
		fputs(parameter->fallback ? "; default " : "; required", stdout);
		cli_print_escaped(stdout, parameter->fallback ? parameter->fallback : "");
		putchar('\n');
		print_help(parameter->help);
	}
}

static void print_kinds_of_messages(unsigned mask, const char *any, const char *separator)
{
	static const char *const names[] = {"empty", "bytes", "tensor", "user", "parts"};
	const char *between = "";

	if (!mask) {
		fputs(any, stdout);
		return;
	}
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (mask & 1u << i) {
			printf("%s%s", between, names[i]);
			between = separator;
		}
}

/* A dtype or a shape without kinds means tensors. */
static unsigned kinds_of(const weir_port *port)
{
	return port->kinds || !(port->dtype || port->shape) ? port->kinds : (unsigned)WEIR_KIND_TENSOR;
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

/* "      tensors: uint8 [H, W] | [H, W, 3] in host memory"; nothing for a port without a type. */
static void print_tensors(const weir_port *port)
{
	bool host = port->place && strstr(port->place, "host"),
	     device = port->place && strstr(port->place, "device");

	if (!port->dtype && !port->shape && !port->like && host == device)
		return;
	fputs("      tensors:", stdout);
	if (port->like)
		printf(" as at '%s'", port->like);
	if (port->dtype)
		printf(" %s", port->dtype);
	if (port->shape)
		printf(" %s", port->shape);
	if (host != device)
		fputs(host ? " in host memory" : " on a device", stdout);
	putchar('\n');
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
	case WEIR_POLICY_LATEST:
		return "latest";
	}
	return "?";
}

/* A `latest` port has neither capacity nor take. */
static void print_queue(const weir_port *port)
{
	if (port->policy == WEIR_POLICY_LATEST) {
		fputs("; takes the latest again and again", stdout);
		return;
	}
	if (port->take == WEIR_TAKE_ALL)
		printf("; capacity %u, takes all", or_one(port->capacity));
	else
		printf("; capacity %u, takes %u", or_one(port->capacity), or_one(port->take));
	printf(", %s when full", policy_name(port->policy));
}

static void print_inputs(const weir_operator *kind)
{
	const weir_port *ports = kind->inputs;

	if (!ports || !ports->name)
		return;
	puts("\ninputs");
	for (const weir_port *port = ports; port->name; port++) {
		printf("  %s: ", port->name);
		print_kinds_of_messages(kinds_of(port), "any message", " or ");
		print_queue(port);
		print_flags(port->flags);
		fputs(is_device_port(kind, port) ? ", device port\n" : ", host port\n", stdout);
		print_tensors(port);
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
		print_kinds_of_messages(kinds_of(port), "any message", " or ");
		printf("; at most %u a tick", or_one(port->max_emits));
		if (port->ahead)
			printf(", %u made ahead", port->ahead);
		print_flags(port->flags);
		putchar('\n');
		print_tensors(port);
		print_help(port->help);
	}
}

static void print_title(const char *name, const char *help)
{
	fputs(name, stdout);
	if (help && *help) {
		fputs(": ", stdout);
		cli_print_escaped(stdout, help);
	}
	putchar('\n');
}

static void print_operator(const weir_registry *registry, size_t i)
{
	const weir_operator *kind = weir_registry_operator(registry, i);

	print_title(kind->name, kind->help);
	if (kind->flags & WEIR_OPERATOR_STREAM)
		puts("\nuses a stream of its entity's pool in every tick");
	if (kind->flags & WEIR_OPERATOR_EFFECTS)
		puts("\nhas side effects: ends with its inputs, not when its receivers are done");
	if (kind->flags & WEIR_OPERATOR_PRINTS)
		puts("\nprints lines on standard output");
	if (kind->flags & WEIR_OPERATOR_INSTANCES)
		puts("\nmay have several instances, whose computes run at the same time");
	if (kind->describe)
		puts("\nits parameters are checked together, and may decide on ports: `weir show` lists "
		     "them");
	print_parameters(kind->parameters);
	print_inputs(kind);
	print_outputs(kind->outputs);
	for (size_t k = 0; kind->conditions && kind->conditions[k]; k++) {
		fputs(k ? "      " : "\nconditions that it brings\n      ", stdout);
		cli_print_escaped(stdout, kind->conditions[k]);
		putchar('\n');
	}
}

/* --- as JSON --- */

/* A word for programs; type_of is for people. */
static const char *type_word(const weir_parameter *parameter)
{
	static const char *const words[] = {
		[WEIR_TYPE_BOOL] = "bool",
		[WEIR_TYPE_INT] = "int",
		[WEIR_TYPE_NUMBER] = "number",
		[WEIR_TYPE_STRING] = "string",
		[WEIR_TYPE_DURATION] = "duration",
		[WEIR_TYPE_SIZE] = "size",
		[WEIR_TYPE_CHOICE] = "choice",
		[WEIR_TYPE_INPUT] = "input",
		[WEIR_TYPE_OUTPUT] = "output",
		[WEIR_TYPE_INPUTS] = "inputs",
		[WEIR_TYPE_OUTPUTS] = "outputs",
		[WEIR_TYPE_NUMBERS] = "numbers",
		[WEIR_TYPE_READ_FILE] = "read_file",
		[WEIR_TYPE_WRITE_FILE] = "write_file",
		[WEIR_TYPE_READ_DESCRIPTOR] = "read_descriptor",
		[WEIR_TYPE_WRITE_DESCRIPTOR] = "write_descriptor",
	};

	return words[parameter->type];
}

static void put_text(const char *before, const char *key, const char *text)
{
	printf("%s\"%s\": ", before, key);
	if (text)
		cli_page_string(stdout, text);
	else
		fputs("null", stdout);
}

static void put_bool(const char *key, bool value)
{
	printf(", \"%s\": %s", key, value ? "true" : "false");
}

static void put_number(const char *key, bool given, int64_t value)
{
	if (given)
		printf(", \"%s\": %lld", key, (long long)value);
	else
		printf(", \"%s\": null", key);
}

/* Texts that are JSON, such as a default. */
static void put_json(const char *before, const char *json)
{
	fputs(before, stdout);
	cli_page_json(stdout, json, strlen(json));
}

static void put_parameters(const weir_parameter *parameters)
{
	fputs(",\n   \"parameters\": [", stdout);
	for (const weir_parameter *parameter = parameters; parameter && parameter->name; parameter++) {
		put_text(parameter == parameters ? "\n    {" : ",\n    {", "name", parameter->name);
		put_text(", ", "type", type_word(parameter));
		put_bool("required", !parameter->fallback);
		put_json(", \"default\": ", parameter->fallback ? parameter->fallback : "null");
		put_number("min", is_bounded(parameter), parameter->min);
		put_number("max", is_bounded(parameter) && parameter->max != INT64_MAX, parameter->max);
		put_text(", ", "choices", parameter->choices);
		put_text(", ", "help", parameter->help);
		putchar('}');
	}
	putchar(']');
}

/* The queue of an input, or what an output may emit. */
static void put_port(const weir_operator *kind, const weir_port *port, bool input)
{
	put_bool("optional", port->flags & WEIR_PORT_OPTIONAL);
	if (!input) {
		put_number("max_emits", true, or_one(port->max_emits));
		if (port->ahead) /* of few outputs */
			put_number("ahead", true, port->ahead);
		return;
	}
	put_bool("any_size", port->flags & WEIR_PORT_ANY_SIZE);
	put_bool("device_port", is_device_port(kind, port));
	put_number("capacity", port->policy != WEIR_POLICY_LATEST, or_one(port->capacity));
	if (port->take == WEIR_TAKE_ALL)
		put_text(", ", "take", "all");
	else
		put_number("take", port->policy != WEIR_POLICY_LATEST, or_one(port->take));
	put_text(", ", "policy", policy_name(port->policy));
}

static void put_ports(const weir_operator *kind, const weir_port *ports, bool input)
{
	printf(",\n   \"%s\": [", input ? "inputs" : "outputs");
	for (const weir_port *port = ports; port && port->name; port++) {
		put_text(port == ports ? "\n    {" : ",\n    {", "name", port->name);
		fputs(", \"messages\": \"", stdout);
		print_kinds_of_messages(kinds_of(port), "any", "|");
		putchar('"');
		put_text(", ", "dtype", port->dtype);
		put_text(", ", "place", port->place);
		put_text(", ", "shape", port->shape);
		if (port->like) /* of few outputs */
			put_text(", ", "like", port->like);
		put_port(kind, port, input);
		put_text(", ", "help", port->help);
		putchar('}');
	}
	putchar(']');
}

static void put_operator(const char *before, const weir_operator *kind)
{
	put_text(before, "name", kind->name);
	put_text(", ", "help", kind->help);
	put_bool("stream", kind->flags & WEIR_OPERATOR_STREAM);
	put_bool("effects", kind->flags & WEIR_OPERATOR_EFFECTS);
	put_bool("prints", kind->flags & WEIR_OPERATOR_PRINTS);
	put_bool("instances", kind->flags & WEIR_OPERATOR_INSTANCES);
	if (kind->describe) /* of few operators */
		put_bool("describes_ports", true);
	put_parameters(kind->parameters);
	put_ports(kind, kind->inputs, true);
	put_ports(kind, kind->outputs, false);
	fputs(",\n   \"conditions\": [", stdout);
	for (size_t i = 0; kind->conditions && kind->conditions[i]; i++)
		put_json(i ? ", " : "", kind->conditions[i]);
	fputs("]}", stdout);
}

#define JSON_BEGIN "{\"operators\": ["
#define JSON_FIRST "\n  {"
#define JSON_END   "\n]}"

static void print_operator_json(const weir_registry *registry, size_t i)
{
	put_operator(JSON_BEGIN JSON_FIRST, weir_registry_operator(registry, i));
	puts(JSON_END);
}

/* --- conditions --- */

static void print_condition(const weir_registry *registry, size_t i)
{
	const weir_condition *kind = weir_registry_condition(registry, i);

	print_title(kind->name, kind->help);
	printf("\n%s condition: %s\n", kind->phase == WEIR_PHASE_CONTENT ? "content" : "gathering",
	       kind->phase == WEIR_PHASE_CONTENT ? "looks into the messages that the next tick receives"
						 : "asked before the messages of the next tick are chosen");
	print_parameters(kind->parameters);
	/* These belong to the scheduler, not to the condition's table. */
	puts("\nbeside the parameters\n"
	     "  name: string; default the type\n"
	     "      the name by which a program addresses it");
	if (!strcmp(kind->name, "cuda_stream"))
		puts("  signal: one of auto, callback, callback_inline, flag; default the scheduler's\n"
		     "      how finished device work wakes the entity");
}

/* --- lists --- */

static const char *operator_name(const weir_registry *registry, size_t i)
{
	const weir_operator *kind = weir_registry_operator(registry, i);

	return kind ? kind->name : NULL;
}

static const char *condition_name(const weir_registry *registry, size_t i)
{
	const weir_condition *kind = weir_registry_condition(registry, i);

	return kind ? kind->name : NULL;
}

static const char *operator_help(const weir_registry *registry, size_t i)
{
	return weir_registry_operator(registry, i)->help;
}

static const char *condition_help(const weir_registry *registry, size_t i)
{
	return weir_registry_condition(registry, i)->help;
}

/* The difference between the two commands. */
struct list {
	const char *noun;
	const char *(*name)(const weir_registry *registry, size_t i);
	const char *(*help)(const weir_registry *registry, size_t i);
	void (*print)(const weir_registry *registry, size_t i);
};
static const struct list operators = {"operator", operator_name, operator_help, print_operator};
static const struct list operators_json = {"operator", operator_name, operator_help, print_operator_json};
static const struct list conditions = {"condition", condition_name, condition_help, print_condition};

static void print_all(const struct list *list, const weir_registry *registry)
{
	const char *name;
	size_t width = 0;

	for (size_t i = 0; (name = list->name(registry, i)); i++)
		width = strlen(name) > width ? strlen(name) : width;
	for (size_t i = 0; (name = list->name(registry, i)); i++) {
		const char *help = list->help(registry, i);

		printf("%-*s  ", (int)width, name);
		cli_print_escaped(stdout, help ? help : "");
		putchar('\n');
	}
}

static int print_one(const struct list *list, const weir_registry *registry, const char *wanted)
{
	struct wr_nearest nearest = {.wanted = wanted};
	const char *name;

	for (size_t i = 0; (name = list->name(registry, i)); i++) {
		if (!strcmp(name, wanted)) {
			list->print(registry, i);
			return CLI_OK;
		}
		wr_nearest_try(&nearest, name);
	}
	if (nearest.best)
		cli_say("no %s '%s' (did you mean '%s'?)", list->noun, wanted, nearest.best);
	else
		cli_say("no %s '%s'; weir %ss lists them, --plugin adds some", list->noun, wanted,
			list->noun);
	return CLI_USAGE;
}

static int print_kinds(const struct list *list, const weir_registry *registry, const char *name)
{
	if (name)
		return print_one(list, registry, name);
	print_all(list, registry);
	return CLI_OK;
}

int cli_operators_print(const weir_registry *registry, const char *name)
{
	return print_kinds(&operators, registry, name);
}

int cli_operators_print_json(const weir_registry *registry, const char *name)
{
	const weir_operator *kind;

	if (name)
		return print_one(&operators_json, registry, name);
	fputs(JSON_BEGIN, stdout);
	for (size_t i = 0; (kind = weir_registry_operator(registry, i)); i++)
		put_operator(i ? "," JSON_FIRST : JSON_FIRST, kind);
	puts(JSON_END);
	return CLI_OK;
}

int cli_conditions_print(const weir_registry *registry, const char *name)
{
	return print_kinds(&conditions, registry, name);
}
