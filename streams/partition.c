/*
 * Partitions of a device's multiprocessors. The backend creates them; the
 * system owns them and destroys them after its streams.
 */
#include "base/memory.h"
#include "base/status.h"
#include "streams/system.h"

struct wr_partition {
	struct wr_partition *next;
	void *native;
};

void *wr_partition_native(const struct wr_partition *partition)
{
	return partition ? partition->native : NULL;
}

static void system_own_partition(struct wr_system *system, struct wr_partition *partition)
{
	struct wr_partition *head = wr_load(&system->partitions);

	do
		partition->next = head;
	while (!wr_cas(&system->partitions, &head, partition));
}

/* Allocated before the backend is called, so that no partition is lost for lack of memory. */
static bool make_handles(struct wr_partition **out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wr_alloc(1, sizeof *out[i]);
		if (!out[i])
			return false;
	}
	return true;
}

static void free_handles(struct wr_partition **out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wr_free(out[i]);
}

/* The remainder may be NULL. */
static void partitions_return(struct wr_system *system, struct wr_partition **handles, void *const *natives,
			      size_t count, struct wr_partition **out)
{
	for (size_t i = 0; i < count; i++) {
		handles[i]->native = natives[i];
		out[i] = natives[i] ? handles[i] : NULL;
		if (natives[i])
			system_own_partition(system, handles[i]);
		else
			wr_free(handles[i]);
	}
}

static weir_status check_spec(struct wr_system *system, const struct wr_partitions_spec *spec)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (spec->device < 0 || spec->device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "green context pool '%s': device %d: this machine has %d",
			       spec->name, spec->device, system->devices);
	if (!system->backend->partitions_create)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "green context pool '%s': the %s backend has no partitions", spec->name,
			       system->backend->name);
	return WEIR_OK;
}

weir_status wr_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
				 struct wr_partition **out, uint32_t *sms)
{
	size_t count = spec->count + 1;
	void **natives = wr_alloc(count, sizeof *natives);
	struct wr_partition **handles = wr_alloc(count, sizeof *handles);
	weir_status status = natives && handles ? check_spec(system, spec) : WEIR_E_NOMEM;

	if (!status && !make_handles(handles, count))
		status = WEIR_E_NOMEM;
	if (!status)
		status = wr_system_check(
			system, system->backend->partitions_create(system->native, spec, natives, sms));
	if (!status)
		partitions_return(system, handles, natives, count, out);
	else if (handles)
		free_handles(handles, count);
	wr_free(handles);
	wr_free(natives);
	return status;
}

void wr_partitions_finish(struct wr_system *system)
{
	struct wr_partition *partition = wr_load(&system->partitions);

	while (partition) {
		struct wr_partition *next = partition->next;

		system->backend->partition_destroy(system->native, partition->native);
		wr_free(partition);
		partition = next;
	}
}
