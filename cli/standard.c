/* Which entity of a run uses standard input or output, for frames. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* The first entity of that operator, frames_read or frames_write, that uses the descriptor; NULL: none. */
static const char *user_of(int fd, const char *kind, weir_graph *graph, weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		const weir_entity *entity = weir_graph_entity(graph, counts.entity);
		const weir_values *values = weir_entity_values(entity);

		if (strcmp(weir_entity_operator(entity)->name, kind))
			continue;
		if (weir_values_int(values, "descriptor") == fd ||
		    (weir_values_int(values, "descriptor") < 0 &&
		     !strcmp(weir_values_string(values, "path"), "-")))
			return counts.entity;
	}
	return NULL;
}

bool cli_writes_to_stdout(weir_graph *graph, weir_scheduler *scheduler)
{
	return user_of(STDOUT_FILENO, "frames_write", graph, scheduler);
}

/* The graph has used standard input up: a reader of frames would find its end. */
int cli_check_stdin(const char *path, weir_graph *graph, weir_scheduler *scheduler)
{
	const char *reader =
		strcmp(path, "-") ? NULL : user_of(STDIN_FILENO, "frames_read", graph, scheduler);

	if (!reader)
		return CLI_OK;
	cli_say("-: '%s' reads frames from standard input, where the graph was: give one of them as a file",
		reader);
	return CLI_USAGE;
}
