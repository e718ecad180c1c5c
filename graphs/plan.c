/* The plan: the root of the description and its key "scheduler"; the order of all checks. */
#include "graphs/plan.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "graphs/build.h"
#include "graphs/description.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"
#include "streams/streams.h"

/* --- the key "scheduler": defaults for weir_scheduler_create; its options in C override them --- */

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
	GPU_TIME,
	SCHEDULER_KEYS = 16
};

static const struct wr_field scheduler_fields[SCHEDULER_KEYS] = {
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
	[GPU_TIME] = {"gpu_time", WR_STRING, false},
};

/* The values of the keys above while they are read. */
struct scheduler_reading {
	struct wr_reports *reports;
	const struct wr_value **found;
};

static const struct wr_at scheduler_at = {NULL, "scheduler", 0};

static int64_t scheduler_read_integer(const struct scheduler_reading *reading, int key, int64_t min,
				      int64_t max)
{
	return wr_field_integer(reading->reports,
				&(struct wr_at){&scheduler_at, scheduler_fields[key].name, 0},
				reading->found[key], min, max, 0);
}

/* Returns true if the key was given, even with an error. */
static bool scheduler_read_duration(const struct scheduler_reading *reading, int key, int64_t min,
				    int64_t *out)
{
	struct wr_at at = {&scheduler_at, scheduler_fields[key].name, 0};
	const struct wr_value *value = reading->found[key];

	if (!value)
		return false;
	if (wr_field_duration(reading->reports, &at, value, false, out) && *out < min)
		wr_report(reading->reports, WR_W_RANGE, &at, value->place,
			  "%lld is out of range: must be at least %lld", (long long)*out, (long long)min);
	return true;
}

static int64_t scheduler_read_size(const struct scheduler_reading *reading, int key, int64_t fallback)
{
	struct wr_at at = {&scheduler_at, scheduler_fields[key].name, 0};
	const struct wr_value *value = reading->found[key];
	const char *wrong;
	int64_t bytes = 0;

	if (!value)
		return fallback;
	if (value->type == WR_INTEGER)
		return scheduler_read_integer(reading, key, 0, INT64_MAX);
	wrong = wr_size_read(value->string, &bytes);
	if (wrong)
		wr_report(reading->reports, WR_W_SIZE, &at, value->place, WR_SIZE_WRONG,
			  wr_shown(value->string).text, wrong);
	return bytes;
}

static int scheduler_read_choice(const struct scheduler_reading *reading, int key, const char *choices)
{
	if (!reading->found[key])
		return -1;
	return wr_field_choice(reading->reports,
			       &(struct wr_at){&scheduler_at, scheduler_fields[key].name, 0},
			       reading->found[key], choices);
}

/* -1 if the key was not given. */
static int scheduler_read_sampling(const struct scheduler_reading *reading, int key)
{
	struct wr_at at = {&scheduler_at, scheduler_fields[key].name, 0};
	const struct wr_value *value = reading->found[key];
	const char *wrong;
	int every = 0;

	if (!value)
		return -1;
	wrong = wr_sampling_read(value->string, &every);
	if (wrong)
		wr_report(reading->reports, WR_W_CHOICE, &at, value->place, WR_SAMPLING_WRONG,
			  wr_shown(value->string).text, wrong);
	return every;
}

static weir_status build_scheduler(struct wr_build *build, const struct wr_value *scheduler)
{
	const struct wr_value *found[SCHEDULER_KEYS] = {0};
	struct scheduler_reading reading = {&build->reports, found};
	struct wr_plan_scheduler *plan = &build->plan->scheduler;

	if (scheduler)
		wr_fields_read(&build->reports, &scheduler_at, scheduler, "the scheduler", scheduler_fields,
			       found);
	plan->workers = found[WORKERS] ? (unsigned)scheduler_read_integer(&reading, WORKERS, 1, 64) : 0;
	plan->signal = scheduler_read_choice(&reading, SIGNAL, WR_SIGNALS);
	plan->has_drain = scheduler_read_duration(&reading, DRAIN, 0, &plan->drain_ns);
	plan->has_grace = scheduler_read_duration(&reading, GRACE, -1, &plan->deadlock_grace_ns);
	plan->has_duration = scheduler_read_duration(&reading, DURATION, 0, &plan->max_duration_ns);
	plan->has_spin = scheduler_read_duration(&reading, SPIN, 0, &plan->worker_spin_ns);
	plan->has_seed = found[SEED];
	plan->seed = (uint64_t)scheduler_read_integer(&reading, SEED, 0, INT64_MAX);
	plan->max_in_flight =
		found[IN_FLIGHT] ? scheduler_read_integer(&reading, IN_FLIGHT, 0, WR_IN_FLIGHT_MAX) : -1;
	plan->gpu_time = scheduler_read_sampling(&reading, GPU_TIME);
	plan->device_memory = scheduler_read_size(&reading, DEVICE_MEMORY, 64 << 20);
	plan->host_memory = scheduler_read_size(&reading, HOST_MEMORY, 64 << 20);
	if (scheduler_read_choice(&reading, BACKEND, "auto|cuda|host|sim") < 0)
		return WEIR_OK;
	plan->backend = wr_strdup(found[BACKEND]->string);
	return plan->backend ? WEIR_OK : WEIR_E_NOMEM;
}

