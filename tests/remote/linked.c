/*
 * remote_send and remote_receive over a link that a seed decides: it brings messages in any order, reads
 * payloads late, and is cut. Both are in one graph, whose sink knows what must come: numbers that only grow,
 * and as many as were sent, less those that both sides count as lost.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "any_link.h"

enum { COUNT = 200, SEEDS = 96, CUTS = 3 };

/* --- the link --- */

/* A message under way. Its payload is read when it arrives, so it must stay until then. */
struct carried {
	struct carried *next;
	size_t head_bytes, bytes;
	struct span span;
	void *cookie;
	uint8_t head[WIRE_SMALL];
};

struct link {
	struct link_events events;
	struct link *other;     /* while connected */
	struct carried *coming; /* from the other */
	void *sent[COUNT + 1];  /* cookies that the other is done with */
	unsigned sent_count;
	int woken;
	bool accepts, connects, failed, told;
};

static pthread_mutex_t lock; /* recursive: of all below */
static struct link *listener;
static uint32_t seed;
static unsigned cuts;

static unsigned draw(unsigned below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 12) % below;
}

static void wake(struct link *link)
{
	uint64_t one = 1;

	assert_int_equal(write(link->woken, &one, sizeof one), sizeof one);
}

static struct link *link_open(const struct link_events *events, int set, char why[LINK_WHY])
{
	struct link *link = calloc(1, sizeof *link);

	(void)why;
	link->events = *events;
	link->woken = any_link_descriptor(set, 0);
	return link;
}

static bool link_listen(struct link *link, const struct address *address, const char *peers,
			char why[LINK_WHY])
{
	(void)address, (void)peers, (void)why;
	listener = link;
	return true;
}

static bool link_connect(struct link *link, const struct address *address, char why[LINK_WHY])
{
	(void)address, (void)why;
	pthread_mutex_lock(&lock);
	link->failed = link->told = false;
	if (listener && !listener->other && !listener->failed) {
		link->other = listener;
		listener->other = link;
		link->connects = listener->accepts = true;
		listener->told = false;
		wake(listener);
	} else {
		link->failed = true;
	}
	wake(link);
	pthread_mutex_unlock(&lock);
	return true;
}

static void give_back(struct link *link, void *cookie)
{
	if (cookie)
		link->sent[link->sent_count++] = cookie;
}

/* What is under way in either direction goes nowhere. The blocks are given back when their side drops the
 * link. */
static void cut(struct link *link)
{
	struct link *sides[] = {link, link->other};

	for (int i = 0; i < 2; i++) {
		struct carried *carried;

		while ((carried = sides[i]->coming)) {
			sides[i]->coming = carried->next;
			give_back(sides[!i], carried->cookie);
			free(carried);
		}
	}
	for (int i = 0; i < 2; i++) {
		sides[i]->other = NULL;
		sides[i]->failed = true;
		wake(sides[i]);
	}
}

static void deliver(struct link *link, struct carried *carried)
{
	struct span spans[LINK_SPANS];
	void *cookie = NULL;
	int count = link->events.arrived(link->events.arg, carried->head, carried->head_bytes, carried->bytes,
					 spans, &cookie);

	if (count > 0)
		memcpy(spans[0].data, carried->span.data, carried->bytes);
	if (count >= 0)
		link->events.filled(link->events.arg, cookie, true);
	give_back(link->other, carried->cookie);
	wake(link->other);
	free(carried);
}

/* Any of what comes; or nothing yet, and it looks again. */
static bool bring(struct link *link)
{
	struct carried **at = &link->coming, *carried;
	unsigned length = 0;

	for (carried = link->coming; carried; carried = carried->next)
		length++;
	if (!length)
		return false;
	if (!draw(4)) {
		wake(link);
		return false;
	}
	for (unsigned skip = draw(length); skip; skip--)
		at = &(*at)->next;
	carried = *at;
	*at = carried->next;
	deliver(link, carried);
	return true;
}

