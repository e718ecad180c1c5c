#include "conditions/conditions.h"

/*
 * Memory of a pool for the next tick. It has no ask: when all other conditions hold, the scheduler claims
 * what this one names (S3), in the order of the pools, and gives back what the tick did not use.
 */
static const weir_parameter memory_available_parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "pool",
	 .type = WEIR_TYPE_STRING,
	 .fallback = "\"\"",
	 .help = "memory pool of the entity; \"\": its only one"},
	{.size = sizeof(weir_parameter),
	 .name = "min_blocks",
	 .type = WEIR_TYPE_INT,
	 .fallback = "0",
	 .help = "blocks that a tick takes; 0: one for each message that it may emit",
	 .min = 0,
	 .max = 1048576},
	{.size = sizeof(weir_parameter),
	 .name = "min_bytes",
	 .type = WEIR_TYPE_SIZE,
	 .fallback = "0",
	 .help = "bytes that a tick takes, of a pool with max_size"},
	{0},
};

const weir_condition wr_memory_available = {
	.size = sizeof(weir_condition),
	.name = "memory_available",
	.help = "a memory pool has what a tick takes; the default of an entity with such a pool",
	.parameters = memory_available_parameters,
	.phase = WEIR_PHASE_GATHERING,
};
