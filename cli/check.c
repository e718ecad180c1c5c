#include "cli/cli.h"

static int check(const struct cli_options *options)
{
	struct cli_graph graph = {0};
	int code;

	cli_signals_unblock();
	code = cli_graph_load(&graph, options);
	if (!code) {
		cli_put(stdout, options->argument);
		printf(": no errors");
	}
	if (!code && graph.warnings)
		printf(", %u warning%s", graph.warnings, graph.warnings > 1 ? "s" : "");
	if (!code)
		putchar('\n');
	cli_graph_finish(&graph);
	return code;
}

const struct cli_command cli_check = {
	.name = "check",
	.argument = "GRAPH",
	.help = "finds every error of a graph that can be seen without running it",
	.text = "Each error is one line on stderr: "
		"FILE:LINE:COLUMN: error W012: what is wrong and the remedy.\n"
		"docs/errors.md explains the numbers.\n",
	.options = CLI_SET | CLI_PLUGIN,
	.run = check,
};
