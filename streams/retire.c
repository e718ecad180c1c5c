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

weir_status wr_retire_init(struct wr_system *system)
{
	return wr_mutex_init(&system->retire.lock);
}

void wr_retire_finish(struct wr_system *system)
{
	wr_mutex_finish(&system->retire.lock);
}

static bool complete(struct wr_system *system, const struct wr_retired *entry)
{
	if (WR_BUG(PAYLOAD_EARLY))
		return true;
	for (size_t i = 0; i < entry->count; i++)
		if (!wr_fence_over(system, entry->fences[i]))
			return false;
	return true;
}

static bool seen(struct wr_system *system, const struct wr_retired *entry)
{
	for (size_t i = 0; i < entry->count; i++)
		if (!wr_fence_seen(system, entry->fences[i]))
			return false;
	return true;
}

static void put_locked(struct wr_system *system, struct wr_retired *entry, bool ready)
{
	struct wr_retired **list = ready ? &system->retire.ready : &system->retire.listed;

	entry->next = *list;
	*list = entry;
	wr_fetch_add(ready ? &system->retire.ready_count : &system->retire.count, 1);
}

bool wr_retire(struct wr_system *system, struct wr_retired *entry)
{
	struct wr_waker *waker;

	entry->referenced = false;
	if (seen(system, entry) || complete(system, entry))
		return true;
	waker = wr_thread_local() && !entry->foreign ? wr_load(&system->waker) : NULL;
	if (waker)
		waker->take(waker);
	entry->referenced = waker != NULL;
	wr_mutex_lock(&system->retire.lock);
	put_locked(system, entry, false);
	wr_mutex_unlock(&system->retire.lock);
	wr_system_added(system);
	return false;
}

uint64_t wr_system_retired(const struct wr_system *system)
{
	struct wr_system *own = (struct wr_system *)system;

	return wr_load(&own->retire.count) + wr_load(&own->retire.ready_count);
}

bool wr_system_retired_ready(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->retire.ready_count) > 0;
}

/* Takes the list off; *forfeits: as of now. */
static struct wr_retired *take(struct wr_system *system, bool ready, uint64_t *forfeits)
{
	struct wr_retired *list = NULL;

	wr_mutex_lock(&system->retire.lock);
	*forfeits = system->retire.forfeits;
	if (ready) {
		list = system->retire.ready;
		system->retire.ready = NULL;
		wr_store(&system->retire.ready_count, 0);
	} else {
		list = system->retire.listed;
		system->retire.listed = NULL;
		wr_store(&system->retire.count, 0);
	}
	wr_mutex_unlock(&system->retire.lock);
	return list;
}

static void give_up(struct wr_retired *entry, struct wr_waker *waker)
{
	bool referenced = entry->referenced;

	entry->referenced = false;
	if (referenced && waker)
		waker->drop(waker);
}

static void put_back(struct wr_system *system, struct wr_retired *entry, bool ready, uint64_t forfeits,
		     struct wr_waker *waker)
{
	bool forfeited;

	wr_mutex_lock(&system->retire.lock);
	forfeited = forfeits != system->retire.forfeits;
	if (!forfeited)
		put_locked(system, entry, ready);
	wr_mutex_unlock(&system->retire.lock);
	if (!forfeited)
		return;
	give_up(entry, waker);
	wr_mutex_lock(&system->retire.lock);
	put_locked(system, entry, ready);
	wr_mutex_unlock(&system->retire.lock);
}

/* The memory is back before the reference is dropped (S4); the entry is gone with it. */
static void release(struct wr_retired *entry, struct wr_waker *waker)
{
	bool referenced = entry->referenced;

	entry->release(entry);
	if (referenced && waker)
		waker->drop(waker);
}

/* True: some are not complete yet. */
static bool look(struct wr_system *system, struct wr_waker *waker, bool ready, bool destructors)
{
	uint64_t forfeits;
	bool told = false, kept = false;
	struct wr_retired *entry = take(system, ready, &forfeits);

	while (entry) {
		struct wr_retired *next = entry->next;
		bool done = ready || complete(system, entry);

		if (done && (destructors || !entry->destructor))
			release(entry, waker);
		else
			put_back(system, entry, done, forfeits, waker);
		told |= done && !destructors;
		kept |= !done;
		entry = next;
	}
	/* Whoever looks need not be the loop, which sends a worker to the destructors. */
	if (told && waker && wr_system_retired_ready(system))
		waker->kick(waker);
	return kept;
}

bool wr_retire_look(struct wr_system *system, bool destructors)
{
	struct wr_waker *waker;
	bool kept;

	if (!wr_load(&system->retire.count) && !(destructors && wr_system_retired_ready(system)))
		return false;
	waker = wr_system_enter(system);
	kept = look(system, waker, false, destructors);
	if (destructors && wr_system_retired_ready(system))
		look(system, waker, true, true);
	wr_system_leave(system);
	return kept;
}

/* While the list was taken off, the watch may have found it empty, and rest. */
void wr_system_retire_look(struct wr_system *system, bool destructors)
{
	if (wr_retire_look(system, destructors))
		wr_system_added(system);
}

static size_t forfeit_locked(struct wr_retired *entry)
{
	size_t n = 0;

	for (; entry; entry = entry->next) {
		n += entry->referenced;
		entry->referenced = false;
	}
	return n;
}

void wr_retire_forfeit(struct wr_system *system, struct wr_waker *waker)
{
	size_t n;

	wr_mutex_lock(&system->retire.lock);
	system->retire.forfeits++;
	n = forfeit_locked(system->retire.listed) + forfeit_locked(system->retire.ready);
	wr_mutex_unlock(&system->retire.lock);
	while (n--)
		waker->drop(waker);
}
