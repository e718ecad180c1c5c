#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "test.h"

static int hook_off(void **state)
{
	(void)state;
	wr_memory_fail_at(-1, false);
	return 0;
}

static bool all_zero(const void *memory, size_t bytes)
{
	const char *at = memory;

	while (bytes && !at[bytes - 1])
		bytes--;
	return bytes == 0;
}

static void f87_a_product_that_overflows_is_refused(void **state)
{
	(void)state;
	assert_null(wr_alloc(SIZE_MAX / 2, 4));
	assert_string_equal(weir_last_error(), "out of memory");
	assert_null(wr_alloc(1, SIZE_MAX));
	assert_null(wr_alloc_aligned(64, SIZE_MAX));
}

static void memory_is_zeroed_and_never_null_for_nothing(void **state)
{
	char *some = wr_alloc(100, 3), *none = wr_alloc(0, 8), *aligned = wr_alloc_aligned(4096, 5000);

	(void)state;
	assert_non_null(none);
	assert_true(all_zero(some, 300));
	assert_true(all_zero(aligned, 5000));
	assert_int_equal((uintptr_t)aligned % 4096, 0);
	wr_free(some);
	wr_free(none);
	wr_free(aligned);
	wr_free(NULL);
}

static size_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &size, &pages), 2);
	fclose(file);
	return pages * 4096;
}

/* ThreadSanitizer shadows each byte that is allocated, so that its own memory grows too. */
#ifdef __has_feature
#define NOTES_EACH_BYTE __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define NOTES_EACH_BYTE 1
#else
#define NOTES_EACH_BYTE 0
#endif

static void much_memory_reads_as_zeros_and_is_not_touched_before_its_time(void **state)
{
	enum { MUCH = 64 << 20 };
	size_t before = resident();

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		char *memory = wr_alloc_aligned(256, MUCH);
		assert_true(turn || NOTES_EACH_BYTE || resident() < before + MUCH / 2);
		assert_true(all_zero(memory, MUCH));
		memset(memory, 0xff, MUCH);
		wr_free(memory);
	}
}

static void texts_are_copied_and_formatted_whole(void **state)
{
	char *copy = wr_strdup("abc"), *formatted = wr_format("%s-%0100d", "x", 7);

	(void)state;
	assert_string_equal(copy, "abc");
	assert_int_equal(strlen(formatted), 102);
	assert_int_equal(formatted[101], '7');
	wr_free(copy);
	wr_free(formatted);
}

static void a_grown_array_keeps_what_it_had_and_zeroes_the_rest(void **state)
{
	uint32_t *array = NULL;
	size_t room = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(wr_grow(&array, &room, i + 1, sizeof(*array)), WEIR_OK);
		assert_true(room > i && all_zero(array + i, (room - i) * sizeof(*array)));
		array[i] = i + 1;
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(array[i], i + 1);
	wr_free(array);
}

static void f87_an_array_that_cannot_grow_is_untouched(void **state)
{
	uint64_t *array = NULL, *before;
	size_t room = 0, room_before;

	(void)state;
	assert_int_equal(wr_grow(&array, &room, 3, sizeof(*array)), WEIR_OK);
	before = array;
	room_before = room;
	assert_int_equal(wr_grow(&array, &room, SIZE_MAX / 8 + 2, sizeof(*array)), WEIR_E_NOMEM);
	wr_memory_fail_at(0, false);
	assert_int_equal(wr_grow(&array, &room, room + 1, sizeof(*array)), WEIR_E_NOMEM);
	assert_ptr_equal(array, before);
	assert_int_equal(room, room_before);
	wr_free(array);
}

/* Returns which of ten allocations failed, as bits. */
static unsigned failures_of_ten(void)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < 10; i++) {
		void *memory = wr_alloc(1, 8);

		failed |= (unsigned)!memory << i;
		wr_free(memory);
	}
	return failed;
}

static void f40_the_nth_allocation_fails_alone(void **state)
{
	(void)state;
	wr_memory_fail_at(3, false);
	assert_int_equal(failures_of_ten(), 1u << 3);
	assert_int_equal(failures_of_ten(), 0);
}

static void f40_or_all_from_the_nth_on(void **state)
{
	(void)state;
	wr_memory_fail_at(8, true);
	assert_int_equal(failures_of_ten(), 3u << 8);
	assert_int_equal(failures_of_ten(), 0x3ff);
	wr_memory_fail_at(-1, true);
	assert_int_equal(failures_of_ten(), 0);
}

static void f40_each_way_to_allocate_can_fail_and_is_counted(void **state)
{
	uint32_t *array = NULL;
	size_t room = 0;
	int64_t before = wr_memory_count();

	(void)state;
	wr_memory_fail_at(0, true);
	assert_null(wr_alloc(1, 1));
	assert_null(wr_alloc_aligned(64, 1));
	assert_null(wr_strdup("x"));
	assert_null(wr_format("x"));
	assert_int_equal(wr_grow(&array, &room, 1, sizeof(*array)), WEIR_E_NOMEM);
	assert_int_equal(wr_memory_count() - before, 5);
}

enum { MANY = 2000 };

static void count_failures(void *failed)
{
	for (int i = 0; i < MANY; i++) {
		void *memory = wr_alloc(1, 8);

		*(int *)failed += !memory;
		wr_free(memory);
	}
}

static void f40_exactly_one_of_two_threads_meets_the_failure(void **state)
{
	struct wr_thread threads[2];
	int failed[2] = {0, 0};

	(void)state;
	wr_memory_fail_at(MANY, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_thread_start(&threads[i], "allocates", count_failures, &failed[i]),
				 WEIR_OK);
	for (int i = 0; i < 2; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(failed[0] + failed[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f87_a_product_that_overflows_is_refused),
		cmocka_unit_test(memory_is_zeroed_and_never_null_for_nothing),
		cmocka_unit_test(texts_are_copied_and_formatted_whole),
		cmocka_unit_test(a_grown_array_keeps_what_it_had_and_zeroes_the_rest),
		cmocka_unit_test_teardown(f87_an_array_that_cannot_grow_is_untouched, hook_off),
		cmocka_unit_test_teardown(f40_the_nth_allocation_fails_alone, hook_off),
		cmocka_unit_test_teardown(f40_or_all_from_the_nth_on, hook_off),
		cmocka_unit_test(much_memory_reads_as_zeros_and_is_not_touched_before_its_time),
		cmocka_unit_test_teardown(f40_each_way_to_allocate_can_fail_and_is_counted, hook_off),
		cmocka_unit_test_teardown(f40_exactly_one_of_two_threads_meets_the_failure, hook_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
