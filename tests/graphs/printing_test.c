/* Descriptions as JSON, text and drawings. */
#include <string.h>

#include "graphs/description.h"
#include "graphs/report.h"
#include "graphs/json.h"
#include "graphs/plan.h"
#include "kinds.h"

/* --- printing --- */

static void cut_all(char *text, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; text[i];) {
		if (strncmp(text + i, word, length))
			i++;
		else
			memmove(text + i, text + i + length, strlen(text + i + length) + 1);
	}
}

static void a_printed_graph_reads_as_the_same_graph(void **state)
{
	weir_description *first = kinds_read(*state), *second;
	char *once = kinds_print(first, WEIR_FORMAT_JSON), *twice;

	second = kinds_read(once);
	twice = kinds_print(second, WEIR_FORMAT_JSON);
	assert_string_equal(once, twice);
	weir_text_free(once);
	weir_text_free(twice);
	weir_description_destroy(first);
	weir_description_destroy(second);
}

/* Other code writes the text form than the JSON: what it leaves out would be missing here. */
static void a_printed_graph_says_all_that_the_text_says(void **state)
{
	weir_description *first = kinds_read(*state), *second;
	char *json = kinds_print(first, WEIR_FORMAT_JSON), *before = kinds_print(first, WEIR_FORMAT_TEXT),
	     *after;

	second = kinds_read(json);
	after = kinds_print(second, WEIR_FORMAT_TEXT);
	cut_all(before, " (default)"); /* a default that is written is no default any more */
	assert_string_equal(before, after);
	weir_text_free(json);
	weir_text_free(before);
	weir_text_free(after);
	weir_description_destroy(first);
	weir_description_destroy(second);
}

static void every_form_ends_with_a_newline(void **state)
{
	weir_description *description = kinds_read(good_graph);

	(void)state;
	for (int format = WEIR_FORMAT_TEXT; format <= WEIR_FORMAT_DOT; format++) {
		char *text = kinds_print(description, (weir_format)format);
		assert_int_equal(text[strlen(text) - 1], '\n');
		weir_text_free(text);
	}
	weir_description_destroy(description);
}

static void s03_text_names_the_users_of_a_memory_pool(void **state)
{
	char *text = kinds_print_text(memory_graph, WEIR_FORMAT_TEXT);

	(void)state;
	assert_non_null(strstr(
		text,
		"memory pool frames: host, 1 block of 1MiB (with 12 it cannot stall), used by a, says\n"));
	assert_non_null(strstr(text, "memory pool bound: device 0, at most 4MiB, used by b\n"));
	assert_non_null(strstr(
		text, "memory pool spare: device 1, 2 blocks of 64B (with 0 it cannot stall), not used\n"));
	assert_non_null(strstr(text, "max_in_flight unbounded"));
	weir_text_free(text);
}

static void text_says_defaults_in_words(void **state)
{
	weir_description *description = kinds_read(good_graph);
	char *text = kinds_print(description, WEIR_FORMAT_TEXT);

	(void)state;
	assert_non_null(strstr(text, "blur: filter radius=3 gain=0.001 delay=10ms memory=4KiB edge=\"clamp\" "
				     "weights=[1.0, 0.5]\n"));
	assert_non_null(strstr(text, "  input in: capacity 4, take 2, pop, device\n"));
	assert_non_null(strstr(text, "  when message_available port=\"in\" min_size=0 (default)\n"));
	assert_non_null(strstr(text, "  when periodic period=16666667ns\n"));
	assert_non_null(strstr(text, "deadlock_grace for ever"));
	assert_non_null(strstr(text, "ring.out -> back.in (1 initial)\n"));
	weir_text_free(text);
	weir_description_destroy(description);
}

static void text_lists_resources_and_their_users(void **state)
{
	static const char *const lines[] = {
		"signal flag",
		"green context pool parts: device 1, partitions of 8, 16 SMs and the remainder, min_sm_size "
		"2, "
		"default context the remainder\n",
		"green context left: partition 0 of parts\n",
		"green context usual: partition 1 of even\n",
		"green context parts: the remainder of parts (implied)\n",
		"stream pool fast: device 1, non_blocking, priority -3, reserved 0, at most 4 streams, in "
		"green "
		"context left, used by a\n",
		"stream pool far: device 2, blocking, priority 0, reserved 1, unbounded, default, used by "
		"write\n",
		"stream pool default of left: device 1, non_blocking, priority 0, reserved 0, unbounded, in "
		"green "
		"context left (implied), used by b, e\n",
		"  works on the default stream of device 2\n",
		"  no stream pool\n",
	};
	weir_description *description = kinds_read(resource_graph);
	char *text = kinds_print(description, WEIR_FORMAT_TEXT);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(text, lines[i]))
			fail_msg("there is no '%s' in:\n%s", lines[i], text);
	weir_text_free(text);
	weir_description_destroy(description);
}

