/*
 * Work that goes on after compute has returned, without a stream: in `square` four threads have it, in `root`
 * a library that calls back. Each tick emits its message at once, with a fence that is completed when the
 * work is done; so several requests are under way at once, as many as "max_in_flight" says, and no worker
 * waits. The answers come in any order, the messages in that of the requests.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>

#include "library.h"

enum { THREADS = 4, REQUESTS = 64, NUMBERS = 40 };

/* --- the fence of a request --- */

/* One for each message under way. What completes it comes last: then the message may be taken. */
struct request {
	weir_graph *graph;
	weir_fence fence;
	const long *from;
	long *to;
};

static void request_done(void *arg, int failed)
{
	struct request request = *(struct request *)arg;

	free(arg);
	weir_fence_complete(request.graph, request.fence, failed ? WEIR_E_FAILED : WEIR_OK,
			    failed ? "there is no answer for this number" : NULL);
}

typedef void begin(void *state, struct request *request);

/* Begins a request for the message received, and emits the message that will have its answer. */
static weir_status emit_later(weir_context *context, void *state, begin *starts)
{
	weir_graph *graph = weir_context_graph(context);
	struct request *request = malloc(sizeof *request);
	weir_message *out = NULL;
	weir_fence fence;
	weir_status status = request ? weir_message_create_bytes(graph, sizeof(long), &out) : WEIR_E_NOMEM;

	if (!status)
		status = weir_graph_create_fence(graph, &fence);
	if (status) {
		weir_message_unref(out);
		free(request);
		return status;
	}
	/* What was received is not freed before the fence is completed: the request may read it. */
	*request = (struct request){graph, fence, weir_message_data(weir_context_message(context, 0, 0)),
				    weir_message_data(out)};
	starts(state, request);
	return weir_context_emit_at(context, 0, out, fence);
}

/* --- square: a pool of threads --- */

struct pool {
	pthread_t threads[THREADS];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct request *waiting[REQUESTS]; /* a ring; max_in_flight is less */
	unsigned first, count, busy, most, closing;
};

