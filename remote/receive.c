/*
 * remote_receive: a source of the messages that a remote_send of another process sends. docs/dev/rules.md R1
 * to R8 say what the two owe each other.
 *
 * A tick: the link's news, one step, at most one message emitted, if there is room, the link again (R4). The
 * states:
 *
 *     LISTENING  there is no connection
 *     ACCEPTED   there is one, which has not brought a hello; the timer ends that
 *     REFUSED    it was answered why that cannot be; the timer ends it
 *     LINKED     messages come
 *     LOST       the sender is gone: what was received is emitted, then the run fails, or, if that was
 *                all, ends; no other sender may connect
 *     OVER       this was the last tick
 *
 * Once all receivers are done, this one takes no more (R5): it emits nothing, and says so to the sender that
 * it has, which is REFUSED then, and to each that connects while its run goes on.
 *
 * A message is in a place until it is whole and all before it have come; then it is *ready*. Places and ready
 * ones together are at most `credits`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "remote/remote.h"

enum receive_state { LISTENING, ACCEPTED, REFUSED, LINKED, LOST, OVER };

#define NS_GREETING INT64_C(2000000000)  /* what a connection has to say hello, or to go */
#define NS_STALL    INT64_C(10000000000) /* without a message, or a sender, that is logged */
#define NS_CREDITS  INT64_C(5000000)     /* that credits may be kept back */

#define NO_DEVICES                                                                                           \
	"%s here cannot write memory of the device: see docs/distributed.md, or \"place\": \"host\""

#define RUNS 16 /* of numbers without a gap, that are recorded */

struct place {
	weir_message *message; /* NULL: it is free */
	bool whole;
	unsigned bundle; /* so many more came with this one, and have the numbers behind it */
	int64_t said;    /* when it was sent */
};

/* From this message emitted on, they have these numbers. */
struct numbers {
	uint64_t emitted, number;
};

struct receive {
	struct remote remote;
	const char *listen;
	bool waits; /* on_lost; else fails */
	uint32_t credits;
	size_t most;
	enum wire_device device;

	enum receive_state state;
	char peer[ADDRESS_TEXT];
	weir_context *context;    /* of this tick */
	uint64_t session, sender; /* the sessions of both; sender 0: none came yet */
	struct wire hello;
	bool greeted;         /* hello was not answered yet */
	bool over;            /* the link has told the loss: nothing can be said */
	bool full;            /* it takes no more */
	bool torn;            /* a payload did not come: mostly, as the sender is lost */
	bool stalls;          /* it was logged that nothing comes */
	uint64_t came;        /* emitted when the time of that began */
	int64_t stall;        /* when that is over */
	uint32_t mask;        /* of the two rings below, which have room for `credits` */
	struct place *places; /* number n is in n & mask */
	uint32_t used;
	weir_message **ready;
	uint32_t ready_first, ready_count;
	uint32_t given;    /* credits that the sender has: places that are free, each with its memory */
	bool lacks;        /* memory for more: its pool has none (R1) */
	bool keeps;        /* the timer is that of credits that are kept back */
	uint64_t next;     /* the number of the first message that is not ready */
	uint64_t received; /* of this sender, since it began, as far as this receiver could know */
	uint64_t emitted, lost, lost_before;
	struct wire_times times; /* of the last hello or message that came */
	struct way way;          /* of this sender's */
	struct numbers runs[RUNS];
	unsigned run_count; /* more than RUNS: some are not kept */
	bool ends;          /* the end has come, behind `end` messages */
	uint64_t end;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "listen",
		.type = WEIR_TYPE_STRING,
		.help = "ADDRESS:PORT of this machine, or a name (docs/distributed.md); 127.0.0.1: this "
			"machine alone may connect",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "peers",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"\"",
		.help = "IP addresses of the machines that may connect, separated by commas; \"\": any that "
			"reach the address",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "credits",
		.type = WEIR_TYPE_INT,
		.fallback = "8",
		.min = 1,
		.max = 4096,
		.help = "messages that may be under way or wait here",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "max_message",
		.type = WEIR_TYPE_SIZE,
		.fallback = "\"64MiB\"",
		.min = 1,
		.max = INT64_C(1) << 40,
		.help = "largest message; memory for `credits` of them may be used",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "place",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"host\"",
		.choices = "host|device|sent",
		.help = "where tensors go: to memory of the host, of the entity's device, or of the one on "
			"which the sender has them",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "on_lost",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"fail\"",
		.choices = "fail|wait",
		.help = "when the sender goes before its end: fails the run, behind what came, or waits for "
			"it, or another one",
	},
	REMOTE_KEEPALIVE,
	REMOTE_SPIN,
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.flags = WEIR_PORT_FULL,
		.kinds = WEIR_KIND_EMPTY | WEIR_KIND_BYTES | WEIR_KIND_TENSOR | WEIR_KIND_PARTS,
		.max_emits = 64, /* as far as there is room */
		.help = "what came, in order, tensors where 'place' says",
	},
	{.name = NULL},
};

