/* The contract of live references, memory and deferred frees (S4, T4, B3). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "contract.h"

#define MS     1000000
#define SECOND (1000 * (int64_t)MS)

/* --- live references --- */

RIG_BODY(s4_a_busy_stream_holds_one_reference_until_its_last_fence_was_seen)
{
	weir_fence first, last;

	wr_stream_begin_tick(rig->a);
	wr_stream_begin_tick(rig->a);
	assert_int_equal(rig->waker.live, 1);
	rig_store(rig, rig->a, 1, 0);
	first = rig_record(rig->a);
	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	last = rig_record(rig->a);
	rig_wait(rig, first);
	assert_int_equal(rig->waker.live, 1);
	rig_wait(rig, last);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_tick_that_enqueued_nothing_gives_its_reference_back)
{
	int64_t next;

	wr_stream_begin_tick(rig->a);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(rig->waker.live, 0);
	rig_store(rig, rig->a, 1, MS); /* slow work is not lost */
	rig_record(rig->a);
	assert_int_equal(rig->waker.live, 1);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_tick_that_has_work_keeps_its_reference)
{
	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	wr_stream_drop_ref_if_complete(rig->a);
	assert_int_equal(rig->waker.live, 1); /* the work is not recorded yet */
	rig_record(rig->a);
	wr_stream_begin_tick(rig->a);
	wr_stream_drop_ref_if_complete(rig->a);
	assert_int_equal(rig->waker.live, 1); /* the previous tick still has work */
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_stream_that_is_closed_with_work_holds_no_run_open)
{
	wr_stream_begin_tick(rig->a);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(rig->waker.live, 0);
	rig_store(rig, rig->a, 1, 20 * MS);
	wr_stream_close(rig->a);
	assert_int_equal(rig->waker.live, 0);
	rig->a = rig_stream(rig, "next");
}

RIG_BODY(s4_an_abandoned_run_gets_its_references_back_once)
{
	weir_fence fence;

	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	wr_system_drop_all_refs(rig->system);
	assert_int_equal(rig->waker.live, 0);
	rig_wait(rig, fence);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_stream_busy_beyond_its_run_owes_the_next_one_nothing)
{
	struct rig_waker next;
	weir_fence fence;

	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	wr_system_detach(rig->system);
	assert_int_equal(rig->waker.live, 0);
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	rig_wait(rig, fence);
	assert_int_equal(next.live, 0);
	wr_system_detach(rig->system);
}

/* --- memory and deferred frees --- */

RIG_BODY(t4_memory_that_came_back_is_given_out_again)
{
	void *first, *second, *other;

	assert_int_equal(wr_system_alloc(rig->system, 0, 100000, &first), WEIR_OK);
	assert_int_equal(wr_system_alloc(rig->system, 0, 100000, &other), WEIR_OK);
	assert_ptr_not_equal(first, other);
	assert_int_equal((uintptr_t)first % 256, 0);
	wr_system_free(rig->system, 0, first, 100000);
	assert_int_equal(wr_system_alloc(rig->system, 0, 99000, &second), WEIR_OK);
	assert_ptr_equal(first, second);
	wr_system_free(rig->system, 0, other, 100000);
	wr_system_free(rig->system, 0, second, 99000);
	wr_system_free(rig->system, 0, NULL, 5);
}

RIG_BODY(t4_blocks_do_not_overlap)
{
	enum { BLOCKS = 200 };
	unsigned char *blocks[BLOCKS];
	void *memory;

	for (size_t i = 0; i < BLOCKS; i++) {
		assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, i * 97 + 1, &memory),
				 WEIR_OK);
		blocks[i] = memory;
		memset(memory, (int)i, i * 97 + 1);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		assert_int_equal(blocks[i][0], i);
		assert_int_equal(blocks[i][i * 97], i);
		wr_system_free(rig->system, WEIR_DEVICE_HOST, blocks[i], i * 97 + 1);
	}
}

