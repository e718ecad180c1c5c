/*
 * Runs a graph, on `host` beside interfering threads, and checks how it ended, the counts, and the
 * messages.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_api.h"
#include "shown.h"

static const int64_t patience = 40 * 1000 * FZ_MS;

static void check(struct fz *fz, weir_status status, const char *what)
{
	if (status)
		fz_break(fz, "%s: %s: %s", what, weir_status_text(status), weir_last_error());
}

/* --- interfering threads --- */

struct meddler {
	struct fz *fz;
	struct fz_random random;
	pthread_t thread;
};

static bool over(const struct meddler *self)
{
	return atomic_load(&self->fz->over);
}

static void rest(struct meddler *self)
{
	if (!fz_chance(&self->random, 4))
		weir_sleep(fz_below(&self->random, 200) * FZ_US);
}

static struct fz_entity *random_entity(struct meddler *self)
{
	return &self->fz->entities[fz_below(&self->random, self->fz->entity_count)];
}

static void *poke(void *arg)
{
	struct meddler *self = arg;

	for (uint32_t n = fz_below(&self->random, 400); n && !over(self); n--) {
		weir_entity_poke(random_entity(self)->handle);
		if (fz_chance(&self->random, 3))
			rest(self);
	}
	return NULL;
}

/* Tells an entity to wait and soon after to go on; it holds the run open until then. */
static void *tell_entities(void *arg)
{
	struct meddler *self = arg;

	for (uint32_t n = fz_below(&self->random, 30); n && !over(self); n--) {
		struct fz_entity *entity = random_entity(self);
		if (entity->asynchronous) {
			weir_entity_tell(entity->handle, "asynchronous", WEIR_TOLD_EVENT_WAITING);
			rest(self);
			weir_entity_tell(entity->handle, "asynchronous", WEIR_TOLD_EVENT_DONE);
		}
		rest(self);
	}
	return NULL;
}

/* A fence that is complete, beside those that the entity tells itself. */
static void *tell_fences(void *arg)
{
	struct meddler *self = arg;

	for (uint32_t n = fz_below(&self->random, 30); n && !over(self); n--) {
		struct fz_entity *entity = random_entity(self);
		if (entity->told_fence)
			weir_entity_tell_fence(entity->handle, "fence", (weir_fence){0, 0});
		rest(self);
	}
	return NULL;
}

static void *stop(void *arg)
{
	struct meddler *self = arg;

	weir_sleep(fz_below(&self->random, 3000) * FZ_US);
	weir_scheduler_stop(self->fz->scheduler, !fz_chance(&self->random, 3));
	return NULL;
}

/* Texts of operators and conditions contain control characters, which must have been escaped. */
static void expect_harmless(struct fz *fz, const char *text, const char *what)
{
	if (!shown(text, false))
		fz_break(fz, "%s holds control characters: '%s'", what, text);
}

static void hear(const char *entity, const char *condition, const char *verdict, const char *detail,
		 void *arg)
{
	expect_harmless(arg, detail, "an explanation");
	if (!entity[0] || !condition[0] || !verdict[0] || !detail[0])
		fz_break(arg, "explained without words: %s: %s: %s: %s", entity, condition, verdict, detail);
}

static void ask_why(struct fz *fz)
{
	char *text = NULL;

	check(fz, weir_scheduler_explain_line(fz->scheduler, &text), "why");
	expect_harmless(fz, text, "why");
	weir_text_free(text);
}

static void *look_on(void *arg)
{
	struct meddler *self = arg;
	weir_queue_counts queue = {.size = sizeof queue};
	weir_entity_counts entity = {.size = sizeof entity};

	for (uint32_t n = fz_below(&self->random, 30); n && !over(self); n--) {
		weir_scheduler_explain(self->fz->scheduler, hear, self->fz);
		ask_why(self->fz);
		for (size_t i = 0; weir_scheduler_queue_counts(self->fz->scheduler, i, &queue); i++)
			;
		for (size_t i = 0; weir_scheduler_entity_counts(self->fz->scheduler, i, &entity); i++)
			;
		rest(self);
	}
	return NULL;
}

