#include <setjmp.h>
#include <stdarg.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "operators/picture.h"
#include "tests/operators/open.h"
#include "tests/operators/drawing.h"
#include "tests/operators/rig.h"

static char folder[64]; /* of the current test */

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/weir-pictures-XXXXXX");
	return !mkdtemp(folder);
}

static void remove_in(const char *path)
{
	DIR *directory = opendir(path);

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char name[600];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (entry->d_type == DT_DIR)
			remove_in(name);
		else
			unlink(name);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}

static int remove_folder(void **state)
{
	(void)state;
	remove_in(folder);
	return rig_messages() != 0;
}

/* "folder/name", valid until the eighth call from now. */
static const char *in_folder(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static const char *file_of(const char *name, const void *data, size_t size)
{
	const char *path = in_folder(name);
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return path;
}

static const char *file_drawn(const char *name, const struct drawing *drawing)
{
	size_t size;
	uint8_t *data = drawing_bytes(drawing, &size);
	const char *path = file_of(name, data, size);

	free(data);
	return path;
}

/* ---- reading: every colour type ---- */

static int scaled(const struct drawing *drawing, uint32_t x, uint32_t y, unsigned channel)
{
	unsigned sample = drawing_sample(drawing, x, y, channel), top = (1u << drawing->depth) - 1;

	return (int)((sample * 255u + top / 2) / top);
}

static bool is_transparent(const struct drawing *drawing, uint32_t x, uint32_t y)
{
	bool zero = drawing->transparent;

	for (unsigned channel = 0; channel < drawing_channels(drawing); channel++)
		zero = zero && !drawing_sample(drawing, x, y, channel);
	return zero;
}

/* The expected value of a pixel, from the PNG specification. */
static int expected(const struct drawing *drawing, uint32_t x, uint32_t y, unsigned channel)
{
	if (channel == 3 && !(drawing->type & 4))
		return is_transparent(drawing, x, y) ? (drawing->type == PALETTE ? 7 : 0) : 255;
	switch (drawing->type) {
	case PALETTE:
		return drawing_palette(drawing_sample(drawing, x, y, 0), channel);
	case GREY:
		return scaled(drawing, x, y, 0);
	case GREY_ALPHA:
		return scaled(drawing, x, y, channel == 3);
	default:
		return scaled(drawing, x, y, channel);
	}
}

static unsigned channels_expected(const struct drawing *drawing)
{
	if ((drawing->type & 4) || drawing->transparent)
		return 4;
	return drawing->type == GREY ? 1 : 3;
}

static void compare(const struct drawing *drawing)
{
	struct wr_picture picture;
	uint8_t *rows, *at;

	assert_true(picture_open(&picture, file_drawn("a.png", drawing)));
	assert_int_equal(picture.image.width, drawing->width);
	assert_int_equal(picture.image.height, drawing->height);
	assert_int_equal(picture.image.channels, channels_expected(drawing));
	at = rows = malloc((size_t)drawing->width * drawing->height * 4);
	assert_true(wr_picture_rows(&picture, rows));
	for (uint32_t y = 0; y < drawing->height; y++)
		for (uint32_t x = 0; x < drawing->width; x++)
			for (unsigned c = 0; c < channels_expected(drawing); c++)
				assert_int_equal(*at++, expected(drawing, x, y, c));
	free(rows);
	wr_picture_close(&picture);
}

static void every_colour_type_depth_and_interlacing_is_read(void **state)
{
	static const uint8_t types[][2] = {
		{GREY, 1},    {GREY, 2},       {GREY, 4},        {GREY, 8},      {GREY, 16},
		{RGB, 8},     {RGB, 16},       {PALETTE, 1},     {PALETTE, 2},   {PALETTE, 4},
		{PALETTE, 8}, {GREY_ALPHA, 8}, {GREY_ALPHA, 16}, {RGB_ALPHA, 8}, {RGB_ALPHA, 16},
	};
	static const uint32_t sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {13, 11}};

	(void)state;
	for (size_t type = 0; type < 15; type++)
		for (size_t size = 0; size < 4; size++)
			for (unsigned flags = 0; flags < (types[type][0] & 4 ? 2 : 4); flags++)
				compare(&(struct drawing){
					.width = sizes[size][0],
					.height = sizes[size][1],
					.type = types[type][0],
					.depth = types[type][1],
					.interlaced = flags & 1,
					.transparent = flags & 2,
				});
}

