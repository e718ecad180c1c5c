/*
 * Links over UCX, which is loaded when the plugin is: it installs handlers of SIGSEGV and the like and
 * replaces mmap when it is loaded, unless variables of its environment say no, so they must be set before.
 * Each link has a context and a worker of its own, so entities share nothing. What UCX calls from its
 * functions is noted, or handled inside of `progress`; the loss of a connection is told after all that came
 * before it.
 *
 * UCX has a thread of its own per process, which sleeps until a connection comes or ends.
 */
#include "remote/link.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

#define FUNCTIONS(X)                                                                                         \
	X(ucp_am_recv_data_nbx)                                                                              \
	X(ucp_am_send_nbx)                                                                                   \
	X(ucp_cleanup)                                                                                       \
	X(ucp_config_modify)                                                                                 \
	X(ucp_config_read)                                                                                   \
	X(ucp_config_release)                                                                                \
	X(ucp_conn_request_query)                                                                            \
	X(ucp_ep_close_nbx)                                                                                  \
	X(ucp_ep_create)                                                                                     \
	X(ucp_init_version)                                                                                  \
	X(ucp_listener_create)                                                                               \
	X(ucp_listener_destroy)                                                                              \
	X(ucp_listener_reject)                                                                               \
	X(ucp_request_check_status)                                                                          \
	X(ucp_request_free)                                                                                  \
	X(ucp_worker_arm)                                                                                    \
	X(ucp_worker_create)                                                                                 \
	X(ucp_worker_destroy)                                                                                \
	X(ucp_worker_get_efd)                                                                                \
	X(ucp_worker_progress)                                                                               \
	X(ucp_worker_query)                                                                                  \
	X(ucp_worker_set_am_recv_handler)

static struct {
	const char *(*ucs_status_string)(ucs_status_t status);
#define FUNCTION(name) __typeof__(&name) name;
	FUNCTIONS(FUNCTION)
#undef FUNCTION
} ucx; /* written under the lock, before any link is made */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded; /* guarded by the lock */

enum { MESSAGE_ID = 1, TEXT = 64, HEAD_MOST = 8192 };
#define NS_FORCED                                                                                            \
	INT64_C(2000000000) /* how long a forced close may take before its memory is left to UCX             \
			     */

/* A payload that UCX reads or writes, in the list of its link. */
struct transfer {
	struct transfer *before, *after;
	struct link *link;
	void *cookie;
	bool receives;
	char *head;
	ucp_dt_iov_t pieces[]; /* the head is behind them */
};

struct link {
	struct link_events events;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_listener_h listener;
	ucp_ep_h end; /* of the connection; NULL: none */
	ucp_conn_request_h request;
	const char *peers;
	int descriptor;
	size_t head_most;
	struct transfer *transfers;
	bool failed, told;
	ucs_status_t status;
};

static const char *status_text(ucs_status_t status)
{
	switch (status) {
	case UCS_ERR_REJECTED:
		return "it refused: it has a sender, or its 'peers' leave this machine out";
	case UCS_ERR_UNREACHABLE:
	case UCS_ERR_NOT_CONNECTED:
		return "nothing listens there";
	case UCS_ERR_CONNECTION_RESET:
	case UCS_ERR_ENDPOINT_TIMEOUT:
		return "it is gone";
	case UCS_ERR_BUSY:
		return "the address is in use";
	default:
		return ucx.ucs_status_string(status);
	}
}

/* --- loading --- */

/*
 * The variables that UCX reads as it is loaded. What the user has set counts. The one of KEPT it reads
 * whenever a link is opened (ucp_config_modify does not reach it), so that one stays in the environment.
 */
static const char *const before[][2] = {
	{"UCX_ERROR_SIGNALS", ""},
	{"UCX_MEM_EVENTS", "n"},
	{"UCX_LOG_LEVEL", "fatal"}, /* it would print a line of its own for each peer that is gone */
	{"UCX_WARN_UNUSED_ENV_VARS", "n"},
};
#define KEPT "UCX_TCP_CM_REUSEADDR" /* a receiver that is started again may have its address at once */
enum { BEFORE = sizeof before / sizeof before[0] };

