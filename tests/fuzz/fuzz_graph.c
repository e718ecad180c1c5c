/*
 * libFuzzer: any bytes as a graph. Nothing may crash or leak; an accepted graph, printed and read again,
 * prints the same (F81-F87). Built by clang only; the seeds are tests/graphs/bad.
 */
#include <stdlib.h>
#include <string.h>

#include "shown.h"
#include "weir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(const weir_diagnostic *report, void *arg)
{
	if (!report->text || !report->pointer || !shown(report->text, false) ||
	    !shown(report->pointer, false))
		abort(); /* one line each, without terminal control characters */
	++*(int *)arg;
}

static char *printed(const char *json, size_t length)
{
	weir_description *description = NULL;
	char *text = NULL;
	int reports = 0;

	if (!weir_description_parse(json, length, count, &reports, &description)) {
		if (weir_description_check(description, NULL, count, &reports) && !reports)
			abort(); /* rejected without a report */
		for (int form = WEIR_FORMAT_TEXT; form <= WEIR_FORMAT_DOT; form++, text = NULL)
			if (!weir_description_print(description, NULL, (weir_format)form, &text)) {
				if (!shown(text, true))
					abort();
				weir_text_free(text);
			}
		(void)weir_description_print(description, NULL, WEIR_FORMAT_JSON, &text);
	} else if (!reports || !shown(weir_last_error(), false)) {
		abort();
	}
	weir_description_destroy(description);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *once = printed((const char *)data, size), *twice;

	if (!once)
		return 0;
	twice = printed(once, strlen(once));
	if (!twice || strcmp(once, twice))
		abort(); /* printing is not a fixpoint */
	weir_text_free(once);
	weir_text_free(twice);
	return 0;
}