/* ---- reading: broken files ---- */

static bool readable(const char *path, char text[WR_PICTURE_TEXT])
{
	struct wr_picture picture;
	bool read = picture_open(&picture, path);
	uint8_t *rows = NULL;

	if (read) {
		struct wr_image image = picture.image;

		rows = malloc((size_t)image.width * (size_t)image.height * (size_t)image.channels);
		read = rows && wr_picture_rows(&picture, rows);
	}
	memcpy(text, picture.text, WR_PICTURE_TEXT);
	wr_picture_close(&picture);
	free(rows);
	return read;
}

static void e06_a_file_cut_anywhere_is_refused_with_a_reason(void **state)
{
	size_t size;
	uint8_t *data =
		drawing_bytes(&(struct drawing){.width = 5, .height = 4, .type = RGB, .depth = 8}, &size);
	char text[WR_PICTURE_TEXT];

	(void)state;
	for (size_t length = 0; length < size; length++) {
		assert_false(readable(file_of("cut.png", data, length), text));
		assert_in_range(strlen(text), 1, WR_PICTURE_TEXT - 1);
	}
	assert_true(readable(file_of("cut.png", data, size), text));
	free(data);
}

static void e06_a_file_with_any_byte_changed_is_read_or_refused_with_a_reason(void **state)
{
	static const uint8_t changes[] = {0x01, 0x80, 0xff};
	struct drawing drawing = {.width = 5, .height = 4, .type = PALETTE, .depth = 2, .interlaced = true};
	size_t size, refused = 0;
	uint8_t *data = drawing_bytes(&drawing, &size);
	char text[WR_PICTURE_TEXT];

	(void)state;
	for (size_t i = 0; i < 3 * size; i++) {
		data[i / 3] ^= changes[i % 3];
		if (!readable(file_of("changed.png", data, size), text)) {
			assert_in_range(strlen(text), 1, WR_PICTURE_TEXT - 1);
			refused++;
		}
		data[i / 3] ^= changes[i % 3];
	}
	assert_true(refused > 2 * size);
	free(data);
}

static void f87_a_small_file_that_claims_to_be_huge_is_refused_before_memory_is_asked_for(void **state)
{
	struct drawing drawing = {.width = 2, .height = 2, .type = RGB, .depth = 8};
	struct wr_picture picture;

	(void)state;
	drawing.claimed_width = drawing.claimed_height = WR_PICTURE_SIDE_MAX;
	assert_false(picture_open(&picture, file_drawn("huge.png", &drawing)));
	assert_non_null(strstr(picture.text, "too short for the size"));
	wr_picture_close(&picture);
	drawing.claimed_width = 1u << 20;
	assert_false(picture_open(&picture, file_drawn("huge.png", &drawing)));
	wr_picture_close(&picture);
}

static void e06_what_is_no_picture_is_named_so(void **state)
{
	char text[WR_PICTURE_TEXT];

	(void)state;
	assert_false(readable(in_folder("none.png"), text));
	assert_string_equal(text, "No such file or directory");
	assert_false(readable(folder, text));
	assert_string_equal(text, "not a regular file");
	assert_int_equal(mkfifo(in_folder("pipe.png"), 0600), 0);
	assert_false(readable(in_folder("pipe.png"), text)); /* and does not wait for a writer */
	assert_string_equal(text, "not a regular file");
	assert_false(readable(file_of("text.png", "hello, weir", 11), text));
	assert_string_equal(text, "not a PNG file");
}

/* ---- writing ---- */

