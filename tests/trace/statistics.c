/* What the observer makes of events with given times: each number by hand. */
#include "trace/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "test.h"

static const char in[] = "in", out[] = "out", boolean[] = "boolean", few[] = "too few messages",
		  room[] = "room";
static const struct wr_observer *const see = &wr_statistics;

static struct wr_statistics *make(uint64_t skip)
{
	const struct wr_trace_options options = {
		.workers = 2, .observe = WEIR_OBSERVE_STATISTICS, .entities = 2, .queues = 1, .skip = skip};
	void *self = NULL;

	assert_int_equal(see->open(&options, &self), WEIR_OK);
	assert_non_null(self);
	see->queue(self, 0, 0, 1, "a.out", "b.in", 2);
	see->run_begin(self, 1000, 2);
	return self;
}

static void tick(struct wr_statistics *self, uint64_t number, int64_t ready, int64_t begin, int64_t end)
{
	see->ready(self, ready, 0, 1);
	see->tick_begin(self, begin, 0, 1, number);
	see->tick_end(self, end, 0, 1, number);
}

static int64_t sum_of(struct wr_histogram *histogram)
{
	return wr_histogram_summary(histogram).sum_ns;
}

static struct wr_wait_times *wait_for(struct wr_statistics *self, const char *of, const char *why)
{
	struct wr_wait_times *wait = wr_read(&self->entities[1].waits);

	while (wait && (wait->what.of != of || wait->what.why != why))
		wait = wr_read(&wait->next);
	assert_non_null(wait);
	return wait;
}

static void nothing_is_collected_without_the_bit(void **state)
{
	const struct wr_trace_options options = {.workers = 1, .observe = WEIR_OBSERVE_TRACE};
	void *self = NULL;

	(void)state;
	assert_int_equal(see->open(&options, &self), WEIR_OK);
	assert_null(self);
}

static void a_wait_lasts_from_the_park_to_the_poke_and_then_a_worker_is_waited_for(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1400, 1, 1);
	tick(self, 0, 1450, 1500, 1580);
	assert_int_equal(sum_of(&wait_for(self, in, few)->time), 300);
	assert_int_equal(sum_of(&self->entities[1].waited), 300);
	assert_int_equal(sum_of(&self->entities[1].queued), 100);
	assert_int_equal(sum_of(&self->entities[1].submit), 80);
	see->close(self);
}

static void a_poke_that_changes_nothing_ends_no_wait(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1200, 1, 1);
	see->wait(self, 1210, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1300, 1, 1);
	tick(self, 0, 1310, 1320, 1330);
	assert_int_equal(wr_histogram_summary(&wait_for(self, in, few)->time).count, 1);
	assert_int_equal(sum_of(&wait_for(self, in, few)->time), 200);
	see->close(self);
}

static void a_wait_is_split_where_another_condition_is_the_unmet_one(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1200, 1, 1);
	see->wait(self, 1210, 0, 1, WEIR_CAUSE_ROOM, 0, out, room);
	see->poke(self, 1300, 1, 1);
	tick(self, 0, 1310, 1320, 1330);
	assert_int_equal(sum_of(&wait_for(self, in, few)->time), 110);
	assert_int_equal(sum_of(&wait_for(self, out, room)->time), 90);
	see->close(self);
}

/* Reads what entity 1 waited for this, on the clock of its last event. */
static int64_t waited(struct wr_statistics *self, struct wr_wait_times *wait, int64_t *open)
{
	struct wr_histogram all = {0};
	int64_t sum;

	self->simulated = true;
	*open = wr_statistics_waited(self, 1, wait, &all);
	sum = sum_of(&all);
	wr_histogram_finish(&all);
	return sum;
}

