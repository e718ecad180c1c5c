/* The types of ports: texts that are refused, what fits, what two shapes have in common, connections. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graphs/build.h"
#include "graphs/type.h"
#include "kinds.h"

static weir_status read_port(const weir_port *port, struct wr_port_type *type, struct wr_scope *scope,
			     char why[WR_TYPE_WHY])
{
	struct wr_words words = wr_words_in(why, WR_TYPE_WHY);

	return wr_port_type_read(type, scope, port, &words);
}

static void c10_a_text_that_cannot_be_is_refused_by_what_is_wrong(void **state)
{
	static const struct {
		weir_port port;
		const char *why;
	} wrong[] = {
		{{.dtype = "float31"}, "has an unknown dtype 'float31' (did you mean 'float32'?)"},
		{{.dtype = "picture"}, "has an unknown dtype 'picture' (dtypes: int8, int16"},
		{{.dtype = ""}, "has the dtype '': an alternative is empty"},
		{{.dtype = "uint8|"}, "has the dtype 'uint8|': an alternative is empty"},
		{{.dtype = "uint8||int8"}, "an alternative is empty"},
		{{.place = "gpu"}, "has an unknown place 'gpu' (places: host, device)"},
		{{.place = "host, device"}, "has an unknown place 'host, device'"},
		{{.shape = ""}, "has the shape '': an alternative is empty"},
		{{.shape = "[H] |"}, "an alternative is empty"},
		{{.shape = "| [H]"}, "an alternative is empty"},
		{{.shape = "H, W"}, "an alternative begins with '['"},
		{{.shape = "[H, W"}, "',' or ']' is missing"},
		{{.shape = "[H W]"}, "',' or ']' is missing"},
		{{.shape = "[H,]"}, "a size is a number, a range such as 1..4, or a name"},
		{{.shape = "[-1]"}, "a size is a number"},
		{{.shape = "[0]"},
		 "has the shape '[0]': a size is at least 1; a name stands for any, also for 0"},
		{{.shape = "[W, 0..3]"}, "a size is at least 1"},
		{{.shape = "[4..1]"}, "the end of a range is below its begin"},
		{{.shape = "[1..]"}, "a size is a number"},
		{{.shape = "[9223372036854775808]"}, "does not fit into 63 bits"},
		{{.shape = "[1, 2, 3, 4, 5, 6, 7, 8, 9]"}, "more than 8 sizes"},
		{{.shape = "[1]|[2]|[3]|[4]|[5]|[6]|[7]|[8]|[9]"}, "more than 8 alternatives"},
		{{.shape = "[1] [2]"}, "'|' is missing between alternatives"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct wr_port_type type;
		struct wr_scope scope = {0};
		char why[WR_TYPE_WHY];

		assert_int_equal(read_port(&wrong[i].port, &type, &scope, why), WEIR_E_INVALID);
		if (!strstr(why, wrong[i].why))
			fail_msg("'%s' does not say '%s'", why, wrong[i].why);
		wr_port_type_finish(&type);
		wr_scope_finish(&scope);
	}
}

static void c10_a_table_with_a_wrong_type_is_refused_by_its_port(void **state)
{
	static const weir_port nine[] = {
		{.size = sizeof *nine, .name = "in", .shape = "[1, 2, 3, 4, 5, 6, 7, 8, 9]"}, {.name = NULL}};
	static const weir_port bytes[] = {
		{.size = sizeof *bytes, .name = "in", .kinds = WEIR_KIND_BYTES, .dtype = "uint8"},
		{.name = NULL}};
	weir_operator table = {.size = sizeof table, .name = "mine", .inputs = nine};
	weir_registry *registry = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "table of operator 'mine': 'in' has the shape '[1, 2, 3, 4, "
					       "5, 6, 7, 8, 9]': more than 8 sizes");
	table.inputs = bytes;
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "its kinds are without WEIR_KIND_TENSOR"));
	weir_registry_destroy(registry);
}

static void assert_bytes(const weir_port port, int64_t least, int64_t most)
{
	struct wr_port_type type;
	struct wr_scope scope = {0};
	char why[WR_TYPE_WHY];
	int64_t found_least, found_most;

	assert_int_equal(read_port(&port, &type, &scope, why), WEIR_OK);
	wr_port_type_bytes(&type, &scope, &found_least, &found_most);
	assert_true(found_least == least && found_most == most);
	wr_port_type_finish(&type);
	wr_scope_finish(&scope);
}

static void c10_a_type_says_how_many_bytes(void **state)
{
	(void)state;
	assert_bytes((weir_port){.dtype = "float32", .shape = "[2, 3]"}, 24, 24);
	assert_bytes((weir_port){.dtype = "uint8|float32", .shape = "[2, 3] | [10..20]"}, 6, 80);
	assert_bytes((weir_port){.shape = "[2, 3]"}, 6, INT64_MAX);
	assert_bytes((weir_port){.dtype = "float32"}, 0, INT64_MAX);
	assert_bytes((weir_port){.dtype = "uint8", .shape = "[H, 3]"}, 0, INT64_MAX);
	assert_bytes((weir_port){.dtype = "uint8", .shape = "[9223372036854775807, 3]"}, INT64_MAX,
		     INT64_MAX);
}

static bool takes(const weir_port *port, const weir_tensor *tensor)
{
	struct wr_port_type type;
	struct wr_scope scope = {0};
	char why[WR_TYPE_WHY];
	bool answer;

	assert_int_equal(read_port(port, &type, &scope, why), WEIR_OK);
	answer = wr_port_type_takes(&type, tensor);
	wr_port_type_finish(&type);
	wr_scope_finish(&scope);
	return answer;
}

static void c10_a_tensor_fits_by_dtype_place_and_shape(void **state)
{
	static const int64_t shape[] = {2, 2, 0};
	weir_tensor tensor = {.size = sizeof tensor,
			      .device = WEIR_DEVICE_HOST,
			      .dimensions = 2,
			      .shape = shape,
			      .code = 1,
			      .bits = 8,
			      .lanes = 1};

	(void)state;
	assert_true(takes(&(weir_port){.name = "in"}, &tensor));
	assert_true(takes(&(weir_port){.dtype = " int8 | uint8 "}, &tensor));
	assert_false(takes(&(weir_port){.dtype = "int8|uint16"}, &tensor));
	assert_true(takes(&(weir_port){.place = "host"}, &tensor));
	assert_true(takes(&(weir_port){.place = "device|host"}, &tensor));
	assert_false(takes(&(weir_port){.place = "device"}, &tensor));
	assert_true(takes(&(weir_port){.shape = "[H, W, 3] | [H,W]"}, &tensor));
	assert_true(takes(&(weir_port){.shape = "[N, N]"}, &tensor));
	assert_true(takes(&(weir_port){.shape = "[1..2, 2]"}, &tensor));
	assert_false(takes(&(weir_port){.shape = "[3..9, 2]"}, &tensor));
	assert_false(takes(&(weir_port){.shape = "[]"}, &tensor));
	tensor.dimensions = 3;
	assert_true(takes(&(weir_port){.shape = "[H, W, C]"}, &tensor));
	assert_false(takes(&(weir_port){.shape = "[H, W, 1..4]"}, &tensor));
	assert_false(takes(&(weir_port){.shape = "[N, H, N]"}, &tensor));
	tensor.lanes = 4;
	assert_false(takes(&(weir_port){.dtype = "uint8"}, &tensor));
}

/* Names are those of all ports of an operator together. */
static void c10_an_operator_has_at_most_64_names_of_sizes(void **state)
{
	char text[1024], why[WR_TYPE_WHY];
	const weir_port port = {.name = "in", .shape = text}, last = {.name = "in", .shape = "[b_63, c_1]"};
	struct wr_scope scope = {0};
	struct wr_port_type type;
	size_t at = 0;

	(void)state;
	for (int i = 0; i < 64; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%sb_%d%s",
				       i % 8 ? ", "
				       : i   ? " | ["
					     : "[",
				       i, i % 8 == 7 ? "]" : "");
	assert_int_equal(read_port(&port, &type, &scope, why), WEIR_OK);
	wr_port_type_finish(&type);
	assert_int_equal(read_port(&last, &type, &scope, why), WEIR_E_INVALID);
	assert_non_null(strstr(why, "more than 64 names of sizes"));
	wr_port_type_finish(&type);
	wr_scope_finish(&scope);
}

