/* draw compared with boxes and letters found pixel by pixel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "operators/font.h"
#include "operators/operators.h"
#include "tests/operators/rig.h"

enum { GROUND = 9 };

static weir_message *plain(int height, int width, int channels)
{
	weir_message *image = rig_image(WEIR_DEVICE_HOST, height, width, channels);

	memset(weir_message_data(image), GROUND, weir_message_size(image));
	return image;
}

static weir_message *boxes_of(const float *values, int64_t count, int64_t columns)
{
	weir_message *boxes = rig_image(WEIR_DEVICE_HOST, count, columns, 4);

	boxes->tensor.dimensions = 2;
	boxes->tensor.code = 2;
	boxes->tensor.bits = 32;
	if (count)
		memcpy(weir_message_data(boxes), values, weir_message_size(boxes));
	return boxes;
}

static weir_message *text_of(const char *text)
{
	weir_message *bytes = rig_bytes(strlen(text));

	if (*text)
		memcpy(weir_message_data(bytes), text, strlen(text));
	return bytes;
}

/* Takes the messages; boxes and text may be NULL. Returns what came out. */
static const uint8_t *drawn(struct rig *rig, const char *parameters, weir_message *image, weir_message *boxes,
			    weir_message *text)
{
	rig_start(rig, &wr_draw, parameters);
	assert_int_equal(rig->started, WEIR_OK);
	rig_give(rig, image);
	if (boxes)
		rig_give_side(rig, 1, boxes);
	if (text)
		rig_give_side(rig, 2, text);
	assert_int_equal(rig_tick(rig), WEIR_OK);
	assert_int_equal(rig->context.out_count, 1);
	return weir_message_data(rig->context.out[0]);
}

/* --- boxes --- */

struct box {
	float x0, y0, x1, y1;
	int left, top, right, bottom; /* what it covers, without the last column and row */
};

static bool on_frame(const struct box *box, int thickness, int x, int y)
{
	bool inside = x >= box->left && x < box->right && y >= box->top && y < box->bottom;
	bool within = x >= box->left + thickness && x < box->right - thickness && y >= box->top + thickness &&
		      y < box->bottom - thickness;

	return inside && !within;
}

static void compare_box(const struct box *box, int thickness, bool fractions)
{
	enum { HEIGHT = 20, WIDTH = 30 };
	const float pixels[] = {box->x0, box->y0, box->x1, box->y1};
	const float parts[] = {box->x0 / WIDTH, box->y0 / HEIGHT, box->x1 / WIDTH, box->y1 / HEIGHT};
	const uint8_t *at;
	char text[64];
	struct rig rig;

	snprintf(text, sizeof text, "thickness=%d colour=[1,2,3] units=%s", thickness,
		 fractions ? "fractions" : "pixels");
	at = drawn(&rig, text, plain(HEIGHT, WIDTH, 3), boxes_of(fractions ? parts : pixels, 1, 4), NULL);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			for (int c = 0; c < 3; c++, at++)
				assert_int_equal(*at, on_frame(box, thickness, x, y) ? c + 1 : GROUND);
	rig_stop(&rig);
}