static void xb61_a_wait_that_has_not_ended_counts_until_now(void **state)
{
	struct wr_statistics *self = make(0);
	int64_t open;

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1400, 1, 1);
	tick(self, 0, 1450, 1500, 1580);
	see->wait(self, 1600, 0, 1, WEIR_CAUSE_ROOM, 0, out, room);
	see->sleep_begin(self, 4600, 0);
	assert_int_equal(waited(self, wait_for(self, out, room), &open), 3000);
	assert_int_equal(open, 3000);
	assert_int_equal(waited(self, wait_for(self, in, few), &open), 300);
	assert_int_equal(open, 0);
	assert_int_equal(waited(self, NULL, &open), 3300);
	assert_int_equal(open, 3000);
	see->close(self);
}

/* Its owner lost its core in the middle: it may have counted the wait already. */
static void xb61_a_wait_that_is_being_changed_counts_once(void **state)
{
	struct wr_statistics *self = make(0);
	int64_t open;

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_ROOM, 0, out, room);
	see->sleep_begin(self, 4100, 0);
	wr_histogram_add(&self->entities[1].waited, 3000);
	wr_note(&self->entities[1].wait_changes, wr_read(&self->entities[1].wait_changes) + 1);
	assert_int_equal(waited(self, NULL, &open), 3000);
	assert_int_equal(open, 0);
	see->close(self);
}

/* A reader that began before the change reads again, though the change has ended. */
static void xb61_each_change_of_a_wait_is_seen_behind_it(void **state)
{
	struct wr_statistics *self = make(0);
	uint64_t before = wr_read(&self->entities[1].wait_changes);

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	assert_int_equal(wr_read(&self->entities[1].wait_changes) % 2, 0);
	assert_true(wr_read(&self->entities[1].wait_changes) > before);
	see->close(self);
}

static void xb61_the_end_of_the_run_ends_the_wait_that_stands(void **state)
{
	struct wr_statistics *self = make(0);
	int64_t open;

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_TOLD, UINT32_MAX, boolean, few);
	see->run_end(self, 9100, 2);
	assert_int_equal(sum_of(&wait_for(self, boolean, few)->time), 8000);
	assert_int_equal(sum_of(&self->entities[1].waited), 8000);
	assert_int_equal(waited(self, wait_for(self, boolean, few), &open), 8000);
	assert_int_equal(open, 8000);
	see->run_begin(self, 10000, 2);
	assert_int_equal(waited(self, wait_for(self, boolean, few), &open), 0);
	assert_int_equal(open, 0);
	see->close(self);
}

static void xb61_an_entity_that_is_done_has_waited_until_its_last_poke(void **state)
{
	struct wr_statistics *self = make(0);
	int64_t open;

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1700, 1, 1);
	see->entity_done(self, 1900, 0, 1);
	see->run_end(self, 9100, 2);
	assert_int_equal(waited(self, NULL, &open), 600);
	assert_int_equal(open, 0);
	see->close(self);
}

static void xb61_a_wait_that_is_left_out_is_not_open(void **state)
{
	struct wr_statistics *self = make(1);
	int64_t open;

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->sleep_begin(self, 4600, 0);
	assert_int_equal(waited(self, NULL, &open), 0);
	assert_int_equal(open, 0);
	see->run_end(self, 9100, 2);
	assert_int_equal(waited(self, NULL, &open), 0);
	see->close(self);
}

