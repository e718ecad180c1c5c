/* weir report of several runs: what is read, and what is printed. crossing.c has the paths. */
#include "cli/joined.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"

/* --- which files --- */

enum { BEGIN = 4096 };

/* A text that says in its begin that it is the statistics of a run. It may be cut. */
static bool is_run(const char *text, size_t length)
{
	struct cli_json json = cli_json_of(text, length);
	struct cli_slice key;

	return cli_json_next(&json) == CLI_JSON_OBJECT && cli_json_object(&json) &&
	       cli_json_member(&json, &key) && cli_slice_is(key, "weir_statistics");
}

/* Looks at a regular file alone, as others can be read once. */
static bool file_is_run(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat about;
	char text[BEGIN + 1];
	ssize_t length = 0;

	if (fd < 0)
		return false;
	if (!fstat(fd, &about) && S_ISREG(about.st_mode))
		length = read(fd, text, BEGIN);
	close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0 && is_run(text, (size_t)length);
}

bool cli_joined_given(const struct cli_options *options)
{
	return options->argument_count > 2 || (options->argument_count == 2 && file_is_run(options->second));
}

static int read_run(struct cli_side *side, struct cli_input *input)
{
	char fault[512];

	side->run = *input;
	*input = (struct cli_input){0};
	if (!cli_recorded_read(&side->recorded, side->run.text, side->run.length, fault))
		return cli_input_refuse(&side->run, fault);
	return CLI_OK;
}

static int read_trace(struct cli_side *side, struct cli_input *input)
{
	char fault[512];

	side->trace = *input;
	*input = (struct cli_input){0};
	if (!cli_traced_read(&side->traced, &side->recorded, side->trace.text, side->trace.length, fault))
		return cli_input_refuse(&side->trace, fault);
	if (side->traced.dropped)
		cli_say("%s: warning: %" PRId64
			" records were dropped, so no path by a remote connection is known "
			"there; --trace-events keeps more",
			side->trace.path, side->traced.dropped);
	return CLI_OK;
}

/* A trace belongs to the run before it. */
static int read_all(struct cli_joined *joined, const struct cli_options *options)
{
	struct cli_input input = {0};
	int code = CLI_OK;

	for (int i = 0; !code && i < options->argument_count; i++) {
		struct cli_side *last = joined->count ? &joined->sides[joined->count - 1] : NULL;

		code = cli_input_read(&input, options->arguments[i], options, CLI_TRACE_MOST);
		if (!code && last && !last->trace.path && !is_run(input.text, input.length))
			code = read_trace(last, &input);
		else if (!code)
			code = read_run(&joined->sides[joined->count++], &input);
	}
	free(input.text);
	return code;
}

/* --- the connections --- */

static bool joins(const struct cli_remote *send, const struct cli_remote *receive)
{
	return send->to && receive->listen && !strcmp(send->session, receive->peer) &&
	       !strcmp(send->peer, receive->session);
}

static void find_from(struct cli_joined *joined, size_t side, size_t entity)
{
	const struct cli_remote *send =
		&cli_recorded_entity(&joined->sides[side].recorded, entity)->record.weir_remote;

	for (size_t s = 0; send->to && s < joined->count; s++)
		for (size_t i = 0; i < joined->sides[s].recorded.entities.count; i++) {
			const struct cli_remote *receive =
				&cli_recorded_entity(&joined->sides[s].recorded, i)->record.weir_remote;
			struct cli_joint *made;

			if (!joins(send, receive))
				continue;
			made = cli_list_add(&joined->joints, sizeof *made);
			joined->no_memory |= !made;
			if (made)
				*made = (struct cli_joint){side, entity, s, i, send, receive, {0}};
		}
}

void cli_joined_find(struct cli_joined *joined)
{
	for (size_t s = 0; s < joined->count; s++)
		for (size_t i = 0; i < joined->sides[s].recorded.entities.count; i++)
			find_from(joined, s, i);
}

/* --- what is printed --- */

static const char *name_of(const struct cli_joined *joined, size_t side, size_t entity)
{
	return cli_recorded_entity(&joined->sides[side].recorded, entity)->name;
}

