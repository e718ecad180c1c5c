/* Without memory everything can still be destroyed, and a simulated world entered to do so. */
#include "base/memory.h"
#include "rig.h"

static void run_and_end_without_memory(void)
{
	struct rig *rig = rig_of("source ticks=3 work=1us -> p:pass work=1us -> end gate=in");
	weir_status status;

	assert_int_equal(rig_run(rig), WEIR_OK);
	wr_memory_fail_at(0, true);
	status = weir_scheduler_destroy(rig->scheduler);
	if (!status)
		status = weir_graph_destroy(rig->graph);
	wr_memory_fail_at(-1, false);
	assert_int_equal(status, WEIR_OK);
	rig->scheduler = NULL;
	rig->graph = NULL;
	rig_destroy(rig);
}

static void xb31_what_was_made_ends_without_memory(void **state)
{
	(void)state;
	run_and_end_without_memory(); /* each call enters the graph's own world */
	rig_everywhere(run_and_end_without_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb31_what_was_made_ends_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