static void c10_a_tensor_is_said_with_its_lanes_and_place(void **state)
{
	static const int64_t shape[] = {2, 3};
	weir_tensor tensor = {.size = sizeof tensor,
			      .device = WEIR_DEVICE_HOST,
			      .dimensions = 2,
			      .shape = shape,
			      .code = 1,
			      .bits = 8,
			      .lanes = 4};

	(void)state;
	assert_string_equal(wr_tensor_words(&tensor).text, "uint8x4 [2, 3] in host memory");
	tensor.device = 1;
	tensor.lanes = 1;
	tensor.code = 77;
	assert_string_equal(wr_tensor_words(&tensor).text, "another type [2, 3] on device 1");
	assert_false(takes(&(weir_port){.dtype = "uint8"}, &tensor));
}

static void c10_bool_is_a_type_of_its_own(void **state)
{
	weir_tensor tensor = {
		.size = sizeof tensor, .device = WEIR_DEVICE_HOST, .code = 6, .bits = 8, .lanes = 1};

	(void)state;
	assert_true(takes(&(weir_port){.dtype = "uint8|bool"}, &tensor));
	assert_false(takes(&(weir_port){.dtype = "uint8|bfloat16"}, &tensor));
	assert_string_equal(wr_tensor_words(&tensor).text, "bool [] in host memory");
}

