/* The contract of copies (T1): rows and their strides, lists, what is refused, pageable memory. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "contract.h"

enum { BYTES = 4096, ROWS = 5, ROW = 24, WIDE = 40, NARROW = 32 };

static unsigned char *memory_of(struct rig *rig, int device)
{
	void *memory;

	assert_int_equal(wr_system_alloc(rig->system, device, BYTES, &memory), WEIR_OK);
	if (device == WEIR_DEVICE_HOST)
		memset(memory, 0, BYTES);
	return memory;
}

static weir_copy copy_of(void *to, const void *from, size_t rows, size_t to_stride, size_t from_stride)
{
	return (weir_copy){sizeof(weir_copy), to, from, rows, ROW, to_stride, from_stride};
}

static weir_copy line(void *to, const void *from, size_t bytes)
{
	return (weir_copy){.size = sizeof(weir_copy), .to = to, .from = from, .row_bytes = bytes};
}

static void fill(unsigned char *memory, size_t bytes, int first)
{
	for (size_t i = 0; i < bytes; i++)
		memory[i] = (unsigned char)(i * 7 + (size_t)first);
}

RIG_BODY(t1_rows_keep_their_bytes_and_what_lies_between_them_is_not_written)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *back = memory_of(rig, WEIR_DEVICE_HOST);
	unsigned char *there = memory_of(rig, 0), *other = memory_of(rig, 0);
	const weir_copy copies[] = {
		copy_of(there, here, ROWS, NARROW, WIDE),   /* to the device */
		copy_of(other, there, ROWS, ROW, NARROW),   /* on it */
		copy_of(back + 3, other, ROWS, WIDE, ROW),  /* to the host; an odd address */
		copy_of(back + 1024, here, ROWS, ROW, WIDE) /* on it */
	};
	weir_fence fence;

	fill(here, BYTES, 1);
	assert_int_equal(weir_stream_copies(rig->a, copies, 4, WEIR_COPY_ASYNC, &fence), WEIR_OK);
	rig_wait(rig, fence);
	for (size_t row = 0; row < ROWS; row++) {
		assert_memory_equal(back + 3 + row * WIDE, here + row * WIDE, ROW);
		assert_memory_equal(back + 1024 + row * ROW, here + row * WIDE, ROW);
		for (size_t i = ROW; i < WIDE; i++)
			assert_int_equal(back[3 + row * WIDE + i], 0);
	}
}

RIG_BODY(t1_columns_of_one_picture_may_be_copied_within_it)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), expected[2 * WIDE];
	const weir_copy beside = {sizeof beside, here + 16, here, 2, 16, WIDE, WIDE};
	const weir_copy below = {sizeof below, here + 2 * WIDE, here, 2, WIDE, WIDE, WIDE};
	const weir_copy on_itself = {sizeof on_itself, here + 15, here, 2, 16, WIDE, WIDE};
	const weir_copy wraps = {sizeof wraps, here + WIDE - 1, here, 2, 16, WIDE, WIDE};
	weir_fence fence;

	fill(here, 2 * WIDE, 9);
	memcpy(expected, here, sizeof expected);
	memcpy(expected + 16, here, 16);
	memcpy(expected + WIDE + 16, here + WIDE, 16);
	assert_int_equal(weir_stream_copies(rig->a, &beside, 1, 0, &fence), WEIR_OK);
	assert_int_equal(weir_stream_copies(rig->a, &below, 1, 0, &fence), WEIR_OK);
	rig_wait(rig, fence);
	assert_memory_equal(here, expected, sizeof expected);
	assert_memory_equal(here + 2 * WIDE, expected, sizeof expected);
	assert_int_equal(weir_stream_copies(rig->a, &on_itself, 1, 0, NULL), WEIR_E_INVALID);
	assert_int_equal(weir_stream_copies(rig->a, &wraps, 1, 0, NULL), WEIR_E_INVALID);
}

