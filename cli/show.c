#include "cli/cli.h"

static int show(const struct cli_options *options)
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
	.options = CLI_SET | CLI_PLUGIN | CLI_JSON | CLI_DOT,
	.run = show,
};