/* --- what two shapes have in common, against all small tensors --- */

static const char *const shapes[] = {
	"[]",        "[1]",          "[2]",       "[1..2]",         "[N]",          "[3..4]",
	"[N, N]",    "[N, M]",       "[1, 2]",    "[2, 2]",         "[1..2, 2]",    "[N, 3]",
	"[2..4, N]", "[M, N, N]",    "[N, M, N]", "[1, N, 2]",      "[N, 1..2, 3]", "[N, N, N]",
	"[2, 3, 2]", "[3, 3, 1..4]", "[N, 2, M]", "[1..3, 2..4, N]"};
enum { SHAPES = sizeof shapes / sizeof *shapes, SMALL = 5 };

static bool some_tensor_has_both(const weir_port *a, const weir_port *b)
{
	for (int64_t number = 0; number < 4 * SMALL * SMALL * SMALL; number++) {
		int64_t rank = number % 4, rest = number / 4;
		int64_t sizes[] = {rest % SMALL, rest / SMALL % SMALL, rest / SMALL / SMALL};
		weir_tensor tensor = {.size = sizeof tensor,
				      .dimensions = (int32_t)rank,
				      .shape = sizes,
				      .code = 1,
				      .bits = 8,
				      .lanes = 1};
		if (takes(a, &tensor) && takes(b, &tensor))
			return true;
	}
	return false;
}

static bool meet(const weir_port *a, const weir_port *b)
{
	struct wr_interval of_a[4] = {{0, INT64_MAX}, {0, INT64_MAX}},
			   of_b[4] = {{0, INT64_MAX}, {0, INT64_MAX}};
	struct wr_port_type one, other;
	struct wr_scope scope = {0}, others = {0};
	char why[WR_TYPE_WHY];
	bool answer;

	assert_int_equal(read_port(a, &one, &scope, why), WEIR_OK);
	assert_int_equal(read_port(b, &other, &others, why), WEIR_OK);
	answer = wr_shapes_meet(&one.shapes[0], of_a, &other.shapes[0], of_b);
	wr_port_type_finish(&one);
	wr_port_type_finish(&other);
	wr_scope_finish(&scope);
	wr_scope_finish(&others);
	return answer;
}

