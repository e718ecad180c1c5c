/* The operators of the plugin, and what they share. */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <weir.h>

#include "remote/address.h"
#include "remote/clocks.h"
#include "remote/link.h"
#include "remote/watch.h"
#include "remote/way.h"
#include "remote/wire.h"

/* How long a side that says its last word waits for the other to read it, ns. */
#define REMOTE_PATIENCE INT64_C(1000000000)

/* How many ticks may use the link before one progresses it. */
enum { REMOTE_BURST = 16 };

extern const weir_operator remote_send_operator, remote_receive_operator;
extern const weir_condition remote_output_condition, remote_input_condition;
/* What carries their messages: the plugin's file has it, or a test, which links the rest alone. */
extern const struct transport *const remote_transport;

/* A parameter of both. */
#define REMOTE_KEEPALIVE                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_parameter), .name = "keepalive", .type = WEIR_TYPE_DURATION,             \
		.fallback = "\"10s\"", .max = INT64_MAX,                                                     \
		.help = "time without a sign of life after which the other side counts as lost, at least "   \
			"100 ms; 0: never",                                                                  \
	}

#define REMOTE_SPIN                                                                                          \
	{                                                                                                    \
		.size = sizeof(weir_parameter), .name = "spin", .type = WEIR_TYPE_DURATION,                  \
		.fallback = "\"0s\"", .max = INT64_C(1000000000),                                            \
		.help = "after something came it is polled for so long, and no thread sleeps: less "         \
			"latency, for a core; 0: for up to 100 us, while that pays",                         \
	}

/* What both sides have: a link, the descriptor that they sleep on, and the first thing that went wrong. */
struct remote {
	const struct transport *transport;
	struct link *link;
	struct watch watch;
	const char *condition; /* of the entity */
	weir_told told;        /* to it */
	bool failed;
	char failure[LINK_WHY];
	bool used;          /* the link was, since it was progressed: it is to be armed again (R4) */
	bool armed;         /* it was then, too: the entity may sleep */
	unsigned burst;     /* ticks since then */
	bool noted;         /* something came, since it was progressed */
	int64_t spin, came; /* ns: how long it polls after something came, by the user; when that was */
	int64_t awake;      /* and does now */
	unsigned misses;    /* in a row: nothing came while it polled */
	unsigned skips;     /* so often something comes before it polls again */
	bool gone;          /* the connection is lost, or the other side said goodbye */
	char why[LINK_WHY + WIRE_TEXT];
};

/*
 * For `describe`: refuses what no machine could start. place: the parameter that says where the two meet.
 */
weir_status remote_check(const weir_values *values, const char *place, weir_ports *ports);
/*
 * Opens the link and the descriptor, and lets the condition wait for it. Sets the events' keepalive from the
 * parameter.
 */
weir_status remote_open(weir_context *context, struct remote *remote, struct link_events *events,
			const weir_values *values, const char *condition);
/*
 * What the entity waits for: READY, a tick comes at once (no descriptor is asked for that); EVENT_WAITING,
 * what the link brings, or room behind a receiver, or, at a sender, a drain; WAIT, the link alone.
 */
weir_status remote_tell(weir_context *context, struct remote *remote, weir_told told);
/* Ends both. bye: the last word; NULL: none. patience: how long it waits for the other side to close, ns. */
void remote_close(struct remote *remote, const struct wire *bye, int64_t patience);
/* Something came: from now on it polls, as long as `spin` says, or as that pays (R4). */
void remote_note(struct remote *remote);
/* Progresses the link, and arms it unless it polls. */
void remote_progress(struct remote *remote);
/* Whether this tick may leave that to a later one (R4). */
bool remote_may_put_off(struct remote *remote);
/* In stop: what is told to the other side of an end that is not the graph's. */
void remote_say_end(const weir_context *context, const struct remote *remote, char text[WIRE_TEXT]);
/* Whether messages may have memory of a device. */
bool remote_takes_devices(const struct remote *remote);
/* Finds of each span on a device the allocation that it is in, if the connection uses that. */
void remote_find_wholes(const weir_context *context, const struct remote *remote, struct span *spans,
			unsigned count);
/* Sends a head without a payload. A broken connection is told by the link. */
void remote_say(struct remote *remote, const struct wire *wire);
/* Ends the connection; the run fails if there can be no other one. */
void remote_drop(struct remote *remote);
/*
 * Puts what the side knows of its connection into the statistics of the run, for `weir report`:
 * {"weir_remote": {...}} with the place (`to`, `listen`), the sessions of both sides, and `more`, members of
 * JSON.
 */
void remote_record(weir_context *context, const char *key, const char *place, uint64_t session, uint64_t peer,
		   const char *more);
/* Keeps the first failure. */
void remote_fail(struct remote *remote, const char *format, ...) WEIR_PRINTF(2, 3);
/* Notes that the other side is gone, and why, unless it was noted. */
void remote_lose(struct remote *remote, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
