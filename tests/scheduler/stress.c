/*
 * Random graphs with random delays on real threads: every count must be conserved, whatever stops them and
 * when. A seed that fails prints its graph. Label `stress`; meant to run under ThreadSanitizer.
 *
 *	stress [SECONDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/random.h"
#include "base/thread.h"
#include "rig.h"

static int64_t seconds = 10;
static uint64_t first_seed = 1;

struct drawing {
	struct wr_random random;
	char text[2048];
	size_t length;
	bool strict; /* only `block` queues, no entity ends early: every message arrives */
};

static unsigned draw(struct drawing *drawing, unsigned below)
{
	return (unsigned)wr_random_below(&drawing->random, below);
}

static void add(struct drawing *drawing, const char *format, ...) WEIR_PRINTF(2, 3);

static void add(struct drawing *drawing, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	drawing->length += (size_t)vsnprintf(drawing->text + drawing->length,
					     sizeof drawing->text - drawing->length, format, list);
	va_end(list);
}

static void add_queue(struct drawing *drawing)
{
	static const char *const policies[] = {"block", "block", "pop", "reject"};
	const char *policy = policies[draw(drawing, 4)];

	drawing->strict &= !strcmp(policy, "block");
	add(drawing, " capacity=%u policy=%s", 1 + draw(drawing, 5), policy);
	if (!draw(drawing, 3))
		add(drawing, " gate=in");
	if (!draw(drawing, 3))
		add(drawing, " delay=%uus", draw(drawing, 60));
}

/* Sources, a layer of `pass`, ends; each `pass` and each end receives from one entity
 * before it, some from two. */
static void draw_graph(struct drawing *drawing)
{
	unsigned sources = 1 + draw(drawing, 3), middle = draw(drawing, 4), ends = 1 + draw(drawing, 3);

	for (unsigned i = 0; i < sources; i++) {
		add(drawing, "s%u:source ticks=%u", i, 50 + draw(drawing, 300));
		if (draw(drawing, 2))
			add(drawing, " work=%uus", draw(drawing, 40));
		if (!draw(drawing, 3))
			add(drawing, " period=%uus", 1 + draw(drawing, 50));
		add(drawing, "; ");
	}
	for (unsigned i = 0; i < middle + ends; i++) {
		bool end = i >= middle;
		unsigned from = draw(drawing, sources + (end ? middle : i));
		add(drawing, "%c%u -> n%u:%s", from < sources ? 's' : 'n',
		    from < sources ? from : from - sources, i, end ? "end" : "pass");
		add_queue(drawing);
		add(drawing, "; ");
	}
	for (unsigned i = 0; i < sources + middle; i++) /* entities without a receiver */
		add(drawing, "%c%u -> rest%u:end capacity=3; ", i < sources ? 's' : 'n',
		    i < sources ? i : i - sources, i);
}

struct outsider {
	struct rig *rig;
	struct wr_random random;
	int stop; /* 0 none, 1 drain, 2 at once */
	_Atomic bool over;
};

static void ignore_line(const weir_unmet *unmet, void *arg)
{
	*(size_t *)arg += strlen(unmet->entity) + strlen(unmet->condition) + strlen(unmet->verdict) +
			  strlen(unmet->detail);
}

static void poke_and_stop(void *arg)
{
	struct outsider *outsider = arg;
	weir_queue_counts counts = {.size = sizeof counts};
	size_t said = 0;

	for (uint64_t i = 0, n = wr_random_below(&outsider->random, 60); i < n && !wr_load(&outsider->over);
	     i++) {
		size_t entity = (size_t)wr_random_below(&outsider->random, outsider->rig->entity_count);
		weir_entity_poke(
			weir_graph_entity(outsider->rig->graph, outsider->rig->entities[entity].name));
		weir_scheduler_queue_counts(outsider->rig->scheduler, entity, &counts);
		if (i % 16 == 0)
			weir_scheduler_explain(outsider->rig->scheduler, ignore_line, &said);
		weir_sleep((int64_t)wr_random_below(&outsider->random, 100) * US);
	}
	if (outsider->stop)
		weir_scheduler_stop(outsider->rig->scheduler, outsider->stop == 1 ? WEIR_STOP_DRAIN : 0);
}

static void assert_all_arrived(struct rig *rig)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_queue_counts(rig->scheduler, i, &counts); i++)
		assert_int_equal(counts.pushed, counts.delivered);
}

static void run_once(struct rig *rig, struct drawing *drawing)
{
	struct outsider outsider = {.rig = rig, .stop = draw(drawing, 3) ? 0 : 1 + (int)draw(drawing, 2)};
	struct wr_thread thread = {0};

	wr_random_seed(&outsider.random, wr_random_next(&drawing->random), 3);
	rig_make(rig);
	assert_int_equal(wr_thread_start(&thread, "outsider", poke_and_stop, &outsider), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	wr_store(&outsider.over, true);
	wr_thread_join(&thread);
	assert_int_equal(wr_load(&rig->started), wr_load(&rig->stopped));
	if (!outsider.stop && drawing->strict)
		assert_all_arrived(rig);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
}

static void stress_seed(uint64_t seed)
{
	struct drawing drawing = {.strict = true};
	struct rig *rig;

	wr_random_seed(&drawing.random, seed, 1);
	draw_graph(&drawing);
	printf("seed %llu: %s\n", (unsigned long long)seed, drawing.text);
	rig = rig_of(drawing.text);
	rig->options.backend = "host";
	rig->options.workers = 1 + draw(&drawing, 8);
	rig->options.signal = draw(&drawing, 2) ? "callback" : "callback_inline";
	rig->options.worker_spin_ns = draw(&drawing, 4) ? 0 : 20 * US;
	for (unsigned runs = 1 + draw(&drawing, 3); runs; runs--)
		run_once(rig, &drawing);
	rig_destroy(rig);
}

static void e05_s01_f34_random_graphs_on_real_threads_conserve_their_counts(void **state)
{
	int64_t until = wr_now() + seconds * SECOND;

	(void)state;
	for (uint64_t seed = first_seed; wr_now() < until; seed++)
		stress_seed(seed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e05_s01_f34_random_graphs_on_real_threads_conserve_their_counts),
	};

	if (argc > 1)
		seconds = atoi(argv[1]);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