static void *load_library(void)
{
	bool ours[BEFORE];
	void *handle;

	for (unsigned i = 0; i < BEFORE; i++) {
		ours[i] = !getenv(before[i][0]);
		if (ours[i])
			setenv(before[i][0], before[i][1], 1);
	}
	setenv(KEPT, "y", 0);
	handle = dlopen("libucp.so.0",
			RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* its thread cannot be unloaded */
	for (unsigned i = 0; i < BEFORE; i++)
		if (ours[i])
			unsetenv(before[i][0]);
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

/* --- transfers --- */

static struct transfer *transfer_add(struct link *link, void *cookie, const void *head, size_t head_bytes,
				     const struct span *spans, unsigned count)
{
	struct transfer *transfer =
		calloc(1, sizeof *transfer + count * sizeof *transfer->pieces + head_bytes);

	if (!transfer)
		return NULL;
	transfer->link = link;
	transfer->cookie = cookie;
	transfer->head = (char *)(transfer->pieces + count);
	if (head_bytes)
		memcpy(transfer->head, head, head_bytes);
	for (unsigned i = 0; i < count; i++)
		transfer->pieces[i] = (ucp_dt_iov_t){spans[i].data, spans[i].bytes};
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
	free(transfer);
}

static void transfer_end(struct transfer *transfer, bool whole)
{
	struct link_events events = transfer->link->events;
	void *cookie = transfer->cookie;
	bool receives = transfer->receives;

	transfer_free(transfer);
	if (receives)
		events.filled(events.arg, cookie, whole);
	else
		events.sent(events.arg, cookie);
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
	(void)status; /* a connection that fails says so by its handler */
	ucx.ucp_request_free(request);
	transfer_end(arg, true);
}

static void on_received(void *request, ucs_status_t status, size_t bytes, void *arg)
{
	(void)bytes;
	ucx.ucp_request_free(request);
	transfer_end(arg, status == UCS_OK);
}

/* --- what UCX calls --- */

static void on_failure(void *arg, ucp_ep_h end, ucs_status_t status)
{
	struct link *link = arg;

	if (end != link->end || link->failed)
		return;
	link->failed = true;
	link->status = status;
}

/* Of one that is not wanted, or has no memory, the data is left alone, and UCX drops it. */
static ucs_status_t receive_large(struct link *link, void *data, size_t bytes, const struct span *spans,
				  unsigned count, void *cookie)
{
	struct transfer *transfer = transfer_add(link, cookie, NULL, 0, spans, count);
	ucp_request_param_t how = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv_am = on_received,
		.user_data = transfer,
	};
	bool one = count == 1;
	void *request;

	if (!transfer) {
		link->events.filled(link->events.arg, cookie, false);
		return UCS_OK;
	}
	transfer->receives = true;
	if (!one) {
		how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		how.datatype = UCP_DATATYPE_IOV;
	}
	request = ucx.ucp_am_recv_data_nbx(link->worker, data, one ? spans[0].data : (void *)transfer->pieces,
					   one ? bytes : count, &how);
	if (!UCS_PTR_IS_PTR(request))
		transfer_end(transfer, !request);
	return UCS_INPROGRESS;
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

	if (!link->end) /* of a connection that was given up */
		return UCS_OK;
	count = events->arrived(events->arg, head, head_bytes, bytes, spans, &cookie);
	if (count < 0)
		return UCS_OK;
	if (bytes && how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		return receive_large(link, data, bytes, spans, (unsigned)count, cookie);
	for (int i = 0; i < count; from += spans[i++].bytes)
		if (spans[i].bytes)
			memcpy(spans[i].data, from, spans[i].bytes);
	events->filled(events->arg, cookie, true);
	return UCS_OK;
}

static void on_request(ucp_conn_request_h request, void *arg)
{
	struct link *link = arg;

	if (link->request)
		ucx.ucp_listener_reject(link->listener, request);
	else
		link->request = request;
}

/* --- opening --- */

/* The cache of memory types needs the hooks. A peer that ends is seen at once, by its socket: keepalive is
 * for machines. */
static void set_up(ucp_config_t *config)
{
	if (!getenv("UCX_MEMTYPE_CACHE"))
		(void)ucx.ucp_config_modify(config, "MEMTYPE_CACHE", "n");
}

static ucs_status_t make_context(struct link *link)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
	};
	ucp_config_t *config;
	ucs_status_t status = ucx.ucp_config_read(NULL, NULL, &config);

	if (status)
		return status;
	set_up(config);
	status = ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &link->context);
	ucx.ucp_config_release(config);
	return status;
}

