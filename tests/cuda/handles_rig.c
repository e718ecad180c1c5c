/* The graphs of handles.c: built, opened, run to their end within a time limit. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "handles.h"

/* Small pools, since graphs are made often. */
const char handles_three[] =
	"{\"weir\": 1, \"name\": \"handles\","
	" \"scheduler\": {\"device_memory\": \"8MiB\", \"host_memory\": \"8MiB\"},"
	" \"entities\": ["
	"{\"name\": \"source\", \"operator\": \"fill\","
	" \"conditions\": [{\"type\": \"count\", \"count\": 1}]},"
	"{\"name\": \"process\", \"operator\": \"triple\", \"ports\": {\"in\": {\"capacity\": 4}}},"
	"{\"name\": \"sink\", \"operator\": \"compare\","
	" \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}],"
	" \"connections\": [[\"source.out\", \"process.in\"], [\"process.out\", \"sink.in\"]]}";

static bool keep(struct handles_rig *rig, weir_status status)
{
	if (!rig->status && status) {
		rig->status = status;
		snprintf(rig->why, sizeof rig->why, "%s", weir_last_error());
	}
	return !rig->status;
}

void handles_begin(struct handles_rig *rig, const char *json)
{
	*rig = (struct handles_rig){.outcome = {.size = sizeof rig->outcome}};
	keep(rig, weir_registry_create(&rig->registry));
	if (!rig->status)
		keep(rig, handles_add(rig->registry));
	if (!rig->status)
		keep(rig, json ? weir_description_parse(json, strlen(json), NULL, NULL, &rig->description)
			       : weir_description_create(&rig->description));
	if (json == handles_three)
		handles_put(rig, "/entities/0/conditions/0/count", "%lld",
			    (long long)handles_settings.frames);
}

void handles_put(struct handles_rig *rig, const char *pointer, const char *format, ...)
{
	char json[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(json, sizeof json, format, arguments);
	va_end(arguments);
	if (!rig->status)
		keep(rig, weir_description_put(rig->description, pointer, json));
}

bool handles_open(struct handles_rig *rig)
{
	const weir_scheduler_options options = {
		.size = sizeof options,
		.workers = rig->workers ? rig->workers : 4,
		.backend = handles_settings.backend,
		.signal = handles_settings.signal,
		.worker_spin_ns = rig->worker_spin_ns,
	};

	if (!rig->status)
		keep(rig, weir_graph_create(rig->registry, rig->description, &rig->graph));
	if (!rig->status)
		keep(rig, weir_scheduler_create(rig->graph, &options, &rig->scheduler));
	return !rig->status;
}

bool handles_start(struct handles_rig *rig)
{
	return !rig->status && keep(rig, weir_scheduler_start(rig->scheduler));
}

static void tell_why(const weir_unmet *unmet, void *arg)
{
	(void)arg;
	printf("  %s: %s: %s (%s)\n", unmet->entity, unmet->condition, unmet->verdict,
	       unmet->detail ? unmet->detail : "");
}

/* A compute that returned WEIR_E_TIMEOUT is not a run that hangs. */
bool handles_wait(struct handles_rig *rig, int64_t ns)
{
	weir_status status;

	if (rig->status)
		return false;
	status = weir_scheduler_wait(rig->scheduler, ns, &rig->outcome);
	rig->hung = weir_scheduler_running(rig->scheduler);
	if (rig->hung) {
		weir_scheduler_explain(rig->scheduler, tell_why, NULL);
		weir_scheduler_stop(rig->scheduler, 0);
		weir_scheduler_wait(rig->scheduler, 5 * SECOND, &rig->outcome);
	}
	if (status) {
		rig->status = status;
		snprintf(rig->why, sizeof rig->why, "%s%s", rig->hung ? "it did not end: " : "",
			 rig->outcome.text ? rig->outcome.text : weir_last_error());
	}
	return !rig->status;
}

uint64_t handles_ticks(const struct handles_rig *rig, const char *prefix)
{
	weir_entity_counts counts = {.size = sizeof counts};
	uint64_t ticks = 0;

	for (size_t i = 0; rig->scheduler && !weir_scheduler_entity_counts(rig->scheduler, i, &counts); i++)
		if (!strncmp(counts.entity, prefix, strlen(prefix)))
			ticks += counts.ticks;
	return ticks;
}

bool handles_runs(struct handles_rig *rig, uint64_t sinks_ticks)
{
	if (!handles_start(rig) || !handles_wait(rig, 30 * SECOND))
		return false;
	return handles_expect(
		handles_ticks(rig, "sink") == sinks_ticks, "the sinks saw %llu frames instead of %llu",
		(unsigned long long)handles_ticks(rig, "sink"), (unsigned long long)sinks_ticks);
}

void handles_close(struct handles_rig *rig)
{
	weir_status status;

	handles_expect(!rig->status, "%s: %s", weir_status_text(rig->status), rig->why);
	status = weir_scheduler_destroy(rig->scheduler);
	handles_expect(!status || rig->broken, "the scheduler: %s", weir_last_error());
	status = weir_graph_destroy(rig->graph);
	handles_expect(!status || rig->broken, "the graph: %s", weir_last_error());
	if (rig->broken)
		handles_print_note("the graph was destroyed: %s", weir_status_text(status));
	weir_description_destroy(rig->description);
	weir_registry_destroy(rig->registry);
}
