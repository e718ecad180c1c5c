#include "simulated.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "sim/random.h"

#define US INT64_C(1000)
#define MS (1000 * US)

/* A connection. A stranger's has no link at its first end. */
struct line {
	struct line *next;
	struct link *ends[2]; /* by side; NULL: it has dropped it, or has not accepted yet */
	bool cut, stranger;
	int64_t credits; /* that the receiver has given, less those that the sender has used */
	unsigned limit;  /* places of the receiver; 0: there was no welcome */
	uint64_t sent, came; /* messages, since the welcome; came: also what waited then */
};

enum kind { MESSAGE, CONNECT, CONNECTED, LOST, STRANGER };
/*
 * A message flies, then it has arrived; a payload that is wanted is filled, then it is whole or torn; then it
 * is over. All else flies, arrives, and is over.
 */
enum phase { FLYING, ARRIVED, FILLING, FILLED, TORN, PAST };

struct parcel {
	struct parcel *next;
	struct line *line;
	struct link *to; /* of a kind that is not MESSAGE, and FLYING to the listener: NULL */
	enum kind kind;
	enum phase phase;
	unsigned side; /* of the receiver of the parcel */
	int64_t due;   /* of the next step of the link */

	size_t head_bytes, bytes;
	uint8_t head[WIRE_SMALL];
	uint8_t *payload; /* as it was when it was sent */
	struct span from[LINK_SPANS], into[LINK_SPANS];
	unsigned from_count, into_count;
	void *place;        /* the receiver's cookie */
	void *cookie;       /* the sender's; NULL: none, or it was told */
	int64_t told_due;   /* when the sender is told */
	bool eager, tells;  /* eager: the payload was copied at once; tells: told_due has passed */
	bool held;          /* it is not freed yet */
};

struct link {
	struct link_events events;
	int set, descriptor;
	unsigned side;
	struct line *line;
	bool listens, told, dead;
	bool armed, inside; /* inside: of one of its functions */
};

static struct {
	struct wr_random random;
	struct wr_thread fiber;
	struct wr_mutex mutex; /* of the two below, and of waiting */
	struct wr_cond changed;
	bool over, has_changed;
	struct simulated_plan plan;
	void (*fails)(const char *format, ...) WEIR_PRINTF(1, 2);
	struct link *sides[2];
	struct line *lines;
	struct parcel *parcels;
} net;

struct simulated_seen simulated_seen;

static unsigned draw(unsigned below)
{
	return (unsigned)wr_random_below(&net.random, below);
}