/* A percentile of the way without the offset of the clocks. */
static int64_t way_of(const struct cli_joint *joint, int64_t ns)
{
	return (int64_t)((uint64_t)ns - (uint64_t)joint->send->offset);
}

static void print_joint(const struct cli_joined *joined, const struct cli_joint *joint)
{
	const struct cli_way *way = &joint->receive->way;
	int64_t offset = joint->send->offset, away = offset == INT64_MIN ? INT64_MAX
						     : offset < 0        ? -offset
									 : offset;

	cli_print_escaped(stdout, joined->sides[joint->from_side].run.path);
	printf(": %s -> ", name_of(joined, joint->from_side, joint->from));
	cli_print_escaped(stdout, joined->sides[joint->to_side].run.path);
	printf(": %s, ", name_of(joined, joint->to_side, joint->to));
	cli_print_escaped(stdout, joint->send->to);
	printf("\n  sent %" PRId64 ", received %" PRId64 ", lost %" PRId64 "\n", joint->send->count,
	       joint->receive->count, joint->send->lost);
	if (!joint->send->exchanges || !way->count)
		return;
	printf("  on the way: p50 %s, p99 %s", wr_time_shown(way_of(joint, way->p50)).text,
	       wr_time_shown(way_of(joint, way->p99)).text);
	printf(", max %s", wr_time_shown(way_of(joint, way->max)).text);
	printf(", +- %s\n", wr_time_shown(joint->send->error).text);
	printf("  clocks: the receiver's is %s %s", wr_time_shown(away).text,
	       offset < 0 ? "behind" : "ahead");
	printf(", +- %s, of %" PRId64 " exchanges\n", wr_time_shown(joint->send->error).text,
	       joint->send->exchanges);
}

static void print_path(const struct cli_joined *joined, const struct cli_crossing_path *path)
{
	const struct cli_stop *stops = path->stops.items;
	uint32_t side = UINT32_MAX;

	for (size_t i = path->stops.count; i--;) {
		if (i + 1 < path->stops.count)
			printf(" > ");
		if (stops[i].side != side) {
			side = stops[i].side;
			cli_print_escaped(stdout, joined->sides[side].run.path);
			printf(": ");
		}
		printf("%s", name_of(joined, side, stops[i].entity));
	}
	printf("\n  messages %zu, latency: min %s", path->latencies.count,
	       wr_time_shown(cli_joined_percentile(&path->latencies, 0)).text);
	printf(", p50 %s", wr_time_shown(cli_joined_percentile(&path->latencies, 50)).text);
	printf(", p99 %s", wr_time_shown(cli_joined_percentile(&path->latencies, 99)).text);
	printf(", max %s", wr_time_shown(cli_joined_percentile(&path->latencies, 100)).text);
	printf(", +- %s\n", wr_time_shown(path->error).text);
}

static void print_text(const struct cli_joined *joined)
{
	const struct cli_joint *joints = joined->joints.items;
	const struct cli_crossing_path *paths = joined->paths.items;

	for (size_t i = 0; i < joined->joints.count; i++)
		print_joint(joined, &joints[i]);
	for (size_t i = 0; i < joined->paths.count; i++)
		print_path(joined, &paths[i]);
}

static void put_stop(const struct cli_joined *joined, size_t side, size_t entity)
{
	fputs("{\"run\":", stdout);
	cli_page_string(stdout, joined->sides[side].run.path);
	fputs(",\"entity\":", stdout);
	cli_page_string(stdout, name_of(joined, side, entity));
	fputs("}", stdout);
}