static void what_is_written_is_read_again_byte_for_byte(void **state)
{
	(void)state;
	for (int64_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1)
		for (int compression = 0; compression <= 9; compression += 3) {
			weir_message *message = rig_image(WEIR_DEVICE_HOST, 7, 5, channels);
			struct wr_image image = {.height = 7, .width = 5, .channels = (int32_t)channels};
			struct wr_picture picture;
			uint8_t rows[7 * 5 * 4];

			unlink(in_folder("w.png"));
			assert_true(wr_picture_write(AT_FDCWD, in_folder("w.png"), weir_message_data(message),
						     image, compression, (char[WR_PICTURE_TEXT]){0}));
			assert_true(picture_open(&picture, in_folder("w.png")));
			assert_memory_equal(&picture.image, &image, sizeof image);
			assert_true(wr_picture_rows(&picture, rows));
			assert_memory_equal(rows, weir_message_data(message), weir_message_size(message));
			wr_picture_close(&picture);
			weir_message_unref(message);
		}
}

static void e06_an_existing_file_or_a_missing_folder_is_named(void **state)
{
	struct wr_image image = {.height = 1, .width = 1, .channels = 1};
	const uint8_t data[] = {1};
	char text[WR_PICTURE_TEXT];

	(void)state;
	assert_int_equal(symlink("/dev/full", in_folder("there.png")), 0);
	assert_false(wr_picture_write(AT_FDCWD, in_folder("there.png"), data, image, 0,
				      text)); /* links are not followed */
	assert_string_equal(text, "File exists");
	assert_int_equal(access(in_folder("there.png"), F_OK), 0);
	assert_false(wr_picture_write(AT_FDCWD, in_folder("no/where.png"), data, image, 0, text));
	assert_string_equal(text, "No such file or directory");
}

/* The file size is limited, so the write fails as on a full disk. */
static void e06_a_write_that_fails_is_named_and_leaves_no_file(void **state)
{
	struct wr_image image = {.height = 300, .width = 300, .channels = 1};
	uint8_t *data = calloc(300, 300);
	struct rlimit old, small;
	char text[WR_PICTURE_TEXT];
	bool written;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){.rlim_cur = 1000, .rlim_max = old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	written = wr_picture_write(AT_FDCWD, in_folder("big.png"), data, image, 0, text);
	setrlimit(RLIMIT_FSIZE, &old);
	free(data);
	assert_false(written);
	assert_string_equal(text, "File too large");
	assert_int_equal(access(in_folder("big.png"), F_OK), -1);
}

/* ---- the operators ---- */

static void rig_start_with(struct rig *rig, const weir_operator *kind, const char *format, const char *path)
{
	char parameters[256];

	snprintf(parameters, sizeof parameters, format, path);
	rig_start(rig, kind, parameters);
}

static void png_read_reads_a_folder_in_the_order_of_names_and_then_ends(void **state)
{
	struct rig rig;

	(void)state;
	file_drawn("b.png", &(struct drawing){.width = 2, .height = 1, .type = GREY, .depth = 8});
	file_drawn("B.PNG", &(struct drawing){.width = 1, .height = 1, .type = GREY, .depth = 8});
	file_drawn("c.png", &(struct drawing){.width = 3, .height = 1, .type = RGB, .depth = 8});
	file_drawn("c.jpg", &(struct drawing){.width = 9, .height = 1, .type = GREY, .depth = 8});
	rig_start_with(&rig, &wr_png_read, "path=%s repeat=2", folder);
	for (int i = 0; i < 6; i++) {
		assert_false(rig.context.finished);
		assert_int_equal(rig_tick(&rig), WEIR_OK);
		assert_int_equal(weir_message_tensor(rig.context.out[0])->shape[1], 1 + i % 3);
		assert_int_equal(weir_message_tensor(rig.context.out[0])->device, WEIR_DEVICE_HOST);
	}
	assert_true(rig.context.finished);
	rig_stop(&rig);
}

