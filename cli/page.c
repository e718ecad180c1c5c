/*
 * Writes the page: cli/page/report.html, whose lines "@style", "@script", "@run", "@findings", "@loads" and
 * "@frames" are replaced by report.css, report.js and the data.
 */
#include <inttypes.h>
#include <string.h>

#include "base/words.h"
#include "cli/loads.h"
#include "cli/report.h"

extern const char wr_page_html[], wr_page_style[], wr_page_script[];

/* Outside of ASCII there are strings only, of characters that are right: the escapes are those of JSON. */
void cli_page_json(FILE *to, const char *text, size_t length)
{
	const char *end = text + length;
	char one[8];

	while (text < end) {
		size_t plain = 0;

		while (text + plain < end && (unsigned char)text[plain] < 0x7f && text[plain] != '<')
			plain++;
		fwrite(text, 1, plain, to);
		text += plain;
		if (text < end && *text == '<')
			fputs("\\u003c", to), text++;
		else if (text < end)
			fwrite(one, 1, wr_shown_step(one, &text), to);
	}
}

void cli_page_string(FILE *to, const char *text)
{
	char one[8];

	fputc('"', to);
	while (*text) {
		const char *from = text;
		size_t length = wr_shown_step(one, &text);

		if (*from == '"' || *from == '\\')
			fprintf(to, "\\%c", *from);
		else
			cli_page_json(to, one, length);
	}
	fputc('"', to);
}

static void put_member(FILE *to, const char *before, const char *key, const char *text)
{
	fprintf(to, "%s\"%s\": ", before, key);
	if (text)
		cli_page_string(to, text);
	else
		fputs("null", to);
}

void cli_page_findings(FILE *to, const struct cli_findings *findings, const struct cli_recorded *recorded)
{
	fputs("{\"findings\": [", to);
	for (size_t i = 0; i < findings->count; i++) {
		const struct cli_finding *finding = &findings->list[i];
		const struct cli_entity *entity = cli_recorded_entity(recorded, finding->entity);

		put_member(to, i ? ",\n  {" : "\n  {", "entity", entity ? entity->name : NULL);
		put_member(to, ", ", "cause", cli_cause_text(finding->cause));
		put_member(to, ", ", "of", finding->what);
		if (finding->cause == CLI_CAUSE_ENDING)
			fputs(", \"percent\": null", to);
		else
			fprintf(to, ", \"percent\": %d",
				finding->share < 1 ? (int)(100 * finding->share + 0.5) : 100);
		put_member(to, ", ", "set", finding->set);
		if (finding->to)
			fprintf(to, ", \"to\": %" PRId64, finding->to);
		else
			fputs(", \"to\": null", to);
		put_member(to, ",\n   ", "title", cli_cause_title(finding->cause));
		put_member(to, ",\n   ", "text", finding->text);
		fputc('}', to);
	}
	if (findings->count) {
		fputs("\n]}\n", to);
		return;
	}
	put_member(to, "],\n ", "title", findings->balanced ? "balanced" : "nothing stands out");
	put_member(to, ", ", "text", findings->none);
	fprintf(to, ", \"balanced\": %s}\n", findings->balanced ? "true" : "false");
}

/* What each entity was busy with, as shares of the run. */
static void put_loads(FILE *to, const struct cli_recorded *recorded)
{
	fputs("[", to);
	for (size_t i = 0; i < recorded->entities.count; i++) {
		fprintf(to, "%s{\"host\": %.4g, \"blockedShare\": %.4g, \"worker\": %.4g, \"device\": ",
			i ? ",\n " : "", cli_host_load(recorded, i), cli_blocked_load(recorded, i),
			cli_worker_share(recorded, i));
		if (cli_device_timed(cli_recorded_entity(recorded, i)))
			fprintf(to, "%.4g}", cli_device_load(recorded, i));
		else
			fputs("null}", to);
	}
	fputs("]", to);
}

struct data {
	const char *run;
	size_t length;
	const struct cli_recorded *recorded;
	const struct cli_findings *findings;
	const struct cli_frames_slowest *frames;
};

/* Returns false if the line is no place for data. */
static bool put_data(FILE *to, const char *line, size_t length, const struct data *data)
{
	struct cli_slice place = {line, length};

	if (cli_slice_is(place, "@style"))
		fputs(wr_page_style, to);
	else if (cli_slice_is(place, "@script"))
		fputs(wr_page_script, to);
	else if (cli_slice_is(place, "@run"))
		cli_page_json(to, data->run, data->length);
	else if (cli_slice_is(place, "@findings"))
		cli_page_findings(to, data->findings, data->recorded);
	else if (cli_slice_is(place, "@loads"))
		put_loads(to, data->recorded);
	else if (!cli_slice_is(place, "@frames"))
		return false;
	else if (data->frames)
		cli_slowest_print(to, data->frames);
	else
		fputs("null", to);
	return true;
}

void cli_page_write(FILE *to, const char *run, size_t length, const struct cli_recorded *recorded,
		    const struct cli_findings *findings, const struct cli_frames_slowest *frames)
{
	struct data data = {run, length, recorded, findings, frames};

	for (const char *line = wr_page_html; *line;) {
		size_t bytes = strcspn(line, "\n");

		if (!put_data(to, line, bytes, &data))
			fwrite(line, 1, bytes, to);
		fputc('\n', to);
		line += bytes + (line[bytes] == '\n');
	}
}
