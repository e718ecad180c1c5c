/* One event of a trace. Times are nanoseconds from the begin of the trace. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include "cli/json.h"

#define CLI_TIME_NONE INT64_MIN

/* As the trace numbers its groups of rows. */
enum { CLI_GROUP_WORKERS = 1, CLI_GROUP_DEVICE = 2, CLI_GROUP_ENTITIES = 3 };

struct cli_event {
	char phase;         /* "ph"; 0: none of one letter */
	int64_t group, row; /* "pid", "tid" */
	int64_t at, duration;
	int64_t tick, ready; /* CLI_TIME_NONE: none is said */
	struct cli_slice name, id;
	struct cli_slice named; /* in its arguments */
	struct cli_slice of;    /* likewise: the entity that it is a part of; empty: none */
};

/* Returns false after a failure, which json has. */
bool cli_event_read(struct cli_json *json, struct cli_event *out);
/* The number + 1 of an arrow's id; 0: it has none. */
uint64_t cli_event_id(const struct cli_event *event);

#endif
