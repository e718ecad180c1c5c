/* The options of all subcommands: one table, read with getopt_long. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/metrics.h"

struct row {
	unsigned bit;
	const char *name, *value; /* value: as shown by --help; NULL: takes no value */
	const char *help;
	bool (*take)(struct cli_options *options, const char *value); /* false: not `wanted` */
	const char *wanted;
};

static bool take_set(struct cli_options *options, const char *value)
{
	options->sets[options->set_count++] = value;
	return true; /* weir_description_set reports malformed ones */
}

static bool take_plugin(struct cli_options *options, const char *value)
{
	options->plugins[options->plugin_count++] = value;
	return *value != '\0';
}

static bool take_python(struct cli_options *options, const char *value)
{
	options->pythons[options->python_count++] = value;
	return *value != '\0';
}

/* Digits only: strtoull would accept blanks and a sign. */
static bool read_number(const char *text, unsigned long long max, unsigned long long *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && !*end && *out <= max;
}

enum { WORKERS_MAX = 64 }; /* as in a graph file */

static bool take_workers(struct cli_options *options, const char *value)
{
	unsigned long long workers;

	if (!read_number(value, WORKERS_MAX, &workers) || !workers)
		return false;
	options->workers = (unsigned)workers;
	return true;
}

static bool take_seed(struct cli_options *options, const char *value)
{
	unsigned long long seed;

	if (!read_number(value, UINT64_MAX, &seed))
		return false;
	options->seed = seed;
	options->seeded = true;
	return true;
}

enum { IN_FLIGHT_MAX = 65536 }; /* as in a graph file */

static bool take_max_in_flight(struct cli_options *options, const char *value)
{
	unsigned long long ticks;

	if (!read_number(value, IN_FLIGHT_MAX, &ticks))
		return false;
	options->max_in_flight = ticks ? (int)ticks : -1;
	return true;
}

/* Same grammar as in a graph file. */
static bool take_gpu_time(struct cli_options *options, const char *value)
{
	int every;

	if (wr_sampling_read(value, &every))
		return false;
	options->gpu_time = every ? every : WEIR_NONE;
	return true;
}

static bool one_of(const char *const *words, const char *value)
{
	while (*words && strcmp(*words, value))
		words++;
	return *words;
}

static bool take_backend(struct cli_options *options, const char *value)
{
	static const char *const words[] = {"auto", "cuda", "host", "sim", NULL};

	options->backend = value;
	return one_of(words, value);
}

static bool take_signal(struct cli_options *options, const char *value)
{
	static const char *const words[] = {"auto", "callback", "callback_inline", "flag", NULL};

	options->signal = value;
	return one_of(words, value);
}

/* Same grammar as in a graph file; 0s removes the graph's limit. */
static bool take_duration(struct cli_options *options, const char *value)
{
	options->limited = true;
	return !weir_duration_parse(value, &options->duration_ns);
}

/* The same; 0s abandons at once what is in flight. */
static bool take_drain(struct cli_options *options, const char *value)
{
	options->drained = true;
	return !weir_duration_parse(value, &options->drain_ns);
}

static bool take_explain_after(struct cli_options *options, const char *value)
{
	return !weir_duration_parse(value, &options->explain_after_ns) && options->explain_after_ns > 0;
}

static bool take_root(struct cli_options *options, const char *value)
{
	options->root = value;
	return *value != '\0';
}

static bool take_remote(struct cli_options *options, const char *value)
{
	options->remote = value;
	return *value != '\0';
}

static bool take_trace(struct cli_options *options, const char *value)
{
	options->trace = value;
	return *value != '\0';
}

enum { TRACE_EVENTS_MAX = 1 << 28 };

static bool take_trace_events(struct cli_options *options, const char *value)
{
	unsigned long long events;

	if (!read_number(value, TRACE_EVENTS_MAX, &events) || !events)
		return false;
	options->trace_events = (size_t)events;
	return true;
}

static bool take_stats(struct cli_options *options, const char *value)
{
	(void)value;
	return options->stats = true;
}

static bool take_stats_file(struct cli_options *options, const char *value)
{
	options->stats_file = value;
	return *value != '\0';
}

static bool take_stats_skip(struct cli_options *options, const char *value)
{
	unsigned long long ticks;

	if (!read_number(value, UINT32_MAX, &ticks))
		return false;
	options->stats_skip = ticks;
	return true;
}

static bool take_metrics(struct cli_options *options, const char *value)
{
	options->metrics = value;
	return cli_metrics_address(value);
}

static bool take_quiet(struct cli_options *options, const char *value)
{
	(void)value;
	return options->quiet = true;
}

static bool take_strict(struct cli_options *options, const char *value)
{
	(void)value;
	options->strict = 1;
	return true;
}

static bool take_no_strict(struct cli_options *options, const char *value)
{
	(void)value;
	options->strict = WEIR_NONE;
	return true;
}

static bool take_json(struct cli_options *options, const char *value)
{
	(void)value;
	options->format = WEIR_FORMAT_JSON;
	return options->json = true;
}

