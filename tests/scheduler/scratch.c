/* T11: scratch memory. One stack: its addresses, growth, captures, wrong requests, many ticks. */
#include <stdlib.h>
#include <string.h>

#include "rig_inside.h"
#include "rig_scratch.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

/* --- one stack --- */

enum { REQUESTS = 4 };

static struct {
	void *first[REQUESTS];
} seen;

/* From the third tick on the stack has its height: the first one did not know of the later requests. */
static weir_status request_the_same(struct rig *rig, weir_context *context)
{
	static const size_t words[REQUESTS] = {3, 4000, 1, 70};
	void *memory[REQUESTS];
	weir_status status = WEIR_OK;

	for (int i = 0; !status && i < REQUESTS; i++)
		status = rig_use(context, NULL, words[i], 10 * US, &memory[i]);
	if (status)
		return status;
	if (rig_tick(context) == 2)
		memcpy(seen.first, memory, sizeof memory);
	for (int i = 0; i < REQUESTS; i++) {
		HOLDS(rig, (uintptr_t)memory[i] % 256 == 0);
		HOLDS(rig, rig_tick(context) < 2 || memory[i] == seen.first[i]);
	}
	return WEIR_OK;
}

TEST(t11_the_same_requests_get_the_same_aligned_addresses)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=40 pool=p", 40, request_the_same);
}

static weir_status request_nothing(struct rig *rig, weir_context *context)
{
	void *memory = &memory, *other = NULL;
	weir_status status = weir_context_scratch(context, NULL, 0, &memory);

	HOLDS(rig, !status && !memory);
	HOLDS(rig, rig_uses_no_stream(rig, "a"));
	status = weir_context_scratch(context, NULL, 1, &memory);
	if (!status)
		status = weir_context_scratch(context, current_stream(context), 1, &other);
	HOLDS(rig, (char *)other == (char *)memory + 256);
	return status;
}

TEST(t11_no_bytes_are_no_memory_and_no_use_of_a_stream)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=1 pool=p", 1, request_nothing);
}

/* --- growth --- */

/* More in each tick, in several pieces; all ticks are in flight at once. */
static weir_status request_more(struct rig *rig, weir_context *context)
{
	size_t words = 64 * (1 + (size_t)rig_tick(context));
	void *memory;
	weir_status status = WEIR_OK;

	(void)rig;
	for (int i = 0; !status && i < 3; i++)
		status = rig_use(context, NULL, words << 2 * i, 200 * US, &memory);
	return status;
}

TEST(t11_a_stack_grows_while_64_ticks_use_it)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=80 pool=p in_flight=64", 80, request_more);
}

/* Now more, now less: what was outgrown is freed, the rest stays. */
static weir_status request_up_and_down(struct rig *rig, weir_context *context)
{
	size_t words = (size_t)1 << (rig_tick(context) * 7 % 15);
	void *memory;
	weir_status status = rig_use(context, NULL, words, 20 * US, &memory);

	(void)rig;
	return status ? status : rig_use(context, NULL, 1, 20 * US, &memory);
}

static void count_most(void)
{
	struct rig *rig = rig_run_scratch("a:call count=30 pool=p", request_up_and_down);

	/* 2^14 words, and one that takes 256 bytes. */
	assert_int_equal(rig_counts(rig, "a").most_scratch, 8 * 16384 + 256);
	assert_int_equal(wr_load(&rig_overwritten), 0);
	rig_destroy(rig);
}

TEST(t11_the_most_that_a_tick_requested_is_counted)
{
	(void)state_;
	rig_everywhere(count_most);
}

/* --- captures --- */

/* While the stack is fixed, what does not fit is refused; the tick then does without a capture. */
static weir_status request_in_a_capture(struct rig *rig, weir_context *context)
{
	void *first = NULL, *memory = NULL;
	size_t height;
	weir_status status = rig_use(context, NULL, 100, 20 * US, &first);

	height = rig_scratch_height(context);
	HOLDS(rig, height == (rig_tick(context) ? 800000 / 256 * 256 + 1024 : 16384));
	rig_scratch_return(context);
	rig_scratch_fix(context, true);
	HOLDS(rig, !weir_context_scratch(context, NULL, 800, &memory) && memory == first);
	if (rig_tick(context) == 0)
		rig_refused(rig, weir_context_scratch(context, NULL, 800000, &memory), WEIR_E_BUSY,
			    "a: 800000 bytes of scratch memory do not fit into the stack, which grows");
	else
		HOLDS(rig, !weir_context_scratch(context, NULL, 800000, &memory));
	HOLDS(rig, rig_scratch_height(context) == height);
	rig_scratch_return(context);
	rig_scratch_fix(context, false);
	return status ? status : rig_use(context, NULL, 100, 20 * US, &memory);
}

TEST(t11_a_capture_refuses_what_does_not_fit)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=10 pool=p", 10, request_in_a_capture);
}