static void a_box_is_a_frame_inside_its_corners(void **state)
{
	static const struct box boxes[] = {
		{2, 3, 20, 15, 2, 3, 20, 15},
		{0, 0, 30, 20, 0, 0, 30, 20},          /* the whole picture */
		{20, 15, 2, 3, 2, 3, 20, 15},          /* the other corner first */
		{2.4f, 2.6f, 9.5f, 9.4f, 2, 3, 10, 9}, /* halves up */
		{5, 5, 5, 5, 5, 5, 6, 6},              /* at least a pixel */
		{-9, -5, 12, 10, -9, -5, 12, 10},      /* partly outside */
		{25, 15, 99, 99, 25, 15, 99, 99},
		{-9, -9, -1, -1, 0, 0, 0, 0}, /* outside */
		{30, 20, 40, 40, 0, 0, 0, 0},
		{-1e30f, 4, 1e30f, 8, -9999, 4, 9999, 8},
		{NAN, 0, 5, 5, 0, 0, 0, 0}, /* no box */
		{0, 0, INFINITY, 5, 0, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
		for (int thickness = 1; thickness <= 5; thickness += 2) {
			compare_box(&boxes[i], thickness, false);
			if (floorf(boxes[i].x1) == boxes[i].x1 && fabsf(boxes[i].x1) < 1e9f)
				compare_box(&boxes[i], thickness, true);
		}
}

/* The box of the whole picture, and one in it, as the letterbox shows them. */
static void compare_letterbox(const char *parameters, const float *box, struct box expected)
{
	enum { HEIGHT = 18, WIDTH = 32 };
	const uint8_t *at;
	struct rig rig;

	at = drawn(&rig, parameters, plain(HEIGHT, WIDTH, 1), boxes_of(box, 1, 4), NULL);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++, at++)
			assert_int_equal(*at, on_frame(&expected, 1, x, y) ? 77 : GROUND);
	rig_stop(&rig);
}

static void boxes_of_a_letterbox_are_computed_back(void **state)
{
	static const float whole[] = {0, 3, 16, 12}, part[] = {2, 4, 8, 9.5f}, beside[] = {2, 0, 8, 2};
	static const float fractions[] = {0, 3 / 16.0f, 1, 12 / 16.0f};
	static const float upright[] = {42, 0, 58, 9};

	(void)state;
	compare_letterbox("letterbox=[16,16]", whole, (struct box){.right = 32, .bottom = 18});
	compare_letterbox("letterbox=[16,16]", part,
			  (struct box){.left = 4, .top = 2, .right = 16, .bottom = 13});
	compare_letterbox("letterbox=[16,16]", beside, (struct box){0});
	compare_letterbox("letterbox=[16,16] units=fractions", fractions,
			  (struct box){.right = 32, .bottom = 18});
	compare_letterbox("letterbox=[100,9]", upright, (struct box){.right = 32, .bottom = 18});
}

static size_t changed(const struct rig *rig)
{
	const weir_message *out = rig->context.out[0];
	const uint8_t *data = weir_message_data(out);
	size_t count = 0;

	for (size_t i = 0; i < weir_message_size(out); i++)
		count += data[i] != GROUND;
	return count;
}

static void boxes_below_the_least_score_are_left_out(void **state)
{
	static const float boxes[] = {0, 100, 9, 109, 0.5f, 0, 100, 9, 109, 0.49f, 0, 100, 9, 109, NAN};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rig rig;

		drawn(&rig, "min_score=0.5", plain(200, 99, 1), boxes_of(boxes + 5 * i, 1, 5), NULL);
		assert_int_equal(changed(&rig) > 0, i == 0);
		rig_stop(&rig);
	}
}

static void no_boxes_and_no_text_change_nothing(void **state)
{
	struct rig rig;

	(void)state;
	drawn(&rig, "", plain(9, 9, 3), NULL, NULL);
	assert_int_equal(changed(&rig), 0);
	rig_stop(&rig);
	drawn(&rig, "", plain(9, 9, 3), boxes_of(NULL, 0, 6), text_of(""));
	assert_int_equal(changed(&rig), 0);
	rig_stop(&rig);
}

/* --- text --- */

static void compare_art(const uint8_t *data, int width, int height, const char *const *art)
{
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			char found = data[y * width + x] == 255 ? '#' : data[y * width + x] == 0 ? '.' : ' ';

			if (found != art[y][x])
				fail_msg("row %d, column %d: '%c' instead of '%c'", y, x, found, art[y][x]);
		}
}

