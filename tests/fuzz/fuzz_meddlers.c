/*
 * Threads that interfere with a run: they push, take, poke, tell, ask why, and stop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_api.h"
#include "shown.h"

void fz_expect_ok(struct fz *fz, weir_status status, const char *what)
{
	if (status)
		fz_break(fz, "%s: %s: %s", what, weir_status_text(status), weir_last_error());
}

/* Texts of operators and conditions contain control characters, which must have been escaped. */
void fz_expect_harmless(struct fz *fz, const char *text, const char *what)
{
	if (!shown(text, false))
		fz_break(fz, "%s holds control characters: '%s'", what, text);
}

static bool over(const struct fz_meddler *self)
{
	return atomic_load(&self->fz->over);
}

static void rest(struct fz_meddler *self)
{
	if (!fz_chance(&self->random, 4))
		weir_sleep(fz_below(&self->random, 200) * FZ_US);
}

static struct fz_entity *random_entity(struct fz_meddler *self)
{
	return &self->fz->entities[fz_below(&self->random, self->fz->entity_count)];
}

static void poke(void *arg)
{
	struct fz_meddler *self = arg;

	for (uint32_t n = fz_below(&self->random, 400); n && !over(self); n--) {
		weir_entity_poke(random_entity(self)->handle);
		if (fz_chance(&self->random, 3))
			rest(self);
	}
}

/* Tells an entity to wait and soon after to go on; it holds the run open until then. */
static void tell_entities(void *arg)
{
	struct fz_meddler *self = arg;

	for (uint32_t n = fz_below(&self->random, 30); n && !over(self); n--) {
		struct fz_entity *entity = random_entity(self);
		if (entity->asynchronous) {
			weir_entity_tell(entity->handle, "asynchronous", WEIR_TOLD_EVENT_WAITING);
			rest(self);
			weir_entity_tell(entity->handle, "asynchronous", WEIR_TOLD_EVENT_DONE);
		}
		rest(self);
	}
}

/* A fence that is complete, beside those that the entity tells itself. */
static void tell_fences(void *arg)
{
	struct fz_meddler *self = arg;

	for (uint32_t n = fz_below(&self->random, 30); n && !over(self); n--) {
		struct fz_entity *entity = random_entity(self);
		if (entity->told_fence)
			weir_entity_tell_fence(entity->handle, "fence", (weir_fence){0, 0});
		rest(self);
	}
}

static void stop(void *arg)
{
	struct fz_meddler *self = arg;

	weir_sleep(fz_below(&self->random, 3000) * FZ_US);
	weir_scheduler_stop(self->fz->scheduler, !fz_chance(&self->random, 3) ? WEIR_STOP_DRAIN : 0);
}

static void hear(const weir_unmet *unmet, void *arg)
{
	fz_expect_harmless(arg, unmet->detail, "an explanation");
	if (!unmet->entity[0] || !unmet->condition[0] || !unmet->verdict[0] || !unmet->detail[0])
		fz_break(arg, "explained without words: %s: %s: %s: %s", unmet->entity, unmet->condition,
			 unmet->verdict, unmet->detail);
}

static void ask_why(struct fz *fz)
{
	char *text = NULL;

	fz_expect_ok(fz, weir_scheduler_explain_line(fz->scheduler, &text), "why");
	fz_expect_harmless(fz, text, "why");
	weir_text_free(text);
}

static void look_on(void *arg)
{
	struct fz_meddler *self = arg;
	weir_queue_counts queue = {.size = sizeof queue};
	weir_entity_counts entity = {.size = sizeof entity};

	for (uint32_t n = fz_below(&self->random, 30); n && !over(self); n--) {
		weir_scheduler_explain(self->fz->scheduler, hear, self->fz);
		ask_why(self->fz);
		for (size_t i = 0; !weir_scheduler_queue_counts(self->fz->scheduler, i, &queue); i++)
			;
		for (size_t i = 0; !weir_scheduler_entity_counts(self->fz->scheduler, i, &entity); i++)
			;
		rest(self);
	}
}

