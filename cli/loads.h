/* What the time of entities went to, by the statistics of a run: shares of its duration. */
#ifndef CLI_LOADS_H
#define CLI_LOADS_H

#include "cli/recorded.h"

/* Shares of the run's duration, unless another whole is named. */
#define LOAD_BUSY    0.7 /* a stage that may limit */
#define LOAD_FULL    0.9 /* one that does, whatever waits there are */
#define LOAD_LIKE    0.8 /* of the busiest one's load: as busy as it */
#define LOAD_IDLE    0.8 /* below it a receiver, or a device, has time left */
#define LOAD_BEHIND  0.5 /* the same, of a device that several messages wait for */
#define WAIT_LONG    0.15
#define WORKERS_BUSY 0.85 /* of the workers' time */

double cli_mean(const struct cli_histogram *times); /* 0: no values */
/* What all ticks took, although only some were measured. */
double cli_load(const struct cli_recorded *recorded, size_t entity, const struct cli_histogram *times);
/* Of an entity with instances a load is that of one: all together, divided by their number. */
double cli_host_load(const struct cli_recorded *recorded, size_t entity);
double cli_host_sum(const struct cli_recorded *recorded, size_t entity); /* of all its instances together */
double cli_blocked_load(const struct cli_recorded *recorded,
			size_t entity); /* of it: in calls of weir that wait */
/* 0: not measured, or by the poller of flags: such spans may contain the work of entities before it. */
double cli_device_load(const struct cli_recorded *recorded, size_t entity);
double cli_any_load(const struct cli_recorded *recorded, size_t entity); /* the larger of both */

/* Of its device work, what it did on that queue of a device; and what all entities did there. */
double cli_stream_load(const struct cli_recorded *recorded, size_t entity, int64_t stream);
double cli_stream_sum(const struct cli_recorded *recorded, int64_t stream);
bool cli_same_device(const struct cli_entity *a, const struct cli_entity *b);

bool cli_uses_device(const struct cli_entity *entity);
bool cli_device_timed(const struct cli_entity *entity);
/* Enough ticks were timed to judge by. */
bool cli_device_known(const struct cli_entity *entity);
/* How long a wait took; how long READY waits for a worker took. */
double cli_wait_share(const struct cli_recorded *recorded, const struct cli_wait *wait);
double cli_worker_share(const struct cli_recorded *recorded, size_t entity);
double cli_workers_busy(const struct cli_recorded *recorded); /* of all workers' time */

#endif
