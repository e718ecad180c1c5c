/* What an operator gets from its context: files below the root only, and nothing for queues that it lacks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

/* Two folders, one's path the beginning of the other's, with one file each. */
static char folder[64], beside[72], file[80], file_beside[80];

static void write_file(const char *path)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_int_equal(fputs("x", stream) < 0, 0);
	assert_int_equal(fclose(stream), 0);
}

static int make_folders(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/weir_opened_XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(beside, sizeof beside, "%s.not", folder);
	snprintf(file, sizeof file, "%s/inside", folder);
	snprintf(file_beside, sizeof file_beside, "%s/outside", beside);
	assert_int_equal(mkdir(beside, 0700), 0);
	write_file(file);
	write_file(file_beside);
	return 0;
}

static int remove_folders(void **state)
{
	(void)state;
	return unlink(file) || unlink(file_beside) || rmdir(folder) || rmdir(beside);
}

static const char *wanted; /* before the run starts */
static int wanted_flags, open_error;

static weir_status open_wanted(struct rig *rig, weir_context *context)
{
	int fd = -1;
	weir_status status = weir_context_open(context, wanted, wanted_flags, 0, &fd);

	HOLDS(rig, !status || (status == WEIR_E_IO && fd == -1));
	open_error = status ? errno : 0;
	if (fd >= 0)
		close(fd);
	return weir_context_finish(context);
}

/* The errno of an open by an operator; 0: it opened the file. */
static int opening(const char *root, const char *path, int flags)
{
	struct rig *rig = rig_of("a:call");

	wanted = path;
	wanted_flags = flags;
	open_error = -1;
	rig->options.root = root;
	rig_on(rig, "a", open_wanted);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	return open_error;
}

static void xb30_a_path_that_begins_with_the_root_is_taken_below_it(void **state)
{
	(void)state;
	assert_int_equal(opening(folder, file, O_RDONLY), 0);
	assert_int_equal(opening(folder, "inside", O_RDONLY), 0);
	assert_int_equal(opening(folder, folder, O_RDONLY | O_DIRECTORY), 0);
	assert_int_equal(opening(folder, "nothing", O_RDONLY), ENOENT);
}

static void xb30_a_folder_whose_name_only_begins_like_the_root_is_outside(void **state)
{
	(void)state;
	assert_int_equal(opening(folder, file_beside, O_RDONLY), EXDEV);
	assert_int_equal(opening(folder, "/etc/passwd", O_RDONLY), EXDEV);
	assert_int_equal(opening(folder, "../x", O_RDONLY), EXDEV);
}

static void xb30_without_a_root_every_path_is_opened(void **state)
{
	(void)state;
	assert_int_equal(opening(NULL, file_beside, O_RDONLY), 0);
}

/* --- queues --- */

static weir_status ask_for_queues(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_queue_count(context, 0, 0) == 1);
	HOLDS(rig, weir_context_queue_count(context, 0, 1) == 0);
	HOLDS(rig, weir_context_queue_count(context, 0, SIZE_MAX / 64) == 0);
	HOLDS(rig, weir_context_queue_count(context, 1, 0) == 0);
	HOLDS(rig, weir_context_queue_count(context, 9, 0) == 0);
	HOLDS(rig, !strcmp(weir_context_sender(context, 0, 0), "source.out"));
	HOLDS(rig, !weir_context_sender(context, 0, 1));
	HOLDS(rig, !weir_context_sender(context, 9, 0));
	HOLDS(rig, !weir_context_message(context, 9, 0));
	return WEIR_OK;
}

static void c04_a_context_has_nothing_of_a_queue_that_the_entity_lacks(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> c:call");

	(void)state;
	rig_on(rig, "c", ask_for_queues);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "c"), 2);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb30_a_path_that_begins_with_the_root_is_taken_below_it),
		cmocka_unit_test(xb30_a_folder_whose_name_only_begins_like_the_root_is_outside),
		cmocka_unit_test(xb30_without_a_root_every_path_is_opened),
		cmocka_unit_test(c04_a_context_has_nothing_of_a_queue_that_the_entity_lacks),
	};

	return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