static weir_status try_to_push(struct meddler *self, weir_message *message)
{
	bool endless = self->fz->tame && fz_chance(&self->random, 8);
	int64_t timeout = fz_chance(&self->random, 2) ? 0 : endless ? -1 : 200 * FZ_US;
	weir_status status = weir_inlet_push(self->fz->inlet_handle, message, timeout);

	return status == WEIR_E_BUSY ? WEIR_E_TIMEOUT : status;
}

/*
 * Written by a kernel on the program's stream, which receivers wait for. The stream of a message may be set
 * again until it is pushed.
 */
static void write_later(struct meddler *self, weir_message *message, size_t size, struct fz_made made)
{
	struct fz *fz = self->fz;
	struct fz_work work = {.entity = &fz->entities[FZ_INLET],
			       .to = weir_message_data(message),
			       .to_size = size,
			       .made = made,
			       .ns = fz_below(&self->random, 60) * FZ_US};
	weir_fence fence = {0, 0};
	weir_status status;

	fz_spoil(work.to, size);
	status = fz_launch(fz->stream, &work);
	if (!status)
		status = weir_stream_record(fz->stream, &fence);
	if (!status)
		status = weir_message_add_producer(message, fence);
	if (status && !atomic_load(&fz->faulted))
		fz_break(fz, "what a program produces: %s: %s", weir_status_text(status), weir_last_error());
}

/* No run waits for work of messages that were not pushed. */
static void finish_stream(struct fz *fz)
{
	weir_fence last;
	weir_status status = weir_stream_record(fz->stream, &last);

	if (!status)
		status = weir_fence_wait(fz->graph, last, -1);
	if (status && !atomic_load(&fz->faulted))
		fz_break(fz, "the program's stream: %s: %s", weir_status_text(status), weir_last_error());
}

/* Gives up if the run may be deadlocked, since an open inlet holds it open. */
static weir_status push_one(struct meddler *self, uint32_t number)
{
	struct fz *fz = self->fz;
	struct fz_entity maker = {.fz = fz,
				  .id = FZ_INLET,
				  .random = self->random,
				  .wraps = fz_chance(&self->random, 6),
				  .stamps = fz_chance(&self->random, 2) ? FZ_OF_MESSAGE : FZ_INHERITED};
	size_t size = FZ_PAYLOAD_LEAST + fz_below(&self->random, 500);
	struct fz_made made = {FZ_INLET, number, 0};
	weir_message *message = NULL;
	weir_status status;

	fz_next(&self->random);
	status = fz_produce(&maker, fz->graph, size, &message);
	if (status == WEIR_E_DEVICE && atomic_load(&fz->faulted))
		return WEIR_E_CLOSED;
	check(fz, status, "a message for the inlet");
	made.tag = fz_stamp(&maker, message);
	if (fz_chance(&self->random, 3))
		write_later(self, message, size, made);
	else
		fz_write(fz, weir_message_data(message), size, made, 0);
	status = WEIR_E_TIMEOUT;
	for (unsigned tries = 0; status == WEIR_E_TIMEOUT && (fz->tame || tries < 300); tries++)
		status = try_to_push(self, message);
	if (status)
		weir_message_unref(message);
	return status;
}

static void *push(void *arg)
{
	struct meddler *self = arg;
	weir_status status = WEIR_OK;
	bool pauses = fz_chance(&self->random, 2);

	for (uint32_t i = 0; i < self->fz->pushes && !status; i++) {
		status = push_one(self, i);
		if (pauses)
			rest(self);
	}
	if (status && status != WEIR_E_CLOSED && status != WEIR_E_TIMEOUT)
		fz_break(self->fz, "push: %s: %s", weir_status_text(status), weir_last_error());
	weir_inlet_close(self->fz->inlet_handle);
	finish_stream(self->fz);
	return NULL;
}

/*
 * Messages of an outlet are finished, except those of an early one. Returns false if the device failed, and
 * the message must not be read.
 */
