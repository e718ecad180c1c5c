/*
 * Links over UCX, which is loaded when the plugin is: it installs handlers of SIGSEGV and the like and
 * replaces mmap when it is loaded, unless variables of its environment say no, so they must be set before.
 * Each link has a context and a worker of its own, so entities share nothing. What UCX calls from its
 * functions is noted, or handled inside of `progress`; the loss of a connection is told after all that came
 * before it.
 *
 * The two sides meet on a TCP connection of their own (meet.h), where they tell each other the addresses of
 * their workers. UCX has a thread of its own per process, which sleeps.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <ucp/api/ucp.h>

#include "remote/beat.h"
#include "remote/meet.h"
#include "remote/near.h"
#include "remote/watch.h"

#define FUNCTIONS(X)                                                                                         \
	X(ucp_am_data_release)                                                                               \
	X(ucp_am_recv_data_nbx)                                                                              \
	X(ucp_am_send_nbx)                                                                                   \
	X(ucp_cleanup)                                                                                       \
	X(ucp_config_modify)                                                                                 \
	X(ucp_config_read)                                                                                   \
	X(ucp_config_release)                                                                                \
	X(ucp_context_query)                                                                                 \
	X(ucp_ep_close_nbx)                                                                                  \
	X(ucp_ep_create)                                                                                     \
	X(ucp_init_version)                                                                                  \
	X(ucp_mem_map)                                                                                       \
	X(ucp_mem_unmap)                                                                                     \
	X(ucp_request_check_status)                                                                          \
	X(ucp_request_free)                                                                                  \
	X(ucp_worker_arm)                                                                                    \
	X(ucp_worker_create)                                                                                 \
	X(ucp_worker_destroy)                                                                                \
	X(ucp_worker_get_address)                                                                            \
	X(ucp_worker_progress)                                                                               \
	X(ucp_worker_query)                                                                                  \
	X(ucp_worker_release_address)                                                                        \
	X(ucp_worker_set_am_recv_handler)

static struct {
	const char *(*ucs_status_string)(ucs_status_t status);
#define FUNCTION(name) __typeof__(&name) name;
	FUNCTIONS(FUNCTION)
#undef FUNCTION
} ucx; /* written under the lock, before any link is made */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded; /* guarded by the lock */

enum { REGISTERED = 256 }; /* allocations of devices: blocks of pools, or of as many messages */
enum { HEAD_MOST = 8192, GREETERS = 4, EVENTS = 32, REACH_MOST = 4096, TRIES = 16 };
/* A message; the head of one whose payloads come alone; one of these. */
enum { MESSAGE_ID = 1, PACK_ID, PIECE_ID };
enum { EARLY = 4096 * 64 };           /* pieces of as many messages as there may be credits */
#define NS_FORCED INT64_C(2000000000) /* how long the end of a connection may take */
#define NS_AGAIN  INT64_C(50000)      /* before an engine that cannot be armed is tried again: first, */
#define NS_SELDOM INT64_C(32000000)   /* and at most */
#define NS_LOOK   INT64_C(1000000)    /* between two looks at the sockets while it polls */

/* Before the head of a message, and of one whose payloads come alone; before a payload. */
struct message_mark {
	uint64_t tag; /* of the connection */
};
struct pack_mark {
	uint64_t tag;
	uint32_t serial, count; /* serial: of the pack on this connection */
	uint64_t bytes;
};
struct piece_mark {
	uint64_t tag;
	uint32_t serial, index;
};

/*
 * An allocation that UCX knows. Without its hooks (see `before`) UCX registers the memory of each message
 * anew, which on a device takes 20 us on either side, and forgets it behind that; what is registered here it
 * uses instead.
 */
struct registered {
	uint64_t id; /* of the allocation; 0: none */
	ucp_mem_h memory;
	unsigned users; /* transfers */
};

/*
 * A message whose payload UCX reads or writes, in the list of its link. UCX takes pieces of one kind of
 * memory together; payloads of a message that has others (R9) are sent and received alone, each with a mark.
 */
struct transfer {
	struct transfer *before, *after;
	struct link *link;
	void *cookie;
	bool receives;
	bool torn;        /* a piece did not come */
	unsigned open;    /* requests, and pieces to come */
	uint64_t devices; /* a bit for each piece: it is memory of a device */
	uint64_t taken;   /* likewise: it came */
	uint32_t serial, count;
	struct piece_mark *marks;
	struct registered **registered; /* a piece each; NULL: its memory is not */
	char *head;                     /* with its mark */
	ucp_dt_iov_t pieces[];          /* behind them the marks, what is registered, and the head */
};

/* A piece that came before its head. */
struct early {
	struct early *next;
	struct piece_mark mark;
	void *data;
	size_t bytes;
};

/*
 * A context of UCX and a worker. NET's goes to any machine, and UCX handles its errors. UCX 1.13 shares
 * memory only where it handles none: NEAR's has no network.
 */
enum way { NET, NEAR, WAYS };

struct engine {
	ucp_context_h context;
	ucp_worker_h worker;
};

/* How this process is reached, as it is said to the other side: addresses of workers, one behind the other.
 */
struct reach {
	struct near near;
	uint32_t bytes[WAYS]; /* 0: not this way */
	uint8_t addresses[REACH_MOST];
};

