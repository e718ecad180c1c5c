#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/view.h"
#include "tests/conditions/rig.h"

/* Returns the text of `name`: the given value, or the default; asserts that there is one. Ends at a blank. */
static const char *value_of(const weir_values *values, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = values->text; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	fail_msg("no parameter %s in '%s'", name, values->text);
	return "";
}

bool weir_values_bool(const weir_values *values, const char *name)
{
	return !strncmp(value_of(values, name), "true", 4);
}

int64_t weir_values_int(const weir_values *values, const char *name)
{
	return strtoll(value_of(values, name), NULL, 10);
}

const char *weir_values_string(const weir_values *values, const char *name)
{
	static char text[64];
	const char *value = value_of(values, name);
	size_t length = strcspn(value, " ");

	memcpy(text, value, length);
	text[length] = 0;
	return text;
}

size_t weir_values_count(const weir_values *values, const char *name)
{
	size_t count = 1;

	for (const char *at = value_of(values, name); *at && *at != ' '; at++)
		count += *at == ',';
	return count;
}

unsigned weir_values_at(const weir_values *values, const char *name, size_t i)
{
	const char *at = value_of(values, name);

	while (i--)
		at = strchr(at, ',') + 1;
	return (unsigned)atoi(at);
}

double weir_values_number_at(const weir_values *values, const char *name, size_t i)
{
	const char *at = value_of(values, name);

	while (*at && *at != ' ' && i)
		i -= *at++ == ',';
	return i ? 0 : strtod(at, NULL);
}

size_t weir_view_take(weir_view *view, unsigned input)
{
	return view->ports[input].take;
}

bool weir_view_closed(weir_view *view, unsigned input)
{
	return view->ports[input].closed;
}

bool weir_view_connected(weir_view *view, unsigned input)
{
	return !view->ports[input].unconnected;
}

int64_t wr_view_oldest_at(weir_view *view, unsigned input)
{
	return view->ports[input].count ? view->ports[input].oldest : INT64_MAX;
}

size_t weir_view_count(weir_view *view, unsigned input)
{
	return view->ports[input].count;
}

int64_t weir_view_now(weir_view *view)
{
	view->clock_reads++;
	return view->now;
}

int64_t weir_view_began(weir_view *view)
{
	return view->began;
}

int64_t weir_view_started(weir_view *view)
{
	return view->started;
}

void wr_view_fence_done(weir_view *view, weir_fence fence)
{
	(void)view;
	(void)fence;
}

bool wr_view_is_promise(weir_fence fence)
{
	(void)fence; /* none of the rig's is */
	return false;
}

/* The conditions of any_of are the scheduler's: tests/scheduler. */
void wr_view_ask_any_of(weir_view *view, weir_verdict *verdict)
{
	(void)view;
	weir_verdict_ready(verdict);
}

void wr_view_any_of_ticked(weir_view *view)
{
	(void)view;
}

void wr_view_add_lost(weir_view *view, uint64_t ticks)
{
	view->lost += ticks;
}

enum wr_answer wr_view_messages(weir_view *view, unsigned input, size_t needed)
{
	const struct rig_port *port = &view->ports[input];

	needed = needed ? needed : port->take;
	if (port->unconnected || (port->any_size ? port->least : port->count) >= needed)
		return WR_READY;
	return port->closed ? WR_NEVER : WR_WAIT;
}

void wr_view_align(weir_view *view, weir_verdict *verdict)
{
	(void)view;
	weir_verdict_ready(verdict);
}

void wr_view_align_ticked(weir_view *view)
{
	(void)view;
}

bool wr_view_any_size(weir_view *view, unsigned input)
{
	return view->ports[input].any_size;
}

bool wr_view_has_room(weir_view *view, unsigned output, size_t needed)
{
	return view->ports[output].room >= (needed ? needed : view->ports[output].emits);
}

