/*
 * Conditions of the fuzzer: fences of the front, fences that no message carries, times, and times with
 * fences.
 */
#include "fuzz_api.h"

enum { FENCES = 16 };

struct condition {
	struct fz_entity *entity;
	unsigned port;
	int64_t ticked_at;
};

static weir_status start(void *state, const weir_values *values)
{
	struct condition *self = state;

	self->entity = &fz_of(weir_values_int(values, "slot"))->entities[weir_values_int(values, "id")];
	return WEIR_OK;
}

static weir_status start_at_port(void *state, const weir_values *values)
{
	((struct condition *)state)->port = (unsigned)weir_values_int(values, "port");
	return start(state, values);
}

static void ticked(void *state, weir_view *view)
{
	((struct condition *)state)->ticked_at = weir_view_now(view);
}

static void wait_for(weir_verdict *verdict, const weir_fence *fences, size_t n)
{
	weir_verdict_wait(verdict, "fences are pending" FZ_STRANGE);
	for (size_t i = 0; i < n; i++)
		weir_verdict_fence(verdict, fences[i]);
}

/* Like cuda_stream, by public calls. */
static void ask_pending(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct condition *self = state;
	weir_fence fences[FENCES];
	size_t n = weir_view_pending(view, self->port, FENCES, fences);

	if (!n)
		weir_verdict_ready(verdict);
	else
		wait_for(verdict, fences, n < FENCES ? n : FENCES);
}

/* Waits for work that the last tick enqueued besides its messages. */
static void ask_own(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct condition *self = state;
	weir_status status = weir_fence_query(self->entity->fz->graph, self->entity->own);

	(void)view;
	if (status == WEIR_E_BUSY)
		wait_for(verdict, &self->entity->own, 1);
	else if (status && status != WEIR_E_DEVICE)
		fz_break(self->entity->fz, "%s: its own fence: %s", self->entity->name, weir_last_error());
	else
		weir_verdict_ready(verdict);
}

static void ask_pause(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct condition *self = state;
	int64_t due = self->ticked_at + self->entity->pause;

	if (weir_view_now(view) >= due) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "it ticked a moment ago" FZ_STRANGE);
	weir_verdict_until(verdict, due);
}

/* Waits for fences, but at most for a while. */
static void ask_either(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct condition *self = state;
	weir_fence fences[FENCES];
	size_t n = weir_view_pending(view, self->port, FENCES, fences);
	int64_t due = self->ticked_at + self->entity->pause;

	if (!n || weir_view_now(view) >= due) {
		weir_verdict_ready(verdict);
		return;
	}
	wait_for(verdict, fences, n < FENCES ? n : FENCES);
	weir_verdict_until(verdict, due);
}

#define PARAMETER .size = sizeof(weir_parameter)
#define OF_ENTITY                                                                                            \
	{PARAMETER, .name = "slot", .type = WEIR_TYPE_INT, .fallback = "0", .help = "the graph's"},          \
	{                                                                                                    \
		PARAMETER, .name = "id", .type = WEIR_TYPE_INT, .help = "the entity's"                       \
	}

static const weir_parameter plain[] = {OF_ENTITY, {.name = NULL}};
static const weir_parameter at_port[] = {
	OF_ENTITY,
	{PARAMETER, .name = "port", .type = WEIR_TYPE_INPUT, .help = "whose messages"},
	{.name = NULL}};

#define KIND .size = sizeof(weir_condition), .help = "of the fuzzer", .state_size = sizeof(struct condition)

static const weir_condition conditions[] = {
	{KIND, .name = "fz_pending", .parameters = at_port, .phase = WEIR_PHASE_CONTENT,
	 .start = start_at_port, .ask = ask_pending},
	{KIND, .name = "fz_either", .parameters = at_port, .phase = WEIR_PHASE_CONTENT,
	 .start = start_at_port, .ask = ask_either, .ticked = ticked},
	{KIND, .name = "fz_own", .parameters = plain, .phase = WEIR_PHASE_GATHERING, .start = start,
	 .ask = ask_own},
	{KIND, .name = "fz_own_late", .parameters = plain, .phase = WEIR_PHASE_CONTENT, .start = start,
	 .ask = ask_own},
	{KIND, .name = "fz_pause", .parameters = plain, .phase = WEIR_PHASE_GATHERING, .start = start,
	 .ask = ask_pause, .ticked = ticked},
};

weir_status fz_add_conditions(weir_registry *registry)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < sizeof conditions / sizeof *conditions; i++)
		status = weir_registry_add_condition(registry, &conditions[i]);
	return status;
}
