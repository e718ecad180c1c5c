/*
 * Where streams come from: the table that has all of them; opening, sharing and closing them; stream pools,
 * and partitions of a device's multiprocessors.
 *
 * A pool has up to `max` streams of one kind. It counts the streams in use; the streams are in the system's
 * table, and a closed one is reused for the same pool. Partitions are created by the backend; the system owns
 * them and destroys them after its streams.
 */
#include "streams/pool.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/flag.h"
#include "streams/system.h"

struct wr_stream_pool {
	struct wr_stream_pool *next;
	struct wr_system *system;
	struct wr_stream_pool_spec spec;
	_Atomic uint32_t taken;
};

/*
 * === the table of streams ===
 *
 * A stream is entered once; each time it is opened it gets a new id.
 *
 * A closed stream is reused once all values recorded on it were seen complete. Several streams may share one
 * native stream, the root's. A root is not reused while it has sharers, and a sharer counts until it is
 * closed and drained, since its work is on the root's queue.
 *
 * system->lock is taken in this file only; nothing is created and no device queried under it. It guards
 * opening and the counts of sharers. Finding a stream takes no lock: a place of the table is written once,
 * with release, before the count that bounds all walks, and its stream is freed with the system. An empty
 * place is NULL. The id, written last, tells which open the stream belongs to.
 */

/* --- entering a stream --- */

static weir_status table_enter_locked(struct wr_system *system, weir_stream *stream)
{
	uint32_t index = wr_load(&system->count);
	struct wr_page *page;

	if (index == WR_PAGES * WR_PAGE)
		return wr_fail(WEIR_E_INVALID, "more than %d streams in one graph", WR_PAGES * WR_PAGE);
	page = wr_load(&system->table[index / WR_PAGE]);
	if (!page) {
		page = wr_alloc(1, sizeof *page);
		if (!page)
			return WEIR_E_NOMEM;
		wr_store_release(&system->table[index / WR_PAGE], page);
	}
	stream->index = index;
	wr_store_release(&page->streams[index % WR_PAGE], stream);
	wr_store(&system->count, index + 1);
	return WEIR_OK;
}

/* Writes the id last: from here on the stream is found by it. */
static void stream_set_id_locked(weir_stream *stream, const char *owner)
{
	uint64_t serial = wr_fetch_add(&stream->system->serials, 1) + 1;

	for (int i = 0; i < WR_WAITED; i++)
		stream->waited[i] = (weir_fence){0, 0};
	stream->in_tick = false;
	stream->kick_value = 0;
	wr_store(&stream->owner, owner ? owner : "?");
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	wr_store_relaxed(&stream->flagless, false);
	wr_flag_catch_up(stream);
	if (wr_exchange(&stream->closed, false))
		wr_fetch_sub(&stream->system->closed_count, 1);
	wr_store(&stream->id, stream->system->serial << 48 | serial << 16 | stream->index);
}

/* --- reuse --- */

/* Queries the device, so the lock is not held. */
static void query_closed(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (wr_load(&stream->closed))
			wr_stream_idle(stream);
	}
}

/*
 * One still dirty, or with a flag after its last record, could not be recorded: the end of its work is
 * unknown.
 */
static bool known_drained(weir_stream *stream)
{
	return wr_load(&stream->closed) && !wr_load(&stream->dirty) && !wr_load(&stream->flag_after_record) &&
	       !wr_load(&stream->inline_callbacks) &&
	       wr_load(&stream->completed) >= wr_load(&stream->submitted);
}

static void uncount_drained_locked(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!stream->sharing || !known_drained(stream))
			continue;
		stream->sharing = false;
		wr_load(&stream->root)->sharers--;
	}
}

/* A sharer may share any other root of the device the next time. */
static bool is_of_kind_locked(const weir_stream *stream, const struct wr_stream_kind *kind)
{
	bool shares = wr_load(&stream->root) != stream;

	if (shares != (kind->root != NULL) || stream->spec.device != kind->spec.device)
		return false;
	return shares ||
	       (stream->spec.flags == kind->spec.flags && stream->spec.priority == kind->spec.priority &&
		stream->spec.partition == kind->spec.partition && stream->pool == kind->pool &&
		stream->wrapped == kind->wrapped);
}

/*
 * A sharer seen drained only after uncount_drained_locked is still counted at its root; a later open finds
 * it. The search begins after the last stream found, so that one of many free streams is found at once.
 */