static enum wire_device read_place(const weir_values *values)
{
	const char *place = weir_values_string(values, "place");

	if (!strcmp(place, "host"))
		return WIRE_DEVICE_NONE;
	return strcmp(place, "device") ? WIRE_DEVICE_SENT : WIRE_DEVICE_ALL;
}

static weir_status receive_describe(const weir_values *values, weir_ports *ports)
{
	static const char *const places[] = {
		[WIRE_DEVICE_NONE] = "host", [WIRE_DEVICE_SENT] = NULL, [WIRE_DEVICE_ALL] = "device"};
	weir_port out = outputs[0];
	char why[LINK_WHY];
	weir_status status = remote_check(values, "listen", ports);

	if (status)
		return status;
	if (!address_peers_ok(weir_values_string(values, "peers"), why))
		return weir_ports_fail(ports, "%s", why);
	out.place = places[read_place(values)];
	out.ahead = (uint32_t)weir_values_int(values, "credits");
	return weir_ports_add_output(ports, &out);
}

static const char *const conditions[] = {"{\"type\": \"remote_input\", \"port\": \"out\"}", NULL};

/* One timer serves all that the state waits for. */
static void set_timer(struct receive *self, int64_t ns)
{
	self->keeps = false;
	watch_time(&self->remote.watch, ns);
}

static const struct wire enough = {
	.kind = WIRE_BYE, .reason = WIRE_ENOUGH, .text = "it takes no more messages"};

static uint32_t open_places(const struct receive *self)
{
	return self->credits - self->used - self->ready_count;
}

/* --- what the link calls --- */

static struct place *place_of(const struct receive *self, uint64_t number)
{
	return &self->places[number & self->mask];
}

static void move_to_ready(struct receive *self)
{
	for (struct place *place = place_of(self, self->next); place->message && place->whole;
	     place = place_of(self, self->next)) {
		self->ready[(self->ready_first + self->ready_count++) & self->mask] = place->message;
		*place = (struct place){.message = NULL};
		self->used--;
		self->next++;
		self->received++;
	}
}

/* When it came is looked up when it is told (R8): later is right, too, and one look serves many messages. */
static void note_times(struct receive *self, const struct wire *wire)
{
	self->times.asked = wire->times.said;
	self->times.heard = 0;
}

static struct wire_times times_now(struct receive *self)
{
	int64_t now = watch_now();

	if (!self->times.heard)
		self->times.heard = now;
	self->times.said = now;
	return self->times;
}

/* What a sender does wrong loses it; what is wrong here fails the run. */
static void tell_refusal(struct receive *self, uint64_t number, weir_status status)
{
	if (status == WEIR_E_INVALID)
		remote_lose(&self->remote, "message %" PRIu64 " cannot be: %s", number, weir_last_error());
	else if (status == WEIR_E_FAILED)
		remote_fail(&self->remote, "%s", weir_last_error());
	else if (status == WEIR_E_BUSY)
		remote_fail(&self->remote,
			    "no memory for message %" PRIu64
			    ": its memory pool is used up: say by memory_available how many blocks a message "
			    "takes (docs/distributed.md)",
			    number);
	else
		remote_fail(&self->remote, "no memory for message %" PRIu64 ": %s", number,
			    weir_last_error());
}

/* The place of the message `number`, which is made, and where its payload goes; NULL: it is not wanted. */
static struct place *make_message(struct receive *self, const struct wire *wire, uint64_t number,
				  struct span *spans, unsigned *count)
{
	struct place *place = place_of(self, number);
	weir_status status;

