/*
 * Registries: operators and conditions by name, rejected tables, plugins. The first argument is the
 * plugins' folder, which is that of this program.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "graphs/registry.h"
#include "kinds.h"

static const char *folder;

struct rig {
	weir_registry *registry;
	char path[512];
};

static int set_up(void **state)
{
	struct rig *rig = wr_alloc(1, sizeof(*rig));

	assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	weir_registry_destroy(rig->registry);
	wr_free(rig);
	return 0;
}

static const char *plugin(struct rig *rig, const char *name)
{
	snprintf(rig->path, sizeof(rig->path), "%s/%s.so", folder, name);
	return rig->path;
}

static void assert_refused(struct rig *rig, const char *path, weir_status status, const char *why)
{
	size_t before = 0, after = 0;

	while (weir_registry_operator(rig->registry, before))
		before++;
	assert_int_equal(weir_registry_load(rig->registry, path), status);
	if (!strstr(weir_last_error(), why))
		fail_msg("'%s' does not say '%s'", weir_last_error(), why);
	while (weir_registry_operator(rig->registry, after))
		after++;
	assert_int_equal(before, after);
}

/* --- operators and conditions --- */

static weir_status compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	return WEIR_OK;
}

#define OPERATOR(...) ((const weir_operator){.size = sizeof(weir_operator), .compute = compute, __VA_ARGS__})
#define PORT(...)                                                                                            \
	{                                                                                                    \
		.size = sizeof(weir_port), __VA_ARGS__                                                       \
	}
#define PARAMETER(...)                                                                                       \
	{                                                                                                    \
		.size = sizeof(weir_parameter), __VA_ARGS__                                                  \
	}

static void kinds_come_sorted_by_name(void **state)
{
	struct rig *rig = *state;
	const weir_operator mine = OPERATOR(.name = "middle");
	const weir_registry *registries[] = {NULL, rig->registry};

	assert_int_equal(weir_registry_add_operator(rig->registry, &mine), WEIR_OK);
	for (size_t r = 0; r < 2; r++) {
		size_t i = 1;
		for (; weir_registry_operator(registries[r], i); i++)
			assert_true(strcmp(weir_registry_operator(registries[r], i - 1)->name,
					   weir_registry_operator(registries[r], i)->name) < 0);
		assert_int_equal(i, r ? 21 : 20);
		for (i = 1; weir_registry_condition(registries[r], i); i++)
			assert_true(strcmp(weir_registry_condition(registries[r], i - 1)->name,
					   weir_registry_condition(registries[r], i)->name) < 0);
		assert_int_equal(i, 10);
		assert_null(weir_registry_operator(registries[r], 100));
		assert_null(weir_registry_condition(registries[r], 100));
	}
}

static void what_is_added_is_found_here_alone(void **state)
{
	struct rig *rig = *state;
	const weir_operator mine = OPERATOR(.name = "mine");

	assert_int_equal(weir_registry_add_operator(rig->registry, &mine), WEIR_OK);
	assert_ptr_equal(wr_registry_find_operator(rig->registry, "mine"), &mine);
	assert_non_null(wr_registry_find_operator(rig->registry, "sink"));
	assert_null(wr_registry_find_operator(NULL, "mine"));
	assert_non_null(wr_registry_find_operator(NULL, "sink"));
	assert_null(wr_registry_find_condition(rig->registry, "mine"));
	assert_non_null(wr_registry_find_condition(NULL, "count"));
}

static void f94_a_name_that_is_taken_is_refused(void **state)
{
	struct rig *rig = *state;
	const weir_operator mine = OPERATOR(.name = "sink");

	assert_int_equal(weir_registry_add_operator(rig->registry, &mine), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(),
			    "there is already an operator 'sink': give this one another name");
}

