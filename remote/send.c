/*
 * remote_send: messages go to a remote_receive of another process. docs/dev/rules.md R1 to R8 say what the
 * two owe each other.
 *
 * A tick: the link's news; then one step, as the state allows; then the link again (R4). The states:
 *
 *     AWAY      there is no connection; the timer says when the next try is due
 *     GREETING  a connection is made, then a hello is sent, and the welcome waited for
 *     LINKED    messages go, as far as credits do
 *     ENDING    the end was sent, the answer is waited for
 *     OVER      the connection is ended, by this tick or a later one, the last
 *
 * The input is held in all of them but LINKED with a credit, and, if what comes is dropped, AWAY and in
 * GREETING before the hello, which tells a number that must stay. What comes is dropped from the first loss
 * on, and in a drain.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "remote/remote.h"

enum send_state { AWAY, GREETING, LINKED, ENDING, OVER };

#define NS_FIRST_TRY INT64_C(10000000)   /* between the first two tries */
#define NS_LAST_TRY  INT64_C(1000000000) /* and at most */
#define NS_GREETING  INT64_C(3000000000) /* that a receiver has to answer a hello */

struct send {
	struct remote remote;
	const char *to;
	bool waits, drops; /* on_lost; neither: fails */
	int64_t timeout;   /* < 0: none */
	char address[ADDRESS_TEXT];

	enum send_state state;
	uint64_t session, receiver; /* the sessions of both */
	uint64_t sent;              /* taken from the input: the number of the next message */
	uint64_t confirmed;         /* that this receiver has emitted, or an earlier one has received */
	uint64_t told; /* the same, by a credit that has overtaken its welcome, if there was one */
	bool early;
	uint64_t lost, lost_before; /* so far; with earlier receivers */
	uint64_t credits, most;
	unsigned places, bundled;  /* of the receiver; messages of the bundle */
	enum wire_device device;   /* of the receiver */
	struct clocks clocks;      /* the receiver's */
	int64_t away_since;        /* ns; when the receiver was last there, or the start */
	int64_t pause;             /* before the next try */
	bool was_linked, ends;     /* ends: the input has ended */
	bool connected;            /* the hello is due */
	bool greeted;              /* it was sent, with a number that must stay */
	bool enough;               /* the receiver takes no more */
	bool stops;                /* the run drains */
	bool holds;                /* the input */
	bool closes;               /* all is said, and the link is ended */
	struct wire_bundle bundle; /* of what this tick has taken (R2); its memory is that of any head */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "to",
		.type = WEIR_TYPE_STRING,
		.help = "where the remote_receive listens: HOST:PORT, or a name (docs/distributed.md)",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "on_lost",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"fail\"",
		.choices = "fail|wait|drop",
		.help = "when the receiver goes: fails the run, waits for it to come back, or drops what "
			"comes until then",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "timeout",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"60s\"",
		.min = -1,
		.max = INT64_MAX,
		.help = "time that the receiver may be away, at the start too, before the run fails; -1: any",
	},
	REMOTE_KEEPALIVE,
	REMOTE_SPIN,
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.flags = WEIR_PORT_HOST | WEIR_PORT_ONCE,
		.kinds = WEIR_KIND_EMPTY | WEIR_KIND_BYTES | WEIR_KIND_TENSOR | WEIR_KIND_PARTS,
		.help = "what is sent: bytes, dense tensors of the host or the device, parts of these, or "
			"nothing",
	},
	{.name = NULL},
};

static weir_status send_describe(const weir_values *values, weir_ports *ports)
{
	return remote_check(values, "to", ports);
}

static const char *const conditions[] = {"{\"type\": \"remote_output\", \"port\": \"in\"}", NULL};

/* --- what the link calls --- */

/* If the receiver does not come again: what is not confirmed may be lost, too. */
static uint64_t lost_with(const struct send *self)
{
	return self->lost_before + self->sent - self->confirmed;
}

static void take_times(struct send *self, const struct wire *wire)
{
	clocks_take(&self->clocks, wire->times.asked, wire->times.heard, wire->times.said, watch_now());
}

static void take_welcome(struct send *self, const struct wire *wire)
{
	if (self->state != GREETING || wire->number > self->sent) {
		remote_fail(&self->remote, "%s answers what was not asked: no weir, or another version",
			    self->to);
		return;
	}
	if (self->receiver != wire->session)
		self->clocks = (struct clocks){0};
	take_times(self, wire);
	if (self->receiver != wire->session) /* of the first one: what a drain has dropped before */
		self->lost_before = self->lost = lost_with(self);
	else
		self->lost = self->lost_before + self->sent - wire->number;
	self->receiver = wire->session;
	self->confirmed = self->early ? self->told : wire->number - wire->waiting;
	self->early = false;
	self->credits += wire->credits;
	self->most = wire->most;
	self->places = wire->credits + wire->waiting;
	self->device = wire->device;
	self->state = LINKED;
}