static void a_pool_of_many_users_names_some(void **state)
{
	weir_description *description = NULL;
	char *text;

	(void)state;
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/resources/fast",
					      "{\"type\": \"stream_pool\", \"default\": true}"),
			 WEIR_OK);
	for (char name[] = "a"; *name <= 'l'; ++*name)
		assert_int_equal(weir_description_add_entity(description, name, "source"), WEIR_OK);
	text = kinds_print(description, WEIR_FORMAT_TEXT);
	assert_non_null(strstr(text, "default, used by a, b, c, d, e, f, g, h and 4 more\n"));
	weir_text_free(text);
	weir_description_destroy(description);
}

static void dot_names_every_entity_and_connection(void **state)
{
	weir_description *description = kinds_read(good_graph);
	char *text = kinds_print(description, WEIR_FORMAT_DOT);

	(void)state;
	assert_non_null(strstr(text, "digraph \"edges\" {"));
	assert_non_null(strstr(text, "\"read\" -> \"blur\" [taillabel=\"out\", headlabel=\"in\", "
				     "label=\"pop 4\\ntake 2\"];"));
	assert_non_null(strstr(text, "label=\"1 initial\", style=dashed];"));
	assert_non_null(strstr(text, "style=dashed"));
	weir_text_free(text);
	weir_description_destroy(description);
}

static void drawing_has_conditions_and_what_differs_from_defaults(void **state)
{
	weir_description *description = kinds_read(good_graph);
	char *text = kinds_print(description, WEIR_FORMAT_DOT);

	(void)state;
	assert_non_null(strstr(
		text, "[label=\"read\\nsource\\npath=\\\"a \\\\\\\"b\\\\\\\" \xc3\xa9\\\\n\\\"\\nrepeat=3"
		      "\\nwhen count 'frames' count=9\\nwhen periodic period=16666667ns\"];"));
	assert_non_null(strstr(text, "headlabel=\"in (gate)\", label=\"block 8\\ntake all\"];"));
	assert_non_null(
		strstr(text, "[label=\"write\\nsink\\nwhen cuda_stream port=[\\\"in\\\"] signal=callback\", "
			     "style=\"rounded,bold\"];"));
	assert_null(strstr(text, "when message_available"));
	weir_text_free(text);
	weir_description_destroy(description);
}

static void drawing_has_gates_and_defaults_that_are_changed(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"source\"}, "
		"{\"name\": \"b\", \"operator\": \"sink\", \"ports\": "
		"{\"in\": {\"capacity\": 4, \"take\": 3, \"gate\": false}}, "
		"\"conditions\": [{\"type\": \"message_available\", \"port\": \"in\", \"min_size\": 3}]}], "
		"\"connections\": [[\"a.out\", \"b.in\"]]}";
	weir_description *description = kinds_read(text);
	char *drawn = kinds_print(description, WEIR_FORMAT_DOT);

	(void)state;
	assert_non_null(strstr(drawn, "headlabel=\"in (no gate)\""));
	assert_non_null(
		strstr(drawn, "[label=\"b\\nsink\\nwhen message_available port=\\\"in\\\" min_size=3\"]"));
	weir_text_free(drawn);
	weir_description_destroy(description);
}

#define QUEUES                                                                                               \
	"{\"weir\": 1, \"scheduler\": {\"worker_spin\": \"20us\"}, \"entities\": ["                          \
	"{\"name\": \"a\", \"operator\": \"source\"},"                                                       \
	"{\"name\": \"b\", \"operator\": \"sink\", \"ports\": {\"in\": {\"capacity\": 1, \"policy\": "       \
	"\"pop\"}}},"                                                                                        \
	"{\"name\": \"c\", \"operator\": \"sink\", \"ports\": {\"in\": {\"capacity\": 3}}},"                 \
	"{\"name\": \"d\", \"operator\": \"sink\", \"ports\": {\"in\": {\"capacity\": 1}}, \"conditions\": " \
	"["                                                                                                  \
	"{\"type\": \"cuda_stream\", \"port\": \"in\", \"signal\": \"callback_inline\"}]}],"                 \
	"\"connections\": [[\"a.out\", \"b.in\"], [\"a.out\", \"c.in\"], [\"a.out\", \"d.in\"]]}"

