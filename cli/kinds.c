/* weir operators and weir conditions: print the operators and conditions of the registry. */
#include <string.h>

#include "cli/cli.h"

static const char *operator_name(size_t i, const void *registry)
{
	const weir_operator *kind = weir_registry_operator(registry, i);

	return kind ? kind->name : NULL;
}

static const char *condition_name(size_t i, const void *registry)
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
	const char *(*name)(size_t i, const void *registry);
	const char *(*help)(const weir_registry *registry, size_t i);
	void (*print)(const weir_registry *registry, size_t i);
};
static const struct list operators = {"operator", operator_name, operator_help, cli_page_operator};
static const struct list conditions = {"condition", condition_name, condition_help, cli_page_condition};

static void print_all(const struct list *list, const weir_registry *registry)
{
	const char *name;
	size_t width = 0;

	for (size_t i = 0; (name = list->name(i, registry)); i++)
		width = strlen(name) > width ? strlen(name) : width;
	for (size_t i = 0; (name = list->name(i, registry)); i++) {
		const char *help = list->help(registry, i);

		printf("%-*s  ", (int)width, name);
		cli_put(stdout, help ? help : "");
		putchar('\n');
	}
}

static int print_one(const struct list *list, const weir_registry *registry, const char *wanted)
{
	const char *name;

	for (size_t i = 0; (name = list->name(i, registry)); i++)
		if (!strcmp(name, wanted)) {
			list->print(registry, i);
			return CLI_OK;
		}
	name = cli_nearest(wanted, list->name, registry);
	if (name)
		cli_say("no %s '%s' (did you mean '%s'?)", list->noun, wanted, name);
	else
		cli_say("no %s '%s'; weir %ss lists them", list->noun, wanted, list->noun);
	return CLI_USAGE;
}

static int print_list(const struct list *list, const struct cli_options *options)
{
	weir_registry *registry = NULL;
	int code;

	cli_signals_unblock();
	code = cli_registry_load(&registry, options);
	if (!code && options->argument)
		code = print_one(list, registry, options->argument);
	else if (!code)
		print_all(list, registry);
	weir_registry_destroy(registry);
	return code;
}

static int run_operators(const struct cli_options *options)
{
	return print_list(&operators, options);
}

static int run_conditions(const struct cli_options *options)
{
	return print_list(&conditions, options);
}

const struct cli_command cli_operators = {
	.name = "operators",
	.argument = "[NAME]",
	.help = "lists the operators, or all about one",
	.text = "With a NAME: its parameters with types, bounds and defaults, and its ports.\n",
	.options = CLI_PLUGIN,
	.run = run_operators,
};

const struct cli_command cli_conditions = {
	.name = "conditions",
	.argument = "[NAME]",
	.help = "lists the conditions, or all about one",
	.text = "With a NAME: its parameters with types, bounds and defaults, and the keys beside them.\n",
	.options = CLI_PLUGIN,
	.run = run_conditions,
};