/* Mostly at once, which is a matter of the schedule; up to 40 ms else. */
static int64_t draw_due(void)
{
	switch (draw(8)) {
	case 0:
		return wr_now() + 1 + draw(5000);
	case 1:
		return wr_now() + (int64_t)draw(12) * MS + 1;
	case 2:
		return draw(4) ? wr_now() : wr_now() + (int64_t)draw(40) * MS;
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

static struct parcel *post(enum kind kind, struct line *line, struct link *to, unsigned side)
{
	struct parcel *parcel = calloc(1, sizeof *parcel);

	if (!parcel)
		abort();
	parcel->kind = kind;
	parcel->line = line;
	parcel->to = to;
	parcel->side = side;
	parcel->due = draw_due();
	parcel->next = net.parcels;
	net.parcels = parcel;
	return parcel;
}

static struct line *make_line(struct link *sender)
{
	struct line *line = calloc(1, sizeof *line);

	if (!line)
		abort();
	line->ends[SIMULATED_SENDER] = sender;
	line->stranger = !sender;
	line->next = net.lines;
	net.lines = line;
	return line;
}

/* Something has come for this side. */
static void signal_link(struct link *link)
{
	if (link && link->armed) {
		link->armed = false;
		eventfd_write(link->descriptor, 1);
	}
}

/* --- payloads --- */

static void gather(uint8_t *out, const struct span *spans, unsigned count)
{
	for (unsigned i = 0; i < count; out += spans[i].bytes, i++)
		memcpy(out, spans[i].data, spans[i].bytes);
}

/* Until a payload is whole anything may lie where it goes. */
static void write_garbage(const struct parcel *parcel)
{
	for (unsigned i = 0; i < parcel->into_count; i++)
		memset(parcel->into[i].data, 0xa0 + (int)draw(16), parcel->into[i].bytes);
}

void __real_weir_message_unref(weir_message *message);
void __wrap_weir_message_unref(weir_message *message);

/* R3: until the link has told that a payload is filled, its message is the receiver's. */
void __wrap_weir_message_unref(weir_message *message)
{
	const void *data = message ? weir_message_data(message) : NULL;

	for (const struct parcel *parcel = net.parcels; data && parcel; parcel = parcel->next)
		if (parcel->phase != PAST && parcel->into_count && parcel->into[0].data == data)
			net.fails("a place was given back while the link writes there");
	__real_weir_message_unref(message);
}

/* R3: the sender's block must be as it was. */
static void check_block(const struct parcel *parcel)
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

	check_block(parcel);
	for (unsigned i = 0; i < parcel->into_count; at += parcel->into[i].bytes, i++)
		memcpy(parcel->into[i].data, at, parcel->into[i].bytes);
	parcel->phase = FILLED;
}

/* It does not come, or no more of it does. What waits for it is told. */
static void lose(struct parcel *parcel)
{
	if (parcel->phase == PAST || parcel->phase == FILLED || parcel->phase == TORN)
		return;
	if (parcel->kind == MESSAGE) {
		check_block(parcel);
		simulated_seen.lost += parcel->head[0] == WIRE_DATA;
		simulated_seen.done_lost |= parcel->head[0] == WIRE_DONE;
		parcel->told_due = draw_due();
		parcel->eager = true; /* it is not looked at again */
	}
	parcel->phase = parcel->phase == FILLING ? TORN : PAST;
	if (parcel->phase == TORN)
		signal_link(parcel->line->ends[parcel->side]);
}

/* --- losses --- */

static void tell_loss(struct line *line, unsigned side)
{
	if (line->ends[side])
		post(LOST, line, line->ends[side], side);
}

/* Some of what is under way still comes. */
static void cut(struct line *line, unsigned gone)
{
	bool some = draw(2);

	if (line->cut)
		return;
	line->cut = true;
	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (parcel->line == line && parcel->kind == MESSAGE && (!some || draw(2)))
			lose(parcel);
	for (unsigned side = 0; side < 2; side++)
		if (side != gone)
			tell_loss(line, side);
}

static void cut_one(void)
{
	struct line *chosen = NULL;
	unsigned count = 0;

	for (struct line *line = net.lines; line; line = line->next)
		if (!line->cut && !line->stranger && line->ends[0] && line->ends[1] && !draw(++count))
			chosen = line;
	if (!chosen)
		return;
	net.plan.cuts--;
	simulated_seen.cuts++;
	cut(chosen, 2);
}

void simulated_crash(enum simulated_side side)
{
	struct link *link = net.sides[side];

	if (!link)
		return;
	link->dead = true;
	link->listens = false;
	simulated_seen.cuts++;
	if (link->line)
		cut(link->line, side);
	simulated_wake();
}

/* --- strangers --- */

/* It connects as a sender does, and then says nothing, or what no sender says. */
static void send_stranger(void)
{
	static const uint8_t first[] = {0, WIRE_WELCOME, WIRE_DATA, WIRE_END, WIRE_BYE, 77};
	struct line *line;
	struct parcel *said;

	net.plan.strangers--;
	if (draw(3) == 0) {
		post(STRANGER, NULL, NULL, SIMULATED_RECEIVER);
		return;
	}
	line = make_line(NULL);
	post(CONNECT, line, NULL, SIMULATED_RECEIVER)->due = wr_now();
	if (draw(3) == 0)
		return;
	said = post(MESSAGE, line, NULL, SIMULATED_RECEIVER);
	said->head_bytes = 1 + draw(60);
	for (size_t i = 0; i < said->head_bytes; i++)
		said->head[i] = (uint8_t)draw(256);
	said->head[0] = first[draw(sizeof first)];
	said->eager = true;
}

/* --- the link's own steps, on its fiber --- */

/* To whoever listens then. */
static void arrive_at_listener(struct parcel *parcel)
{
	struct link *listener = net.sides[SIMULATED_RECEIVER];

	parcel->phase = PAST;
	if (!listener || !listener->listens || listener->dead ||
	    (net.plan.refusals && !draw(3) && net.plan.refusals--)) {
		if (parcel->kind == CONNECT)
			cut(parcel->line, 2);
		return;
	}
	parcel->phase = ARRIVED;
	parcel->to = listener;
	signal_link(listener);
}

static void arrive(struct parcel *parcel)
{
	struct link *link = parcel->line ? parcel->line->ends[parcel->side] : NULL;

	if (parcel->kind == CONNECT || parcel->kind == STRANGER) {
		arrive_at_listener(parcel);
	} else if (link) {
		parcel->phase = ARRIVED;
		signal_link(link);
	} else if (parcel->line->cut || parcel->kind != MESSAGE || !parcel->side) {
		lose(parcel);
	} else {
		parcel->due = wr_now() + MS; /* a stranger's: it was not accepted yet */
	}
}

static void step(struct parcel *parcel, int64_t now)
{
	if (parcel->cookie && parcel->told_due && !parcel->tells && parcel->told_due <= now) {
		parcel->tells = true;
		signal_link(parcel->line->ends[!parcel->side]);
	} else if (parcel->phase == FLYING && parcel->due <= now) {
		arrive(parcel);
	} else if (parcel->phase == FILLING && parcel->due <= now) {
		fill(parcel);
		parcel->told_due = draw_due();
		signal_link(parcel->line->ends[parcel->side]);
	}
}

static int64_t due_of(const struct parcel *parcel)
{
	int64_t due = parcel->phase == FLYING || parcel->phase == FILLING ? parcel->due : INT64_MAX;

	if (parcel->cookie && parcel->told_due && !parcel->tells && parcel->told_due < due)
		due = parcel->told_due;
	return due;
}

static struct parcel *draw_due_parcel(int64_t now)
{
	struct parcel *chosen = NULL;
	unsigned count = 0;

	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (due_of(parcel) <= now && !draw(++count))
			chosen = parcel;
	return chosen;
}

/* Strangers go, and unfinished payloads are written to. */
static void meddle(void)
{
	for (struct line *line = net.lines; line; line = line->next)
		if (line->stranger && !line->cut && line->ends[SIMULATED_RECEIVER] && !draw(100))
			cut(line, SIMULATED_SENDER);
	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next)
		if (parcel->phase == FILLING && draw(2))
			write_garbage(parcel);
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
	if (net.plan.cuts && !draw(20))
		cut_one();
	if (net.plan.strangers && !draw(30))
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
			if (draw(2))
				wr_thread_yield();
			continue;
		}
		wr_mutex_lock(&net.mutex);
		if (!net.has_changed && !net.over && next_due() > wr_now())
			wr_cond_wait(&net.changed, &net.mutex, next_due());
		net.has_changed = false;
		wr_mutex_unlock(&net.mutex);
	}
}

