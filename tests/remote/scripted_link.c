/* The link that follows a script, and a run of one side over it. */
#include "scripted_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static step *const *script;
weir_graph *graph;
struct wire said;
uint64_t hello, first;
unsigned drops, data, done, largest, asked_to_end, lost;
bool end_awake;
static bool armed; /* since the last message */
atomic_uint made;
atomic_bool enough;
char told[500];

static struct link *link_open(const struct link_events *events, int set, char why[LINK_WHY])
{
	struct link *link = calloc(1, sizeof *link);

	(void)why;
	link->events = *events;
	link->woken = any_link_descriptor(set, 1);
	return link;
}

static bool link_listen(struct link *link, const struct address *address, const char *peers,
			char why[LINK_WHY])
{
	(void)link, (void)address, (void)peers, (void)why;
	return true;
}

static bool link_connect(struct link *link, const struct address *address, char why[LINK_WHY])
{
	(void)address, (void)why;
	link->connecting = true;
	link->lost = false;
	return true;
}

static void link_poll(struct link *link)
{
	uint64_t times;

	if (*script && (*script)(link))
		script++;
	if (!*script || !script[1])
		(void)!read(link->woken, &times, sizeof times);
}

static void link_progress(struct link *link)
{
	armed = true;
	link_poll(link);
}

static enum link_sent link_send(struct link *link, const void *head, size_t head_bytes,
				const struct span *spans, unsigned count, void *cookie)
{
	struct wire_record parts[WEIR_PARTS_MAX];
	char why[LINK_WHY];

	(void)cookie;
	if (!link->connected)
		return LINK_BROKEN;
	assert_true(wire_read(head, head_bytes, count ? spans[0].bytes : 0, 1000, parts, &said, why));
	if (said.kind == WIRE_HELLO) {
		hello = said.number;
		first = UINT64_MAX;
	}
	if (said.kind == WIRE_DATA || said.kind == WIRE_BUNDLE) {
		first = first == UINT64_MAX ? said.number : first;
		data += any_link_count(&said);
		largest = any_link_count(&said) > largest ? any_link_count(&said) : largest;
		armed = false;
	}
	if (said.kind == WIRE_END)
		end_awake = !armed;
	done += said.kind == WIRE_DONE;
	return LINK_DONE;
}

static void link_deafen(struct link *link)
{
	(void)link;
}

static bool link_drop(struct link *link)
{
	link->connecting = link->connected = link->lost = false;
	drops++;
	return true;
}

static bool link_end(struct link *link)
{
	if (asked_to_end++ == 3)
		return true;
	(void)!write(link->woken, &(uint64_t){1}, sizeof(uint64_t));
	return false; /* as an engine that waits for another system */
}

static void link_close(struct link *link, int64_t patience)
{
	(void)patience;
	if (!link)
		return;
	close(link->woken);
	free(link);
}

static const struct transport scripted = {
	.name = "scripted",
	.load = any_link_load,
	.open = link_open,
	.head_most = any_link_head_most,
	.listen = link_listen,
	.deafen = link_deafen,
	.connect = link_connect,
	.progress = link_progress,
	.poll = link_poll,
	.send = link_send,
	.drop = link_drop,
	.end = link_end,
	.close = link_close,
};
const struct transport *const remote_transport = &scripted;

bool scripted_arrives(struct link *link, const void *head, size_t head_bytes, size_t bytes)
{
	struct span spans[LINK_SPANS];
	void *cookie = NULL;

	if (!link->connected || link->lost)
		return false;
	if (link->events.arrived(link->events.arg, head, head_bytes, bytes, spans, &cookie) >= 0)
		link->events.filled(link->events.arg, cookie, true);
	return true;
}

bool scripted_says(struct link *link, struct wire wire)
{
	uint8_t head[WIRE_SMALL];

	return scripted_arrives(link, head, wire_write(&wire, head), 0);
}

/* --- runs --- */

static weir_status number_compute(weir_context *context, void *state)
{
	weir_message *message;
	weir_status status = weir_message_create_bytes(weir_context_graph(context), 10, &message);

	(void)state;
	made++;
	if (!status)
		status = weir_context_emit(context, 0, message);
	return status || !enough ? status : weir_context_finish(context);
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator number = {
	.size = sizeof number, .name = "number", .outputs = outputs, .compute = number_compute};

static void hear(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)level, (void)at, (void)arg;
	snprintf(told, sizeof told, "%s", line);
	sscanf(line, "send: %u of %*u messages were lost", &lost);
}

void scripted_run(const char *json, step *const *steps)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host", .workers = 1};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_registry *registry;
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;

	weir_log_set(hear, NULL);
	script = steps;
	said = (struct wire){.kind = WIRE_BYE};
	drops = data = done = largest = lost = asked_to_end = 0;
	made = 0;
	enough = false;
	assert_false(any_link_registry(&registry));
	assert_false(weir_registry_add_operator(registry, &number));
	if (weir_description_parse(json, strlen(json), NULL, NULL, &description) ||
	    weir_graph_create(registry, description, &graph) ||
	    weir_scheduler_create(graph, &options, &scheduler) || weir_scheduler_start(scheduler))
		fail_msg("%s", weir_last_error());
	if (weir_scheduler_wait(scheduler, INT64_C(60000000000), &outcome))
		fail_msg("%s", outcome.text ? outcome.text : "it does not end");
	assert_null(*script);
	weir_description_destroy(description);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK); /* no message is left */
	weir_registry_destroy(registry);
}