struct link {
	struct link_events events;
	struct engine
		engines[WAYS]; /* NEAR's is made for a connection; the other one ends when that is there */
	enum way way;          /* of the connection; else NET */
	ucp_ep_h end;          /* of the connection; NULL: none */
	size_t head_most;
	int set; /* the caller's; the engine adds its descriptors itself */
	int listener;
	const char *peers;
	struct meeting meeting;            /* of the connection, or of one that is being made */
	struct meeting greeters[GREETERS]; /* have connected, and are not heard yet */
	struct beat beat;                  /* while there is a connection */
	uint64_t turn;                     /* of the last greeter */
	uint64_t tag;                      /* of this connection's messages */
	int again;                         /* a timer: an engine was not armed, and is looked at again then */
	int64_t pause;                     /* until it fired last; 0: all engines were armed */
	int64_t looked;                    /* at the sockets, while it polls */
	uint32_t serial;                   /* of the last pack */
	struct transfer *transfers;
	struct registered registered[REGISTERED]; /* with NEAR's context, each at the remainder of its id */
	struct early *early;
	unsigned early_count;
	void *closing;   /* UCX's request; not a pointer: there is none */
	int64_t ends_by; /* when the end of the connection is not waited for any more; 0: it has not begun */
	bool failed, told;
	char why[LINK_WHY];
};

/*
 * The connection is over: its socket says nothing more. The first reason counts. A socket of one that shares
 * memory is kept: `drop` must know that the other side has its end.
 */
static void fail(struct link *link, const char *why)
{
	if (link->way == NEAR)
		epoll_ctl(link->set, EPOLL_CTL_DEL, link->meeting.socket, NULL);
	else
		meet_close(&link->meeting);
	beat_end(&link->beat);
	if (link->failed)
		return;
	link->failed = true;
	snprintf(link->why, sizeof link->why, "%s", why);
}

static bool watch_socket(struct link *link, int socket, void *what, int change, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = what};

	return !epoll_ctl(link->set, change, socket, &event);
}

/* --- loading --- */

/* The variables that UCX reads as it is loaded. What the user has set counts. */
static const char *const before[][2] = {
	{"UCX_ERROR_SIGNALS", ""},
	{"UCX_MEM_EVENTS", "n"},
	{"UCX_LOG_LEVEL", "fatal"}, /* it would print a line of its own for each peer that is gone */
	{"UCX_WARN_UNUSED_ENV_VARS", "n"},
};
enum { BEFORE = sizeof before / sizeof before[0] };

/*
 * A thread starts with the signal mask of its creator: those of the engine shall handle no signal but faults
 * of their own, for which the program's handlers are called.
 */
static void block_signals(sigset_t *old)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