static void c10_two_shapes_meet_if_a_tensor_has_both_in_either_order(void **state)
{
	size_t met = 0;

	(void)state;
	for (size_t i = 0; i < SHAPES; i++)
		for (size_t k = 0; k < SHAPES; k++) {
			weir_port a = {.shape = shapes[i]}, b = {.shape = shapes[k]};
			bool both = some_tensor_has_both(&a, &b);

			if (meet(&a, &b) != both)
				fail_msg("%s and %s: %s", shapes[i], shapes[k],
					 both ? "meet" : "do not meet");
			met += both;
		}
	assert_true(met > SHAPES && met < SHAPES * SHAPES);
}

/* --- connections --- */

static void c10_a_port_that_says_nothing_takes_anything(void **state)
{
	weir_description *description = kinds_read(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"image\"}, {\"name\": \"b\", "
		"\"operator\": \"sink\"}, {\"name\": \"c\", \"operator\": \"source\"}, {\"name\": \"d\", "
		"\"operator\": \"network\"}, {\"name\": \"e\", \"operator\": \"sink\"}], \"connections\": "
		"[[\"a.out\", \"b.in\"], [\"c.out\", \"d.in\"], [\"d.out\", \"e.in\"]]}");

	(void)state;
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	weir_description_destroy(description);
}

/* Three entities in each order of the connections: N is 3 by one and cannot be 4 by the other. */
static void c10_names_that_cannot_agree_are_found_in_any_order(void **state)
{
	static const char *const lines[] = {"[\"t.out\", \"p.left\"]", "[\"f.out\", \"p.right\"]"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		char text[512];
		weir_description *description;

		snprintf(text, sizeof text,
			 "{\"weir\": 1, \"entities\": [{\"name\": \"t\", \"operator\": \"three\"}, "
			 "{\"name\": \"f\", \"operator\": \"four\"}, {\"name\": \"p\", \"operator\": "
			 "\"pair\"}], \"connections\": [%s, %s]}",
			 lines[i], lines[!i]);
		description = kinds_read(text);
		assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_E_INVALID);
		assert_non_null(strstr(weir_last_error(), i ? "(N is 4 to 5 by f.out -> p.right)"
							    : "(N is 3 by t.out -> p.left)"));
		weir_description_destroy(description);
	}
}

static void c10_connections_of_an_any_size_input_are_compared_each_alone(void **state)
{
	weir_description *description = kinds_read(
		"{\"weir\": 1, \"entities\": [{\"name\": \"t\", \"operator\": \"three\"}, {\"name\": \"f\", "
		"\"operator\": \"four\"}, {\"name\": \"g\", \"operator\": \"gather\"}], \"connections\": "
		"[[\"t.out\", \"g.in\"], [\"f.out\", \"g.in\"]]}");

	(void)state;
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	weir_description_destroy(description);
}

/* --- an operator of three inputs --- */

struct meeting {
	weir_registry *registry;
	weir_description *description;
};

/*
 * Operator `meet` takes the shapes at its inputs a, b, c, behind a '*' from any number of connections; what
 * is sent is of uint8. `ends`: further keys.
 */
static struct meeting meet_of(const char *const taken[3], const char *const sent[3], const char *ends)
{
	static weir_port inputs[4];
	static weir_operator table = {.size = sizeof table, .name = "meet", .inputs = inputs};
	static const char *const names[] = {"a", "b", "c"};
	char text[1024] = "{\"weir\": 1, \"entities\": [{\"name\": \"m\", \"operator\": \"meet\"}",
	     ports[256] = "";
	size_t at = strlen(text), end = 0;
	struct meeting meeting = {NULL, NULL};