static void lines_of_text_stand_in_the_upper_left_corner(void **state)
{
	static const char *const art[] = {
		"                ", " .............  ", " ...#.....##..  ", " ..#.#...#..#.  ",
		" .#...#..#....  ", " .#...#.####..  ", " .#####..#....  ", " .#...#..#....  ",
		" .#...#..#....  ", " .............  ", " .......        ", " ....#..        ",
		" .......        ", " ...##..        ", " ....#..        ", " ....#..        ",
		" .#..#..        ", " ..##...        ", " .......        ", "                ",
	};
	struct rig rig;

	(void)state;
	compare_art(drawn(&rig, "colour=0 scale=1", plain(20, 16, 1), NULL, text_of("Af\nj")), 16, 20, art);
	rig_stop(&rig);
}

/* A character of several bytes is one block; the lines of nothing leave room. */
static void other_characters_are_blocks(void **state)
{
	static const char *const art[] = {
		"          ", "          ", "          ", "          ", "          ",
		"          ", "          ", "          ", "          ", "          ",
		" .......  ", " .#####.  ", " .#####.  ", " .#####.  ", " .#####.  ",
		" .#####.  ", " .#####.  ", " .#####.  ", " .......  ", "          ",
	};
	struct rig rig;

	(void)state;
	compare_art(drawn(&rig, "colour=0 scale=1", plain(20, 10, 1), NULL, text_of("\n\xe2\x82\xac\n")), 10,
		    20, art);
	rig_stop(&rig);
}

static void letters_grow_by_their_scale(void **state)
{
	struct rig one, three;
	const uint8_t *small, *large;

	(void)state;
	small = drawn(&one, "scale=1", plain(30, 40, 1), NULL, text_of("xyz\nQ"));
	large = drawn(&three, "scale=3", plain(90, 120, 1), NULL, text_of("xyz\nQ"));
	for (int y = 0; y < 90; y++)
		for (int x = 0; x < 120; x++)
			assert_int_equal(large[y * 120 + x], small[y / 3 * 40 + x / 3]);
	rig_stop(&one);
	rig_stop(&three);
}

/* By the height of the picture: 480 is 2. */
static void scale_and_thickness_follow_the_picture(void **state)
{
	static const float box[] = {10, 100, 300, 300};
	struct rig one, two;

	(void)state;
	drawn(&one, "", plain(480, 320, 1), boxes_of(box, 1, 4), text_of("a"));
	drawn(&two, "scale=2 thickness=2", plain(480, 320, 1), boxes_of(box, 1, 4), text_of("a"));
	assert_memory_equal(weir_message_data(one.context.out[0]), weir_message_data(two.context.out[0]),
			    480 * 320);
	rig_stop(&one);
	rig_stop(&two);
}

static void each_character_has_a_letter_of_its_own(void **state)
{
	uint64_t letters[96];

	(void)state;
	for (unsigned i = 0; i < 96; i++) {
		letters[i] = 0;
		for (int y = 0; y < WR_FONT_HEIGHT; y++)
			for (int x = 0; x < WR_FONT_WIDTH; x++)
				letters[i] = letters[i] << 1 | wr_font_pixel((unsigned char)(' ' + i), x, y);
		for (unsigned j = 0; j < i; j++)
			assert_true(letters[i] != letters[j]);
	}
	assert_int_equal(letters[0], 0);
	assert_true(letters[95] == (UINT64_C(1) << 35) - 1);
	assert_true(wr_font_pixel(200, 0, 0) && wr_font_pixel(3, 4, 6));
}

/* --- the text of a box, compared with the same text drawn as a line --- */

/* The line begins at 1, 1. */
static void assert_box_text(const char *parameters, const float *box, int columns, int top,
			    const char *expected)
{
	enum { HEIGHT = 30, WIDTH = 100 };
	struct rig rig, line;
	const uint8_t *found, *wanted;

	found = drawn(&rig, parameters, plain(HEIGHT, WIDTH, 1), boxes_of(box, 1, columns), NULL);
	wanted = drawn(&line, "", plain(HEIGHT, WIDTH, 1), NULL, text_of(expected));
	for (int y = 0; y < 9; y++)
		for (int x = 0; x < 1 + 6 * (int)strlen(expected); x++)
			assert_int_equal(found[(top + y) * WIDTH + (int)box[0] + x],
					 wanted[(1 + y) * WIDTH + 1 + x]);
	rig_stop(&rig);
	rig_stop(&line);
}