/* --- the transport --- */

static bool simulated_load(char why[LINK_WHY])
{
	(void)why;
	return true;
}

static struct link *simulated_open(const struct link_events *events, int set, char why[LINK_WHY])
{
	struct link *link = calloc(1, sizeof *link);
	struct epoll_event event = {.events = EPOLLIN};

	(void)why;
	if (!link)
		abort();
	link->events = *events;
	link->set = set;
	link->side = events->accepted ? SIMULATED_RECEIVER : SIMULATED_SENDER;
	link->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (epoll_ctl(set, EPOLL_CTL_ADD, link->descriptor, &event))
		abort();
	if (net.sides[link->side])
		net.fails("two links of one side");
	net.sides[link->side] = link;
	return link;
}

static size_t simulated_head_most(const struct link *link)
{
	(void)link;
	return WIRE_SMALL;
}

static bool simulated_listen(struct link *link, const struct address *address, const char *peers,
			     char why[LINK_WHY])
{
	(void)address, (void)peers, (void)why;
	link->listens = true;
	link->armed = false;
	return true;
}

static void simulated_deafen(struct link *link)
{
	link->listens = link->armed = false;
}

static bool simulated_connect(struct link *link, const struct address *address, char why[LINK_WHY])
{
	(void)address, (void)why;
	if (link->line)
		net.fails("connects, and has a connection");
	link->told = link->armed = false;
	link->line = make_line(link);
	post(CONNECT, link->line, NULL, SIMULATED_RECEIVER);
	simulated_wake();
	return true;
}

/* --- what has come --- */

static bool is_news(const struct parcel *parcel, const struct link *link)
{
	if (parcel->kind == STRANGER || parcel->kind == CONNECT)
		return parcel->phase == ARRIVED && parcel->to == link;
	if (!link->line || parcel->line != link->line)
		return false;
	if (parcel->side != link->side)
		return parcel->tells && parcel->cookie;
	return parcel->phase == ARRIVED || parcel->phase == FILLED || parcel->phase == TORN;
}

static struct parcel *draw_news(const struct link *link)
{
	struct parcel *chosen = NULL;
	unsigned count = 0;

	for (struct parcel *parcel = net.parcels; parcel && !link->dead; parcel = parcel->next)
		if (is_news(parcel, link) && !draw(++count))
			chosen = parcel;
	return chosen;
}

