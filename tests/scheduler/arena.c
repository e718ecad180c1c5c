/* The host arena: reserved before the first tick, untouched until it is used, and grown once. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread.h"
#include "rig.h"

#define TEST(name) static void name(void **state_)

enum { CHUNK = 4 << 20 };

static _Atomic unsigned within_ticks, chunks;
static char *_Atomic last_chunk;

int __real_posix_memalign(void **out, size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
	int error = __real_posix_memalign(out, alignment, size);

	if (size < CHUNK)
		return error;
	wr_fetch_add(&chunks, 1);
	wr_fetch_add(&within_ticks, wr_thread_local() != NULL);
	wr_store(&last_chunk, (char *)*out);
	for (int i = 0; i < 200 && wr_thread_local(); i++)
		wr_thread_yield(); /* lets other threads in */
	return error;
}

/* Pages of the last chunk that were written. */
static size_t resident(void)
{
	unsigned char pages[CHUNK / 4096 + 1];
	uintptr_t begin = (uintptr_t)wr_load(&last_chunk) & ~(uintptr_t)4095;
	size_t count = 0;

	assert_int_equal(mincore((void *)begin, CHUNK, pages), 0);
	for (size_t i = 0; i < CHUNK / 4096; i++)
		count += pages[i] & 1;
	return count;
}

static void first_message(void)
{
	struct rig *rig = rig_of("source ticks=200 -> p:pass -> end; s2:source ticks=200 -> end.in2");

	wr_store(&within_ticks, 0);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&within_ticks), 0);
	assert_in_range(resident(), 0, CHUNK / 4096 / 8);
	rig_destroy(rig);
}

TEST(xb33_no_tick_opens_the_arena_and_no_page_is_touched_before_its_use)
{
	(void)state_;
	rig_on_host(first_message);
}

static void meet(struct rig *rig, uint64_t count)
{
	wr_fetch_add(&rig->told, 1);
	while (wr_load(&rig->told) < count)
		wr_thread_yield();
}

/* Two each; the first four fill a chunk. */
static weir_status take_big(struct rig *rig, weir_context *context)
{
	weir_message *messages[2] = {NULL};

	for (size_t i = 0; i < 2; i++) {
		meet(rig, 4 * (i + 1));
		HOLDS(rig, !weir_message_create_bytes(weir_context_graph(context), 1000000, &messages[i]));
	}
	meet(rig, 12);
	weir_message_unref(messages[0]);
	weir_message_unref(messages[1]);
	return WEIR_OK;
}

static void at_once(void)
{
	struct rig *rig = rig_of("a:call count=1; b:call count=1; c:call count=1; d:call count=1");

	rig->options.workers = 4;
	for (size_t i = 0; i < 4; i++)
		rig->entities[i].compute = take_big;
	rig_make(rig);
	wr_store(&chunks, 0);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(wr_load(&chunks), 1, 3); /* host and device before the first tick, one on demand */
	rig_destroy(rig);
}

TEST(xb33_workers_that_find_the_arena_empty_at_once_open_one_chunk)
{
	(void)state_;
	rig_on_host(at_once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb33_no_tick_opens_the_arena_and_no_page_is_touched_before_its_use),
		cmocka_unit_test(xb33_workers_that_find_the_arena_empty_at_once_open_one_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
