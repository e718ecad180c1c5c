/* weir report: what a run's statistics and its trace show, as a page or as JSON. */
#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "cli/cli.h"

struct file {
	const char *path;
	char *text; /* ends with a NUL after its length */
	size_t length;
};

/* Returns false with errno. */
static bool fill_file(struct file *file, FILE *from)
{
	size_t room = 0;

	do {
		char *grown;

		room = room ? 2 * room : 64 << 10;
		grown = realloc(file->text, room);
		if (!grown)
			return false;
		file->text = grown;
		file->length += fread(file->text + file->length, 1, room - 1 - file->length, from);
	} while (file->length == room - 1);
	file->text[file->length] = '\0';
	return !ferror(from);
}

static int read_file(struct file *file, const char *path)
{
	bool standard = !strcmp(path, "-"), filled;
	FILE *from;

	*file = (struct file){.path = standard ? "<stdin>" : path};
	errno = 0;
	from = standard ? stdin : fopen(path, "rbe");
	filled = from && fill_file(file, from);
	if (!filled)
		cli_say("%s: cannot be read: %s", file->path, strerror(errno));
	if (from && !standard)
		fclose(from);
	return filled ? CLI_OK : CLI_FAILED;
}

struct report {
	struct file run, trace;
	struct cli_recorded recorded;
	struct cli_findings findings;
	struct cli_frames_slowest frames;
};

static int read_run(struct report *report, const char *path)
{
	char fault[512];
	int64_t ticks = 0;
	int code = read_file(&report->run, path);

	if (code)
		return code;
	if (!cli_recorded_read(&report->recorded, report->run.text, report->run.length, fault)) {
		cli_say("%s: %s", report->run.path, fault);
		return CLI_REFUSED;
	}
	for (size_t i = 0; i < report->recorded.entities.count; i++)
		ticks += cli_recorded_entity(&report->recorded, i)->ticks > 0;
	if (!ticks || !report->recorded.duration) {
		cli_say("%s: the run had no tick, so there is nothing to report; weir run --explain-after 1s "
			"says why "
			"nothing ran",
			report->run.path);
		return CLI_REFUSED;
	}
	if (cli_recorded_lacks_causes(&report->recorded))
		cli_say("%s: warning: waits without a cause, as another version of weir wrote them: what "
			"they were "
			"for is unknown here; let the run write it again",
			report->run.path);
	cli_findings_make(&report->findings, &report->recorded);
	return CLI_OK;
}

static int read_trace(struct report *report, const char *path)
{
	char fault[512];
	int code = read_file(&report->trace, path);

	if (code)
		return code;
	if (cli_slowest_read(&report->frames, &report->recorded, report->trace.text, report->trace.length,
			     fault))
		return CLI_OK;
	cli_say("%s: %s", report->trace.path, fault);
	return CLI_REFUSED;
}

/* --- the output --- */

/* Returns NULL, or why it is not written. */
static const char *write_text(const char *path, const char *text, size_t length)
{
	if (strcmp(path, "-"))
		return cli_write_file(path, text, length);
	return fwrite(text, 1, length, stdout) == length && !fflush(stdout) ? NULL : strerror(errno);
}

/* The page is made in memory: it is not much longer than what was read. */
static int write_page(const struct report *report, const char *path)
{
	const char *why;
	char *text = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&text, &length);
	bool made = to;

	if (to) {
		cli_page_write(to, report->run.text, report->run.length, &report->recorded, &report->findings,
			       report->trace.path ? &report->frames : NULL);
		made = !ferror(to);
		made &= !fclose(to);
	}
	why = made ? write_text(path, text, length) : strerror(ENOMEM);
	if (why)
		cli_say("%s: the page cannot be written: %s", path, why);
	free(text);
	return why ? CLI_FAILED : CLI_OK;
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
	int code = read_run(report, options->argument);

	if (!code && options->second)
		code = read_trace(report, options->second);
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
	.argument = "RUN.json [TRACE.json]",
	.help = "shows what limits a run, as a page or as JSON",
	.text = "RUN.json is written by weir run --stats-file RUN.json, TRACE.json by weir run --trace "
		"TRACE.json\n"
		"of the same run. The page is one file that any browser opens, without a network.\n",
	.options = CLI_JSON | CLI_OUTPUT,
	.run = run_report,
};
