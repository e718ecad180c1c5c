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

bool cli_joined_given(const struct cli_options *options)
{
	int fd = options->argument_count == 2
			 ? open(options->second, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
			 : -1;
	struct stat about;
	char text[BEGIN + 1];
	ssize_t length = 0;

	if (fd < 0)
		return options->argument_count > 2;
	if (!fstat(fd, &about) && S_ISREG(about.st_mode)) /* others can be read once */
		length = read(fd, text, BEGIN);
	close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0 && is_run(text, (size_t)length);
}

/* A trace belongs to the run before it. */
static int read_all(struct cli_joined *joined, const struct cli_options *options)
{
	for (int i = 0; i < options->argument_count; i++) {
		struct cli_side *side = joined->count ? &joined->sides[joined->count - 1] : NULL;
		struct cli_input input;
		char fault[512];
		bool trace;
		int code = cli_input_read(&input, options->arguments[i], options, CLI_TRACE_MOST);

		trace = !code && side && !side->trace.path && !is_run(input.text, input.length);
		if (!trace)
			side = &joined->sides[joined->count++];
		*(trace ? &side->trace : &side->run) = input;
		if (code)
			return code;
		if (trace ? !cli_traced_read(&side->traced, &side->recorded, input.text, input.length, fault)
			  : !cli_recorded_read(&side->recorded, input.text, input.length, fault))
			return cli_input_refuse(&input, fault);
		if (side->traced.dropped)
			cli_say("%s: warning: %" PRId64
				" records were dropped, so no path by a remote connection is known "
				"there; --trace-events keeps more",
				input.path, side->traced.dropped);
	}
	return CLI_OK;
}

/* --- the connections --- */

static void add_joint(struct cli_joined *joined, struct cli_joint joint)
{
	const struct cli_recorded *from = &joined->sides[joint.from_side].recorded,
				  *to = &joined->sides[joint.to_side].recorded;
	struct cli_joint *made;

	joint.send = &cli_recorded_entity(from, joint.from)->record.weir_remote;
	joint.receive = &cli_recorded_entity(to, joint.to)->record.weir_remote;
	if (!joint.send->to || !joint.receive->listen || strcmp(joint.send->session, joint.receive->peer) ||
	    strcmp(joint.send->peer, joint.receive->session))
		return;
	made = cli_list_add(&joined->joints, sizeof *made);
	joined->no_memory |= !made;
	if (made)
		*made = joint;
}

void cli_joined_find(struct cli_joined *joined)
{
	for (size_t a = 0; a < joined->count; a++)
		for (size_t b = 0; b < joined->count; b++)
			for (size_t i = 0; i < joined->sides[a].recorded.entities.count; i++)
				for (size_t k = 0; k < joined->sides[b].recorded.entities.count; k++)
					add_joint(joined, (struct cli_joint){a, i, b, k, NULL, NULL, {0}});
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

static void print_connections(const struct cli_joined *joined)
{
	const struct cli_joint *joint = joined->joints.items;

	for (const struct cli_joint *end = joint + joined->joints.count; joint < end; joint++) {
		const struct cli_remote *send = joint->send;
		const struct cli_way *way = &joint->receive->way;
		int64_t away = send->offset == INT64_MIN ? INT64_MAX
			       : send->offset < 0        ? -send->offset
							 : send->offset;

		cli_print_escaped(stdout, joined->sides[joint->from_side].run.path);
		printf(": %s -> ", name_of(joined, joint->from_side, joint->from));
		cli_print_escaped(stdout, joined->sides[joint->to_side].run.path);
		printf(": %s, ", name_of(joined, joint->to_side, joint->to));
		cli_print_escaped(stdout, send->to);
		printf("\n  sent %" PRId64 ", received %" PRId64 ", lost %" PRId64 "\n", send->count,
		       joint->receive->count, send->lost);
		if (!send->exchanges || !way->count)
			continue;
		printf("  on the way: p50 %s", wr_time_shown(way_of(joint, way->p50)).text);
		printf(", p99 %s", wr_time_shown(way_of(joint, way->p99)).text);
		printf(", max %s, +- ", wr_time_shown(way_of(joint, way->max)).text);
		printf("%s\n  clocks: the receiver's is ", wr_time_shown(send->error).text);
		printf("%s %s, +- ", wr_time_shown(away).text, send->offset < 0 ? "behind" : "ahead");
		printf("%s, of %" PRId64 " exchanges\n", wr_time_shown(send->error).text, send->exchanges);
	}
}

static void print_text(const struct cli_joined *joined)
{
	const struct cli_crossing_path *path = joined->paths.items;

	print_connections(joined);
	for (const struct cli_crossing_path *end = path + joined->paths.count; path < end; path++) {
		const struct cli_stop *stops = path->stops.items;
		uint32_t side = UINT32_MAX;

		for (size_t i = path->stops.count; i--; side = stops[i].side) {
			if (i + 1 < path->stops.count)
				printf(" > ");
			if (stops[i].side != side) {
				cli_print_escaped(stdout, joined->sides[stops[i].side].run.path);
				printf(": ");
			}
			printf("%s", name_of(joined, stops[i].side, stops[i].entity));
		}
		printf("\n  messages %zu, latency: min %s", path->latencies.count,
		       wr_time_shown(cli_joined_percentile(&path->latencies, 0)).text);
		printf(", p50 %s", wr_time_shown(cli_joined_percentile(&path->latencies, 50)).text);
		printf(", p99 %s", wr_time_shown(cli_joined_percentile(&path->latencies, 99)).text);
		printf(", max %s", wr_time_shown(cli_joined_percentile(&path->latencies, 100)).text);
		printf(", +- %s\n", wr_time_shown(path->error).text);
	}
}

static void put_stop(const struct cli_joined *joined, const char *before, size_t side, size_t entity)
{
	printf("%s{\"run\":", before);
	cli_page_string(stdout, joined->sides[side].run.path);
	fputs(",\"entity\":", stdout);
	cli_page_string(stdout, name_of(joined, side, entity));
	fputs("}", stdout);
}

static void print_json(const struct cli_joined *joined)
{
	const struct cli_joint *joints = joined->joints.items;
	const struct cli_crossing_path *paths = joined->paths.items;

	fputs("{\"weir_joined\":1,\n\"connections\":[", stdout);
	for (size_t i = 0; i < joined->joints.count; i++) {
		const struct cli_joint *joint = &joints[i];
		const struct cli_way *way = &joint->receive->way;

		fputs(i ? ",\n{\"to\":" : "\n{\"to\":", stdout);
		cli_page_string(stdout, joint->send->to);
		put_stop(joined, ",\"sender\":", joint->from_side, joint->from);
		put_stop(joined, ",\"receiver\":", joint->to_side, joint->to);
		printf(",\n \"sent\":%" PRId64 ",\"received\":%" PRId64 ",\"lost\":%" PRId64
		       ",\"clock\":{\"exchanges\":%" PRId64 ",\"offset\":%" PRId64 ",\"error\":%" PRId64
		       "},\"way\":",
		       joint->send->count, joint->receive->count, joint->send->lost, joint->send->exchanges,
		       joint->send->offset, joint->send->error);
		if (joint->send->exchanges && way->count)
			printf("{\"count\":%" PRId64 ",\"min\":%" PRId64 ",\"p50\":%" PRId64
			       ",\"p99\":%" PRId64 ",\"max\":%" PRId64 "}}",
			       way->count, way_of(joint, way->min), way_of(joint, way->p50),
			       way_of(joint, way->p99), way_of(joint, way->max));
		else
			fputs("null}", stdout);
	}
	fputs("],\n\"paths\":[", stdout);
	for (size_t i = 0; i < joined->paths.count; i++) {
		const struct cli_list *all = &paths[i].latencies;
		const struct cli_stop *stops = paths[i].stops.items;

		fputs(i ? ",\n{\"entities\":[" : "\n{\"entities\":[", stdout);
		for (size_t k = paths[i].stops.count; k--;)
			put_stop(joined, k + 1 < paths[i].stops.count ? "," : "", stops[k].side,
				 stops[k].entity);
		printf("],\n \"latency\":{\"count\":%zu,\"min\":%" PRId64 ",\"p50\":%" PRId64
		       ",\"p99\":%" PRId64 ",\"max\":%" PRId64 ",\"error\":%" PRId64 "}}",
		       all->count, cli_joined_percentile(all, 0), cli_joined_percentile(all, 50),
		       cli_joined_percentile(all, 99), cli_joined_percentile(all, 100), paths[i].error);
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
		cli_say("-o writes the page of one run: give the files of each run alone, with a page of its "
			"own; "
			"without -o what they have together is printed, with --json for programs");
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