static bool take_dot(struct cli_options *options, const char *value)
{
	(void)value;
	options->format = WEIR_FORMAT_DOT;
	return options->dot = true;
}

static bool take_output(struct cli_options *options, const char *value)
{
	options->output = value;
	return *value != '\0';
}

/* Same grammar as in a graph file. */
static bool take_max_file(struct cli_options *options, const char *value)
{
	int64_t bytes;

	if (wr_size_read(value, &bytes) || bytes < 1)
		return false;
	options->max_file = (size_t)bytes;
	return true;
}

static bool take_help(struct cli_options *options, const char *value)
{
	(void)value;
	return options->help = true;
}

static const struct row rows[] = {
	{CLI_SET, "set", "E.P=VALUE", "sets parameter P of entity E; may be repeated", take_set, NULL},
	{CLI_PLUGIN, "plugin", "FILE",
	 "loads operators and conditions, of a file or by name (onnx, gst, ucx); may be repeated",
	 take_plugin, "a file"},
	{CLI_PYTHON, "python", "FILE", "runs a Python file that registers operators; may be repeated",
	 take_python, "a file"},
	{CLI_WORKERS, "workers", "N", "threads that run entities (the graph's, else one per core)",
	 take_workers, "a number from 1 to 64"},
	{CLI_BACKEND, "backend", "NAME", "auto, cuda, host or sim (auto: cuda where there is a GPU)",
	 take_backend, "auto, cuda, host or sim"},
	{CLI_SIGNAL, "signal", "NAME", "auto, callback, callback_inline or flag (the graph's, else auto)",
	 take_signal, "auto, callback, callback_inline or flag"},
	{CLI_SEED, "seed", "N", "seed of the simulation (backend sim)", take_seed,
	 "a number from 0 to 2^64 - 1"},
	{CLI_MAX_IN_FLIGHT, "max-in-flight", "N",
	 "ticks of an entity that may be on the device at once (the graph's, else 64); 0: no bound",
	 take_max_in_flight, "a number from 0 to 65536"},
	{CLI_GPU_TIME, "gpu-time", "TICKS",
	 "measures the time on the device in these ticks: off, all, sample:64 (the graph's)", take_gpu_time,
	 "off, all, or sample:N with N from 1 to 1000000"},
	{CLI_STRICT, "strict", NULL,
	 "closes device memory to the host: also on host, where it needs protection keys", take_strict, NULL},
	{CLI_STRICT, "no-strict", NULL, "leaves it open also on sim", take_no_strict, NULL},
	{CLI_DURATION, "duration", "TIME", "drains after this time: 500ms, 10s, 5min; 0s: no limit",
	 take_duration, "a time such as 500ms, 10s or 5min"},
	{CLI_DRAIN, "drain", "TIME",
	 "how long a drain may stand still before the rest is abandoned (the graph's, else 5s)", take_drain,
	 "a time such as 500ms, 10s or 5min"},
	{CLI_EXPLAIN_AFTER, "explain-after", "TIME",
	 "explains the standstill after this time without a tick, or with a queue of which nothing was taken",
	 take_explain_after, "a time such as 500ms, 5s or 1min"},
	{CLI_ROOT, "root", "DIR", "confines the files of the built-in operators to this folder", take_root,
	 "a folder"},
	{CLI_REMOTE, "remote", "FILE", "the addresses of remote connections, a name and an address per line",
	 take_remote, "a file"},
	{CLI_TRACE, "trace", "FILE", "writes a timeline of the run, for Perfetto or chrome://tracing",
	 take_trace, "a file"},
	{CLI_TRACE_EVENTS, "trace-events", "N",
	 "records that the timeline keeps per worker (1048576); the oldest are dropped", take_trace_events,
	 "a number from 1 to 268435456"},
	{CLI_STATS, "stats", NULL, "prints the times of entities and the latency of paths", take_stats, NULL},
	{CLI_STATS_FILE, "stats-file", "FILE", "writes all statistics of the run as JSON", take_stats_file,
	 "a file"},
	{CLI_STATS_SKIP, "stats-skip", "N", "leaves the first N ticks of each entity out of its times",
	 take_stats_skip, "a number from 0 to 4294967295"},
	{CLI_METRICS, "metrics", "ADDRESS",
	 "serves the run's metrics for Prometheus: 127.0.0.1:9464, or a port alone (loopback)", take_metrics,
	 "an address in digits with a port, such as 127.0.0.1:9464, [::1]:9464 or 9464"},
	{CLI_QUIET, "quiet", NULL, "prints errors only", take_quiet, NULL},
	{CLI_JSON, "json", NULL, "prints JSON", take_json, NULL},
	{CLI_DOT, "dot", NULL, "prints a drawing for Graphviz", take_dot, NULL},
	{CLI_OUTPUT, "output", "FILE", "the page to write; also -o FILE; -: standard output", take_output,
	 "a file"},
	{CLI_MAX_FILE, "max-file", "SIZE", "the largest file that is read (256MiB; TRACE.json 4GiB)",
	 take_max_file, "a size such as 64MiB"},
	{CLI_HELP, "help", NULL, "prints this help", take_help, NULL},
};
enum { ROWS = sizeof rows / sizeof rows[0], FIRST = 256 /* above all letters */ };