static weir_stream *table_find_free_locked(struct wr_system *system, const struct wr_stream_kind *kind)
{
	uint32_t count = wr_load(&system->count);

	for (uint32_t i = 0; i < count; i++) {
		weir_stream *stream;

		system->search_from = system->search_from + 1 < count ? system->search_from + 1 : 0;
		stream = wr_stream_at(system, system->search_from);
		if (is_of_kind_locked(stream, kind) && known_drained(stream) && !stream->sharers &&
		    !stream->sharing)
			return stream;
	}
	return NULL;
}

static void stream_set_root_locked(weir_stream *stream, const struct wr_stream_kind *kind)
{
	if (kind->root || kind->wrapped) {
		wr_store(&stream->native, kind->native);
		stream->queue = kind->native;
	}
	if (!kind->root)
		return;
	wr_store(&stream->root, kind->root); /* the caller has counted it there */
	stream->sharing = true;
}

/*
 * Reopens a closed, drained stream of the kind under a new id, or returns NULL. `thorough`: also queries
 * closed streams that were not seen drained yet.
 */
static weir_stream *table_find_and_reopen(struct wr_system *system, const struct wr_stream_kind *kind,
					  const char *owner, bool thorough)
{
	weir_stream *found;

	if (thorough)
		query_closed(system);
	wr_mutex_lock(&system->lock);
	if (thorough)
		uncount_drained_locked(system);
	found = table_find_free_locked(system, kind);
	if (found) {
		stream_set_root_locked(found, kind);
		stream_set_id_locked(found, owner);
	}
	wr_mutex_unlock(&system->lock);
	return found;
}

/*
 * Adds a new stream and gives it an id: other threads find it from here on.
 * Takes the stream on success. Fails: WEIR_E_NOMEM; WEIR_E_INVALID: too many.
 */
static weir_status table_enter(weir_stream *stream, const struct wr_stream_kind *kind, const char *owner)
{
	struct wr_system *system = stream->system;
	weir_status status;

	wr_mutex_lock(&system->lock);
	stream_set_root_locked(stream, kind);
	status = table_enter_locked(system, stream);
	if (!status)
		stream_set_id_locked(stream, owner);
	wr_mutex_unlock(&system->lock);
	return status;
}

/* --- closing --- */

/* Drained or not. Returns false if it was closed already. Takes no lock. */
static bool table_close(weir_stream *stream)
{
	wr_store(&stream->owner, "a closed stream");
	wr_fetch_add(&stream->system->closed_count, 1);
	if (!wr_exchange(&stream->closed, true)) /* from here on it may be reused */
		return true;
	wr_fetch_sub(&stream->system->closed_count, 1);
	return false;
}

/* Returns false if others share it: then it is still open. */
static bool table_close_unshared(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	bool shared;

	query_closed(system);
	wr_mutex_lock(&system->lock);
	uncount_drained_locked(system);
	shared = stream->sharers > 0;
	if (!shared)
		table_close(stream);
	wr_mutex_unlock(&system->lock);
	return !shared;
}

/* --- life --- */

/* It is drained or half-built. */
static void stream_free(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	void *native = wr_load(&stream->native);

	wr_event_rings_free(stream);
	if (native && wr_load(&stream->root) == stream && !stream->wrapped) {
		if (stream->kept || wr_load(&stream->native_given))
			wr_device_stream_keep(system, &stream->spec, native);
		else
			wr_device_stream_destroy(system, native);
	}
	wr_free(stream);
}

weir_status wr_table_init(struct wr_system *system)
{
	system->defaults = wr_alloc((size_t)system->devices, sizeof *system->defaults);
	return system->defaults ? WEIR_OK : WEIR_E_NOMEM;
}

void wr_table_finish(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		stream_free(wr_stream_at(system, i));
	for (int i = 0; i < WR_PAGES; i++)
		wr_free(wr_load(&system->table[i]));
	wr_free((void *)system->defaults);
}

/*
 * === opening ===
 *
 * New streams or closed ones of the table: with a native stream of the system's own, around one of the
 * caller's, or sharing another's (T5, T6).
 *
 * Several streams may share one native stream, the root's: each has its own id, values and live reference;
 * the device's queue is one. A sharer is counted at its root before it is opened, so that the root is not
 * reused meanwhile, and uncounted if opening fails.
 *
 * No lock is held here, and most functions may wait for the device: not on hot paths.
 */

#define FLAGS_NS INT64_C(1000000000) /* how long an unwrap waits for flags that are still to be written */

/* --- creation --- */

