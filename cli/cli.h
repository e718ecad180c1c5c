/*
 * The command `weir`, written against the public header, and words, units, nearest, files and output of
 * base/. command.c has the table of subcommands, options.c the table of options; docs/command.md is the
 * manual. The Python module has all files but main.c: `python3 -m weir` is this command in an interpreter.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "base/output.h"
#include "weir.h"

/*
 * Exit codes, documented in docs/command.md. A run that a POSIX signal ended exits with 128 + the
 * signal's number.
 */
enum cli_code {
	CLI_OK = 0,      /* finished */
	CLI_FAILED = 1,  /* an operator, the device, memory or a file failed */
	CLI_USAGE = 2,   /* invalid command line */
	CLI_REFUSED = 3, /* the graph or a plugin was refused */
	CLI_DEADLOCK = 4,
	CLI_ABANDONED = 5, /* the run did not drain in time */
};

/* Bits of the table of options: a subcommand's mask names the options that it takes. */
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
	CLI_PYTHON = 1 << 14,
	CLI_TRACE = 1 << 15,
	CLI_TRACE_EVENTS = 1 << 16,
	CLI_STATS = 1 << 17,
	CLI_STATS_FILE = 1 << 18,
	CLI_STATS_SKIP = 1 << 19,
	CLI_GPU_TIME = 1 << 20,
	CLI_DRAIN = 1 << 21,
	CLI_STRICT = 1 << 22,
	CLI_METRICS = 1 << 23,
	CLI_OUTPUT = 1 << 24,
	CLI_MAX_FILE = 1 << 25,
	CLI_REMOTE = 1 << 26,
};

/* The parsed command line. All texts are borrowed from argv. */
struct cli_options {
	const char *argument; /* GRAPH, NAME or RUN.json; NULL: none */
	char **arguments;     /* all of them */
	int argument_count;
	const char *second; /* TRACE.json; NULL: none */
	const char *output; /* -o; NULL: none */
	size_t max_file;    /* bytes of a file that is read; 0: not given */
	const char **sets, **plugins, **pythons;
	size_t set_count, plugin_count, python_count;
	unsigned workers;
	const char *backend, *signal, *root, *remote;
	const char *trace;      /* a file; NULL: none */
	size_t trace_events;    /* 0: not given */
	const char *stats_file; /* NULL: none */
	const char *metrics;    /* an address; NULL: none */
	uint64_t stats_skip;
	bool stats; /* the tables */
	uint64_t seed;
	int64_t duration_ns, drain_ns, explain_after_ns;
	int gpu_time;      /* 0: not given; -1: off; else one tick of so many */
	int strict;        /* as in weir_scheduler_options */
	int max_in_flight; /* 0: not given; -1: unbounded */
	bool json, dot;    /* formats that were given */
	bool seeded, quiet, help;
	bool limited, drained; /* duration_ns, drain_ns were given */
	weir_format format;
};

struct cli_command {
	const char *name;
	const char *argument; /* "GRAPH": required; "[NAME]": optional; "RUN.json [TRACE.json]": the second
				 is; "GRAPH...": one or more */
	const char *help;     /* one line */
	const char *text;     /* printed by --help before the options; ends with a newline */
	unsigned options;     /* mask */
	int (*run)(const struct cli_options *options);
};

extern const struct cli_command cli_run, cli_check, cli_show, cli_operators, cli_conditions, cli_report;

/*
 * The interpreter that the command runs in. Its functions are called on the main thread; what they refuse
 * they print.
 */
struct cli_python {
	bool (*load)(const char *path);              /* runs a file of --python, which registers operators */
	weir_status (*add)(weir_registry *registry); /* adds these operators */
	/* The run is about to start: takes all three over. Returns an exit code. */
	int (*begin)(const struct cli_options *options, weir_registry *registry, weir_graph *graph,
		     weir_scheduler *scheduler);
	void (*turn)(void);                 /* called now and then while the run is on */
	void (*failed)(const char *entity); /* prints the exception that ended the run in it, if one did */
	bool (*end)(void);                  /* destroys the three; returns true if the device hangs */
	bool (*flush)(void);                /* what Python code has printed */
};
extern const struct cli_python *cli_python; /* NULL: none, --python starts one (python.c) */
/* command.c: the command as a whole. Returns the exit code. */
int cli_main(int argc, char **argv, const struct cli_python *python);