	if (number - self->next >= self->credits || place->message || !self->given) {
		remote_lose(&self->remote,
			    "message %" PRIu64 " came, where %" PRIu64 " is next and %" PRIu32 " of %" PRIu32
			    " places are used: the other side is no weir, or another version",
			    number, self->next, self->used + self->ready_count, self->credits);
		return NULL;
	}
	status = wire_make(self->context, wire, self->device, spans, count, &place->message);
	if (status) {
		place->message = NULL;
		tell_refusal(self, number, status);
		return NULL;
	}
	place->whole = false;
	place->bundle = 0;
	place->said = wire->times.said;
	self->used++;
	self->given--;
	return place;
}

static int take_data(struct receive *self, const struct wire *wire, struct span *spans, void **cookie)
{
	struct place *place;
	unsigned count;

	if (self->state != LINKED || self->remote.gone)
		return -1;
	place = make_message(self, wire, wire->number, spans, &count);
	if (!place)
		return -1;
	if (link_has_device(spans, count) && !remote_takes_devices(&self->remote)) {
		remote_fail(&self->remote, NO_DEVICES, self->remote.transport->name);
		return -1;
	}
	remote_find_wholes(self->context, &self->remote, spans, count);
	note_times(self, wire);
	*cookie = place;
	return (int)count;
}

/* What was made of a bundle that is not wanted goes with the link. */
static int take_bundle(struct receive *self, struct wire *bundle, struct wire_record *parts,
		       struct span *spans, void **cookie)
{
	char why[LINK_WHY];
	unsigned messages = 0, count;

	if (self->state != LINKED || self->remote.gone)
		return -1;
	for (; bundle->rest != bundle->end; messages++) {
		const char *from;

		if (!wire_next(bundle, self->most, parts, why)) {
			remote_lose(&self->remote, "%s", why);
			return -1;
		}
		from = bundle->payload;
		if (!make_message(self, bundle, bundle->number + messages, spans, &count))
			return -1;
		if (link_has_device(spans, count)) {
			remote_lose(&self->remote, "a small tensor is for the device: the other side is no "
						   "weir, or another version");
			return -1;
		}
		for (unsigned k = 0; k < count; from += spans[k++].bytes)
			memcpy(spans[k].data, from, spans[k].bytes);
	}
	note_times(self, bundle);
	*cookie = place_of(self, bundle->number);
	place_of(self, bundle->number)->bundle = messages - 1;
	return 0;
}

static void on_filled(void *arg, void *cookie, bool whole)
{
	struct receive *self = arg;
	struct place *place = cookie;
	int64_t took = whole ? (int64_t)((uint64_t)watch_now() - (uint64_t)place->said) : 0;

	for (unsigned i = 0, first = (unsigned)(place - self->places); whole && i <= place->bundle; i++) {
		place_of(self, first + i)->whole = true;
		way_add(&self->way, took);
	}
	if (whole)
		move_to_ready(self);
	self->torn |= !whole;
}

static int on_arrived(void *arg, const void *head, size_t head_bytes, size_t bytes, struct span *spans,
		      void **cookie)
{
	struct receive *self = arg;
	struct wire_record parts[WEIR_PARTS_MAX];
	struct wire wire;
	char why[LINK_WHY];

	remote_note(&self->remote);
	if (!wire_read(head, head_bytes, bytes, self->most, parts, &wire, why)) {
		remote_lose(&self->remote, "%s", why);
		return -1;
	}
	switch (wire.kind) {
	case WIRE_HELLO:
		self->hello = wire;
		note_times(self, &wire);
		self->greeted = self->state == ACCEPTED;
		break;
	case WIRE_DATA:
		return take_data(self, &wire, spans, cookie);
	case WIRE_BUNDLE:
		return take_bundle(self, &wire, parts, spans, cookie);
	case WIRE_END:
		self->ends = self->state == LINKED;
		self->end = wire.number;
		break;
	case WIRE_BYE:
		remote_lose(&self->remote, "%s", wire.text);
		break;
	case WIRE_WELCOME:
	case WIRE_CREDIT:
	case WIRE_DONE:
		remote_lose(&self->remote, "it receives, too: is it a remote_receive?");
		break;
	}
	return -1;
}

static void on_accepted(void *arg, const char *peer)
{
	struct receive *self = arg;

	snprintf(self->peer, sizeof self->peer, "%s", peer);
	self->state = ACCEPTED;
	self->over = self->remote.gone = false;
	set_timer(self, NS_GREETING);
}

static void on_stranger(void *arg, const char *peer)
{
	struct receive *self = arg;

	weir_context_log(self->context, WEIR_LOG_WARN, "%s connected, and is no remote_send", peer);
}