/* One that has overtaken the welcome counts from that on (R1). Others may have been overtaken. */
static void take_credits(struct send *self, const struct wire *wire)
{
	bool early = self->state == GREETING;
	uint64_t *told = early ? &self->told : &self->confirmed;

	self->credits += wire->credits;
	if ((early && !self->early) || (int64_t)(wire->number - *told) > 0)
		*told = wire->number;
	self->early |= early;
}

static int on_arrived(void *arg, const void *head, size_t head_bytes, size_t bytes, struct span *spans,
		      void **cookie)
{
	struct send *self = arg;
	struct wire_record parts[WEIR_PARTS_MAX];
	struct wire wire;
	char why[LINK_WHY];

	(void)spans, (void)cookie;
	remote_note(&self->remote);
	if (!wire_read(head, head_bytes, bytes, 0, parts, &wire, why)) {
		remote_fail(&self->remote, "%s: %s", self->to, why);
		return -1;
	}
	switch (wire.kind) {
	case WIRE_WELCOME:
		take_welcome(self, &wire);
		break;
	case WIRE_CREDIT:
		take_times(self, &wire);
		take_credits(self, &wire);
		break;
	case WIRE_DONE:
		if (self->state == ENDING)
			self->state = OVER;
		break;
	case WIRE_BYE:
		self->enough = wire.reason == WIRE_ENOUGH;
		if (wire.reason == WIRE_REFUSED)
			remote_fail(&self->remote, "the receiver at %s refuses: %s", self->to, wire.text);
		remote_lose(&self->remote, "%s", wire.text);
		break;
	case WIRE_HELLO:
	case WIRE_DATA:
	case WIRE_BUNDLE:
	case WIRE_END:
		remote_fail(&self->remote, "%s sends, too: is it a remote_send?", self->to);
		break;
	}
	return -1;
}

static void on_sent(void *arg, void *message)
{
	(void)arg;
	weir_message_unref(message);
}

static void on_connected(void *arg)
{
	struct send *self = arg;

	self->connected = true;
}

static void on_lost(void *arg, const char *why)
{
	struct send *self = arg;

	remote_lose(&self->remote, "%s", why);
}

/* --- start and stop --- */

static void record(weir_context *context, const struct send *self)
{
	char more[300];

	snprintf(more, sizeof more,
		 "\"count\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"exchanges\":%" PRIu64 ",\"offset\":%" PRId64
		 ",\"error\":%" PRId64,
		 self->sent, self->lost, self->clocks.exchanges, self->clocks.offset, self->clocks.error);
	remote_record(context, "to", self->to, self->session, self->receiver, more);
}

/* None has answered since it began, or since the last one was lost. */
static bool has_no_receiver(const struct send *self)
{
	return self->state == AWAY || self->state == GREETING;
}

static void send_stop(weir_context *context, void *state)
{
	struct send *self = state;
	bool tells =
		self->remote.link && (self->state == LINKED || self->state == ENDING) && !self->remote.gone;
	struct wire bye = {.kind = WIRE_BYE, .reason = WIRE_STOPPED};

	if (has_no_receiver(self))
		self->lost = lost_with(self);
	if (self->lost)
		weir_context_log(context, WEIR_LOG_WARN, "%" PRIu64 " of %" PRIu64 " messages were lost",
				 self->lost, self->sent);
	record(context, self);
	remote_say_end(context, &self->remote, bye.text);
	remote_close(&self->remote, tells ? &bye : NULL, tells ? REMOTE_PATIENCE : 0);
	free(self->bundle.head);
	self->bundle.head = NULL;
}