static void a_bad_table_of_an_operator_is_refused(void **state)
{
	static const weir_parameter twice[] = {PARAMETER(.name = "a", .type = WEIR_TYPE_INT),
					       PARAMETER(.name = "a", .type = WEIR_TYPE_INT),
					       {0}};
	static const weir_parameter no_type[] = {PARAMETER(.name = "a"), {0}};
	static const weir_parameter no_size[] = {{.name = "a", .type = WEIR_TYPE_INT}, {0}};
	static const weir_parameter bad_default[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_INT, .fallback = "\"x\""), {0}};
	static const weir_parameter no_json[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_STRING, .fallback = "x"), {0}};
	static const weir_parameter beyond[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_INT, .fallback = "5", .min = 1, .max = 4), {0}};
	static const weir_parameter no_choice[] = {PARAMETER(.name = "a", .type = WEIR_TYPE_CHOICE), {0}};
	static const weir_parameter no_prefix[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_WRITE_FILE, .choices = "b"), {0}};
	static const weir_port bad_name[] = {PORT(.name = "a.b"), {0}};
	static const weir_port take[] = {PORT(.name = "in", .take = 2), {0}};
	static const weir_port capacity[] = {PORT(.name = "in", .capacity = 65537), {0}};
	static const weir_port same[] = {PORT(.name = "in"), {0}};
	const weir_operator tables[] = {OPERATOR(.name = NULL),
					OPERATOR(.name = "9"),
					{.size = 8, .name = "a"},
					OPERATOR(.name = "a", .parameters = twice),
					OPERATOR(.name = "a", .parameters = no_type),
					OPERATOR(.name = "a", .parameters = no_size),
					OPERATOR(.name = "a", .parameters = bad_default),
					OPERATOR(.name = "a", .parameters = no_json),
					OPERATOR(.name = "a", .parameters = beyond),
					OPERATOR(.name = "a", .parameters = no_choice),
					OPERATOR(.name = "a", .parameters = no_prefix),
					OPERATOR(.name = "a", .inputs = bad_name),
					OPERATOR(.name = "a", .inputs = take),
					OPERATOR(.name = "a", .inputs = capacity),
					OPERATOR(.name = "a", .inputs = same, .outputs = same)};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (weir_registry_add_operator(rig->registry, &tables[i]) != WEIR_E_INVALID)
			fail_msg("table %zu was taken", i);
	assert_int_equal(weir_registry_add_operator(rig->registry, NULL), WEIR_E_INVALID);
}

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

static void a_bad_table_of_a_condition_is_refused(void **state)
{
	static const weir_parameter reserved[] = {PARAMETER(.name = "type", .type = WEIR_TYPE_INT), {0}};
	const weir_condition tables[] = {
		{.size = sizeof(weir_condition), .name = "a"},
		{.size = sizeof(weir_condition), .name = "a", .ask = ask, .parameters = reserved},
		{.size = sizeof(weir_condition), .name = "a", .ask = ask, .phase = (weir_phase)7},
		{.size = 1, .name = "a", .ask = ask}};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		assert_int_equal(weir_registry_add_condition(rig->registry, &tables[i]), WEIR_E_INVALID);
}

/* --- plugins --- */

static void b06_a_plugin_brings_its_kinds(void **state)
{
	struct rig *rig = *state;

	if (weir_registry_load(rig->registry, plugin(rig, "plugin_good")))
		fail_msg("%s", weir_last_error());
	assert_non_null(wr_registry_find_operator(rig->registry, "brought"));
	assert_non_null(wr_registry_find_operator(rig->registry, "brought_too"));
}

/* `named` is in the folder `weir` beside this program, which has weir in it. */
static void b06_a_plugin_is_given_by_its_name(void **state)
{
	struct rig *rig = *state;
	char here[512];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir("/"), 0);
	if (weir_registry_load(rig->registry, "named"))
		fail_msg("%s", weir_last_error());
	assert_int_equal(chdir(here), 0);
	assert_non_null(wr_registry_find_operator(rig->registry, "brought"));
}

static void b06_a_name_that_is_not_found_says_where_it_would_be(void **state)
{
	struct rig *rig = *state;
	char where[900], *real = realpath(folder, NULL);

	snprintf(where, sizeof where,
		 "plugin 'ab\\u001bc' is not found: '%s/weir' has no file libweir_ab\\u001bc.so: "
		 "install the plugin, or name its file by a path, such as ./ab\\u001bc",
		 real);
	free(real);
	assert_refused(rig,
		       "ab\x1b"
		       "c",
		       WEIR_E_IO, where);
}

