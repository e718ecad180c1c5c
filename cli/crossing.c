/*
 * The paths that go by remote connections. A message is known on both sides by its number: the n-th that a
 * remote_send takes has the number n, and a remote_receive says from which message on that it emits the
 * numbers go on from where. So the step that emitted leads to the step that took, and from there back to the
 * source, in another trace by another clock.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/joined.h"

enum { STOPS_MAX = 1000, PATHS_MAX = 1000 };

static struct cli_joint *joint_at(const struct cli_joined *joined, size_t i)
{
	return (struct cli_joint *)joined->joints.items + i;
}

/* Of the messages that were taken, by number the step. If they are not as many as were counted, none is
 * known. */
static void number_sent(struct cli_joined *joined, struct cli_joint *joint)
{
	struct cli_side *side = &joined->sides[joint->from_side];

	for (size_t i = 0; side->numbers && i < side->traced.steps.count; i++) {
		const struct cli_step *step = cli_traced_step(&side->traced, i);
		uint32_t *made;

		if (step->entity != joint->from || !step->took)
			continue;
		made = cli_list_add(&joint->steps, sizeof *made);
		joined->no_memory |= !made;
		if (!made)
			return;
		*made = (uint32_t)i + 1;
	}
	if ((int64_t)joint->steps.count != joint->send->count)
		joint->steps.count = 0;
}

/* Likewise of those that were emitted, by step the number. */
static void number_emitted(const struct cli_joined *joined, const struct cli_joint *joint)
{
	struct cli_side *side = &joined->sides[joint->to_side];
	const struct cli_numbers *runs = joint->receive->numbers.items;
	int64_t emitted = 0;

	for (size_t i = 0; side->numbers && i < side->traced.steps.count; i++) {
		const struct cli_step *step = cli_traced_step(&side->traced, i);

		if (step->entity != joint->to || !step->gave)
			continue;
		for (size_t k = 0; joint->receive->all_numbers && k < joint->receive->numbers.count; k++)
			if (emitted >= runs[k].emitted && runs[k].number < INT64_MAX - emitted)
				side->numbers[i] = runs[k].number + (emitted - runs[k].emitted) + 1;
		emitted++;
	}
	for (size_t i = 0;
	     emitted != joint->receive->emitted && side->numbers && i < side->traced.steps.count; i++)
		if (cli_traced_step(&side->traced, i)->entity == joint->to)
			side->numbers[i] = 0;
}

/* What a remote_send takes ends where it arrives, if that has a trace. */
static bool is_sink(const struct cli_joined *joined, size_t side, size_t entity)
{
	const struct cli_recorded *recorded = &joined->sides[side].recorded;
	const struct cli_queue *queues = recorded->queues.items;

	for (size_t i = 0; i < recorded->queues.count; i++)
		if (queues[i].sender_at == entity)
			return false;
	for (size_t i = 0; i < joined->joints.count; i++) {
		const struct cli_joint *joint = joint_at(joined, i);

		if (joint->from_side == side && joint->from == entity &&
		    joined->sides[joint->to_side].numbers)
			return false;
	}
	return true;
}

/* From a sink back to the source, over all sides. */
struct walk {
	struct cli_stop stops[STOPS_MAX]; /* sink to source */
	size_t count;
	/* Unsigned, as the files say any number. */
	uint64_t begun;  /* the begin of the source's step, by the clock of the sink's side */
	uint64_t error;  /* of that */
	uint64_t offset; /* the clock of this side less that of the sink's */
	bool crossed;
};