static void *work(void *arg)
{
	struct pool *pool = arg;

	pthread_mutex_lock(&pool->lock);
	while (pool->count || !pool->closing) {
		struct request *request = pool->waiting[pool->first % REQUESTS];

		if (!pool->count) {
			pthread_cond_wait(&pool->changed, &pool->lock);
			continue;
		}
		pool->first++;
		pool->count--;
		pool->busy++;
		pool->most = pool->busy > pool->most ? pool->busy : pool->most;
		pthread_mutex_unlock(&pool->lock);
		usleep(*request->from % 3 ? 500 : 4000); /* some take longer */
		*request->to = *request->from * *request->from;
		pthread_mutex_lock(&pool->lock);
		pool->busy--;
		pthread_mutex_unlock(&pool->lock);
		request_done(request, 0);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static void pool_begin(void *state, struct request *request)
{
	struct pool *pool = state;

	pthread_mutex_lock(&pool->lock);
	pool->waiting[(pool->first + pool->count++) % REQUESTS] = request;
	pthread_cond_signal(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

static weir_status square_start(weir_context *context, void *state, const weir_values *values)
{
	struct pool *pool = state;

	(void)values;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&pool->threads[i], NULL, work, pool))
			return weir_context_fail(context, "cannot start thread %d", i);
	return WEIR_OK;
}

static weir_status square_compute(weir_context *context, void *state)
{
	return emit_later(context, state, pool_begin);
}

/* Also after a run that was cut short: what is left is completed here. */
static void square_stop(weir_context *context, void *state)
{
	struct pool *pool = state;

	(void)context;
	pthread_mutex_lock(&pool->lock);
	pool->closing = 1;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < THREADS; i++)
		pthread_join(pool->threads[i], NULL);
	printf("at most %u of %d threads were busy at once\n", pool->most, THREADS);
}

/* --- root: a library that calls back --- */

struct asking {
	struct library *library;
};

static weir_status root_start(weir_context *context, void *state, const weir_values *values)
{
	struct asking *asking = state;

	(void)values;
	asking->library = library_open();
	return asking->library ? WEIR_OK : weir_context_fail(context, "the library does not open");
}

static void library_begin(void *state, struct request *request)
{
	const struct asking *asking = state;

	library_ask(asking->library, request->from, request->to, request_done, request);
}

static weir_status root_compute(weir_context *context, void *state)
{
	return emit_later(context, state, library_begin);
}

static void root_stop(weir_context *context, void *state)
{
	const struct asking *asking = state;

	(void)context;
	library_close(asking->library);
}

/* --- numbers, and those that come back --- */

static weir_status numbers_compute(weir_context *context, void *state)
{
	weir_message *out = NULL;
	weir_status status = weir_message_create_bytes(weir_context_graph(context), sizeof(long), &out);

	(void)state;
	if (status)
		return status;
	*(long *)weir_message_data(out) = (long)weir_context_tick(context);
	return weir_context_emit(context, 0, out);
}

static weir_status check_compute(weir_context *context, void *state)
{
	long number = *(const long *)weir_message_data(weir_context_message(context, 0, 0));
	long expected = (long)weir_context_tick(context);

	(void)state;
	if (number != expected)
		return weir_context_fail(context, "received %ld, not %ld", number, expected);
	if (number == NUMBERS - 1)
		printf("%d numbers came back, in order\n", NUMBERS);
	return WEIR_OK;
}

static const weir_port in[] = {{.size = sizeof *in, .name = "in", .kinds = WEIR_KIND_BYTES, .capacity = 8},
			       {.name = NULL}};
static const weir_port out[] = {{.size = sizeof *out, .name = "out", .kinds = WEIR_KIND_BYTES},
				{.name = NULL}};
static const weir_operator operators[] = {
	{.size = sizeof *operators,
	 .name = "numbers",
	 .help = "0, 1, 2, ...",
	 .outputs = out,
	 .compute = numbers_compute},
	{.size = sizeof *operators,
	 .name = "square",
	 .help = "the square, by a pool of threads",
	 .state_size = sizeof(struct pool),
	 .inputs = in,
	 .outputs = out,
	 .start = square_start,
	 .compute = square_compute,
	 .stop = square_stop},
	{.size = sizeof *operators,
	 .name = "root",
	 .help = "the square root, by a library that calls back",
	 .state_size = sizeof(struct asking),
	 .inputs = in,
	 .outputs = out,
	 .start = root_start,
	 .compute = root_compute,
	 .stop = root_stop},
	{.size = sizeof *operators,
	 .name = "check",
	 .help = "expects 0, 1, 2, ...",
	 .inputs = in,
	 .compute = check_compute},
};

static const char graph_text[] = "{\"weir\": 1, \"entities\": ["
				 "{\"name\": \"numbers\", \"operator\": \"numbers\", \"conditions\": "
				 "[{\"type\": \"count\", \"count\": 40}]},"
				 "{\"name\": \"square\", \"operator\": \"square\", \"max_in_flight\": 8},"
				 "{\"name\": \"root\", \"operator\": \"root\", \"max_in_flight\": 8},"
				 "{\"name\": \"check\", \"operator\": \"check\"}],"
				 "\"connections\": [[\"numbers.out\", \"square.in\"], [\"square.out\", "
				 "\"root.in\"], [\"root.out\", \"check.in\"]]}";

int main(void)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	weir_status status = weir_registry_create(&registry);

	for (size_t i = 0; !status && i < sizeof operators / sizeof *operators; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	if (!status)
		status = weir_description_parse(graph_text, strlen(graph_text), NULL, NULL, &description);
	if (!status)
		status = weir_graph_create(registry, description, &graph);
	if (!status)
		status = weir_scheduler_create(graph, &options, &scheduler);
	if (!status)
		status = weir_scheduler_run(scheduler);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return status ? 1 : 0;
}
