/*
 * Plugins without /proc: the linker then knows an object by its path, and gives a loaded one again without a
 * look at the file. Each test runs in a child process whose root is an empty folder. The argument is the
 * plugins' folder.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "graphs/registry.h"
#include "kinds.h"

static const char *folder;

static bool copy_plugin(const char *name, const char *to)
{
	char from[512];
	struct wr_text text = {0};
	FILE *file = fopen(to, "wb");
	bool written;

	snprintf(from, sizeof from, "%s/%s.so", folder, name);
	if (!file || wr_file_read(&text, from, WR_FILE_MAX))
		return false;
	written = fwrite(text.text, 1, text.length, file) == text.length;
	wr_text_finish(&text);
	return !fclose(file) && !chmod(to, 0755) && written;
}

/* The status of loading the file, and whether the operator is there then. */
static bool loads(weir_status expected, const char *operator_name)
{
	weir_registry *registry = NULL;
	bool as_expected;

	if (weir_registry_create(&registry))
		return false;
	as_expected = weir_registry_load(registry, "/p.so") == expected;
	if (!as_expected)
		fprintf(stderr, "loading: %s\n", weir_last_error());
	as_expected &= !!wr_registry_find_operator(registry, operator_name) == !expected;
	weir_registry_destroy(registry);
	return as_expected;
}

static bool plugins_that_stay(void)
{
	return loads(WEIR_OK, "stays") && loads(WEIR_OK, "stays") && !rename("/next.so", "/p.so") &&
	       loads(WEIR_E_INVALID, "brought") &&
	       strstr(weir_last_error(), "give the new file another name");
}

/* Nothing tells there which file has weir in it. */
static bool plugins_by_name(void)
{
	weir_registry *registry = NULL;
	bool refused = !weir_registry_create(&registry) &&
		       weir_registry_load(registry, "named") == WEIR_E_IO &&
		       strstr(weir_last_error(), "name the plugin's file by its path");

	weir_registry_destroy(registry);
	return refused;
}

static bool plugins_that_go(void)
{
	return loads(WEIR_OK, "brought") && !rename("/next.so", "/p.so") && loads(WEIR_OK, "stays");
}

/* Exit: 0 passed, 1 failed, 77 not allowed. */
static void run_in_root(const char *root, bool (*test)(void))
{
	if ((geteuid() && unshare(CLONE_NEWUSER)) || chroot(root) || chdir("/"))
		_exit(77);
	_exit(!test());
}

static int exit_of_child(const char *root, bool (*test)(void))
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		run_in_root(root, test);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void assert_holds_in_root(const char *first, const char *next, bool (*test)(void))
{
	char root[] = "/tmp/weir-chroot-XXXXXX", first_path[64], next_path[64];
	int code;

	assert_non_null(mkdtemp(root));
	snprintf(first_path, sizeof first_path, "%s/p.so", root);
	snprintf(next_path, sizeof next_path, "%s/next.so", root);
	assert_true(copy_plugin(first, first_path) && copy_plugin(next, next_path));
	code = exit_of_child(root, test);
	unlink(first_path);
	unlink(next_path);
	rmdir(root);
	if (code == 77)
		skip();
	assert_int_equal(code, 0);
}

static void f95_without_proc_an_older_file_is_not_taken_for_its_successor(void **state)
{
	(void)state;
	assert_holds_in_root("plugin_stays", "plugin_good", plugins_that_stay);
}

static void f95_without_proc_a_file_that_was_unloaded_may_be_replaced(void **state)
{
	(void)state;
	assert_holds_in_root("plugin_good", "plugin_stays", plugins_that_go);
}

static void b06_without_proc_a_name_is_refused(void **state)
{
	(void)state;
	assert_holds_in_root("plugin_good", "plugin_stays", plugins_by_name);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f95_without_proc_an_older_file_is_not_taken_for_its_successor),
		cmocka_unit_test(f95_without_proc_a_file_that_was_unloaded_may_be_replaced),
		cmocka_unit_test(b06_without_proc_a_name_is_refused),
	};

	folder = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests_name("chroot", tests, NULL, NULL);
}
