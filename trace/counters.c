/* The conservation of messages (E5). Called when there are no writers left, so that relaxed loads read the
 * final counts. */
#include "trace/trace.h"

bool wr_counts_conserved(const struct wr_queue_counters *counters, uint64_t queued)
{
	uint64_t in = wr_read(&counters->pushed);
	uint64_t out = wr_read(&counters->delivered) + wr_read(&counters->dropped) +
		       wr_read(&counters->closed) + wr_read(&counters->taken_back) +
		       wr_read(&counters->abandoned);

	return in == out + queued;
}
