#include "cli/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"

enum {
	ADDRESS = INET6_ADDRSTRLEN,
	HEADERS = 16384, /* bytes of a request */
	PATIENCE = 10,   /* s: how long a client may be silent */
};

struct cli_metrics {
	weir_scheduler *scheduler;
	struct event_base *base;
	struct evhttp *server;
	struct event *end;
	int wakes[2]; /* a pipe, whose end of file ends the thread; -1: closed */
	pthread_t thread;
	bool serving;
};

/* --- the address --- */

/* "HOST:PORT", "[HOST]:PORT", ":PORT" or "PORT", the host in digits; without one the loopback address. */
static bool read_address(const char *text, char host[static ADDRESS], uint16_t *port)
{
	const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	bool brackets = length > 1 && *text == '[' && colon[-1] == ']';
	unsigned char address[sizeof(struct in6_addr)];
	unsigned long number = strtoul(digits, NULL, 10);

	if (!*digits || strlen(digits) > 5 || strspn(digits, "0123456789") != strlen(digits) ||
	    number > UINT16_MAX)
		return false;
	*port = (uint16_t)number;
	if (length)
		snprintf(host, ADDRESS, "%.*s", (int)length - 2 * brackets, text + brackets);
	else
		snprintf(host, ADDRESS, "127.0.0.1");
	return length < ADDRESS && inet_pton(brackets ? AF_INET6 : AF_INET, host, address) == 1;
}

bool cli_metrics_address(const char *text)
{
	char host[ADDRESS];
	uint16_t port;

	return read_address(text, host, &port);
}

/* --- the thread --- */

static void answer(struct evhttp_request *request, void *arg)
{
	struct cli_metrics *metrics = arg;
	struct evbuffer *body = evhttp_request_get_output_buffer(request);
	char *text = NULL;

	if (weir_scheduler_print_metrics(metrics->scheduler, &text) ||
	    evbuffer_add(body, text, strlen(text))) {
		weir_text_free(text);
		evhttp_send_error(request, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	weir_text_free(text);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  "text/plain; version=0.0.4; charset=utf-8");
	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

static void answer_other(struct evhttp_request *request, void *arg)
{
	(void)arg;
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
	evbuffer_add_printf(evhttp_request_get_output_buffer(request), "the metrics are at /metrics\n");
	evhttp_send_reply(request, HTTP_NOTFOUND, "Not Found", NULL);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	event_base_loopbreak(((struct cli_metrics *)arg)->base);
}

static void *serve(void *arg)
{
	struct cli_metrics *metrics = arg;

	event_base_dispatch(metrics->base);
	return NULL;
}

/* --- its life --- */

static weir_status make(struct cli_metrics *metrics)
{
	if (pipe2(metrics->wakes, O_CLOEXEC))
		return WEIR_E_NOMEM;
	metrics->base = event_base_new();
	metrics->server = metrics->base ? evhttp_new(metrics->base) : NULL;
	metrics->end = metrics->server ? event_new(metrics->base, metrics->wakes[0], EV_READ, on_end, metrics)
				       : NULL;
	if (!metrics->end || event_add(metrics->end, NULL) ||
	    evhttp_set_cb(metrics->server, "/metrics", answer, metrics))
		return WEIR_E_NOMEM;
	evhttp_set_gencb(metrics->server, answer_other, NULL);
	evhttp_set_allowed_methods(metrics->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(metrics->server, HEADERS);
	evhttp_set_max_body_size(metrics->server, 0);
	evhttp_set_timeout(metrics->server, PATIENCE);
	return WEIR_OK;
}

/* The port that was chosen, where 0 was asked for. */
static unsigned port_of(struct evhttp_bound_socket *bound)
{
	struct sockaddr_storage at = {0};
	socklen_t length = sizeof at;

	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&at, &length))
		return 0;
	return ntohs(((struct sockaddr_in *)&at)->sin_port); /* that of IPv6 lies there, too */
}

static int listen_at(struct cli_metrics *metrics, const char *text, bool quiet)
{
	char host[ADDRESS];
	struct evhttp_bound_socket *bound;
	uint16_t port;

	if (!read_address(text, host, &port) || make(metrics)) {
		cli_say("--metrics %s: out of memory", text);
		return CLI_FAILED;
	}
	errno = 0;
	bound = evhttp_bind_socket_with_handle(metrics->server, host, port);
	if (!bound && errno == EADDRINUSE)
		cli_say("--metrics %s: another program listens there: give another port, or 0 for any", text);
	else if (!bound)
		cli_say("--metrics %s: %s", text, errno ? strerror(errno) : "cannot listen there");
	if (!bound)
		return CLI_FAILED;
	if (!quiet)
		cli_say(strchr(host, ':') ? "metrics: http://[%s]:%u/metrics"
					  : "metrics: http://%s:%u/metrics",
			host, port_of(bound));
	return CLI_OK;
}

int cli_metrics_open(const char *text, bool quiet, struct cli_metrics **out)
{
	struct cli_metrics *metrics;
	int code;

	if (!text)
		return CLI_OK;
	metrics = calloc(1, sizeof *metrics);
	if (!metrics) {
		cli_say("--metrics %s: out of memory", text);
		return CLI_FAILED;
	}
	metrics->wakes[0] = metrics->wakes[1] = -1;
	code = listen_at(metrics, text, quiet);
	if (code)
		cli_metrics_close(metrics);
	else
		*out = metrics;
	return code;
}

int cli_metrics_serve(struct cli_metrics *metrics, weir_scheduler *scheduler)
{
	sigset_t all, before;

	if (!metrics)
		return CLI_OK;
	metrics->scheduler = scheduler;
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	metrics->serving = !pthread_create(&metrics->thread, NULL, serve, metrics);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (metrics->serving)
		return CLI_OK;
	cli_say("--metrics: cannot start a thread");
	return CLI_FAILED;
}

void cli_metrics_close(struct cli_metrics *metrics)
{
	if (!metrics)
		return;
	if (metrics->wakes[1] >= 0)
		close(metrics->wakes[1]);
	if (metrics->serving)
		pthread_join(metrics->thread, NULL);
	if (metrics->end)
		event_free(metrics->end);
	if (metrics->server)
		evhttp_free(metrics->server);
	if (metrics->base)
		event_base_free(metrics->base);
	if (metrics->wakes[0] >= 0)
		close(metrics->wakes[0]);
	free(metrics);
}
