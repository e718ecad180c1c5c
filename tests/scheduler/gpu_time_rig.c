/* The observer of the tests of GPU time (gpu_time_rig.h). */
#include "gpu_time_rig.h"
#include "tests/calls.h"

#include <stdio.h>
#include <string.h>

struct seen seen;

static weir_status observer_open(const struct wr_trace_options *options, void **self)
{
	(void)options;
	memset(&seen, 0, sizeof seen);
	*self = &seen;
	return WEIR_OK;
}

static void see_entity(void *self, uint32_t entity, const char *name)
{
	(void)self;
	if (entity < ENTITIES)
		snprintf(seen.names[entity], sizeof seen.names[entity], "%s", name);
}

static void see_begin(void *self, int64_t at, unsigned workers)
{
	(void)self;
	(void)at;
	(void)workers;
	seen.ended = false;
}

static void see_end(void *self, int64_t at, unsigned workers)
{
	(void)self;
	(void)at;
	(void)workers;
	seen.ended = true;
}

static void see_ready(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	(void)self;
	(void)lane;
	seen.ready_at[entity] = at;
}

static void see_tick(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)lane;
	(void)entity;
	(void)tick;
	seen.submitted_at = at;
}

static void see_tick_end(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)lane;
	(void)tick;
	seen.submit[entity] = at - seen.submitted_at;
}

static void see_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		     const char *stream, uint32_t queue, int64_t begin, int64_t end,
		     enum wr_trace_source source)
{
	(void)self;
	(void)lane;
	(void)queue;
	seen.late += seen.ended || end > at || begin > end || source != WR_TRACE_TIMERS;
	assert_true(seen.count < SPANS);
	seen.spans[seen.count++] = (struct seen_span){entity, tick, stream, begin, end};
}

static void see_blocked(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick, int64_t spent)
{
	(void)self;
	(void)at;
	(void)lane;
	(void)entity;
	(void)tick;
	seen.blocked += spent;
}

static void see_complete(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)at;
	(void)lane;
	seen.completed[entity]++;
	seen.late += !seen.count || seen.spans[seen.count - 1].entity != entity ||
		     seen.spans[seen.count - 1].tick != tick;
}

const struct wr_observer observer = {
	.name = "test",
	.open = observer_open,
	.entity = see_entity,
	.run_begin = see_begin,
	.run_end = see_end,
	.ready = see_ready,
	.tick_begin = see_tick,
	.tick_end = see_tick_end,
	.device_work = see_work,
	.blocked = see_blocked,
	.complete = see_complete,
};

uint32_t entity_number(const char *name)
{
	uint32_t i = 0;

	while (i < ENTITIES && strcmp(seen.names[i], name))
		i++;
	assert_true(i < ENTITIES);
	return i;
}

size_t span_count(const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < seen.count; i++)
		count += seen.spans[i].entity == entity_number(name);
	return count;
}

const struct seen_span *span_of(const char *name, size_t n)
{
	for (size_t i = 0; i < seen.count; i++)
		if (seen.spans[i].entity == entity_number(name) && !n--)
			return &seen.spans[i];
	fail_msg("%s has too few spans", name);
	return NULL;
}

int64_t length_of(const struct seen_span *span)
{
	return span->end - span->begin;
}

/* --- a run --- */

struct rig *observed(const char *text, int gpu_time)
{
	struct rig *rig = rig_of(text);

	rig->options.gpu_time = gpu_time;
	rig_with_knobs(rig, NULL, (struct wr_sim_knobs){0});
	assert_int_equal(rig_observe(rig, &observer), WEIR_OK);
	return rig;
}

void run_and_destroy(struct rig *rig)
{
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_int_equal(seen.late, 0);
}

weir_status kernel(weir_context *context, int64_t ns)
{
	return rig_emit_sum(context, 0, current_stream(context), 0, ns);
}

weir_status one_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	return kernel(context, 1 * MS);
}
