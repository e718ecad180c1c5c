/* Whether an entity of a run writes frames to standard output. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* A descriptor that is given takes the place of the files that are written. */
static bool entity_writes_to_stdout(const weir_entity *entity)
{
	const weir_values *values = weir_entity_values(entity);
	bool writes = false;

	for (const weir_parameter *at = weir_entity_operator(entity)->parameters; at && at->name; at++) {
		if (at->type == WEIR_TYPE_WRITE_DESCRIPTOR && weir_values_int(values, at->name) >= 0)
			return weir_values_int(values, at->name) == STDOUT_FILENO;
		if (at->type == WEIR_TYPE_WRITE_FILE)
			writes |= !strcmp(weir_values_string(values, at->name), "-");
	}
	return writes;
}

bool cli_writes_to_stdout(weir_graph *graph, weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		const weir_entity *entity = weir_graph_entity(graph, counts.entity);

		if (entity && entity_writes_to_stdout(entity))
			return true;
	}
	return false;
}
