/*
 * Ports with the policy `latest`: the newest finished message, again and again. Most graphs have a fast
 * entity `e`, which takes each message of `f` and shows what `s` sent last.
 */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "rig_inside.h"
#ifdef WR_SEAM
#include "tests/bugs/bug.h"
#endif

/* What an entity has sent: numbers from 0. */
static int64_t sent_by_f, sent_by_s;

static weir_status send_next(weir_context *context, int64_t *sent)
{
	return weir_context_emit(context, 0, rig_number(context, (*sent)++));
}

/*
 * `f` sends at least so many, and until `e` has shown the last of what `s` sends, however late that comes on
 * a busy machine; then one more. Past `least` it sends seldom.
 */
static struct {
	int64_t least;
	uint64_t of_s;
} wanted;

static weir_status until_shown(struct rig *rig, weir_context *context)
{
	weir_queue_counts counts = rig_queue(rig, "e.in2");
	bool shown = counts.pushed == wanted.of_s && counts.delivered + counts.dropped == wanted.of_s;

	if (sent_by_f >= wanted.least && !shown && weir_context_tick(context) % 16)
		return WEIR_OK;
	if (sent_by_f + 1 >= wanted.least && shown)
		weir_context_finish(context);
	return send_next(context, &sent_by_f);
}

static struct rig *rig_until_shown(const char *text, int64_t least, uint64_t of_s)
{
	struct rig *rig = rig_of(text);

	rig_on(rig, "f", until_shown);
	wanted.least = least;
	wanted.of_s = of_s;
	sent_by_f = 0;
	return rig;
}

/* Every tick has both; in2 never goes back, and shows the last one in the end (-1: any). */
static void check_pairs(struct rig *rig, uint64_t ticks, long last)
{
	const char *text = rig_text(rig, "e");
	long before = -1, first = -1, second = -1;
	uint64_t count = 0;
	int length;

	for (; sscanf(text, "%ld|%ld%n", &first, &second, &length) == 2; text += length, count++) {
		assert_int_equal(first, (long)count);
		assert_true(second >= before);
		before = second;
	}
	assert_string_equal(text, "");
	assert_int_equal(count, ticks);
	assert_true(last < 0 || before == last);
}

static void slow_beside_fast(void)
{
	struct rig *rig = rig_until_shown("f:call period=1ms -> e:end; "
					  "s:source ticks=4 period=7ms -> e.in2 policy=latest",
					  40, 4);
	weir_queue_counts counts;

	assert_int_equal(rig_run(rig), WEIR_OK);
	check_pairs(rig, (uint64_t)sent_by_f, 3);
	counts = rig_queue(rig, "e.in2");
	assert_int_equal(counts.pushed, 4);
	assert_int_equal(counts.delivered + counts.dropped + counts.closed, 4);
	assert_int_equal(rig_counts(rig, "e").received, 2 * sent_by_f);
	rig_destroy(rig);
}

static void c04_each_tick_receives_the_newest_message_again(void **state)
{
	(void)state;
	rig_everywhere(slow_beside_fast);
}

static void fast_beside_slow(void)
{
	struct rig *rig = rig_until_shown("f:call period=50ms -> e:end; "
					  "s:source ticks=40 period=1ms -> e.in2 policy=latest",
					  3, 40);
	weir_queue_counts counts;

	assert_int_equal(rig_run(rig), WEIR_OK);
	counts = rig_queue(rig, "e.in2");
	assert_int_equal(counts.pushed, 40);
	assert_true(counts.delivered >= 1 && counts.delivered <= (uint64_t)sent_by_f);
	assert_int_equal(counts.delivered + counts.dropped + counts.closed + counts.abandoned, 40);
	rig_destroy(rig);
}

static void c04_e05_a_latest_port_never_holds_its_sender_back(void **state)
{
	(void)state;
	rig_everywhere(fast_beside_slow);
}

/* What is shown is finished; `?` would be noted. */
static void device_beside_host(void)
{
	struct rig *rig = rig_until_shown("f:call period=1ms -> e:end; "
					  "s:source ticks=30 work=3ms period=3ms -> e.in2 policy=latest",
					  100, 30);

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_null(strchr(rig_text(rig, "e"), '?'));
	check_pairs(rig, (uint64_t)sent_by_f, 29);
	rig_destroy(rig);
}

static void c08_what_a_latest_port_shows_is_finished(void **state)
{
	(void)state;
	rig_everywhere(device_beside_host);
}