static void on_lost(void *arg, const char *why)
{
	struct receive *self = arg;

	remote_lose(&self->remote, "%s", why);
	self->over = true;
}

static void on_sent(void *arg, void *cookie)
{
	(void)arg, (void)cookie; /* heads alone are sent */
}

/* --- start and stop --- */

static void free_places(struct receive *self)
{
	for (uint32_t i = 0; self->places && i <= self->mask; i++) {
		weir_message_unref(self->places[i].message);
		self->places[i] = (struct place){.message = NULL};
	}
	self->used = 0;
}

static void free_ready(struct receive *self)
{
	while (self->ready_count) {
		weir_message_unref(self->ready[self->ready_first]);
		self->ready_first = (self->ready_first + 1) & self->mask;
		self->ready_count--;
	}
}

static void record(weir_context *context, struct receive *self)
{
	char more[2048];
	int at;

	at = snprintf(more, sizeof more,
		      "\"count\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"emitted\":%" PRIu64
		      ",\"way\":{\"count\":%" PRIu64 ",\"min\":%" PRId64 ",\"p50\":%" PRId64
		      ",\"p99\":%" PRId64 ",\"max\":%" PRId64 "},\"all_numbers\":%s,\"numbers\":[",
		      self->received, self->lost, self->emitted, self->way.count, self->way.least,
		      way_percentile(&self->way, 50), way_percentile(&self->way, 99), self->way.most,
		      self->run_count > RUNS ? "false" : "true");
	for (unsigned i = 0; i < self->run_count && i < RUNS; i++)
		at += snprintf(more + at, sizeof more - (size_t)at,
			       "%s{\"emitted\":%" PRIu64 ",\"number\":%" PRIu64 "}", i ? "," : "",
			       self->runs[i].emitted, self->runs[i].number);
	snprintf(more + at, sizeof more - (size_t)at, "]");
	remote_record(context, "listen", self->listen, self->session, self->sender, more);
}

static void receive_stop(weir_context *context, void *state)
{
	struct receive *self = state;
	bool tells = self->remote.link && self->state == LINKED && !self->remote.gone;
	bool answered = self->remote.link && (self->state == OVER || (self->full && self->state == REFUSED));
	struct wire bye = {.kind = WIRE_BYE, .reason = WIRE_STOPPED};

	self->state = OVER; /* what comes now is not wanted */
	record(context, self);

	if (self->remote.failed || (weir_context_stopping(context) && !weir_context_drained(context)))
		remote_say_end(context, &self->remote, bye.text);
	else
		bye = enough;
	remote_close(&self->remote, tells ? &bye : NULL, tells || answered ? REMOTE_PATIENCE : 0);
	free_places(self);
	free_ready(self);
	free(self->places);
	free(self->ready);
}

static void read_values(struct receive *self, const weir_values *values)
{
	self->listen = weir_values_string(values, "listen");
	self->waits = !strcmp(weir_values_string(values, "on_lost"), "wait");
	self->credits = (uint32_t)weir_values_int(values, "credits");
	self->most = (size_t)weir_values_int(values, "max_message");
	self->device = read_place(values);
}

/* As the port says of a device: on the backends `host` and `sim` its memory is the host's. */
static bool can_place(weir_context *context, struct receive *self)
{
	return self->device != WIRE_DEVICE_ALL || weir_context_backend(context) != WEIR_BACKEND_CUDA ||
	       remote_takes_devices(&self->remote);
}

static weir_status begin_to_listen(weir_context *context, struct receive *self, const weir_values *values)
{
	struct address address;
	char text[ADDRESS_TEXT], why[LINK_WHY];
	const char *peers = weir_values_string(values, "peers");

	if (!address_named(self->listen, text, why) || !address_find(text, &address, why))
		return weir_context_fail(context, "%s", why);
	if (!self->remote.transport->listen(self->remote.link, &address, peers, why))
		return weir_context_fail(
			context,
			"cannot listen at %s: %s: is it an address of this machine, and does "
			"nothing else listen there?",
			text, why);
	watch_time(&self->remote.watch, NS_STALL);
	return remote_tell(context, &self->remote, WEIR_TOLD_READY); /* the first tick arms the link */
}

