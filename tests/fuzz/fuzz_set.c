/*
 * libFuzzer: any text as the argument of --set, on a graph with every type of parameter. Nothing may crash
 * or leak; a rejected text has a reason of one printable line, and an accepted one can be checked and
 * printed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shown.h"
#include "weir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char graph[] =
	"{\"weir\":1,\"entities\":[{\"name\":\"read\",\"operator\":\"png_read\",\"parameters\":{\"path\":"
	"\"x\"}},"
	"{\"name\":\"upload\",\"operator\":\"upload\"},{\"name\":\"blur\",\"operator\":\"blur\"},"
	"{\"name\":\"delay\",\"operator\":\"delay\"},{\"name\":\"ping\",\"operator\":\"ping\"},"
	"{\"name\":\"print\",\"operator\":\"print\"}],\"connections\":[[\"read.out\",\"upload.in\"],"
	"[\"upload.out\",\"blur.in\"],[\"ping.out\",\"delay.in\"],[\"delay.out\",\"print.in\"]]}";

static void hear(const weir_diagnostic *report, void *arg)
{
	(void)arg;
	if (!shown(report->text, false) || !shown(report->pointer, false))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	weir_description *description = NULL;
	char *assignment = malloc(size + 1), *text = NULL;

	if (!assignment || weir_description_parse(graph, sizeof graph - 1, NULL, NULL, &description))
		abort();
	memcpy(assignment, data, size);
	assignment[size] = 0;
	if (weir_description_set(description, assignment)) {
		if (!weir_last_error()[0] || !shown(weir_last_error(), false))
			abort();
	} else {
		weir_description_check(description, NULL, hear, NULL);
		if (!weir_description_print(description, NULL, WEIR_FORMAT_TEXT, &text) && !shown(text, true))
			abort();
		weir_text_free(text);
	}
	weir_description_destroy(description);
	free(assignment);
	return 0;
}
