/* The record of a run as a file: what is read of it, and what is said of one that cannot be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "cli/recorded.h"

static const char whole[] =
	"{\"weir_statistics\":1,\"backend\":\"sim\",\"gpu_time\":\"sample:64\",\"workers_count\":2,"
	"\"duration\":1000,\n"
	"\"ending\":\"deadlock\",\"status\":\"deadlock\",\"cause\":\"told\",\"cause_entity\":\"b\",\"cause_"
	"on\":null,\n"
	"\"text\":\"b waits: boolean: "
	"disabled\",\"stuck\":null,\"drained\":true,\"posix_signal\":2,\"leftover\":3,"
	"\"abandoned\":1,\"main\":\"b\",\"frames\":7,\n"
	"\"entities\":[{\"name\":\"a\",\"ticks\":9,\"waits\":[],\"lock\":{\"name\":\"GIL\",\"count\":9,"
	"\"time\":40},\n"
	"\"conditions\":[{\"type\":\"periodic\",\"name\":\"beat\",\"times\":{\"period\":500,\"offset\":-1}}],"
	"\n"
	"\"streams\":[{\"stream\":4,\"device\":1,\"count\":2,\"time\":30},{\"stream\":5,\"device\":1,"
	"\"count\":0,\"time\":0}]},\n"
	"{\"name\":\"b\",\"ticks\":7,\"streams\":[{\"stream\":4,\"device\":1,\"count\":1,\"time\":10}],\n"
	"\"waits\":[{\"cause\":\"told\",\"on\":null,\"of\":\"boolean\",\"why\":\"disabled\",\"open\":600,"
	"\"time\":{\"count\":2,\"sum\":700,\"min\":100,\"max\":600,\"p50\":100,\"p90\":600,\"p99\":600}}]}],"
	"\n"
	"\"queues\":[{\"from\":\"a.out\",\"to\":\"b.in\",\"sender\":\"a\",\"receiver\":\"b\",\"capacity\":1,"
	"\"pushed\":9,\"delivered\":7,\"dropped\":2,\"depth\":{\"mean\":0.7,\"max\":1,\"full_time\":700}}]"
	"}\n";

static bool read_text(struct cli_recorded *recorded, const char *text, char fault[512])
{
	*fault = '\0';
	return cli_recorded_read(recorded, text, strlen(text), fault);
}

static void xb62_all_of_a_record_is_read(void **state)
{
	struct cli_recorded run;
	const struct cli_entity *a, *b;
	const struct cli_condition *beat;
	char fault[512];

	(void)state;
	assert_true(read_text(&run, whole, fault));
	assert_true(run.has_outcome && run.status == WEIR_E_DEADLOCK && run.cause == WEIR_CAUSE_TOLD);
	assert_string_equal(run.text, "b waits: boolean: disabled");
	assert_true(run.cause_at == 1 && run.drained && !run.stuck && run.main_at == 1);
	assert_true(run.posix_signal == 2 && run.leftover == 3 && run.abandoned == 1 && run.frames == 7);
	assert_int_equal(run.gpu_every, 64);
	a = cli_recorded_entity(&run, 0);
	b = cli_recorded_entity(&run, 1);
	beat = a->conditions.items;
	assert_true(a->conditions.count == 1 && beat->times.period == 500);
	assert_string_equal(beat->type, "periodic");
	assert_true(a->lock.time == 40 && !b->lock.name);
	assert_int_equal(((const struct cli_wait *)b->waits.items)->open, 600);
	assert_int_equal(((const struct cli_use *)a->streams.items)->time, 30);
	assert_int_equal(cli_recorded_sharers(&run, 4), 2);
	assert_int_equal(cli_recorded_sharers(&run, 5), 1);
	assert_int_equal(cli_recorded_sharers(&run, 6), 0);
	cli_recorded_finish(&run);
}

/* `whole` with the first `old` replaced. */
static char *changed(const char *old, const char *new)
{
	static char text[4096];
	const char *at = strstr(whole, old);

	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, new, at + strlen(old));
	return text;
}