static bool finished(struct fz *fz, const weir_message *message)
{
	weir_fence fences[16 * FZ_PARTS];
	size_t n = weir_message_fences(message, 16 * FZ_PARTS, fences);

	for (size_t i = 0; i < n && i < 16 * FZ_PARTS; i++)
		if (fz->early && weir_fence_wait(fz->graph, fences[i], -1) == WEIR_E_INVALID)
			fz_break(fz, "the outlet gave a fence that cannot be waited for: %s",
				 weir_last_error());
		else if (weir_fence_query(fz->graph, fences[i]) == WEIR_E_BUSY)
			fz_break(fz, "the outlet gave what is not finished");
	return !atomic_load(&fz->faulted);
}

static void *take(void *arg)
{
	struct meddler *self = arg;
	struct fz *fz = self->fz;
	struct fz_entity taker = {.fz = fz, .id = FZ_INLET};
	struct fz_seen *seen = calloc(1, sizeof *seen);
	weir_status status = WEIR_OK;
	weir_message *message;
	bool all = true;

	while (seen && (!status || status == WEIR_E_TIMEOUT)) {
		status = weir_outlet_take(fz->outlet_handle,
					  (int64_t[]){0, 100 * FZ_US, -1}[fz_below(&self->random, 3)],
					  &message);
		if (status)
			continue;
		all = all && finished(fz, message);
		for (size_t i = 0; all && i < fz_payloads(message); i++)
			if (weir_message_data(fz_payload(message, i)))
				fz_check(&taker, fz_received(fz_payload(message, i)), &fz->outlet_way, seen,
					 "at the outlet");
		weir_message_unref(message);
		if (fz_chance(&self->random, 20))
			rest(self);
	}
	if (status != WEIR_E_CLOSED)
		fz_break(fz, "take: %s: %s", weir_status_text(status), weir_last_error());
	free(seen);
	return NULL;
}

enum { MEDDLERS = 8 };

static unsigned send(struct meddler *meddlers, unsigned n, struct fz *fz, void *(*fn)(void *arg), bool is)
{
	if (!is)
		return n;
	meddlers[n] = (struct meddler){.fz = fz, .random = {fz_next(&fz->random)}};
	if (pthread_create(&meddlers[n].thread, NULL, fn, &meddlers[n]))
		fz_break(fz, "no thread");
	return n + 1;
}

/* --- checks --- */

static const struct fz_connection *connection_named(const struct fz *fz, const weir_queue_counts *counts)
{
	static const char *const outs[] = {"out", "out2"}, *const ins[] = {"in", "in2", "any"};
	char from[24], to[24];

	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *one = &fz->connections[i];
		snprintf(from, sizeof from, "%s.%s", fz->entities[one->from].name, outs[one->output]);
		snprintf(to, sizeof to, "%s.%s", fz->entities[one->to].name, ins[one->port]);
		if (!strcmp(to, counts->to) && !strcmp(one->from == FZ_INLET ? "inlet" : from, counts->from))
			return one;
	}
	return NULL;
}