static void link_progress(struct link *link)
{
	uint64_t times;

	pthread_mutex_lock(&lock);
	if (read(link->woken, &times, sizeof times) < 0)
		assert_int_equal(errno, EAGAIN);
	while (link->sent_count)
		link->events.sent(link->events.arg, link->sent[--link->sent_count]);
	if (link->accepts)
		link->events.accepted(link->events.arg, "the sender");
	if (link->connects)
		link->events.connected(link->events.arg);
	link->accepts = link->connects = false;
	while (bring(link))
		;
	if (link->other && cuts && !draw(60)) {
		cuts--;
		cut(link);
	}
	if (link->failed && !link->told) {
		link->told = true;
		link->events.lost(link->events.arg, "it is cut");
	}
	pthread_mutex_unlock(&lock);
}

static enum link_sent link_send(struct link *link, const void *head, size_t head_bytes,
				const struct span *spans, unsigned count, void *cookie)
{
	struct carried *carried;

	if (!link->other)
		return LINK_BROKEN;
	carried = calloc(1, sizeof *carried);
	memcpy(carried->head, head, head_bytes);
	carried->head_bytes = head_bytes;
	if (count)
		carried->span = spans[0];
	carried->bytes = count ? spans[0].bytes : 0;
	carried->cookie = cookie;
	pthread_mutex_lock(&lock);
	if (carried->head[0] == WIRE_DONE)
		cuts = 0; /* an answer that is lost is the one thing that the sender cannot know (R6) */
	carried->next = link->other->coming;
	link->other->coming = carried;
	wake(link->other);
	pthread_mutex_unlock(&lock);
	return cookie ? LINK_UNDER_WAY : LINK_DONE;
}

static void link_deafen(struct link *link)
{
	pthread_mutex_lock(&lock);
	if (listener == link)
		listener = NULL;
	pthread_mutex_unlock(&lock);
}

static bool link_drop(struct link *link)
{
	pthread_mutex_lock(&lock);
	if (link->other)
		cut(link);
	while (link->sent_count)
		link->events.sent(link->events.arg, link->sent[--link->sent_count]);
	link->failed = link->told = link->accepts = link->connects = false;
	pthread_mutex_unlock(&lock);
	return true;
}

static void link_close(struct link *link, int64_t patience)
{
	(void)patience;
	if (!link)
		return;
	link_drop(link);
	if (listener == link)
		listener = NULL;
	close(link->woken);
	free(link);
}

static const struct transport seeded = {
	.name = "seeded",
	.load = any_link_load,
	.open = link_open,
	.head_most = any_link_head_most,
	.listen = link_listen,
	.deafen = link_deafen,
	.connect = link_connect,
	.progress = link_progress,
	.send = link_send,
	.drop = link_drop,
	.close = link_close,
};
const struct transport *const remote_transport = &seeded;

/* --- what is sent, and what must come --- */

static atomic_uint came, wrong;

static weir_status number_compute(weir_context *context, void *state)
{
	uint64_t number = weir_context_tick(context);
	weir_message *message;
	weir_status status = weir_message_create_bytes(weir_context_graph(context), 64, &message);

	(void)state;
	if (status)
		return status;
	memset(weir_message_data(message), (int)number, 64);
	weir_message_set_stamp(message, (weir_stamp){1, number});
	status = weir_context_emit(context, 0, message);
	return status || number + 1 < COUNT ? status : weir_context_finish(context);
}

static weir_status look_compute(weir_context *context, void *state)
{
	uint64_t *least = state;
	const weir_message *message = weir_context_message(context, 0, 0);
	uint64_t tag = weir_message_stamp(message).tag;
	const uint8_t *data = weir_message_data(message);

	came++;
	wrong += tag < *least || tag >= COUNT || data[0] != (uint8_t)tag || data[63] != (uint8_t)tag;
	*least = tag + 1;
	return WEIR_OK;
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out", .help = "numbers"},
				    {.name = NULL}};
static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in", .help = "numbers"},
				   {.name = NULL}};
static const weir_operator number = {.size = sizeof number,
				     .name = "number",
				     .help = "numbers",
				     .outputs = outputs,
				     .compute = number_compute};
static const weir_operator look = {.size = sizeof look,
				   .name = "look",
				   .help = "looks at numbers",
				   .state_size = sizeof(uint64_t),
				   .inputs = inputs,
				   .compute = look_compute};

