#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "any_link.h"
#include "base/clock.h"
#include "simulated_net.h"

static struct link *simulated_open(const struct link_events *events, int set, char why[LINK_WHY])
{
	struct link *link = calloc(1, sizeof *link);

	(void)why;
	if (!link)
		abort();
	link->events = *events;
	link->set = set;
	link->side = events->accepted ? SIMULATED_RECEIVER : SIMULATED_SENDER;
	link->descriptor = any_link_descriptor(set, 0);
	if (!beat_open(&link->beat, events->keepalive))
		abort();
	any_link_add(set, link->beat.timer);
	if (link->side == SIMULATED_RECEIVER && net_receiver())
		net.fails("two links of the receiver");
	if (link->side == SIMULATED_RECEIVER)
		simulated_seen.missed = 0;
	link->next = net.links;
	net.links = link;
	return link;
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
	link->line = net_make_line(link);
	net_post(CONNECT, link->line, NULL, SIMULATED_RECEIVER);
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
		if (is_news(parcel, link) && !net_draw(++count))
			chosen = parcel;
	return chosen;
}

static void accept_line(struct link *link, struct parcel *parcel)
{
	struct line *line = parcel->line;

	parcel->phase = PAST;
	if (line->cut || link->line || !link->listens) {
		net_cut(line, SIMULATED_RECEIVER);
		simulated_wake();
		return;
	}
	line->ends[SIMULATED_RECEIVER] = link;
	link->line = line;
	link->told = false;
	line->quiet.keepalive[SIMULATED_RECEIVER] = link->events.keepalive;
	quiet_join(link);
	link->events.accepted(link->events.arg, line->stranger ? "a stranger" : "the sender");
	net_post(CONNECTED, line, line->ends[SIMULATED_SENDER], SIMULATED_SENDER);
	simulated_wake();
}

static void hear_message(struct link *link, struct parcel *parcel)
{
	void *place = NULL;
	int count;

	if (link->told) {
		net_lose(parcel);
		return;
	}
	parcel->line->welcomed |= *parcel->head == WIRE_WELCOME;
	parcel->held = true;
	count = link->events.arrived(link->events.arg, parcel->head, parcel->head_bytes, parcel->bytes,
				     parcel->into, &place);
	parcel->held = false;
	if (parcel->phase != ARRIVED) { /* the connection was cut meanwhile */
		parcel->phase = count < 0 ? PAST : TORN;
	} else if (count < 0) {
		parcel->phase = PAST;
		parcel->told_due = net_draw_due();
	} else {
		parcel->phase = FILLING;
		parcel->due = net_draw(2) ? net_draw_due() : wr_now() + 1 + net_draw(15 * MS);
	}
	if (count < 0)
		return;
	parcel->place = place;
	parcel->into_count = (unsigned)count;
	net_write_garbage(parcel);
	simulated_wake();
}

/* What the receiver owes its graph from now on (R2). */
static void note_whole(struct line *line, const struct parcel *parcel)
{
	struct wire_record parts[WEIR_PARTS_MAX];
	struct wire wire;
	char why[LINK_WHY];

	if (!wire_read(parcel->head, parcel->head_bytes, parcel->bytes, SIZE_MAX, parts, &wire, why) ||
	    wire.number < line->wanted || wire.number + parcel->messages - line->wanted > 64)
		return; /* a place that it should not have given: it is told elsewhere */
	for (unsigned i = 0; i < parcel->messages; i++)
		line->whole |= UINT64_C(1) << (wire.number + i - line->wanted);
	for (; line->whole & 1; line->whole >>= 1, line->wanted++)
		simulated_seen.received++;
}

/* As an event may let other fibers go on, the parcel is changed before it. */
static void tell_filled(struct link *link, struct parcel *parcel)
{
	bool whole = parcel->phase == FILLED;

	if (whole)
		note_whole(parcel->line, parcel);
	else
		net_write_garbage(parcel);
	link->torn |= !whole;
	parcel->phase = PAST;
	link->events.filled(link->events.arg, parcel->place, whole);
}

