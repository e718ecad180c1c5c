/*
 * libFuzzer: any bytes as the record of a run, which `weir report` reads. Nothing may crash or leak; what is
 * refused has a reason of one line, and what is read has indices that are in its lists.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/recorded.h"
#include "shown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_record(const struct cli_recorded *run)
{
	for (size_t i = 0; i < run->entities.count; i++) {
		const struct cli_entity *entity = cli_recorded_entity(run, i);
		const struct cli_use *uses = entity->streams.items;

		for (size_t k = 0; k < entity->streams.count; k++)
			if (!cli_recorded_sharers(run, uses[k].stream))
				abort();
	}
	if ((run->main_at != CLI_NO_ENTITY && run->main_at >= run->entities.count) ||
	    (run->cause_at != CLI_NO_ENTITY && run->cause_at >= run->entities.count))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char fault[512], *text = malloc(size + 1);
	struct cli_recorded run;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (cli_recorded_read(&run, text, size, fault))
		use_record(&run);
	else if (*fault && !shown(fault, false))
		abort();
	cli_recorded_finish(&run);
	free(text);
	return 0;
}
