/*
 * Makes, runs and destroys many graphs on several threads at once, each with device work, a memory pool and a
 * gate, and prints how much memory the process uses after a tenth of them and at the end.
 *
 * usage: lives [--backend NAME] [--signal NAME] [--graphs N] [--threads N]
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { THREADS_MAX = 64 };

static const char *backend = "auto", *signal_name = "flag";
static unsigned threads = 8;
static unsigned long graphs = 100000;
static _Atomic unsigned long made;
static pthread_barrier_t tenth;

static const char graph_text[] =
	"{\"weir\": 1,"
	" \"scheduler\": {\"device_memory\": \"1MiB\", \"host_memory\": \"1MiB\"}," /* pinning takes time */
	" \"resources\": {"
	"  \"d\": {\"type\": \"memory_pool\", \"device\": 0, \"block_size\": 256, \"blocks\": 2},"
	"  \"h\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 256, \"blocks\": 2}},"
	" \"entities\": ["
	"  {\"name\": \"a\", \"operator\": \"spin\", \"parameters\": {\"duration\": \"1us\"},"
	"   \"resources\": [\"d\"], \"conditions\": [{\"type\": \"count\", \"count\": 3}]},"
	"  {\"name\": \"b\", \"operator\": \"download\", \"resources\": [\"h\"]},"
	"  {\"name\": \"c\", \"operator\": \"sink\"}],"
	" \"connections\": [[\"a.out\", \"b.in\"], [\"b.out\", \"c.in\"]]}";

static void live_once(unsigned long number)
{
	weir_scheduler_options options = {.size = sizeof options,
					  .backend = backend,
					  .signal = signal_name,
					  .workers = 1,
					  .seed = number};
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;

	must(weir_description_parse(graph_text, sizeof graph_text - 1, NULL, NULL, &description), "lives");
	must(weir_graph_create(NULL, description, &graph), "graph");
	weir_description_destroy(description);
	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	must(weir_scheduler_run(scheduler), "run");
	must(weir_scheduler_destroy(scheduler), "destroy");
	must(weir_graph_destroy(graph), "destroy");
}

static void live_until(unsigned long end)
{
	for (;;) {
		unsigned long number = atomic_fetch_add(&made, 1);

		if (number >= end)
			return;
		live_once(number);
	}
}

/* Nothing of a graph is alive when the figures are taken. */
static void *live(void *arg)
{
	(void)arg;
	live_until(graphs / 10);
	pthread_barrier_wait(&tenth);
	pthread_barrier_wait(&tenth);
	live_until(graphs);
	return NULL;
}

struct use {
	size_t heap, resident;
};

static struct use use_now(void)
{
	struct mallinfo2 info = mallinfo2();
	struct use use = {.heap = info.uordblks + info.hblkhd};
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long all = 0, resident = 0;

	if (file && fscanf(file, "%lu %lu", &all, &resident) == 2)
		use.resident = resident * (size_t)sysconf(_SC_PAGESIZE);
	if (file)
		fclose(file);
	return use;
}

static void read_options(int count, char **arguments)
{
	for (int i = 1; i + 1 < count; i += 2) {
		if (!strcmp(arguments[i], "--backend"))
			backend = arguments[i + 1];
		else if (!strcmp(arguments[i], "--signal"))
			signal_name = arguments[i + 1];
		else if (!strcmp(arguments[i], "--graphs"))
			graphs = strtoul(arguments[i + 1], NULL, 10);
		else if (!strcmp(arguments[i], "--threads"))
			threads = (unsigned)strtoul(arguments[i + 1], NULL, 10);
	}
	if (threads < 1 || threads > THREADS_MAX || graphs < 10) {
		fprintf(stderr, "lives: --threads 1 to %d, --graphs 10 or more\n", THREADS_MAX);
		exit(2);
	}
}

int main(int count, char **arguments)
{
	pthread_t thread[THREADS_MAX];
	struct use early, late;
	int64_t begin = now();

	read_options(count, arguments);
	pthread_barrier_init(&tenth, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, live, NULL))
			must(WEIR_E_NOMEM, "thread");
	pthread_barrier_wait(&tenth);
	early = use_now();
	fprintf(stderr, "lives: %lu graphs in %.1f s\n", graphs / 10, (double)(now() - begin) / 1e9);
	atomic_store(&made, graphs / 10);
	pthread_barrier_wait(&tenth);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	late = use_now();
	printf("%lu graphs on %u threads, %s: %.1f s; heap %zu bytes after a tenth, %zu at the end; resident "
	       "%.1f MB, %.1f MB\n",
	       graphs, threads, backend, (double)(now() - begin) / 1e9, early.heap, late.heap,
	       (double)early.resident / 1e6, (double)late.resident / 1e6);
	return 0;
}
