/* weir report: what a run's statistics and its trace show, as a page or as JSON. */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/units.h"
#include "cli/cli.h"

/* Reads at most `most` bytes and one more. Returns false with errno. */
static bool fill_file(struct cli_input *file, int fd, size_t most)
{
	size_t room = 0;
	ssize_t got = 1;

	while (got && file->length <= most) {
		char *grown = file->text;

		if (file->length + 1 >= room) {
			room = room ? 2 * room : 64 << 10;
			room = room < most + 2 ? room : most + 2;
			grown = realloc(file->text, room);
		}
		if (!grown)
			return false;
		file->text = grown;
		got = read(fd, file->text + file->length, room - 1 - file->length);
		if (got < 0 && !wr_call_again(fd, POLLIN))
			return false;
		file->length += got > 0 ? (size_t)got : 0;
	}
	file->text[file->length] = '\0';
	return true;
}

int cli_input_read(struct cli_input *file, const char *path, const struct cli_options *options, size_t most)
{
	bool standard = !strcmp(path, "-"), filled;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	most = options->max_file ? options->max_file : most;
	*file = (struct cli_input){.path = standard ? "<stdin>" : path};
	filled = fd >= 0 && fill_file(file, fd, most);
	if (!filled)
		cli_say(errno == ENOMEM ? "%s: %s" : "%s: cannot be read: %s", file->path,
			wr_output_why(errno));
	if (fd >= 0 && !standard)
		close(fd);
	if (!filled)
		return CLI_FAILED;
	if (file->length <= most)
		return CLI_OK;
	cli_say("%s: more than %s; --max-file SIZE reads larger files", file->path,
		wr_size_shown((int64_t)most).text);
	return CLI_REFUSED;
}

/* fault: as cli_recorded_read leaves it. */
int cli_input_refuse(const struct cli_input *file, const char *fault)
{
	cli_say("%s: %s", file->path, *fault ? fault : "out of memory");
	return *fault ? CLI_REFUSED : CLI_FAILED;
}

struct report {
	struct cli_input run, trace;
	struct cli_recorded recorded;
	struct cli_findings findings;
	struct cli_frames_slowest frames;
};

static int read_run(struct report *report, const struct cli_options *options)
{
	char fault[512];
	int64_t ticks = 0;
	int code = cli_input_read(&report->run, options->argument, options, CLI_RUN_MOST);

	if (code)
		return code;
	if (!cli_recorded_read(&report->recorded, report->run.text, report->run.length, fault))
		return cli_input_refuse(&report->run, fault);
	if (!report->recorded.has_outcome)
		cli_say("%s: warning: it does not say how the run ended: the run was on, or another version "
			"of "
			"weir wrote it; let the run write it again",
			report->run.path);
	if (cli_recorded_lacks_causes(&report->recorded))
		cli_say("%s: warning: waits without a cause, as another version of weir wrote them: what "
			"they were "
			"for is unknown here; let the run write it again",
			report->run.path);
	cli_findings_make(&report->findings, &report->recorded);
	if (report->findings.no_memory)
		return cli_input_refuse(&report->run, "");
	for (size_t i = 0; i < report->recorded.entities.count; i++)
		ticks += cli_recorded_entity(&report->recorded, i)->ticks > 0;
	if (!report->findings.count && (!ticks || !report->recorded.duration)) {
		cli_say("%s: the run had no tick, so there is nothing to report; weir run --explain-after 1s "
			"says why "
			"nothing ran",
			report->run.path);
		return CLI_REFUSED;
	}
	return CLI_OK;
}

static int read_trace(struct report *report, const struct cli_options *options)
{
	char fault[512];
	int code = cli_input_read(&report->trace, options->second, options, CLI_TRACE_MOST);

	if (code)
		return code;
	if (cli_slowest_read(&report->frames, &report->recorded, report->trace.text, report->trace.length,
			     fault))
		return CLI_OK;
	return cli_input_refuse(&report->trace, fault);
}

/* --- the output --- */

static int write_page(const struct report *report, const char *path)
{
	struct cli_file page;
	const char *why = cli_file_open(&page, path);

	if (!why) {
		cli_page_write(page.to, report->run.text, report->run.length, &report->recorded,
			       &report->findings, report->trace.path ? &report->frames : NULL);
		why = cli_file_close(&page);
	}
	if (why)
		cli_say("%s: the page cannot be written: %s", path, why);
	return why ? CLI_FAILED : CLI_OK;
}

