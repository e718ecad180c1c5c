/* What compute emits must be of a kind that the port and its receivers take: else the run fails and names
 * both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static unsigned emitted_kind;
static weir_message *emitted_message; /* of another graph; NULL: one of emitted_kind */

static weir_status make_pack(weir_context *context, weir_message **out)
{
	weir_part part = {.size = sizeof part, .name = "part"};
	weir_status status = weir_message_create_empty(weir_context_graph(context), &part.message);

	return status ? status : weir_message_pack(weir_context_graph(context), &part, 1, out);
}

static weir_status make_message(weir_context *context, weir_message **out)
{
	static const int64_t shape = 4;
	static const weir_tensor tensor = {sizeof tensor, NULL, 0, 1, &shape, NULL, 0, 8, 1};
	static char user;

	if (emitted_message) {
		*out = weir_message_ref(emitted_message);
		return WEIR_OK;
	}
	switch (emitted_kind) {
	case WEIR_KIND_EMPTY:
		return weir_message_create_empty(weir_context_graph(context), out);
	case WEIR_KIND_BYTES:
		return weir_message_create_bytes(weir_context_graph(context), 4, out);
	case WEIR_KIND_TENSOR:
		return weir_message_create_tensor(weir_context_graph(context), &tensor, out);
	case WEIR_KIND_PARTS:
		return make_pack(context, out);
	default:
		return weir_message_wrap_user(weir_context_graph(context), &user, NULL, out);
	}
}

static weir_status emit_kind(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = make_message(context, &message);

	(void)state;
	weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static const weir_port out[] = {{.size = sizeof *out, .name = "out"}, {.name = NULL}};
static const weir_operator sender = {
	.size = sizeof sender, .name = "sender", .outputs = out, .compute = emit_kind};

/* A graph of a sender of any kind, a sink that takes all kinds, and a receiver that takes `kinds`. */
static struct rig *rig_taking(unsigned kinds)
{
	static const char json[] = "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"sender\"},"
				   "{\"name\": \"s\", \"operator\": \"sink\"},"
				   "{\"name\": \"b\", \"operator\": \"receiver\"}],"
				   "\"connections\": [[\"a.out\", \"s.in\"], [\"a.out\", \"b.in\"]]}";
	static weir_port in[2];
	static weir_operator receiver;

	in[0] = (weir_port){.size = sizeof *in, .name = "in", .kinds = kinds};
	receiver = (weir_operator){.size = sizeof receiver, .name = "receiver", .inputs = in};
	return rig_of_json(json, (const weir_operator *[]){&sender, &receiver, NULL});
}

static const struct {
	unsigned kind;
	const char *word;
} kinds[] = {
	{WEIR_KIND_EMPTY, "an empty message"}, {WEIR_KIND_BYTES, "bytes"}, {WEIR_KIND_TENSOR, "a tensor"},
	{WEIR_KIND_USER, "a user's pointer"},  {WEIR_KIND_PARTS, "parts"},
};

static void a_kind_that_a_receiver_does_not_take_fails_the_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct rig *rig = rig_taking(kinds[(i + 1) % (sizeof kinds / sizeof *kinds)].kind);
		char text[100];
		emitted_kind = kinds[i].kind;
		snprintf(text, sizeof text, "a.out: emitted %s, which b.in does not take", kinds[i].word);
		assert_int_equal(rig_run(rig), WEIR_E_INVALID);
		if (!strstr(rig->outcome.text, text))
			fail_msg("'%s' does not say '%s'", rig->outcome.text, text);
		assert_string_equal(rig->outcome.entity, "a");
		rig_destroy(rig);
	}
}

static void a_kind_that_all_receivers_take_arrives(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct rig *rig = rig_taking(kinds[i].kind | WEIR_KIND_EMPTY);
		emitted_kind = kinds[i].kind;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig->outcome.ticks, 3);
		rig_destroy(rig);
	}
}

static void a_message_of_another_graph_is_not_emitted(void **state)
{
	struct rig *rig = rig_taking(WEIR_KIND_BYTES), *other = rig_taking(WEIR_KIND_BYTES);

	(void)state;
	assert_int_equal(weir_message_create_bytes(other->graph, 4, &emitted_message), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_non_null(strstr(rig->outcome.text, "the message belongs to another graph"));
	weir_message_unref(emitted_message);
	emitted_message = NULL;
	rig_destroy(rig);
	rig_destroy(other);
}

static void a_message_of_another_graph_is_not_pushed(void **state)
{
	struct rig *rig = rig_of("end"), *other = rig_taking(WEIR_KIND_BYTES);
	weir_inlet *inlet = NULL;
	weir_message *message = NULL;

	(void)state;
	assert_int_equal(weir_message_create_bytes(other->graph, 4, &message), WEIR_OK);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, message, 0), WEIR_E_INVALID);
	assert_int_equal(weir_inlet_push(inlet, NULL, 0), WEIR_E_INVALID);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	weir_message_unref(message);
	rig_destroy(rig);
	rig_destroy(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kind_that_a_receiver_does_not_take_fails_the_run),
		cmocka_unit_test(a_kind_that_all_receivers_take_arrives),
		cmocka_unit_test(a_message_of_another_graph_is_not_emitted),
		cmocka_unit_test(a_message_of_another_graph_is_not_pushed),
	};

	return cmocka_run_group_tests_name("scheduler/emitted", tests, NULL, NULL);
}