static void *load_library(void)
{
	bool ours[BEFORE];
	sigset_t old;
	void *handle;

	block_signals(&old);

	for (unsigned i = 0; i < BEFORE; i++) {
		ours[i] = !getenv(before[i][0]);
		if (ours[i])
			setenv(before[i][0], before[i][1], 1);
	}
	handle = dlopen("libucp.so.0",
			RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* its thread cannot be unloaded */
	for (unsigned i = 0; i < BEFORE; i++)
		if (ours[i])
			unsetenv(before[i][0]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return handle;
}

static bool load_locked(char why[LINK_WHY])
{
	void *handle = load_library();
	const char *missing = NULL;

	if (!handle) {
		snprintf(why, LINK_WHY, "UCX cannot be loaded: %s: install libucx0, or set LD_LIBRARY_PATH",
			 dlerror());
		return false;
	}
#define FUNCTION(name)                                                                                       \
	*(void **)&ucx.name = dlsym(handle, #name);                                                          \
	if (!ucx.name)                                                                                       \
		missing = #name;
	FUNCTIONS(FUNCTION)
	FUNCTION(ucs_status_string)
#undef FUNCTION
	if (missing)
		snprintf(why, LINK_WHY, "UCX lacks %s: version 1.13 or newer is needed", missing);
	return !missing;
}

static bool ucx_load(char why[LINK_WHY])
{
	bool well;

	pthread_mutex_lock(&lock);
	if (!loaded)
		loaded = load_locked(why);
	well = loaded;
	pthread_mutex_unlock(&lock);
	return well;
}

/* --- memory --- */

static ucs_memory_type_t memory_type(bool device)
{
	return device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

static void unregister(struct link *link, struct registered *place)
{
	if (place->id)
		ucx.ucp_mem_unmap(link->engines[NEAR].context, place->memory);
	place->id = 0;
}

static bool register_whole(struct link *link, struct registered *place, const struct span *span)
{
	const ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
		.address = span->whole.data,
		.length = span->whole.bytes,
		.memory_type = memory_type(span->device),
	};

	if (ucx.ucp_mem_map(link->engines[NEAR].context, &params, &place->memory))
		return false;
	place->id = span->whole.id;
	return true;
}

/* For a network card it would keep memory that the program frees. */
static bool ucx_uses_wholes(const struct link *link)
{
	return link->way == NEAR;
}

/* NULL: UCX registers the message's memory itself. */
static struct registered *find_registered(struct link *link, const struct span *span)
{
	struct registered *place = &link->registered[span->whole.id % REGISTERED];

	if (!span->whole.id || !ucx_uses_wholes(link))
		return NULL;
	if (place->id != span->whole.id) {
		if (place->users)
			return NULL;
		unregister(link, place);
		if (!register_whole(link, place, span))
			return NULL;
	}
	place->users++;
	return place;
}

/* --- transfers --- */

/* Of a link. The head comes behind room for its mark. */
static struct transfer *transfer_add(struct link *link, void *cookie, size_t mark, const void *head,
				     size_t head_bytes, const struct span *spans, unsigned count)
{
	struct transfer *transfer =
		calloc(1, sizeof *transfer +
				  count * (sizeof *transfer->pieces + sizeof *transfer->marks +
					   sizeof *transfer->registered) +
				  mark + head_bytes);

	if (!transfer)
		return NULL;
	transfer->link = link;
	transfer->cookie = cookie;
	transfer->open = 1;
	transfer->count = count;
	transfer->marks = (struct piece_mark *)(transfer->pieces + count);
	transfer->registered = (struct registered **)(transfer->marks + count);
	transfer->head = (char *)(transfer->registered + count);
	if (head_bytes)
		memcpy(transfer->head + mark, head, head_bytes);
	for (unsigned i = 0; i < count; i++) {
		transfer->pieces[i] = (ucp_dt_iov_t){spans[i].data, spans[i].bytes};
		transfer->devices |= (uint64_t)spans[i].device << i;
		transfer->registered[i] = find_registered(link, &spans[i]);
	}
	transfer->after = link->transfers;
	if (transfer->after)
		transfer->after->before = transfer;
	link->transfers = transfer;
	return transfer;
}

static void transfer_free(struct transfer *transfer)
{
	if (transfer->before)
		transfer->before->after = transfer->after;
	else
		transfer->link->transfers = transfer->after;
	if (transfer->after)
		transfer->after->before = transfer->before;
	for (unsigned i = 0; i < transfer->count; i++)
		if (transfer->registered[i])
			transfer->registered[i]->users--;
	free(transfer);
}

static void transfer_end(struct transfer *transfer)
{
	struct link_events events = transfer->link->events;
	void *cookie = transfer->cookie;
	bool receives = transfer->receives, whole = !transfer->torn;

	transfer_free(transfer);
	if (receives)
		events.filled(events.arg, cookie, whole);
	else
		events.sent(events.arg, cookie);
}

/* A request, or a piece, is done. */
static void transfer_close(struct transfer *transfer, bool whole)
{
	transfer->torn |= !whole;
	if (!--transfer->open)
		transfer_end(transfer);
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
	(void)status; /* a connection that fails says so by its handler */
	ucx.ucp_request_free(request);
	transfer_close(arg, true);
}

/* What was read from the other side's memory is right if that side believed in the connection meanwhile. */
static bool is_whole(const struct link *link, ucs_status_t status)
{
	return status == UCS_OK && (link->way == NET || near_is_open(link->meeting.socket));
}

static void on_received(void *request, ucs_status_t status, size_t bytes, void *arg)
{
	struct transfer *transfer = arg;

	(void)bytes;
	ucx.ucp_request_free(request);
	transfer_close(transfer, is_whole(transfer->link, status));
}

/* What the piece is in. Pieces that go together are memory of the host, of no one allocation. */
static void say_memory(const struct transfer *transfer, unsigned i, ucp_request_param_t *how)
{
	how->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
	how->memory_type = memory_type(transfer->devices >> i & 1);
	if (!transfer->registered[i])
		return;
	how->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
	how->memh = transfer->registered[i]->memory;
}

/* --- what UCX calls --- */

static void on_failure(void *arg, ucp_ep_h end, ucs_status_t status)
{
	struct link *link = arg;

	if (end == link->end)
		fail(link, ucx.ucs_status_string(status));
}

/* One of the transfer's requests. UCX has the data then, whatever becomes of it. */
static void receive_data(struct transfer *transfer, void *data, void *to, size_t count,
			 ucp_request_param_t *how)
{
	struct link *link = transfer->link;
	void *request;

	how->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	how->cb.recv_am = on_received;
	how->user_data = transfer;
	request = ucx.ucp_am_recv_data_nbx(link->engines[link->way].worker, data, to, count, how);
	if (!UCS_PTR_IS_PTR(request))
		transfer_close(transfer, is_whole(link, UCS_PTR_STATUS(request)));
}

/* Of one that is not wanted, or has no memory, the data is left alone, and UCX drops it. */
static ucs_status_t receive_large(struct link *link, void *data, size_t bytes, const struct span *spans,
				  unsigned count, void *cookie)
{
	struct transfer *transfer = transfer_add(link, cookie, 0, NULL, 0, spans, count);
	ucp_request_param_t together = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.datatype = UCP_DATATYPE_IOV,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	ucp_request_param_t alone = {.op_attr_mask = 0};

	if (!transfer) {
		link->events.filled(link->events.arg, cookie, false);
		return UCS_OK;
	}
	transfer->receives = true;
	if (count == 1) {
		say_memory(transfer, 0, &alone);
		receive_data(transfer, data, spans[0].data, bytes, &alone);
	} else {
		receive_data(transfer, data, transfer->pieces, count, &together);
	}
	return UCS_INPROGRESS;
}

/* Whether the mark is there. Of a connection that was given up what comes is dropped. */
static bool is_ours(const struct link *link, const void *head, size_t head_bytes, size_t mark)
{
	return link->end && head_bytes >= mark && !memcmp(head, &link->tag, sizeof link->tag);
}

static ucs_status_t on_message(void *arg, const void *head, size_t head_bytes, void *data, size_t bytes,
			       const ucp_am_recv_param_t *how)
{
	struct link *link = arg;
	struct link_events *events = &link->events;
	struct span spans[LINK_SPANS];
	const char *from = data;
	void *cookie = NULL;
	int count;

	if (!is_ours(link, head, head_bytes, sizeof(struct message_mark)))
		return UCS_OK;
	count = events->arrived(events->arg, (const char *)head + sizeof(struct message_mark),
				head_bytes - sizeof(struct message_mark), bytes, spans, &cookie);
	if (count < 0)
		return UCS_OK;
	if (count > 1 &&
	    link_has_device(spans,
			    (unsigned)count)) { /* the other side is no weir: it sends these alone (R9) */
		events->filled(events->arg, cookie, false);
		return UCS_OK;
	}
	if (bytes && how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		return receive_large(link, data, bytes, spans, (unsigned)count, cookie);
	for (int i = 0; i < count; from += spans[i++].bytes)
		if (spans[i].bytes && !spans[i].device)
			memcpy(spans[i].data, from, spans[i].bytes);
	events->filled(events->arg, cookie,
		       !link_has_device(spans, (unsigned)count)); /* it was not asked for */
	return UCS_OK;
}

static bool keep_early(struct link *link, const struct early *piece)
{
	struct early *kept = link->early_count < EARLY ? malloc(sizeof *kept) : NULL;

	if (!kept) {
		fail(link, "more payloads came than messages");
		return false;
	}
	*kept = *piece;
	kept->next = link->early;
	link->early = kept;
	link->early_count++;
	return true;
}

static void release_early(struct link *link)
{
	for (struct early *piece = link->early; piece; piece = link->early) {
		link->early = piece->next;
		ucx.ucp_am_data_release(link->engines[link->way].worker, piece->data);
		free(piece);
	}
	link->early_count = 0;
}

/* A piece that cannot be is the other side's fault, which may be no weir. */
static void take_piece(struct transfer *transfer, const struct early *piece)
{
	struct link *link = transfer->link;
	uint32_t i = piece->mark.index;
	ucp_request_param_t how = {.op_attr_mask = 0};

	if (i < transfer->count && piece->bytes == transfer->pieces[i].length &&
	    !(transfer->taken >> i & 1)) {
		transfer->taken |= UINT64_C(1) << i;
		say_memory(transfer, i, &how);
		receive_data(transfer, piece->data, transfer->pieces[i].buffer, piece->bytes, &how);
		return;
	}
	ucx.ucp_am_data_release(link->engines[link->way].worker, piece->data);
	fail(link, "a payload came that no message has");
}

static struct transfer *pack_of(const struct link *link, uint32_t serial)
{
	struct transfer *transfer = link->transfers;

	while (transfer && !(serial && transfer->receives && transfer->serial == serial))
		transfer = transfer->after;
	return transfer;
}

/* Of a connection that is over: no piece comes any more, so only requests are waited for. */
static void forget_missing(struct link *link)
{
	for (struct transfer *transfer = link->transfers, *next; transfer; transfer = next) {
		unsigned taken = (unsigned)__builtin_popcountll(transfer->taken);

		next = transfer->after;
		if (!transfer->receives || !transfer->serial || taken == transfer->count)
			continue;
		transfer->torn = true;
		transfer->open -= transfer->count - taken;
		transfer->serial = 0;
		if (!transfer->open)
			transfer_end(transfer);
	}
}

/* The last of them may end the transfer. */
static void take_early(struct transfer *transfer)
{
	struct link *link = transfer->link;
	uint32_t serial = transfer->serial;

	for (struct early **at = &link->early, *piece; (piece = *at) && transfer;) {
		if (piece->mark.serial != serial) {
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		link->early_count--;
		take_piece(transfer, piece);
		free(piece);
		transfer = pack_of(link, serial);
	}
}

/* The head of a pack: its pieces, that come next or have come. */
static ucs_status_t on_pack(void *arg, const void *head, size_t head_bytes, void *data, size_t bytes,
			    const ucp_am_recv_param_t *how)
{
	struct link *link = arg;
	struct link_events *events = &link->events;
	struct span spans[LINK_SPANS];
	struct transfer *transfer = NULL;
	struct pack_mark mark;
	void *cookie = NULL;
	int count;

	(void)data, (void)bytes, (void)how;
	if (!is_ours(link, head, head_bytes, sizeof mark))
		return UCS_OK;
	memcpy(&mark, head, sizeof mark);
	count = events->arrived(events->arg, (const char *)head + sizeof mark, head_bytes - sizeof mark,
				mark.bytes, spans, &cookie);
	if (count < 0)
		return UCS_OK;
	if (count && (uint32_t)count == mark.count)
		transfer = transfer_add(link, cookie, 0, NULL, 0, spans, (unsigned)count);
	if (!transfer) {
		events->filled(events->arg, cookie, false);
		return UCS_OK;
	}
	transfer->receives = true;
	transfer->serial = mark.serial;
	transfer->open = mark.count;
	take_early(transfer);
	return UCS_OK;
}

/* It waits at the sender until it is received here: it holds no memory. */
static ucs_status_t on_piece(void *arg, const void *head, size_t head_bytes, void *data, size_t bytes,
			     const ucp_am_recv_param_t *how)
{
	struct link *link = arg;
	struct early piece = {.data = data, .bytes = bytes};
	struct transfer *transfer;

	if (!is_ours(link, head, head_bytes, sizeof piece.mark))
		return UCS_OK;
	memcpy(&piece.mark, head, sizeof piece.mark);
	if (!(how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		fail(link, "a payload came that was not asked for");
		return UCS_OK;
	}
	transfer = pack_of(link, piece.mark.serial);
	if (transfer)
		take_piece(transfer, &piece);
	else if (!keep_early(link, &piece))
		return UCS_OK;
	return UCS_INPROGRESS;
}

/* --- opening --- */

/* The engines differ in networks alone. */
static bool ucx_takes_devices(const struct link *link)
{
	ucp_context_attr_t attributes = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};

	return !ucx.ucp_context_query(link->engines[NET].context, &attributes) &&
	       attributes.memory_types >> UCS_MEMORY_TYPE_CUDA & 1;
}

/*
 * The cache of memory types needs the hooks. Through shared memory the receiver reads the sender's, whatever
 * the user has set: a sender that writes would do so into what a receiver that has given up uses anew.
 */
static void set_up(const struct link *link, ucp_config_t *config, enum way way)
{
	if (!getenv("UCX_MEMTYPE_CACHE"))
		(void)ucx.ucp_config_modify(config, "MEMTYPE_CACHE", "n");
	if (way == NET && !getenv("UCX_TCP_CONN_NB")) {
		/* If it waits for a connection, UCX ends this process when the other one ends in that moment.
		 */
		(void)ucx.ucp_config_modify(config, "TCP_CONN_NB", "y");
		(void)ucx.ucp_config_modify(config, "CONN_NB", "y"); /* UCX 1.13 */
	}
	if (way == NET)
		return;
	(void)ucx.ucp_config_modify(config, "NET_DEVICES", "");
	/* Without hooks each message is registered anew, and this, for network cards, takes 290 us of it. */
	if (ucx_takes_devices(link) && !getenv("UCX_CUDA_COPY_DMABUF"))
		(void)ucx.ucp_config_modify(config, "CUDA_COPY_DMABUF", "n");
	(void)ucx.ucp_config_modify(config, "RNDV_SCHEME", "get_zcopy");
}

static ucs_status_t make_context(struct link *link, enum way way)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
	};
	ucp_config_t *config;
	ucs_status_t status = ucx.ucp_config_read(NULL, NULL, &config);

	if (status)
		return status;
	set_up(link, config, way);
	status = ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config,
				      &link->engines[way].context);
	ucx.ucp_config_release(config);
	return status;
}

static ucs_status_t set_handlers(struct link *link, ucp_worker_h worker)
{
	static const struct {
		unsigned id;
		ucp_am_recv_callback_t handle;
	} handlers[] = {{MESSAGE_ID, on_message}, {PACK_ID, on_pack}, {PIECE_ID, on_piece}};
	ucs_status_t status = UCS_OK;

	for (size_t i = 0; i < sizeof handlers / sizeof handlers[0] && !status; i++) {
		const ucp_am_handler_param_t handler = {
			.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
				      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
			.id = handlers[i].id,
			.flags = UCP_AM_FLAG_WHOLE_MSG,
			.cb = handlers[i].handle,
			.arg = link,
		};

		status = ucx.ucp_worker_set_am_recv_handler(worker, &handler);
	}
	return status;
}

static ucs_status_t make_worker(struct link *link, struct engine *engine)
{
	/* A set of the engine's own would be one more inside of the others: the system allows few levels. */
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENT_FD,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
		.event_fd = link->set,
	};
	ucp_worker_attr_t attributes = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
	ucs_status_t status;
	sigset_t old;

	block_signals(&old); /* the engine's thread begins with the first worker */
	status = ucx.ucp_worker_create(engine->context, &params, &engine->worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!status)
		status = ucx.ucp_worker_query(engine->worker, &attributes);
	if (!status)
		status = set_handlers(link, engine->worker);
	if (!status && attributes.max_am_header < link->head_most + sizeof(struct pack_mark))
		link->head_most = attributes.max_am_header - sizeof(struct pack_mark);
	return status;
}

static void end_worker(struct engine *engine)
{
	if (engine->worker)
		ucx.ucp_worker_destroy(engine->worker); /* its descriptors leave the set */
	engine->worker = NULL;
}

/* Nothing, if it is started. On failure it has no worker. */
static ucs_status_t start_engine(struct link *link, enum way way)
{
	struct engine *engine = &link->engines[way];
	ucs_status_t status = UCS_OK;

	if (engine->worker)
		return UCS_OK;
	if (!engine->context)
		status = make_context(link, way);
	if (!status)
		status = make_worker(link, engine);
	if (status)
		end_worker(engine);
	return status;
}

static void ucx_close(struct link *link, int64_t patience);

static bool open_timers(struct link *link)
{
	if (!beat_open(&link->beat, link->events.keepalive))
		return false;
	link->again = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return link->again >= 0 &&
	       watch_socket(link, link->beat.timer, &link->beat, EPOLL_CTL_ADD, EPOLLIN) &&
	       watch_socket(link, link->again, &link->again, EPOLL_CTL_ADD, EPOLLIN);
}

static struct link *ucx_open(const struct link_events *events, int set, char why[LINK_WHY])
{
	struct link *link = calloc(1, sizeof *link);
	ucs_status_t status = UCS_ERR_NO_MEMORY;

	if (link) {
		link->events = *events;
		link->listener = link->meeting.socket = link->beat.timer = link->again = -1;
		for (int i = 0; i < GREETERS; i++)
			link->greeters[i].socket = -1;
		link->set = set;
		if (!open_timers(link)) {
			snprintf(why, LINK_WHY, "no descriptor for a timer: %s", strerror(errno));
			ucx_close(link, 0);
			return NULL;
		}
		link->head_most = HEAD_MOST;
		status = start_engine(link, NET);
	}
	if (!status)
		return link;
	snprintf(why, LINK_WHY, "UCX cannot start: %s: see UCX_TLS and UCX_NET_DEVICES of the environment",
		 ucx.ucs_status_string(status));
	ucx_close(link, 0);
	return NULL;
}

static size_t ucx_head_most(const struct link *link)
{
	return link->head_most;
}

/* --- connections --- */

static bool ucx_listen(struct link *link, const struct address *address, const char *peers,
		       char why[LINK_WHY])
{
	link->peers = peers;
	link->listener = meet_listen(address, why);
	if (link->listener < 0)
		return false;
	/* Told once: while there is no descriptor for it, what connects would keep this side busy. It tries
	 * again. */
	if (watch_socket(link, link->listener, &link->listener, EPOLL_CTL_ADD, EPOLLIN | EPOLLET))
		return true;
	snprintf(why, LINK_WHY, "%s", strerror(errno));
	return false;
}

static bool ucx_connect(struct link *link, const struct address *address, char why[LINK_WHY])
{
	link->failed = link->told = false;
	if (!meet_connect(address, &link->meeting, why))
		return false;
	if (watch_socket(link, link->meeting.socket, &link->meeting, EPOLL_CTL_ADD, EPOLLOUT))
		return true;
	snprintf(why, LINK_WHY, "%s", strerror(errno));
	meet_close(&link->meeting);
	return false;
}

/* What a frame says. false: nothing that can be. */
static bool read_reach(const struct meeting *meeting, struct reach *reach)
{
	const void *said = meet_address(meeting);
	size_t head = offsetof(struct reach, addresses), bytes = meet_address_bytes(meeting);

	if (!said || bytes < head || bytes > sizeof *reach)
		return false;
	memcpy(reach, said, bytes);
	return reach->bytes[NET] <= REACH_MOST && reach->bytes[NEAR] <= REACH_MOST &&
	       bytes - head == reach->bytes[NET] + reach->bytes[NEAR];
}

static void add_address(const struct link *link, enum way way, struct reach *reach)
{
	ucp_worker_h worker = link->engines[way].worker;
	size_t at = way == NEAR ? reach->bytes[NET] : 0, bytes;
	ucp_address_t *address;

	if (!worker || ucx.ucp_worker_get_address(worker, &address, &bytes))
		return;
	if (at + bytes <= REACH_MOST) {
		memcpy(reach->addresses + at, address, bytes);
		reach->bytes[way] = (uint32_t)bytes;
	}
	ucx.ucp_worker_release_address(worker, address);
}

/* By the ways whose engines are started. */
static bool say_reach(struct link *link, uint64_t tag)
{
	struct reach reach;
	struct meet_frame frame = {
		.answer = MEET_ACCEPTS,
		.tag = tag,
		.keepalive = link->beat.keepalive,
		.address = &reach,
	};

	memset(&reach, 0, sizeof reach);
	(void)near_say(&reach.near, link->meeting.socket);
	for (enum way way = NET; way < WAYS; way++)
		add_address(link, way, &reach);
	frame.bytes = offsetof(struct reach, addresses) + reach.bytes[NET] + reach.bytes[NEAR];
	return meet_say(&link->meeting, &frame);
}

/* The connection of the engine, to the other one's worker. The engine of the other way ends. */
static bool make_end(struct link *link, const struct meeting *meeting, const struct reach *reach,
		     enum way way)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.address = (const ucp_address_t *)(reach->addresses + (way == NEAR ? reach->bytes[NET] : 0)),
		.err_handler = {on_failure, link},
		.err_mode = way == NEAR ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
	};

	link->failed = link->told = false;
	if (!reach->bytes[way] || start_engine(link, way) ||
	    ucx.ucp_ep_create(link->engines[way].worker, &params, &link->end)) {
		link->end = NULL;
		return false;
	}
	link->way = way;
	beat_begin(&link->beat, meet_keepalive(meeting), watch_now());
	end_worker(&link->engines[way == NEAR ? NET : NEAR]);
	return true;
}