/*
 * Parses argv[1...] (argv[0] is the subcommand). Returns CLI_OK, or CLI_USAGE or CLI_FAILED after printing
 * the error.
 */
int cli_options_read(struct cli_options *options, const struct cli_command *command, int argc, char **argv);
void cli_options_finish(struct cli_options *options);
void cli_options_help(FILE *to, unsigned mask);

/* say.c: prints one line on stderr, "weir run: ..." once the subcommand is known. */
void cli_say(const char *format, ...) WEIR_PRINTF(1, 2);
/* Prints the last error; if memory ran out, with `path` in front. path may be NULL. */
void cli_say_error(weir_status status, const char *path);
void cli_say_for(const char *command); /* borrows the name */
const char *cli_said_for(void);        /* that name; "" at first */
/*
 * Prints text from a file, a plugin or the command line, with control characters escaped (weir_text_escape).
 */
void cli_print_escaped(FILE *to, const char *text);
int cli_code_of(weir_status status);
void cli_flush_python(
	void); /* before C prints: what Python code has printed; a failure is kept for cli_flush */
/* At the end: returns the exit code, CLI_FAILED instead of CLI_OK if stdout could not be written. */
int cli_flush(int code);

/*
 * log.c: the library's log on stderr: warnings and errors, or what WEIR_LOG asks for. arg: an int, the least
 * severe level that is printed.
 */
void cli_log_open(void);
void cli_log_quiet(void);            /* errors only, unless WEIR_LOG is set; before the run */
void cli_log_over_progress(bool on); /* a progress line stands on the terminal: lines of the log replace it */
#define CLI_CLEAR_LINE "\r\033[K"
void cli_log_line(weir_log_level level, int64_t at, const char *text, void *arg);

/* summary.c: numbers as text; both return text */
const char *cli_rate(char text[32], double rate); /* "24.31", "106,667" */

/* load.c: the registry with its plugins; the graph, read, with --set applied, and checked. */
struct cli_graph {
	weir_registry *registry;
	weir_description *description;
	const struct cli_options *options;
	unsigned errors, warnings; /* printed so far */
	bool *set;          /* input: by --set, whether some graph had its entity; NULL: there is one graph */
	bool interruptible; /* input: SIGINT, SIGTERM and SIGHUP end the process while reading */
};
/* Prints an error or a warning. arg: the struct cli_graph. */
void cli_graph_report(const weir_diagnostic *report, void *arg);
/* Both return an exit code and print the reason of a failure. Call cli_graph_finish even after a failure. */
int cli_registry_load(weir_registry **out, const struct cli_options *options);
int cli_graph_load(struct cli_graph *graph, const struct cli_options *options); /* registry: NULL: loads it */
void cli_graph_finish(struct cli_graph *graph);

/*
 * python.c: replaces this process by a Python interpreter that executes the command. Returns an exit code if
 * that fails, after printing the reason.
 */
int cli_python_become(const char *command, int argc, char **argv);

/*
 * crash.c: from now on, a fatal POSIX signal or an exit prints one line that names the entity in compute.
 * NULL: off.
 */
void cli_crash_tell(weir_graph *of);

/* signals.c: SIGINT, SIGTERM and SIGHUP are blocked from the first line of main. */
void cli_signals_block(void);
void cli_signals_unblock(void);    /* restores their handling before main */
void cli_signals_reading(bool on); /* while on, either of them prints a line and exits */
int cli_signals_take(void);        /* consumes a pending one; returns its number, or 0 */
/* From now on the first of them drains the run and prints the line, the second exits. */
void cli_signals_drain(weir_scheduler *scheduler, const char *line);
int cli_signals_drained(void); /* after the run; returns the signal that drained it, or 0 */