static weir_status enqueue_on_scratch(weir_context *context, weir_stream *stream, void *arg)
{
	(void)arg;
	return rig_use(context, stream, 100, 20 * US, &(void *){NULL});
}

static weir_status replay_on_scratch(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_replay(context, "key", 3, enqueue_on_scratch, NULL);
}

static void run_replayed(void)
{
	struct rig *rig = rig_run_scratch("a:call count=20 pool=p", replay_on_scratch);
	weir_entity_counts counts = rig_counts(rig, "a");

	assert_int_equal(wr_load(&rig_overwritten), 0);
	assert_int_equal(counts.replay_failures, 0);
	assert_int_equal(counts.replay_captures, 1);
	assert_int_equal(counts.replay_hits, 17); /* the stack grew once, then warm-up and capture */
	assert_int_equal(counts.most_scratch, 1024);
	rig_destroy(rig);
}

TEST(t11_t13_a_replay_that_requests_it_is_captured_once)
{
	(void)state_;
	rig_everywhere(run_replayed);
}

/* One stream's stack is used on that stream, and in work that is launched again on another one. */
static weir_status enqueue_aside(weir_context *context, weir_stream *stream, void *side)
{
	weir_stream *aside = side;
	void *memory;
	weir_status status = weir_context_synchronize_streams(context, &stream, 1, aside);

	if (!status)
		status = rig_use(context, aside, 100, 300 * US, &memory);
	return status ? status : weir_context_synchronize_streams(context, &aside, 1, stream);
}

static weir_status replay_aside(struct rig *rig, weir_context *context)
{
	weir_stream *side = NULL;
	void *memory;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	(void)rig;
	if (status)
		return status;
	return rig_tick(context) % 2 ? rig_use(context, side, 100, 300 * US, &memory)
				     : weir_context_replay(context, "key", 3, enqueue_aside, side);
}

static void run_replayed_aside(void)
{
	struct rig *rig = rig_run_scratch("a:call count=40 pool=p", replay_aside);

	assert_int_equal(wr_load(&rig_overwritten), 0);
	assert_true(rig_counts(rig, "a").replay_hits > 10);
	rig_destroy(rig);
}

TEST(t11_t13_what_is_launched_again_comes_after_the_other_use_of_its_scratch_memory)
{
	(void)state_;
	rig_everywhere(run_replayed_aside);
}

/* --- wrong calls --- */

static _Atomic(weir_stream *) foreign; /* b notes it while a reads it */

static weir_status note_stream(struct rig *rig, weir_context *context)
{
	(void)rig;
	foreign = current_stream(context);
	return WEIR_OK;
}

static weir_status request_wrongly(struct rig *rig, weir_context *context)
{
	void *memory = &memory;

	rig_refused(rig, weir_context_scratch(context, foreign, 1, &memory), WEIR_E_INVALID,
		    "a: scratch memory is for the streams of this entity");
	rig_refused(rig, weir_context_scratch(context, foreign, 0, &memory), WEIR_E_INVALID,
		    "for the streams of this entity");
	rig_refused(rig, weir_context_scratch(context, NULL, SIZE_MAX, &memory), WEIR_E_NOMEM,
		    "a: no device has 18446744073709551615 bytes of scratch memory");
	HOLDS(rig, memory == &memory);
	return rig_use(context, NULL, 10, US, &memory); /* the run goes on */
}

static weir_status request_in_start(struct rig *rig, weir_context *context)
{
	void *memory = NULL;

	rig_refused(rig, weir_context_scratch(context, NULL, 1, &memory), WEIR_E_INVALID,
		    "a: scratch memory is for compute only");
	return WEIR_OK;
}

static void run_wrongly(void)
{
	struct rig *rig =
		rig_of_scratch("b:call count=1 pool=p -> end; a:call count=5 pool=p", request_wrongly);

	rig_on(rig, "b", note_stream);
	rig_entity(rig, "a")->start = request_in_start;
	foreign = (weir_stream *)rig; /* until b has one */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").most_scratch, 256);
	rig_destroy(rig);
}

TEST(e06_t11_a_wrong_request_gets_a_line_and_the_run_goes_on)
{
	(void)state_;
	rig_everywhere(run_wrongly);
}

static weir_status alloc_at_most_a_mebibyte(void *self, int device, size_t bytes, void **out)
{
	static const struct wr_backend *const real[] = {&wr_backend_host, &wr_backend_sim};

	if (bytes > (size_t)8 << 20)
		return WEIR_E_NOMEM;
	return real[!strcmp(rig_backend, "sim")]->alloc(self, device, bytes, out);
}

/* The first request fits; a second one does not, now and in the ticks after. */
static weir_status request_too_much(struct rig *rig, weir_context *context)
{
	void *memory = NULL;
	weir_status status = rig_use(context, NULL, 1000, 20 * US, &memory);

	if (status)
		return status;
	rig_refused(rig, weir_context_scratch(context, NULL, (size_t)16 << 20, &memory), WEIR_E_NOMEM,
		    "a: device 0 has no 16777216 bytes of scratch memory");
	return rig_use(context, NULL, 1000, 20 * US, &memory);
}