static weir_status receive_start(weir_context *context, void *state, const weir_values *values)
{
	struct receive *self = state;
	struct link_events events = {
		.arg = self,
		.accepted = on_accepted,
		.stranger = on_stranger,
		.arrived = on_arrived,
		.filled = on_filled,
		.sent = on_sent,
		.lost = on_lost,
	};
	char why[LINK_WHY];
	weir_status status = WEIR_OK;

	read_values(self, values);
	while (self->mask + 1 < self->credits)
		self->mask = 2 * self->mask + 1;
	self->places = calloc(self->mask + 1, sizeof *self->places);
	self->ready = calloc(self->mask + 1, sizeof *self->ready);
	if (!self->places || !self->ready)
		status = WEIR_E_NOMEM;
	else if (!remote_transport->load(why))
		status = weir_context_fail(context, "%s", why);
	else if (getrandom(&self->session, sizeof self->session, 0) != sizeof self->session)
		status = weir_context_fail(context, "the system gives no random number");
	if (!status)
		status = remote_open(context, &self->remote, &events, values, "remote_input");
	if (!status && !can_place(context, self))
		status = weir_context_fail(context, NO_DEVICES, self->remote.transport->name);
	if (!status)
		status = begin_to_listen(context, self, values);
	if (status) {
		weir_entity_watch(weir_context_entity(context), "remote_input", -1, 0);
		receive_stop(context, state);
	}
	return status;
}

/* --- one step --- */

/* Begins anew to wait for a message, or a sender. */
static void time_stall(struct receive *self)
{
	self->came = self->emitted;
	self->stall = watch_now() + NS_STALL;
	set_timer(self, NS_STALL);
}

/* The time is over: one line if nothing came meanwhile. One that waits for room is none. */
static void tell_stall(weir_context *context, struct receive *self)
{
	if (self->came != self->emitted || self->ready_count) {
		time_stall(self);
		return;
	}
	self->stalls = true;
	if (self->state == LISTENING)
		weir_context_log(context, WEIR_LOG_WARN,
				 "for 10 s no sender has connected to %s: %" PRIu64 " messages came",
				 self->listen, self->emitted);
	else
		weir_context_log(context, WEIR_LOG_WARN,
				 "for 10 s nothing comes from %s: %" PRIu64 " messages came", self->peer,
				 self->emitted);
}

static void refuse(struct receive *self, const char *why)
{
	struct wire bye = {.kind = WIRE_BYE, .reason = WIRE_REFUSED};

	snprintf(bye.text, sizeof bye.text, "%s", why);
	remote_say(&self->remote, &bye);
	self->state = REFUSED;
	set_timer(self, NS_GREETING);
}

/* Its answer is to end the connection; what is under way stays with the link until then. */
static void say_enough(struct receive *self)
{
	remote_say(&self->remote, &enough);
	self->state = REFUSED;
	set_timer(self, 0); /* the sender's silence ends it, if need be */
}

/* What is emitted behind what waits here has the numbers from `next` on. */
static void begin_run(struct receive *self)
{
	const struct numbers run = {self->emitted + self->ready_count, self->next};
	const struct numbers *last;

	if (self->run_count > RUNS)
		return;
	last = self->run_count ? &self->runs[self->run_count - 1] : NULL;
	if (last && run.number - last->number == run.emitted - last->emitted)
		return;
	if (self->run_count < RUNS)
		self->runs[self->run_count] = run;
	self->run_count++;
}

/* Answers the hello (R6). Messages of a sender that this receiver does not know count from its hello on. */
static void greet(weir_context *context, struct receive *self)
{
	const struct wire *hello = &self->hello;
	size_t reserved = weir_context_reserve(context, self->full ? 0 : open_places(self));
	struct wire welcome = {
		.kind = WIRE_WELCOME,
		.session = self->session,
		.waiting = self->ready_count,
		.credits = (uint32_t)reserved,
		.most = self->most,
		.device = self->device,
		.times = times_now(self),
	};

	self->greeted = false;
	if (self->full) {
		say_enough(self);
		return;
	}
	if (hello->session != self->sender) {
		if (self->sender) /* which it forgets: should that come again, this is another receiver to it
				   */
			welcome.session = ++self->session;
		self->way = (struct way){0};
		self->run_count = 0;
		self->lost_before = self->lost;
		self->received = hello->number;
	} else if (hello->number < self->received) {
		refuse(self, "it has sent fewer messages than have come");
		return;
	}
	self->lost = self->lost_before + hello->number - self->received;
	welcome.number = self->received;
	if (self->sender)
		weir_context_log(context, WEIR_LOG_WARN,
				 "%s at %s is there: %" PRIu64 " messages were lost so far",
				 hello->session == self->sender ? "the sender" : "another sender", self->peer,
				 self->lost);
	self->given = (uint32_t)reserved;
	self->lacks = reserved < open_places(self);
	self->stalls = false;
	self->sender = hello->session;
	self->next = hello->number;
	begin_run(self);
	self->state = LINKED;
	time_stall(self);
	remote_say(&self->remote, &welcome);
}

