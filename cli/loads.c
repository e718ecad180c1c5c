/* Shares of a run's duration. */
#include "cli/loads.h"

#include <string.h>

enum { SAMPLES_LEAST = 4 };

double cli_mean(const struct cli_histogram *times)
{
	return times->count ? (double)times->sum / (double)times->count : 0;
}

double cli_load(const struct cli_recorded *recorded, size_t i, const struct cli_histogram *times)
{
	double ticks = (double)cli_recorded_entity(recorded, i)->ticks;

	return recorded->duration ? cli_mean(times) * ticks / (double)recorded->duration : 0;
}

static double of_lanes(const struct cli_recorded *recorded, size_t i, double load)
{
	return load / (double)cli_recorded_lanes(cli_recorded_entity(recorded, i));
}

double cli_host_sum(const struct cli_recorded *recorded, size_t i)
{
	return cli_load(recorded, i, &cli_recorded_entity(recorded, i)->submit);
}

double cli_host_load(const struct cli_recorded *recorded, size_t i)
{
	return of_lanes(recorded, i, cli_host_sum(recorded, i));
}

double cli_blocked_load(const struct cli_recorded *recorded, size_t i)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);

	return entity->submit.sum
		       ? cli_host_load(recorded, i) * (double)entity->blocked.sum / (double)entity->submit.sum
		       : 0;
}

bool cli_uses_device(const struct cli_entity *entity)
{
	return entity->most_in_flight || entity->gpu_span.count;
}

bool cli_device_timed(const struct cli_entity *entity)
{
	return entity->gpu_span.count && !(entity->done_source && !strcmp(entity->done_source, "flag"));
}

bool cli_device_known(const struct cli_entity *entity)
{
	int64_t count = entity->gpu_span.count;

	return cli_device_timed(entity) && (count >= SAMPLES_LEAST || count == entity->ticks);
}

double cli_device_load(const struct cli_recorded *recorded, size_t i)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);

	return cli_device_timed(entity) ? of_lanes(recorded, i, cli_load(recorded, i, &entity->gpu_span)) : 0;
}

double cli_stream_load(const struct cli_recorded *recorded, size_t i, int64_t stream)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);
	const struct cli_use *uses = entity->streams.items;
	struct cli_histogram times = {.count = entity->gpu_span.count};

	for (size_t k = 0; k < entity->streams.count; k++)
		if (uses[k].stream == stream)
			times.sum += uses[k].time;
	return cli_device_timed(entity) ? cli_load(recorded, i, &times) : 0;
}

double cli_stream_sum(const struct cli_recorded *recorded, int64_t stream)
{
	double load = 0;

	for (size_t i = 0; i < recorded->entities.count; i++)
		load += cli_stream_load(recorded, i, stream);
	return load;
}

bool cli_same_device(const struct cli_entity *a, const struct cli_entity *b)
{
	const struct cli_use *one = a->streams.items, *other = b->streams.items;

	return a->streams.count && b->streams.count && one->device == other->device;
}

double cli_any_load(const struct cli_recorded *recorded, size_t i)
{
	double host = cli_host_load(recorded, i), device = cli_device_load(recorded, i);

	return host > device ? host : device;
}

double cli_wait_share(const struct cli_recorded *recorded, const struct cli_wait *wait)
{
	double lanes = wait->instances > 1 ? (double)wait->instances : 1;

	return recorded->duration ? (double)wait->time.sum / lanes / (double)recorded->duration : 0;
}

double cli_worker_share(const struct cli_recorded *recorded, size_t i)
{
	return of_lanes(recorded, i,
			cli_load(recorded, i, &cli_recorded_entity(recorded, i)->ready_to_compute));
}

double cli_workers_busy(const struct cli_recorded *recorded)
{
	const struct cli_worker *workers = recorded->workers.items;
	double busy = 0;

	for (size_t i = 0; i < recorded->workers.count; i++)
		busy += (double)workers[i].busy;
	if (!recorded->workers.count || !recorded->duration)
		return 0;
	return busy / (double)recorded->duration / (double)recorded->workers.count;
}