/* The receiver decides by which way: it has heard the sender. */
static bool accept_end(struct link *link, const struct meeting *greeter)
{
	struct reach reach;
	bool well = read_reach(greeter, &reach);

	if (well && near_is(&reach.near, greeter->socket) && make_end(link, greeter, &reach, NEAR))
		return true;
	end_worker(&link->engines[NEAR]);
	return well && make_end(link, greeter, &reach, NET);
}

static bool answered_end(struct link *link)
{
	struct reach reach;

	return read_reach(&link->meeting, &reach) &&
	       make_end(link, &link->meeting, &reach, reach.bytes[NEAR] ? NEAR : NET);
}

/* A second sender is refused; one whose predecessor is given up only then comes again. */
static void accept_greeter(struct link *link, struct meeting *greeter)
{
	uint64_t tag = (uint64_t)watch_now();

	if (greeter->unwelcome || link->end || !accept_end(link, greeter)) {
		meet_say(greeter, &(struct meet_frame){.answer = MEET_REFUSES});
		meet_close(greeter);
		return;
	}
	link->tag = tag;
	link->meeting = *greeter;
	greeter->socket = -1;
	if (!watch_socket(link, link->meeting.socket, &link->meeting, EPOLL_CTL_MOD, EPOLLIN) ||
	    !say_reach(link, tag))
		fail(link, "it cannot be answered");
	link->events.accepted(link->events.arg, link->meeting.peer);
}