bool wr_view_wait_for_device(weir_view *view, unsigned input, weir_verdict *verdict, const char *why)
{
	const struct rig_port *port = &view->ports[input];

	if (!port->pending)
		return false;
	weir_verdict_wait(verdict, why);
	weir_verdict_set_cause(verdict, WEIR_CAUSE_DEVICE, (int)input, 0);
	for (size_t i = 0; i < port->pending; i++)
		weir_verdict_fence(verdict, port->fences[i]);
	return true;
}

size_t wr_view_flight_pending(weir_view *view, size_t room, weir_fence *out)
{
	for (size_t i = 0; i < view->in_flight && i < room; i++)
		out[i] = (weir_fence){i + 1, 1};
	return view->in_flight;
}

const weir_fence *wr_view_fence_told(weir_view *view)
{
	return view->told_fence.value ? &view->told_fence : NULL;
}

const weir_fence *wr_view_fence_next(weir_view *view)
{
	return view->next_fence.value ? &view->next_fence : NULL;
}

void wr_view_fence_use(weir_view *view)
{
	view->used++;
}

weir_watched wr_view_watched(weir_view *view, int64_t warn_after)
{
	view->warn_after = warn_after;
	return view->watched;
}

bool weir_view_fence_complete(weir_view *view, weir_fence fence)
{
	(void)fence;
	return !view->incomplete;
}

weir_told weir_view_told(weir_view *view)
{
	return view->told;
}

static void answer(weir_verdict *verdict, enum answer what)
{
	assert_true(verdict->answer == NOTHING ||
		    (verdict->answer == WAIT && what == WAIT)); /* one of the three */
	verdict->answer = what;
}

void weir_verdict_ready(weir_verdict *verdict)
{
	answer(verdict, READY);
}

void weir_verdict_never(weir_verdict *verdict, const char *why)
{
	answer(verdict, NEVER);
	verdict->why = why;
}

void weir_verdict_wait(weir_verdict *verdict, const char *why)
{
	answer(verdict, WAIT);
	verdict->why = why;
}

void weir_verdict_until(weir_verdict *verdict, int64_t at)
{
	answer(verdict, WAIT);
	verdict->at = at;
}

void weir_verdict_fence(weir_verdict *verdict, weir_fence fence)
{
	answer(verdict, WAIT);
	verdict->fences++;
	verdict->last = fence;
}

void weir_verdict_external(weir_verdict *verdict)
{
	answer(verdict, WAIT);
	verdict->external = true;
}

void weir_verdict_watched(weir_verdict *verdict)
{
	answer(verdict, WAIT);
	verdict->watched = true;
}

void weir_verdict_watched_meanwhile(weir_verdict *verdict)
{
	weir_verdict_watched(verdict);
}

void weir_verdict_set_cause(weir_verdict *verdict, weir_cause cause, int port, size_t needed)
{
	verdict->cause = cause;
	verdict->port = port;
	verdict->needed = needed;
}

struct rig rig_of(const weir_condition *kind, const char *parameters)
{
	struct rig rig = {.kind = kind};
	weir_values values = {parameters};

	assert_true(kind->state_size <= sizeof rig.state);
	for (size_t i = 0; i < RIG_PORTS; i++)
		rig.view.ports[i].take = rig.view.ports[i].emits = 1;
	if (kind->start)
		assert_int_equal(kind->start(rig.state, &values), WEIR_OK);
	return rig;
}

/* Asks twice: the second answer must be the same (C3). */
enum answer rig_ask(struct rig *rig)
{
	rig->verdict = (struct weir_verdict){0};
	rig->kind->ask(rig->state, &rig->view, &rig->verdict);
	if (rig->verdict.answer == READY) {
		struct weir_verdict again = {0};

		rig->kind->ask(rig->state, &rig->view, &again);
		assert_int_equal(again.answer, READY);
	}
	return rig->verdict.answer;
}

void rig_tick(struct rig *rig)
{
	rig_tick_for(rig, 0);
}

void rig_tick_for(struct rig *rig, int64_t compute)
{
	assert_int_equal(rig_ask(rig), READY);
	rig->view.began = rig->view.now;
	rig->view.now += compute;
	if (rig->kind->ticked)
		rig->kind->ticked(rig->state, &rig->view);
}
