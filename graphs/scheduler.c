/* The key "scheduler": defaults for weir_scheduler_create; its options in C override them. */
#include "base/memory.h"
#include "graphs/build.h"
#include "base/units.h"
#include "streams/streams.h"

enum {
	WORKERS,
	SIGNAL,
	BACKEND,
	SEED,
	DRAIN,
	GRACE,
	DURATION,
	SPIN,
	DEVICE_MEMORY,
	HOST_MEMORY,
	IN_FLIGHT,
	KEYS = 16
};

static const struct wr_field fields[KEYS] = {
	[WORKERS] = {"workers", WR_INTEGER, false},
	[SIGNAL] = {"signal", WR_STRING, false},
	[BACKEND] = {"backend", WR_STRING, false},
	[SEED] = {"seed", WR_INTEGER, false},
	[DRAIN] = {"drain", WR_INTEGER | WR_STRING, false},
	[GRACE] = {"deadlock_grace", WR_INTEGER | WR_STRING, false},
	[DURATION] = {"max_duration", WR_INTEGER | WR_STRING, false},
	[SPIN] = {"worker_spin", WR_INTEGER | WR_STRING, false},
	[DEVICE_MEMORY] = {"device_memory", WR_INTEGER | WR_STRING, false},
	[HOST_MEMORY] = {"host_memory", WR_INTEGER | WR_STRING, false},
	[IN_FLIGHT] = {"max_in_flight", WR_INTEGER, false},
};

struct reading {
	struct wr_reports *reports;
	const struct wr_value **found;
};

static const struct wr_at scheduler_at = {NULL, "scheduler", 0};

static int64_t read_integer(const struct reading *reading, int key, int64_t min, int64_t max)
{
	return wr_field_integer(reading->reports, &(struct wr_at){&scheduler_at, fields[key].name, 0},
				reading->found[key], min, max, 0);
}

/* Returns true if the key was given, even with an error. */
static bool read_duration(const struct reading *reading, int key, int64_t min, int64_t *out)
{
	struct wr_at at = {&scheduler_at, fields[key].name, 0};
	const struct wr_value *value = reading->found[key];

	if (!value)
		return false;
	if (wr_field_duration(reading->reports, &at, value, false, out) && *out < min)
		wr_report(reading->reports, WR_W_RANGE, &at, value->place,
			  "%lld is out of range: must be at least %lld", (long long)*out, (long long)min);
	return true;
}

static int64_t read_size(const struct reading *reading, int key, int64_t fallback)
{
	struct wr_at at = {&scheduler_at, fields[key].name, 0};
	const struct wr_value *value = reading->found[key];
	const char *wrong;
	int64_t bytes = 0;

	if (!value)
		return fallback;
	if (value->type == WR_INTEGER)
		return read_integer(reading, key, 0, INT64_MAX);
	wrong = wr_size_read(value->string, &bytes);
	if (wrong)
		wr_report(reading->reports, WR_W_SIZE, &at, value->place, WR_SIZE_WRONG,
			  wr_shown(value->string).text, wrong);
	return bytes;
}

static int read_choice(const struct reading *reading, int key, const char *choices)
{
	if (!reading->found[key])
		return -1;
	return wr_field_choice(reading->reports, &(struct wr_at){&scheduler_at, fields[key].name, 0},
			       reading->found[key], choices);
}

weir_status wr_build_scheduler(struct wr_build *build, const struct wr_value *scheduler)
{
	const struct wr_value *found[KEYS] = {0};
	struct reading reading = {&build->reports, found};
	struct wr_plan_scheduler *plan = &build->plan->scheduler;

	if (scheduler)
		wr_fields_read(&build->reports, &scheduler_at, scheduler, "the scheduler", fields, found);
	plan->workers = found[WORKERS] ? (unsigned)read_integer(&reading, WORKERS, 1, 64) : 0;
	plan->signal = read_choice(&reading, SIGNAL, WR_SIGNALS);
	plan->has_drain = read_duration(&reading, DRAIN, 0, &plan->drain_ns);
	plan->has_grace = read_duration(&reading, GRACE, -1, &plan->deadlock_grace_ns);
	plan->has_duration = read_duration(&reading, DURATION, 0, &plan->max_duration_ns);
	plan->has_spin = read_duration(&reading, SPIN, 0, &plan->worker_spin_ns);
	plan->has_seed = found[SEED];
	plan->seed = (uint64_t)read_integer(&reading, SEED, 0, INT64_MAX);
	plan->max_in_flight = found[IN_FLIGHT] ? read_integer(&reading, IN_FLIGHT, 0, WR_IN_FLIGHT_MAX) : -1;
	plan->device_memory = read_size(&reading, DEVICE_MEMORY, 64 << 20);
	plan->host_memory = read_size(&reading, HOST_MEMORY, 64 << 20);
	if (read_choice(&reading, BACKEND, "auto|cuda|host|sim") < 0)
		return WEIR_OK;
	plan->backend = wr_strdup(found[BACKEND]->string);
	return plan->backend ? WEIR_OK : WEIR_E_NOMEM;
}

_Static_assert(WR_SIGNAL_CALLBACK == 0 && WR_SIGNAL_INLINE == 1 && WR_SIGNAL_FLAG == 2,
	       "the order of WR_SIGNALS");