static void hear_greeter(struct link *link, struct meeting *greeter)
{
	switch (meet_read(greeter)) {
	case MEET_WAITS:
		return;
	case MEET_WHOLE:
		accept_greeter(link, greeter);
		return;
	case MEET_STRANGE:
		link->events.stranger(link->events.arg, greeter->peer);
		break;
	case MEET_ENDED:
		break;
	}
	meet_close(greeter);
}

/*
 * What says nothing takes one of a few places, and goes when it is needed.
 */
static void take_greeters(struct link *link)
{
	struct meeting next;

	while (meet_accept(link->listener, link->peers, &next)) {
		struct meeting *place = &link->greeters[0];

		for (int i = 1; i < GREETERS && place->socket >= 0; i++)
			if (link->greeters[i].socket < 0 || link->greeters[i].turn < place->turn)
				place = &link->greeters[i];
		meet_close(place);
		*place = next;
		place->turn = ++link->turn;
		if (!watch_socket(link, place->socket, place, EPOLL_CTL_ADD, EPOLLIN))
			meet_close(place);
	}
}

static void hear_answer(struct link *link)
{
	struct meeting *meeting = &link->meeting;

	switch (meet_read(meeting)) {
	case MEET_WAITS:
		return;
	case MEET_WHOLE:
		if (meet_answer(meeting) == MEET_REFUSES) {
			fail(link, "it refused: it has a sender, its 'peers' leave this machine out, or UCX "
				   "has no way: see UCX_TLS");
		} else if (answered_end(link)) {
			link->tag = meet_tag(meeting);
			link->events.connected(link->events.arg);
		} else {
			fail(link, "UCX cannot reach it: see UCX_TLS and UCX_NET_DEVICES of both sides");
		}
		return;
	case MEET_STRANGE:
		fail(link, "what listens there is no remote_receive");
		return;
	case MEET_ENDED:
		fail(link, "it is gone");
	}
}