static void the_text_stands_on_its_box_or_in_it(void **state)
{
	static const float boxes[][5] = {
		{4, 9, 40, 20, 1}, {4, 8, 40, 20, 1}, {4, 0, 40, 20, 1}, {4, -5, 40, 20, 1}};
	static const int tops[] = {0, 8, 0, 0};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_box_text("", boxes[i], 5, tops[i], "1.00");
}

static void a_box_is_called_by_class_and_score(void **state)
{
	static const float box[] = {4, 15, 20, 25, 0.876f, 1}, unnamed[] = {4, 15, 20, 25, 0.876f, 7};
	static const float no_class[] = {4, 15, 20, 25, 0.876f, -1};
	char path[] = "/tmp/weir-labels-XXXXXX", parameters[64];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0 && write(fd, "cat\ndog\n", 8) == 8);
	close(fd);
	snprintf(parameters, sizeof parameters, "labels=%s", path);
	assert_box_text(parameters, box, 6, 6, "dog 0.88");
	assert_box_text(parameters, unnamed, 6, 6, "7 0.88");
	assert_box_text(parameters, no_class, 6, 6, "0.88");
	assert_box_text("", box, 6, 6, "1 0.88");
	assert_box_text("", box, 5, 6, "0.88");
	unlink(path);
}

/* Nothing is written outside of the picture: the address sanitizer would say so. */
static void what_lies_across_an_edge_is_clipped(void **state)
{
	static const float starts[] = {-70, -3, 0, 5, 15, 19};

	(void)state;
	for (size_t i = 0; i < 36; i++)
		for (int scale = 1; scale < 10; scale += 4) {
			const float box[] = {
				starts[i % 6], starts[i / 6], starts[i % 6] + 7, starts[i / 6] + 9, 1, 3};
			char text[32];
			struct rig rig;

			snprintf(text, sizeof text, "scale=%d", scale);
			drawn(&rig, text, plain(20, 20, 4), boxes_of(box, 1, 6),
			      text_of("some\nlines\n\nof text"));
			rig_stop(&rig);
		}
}

/* --- colours --- */

static void assert_colours(const char *parameters, int channels, const uint8_t *ground, const uint8_t *ink)
{
	const uint8_t *data;
	struct rig rig;

	data = drawn(&rig, parameters, plain(12, 12, channels), NULL, text_of("\x80\xff"));
	assert_memory_equal(data + (12 + 1) * channels, ground, (size_t)channels);
	assert_memory_equal(data + (2 * 12 + 2) * channels, ink, (size_t)channels);
	rig_stop(&rig);
}

static void colours_fit_the_channels(void **state)
{
	static const uint8_t red[] = {255, 0, 0, 255}, white[] = {255, 255, 255, 255},
			     black[] = {0, 0, 0, 255};
	static const uint8_t dark[] = {77, 255}, light[] = {255, 255}, grey[] = {200, 200, 200, 255};
	static const uint8_t seen_through[] = {1, 2, 3, 4}, of_two[] = {50, 60};

	(void)state;
	assert_colours("", 3, red, white);
	assert_colours("", 4, red, white);
	assert_colours("", 1, dark, light);
	assert_colours("", 2, dark, light);
	assert_colours("colour=200", 4, grey, black);
	assert_colours("colour=[1,2,3,4]", 4, seen_through, white);
	assert_colours("colour=[50,60]", 2, of_two, light);
}

/* --- messages --- */

static void a_picture_of_others_is_copied(void **state)
{
	weir_message *shared = plain(12, 12, 1), *own = plain(12, 12, 1);
	struct rig rig;

	(void)state;
	assert_int_equal(drawn(&rig, "", weir_message_ref(shared), NULL, text_of("a"))[13], 77);
	assert_ptr_not_equal(rig.context.out[0], shared);
	assert_int_equal(((uint8_t *)weir_message_data(shared))[13], GROUND);
	rig_stop(&rig);
	weir_message_unref(shared);
	drawn(&rig, "", own, NULL, text_of("a"));
	assert_ptr_equal(rig.context.out[0], own);
	rig_stop(&rig);
}

