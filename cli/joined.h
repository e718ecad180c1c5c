/*
 * Runs that were joined by remote connections: what their records (cli_remote) and traces say together. A
 * side is one run. The clocks of two sides differ by the offset that the sender of a connection has measured.
 */
#ifndef CLI_JOINED_H
#define CLI_JOINED_H

#include "cli/report.h"
#include "cli/traced.h"

struct cli_side {
	struct cli_input run, trace; /* trace: path NULL: none was given */
	struct cli_recorded recorded;
	struct cli_traced traced;
	/*
	 * By step: the number of the message that a remote_send took, or of that a remote_receive emitted, +
	 * 1; 0: none. NULL: without a trace that is whole.
	 */
	int64_t *numbers;
};

/* A connection: from an entity of a side to one of another, or of the same. */
struct cli_joint {
	size_t from_side, from, to_side, to;
	const struct cli_remote *send, *receive;
	struct cli_list steps; /* of uint32_t: by number, the step + 1 that took the message */
};

/* The entities of a path, source to sink. */
struct cli_stop {
	uint32_t side, entity;
};
struct cli_crossing_path {
	struct cli_list stops;     /* of struct cli_stop */
	struct cli_list latencies; /* of int64_t; sorted */
	int64_t error;
};

struct cli_joined {
	struct cli_side *sides;
	size_t count;
	struct cli_list joints; /* of struct cli_joint */
	struct cli_list paths;  /* of struct cli_crossing_path */
	bool no_memory;
};

void cli_joined_find(struct cli_joined *joined);  /* the connections */
void cli_joined_paths(struct cli_joined *joined); /* of the traces: crossing.c */
/* Nearest of a sorted list. */
int64_t cli_joined_percentile(const struct cli_list *sorted, unsigned percent);

#endif
