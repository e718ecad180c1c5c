/*
 * Outlets (B2): a queue whose receivers are any threads; its lock makes them one receiver and guards the
 * sender's side, too. While it holds messages it holds one live reference: the run is not over before
 * somebody has taken them.
 *
 * A program's own loop need not ask: `shown` says whether a take would answer at once, with a message or
 * with WEIR_E_CLOSED. The descriptor is readable as long as it is so; the program's function is called each
 * time it becomes so, after the lock.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "graphs/finisher.h"
#include "scheduler/scheduler.h"
#include "scheduler/world.h"

static weir_status finish(weir_context *context, void *state);

/* *capacity: of the outlet, settled. */
static weir_status check(const weir_graph *graph, const char *port, const struct wr_output *output,
			 unsigned flags, uint32_t *capacity)
{
	if (graph->scheduler)
		return wr_fail(WEIR_E_BUSY, "%s: make outlets before the scheduler", port);
	if (flags & ~(unsigned)WEIR_OUTLET_EARLY)
		return wr_fail(WEIR_E_INVALID, "%s: an outlet's flags are 0 or WEIR_OUTLET_EARLY, not %#x",
			       port, flags);
	if (*capacity > WR_CAPACITY_MAX)
		return wr_fail(WEIR_E_INVALID, "%s: an outlet's capacity is at most %u", port,
			       WR_CAPACITY_MAX);
	*capacity = *capacity ? *capacity : output->plan->outlet;	/* what the graph says */
	*capacity = *capacity ? *capacity : 1;
	if (*capacity < output->max_emits)	/* there would never be room for a tick */
		return wr_fail(WEIR_E_INVALID,
			       "%s: one tick may emit %zu, but only %u fit: raise the outlet's capacity",
			       port, output->max_emits, *capacity);
	return WEIR_OK;
}

weir_status weir_graph_outlet(weir_graph *graph, const char *port, uint32_t capacity, unsigned flags,
			      weir_outlet **out)
{
	struct wr_finisher *finisher = NULL;
	weir_entity *sender;
	uint32_t output;
	weir_outlet *outlet;
	weir_status status = wr_graph_find_output(graph, port, &sender, &output);

	if (!status)
		status = check(graph, port, &sender->outputs[output], flags, &capacity);
	if (status)
		return status;
	outlet = wr_alloc(1, sizeof *outlet);
	if (!outlet)
		return WEIR_E_NOMEM;
	outlet->graph = graph;
	outlet->ended = true;
	outlet->fd = -1;
	status = wr_mutex_init(&outlet->lock);
	if (!status)
		status = wr_cond_init(&outlet->changed);
	if (!status && !(flags & WEIR_OUTLET_EARLY))
		status = wr_finisher_make(&finisher, graph, port, capacity, finish);
	if (!status)
		status = wr_graph_connect(graph, sender, output, NULL, 0, capacity, &outlet->connection);
	if (status) {
		wr_finisher_destroy(finisher);
		wr_cond_finish(&outlet->changed);
		wr_mutex_finish(&outlet->lock);
		wr_free(outlet);
		return status;
	}
	if (finisher)
		wr_finisher_give(finisher, outlet);
	outlet->connection->outlet = outlet;
	outlet->next = graph->outlets;
	graph->outlets = outlet;
	*out = outlet;
	return WEIR_OK;
}

/* --- what a program's loop sees --- */

static void write_or_read(int fd, bool readable)
{
	uint64_t count = 1;

	if (readable)
		while (write(fd, &count, sizeof count) < 0 && errno == EINTR)
			;
	else
		while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
			;
}

/* The oldest is finished. */
static bool has_finished(weir_outlet *outlet)
{
	size_t unfinished = WR_BUG(UNFINISHED_TAKEN) ? 0 : outlet->unfinished;

	return outlet->holding && wr_queue_count(&outlet->connection->queue) > unfinished;
}