static void parts_of_the_ports_names_are_taken(void **state)
{
	static const float box[] = {2, 2, 9, 9};
	weir_message *boxes = boxes_of(box, 1, 4), *text = text_of("a");
	const weir_part parts[] = {{sizeof(weir_part), "text", text}, {sizeof(weir_part), "boxes", boxes}};
	struct rig one, two;

	(void)state;
	drawn(&one, "", plain(30, 30, 1), rig_parts(parts, 2), rig_parts(parts, 2));
	drawn(&two, "", plain(30, 30, 1), boxes, text);
	assert_memory_equal(weir_message_data(one.context.out[0]), weir_message_data(two.context.out[0]),
			    900);
	rig_stop(&one);
	rig_stop(&two);
}

/* --- what is refused --- */

static void refused(weir_message *image, weir_message *boxes, weir_message *text, const char *line)
{
	struct rig rig;

	rig_start(&rig, &wr_draw, "");
	rig_give(&rig, image);
	if (boxes)
		rig_give_side(&rig, 1, boxes);
	if (text)
		rig_give_side(&rig, 2, text);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	if (!strstr(rig.context.text, line))
		fail_msg("%s", rig.context.text);
	assert_int_equal(rig.context.out_count, 0);
	rig_stop(&rig);
}

static void e06_what_cannot_be_drawn_gets_a_line(void **state)
{
	static const float some[40] = {0};
	weir_message *text = text_of("a"), *device = boxes_of(some, 2, 4), *pending = boxes_of(some, 2, 4);
	weir_message *late = plain(4, 4, 3);
	const weir_part parts[] = {{sizeof(weir_part), "text", text}};
	const weir_part wrong[] = {{sizeof(weir_part), "text", device}};

	(void)state;
	device->tensor.device = RIG_DEVICE;
	pending->unfinished = late->unfinished = true;
	refused(rig_image(RIG_DEVICE, 4, 4, 3), NULL, NULL, "put a 'download' before it");
	refused(rig_image(WEIR_DEVICE_HOST, 4, 4, 5), NULL, NULL, "got uint8 [4, 4, 5] in host memory");
	refused(rig_bytes(4), NULL, NULL, "got a message without a tensor");
	refused(late, NULL, NULL, "the device still writes what input 'in' holds");
	refused(plain(4, 4, 3), pending, NULL, "the device still writes what input 'boxes' holds");
	refused(plain(4, 4, 3), weir_message_ref(device), NULL, "got float32 [2, 4] on device 3");
	refused(plain(4, 4, 3), boxes_of(some, 2, 3), NULL,
		"[boxes, 4 to 6] in host memory, got float32 [2, 3]");
	refused(plain(4, 4, 3), boxes_of(some, 2, 7), NULL, "got float32 [2, 7]");
	refused(plain(4, 4, 3), rig_image(WEIR_DEVICE_HOST, 4, 4, 3), NULL, "got uint8 [4, 4, 3]");
	refused(plain(4, 4, 3), rig_parts(parts, 1), NULL, "input 'boxes' has no part 'boxes'");
	refused(plain(4, 4, 3), NULL, rig_parts(wrong, 1), "input 'text' expects bytes");
	weir_message_unref(text);
	weir_message_unref(device);
}

