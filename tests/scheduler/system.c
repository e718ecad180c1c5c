#include "system.h"

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/graph.h"

/* Calls of the function of streams/ of that name are linked to these (--wrap). */
int __wrap_wr_system_devices(const struct wr_system *system);
weir_status __wrap_wr_system_alloc(struct wr_system *system, int device, size_t bytes, void **out);
void __wrap_wr_system_free(struct wr_system *system, int device, void *data, size_t bytes);
weir_status __wrap_wr_fence_query(struct wr_system *system, weir_fence fence);
void __wrap_wr_system_kick(struct wr_system *system);
void __wrap_wr_system_collect_between_runs(struct wr_system *system);
bool __wrap_wr_defer_free(struct wr_system *system, struct wr_deferred_free *entry);

void work_for(struct wr_local *local, unsigned index, const struct wr_pool *pool)
{
	*local = (struct wr_local){.index = index, .pool = pool};
	wr_thread_set_local(local);
}

void be_foreign(void)
{
	wr_thread_set_local(NULL);
}

weir_graph *graph_of(struct wr_pool *pool)
{
	static weir_graph graph;

	if (graph.pool != pool) /* threads that share a pool only read */
		graph.pool = pool;
	return &graph;
}

int __wrap_wr_system_devices(const struct wr_system *system)
{
	(void)system;
	return 1;
}

weir_status __wrap_wr_system_alloc(struct wr_system *system, int device, size_t bytes, void **out)
{
	void *memory = device > 0 ? NULL : wr_alloc_aligned(64, bytes);

	if (!memory)
		return device > 0 ? wr_fail(WEIR_E_INVALID, "no device %d", device) : WEIR_E_NOMEM;
	system->allocations++;
	*out = memory;
	return WEIR_OK;
}

void __wrap_wr_system_free(struct wr_system *system, int device, void *data, size_t bytes)
{
	(void)device, (void)bytes;
	system->allocations--;
	wr_free(data);
}

weir_status __wrap_wr_fence_query(struct wr_system *system, weir_fence fence)
{
	if (fence.stream == UNKNOWN_STREAM)
		return wr_fail(WEIR_E_INVALID, "fence: no stream %d", UNKNOWN_STREAM);
	return system->complete ? WEIR_OK : WEIR_E_BUSY;
}

/* The loop of a run, of which there is none. */
void __wrap_wr_system_kick(struct wr_system *system)
{
	(void)system;
}

void __wrap_wr_system_collect_between_runs(struct wr_system *system)
{
	(void)system;
}

bool __wrap_wr_defer_free(struct wr_system *system, struct wr_deferred_free *entry)
{
	if ((system->complete || entry->count == 0) && (wr_thread_local() || !entry->destructor))
		return true;
	entry->next = system->deferred;
	system->deferred = entry;
	system->listed++;
	return false;
}

void complete(struct wr_system *system)
{
	system->complete = true;
	while (system->deferred) {
		struct wr_deferred_free *entry = system->deferred;

		system->deferred = entry->next;
		system->listed--;
		entry->release(entry);
	}
}
