/*
 * The pictures of PngSuite that come with libpng (pngsuite/; free to copy, see its README): every colour
 * type and depth, plain and interlaced, which must decode to the same pixels.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "operators/picture.h"
#include "tests/operators/open.h"

enum { SIDE = 32, BYTES = SIDE * SIDE * 4 };

/* Returns the number of channels; stores the pixels in `to`. */
static int32_t read_picture(const char *name, uint8_t *to)
{
	struct wr_picture picture;
	char path[300];
	int32_t channels;

	snprintf(path, sizeof path, "pngsuite/%s", name);
	if (!picture_open(&picture, path))
		fail_msg("%s: %s", path, picture.text);
	channels = picture.image.channels;
	assert_int_equal(picture.image.width, SIDE);
	assert_int_equal(picture.image.height, SIDE);
	assert_in_range(channels, 1, 4);
	if (!wr_picture_rows(&picture, to))
		fail_msg("%s: %s", path, picture.text);
	wr_picture_close(&picture);
	return channels;
}

/*
 * "basn3p08.png": the digit before the last letter is PNG's colour type. A transparent picture has four
 * channels.
 */
static void assert_channels(const char *name, int32_t channels)
{
	char type = name[strlen(name) - strlen("3p08.png")];
	bool clear = strstr(name, "ft") && !strstr(name, "p0n");

	if (type == '4' || type == '6' || clear)
		assert_int_equal(channels, 4);
	else
		assert_int_equal(channels, type == '0' ? 1 : 3);
}

static void each_depth_and_colour_is_read_alike_interlaced_or_not(void **state)
{
	static uint8_t plain[BYTES], interlaced[BYTES];
	DIR *folder = opendir("pngsuite");
	unsigned twins = 0;

	(void)state;
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		char twin[260];
		int32_t channels;
		if (entry->d_name[0] == 'i' || !strstr(entry->d_name, ".png"))
			continue;
		channels = read_picture(entry->d_name, plain);
		assert_channels(entry->d_name, channels);
		snprintf(twin, sizeof twin, "i%.250s", entry->d_name);
		if (strstr(twin, "0g01") || strstr(twin, "0g02") || strstr(twin, "0g04") ||
		    strstr(twin, "3p01") || strstr(twin, "3p02") || strstr(twin, "3p04"))
			continue; /* libpng has none of it interlaced */
		assert_int_equal(read_picture(twin, interlaced), channels);
		assert_memory_equal(plain, interlaced, (size_t)(SIDE * SIDE * channels));
		twins++;
	}
	closedir(folder);
	assert_int_equal(twins, 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_depth_and_colour_is_read_alike_interlaced_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
