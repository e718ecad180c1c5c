/* What limits a run, by its statistics: which entity, and why. docs/report.md has the rules in words. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "cli/recorded.h"

#define CLI_FINDINGS_MAX 8

enum cli_cause {
	CLI_CAUSE_COMPUTE,   /* its compute is busy all the time, and no other's is */
	CLI_CAUSE_BLOCKS,    /* the same, but most of it is waiting */
	CLI_CAUSE_DEVICE,    /* its device work is */
	CLI_CAUSE_QUEUE,     /* a queue is full while its receiver waits */
	CLI_CAUSE_WORKERS,   /* READY entities wait for a worker */
	CLI_CAUSE_POOL,      /* a memory pool is used up */
	CLI_CAUSE_IN_FLIGHT, /* max_in_flight of its ticks are on the device */
	CLI_CAUSE_DROPS,     /* a queue drops messages */
};

struct cli_finding {
	enum cli_cause cause;
	size_t entity;    /* or CLI_NO_ENTITY */
	const char *what; /* the name of a queue's receiving port or of a pool; NULL; borrowed */
	double share;     /* of the run's duration; of drops: of the messages */
	char text[640];   /* one sentence with the figures and the remedy */
};

struct cli_findings {
	size_t count;
	struct cli_finding list[CLI_FINDINGS_MAX];
	bool no_memory; /* it ran out: the list is not right */
};

/* The one that limits most is the first. No finding: the stages are equally busy, or the sources set the
 * pace. */
void cli_findings_make(struct cli_findings *out, const struct cli_recorded *recorded);
const char *cli_cause_text(enum cli_cause cause); /* "compute", "in_flight", ... */

/* Host time and device time of an entity's ticks, as shares of the run. */
double cli_host_load(const struct cli_recorded *recorded, size_t entity);
double cli_device_load(const struct cli_recorded *recorded, size_t entity);

#endif
