#include "remote/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The system's pauses are shorter. */
#define NS_KEEPALIVE INT64_C(100000000)
#define NS_AWAKE     INT64_C(100000) /* that it polls without `spin` */
#define NS_YIELD     INT64_C(20000)  /* after which the other side may be what waits for this core */
enum { MISSES = 6 };

weir_status remote_check(const weir_values *values, const char *place, weir_ports *ports)
{
	int64_t keepalive = weir_values_int(values, "keepalive");
	char why[LINK_WHY];

	if (!address_ok(weir_values_string(values, place), why))
		return weir_ports_fail(ports, "'%s': %s", place, why);
	if (keepalive && keepalive < NS_KEEPALIVE)
		return weir_ports_fail(ports, "'keepalive' is shorter than 100 ms: a longer one, or 0");
	return WEIR_OK;
}

weir_status remote_open(weir_context *context, struct remote *remote, struct link_events *events,
			const weir_values *values, const char *condition)
{
	char why[LINK_WHY];

	events->keepalive = weir_values_int(values, "keepalive");
	remote->spin = weir_values_int(values, "spin");
	remote->transport = remote_transport;
	remote->condition = condition;
	if (!watch_open(&remote->watch))
		return weir_context_fail(context, "no descriptor to sleep on: %s", strerror(errno));
	remote->link = remote->transport->open(events, remote->watch.set, why);
	if (!remote->link)
		return weir_context_fail(context, "%s", why);
	return weir_entity_watch(weir_context_entity(context), condition, remote->watch.set, WEIR_WATCH_READ);
}

weir_status remote_tell(weir_context *context, struct remote *remote, weir_told told)
{
	if (remote->told == told)
		return WEIR_OK;
	remote->told = told;
	return weir_entity_tell(weir_context_entity(context), remote->condition, told);
}

void remote_close(struct remote *remote, const struct wire *bye, int64_t patience)
{
	if (bye)
		remote_say(remote, bye);
	if (remote->watch.set) /* what the link waits for is its own */
		watch_time(&remote->watch, 0);
	if (remote->transport)
		remote->transport->close(remote->link, patience);
	remote->link = NULL;
	watch_close(&remote->watch);
}

void remote_note(struct remote *remote)
{
	remote->noted = true;
}

/*
 * To sleep and to be woken takes longer than most of what follows something that came, so it polls for a
 * while, unless that was for nothing the last times: then it tries that with each second, fourth, ... of what
 * comes.
 */
static void choose_awake(struct remote *remote, int64_t now)
{
	if (!remote->noted) {
		if (!remote->armed && now - remote->came >= remote->awake) {
			remote->misses += remote->misses < MISSES;
			remote->skips = 1U << remote->misses;
		}
		return;
	}
	remote->noted = false;
	remote->came = now;
	if (!remote->armed)
		remote->misses = remote->skips = 0;
	else if (remote->skips)
		remote->skips--;
	remote->awake = remote->spin ? remote->spin : remote->skips ? 0 : NS_AWAKE;
}

void remote_progress(struct remote *remote)
{
	int64_t now = remote->transport->poll ? watch_now() : 0;

	choose_awake(remote, now);
	remote->armed = !remote->transport->poll || now - remote->came >= remote->awake;
	if (remote->armed)
		remote->transport->progress(remote->link);
	else
		remote->transport->poll(remote->link);
	if (!remote->armed && now - remote->came >= NS_YIELD)
		sched_yield();
	remote->used = false;
	remote->burst = 0;
}

bool remote_may_put_off(struct remote *remote)
{
	return ++remote->burst < REMOTE_BURST;
}

void remote_say_end(const weir_context *context, const struct remote *remote, char text[WIRE_TEXT])
{
	const char *failure = weir_context_failure(context);

	if (remote->failed)
		snprintf(text, WIRE_TEXT, "%s", remote->failure);
	else if (failure)
		snprintf(text, WIRE_TEXT, "its run has failed: %s", failure);
	else
		snprintf(text, WIRE_TEXT, "its run was stopped");
}

bool remote_takes_devices(const struct remote *remote)
{
	return remote->transport->takes_devices && remote->transport->takes_devices(remote->link);
}

void remote_find_wholes(const weir_context *context, const struct remote *remote, struct span *spans,
			unsigned count)
{
	if (!remote->transport->uses_wholes || !remote->transport->uses_wholes(remote->link))
		return;
	for (unsigned i = 0; i < count; i++) {
		weir_allocation found = {.size = sizeof found};

		if (spans[i].device && weir_context_allocation(context, spans[i].data, &found))
			spans[i].whole = (struct whole){found.id, found.data, found.bytes};
	}
}

void remote_say(struct remote *remote, const struct wire *wire)
{
	uint8_t head[WIRE_SMALL];
	size_t bytes = wire_write(wire, head);

	remote->transport->send(remote->link, head, bytes, NULL, 0, NULL);
	remote->used = true;
}

void remote_drop(struct remote *remote)
{
	remote->used = true;
	if (!remote->transport->drop(remote->link))
		remote_fail(remote, "%s could not end a connection, and cannot start again",
			    remote->transport->name);
}

/* A string of JSON without its quotes; what is longer is cut. */
static void quote(const char *text, size_t room, char *out)
{
	size_t at = 0;

	for (; *text && at + 7 < room; text++)
		if (*text == '"' || *text == '\\')
			at += (size_t)snprintf(out + at, room - at, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			at += (size_t)snprintf(out + at, room - at, "\\u%04x", (unsigned char)*text);
		else
			out[at++] = *text;
	out[at] = 0;
}

void remote_record(weir_context *context, const char *key, const char *place, uint64_t session, uint64_t peer,
		   const char *more)
{
	char quoted[2 * ADDRESS_TEXT], text[4096];

	quote(place, sizeof quoted, quoted);
	snprintf(text, sizeof text,
		 "{\"weir_remote\":{\"%s\":\"%s\",\"session\":\"%016" PRIx64 "\",\"peer\":\"%016" PRIx64
		 "\",%s}}",
		 key, quoted, session, peer, more);
	if (weir_context_set_record(context, text))
		weir_context_log(context, WEIR_LOG_WARN, "the statistics lack the connection: %s",
				 weir_last_error());
}

void remote_fail(struct remote *remote, const char *format, ...)
{
	va_list list;

	if (remote->failed)
		return;
	remote->failed = true;
	va_start(list, format);
	vsnprintf(remote->failure, sizeof remote->failure, format, list);
	va_end(list);
}

void remote_lose(struct remote *remote, const char *format, ...)
{
	va_list list;

	if (remote->gone)
		return;
	remote->gone = true;
	va_start(list, format);
	vsnprintf(remote->why, sizeof remote->why, format, list);
	va_end(list);
}