/* E5; and compute received as many messages as were counted, unless a tick failed half-way. */
static void check_queues(struct fz *fz, bool exact)
{
	weir_queue_counts counts = {.size = sizeof counts};
	uint64_t delivered[FZ_ENTITIES + 1][FZ_PORTS] = {0};

	for (size_t i = 0; weir_scheduler_queue_counts(fz->scheduler, i, &counts); i++) {
		const struct fz_connection *one = connection_named(fz, &counts);
		uint64_t due = one ? fz->entities[one->from].emitted[one->output] + one->initial_messages : 0;
		if (counts.pushed !=
		    counts.delivered + counts.dropped + counts.closed + counts.queued + counts.abandoned)
			fz_break(fz,
				 "%s to %s: %llu pushed, %llu delivered, %llu dropped, %llu closed, %llu "
				 "queued, %llu abandoned",
				 counts.from, counts.to, (unsigned long long)counts.pushed,
				 (unsigned long long)counts.delivered, (unsigned long long)counts.dropped,
				 (unsigned long long)counts.closed, (unsigned long long)counts.queued,
				 (unsigned long long)counts.abandoned);
		if (!one)
			continue;
		delivered[one->to][one->port] += counts.delivered;
		if (exact && one->from != FZ_INLET && counts.pushed != due)
			fz_break(fz, "%s to %s: %llu pushed, but %llu emitted", counts.from, counts.to,
				 (unsigned long long)counts.pushed, (unsigned long long)due);
	}
	for (unsigned id = 0; exact && id < fz->entity_count; id++)
		for (unsigned port = 0; port < FZ_PORTS; port++)
			if (fz->entities[id].received[port] != delivered[id][port])
				fz_break(fz, "e%02u, port %u: %llu delivered, but compute saw %llu", id, port,
					 (unsigned long long)delivered[id][port],
					 (unsigned long long)fz->entities[id].received[port]);
}

/*
 * Everything that was started was stopped: at the end of the run or, if it was aborted, when the scheduler
 * was destroyed.
 */
static void check_stopped(struct fz *fz)
{
	for (unsigned id = 0; id < fz->entity_count; id++)
		if (atomic_load(&fz->entities[id].started))
			fz_break(fz, "e%02u was started, but not stopped", id);
}

/* The bound of ticks in flight holds, unless it is narrowed for entities that enqueue much. */
static void check_bound(struct fz *fz, const weir_entity_counts *counts, const struct fz_entity *entity)
{
	unsigned bound = entity->max_in_flight < 0 ? fz->bound : (unsigned)entity->max_in_flight;

	if (bound && counts->most_in_flight > bound)
		fz_break(fz, "%s had %llu ticks in flight, its bound is %u", counts->entity,
			 (unsigned long long)counts->most_in_flight, bound);
}

static void check_entities(struct fz *fz, bool all_done, bool cut)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_entity_counts(fz->scheduler, i, &counts); i++) {
		fz->ticks += counts.ticks;
		if (all_done && !counts.done)
			fz_break(fz, "%s is not done, though the run has finished", counts.entity);
		if (i < fz->entity_count)
			check_bound(fz, &counts, &fz->entities[i]);
	}
	if (!cut)
		check_stopped(fz);
}

/* The outcomes that are possible for this graph. */
static void check_end(struct fz *fz, weir_status status, const weir_outcome *outcome, bool cut)
{
	bool failed = atomic_load(&fz->failed), faulted = atomic_load(&fz->faulted);
	const char *text = outcome->text ? outcome->text : "";

	expect_harmless(fz, text, "the outcome");
	expect_harmless(fz, outcome->waiting ? outcome->waiting : "", "what waits");
	if (status == WEIR_OK && !(failed && !cut))
		return; /* a fault after the last check may go unnoticed only if the run was aborted */
	if (status == WEIR_E_DEADLOCK && !fz->tame && text[0])
		return;
	if ((status == WEIR_E_FAILED && (failed || fz->overflows) && outcome->entity) ||
	    (status == WEIR_E_DEVICE && faulted))
		return;
	fz_break(fz, "the run ended with %s: %s (%s)", weir_status_text(status), text,
		 outcome->entity ? outcome->entity : "no entity");
}

/* --- a run --- */

static void prepare(struct fz *fz)
{
	fz->salt = fz_next(&fz->random) | 1;
	atomic_store(&fz->failed, false);
	atomic_store(&fz->stopped, false);
	atomic_store(&fz->over, false);
	atomic_store(&fz->fences_told, !strcmp(fz->backend, "host") && fz_chance(&fz->random, 3));
	for (unsigned id = 0; id < fz->entity_count; id++) {
		struct fz_entity *entity = &fz->entities[id];
		entity->random = (struct fz_random){fz_next(&fz->random)};
		entity->busy = false;
		entity->number = 0;
		entity->own = entity->told = (weir_fence){0, 0};
		memset(entity->received, 0, sizeof entity->received);
		memset(entity->emitted, 0, sizeof entity->emitted);
		memset(entity->seen, 0, sizeof entity->seen);
	}
}

