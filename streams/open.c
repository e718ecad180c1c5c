/*
 * Opening streams, new ones or closed ones of the table: with a native stream of the system's own, around one
 * of the caller's, or sharing another's (T5, T6).
 *
 * Several streams may share one native stream, the root's: each has its own id, values and live reference;
 * the device's queue is one. A sharer is counted at its root before it is opened, so that the root is not
 * reused meanwhile, and uncounted if opening fails.
 *
 * No lock is held here, and most functions may wait for the device: not on hot paths.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/flag.h"
#include "streams/system.h"
#include "streams/table.h"

#define FLAGS_NS INT64_C(1000000000) /* how long an unwrap waits for flags that are still to be written */

/* --- creation --- */

static weir_status native_create(weir_stream *stream, const struct wr_stream_kind *kind)
{
	struct wr_system *system = stream->system;
	void *native = NULL;
	weir_status status = wr_device_stream_create(system, &kind->spec,
						     wr_partition_native(kind->spec.partition), &native);

	wr_store(&stream->native, native);
	stream->queue = native;
	return status;
}

static weir_status stream_make(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner,
			       weir_stream **out)
{
	weir_stream *stream = wr_alloc(1, sizeof *stream);
	weir_status status = WEIR_OK;

	if (!stream)
		return WEIR_E_NOMEM;
	stream->system = system;
	stream->spec = kind->spec;
	stream->pool = kind->pool;
	stream->wrapped = kind->wrapped;
	wr_store(&stream->root, kind->root ? kind->root : stream);
	wr_store(&stream->native_given, kind->wrapped);
	if (!kind->root && !kind->wrapped)
		status = native_create(stream, kind);
	if (!status) {
		wr_store(&stream->ring,
			 wr_event_ring_make(stream, kind->root ? WR_EVENTS_SHARED : WR_EVENTS, 1));
		status = wr_load(&stream->ring) ? WEIR_OK : WEIR_E_NOMEM;
	}
	if (!status)
		status = wr_flag_give_word(stream);
	if (!status)
		status = wr_table_enter(stream, kind, owner);
	if (status)
		wr_stream_free(stream);
	else
		*out = stream;
	return status;
}

/* --- opening --- */

static weir_status open_kind(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner,
			     weir_stream **out)
{
	weir_status status = wr_device_check(system, kind->spec.device);
	weir_stream *stream = status ? NULL : wr_table_reuse(system, kind, owner);

	if (status)
		return status;
	if (!stream)
		return stream_make(system, kind, owner, out);
	*out = stream;
	return WEIR_OK;
}

weir_status wr_stream_open_in(struct wr_system *system, const struct wr_stream_spec *spec,
			      struct wr_stream_pool *pool, const char *owner, weir_stream **out)
{
	struct wr_stream_kind kind = {.spec = *spec, .pool = pool};

	return open_kind(system, &kind, owner, out);
}

weir_status wr_stream_open(struct wr_system *system, const struct wr_stream_spec *spec, const char *owner,
			   weir_stream **out)
{
	return wr_stream_open_in(system, spec, NULL, owner, out);
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

	if (status)
		wr_table_drop_sharer(root);
	return status;
}

weir_status wr_stream_share(weir_stream *stream, const char *owner, weir_stream **out)
{
	return open_shared(wr_table_add_sharer(stream), owner, out);
}

weir_status wr_stream_share_of(struct wr_system *system, uint64_t id, const char *owner, weir_stream **out)
{
	weir_stream *root = wr_table_add_sharer_by_id(system, id);

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

/*
 * Work enqueued by start or stop must not hold a later run open:
 * if it could not be recorded, it would never be seen complete.
 */
static void live_ref_drop(weir_stream *stream)
{
	struct wr_waker *waker = wr_waker_enter(stream->system);

	if (waker)
		wr_stream_drop_ref(stream, waker);
	wr_waker_leave(stream->system);
}

/* Records one more value for work that was enqueued after the last record, so that it is waited for. */
void wr_stream_close(weir_stream *stream)
{
	struct wr_stream_pool *pool;
	weir_fence fence;

	if (!stream)
		return;
	pool = stream->pool;
	stream->in_tick = false; /* the record below takes no live reference */
	wr_store(&stream->flag_is_last, !wr_load(&stream->dirty) && wr_load(&stream->flag_after_record));
	if ((wr_load(&stream->dirty) || wr_load(&stream->flag_after_record)) &&
	    !wr_system_failed(stream->system))
		(void)weir_stream_record(stream, &fence);
	live_ref_drop(stream);
	if (wr_table_close(stream) && pool)
		wr_stream_pool_uncount(pool);
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
		return wr_fail(WEIR_E_BUSY, "an entity uses the wrapped stream: call "
					    "weir_entity_use_stream(entity, NULL) first");
	if (!wr_system_failed(stream->system) && !wr_stream_idle(stream))
		return wr_fail(WEIR_E_BUSY, "work that was recorded on the wrapped stream is not complete: "
					    "wait for it first");
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	last_flags_wait(stream);
	if (wr_table_close_unshared(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_BUSY, "entities still use the wrapped stream, or their work on it "
				    "is not complete: end the run, then unwrap");
}

/* Refused during a run: an operator may use the stream at any moment. */
weir_status weir_stream_unwrap(weir_stream *stream)
{
	if (stream && wr_load(&stream->system->running))
		return wr_fail(WEIR_E_BUSY,
			       "a run is on and its operators may use the wrapped stream: end the run first");
	return wr_stream_unwrap(stream);
}