static void xb63_what_cannot_be_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *old, *new, *said;
	} cases[] = {
		{"\"weir_statistics\":1", "\"weir_statistics\":2",
		 "statistics of version 2, this command reads version 1"},
		{"\"duration\":1000", "\"duration\":-5", "1:90: a number below 0"},
		{"\"duration\":1000", "\"duration\":1e3", "1:90: an integer is expected"},
		{"\"duration\":1000", "\"duration\":99999999999999999999", "1:90: an integer is expected"},
		{"\"duration\":1000,", "", "the object lacks \"duration\""},
		{"\"drained\":true", "\"drained\":1", "3:60: true or false is expected"},
		{"\"drained\":true", "\"drained\":tru", "3:60: a value is expected"},
		{"\"cause_entity\":\"b\"", "\"cause_entity\":\"c\"", "the cause's entity is not in the list"},
		{"\"main\":\"b\"", "\"main\":\"c\"", "the main entity is not in the list"},
		{"\"sender\":\"a\"", "\"sender\":\"c\"", "a queue names an entity that is not in the list"},
		{"\"name\":\"b\"", "\"name\":\"a\"", "two entities have the same name"},
		{"\"stream\":4,", "", "the object lacks \"stream\""},
		{"\"type\":\"periodic\",", "", "the object lacks \"type\""},
		{"\"sum\":700", "\"sum\":-700", "a number below 0"},
		{"\"sum\":700", "\"sum\":1001", "entity 'b' has figures that cannot be, in a run of 1000 ns"},
		{"\"sum\":700", "\"sum\":500", "entity 'b' has figures that cannot be"},
		{"\"min\":100", "\"min\":601", "entity 'b' has figures that cannot be"},
		{"\"p50\":100", "\"p50\":99", "entity 'b' has figures that cannot be"},
		{"\"p99\":600", "\"p99\":599", "entity 'b' has figures that cannot be"},
		{"\"count\":2,\"sum\":700", "\"count\":0,\"sum\":700",
		 "entity 'b' has figures that cannot be"},
		{"\"count\":2,\"sum\":700", "\"count\":1,\"sum\":700",
		 "entity 'b' has figures that cannot be"},
		{"\"open\":600", "\"open\":701", "entity 'b' has figures that cannot be"},
		{"\"dropped\":2", "\"dropped\":3", "the queue into 'b.in' has figures that cannot be"},
		{"\"delivered\":7", "\"delivered\":10", "the queue into 'b.in' has figures that cannot be"},
		{"\"full_time\":700", "\"full_time\":1001",
		 "the queue into 'b.in' has figures that cannot be"},
		{"\"to\":\"b.in\"", "\"to\":null", "a string is expected"},
	};
	struct cli_recorded run;
	char fault[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool good = read_text(&run, changed(cases[i].old, cases[i].new), fault);

		cli_recorded_finish(&run);
		if (good || !strstr(fault, cases[i].said) || strchr(fault, '\n'))
			fail_msg("%s: %s: %s", cases[i].new, cases[i].said, good ? "read" : fault);
	}
}

static void xb63_waits_one_after_the_other_fit_into_the_run(void **state)
{
	static const char twice[] =
		"{\"weir_statistics\":1,\"duration\":1000,\"status\":\"ok\",\"cause\":\"done\",\"entities\":"
		"[{\"name\":\"a\",\"ticks\":1,\"waits\":[{\"of\":\"x\",\"time\":{\"count\":1,\"sum\":600}},"
		"{\"of\":\"y\",\"time\":{\"count\":1,\"sum\":%d}}]}]}";
	struct cli_recorded run;
	char fault[512], text[512];

	(void)state;
	snprintf(text, sizeof text, twice, 400);
	assert_true(read_text(&run, text, fault));
	cli_recorded_finish(&run);
	snprintf(text, sizeof text, twice, 401);
	assert_false(read_text(&run, text, fault));
	cli_recorded_finish(&run);
}