static void accept_line(struct link *link, struct parcel *parcel)
{
	struct line *line = parcel->line;

	parcel->phase = PAST;
	if (line->cut || link->line || !link->listens) {
		cut(line, SIMULATED_RECEIVER);
		simulated_wake();
		return;
	}
	line->ends[SIMULATED_RECEIVER] = link;
	link->line = line;
	link->told = false;
	link->events.accepted(link->events.arg, line->stranger ? "a stranger" : "the sender");
	post(CONNECTED, line, line->ends[SIMULATED_SENDER], SIMULATED_SENDER);
	simulated_wake();
}

static void hear_message(struct link *link, struct parcel *parcel)
{
	void *place = NULL;
	int count;

	if (link->told) {
		lose(parcel);
		return;
	}
	parcel->held = true;
	count = link->events.arrived(link->events.arg, parcel->head, parcel->head_bytes, parcel->bytes,
				     parcel->into, &place);
	parcel->held = false;
	if (parcel->phase != ARRIVED) { /* the connection was cut meanwhile */
		parcel->phase = count < 0 ? PAST : TORN;
	} else if (count < 0) {
		parcel->phase = PAST;
		parcel->told_due = draw_due();
	} else {
		parcel->phase = FILLING;
		parcel->due = draw(2) ? draw_due() : wr_now() + 1 + draw(15 * MS);
	}
	if (count < 0)
		return;
	parcel->place = place;
	parcel->into_count = (unsigned)count;
	write_garbage(parcel);
	simulated_wake();
}

/* As an event may let other fibers go on, the parcel is changed before it. */
static void tell_filled(struct link *link, struct parcel *parcel)
{
	bool whole = parcel->phase == FILLED;

	if (!whole)
		write_garbage(parcel);
	parcel->phase = PAST;
	link->events.filled(link->events.arg, parcel->place, whole);
}

static void tell_sent(struct link *link, struct parcel *parcel)
{
	void *cookie = parcel->cookie;

	check_block(parcel);
	parcel->eager = true;
	parcel->cookie = NULL;
	link->events.sent(link->events.arg, cookie);
}

static void handle(struct link *link, struct parcel *parcel)
{
	if (parcel->kind == MESSAGE && parcel->side != link->side) {
		tell_sent(link, parcel);
	} else if (parcel->phase == FILLED || parcel->phase == TORN) {
		tell_filled(link, parcel);
	} else if (parcel->kind == MESSAGE) {
		hear_message(link, parcel);
	} else if (parcel->kind == CONNECT) {
		accept_line(link, parcel);
	} else {
		parcel->phase = PAST;
		if (parcel->kind == STRANGER) {
			link->events.stranger(link->events.arg, "a stranger");
		} else if (parcel->kind == CONNECTED && !link->told) {
			link->events.connected(link->events.arg);
		} else if (parcel->kind == LOST && !link->told) {
			link->told = true;
			link->events.lost(link->events.arg, "it was cut");
		}
	}
}

static void simulated_progress(struct link *link)
{
	struct parcel *parcel;
	eventfd_t told;

	link->inside = true;
	if (draw(2)) /* what it looks at takes time */
		wr_thread_yield();
	else if (!draw(6))
		wr_thread_sleep(1 + draw(12 * MS));
	eventfd_read(link->descriptor, &told);
	while ((parcel = draw_news(link))) {
		handle(link, parcel);
		if (!draw(4))
			wr_thread_yield();
	}
	link->armed = true;
	link->inside = false;
}

/* --- sending --- */

/* R1: no message without a credit, and no more of them than places. */
static void check_credit(struct line *line, const struct wire *wire)
{
	switch (wire->kind) {
	case WIRE_WELCOME:
		simulated_seen.greeted++;
		line->limit = wire->credits + wire->waiting;
		line->credits = wire->credits;
		line->sent = wire->waiting;
		line->came = 0;
		break;
	case WIRE_CREDIT:
		line->credits += wire->credits;
		break;
	case WIRE_DATA:
		line->sent++;
		if (--line->credits < 0)
			net.fails("a message was sent without a credit");
		if (line->sent > line->came + line->limit + SIMULATED_BEHIND)
			net.fails("%u messages are under way or wait, with %u places",
				  (unsigned)(line->sent - line->came), line->limit);
		break;
	case WIRE_HELLO:
	case WIRE_END:
	case WIRE_DONE:
	case WIRE_BYE:
		break;
	}
}

