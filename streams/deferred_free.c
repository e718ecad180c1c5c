/*
 * The retire list (T4): payloads whose last reference is gone, but whose readers on the device may not be
 * done.
 *
 * Whoever looks takes the whole list off, asks the device without a lock, releases what is complete and puts
 * the rest back. An entry holds a live reference if it was listed by a worker of the run, who holds one
 * himself; a foreign thread, or a worker of another run, cannot take any. A forfeit meanwhile finds the
 * entries gone: it counts itself, and whoever puts them back sees that and gives theirs up, too.
 */
#include "base/bug.h"
#include "streams/system.h"

weir_status wr_deferred_frees_init(struct wr_system *system)
{
	return wr_mutex_init(&system->deferred_frees.lock);
}

void wr_deferred_frees_finish(struct wr_system *system)
{
	wr_mutex_finish(&system->deferred_frees.lock);
}

static bool complete(struct wr_system *system, const struct wr_deferred_free *entry)
{
	if (WR_BUG(PAYLOAD_EARLY))
		return true;
	for (size_t i = 0; i < entry->count; i++)
		if (!wr_fence_over(system, entry->fences[i]))
			return false;
	return true;
}

static bool seen(struct wr_system *system, const struct wr_deferred_free *entry)
{
	for (size_t i = 0; i < entry->count; i++)
		if (!wr_fence_seen(system, entry->fences[i]))
			return false;
	return true;
}

static void put_locked(struct wr_system *system, struct wr_deferred_free *entry, bool ready)
{
	struct wr_deferred_free **list = ready ? &system->deferred_frees.ready : &system->deferred_frees.listed;

	entry->next = *list;
	*list = entry;
	wr_fetch_add(ready ? &system->deferred_frees.ready_count : &system->deferred_frees.count, 1);
}

bool wr_defer_free(struct wr_system *system, struct wr_deferred_free *entry)
{
	struct wr_waker *waker;

	entry->referenced = false;
	if (seen(system, entry) || complete(system, entry))
		return true;
	waker = wr_thread_local() && !entry->foreign ? wr_load(&system->waker) : NULL;
	if (waker)
		waker->take(waker);
	entry->referenced = waker != NULL;
	wr_mutex_lock(&system->deferred_frees.lock);
	put_locked(system, entry, false);
	wr_mutex_unlock(&system->deferred_frees.lock);
	wr_system_added(system);
	return false;
}

uint64_t wr_system_deferred_frees(const struct wr_system *system)
{
	struct wr_system *own = (struct wr_system *)system;

	return wr_load(&own->deferred_frees.count) + wr_load(&own->deferred_frees.ready_count);
}

bool wr_system_deferred_frees_ready(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->deferred_frees.ready_count) > 0;
}

/* Takes the list off; *ref drops: as of now. */
static struct wr_deferred_free *take(struct wr_system *system, bool ready, uint64_t *ref_drops)
{
	struct wr_deferred_free *list = NULL;

	wr_mutex_lock(&system->deferred_frees.lock);
	*ref_drops = system->deferred_frees.ref_drops;
	if (ready) {
		list = system->deferred_frees.ready;
		system->deferred_frees.ready = NULL;
		wr_store(&system->deferred_frees.ready_count, 0);
	} else {
		list = system->deferred_frees.listed;
		system->deferred_frees.listed = NULL;
		wr_store(&system->deferred_frees.count, 0);
	}
	wr_mutex_unlock(&system->deferred_frees.lock);
	return list;
}

static void give_up(struct wr_deferred_free *entry, struct wr_waker *waker)
{
	bool referenced = entry->referenced;

	entry->referenced = false;
	if (referenced && waker)
		waker->drop(waker);
}

static void put_back(struct wr_system *system, struct wr_deferred_free *entry, bool ready, uint64_t ref_drops,
		     struct wr_waker *waker)
{
	bool refs_dropped;

	wr_mutex_lock(&system->deferred_frees.lock);
	refs_dropped = ref_drops != system->deferred_frees.ref_drops;
	if (!refs_dropped)
		put_locked(system, entry, ready);
	wr_mutex_unlock(&system->deferred_frees.lock);
	if (!refs_dropped)
		return;
	give_up(entry, waker);
	wr_mutex_lock(&system->deferred_frees.lock);
	put_locked(system, entry, ready);
	wr_mutex_unlock(&system->deferred_frees.lock);
}

/* The memory is back before the reference is dropped (S4); the entry is gone with it. */
static void release(struct wr_deferred_free *entry, struct wr_waker *waker)
{
	bool referenced = entry->referenced;

	entry->release(entry);
	if (referenced && waker)
		waker->drop(waker);
}

/* True: some are not complete yet. */
static bool look(struct wr_system *system, struct wr_waker *waker, bool ready, bool destructors)
{
	uint64_t ref_drops;
	bool told = false, kept = false;
	struct wr_deferred_free *entry = take(system, ready, &ref_drops);

	while (entry) {
		struct wr_deferred_free *next = entry->next;
		bool done = ready || complete(system, entry);

		if (done && (destructors || !entry->destructor))
			release(entry, waker);
		else
			put_back(system, entry, done, ref_drops, waker);
		told |= done && !destructors;
		kept |= !done;
		entry = next;
	}
	/* Whoever looks need not be the loop, which sends a worker to the destructors. */
	if (told && waker && wr_system_deferred_frees_ready(system))
		waker->kick(waker);
	return kept;
}

bool wr_deferred_frees_look(struct wr_system *system, bool destructors)
{
	struct wr_waker *waker;
	bool kept;

	if (!wr_load(&system->deferred_frees.count) && !(destructors && wr_system_deferred_frees_ready(system)))
		return false;
	waker = wr_system_enter(system);
	kept = look(system, waker, false, destructors);
	if (destructors && wr_system_deferred_frees_ready(system))
		look(system, waker, true, true);
	wr_system_leave(system);
	return kept;
}

/* While the list was taken off, the watch may have found it empty, and rest. */
void wr_system_run_deferred_frees(struct wr_system *system, bool destructors)
{
	if (wr_deferred_frees_look(system, destructors))
		wr_system_added(system);
}

static size_t drop_refs_locked(struct wr_deferred_free *entry)
{
	size_t n = 0;

	for (; entry; entry = entry->next) {
		n += entry->referenced;
		entry->referenced = false;
	}
	return n;
}

void wr_deferred_frees_drop_refs(struct wr_system *system, struct wr_waker *waker)
{
	size_t n;

	wr_mutex_lock(&system->deferred_frees.lock);
	system->deferred_frees.ref_drops++;
	n = drop_refs_locked(system->deferred_frees.listed) + drop_refs_locked(system->deferred_frees.ready);
	wr_mutex_unlock(&system->deferred_frees.lock);
	while (n--)
		waker->drop(waker);
}
