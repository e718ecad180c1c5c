#include "base/names.h"

#include <stdio.h>

#include "test.h"

static void a_name_is_found_by_the_lowest_index_that_has_it(void **state)
{
	struct wr_names names = {0};

	(void)state;
	assert_int_equal(wr_names_find(&names, "a"), WR_NO_INDEX);
	assert_int_equal(wr_names_add(&names, "b", 0), WEIR_OK);
	assert_int_equal(wr_names_add(&names, "c", 1), WEIR_OK);
	assert_int_equal(wr_names_add(&names, "a", 2), WEIR_OK);
	assert_int_equal(wr_names_add(&names, "b", 3), WEIR_OK);
	wr_names_sort(&names);
	assert_int_equal(wr_names_find(&names, "a"), 2);
	assert_int_equal(wr_names_find(&names, "b"), 0);
	assert_int_equal(wr_names_find(&names, "c"), 1);
	assert_int_equal(wr_names_find(&names, ""), WR_NO_INDEX);
	assert_int_equal(wr_names_find(&names, "bb"), WR_NO_INDEX);
	assert_int_equal(wr_names_find(&names, "d"), WR_NO_INDEX);
	wr_names_finish(&names);
}

/* 1009 is a prime, so the numbers differ; they come in no order. */
static void inserted_names_stay_sorted(void **state)
{
	enum { COUNT_OF_NAMES = 200 };
	struct wr_names names = {0};
	char texts[COUNT_OF_NAMES][8];

	(void)state;
	for (size_t i = 0; i < COUNT_OF_NAMES; i++) {
		snprintf(texts[i], sizeof texts[i], "%zu", i * 577 % 1009);
		assert_int_equal(wr_names_insert(&names, texts[i], i), WEIR_OK);
		for (size_t k = 0; k <= i; k++)
			assert_int_equal(wr_names_find(&names, texts[k]), k);
	}
	assert_int_equal(wr_names_find(&names, "x"), WR_NO_INDEX);
	wr_names_finish(&names);
}

static void names_are_counted_by_rank_and_removed_by_index(void **state)
{
	struct wr_names names = {0};

	(void)state;
	assert_int_equal(wr_names_insert(&names, "b", 0), WEIR_OK);
	assert_int_equal(wr_names_insert(&names, "c", 1), WEIR_OK);
	assert_int_equal(wr_names_insert(&names, "a", 2), WEIR_OK);
	assert_int_equal(wr_names_at(&names, 0), 2);
	assert_int_equal(wr_names_at(&names, 1), 0);
	assert_int_equal(wr_names_at(&names, 2), 1);
	assert_int_equal(wr_names_at(&names, 3), WR_NO_INDEX);
	wr_names_remove_from(&names, 1);
	assert_int_equal(wr_names_at(&names, 0), 0);
	assert_int_equal(wr_names_at(&names, 1), WR_NO_INDEX);
	assert_int_equal(wr_names_find(&names, "a"), WR_NO_INDEX);
	wr_names_finish(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_found_by_the_lowest_index_that_has_it),
		cmocka_unit_test(inserted_names_stay_sorted),
		cmocka_unit_test(names_are_counted_by_rank_and_removed_by_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