static void png_read_of_a_file_with_repeat_zero_has_no_end(void **state)
{
	struct rig rig;

	(void)state;
	rig_start_with(
		&rig, &wr_png_read, "path=%s repeat=0",
		file_drawn("a.png", &(struct drawing){.width = 2, .height = 1, .type = GREY, .depth = 8}));
	for (int i = 0; i < 20; i++)
		assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_false(rig.context.finished);
	rig_stop(&rig);
}

static void e06_png_read_names_the_path_and_what_is_wrong(void **state)
{
	struct rig rig;

	(void)state;
	rig_start_with(&rig, &wr_png_read, "path=%s", in_folder("none"));
	assert_int_equal(rig.started, WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "/none': No such file or directory"));
	rig_stop(&rig);
	rig_start_with(&rig, &wr_png_read, "path=%s", folder);
	assert_int_equal(rig.started, WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "no *.png in this folder"));
	rig_stop(&rig);
	file_of("bad.png", "\211PNG\r\n\032\n", 8);
	rig_start_with(&rig, &wr_png_read, "path=%s", folder);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "/bad.png': the file ends too early"));
	rig_stop(&rig);
}

static void xa08_png_read_bounds_the_pixels_of_a_picture(void **state)
{
	struct rig rig;

	(void)state;
	for (int bound = 59; bound <= 60; bound++) {
		char format[64];
		snprintf(format, sizeof format, "path=%%s max_bytes=%d", bound);
		rig_start_with(
			&rig, &wr_png_read, format,
			file_drawn("a.png",
				   &(struct drawing){.width = 5, .height = 4, .type = RGB, .depth = 8}));
		assert_int_equal(rig_tick(&rig), bound < 60 ? WEIR_E_FAILED : WEIR_OK);
		if (bound < 60)
			assert_non_null(strstr(rig.context.text,
					       "5 x 4 pixels of 3 bytes are more than max_bytes, 59"));
		rig_stop(&rig);
	}
}

static void e06_png_read_of_a_picture_without_its_end_emits_nothing(void **state)
{
	size_t size;
	uint8_t *data =
		drawing_bytes(&(struct drawing){.width = 5, .height = 4, .type = RGB, .depth = 8}, &size);
	struct rig rig;

	(void)state;
	rig_start_with(&rig, &wr_png_read, "path=%s", file_of("cut.png", data, size - 20));
	free(data);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "/cut.png': the file ends too early"));
	assert_int_equal(rig.context.out_count, 0);
	assert_int_equal(rig.context.failed, WEIR_E_FAILED); /* what was read before is worked off */
	rig_stop(&rig);
}

static void f40_png_read_without_memory_fails_and_leaks_nothing(void **state)
{
	struct rig rig;

	(void)state;
	rig_start_with(
		&rig, &wr_png_read, "path=%s",
		file_drawn("a.png", &(struct drawing){.width = 2, .height = 1, .type = GREY, .depth = 8}));
	rig.context.fails_to_allocate = true;
	assert_int_equal(rig_tick(&rig), WEIR_E_NOMEM);
	rig_stop(&rig);
}

static size_t files_in(const char *path)
{
	DIR *directory = opendir(path);
	size_t count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count ? count - 2 : 0;
}

static void png_write_makes_the_folder_and_numbers_whole_files(void **state)
{
	struct rig rig;
	char text[WR_PICTURE_TEXT];

	(void)state;
	rig_start_with(&rig, &wr_png_write, "directory=%s prefix=%%d-", in_folder("x/y/z"));
	assert_int_equal(rig.started, WEIR_OK);
	for (int i = 0; i < 2; i++) {
		rig_give(&rig, rig_image(WEIR_DEVICE_HOST, 3, 4, 3));
		assert_int_equal(rig_tick(&rig), WEIR_OK);
	}
	assert_true(readable(in_folder("x/y/z/%d-000000.png"), text)); /* F83: no format string */
	assert_true(readable(in_folder("x/y/z/%d-000001.png"), text));
	assert_int_equal(files_in(in_folder("x/y/z")), 2); /* the temporary file is gone */
	rig_stop(&rig);
}