void cli_options_help(FILE *to, unsigned mask)
{
	for (size_t i = 0; i < ROWS; i++) {
		char left[40];

		if (!(rows[i].bit & mask))
			continue;
		snprintf(left, sizeof left, "--%s %s", rows[i].name, rows[i].value ? rows[i].value : "");
		fprintf(to, "  %-20s  %s\n", left, rows[i].help);
	}
}

static int refuse_unknown(const char *word, const struct option *known)
{
	char name[65];
	struct wr_nearest nearest = {.wanted = name + 2};

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; !strncmp(name, "--", 2) && known[i].name; i++)
		wr_nearest_try(&nearest, known[i].name);
	if (nearest.best)
		cli_say("unknown option '%s' (did you mean '--%s'?)", name, nearest.best);
	else
		cli_say("unknown option '%s'; --help lists them", name);
	return CLI_USAGE;
}

/* Reports the option that getopt rejected. */
static int refuse_option(int answer, char **argv, const struct option *known)
{
	const struct row *row = optopt >= FIRST ? &rows[optopt - FIRST] : NULL;

	if (answer == ':' && row) {
		cli_say("--%s needs %s; see --help", row->name, row->wanted ? row->wanted : row->value);
		return CLI_USAGE;
	}
	if (row) {
		cli_say("--%s takes no value", row->name);
		return CLI_USAGE;
	}
	if (answer == ':' && optopt == 'o') {
		cli_say("-o needs a file; see --help");
		return CLI_USAGE;
	}
	if (optopt) {
		cli_say("unknown option '-%c'; --help lists them", optopt);
		return CLI_USAGE;
	}
	return refuse_unknown(argv[optind - 1], known);
}

static int take_value(struct cli_options *options, const struct row *row, const char *value)
{
	if (row->take(options, value))
		return CLI_OK;
	cli_say("--%s '%s': expected %s", row->name, value, row->wanted);
	return CLI_USAGE;
}

static int read_options(struct cli_options *options, int argc, char **argv, const struct option *known,
			const char *letters)
{
	const struct row *output = rows;
	int answer, code = CLI_OK;

	while (output->bit != CLI_OUTPUT)
		output++;
	opterr = 0;
	while (!code && (answer = getopt_long(argc, argv, letters, known, NULL)) != -1) {
		if (answer == 'h')
			options->help = true;
		else if (answer == 'o')
			code = take_value(options, output, optarg);
		else if (answer >= FIRST)
			code = take_value(options, &rows[answer - FIRST], optarg);
		else
			code = refuse_option(answer, argv, known);
	}
	return code;
}

static int read_argument(struct cli_options *options, const struct cli_command *command, int argc,
			 char **argv)
{
	bool required = command->argument[0] != '[';
	int most = strstr(command->argument, "...") ? INT_MAX : strchr(command->argument, ' ') ? 2 : 1;

	if (options->help)
		return CLI_OK;
	if (argc > most) {
		cli_say("unexpected argument '%s': give %s%s", argv[most], most > 1 ? "" : "one ",
			required ? command->argument : "NAME");
		return CLI_USAGE;
	}
	if (required && argc < 1) {
		cli_say("missing %s; usage: weir %s %s [OPTION]...", command->argument, command->name,
			command->argument);
		return CLI_USAGE;
	}
	options->arguments = argv;
	options->argument_count = argc;
	options->argument = argc > 0 ? argv[0] : NULL;
	options->second = argc > 1 ? argv[1] : NULL;
	return CLI_OK;
}

int cli_options_read(struct cli_options *options, const struct cli_command *command, int argc, char **argv)
{
	struct option known[ROWS + 1] = {{0}};
	size_t count = 0;
	int code;

	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].bit & (command->options | CLI_HELP))
			known[count++] =
				(struct option){rows[i].name, rows[i].value ? required_argument : no_argument,
						NULL, FIRST + (int)i};
	options->sets = calloc((size_t)argc, sizeof *options->sets);
	options->plugins = calloc((size_t)argc, sizeof *options->plugins);
	options->pythons = calloc((size_t)argc, sizeof *options->pythons);
	if (!options->sets || !options->plugins || !options->pythons) {
		cli_say("the command line: out of memory");
		return CLI_FAILED;
	}
	code = read_options(options, argc, argv, known, command->options & CLI_OUTPUT ? ":ho:" : ":h");
	if (!code && options->json && options->dot) {
		cli_say("--json and --dot are two formats: give one of them");
		code = CLI_USAGE;
	}
	return code ? code : read_argument(options, command, argc - optind, argv + optind);
}

void cli_options_finish(struct cli_options *options)
{
	free(options->sets);
	free(options->plugins);
	free(options->pythons);
}