static void put_joint(const struct cli_joined *joined, const struct cli_joint *joint)
{
	const struct cli_way *way = &joint->receive->way;

	fputs("{\"to\":", stdout);
	cli_page_string(stdout, joint->send->to);
	fputs(",\"sender\":", stdout);
	put_stop(joined, joint->from_side, joint->from);
	fputs(",\"receiver\":", stdout);
	put_stop(joined, joint->to_side, joint->to);
	printf(",\n \"sent\":%" PRId64 ",\"received\":%" PRId64 ",\"lost\":%" PRId64
	       ",\"clock\":{\"exchanges\":%" PRId64 ",\"offset\":%" PRId64 ",\"error\":%" PRId64 "},\"way\":",
	       joint->send->count, joint->receive->count, joint->send->lost, joint->send->exchanges,
	       joint->send->offset, joint->send->error);
	if (joint->send->exchanges && way->count)
		printf("{\"count\":%" PRId64 ",\"min\":%" PRId64 ",\"p50\":%" PRId64 ",\"p99\":%" PRId64
		       ",\"max\":%" PRId64 "}}",
		       way->count, way_of(joint, way->min), way_of(joint, way->p50), way_of(joint, way->p99),
		       way_of(joint, way->max));
	else
		fputs("null}", stdout);
}

static void put_path(const struct cli_joined *joined, const struct cli_crossing_path *path)
{
	const struct cli_stop *stops = path->stops.items;

	fputs("{\"entities\":[", stdout);
	for (size_t i = path->stops.count; i--;) {
		put_stop(joined, stops[i].side, stops[i].entity);
		fputs(i ? "," : "]", stdout);
	}
	printf(",\n \"latency\":{\"count\":%zu,\"min\":%" PRId64 ",\"p50\":%" PRId64 ",\"p99\":%" PRId64
	       ",\"max\":%" PRId64 ",\"error\":%" PRId64 "}}",
	       path->latencies.count, cli_joined_percentile(&path->latencies, 0),
	       cli_joined_percentile(&path->latencies, 50), cli_joined_percentile(&path->latencies, 99),
	       cli_joined_percentile(&path->latencies, 100), path->error);
}

static void print_json(const struct cli_joined *joined)
{
	const struct cli_joint *joints = joined->joints.items;
	const struct cli_crossing_path *paths = joined->paths.items;

	fputs("{\"weir_joined\":1,\n\"connections\":[", stdout);
	for (size_t i = 0; i < joined->joints.count; i++) {
		fputs(i ? ",\n" : "\n", stdout);
		put_joint(joined, &joints[i]);
	}
	fputs("],\n\"paths\":[", stdout);
	for (size_t i = 0; i < joined->paths.count; i++) {
		fputs(i ? ",\n" : "\n", stdout);
		put_path(joined, &paths[i]);
	}
	fputs("]}\n", stdout);
}

/* --- all --- */

static void finish(struct cli_joined *joined)
{
	struct cli_joint *joints = joined->joints.items;
	struct cli_crossing_path *paths = joined->paths.items;

	for (size_t i = 0; i < joined->joints.count; i++)
		free(joints[i].steps.items);
	for (size_t i = 0; i < joined->paths.count; i++) {
		free(paths[i].stops.items);
		free(paths[i].latencies.items);
	}
	free(joined->joints.items);
	free(joined->paths.items);
	for (size_t i = 0; i < joined->count; i++) {
		cli_recorded_finish(&joined->sides[i].recorded);
		cli_traced_finish(&joined->sides[i].traced);
		free(joined->sides[i].numbers);
		free(joined->sides[i].run.text);
		free(joined->sides[i].trace.text);
	}
	free(joined->sides);
}

int cli_joined_run(const struct cli_options *options)
{
	struct cli_joined joined = {.sides = calloc((size_t)options->argument_count, sizeof *joined.sides)};
	int code = CLI_OK;

	if (options->output) {
		cli_say("-o writes the page of one run; what several have together is printed: leave -o out");
		code = CLI_USAGE;
	}
	joined.no_memory = !joined.sides;
	if (!code && !joined.no_memory)
		code = read_all(&joined, options);
	if (!code && !joined.no_memory) {
		cli_joined_find(&joined);
		cli_joined_paths(&joined);
	}
	if (!code && joined.no_memory) {
		cli_say("the runs together: out of memory");
		code = CLI_FAILED;
	} else if (!code && !joined.joints.count) {
		cli_say("no remote connection joins these runs: give the statistics (weir run --stats-file) "
			"of the "
			"runs on both its sides");
		code = CLI_REFUSED;
	} else if (!code) {
		(options->format == WEIR_FORMAT_JSON ? print_json : print_text)(&joined);
	}
	finish(&joined);
	return code;
}
