/*
 * The table of streams: opened, shared, given back, opened again.
 *
 * A stream is given out again once all that was recorded on it was seen complete. Several streams may share
 * one native stream, the root's: each has an identity, points and a live reference of its own, the device's
 * queue is one. A root is not given out again while somebody shares it, and who shares it counts until he has
 * closed and is drained, since what he left lies on the root's queue. Nothing is made, and no device asked,
 * under the lock.
 */
#include "base/memory.h"
#include "base/status.h"
#include "streams/system.h"

/* What makes one stream as good as another. */
struct kind {
	struct wr_stream_spec spec;
	struct wr_stream_pool *pool;
	bool wrapped;
	weir_stream *root; /* NULL: its own */
	void *native;	   /* if it is wrapped or has a root */
};

weir_stream *wr_stream_at(struct wr_system *system, uint32_t index)
{
	struct wr_page *page = wr_load_acquire(&system->table[index / WR_PAGE]);

	return page ? wr_load_acquire(&page->streams[index % WR_PAGE]) : NULL;
}

static weir_status enter_table_locked(struct wr_system *system, weir_stream *stream)
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

/* The id is the last thing that a fence could name: from here on the stream is found. */
static void name_locked(weir_stream *stream, const char *owner)
{
	uint64_t serial = wr_fetch_add(&stream->system->serials, 1) + 1;

	for (int i = 0; i < WR_WAITED; i++)
		stream->waited[i] = (weir_fence){0, 0};
	stream->begun = false;
	stream->expected = 0;
	wr_store(&stream->owner, owner ? owner : "?");
	wr_store(&stream->dirty, false);
	wr_store(&stream->trailing, false);
	if (wr_exchange(&stream->closed, false))
		wr_fetch_sub(&stream->system->lying, 1);
	wr_store(&stream->id, stream->system->serial << 48 | serial << 16 | stream->index);
}

/* --- again --- */

/* Asks the device, so without the lock. */
static void look_at_closed(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (wr_load(&stream->closed))
			wr_stream_idle(stream);
	}
}

