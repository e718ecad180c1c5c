/* Threads of the program beside a run: they poke, push, take, set conditions, ask for explanations, and stop.
 */
#include <string.h>

#include "base/clock.h"
#include "dst_world.h"

/* In a tiny graph mostly until the source's next beat: what happens at one instant happens in any order. */
static void idle_about(struct dst_run *run, struct wr_random *random)
{
	int64_t beat = DST_BEAT - wr_now() % DST_BEAT;

	if (run->dst.tiny)
		weir_sleep(wr_random_below(random, 3) ? beat
						      : 1 + (int64_t)wr_random_below(random, DST_BEAT));
	else if (wr_random_below(random, 3))
		wr_thread_yield();
	else
		weir_sleep((int64_t)wr_random_below(random, 900));
}

/*
 * Useless pokes, also before and after runs. In a tiny graph only few, mostly to the receiver: every poke
 * repairs a wake-up that was lost before it.
 */
static void poke(void *arg)
{
	struct dst_outsider *self = arg;
	struct dst_run *run = self->run;
	struct wr_random random;

	wr_random_seed(&random, run->seed, 77 + self->number);
	for (uint64_t i = 0, n = 1 + wr_random_below(&random, run->dst.tiny ? 5 : 20);
	     i < n && !wr_load(&run->over); i++) {
		if (i || wr_random_below(&random, 4))
			idle_about(run, &random);
		uint64_t target = wr_random_below(&random, run->dst.tiny ? 4 : run->graph->entity_count);
		weir_entity_poke(&run->graph->entities[run->dst.tiny ? target > 0 : target]);
	}
}

static void stop(void *arg)
{
	struct dst_run *run = ((struct dst_outsider *)arg)->run;

	weir_sleep(run->stop_after);
	weir_scheduler_stop(run->scheduler, run->stop == DST_STOP_DRAIN ? WEIR_STOP_DRAIN : 0);
}

static bool wait_for_opening(struct dst_run *run)
{
	while (!wr_load(&run->opened) && !wr_load(&run->over))
		weir_sleep(100);
	return wr_load(&run->opened);
}

static weir_status push_one(struct dst_run *run)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_bytes(run->graph, sizeof(struct dst_payload), &message);

	if (status)
		return status;
	*(struct dst_payload *)weir_message_data(message) = dst_payload_of(DST_INLET, run->dst.beats);
	status = WEIR_E_TIMEOUT;
	for (int64_t patience = 3 * US; status == WEIR_E_TIMEOUT; patience *= 2) /* a lost callback: 1 s */
		status = weir_inlet_push(run->inlet, message, patience);
	if (status)
		weir_message_unref(message);
	else
		run->dst.beats++;
	return status;
}

static void push(void *arg)
{
	struct dst_run *run = ((struct dst_outsider *)arg)->run;
	weir_status status = WEIR_OK;

	if (!wait_for_opening(run))
		return;
	for (unsigned i = 0; i < run->pushes && !status; i++)
		status = push_one(run);
	if (status && status != WEIR_E_CLOSED)
		dst_break(&run->dst, "push: %s", weir_last_error());
	weir_inlet_close(run->inlet);
}

/* Host code may read what the device wrote once its fences are complete. */
static bool readable(struct dst_run *run, const weir_message *message)
{
	weir_fence fences[DST_ENTITIES];
	size_t n = weir_message_fences(message, DST_ENTITIES, fences);
	bool complete = true;

	for (size_t i = 0; i < n && i < DST_ENTITIES; i++)
		complete = complete && !weir_fence_wait(run->graph, fences[i], MS);
	return complete;
}

/* True if no device work on the message is pending. On a lost device this is unknown. */
static bool is_complete(struct dst_run *run, weir_message *message)
{
	weir_fence fences[DST_ENTITIES];
	size_t n = weir_message_fences(message, DST_ENTITIES, fences);
	bool pending = false;

	for (size_t i = 0; i < n && i < DST_ENTITIES; i++)
		pending = pending || weir_fence_query(run->graph, fences[i]) == WEIR_E_BUSY;
	return !pending;
}

