/*
 * Runs socket.json in this thread, beside a descriptor of its own, and sends the datagrams itself:
 * socket FILE
 * sends 200 datagrams, 10 each time that its own timer expires, then "end", on a port that was free.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "socket.h"

enum { ALL = 200, AT_ONCE = 10 }; /* all of them fit into the buffer of a socket */

struct sender {
	int socket, timer, sent;
	struct sockaddr_in to;
};

/* A port of 127.0.0.1 that nothing uses now. */
static bool find_port(struct sender *sender)
{
	socklen_t size = sizeof sender->to;
	int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	sender->to = (struct sockaddr_in){.sin_family = AF_INET};
	sender->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	found = !bind(probe, (struct sockaddr *)&sender->to, size) &&
		!getsockname(probe, (struct sockaddr *)&sender->to, &size);
	close(probe);
	return found;
}

static bool open_sender(struct sender *sender)
{
	const struct itimerspec every = {{0, 1000000}, {0, 1000000}};

	sender->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sender->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return find_port(sender) && !timerfd_settime(sender->timer, 0, &every, NULL);
}

static void send_text(struct sender *sender, const char *text)
{
	if (sendto(sender->socket, text, strlen(text), 0, (struct sockaddr *)&sender->to, sizeof sender->to) <
	    0)
		perror("sendto");
}

static void send_some(struct sender *sender)
{
	uint64_t beats;

	if (read(sender->timer, &beats, sizeof beats) != sizeof beats)
		return;
	for (int i = 0; i < AT_ONCE && sender->sent < ALL; i++, sender->sent++)
		send_text(sender, "datagram");
	if (sender->sent >= ALL)
		send_text(sender, "end"); /* again at each beat, until the run has ended */
}

static weir_status make_graph(const char *file, const struct sender *sender, weir_registry *registry,
			      weir_graph **out)
{
	weir_description *description = NULL;
	char port[32];
	weir_status status = weir_description_read(file, 0, NULL, NULL, &description);

	snprintf(port, sizeof port, "udp.port=%d", (int)ntohs(sender->to.sin_port));
	if (!status)
		status = weir_description_set(description, port);
	if (!status)
		status = weir_graph_create(registry, description, out);
	weir_description_destroy(description);
	return status;
}

/* One thread: it serves weir's loop and the program's own timer. */
static weir_status run(weir_scheduler *scheduler, struct sender *sender)
{
	int loop = -1;
	weir_status status = weir_scheduler_fd(scheduler, &loop);

	if (!status)
		status = weir_scheduler_start(scheduler);
	while (!status && weir_scheduler_running(scheduler)) {
		struct pollfd fds[] = {{.fd = loop, .events = POLLIN},
				       {.fd = sender->timer, .events = POLLIN}};

		poll(fds, 2, -1);
		if (fds[1].revents)
			send_some(sender);
		if (fds[0].revents)
			status = weir_scheduler_turn(scheduler);
	}
	return status ? status : weir_scheduler_wait(scheduler, 0, NULL);
}

int main(int argc, char **argv)
{
	const weir_scheduler_options options = {.size = sizeof options, .own_loop = true, .backend = "host"};
	const char *file = argc > 1 ? argv[1] : "socket.json";
	weir_registry *registry = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	struct sender sender = {0};
	weir_status status = open_sender(&sender) ? weir_registry_create(&registry) : WEIR_E_IO;

	if (!status)
		status = socket_add(registry);
	if (!status)
		status = make_graph(file, &sender, registry, &graph);
	if (!status)
		status = weir_scheduler_create(graph, &options, &scheduler);
	if (!status)
		status = run(scheduler, &sender);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_registry_destroy(registry);
	close(sender.socket);
	close(sender.timer);
	return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