static void run_without_memory(void)
{
	struct rig *rig = rig_of_scratch("a:call count=20 pool=p", request_too_much);

	rig_make(rig);
	rig_own_backend(rig)->alloc = alloc_at_most_a_mebibyte;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig_overwritten), 0);
	rig_destroy(rig);
}

TEST(e06_t11_more_than_the_device_has_fails_the_request_alone)
{
	(void)state_;
	rig_everywhere(run_without_memory);
}

static _Atomic unsigned asked; /* for more than there is */

static weir_status count_asked(void *self, int device, size_t bytes, void **out)
{
	wr_fetch_add(&asked, bytes > (size_t)8 << 20);
	return alloc_at_most_a_mebibyte(self, device, bytes, out);
}

static weir_status request_too_much_at_once(struct rig *rig, weir_context *context)
{
	void *memory = NULL;

	rig_refused(rig, weir_context_scratch(context, NULL, (size_t)16 << 20, &memory), WEIR_E_NOMEM,
		    "has no 16777216 bytes of scratch memory");
	return WEIR_OK;
}

TEST(t11_a_stack_that_was_refused_is_not_asked_for_in_each_tick)
{
	struct rig *rig = rig_of_scratch("a:call count=20 pool=p", request_too_much_at_once);

	(void)state_;
	wr_store(&asked, 0);
	rig_make(rig);
	rig_own_backend(rig)->alloc = count_asked;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&asked), 20 + 1); /* each request by itself, and once for the stack */
	rig_destroy(rig);
}

/* --- work without a fence --- */

static struct wr_backend *unable;

static weir_status refuse_record(void *self, int device, void *stream, void *event)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)event;
	return WEIR_E_FAILED;
}

static weir_status work_without_fence(struct rig *rig, weir_context *context)
{
	void *memory = NULL, *further = NULL;
	weir_status status = rig_use(context, NULL, 100, US, &memory);

	(void)rig;
	if (!status)
		status = rig_use(context, NULL, 100000, MS, &further); /* more than the stack has */
	unable->record = refuse_record;
	return status;
}

static void count_blocks(struct rig *rig, weir_context *context)
{
	wr_store(&rig->told, rig_scratch_blocks(context));
}

TEST(t11_t04_what_unfenced_work_uses_is_not_freed_behind_an_earlier_fence)
{
	struct rig *rig = rig_of_scratch("a:call count=1 pool=p", work_without_fence);

	(void)state_;
	rig_entity(rig, "a")->stop = count_blocks;
	rig_make(rig);
	unable = rig_own_backend(rig);
	assert_int_not_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 2); /* the stack, and what did not fit */
	rig_restore_backend(rig);
	rig_destroy(rig);
}

/* --- many ticks --- */

/* Between two ticks nothing of a stack that has its height is allocated or freed. */
static weir_status request_often(struct rig *rig, weir_context *context)
{
	void *memory, *same;
	weir_status status = weir_context_scratch(context, NULL, 5000, &memory);

	if (!status)
		status = weir_context_scratch(context, NULL, 100, &same);
	if (rig_tick(context) == 1000)
		wr_store(&rig->told, (uint64_t)(uintptr_t)memory);
	HOLDS(rig, rig_tick(context) < 1000 || wr_load(&rig->told) == (uint64_t)(uintptr_t)memory);
	HOLDS(rig, rig_scratch_blocks(context) == 1 || rig_tick(context) == 0);
	return status;
}

#if defined WR_TSAN || defined WR_ASAN
#define MANY "20000"
#else
#define MANY "1000000"
#endif

TEST(t11_a_million_ticks_use_the_same_bytes)
{
	(void)state_;
	rig_backend = "host";
	rig_destroy(rig_run_scratch("a:call count=" MANY " pool=p", request_often));
	rig_backend = "sim";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t11_the_same_requests_get_the_same_aligned_addresses),
		cmocka_unit_test(t11_no_bytes_are_no_memory_and_no_use_of_a_stream),
		cmocka_unit_test(t11_a_stack_grows_while_64_ticks_use_it),
		cmocka_unit_test(t11_the_most_that_a_tick_requested_is_counted),
		cmocka_unit_test(t11_a_capture_refuses_what_does_not_fit),
		cmocka_unit_test(t11_t13_a_replay_that_requests_it_is_captured_once),
		cmocka_unit_test(
			t11_t13_what_is_launched_again_comes_after_the_other_use_of_its_scratch_memory),
		cmocka_unit_test(e06_t11_a_wrong_request_gets_a_line_and_the_run_goes_on),
		cmocka_unit_test(e06_t11_more_than_the_device_has_fails_the_request_alone),
		cmocka_unit_test(t11_a_stack_that_was_refused_is_not_asked_for_in_each_tick),
		cmocka_unit_test(t11_t04_what_unfenced_work_uses_is_not_freed_behind_an_earlier_fence),
		cmocka_unit_test(t11_a_million_ticks_use_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
