#include "simulated_net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"

struct net net;
struct simulated_seen simulated_seen;

unsigned net_draw(unsigned below)
{
	return (unsigned)wr_random_below(&net.random, below);
}

int64_t net_draw_due(void)
{
	switch (net_draw(8)) {
	case 0:
		return wr_now() + 1 + net_draw(5000);
	case 1:
		return wr_now() + (int64_t)net_draw(12) * MS + 1;
	case 2:
		return net_draw(4) ? wr_now() : wr_now() + (int64_t)net_draw(40) * MS;
	}
	return wr_now();
}

void simulated_wake(void)
{
	wr_mutex_lock(&net.mutex);
	net.has_changed = true;
	wr_cond_broadcast(&net.changed);
	wr_mutex_unlock(&net.mutex);
}

struct parcel *net_post(enum kind kind, struct line *line, struct link *to, unsigned side)
{
	struct parcel *parcel = calloc(1, sizeof *parcel);

	if (!parcel)
		abort();
	parcel->kind = kind;
	parcel->line = line;
	parcel->to = to;
	parcel->side = side;
	parcel->due = net_draw_due();
	parcel->next = net.parcels;
	net.parcels = parcel;
	return parcel;
}

struct line *net_make_line(struct link *sender)
{
	struct line *line = calloc(1, sizeof *line);

	if (!line)
		abort();
	line->ends[SIMULATED_SENDER] = sender;
	line->stranger = !sender;
	if (sender) {
		line->quiet.keepalive[SIMULATED_SENDER] = sender->events.keepalive;
		memcpy(line->quiet.until, sender->until, sizeof sender->until);
	}
	line->next = net.lines;
	net.lines = line;
	return line;
}

const char *net_name(unsigned side)
{
	return side == SIMULATED_SENDER ? "sender" : "receiver";
}

struct link *net_receiver(void)
{
	struct link *link = net.links;

	while (link && link->side != SIMULATED_RECEIVER)
		link = link->next;
	return link;
}

void net_signal(struct link *link)
{
	if (link && link->armed) {
		link->armed = false;
		eventfd_write(link->descriptor, 1);
	}
}

struct link *net_link_of(const void *state)
{
	struct link *link = net.links;

	while (link && link->events.arg != state)
		link = link->next;
	return link;
}

/* --- payloads --- */

void net_write_garbage(const struct parcel *parcel)
{
	for (unsigned i = 0; i < parcel->into_count; i++)
		memset(parcel->into[i].data, 0xa0 + (int)net_draw(16), parcel->into[i].bytes);
}

void __real_weir_message_unref(weir_message *message);
void __wrap_weir_message_unref(weir_message *message);

/* R3: until the link has told that a payload is filled, its message is the receiver's. */
void __wrap_weir_message_unref(weir_message *message)
{
	const weir_message *first =
		message && weir_message_parts(message) ? weir_message_part_at(message, 0) : message;
	const void *data = first ? weir_message_data(first) : NULL;

	for (const struct parcel *parcel = net.parcels; data && parcel; parcel = parcel->next)
		if (parcel->phase != PAST && parcel->into_count && parcel->into[0].data == data)
			net.fails("a place was given back while the link writes there");
	__real_weir_message_unref(message);
}

void net_check_block(const struct parcel *parcel)
{
	const uint8_t *at = parcel->payload;

	for (unsigned i = 0; !parcel->eager && i < parcel->from_count; at += parcel->from[i].bytes, i++)
		if (memcmp(at, parcel->from[i].data, parcel->from[i].bytes)) {
			net.fails("a block was given back while the link reads it");
			return;
		}
}

static void fill(struct parcel *parcel)
{
	const uint8_t *at = parcel->payload;

	net_check_block(parcel);
	for (unsigned i = 0; i < parcel->into_count; at += parcel->into[i].bytes, i++)
		memcpy(parcel->into[i].data, at, parcel->into[i].bytes);
	parcel->phase = FILLED;
}

void net_lose(struct parcel *parcel)
{
	if (parcel->phase == PAST || parcel->phase == FILLED || parcel->phase == TORN)
		return;
	if (parcel->kind == MESSAGE) {
		net_check_block(parcel);
		simulated_seen.lost += parcel->messages;
		simulated_seen.done_lost |= parcel->head[0] == WIRE_DONE;
		parcel->told_due = net_draw_due();
		parcel->eager = true; /* it is not looked at again */
	}
	parcel->phase = parcel->phase == FILLING ? TORN : PAST;
	if (parcel->phase == TORN)
		net_signal(parcel->line->ends[parcel->side]);
}

