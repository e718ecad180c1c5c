/*
 * Groups of runners: a few for each device, and as many as it was given for each partition; and the life of
 * the whole that they make up.
 *
 * Groups are added, never taken away: a partition's lives as long as the fifo. In a world all runners are
 * started at once, since only a fiber can start a fiber; threads are started when the first line of their
 * group is opened.
 */
#include "streams/runners.h"

#include "base/memory.h"
#include "base/status.h"

enum { RUNNERS_MAX = 64, PARTITION_MAX = 1024 };

static weir_status start_locked(struct wr_host_pool *group)
{
	weir_status status = WEIR_OK;

	for (unsigned i = 0; i < group->size && !status; i++) {
		status = wr_host_worker_start(group, i);
		group->started += !status;
	}
	return group->started ? WEIR_OK : status; /* fewer are enough */
}

weir_status wr_host_pool_start(struct wr_host_pool *group)
{
	weir_status status = WEIR_OK;

	wr_mutex_lock(&group->fifo->lock);
	if (!group->started)
		status = start_locked(group);
	wr_mutex_unlock(&group->fifo->lock);
	return status;
}

/*
 * In a world only a fiber can start a fiber, so there it is
 * done at once; threads wait until there is a line.
 */
static weir_status make_group(struct wr_fifo *fifo, unsigned size, unsigned room, struct wr_host_pool **out)
{
	struct wr_host_pool *group = wr_alloc(1, sizeof *group + room * sizeof *group->runners);

	if (!group)
		return WEIR_E_NOMEM;
	group->fifo = fifo;
	group->size = size;
	group->room = room;
	group->ready_end = &group->ready;
	group->standing.fifo = fifo;
	group->standing.group = group;
	wr_mutex_lock(&fifo->lock);
	group->next = fifo->groups;
	fifo->groups = group;
	wr_mutex_unlock(&fifo->lock);
	*out = group;
	return fifo->rules ? wr_host_pool_start(group) : WEIR_OK;
}

/* Threads there are enough of; what is refused elsewhere is refused here, and what nobody can mean. */
static weir_status check(const struct wr_partitions_spec *spec)
{
	for (size_t i = 0; i < spec->count; i++) {
		if (!spec->sizes[i] || spec->sizes[i] < spec->minimum)
			return wr_fail(WEIR_E_INVALID,
				       "green_context_pool '%s': partition %zu has %u SMs, the least is %u",
				       spec->name, i, spec->sizes[i], spec->minimum ? spec->minimum : 1);
		if (spec->sizes[i] > PARTITION_MAX)
			return wr_fail(WEIR_E_INVALID,
				       "green_context_pool '%s': partition %zu wants %u SMs; "
				       "here they are threads, at most %d",
				       spec->name, i, spec->sizes[i], PARTITION_MAX);
	}
	return WEIR_OK;
}

weir_status wr_fifo_split(struct wr_fifo *fifo, const struct wr_partitions_spec *spec, void **out,
			  uint32_t *sms)
{
	struct wr_host_pool *rest = fifo->device[spec->device];
	weir_status status = check(spec);

	for (size_t i = 0; i < spec->count && !status; i++) {
		struct wr_host_pool *group = NULL;

		status = make_group(fifo, spec->sizes[i], spec->sizes[i], &group);
		out[i] = group;
		sms[i] = spec->sizes[i];
	}
	out[spec->count] = rest;
	sms[spec->count] = rest->size;
	return status;
}

/* --- life --- */

static weir_status make_devices(struct wr_fifo *fifo, int devices, unsigned size)
{
	unsigned room = fifo->rules ? RUNNERS_MAX : size;
	weir_status status = WEIR_OK;

	for (; fifo->devices < devices && !status; fifo->devices++)
		status = make_group(fifo, size, room, &fifo->device[fifo->devices]);
	return status ? status : wr_host_pool_start(fifo->device[0]);
}

weir_status wr_fifo_create(struct wr_fifo **out, int devices, unsigned runners,
			   const struct wr_fifo_rules *rules, void *arg)
{
	struct wr_fifo *fifo;
	weir_status status;

	if (devices < 1 || devices > WR_FIFO_DEVICES)
		return wr_fail(WEIR_E_INVALID, "%d devices: 1 to %d can be had", devices, WR_FIFO_DEVICES);
	fifo = wr_alloc(1, sizeof *fifo);
	if (!fifo)
		return WEIR_E_NOMEM;
	fifo->rules = rules;
	fifo->arg = arg;
	status = wr_mutex_init(&fifo->lock);
	if (!status)
		status = wr_cond_init(&fifo->returned);
	if (status) {
		wr_mutex_finish(&fifo->lock);
		wr_free(fifo);
		return status;
	}
	status = make_devices(fifo, devices, runners < RUNNERS_MAX ? runners : RUNNERS_MAX);
	if (status) {
		wr_fifo_destroy(fifo);
		return status;
	}
	*out = fifo;
	return WEIR_OK;
}

static void end_runners(struct wr_fifo *fifo)
{
	wr_mutex_lock(&fifo->lock);
	fifo->stopping = true;
	wr_mutex_unlock(&fifo->lock);
	for (struct wr_host_pool *group = fifo->groups; group; group = group->next)
		for (unsigned i = 0; i < group->started; i++)
			wr_unpark(&group->runners[i].parker);
	for (struct wr_host_pool *group = fifo->groups; group; group = group->next)
		for (unsigned i = 0; i < group->started; i++)
			wr_thread_join(&group->runners[i].thread);
}

void wr_fifo_destroy(struct wr_fifo *fifo)
{
	if (!fifo)
		return;
	end_runners(fifo);
	for (struct wr_host_pool *group = fifo->groups, *next; group; group = next) {
		next = group->next;
		wr_tasks_free(group->standing.first);
		wr_free(group);
	}
	wr_tasks_free(fifo->spare);
	wr_cond_finish(&fifo->returned);
	wr_mutex_finish(&fifo->lock);
	wr_free(fifo);
}

int wr_fifo_devices(const struct wr_fifo *fifo)
{
	return fifo->devices;
}