static void hear_signs(struct link *link)
{
	enum meet_news news = meet_look(&link->meeting);

	if (news == MEET_WHOLE)
		beat_hear(&link->beat, watch_now());
	else if (news != MEET_WAITS)
		fail(link, "it is gone");
}

static void hear_meeting(struct link *link)
{
	struct meeting *meeting = &link->meeting;
	int error;

	if (meeting->connecting) {
		error = meet_connected(meeting);
		if (error) {
			fail(link, error == ECONNREFUSED ? "nothing listens there" : strerror(error));
			return;
		}
		(void)start_engine(link, NEAR); /* else it is not said */
		if (!watch_socket(link, meeting->socket, meeting, EPOLL_CTL_MOD, EPOLLIN) ||
		    !say_reach(link, 0))
			fail(link, "it is gone");
	} else if (!link->end) {
		hear_answer(link);
	} else {
		hear_signs(link);
	}
}

/* Signs that lie in the socket came in time, however late this tick is. */
static void keep_alive(struct link *link)
{
	int64_t now = watch_now();

	if (link->end && !link->failed)
		hear_signs(link);
	if (!link->end || link->failed) {
		beat_end(&link->beat);
		return;
	}
	if (beat_look(&link->beat, now))
		meet_beat(&link->meeting);
	if (beat_is_silent(&link->beat, now))
		fail(link, "no sign of life came from it for as long as 'keepalive' says: it is "
			   "stopped, or hangs, or the network is cut");
}

