/* The page of `weir report`: what it is made of. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdio.h>

#include "cli/findings.h"
#include "cli/slowest.h"

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
