#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/metrics.h"
#include "cli/recorded.h"

struct run {
	struct cli_graph source;
	weir_file *files; /* of the command line */
	bool given;       /* the interpreter has the graph, its scheduler and the registry */
	weir_graph *graph;
	weir_scheduler *scheduler;
	struct cli_output trace, statistics;
	struct cli_metrics *metrics; /* NULL: none are served */
};

/* Returns their number. run->files stays NULL if there is no memory. */
static size_t list_files(struct run *run, const struct cli_options *options)
{
	size_t count = 0;

	run->files = calloc(options->python_count + 2, sizeof *run->files);
	if (!run->files)
		return 0;
	for (size_t i = 0; i < options->python_count; i++)
		run->files[count++] = (weir_file){sizeof(weir_file), "--python", options->pythons[i], false};
	if (options->trace)
		run->files[count++] = (weir_file){sizeof(weir_file), "--trace", options->trace, true};
	if (options->stats_file)
		run->files[count++] =
			(weir_file){sizeof(weir_file), "--stats-file", options->stats_file, true};
	return count;
}

/* 0 of the command line is a value. */
static int64_t given(bool given, int64_t value)
{
	return given && !value ? WEIR_NONE : value;
}

static int make_run(struct run *run, const struct cli_options *options)
{
	size_t file_count = list_files(run, options);
	weir_scheduler_options settings = {
		.size = sizeof settings,
		.workers = options->workers,
		.backend = options->backend,
		.signal = options->signal,
		.root = options->root,
		.seed = options->seeded && !options->seed ? (uint64_t)WEIR_NONE : options->seed,
		.max_duration_ns = given(options->limited, options->duration_ns),
		.drain_ns = given(options->drained, options->drain_ns),
		.max_in_flight = options->max_in_flight,
		.gpu_time = options->gpu_time,
		.strict = options->strict,
		.observe =
			(options->stats || options->stats_file || options->metrics ? WEIR_OBSERVE_STATISTICS
										   : 0u) |
			(options->quiet ? 0u : WEIR_OBSERVE_COMPUTE) |
			(options->trace ? WEIR_OBSERVE_TRACE : 0u),
		.trace_events = options->trace_events,
		.skip = options->stats_skip,
		.files = run->files,
		.file_count = file_count,
	};
	weir_status status;
	int code;

	if (!run->files) {
		cli_say("the command line: out of memory");
		return CLI_FAILED;
	}
	run->source.interruptible = true;
	code = cli_graph_load(&run->source, options);
	if (code)
		return code;
	status = weir_graph_create(run->source.registry, run->source.description, &run->graph);
	if (!status)
		status = weir_scheduler_create(run->graph, &settings, &run->scheduler);
	if (status) {
		cli_say_error(status, options->argument);
		return cli_code_of(status);
	}
	if (options->seeded && !options->quiet && weir_scheduler_backend(run->scheduler) != WEIR_BACKEND_SIM)
		cli_say("warning: --seed has no effect without --backend sim");
	/* The interpreter destroys what a run was made of, since its objects may still use that. */
	run->given = cli_python;
	return cli_python ? cli_python->begin(options, run->source.registry, run->graph, run->scheduler)
			  : CLI_OK;
}

enum { ROUNDS = 16 }; /* in the time of --explain-after: a standstill is told a sixteenth late at most */

/*
 * Returns how long to wait per round; -1: until the end. On `sim` the time is virtual and each round is one
 * more event of the simulation, so rounds are used only with --explain-after.
 */
static int64_t turn_length(weir_scheduler *scheduler, const struct cli_progress *progress,
			   const struct cli_standstill *standstill)
{
	if (progress->on || weir_scheduler_backend(scheduler) != WEIR_BACKEND_SIM)
		return CLI_PROGRESS_NS;
	if (!standstill->after_ns)
		return -1;
	return standstill->after_ns < ROUNDS ? 1 : standstill->after_ns / ROUNDS;
}

static weir_status wait_for_end(weir_scheduler *scheduler, struct cli_progress *progress,
				struct cli_standstill *standstill, weir_outcome *outcome)
{
	int64_t turn = turn_length(scheduler, progress, standstill);
	weir_status status;

	/*
	 * The outcome is filled only when the run ends. WEIR_E_TIMEOUT with a status in it is a compute
	 * that failed with TIMEOUT; a wait without a limit never times out.
	 */
	while ((status = weir_scheduler_wait(scheduler, turn, outcome)) == WEIR_E_TIMEOUT &&
	       !outcome->status && turn > 0) {
		if (cli_python)
			cli_python->turn();
		cli_progress_show(progress, scheduler);
		cli_standstill_look(standstill, scheduler, turn);
	}
	cli_progress_clear(progress);
	cli_standstill_finish(standstill);
	return status;
}

#define DRAINS                                                                                               \
	"weir run: stopping when the work in flight is done; a second Ctrl-C or SIGTERM exits at once\n"

/* The exception by which an entity in Python failed. */
static void show_exception(const struct cli_options *options, const char *entity)
{
	if (cli_python && entity && !options->quiet)
		cli_python->failed(entity);
}

static void print_run(struct run *run, const struct cli_options *options, const weir_outcome *outcome)
{
	struct cli_recorded recorded = {0};

	if (options->quiet && !options->stats)
		return;
	if (!cli_statistics_read(run->scheduler, &recorded))
		cli_say("%s: the times in compute: out of memory", options->argument);
	if (!options->quiet)
		cli_summary(options->argument, run->graph, run->scheduler, outcome, &recorded);
	if (options->stats)
		cli_statistics(&recorded);
	cli_recorded_finish(&recorded);
}