/* After each change. True: the program is to be told, after the lock. */
static bool show_locked(weir_outlet *outlet)
{
	bool over = outlet->ended && outlet->begun && !outlet->holding;
	bool show = over || has_finished(outlet), before = outlet->shown;

	outlet->shown = show;
	if (show != before && outlet->fd >= 0)
		write_or_read(outlet->fd, show);
	return show && !before && outlet->fn;
}

static void tell(const weir_outlet *outlet, bool told)
{
	if (told)
		outlet->fn(outlet->arg);
}

struct asking {
	weir_outlet *outlet;
	void (*fn)(void *arg);
	void *arg;
	int fd;
	weir_status status;
};

static void inside(weir_outlet *outlet, void (*fn)(void *arg), struct asking *asking)
{
	if (outlet->graph->scheduler)
		asking->status = wr_in_world(outlet->graph->scheduler, fn, asking);
	else
		fn(asking);
}

static void open_fd(void *arg)
{
	struct asking *asking = arg;
	weir_outlet *outlet = asking->outlet;
	int error = 0;

	wr_mutex_lock(&outlet->lock);
	if (outlet->fd < 0) {
		outlet->fd = eventfd(outlet->shown, EFD_NONBLOCK | EFD_CLOEXEC);
		error = errno;
	}
	asking->fd = outlet->fd;
	wr_mutex_unlock(&outlet->lock);
	if (asking->fd < 0)
		wr_fail(WEIR_E_IO, "the descriptor of the outlet of %s: %s", outlet->connection->from,
			strerror(error));
}

int weir_outlet_fd(weir_outlet *outlet)
{
	struct asking asking = {.outlet = outlet, .fd = -1};

	inside(outlet, open_fd, &asking);
	return asking.fd;
}

weir_status weir_outlet_notify(weir_outlet *outlet, void (*fn)(void *arg), void *arg)
{
	weir_scheduler *scheduler = outlet->graph->scheduler;

	if (scheduler && !wr_run_ended(scheduler))
		return wr_fail(WEIR_E_BUSY, "outlet of %s: say between runs what is to be called",
			       outlet->connection->from);
	outlet->fn = fn;
	outlet->arg = arg;
	return WEIR_OK;
}

/* --- the run's side --- */

void wr_outlets_open(weir_graph *graph)
{
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next) {
		wr_mutex_lock(&outlet->lock);
		outlet->ended = outlet->holding = false;
		outlet->begun = true;
		outlet->unfinished = 0;
		show_locked(outlet);
		wr_mutex_unlock(&outlet->lock);
	}
}

enum { FEW = 8 };

/* Without asking the device: for what has just been enqueued it would be in vain. */
static bool is_finished(struct wr_system *system, const weir_message *message)
{
	weir_fence fences[FEW];
	size_t count = wr_message_has_fences(message) ? wr_message_fences(message, fences, FEW) : 0;

	for (size_t i = 0; i < count; i++)
		if (count > FEW || !wr_fence_seen(system, fences[i]))
			return false;
	return true;
}

/* Behind one that is not finished none is: they are given in order. True: the finisher has it, too. */
static bool hand_over_locked(weir_outlet *outlet, weir_message *message)
{
	if (!outlet->finisher || (!outlet->unfinished && is_finished(outlet->graph->system, message)))
		return false;
	wr_connection_push(outlet->finisher->connection, weir_message_ref(message));
	outlet->unfinished++;
	return true;
}

void wr_outlet_push(struct wr_worker *worker, weir_outlet *outlet, weir_message *message)
{
	bool hold, told, unfinished;

	wr_mutex_lock(&outlet->lock);
	unfinished = hand_over_locked(outlet, message);
	wr_queue_push(&outlet->connection->queue, message); /* there is room: the review saw it */
	hold = !outlet->holding;
	outlet->holding = true;
	if (hold)
		wr_live_take(&worker->scheduler->live);
	told = show_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	if (unfinished)
		wr_poke_by_worker(worker, &outlet->finisher->entity);
	tell(outlet, told);
}