static weir_status stream_make(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner,
			       weir_stream **out)
{
	weir_stream *stream = wr_alloc(1, sizeof *stream);
	void *native = NULL;
	weir_status status = WEIR_OK;

	if (!stream)
		return WEIR_E_NOMEM;
	stream->system = system;
	stream->spec = kind->spec;
	stream->pool = kind->pool;
	stream->wrapped = kind->wrapped;
	wr_store(&stream->root, kind->root ? kind->root : stream);
	wr_store(&stream->native_given, kind->wrapped);
	if (!kind->root && !kind->wrapped) {
		native = wr_device_stream_again(system, &kind->spec);
		stream->kept = native;
		if (!native)
			status = wr_device_stream_create(system, &kind->spec,
							 wr_partition_native(kind->spec.partition), &native);
		wr_store(&stream->native, native);
		stream->queue = native;
	}
	if (!status) {
		wr_store(&stream->ring,
			 wr_event_ring_make(stream, kind->root ? WR_EVENTS_SHARED : WR_EVENTS, 1));
		status = wr_load(&stream->ring) ? WEIR_OK : WEIR_E_NOMEM;
	}
	if (!status && wr_system_flags(system))
		status = wr_flag_give_word(stream);
	if (!status)
		status = table_enter(stream, kind, owner);
	if (status)
		stream_free(stream);
	else
		*out = stream;
	return status;
}

/* --- opening --- */

static weir_status open_kind(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner,
			     weir_stream **out)
{
	weir_status status = wr_device_check(system, kind->spec.device);
	weir_stream *stream = NULL;

	if (status)
		return status;
	if (wr_load(&system->closed_count))
		stream = table_find_and_reopen(system, kind, owner, false);
	if (!stream && wr_load(&system->closed_count))
		stream = table_find_and_reopen(system, kind, owner, true);
	if (!stream)
		return stream_make(system, kind, owner, out);
	*out = stream;
	return WEIR_OK;
}

/* For a stream pool (or NULL), which counts the stream; closing it uncounts it. */
static weir_status stream_open_in(struct wr_system *system, const struct wr_stream_spec *spec,
				  struct wr_stream_pool *pool, const char *owner, weir_stream **out)
{
	struct wr_stream_kind kind = {.spec = *spec, .pool = pool};

	return open_kind(system, &kind, owner, out);
}

weir_status wr_stream_open(struct wr_system *system, const struct wr_stream_spec *spec, const char *owner,
			   weir_stream **out)
{
	return stream_open_in(system, spec, NULL, owner, out);
}

static weir_status open_wrapped(struct wr_system *system, int device, void *native, const char *owner,
				weir_stream **out)
{
	struct wr_stream_kind kind = {.spec = {.device = device}, .wrapped = true, .native = native};

	return open_kind(system, &kind, owner, out);
}

static weir_status open_default(struct wr_system *system, int device, const char *owner, weir_stream **out)
{
	void *native = NULL;
	weir_status status = wr_device_check(system, device);

	if (!status)
		status = wr_device_stream_default(system, device, &native);
	return status ? status : open_wrapped(system, device, native, owner, out);
}

weir_status wr_stream_wrap(struct wr_system *system, int device, void *native, weir_stream **out)
{
	if (!system->backend->native_streams)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "the %s backend has no native streams to wrap: use the cuda backend",
			       system->backend->name);
	if (native && native == system->backend->per_thread)
		return wr_fail(WEIR_E_INVALID, "the per-thread default stream differs in each worker thread: "
					       "wrap a stream that was made with cudaStreamCreate");
	return native ? open_wrapped(system, device, native, "a wrapped stream", out)
		      : open_default(system, device, "a wrapped default stream", out);
}

/* --- sharing --- */

/* The sharer is counted at the root already. */
static weir_status open_shared(weir_stream *root, const char *owner, weir_stream **out)
{
	struct wr_stream_kind kind = {.spec = root->spec, .root = root, .native = wr_load(&root->native)};
	weir_status status = open_kind(root->system, &kind, owner, out);

	if (status) {
		wr_mutex_lock(&root->system->lock);
		root->sharers--;
		wr_mutex_unlock(&root->system->lock);
	}
	return status;
}

weir_status wr_stream_share(weir_stream *stream, const char *owner, weir_stream **out)
{
	weir_stream *root;

	wr_mutex_lock(&stream->system->lock);
	root = wr_load(&stream->root);
	root->sharers++; /* it is not reused while it has sharers */
	wr_mutex_unlock(&stream->system->lock);
	return open_shared(root, owner, out);
}