static int run_to_the_end(struct run *run, const struct cli_options *options)
{
	struct cli_progress progress = {.on = !options->quiet && isatty(STDERR_FILENO)};
	struct cli_standstill standstill = {.after_ns = options->explain_after_ns};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	cli_crash_tell(run->graph); /* first: start may crash */
	status = weir_scheduler_start(run->scheduler);
	if (status) {
		weir_error error = {.size = sizeof error};

		weir_error_last(&error);
		show_exception(options, error.entity);
		cli_say_error(status, options->argument);
		return cli_code_of(status);
	}
	/* On a terminal the text of the first signal replaces the progress line. */
	cli_signals_drain(run->scheduler, options->quiet ? "" : progress.on ? CLI_CLEAR_LINE DRAINS : DRAINS);
	status = wait_for_end(run->scheduler, &progress, &standstill, &outcome);
	outcome.posix_signal = cli_signals_drained();
	if (status && !outcome.status) { /* the run did not end: a simulation that makes no progress */
		cli_say("%s", weir_last_error());
		return CLI_FAILED;
	}
	show_exception(options, outcome.entity);
	cli_flush_python();
	if (cli_writes_to_stdout(run->graph, run->scheduler)) {
		fflush(stdout);
		dup2(STDERR_FILENO, STDOUT_FILENO); /* the summary must not follow the frames */
	}
	print_run(run, options, &outcome);
	cli_statistics_write(&run->statistics, run->scheduler);
	cli_trace_write(&run->trace, run->scheduler);
	if (outcome.status && outcome.entity)
		cli_say("%s: %s in '%s': %s", options->argument, weir_status_text(outcome.status),
			outcome.entity, outcome.text);
	else if (outcome.status)
		cli_say("%s: %s: %s", options->argument, weir_status_text(outcome.status), outcome.text);
	else if (outcome.text)
		cli_say("%s: drained: %s", options->argument, outcome.text);
	return outcome.posix_signal ? 128 + outcome.posix_signal : cli_code_of(outcome.status);
}

/* Returns true if the device hangs. */
static bool finish_run(struct run *run)
{
	bool hung;

	if (run->given) {
		cli_crash_tell(NULL);
		run->source.registry = NULL;
		hung = cli_python->end();
	} else {
		hung = weir_scheduler_destroy(run->scheduler) == WEIR_E_ABANDONED;
		cli_crash_tell(NULL);
		hung |= weir_graph_destroy(run->graph) == WEIR_E_ABANDONED;
	}
	if (!hung) /* otherwise hanging work may still use a plugin's code */
		cli_graph_finish(&run->source);
	free(run->files);
	return hung;
}

/* A pending signal arrived before the scheduler listened, or after it ended. */
static int code_if_stopped(int code)
{
	int number = cli_signals_take();

	return number ? 128 + number : code;
}

static int run_graph(const struct cli_options *options)
{
	struct run run = {0};
	bool hung;
	int code;

	cli_standstill_listen();
	if (options->quiet)
		cli_log_quiet();
	code = make_run(&run, options);
	if (!code && (code = code_if_stopped(code)))
		cli_say("%s: stopped before the run began", options->argument);
	if (!code)
		code = cli_output_begin(&run.trace, "trace", options->trace);
	if (!code)
		code = cli_output_begin(&run.statistics, "stats-file", options->stats_file);
	if (!code)
		code = cli_metrics_open(options->metrics, options->quiet, &run.metrics);
	if (!code)
		code = cli_metrics_serve(run.metrics, run.scheduler);
	if (!code)
		code = run_to_the_end(&run, options);
	cli_output_give_up(&run.trace);
	cli_output_give_up(&run.statistics);
	cli_metrics_close(run.metrics);
	hung = finish_run(&run);
	code = code_if_stopped(code);
	cli_signals_unblock();
	if (!hung)
		return code;
	cli_say("the device did not finish in time; memory that it may still use was not freed");
	fflush(stdout);
	_exit(code ? code : CLI_ABANDONED); /* skips the driver's exit handlers, which would wait */
}

const struct cli_command cli_run = {
	.name = "run",
	.argument = "GRAPH",
	.help = "runs a graph to its end",
	.text = "SIGINT, SIGTERM or SIGHUP drains the run: sources stop, work in flight is finished.\n"
		"A second SIGINT or SIGTERM exits at once.\n"
		"SIGUSR1 prints why the run makes no progress.\n"
		"A compute in progress cannot be interrupted.\n"
		"frames/s are the messages that the main sink took per second (docs/report.md).\n"
		"--trace: a file that has the run's ticks, waits, queues and messages; Perfetto\n"
		"(ui.perfetto.dev) and chrome://tracing open it. docs/profiling.md describes it.\n",
	.options = CLI_SET | CLI_PLUGIN | CLI_PYTHON | CLI_WORKERS | CLI_BACKEND | CLI_SIGNAL | CLI_SEED |
		   CLI_MAX_IN_FLIGHT | CLI_GPU_TIME | CLI_STRICT | CLI_DURATION | CLI_DRAIN |
		   CLI_EXPLAIN_AFTER | CLI_ROOT | CLI_MAX_FILE | CLI_TRACE | CLI_TRACE_EVENTS | CLI_STATS |
		   CLI_STATS_FILE | CLI_STATS_SKIP | CLI_METRICS | CLI_REMOTE | CLI_QUIET,
	.run = run_graph,
};