static void handle_loss(weir_context *context, struct receive *self)
{
	struct remote *remote = &self->remote;
	bool was_linked = self->state == LINKED;

	/* Of a greeting that cannot be read, the reason goes back. */
	if (self->state == ACCEPTED && !self->greeted && !self->over) {
		weir_context_log(context, WEIR_LOG_WARN, "%s connected, and is no sender: %s", self->peer,
				 remote->why);
		refuse(self, remote->why);
		remote->gone = false;
		return;
	}
	remote_drop(remote);
	free_places(self);
	(void)weir_context_reserve(context, 0);
	self->ends = was_linked && !self->waits && self->ends && self->next == self->end;
	self->greeted = self->torn = false;
	time_stall(self);
	remote->gone = false;
	self->state = was_linked && !self->waits ? LOST : LISTENING;
	if (self->state == LOST)
		remote->transport->deafen(remote->link); /* it was dropped, so it is used */
	else if (was_linked)
		weir_context_log(context, WEIR_LOG_WARN,
				 "the sender at %s is lost after %" PRIu64
				 " messages: %s; another try is waited for",
				 self->peer, self->received, remote->why);
}

static void drop_silent(weir_context *context, struct receive *self)
{
	if (self->state == ACCEPTED)
		weir_context_log(context, WEIR_LOG_WARN, "%s connected, and said nothing", self->peer);
	remote_drop(&self->remote);
	self->remote.gone = self->greeted = false;
	self->state = LISTENING;
	time_stall(self);
}

/* For the places that are free, as far as there is memory for them. */
static void say_credits(struct receive *self)
{
	size_t reserved = weir_context_reserve(self->context, open_places(self));
	struct wire credit = {.kind = WIRE_CREDIT};

	self->lacks = reserved < open_places(self);
	if (reserved <= self->given)
		return;
	credit.credits = (uint32_t)reserved - self->given;
	credit.number = self->received - self->ready_count;
	credit.times = times_now(self);
	remote_say(&self->remote, &credit);
	self->given = (uint32_t)reserved;
}

static uint32_t owed(const struct receive *self)
{
	return open_places(self) - self->given;
}

/* A quarter of them at once, or what there is when it is due, or as memory comes (R1). */
static void give_credits(struct receive *self, bool due)
{
	if (self->state != LINKED || self->remote.gone || !owed(self))
		return;
	if (!due && !self->lacks && owed(self) < self->credits / 4) {
		if (!self->keeps)
			set_timer(self, NS_CREDITS);
		self->keeps = true;
		return;
	}
	say_credits(self);
}

/* The timer serves two: credits that are due, and a stall. */
static void look_at_time(weir_context *context, struct receive *self)
{
	int64_t left = self->stall - watch_now();

	self->keeps = false;
	give_credits(self, true);
	if (self->stalls)
		return;
	if (left > 0)
		set_timer(self, left);
	else
		tell_stall(context, self);
}

static void act(weir_context *context, struct receive *self, bool timed)
{
	if (self->torn)
		remote_lose(&self->remote, "a payload did not come");
	if (self->state != LOST && self->remote.gone)
		handle_loss(context, self);
	else if (timed && (self->state == ACCEPTED || self->state == REFUSED) && !self->greeted)
		drop_silent(context, self);
	else if (timed && (self->state == LISTENING || self->state == LINKED))
		look_at_time(context, self);
	if (self->greeted && self->state == ACCEPTED)
		greet(context, self);
}

static weir_status emit_one(weir_context *context, struct receive *self)
{
	weir_message *message = self->ready[self->ready_first];
	weir_status status;

	self->ready_first = (self->ready_first + 1) & self->mask;
	self->ready_count--;
	status = weir_context_emit(context, 0, message);
	if (status) {
		remote_fail(&self->remote, "%s", weir_last_error());
		return status;
	}
	self->emitted++;
	return WEIR_OK;
}