static void f91_a_name_is_no_file_of_this_folder(void **state)
{
	struct rig *rig = *state;
	char here[512], scratch[] = "/tmp/weir-named-XXXXXX", good[600];

	snprintf(good, sizeof good, "%s", plugin(rig, "plugin_good"));
	assert_non_null(getcwd(here, sizeof(here)));
	assert_non_null(mkdtemp(scratch));
	assert_int_equal(chdir(scratch), 0);
	assert_int_equal(mkdir("weir", 0755), 0);
	assert_int_equal(symlink(good, "other"), 0);
	assert_int_equal(symlink(good, "libweir_other.so"), 0);
	assert_int_equal(symlink(good, "weir/libweir_other.so"), 0);
	assert_refused(rig, "other", WEIR_E_IO, "plugin 'other' is not found");
	assert_int_equal(weir_registry_load(rig->registry, "./other"), WEIR_OK);
	unlink("weir/libweir_other.so");
	unlink("libweir_other.so");
	unlink("other");
	rmdir("weir");
	assert_int_equal(chdir(here), 0);
	rmdir(scratch);
}

/* The name of a program is what its caller says. */
static void f91_a_name_does_not_follow_that_of_the_program(void **state)
{
	pid_t child = fork();
	int status = 0;

	(void)state;
	if (!child) {
		execl("/proc/self/exe", "/nowhere/registry", folder, "named", NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void f91_a_relative_path_is_of_this_folder(void **state)
{
	struct rig *rig = *state;
	char here[512];

	assert_refused(rig, "libm.so.6", WEIR_E_IO, "plugin 'libm.so.6' cannot be opened");
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(weir_registry_load(rig->registry, "plugin_good.so"), WEIR_OK);
	assert_int_equal(chdir(here), 0);
}

static void f91_what_is_no_file_is_refused(void **state)
{
	struct rig *rig = *state;

	assert_refused(rig, "", WEIR_E_INVALID, "name a file");
	assert_refused(rig, ".", WEIR_E_INVALID, "is not a regular file");
	assert_refused(rig, "/dev/null", WEIR_E_INVALID, "is not a regular file");
	assert_refused(rig, "no/such\x1b.so", WEIR_E_IO, "no/such\\u001b.so");
}

static void f91_a_world_writable_plugin_is_refused_before_it_is_loaded(void **state)
{
	struct rig *rig = *state;
	const char *path = plugin(rig, "plugin_loud");

	assert_int_equal(chmod(path, 0666), 0);
	assert_refused(rig, path, WEIR_E_INVALID, "chmod o-w");
	assert_null(getenv("WEIR_LOUD")); /* its constructor did not run */
	assert_int_equal(chmod(path, 0644), 0);
	assert_refused(rig, path, WEIR_E_INVALID, "no symbol weir_plugin");
	assert_non_null(getenv("WEIR_LOUD"));
	unsetenv("WEIR_LOUD");
}

static void f91_what_is_no_shared_object_is_refused(void **state)
{
	struct rig *rig = *state;
	char path[] = "/tmp/weir-plugin-XXXXXX";
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "no object", 9), 9);
	close(fd);
	assert_refused(rig, path, WEIR_E_INVALID, "cannot be loaded");
	assert_null(strstr(weir_last_error(), "/proc/self/fd")); /* the path by which it was opened */
	unlink(path);
}

static void f92_another_abi_is_refused_before_any_call(void **state)
{
	struct rig *rig = *state;

	assert_refused(rig, plugin(rig, "plugin_abi"), WEIR_E_INVALID, "built for ABI 7 of weir, this is 4");
	assert_refused(rig, plugin(rig, "plugin_sizes"), WEIR_E_INVALID, "tables of other sizes");
}

static void f94_a_plugin_whose_name_is_taken_adds_nothing(void **state)
{
	struct rig *rig = *state;

	assert_refused(rig, plugin(rig, "plugin_taken"), WEIR_E_INVALID,
		       "there is already an operator 'sink'");
	assert_null(wr_registry_find_operator(rig->registry, "added_before"));
	for (size_t i = 0; i < 8; i++)
		assert_ptr_equal(weir_registry_operator(rig->registry, i), weir_registry_operator(NULL, i));
	assert_int_equal(weir_registry_load(rig->registry, plugin(rig, "plugin_good")), WEIR_OK);
	assert_refused(rig, plugin(rig, "plugin_good"), WEIR_E_INVALID,
		       "there is already an operator 'brought'");
}

/* The linker identifies objects by name, and the name here is a descriptor's number. */
static void f95_the_next_plugin_is_not_taken_for_the_one_before(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(weir_registry_load(rig->registry, plugin(rig, "plugin_stays")), WEIR_OK);
	assert_non_null(wr_registry_find_operator(rig->registry, "stays"));
	weir_registry_destroy(rig->registry); /* the plugin stays loaded: it is linked with nodelete */
	assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	assert_int_equal(weir_registry_load(rig->registry, plugin(rig, "plugin_good")), WEIR_OK);
	assert_non_null(wr_registry_find_operator(rig->registry, "brought"));
	assert_null(wr_registry_find_operator(rig->registry, "stays"));
}

static int descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(list);
	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

static void f95_a_plugin_of_several_registries_leaves_no_descriptor(void **state)
{
	struct rig *rig = *state;
	int before = descriptors();

	for (int i = 0; i < 3; i++) {
		weir_registry *second = NULL;

		assert_int_equal(weir_registry_load(rig->registry, plugin(rig, "plugin_good")), WEIR_OK);
		assert_int_equal(weir_registry_create(&second), WEIR_OK);
		assert_int_equal(weir_registry_load(second, plugin(rig, "plugin_good")), WEIR_OK);
		weir_registry_destroy(second);
		weir_registry_destroy(rig->registry);
		rig->registry = NULL;
		assert_int_equal(descriptors(), before);
		assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	}
}

static void f95_a_plugin_that_stays_loaded_keeps_one_descriptor(void **state)
{
	struct rig *rig = *state;
	int first = 0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(weir_registry_load(rig->registry, plugin(rig, "plugin_stays")), WEIR_OK);
		weir_registry_destroy(rig->registry);
		rig->registry = NULL;
		first = first ? first : descriptors();
		assert_int_equal(descriptors(), first);
		assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	}
}

