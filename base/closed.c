#include "base/closed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"

struct wr_closed_region {
	struct wr_closed_region *next;
	void *data;
	size_t bytes;
};

static void protect_locked(const struct wr_closed_memory *memory, const struct wr_closed_region *region)
{
	int access = memory->opened ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (memory->key == WR_CLOSED_TO_ALL)
		(void)mprotect(region->data, region->bytes, access);
}

static void protect_all_locked(const struct wr_closed_memory *memory)
{
	for (const struct wr_closed_region *region = memory->regions; region; region = region->next)
		protect_locked(memory, region);
}

/* Linux denies the pages of a new key to all threads but the caller. */
weir_status wr_closed_init_by_thread(struct wr_closed_memory *memory)
{
	int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);

	if (key < 0)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "strict: the host's processor or system has no protection keys (%s): use the "
			       "backend sim",
			       strerror(errno));
	*memory = (struct wr_closed_memory){.key = key};
	return WEIR_OK;
}

void wr_closed_finish(struct wr_closed_memory *memory)
{
	if (memory->key != WR_CLOSED_TO_ALL)
		pkey_free(memory->key);
	*memory = WR_CLOSED_MEMORY;
}

static void *map(const struct wr_closed_memory *memory, size_t bytes)
{
	void *data = wr_memory_fails() ? MAP_FAILED
				       : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return NULL;
	if (memory->key == WR_CLOSED_TO_ALL ||
	    !pkey_mprotect(data, bytes, PROT_READ | PROT_WRITE, memory->key))
		return data;
	munmap(data, bytes);
	return NULL;
}

weir_status wr_closed_alloc(struct wr_closed_memory *memory, size_t bytes, void **out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct wr_closed_region *region = wr_alloc(1, sizeof *region);

	if (!region)
		return WEIR_E_NOMEM;
	region->bytes = bytes < SIZE_MAX - page ? (bytes / page + 1) * page : bytes;
	region->data = map(memory, region->bytes);
	if (!region->data) {
		wr_free(region);
		return wr_fail(WEIR_E_NOMEM, "no %zu bytes of memory", bytes);
	}
	wr_global_lock();
	region->next = memory->regions;
	memory->regions = region;
	protect_locked(memory, region);
	wr_global_unlock();
	*out = region->data;
	return WEIR_OK;
}

void wr_closed_free(struct wr_closed_memory *memory, void *data)
{
	struct wr_closed_region **at = &memory->regions, *region;

	wr_global_lock();
	while (*at && (*at)->data != data)
		at = &(*at)->next;
	region = *at;
	if (region)
		*at = region->next;
	wr_global_unlock();
	if (region)
		munmap(region->data, region->bytes);
	wr_free(region);
}

bool wr_closed_holds(const struct wr_closed_memory *memory, const void *address)
{
	for (const struct wr_closed_region *region = memory->regions; region; region = region->next)
		if ((uintptr_t)address - (uintptr_t)region->data < region->bytes)
			return true;
	return false;
}

void wr_closed_open(struct wr_closed_memory *memory)
{
	wr_global_lock();
	if (!memory->opened++)
		protect_all_locked(memory);
	wr_global_unlock();
}

void wr_closed_close(struct wr_closed_memory *memory)
{
	wr_global_lock();
	if (!--memory->opened)
		protect_all_locked(memory);
	wr_global_unlock();
}

void wr_closed_open_thread(const struct wr_closed_memory *memory)
{
	if (memory->key != WR_CLOSED_TO_ALL)
		pkey_set(memory->key, 0);
}