static void hear_sockets(struct link *link)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(link->set, events, EVENTS, 0);

	for (int i = 0; i < count; i++) {
		void *what = events[i].data.ptr;

		if (!what) /* the engine's, or the caller's */
			continue;
		if (what == &link->listener)
			take_greeters(link);
		else if (what == &link->beat)
			keep_alive(link);
		else if (what == &link->again)
			watch_timer(link->again, 0);
		else if (what == &link->meeting && link->meeting.socket >= 0)
			hear_meeting(link);
		else if (what != &link->meeting && ((struct meeting *)what)->socket >= 0)
			hear_greeter(link, what);
	}
}

/* Returns true if something was done. */
static bool progress_engine(const struct engine *engine)
{
	bool some = false;

	while (engine->worker && ucx.ucp_worker_progress(engine->worker))
		some = true;
	return some;
}

/*
 * A peer that is killed, or stopped, while it writes into shared memory leaves what neither comes nor lets
 * the engine be armed. The sockets tell of some of these, a timer makes the set readable for the others, so
 * that no tick waits for it.
 */
static void look_again(struct link *link)
{
	link->pause = !link->pause ? NS_AGAIN : link->pause < NS_SELDOM ? 2 * link->pause : NS_SELDOM;
	watch_timer(link->again, link->pause);
}

/*
 * The engines behind the sockets: what came before the other side closed is handled before its end is told. A
 * socket that says more meanwhile leaves the set readable.
 */
static void turn(struct link *link)
{
	for (unsigned tries = 0; !link->failed && tries < TRIES; tries++) {
		bool busy = false;

		hear_sockets(link);
		for (enum way way = NET; way < WAYS; way++) {
			const struct engine *engine = &link->engines[way];

			if (progress_engine(engine))
				tries = 0, link->pause = 0;
			busy |= engine->worker && ucx.ucp_worker_arm(engine->worker) == UCS_ERR_BUSY;
		}
		if (!busy) {
			link->pause = 0;
			return;
		}
	}
	if (!link->failed)
		look_again(link);
}

static void tell_loss(struct link *link)
{
	if (!link->failed || link->told)
		return;
	link->told = true;
	link->events.lost(link->events.arg, link->why);
}

static void ucx_progress(struct link *link)
{
	turn(link);
	tell_loss(link);
}

/* To look at the sockets is a call of the system, which costs as much as all the rest. */
static void ucx_poll(struct link *link)
{
	int64_t now = watch_now();

	if (!link->end || now - link->looked >= NS_LOOK) {
		link->looked = now;
		hear_sockets(link);
	}
	for (enum way way = NET; way < WAYS; way++)
		progress_engine(&link->engines[way]);
	tell_loss(link);
}

/* One of the transfer's requests. */
static void send_data(struct transfer *transfer, unsigned id, const void *head, size_t head_bytes,
		      const void *data, size_t count, ucp_request_param_t *how)
{
	struct link *link = transfer->link;
	void *request;

	how->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	how->cb.send = on_sent;
	how->user_data = transfer;
	request = ucx.ucp_am_send_nbx(link->end, id, head, head_bytes, data, count, how);
	if (UCS_PTR_IS_PTR(request))
		return;
	transfer->open--;
	if (request)
		fail(link, ucx.ucs_status_string(UCS_PTR_STATUS(request)));
}

/* In one piece, or in pieces of the host. */
static void send_message(struct transfer *transfer, size_t head_bytes, bool apart)
{
	bool one = transfer->count == 1;
	const struct message_mark mark = {transfer->link->tag};
	ucp_request_param_t how = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.flags = apart ? UCP_AM_SEND_FLAG_RNDV : 0,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};

	memcpy(transfer->head, &mark, sizeof mark);
	if (one) {
		say_memory(transfer, 0, &how);
	} else if (transfer->count) {
		how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		how.datatype = UCP_DATATYPE_IOV;
	}
	send_data(transfer, MESSAGE_ID, transfer->head, sizeof mark + head_bytes,
		  one ? transfer->pieces[0].buffer : transfer->pieces,
		  one ? transfer->pieces[0].length : transfer->count, &how);
}

