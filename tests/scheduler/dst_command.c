#include "dst_command.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "certificate.h"
#include "rest.h"
#include "sim/simulation.h"
#include "tests/calls.h"

#define LIMIT 3000000 /* switching points of a world: a livelock reaches it */

struct dst_said dst_said;
static const struct dst_command *command;

void dst_fails(const char *format, ...)
{
	va_list list;

	if (dst_said.broken[0])
		return;
	va_start(list, format);
	vsnprintf(dst_said.broken, sizeof dst_said.broken, format, list);
	va_end(list);
}

void dst_put(const char *format, ...)
{
	size_t length = strlen(dst_said.json);
	va_list list;

	va_start(list, format);
	vsnprintf(dst_said.json + length, sizeof dst_said.json - length, format, list);
	va_end(list);
}

/* --- what is used and promised in both --- */

weir_status dst_make_scheduler(weir_graph *graph, weir_scheduler_options options, weir_scheduler **out)
{
	const struct wr_sim_knobs knobs = {.work_min = 1,
					   .work_max = 3000,
					   .call_min = 1,
					   .call_max = 2000,
					   .inside = 100,
					   .twice = 100};
	weir_status status;

	options.size = sizeof options;
	options.backend = "sim";
	options.strict = WEIR_NONE; /* its computes look at device memory, to see what is early */
	status = weir_scheduler_create(graph, &options, out);
	if (!status)
		wr_system_set_knobs(graph->system, &knobs);
	return status;
}

struct work {
	uint64_t *data, value;
	int64_t ns;
};

/* Until its work is over no other message has the block. */
static int run_work(const void *arguments)
{
	const struct work *work = arguments;

	*work->data = work->value;
	weir_sleep(work->ns);
	if (*work->data != work->value)
		dst_fails("a block was given to two");
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "block", run_work, NULL};
static const int64_t one = sizeof(uint64_t);
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 1, 8, 1};

weir_status dst_make_block(weir_context *context, struct wr_random *random, bool on_host, bool device,
			   weir_message **out)
{
	struct work work = {.ns = 1 + (int64_t)wr_random_below(random, 1500)};
	weir_status status = weir_context_create_tensor(context, &like, on_host ? WEIR_TENSOR_HOST : 0, out);

	if (status)
		return status;
	work.data = weir_message_data(*out);
	work.value = wr_random_below(random, UINT64_MAX);
	if (device)
		return weir_stream_launch(current_stream(context), &kernel, &work, sizeof work);
	*work.data = work.value;
	return WEIR_OK;
}

/* It was offered something of the resource, or is about to claim it. */
static bool is_told(struct wr_claim *claim, const struct wr_shared *shared)
{
	uint32_t state = wr_read(&claim->entity->state);

	return claim->from == shared && state & (WR_POKED | WR_RUNNING) && !(state & WR_DONE) &&
	       (wr_read(&claim->owed) || claim->listed);
}

/* One pool, looked at while no fiber runs: more is in use than there is, or an entity waits for what is free.
 */
static void check_pool(const weir_graph *graph, struct wr_memory_pool *pool)
{
	struct wr_shared *shared = &pool->shared;
	bool told = false;

	if (shared->used > shared->size || wr_blocks_free(&pool->blocks) > shared->size)
		dst_fails("%s: %llu of %llu blocks are in use", pool->plan->name,
			  (unsigned long long)shared->used, (unsigned long long)shared->size);
	for (size_t i = 0; i < graph->entity_count; i++)
		for (size_t k = 0; k < graph->entities[i].claim_count; k++)
			told |= is_told(&graph->entities[i].claims[k], shared);
	for (struct wr_claim *claim = shared->first; claim && !told; claim = claim->newer)
		if (shared->size - shared->used >= claim->units)
			dst_fails("%s is parked and %s has what it needs", claim->entity->plan->name,
				  pool->plan->name);
}

void dst_check_pools(weir_scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->graph->memory_pool_count; i++)
		check_pool(scheduler->graph, &scheduler->graph->memory_pools[i]);
}