/*
 * The native stream of a closed wrapped stream belongs to the program again and may be gone. A sharer that is
 * not counted at its root any more has drained, and its root may have been reused.
 */
weir_status wr_stream_share_of(struct wr_system *system, uint64_t id, const char *owner, weir_stream **out)
{
	weir_stream *stream, *root = NULL;

	wr_mutex_lock(&system->lock);
	stream = wr_stream_find(system, id);
	if (stream)
		root = wr_load(&stream->root);
	if (root && (root == stream || stream->sharing) && !(root->wrapped && wr_load(&root->closed)))
		root->sharers++;
	else
		root = NULL;
	wr_mutex_unlock(&system->lock);
	return root ? open_shared(root, owner, out) : WEIR_E_CLOSED;
}

/* Opened without a lock. Of two threads that come first at once, one closes its own. */
static weir_status default_root(struct wr_system *system, int device, weir_stream **out)
{
	weir_stream *root = wr_load(&system->defaults[device]), *mine = NULL;
	weir_status status = root ? WEIR_OK : open_default(system, device, "the default stream", &mine);

	if (!root && !status && !wr_cas(&system->defaults[device], &root, mine))
		wr_stream_close(mine);
	else if (!root)
		root = mine;
	*out = root;
	return status;
}

weir_status wr_stream_default(struct wr_system *system, int device, const char *owner, weir_stream **out)
{
	weir_stream *root = NULL;
	weir_status status = wr_device_check(system, device);

	if (!status)
		status = default_root(system, device, &root);
	return status ? status : wr_stream_share(root, owner, out);
}

/* --- the program's streams --- */

bool wr_stream_is_programs(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->root) == stream && !stream->pool;
}

void wr_stream_count_user(weir_stream *stream, bool more)
{
	wr_fetch_add(&stream->users, more ? 1 : UINT32_MAX);
}

/* --- closing --- */

/* Records one more value for work that was enqueued after the last record, so that it is waited for. */
void wr_stream_close(weir_stream *stream)
{
	struct wr_stream_pool *pool;
	struct wr_waker *waker;
	weir_fence fence;

	if (!stream)
		return;
	pool = stream->pool;
	stream->in_tick = false; /* the record below takes no live reference */
	wr_store(&stream->flag_is_last, !wr_load(&stream->dirty) && wr_load(&stream->flag_after_record));
	if ((wr_load(&stream->dirty) || wr_load(&stream->flag_after_record)) &&
	    !wr_system_failed(stream->system))
		(void)weir_stream_record(stream, &fence);
	/* Work of start or stop that could not be recorded would never be seen complete, and hold a later run
	 * open. */
	waker = wr_waker_enter(stream->system);
	if (waker)
		wr_stream_drop_ref(stream, waker);
	wr_waker_leave(stream->system);
	if (table_close(stream) && pool)
		wr_fetch_sub(&pool->taken, 1);
}

/*
 * Waits until the flags are written that views of the stream left behind their last work when they were
 * closed: at the end of a run that work is complete, and the caller knows of no flags. Another thread's work
 * may be in between.
 */
static void last_flags_wait(weir_stream *root)
{
	struct wr_system *system = root->system;
	int64_t until = wr_now() + FLAGS_NS;

	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);
		weir_fence last = {wr_load(&stream->id), wr_load(&stream->submitted)};

		if (wr_load(&stream->closed) && wr_load(&stream->flag_is_last) &&
		    wr_load(&stream->root) == root)
			(void)wr_fence_wait(system, last, until);
	}
}