static void f90_a_registry_is_made_whole_or_not_at_all(void **state)
{
	struct rig *rig = *state;
	weir_registry *registry = NULL;
	int64_t n = 0;

	(void)rig;
	for (;; n++) {
		wr_memory_fail_at(n, false);
		weir_status status = weir_registry_create(&registry);
		wr_memory_fail_at(-1, false);
		if (!status)
			break;
		assert_int_equal(status, WEIR_E_NOMEM);
		assert_null(registry);
	}
	assert_true(n > 1);
	weir_registry_destroy(registry);
}

/* What f91_a_name_does_not_follow_that_of_the_program runs. */
static int load_named(const char *name)
{
	weir_registry *registry = NULL;
	weir_status status = weir_registry_create(&registry);

	if (!status)
		status = weir_registry_load(registry, name);
	if (status)
		fprintf(stderr, "%s\n", weir_last_error());
	weir_registry_destroy(registry);
	return status != WEIR_OK;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kinds_come_sorted_by_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_added_is_found_here_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f94_a_name_that_is_taken_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_bad_table_of_an_operator_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_bad_table_of_a_condition_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(b06_a_plugin_brings_its_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(b06_a_plugin_is_given_by_its_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(b06_a_name_that_is_not_found_says_where_it_would_be, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(f91_a_name_is_no_file_of_this_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f91_a_name_does_not_follow_that_of_the_program, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(f91_a_relative_path_is_of_this_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f91_what_is_no_file_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f91_a_world_writable_plugin_is_refused_before_it_is_loaded,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(f91_what_is_no_shared_object_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f92_another_abi_is_refused_before_any_call, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(f94_a_plugin_whose_name_is_taken_adds_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(f95_the_next_plugin_is_not_taken_for_the_one_before, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(f95_a_plugin_of_several_registries_leaves_no_descriptor,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(f95_a_plugin_that_stays_loaded_keeps_one_descriptor, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(f90_a_registry_is_made_whole_or_not_at_all, set_up,
						tear_down),
	};

	folder = argc > 1 ? argv[1] : ".";
	if (argc > 2)
		return load_named(argv[2]);
	return cmocka_run_group_tests_name("registries", tests, NULL, NULL);
}