static void without_a_message(void)
{
	struct rig *rig =
		rig_of("f:source ticks=3 -> e:end; s:source ticks=1 emits=0 -> e.in2 policy=latest");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "e"), "");
	assert_true(rig_done(rig, "e"));
	rig_destroy(rig);
}

static void s05_a_latest_port_whose_sender_sent_nothing_ends_the_entity(void **state)
{
	(void)state;
	rig_everywhere(without_a_message);
}

/* The next one when `e` has ticked a few times with the one before. */
static weir_status send_when_shown(struct rig *rig, weir_context *context)
{
	if (rig_queue(rig, "e.in").delivered < (uint64_t)sent_by_s ||
	    rig_ticks(rig, "e") < 5 * (uint64_t)sent_by_s)
		return WEIR_OK;
	if (sent_by_s == 3)
		weir_context_finish(context);
	return send_next(context, &sent_by_s);
}

static void alone_and_paced(void)
{
	struct rig *rig = rig_of("s:call period=7ms -> e:end policy=latest period=1ms");
	weir_frames sink = {.size = sizeof sink};
	weir_queue_counts counts;

	rig_on(rig, "s", send_when_shown);
	sent_by_s = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	counts = rig_queue(rig, "e.in");
	assert_int_equal(counts.delivered, 4);
	assert_true(rig_ticks(rig, "e") > 15);
	assert_int_equal(weir_scheduler_frames(rig->scheduler, &sink), WEIR_OK);
	assert_int_equal(sink.frames, rig_ticks(rig, "e")); /* each shows one */
	assert_true(rig_done(rig, "e"));
	rig_destroy(rig);
}

static void s05_an_entity_with_latest_ports_alone_ends_after_the_last_message(void **state)
{
	(void)state;
	rig_everywhere(alone_and_paced);
}

/* --- the age of what is shown --- */

enum { SENT = 64 };

/* `s` sends a message every `period` that is finished `latency` after it was sent, however many there are. */
static struct aging {
	int64_t period, latency, pace, worst;
	uint64_t shown, before;
	struct job {
		struct wr_thread thread;
		weir_graph *graph;
		weir_fence fence;
	} jobs[SENT];
	_Atomic size_t sent;
} aging;

static void finish_later(void *arg)
{
	struct job *job = arg;

	wr_thread_sleep(aging.latency);
	assert_int_equal(weir_fence_complete(job->graph, job->fence, WEIR_OK, NULL), WEIR_OK);
}

static weir_status send(struct rig *rig, weir_context *context)
{
	size_t i = wr_read(&aging.sent);
	struct job *job = &aging.jobs[i];
	weir_message *message = rig_number(context, (int64_t)i);

	job->graph = rig->graph;
	HOLDS(rig, !weir_graph_create_fence(rig->graph, &job->fence));
	HOLDS(rig, !weir_context_emit_at(context, 0, message, job->fence));
	HOLDS(rig, !wr_thread_start(&job->thread, "job", finish_later, job));
	wr_store(&aging.sent, i + 1);
	if (i + 1 == SENT)
		weir_context_finish(context);
	return WEIR_OK;
}

static weir_status show(struct rig *rig, weir_context *context)
{
	int64_t age = weir_context_age(context, 1), number;

	HOLDS(rig, weir_context_age(context, 0) == -1 && weir_context_age(context, 9) == -1);
	HOLDS(rig, weir_context_count(context, 1) == 1 && age >= aging.latency);
	if (weir_context_count(context, 1) != 1)
		return WEIR_OK;
	HOLDS(rig, !weir_message_unique(weir_context_message(context, 1, 0)));
	number = rig_value(weir_context_message(context, 1, 0));
	HOLDS(rig, (uint64_t)number >= aging.before);
	aging.before = (uint64_t)number;
	if (wr_read(&aging.sent) == SENT)
		return WEIR_OK;
	aging.worst = age > aging.worst ? age : aging.worst;
	aging.shown++;
	return WEIR_OK;
}

static void ages_of(void)
{
	char text[160];
	struct rig *rig;

	snprintf(text, sizeof text,
		 "f:source period=%lldns ticks=%d -> e:host; s:call period=%lldns -> e.in2 policy=latest",
		 (long long)aging.pace, (int)(aging.period * SENT / aging.pace) + 20,
		 (long long)aging.period);
	rig = rig_of(text);
	rig_on(rig, "s", send);
	rig_on(rig, "e", show);
	aging.sent = 0;
	aging.worst = 0;
	aging.shown = aging.before = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (size_t i = 0; i < wr_read(&aging.sent); i++)
		wr_thread_join(&aging.jobs[i].thread);
	rig_destroy(rig);
}