/* What is ready, as far as there is room. */
static weir_status emit(weir_context *context, struct receive *self)
{
	size_t room = self->ready_count ? weir_context_room(context, 0) : 0;
	weir_status status = WEIR_OK;

	if (room && self->stalls) {
		weir_context_log(context, WEIR_LOG_WARN, "messages come from %s again", self->peer);
		self->stalls = false;
		time_stall(self);
	}
	for (; room && self->ready_count && !status; room--) {
		status = emit_one(context, self);
		if (owed(self) >= self->credits / 4)
			give_credits(self, false);
	}
	give_credits(self, false);
	return status;
}

/* Whether this tick emits whatever the link brings, so that the link may wait. */
static bool has_some(const weir_context *context, const struct receive *self)
{
	return self->ready_count && !self->remote.failed && !self->remote.gone &&
	       weir_context_room(context, 0);
}

static weir_status finish_well(weir_context *context, struct receive *self)
{
	const struct wire done = {.kind = WIRE_DONE};

	remote_say(&self->remote, &done);
	self->remote.transport->deafen(self->remote.link); /* this run may go on */
	self->state = OVER;
	return weir_context_finish(context);
}

/* All receivers are done, and this run may go on. */
static void take_no_more(struct receive *self)
{
	self->full = self->stalls = true; /* no message is waited for */
	(void)weir_context_reserve(self->context, 0);
	if (self->state == LINKED && !self->remote.gone)
		say_enough(self);
	else if (self->state == LINKED)
		self->state = REFUSED;
}

static bool has_all(const struct receive *self)
{
	return self->state == LINKED && self->ends && self->next == self->end && !self->ready_count;
}

/* Whether the next tick has something to do, whatever comes. */
static bool is_due(const struct receive *self)
{
	const struct remote *remote = &self->remote;

	return !remote->armed || remote->failed || (remote->gone && self->state != LOST) ||
	       (self->greeted && self->state == ACCEPTED) || has_all(self) ||
	       (self->torn && self->state != LOST) || (self->state == LOST && !self->ready_count);
}

/* What waits to be emitted makes a tick due when there is room. */
static weir_status tell_wants(weir_context *context, struct receive *self)
{
	weir_told waits = self->full          ? WEIR_TOLD_EVENT_DONE
			  : self->ready_count ? WEIR_TOLD_EVENT_WAITING
					      : WEIR_TOLD_WAIT;

	return remote_tell(context, &self->remote, is_due(self) ? WEIR_TOLD_READY : waits);
}

static weir_status receive_compute(weir_context *context, void *state)
{
	struct receive *self = state;
	struct remote *remote = &self->remote;
	bool timed = watch_timed(&remote->watch);
	weir_status status = WEIR_OK;

	self->context = context;
	if (!self->full && weir_context_receivers_done(context, 0)) {
		if (self->state == LOST)
			return weir_context_finish(context);
		take_no_more(self);
		timed = false; /* that was about messages */
	}
	if (!has_some(context, self) || timed || !remote_may_put_off(remote)) {
		remote_progress(remote);
		/* What it brought may have set the timer anew. */
		if (!remote->failed)
			act(context, self, timed && !remote->watch.timing);
	}
	if (self->full)
		free_ready(self);
	else if (!remote->failed)
		status = emit(context, self);
	if (!status && remote->failed)
		status = weir_context_fail(context, "%s", remote->failure);
	if (!status && has_all(self))
		status = finish_well(context, self);
	else if (!status && self->state == LOST && !self->ready_count && self->ends)
		return weir_context_finish(context);
	else if (!status && self->state == LOST && !self->ready_count)
		return weir_context_fail_after_drain(context, WEIR_E_IO,
						     "the sender at %s is lost after %" PRIu64
						     " messages, before its end: %s",
						     self->peer, self->received, remote->why);
	if (remote->used)
		remote_progress(remote);
	return status ? status : tell_wants(context, self);
}

const weir_operator remote_receive_operator = {
	.size = sizeof(weir_operator),
	.name = "remote_receive",
	.help = "emits the messages of a remote_send of another process or machine; sleeps while none comes; "
		"when all receivers are done it tells the sender, also one that connects later",
	.flags = WEIR_OPERATOR_EFFECTS,
	.state_size = sizeof(struct receive),
	.parameters = parameters,
	.outputs = outputs,
	.start = receive_start,
	.compute = receive_compute,
	.stop = receive_stop,
	.conditions = conditions,
	.describe = receive_describe,
};