typedef void write_text(FILE *to, const struct report *report);

/* Returns what `write` writes, or NULL: no memory. */
static char *text_of(write_text *write, const struct report *report)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);
	bool failed = !to;

	if (to) {
		write(to, report);
		failed = ferror(to);
		failed |= fclose(to) != 0;
	}
	if (failed) {
		free(text);
		text = NULL;
	}
	return text;
}

static void put_findings(FILE *to, const struct report *report)
{
	cli_page_findings(to, &report->findings, &report->recorded);
}

static void put_page(FILE *to, const struct report *report)
{
	cli_page_write(to, report->run.text, report->run.length, &report->recorded, &report->findings, NULL);
}

void cli_report_texts(char *run, struct cli_report_texts *out)
{
	struct report report = {.run = {.text = run, .length = strlen(run)}};

	*out = (struct cli_report_texts){0};
	if (cli_recorded_read(&report.recorded, run, report.run.length, out->fault)) {
		cli_findings_make(&report.findings, &report.recorded);
		out->findings = report.findings.no_memory ? NULL : text_of(put_findings, &report);
		out->page = text_of(put_page, &report);
	}
	cli_recorded_finish(&report.recorded);
}

/* The page must not replace what it is made of, nor can one pipe be read twice. */
static int check_files(const struct cli_options *options)
{
	const char *const paths[] = {options->argument, options->second, options->output};
	static const char *const places[] = {"RUN.json", "TRACE.json", "-o"};
	enum { FILES = sizeof paths / sizeof *paths };
	struct wr_file files[FILES];
	char text[WR_FILE_TEXT];

	for (int i = 0; i < FILES; i++) {
		bool write = i == 2, standard = paths[i] && !strcmp(paths[i], "-");

		files[i] = (struct wr_file){.path = standard ? NULL : paths[i],
					    .fd = standard ? write : -1,
					    .use = write ? WR_FILE_WRITE : WR_FILE_READ};
		snprintf(files[i].place, sizeof files[i].place, "%s", places[i]);
		if (paths[i])
			wr_file_look(&files[i], wr_file_open_anywhere, NULL);
		for (int k = 0; paths[i] && k < i; k++) {
			if (!paths[k] || !wr_file_clashes(&files[i], &files[k], wr_file_open_anywhere, NULL))
				continue;
			wr_file_clash_text(text, &files[i], &files[k]);
			cli_say("%s: %s", places[i], text);
			return CLI_USAGE;
		}
	}
	return CLI_OK;
}

static int make_report(struct report *report, const struct cli_options *options)
{
	int code = read_run(report, options);

	if (!code && options->second)
		code = read_trace(report, options);
	if (code)
		return code;
	if (options->format != WEIR_FORMAT_JSON)
		return write_page(report, options->output);
	cli_page_findings(stdout, &report->findings, &report->recorded);
	return CLI_OK;
}

static int run_report(const struct cli_options *options)
{
	struct report report = {0};
	int code;

	cli_signals_unblock();
	if (cli_joined_given(options))
		return cli_joined_run(options);
	if (!options->output && options->format != WEIR_FORMAT_JSON) {
		cli_say("missing -o FILE, the page to write; or --json, to print the findings");
		return CLI_USAGE;
	}
	if (options->output && options->format == WEIR_FORMAT_JSON) {
		cli_say("-o writes the page and --json prints on stdout: give one of them");
		return CLI_USAGE;
	}
	code = check_files(options);
	if (!code)
		code = make_report(&report, options);
	cli_recorded_finish(&report.recorded);
	cli_slowest_finish(&report.frames);
	free(report.run.text);
	free(report.trace.text);
	return code;
}

const struct cli_command cli_report = {
	.name = "report",
	.argument = "RUN.json [TRACE.json]...",
	.help = "shows what limits a run, as a page or as JSON",
	.text = "RUN.json is written by weir run --stats-file RUN.json, TRACE.json by weir run --trace "
		"TRACE.json\n"
		"of the same run. The page is one file that any browser opens, without a network.\n"
		"weir report RUN.json [TRACE.json] RUN.json [TRACE.json] ...: of runs that were joined by\n"
		"remote connections, what is known of these, and, with their traces, the latency of paths.\n",
	.options = CLI_JSON | CLI_OUTPUT | CLI_MAX_FILE,
	.run = run_report,
};