uint64_t dst_left_over(weir_scheduler *scheduler)
{
	weir_queue_counts counts = {.size = sizeof counts};
	uint64_t queued = 0;

	for (size_t i = 0; !weir_scheduler_queue_counts(scheduler, i, &counts); i++) {
		if (counts.pushed != counts.delivered + counts.dropped + counts.unmatched + counts.closed +
					     counts.queued + counts.abandoned)
			dst_fails("%s -> %s: messages were lost", counts.from, counts.to);
		queued += counts.queued;
	}
	return queued;
}

void dst_check_over(weir_scheduler *scheduler)
{
	const weir_entity *entity = certificate_refuted_by(scheduler);

	if (entity)
		dst_fails("the run is over, and %s could go on", weir_entity_name(entity));
}

/* --- a world --- */

static void look_at_rest(void *arg)
{
	weir_scheduler *scheduler = *command->scheduler;

	(void)arg;
	if (!scheduler || wr_load(&scheduler->phase) != WR_OPEN)
		return;
	command->look(scheduler);
	if (rest_broken(scheduler))
		dst_fails("%s", rest_broken(scheduler));
}

static void run_world(void *arg)
{
	(void)arg;
	command->run();
}

static bool world_holds(uint64_t seed)
{
	struct wr_random nets;
	struct wr_sim *sim = NULL;
	weir_status status;

	memset(&dst_said, 0, sizeof dst_said);
	command->draw(seed);
	wr_random_seed(&nets, seed, 32);
	wr_nets = wr_random_below(&nets, 2);
	if (wr_sim_create(&sim, seed, WR_SIM_PAUSES))
		abort();
	wr_sim_set_limit(sim, LIMIT);
	wr_sim_at_rest(sim, look_at_rest, NULL);
	status = wr_sim_call(sim, run_world, NULL);
	if (status)
		dst_fails("%s: %s", weir_status_text(status), weir_last_error());
	wr_sim_destroy(sim);
	wr_tokens_forget();
	wr_nets = true;
	*command->scheduler = NULL;
	return !dst_said.broken[0];
}

/* --- the command line --- */

struct options {
	uint64_t seeds, start;
	enum wr_bug bug;
	bool rate;
};

static unsigned shape_named(const char *name)
{
	for (unsigned i = 0; command->shapes[i]; i++)
		if (!strcmp(command->shapes[i], name))
			return i;
	fprintf(stderr, "%s: no shape '%s'\n", command->name, name);
	exit(2);
}

static struct options parse(int argc, char **argv)
{
	struct options options = {.seeds = 1000, .start = 1};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";
		if (!strcmp(argv[i], "--rate"))
			options.rate = true;
		else if (!strcmp(argv[i], "--seeds"))
			options.seeds = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--start"))
			options.start = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--bug"))
			options.bug = wr_bug_named(value), i++;
		else if (!strcmp(argv[i], "--shape"))
			*command->shape = shape_named(value), i++;
	}
	return options;
}

static void crashed(int number)
{
	(void)number;
	_exit(write(1, "found by a crash\n", 17) < 0);
}

int dst_command(const struct dst_command *given, int argc, char **argv)
{
	struct options options;
	uint64_t found = 0;

	command = given;
	options = parse(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	world_holds(0); /* what a process does once must not change a schedule */
	wr_bug_active = options.bug;
	if (options.bug) { /* then a crash counts as a broken promise */
		signal(SIGABRT, crashed);
		signal(SIGSEGV, crashed);
	}
	for (uint64_t i = 0; i < options.seeds; i++) {
		if (world_holds(options.start + i))
			continue;
		found++;
		printf("%s --seeds 1 --start %llu: %s\n", command->name,
		       (unsigned long long)options.start + i, dst_said.broken);
		if (!options.bug && !options.rate)
			printf("%s\n", dst_said.json);
		if (!options.rate)
			return options.bug ? 0 : 1;
	}
	printf("%llu seeds: %llu broken\n", (unsigned long long)options.seeds, (unsigned long long)found);
	return options.bug ? !found : found > 0;
}