/* output.c: writes a file, FIFO or device. Returns NULL, or why not; then an old file stays. */
const char *cli_write_file(const char *path, const char *text, size_t bytes);
/* The same, piece by piece: what is written to `to` is checked as a whole. "-" is standard output. */
struct cli_file {
	FILE *to;
	struct wr_output_file output;
	int error; /* errno of the first write that failed */
	bool standard;
	char buffer[1 << 16];
};
const char *cli_file_open(struct cli_file *file, const char *path); /* borrows the path until it is closed */
const char *cli_file_close(struct cli_file *file);
/*
 * A file that is written at the end of a run. It is looked at, and made, before the run; a made one
 * is removed if there is no run.
 */
struct cli_output {
	const char *path; /* NULL: none */
	bool made;
};
/* Returns an exit code, after printing the reason of a failure. path may be NULL. */
int cli_output_begin(struct cli_output *output, const char *option, const char *path);
/* A failure is printed, and a made file removed; it does not change the exit code of the run. */
void cli_output_write(struct cli_output *output, const char *text);
void cli_output_give_up(struct cli_output *output); /* without a run; after a write it does nothing */

/* The files of --trace and --stats-file. As cli_output_write. */
void cli_trace_write(struct cli_output *output, weir_scheduler *scheduler);
void cli_statistics_write(struct cli_output *output, weir_scheduler *scheduler);

/* statistics.c */
struct cli_recorded;
/* Returns false if memory ran out. cli_recorded_finish takes what is left. */
bool cli_statistics_read(weir_scheduler *scheduler, struct cli_recorded *out);
void cli_statistics(const struct cli_recorded *recorded); /* the tables of --stats */

/*
 * kinds.c: prints all operators, or conditions, of the registry, or all about one. Returns CLI_USAGE after
 * printing that there is none of that name.
 */
int cli_operators_print(const weir_registry *registry, const char *name);
int cli_operators_print_json(const weir_registry *registry, const char *name);
int cli_conditions_print(const weir_registry *registry, const char *name);

/* report.c: what a program shows of a run without the command. */
struct cli_report_texts {
	char *findings, *page; /* JSON, and the page; free them. NULL: no memory, or a fault */
	char fault[512];       /* what is wrong with the run's text */
};
/* run: the statistics as --stats-file writes them, with a NUL. */
void cli_report_texts(char *run, struct cli_report_texts *out);

/* progress.c: explains why a run makes no progress. */
struct cli_standstill {
	int64_t after_ns; /* time without a tick; 0: explain only while draining */
	int64_t stood_ns;
	uint64_t ticks;
	bool stopping, told;
	/* With after_ns, too: per queue, how long it has held messages of which none was taken. */
	struct cli_queue_stands {
		uint64_t delivered;
		int64_t stood_ns;
	} * queues;
	bool part_told;
};
void cli_standstill_finish(struct cli_standstill *standstill);
void cli_standstill_listen(void); /* installs the SIGUSR1 handler */
/* Call it every turn_ns. */
void cli_standstill_look(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns);

/* progress.c: the progress line. */
struct cli_progress {
	bool on; /* stderr is a terminal */
	int64_t elapsed_ns;
};
#define CLI_PROGRESS_NS 200000000 /* interval of the progress line */
/* Call it every CLI_PROGRESS_NS. */
void cli_progress_show(struct cli_progress *progress, weir_scheduler *scheduler);
void cli_progress_clear(const struct cli_progress *progress);

/* standard.c: entities that write frames to standard output. */
/* Returns true if an entity writes frames to stdout. */
bool cli_writes_to_stdout(weir_graph *graph, weir_scheduler *scheduler);

/* summary.c: the summary of a run. */
void cli_summary(const char *path, weir_graph *graph, weir_scheduler *scheduler, const weir_outcome *outcome,
		 const struct cli_recorded *recorded);

#endif