static ucs_status_t make_worker(struct link *link)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
	};
	ucp_worker_attr_t attributes = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
	ucp_am_handler_param_t handler = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = MESSAGE_ID,
		.flags = UCP_AM_FLAG_WHOLE_MSG,
		.cb = on_message,
		.arg = link,
	};
	ucs_status_t status = ucx.ucp_worker_create(link->context, &params, &link->worker);

	if (!status)
		status = ucx.ucp_worker_get_efd(link->worker, &link->descriptor);
	if (!status)
		status = ucx.ucp_worker_query(link->worker, &attributes);
	if (!status)
		status = ucx.ucp_worker_set_am_recv_handler(link->worker, &handler);
	link->head_most = attributes.max_am_header < HEAD_MOST ? attributes.max_am_header : HEAD_MOST;
	return status;
}

static void ucx_close(struct link *link, int64_t patience);

static struct link *ucx_open(const struct link_events *events, char why[LINK_WHY])
{
	struct link *link = calloc(1, sizeof *link);
	ucs_status_t status = UCS_ERR_NO_MEMORY;

	if (link) {
		link->events = *events;
		status = make_context(link);
	}
	if (!status)
		status = make_worker(link);
	if (!status)
		return link;
	snprintf(why, LINK_WHY, "UCX cannot start: %s: see UCX_TLS and UCX_NET_DEVICES of the environment",
		 ucx.ucs_status_string(status));
	ucx_close(link, 0);
	return NULL;
}

static int ucx_descriptor(const struct link *link)
{
	return link->descriptor;
}

static size_t ucx_head_most(const struct link *link)
{
	return link->head_most;
}

/* --- connections --- */

static bool ucx_listen(struct link *link, const struct address *address, const char *peers,
		       char why[LINK_WHY])
{
	ucp_listener_params_t params = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = {(const struct sockaddr *)&address->socket, address->size},
		.conn_handler = {on_request, link},
	};
	ucs_status_t status = ucx.ucp_listener_create(link->worker, &params, &link->listener);

	link->peers = peers;
	if (status)
		snprintf(why, LINK_WHY, "%s", status_text(status));
	return !status;
}

static bool make_end(struct link *link, ucp_ep_params_t *params)
{
	ucs_status_t status;

	params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
	params->err_handler = (ucp_err_handler_t){on_failure, link};
	params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
	link->failed = link->told = false;
	status = ucx.ucp_ep_create(link->worker, params, &link->end);
	if (!status)
		return true;
	link->end = NULL;
	link->status = status;
	return false;
}

static bool ucx_connect(struct link *link, const struct address *address, char why[LINK_WHY])
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
		.sockaddr = {(const struct sockaddr *)&address->socket, address->size},
	};

	if (make_end(link, &params))
		return true;
	snprintf(why, LINK_WHY, "%s", status_text(link->status));
	return false;
}

/* "127.0.0.1"; in the form in which `peers` lists it. */
static void name_peer(ucp_conn_request_h request, char text[TEXT])
{
	ucp_conn_request_attr_t attributes = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR};
	const struct sockaddr_storage *from = &attributes.client_address;
	const void *host;

	snprintf(text, TEXT, "unknown");
	if (ucx.ucp_conn_request_query(request, &attributes))
		return;
	host = from->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr
					   : (const void *)&((const struct sockaddr_in *)from)->sin_addr;
	inet_ntop(from->ss_family, host, text, TEXT);
}

static bool may_connect(const char *peers, const char *peer)
{
	size_t length = strlen(peer);

	if (!*peers)
		return true;
	for (const char *at = peers; *at; at += strcspn(at, ", ")) {
		at += strspn(at, ", ");
		if (!strncmp(at, peer, length) && (!at[length] || strchr(", ", at[length])))
			return true;
	}
	return false;
}