static int height_of(const char *name)
{
	struct wr_picture picture;
	int height = picture_open(&picture, in_folder(name)) ? (int)picture.image.height : -1;

	wr_picture_close(&picture);
	return height;
}

static void png_write_writes_the_first_image_and_then_every_nth(void **state)
{
	struct rig rig;

	(void)state;
	rig_start_with(&rig, &wr_png_write, "directory=%s every=3", folder);
	for (int i = 0; i < 8; i++) { /* would fail if it looked at another one than 0, 3 and 6 */
		rig_give(&rig, rig_image(i % 3 ? RIG_DEVICE : WEIR_DEVICE_HOST, i + 1, 2, 1));
		assert_int_equal(rig_tick(&rig), WEIR_OK);
	}
	rig_stop(&rig);
	assert_int_equal(files_in(folder), 3);
	assert_int_equal(height_of("frame000000.png"), 1);
	assert_int_equal(height_of("frame000001.png"), 4);
	assert_int_equal(height_of("frame000002.png"), 7);
}

static void e06_png_write_refuses_places_it_cannot_write_to(void **state)
{
	struct rig rig;

	(void)state;
	file_of("file", "", 0);
	rig_start_with(&rig, &wr_png_write, "directory=%s", in_folder("file"));
	assert_int_equal(rig.started, WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "something else of this name"));
	rig_stop(&rig);
	rig_start_with(&rig, &wr_png_write, "directory=%s", in_folder("file/below"));
	assert_int_equal(rig.started, WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "Not a directory"));
	rig_stop(&rig);
	rig_start_with(&rig, &wr_png_write, "directory=%s prefix=../x", folder);
	assert_int_equal(rig.started, WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "must have no '/'"));
	rig_stop(&rig);
}

static void e06_png_write_refuses_what_the_device_still_writes_and_names_the_condition(void **state)
{
	struct rig rig;
	weir_message *message = rig_image(WEIR_DEVICE_HOST, 2, 2, 1);

	(void)state;
	rig_start_with(&rig, &wr_png_write, "directory=%s", folder);
	message->unfinished = true;
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "take \"gate\": false of port 'in' out of 'me'"));
	rig_give(&rig, rig_image(RIG_DEVICE, 2, 2, 1));
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "put a 'download' before it"));
	assert_int_equal(files_in(folder), 0);
	rig_stop(&rig);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_A_FOLDER(every_colour_type_depth_and_interlacing_is_read),
		IN_A_FOLDER(e06_a_file_cut_anywhere_is_refused_with_a_reason),
		IN_A_FOLDER(e06_a_file_with_any_byte_changed_is_read_or_refused_with_a_reason),
		IN_A_FOLDER(f87_a_small_file_that_claims_to_be_huge_is_refused_before_memory_is_asked_for),
		IN_A_FOLDER(e06_what_is_no_picture_is_named_so),
		IN_A_FOLDER(what_is_written_is_read_again_byte_for_byte),
		IN_A_FOLDER(e06_an_existing_file_or_a_missing_folder_is_named),
		IN_A_FOLDER(e06_a_write_that_fails_is_named_and_leaves_no_file),
		IN_A_FOLDER(png_read_reads_a_folder_in_the_order_of_names_and_then_ends),
		IN_A_FOLDER(png_read_of_a_file_with_repeat_zero_has_no_end),
		IN_A_FOLDER(e06_png_read_names_the_path_and_what_is_wrong),
		IN_A_FOLDER(xa08_png_read_bounds_the_pixels_of_a_picture),
		IN_A_FOLDER(e06_png_read_of_a_picture_without_its_end_emits_nothing),
		IN_A_FOLDER(f40_png_read_without_memory_fails_and_leaks_nothing),
		IN_A_FOLDER(png_write_makes_the_folder_and_numbers_whole_files),
		IN_A_FOLDER(png_write_writes_the_first_image_and_then_every_nth),
		IN_A_FOLDER(e06_png_write_refuses_places_it_cannot_write_to),
		IN_A_FOLDER(e06_png_write_refuses_what_the_device_still_writes_and_names_the_condition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
