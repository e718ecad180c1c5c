/* Reads one event of a trace, an object in Chrome's trace event format. What it does not know it skips. */
#include "cli/event.h"

#include <stdlib.h>
#include <string.h>

/* Microseconds with a fraction. */
static void read_time(struct cli_json *json, int64_t *out)
{
	double us;

	if (!cli_json_real(json, &us))
		return;
	if (us > -1e15 && us < 1e15)
		*out = (int64_t)(us * 1000 + (us < 0 ? -0.5 : 0.5));
	else
		cli_json_refuse(json, "a time of more than 30 years");
}

static void read_arguments(struct cli_json *json, struct cli_event *event)
{
	struct cli_slice key;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "tick"))
			cli_json_count(json, &event->tick);
		else if (cli_slice_is(key, "ready"))
			read_time(json, &event->ready);
		else if (cli_slice_is(key, "name"))
			cli_json_string(json, &event->named);
		else if (cli_slice_is(key, "of"))
			cli_json_string(json, &event->of);
		else
			cli_json_skip(json);
}

bool cli_event_read(struct cli_json *json, struct cli_event *event)
{
	struct cli_slice key, phase = {NULL, 0};

	*event = (struct cli_event){.tick = CLI_TIME_NONE,
				    .ready = CLI_TIME_NONE,
				    .name = {"", 0},
				    .named = {"", 0},
				    .of = {"", 0}};
	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "ph"))
			cli_json_string(json, &phase);
		else if (cli_slice_is(key, "pid"))
			cli_json_integer(json, &event->group);
		else if (cli_slice_is(key, "tid"))
			cli_json_integer(json, &event->row);
		else if (cli_slice_is(key, "ts"))
			read_time(json, &event->at);
		else if (cli_slice_is(key, "dur"))
			read_time(json, &event->duration);
		else if (cli_slice_is(key, "name"))
			cli_json_string(json, &event->name);
		else if (cli_slice_is(key, "id") && cli_json_next(json) == CLI_JSON_STRING)
			cli_json_string(json, &event->id);
		else if (cli_slice_is(key, "args") && cli_json_next(json) == CLI_JSON_OBJECT)
			read_arguments(json, event);
		else
			cli_json_skip(json);
	event->phase = phase.length == 1 ? *phase.text : '\0';
	return !json->fault;
}

uint64_t cli_event_id(const struct cli_event *event)
{
	char digits[24];

	if (!event->id.length || event->id.length >= sizeof digits)
		return 0;
	memcpy(digits, event->id.text, event->id.length);
	digits[event->id.length] = '\0';
	return strtoull(digits, NULL, 0) + 1;
}