/* --- losses --- */

static void tell_loss(struct line *line, unsigned side)
{
	if (line->ends[side])
		net_post(LOST, line, line->ends[side], side);
}

void net_cut(struct line *line, unsigned gone)
{
	bool some = net_draw(2);

	if (line->cut)
		return;
	simulated_seen.cuts += quiet_is(line);
	line->cut = true;
	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (parcel->line == line && parcel->kind == MESSAGE && (!some || net_draw(2)))
			net_lose(parcel);
	for (unsigned side = 0; side < 2; side++)
		if (side != gone)
			tell_loss(line, side);
}

/* The receiver has given no credit for which there was no message since. */
static bool is_full(const struct line *line)
{
	return line->limit && line->sent >= line->came + line->limit;
}

static void cut_one(void)
{
	struct line *chosen = NULL;
	unsigned count = 0;

	for (struct line *line = net.lines; line; line = line->next)
		if (!line->cut && !line->stranger && line->ends[0] && line->ends[1] &&
		    (!net.plan.full || is_full(line)) && !net_draw(++count))
			chosen = line;
	if (!chosen)
		return;
	net.plan.cuts--;
	simulated_seen.cuts++;
	net_cut(chosen, 2);
}

static void tear_one(void)
{
	struct parcel *chosen = NULL;
	unsigned count = 0;

	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (parcel->phase == FILLING && !parcel->line->cut && !net_draw(++count))
			chosen = parcel;
	if (!chosen)
		return;
	net.plan.tears--;
	simulated_seen.cuts++;
	net_lose(chosen);
}

void simulated_crash(const void *state)
{
	struct link *link = net_link_of(state);
	bool machine = net_draw(2);

	if (!link)
		return;
	link->dead = true;
	link->listens = false;
	simulated_seen.cuts++;
	if (link->line && machine && link->line->quiet.keepalive[!link->side] > 0)
		link->line->quiet.until[!link->side] = link->line->quiet.excused[!link->side] = INT64_MAX;
	else if (link->line)
		net_cut(link->line, link->side);
	simulated_wake();
}

/* --- strangers --- */

/* It connects as a sender does, and then says nothing, or what no sender says. */
static void send_stranger(void)
{
	static const int64_t keepalives[] = {0, -5, 1, INT64_MAX};
	static const uint8_t first[] = {0, WIRE_WELCOME, WIRE_DATA, WIRE_END, WIRE_BYE, 77};
	struct line *line;
	struct parcel *said;

	net.plan.strangers--;
	if (net_draw(3) == 0) {
		net_post(STRANGER, NULL, NULL, SIMULATED_RECEIVER);
		return;
	}
	line = net_make_line(NULL);
	line->quiet.keepalive[SIMULATED_SENDER] = keepalives[net_draw(4)];
	net_post(CONNECT, line, NULL, SIMULATED_RECEIVER)->due = wr_now();
	if (net_draw(3) == 0)
		return;
	said = net_post(MESSAGE, line, NULL, SIMULATED_RECEIVER);
	said->head_bytes = 1 + net_draw(60);
	for (size_t i = 0; i < said->head_bytes; i++)
		said->head[i] = (uint8_t)net_draw(256);
	said->head[0] = first[net_draw(sizeof first)];
	said->eager = true;
}

/* --- the link's own steps, on its fiber --- */

/* To the side that listens then. */
static void arrive_at_listener(struct parcel *parcel)
{
	struct link *listener = net_receiver();

	parcel->phase = PAST;
	if (!listener || !listener->listens || listener->dead ||
	    (net.plan.refusals && !net_draw(3) && net.plan.refusals--)) {
		if (parcel->kind == CONNECT)
			net_cut(parcel->line, 2);
		return;
	}
	parcel->phase = ARRIVED;
	parcel->to = listener;
	net_signal(listener);
}

static void arrive(struct parcel *parcel)
{
	struct link *link = parcel->line ? parcel->line->ends[parcel->side] : NULL;

	if (parcel->kind == CONNECT || parcel->kind == STRANGER) {
		arrive_at_listener(parcel);
	} else if (link) {
		parcel->phase = ARRIVED;
		if (parcel->kind == SIGN)
			quiet_hear(parcel->line, parcel->side);
		net_signal(link);
	} else if (parcel->line->cut || parcel->kind != MESSAGE || !parcel->side) {
		net_lose(parcel);
	} else {
		parcel->due = wr_now() + MS; /* a stranger's: it was not accepted yet */
	}
}

