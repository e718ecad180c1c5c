/* An operator can ask for the sender of each connection of a port, and for the program's
 * inlets among them. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

static weir_status note_senders(struct rig *rig, weir_context *context)
{
	char line[128];

	snprintf(line, sizeof line, "%s %s %s", weir_context_sender(context, 2, 0),
		 weir_context_sender(context, 2, 1), weir_context_sender(context, 2, 2));
	rig_note(rig, context, line);
	HOLDS(rig, !weir_context_sender(context, 2, 3));
	HOLDS(rig, !weir_context_sender(context, 1, 0)); /* no such connection */
	HOLDS(rig, !weir_context_sender(context, 99, 0));
	return WEIR_OK;
}

static void c04_an_operator_knows_the_sender_of_each_connection(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> c:call.any; b:source ticks=1 -> c.any");
	weir_inlet *inlet = NULL;

	(void)state;
	rig_entity(rig, "c")->start = note_senders;
	rig_on(rig, "c", note_senders);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "c.any", &inlet), WEIR_OK);
	rig_start(rig);
	assert_string_equal(rig_text(rig, "c"), "a.out b.out inlet");
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 1), 0), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "c"), "a.out b.out inlet a.out b.out inlet");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c04_an_operator_knows_the_sender_of_each_connection)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