RIG_BODY(t4_what_is_reserved_is_not_asked_of_the_device_again)
{
	void *memory;
	struct wr_chunk *chunks;

	assert_int_equal(wr_system_reserve(rig->system, WEIR_DEVICE_HOST, 64 << 20), WEIR_OK);
	chunks = rig->system->arenas[0].chunks;
	assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, 60 << 20, &memory), WEIR_OK);
	assert_ptr_equal(rig->system->arenas[0].chunks, chunks);
	wr_system_free(rig->system, WEIR_DEVICE_HOST, memory, 60 << 20);
	assert_int_equal(wr_system_reserve(rig->system, WEIR_DEVICE_HOST, 64 << 20), WEIR_OK);
	assert_ptr_equal(rig->system->arenas[0].chunks, chunks); /* the next run reuses them */
}

RIG_BODY(t4_a_payload_is_released_when_its_use_set_is_complete)
{
	struct rig_payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	assert_false(rig_defer(rig, &payload, fence, false));
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(payload.released, 0);
	rig_wait(rig, fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 1);
	assert_true(rig_defer(rig, &payload, fence, true)); /* complete: the caller releases */
	assert_int_equal(payload.released, 0);
}

struct in_order {
	struct rig_payload payload; /* the first member */
	struct rig *rig;
	int *releases, place;    /* place: 1 is the first one released */
	struct in_order *listed; /* while this one is released, by a thread that has taken the list */
	weir_fence fence;        /* of `listed` */
	uint32_t number;         /* of `listed`; 0: the next one */
};

static void defer_in_order(struct in_order *self, weir_fence fence);

static void release_in_order(struct wr_deferred_free *entry)
{
	struct in_order *self = (struct in_order *)(void *)entry;

	self->place = ++*self->releases;
	if (!self->listed)
		return;
	defer_in_order(self->listed, self->fence);
	if (self->number)
		self->listed->payload.retired.number = self->number;
}

static void defer_in_order(struct in_order *self, weir_fence fence)
{
	self->payload.fences[0] = fence;
	self->payload.retired = (struct wr_deferred_free){
		.fences = self->payload.fences, .count = 1, .release = release_in_order};
	assert_false(wr_defer_free(self->rig->system, &self->payload.retired));
}

/* The second one is complete early; the fourth is listed while the first and the third are off the list. */
static void release_five(struct rig *rig, int *places, uint32_t begin, uint32_t number)
{
	int releases = 0;
	struct in_order all[5];
	weir_fence late, soon;

	for (int i = 0; i < 5; i++)
		all[i] = (struct in_order){.rig = rig, .releases = &releases, .number = number};
	rig->system->deferred_frees.numbers = begin;
	rig_store(rig, rig->b, 0, 20 * MS);
	soon = rig_record(rig->b);
	assert_int_equal(weir_stream_wait(rig->a, soon), WEIR_OK);
	rig_meet(rig, rig->a, 2); /* ends when c meets it */
	late = rig_record(rig->a);
	all[1].listed = &all[3];
	all[1].fence = late;
	defer_in_order(&all[0], late);
	defer_in_order(&all[1], soon);
	defer_in_order(&all[2], late);
	rig_wait(rig, soon);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(all[1].place, 1);
	assert_int_equal(releases, 1);
	defer_in_order(&all[4], late);
	rig_meet(rig, rig->c, 2);
	rig_wait(rig, rig_record(rig->c));
	rig_wait(rig, late);
	wr_system_run_deferred_frees(rig->system, false);
	for (int i = 0; i < 5; i++)
		places[i] = all[i].place;
}

RIG_BODY(t4_payloads_are_released_in_the_order_in_which_they_were_dropped)
{
	static const int expected[] = {2, 1, 3, 4, 5};
	int places[5];

	release_five(rig, places, UINT32_MAX - 1, 0); /* the numbers wrap around */
	assert_memory_equal(places, expected, sizeof places);
}

