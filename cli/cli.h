/*
 * The command `weir`: one file a subcommand, all on the public header. main.c has the table of subcommands,
 * options.c that of options; docs/command.md is the manual.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "weir.h"

/* Exit codes: a promise of docs/command.md. A run that SIGINT or SIGTERM ended: 128 + its number. */
enum cli_code {
	CLI_OK = 0,		/* finished */
	CLI_FAILED = 1,		/* an operator, the device, memory or a file failed */
	CLI_USAGE = 2,		/* the command line makes no sense */
	CLI_REFUSED = 3,	/* the graph or a plugin was refused */
	CLI_DEADLOCK = 4,
	CLI_ABANDONED = 5,	/* the run did not drain in time */
};

/* Rows of the table of options, as a mask: what a subcommand takes. */
enum {
	CLI_SET = 1 << 0,
	CLI_PLUGIN = 1 << 1,
	CLI_WORKERS = 1 << 2,
	CLI_BACKEND = 1 << 3,
	CLI_SIGNAL = 1 << 4,
	CLI_SEED = 1 << 5,
	CLI_DURATION = 1 << 6,
	CLI_QUIET = 1 << 7,
	CLI_JSON = 1 << 8,
	CLI_DOT = 1 << 9,
	CLI_HELP = 1 << 10,
	CLI_EXPLAIN_AFTER = 1 << 11,
	CLI_ROOT = 1 << 12,
	CLI_MAX_IN_FLIGHT = 1 << 13,
};

/* What the command line says. All texts are borrowed from argv. */
struct cli_options {
	const char *argument;		/* GRAPH or NAME; NULL: none */
	const char **sets, **plugins;
	size_t set_count, plugin_count;
	unsigned workers;
	const char *backend, *signal, *root;
	uint64_t seed;
	int64_t duration_ns, explain_after_ns;
	int max_in_flight;		/* 0: not given; -1: no bound */
	bool seeded, limited, quiet, help;	/* limited: duration_ns was given */
	weir_format format;
};

struct cli_command {
	const char *name;
	const char *argument;		/* "GRAPH": required; "[NAME]": may be given */
	const char *help;		/* one line */
	const char *text;		/* what --help says beside the options; ends with a newline */
	unsigned options;		/* mask */
	int (*run)(const struct cli_options *options);
};

extern const struct cli_command cli_run, cli_check, cli_show, cli_operators, cli_conditions;

/* Reads argv[1...] (argv[0] is the subcommand). CLI_OK, or CLI_USAGE or CLI_FAILED with its line printed. */
int cli_options_read(struct cli_options *options, const struct cli_command *command, int argc, char **argv);
void cli_options_finish(struct cli_options *options);
void cli_options_help(FILE *to, unsigned mask);

/* say.c: one line on stderr, "weir run: ..." once the subcommand is known. */
void cli_say(const char *format, ...) WEIR_PRINTF(1, 2);
/* The last error; where memory has run out, of what is said, too. path: NULL: of nothing. */
void cli_say_error(weir_status status, const char *path);
void cli_say_for(const char *command);			/* borrows the name */
/* What others wrote (a file, a plugin, the command line), fit for a line: weir_text_shown. */
void cli_put(FILE *to, const char *text);
int cli_code_of(weir_status status);

/* log.c: what the library tells, to stderr if WEIR_LOG says so. arg: the most talkative level, an int. */
void cli_log_open(void);
void cli_log_line(weir_log_level level, int64_t at, const char *text, void *arg);

/* figures.c; both return text */
const char *cli_duration(char text[24], int64_t ns);	/* "1.23 s" */
const char *cli_rate(char text[32], double rate);	/* "24.31", "106,667" */

/*
 * nearest.c: the candidate that `word` probably means, or NULL. next(i) gives the i-th name, NULL after the
 * last.
 */
const char *cli_nearest(const char *word, const char *(*next)(size_t i, const void *arg), const void *arg);

/* page.c: all about the i-th one. */
void cli_page_operator(const weir_registry *registry, size_t i);
void cli_page_condition(const weir_registry *registry, size_t i);

/* load.c: the registry with its plugins, and the graph, read, set and checked. */
struct cli_graph {
	weir_registry *registry;
	weir_description *description;
	const struct cli_options *options;
	unsigned errors, warnings;	/* that were printed */
	bool interruptible;		/* set before: SIGINT and SIGTERM, which are blocked, end the reading */
};
/* Both return an exit code, and have said why. Whatever came of it the graph is to be finished. */
int cli_registry_load(weir_registry **out, const struct cli_options *options);
int cli_graph_load(struct cli_graph *graph, const struct cli_options *options);
void cli_graph_finish(struct cli_graph *graph);

/* crash.c: from now on a fatal POSIX signal, or an exit, is told in one line, with the entity in compute. NULL: it is gone. */
void cli_crash_tell(weir_graph *of);

/* signals.c: SIGINT and SIGTERM, blocked from the first line of main on. */
void cli_signals_block(void);
void cli_signals_unblock(void);	/* as they were before main */
void cli_signals_reading(bool on);	/* meanwhile one of them exits at once, with its line */
int cli_signals_take(void);	/* takes one that is pending: its number, or 0 */
/* From now on the first one drains and writes the line, the second one exits. */
void cli_signals_drain(weir_scheduler *scheduler, const char *line);
int cli_signals_drained(void);	/* the run has ended: the one that drained it, or 0 */

/* standstill.c: why a run stands still. */
struct cli_standstill {
	int64_t after_ns;		/* so long without a tick; 0: only while it drains */
	int64_t stood_ns;
	uint64_t ticks;
	bool stopping, told;
};
void cli_standstill_listen(void);	/* to SIGUSR1, from now on */
/* turn_ns have passed. */
void cli_standstill_look(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns);

/* progress.c and summary.c: what a run tells. */
struct cli_progress {
	bool on;			/* stderr is a terminal */
	int64_t elapsed_ns;
};
#define CLI_PROGRESS_NS 200000000	/* from line to line */
/* CLI_PROGRESS_NS have passed. */
void cli_progress_show(struct cli_progress *progress, weir_scheduler *scheduler);
void cli_progress_clear(const struct cli_progress *progress);
/* Ticks of all entities, and of the slowest sink: those are the frames. False: there is no sink. */
bool cli_frames(weir_scheduler *scheduler, uint64_t *ticks, uint64_t *frames);
void cli_summary(const char *path, weir_graph *graph, weir_scheduler *scheduler, const weir_outcome *outcome);

#endif