static void xb62_work_counts_on_its_stream_and_waits_at_their_lock(void **state)
{
	struct wr_statistics *self = make(1);
	struct wr_entity_statistics *entity = &self->entities[1];
	struct wr_stream_use *use;

	(void)state;
	see->uses(self, 1, 7, 0);
	see->uses(self, 1, 9, 1);
	see->uses(self, 1, 7, 0);
	see->device_work(self, 3000, 0, 1, 0, "s1", 7, 1200, 1900, WR_TRACE_POLLER);
	see->device_work(self, 3000, 0, 1, 1, "s1", 7, 1200, 1900, WR_TRACE_POLLER);
	see->device_work(self, 3000, 0, 1, 2, "s1", 7, 2000, 2030, WR_TRACE_TIMERS);
	see->device_work(self, 3000, 0, 1, 3, "s1", 7, 2100, 2140, WR_TRACE_TIMERS);
	use = wr_read(&entity->streams);
	assert_int_equal(use->queue, 9);
	assert_int_equal(use->device, 1);
	assert_int_equal(wr_read(&use->count), 0);
	use = wr_read(&use->next);
	assert_null(wr_read(&use->next));
	assert_int_equal(use->queue, 7);
	assert_int_equal(wr_read(&use->count), 2);
	assert_int_equal(wr_read(&use->time), 70);
	see->lock(self, 3000, 0, 1, "GIL", 500); /* in the first tick, which is left out */
	assert_null(wr_read(&entity->lock));
	tick(self, 0, 4000, 4000, 4100);
	see->lock(self, 4200, 0, 1, "GIL", 20);
	see->lock(self, 4200, 0, 1, "GIL", 30);
	assert_string_equal(wr_read(&entity->lock), "GIL");
	assert_int_equal(wr_read(&entity->lock_waits), 2);
	assert_int_equal(wr_read(&entity->lock_time), 50);
	see->close(self);
}

static void xb62_a_stream_is_used_in_the_runs_that_took_it(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_stream_use *first, *second;

	(void)state;
	see->uses(self, 1, 7, 0);
	see->run_end(self, 2000, 2);
	first = wr_read(&self->entities[1].streams);
	assert_true(wr_statistics_used(self, first));
	see->uses(self, 1, 8, 0);
	see->run_begin(self, 3000, 2);
	second = wr_read(&self->entities[1].streams);
	assert_true(second->queue == 8 && wr_statistics_used(self, second));
	assert_false(wr_statistics_used(self, first));
	see->uses(self, 1, 7, 0);
	see->run_end(self, 4000, 2);
	assert_true(wr_statistics_used(self, first) && wr_statistics_used(self, second));
	see->close(self);
}

static void waits_for_memory_are_told_apart_by_pool(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_wait_times *wait;

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MEMORY, 0, "memory_available", few);
	/* the first pool has some, the second has not */
	see->wait(self, 1150, 0, 1, WEIR_CAUSE_MEMORY, 1, "memory_available", few);
	see->wait(self, 1180, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->poke(self, 1200, 0, 1);
	tick(self, 0, 1200, 1210, 1220);
	wait = wr_read(&self->entities[1].waits);
	assert_int_equal(wait->what.cause, WEIR_CAUSE_MESSAGES);
	assert_int_equal(sum_of(&wait->time), 20);
	wait = wr_read(&wait->next);
	assert_int_equal(wait->what.on, 1);
	assert_int_equal(sum_of(&wait->time), 30);
	wait = wr_read(&wait->next);
	assert_int_equal(wait->what.on, 0);
	assert_int_equal(sum_of(&wait->time), 50);
	see->close(self);
}

static void a_tick_that_follows_at_once_is_ready_at_its_review(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->poke(self, 1010, 0, 1);
	tick(self, 0, 1020, 1030, 1040);
	tick(self, 1, 1100, 1103, 1110);
	assert_int_equal(sum_of(&self->entities[1].queued), 20 + 3);
	see->close(self);
}

