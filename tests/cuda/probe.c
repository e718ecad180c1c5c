/*
 * Runs a graph as an embedding program does and prints the result as one line of JSON: the outcome, and the
 * CPU time of the workers beside the time inside compute.
 *
 *   probe GRAPH [--backend B] [--signal S] [--workers N] [--until ENTITY] [--set E.P=VALUE]...
 *
 * CPU time: during the run, the CPU clocks of the threads named weir:0, weir:1, ... are sampled with
 * their times in compute every few ms. The result is the difference between the first sample in which ENTITY
 * (default: any entity) has ticked and the last one, and so excludes start and stop. The time in compute is
 * read first and grows only at the end of a tick, so the error never favours weir.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir.h"

enum { WORKERS = 64, SAMPLE_NS = 4000000 };

struct sample {
	int64_t compute, cpu;
	unsigned workers;
};

struct probe {
	const char *path, *until;
	weir_description *description;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_scheduler_options options;
	struct sample first, last;
};

/* --- CPU time --- */

/*
 * The CPU clock of another thread of this process, in the kernel's encoding: no call returns it by thread
 * id.
 */
static bool read_thread_clock(int thread, int64_t *ns)
{
	struct timespec time;

	if (clock_gettime((clockid_t)(~(unsigned)thread << 3 | 6), &time))
		return false;
	*ns += time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
	return true;
}

static bool is_worker(const char *thread)
{
	char path[320], name[32] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof name, file))
		name[0] = 0;
	fclose(file);
	return !strncmp(name, "weir:", 5) && isdigit((unsigned char)name[5]);
}

static void read_workers(struct sample *sample)
{
	DIR *folder = opendir("/proc/self/task");

	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));)
		if (is_worker(entry->d_name))
			sample->workers += read_thread_clock(atoi(entry->d_name), &sample->cpu);
	closedir(folder);
}

/* Of all entities, from the text of the statistics: "submit":{"count":40,"sum":7000,... */
static int64_t time_in_compute(weir_scheduler *scheduler)
{
	char *text = NULL;
	int64_t sum = 0;

	if (weir_scheduler_print_statistics(scheduler, &text))
		return 0;
	for (const char *at = text; (at = strstr(at, "\"submit\":"));) {
		at = strstr(at, "\"sum\":") + strlen("\"sum\":");
		sum += strtoll(at, NULL, 10);
	}
	weir_text_free(text);
	return sum;
}

/* Returns false if the entity has not ticked yet. */
static bool read_compute(const struct probe *probe, struct sample *sample)
{
	weir_entity_counts counts = {.size = sizeof counts};
	bool begun = false;

	sample->compute = time_in_compute(probe->scheduler);
	for (size_t i = 0; !weir_scheduler_entity_counts(probe->scheduler, i, &counts); i++)
		begun |= counts.ticks && (!probe->until || !strcmp(probe->until, counts.entity));
	return begun;
}

static void take_sample(struct probe *probe)
{
	struct sample sample = {0};

	if (!read_compute(probe, &sample))
		return;
	read_workers(&sample);
	if (!probe->first.workers)
		probe->first = sample;
	if (sample.workers == probe->first.workers) /* else the run has ended: threads are gone */
		probe->last = sample;
}

/* --- JSON --- */

static void print_text(const char *name, const char *text)
{
	if (!text) {
		printf("\"%s\": null, ", name);
		return;
	}
	printf("\"%s\": \"", name);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text >= ' ')
			putchar(*text);
	printf("\", ");
}

static bool conserved(weir_scheduler *scheduler)
{
	weir_queue_counts c = {.size = sizeof c};
	bool all = true;

	for (size_t i = 0; !weir_scheduler_queue_counts(scheduler, i, &c); i++)
		all &= c.pushed == c.delivered + c.dropped + c.closed + c.queued + c.abandoned;
	return all;
}

static void print_outcome(struct probe *probe, const weir_outcome *outcome)
{
	printf("{");
	print_text("where", weir_scheduler_where(probe->scheduler));
	print_text("status", weir_status_text(outcome->status));
	print_text("entity", outcome->entity);
	print_text("text", outcome->text);
	printf("\"ticks\": %" PRIu64 ", \"leftover\": %" PRIu64 ", \"abandoned\": %" PRIu64 ", ",
	       outcome->ticks, outcome->leftover, outcome->abandoned);
	printf("\"seconds\": %.6f, \"conserved\": %s, ", (double)outcome->duration_ns / 1e9,
	       conserved(probe->scheduler) ? "true" : "false");
	printf("\"workers\": %u, \"worker_cpu\": %.6f, \"compute\": %.6f, ", probe->last.workers,
	       (double)(probe->last.cpu - probe->first.cpu) / 1e9,
	       (double)(probe->last.compute - probe->first.compute) / 1e9);
}

/* --- the run --- */

static weir_status take_option(struct probe *probe, const char *name, const char *value)
{
	if (!strcmp(name, "--backend"))
		probe->options.backend = value;
	else if (!strcmp(name, "--signal"))
		probe->options.signal = value;
	else if (!strcmp(name, "--workers"))
		probe->options.workers = (unsigned)atoi(value);
	else if (!strcmp(name, "--until"))
		probe->until = value;
	else if (!strcmp(name, "--set"))
		return weir_description_set(probe->description, value);
	else
		return WEIR_E_INVALID;
	return WEIR_OK;
}

static weir_status prepare(struct probe *probe, char **argv)
{
	weir_status status = weir_description_read(probe->path, 0, NULL, NULL, &probe->description);

	for (; !status && *argv; argv += 2)
		status = argv[1] ? take_option(probe, argv[0], argv[1]) : WEIR_E_INVALID;
	if (!status)
		status = weir_graph_create(NULL, probe->description, &probe->graph);
	if (!status)
		status = weir_scheduler_create(probe->graph, &probe->options, &probe->scheduler);
	return status;
}

static weir_status run(struct probe *probe)
{
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status = weir_scheduler_start(probe->scheduler);

	if (status)
		return status;
	while (weir_scheduler_wait(probe->scheduler, SAMPLE_NS, &outcome) == WEIR_E_TIMEOUT &&
	       !outcome.status)
		take_sample(probe);
	print_outcome(probe, &outcome);
	return WEIR_OK;
}

int main(int argc, char **argv)
{
	struct probe probe = {
		.path = argc > 1 ? argv[1] : "",
		.options = {.size = sizeof probe.options, .observe = WEIR_OBSERVE_COMPUTE},
	};
	weir_status status, destroyed;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	status = argc > 1 ? prepare(&probe, argv + 2) : WEIR_E_INVALID;
	if (!status)
		status = run(&probe);
	if (status)
		fprintf(stderr, "probe: %s: %s\n", weir_status_text(status), weir_last_error());
	destroyed = weir_scheduler_destroy(probe.scheduler);
	if (!destroyed)
		destroyed = weir_graph_destroy(probe.graph);
	weir_description_destroy(probe.description);
	if (!status)
		printf("\"destroyed\": \"%s\"}\n", weir_status_text(destroyed));
	return status ? 1 : 0;
}
