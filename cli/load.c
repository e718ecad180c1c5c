/* What the command line names: plugins, the graph, what is set in it. Every error is told, then the exit code is handed up. */
#include "cli/cli.h"

int cli_registry_load(weir_registry **out, const struct cli_options *options)
{
	weir_status status = weir_registry_create(out);

	for (size_t i = 0; !status && i < options->plugin_count; i++)
		status = weir_registry_load(*out, options->plugins[i]);
	if (!status)
		return CLI_OK;
	cli_say("%s", weir_last_error());
	return status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
}

static void tell(const weir_report *report, void *arg)
{
	struct cli_graph *graph = arg;

	*(report->warning ? &graph->warnings : &graph->errors) += 1;
	if (report->file)
		fprintf(stderr, "%s:", report->file);
	if (report->line)
		fprintf(stderr, "%u:%u:", report->line, report->column);
	fprintf(stderr, "%s%s W%03d: ", report->file || report->line ? " " : "", report->warning ? "warning" : "error", report->number);
	if (report->pointer && *report->pointer)
		fprintf(stderr, "%s: ", report->pointer);
	fprintf(stderr, "%s\n", report->text);
}

static weir_status read_and_set(struct cli_graph *graph, const struct cli_options *options, bool *usage)
{
	weir_status status = weir_description_read(&graph->description, options->argument, tell, graph);

	for (size_t i = 0; !status && i < options->set_count; i++) {
		status = weir_description_set(graph->description, options->sets[i]);
		*usage = status == WEIR_E_INVALID;
	}
	return status;
}

int cli_graph_load(struct cli_graph *graph, const struct cli_options *options)
{
	bool usage = false;
	int code = cli_registry_load(&graph->registry, options);
	weir_status status;

	if (code)
		return code;
	status = read_and_set(graph, options, &usage);
	if (!status)
		status = weir_description_check(graph->description, graph->registry, tell, graph);
	if (!status)
		return CLI_OK;
	if (!graph->errors)	/* what stands in no place of the text: nobody has told it yet */
		cli_say("%s%s", usage ? "--set: " : "", weir_last_error());
	return usage ? CLI_USAGE : status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
}

void cli_graph_finish(struct cli_graph *graph)
{
	weir_description_destroy(graph->description);
	weir_registry_destroy(graph->registry);
}