/* Still dirty or trailing: its last record was refused, so nobody knows when what is on it ends. */
static bool known_drained(weir_stream *stream)
{
	return wr_load(&stream->closed) && !wr_load(&stream->dirty) && !wr_load(&stream->trailing) &&
	       !wr_load(&stream->inlined) && wr_load(&stream->seen) >= wr_load(&stream->recorded);
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

/* One that shares may share any other's queue the next time. */
static bool is_of_kind_locked(const weir_stream *stream, const struct kind *kind)
{
	bool shares = wr_load(&stream->root) != stream;

	if (shares != (kind->root != NULL) || stream->device != kind->spec.device)
		return false;
	return shares || (stream->flags == kind->spec.flags && stream->priority == kind->spec.priority &&
			  stream->partition == kind->spec.partition && stream->pool == kind->pool &&
			  stream->wrapped == kind->wrapped);
}

/*
 * What was seen drained only since uncount_drained_locked is still counted at its root: it waits for the next who opens. Begins behind the last
 * one that was found: of many that lie ready each is found at once.
 */
static weir_stream *find_free_locked(struct wr_system *system, const struct kind *kind)
{
	uint32_t count = wr_load(&system->count);

	for (uint32_t i = 0; i < count; i++) {
		weir_stream *stream;

		system->looked = system->looked + 1 < count ? system->looked + 1 : 0;
		stream = wr_stream_at(system, system->looked);
		if (is_of_kind_locked(stream, kind) && known_drained(stream) && !stream->sharers && !stream->sharing)
			return stream;
	}
	return NULL;
}

static void take_on_locked(weir_stream *stream, const struct kind *kind)
{
	if (kind->root || kind->wrapped)
		wr_store(&stream->native, kind->native);
	if (!kind->root)
		return;
	wr_store(&stream->root, kind->root); /* who opens has counted it there */
	stream->sharing = true;
}

/* `thorough`: also what nobody has seen drained yet. */
static weir_stream *look_for(struct wr_system *system, const struct kind *kind, const char *owner, bool thorough)
{
	weir_stream *found;

	if (thorough)
		look_at_closed(system);
	wr_mutex_lock(&system->lock);
	if (thorough)
		uncount_drained_locked(system);
	found = find_free_locked(system, kind);
	if (found) {
		take_on_locked(found, kind);
		name_locked(found, owner);
	}
	wr_mutex_unlock(&system->lock);
	return found;
}

static weir_stream *reuse(struct wr_system *system, const struct kind *kind, const char *owner)
{
	weir_stream *found;

	if (!wr_load(&system->lying))
		return NULL;
	found = look_for(system, kind, owner, false);
	return found ? found : look_for(system, kind, owner, true);
}

/* --- new --- */

static void free_stream(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	void *native = wr_load(&stream->native);

	wr_rings_free(stream);
	if (native && wr_load(&stream->root) == stream && !stream->wrapped)
		system->backend->stream_destroy(system->native, native);
	wr_free(stream);
}

static weir_status make_native(weir_stream *stream, const struct kind *kind)
{
	struct wr_system *system = stream->system;
	void *native = NULL;
	weir_status status = wr_system_note(
		system, system->backend->stream_create(system->native, kind->spec.device, kind->spec.flags, kind->spec.priority,
						       wr_partition_native(kind->spec.partition), &native));

	wr_store(&stream->native, native);
	return status;
}

static weir_status enter(weir_stream *stream, const struct kind *kind, const char *owner)
{
	struct wr_system *system = stream->system;
	weir_status status;

	wr_mutex_lock(&system->lock);
	take_on_locked(stream, kind);
	status = enter_table_locked(system, stream);
	if (!status)
		name_locked(stream, owner);
	wr_mutex_unlock(&system->lock);
	return status;
}

static weir_status make(struct wr_system *system, const struct kind *kind, const char *owner, weir_stream **out)
{
	weir_stream *stream = wr_alloc(1, sizeof *stream);
	weir_status status = WEIR_OK;

	if (!stream)
		return WEIR_E_NOMEM;
	stream->system = system;
	stream->device = kind->spec.device;
	stream->priority = kind->spec.priority;
	stream->flags = kind->spec.flags;
	stream->partition = kind->spec.partition;
	stream->pool = kind->pool;
	stream->wrapped = kind->wrapped;
	wr_store(&stream->root, kind->root ? kind->root : stream);
	wr_store(&stream->exposed, kind->wrapped);
	if (!kind->root && !kind->wrapped)
		status = make_native(stream, kind);
	if (!status) {
		wr_store(&stream->ring, wr_ring_make(stream, kind->root ? WR_EVENTS_SHARED : WR_EVENTS, 1));
		status = wr_load(&stream->ring) ? WEIR_OK : WEIR_E_NOMEM;
	}
	if (!status)
		status = wr_bell_open(stream);
	if (!status)
		status = enter(stream, kind, owner);
	if (status)
		free_stream(stream);
	else
		*out = stream;
	return status;
}

/* --- opening --- */

static weir_status check(struct wr_system *system, int device)
{
	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (device < 0 || device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	return WEIR_OK;
}

static weir_status open_kind(struct wr_system *system, const struct kind *kind, const char *owner, weir_stream **out)
{
	weir_status status = check(system, kind->spec.device);
	weir_stream *stream = status ? NULL : reuse(system, kind, owner);

	if (status)
		return status;
	if (!stream)
		return make(system, kind, owner, out);
	*out = stream;
	return WEIR_OK;
}

weir_status wr_stream_open_in(struct wr_system *system, const struct wr_stream_spec *spec, struct wr_stream_pool *pool,
			      const char *owner, weir_stream **out)
{
	struct kind kind = {.spec = *spec, .pool = pool};

	return open_kind(system, &kind, owner, out);
}

weir_status wr_stream_open(struct wr_system *system, const struct wr_stream_spec *spec, const char *owner, weir_stream **out)
{
	return wr_stream_open_in(system, spec, NULL, owner, out);
}

static weir_status open_wrapped(struct wr_system *system, int device, void *native, const char *owner, weir_stream **out)
{
	struct kind kind = {.spec = {.device = device}, .wrapped = true, .native = native};

	return open_kind(system, &kind, owner, out);
}

static weir_status open_default(struct wr_system *system, int device, const char *owner, weir_stream **out)
{
	void *native = NULL;
	weir_status status = check(system, device);

	if (!status)
		status = wr_system_note(system, system->backend->stream_default(system->native, device, &native));
	return status ? status : open_wrapped(system, device, native, owner, out);
}

weir_status wr_stream_wrap(struct wr_system *system, int device, void *native, weir_stream **out)
{
	if (!system->backend->native_streams)
		return wr_fail(WEIR_E_UNSUPPORTED, "the %s backend has no streams of others to wrap",
			       system->backend->name);
	if (native && native == system->backend->per_thread)
		return wr_fail(WEIR_E_INVALID, "the per-thread default stream is another one in each thread, and workers take turns: "
					       "wrap a stream that was made");
	return native ? open_wrapped(system, device, native, "a wrapped stream", out) :
			open_default(system, device, "a wrapped default stream", out);
}

/* --- sharing --- */

/* From here on its root is not given out again. */
static weir_stream *count_in_locked(weir_stream *stream)
{
	wr_load(&stream->root)->sharers++;
	return wr_load(&stream->root);
}

static void count_out(weir_stream *root)
{
	wr_mutex_lock(&root->system->lock);
	root->sharers--;
	wr_mutex_unlock(&root->system->lock);
}

/* The root is counted in already. */
static weir_status open_shared(weir_stream *root, const char *owner, weir_stream **out)
{
	struct kind kind = {.spec = {root->device, root->flags, root->priority, root->partition},
			    .root = root,
			    .native = wr_load(&root->native)};
	weir_status status = open_kind(root->system, &kind, owner, out);

	if (status)
		count_out(root);
	return status;
}

weir_status wr_stream_share(weir_stream *stream, const char *owner, weir_stream **out)
{
	weir_stream *root;

	wr_mutex_lock(&stream->system->lock);
	root = count_in_locked(stream);
	wr_mutex_unlock(&stream->system->lock);
	return open_shared(root, owner, out);
}

weir_stream *wr_stream_find(struct wr_system *system, uint64_t id)
{
	weir_stream *stream = id && (id & 0xffff) < wr_load(&system->count) ? wr_stream_at(system, id & 0xffff) : NULL;

	return stream && wr_load(&stream->id) == id ? stream : NULL;
}

/*
 * The native stream of a wrapped one that was closed is its maker's alone: it may be gone. A view that is not counted at its root any more
 * has drained, and its root may be somebody else's.
 */
static bool may_be_shared_locked(weir_stream *stream)
{
	weir_stream *root = wr_load(&stream->root);

	return (root == stream || stream->sharing) && !(root->wrapped && wr_load(&root->closed));
}

weir_status wr_stream_share_of(struct wr_system *system, uint64_t id, const char *owner, weir_stream **out)
{
	weir_stream *stream, *root = NULL;

	wr_mutex_lock(&system->lock);
	stream = wr_stream_find(system, id);
	if (stream && may_be_shared_locked(stream))
		root = count_in_locked(stream);
	wr_mutex_unlock(&system->lock);
	return root ? open_shared(root, owner, out) : WEIR_E_CLOSED;
}

/* Made without a lock; of two who come first at once one gives his back. */
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
	weir_status status = check(system, device);

	if (!status)
		status = default_root(system, device, &root);
	return status ? status : wr_stream_share(root, owner, out);
}

/* --- giving back --- */

static void close_now(weir_stream *stream)
{
	struct wr_stream_pool *pool = stream->pool;

	wr_store(&stream->owner, "a closed stream");
	wr_fetch_add(&stream->system->lying, 1);
	if (wr_exchange(&stream->closed, true)) /* from here on it may be somebody else's */
		wr_fetch_sub(&stream->system->lying, 1);
	else if (pool)
		wr_stream_pool_gave_back(pool);
}

/* What was enqueued without a record still has to be waited for: one more point. */
void wr_stream_close(weir_stream *stream)
{
	weir_fence fence;

	if (!stream)
		return;
	stream->begun = false;	/* no tick's: what is recorded now holds no run open */
	if ((wr_load(&stream->dirty) || wr_load(&stream->trailing)) && !wr_system_failed(stream->system))
		(void)weir_stream_record(stream, &fence);
	close_now(stream);
}

static bool close_unshared(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	bool shared;

	look_at_closed(system);
	wr_mutex_lock(&system->lock);
	uncount_drained_locked(system);
	shared = stream->sharers > 0;
	if (!shared)
		close_now(stream);
	wr_mutex_unlock(&system->lock);
	return !shared;
}

/* What the caller enqueued and did not record is his own affair from now on, and nobody else's. */
weir_status wr_stream_unwrap(weir_stream *stream)
{
	if (!stream)
		return WEIR_OK;
	if (!stream->wrapped)
		return wr_fail(WEIR_E_INVALID, "the stream of '%s' was not wrapped: only what was can be unwrapped",
			       wr_load(&stream->owner));
	if (!wr_system_failed(stream->system) && !wr_stream_idle(stream))
		return wr_fail(WEIR_E_BUSY, "work that was recorded on the wrapped stream is not complete: wait for it first");
	wr_store(&stream->dirty, false);
	wr_store(&stream->trailing, false);
	if (close_unshared(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_BUSY, "entities still work on the wrapped stream, or what they left on it is not complete: "
				    "end the run, then unwrap");
}

/* --- life --- */

weir_status wr_table_init(struct wr_system *system)
{
	system->defaults = wr_alloc((size_t)system->devices, sizeof *system->defaults);
	return system->defaults ? WEIR_OK : WEIR_E_NOMEM;
}

void wr_table_finish(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		free_stream(wr_stream_at(system, i));
	for (int i = 0; i < WR_PAGES; i++)
		wr_free(wr_load(&system->table[i]));
	wr_free((void *)system->defaults);
}