static void send_pack(struct transfer *transfer, size_t head_bytes)
{
	struct link *link = transfer->link;
	struct pack_mark mark = {.tag = link->tag, .serial = ++link->serial, .count = transfer->count};
	ucp_request_param_t how = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};

	if (!mark.serial) /* it went round; 0 is none */
		mark.serial = ++link->serial;
	for (unsigned i = 0; i < transfer->count; i++)
		mark.bytes += transfer->pieces[i].length;
	memcpy(transfer->head, &mark, sizeof mark);
	transfer->open += transfer->count;
	send_data(transfer, PACK_ID, transfer->head, sizeof mark + head_bytes, NULL, 0, &how);
	for (unsigned i = 0; i < transfer->count; i++) {
		how = (ucp_request_param_t){
			.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
			.flags = UCP_AM_SEND_FLAG_RNDV,
		};
		say_memory(transfer, i, &how);
		transfer->marks[i] = (struct piece_mark){link->tag, mark.serial, i};
		send_data(transfer, PIECE_ID, &transfer->marks[i], sizeof *transfer->marks,
			  transfer->pieces[i].buffer, transfer->pieces[i].length, &how);
	}
}

/* What failed while a part of it is under way is ended with the connection. */
static enum link_sent ucx_send(struct link *link, const void *head, size_t head_bytes,
			       const struct span *spans, unsigned count, void *cookie)
{
	struct transfer *transfer;
	bool apart = false, pack;

	for (unsigned i = 0; i < count; i++)
		apart |= spans[i].apart;
	pack = apart && count > 1;
	transfer = link->end && !link->failed
			   ? transfer_add(link, cookie,
					  pack ? sizeof(struct pack_mark) : sizeof(struct message_mark), head,
					  head_bytes, spans, count)
			   : NULL;
	if (!transfer) {
		fail(link, "no memory");
		return LINK_BROKEN;
	}
	if (pack)
		send_pack(transfer, head_bytes);
	else
		send_message(transfer, head_bytes, apart);
	if (transfer->open)
		return LINK_UNDER_WAY;
	transfer_free(transfer);
	return link->failed ? LINK_BROKEN : LINK_DONE;
}

/* --- the end --- */

/*
 * The end of a connection. Through shared memory it is the end of its worker: what a peer that was killed has
 * left unfinished there stops all that follows, and a forced close waits for it for ever. UCX 1.13 calls back
 * for some of what was under way as it ends a worker, and forgets the rest.
 */
static void begin_end(struct link *link)
{
	const ucp_request_param_t force = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};

	link->ends_by = watch_now() + NS_FORCED;
	beat_end(&link->beat);
	if (link->way == NEAR) {
		epoll_ctl(link->set, EPOLL_CTL_DEL, link->meeting.socket, NULL);
		return;
	}
	meet_close(&link->meeting);
	release_early(link);
	forget_missing(link);
	if (link->end)
		link->closing = ucx.ucp_ep_close_nbx(link->end, &force);
}

/* Whether no more is to be waited for. A forced close ends what was under way; its callbacks come here. */
static bool is_ended(struct link *link)
{
	bool closes;

	if (watch_now() >= link->ends_by)
		return true;
	if (link->way == NEAR)
		return near_end(link->meeting.socket);
	progress_engine(&link->engines[NET]);
	closes = UCS_PTR_IS_PTR(link->closing) &&
		 ucx.ucp_request_check_status(link->closing) == UCS_INPROGRESS;
	return !closes && !link->transfers;
}

static void finish_end(struct link *link)
{
	if (UCS_PTR_IS_PTR(link->closing))
		ucx.ucp_request_free(link->closing);
	link->closing = NULL;
	meet_close(&link->meeting);
	release_early(link);
	forget_missing(link);
	link->end = NULL;
	end_worker(&link->engines[NEAR]);
	if (link->transfers)
		end_worker(&link->engines[NET]);
	while (link->transfers) {
		link->transfers->torn = true;
		transfer_end(link->transfers);
	}
	link->way = NET;
	link->ends_by = link->pause = 0;
	link->failed = link->told = false;
}

static bool ucx_end(struct link *link)
{
	if (!link->ends_by)
		begin_end(link);
	if (!is_ended(link)) {
		look_again(link); /* the system tells of no end that the other one has got */
		return false;
	}
	finish_end(link);
	return true;
}

static void give_up(struct link *link)
{
	if (!link->ends_by)
		begin_end(link);
	while (!is_ended(link))
		poll(NULL, 0, 1);
	finish_end(link);
}

static bool ucx_drop(struct link *link)
{
	give_up(link);
	return start_engine(link, NET) == UCS_OK;
}

static void ucx_deafen(struct link *link)
{
	meet_deafen(link->listener);
	link->listener = -1;
	for (int i = 0; i < GREETERS; i++)
		meet_close(&link->greeters[i]);
}

static void wait_for_peer(struct link *link, int64_t patience)
{
	struct pollfd set = {link->set, POLLIN, 0};
	int64_t until = watch_now() + patience;

	for (turn(link); link->end && !link->failed && watch_now() < until; turn(link))
		poll(&set, 1, 10);
}

static void ucx_close(struct link *link, int64_t patience)
{
	if (!link)
		return;
	ucx_deafen(link);
	if (patience)
		wait_for_peer(link, patience);
	give_up(link);
	for (unsigned i = 0; i < REGISTERED; i++)
		unregister(link, &link->registered[i]);
	for (enum way way = NET; way < WAYS; way++) {
		end_worker(&link->engines[way]);
		if (link->engines[way].context)
			ucx.ucp_cleanup(link->engines[way].context);
	}
	beat_close(&link->beat);
	if (link->again >= 0)
		close(link->again);
	free(link);
}

const struct transport transport_ucx = {
	.name = "ucx",
	.load = ucx_load,
	.open = ucx_open,
	.takes_devices = ucx_takes_devices,
	.uses_wholes = ucx_uses_wholes,
	.head_most = ucx_head_most,
	.listen = ucx_listen,
	.deafen = ucx_deafen,
	.connect = ucx_connect,
	.progress = ucx_progress,
	.poll = ucx_poll,
	.send = ucx_send,
	.drop = ucx_drop,
	.end = ucx_end,
	.close = ucx_close,
};