/* As if a thread that has taken an older list put it back meanwhile. */
static void release_older_first(struct rig *rig, uint32_t begin, uint32_t older)
{
	static const int expected[] = {3, 1, 4, 2, 5};
	int places[5];

	release_five(rig, places, begin, older);
	assert_memory_equal(places, expected, sizeof places);
}

RIG_BODY(t4_older_payloads_that_another_thread_puts_back_come_first)
{
	release_older_first(rig, 100, 50);
}

RIG_BODY(t4_older_payloads_come_first_where_numbers_wrap_around)
{
	release_older_first(rig, UINT32_MAX - 1, UINT32_MAX - 9);
}

/* A message that was kept longer: memory comes back at the earlier of the two fences that it waits for. */
RIG_BODY(t04_s03_the_earliest_fence_that_wanted_memory_waits_for_is_armed)
{
	_Atomic size_t refused = 1;
	struct rig_payload payloads[2] = {0};
	weir_fence fences[2];

	rig_meet(rig, rig->a, 2); /* ends when c meets it */
	fences[0] = rig_record(rig->a);
	rig_meet(rig, rig->a, 2); /* no store: c may still read the cell */
	fences[1] = rig_record(rig->a);
	for (int i = 0; i < 2; i++) {
		payloads[i].fences[0] = fences[1 - i]; /* the later one is dropped first */
		payloads[i].retired = (struct wr_deferred_free){.fences = payloads[i].fences,
								.count = 1,
								.release = rig_count_release,
								.refused = &refused,
								.foreign = true};
		assert_false(wr_defer_free(rig->system, &payloads[i].retired));
	}
	assert_false(wr_deferred_frees_note_wanted(rig->system));
	assert_int_equal(rig->a->wanted.value, fences[0].value);
	rig->a->wanted = (weir_fence){0};
	rig_meet(rig, rig->c, 2);
	rig_wait(rig, rig_record(rig->c));
	rig_wait(rig, fences[1]);
	wr_store(&refused, 0);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payloads[0].released + payloads[1].released, 2);
}

RIG_BODY(t4_a_worker_lists_with_a_reference)
{
	struct rig_payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	wr_thread_set_local(rig); /* marks this thread as a worker */
	assert_false(rig_defer(rig, &payload, fence, false));
	wr_thread_set_local(NULL);
	assert_int_equal(rig->waker.live, 1);
	rig_wait(rig, fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(rig->waker.live, 0);
	assert_int_equal(payload.released, 1);
}

RIG_BODY(b5_a_worker_of_another_run_lists_without_a_reference)
{
	struct rig_payload payload = {.retired = {.count = 1, .release = rig_count_release, .foreign = true}};

	rig_store(rig, rig->a, 1, 10 * MS);
	payload.fences[0] = rig_record(rig->a);
	payload.retired.fences = payload.fences;
	wr_thread_set_local(rig);
	assert_false(wr_defer_free(rig->system, &payload.retired));
	wr_thread_set_local(NULL);
	assert_int_equal(rig->waker.live, 0);
	rig_wait(rig, payload.fences[0]);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 1);
}

RIG_BODY(b3_destructors_run_only_where_they_may)
{
	struct rig_payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_false(rig_defer(rig, &payload, fence, true));
	assert_false(wr_system_deferred_frees_ready(rig->system));
	rig_wait(rig, fence);
	wr_store(&rig->waker.kicked, 0);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 0);
	assert_true(wr_system_deferred_frees_ready(rig->system));
	assert_int_equal(rig->waker.kicked, 1);
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(payload.released, 1);
	assert_false(wr_system_deferred_frees_ready(rig->system));
}

static struct {
	struct wr_system *system;
	int inside, most, released;
} chain;

/* As the destructor of a message that refers to others: each reference that it drops begins a collection. */
static void drop_another(struct wr_deferred_free *retired)
{
	(void)retired;
	chain.inside++;
	chain.most = chain.inside > chain.most ? chain.inside : chain.most;
	wr_system_collect_between_runs(chain.system);
	chain.released++;
	chain.inside--;
}

