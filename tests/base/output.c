/* A file that is written whole or not at all, whatever lies at its path. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define TEST(name) static void name(void **state_)

static char folder[] = "/tmp/weir-output-XXXXXX";

static const char *in_folder(const char *name)
{
	static char paths[4][64];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static bool write_file(const char *path, const char *text)
{
	int fd = wr_output_open(path);

	return fd >= 0 && wr_output_close(path, fd, wr_output_write(fd, text, strlen(text)));
}

static void assert_holds(const char *path, const char *expected)
{
	char text[64] = "";
	FILE *file = fopen(path, "re");

	assert_non_null(file);
	(void)!fread(text, 1, sizeof text - 1, file);
	fclose(file);
	assert_string_equal(text, expected);
}

TEST(a_file_is_made_and_an_old_one_replaced)
{
	const char *path = in_folder("a");

	(void)state_;
	assert_true(write_file(path, "a longer text"));
	assert_holds(path, "a longer text");
	assert_true(write_file(path, "short"));
	assert_holds(path, "short");
	wr_output_remove(path);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(a_link_stays_and_its_file_is_removed_if_it_is_not_whole)
{
	const char *link = in_folder("link"), *target = in_folder("target");
	int fd;

	(void)state_;
	assert_int_equal(symlink("target", link), 0);
	assert_true(write_file(link, "x"));
	assert_holds(target, "x");
	fd = wr_output_open(link);
	errno = EDOM;
	assert_false(wr_output_close(link, fd, false));
	assert_int_equal(errno, EDOM);
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(unlink(link), 0);
}

TEST(a_full_disk_leaves_no_file)
{
	static char large[4096];
	const char *path = in_folder("full");
	struct rlimit old, small;
	bool written;
	int error;

	(void)state_;
	memset(large, 'x', sizeof large - 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){.rlim_cur = 1000, .rlim_max = old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	written = write_file(path, large);
	error = errno;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(written);
	assert_string_equal(wr_output_why(error), "File too large");
	assert_int_equal(access(path, F_OK), -1);
}

TEST(a_fifo_without_a_reader_is_refused_at_once_and_stays)
{
	const char *path = in_folder("fifo");
	char text[8] = "";
	int reader;

	(void)state_;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(wr_output_is_special(path));
	assert_int_equal(wr_output_open(path), -1);
	assert_string_equal(wr_output_why(errno), "the FIFO has no reader");
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(write_file(path, "seen"));
	assert_int_equal(read(reader, text, sizeof text), 4);
	assert_string_equal(text, "seen");
	close(reader);
	wr_output_remove(path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
}

TEST(a_device_that_is_full_stays)
{
	(void)state_;
	assert_true(wr_output_is_special("/dev/full"));
	assert_false(write_file("/dev/full", "x"));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

TEST(a_path_that_cannot_be_made_is_an_error)
{
	(void)state_;
	assert_false(wr_output_is_special(folder));
	assert_int_equal(wr_output_open(folder), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(wr_output_open(in_folder("no/file")), -1);
	assert_int_equal(errno, ENOENT);
	wr_output_remove(in_folder("no/file"));
	wr_output_remove(folder);
	assert_int_equal(access(folder, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_made_and_an_old_one_replaced),
		cmocka_unit_test(a_link_stays_and_its_file_is_removed_if_it_is_not_whole),
		cmocka_unit_test(a_full_disk_leaves_no_file),
		cmocka_unit_test(a_fifo_without_a_reader_is_refused_at_once_and_stays),
		cmocka_unit_test(a_device_that_is_full_stays),
		cmocka_unit_test(a_path_that_cannot_be_made_is_an_error),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return rmdir(folder) || failed;
}