static weir_status try_to_push(struct fz_meddler *self, weir_message *message)
{
	bool endless = self->fz->tame && fz_chance(&self->random, 8);
	int64_t timeout = fz_chance(&self->random, 2) ? 0 : endless ? -1 : 200 * FZ_US;
	weir_status status = weir_inlet_push(self->fz->inlet_handle, message, timeout);

	if (status != WEIR_E_BUSY)
		return status;
	wr_thread_yield(); /* in a world no room comes while a fiber tries again at once */
	return WEIR_E_TIMEOUT;
}

/*
 * Written by a kernel on the program's stream, which receivers wait for. The stream of a message may be set
 * again until it is pushed.
 */
static void write_later(struct fz_meddler *self, weir_message *message, size_t size, struct fz_made made)
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
static weir_status push_one(struct fz_meddler *self, uint32_t number)
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
	fz_expect_ok(fz, status, "a message for the inlet");
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

static void push(void *arg)
{
	struct fz_meddler *self = arg;
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

/* At once; or another thread drops it, or one more reference to it or to a part of it. */
static void drop_somehow(struct fz_meddler *self, weir_message *message)
{
	_Atomic(weir_message *) *place = &self->fz->shelf[fz_below(&self->random, FZ_SHELF)];

	if (fz_chance(&self->random, 4))
		weir_message_unref(atomic_exchange(place, weir_message_ref(fz_payload(message, 0))));
	if (fz_chance(&self->random, 4))
		message = atomic_exchange(place, message);
	weir_message_unref(message);
}

static void clear_shelf(struct fz *fz)
{
	for (unsigned i = 0; i < FZ_SHELF; i++)
		weir_message_unref(atomic_exchange(&fz->shelf[i], NULL));
}

static void drop(void *arg)
{
	struct fz_meddler *self = arg;

	while (!over(self)) {
		weir_sleep((1 + fz_below(&self->random, 200)) * FZ_US);
		clear_shelf(self->fz);
	}
}

static void take(void *arg)
{
	struct fz_meddler *self = arg;
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
		drop_somehow(self, message);
		if (fz_chance(&self->random, 20))
			rest(self);
	}
	if (status != WEIR_E_CLOSED)
		fz_break(fz, "take: %s: %s", weir_status_text(status), weir_last_error());
	free(seen);
}

static unsigned send(struct fz_meddler *meddlers, unsigned n, struct fz *fz, const char *name,
		     void (*fn)(void *arg), bool is)
{
	if (!is)
		return n;
	meddlers[n] = (struct fz_meddler){.fz = fz, .random = {fz_next(&fz->random)}};
	fz_expect_ok(fz, wr_thread_start(&meddlers[n].thread, name, fn, &meddlers[n]), "a thread");
	return n + 1;
}

unsigned fz_send(struct fz_meddler *meddlers, struct fz *fz, bool stops)
{
	bool alone = fz_alone(fz);
	unsigned n = 0;

	n = send(meddlers, n, fz, "push", push, fz->inlet);
	n = send(meddlers, n, fz, "take", take, fz->outlet);
	n = send(meddlers, n, fz, "take", take, fz->outlet && fz->takers > 1);
	n = send(meddlers, n, fz, "drop", drop, fz->outlet);
	n = send(meddlers, n, fz, "poke", poke, !alone && fz_chance(&fz->random, 3));
	n = send(meddlers, n, fz, "poke", poke, !alone && fz_chance(&fz->random, 6));
	n = send(meddlers, n, fz, "tell_entities", tell_entities, !alone && fz_chance(&fz->random, 3));
	n = send(meddlers, n, fz, "tell_fences", tell_fences, atomic_load(&fz->fences_told));
	n = send(meddlers, n, fz, "look_on", look_on, !alone && fz_chance(&fz->random, 4));
	return send(meddlers, n, fz, "stop", stop, stops);
}

void fz_join(struct fz *fz, struct fz_meddler *meddlers, unsigned n)
{
	atomic_store(&fz->over, true);
	for (unsigned i = 0; i < n; i++)
		wr_thread_join(&meddlers[i].thread);
	clear_shelf(fz);
}