RIG_BODY(b3_a_destructor_between_runs_does_not_run_inside_another_one)
{
	weir_fence fence;
	struct wr_deferred_free list[5];

	rig_store(rig, rig->a, 1, 5 * MS);
	fence = rig_record(rig->a);
	memset(&chain, 0, sizeof chain);
	chain.system = rig->system;
	for (size_t i = 0; i < 5; i++) {
		list[i] = (struct wr_deferred_free){
			.fences = &fence, .count = 1, .release = drop_another, .destructor = true};
		assert_false(wr_defer_free(rig->system, &list[i]));
	}
	wr_system_detach(rig->system);
	rig_wait(rig, fence);
	wr_system_collect_between_runs(rig->system);
	assert_int_equal(chain.released, 5);
	assert_int_equal(chain.most, 1);
}

RIG_BODY(s4_an_abandoned_run_gets_the_references_of_its_payloads_back)
{
	struct rig_payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	wr_thread_set_local(rig);
	assert_false(rig_defer(rig, &payload, fence, false));
	wr_thread_set_local(NULL);
	wr_system_drop_all_refs(rig->system);
	assert_int_equal(rig->waker.live, 0);
	rig_wait(rig, fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 1);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(e4_destroying_waits_for_work)
{
	int *cell = rig->cell;

	rig_store(rig, rig->a, 7, 30 * MS); /* not even recorded */
	wr_system_detach(rig->system);
	wr_stream_close(rig->a);
	assert_ptr_equal(cell, rig->cell);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_OK);
	rig->system = NULL;
}

RIG_BODY(f40_memory_that_cannot_be_is_not_reserved)
{
	assert_int_equal(wr_system_reserve(rig->system, 0, SIZE_MAX / 2), WEIR_E_NOMEM);
	assert_non_null(strstr(weir_last_error(), " bytes of memory"));
	assert_int_equal(wr_system_reserve(rig->system, rig->system->devices, 8), WEIR_E_INVALID);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(s4_a_busy_stream_holds_one_reference_until_its_last_fence_was_seen),
	cmocka_unit_test(s4_a_tick_that_enqueued_nothing_gives_its_reference_back),
	cmocka_unit_test(s4_a_tick_that_has_work_keeps_its_reference),
	cmocka_unit_test(s4_a_stream_that_is_closed_with_work_holds_no_run_open),
	cmocka_unit_test(s4_an_abandoned_run_gets_its_references_back_once),
	cmocka_unit_test(s4_a_stream_busy_beyond_its_run_owes_the_next_one_nothing),
	cmocka_unit_test(t4_memory_that_came_back_is_given_out_again),
	cmocka_unit_test(t4_blocks_do_not_overlap),
	cmocka_unit_test(t4_what_is_reserved_is_not_asked_of_the_device_again),
	cmocka_unit_test(t4_a_payload_is_released_when_its_use_set_is_complete),
	cmocka_unit_test(t4_payloads_are_released_in_the_order_in_which_they_were_dropped),
	cmocka_unit_test(t4_older_payloads_come_first_where_numbers_wrap_around),
	cmocka_unit_test(t4_older_payloads_that_another_thread_puts_back_come_first),
	cmocka_unit_test(t04_s03_the_earliest_fence_that_wanted_memory_waits_for_is_armed),
	cmocka_unit_test(t4_a_worker_lists_with_a_reference),
	cmocka_unit_test(b5_a_worker_of_another_run_lists_without_a_reference),
	cmocka_unit_test(b3_destructors_run_only_where_they_may),
	cmocka_unit_test(b3_a_destructor_between_runs_does_not_run_inside_another_one),
	cmocka_unit_test(s4_an_abandoned_run_gets_the_references_of_its_payloads_back),
	cmocka_unit_test(f40_memory_that_cannot_be_is_not_reserved),
	cmocka_unit_test(e4_destroying_waits_for_work),
};

const struct contract_part contract_memory = {tests, sizeof tests / sizeof *tests};