static void tell_sent(struct link *link, struct parcel *parcel)
{
	void *cookie = parcel->cookie;

	net_check_block(parcel);
	parcel->eager = true;
	parcel->cookie = NULL;
	link->events.sent(link->events.arg, cookie);
}

static void tell_lost(struct link *link, const char *why)
{
	link->told = true;
	beat_end(&link->beat);
	link->events.lost(link->events.arg, why);
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
			quiet_join(link);
			link->events.connected(link->events.arg);
		} else if (parcel->kind == SIGN && !link->told) {
			beat_hear(&link->beat, watch_now());
		} else if (parcel->kind == LOST && !link->told) {
			tell_lost(link, "it was cut");
		}
	}
}

/* As the engine does: behind the signs that have come. */
static void keep_alive(struct link *link)
{
	struct pollfd timer = {link->beat.timer, POLLIN, 0};
	int64_t now = wr_now();
	bool silent;

	if (!link->line || link->told || link->dead || poll(&timer, 1, 0) <= 0)
		return;
	silent = beat_is_silent(&link->beat, now);
	if (silent)
		quiet_check_named(link, now);
	if (beat_look(&link->beat, now))
		net_post(SIGN, link->line, NULL, !link->side);
	if (!silent)
		return;
	simulated_seen.cuts++;
	tell_lost(link, "no sign of life came from it");
}

/* All that has come. */
static void take_news(struct link *link, bool arms)
{
	struct parcel *parcel;
	eventfd_t told;

	link->inside = true;
	link->armed = false;
	quiet_stand(link);
	if (net_draw(2)) /* what it looks at takes time */
		wr_thread_yield();
	else if (!net_draw(6))
		wr_thread_sleep(1 + net_draw(12 * MS));
	eventfd_read(link->descriptor, &told);
	do {
		while ((parcel = draw_news(link))) {
			handle(link, parcel);
			if (!net_draw(4))
				wr_thread_yield();
		}
		keep_alive(link);
	} while (draw_news(link));
	link->armed = arms;
	link->inside = false;
}

static void simulated_progress(struct link *link)
{
	take_news(link, true);
}

static void simulated_poll(struct link *link)
{
	take_news(link, false);
}

/* --- sending --- */

/* R1: no message without a credit, and no more of them than places. */
static void check_credit(struct line *line, const struct wire *wire, unsigned messages)
{
	switch (wire->kind) {
	case WIRE_WELCOME:
		simulated_seen.greeted++;
		line->limit = net.plan.places;
		line->credits = wire->credits;
		line->sent = wire->waiting;
		line->came = 0;
		break;
	case WIRE_CREDIT:
		line->credits += wire->credits;
		break;
	case WIRE_DATA:
	case WIRE_BUNDLE:
		line->sent += messages;
		line->credits -= messages;
		if (line->credits < 0)
			net.fails("a message was sent without a credit");
		if (!simulated_seen.enough && line->sent > line->came + line->limit + SIMULATED_BEHIND)
			net.fails("%u messages are under way or wait, with %u places",
				  (unsigned)(line->sent - line->came), line->limit);
		break;
	case WIRE_HELLO:
		line->hello = wire->number;
		line->session = wire->session;
		break;
	case WIRE_END:
	case WIRE_DONE:
	case WIRE_BYE:
		break;
	}
}

/* R6: how many messages of a sender the receiver had, since it knows it; the others are missed. */
static void check_welcome(struct link *link, const struct wire *wire)
{
	const struct line *before = link->greeted;
	struct line *line = link->line;
	bool again = before && before->session == line->session;

	if (again) {
		link->had += before->wanted - before->hello;
	} else {
		link->had = line->hello;
		link->missed = simulated_seen.missed;
	}
	if (!before)
		simulated_seen.first = (unsigned)line->hello;
	if (wire->number != link->had)
		net.fails("the receiver says that it had %u messages, and had %u", (unsigned)wire->number,
			  (unsigned)link->had);
	simulated_seen.replaced += before && !again;
	simulated_seen.missed = link->missed + (unsigned)(line->hello - link->had);
	line->wanted = line->hello;
	link->greeted = line;
}