	for (int i = 0; i < 3; i++) {
		bool any = taken[i] && *taken[i] == '*';

		inputs[i] = (weir_port){.size = sizeof *inputs,
					.name = names[i],
					.flags = WEIR_PORT_OPTIONAL | (any ? WEIR_PORT_ANY_SIZE : 0),
					.dtype = "uint8",
					.shape = any ? taken[i] + 1 : taken[i]};
		if (!sent[i])
			continue;
		at += (size_t)snprintf(text + at, sizeof text - at,
				       ", {\"name\": \"s%d\", \"operator\": \"shaped\", \"parameters\": "
				       "{\"shape\": \"%s\"}}",
				       i, sent[i]);
		end += (size_t)snprintf(ports + end, sizeof ports - end, "%s[\"s%d.out\", \"m.%s\"]",
					end ? ", " : "", i, names[i]);
	}
	snprintf(text + at, sizeof text - at, "], \"connections\": [%s]%s}", ports, ends);
	assert_int_equal(weir_registry_create(&meeting.registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(meeting.registry, &table), WEIR_OK);
	meeting.description = kinds_read(text);
	return meeting;
}

static void meeting_end(const struct meeting *meeting)
{
	weir_description_destroy(meeting->description);
	weir_registry_destroy(meeting->registry);
}

static void c10_a_report_says_what_one_other_connection_made_of_names(void **state)
{
	static const struct {
		const char *taken[3], *sent[3], *says;
	} cases[] = {
		{{"[N]", "[N, N]"}, {"[3]", "[4, 4]"}, "uint8 [N, N] (N is 3 by s0.out -> m.a): put "},
		{{"[N]", "[M]", "[N, M]"},
		 {"[3]", "[5]", "[4, 6]"},
		 "uint8 [N, M] (N is 3 by s0.out -> m.a): put "},
		{{"[N]", "[N]"},
		 {"[2..9223372036854775807]", "[1]"},
		 "uint8 [N] (N is at least 2 by s0.out -> m.a): put "},
		{{"[N]", "[N]"}, {"[4] | [2]", "[9]"}, "uint8 [N] (N is 2 to 4 by s0.out -> m.a): put "},
		{{"[N]", "*[N, 9]"}, {"[3]", "[3, 4]"}, "uint8 [N, 9]: put "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct meeting meeting = meet_of(cases[i].taken, cases[i].sent, "");

		assert_int_equal(weir_description_check(meeting.description, meeting.registry, NULL, NULL),
				 WEIR_E_INVALID);
		if (!strstr(weir_last_error(), cases[i].says))
			fail_msg("'%s' does not say '%s'", weir_last_error(), cases[i].says);
		meeting_end(&meeting);
	}
}

static void assert_sent(const struct meeting *meeting, const char *input, int64_t least, int64_t most)
{
	weir_sent_bytes bytes = {.size = sizeof bytes};

	assert_int_equal(weir_description_sent_bytes(meeting->description, input, &bytes), WEIR_OK);
	assert_true(bytes.least == least && bytes.most == most);
}

/* Of [7] | [20] only [7] is left: the other input of N gets 7. */
static void c10_an_input_gets_what_its_connections_leave_possible(void **state)
{
	static const char *const taken[] = {"[N]", "[N]", "[M]"}, *const sent[] = {"[7]", "[7] | [20]", NULL};
	struct meeting meeting = meet_of(taken, sent, "");

	(void)state;
	if (weir_description_check(meeting.description, meeting.registry, NULL, NULL))
		fail_msg("%s", weir_last_error());
	assert_sent(&meeting, "m.a", 7, 7);
	assert_sent(&meeting, "m.b", 7, 7);
	assert_sent(&meeting, "m.c", 0, INT64_MAX);
	meeting_end(&meeting);
}

static void c10_an_input_with_an_inlet_gets_what_the_program_sends(void **state)
{
	static const char *const taken[] = {"[N]", "[N]", "[M]"}, *const sent[] = {"[7]", "[7]", NULL};
	struct meeting meeting = meet_of(taken, sent, ", \"inlets\": [\"m.b\"]");

	(void)state;
	if (weir_description_check(meeting.description, meeting.registry, NULL, NULL))
		fail_msg("%s", weir_last_error());
	assert_sent(&meeting, "m.a", 7, 7);
	assert_sent(&meeting, "m.b", 0, INT64_MAX);
	meeting_end(&meeting);
}

/* It is like its second input, so what the first one gets does not matter. */
static void c10_an_output_is_like_the_input_that_it_names(void **state)
{
	static const weir_port inputs[] = {
		{.size = sizeof *inputs, .name = "a"}, {.size = sizeof *inputs, .name = "b"}, {.name = NULL}};
	static const weir_port outputs[] = {{.size = sizeof *outputs, .name = "out", .like = "b"},
					    {.name = NULL}};
	static const weir_operator table = {
		.size = sizeof table, .name = "second", .inputs = inputs, .outputs = outputs};
	static const char entities[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"t\", \"operator\": \"three\"}, {\"name\": \"f\", "
		"\"operator\": \"four\"}, {\"name\": \"s\", \"operator\": \"second\"}, {\"name\": \"n\", "
		"\"operator\": \"network\"}, {\"name\": \"e\", \"operator\": \"sink\"}], \"connections\": "
		"[[\"f.out\", \"s.b\"], [\"t.out\", \"s.a\"], [\"s.out\", \"n.in\"], [\"n.out\", \"e.in\"]]}";
	weir_description *description = kinds_read(entities);
	weir_registry *registry = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_OK);
	assert_int_equal(weir_description_check(description, registry, NULL, NULL), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "s.out -> n.in: sends float32 [4] | [5], but"));
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

static void c10_what_passed_last_is_known_by_all_of_its_type(void **state)
{
	static const int64_t shape[] = {2, 3}, other[] = {2, 4};
	const weir_tensor tensor = {.size = sizeof tensor,
				    .device = WEIR_DEVICE_HOST,
				    .dimensions = 2,
				    .shape = shape,
				    .code = 2,
				    .bits = 32,
				    .lanes = 1};
	weir_tensor changed[] = {tensor, tensor, tensor, tensor, tensor, tensor};
	struct wr_passed passed = {0};

	(void)state;
	assert_false(wr_passed_is(&passed, &tensor));
	wr_passed_set(&passed, &tensor);
	assert_true(wr_passed_is(&passed, &tensor));
	changed[0].code = 1;
	changed[1].bits = 16;
	changed[2].lanes = 4;
	changed[3].device = 0;
	changed[4].dimensions = 1;
	changed[5].shape = other;
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
		assert_false(wr_passed_is(&passed, &changed[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c10_a_text_that_cannot_be_is_refused_by_what_is_wrong),
		cmocka_unit_test(c10_a_table_with_a_wrong_type_is_refused_by_its_port),
		cmocka_unit_test(c10_a_type_says_how_many_bytes),
		cmocka_unit_test(c10_a_tensor_fits_by_dtype_place_and_shape),
		cmocka_unit_test(c10_an_operator_has_at_most_64_names_of_sizes),
		cmocka_unit_test(c10_a_tensor_is_said_with_its_lanes_and_place),
		cmocka_unit_test(c10_bool_is_a_type_of_its_own),
		cmocka_unit_test(c10_two_shapes_meet_if_a_tensor_has_both_in_either_order),
		cmocka_unit_test(c10_a_port_that_says_nothing_takes_anything),
		cmocka_unit_test(c10_connections_of_an_any_size_input_are_compared_each_alone),
		cmocka_unit_test(c10_names_that_cannot_agree_are_found_in_any_order),
		cmocka_unit_test(c10_a_report_says_what_one_other_connection_made_of_names),
		cmocka_unit_test(c10_an_input_gets_what_its_connections_leave_possible),
		cmocka_unit_test(c10_an_input_with_an_inlet_gets_what_the_program_sends),
		cmocka_unit_test(c10_an_output_is_like_the_input_that_it_names),
		cmocka_unit_test(c10_what_passed_last_is_known_by_all_of_its_type),
	};

	return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
