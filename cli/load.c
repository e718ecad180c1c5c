/*
 * Loads what the command line names: plugins, the graph, the values of --set. Every error is printed; the
 * caller gets the exit code. `weir show`, `weir operators` and `weir conditions` do hardly more than that and
 * are here, too.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

int cli_registry_load(weir_registry **out, const struct cli_options *options)
{
	weir_status status = weir_registry_create(out);

	if (options->remote) /* plugins read it there: the command links none */
		setenv("WEIR_REMOTE", options->remote, 1);
	if (!status && cli_python)
		status = cli_python->add(*out);
	for (size_t i = 0; !status && i < options->plugin_count; i++)
		status = weir_registry_load(*out, options->plugins[i]);
	if (!status)
		return CLI_OK;
	cli_say_error(status, options->argument);
	return status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
}

/*
 * Returns the --set that caused a report whose pointer is ".../parameters/P": the last one that sets a P.
 * Returns NULL if P was set in several entities: the pointer has only the entity's index.
 */
static const char *find_set(const struct cli_options *options, const char *pointer)
{
	const char *key = strrchr(pointer, '/'), *found = NULL;
	size_t length = key ? strlen(key + 1) : 0;

	for (size_t i = options->set_count; key && i--;) {
		const char *set = options->sets[i]; /* "E.P=VALUE" */
		const char *equals = strchr(set, '='), *dot = strchr(set, '.');

		if (!dot || !equals || dot > equals || strncmp(dot + 1, key + 1, length) ||
		    dot[1 + length] != '=')
			continue;
		/* Where both set the same parameter of the same entity, the later one wins. */
		if (found && strncmp(found, set, (size_t)(equals - set) + 1))
			return NULL;
		found = found ? found : set;
	}
	return found;
}

void cli_graph_report(const weir_diagnostic *report, void *arg)
{
	struct cli_graph *graph = arg;
	const char *pointer = report->pointer ? report->pointer : "";
	bool of_set = !report->line && strstr(pointer, "/parameters/") && graph->options->set_count;
	const char *set = of_set ? find_set(graph->options, pointer) : NULL;

	*(report->warning ? &graph->warnings : &graph->errors) += 1;
	if (of_set)
		fputs(set ? "--set " : "--set", stderr);
	cli_print_escaped(stderr, set ? set : !of_set && report->file ? report->file : "");
	if (report->line)
		fprintf(stderr, ":%u:%u: ", report->line, report->column);
	else if (of_set || report->file)
		fputs(": ", stderr);
	fprintf(stderr, "%s W%03d: ", report->warning ? "warning" : "error", report->number);
	fprintf(stderr, "%s%s%s\n", pointer, *pointer ? ": " : "", report->text);
}

static weir_status read_and_set(struct cli_graph *graph, const struct cli_options *options, bool *usage)
{
	weir_status status;

	if (graph->interruptible)
		cli_signals_reading(true);
	status = weir_description_read(options->argument, options->max_file, cli_graph_report, graph,
				       &graph->description);
	if (graph->interruptible)
		cli_signals_reading(false);

	for (size_t i = 0; !status && i < options->set_count; i++) {
		status = weir_description_set(graph->description, options->sets[i]);
		*usage = status == WEIR_E_INVALID;
		if (!status && graph->set)
			graph->set[i] = true;
		else if (*usage && graph->set) /* another one of the graphs has that entity, or none */
			status = WEIR_OK;
	}
	return status;
}

int cli_graph_load(struct cli_graph *graph, const struct cli_options *options)
{
	bool usage = false;
	int code = graph->registry ? CLI_OK : cli_registry_load(&graph->registry, options);
	weir_status status;

	if (code)
		return code;
	graph->options = options;
	status = read_and_set(graph, options, &usage);
	if (!status && options->root && weir_description_set_root(graph->description, options->root)) {
		cli_say("%s", weir_last_error());
		return CLI_FAILED;
	}
	if (!status)
		status = weir_description_check(graph->description, graph->registry, cli_graph_report, graph);
	if (!status)
		return CLI_OK;
	/* Failures without a place in the text were not reported yet. */
	if (!graph->errors && usage)
		cli_say("--set: %s", weir_last_error());
	else if (!graph->errors)
		cli_say_error(status, graph->options->argument);
	return usage ? CLI_USAGE : status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
}

void cli_graph_finish(struct cli_graph *graph)
{
	weir_description_destroy(graph->description);
	weir_registry_destroy(graph->registry);
}

/* --- weir show --- */

static int run_show(const struct cli_options *options)
{
	struct cli_graph graph = {0};
	char *text = NULL;
	int code;

	cli_signals_unblock();
	code = cli_graph_load(&graph, options);
	if (!code) {
		weir_status status =
			weir_description_print(graph.description, graph.registry, options->format, &text);

		if (status)
			cli_say_error(status, options->argument);
		else
			fputs(text, stdout);
		code = cli_code_of(status);
	}
	weir_text_free(text);
	cli_graph_finish(&graph);
	return code;
}

const struct cli_command cli_show = {
	.name = "show",
	.argument = "GRAPH",
	.help = "prints what a graph resolves to, defaults filled in",
	.text = "As text, as JSON that weir reads again, or as a drawing: "
		"weir show --dot GRAPH | dot -Tsvg.\n",
	.options = CLI_SET | CLI_PLUGIN | CLI_PYTHON | CLI_MAX_FILE | CLI_JSON | CLI_DOT,
	.run = run_show,
};

/* --- weir operators, weir conditions --- */

static int print_kinds(const struct cli_options *options,
		       int (*print)(const weir_registry *registry, const char *name))
{
	weir_registry *registry = NULL;
	int code;

	cli_signals_unblock();
	code = cli_registry_load(&registry, options);
	if (!code)
		code = print(registry, options->argument);
	weir_registry_destroy(registry);
	return code;
}

static int run_operators(const struct cli_options *options)
{
	return print_kinds(options, options->format == WEIR_FORMAT_JSON ? cli_operators_print_json
									: cli_operators_print);
}

static int run_conditions(const struct cli_options *options)
{
	return print_kinds(options, cli_conditions_print);
}

const struct cli_command cli_operators = {
	.name = "operators",
	.argument = "[NAME]",
	.help = "lists the operators, or all about one",
	.text = "With a NAME: its parameters with types, bounds and defaults, and its ports.\n",
	.options = CLI_PLUGIN | CLI_PYTHON | CLI_JSON,
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