static int64_t told_due_of(const struct parcel *parcel)
{
	return parcel->cookie && parcel->told_due && !parcel->tells
		       ? quiet_due(parcel->line, !parcel->side, parcel->told_due)
		       : INT64_MAX;
}

static int64_t step_due_of(const struct parcel *parcel)
{
	return parcel->phase == FLYING || parcel->phase == FILLING
		       ? quiet_due(parcel->line, parcel->side, parcel->due)
		       : INT64_MAX;
}

static void step(struct parcel *parcel, int64_t now)
{
	if (told_due_of(parcel) <= now) {
		parcel->tells = true;
		net_signal(parcel->line->ends[!parcel->side]);
	} else if (step_due_of(parcel) > now) {
		return;
	} else if (parcel->phase == FLYING) {
		arrive(parcel);
	} else {
		fill(parcel);
		parcel->told_due = net_draw_due();
		net_signal(parcel->line->ends[parcel->side]);
	}
}

static int64_t due_of(const struct parcel *parcel)
{
	int64_t due = step_due_of(parcel), told = told_due_of(parcel);

	return told < due ? told : due;
}

static struct parcel *draw_due_parcel(int64_t now)
{
	struct parcel *chosen = NULL;
	unsigned count = 0;

	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (due_of(parcel) <= now && !net_draw(++count))
			chosen = parcel;
	return chosen;
}

/* Strangers go, and unfinished payloads are written to. */
static void meddle(void)
{
	for (struct line *line = net.lines; line; line = line->next)
		if (line->stranger && !line->cut && line->ends[SIMULATED_RECEIVER] && !net_draw(100))
			net_cut(line, SIMULATED_SENDER);
	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (parcel->phase == FILLING && net_draw(2))
			net_write_garbage(parcel);
}

static void free_past(void)
{
	struct parcel **at = &net.parcels, *parcel;

	while ((parcel = *at)) {
		if (parcel->phase != PAST || parcel->cookie || parcel->held) {
			at = &parcel->next;
			continue;
		}
		*at = parcel->next;
		free(parcel->payload);
		free(parcel);
	}
}

/* Returns false if nothing is due. */
static bool step_once(void)
{
	int64_t now = wr_now();
	struct parcel *parcel = draw_due_parcel(now);

	simulated_time_fire(now);
	if (parcel)
		step(parcel, now);
	if (net.plan.cuts && !net_draw(20))
		cut_one();
	if (net.plan.tears && !net_draw(20))
		tear_one();
	if (net.plan.silences && !net_draw(20))
		quiet_begin();
	if (net.plan.strangers && !net_draw(30))
		send_stranger();
	meddle();
	free_past();
	return parcel;
}

static int64_t next_due(void)
{
	int64_t next = simulated_time_next();

	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (due_of(parcel) < next)
			next = due_of(parcel);
	return next;
}

static void run_net(void *unused)
{
	(void)unused;
	while (!net.over) {
		if (step_once()) {
			if (net_draw(2))
				wr_thread_yield();
			continue;
		}
		quiet_check();
		wr_mutex_lock(&net.mutex);
		if (!net.has_changed && !net.over && next_due() > wr_now())
			wr_cond_wait(&net.changed, &net.mutex, next_due());
		net.has_changed = false;
		wr_mutex_unlock(&net.mutex);
	}
}

/* --- a world --- */

void simulated_begin(uint64_t seed, const struct simulated_plan *plan, void (*fails)(const char *format, ...))
{
	memset(&net, 0, sizeof net);
	memset(&simulated_seen, 0, sizeof simulated_seen);
	wr_random_seed(&net.random, seed, 60);
	net.plan = *plan;
	net.fails = fails;
	simulated_time_begin(seed);
	if (wr_mutex_init(&net.mutex) || wr_cond_init(&net.changed) ||
	    wr_thread_start(&net.fiber, "net", run_net, NULL))
		abort();
}

void simulated_end(void)
{
	struct line *line;
	struct parcel *parcel;

	wr_mutex_lock(&net.mutex);
	net.over = true;
	wr_cond_broadcast(&net.changed);
	wr_mutex_unlock(&net.mutex);
	wr_thread_join(&net.fiber);
	while ((parcel = net.parcels)) {
		net.parcels = parcel->next;
		free(parcel->payload);
		free(parcel);
	}
	while ((line = net.lines)) {
		net.lines = line->next;
		free(line);
	}
	wr_mutex_finish(&net.mutex);
	wr_cond_finish(&net.changed);
}