static void a_drawing_labels_queues_that_are_longer_or_drop(void **state)
{
	weir_description *made = NULL;
	char *text;

	(void)state;
	assert_int_equal(weir_description_parse(QUEUES, strlen(QUEUES), NULL, NULL, &made), WEIR_OK);
	text = kinds_print(made, WEIR_FORMAT_DOT);
	assert_non_null(
		strstr(text, "\"a\" -> \"b\" [taillabel=\"out\", headlabel=\"in\", label=\"pop 1\"]"));
	assert_non_null(
		strstr(text, "\"a\" -> \"c\" [taillabel=\"out\", headlabel=\"in\", label=\"block 3\"]"));
	assert_non_null(strstr(text, "\"a\" -> \"d\" [taillabel=\"out\", headlabel=\"in\"]"));
	weir_text_free(text);
	text = kinds_print(made, WEIR_FORMAT_TEXT);
	assert_non_null(strstr(text, ", worker_spin 20us, "));
	assert_non_null(strstr(text, "cuda_stream port=[\"in\"] signal=callback_inline\n"));
	weir_text_free(text);
	weir_description_destroy(made);
}

static void what_differs_from_the_default_is_printed(void **state)
{
	static const char *const json_parts[] = {"\"max_in_flight\": 3", "\"max_in_flight\": 2",
						 "\"gate\": false", "\"effects\": true"};
	static const char text[] =
		"{\"weir\": 1, \"scheduler\": {\"max_in_flight\": 3}, \"entities\": ["
		"{\"name\": \"read\", \"operator\": \"source\", \"parameters\": {\"path\": \"x\"}, "
		"\"effects\": true, \"max_in_flight\": 2}, "
		"{\"name\": \"write\", \"operator\": \"sink\", \"ports\": {\"in\": {\"gate\": false}}}], "
		"\"connections\": [[\"read.out\", \"write.in\"]]}";
	weir_description *description = kinds_read(text);
	char *json = kinds_print(description, WEIR_FORMAT_JSON),
	     *words = kinds_print(description, WEIR_FORMAT_TEXT);

	(void)state;
	for (size_t i = 0; i < sizeof json_parts / sizeof *json_parts; i++)
		if (!strstr(json, json_parts[i]))
			fail_msg("%s lacks %s", json, json_parts[i]);
	assert_non_null(strstr(words, "no gate"));
	assert_non_null(strstr(words, "effects"));
	weir_text_free(json);
	weir_text_free(words);
	weir_description_destroy(description);
	a_printed_graph_reads_as_the_same_graph((void *[]){(void *)text});
	a_printed_graph_says_all_that_the_text_says((void *[]){(void *)text});
}

/* A usual condition with a name of its own is not the usual one: a program may ask for it by that. */
static void a_drawing_has_a_usual_condition_that_has_a_name(void **state)
{
	char *drawn = kinds_print_text(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"source\"}, {\"name\": \"b\", "
		"\"operator\": \"sink\", \"conditions\": [{\"type\": \"message_available\", \"name\": "
		"\"frames\", \"port\": \"in\"}]}], \"connections\": [[\"a.out\", \"b.in\"]]}",
		WEIR_FORMAT_DOT);

	(void)state;
	if (!strstr(drawn, "[label=\"b\\nsink\\nwhen message_available 'frames' port=\\\"in\\\""))
		fail_msg("there is no condition 'frames' in:\n%s", drawn);
	weir_text_free(drawn);
}

/* All entities use it, so no pool is implied. */
static void a_green_context_pool_that_is_the_default_is_printed_as_such(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"resources\": {\"parts\": {\"type\": \"green_context_pool\", "
		"\"num_partitions\": 1, \"sms_per_partition\": 8, \"default\": true}}, \"entities\": "
		"[{\"name\": \"a\", \"operator\": \"camera\"}, {\"name\": \"b\", \"operator\": \"sink\"}], "
		"\"connections\": [[\"a.out\", \"b.in\"]]}";
	char *words = kinds_print_text(text, WEIR_FORMAT_TEXT);

	(void)state;
	if (!strstr(words, "default context the remainder, default\n"))
		fail_msg("there is no default in:\n%s", words);
	weir_text_free(words);
	a_printed_graph_reads_as_the_same_graph((void *[]){(void *)text});
	a_printed_graph_says_all_that_the_text_says((void *[]){(void *)text});
}

