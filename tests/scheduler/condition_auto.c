/* What the signal `auto` means for a run (G4, E2): flags beside a device, callbacks elsewhere; lost ones. */
#include <stdio.h>
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

/* On sim: beside a device whose end of work flags tell; else with a plain world, where callbacks do. */
static struct rig *run_of(const char *signal, bool beside_a_device, struct wr_sim_knobs knobs,
			  weir_status ends)
{
	struct rig *rig = rig_observed("a:source ticks=5 work=1ms -> b:end gate=in");

	rig_with_knobs(rig, signal, knobs);
	if (beside_a_device)
		rig_poller_sleeps(rig);
	assert_int_equal(rig_run(rig), ends);
	return rig;
}

static void say(struct rig *rig, const char *part, bool said)
{
	char *text = NULL;

	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	if (!strstr(text, part) == said)
		fail_msg("%s '%s':\n%s", said ? "does not say" : "says", part, text);
	weir_text_free(text);
}

static void check_kind(const char *signal, bool beside_a_device, const char *kind)
{
	struct rig *rig = run_of(signal, beside_a_device, (struct wr_sim_knobs){0}, WEIR_OK);

	assert_string_equal(rig_text(rig, "b"), "0 1 2 3 4");
	say(rig, kind, true);
	say(rig, signal ? signal : "\"signal\":\"auto\"", true);
	rig_destroy(rig);
}

static void kinds(void)
{
	check_kind(NULL, true, "\"signals\":[{\"kind\":\"flag\",\"count\":5");
	check_kind("auto", true, "\"signals\":[{\"kind\":\"flag\",\"count\":5");
	check_kind(NULL, false, "\"signals\":[{\"kind\":\"callback\",\"count\":5");
	check_kind("callback", true, "\"signals\":[{\"kind\":\"callback\",\"count\":5");
	check_kind("flag", false, "\"signals\":[{\"kind\":\"flag\",\"count\":5");
}

static void g04_auto_is_the_default_and_means_flags_beside_a_device_else_callbacks(void **state)
{
	(void)state;
	rig_in_world(1, kinds);
}

/*
 * Each signal of the run is lost; the fifth message still arrives, and the run ends. Flags are found missing
 * before they count as lost: the work is seen complete.
 */
static void lose_all(void)
{
	const struct wr_sim_knobs lost = {.lost = 1000};

	for (int beside = 0; beside < 2; beside++) {
		struct rig *rig = run_of("auto", beside, lost, WEIR_OK);

		assert_string_equal(rig_text(rig, "b"), "0 1 2 3 4");
		say(rig, "signals came a second after their device work or not at all", !beside);
		rig_destroy(rig);
	}
	rig_destroy(run_of("callback", true, lost, WEIR_E_DEVICE));
}

static void e02_f12_with_auto_a_signal_that_never_comes_ends_no_run(void **state)
{
	(void)state;
	rig_in_world(1, lose_all);
}

static void lose_some(void)
{
	struct rig *rig = run_of(NULL, false, (struct wr_sim_knobs){.lost = 1000}, WEIR_OK);

	say(rig, "signals came", true);
	rig_set_knobs(rig, (struct wr_sim_knobs){0});
	assert_int_equal(rig_run(rig), WEIR_OK);
	say(rig, "signals came", false);
	rig_destroy(rig);
}

static void e02_s08_a_run_counts_its_own_late_signals_alone(void **state)
{
	(void)state;
	rig_in_world(1, lose_some);
}

/* The word of a stream whose flag was lost is behind: that is no loss of the next run. */
static void lose_before(void)
{
	struct rig *rig =
		rig_observed("a:source ticks=4 work=1200ms -> b:end gate=in; p:call period=100ms count=30");

	rig_with_knobs(rig, "auto", (struct wr_sim_knobs){.lost = 1000});
	rig_poller_sleeps(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	say(rig, "signals came", true);
	rig_set_knobs(rig, (struct wr_sim_knobs){0});
	assert_int_equal(rig_run(rig), WEIR_OK);
	say(rig, "signals came", false);
	say(rig, "\"kind\":\"callback\"", false);
	rig_destroy(rig);
}

static void e02_g04_a_flag_that_was_lost_is_not_lost_again_in_the_next_run(void **state)
{
	(void)state;
	rig_in_world(1, lose_before);
}

/* A condition that names `flag` or `callback` keeps it whatever the scheduler's is. */
static void named(void)
{
	static const char graph[] =
		"{\"weir\":1,\"scheduler\":{\"signal\":\"%s\",\"backend\":\"sim\"},\"entities\":["
		"{\"name\":\"s\",\"operator\":\"spin\",\"parameters\":{\"duration\":\"1ms\"},\"conditions\":["
		"{\"type\":\"count\",\"count\":4}]},"
		"{\"name\":\"e\",\"operator\":\"sink\",\"conditions\":[{\"type\":\"cuda_stream\",\"port\":"
		"\"in\",\"signal\":\"%s\"}]}],"
		"\"connections\":[[\"s.out\",\"e.in\"]]}";
	static const char *const pairs[][3] = {{"auto", "callback", "{\"kind\":\"callback\",\"count\":4"},
					       {"callback", "auto", "{\"kind\":\"flag\",\"count\":4"},
					       {"callback", "flag", "{\"kind\":\"flag\",\"count\":4"}};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		char text[1024];
		struct rig *rig;

		snprintf(text, sizeof text, graph, pairs[i][0], pairs[i][1]);
		rig = rig_of_json(text, (const weir_operator *const[]){NULL});
		rig->options.observe = WEIR_OBSERVE_STATISTICS;
		rig_make(rig);
		rig_poller_sleeps(rig);
		assert_int_equal(rig_run(rig), WEIR_OK);
		say(rig, pairs[i][2], true);
		rig_destroy(rig);
	}
}

static void g04_a_condition_that_names_a_signal_keeps_it(void **state)
{
	(void)state;
	rig_in_world(1, named);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g04_auto_is_the_default_and_means_flags_beside_a_device_else_callbacks),
		cmocka_unit_test(e02_f12_with_auto_a_signal_that_never_comes_ends_no_run),
		cmocka_unit_test(e02_s08_a_run_counts_its_own_late_signals_alone),
		cmocka_unit_test(e02_g04_a_flag_that_was_lost_is_not_lost_again_in_the_next_run),
		cmocka_unit_test(g04_a_condition_that_names_a_signal_keeps_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