static weir_status send_start(weir_context *context, void *state, const weir_values *values)
{
	struct send *self = state;
	const char *lost = weir_values_string(values, "on_lost");
	struct link_events events = {
		.arg = self,
		.connected = on_connected,
		.arrived = on_arrived,
		.sent = on_sent,
		.lost = on_lost,
	};
	char why[LINK_WHY];
	weir_status status;

	self->to = weir_values_string(values, "to");
	self->waits = !strcmp(lost, "wait");
	self->drops = !strcmp(lost, "drop");
	self->timeout = weir_values_int(values, "timeout");
	if (!remote_transport->load(why) || !address_named(self->to, self->address, why))
		return weir_context_fail(context, "%s", why);
	status = remote_open(context, &self->remote, &events, values, "remote_output");
	if (!status) {
		self->bundle.room = self->remote.transport->head_most(self->remote.link);
		self->bundle.head = malloc(self->bundle.room);
		status = self->bundle.head ? WEIR_OK : WEIR_E_NOMEM;
	}
	if (!status && getrandom(&self->session, sizeof self->session, 0) != sizeof self->session)
		status = weir_context_fail(context, "the system gives no random number");
	if (!status)
		status = weir_context_hold(context, 0, 0);
	self->holds = true;
	self->away_since = watch_now();
	self->pause = NS_FIRST_TRY;
	if (!status)
		watch_time(&self->remote.watch, 1); /* the first try is the first tick's */
	if (status) {
		weir_entity_watch(weir_context_entity(context), "remote_output", -1, 0);
		send_stop(context, state);
	}
	return status;
}

/* --- the receiver is away --- */

/* Without a receiver what comes is dropped. */
static bool drops_now(const struct send *self)
{
	return self->drops && (self->was_linked || self->stops);
}

/* While messages are dropped nothing waits for the receiver. */
static bool has_timeout(const struct send *self)
{
	return self->timeout >= 0 && !drops_now(self);
}

static weir_status check_timeout(weir_context *context, const struct send *self)
{
	int64_t away = watch_now() - self->away_since;

	if (!has_timeout(self) || away < self->timeout || !self->remote.why[0]) /* one try at least */
		return WEIR_OK;
	return weir_context_fail(context,
				 "no receiver at %s for %" PRId64 " ms (%s): start it, or see 'timeout'",
				 self->address, away / 1000000, self->remote.why);
}

/* Fires in so many ns, or when the timeout is over. */
static void set_timer(struct send *self, int64_t ns)
{
	int64_t left = self->timeout + self->away_since - watch_now() + 1000000;

	if (has_timeout(self) && left < ns)
		ns = left > 0 ? left : 1;
	watch_time(&self->remote.watch, ns);
}

static void plan_try(struct send *self)
{
	set_timer(self, self->pause);
	self->pause = self->pause * 2 < NS_LAST_TRY ? self->pause * 2 : NS_LAST_TRY;
	self->state = AWAY;
}

static weir_status try_to_link(weir_context *context, struct send *self)
{
	struct remote *remote = &self->remote;
	struct address address;
	weir_status status = check_timeout(context, self);

	if (status)
		return status;
	remote->gone = false;
	remote->used = true;
	if (!address_find(self->address, &address, remote->why) ||
	    !remote->transport->connect(remote->link, &address, remote->why)) {
		plan_try(self);
		return WEIR_OK;
	}
	self->credits = 0;
	self->early = false;
	self->greeted = false;
	self->state = GREETING;
	set_timer(self, NS_GREETING);
	return WEIR_OK;
}

/* Before the first welcome nothing is lost: the receiver may start later. */
static weir_status handle_loss(weir_context *context, struct send *self)
{
	struct remote *remote = &self->remote;
	bool was_linked = self->state == LINKED || self->state == ENDING;

	if (self->enough) {
		weir_context_drain(context, "the receiver at %s takes no more messages", self->to);
		self->state = OVER;
		return WEIR_OK;
	}
	if (was_linked && !self->waits && !self->drops)
		return weir_context_fail(context,
					 "the receiver at %s is lost after %" PRIu64
					 " messages, the last of which may not have come: %s",
					 self->to, self->sent, remote->why);
	remote_drop(remote);
	if (was_linked) {
		weir_context_log(context, WEIR_LOG_WARN, "the receiver at %s is lost: %s; it is tried again",
				 self->to, remote->why);
		self->away_since = watch_now();
		self->pause = NS_FIRST_TRY;
		self->credits = 0;
	}
	plan_try(self);
	return check_timeout(context, self);
}

static void tell_link(weir_context *context, struct send *self)
{
	if (self->was_linked || self->lost)
		weir_context_log(context, WEIR_LOG_WARN,
				 "the receiver at %s is there again, after %" PRId64 " ms: %" PRIu64
				 " messages were lost so far",
				 self->to, (watch_now() - self->away_since) / 1000000, self->lost);
	self->was_linked = true;
	self->away_since = 0;
	watch_time(&self->remote.watch, 0);
}

/* --- sending --- */