static unsigned send_all(struct meddler *meddlers, struct fz *fz, bool stops)
{
	bool alone = !strcmp(fz->backend, "sim");
	unsigned n = 0;

	n = send(meddlers, n, fz, push, fz->inlet);
	n = send(meddlers, n, fz, take, fz->outlet);
	n = send(meddlers, n, fz, poke, !alone && fz_chance(&fz->random, 3));
	n = send(meddlers, n, fz, poke, !alone && fz_chance(&fz->random, 6));
	n = send(meddlers, n, fz, tell_entities, !alone && fz_chance(&fz->random, 3));
	n = send(meddlers, n, fz, tell_fences, atomic_load(&fz->fences_told));
	n = send(meddlers, n, fz, look_on, !alone && fz_chance(&fz->random, 4));
	return send(meddlers, n, fz, stop, stops);
}

static void shout(const char *entity, const char *condition, const char *verdict, const char *detail,
		  void *arg)
{
	(void)arg;
	fprintf(stderr, "  %s: %s: %s: %s\n", entity, condition, verdict, detail);
}

static uint64_t ticks_so_far(struct fz *fz)
{
	weir_entity_counts counts = {.size = sizeof counts};
	uint64_t ticks = 0;

	for (size_t i = 0; weir_scheduler_entity_counts(fz->scheduler, i, &counts); i++)
		ticks += counts.ticks;
	return ticks;
}

/* On a busy machine a run may be slow, which is no fault while it makes progress. */
static weir_status wait_for_end(struct fz *fz, weir_outcome *outcome)
{
	uint64_t before, now = 0;
	weir_status status;

	do {
		before = now;
		alarm(100);
		status = weir_scheduler_wait(fz->scheduler, patience, outcome);
		now = ticks_so_far(fz);
	} while (status == WEIR_E_TIMEOUT && weir_scheduler_running(fz->scheduler) && now > before);
	if (status == WEIR_E_TIMEOUT && weir_scheduler_running(fz->scheduler)) {
		weir_scheduler_explain(fz->scheduler, shout, NULL);
		fz_break(fz, "the run hangs");
	}
	return status;
}