/* Nothing is shown too old, and something from the first finished message on. */
static bool ages_hold(void)
{
	int64_t shown = (int64_t)aging.shown * aging.pace,
		first = aging.latency + aging.period + 3 * aging.pace;

	return wr_read(&aging.sent) == SENT && shown + first >= aging.period * SENT &&
	       aging.worst <= 2 * aging.latency + aging.period + aging.pace + MS;
}

static void ages_of_world(void)
{
	ages_of();
	assert_true(ages_hold());
}

static void c04_what_is_shown_is_no_older_than_two_latencies_and_a_period(void **state)
{
	static const int64_t periods[] = {10 * MS, 34 * MS, 80 * MS}, latencies[] = {33 * MS, 80 * MS};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 2; k++) {
			aging = (struct aging){
				.period = periods[i], .latency = latencies[k], .pace = 16667 * US};
			rig_in_worlds(5, ages_of_world);
		}
}

/* --- a detector of 80 ms beside 60 frames a second --- */

enum { FRAMES = 300 };

static void detector_beside_frames(void)
{
	static const double period = 1000 / 60.0, latency = 80;
	struct rig *rig = rig_of("f:source ticks=300 period=16667us,no_catch_up_missed_ticks -> e:end; "
				 "f -> d:rig_pass delay=80ms policy=pop -> e.in2 policy=latest");
	const char *text;
	int frame, of, length, worst = 0;
	double sum = 0;

	assert_int_equal(rig_run(rig), WEIR_OK);
	check_pairs(rig, FRAMES, -1);
	for (text = rig_text(rig, "e"); sscanf(text, "%d|%d%n", &frame, &of, &length) == 2; text += length) {
		worst = frame - of > worst ? frame - of : worst;
		sum += frame - of;
	}
	assert_true(worst * period <= 2 * latency + period);
	assert_true(sum / FRAMES * period <= 1.5 * latency + period);
	rig_destroy(rig);
}

static void c04_each_frame_is_shown_with_boxes_of_at_most_two_latencies_before(void **state)
{
	(void)state;
	rig_in_worlds(20, detector_beside_frames);
}

/* --- the newest of several --- */

static char newest[64];

static void three_at_once(void)
{
	struct rig *rig = rig_of("f:source ticks=3 period=1ms -> e:end; s:source ticks=1 emits=3 max_emits=3 "
				 "-> e.in2 policy=latest");

	rig->options.workers = 1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	snprintf(newest, sizeof newest, "%s, %d dropped", rig_text(rig, "e"),
		 (int)rig_queue(rig, "e.in2").dropped);
	rig_destroy(rig);
}

static void c04_e05_of_several_finished_messages_the_newest_is_shown(void **state)
{
	(void)state;
	rig_in_world(1, three_at_once);
	assert_string_equal(newest, "0|2 1|2 2|2, 2 dropped");
}

/* --- the seeded bugs --- */

#ifdef WR_SEAM
static void c04_the_seeded_bugs_are_found(void **state)
{
	(void)state;
	aging = (struct aging){.period = 10 * MS, .latency = 33 * MS, .pace = 16667 * US};
	wr_bug_active = WR_BUG_LATEST_STARVED;
	rig_in_world(1, ages_of);
	assert_false(ages_hold());
	wr_bug_active = WR_BUG_LATEST_SHOWN_LATE;
	rig_in_world(1, three_at_once);
	wr_bug_active = WR_BUG_NONE;
	assert_string_not_equal(newest, "0|2 1|2 2|2, 2 dropped");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c04_each_tick_receives_the_newest_message_again),
		cmocka_unit_test(c04_e05_a_latest_port_never_holds_its_sender_back),
		cmocka_unit_test(c08_what_a_latest_port_shows_is_finished),
		cmocka_unit_test(s05_a_latest_port_whose_sender_sent_nothing_ends_the_entity),
		cmocka_unit_test(s05_an_entity_with_latest_ports_alone_ends_after_the_last_message),
		cmocka_unit_test(c04_what_is_shown_is_no_older_than_two_latencies_and_a_period),
		cmocka_unit_test(c04_each_frame_is_shown_with_boxes_of_at_most_two_latencies_before),
		cmocka_unit_test(c04_e05_of_several_finished_messages_the_newest_is_shown),
#ifdef WR_SEAM
		cmocka_unit_test(c04_the_seeded_bugs_are_found),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