/* A record of a run that is on: its figures need not be of one moment. */
static void xb63_what_is_not_there_is_unknown(void **state)
{
	static const struct {
		const char *old, *new;
		weir_status status;
		bool outcome;
	} cases[] = {
		{"\"status\":\"deadlock\",", "", WEIR_OK, false},
		{"\"status\":\"deadlock\"", "\"status\":null", WEIR_OK, false},
		{"\"cause\":\"told\"", "\"cause\":\"none\"", WEIR_OK, false},
		{"\"cause\":\"told\"", "\"cause\":\"of a later weir\"", WEIR_OK, false},
		{"\"status\":\"deadlock\"", "\"status\":\"of a later weir\"", WEIR_E_FAILED, true},
		{"\"gpu_time\":\"sample:64\"", "\"gpu_time\":\"sample:-4\"", WEIR_E_DEADLOCK, true},
		{"\"gpu_time\":\"sample:64\"", "\"gpu_time\":\"sample:\"", WEIR_E_DEADLOCK, true},
		{"\"gpu_time\":\"sample:64\"", "\"gpu_time\":\"off\"", WEIR_E_DEADLOCK, true},
	};
	struct cli_recorded run;
	char fault[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (!read_text(&run, changed(cases[i].old, cases[i].new), fault))
			fail_msg("%s: %s", cases[i].new, fault);
		assert_int_equal(run.status, cases[i].status);
		assert_int_equal(run.has_outcome, cases[i].outcome);
		assert_true(run.gpu_every == 64 || (run.gpu_every == 0 && i > 4));
		cli_recorded_finish(&run);
	}
}

/* --- any bytes --- */

/* Whatever is read can be used: its indices and texts are right. */
static void use_record(const struct cli_recorded *run)
{
	for (size_t i = 0; i < run->entities.count; i++) {
		const struct cli_entity *entity = cli_recorded_entity(run, i);
		const struct cli_use *uses = entity->streams.items;

		assert_non_null(entity->name);
		for (size_t k = 0; k < entity->streams.count; k++)
			assert_true(cli_recorded_sharers(run, uses[k].stream) >= 1);
	}
	assert_true(run->main_at == CLI_NO_ENTITY || run->main_at < run->entities.count);
	assert_true(run->cause_at == CLI_NO_ENTITY || run->cause_at < run->entities.count);
}

static void read_bytes(const char *bytes, size_t length)
{
	char fault[512], *text = malloc(length + 1); /* a sanitizer sees what is read beyond it */
	struct cli_recorded run;

	assert_non_null(text);
	memcpy(text, bytes, length);
	text[length] = '\0';
	if (cli_recorded_read(&run, text, length, fault))
		use_record(&run);
	else
		assert_true(*fault && !strchr(fault, '\n'));
	cli_recorded_finish(&run);
	free(text);
}

static void xb63_any_record_cut_short_or_changed_is_read_or_refused_in_one_line(void **state)
{
	static const char *const pieces[] = {"-", "9", "99999999999999999999", "null", "{}", "[", "\"", "1e9",
					     "",  ","};
	size_t length = strlen(whole);

	(void)state;
	for (size_t cut = 0; cut < length; cut++)
		read_bytes(whole, cut);
	for (size_t at = 0; at < length; at++)
		for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
			char text[4096];
			int bytes = snprintf(text, sizeof text, "%.*s%s%s", (int)at, whole, pieces[k],
					     whole + at + 1);

			read_bytes(text, (size_t)bytes);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb62_all_of_a_record_is_read),
		cmocka_unit_test(xb63_what_cannot_be_is_refused_with_its_place),
		cmocka_unit_test(xb63_waits_one_after_the_other_fit_into_the_run),
		cmocka_unit_test(xb63_what_is_not_there_is_unknown),
		cmocka_unit_test(xb63_any_record_cut_short_or_changed_is_read_or_refused_in_one_line),
	};

	return cmocka_run_group_tests_name("recorded", tests, NULL, NULL);
}