static void send_bundle(struct send *self)
{
	struct remote *remote = &self->remote;

	if (!self->bundle.bytes)
		return;
	remote->used = true;
	remote->transport->send(remote->link, self->bundle.head, self->bundle.bytes, NULL, 0, NULL);
	self->bundle.bytes = self->bundled = 0;
}

static weir_status send_alone(weir_context *context, struct send *self, weir_message *message,
			      const struct wire_data *data)
{
	struct remote *remote = &self->remote;
	struct span spans[LINK_SPANS];
	uint64_t bytes = 0;
	unsigned count;
	char why[LINK_WHY];
	size_t head =
		wire_write_message(message, data, self->bundle.room, self->bundle.head, spans, &count, why);

	if (!head)
		return weir_context_fail(context, "%s", why);
	if (link_has_device(spans, count) && !remote_takes_devices(remote))
		return weir_context_fail(
			context,
			"a tensor is on the device, and %s here cannot read it there: put a 'download' "
			"before it, or see docs/distributed.md",
			remote->transport->name);
	remote_find_wholes(context, remote, spans, count);
	for (unsigned i = 0; i < count; i++)
		bytes += spans[i].bytes;
	if (bytes > self->most)
		return weir_context_fail(context,
					 "a message of %" PRIu64
					 " bytes is larger than the receiver's places, %" PRIu64
					 ": raise 'max_message' of its remote_receive",
					 bytes, self->most);
	weir_message_ref(message);
	remote->used = true;
	if (remote->transport->send(remote->link, self->bundle.head, head, spans, count, message) !=
	    LINK_UNDER_WAY)
		weir_message_unref(message);
	return WEIR_OK;
}

/* Or bundles it: the tick sends what is bundled before it ends, so none waits for one that comes later. */
static weir_status send_message(weir_context *context, struct send *self, weir_message *message,
				const struct wire_data *data)
{
	if (self->bundled && self->bundled >= self->places / 4)
		send_bundle(self); /* the receiver goes on while more of them are written */
	if (!wire_bundle_add(&self->bundle, message, data)) {
		bool empty = !self->bundled;

		send_bundle(self);
		if (empty || !wire_bundle_add(&self->bundle, message, data))
			return send_alone(context, self, message, data);
	}
	self->bundled++;
	return WEIR_OK;
}

static weir_status take_message(weir_context *context, struct send *self, weir_message *message,
				struct wire_data *data)
{
	weir_status status = WEIR_OK;

	if (self->state == LINKED) { /* else it is dropped */
		data->number = self->sent;
		status = send_message(context, self, message, data);
		self->credits--;
	}
	if (!status)
		self->sent++;
	else
		remote_fail(&self->remote, "%s", weir_last_error());
	return status;
}

static weir_status take_messages(weir_context *context, struct send *self, size_t count)
{
	struct wire_data data = {
		.said = watch_now(),
		.devices = weir_context_backend(context) == WEIR_BACKEND_CUDA,
		.theirs = self->device,
		.most = self->most,
	};
	weir_status status = WEIR_OK;

	self->bundle.room = self->remote.transport->head_most(self->remote.link); /* an engine lessens it */
	for (size_t i = 0; i < count && !status; i++)
		status = take_message(context, self, weir_context_message(context, 0, i), &data);
	send_bundle(self);
	return status;
}

static void send_end(struct send *self)
{
	const struct wire end = {.kind = WIRE_END, .number = self->sent};

	remote_say(&self->remote, &end);
	self->state = ENDING;
}

/* Connected to none, that is, and nothing that a hello has told is to stay. */
static bool is_apart(const struct send *self)
{
	return self->state == AWAY || (self->state == GREETING && !self->greeted);
}

/*
 * Of a receiver that was away at the end, if what comes meanwhile is dropped, nothing is waited for; in a
 * drain no try to connect is, either.
 */
static bool is_over(weir_context *context, const struct send *self)
{
	if (self->state == OVER)
		return true;
	if (!drops_now(self) || !self->ends || !(self->stops ? is_apart(self) : self->state == AWAY))
		return false;
	weir_context_log(context, WEIR_LOG_WARN, "the input has ended, and the receiver at %s is away",
			 self->to);
	return true;
}

static void say_hello(struct send *self)
{
	const struct wire hello = {
		.kind = WIRE_HELLO,
		.session = self->session,
		.number = self->sent,
		.times.said = watch_now(),
	};

	remote_say(&self->remote, &hello);
	self->greeted = true;
}

