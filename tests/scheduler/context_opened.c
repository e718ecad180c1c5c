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
	HOLDS(rig, weir_context_room(context, 9) == 0);
	HOLDS(rig, !weir_context_receivers_done(context, 9));
	HOLDS(rig, weir_graph_collect(weir_context_graph(context), 0) == WEIR_E_INVALID);
	return WEIR_OK;
}

/* Its receiver is done by then. */
static void ask_at_the_end(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_room(context, 0) == 0);
	HOLDS(rig, !weir_context_receivers_done(context, 0));
}

static weir_status ask_outside_of_compute(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_room(context, 0) == 0);
	HOLDS(rig, !weir_context_receivers_done(context, 0));
	return WEIR_OK;
}

static void c04_a_context_has_nothing_of_a_queue_that_the_entity_lacks(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> c:call -> end");
	const weir_fence none = {1, 1};

	(void)state;
	rig_on(rig, "c", ask_for_queues);
	assert_int_equal(weir_graph_collect(rig->graph, 0), WEIR_OK);
	assert_int_equal(weir_fence_complete(rig->graph, none, WEIR_OK, NULL), WEIR_E_INVALID);
	assert_int_equal(weir_fence_complete(rig->graph, none, (weir_status)7, NULL), WEIR_E_INVALID);
	assert_says(weir_last_error(), "with WEIR_OK or a failure, not with 7");
	rig_entity(rig, "c")->start = ask_outside_of_compute;
	rig_entity(rig, "c")->stop = ask_at_the_end;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "c"), 2);
	rig_destroy(rig);
}

/* --- device memory that a tick must not touch --- */

static weir_device_memory seen[3];
static unsigned found;

static weir_status look_at_memory(weir_context *context, void *state)
{
	const weir_message *message = weir_context_message(context, 0, 0);
	const char *data =
		weir_message_data(weir_message_parts(message) ? weir_message_part_at(message, 0) : message);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		seen[i] = (weir_device_memory){.size = sizeof seen[i]};
	found = weir_running_device_memory(data, &seen[0]);
	found |= 2u * weir_running_device_memory(data + 128, &seen[1]);
	found |= 4u * weir_running_device_memory(&found, &seen[2]);
	return WEIR_OK;
}

static const weir_port device_in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_DEVICE},
				      {.name = NULL}};
static const weir_operator looking = {.size = sizeof(weir_operator),
				      .name = "looking",
				      .help = "asks where addresses lie",
				      .inputs = device_in,
				      .compute = look_at_memory};

static weir_status pack_memory(weir_context *context, void *state)
{
	const weir_part part = {.size = sizeof part,
				.name = "image",
				.message = weir_message_ref(weir_context_message(context, 0, 0))};
	weir_message *pack = NULL;
	weir_status status = weir_message_pack(weir_context_graph(context), &part, 1, &pack);

	(void)state;
	return status ? status : weir_context_emit(context, 0, pack);
}

static const weir_port packs_out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator packing = {.size = sizeof(weir_operator),
				      .name = "packing",
				      .help = "makes a pack of what it receives",
				      .inputs = device_in,
				      .outputs = packs_out,
				      .compute = pack_memory};

/* By the message that it came in. */
static void e06_closed_memory_within_a_pack_is_named(void **state)
{
	static const weir_operator *const operators[] = {&looking, &packing, NULL};
	struct rig *rig = rig_of_json(
		"{\"weir\":1,\"entities\":[{\"name\":\"s\",\"operator\":\"spin\",\"conditions\":[{"
		"\"type\":\"count\",\"count\":2}]},{\"name\":\"p\",\"operator\":\"packing\"},"
		"{\"name\":\"l\",\"operator\":\"looking\"}],"
		"\"connections\":[[\"s.out\",\"p.in\"],[\"p.out\",\"l.in\"]]}",
		operators);

	(void)state;
	rig->options.strict = 1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(found, 3);
	assert_string_equal(seen[0].port, "in");
	assert_string_equal(seen[0].sender, "p.out");
	assert_null(seen[1].port);
	rig_destroy(rig);
}

static weir_status look_on_host(weir_graph *graph, int strict)
{
	weir_scheduler_options options = {.size = sizeof options, .backend = "host", .strict = strict};
	weir_scheduler *scheduler = NULL;
	weir_status status = weir_scheduler_create(graph, &options, &scheduler);

	found = 0;
	if (status)
		return status;
	assert_int_equal(weir_scheduler_run(scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	return WEIR_OK;
}

/* Without protection keys it is refused, and not left out. */
static void e06_a_strict_scheduler_behind_one_that_is_not_is_strict(void **state)
{
	static const weir_operator *const operators[] = {&looking, NULL};
	struct rig *rig =
		rig_of_json("{\"weir\":1,\"entities\":[{\"name\":\"s\",\"operator\":\"spin\","
			    "\"conditions\":[{\"type\":\"count\",\"count\":2}]},{\"name\":\"l\",\"operator\":"
			    "\"looking\"}],\"connections\":[[\"s.out\",\"l.in\"]]}",
			    operators);

	(void)state;
	assert_int_equal(look_on_host(rig->graph, -1), WEIR_OK);
	assert_int_equal(found, 0);
	if (look_on_host(rig->graph, 1))
		assert_says(weir_last_error(), "protection keys");
	else
		assert_int_equal(found, 3);
	rig_destroy(rig);
}

static void look_from_sink(const char *resources, const char *pool)
{
	static const weir_operator *const operators[] = {&looking, NULL};
	char json[500];
	struct rig *rig;

	snprintf(json, sizeof json,
		 "{\"weir\":1,\"resources\":{\"m\":{\"type\":\"memory_pool\",\"block_size\":256,\"blocks\":8}"
		 "},"
		 "\"entities\":[{\"name\":\"s\",\"operator\":\"spin\",\"resources\":[%s],\"conditions\":[{"
		 "\"type\":\"count\",\"count\":2}]},{\"name\":\"l\",\"operator\":\"looking\"}],"
		 "\"connections\":[[\"s.out\",\"l.in\"]]}",
		 resources);
	rig = rig_of_json(json, operators);
	rig->options.strict = 1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(found, 3);
	assert_string_equal(seen[0].port, "in");
	assert_string_equal(seen[0].sender, "s.out");
	assert_string_equal(seen[0].pool ? seen[0].pool : "none", pool);
	assert_null(seen[1].port);
	assert_false(weir_running_device_memory(json, &seen[2]));
	rig_destroy(rig);
}

static void e06_closed_memory_is_named_by_port_sender_and_pool(void **state)
{
	(void)state;
	look_from_sink("\"m\"", "m");
	look_from_sink("", "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb30_a_path_that_begins_with_the_root_is_taken_below_it),
		cmocka_unit_test(xb30_a_folder_whose_name_only_begins_like_the_root_is_outside),
		cmocka_unit_test(xb30_without_a_root_every_path_is_opened),
		cmocka_unit_test(c04_a_context_has_nothing_of_a_queue_that_the_entity_lacks),
		cmocka_unit_test(e06_closed_memory_within_a_pack_is_named),
		cmocka_unit_test(e06_a_strict_scheduler_behind_one_that_is_not_is_strict),
		cmocka_unit_test(e06_closed_memory_is_named_by_port_sender_and_pool),
	};

	return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