/* The finisher's tick. Its reference goes before anybody takes: who takes may ask whether it is the only holder. */
static weir_status finish(weir_context *context, void *state)
{
	struct wr_finisher *finisher = (struct wr_finisher *)(void *)context->entity;
	weir_outlet *outlet = finisher->outlet;
	struct wr_input *input = &finisher->entity.inputs[0];
	bool told;

	(void)state;
	weir_message_unref(input->taken[0].message);
	input->taken_count = 0;
	wr_mutex_lock(&outlet->lock);
	outlet->unfinished--;
	told = show_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	tell(outlet, told);
	return WEIR_OK;
}

void wr_outlet_end(weir_outlet *outlet, bool abandon)
{
	bool held, told;

	wr_mutex_lock(&outlet->lock);
	outlet->ended = true;
	held = outlet->holding && abandon;
	outlet->holding = outlet->holding && !abandon;
	told = show_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	tell(outlet, told);
	if (held)
		wr_drop_live(outlet->graph->scheduler);
}

void wr_outlet_done(struct wr_worker *worker, weir_outlet *outlet)
{
	wr_outlet_end(outlet, false);
	if (!outlet->finisher)
		return;
	wr_connection_close(outlet->finisher->connection);
	wr_poke_by_worker(worker, &outlet->finisher->entity);
}

/* --- the taker's side --- */

/* *drop: the last message went, and with it the reference, which is given back after the lock. */
static weir_status take_locked(weir_outlet *outlet, weir_message **out, int64_t until, bool *drop)
{
	struct wr_queue *queue = &outlet->connection->queue;
	struct wr_slot slot;

	/* What a cut has left is no longer the taker's: the loop abandons it without this lock. */
	while (!has_finished(outlet)) {
		if (outlet->ended && !outlet->holding)
			return wr_fail(WEIR_E_CLOSED, "outlet: empty, and nothing will come any more");
		if (until == INT64_MIN || !wr_cond_wait(&outlet->changed, &outlet->lock, until))
			return wr_fail(WEIR_E_TIMEOUT, "outlet: nothing came in time");
	}
	wr_queue_close_front(queue, 1);
	wr_queue_take(queue, &slot);
	*out = slot.message;
	*drop = outlet->holding && !wr_queue_count(queue);
	if (*drop)
		outlet->holding = false;
	show_locked(outlet);	/* less than before, or the end: it was shown and the program looks */
	return WEIR_OK;
}

static weir_status take(weir_outlet *outlet, weir_message **out, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? WR_FOREVER
			: timeout_ns   ? wr_time_add(wr_now(), timeout_ns)
				       : INT64_MIN;
	bool drop = false;
	weir_status status;

	wr_mutex_lock(&outlet->lock);
	status = take_locked(outlet, out, until, &drop);
	wr_mutex_unlock(&outlet->lock);
	if (status)
		return status;
	/* There is room. Before the reference goes, so that the run stays open for it. */
	wr_poke(outlet->connection->sender);
	if (drop)
		wr_drop_live(outlet->graph->scheduler);
	return WEIR_OK;
}

struct taking {
	weir_outlet *outlet;
	weir_message **out;
	int64_t timeout_ns;
	weir_status status;
};

static void take_inside(void *arg)
{
	struct taking *taking = arg;

	taking->status = take(taking->outlet, taking->out, taking->timeout_ns);
}

weir_status weir_outlet_take(weir_outlet *outlet, weir_message **out, int64_t timeout_ns)
{
	struct taking taking = {outlet, out, timeout_ns, WEIR_OK};
	weir_status status;

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "outlet: a worker must not take from an outlet");
	if (!outlet->graph->scheduler)
		return take(outlet, out, 0);
	status = wr_in_world(outlet->graph->scheduler, take_inside, &taking);
	return status ? status : taking.status;
}