void simulated_came(void)
{
	struct link *link = net.sides[SIMULATED_RECEIVER];

	if (link && link->line)
		link->line->came++;
}

static enum link_sent simulated_send(struct link *link, const void *head, size_t head_bytes,
				     const struct span *spans, unsigned count, void *cookie)
{
	struct wire_record parts[WEIR_PARTS_MAX];
	struct line *line = link->line;
	struct parcel *parcel;
	struct wire wire;
	char why[LINK_WHY];

	link->armed = false;
	if (!line || link->told || link->dead || (line->cut && draw(2))) {
		simulated_seen.done_lost |= *(const uint8_t *)head == WIRE_DONE;
		return LINK_BROKEN;
	}
	parcel = post(MESSAGE, line, NULL, !link->side);
	memcpy(parcel->head, head, head_bytes);
	parcel->head_bytes = head_bytes;
	for (unsigned i = 0; i < count; i++)
		parcel->bytes += spans[i].bytes;
	parcel->payload = malloc(parcel->bytes + 1);
	if (!parcel->payload)
		abort();
	gather(parcel->payload, spans, count);
	if (!wire_read(head, head_bytes, parcel->bytes, SIZE_MAX, parts, &wire, why))
		net.fails("sends what cannot be read: %s", why);
	else
		check_credit(line, &wire);
	parcel->eager = !cookie || !draw(4);
	if (!parcel->eager) {
		memcpy(parcel->from, spans, count * sizeof *spans);
		parcel->from_count = count;
		parcel->cookie = cookie;
	}
	if (line->cut)
		lose(parcel);
	enum link_sent sent = parcel->cookie ? LINK_UNDER_WAY : LINK_DONE;
	simulated_wake();
	return sent;
}

/* --- the end of a connection --- */

/* What this side still owes or is owed. Each event may let other fibers go on, so it looks anew. */
static bool settle_one(struct link *link, const struct line *line)
{
	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next) {
		if (parcel->line != line || parcel->kind != MESSAGE)
			continue;
		if (parcel->side == link->side) {
			lose(parcel);
			if (parcel->phase == PAST)
				continue;
			tell_filled(link, parcel);
			return true;
		}
		if (parcel->cookie) { /* nothing is read any more */
			lose(parcel);
			tell_sent(link, parcel);
			return true;
		}
	}
	return false;
}

static bool simulated_drop(struct link *link)
{
	struct line *line = link->line;

	link->inside = true;
	link->armed = false;
	if (line) {
		cut(line, link->side);
		simulated_wake();
		if (!draw(3)) /* a forced close takes time */
			wr_thread_sleep(1 + draw(2 * MS));
		while (settle_one(link, line))
			if (!draw(4))
				wr_thread_yield();
		line->ends[link->side] = NULL;
	}
	link->line = NULL;
	link->told = link->inside = false;
	return true;
}

/* Until the other side has closed, so that it has read what was said last. */
static void wait_for_peer(struct link *link, int64_t patience)
{
	int64_t until = wr_now() + patience;

	for (simulated_progress(link); link->line && !link->told && !link->dead && wr_now() < until;
	     simulated_progress(link)) {
		link->inside = true;
		wr_thread_sleep(MS);
	}
}

static void simulated_close(struct link *link, int64_t patience)
{
	if (!link)
		return;
	link->listens = false;
	if (patience)
		wait_for_peer(link, patience);
	simulated_drop(link);
	for (struct parcel *parcel = net.parcels; parcel; parcel = parcel->next) {
		if (parcel->to != link)
			continue;
		if (parcel->kind == CONNECT && parcel->phase == ARRIVED)
			cut(parcel->line, link->side);
		parcel->phase = PAST;
	}
	net.sides[link->side] = NULL;
	close(link->descriptor);
	free(link);
	simulated_wake();
}

static const struct transport simulated = {
	.name = "simulated",
	.load = simulated_load,
	.open = simulated_open,
	.head_most = simulated_head_most,
	.listen = simulated_listen,
	.deafen = simulated_deafen,
	.connect = simulated_connect,
	.progress = simulated_progress,
	.send = simulated_send,
	.drop = simulated_drop,
	.close = simulated_close,
};
const struct transport *const remote_transport = &simulated;

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

void simulated_look(enum simulated_side side)
{
	const struct link *link = net.sides[side];
	struct pollfd set = {link ? link->set : -1, POLLIN, 0};

	if (link && !link->inside && !link->dead && draw_news(link) && poll(&set, 1, 0) <= 0)
		net.fails("the %s sleeps, and its link has news", side ? "receiver" : "sender");
}
