#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

struct run {
	struct cli_graph source;
	weir_graph *graph;
	weir_scheduler *scheduler;
};

static void say_why(weir_status status, const char *path)
{
	const char *why = weir_last_error();

	if (!strncmp(why, "cuda: no device", strlen("cuda: no device")))
		cli_say("%s; --backend host or auto runs on the CPU", why);
	else
		cli_say_error(status, path);
}

static int make(struct run *run, const struct cli_options *options)
{
	weir_scheduler_options settings = {
		.size = sizeof settings,
		.workers = options->workers,
		.backend = options->backend,
		.signal = options->signal,
		.root = options->root,
		.seed = options->seed,
		.max_duration_ns = options->duration_ns,
		.max_in_flight = options->max_in_flight,
		.measure = !options->quiet,
		.given = (options->seeded ? WEIR_GIVEN_SEED : 0u) | (options->limited ? WEIR_GIVEN_MAX_DURATION : 0u),
	};
	weir_status status;
	int code;

	run->source.interruptible = true;
	code = cli_graph_load(&run->source, options);
	if (code)
		return code;
	status = weir_graph_create(&run->graph, run->source.registry, run->source.description);
	if (!status)
		status = weir_scheduler_create(&run->scheduler, run->graph, &settings);
	if (status)
		say_why(status, options->argument);
	else if (options->seeded && !options->quiet &&
		 strncmp(weir_scheduler_where(run->scheduler), "sim", 3))
		cli_say("warning: --seed decides nothing without --backend sim");
	return cli_code_of(status);
}

/* On `sim` in virtual time, and only where it is asked for: each turn is one more thing that happens in that world. */
static int64_t turn_of(weir_scheduler *scheduler, const struct cli_progress *progress,
		       const struct cli_standstill *standstill)
{
	if (progress->on || strncmp(weir_scheduler_where(scheduler), "sim", 3))
		return CLI_PROGRESS_NS;
	return standstill->after_ns ? standstill->after_ns : -1;
}

static weir_status wait_for_end(weir_scheduler *scheduler, struct cli_progress *progress,
				struct cli_standstill *standstill, weir_outcome *outcome)
{
	int64_t turn = turn_of(scheduler, progress, standstill);
	weir_status status;

	/*
	 * An outcome is filled at the end alone: compute may have failed with TIMEOUT too. Who waits for ever
	 * never sees one.
	 */
	while ((status = weir_scheduler_wait(scheduler, turn, outcome)) == WEIR_E_TIMEOUT && !outcome->status &&
	       turn > 0) {
		cli_progress_show(progress, scheduler);
		cli_standstill_look(standstill, scheduler, turn);
	}
	cli_progress_clear(progress);
	return status;
}

#define DRAINS "weir run: stopping: what is in flight is finished; a second Ctrl-C or SIGTERM stops at once\n"

/* What the first signal says: on a terminal in place of the line that moves. */
static const char *words_of_drain(bool quiet, bool moving)
{
	return quiet ? "" : moving ? "\r\033[K" DRAINS : DRAINS;
}

/* What the library's calls say begins with the entity's name, what an operator says does not. */
static const char *without_name(const char *text, const char *entity)
{
	size_t length = strlen(entity);

	return !strncmp(text, entity, length) && !strncmp(text + length, ": ", 2) ? text + length + 2 : text;
}

static void complain(const char *path, const weir_outcome *outcome)
{
	const char *status = weir_status_text(outcome->status);

	if (outcome->entity)
		cli_say("%s: %s in '%s': %s", path, status, outcome->entity,
			without_name(outcome->text, outcome->entity));
	else
		cli_say("%s: %s: %s", path, status, outcome->text);
}

static int run_to_the_end(struct run *run, const struct cli_options *options)
{
	struct cli_progress progress = {.on = !options->quiet && isatty(STDERR_FILENO)};
	struct cli_standstill standstill = {.after_ns = options->explain_after_ns};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	cli_crash_tell(run->graph);	/* first: what starts may crash at once */
	status = weir_scheduler_start(run->scheduler);
	if (status) {
		cli_say_error(status, options->argument);
		return cli_code_of(status);
	}
	cli_signals_drain(run->scheduler, words_of_drain(options->quiet, progress.on));
	status = wait_for_end(run->scheduler, &progress, &standstill, &outcome);
	outcome.posix_signal = cli_signals_drained();
	if (status && !outcome.status) { /* no end: a simulated world that goes round without getting on */
		cli_say("%s", weir_last_error());
		return CLI_FAILED;
	}
	if (!options->quiet)
		cli_summary(options->argument, run->graph, run->scheduler, &outcome);
	if (outcome.status)
		complain(options->argument, &outcome);
	return outcome.posix_signal ? 128 + outcome.posix_signal : cli_code_of(outcome.status);
}

static bool finish(struct run *run)
{
	bool hung = weir_scheduler_destroy(run->scheduler) == WEIR_E_ABANDONED;

	cli_crash_tell(NULL);
	hung |= weir_graph_destroy(run->graph) == WEIR_E_ABANDONED;
	if (!hung)	/* else what hangs may still use a plugin's code */
		cli_graph_finish(&run->source);
	return hung;
}

/* What is still pending has come before the scheduler looked, or after. */
static int stopped_early(int code)
{
	int number = cli_signals_take();

	return number ? 128 + number : code;
}

static int run_graph(const struct cli_options *options)
{
	struct run run = {0};
	bool hung;
	int code;

	/* Or streams alias: one's long kernel holds up another's short one. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	cli_standstill_listen();
	code = make(&run, options);
	if (!code && (code = stopped_early(code)))
		cli_say("%s: stopped before the run began", options->argument);
	if (!code)
		code = run_to_the_end(&run, options);
	hung = finish(&run);
	code = stopped_early(code);
	cli_signals_unblock();
	if (!hung)
		return code;
	cli_say("the device did not finish in time; what it may still use was left behind");
	fflush(stdout);
	_exit(code ? code : CLI_ABANDONED);	/* without the driver's handlers: they would wait for it */
}

const struct cli_command cli_run = {
	.name = "run",
	.argument = "GRAPH",
	.help = "runs a graph to its end",
	.text = "SIGINT or SIGTERM drains: sources stop, what is on its way is finished. "
		"A second one exits at once.\n"
		"SIGUSR1 tells why it stands still.\n"
		"A compute in progress cannot be cut short.\n"
		"frames/s are the ticks of the slowest sink (an entity that receives and emits nothing) "
		"per second.\n",
	.options = CLI_SET | CLI_PLUGIN | CLI_WORKERS | CLI_BACKEND | CLI_SIGNAL | CLI_SEED | CLI_MAX_IN_FLIGHT |
		   CLI_DURATION | CLI_EXPLAIN_AFTER | CLI_ROOT | CLI_QUIET,
	.run = run_graph,
};
