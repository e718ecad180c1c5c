/*
 * The program's threads in the worlds of dst_held.c. What they take they drop at once, later, or leave on a
 * shelf, where another thread drops it; of some they keep a part, or a second reference.
 */
#include <string.h>

#include "dst_held.h"

struct member {
	struct dst_chain *chain; /* NULL: of all */
	struct wr_random random;
};

static struct member members[DST_HELD_THREADS];

/*
 * Time passes only while all others sleep, so a drop that is to meet the loop's look must not sleep: it comes
 * a few accesses after the live count has left 0, if that happens soon.
 */
static void meet_loop(struct member *self)
{
	wr_live *live = &held.scheduler->live;
	uint64_t patience = 256, more = wr_random_below(&self->random, 32);

	while (patience && wr_live_count(live))
		patience--;
	while (patience && !wr_live_count(live))
		patience--;
	while (more && wr_live_count(live))
		more--;
}

static void rest(struct member *self, int64_t longest)
{
	if (held.brisk) {
		meet_loop(self);
		return;
	}
	if (wr_random_below(&self->random, 3))
		wr_thread_sleep((int64_t)wr_random_below(&self->random, (uint64_t)longest));
}

static bool wait_for_opening(void)
{
	while (!wr_load(&held.opened) && !wr_load(&held.over))
		wr_thread_sleep(100);
	return wr_load(&held.opened);
}

/* --- taking and dropping --- */

static void shelve(struct member *self, weir_message *message)
{
	weir_message_unref(wr_exchange(&held.shelf[wr_random_below(&self->random, SHELF)], message));
}

void dst_held_clear_shelf(void)
{
	for (unsigned i = 0; i < SHELF; i++)
		weir_message_unref(wr_exchange(&held.shelf[i], NULL));
}

static void dispose(struct member *self, weir_message *message)
{
	size_t parts = weir_message_parts(message);

	switch (held.brisk ? 3 : wr_random_below(&self->random, 5)) {
	case 0: /* a second reference goes elsewhere */
		shelve(self, weir_message_ref(message));
		break;
	case 1:
		shelve(self, message);
		return;
	case 2:
		if (parts)
			shelve(self, weir_message_ref(weir_message_part_at(
					     message, wr_random_below(&self->random, parts))));
		break;
	case 3:
		rest(self, held.patience);
		break;
	default:
		break;
	}
	weir_message_unref(message);
}

static void take(void *arg)
{
	struct member *self = arg;
	weir_message *message;
	weir_status status = WEIR_OK;

	if (!wait_for_opening())
		return;
	while (status != WEIR_E_CLOSED) {
		bool patient = wr_random_below(&self->random, 2);

		status = weir_outlet_take(self->chain->outlet,
					  patient ? -1 : (int64_t)wr_random_below(&self->random, 3000),
					  &message);
		if (status && status != WEIR_E_CLOSED && status != WEIR_E_TIMEOUT)
			dst_fails("take: %s", weir_last_error());
		if (status)
			continue;
		wr_fetch_add(&self->chain->taken, 1);
		dispose(self, message);
	}
}

/* Drops what lies on the shelf, until the run is over: it may be what an entity waits for. */
static void drop(void *arg)
{
	struct member *self = arg;
	uint64_t longest = (uint64_t)held.patience;

	while (!wr_load(&held.over)) {
		weir_message *message;

		wr_thread_sleep(1 + (int64_t)wr_random_below(&self->random, longest));
		message = wr_exchange(&held.shelf[wr_random_below(&self->random, SHELF)], NULL);
		longest = message ? (uint64_t)held.patience : longest + longest / 4 + 1;
		weir_message_unref(message);
	}
}

/* --- pushing --- */

static weir_status push_one(struct member *self)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(held.graph, &message);

	if (status)
		return status;
	do
		status = weir_inlet_push(self->chain->inlet, message,
					 wr_random_below(&self->random, 2)
						 ? -1
						 : (int64_t)wr_random_below(&self->random, 3000));
	while (status == WEIR_E_TIMEOUT || status == WEIR_E_BUSY);
	if (status)
		weir_message_unref(message);
	return status;
}

/* The one that pushes the last message closes the inlet. */
static void push(void *arg)
{
	struct member *self = arg;
	struct dst_chain *chain = self->chain;
	weir_status status = WEIR_OK;
	unsigned number = 0;

	if (!wait_for_opening())
		return;
	while (!status && (number = wr_fetch_add(&chain->pushed, 1)) < chain->count) {
		status = push_one(self);
		rest(self, 2 * US);
	}
	if (status && status != WEIR_E_CLOSED)
		dst_fails("push: %s", weir_last_error());
	if (number + 1 == chain->count + chain->pushers || status)
		weir_inlet_close(chain->inlet);
}

/* --- telling, poking, stopping --- */

/* What is told to wait is always told to go on. */
static void tell(void *arg)
{
	struct member *self = arg;
	const char *told = self->chain->told;
	char name[8] = {'h', (char)('0' + (self->chain - held.chain)), 0};
	weir_entity *head = weir_graph_entity(held.graph, name);
	bool event = !strcmp(told, "asynchronous");

	for (int i = 0; i < 6 && !wr_load(&held.over); i++) {
		rest(self, 2 * US);
		if (!strcmp(told, "fence")) {
			weir_entity_tell_fence(head, told, (weir_fence){0, 0});
			continue;
		}
		weir_entity_tell(head, told, event ? WEIR_TOLD_EVENT_WAITING : WEIR_TOLD_WAIT);
		rest(self, 2 * US);
		weir_entity_tell(head, told, event ? WEIR_TOLD_EVENT_DONE : WEIR_TOLD_READY);
	}
}

/* An entity that has nothing to do with it: no wake-up is mended, but the loop looks whether the run is over.
 */
static void poke(void *arg)
{
	struct member *self = arg;
	weir_entity *idle = weir_graph_entity(held.graph, "idle");

	for (int i = 0; i < 40 && !wr_load(&held.over); i++) {
		rest(self, 1 * US);
		weir_entity_poke(idle);
	}
}

static void stop(void *arg)
{
	(void)arg;
	wr_thread_sleep(held.stop_after);
	weir_scheduler_stop(held.scheduler, held.seed % 3 ? WEIR_STOP_DRAIN : 0);
}

static unsigned send(struct wr_thread *threads, unsigned n, const char *name, void (*fn)(void *arg),
		     struct dst_chain *chain, unsigned count)
{
	for (; count; count--, n++) {
		members[n].chain = chain;
		wr_random_seed(&members[n].random, held.seed, 700 + n);
		wr_thread_start(&threads[n], name, fn, &members[n]);
	}
	return n;
}

unsigned dst_held_send(struct wr_thread *threads)
{
	unsigned n = 0;

	for (unsigned c = 0; c < held.chains; c++) {
		struct dst_chain *chain = &held.chain[c];

		n = send(threads, n, "taker", take, chain, chain->outlet ? chain->takers : 0);
		n = send(threads, n, "pusher", push, chain, chain->pushers);
		n = send(threads, n, "teller", tell, chain, chain->told ? 1 : 0);
	}
	n = send(threads, n, "dropper", drop, NULL, 2);
	n = send(threads, n, "poker", poke, NULL, held.pokers);
	return send(threads, n, "stopper", stop, NULL, held.stop_after ? 1 : 0);
}
