/* A file that is written whole or not at all, whatever lies at its path. */
#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
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
	struct wr_output_file output;

	return wr_output_open(&output, path) &&
	       wr_output_close(&output, wr_output_write(output.fd, text, strlen(text)));
}

/* Begins to write "half" and gives up. */
static void begin_file(const char *path)
{
	struct wr_output_file output;

	assert_true(wr_output_open(&output, path));
	assert_true(wr_output_write(output.fd, "half", 4));
	errno = EDOM;
	assert_false(wr_output_close(&output, false));
	assert_int_equal(errno, EDOM);
}

/* Writes 4 KiB to a disk that has room for 1000 bytes. */
static void fill_disk(const char *path)
{
	static char large[4096];
	struct rlimit old, small;
	bool written;
	int error;

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
}

/* Files of the folder: no temporary one is left. */
static unsigned count_files(void)
{
	DIR *list = opendir(folder);
	unsigned count = 0;

	while (readdir(list))
		count++;
	closedir(list);
	return count - 2; /* "." and ".." */
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

TEST(a_link_stays_and_its_file_is_replaced)
{
	const char *link = in_folder("link"), *target = in_folder("target");
	struct stat about;

	(void)state_;
	assert_int_equal(symlink("target", link), 0);
	assert_true(write_file(link, "x")); /* it led to nothing */
	assert_true(write_file(link, "y"));
	assert_holds(target, "y");
	begin_file(link);
	assert_holds(target, "y");
	assert_int_equal(lstat(link, &about), 0);
	assert_true(S_ISLNK(about.st_mode));
	assert_int_equal(count_files(), 2);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(target), 0);
}

TEST(a_full_disk_leaves_the_old_file_or_none)
{
	const char *path = in_folder("full");

	(void)state_;
	fill_disk(path);
	assert_int_equal(count_files(), 0);
	assert_true(write_file(path, "old"));
	fill_disk(path);
	assert_holds(path, "old");
	begin_file(path);
	assert_holds(path, "old");
	assert_int_equal(count_files(), 1);
	assert_int_equal(unlink(path), 0);
}

TEST(an_old_file_is_seen_until_the_new_one_is_whole_and_keeps_its_mode)
{
	const char *path = in_folder("seen");
	struct wr_output_file output;
	struct stat about;

	(void)state_;
	assert_true(write_file(path, "old"));
	assert_int_equal(chmod(path, 0640), 0);
	assert_true(wr_output_open(&output, path));
	assert_true(wr_output_write(output.fd, "new", 3));
	assert_holds(path, "old");
	assert_true(wr_output_close(&output, true));
	assert_holds(path, "new");
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0640);
	assert_int_equal(count_files(), 1);
	assert_int_equal(unlink(path), 0);
}

/* /dev/stdout names the file that is open, not the one that has its name now. */
TEST(an_open_descriptor_is_written_in_place)
{
	const char *path = in_folder("open");
	struct stat before, after;
	char link[32];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	(void)state_;
	assert_true(fd >= 0);
	snprintf(link, sizeof link, "/dev/fd/%d", fd);
	assert_int_equal(fstat(fd, &before), 0);
	assert_true(write_file(link, "x"));
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_holds(path, "x");
	close(fd);
	assert_int_equal(unlink(path), 0);
}

TEST(a_file_with_two_names_keeps_both)
{
	const char *one = in_folder("one"), *two = in_folder("two");

	(void)state_;
	assert_true(write_file(one, "old"));
	assert_int_equal(link(one, two), 0);
	assert_true(write_file(one, "new"));
	assert_holds(two, "new");
	assert_int_equal(count_files(), 2);
	assert_int_equal(unlink(one), 0);
	assert_int_equal(unlink(two), 0);
}

TEST(a_name_of_another_process_is_not_taken)
{
	const char *path = in_folder("taken");
	struct wr_output_file first, second;

	(void)state_;
	assert_true(wr_output_open(&first, path));
	assert_true(wr_output_open(&second, path));
	assert_string_not_equal(first.temporary, second.temporary);
	assert_true(wr_output_write(second.fd, "second", 6));
	assert_true(wr_output_close(&second, true));
	assert_true(wr_output_write(first.fd, "first", 5));
	assert_true(wr_output_close(&first, true));
	assert_holds(path, "first");
	assert_int_equal(count_files(), 1);
	assert_int_equal(unlink(path), 0);
}

static void read_all(void *fd)
{
	char bytes[4096];

	while (read(*(int *)fd, bytes, sizeof bytes) > 0)
		;
}

TEST(f44_a_descriptor_that_another_process_made_non_blocking_is_waited_for)
{
	enum { MUCH = 1 << 20 };
	struct wr_thread reader;
	char *text = calloc(1, MUCH);
	int ends[2];

	(void)state_;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(wr_thread_start(&reader, "reader", read_all, &ends[0]), WEIR_OK);
	assert_true(wr_output_write(ends[1], text, MUCH));
	close(ends[1]);
	wr_thread_join(&reader);
	close(ends[0]);
	free(text);
}

TEST(a_fifo_without_a_reader_is_refused_at_once_and_stays)
{
	const char *path = in_folder("fifo");
	char text[8] = "";
	int reader;

	(void)state_;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(wr_output_is_special(path));
	assert_false(write_file(path, "x"));
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
	assert_false(write_file(folder, "x"));
	assert_int_equal(errno, EISDIR);
	assert_false(write_file(in_folder("no/file"), "x"));
	assert_int_equal(errno, ENOENT);
	wr_output_remove(in_folder("no/file"));
	wr_output_remove(folder);
	assert_int_equal(access(folder, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_made_and_an_old_one_replaced),
		cmocka_unit_test(a_link_stays_and_its_file_is_replaced),
		cmocka_unit_test(a_full_disk_leaves_the_old_file_or_none),
		cmocka_unit_test(an_old_file_is_seen_until_the_new_one_is_whole_and_keeps_its_mode),
		cmocka_unit_test(an_open_descriptor_is_written_in_place),
		cmocka_unit_test(a_file_with_two_names_keeps_both),
		cmocka_unit_test(a_name_of_another_process_is_not_taken),
		cmocka_unit_test(f44_a_descriptor_that_another_process_made_non_blocking_is_waited_for),
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