/* What the state allows, and the link has told. */
static weir_status act(weir_context *context, struct send *self, bool timed)
{
	struct remote *remote = &self->remote;
	weir_status status = WEIR_OK;

	if (remote->failed)
		return weir_context_fail(context, "%s", remote->failure);
	if (self->connected && self->state == GREETING)
		say_hello(self);
	self->connected = false;
	if (self->state == LINKED && self->away_since)
		tell_link(context, self);
	if (self->state == GREETING && timed)
		remote_lose(remote, "it does not answer as a remote_receive");
	if (remote->gone && self->state != AWAY && self->state != OVER)
		status = handle_loss(context, self);
	else if (self->state == AWAY && timed)
		status = try_to_link(context, self);
	if (!status && self->ends && self->state == LINKED)
		send_end(self);
	return status;
}

/* The next tick takes as many messages as there are credits; what is dropped needs none. */
static weir_status set_hold(weir_context *context, struct send *self)
{
	bool linked = self->state == LINKED;
	bool takes = !self->ends && (linked ? self->credits > 0 : drops_now(self) && is_apart(self));
	weir_status status =
		takes ? weir_context_limit(context, 0, linked ? (size_t)self->credits : SIZE_MAX) : WEIR_OK;

	if (status || takes != self->holds)
		return status;
	self->holds = !takes;
	return weir_context_hold(context, 0, takes ? WEIR_HOLD_END : 0);
}

/* What the next tick is for: something to do, whatever comes, or what the state waits for. */
static weir_told next_tick(const struct send *self)
{
	const struct remote *remote = &self->remote;

	if (!remote->armed || remote->failed || self->connected || (remote->gone && self->state != AWAY) ||
	    self->state == OVER || (self->state == LINKED && self->away_since))
		return WEIR_TOLD_READY;
	return !self->stops && has_no_receiver(self) ? WEIR_TOLD_EVENT_WAITING : WEIR_TOLD_WAIT;
}

/* In its first tick of a drain. */
static void note_drain(weir_context *context, struct send *self)
{
	if (self->stops || !weir_context_stopping(context))
		return;
	self->stops = true;
	if (!self->drops && has_no_receiver(self))
		weir_context_log(
			context, WEIR_LOG_WARN,
			"the run drains, and there is no receiver at %s (%s): the drain waits for it",
			self->to, self->remote.why[0] ? self->remote.why : "it does not answer");
}

/* The receiver waits for the end of the connection, and this run may go on. */
static weir_status end_link(weir_context *context, struct send *self)
{
	struct remote *remote = &self->remote;
	weir_status status;

	self->closes = true;
	if (remote->transport->end && !remote->transport->end(remote->link)) {
		status = remote_tell(context, remote, WEIR_TOLD_WAIT);
		return status ? status : set_hold(context, self);
	}
	remote->transport->close(remote->link, 0);
	remote->link = NULL;
	return weir_context_finish(context);
}

static weir_status send_compute(weir_context *context, void *state)
{
	struct send *self = state;
	struct remote *remote = &self->remote;
	size_t count = weir_context_count(context, 0);
	bool timed = watch_timed(&remote->watch);
	weir_status status = WEIR_OK;

	if (self->closes)
		return end_link(context, self);
	self->ends |= weir_context_ended(context, 0);
	note_drain(context, self);
	if (count && remote->spin)
		remote_note(remote);
	if (count)
		status = take_messages(context, self, count);
	if (count && !status && self->state == LINKED && self->credits && !self->ends && !timed &&
	    remote_may_put_off(remote)) {
		status = remote_tell(context, remote, WEIR_TOLD_READY); /* the next message, or none */
		return status ? status : set_hold(context, self);
	}
	remote->used = true;
	for (int round = 0; !status && remote->used && round < 2; round++) { /* R4 */
		remote_progress(remote);
		status = act(context, self, timed && !round);
	}
	if (remote->used)
		remote_progress(remote);
	if (status)
		return status;
	if (is_over(context, self))
		return end_link(context, self);
	status = remote_tell(context, remote, next_tick(self));
	return status ? status : set_hold(context, self);
}

const weir_operator remote_send_operator = {
	.size = sizeof(weir_operator),
	.name = "remote_send",
	.help = "sends messages to a remote_receive of another process or machine; sleeps while that has no "
		"room",
	.flags = WEIR_OPERATOR_EFFECTS,
	.state_size = sizeof(struct send),
	.parameters = parameters,
	.inputs = inputs,
	.start = send_start,
	.compute = send_compute,
	.stop = send_stop,
	.conditions = conditions,
	.describe = send_describe,
};
