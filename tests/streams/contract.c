/*
 * What every backend must do. Run as `contract BACKEND`, and as `contract BACKEND FILTER` for the tests that
 * lose the device, which stays lost for the process. Exit code 77: there is no such device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

enum { TESTS_MAX = 150 };

static size_t add(struct CMUnitTest *tests, size_t count, const struct contract_part *part)
{
	assert_true(count + part->count <= TESTS_MAX);
	memcpy(tests + count, part->tests, part->count * sizeof *tests);
	return count + part->count;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[TESTS_MAX];
	size_t count = 0;

	if (argc > 1)
		rig_backend = argv[1];
	cmocka_set_test_filter(getenv("RIG_ONLY"));
	if (!rig_device_answers()) {
		fprintf(stderr, "%s\n", weir_last_error());
		return getenv("WEIR_REQUIRE_CUDA") ? 1 : 77;
	}
	if (argc > 2) {
		cmocka_set_test_filter(argv[2]);
		count = add(tests, count, &contract_failures);
		return _cmocka_run_group_tests("failures", tests, count, NULL, NULL);
	}
	count = add(tests, count, &contract_streams);
	count = add(tests, count, &contract_signals);
	count = add(tests, count, &contract_memory);
	count = add(tests, count, &contract_copies);
	count = add(tests, count, &contract_captures);
	count = add(tests, count, &contract_timers);
	count = add(tests, count, &contract_losses);
	return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}
