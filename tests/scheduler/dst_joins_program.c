/* The program's threads in the worlds of dst_joins.c: they complete fences, tell, take, poke and stop. */
#include "dst_joins.h"

enum { JOBS = 256 };

/* A payload that the program is to write. */
static struct job {
	weir_fence fence;
	struct dst_joins_payload *to, value;
	int64_t made, due;
	bool ended;
} jobs[JOBS];
static unsigned job_count;
static struct wr_random when;

void dst_joins_forget(void)
{
	job_count = 0;
	wr_random_seed(&when, joins.seed, 75);
}

weir_status dst_joins_promise(struct dst_joins_payload *to, struct dst_joins_payload value, weir_fence *out)
{
	weir_status status = weir_graph_create_fence(joins.graph, out);
	int64_t now = wr_now();

	if (!status && job_count == JOBS)
		dst_fails("too many promises");
	else if (!status)
		jobs[job_count++] =
			(struct job){*out,
				     to,
				     value,
				     now,
				     now + 1 + (int64_t)wr_random_below(&when, (uint64_t)joins.delay),
				     false};
	return status;
}

static void finish_job(struct job *job)
{
	struct dst_joins_log *log = &joins.log[job->value.maker];
	int64_t took;

	job->ended = true;
	*job->to = job->value;
	if (weir_fence_complete(joins.graph, job->fence, WEIR_OK, NULL))
		dst_fails("a fence was not completed: %s", weir_last_error());
	took = wr_now() - job->made;
	log->longest = took > log->longest ? took : log->longest;
}

void dst_joins_complete_rest(void)
{
	for (unsigned i = 0; i < job_count; i++)
		if (!jobs[i].ended)
			finish_job(&jobs[i]);
}

/* Each when it is due, a while after it was made: in any order. */
static void complete(void *arg)
{
	int64_t idle = 100;

	(void)arg;
	while (!wr_load(&joins.over)) {
		struct job *next = NULL;

		for (unsigned i = 0; i < job_count; i++)
			if (!jobs[i].ended && (!next || jobs[i].due < next->due))
				next = &jobs[i];
		if (next && next->due <= wr_now()) {
			finish_job(next);
			idle = 100;
			continue;
		}
		wr_thread_sleep(next && next->due - wr_now() < idle ? next->due - wr_now() : idle);
		idle = next ? 100 : idle + idle / 8; /* so that time passes while nothing is open */
	}
}

static bool wait_for_opening(void)
{
	while (!wr_load(&joins.opened) && !wr_load(&joins.over))
		wr_thread_sleep(100);
	return wr_load(&joins.opened);
}

static void take(void *arg)
{
	weir_message *message;
	weir_status status = WEIR_OK;

	(void)arg;
	if (!wait_for_opening())
		return;
	for (int64_t patience = 2 * US; status != WEIR_E_CLOSED;) {
		status = weir_outlet_take(joins.taken_from, patience, &message);
		patience += status == WEIR_E_TIMEOUT ? patience : 0;
		if (status && status != WEIR_E_CLOSED && status != WEIR_E_TIMEOUT) {
			dst_fails("take: %s", weir_last_error());
			return;
		}
		if (!status)
			weir_message_unref(message);
	}
}

static void poke(void *arg)
{
	struct wr_random random;

	(void)arg;
	wr_random_seed(&random, joins.seed, 71);
	for (int i = 0; i < 6 && !wr_load(&joins.over); i++) {
		wr_thread_sleep((int64_t)wr_random_below(&random, 2000));
		weir_entity_poke(&joins.graph->entities[wr_random_below(&random, joins.entities)]);
	}
}

static void stop(void *arg)
{
	(void)arg;
	wr_thread_sleep(joins.stop_after);
	weir_scheduler_stop(joins.scheduler, joins.drain ? WEIR_STOP_DRAIN : 0);
}

/* What is told to wait is always told to go on. */
static void tell(void *arg)
{
	struct wr_random random;

	(void)arg;
	wr_random_seed(&random, joins.seed, 73);
	for (int i = 0; i < 5 && !wr_load(&joins.over); i++)
		for (unsigned id = 0; id < joins.entities; id++)
			for (unsigned k = 0; k < joins.entity[id].alternatives; k++) {
				char name[8] = {'t', (char)('0' + k), 0};
				if (!joins.entity[id].alternative[k].told)
					continue;
				weir_entity_tell(&joins.graph->entities[id], name, WEIR_TOLD_WAIT);
				wr_thread_sleep((int64_t)wr_random_below(&random, 3000));
				weir_entity_tell(&joins.graph->entities[id], name, WEIR_TOLD_READY);
				wr_thread_sleep((int64_t)wr_random_below(&random, 1000));
			}
}

static unsigned send(struct wr_thread *threads, unsigned n, void (*fn)(void *arg), bool is)
{
	if (is)
		wr_thread_start(&threads[n], "member", fn, NULL);
	return n + is;
}

unsigned dst_joins_send(struct wr_thread *threads)
{
	bool told = false, promises = false;
	unsigned n = 0;

	for (unsigned i = 0; i < joins.entities; i++) {
		told |= joins.entity[i].told;
		promises |= joins.entity[i].promises;
	}
	n = send(threads, n, complete, promises);
	n = send(threads, n, take, joins.taken_from);
	n = send(threads, n, poke, joins.pokes);
	n = send(threads, n, tell, told);
	return send(threads, n, stop, joins.stop_after > 0);
}