static void join(struct fz *fz, struct meddler *meddlers, unsigned n)
{
	atomic_store(&fz->over, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(meddlers[i].thread, NULL);
}

/* After an aborted run it may have to wait until the device work of stop functions completes. */
static weir_status start(struct fz *fz)
{
	weir_status status;

	for (unsigned id = 0; id < fz->entity_count; id++)
		if (fz->entities[id].told_fence)
			check(fz,
			      weir_entity_tell_fence(fz->entities[id].handle, "fence", (weir_fence){0, 0}),
			      "a fence for the first tick");
	status = weir_scheduler_start(fz->scheduler);

	for (int64_t waited = 0; status == WEIR_E_BUSY && waited < patience; waited += FZ_MS) {
		weir_sleep(FZ_MS);
		status = weir_scheduler_start(fz->scheduler);
	}
	return status;
}

static void run_once(struct fz *fz)
{
	struct meddler meddlers[MEDDLERS];
	weir_outcome outcome = {.size = sizeof outcome};
	bool stops = strcmp(fz->backend, "sim") && fz_chance(&fz->random, 8), cut;
	weir_status status;
	unsigned n;

	prepare(fz);
	status = start(fz);
	if (status == WEIR_E_FAILED) {
		expect_harmless(fz, weir_last_error(), "the last error");
		return; /* a start was made to fail, once */
	}
	check(fz, status, "start");
	n = send_all(meddlers, fz, stops);
	status = wait_for_end(fz, &outcome);
	join(fz, meddlers, n);
	cut = stops || atomic_load(&fz->stopped) || fz->scheduler_options.max_duration_ns;
	check_end(fz, status, &outcome, cut);
	check_queues(fz, !status || status == WEIR_E_DEADLOCK);
	check_entities(fz, !status && !cut && fz->tame, cut || status);
	fz->ends[!status ? 0 : status == WEIR_E_DEADLOCK ? 1 : 2]++;
}

/* Another thread destroys the graph during the run. */
static void *destroy_during_run(void *arg)
{
	struct fz *fz = arg;

	weir_sleep(fz_below(&fz->random, 2000) * FZ_US);
	check(fz, weir_scheduler_destroy(fz->scheduler), "destroy of a scheduler that runs");
	return NULL;
}

static void run_destroyed(struct fz *fz)
{
	pthread_t thread;

	prepare(fz);
	if (fz->inlet || fz->outlet || start(fz)) {
		check(fz, weir_scheduler_destroy(fz->scheduler), "destroy");
		return;
	}
	if (pthread_create(&thread, NULL, destroy_during_run, fz))
		fz_break(fz, "no thread");
	pthread_join(thread, NULL);
}

/* --- a graph --- */

static void hear_report(const weir_diagnostic *report, void *arg)
{
	expect_harmless(arg, report->text, "a report");
	if (!report->warning)
		fz_break(arg, "W%03d: %s: %s", report->number, report->pointer, report->text);
}

static void make(struct fz *fz)
{
	weir_description *description = NULL;

	check(fz, weir_registry_create(&fz->registry), "registry");
	check(fz, fz_add_operators(fz->registry), "operators");
	check(fz, fz_add_conditions(fz->registry), "conditions");
	check(fz, weir_description_parse(fz->text, strlen(fz->text), hear_report, fz, &description), "parse");
	check(fz, weir_description_check(description, fz->registry, hear_report, fz), "check");
	check(fz, weir_graph_create(fz->registry, description, &fz->graph), "graph");
	weir_description_destroy(description);
	for (unsigned id = 0; id < fz->entity_count; id++)
		fz->entities[id].handle = weir_graph_entity(fz->graph, fz->entities[id].name);
}

static void make_doors(struct fz *fz)
{
	char port[24];

	snprintf(port, sizeof port, "%s.in", fz->entities[fz->inlet_to].name);
	if (fz->inlet)
		check(fz, weir_graph_add_inlet(fz->graph, port, &fz->inlet_handle), "inlet");
	snprintf(port, sizeof port, "%s.out", fz->entities[fz->outlet_from].name);
	if (fz->outlet)
		check(fz,
		      weir_graph_add_outlet(fz->graph, port, fz->outlet_capacity,
					    fz->early ? WEIR_OUTLET_EARLY : 0, &fz->outlet_handle),
		      "outlet");
}

static void unmake(struct fz *fz)
{
	check(fz, weir_graph_destroy(fz->graph), "destroy of the graph");
	weir_registry_destroy(fz->registry);
	if (atomic_load(&fz->wrapped) != atomic_load(&fz->unwrapped))
		fz_break(fz, "%u pieces of memory were given, %u destructors were called",
			 atomic_load(&fz->wrapped), atomic_load(&fz->unwrapped));
}

void fz_run(struct fz *fz)
{
	make(fz);
	make_doors(fz);
	for (unsigned schedulers = 1 + fz_chance(&fz->random, 4); schedulers && !atomic_load(&fz->faulted);
	     schedulers--) {
		bool destroyed = strcmp(fz->backend, "sim") && fz_chance(&fz->random, 6);

		check(fz, weir_scheduler_create(fz->graph, &fz->scheduler_options, &fz->scheduler),
		      "scheduler");
		if (fz->inlet)
			check(fz, weir_graph_add_stream(fz->graph, 0, &fz->stream),
			      "a stream of the program's");
		for (unsigned i = 0; i < fz->runs && !atomic_load(&fz->faulted); i++)
			run_once(fz);
		if (destroyed && !atomic_load(&fz->faulted))
			run_destroyed(fz);
		else
			check(fz, weir_scheduler_destroy(fz->scheduler), "destroy");
		check_stopped(fz);
	}
	unmake(fz);
}
