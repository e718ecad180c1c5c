/* What limits a run, by its statistics: which entity, and why. docs/report.md has the rules in words. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "cli/recorded.h"

#define CLI_FINDINGS_MAX 8

/* The cause, its name in JSON, and what the page calls it. */
#define CLI_CAUSE_TABLE(X)                                                                                   \
	X(CLI_CAUSE_ENDING, "ending", "the run did not finish")                                              \
	X(CLI_CAUSE_DROPS, "drops", "messages dropped")                                                      \
	X(CLI_CAUSE_COMPUTE, "compute", "slow compute")                                                      \
	X(CLI_CAUSE_BLOCKS, "blocks", "compute that waits")                                                  \
	X(CLI_CAUSE_LOCK, "lock", "computes take turns")                                                     \
	X(CLI_CAUSE_DEVICE, "device", "device work")                                                         \
	X(CLI_CAUSE_STREAM, "stream", "a stream is shared")                                                  \
	X(CLI_CAUSE_QUEUE, "queue", "queue too small")                                                       \
	X(CLI_CAUSE_CIRCLE, "circle", "a circle of waits")                                                   \
	X(CLI_CAUSE_WORKERS, "workers", "too few workers")                                                   \
	X(CLI_CAUSE_POOL, "pool", "memory pool used up")                                                     \
	X(CLI_CAUSE_IN_FLIGHT, "in_flight", "max_in_flight reached")                                         \
	X(CLI_CAUSE_PERIOD, "period", "its period sets the pace")                                            \
	X(CLI_CAUSE_DESCRIPTOR, "descriptor", "a descriptor sets the pace")                                  \
	X(CLI_CAUSE_TOLD, "told", "told to wait")                                                            \
	X(CLI_CAUSE_CONDITION, "condition", "a condition of the program's")                                  \
	X(CLI_CAUSE_PROGRAM, "program", "the program sets the pace")                                         \
	X(CLI_CAUSE_UNKNOWN, "unknown", "cannot tell")

enum cli_cause {
#define CLI_CAUSE_ENUM(name, key, title) name,
	CLI_CAUSE_TABLE(CLI_CAUSE_ENUM)
#undef CLI_CAUSE_ENUM
};

struct cli_finding {
	enum cli_cause cause;
	size_t entity;    /* or CLI_NO_ENTITY */
	const char *what; /* the name of a queue's receiving port, of a pool or of a port; NULL; borrowed */
	double share;     /* of the run's duration; of drops: of the messages */
	const char *set;  /* the key of the graph file that would help; NULL: none */
	int64_t to;       /* its value; 0: unknown. Of a period: nanoseconds */
	char text[960];   /* one sentence with the figures and the remedy */
};

struct cli_findings {
	size_t count;
	struct cli_finding list[CLI_FINDINGS_MAX];
	char none[160]; /* if there is no finding: what that means, one sentence */
	bool balanced;  /* and it means that the stages are about equally busy */
	bool no_memory; /* it ran out: the list is not right */
};

/* The one that limits most is the first. */
void cli_findings_make(struct cli_findings *out, const struct cli_recorded *recorded);
const char *cli_cause_text(enum cli_cause cause);  /* "compute", "in_flight", ... */
const char *cli_cause_title(enum cli_cause cause); /* for people */

#endif