/* A stream pool that all use, and no other; a pool whose user makes messages ahead. */
static void a_text_says_how_much_is_kept_for_messages_made_ahead(void **state)
{
	static const weir_port outputs[] = {{.size = sizeof *outputs, .name = "out", .ahead = 3},
					    {.name = NULL}};
	static const weir_operator table = {.size = sizeof table, .name = "decoder", .outputs = outputs};
	static const char text[] =
		"{\"weir\": 1, \"resources\": {\"all\": {\"type\": \"stream_pool\", \"default\": true}, "
		"\"frames\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, "
		"\"blocks\": "
		"20}}, \"entities\": [{\"name\": \"a\", \"operator\": \"decoder\", \"resources\": "
		"[\"frames\"]}, "
		"{\"name\": \"b\", \"operator\": \"sink\"}], \"connections\": [[\"a.out\", \"b.in\"]]}";
	weir_description *description = kinds_read(text);
	weir_registry *registry = NULL;
	char *words = NULL, *json = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_OK);
	if (weir_description_print(description, registry, WEIR_FORMAT_TEXT, &words))
		fail_msg("%s", weir_last_error());
	if (!strstr(words, "used by a (keeps up to 3)\n"))
		fail_msg("nothing is kept in:\n%s", words);
	assert_int_equal(weir_description_print(description, registry, WEIR_FORMAT_JSON, &json), WEIR_OK);
	assert_non_null(strstr(json, "\"all\": {\"type\": \"stream_pool\""));
	weir_text_free(words);
	weir_text_free(json);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

/* No capacity, no take: a port that has them is refused. A gate is implied. */
static void a_latest_port_is_printed_as_such(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"entities\": ["
		"{\"name\": \"read\", \"operator\": \"source\"}, {\"name\": \"on\", \"operator\": "
		"\"overlay\"},"
		"{\"name\": \"b\", \"operator\": \"sink\", \"ports\": {\"in\": {\"policy\": \"latest\", "
		"\"gate\": true}}, "
		"\"conditions\": [{\"type\": \"periodic\", \"period\": \"60Hz\"}]}],"
		"\"connections\": [{\"from\": \"read.out\", \"to\": [\"on.in\", \"on.last\", \"b.in\"]}]}";
	char *drawn = kinds_print_text(text, WEIR_FORMAT_DOT),
	     *words = kinds_print_text(text, WEIR_FORMAT_TEXT);
	char *json = kinds_print_text(text, WEIR_FORMAT_JSON);

	(void)state;
	assert_non_null(strstr(drawn, "headlabel=\"last\", label=\"latest\"]"));
	assert_non_null(strstr(words, "input last: latest\n"));
	assert_non_null(strstr(words, "input in: latest\n"));
	assert_non_null(strstr(json, "\"last\": {\"policy\": \"latest\"}"));
	weir_text_free(drawn);
	weir_text_free(words);
	weir_text_free(json);
	a_printed_graph_reads_as_the_same_graph((void *[]){(void *)text});
	a_printed_graph_says_all_that_the_text_says((void *[]){(void *)text});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(a_printed_graph_reads_as_the_same_graph, (void *)good_graph),
		cmocka_unit_test_prestate(a_printed_graph_reads_as_the_same_graph, (void *)resource_graph),
		cmocka_unit_test_prestate(a_printed_graph_reads_as_the_same_graph, (void *)memory_graph),
		cmocka_unit_test_prestate(a_printed_graph_says_all_that_the_text_says, (void *)good_graph),
		cmocka_unit_test_prestate(a_printed_graph_says_all_that_the_text_says,
					  (void *)resource_graph),
		cmocka_unit_test_prestate(a_printed_graph_says_all_that_the_text_says, (void *)memory_graph),
		cmocka_unit_test(text_lists_resources_and_their_users),
		cmocka_unit_test(a_pool_of_many_users_names_some),
		cmocka_unit_test(every_form_ends_with_a_newline),
		cmocka_unit_test(s03_text_names_the_users_of_a_memory_pool),
		cmocka_unit_test(text_says_defaults_in_words),
		cmocka_unit_test(dot_names_every_entity_and_connection),
		cmocka_unit_test(drawing_has_conditions_and_what_differs_from_defaults),
		cmocka_unit_test(drawing_has_gates_and_defaults_that_are_changed),
		cmocka_unit_test(a_drawing_labels_queues_that_are_longer_or_drop),
		cmocka_unit_test(what_differs_from_the_default_is_printed),
		cmocka_unit_test(a_latest_port_is_printed_as_such),
		cmocka_unit_test(a_drawing_has_a_usual_condition_that_has_a_name),
		cmocka_unit_test(a_green_context_pool_that_is_the_default_is_printed_as_such),
		cmocka_unit_test(a_text_says_how_much_is_kept_for_messages_made_ahead),
	};

	return cmocka_run_group_tests_name("printing", tests, NULL, NULL);
}
