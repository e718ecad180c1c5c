/* The file of --trace, which the library writes. */
#include <inttypes.h>

#include "cli/cli.h"

void cli_trace_write(struct cli_output *output, weir_scheduler *scheduler)
{
	uint64_t dropped = 0;
	weir_status status;

	if (!output->path)
		return;
	status = weir_scheduler_write_trace(scheduler, output->path, &dropped);
	if (status)
		cli_say_error(status, output->path);
	else if (dropped)
		cli_say("trace '%s': the %" PRIu64 " oldest records were dropped; --trace-events keeps more",
			output->path, dropped);
	output->path = NULL;
}