RIG_BODY(t1_copies_of_a_list_follow_each_other_and_share_a_fence)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *there = memory_of(rig, 0);
	const weir_copy copies[] = {line(there, here, 100), line(NULL, NULL, 0),
				    line(here + 200, there, 100)};
	uint64_t before = wr_stream_submitted(rig->a);
	weir_fence fence;

	fill(here, 100, 4);
	rig_store(rig, rig->a, 1, 2000000);
	assert_int_equal(weir_stream_copies(rig->a, copies, 3, 0, &fence), WEIR_OK);
	assert_int_equal(fence.value, before + 1);
	rig_wait(rig, fence);
	assert_memory_equal(here + 200, here, 100);
	assert_int_equal(weir_stream_copies(rig->a, NULL, 0, 0, &fence), WEIR_OK);
	assert_int_equal(fence.value, before + 2); /* of no copies */
}

RIG_BODY(t8_each_copy_counts_as_an_operation)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *there = memory_of(rig, 0);
	const weir_copy copies[] = {line(there, here, 1), copy_of(there + 8, here, ROWS, ROW, ROW),
				    line(NULL, NULL, 0)};

	wr_stream_take_operations(rig->a);
	assert_int_equal(weir_stream_copies(rig->a, copies, 3, 0, NULL), WEIR_OK);
	assert_true(wr_stream_dirty(rig->a));
	assert_int_equal(wr_stream_take_operations(rig->a), 2);
	rig_wait(rig, rig_record(rig->a));
}

/* --- what is refused: before the first copy is enqueued --- */

static void refused(struct rig *rig, weir_copy bad, const char *text)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *there = memory_of(rig, 0);
	const weir_copy copies[] = {line(there, here, 8), bad};
	weir_fence fence = {7, 7};

	assert_int_equal(weir_stream_copies(rig->b, copies, 2, 0, &fence), WEIR_E_INVALID);
	if (!strstr(weir_last_error(), text))
		fail_msg("'%s' is not in '%s'", text, weir_last_error());
	assert_int_equal(fence.stream, 7);
	assert_false(wr_stream_dirty(rig->b));
}

RIG_BODY(e06_t1_a_wrong_copy_is_named_and_none_is_enqueued)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *there = memory_of(rig, 0);
	weir_copy sizeless = line(there, here, 8);

	sizeless.size = 0;
	refused(rig, sizeless, "weir_copy: its size is 0");
	refused(rig, line(NULL, here, 8), "copies[1].to is NULL for rows of 8 bytes");
	refused(rig, line(there, NULL, 8), "copies[1].from is NULL");
	refused(rig, copy_of(there, here, 2, ROW - 1, ROW),
		"copies[1].to_stride is 23, less than a row of 24");
	refused(rig, copy_of(there, here, 2, ROW, 0), "copies[1].from_stride is 0");
	refused(rig, copy_of(there, here, 2, (size_t)1 << 31, ROW),
		"copies[1].to_stride is 2147483648, at most");
	refused(rig, copy_of(there, here, SIZE_MAX / 8, ROW, ROW), "rows end beyond the address space");
	refused(rig, line(here, here, SIZE_MAX), "rows end beyond the address space");
	refused(rig, line(there + 4, there, 8), "copies[1]: the bytes written are among those read");
	refused(rig, line(there, there + 7, 8), "copies[1]: the bytes written are among those read");
	refused(rig, copy_of(there, there + 5 * ROW - 1, 5, ROW, ROW), "among those read");
	assert_int_equal(weir_stream_copies(rig->b, &sizeless, 1, 2, NULL), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "flags 0x2 are unknown"));
	assert_int_equal(weir_stream_copies(rig->b, NULL, 1, 0, NULL), WEIR_E_INVALID);
	assert_int_equal(weir_stream_copies(NULL, NULL, 0, 0, NULL), WEIR_E_INVALID);
}