/* A second sender is refused, one whose predecessor is given up in this very progress comes again. */
static void accept_request(struct link *link)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
		.conn_request = link->request,
	};
	char peer[TEXT];

	name_peer(link->request, peer);
	link->request = NULL;
	if (link->end || !may_connect(link->peers, peer)) {
		ucx.ucp_listener_reject(link->listener, params.conn_request);
		return;
	}
	if (make_end(link, &params))
		link->events.accepted(link->events.arg, peer);
}

static void ucx_progress(struct link *link)
{
	do {
		while (ucx.ucp_worker_progress(link->worker))
			;
		if (link->request)
			accept_request(link);
	} while (ucx.ucp_worker_arm(link->worker) == UCS_ERR_BUSY || link->request);
	if (link->end && link->failed && !link->told) {
		link->told = true;
		link->events.lost(link->events.arg, status_text(link->status));
	}
}

static enum link_sent ucx_send(struct link *link, const void *head, size_t head_bytes,
			       const struct span *spans, unsigned count, void *cookie)
{
	struct transfer *transfer = link->end && !link->failed
					    ? transfer_add(link, cookie, head, head_bytes, spans, count)
					    : NULL;
	ucp_request_param_t how = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = on_sent,
		.user_data = transfer,
	};
	const void *data = count ? spans[0].data : NULL;
	size_t bytes = count ? spans[0].bytes : 0;
	void *request;

	if (!transfer)
		return LINK_BROKEN;
	if (count > 1) {
		how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		how.datatype = UCP_DATATYPE_IOV;
		data = transfer->pieces;
		bytes = count;
	}
	request = ucx.ucp_am_send_nbx(link->end, MESSAGE_ID, transfer->head, head_bytes, data, bytes, &how);
	if (UCS_PTR_IS_PTR(request))
		return LINK_UNDER_WAY;
	transfer_free(transfer);
	if (!request)
		return LINK_DONE;
	link->failed = true;
	link->status = UCS_PTR_STATUS(request);
	return LINK_BROKEN;
}

/* --- the end --- */

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Progresses; sleeps a little, or until something comes. */
static void progress_and_wait(struct link *link)
{
	struct pollfd descriptor = {link->descriptor, POLLIN, 0};

	while (ucx.ucp_worker_progress(link->worker))
		;
	if (ucx.ucp_worker_arm(link->worker) != UCS_ERR_BUSY)
		poll(&descriptor, 1, 2);
}

/* A forced close ends what was under way; its callbacks come while the worker progresses. */
static void ucx_drop(struct link *link)
{
	ucp_request_param_t force = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	int64_t until = now() + NS_FORCED;
	void *request;

	if (!link->end)
		return;
	request = ucx.ucp_ep_close_nbx(link->end, &force);
	link->end = NULL;
	while (((UCS_PTR_IS_PTR(request) && ucx.ucp_request_check_status(request) == UCS_INPROGRESS) ||
		link->transfers) &&
	       now() < until)
		progress_and_wait(link);
	if (UCS_PTR_IS_PTR(request))
		ucx.ucp_request_free(request);
}

/* What was not ended by then ends with the worker. */
static void ucx_close(struct link *link, int64_t patience)
{
	int64_t until;

	if (!link)
		return;
	for (until = patience ? now() + patience : 0;
	     link->end && !link->failed && patience && now() < until;)
		progress_and_wait(link);
	ucx_drop(link);
	if (link->request)
		ucx.ucp_listener_reject(link->listener, link->request);
	if (link->listener)
		ucx.ucp_listener_destroy(link->listener);
	if (link->worker)
		ucx.ucp_worker_destroy(link->worker);
	while (link->transfers)
		transfer_end(link->transfers, false);
	if (link->context)
		ucx.ucp_cleanup(link->context);
	free(link);
}

const struct transport transport_ucx = {
	.name = "ucx",
	.load = ucx_load,
	.open = ucx_open,
	.descriptor = ucx_descriptor,
	.head_most = ucx_head_most,
	.listen = ucx_listen,
	.connect = ucx_connect,
	.progress = ucx_progress,
	.send = ucx_send,
	.drop = ucx_drop,
	.close = ucx_close,
};