static void the_first_ticks_are_left_out_with_their_waits(void **state)
{
	struct wr_statistics *self = make(1);

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	tick(self, 0, 1200, 1210, 1220);
	see->wait(self, 1300, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	tick(self, 1, 1340, 1350, 1357);
	assert_int_equal(wr_histogram_summary(&self->entities[1].submit).count, 1);
	assert_int_equal(sum_of(&self->entities[1].submit), 7);
	assert_int_equal(sum_of(&self->entities[1].waited), 40);
	see->close(self);
}

static void depth_is_weighted_by_time(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_depth depth;

	(void)state;
	see->deliver(self, 1100, 0, 0, 0); /* 1 from 1100, 2 from 1300 to 1600, 1 to 1800 */
	see->deliver(self, 1300, 0, 0, 1);
	see->take(self, 1600, 1, 0, 0);
	see->take(self, 1800, 1, 0, 1);
	see->run_end(self, 2000, 2);
	depth = wr_statistics_depth(self, 0);
	assert_true(depth.mean == (200 + 2 * 300 + 200) / 1000.0);
	assert_int_equal(depth.most, 2);
	assert_int_equal(depth.full_time, 300);
	see->close(self);
}

static void a_queue_that_drops_stays_full(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_depth depth;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		see->deliver(self, 1100 + 10 * (int64_t)i, 0, 0, i);
	for (uint64_t i = 0; i < 3; i++)
		see->drop(self, 1140, 0, 0, i);
	see->run_end(self, 2000, 2);
	depth = wr_statistics_depth(self, 0);
	assert_int_equal(depth.most, 2);
	assert_int_equal(depth.full_time, 2000 - 1110);
	see->close(self);
}

/* What the receiver drops has left it, as what it takes has (C12). */
static void a_queue_is_full_no_more_when_its_receiver_drops(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_depth depth;

	(void)state;
	see->deliver(self, 1100, 0, 0, 0);
	see->deliver(self, 1200, 0, 0, 1);
	see->unmatched(self, 1250, 1, 0, 0);
	see->deliver(self, 1400, 0, 0, 2);
	see->take(self, 1430, 1, 0, 1);
	see->unmatched(self, 1500, 1, 0, 2);
	see->run_end(self, 2000, 2);
	depth = wr_statistics_depth(self, 0);
	assert_true(depth.mean == (100 + 2 * 50 + 150 + 2 * 30 + 70) / 1000.0);
	assert_int_equal(depth.most, 2);
	assert_int_equal(depth.full_time, 50 + 30);
	see->close(self);
}

static void a_queue_holds_nothing_once_its_receiver_is_done(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->deliver(self, 1100, 0, 0, 0);
	see->entity_done(self, 1300, 1, 1);
	see->deliver(self, 1400, 0, 0, 1);
	see->run_end(self, 2000, 2);
	assert_true(wr_statistics_depth(self, 0).mean == 0.2);
	see->close(self);
}

static void a_signal_lasts_from_arming_to_firing(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->arm(self, 1100, 0, 1, 7, WR_TRACE_FLAG);
	see->fire(self, 1170, WR_LANE_OUTSIDE, 1, 7);
	see->wait(self, 1180, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	see->arm(self, 1190, 0, 1, 8, WR_TRACE_FLAG); /* not fired */
	see->fire(self, 1195, WR_LANE_OUTSIDE, 1, 6); /* an older one, late */
	see->ready(self, 1200, 0, 1);
	assert_int_equal(sum_of(wr_read(&self->entities[1].signals[WR_TRACE_FLAG])), 70);
	assert_int_equal(wr_histogram_summary(wr_read(&self->entities[1].signals[WR_TRACE_FLAG])).count, 1);
	assert_null(wr_read(&self->entities[1].signals[WR_TRACE_CALLBACK]));
	see->close(self);
}

static void a_signal_that_fires_before_its_arming_is_told_took_no_time(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_histogram *latency;

	(void)state;
	see->fire(self, 1170, WR_LANE_OUTSIDE, 1, 7);
	see->arm(self, 1180, 0, 1, 7, WR_TRACE_CALLBACK);
	see->arm(self, 1190, 0, 1, 8, WR_TRACE_CALLBACK);
	see->fire(self, 1200, WR_LANE_OUTSIDE, 1, 8);
	see->fire(self, 1210, WR_LANE_OUTSIDE, 1, 5); /* told after it */
	see->wait(self, 1220, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	latency = wr_read(&self->entities[1].signals[WR_TRACE_CALLBACK]);
	assert_int_equal(wr_read(&latency->count), 2);
	assert_int_equal(sum_of(latency), 10);
	see->close(self);
}

/* From 1010 to 1900: it ends with the device work. */
static void assert_the_path_took_890(const struct wr_prefix *prefix, struct wr_path *path, void *arg)
{
	assert_int_equal(prefix->entity, 1);
	assert_int_equal(wr_read(&path->count), 1);
	assert_int_equal(sum_of(&path->latency), 890);
	++*(int *)arg;
}

static void device_work_is_from_the_first_stream_to_the_last(void **state)
{
	struct wr_statistics *self = make(0);
	int paths = 0;

	(void)state;
	see->tick_begin(self, 1010, 0, 0, 0);
	see->deliver(self, 1020, 0, 0, 0);
	see->poke(self, 1050, 0, 1);
	see->take(self, 1055, 0, 0, 0);
	tick(self, 0, 1060, 1070, 1080);
	see->computed(self, 1, 0, true);
	see->device_work(self, 3000, 0, 1, 0, "s1", 0, 1200, 1900, WR_TRACE_TIMERS);
	see->device_work(self, 3000, 0, 1, 0, "s2", 0, 1150, 1800, WR_TRACE_TIMERS);
	see->complete(self, 3000, 0, 1, 0);
	assert_int_equal(sum_of(&self->entities[1].gpu_span), 750);
	assert_int_equal(sum_of(&self->entities[1].done_latency), 850);
	wr_paths_each(&self->paths, assert_the_path_took_890, &paths);
	assert_int_equal(paths, 1);
	see->close(self);
}

static void device_tick(struct wr_statistics *self, uint64_t tick, int64_t length,
			enum wr_trace_source source)
{
	see->device_work(self, 2000, 0, 1, tick, "b", 0, 1200, 1200 + length, source);
	see->complete(self, 2000, 0, 1, tick);
}

static void timers_replace_what_the_poller_saw(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_entity_statistics *entity = &self->entities[1];

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		tick(self, i, 1100, 1110, 1120);
	device_tick(self, 0, 50, WR_TRACE_POLLER);
	assert_int_equal(sum_of(&entity->gpu_span), 50);
	assert_int_equal(wr_read(&entity->source), 1 + WR_TRACE_POLLER);
	device_tick(self, 1, 30, WR_TRACE_TIMERS);
	device_tick(self, 2, 50, WR_TRACE_POLLER);
	assert_int_equal(sum_of(&entity->gpu_span), 30);
	assert_int_equal(wr_read(&entity->done_latency.count), 1);
	assert_int_equal(wr_read(&entity->source), 1 + WR_TRACE_TIMERS);
	see->close(self);
}

static void the_use_of_the_processor_is_measured_in_some_ticks(void **state)
{
	struct wr_statistics *self = make(0);
	struct wr_entity_statistics *entity = &self->entities[1];

	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		tick(self, i, 1100, 1110, 1120);
	assert_int_equal(wr_read(&entity->cpu_ticks), 3); /* 0, 16, 32 */
	assert_int_equal(wr_read(&entity->cpu_of), 30);
	tick(self, 40, 1100, 1110, 1110 + WR_USE_LONG);
	tick(self, 41, 50000, 50010, 50020);
	tick(self, 42, 50000, 50010, 50020);
	assert_int_equal(wr_read(&entity->cpu_ticks), 4); /* 41, after a long one */
	self->simulated = true;
	tick(self, 48, 1100, 1110, 1120);
	assert_int_equal(wr_read(&entity->cpu_ticks), 4);
	see->close(self);
}

static void a_worker_is_busy_or_asleep(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	tick(self, 0, 1010, 1020, 1050);
	see->sleep_begin(self, 1100, 0);
	see->sleep_end(self, 1300, 0);
	see->sleep_begin(self, 1900, 0);
	see->steal(self, 1350, 1, 1);
	see->wake(self, 1290, WR_LANE_OUTSIDE, 0);
	see->run_end(self, 2000, 2);
	assert_int_equal(wr_read(&self->workers[0].busy), 30);
	assert_int_equal(wr_statistics_asleep(self, 0), 200 + 100);
	assert_int_equal(wr_read(&self->workers[1].steals), 1);
	assert_int_equal(wr_read(&self->workers[0].wakes), 1);
	see->close(self);
}

static void a_run_counts_anew(void **state)
{
	struct wr_statistics *self = make(0);

	(void)state;
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	tick(self, 0, 1200, 1210, 1220);
	see->deliver(self, 1100, 0, 0, 0);
	see->run_end(self, 2000, 2);
	see->run_begin(self, 5000, 1);
	assert_int_equal(wr_histogram_summary(&self->entities[1].submit).count, 0);
	assert_int_equal(wr_histogram_summary(&wait_for(self, in, few)->time).count, 0);
	assert_int_equal(wr_statistics_depth(self, 0).most, 0);
	self->simulated = true; /* else it is the time of the clock */
	assert_int_equal(wr_statistics_now(self), 5000);
	see->close(self);
}

static void f40_open_and_events_survive_any_failed_malloc(void **state)
{
	const struct wr_trace_options options = {
		.workers = 1, .observe = WEIR_OBSERVE_STATISTICS, .entities = 2, .queues = 1};
	struct wr_statistics *self;
	struct wr_trace *trace = NULL;

	(void)state;
	for (int64_t n = 0; !trace; n++) {
		wr_memory_fail_at(n, false);
		(void)wr_trace_open_with(&options, &see, 1, &trace);
		wr_memory_fail_at(-1, false);
	}
	wr_trace_close(trace);
	self = make(0);
	wr_memory_fail_at(0, true);
	see->wait(self, 1100, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	tick(self, 0, 1200, 1210, 1220);
	see->arm(self, 1230, 0, 1, 7, WR_TRACE_FLAG);
	see->fire(self, 1240, 0, 1, 7);
	see->wait(self, 1250, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	wr_memory_fail_at(-1, false);
	assert_int_equal(wr_histogram_summary(&self->entities[1].submit).count, 1);
	see->close(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_collected_without_the_bit),
		cmocka_unit_test(a_wait_lasts_from_the_park_to_the_poke_and_then_a_worker_is_waited_for),
		cmocka_unit_test(a_poke_that_changes_nothing_ends_no_wait),
		cmocka_unit_test(a_wait_is_split_where_another_condition_is_the_unmet_one),
		cmocka_unit_test(xb61_a_wait_that_has_not_ended_counts_until_now),
		cmocka_unit_test(xb61_a_wait_that_is_being_changed_counts_once),
		cmocka_unit_test(xb61_each_change_of_a_wait_is_seen_behind_it),
		cmocka_unit_test(xb61_the_end_of_the_run_ends_the_wait_that_stands),
		cmocka_unit_test(xb61_an_entity_that_is_done_has_waited_until_its_last_poke),
		cmocka_unit_test(xb61_a_wait_that_is_left_out_is_not_open),
		cmocka_unit_test(xb62_work_counts_on_its_stream_and_waits_at_their_lock),
		cmocka_unit_test(xb62_a_stream_is_used_in_the_runs_that_took_it),
		cmocka_unit_test(waits_for_memory_are_told_apart_by_pool),
		cmocka_unit_test(a_tick_that_follows_at_once_is_ready_at_its_review),
		cmocka_unit_test(the_first_ticks_are_left_out_with_their_waits),
		cmocka_unit_test(depth_is_weighted_by_time),
		cmocka_unit_test(a_queue_that_drops_stays_full),
		cmocka_unit_test(a_queue_is_full_no_more_when_its_receiver_drops),
		cmocka_unit_test(a_queue_holds_nothing_once_its_receiver_is_done),
		cmocka_unit_test(a_signal_lasts_from_arming_to_firing),
		cmocka_unit_test(a_signal_that_fires_before_its_arming_is_told_took_no_time),
		cmocka_unit_test(device_work_is_from_the_first_stream_to_the_last),
		cmocka_unit_test(timers_replace_what_the_poller_saw),
		cmocka_unit_test(the_use_of_the_processor_is_measured_in_some_ticks),
		cmocka_unit_test(a_worker_is_busy_or_asleep),
		cmocka_unit_test(a_run_counts_anew),
		cmocka_unit_test(f40_open_and_events_survive_any_failed_malloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