void simulated_came(void)
{
	struct link *link = net_receiver();

	if (link && link->line)
		link->line->came++;
}

static void gather(uint8_t *out, const struct span *spans, unsigned count)
{
	for (unsigned i = 0; i < count; out += spans[i].bytes, i++)
		memcpy(out, spans[i].data, spans[i].bytes);
}

static size_t bytes_of(const struct span *spans, unsigned count)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += spans[i].bytes;
	return bytes;
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
	if (!wire_read(head, head_bytes, bytes_of(spans, count), SIZE_MAX, parts, &wire, why))
		net.fails("sends what cannot be read: %s", why);
	if (line && wire.kind == WIRE_WELCOME)
		check_welcome(link, &wire);
	if (line)
		line->answered |= wire.kind == WIRE_DONE;
	if (!line || link->told || link->dead || (line->cut && net_draw(2))) {
		simulated_seen.done_lost |= *(const uint8_t *)head == WIRE_DONE;
		return LINK_BROKEN;
	}
	parcel = net_post(MESSAGE, line, NULL, !link->side);
	memcpy(parcel->head, head, head_bytes);
	parcel->head_bytes = head_bytes;
	parcel->bytes = bytes_of(spans, count);
	parcel->payload = malloc(parcel->bytes + 1);
	if (!parcel->payload)
		abort();
	gather(parcel->payload, spans, count);
	parcel->messages = any_link_count(&wire);
	if (wire.kind == WIRE_BUNDLE && !parcel->messages)
		net.fails("sends a bundle that cannot be read");
	check_credit(line, &wire, parcel->messages);
	parcel->eager = !cookie || !net_draw(4);
	if (!parcel->eager) {
		memcpy(parcel->from, spans, count * sizeof *spans);
		parcel->from_count = count;
		parcel->cookie = cookie;
	}
	if (line->cut)
		net_lose(parcel);
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
			net_lose(parcel);
			if (parcel->phase == PAST)
				continue;
			tell_filled(link, parcel);
			return true;
		}
		if (parcel->cookie) { /* nothing is read any more */
			net_lose(parcel);
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
		net_cut(line, link->side);
		simulated_wake();
		if (!net_draw(3)) /* a forced close takes time */
			wr_thread_sleep(1 + net_draw(2 * MS));
		while (settle_one(link, line))
			if (!net_draw(4))
				wr_thread_yield();
		line->ends[link->side] = NULL;
	}
	link->line = NULL;
	beat_end(&link->beat);
	link->told = link->inside = link->torn = false;
	return true;
}

static bool simulated_end_line(struct link *link)
{
	eventfd_t told;

	eventfd_read(link->descriptor, &told);
	link->armed = false;
	if (!net_draw(2))
		return simulated_drop(link);
	eventfd_write(link->descriptor, 1);
	return false;
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
	struct link **at = &net.links;

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
			net_cut(parcel->line, link->side);
		parcel->phase = PAST;
	}
	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	beat_close(&link->beat);
	close(link->descriptor);
	free(link);
	simulated_wake();
}

void simulated_look(const void *state)
{
	const struct link *link = net_link_of(state);
	struct pollfd set = {link ? link->set : -1, POLLIN, 0};

	if (!link || link->inside || link->dead)
		return;
	if (draw_news(link) && poll(&set, 1, 0) <= 0)
		net.fails("the %s sleeps, and its link has news", net_name(link->side));
	if (link->torn && poll(&set, 1, 0) <= 0)
		net.fails("the %s sleeps, and a payload was torn", net_name(link->side));
}

static const struct transport simulated = {
	.name = "simulated",
	.load = any_link_load,
	.open = simulated_open,
	.head_most = any_link_head_most,
	.listen = simulated_listen,
	.deafen = simulated_deafen,
	.connect = simulated_connect,
	.progress = simulated_progress,
	.poll = simulated_poll,
	.send = simulated_send,
	.drop = simulated_drop,
	.end = simulated_end_line,
	.close = simulated_close,
};
const struct transport *const remote_transport = &simulated;
