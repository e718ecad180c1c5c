/* weir check: each graph alone, then the remote connections between them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/remotes.h"

static void print_pool_needs(const weir_description *description)
{
	weir_pool_needs needs = {.size = sizeof needs};

	for (size_t i = 0; !weir_description_pool_needs(description, i, &needs); i++)
		if (needs.blocks)
			printf("memory pool %s: %" PRIu64 " block%s; with %" PRIu64
			       " it cannot stall (queues that they reach "
			       "hold %" PRIu64 ", ticks claim %" PRIu64 ")\n",
			       needs.pool, needs.blocks, needs.blocks == 1 ? "" : "s",
			       needs.reached + needs.claimed, needs.reached, needs.claimed);
}

struct checked {
	struct cli_options options; /* of this graph */
	struct cli_graph graph;
};

static int check_one(struct checked *checked)
{
	struct cli_graph *graph = &checked->graph;
	int code = cli_graph_load(graph, &checked->options);
	weir_status status;

	if (code)
		return code;
	/* weir run has it from the start of the run, which knows the root and the descriptors. */
	status = weir_description_check_files(graph->description, graph->registry, cli_graph_report, graph);
	if (status && !graph->errors)
		cli_say_error(status, checked->options.argument);
	if (status)
		return status == WEIR_E_NOMEM ? CLI_FAILED : CLI_REFUSED;
	cli_print_escaped(stdout, checked->options.argument);
	printf(": no errors");
	if (graph->warnings)
		printf(", %u warning%s", graph->warnings, graph->warnings > 1 ? "s" : "");
	putchar('\n');
	print_pool_needs(graph->description);
	return CLI_OK;
}

/* Every graph is checked, whatever another one has; the first failure decides. */
static int check_each(struct checked *all, size_t count, const struct cli_options *options)
{
	bool *set = count > 1 ? calloc(options->set_count + 1, sizeof *set) : NULL;
	int first = CLI_OK;

	if (count > 1 && !set) {
		cli_say("the command line: out of memory");
		return CLI_FAILED;
	}
	for (size_t i = 0; i < count; i++) {
		int code;

		all[i].options = *options;
		all[i].options.argument = options->arguments[i];
		all[i].graph.set = set;
		all[i].graph.registry = all[0].graph.registry;
		code = check_one(&all[i]);
		first = first ? first : code;
	}
	for (size_t i = 0; set && !first && i < options->set_count; i++)
		if (!set[i]) {
			cli_say("--set '%s': no graph has that entity: write entity.parameter=value",
				options->sets[i]);
			first = CLI_USAGE;
		}
	free(set);
	return first;
}

static int check_remotes(const struct checked *all, size_t count)
{
	const weir_registry *registry = all[0].graph.registry;
	struct cli_remotes remotes = {.files = calloc(count, sizeof *remotes.files)};
	int code = remotes.files ? CLI_OK : CLI_FAILED;

	if (code)
		cli_say("the command line: out of memory");
	fflush(stdout); /* what each is alone stands before what they are together, in one file, too */
	for (size_t i = 0; !code && i < count; i++)
		code = cli_remotes_add(&remotes, registry, all[i].options.argument, all[i].graph.description);
	if (!code && count > 1)
		code = cli_remotes_check(&remotes, registry);
	if (!code && remotes.errors)
		code = CLI_REFUSED;
	cli_remotes_finish(&remotes);
	return code;
}

static int run_check(const struct cli_options *options)
{
	size_t count = (size_t)options->argument_count;
	struct checked *all = calloc(count, sizeof *all);
	int code;

	cli_signals_unblock();
	if (!all) {
		cli_say("the command line: out of memory");
		return CLI_FAILED;
	}
	code = check_each(all, count, options);
	if (!code && (count > 1 || getenv("WEIR_REMOTE"))) /* of one graph, that the file has its names */
		code = check_remotes(all, count);
	for (size_t i = 1; i < count; i++) /* the first one has the registry of all */
		weir_description_destroy(all[i].graph.description);
	cli_graph_finish(&all[0].graph);
	free(all);
	return code;
}

const struct cli_command cli_check = {
	.name = "check",
	.argument = "GRAPH...",
	.help = "finds every error of a graph that can be seen without running it",
	.text = "Each error is one line on stderr: "
		"FILE:LINE:COLUMN: error W012: what is wrong and the remedy.\n"
		"docs/errors.md explains the numbers.\n"
		"Of several graphs also the remote connections between them: docs/distributed.md.\n",
	.options = CLI_SET | CLI_PLUGIN | CLI_PYTHON | CLI_MAX_FILE | CLI_REMOTE,
	.run = run_check,
};
