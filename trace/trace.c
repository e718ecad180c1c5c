/* The list of open observers, and calling them. */
#include "trace/trace.h"

#include "base/clock.h"
#include "base/memory.h"

struct listener {
	const struct wr_observer *observer;
	void *self;
};

struct wr_trace {
	size_t count;
	struct listener listeners[];
};

static const struct wr_observer *const built_in[] = {&wr_nvtx, &wr_timeline, &wr_statistics,
						     &wr_compute_times};

weir_status wr_trace_open_with(const struct wr_trace_options *options,
			       const struct wr_observer *const *observers, size_t count,
			       struct wr_trace **out)
{
	struct wr_trace *trace = wr_alloc(1, sizeof *trace + count * sizeof trace->listeners[0]);
	weir_status status = trace ? WEIR_OK : WEIR_E_NOMEM;

	for (size_t i = 0; !status && i < count; i++) {
		void *self = NULL;

		status = observers[i]->open(options, &self);
		if (!status && self)
			trace->listeners[trace->count++] = (struct listener){observers[i], self};
	}
	if (status || !trace->count) {
		wr_trace_close(trace);
		return status;
	}
	*out = trace;
	return WEIR_OK;
}

weir_status wr_trace_open(const struct wr_trace_options *options, struct wr_trace **out)
{
	return wr_trace_open_with(options, built_in, sizeof built_in / sizeof built_in[0], out);
}

void *wr_trace_self(const struct wr_trace *trace, const struct wr_observer *observer)
{
	for (size_t i = 0; trace && i < trace->count; i++)
		if (trace->listeners[i].observer == observer)
			return trace->listeners[i].self;
	return NULL;
}

bool wr_trace_wants_device_work(const struct wr_trace *trace)
{
	bool wanted = false;

	for (size_t i = 0; trace && i < trace->count; i++)
		wanted |= trace->listeners[i].observer->device_work != NULL;
	return wanted;
}

void wr_trace_close(struct wr_trace *trace)
{
	if (!trace)
		return;
	while (trace->count) {
		struct listener *listener = &trace->listeners[--trace->count];

		if (listener->observer->close)
			listener->observer->close(listener->self);
	}
	wr_free(trace);
}

#define DECLARE(row, parameters, arguments)                                                                  \
	void wr_trace_call_##row(struct wr_trace *trace, WR_TRACE_LIST parameters)                           \
	{                                                                                                    \
		for (size_t i = 0; i < trace->count; i++) {                                                  \
			const struct listener *listener = &trace->listeners[i];                              \
                                                                                                             \
			if (listener->observer->row)                                                         \
				listener->observer->row(listener->self, WR_TRACE_LIST arguments);            \
		}                                                                                            \
	}
WR_TRACE_DECLARATIONS(DECLARE)

/* One time for all observers; none is read for a row that no observer has. */
#define HAPPEN(row, parameters, arguments)                                                                   \
	void wr_trace_call_##row(struct wr_trace *trace, WR_TRACE_LIST parameters)                           \
	{                                                                                                    \
		int64_t at = 0;                                                                              \
                                                                                                             \
		for (size_t i = 0; i < trace->count; i++) {                                                  \
			const struct listener *listener = &trace->listeners[i];                              \
                                                                                                             \
			if (!listener->observer->row)                                                        \
				continue;                                                                    \
			at = at ? at : wr_now();                                                             \
			listener->observer->row(listener->self, at, WR_TRACE_LIST arguments);                \
		}                                                                                            \
	}
WR_TRACE_EVENTS(HAPPEN)

/* Called when no writer is left, so that relaxed loads read the final counts (E5). */
bool wr_counts_conserved(const struct wr_queue_counters *counters, uint64_t queued)
{
	uint64_t in = wr_read(&counters->pushed);
	uint64_t out = wr_read(&counters->delivered) + wr_read(&counters->dropped) +
		       wr_read(&counters->closed) + wr_read(&counters->taken_back) +
		       wr_read(&counters->abandoned) + wr_read(&counters->unmatched);

	return in == out + queued;
}