static void take(void *arg)
{
	struct dst_run *run = ((struct dst_outsider *)arg)->run;
	struct dst_seen seen = {.gaps = false};
	bool all = true; /* all messages before were read */
	weir_message *message;
	weir_status status = WEIR_OK;

	if (!wait_for_opening(run))
		return;
	for (int64_t patience = 2 * US; status != WEIR_E_CLOSED; patience += patience) {
		status = weir_outlet_take(run->outlet, patience, &message);
		if (status == WEIR_E_TIMEOUT || status == WEIR_E_CLOSED)
			continue;
		if (status) {
			dst_break(&run->dst, "take: %s", weir_last_error());
			return;
		}
		if (!run->early && !is_complete(run, message))
			dst_break(&run->dst, "the outlet gave what is not finished");
		all = all && readable(run, message);
		if (all && weir_message_data(dst_part(message)))
			dst_check(&run->dst, weir_message_data(dst_part(message)), &seen, "the outlet");
		weir_message_unref(message);
	}
}

/* A condition that is set to wait is always set to go on soon after. */
static void tell(void *arg)
{
	struct dst_run *run = ((struct dst_outsider *)arg)->run;
	bool event = !strcmp(run->dst.told, "asynchronous");
	weir_entity *entity = &run->graph->entities[run->dst.entities - 1];
	struct wr_random random;

	wr_random_seed(&random, run->seed, 76);
	for (int i = 0; i < 6 && !wr_load(&run->over); i++) {
		weir_entity_tell(entity, run->dst.told, event ? WEIR_TOLD_EVENT_WAITING : WEIR_TOLD_WAIT);
		weir_sleep((int64_t)wr_random_below(&random, 2 * US));
		weir_entity_tell(entity, run->dst.told, event ? WEIR_TOLD_EVENT_DONE : WEIR_TOLD_READY);
		weir_sleep((int64_t)wr_random_below(&random, 2 * US));
	}
}

/* Of work that any entity enqueued; the last one stays open. */
static void tell_fences(void *arg)
{
	struct dst_run *run = ((struct dst_outsider *)arg)->run;
	struct dst *dst = &run->dst;
	struct wr_random random;

	wr_random_seed(&random, run->seed, 75);
	for (int i = 0; i < 6 && !wr_load(&run->over); i++) {
		weir_sleep((int64_t)wr_random_below(&random, 2 * US));
		if (dst_tell_fence(dst, &run->graph->entities[dst->fenced],
				   dst->work[wr_random_below(&random, dst->entities)]) == WEIR_E_INVALID)
			dst_break(dst, "a told fence: %s", weir_last_error());
	}
}

static void hear(const weir_unmet *unmet, void *arg)
{
	struct dst_run *run = arg;

	if (!*unmet->entity || !*unmet->condition || !*unmet->verdict || !*unmet->detail)
		dst_break(&run->dst, "%s: explained without words", unmet->entity);
}

static void explain(void *arg)
{
	struct dst_run *run = ((struct dst_outsider *)arg)->run;

	for (int i = 0; i < 6 && !wr_load(&run->over); i++) {
		weir_scheduler_explain(run->scheduler, hear, run);
		weir_sleep(i * 700);
	}
}

static unsigned send(struct dst_outsider *outsiders, unsigned n, struct dst_run *run, void (*fn)(void *arg),
		     bool is)
{
	if (!is)
		return n;
	outsiders[n] = (struct dst_outsider){.run = run, .number = n};
	wr_thread_start(&outsiders[n].thread, "outsider", fn, &outsiders[n]);
	return n + 1;
}

unsigned dst_send_outsiders(struct dst_outsider *outsiders, struct dst_run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->pokers; i++)
		n = send(outsiders, n, run, poke, true);
	n = send(outsiders, n, run, stop, run->stop);
	n = send(outsiders, n, run, push, run->inlet);
	n = send(outsiders, n, run, take, run->outlet);
	n = send(outsiders, n, run, tell, run->dst.told);
	n = send(outsiders, n, run, tell_fences, run->dst.fenced < run->dst.entities && !run->dst.fence_once);
	return send(outsiders, n, run, explain, run->explains);
}