/* Returns false if the path does not lead to a source that is known. */
static bool walk_back(const struct cli_joined *joined, size_t side, size_t step, struct walk *walk)
{
	while (walk->count < STOPS_MAX) {
		const struct cli_side *here = &joined->sides[side];
		const struct cli_step *at = cli_traced_step(&here->traced, step);
		const struct cli_joint *joint = NULL;
		int64_t number;

		if (at->entity == CLI_PROGRAM)
			break;
		walk->stops[walk->count++] = (struct cli_stop){(uint32_t)side, at->entity};
		if (at->via) {
			step = at->via - 1;
			continue;
		}
		for (size_t i = 0; i < joined->joints.count; i++)
			if (joint_at(joined, i)->to_side == side && joint_at(joined, i)->to == at->entity)
				joint = joint_at(joined, i);
		if (!joint)
			break;
		number = here->numbers[step] - 1;
		if (number < 0 || number >= (int64_t)joint->steps.count || !joint->send->exchanges)
			return false;
		step = ((uint32_t *)joint->steps.items)[number] - 1;
		side = joint->from_side;
		walk->offset -= (uint64_t)joint->send->offset;
		walk->error += (uint64_t)joint->send->error;
		walk->crossed = true;
	}
	walk->begun = (uint64_t)joined->sides[side].traced.begun +
		      (uint64_t)cli_traced_step(&joined->sides[side].traced, step)->begin - walk->offset;
	return walk->count < STOPS_MAX;
}

static struct cli_crossing_path *path_of(struct cli_joined *joined, const struct walk *walk)
{
	size_t bytes = walk->count * sizeof walk->stops[0];
	struct cli_crossing_path *paths = joined->paths.items, *made;

	for (size_t i = 0; i < joined->paths.count; i++)
		if (paths[i].stops.count == walk->count && !memcmp(paths[i].stops.items, walk->stops, bytes))
			return &paths[i];
	made = joined->paths.count < PATHS_MAX ? cli_list_add(&joined->paths, sizeof *made) : NULL;
	for (size_t i = 0; made && i < walk->count; i++) {
		struct cli_stop *stop = cli_list_add(&made->stops, sizeof *stop);

		joined->no_memory |= !stop;
		if (!stop)
			return NULL;
		*stop = walk->stops[i];
	}
	if (made)
		made->error = (int64_t)walk->error;
	return made;
}

static void measure(struct cli_joined *joined, size_t side, size_t step)
{
	struct walk walk;
	const struct cli_step *sink = cli_traced_step(&joined->sides[side].traced, step);
	int64_t end = sink->device_end > sink->end ? sink->device_end : sink->end, *made;
	struct cli_crossing_path *path;

	walk.count = 0;
	walk.offset = walk.error = 0;
	walk.crossed = false;
	if (!walk_back(joined, side, step, &walk) || !walk.crossed)
		return;
	path = path_of(joined, &walk);
	if (!path)
		return;
	made = cli_list_add(&path->latencies, sizeof *made);
	joined->no_memory |= !made;
	if (made)
		*made = (int64_t)((uint64_t)joined->sides[side].traced.begun + (uint64_t)end - walk.begun);
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

int64_t cli_joined_percentile(const struct cli_list *sorted, unsigned percent)
{
	size_t place = (sorted->count * percent + 99) / 100;

	return sorted->count ? ((int64_t *)sorted->items)[place ? place - 1 : 0] : 0;
}

void cli_joined_paths(struct cli_joined *joined)
{
	struct cli_crossing_path *paths;

	for (size_t s = 0; s < joined->count; s++) {
		struct cli_side *side = &joined->sides[s];

		/*
		 * A trace whose oldest records were dropped does not tell which message is the first, and
		 * virtual time has nothing to do with that of another process.
		 */
		if (!side->trace.path || side->traced.dropped || !side->traced.begun ||
		    (side->recorded.backend && !strcmp(side->recorded.backend, "sim")))
			continue;
		side->numbers = calloc(side->traced.steps.count + 1, sizeof *side->numbers);
		joined->no_memory |= !side->numbers;
	}
	for (size_t i = 0; i < joined->joints.count; i++) {
		number_sent(joined, joint_at(joined, i));
		number_emitted(joined, joint_at(joined, i));
	}
	for (size_t s = 0; s < joined->count && !joined->no_memory; s++) {
		const struct cli_side *side = &joined->sides[s];

		for (size_t i = 0; side->numbers && i < side->traced.steps.count; i++) {
			const struct cli_step *step = cli_traced_step(&side->traced, i);

			if (step->took && step->entity != CLI_PROGRAM && is_sink(joined, s, step->entity))
				measure(joined, s, i);
		}
	}
	paths = joined->paths.items;
	for (size_t i = 0; i < joined->paths.count; i++)
		qsort(paths[i].latencies.items, paths[i].latencies.count, sizeof(int64_t), compare);
}