/* Of the log: how many each side counts as lost. */
static atomic_uint lost[2], problems;

static void hear(weir_log_level level, int64_t at, const char *line, void *arg)
{
	const char *said;
	unsigned count;

	(void)at, (void)arg;
	if (!strncmp(line, "receive: ", 9) && (said = strstr(line, "is there: ")) &&
	    sscanf(said, "is there: %u messages", &count) == 1)
		lost[1] = count;
	else if (!strncmp(line, "send: ", 6) &&
		 sscanf(line, "send: %u of %*u messages were lost", &count) == 1)
		lost[0] = count;
	problems += level == WEIR_LOG_ERROR || strstr(line, "is no weir"); /* what a right one never sends */
}

#define BEAT ", \"conditions\": [{\"type\": \"periodic\", \"period\": \"%s\"}%s]"
/*
 * A slow source leaves credits unused when the link is cut, a slow sink messages that wait to be emitted when
 * there is a new one: of the 20 ms that they take, the first try to connect comes after 10.
 */
enum pace { FAST, SLOW_SOURCE, SLOW_SINK, PACES };

static void run(weir_registry *registry, unsigned credits, enum pace pace)
{
	static const char format[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"number\", \"operator\": \"number\"" BEAT "},"
		" {\"name\": \"send\", \"operator\": \"remote_send\", \"parameters\": {\"to\": "
		"\"127.0.0.1:1\", \"on_lost\": \"wait\"}},"
		" {\"name\": \"receive\", \"operator\": \"remote_receive\", \"parameters\": {\"listen\": "
		"\"127.0.0.1:1\", \"on_lost\": "
		"\"wait\", \"credits\": %u}},"
		" {\"name\": \"look\", \"operator\": \"look\"" BEAT "}],"
		" \"connections\": [[\"number.out\", \"send.in\"], [\"receive.out\", \"look.in\"]]}";
	static const char message[] = ", {\"type\": \"message_available\", \"port\": \"in\"}";
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host", .workers = 1};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	char json[1000];

	snprintf(json, sizeof json, format, pace == SLOW_SOURCE ? "200us" : "1ns", "", credits,
		 pace == SLOW_SINK ? "1ms" : "1ns", message);
	if (weir_description_parse(json, strlen(json), NULL, NULL, &description) ||
	    weir_graph_create(registry, description, &graph) ||
	    weir_scheduler_create(graph, &options, &scheduler) || weir_scheduler_start(scheduler))
		fail_msg("%s", weir_last_error());
	if (weir_scheduler_wait(scheduler, INT64_C(30000000000), &outcome))
		fail_msg("%s", outcome.text ? outcome.text : "it does not end");
	assert_int_equal(outcome.held, 0);
	weir_description_destroy(description);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK); /* no message is left */
}

static void r01_r02_r03_r04_r05_r06_e05_what_is_lost_is_counted_by_both(void **unused)
{
	weir_registry *registry;
	unsigned joined = 0;

	(void)unused;
	assert_int_equal(any_link_registry(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &number), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &look), WEIR_OK);
	for (unsigned n = 0; n < SEEDS; n++) {
		bool whole = n % (CUTS + 1) == 0;
		enum pace pace;

		seed = n * 7919 + 1;
		cuts = n % (CUTS + 1);
		came = wrong = lost[0] = lost[1] = 0;
		pace = (enum pace)(n / (CUTS + 1) % PACES);
		run(registry, (pace == SLOW_SINK ? 20 : 1) + n % 5, pace);
		if (wrong || came + lost[0] != COUNT || lost[0] != lost[1] || (whole && lost[0]))
			fail_msg("seed %u: %u came, %u of them wrong; lost: %u by the sender, %u by the "
				 "receiver",
				 n, came, wrong, lost[0], lost[1]);
		joined += lost[0] > 0;
	}
	assert_int_equal(problems, 0);
	assert_true(joined > SEEDS / 10); /* cuts have lost some */
	weir_registry_destroy(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r01_r02_r03_r04_r05_r06_e05_what_is_lost_is_counted_by_both),
	};
	pthread_mutexattr_t recursive;

	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &recursive);
	weir_log_set(hear, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
