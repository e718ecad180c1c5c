/* The page of `weir report`: what it is made of. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdio.h>

#include "cli/findings.h"
#include "cli/slowest.h"

struct cli_options;

/* A file that was read. */
struct cli_input {
	const char *path;
	char *text; /* ends with a NUL after its length; owned */
	size_t length;
};
/* Bytes that are read by default. A trace has 100 to 200 per event. */
#define CLI_RUN_MOST   ((size_t)256 << 20)
#define CLI_TRACE_MOST ((size_t)4 << 30)
/* report.c: both return an exit code; the second prints the fault, empty if memory ran out. */
int cli_input_read(struct cli_input *file, const char *path, const struct cli_options *options, size_t most);
int cli_input_refuse(const struct cli_input *file, const char *fault);
/* joined.c: whether the arguments are of several runs; the report of these. */
bool cli_joined_given(const struct cli_options *options);
int cli_joined_run(const struct cli_options *options);

/*
 * page.c. Text is written so that it stays JSON, and that no part of it can end the element of the page that
 * it is in, or move the cursor of a terminal: '<' and what weir_text_escape escapes are written as \uXXXX.
 */
void cli_page_json(FILE *to, const char *text, size_t length);
void cli_page_string(FILE *to, const char *text); /* a string of JSON, with its quotes */
void cli_page_findings(FILE *to, const struct cli_findings *findings, const struct cli_recorded *recorded);
/* frames may be NULL: without a trace. Errors: ferror(to). */
void cli_page_write(FILE *to, const char *run, size_t length, const struct cli_recorded *recorded,
		    const struct cli_findings *findings, const struct cli_frames_slowest *frames);

#endif