/* Only CUDA has memory whose copies make the caller wait. */
RIG_BODY(t1_pageable_memory_is_refused_by_name_where_its_copy_would_block)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *there = memory_of(rig, 0), pageable[64];
	const weir_copy up[] = {line(there, here, 64), line(there + 64, pageable, 64)};
	const weir_copy down = line(pageable, there, 64);
	bool blocks = rig_is("cuda");
	weir_fence fence;

	fill(pageable, sizeof pageable, 3);
	fill(here, 64, 5);
	assert_int_equal(weir_stream_copies(rig->b, up, 2, WEIR_COPY_ASYNC, NULL),
			 blocks ? WEIR_E_UNSUPPORTED : WEIR_OK);
	assert_int_equal(wr_stream_dirty(rig->b), !blocks);
	if (blocks)
		assert_string_equal(weir_last_error(),
				    "copies[1].from is pageable memory: use "
				    "memory of weir_context_create_tensor or cudaHostRegister");
	assert_int_equal(weir_stream_copies(rig->b, &down, 1, WEIR_COPY_ASYNC, NULL),
			 blocks ? WEIR_E_UNSUPPORTED : WEIR_OK);
	assert_int_equal(weir_stream_copies(rig->b, up, 2, 0, NULL), WEIR_OK);
	assert_int_equal(weir_stream_copies(rig->b, &down, 1, 0, &fence), WEIR_OK);
	rig_wait(rig, fence);
	assert_memory_equal(pageable, here, 64);
}

/* --- a device that refuses --- */

static unsigned char *pageable_from;

static weir_status pageable_above(void *self, const void *memory, bool *out)
{
	(void)self;
	*out = (const unsigned char *)memory >= pageable_from;
	return WEIR_OK;
}

RIG_BODY(t1_the_backend_says_what_is_pageable)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST);
	const weir_copy from = line(here, here + 512, 8), to = line(here + 512, here, 8),
			neither = line(here + 8, here, 8);

	pageable_from = here + 512;
	rig_own_backend(rig)->pageable = pageable_above;
	assert_int_equal(weir_stream_copies(rig->b, &from, 1, WEIR_COPY_ASYNC, NULL), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "copies[0].from is pageable memory: use"));
	assert_int_equal(weir_stream_copies(rig->b, &to, 1, WEIR_COPY_ASYNC, NULL), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "copies[0].to is pageable memory"));
	assert_false(wr_stream_dirty(rig->b));
	if (pageable_from > here + 16)
		assert_int_equal(weir_stream_copies(rig->b, &neither, 1, WEIR_COPY_ASYNC, NULL), WEIR_OK);
	rig_wait(rig, rig_record(rig->b));
}

static weir_status refuse_rows(void *self, int device, void *stream, const weir_copy *copy)
{
	(void)self;
	(void)device;
	(void)stream;
	return wr_fail(WEIR_E_FAILED, "no rows of %zu bytes today", copy->row_bytes);
}

RIG_BODY(t1_what_precedes_a_copy_that_the_device_refuses_stays_on_the_stream)
{
	unsigned char *here = memory_of(rig, WEIR_DEVICE_HOST), *there = memory_of(rig, 0);
	const weir_copy copies[] = {line(there, here, 100), line(here + 200, there, 100),
				    copy_of(there, here, 2, ROW, ROW), line(here + 200, here + 400, 100)};
	weir_fence fence = {7, 7};

	fill(here, 100, 4);
	rig_own_backend(rig)->copy_rows = refuse_rows;
	assert_int_equal(weir_stream_copies(rig->a, copies, 4, 0, &fence), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "copies[2]: no rows of 24 bytes today");
	assert_int_equal(fence.stream, 7);
	assert_true(wr_stream_dirty(rig->a));
	rig_wait(rig, rig_record(rig->a));
	assert_memory_equal(here + 200, here, 100);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(t1_rows_keep_their_bytes_and_what_lies_between_them_is_not_written),
	cmocka_unit_test(t1_columns_of_one_picture_may_be_copied_within_it),
	cmocka_unit_test(t1_copies_of_a_list_follow_each_other_and_share_a_fence),
	cmocka_unit_test(t8_each_copy_counts_as_an_operation),
	cmocka_unit_test(e06_t1_a_wrong_copy_is_named_and_none_is_enqueued),
	cmocka_unit_test(t1_pageable_memory_is_refused_by_name_where_its_copy_would_block),
	cmocka_unit_test(t1_the_backend_says_what_is_pageable),
	cmocka_unit_test(t1_what_precedes_a_copy_that_the_device_refuses_stays_on_the_stream),
};

const struct contract_part contract_copies = {tests, sizeof tests / sizeof *tests};
