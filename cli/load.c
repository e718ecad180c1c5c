/*
 * What the command line names: plugins, the graph, what is set in it. Every error is told, then the exit code
 * is handed up.
 */
#include <string.h>

#include "cli/cli.h"

int cli_registry_load(weir_registry **out, const struct cli_options *options)
{
	weir_status status = weir_registry_create(out);

	for (size_t i = 0; !status && i < options->plugin_count; i++)
		status = weir_registry_load(*out, options->plugins[i]);
	if (!status)
		return CLI_OK;
	cli_say_error(status, options->argument);
	return status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
}

/* "E.P=VALUE": where P begins. NULL: it is malformed. */
static const char *parameter_of(const char *set)
{
	const char *equals = strchr(set, '='), *dot = strchr(set, '.');

	return dot && equals && dot < equals ? dot + 1 : NULL;
}

/* The same entity and the same parameter: the later one counts. */
static bool supersedes(const char *later, const char *set)
{
	return !strncmp(later, set, strcspn(set, "=") + 1);
}

/*
 * Which --set put in what a report points to (".../parameters/P"): the last one to a P. NULL: P was set in
 * several entities, and which one of them the pointer's index means a description does not tell.
 */
static const char *set_of(const struct cli_options *options, const char *pointer)
{
	const char *key = strrchr(pointer, '/'), *found = NULL;
	size_t length = key ? strlen(key + 1) : 0;

	for (size_t i = options->set_count; key && i--;) {
		const char *set = options->sets[i], *name = parameter_of(set);

		if (!name || strncmp(name, key + 1, length) || name[length] != '=')
			continue;
		if (found && !supersedes(found, set))
			return NULL;
		found = found ? found : set;
	}
	return found;
}

static void tell_set(const char *set)
{
	fputs(set ? "--set " : "--set", stderr);
	cli_put(stderr, set ? set : "");
	fputs(": ", stderr);
}

static void tell_place(const weir_report *report)
{
	cli_put(stderr, report->file ? report->file : "");
	if (report->line)
		fprintf(stderr, ":%u:%u: ", report->line, report->column);
	else if (report->file)
		fputs(": ", stderr);
}

static void tell(const weir_report *report, void *arg)
{
	struct cli_graph *graph = arg;
	const char *pointer = report->pointer ? report->pointer : "";

	*(report->warning ? &graph->warnings : &graph->errors) += 1;
	if (!report->line && strstr(pointer, "/parameters/") && graph->options->set_count)
		tell_set(set_of(graph->options, pointer));
	else
		tell_place(report);
	fprintf(stderr, "%s W%03d: ", report->warning ? "warning" : "error", report->number);
	fprintf(stderr, "%s%s%s\n", pointer, *pointer ? ": " : "", report->text);
}

static weir_status read_and_set(struct cli_graph *graph, const struct cli_options *options, bool *usage)
{
	weir_status status;

	if (graph->interruptible)
		cli_signals_reading(true);
	status = weir_description_read(&graph->description, options->argument, tell, graph);
	if (graph->interruptible)
		cli_signals_reading(false);

	for (size_t i = 0; !status && i < options->set_count; i++) {
		status = weir_description_set(graph->description, options->sets[i]);
		*usage = status == WEIR_E_INVALID;
	}
	return status;
}

static void say_of(const struct cli_graph *graph, weir_status status, bool usage)
{
	if (usage)
		cli_say("--set: %s", weir_last_error());
	else
		cli_say_error(status, graph->options->argument);
}

int cli_graph_load(struct cli_graph *graph, const struct cli_options *options)
{
	bool usage = false;
	int code = cli_registry_load(&graph->registry, options);
	weir_status status;

	if (code)
		return code;
	graph->options = options;
	status = read_and_set(graph, options, &usage);
	if (!status)
		status = weir_description_check(graph->description, graph->registry, tell, graph);
	if (!status)
		return CLI_OK;
	if (!graph->errors)	/* what stands in no place of the text: nobody has told it yet */
		say_of(graph, status, usage);
	return usage ? CLI_USAGE : status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
}

void cli_graph_finish(struct cli_graph *graph)
{
	weir_description_destroy(graph->description);
	weir_registry_destroy(graph->registry);
}