_Static_assert(!WR_SIGNAL_AUTO && WR_SIGNAL_CALLBACK == 1 && WR_SIGNAL_INLINE == 2 && WR_SIGNAL_FLAG == 3,
	       "the order of WR_SIGNALS");

/* --- the root --- */

/* Checks every object of the tree, known or not. The recursion is bounded by the depth of the tree. */
static void check_duplicates(struct wr_build *build, const struct wr_value *value, const struct wr_at *up)
{
	for (size_t i = 0; i < wr_value_count(value); i++) {
		const struct wr_member *member = wr_value_at(value, i);
		struct wr_at at = {up, member->key, i};
		size_t first = member->key ? wr_value_index(value, member->key) : i;

		if (first != i)
			wr_report(&build->reports, WR_W_DUPLICATE_KEY, &at, member->place,
				  "'%s' already appears at %u:%u: keep one of them",
				  wr_shown(member->key).text, wr_value_at(value, first)->place.line,
				  wr_value_at(value, first)->place.column);
		check_duplicates(build, &member->value, &at);
	}
}

static weir_status build_name(struct wr_build *build, const struct wr_value *name)
{
	if (name && !wr_name_ok(name->string))
		wr_report(&build->reports, WR_W_NAME, &(struct wr_at){NULL, "name", 0}, name->place,
			  WR_NAME_WRONG, wr_shown(name->string).text);
	build->plan->name = wr_strdup(name ? name->string : "graph");
	return build->plan->name ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status build_root(struct wr_build *build, const struct wr_value *root)
{
	enum {
		WEIR,
		NAME,
		SCHEDULER,
		RESOURCES,
		ENTITIES,
		CONNECTIONS,
		INLETS,
		OUTLETS,
		USE_DEFAULT_STREAM,
		SCHEMA,
		KEYS = 20
	};
	static const struct wr_field fields[KEYS] = {
		{"weir", WR_INTEGER, true},
		{"name", WR_STRING, false},
		{"scheduler", WR_OBJECT, false},
		{"resources", WR_OBJECT, false},
		{"entities", WR_ARRAY, true},
		{"connections", WR_ARRAY, false},
		{"inlets", WR_ARRAY, false},
		{"outlets", WR_ARRAY, false},
		{"use_default_stream", WR_BOOL, false},
		[SCHEMA] = {"$schema", WR_STRING, false}, /* for editors that complete and check keys */
		{"include", 0, false},
		{"subgraphs", 0, false},
		{"templates", 0, false},
		{"holoscan_defaults", 0, false},
		{"holoscan_or", 0, false},
	};
	const struct wr_value *found[KEYS];
	weir_status status;

	if (!wr_type_check(&build->reports, NULL, root, WR_OBJECT))
		return WEIR_OK;
	wr_fields_read(&build->reports, NULL, root, "a graph", fields, found);
	if (found[WEIR] && found[WEIR]->integer != 1)
		wr_report(&build->reports, WR_W_VERSION, &(struct wr_at){NULL, "weir", 0}, found[WEIR]->place,
			  "unknown version %lld of the format: it must be 1",
			  (long long)found[WEIR]->integer);
	build->use_default_stream = found[USE_DEFAULT_STREAM] && found[USE_DEFAULT_STREAM]->boolean;
	status = build_name(build, found[NAME]);
	if (!status)
		status = wr_build_resources(build, found[RESOURCES]);
	if (!status)
		status = build_scheduler(build, found[SCHEDULER]);
	if (!status && found[ENTITIES])
		status = wr_build_entities(build, found[ENTITIES]);
	build->unresolved = !found[CONNECTIONS] && wr_value_index(root, "connections") != WR_NO_INDEX;
	if (!status && found[CONNECTIONS])
		status = wr_build_connections(build, found[CONNECTIONS]);
	if (!status && found[INLETS])
		status = wr_build_inlets(build, found[INLETS]);
	if (!status && found[OUTLETS])
		status = wr_build_outlets(build, found[OUTLETS]);
	return status;
}

static weir_status build_all(struct wr_build *build, const struct wr_value *root)
{
	weir_status status;

	check_duplicates(build, root, NULL);
	status = build_root(build, root);
	wr_build_gates(build);
	if (!status)
		status = wr_build_default_conditions(build);
	if (!status)
		status = wr_build_claims(build);
	if (status)
		return status;
	wr_build_check_resources(build);
	wr_build_check_conditions(build);
	wr_build_check_connections(build);
	wr_build_check_gates(build);
	wr_build_check_latest(build);
	wr_build_check_aligned(build);
	wr_build_check_main(build);
	wr_build_check_instances(build);
	if (!build->open_ports && !build->unresolved)
		wr_build_check_unconnected(build);
	status = wr_build_check_types(build);
	if (!status)
		status = wr_build_check_memory(build);
	if (!status)
		status = wr_build_check_cycles(build);
	if (!status)
		status = wr_build_check_joins(build);
	return status ? status : wr_build_depths(build);
}

weir_status wr_plan_create(struct wr_plan **out, const weir_registry *registry,
			   const weir_description *description, bool open_ports, weir_diagnostic_fn *fn,
			   void *arg)
{
	struct wr_build build = {.registry = registry,
				 .root = &description->confined,
				 .reports.file = description->file,
				 .open_ports = open_ports};
	weir_status status = WEIR_OK, delivered;

	build.plan = wr_alloc(1, sizeof(*build.plan));
	if (build.plan) {
		build.plan->registry = wr_registry_stamp(registry);
		build.plan->from_stdin = description->from_stdin;
		build.plan->file = description->file ? wr_strdup(description->file) : NULL;
	}
	if (!build.plan || (description->file && !build.plan->file))
		status = WEIR_E_NOMEM;
	if (!status)
		status = build_all(&build, &description->root);
	if (!status)
		status = wr_description_give_memory(description, build.plan, &build.reports);
	delivered = wr_reports_deliver(&build.reports, status ? NULL : fn, arg);
	if (!status)
		status = delivered;
	if (build.plan) {
		build.plan->shown_count = build.plan->entity_count;
		build.plan->shown_connections = build.plan->connection_count;
	}
	wr_names_finish(&build.resource_names);
	wr_free(build.resources);
	wr_free(build.origins);
	if (status == WEIR_E_NOMEM)
		wr_fail(status, "out of memory"); /* a report may have replaced last_error */
	if (status)
		wr_plan_destroy(build.plan);
	else
		*out = build.plan;
	return status;
}

static void finish_entity(struct wr_plan_entity *entity)
{
	bool hidden = entity->role == WR_INSTANCE || entity->role == WR_JOINER;

	for (size_t i = 0; i < entity->condition_count; i++) {
		wr_free(entity->conditions[i].name);
		wr_values_destroy(entity->conditions[i].values);
	}
	wr_free(entity->conditions);
	for (size_t i = 0; i < entity->input_count; i++)
		wr_port_type_finish(&entity->inputs[i].type);
	for (size_t i = 0; i < entity->output_count; i++)
		wr_port_type_finish(&entity->outputs[i].type);
	wr_scope_finish(&entity->scope);
	wr_free(entity->inputs);
	wr_free(entity->outputs);
	if (hidden) /* the rest is the dealer's */
		return;
	wr_values_destroy(entity->values);
	wr_described_destroy(entity->described);
	wr_free(entity->name);
}

static void finish_resources(struct wr_plan *plan)
{
	for (size_t i = 0; i < plan->stream_pool_count; i++)
		wr_free(plan->stream_pools[i].name);
	for (size_t i = 0; i < plan->green_context_pool_count; i++) {
		wr_free(plan->green_context_pools[i].name);
		wr_free(plan->green_context_pools[i].sizes);
	}
	for (size_t i = 0; i < plan->green_context_count; i++)
		wr_free(plan->green_contexts[i].name);
	for (size_t i = 0; i < plan->memory_pool_count; i++) {
		wr_free(plan->memory_pools[i].name);
		wr_free(plan->memory_pools[i].memory);
	}
	wr_free(plan->memory_pools);
	wr_free(plan->stream_pools);
	wr_free(plan->green_context_pools);
	wr_free(plan->green_contexts);
}

void wr_plan_destroy(struct wr_plan *plan)
{
	if (!plan)
		return;
	finish_resources(plan);
	for (size_t i = 0; i < plan->entity_count; i++)
		finish_entity(&plan->entities[i]);
	wr_free(plan->entities);
	wr_names_finish(&plan->names);
	wr_free(plan->connections);
	wr_free(plan->inlets);
	wr_free(plan->outlets);
	wr_free(plan->scheduler.backend);
	wr_free(plan->name);
	wr_free(plan->file);
	wr_free(plan);
}