static void a_start_that_fails_says_why(void **state)
{
	static const char *const letterbox = "letterbox must be [width, height], integers from 1 to 1048576";
	static const char *const rows[][2] = {{"letterbox=[1]", letterbox},
					      {"letterbox=[1,0]", letterbox},
					      {"letterbox=[0.5,1]", letterbox},
					      {"letterbox=[1,1048577]", letterbox},
					      {"colour=[1,256]", "colour has 256: must have integers"},
					      {"labels=/nowhere/at/all", "labels '/nowhere/at/all'"}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig rig;

		rig_start(&rig, &wr_draw, rows[i][0]);
		assert_int_equal(rig.started, WEIR_E_FAILED);
		assert_non_null(strstr(rig.context.text, rows[i][1]));
		rig_stop(&rig);
	}
}

static void no_memory_for_a_copy_fails_the_tick(void **state)
{
	weir_message *shared = plain(4, 4, 1);
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_draw, "");
	rig.context.fails_to_allocate = true;
	rig_give(&rig, weir_message_ref(shared));
	assert_int_equal(rig_tick(&rig), WEIR_E_NOMEM);
	assert_int_equal(rig.context.out_count, 0);
	rig_stop(&rig);
	weir_message_unref(shared);
}

static int nothing_left(void **state)
{
	(void)state;
	return rig_messages() != 0;
}

static weir_status tick_with_tags(struct rig *rig, weir_stamp image, weir_stamp text)
{
	weir_message *messages[] = {plain(8, 8, 3), text_of("a")};

	messages[0]->stamp = image;
	messages[1]->stamp = text;
	rig_give(rig, messages[0]);
	rig_give_side(rig, 2, messages[1]);
	return rig_tick(rig);
}

static void xb51_a_result_of_another_picture_is_refused(void **state)
{
	const weir_stamp none = {0, 0}, first = {5, 0}, fifth = {9, 5}, again = {7, 5};
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_draw, "");
	assert_int_equal(tick_with_tags(&rig, fifth, again), WEIR_OK);
	assert_int_equal(tick_with_tags(&rig, fifth, none), WEIR_OK);
	assert_int_equal(tick_with_tags(&rig, none, fifth), WEIR_OK);
	assert_int_equal(tick_with_tags(&rig, fifth, first), WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "input 'text' has tag 0 and the image has tag 5"));
	rig_stop(&rig);
}

static void xb51_a_latest_port_gives_the_result_of_an_earlier_picture(void **state)
{
	const weir_stamp first = {5, 0}, fifth = {9, 5};
	struct rig rig;

	(void)state;
	for (unsigned port = 0; port < 3; port++) {
		rig_start(&rig, &wr_draw, "");
		rig.context.latest = 1u << port;
		assert_int_equal(tick_with_tags(&rig, fifth, first), port == 1 ? WEIR_E_FAILED : WEIR_OK);
		rig_stop(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_box_is_a_frame_inside_its_corners),
		cmocka_unit_test(boxes_of_a_letterbox_are_computed_back),
		cmocka_unit_test(boxes_below_the_least_score_are_left_out),
		cmocka_unit_test(no_boxes_and_no_text_change_nothing),
		cmocka_unit_test(lines_of_text_stand_in_the_upper_left_corner),
		cmocka_unit_test(other_characters_are_blocks),
		cmocka_unit_test(letters_grow_by_their_scale),
		cmocka_unit_test(scale_and_thickness_follow_the_picture),
		cmocka_unit_test(each_character_has_a_letter_of_its_own),
		cmocka_unit_test(the_text_stands_on_its_box_or_in_it),
		cmocka_unit_test(a_box_is_called_by_class_and_score),
		cmocka_unit_test(what_lies_across_an_edge_is_clipped),
		cmocka_unit_test(colours_fit_the_channels),
		cmocka_unit_test(a_picture_of_others_is_copied),
		cmocka_unit_test(parts_of_the_ports_names_are_taken),
		cmocka_unit_test(e06_what_cannot_be_drawn_gets_a_line),
		cmocka_unit_test(a_start_that_fails_says_why),
		cmocka_unit_test(no_memory_for_a_copy_fails_the_tick),
		cmocka_unit_test(xb51_a_result_of_another_picture_is_refused),
		cmocka_unit_test(xb51_a_latest_port_gives_the_result_of_an_earlier_picture),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}