/* Work that the caller enqueued and did not record is not waited for. */
weir_status wr_stream_unwrap(weir_stream *stream)
{
	if (!stream)
		return WEIR_OK;
	if (!stream->wrapped)
		return wr_fail(WEIR_E_INVALID,
			       "the stream of '%s' was not wrapped: unwrap takes wrapped streams only",
			       wr_load(&stream->owner));
	if (wr_load(&stream->users))
		return wr_fail(WEIR_E_STATE, "an entity uses the wrapped stream: call "
					     "weir_entity_use_stream(entity, NULL) first");
	if (!wr_system_failed(stream->system) && !wr_stream_idle(stream))
		return wr_fail(WEIR_E_BUSY, "work that was recorded on the wrapped stream is not complete: "
					    "wait for it first");
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	last_flags_wait(stream);
	if (table_close_unshared(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_BUSY, "entities still use the wrapped stream, or their work on it "
				    "is not complete: end the run, then unwrap");
}

/* Refused during a run: an operator may use the stream at any moment. */
weir_status weir_stream_unwrap(weir_stream *stream)
{
	if (stream && wr_load(&stream->system->running))
		return wr_fail(WEIR_E_STATE,
			       "a run is on and its operators may use the wrapped stream: end the run first");
	return wr_stream_unwrap(stream);
}

/* === stream pools === */

static bool pool_count_in(struct wr_stream_pool *pool)
{
	uint32_t taken = wr_load(&pool->taken);

	do
		if (pool->spec.max && taken >= pool->spec.max)
			return false;
	while (!wr_cas(&pool->taken, &taken, taken + 1));
	return true;
}

weir_status wr_stream_pool_take(struct wr_stream_pool *pool, const char *owner, weir_stream **out)
{
	weir_status status;

	if (!pool_count_in(pool))
		return wr_fail(WEIR_E_BUSY,
			       "stream pool '%s' is exhausted: of %u stream%s none is left; raise max_size",
			       pool->spec.name, pool->spec.max, pool->spec.max == 1 ? "" : "s");
	status = stream_open_in(pool->system, &pool->spec.streams, pool, owner, out);
	if (status)
		wr_fetch_sub(&pool->taken, 1);
	return status;
}

size_t wr_stream_pool_taken(const struct wr_stream_pool *pool)
{
	return wr_load(&((struct wr_stream_pool *)pool)->taken);
}

static weir_status pool_open_reserved(struct wr_stream_pool *pool)
{
	uint32_t most = pool->spec.max, want = pool->spec.reserved, made = 0;
	uint32_t count = most && want > most ? most : want;
	weir_stream **streams = wr_alloc(count, sizeof *streams);
	weir_status status = streams ? WEIR_OK : WEIR_E_NOMEM;

	for (; !status && made < count; made += !status)
		status = wr_stream_pool_take(pool, pool->spec.name, &streams[made]);
	for (uint32_t i = 0; i < made; i++)
		wr_stream_close(streams[i]);
	wr_free(streams);
	return status;
}

/* The system owns the pool even if opening its streams failed, since those that were opened refer to it. */
weir_status wr_stream_pool_create(struct wr_system *system, const struct wr_stream_pool_spec *spec,
				  struct wr_stream_pool **out)
{
	struct wr_stream_pool *pool = wr_alloc(1, sizeof *pool);
	weir_status status = WEIR_OK;

	if (!pool)
		return WEIR_E_NOMEM;
	pool->system = system;
	pool->spec = *spec;
	wr_stack_push(&system->pools, pool, next);
	if (spec->reserved)
		status = pool_open_reserved(pool);
	if (!status)
		*out = pool;
	return status;
}

void wr_stream_pools_finish(struct wr_system *system)
{
	struct wr_stream_pool *pool = wr_load(&system->pools);

	while (pool) {
		struct wr_stream_pool *next = pool->next;

		wr_free(pool);
		pool = next;
	}
}

/* === partitions === */

struct wr_partition {
	struct wr_partition *next;
	void *native;
};

void *wr_partition_native(const struct wr_partition *partition)
{
	return partition ? partition->native : NULL;
}

static weir_status partitions_check_spec(struct wr_system *system, const struct wr_partitions_spec *spec)
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
	weir_status status = natives && handles ? partitions_check_spec(system, spec) : WEIR_E_NOMEM;

	/* before the backend is called, so that no partition is lost for lack of memory */
	for (size_t i = 0; i < count && !status; i++) {
		handles[i] = wr_alloc(1, sizeof *handles[i]);
		status = handles[i] ? WEIR_OK : WEIR_E_NOMEM;
	}
	if (!status)
		status = wr_device_partitions_create(system, spec, natives, sms);
	for (size_t i = 0; i < count && handles; i++) {
		if (status || !natives[i]) { /* the remainder may be NULL */
			wr_free(handles[i]);
			continue;
		}
		handles[i]->native = natives[i];
		wr_stack_push(&system->partitions, handles[i], next);
	}
	for (size_t i = 0; i < count && !status; i++)
		out[i] = natives[i] ? handles[i] : NULL;
	wr_free(handles);
	wr_free(natives);
	return status;
}

void wr_partitions_finish(struct wr_system *system)
{
	struct wr_partition *partition = wr_load(&system->partitions);

	while (partition) {
		struct wr_partition *next = partition->next;

		wr_device_partition_destroy(system, partition->native);
		wr_free(partition);
		partition = next;
	}
}
