/*
 * weir inside a program that has an epoll set: it holds the descriptors of the scheduler and of two
 * outlets, beside whatever else the program waits for. Two entities square one after the other: for each
 * number that goes in, its square and its fourth power come out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "squares.h"

enum { NUMBERS = 100 };

struct result {
	const char *name;
	weir_outlet *outlet;
	int64_t taken, wrong;
	int fd;
	bool closed;
};

struct program {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *in;
	struct result results[2]; /* square, fourth */
	int64_t pushed;
	int set;
};

static weir_status make_graph(struct program *self)
{
	static const char json[] = "{\"weir\": 1, \"name\": \"powers\","
				   " \"entities\": [{\"name\": \"square\", \"operator\": \"square\"},"
				   "                {\"name\": \"fourth\", \"operator\": \"square\"}],"
				   " \"connections\": [[\"square.out\", \"fourth.in\"]]}";
	weir_description *description = NULL;
	weir_status status = weir_registry_create(&self->registry);

	if (!status)
		status = weir_registry_add_operator(self->registry, &square);
	if (!status)
		status = weir_description_parse(json, strlen(json), NULL, NULL, &description);
	if (!status)
		status = weir_graph_create(self->registry, description, &self->graph);
	weir_description_destroy(description);
	if (!status)
		status = weir_graph_add_inlet(self->graph, "square.in", &self->in);
	for (int i = 0; !status && i < 2; i++)
		status = weir_graph_add_outlet(self->graph, self->results[i].name, 4, 0,
					       &self->results[i].outlet);
	return status;
}

/* Pushes numbers while there is room; called again when a result has come. */
static void push(struct program *self)
{
	weir_message *message = NULL;

	while (self->pushed < NUMBERS &&
	       !weir_message_create_bytes(self->graph, sizeof self->pushed, &message)) {
		memcpy(weir_message_data(message), &self->pushed, sizeof self->pushed);
		if (weir_inlet_push(self->in, message, 0)) {
			weir_message_unref(message);
			return;
		}
		if (++self->pushed == NUMBERS)
			weir_inlet_close(self->in);
	}
}

static void check(struct program *self, struct result *result, const weir_message *message)
{
	int64_t n = result->taken++, wanted = result == self->results ? n * n : n * n * n * n, got;

	memcpy(&got, weir_message_data(message), sizeof got);
	result->wrong += got != wanted;
}

static void take(struct program *self, struct result *result)
{
	weir_message *message = NULL;
	weir_status status;

	while (!(status = weir_outlet_take(result->outlet, 0, &message))) {
		check(self, result, message);
		weir_message_unref(message);
	}
	result->closed = status == WEIR_E_CLOSED;
	if (result->closed) /* it stays readable from now on */
		epoll_ctl(self->set, EPOLL_CTL_DEL, result->fd, NULL);
}

static weir_status watch(struct program *self, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(self->set, EPOLL_CTL_ADD, fd, &event) ? WEIR_E_IO : WEIR_OK;
}

static weir_status serve(struct program *self)
{
	int loop;
	weir_status status = weir_scheduler_fd(self->scheduler, &loop);

	if (!status)
		status = watch(self, loop, NULL);
	for (struct result *result = self->results; !status && result < self->results + 2; result++) {
		status = weir_outlet_fd(result->outlet, &result->fd);
		if (!status)
			status = watch(self, result->fd, result);
	}
	push(self);
	while (!status && !(self->results[0].closed && self->results[1].closed)) {
		struct epoll_event events[3];
		int count = epoll_wait(self->set, events, 3, -1);

		for (int i = 0; i < count && !status; i++) {
			if (events[i].data.ptr)
				take(self, events[i].data.ptr);
			else
				status = weir_scheduler_turn(self->scheduler);
		}
		push(self);
	}
	return status;
}

int main(void)
{
	const weir_scheduler_options options = {.size = sizeof options, .own_loop = true};
	struct program self = {.results = {{.name = "square.out"}, {.name = "fourth.out"}},
			       .set = epoll_create1(EPOLL_CLOEXEC)};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status = make_graph(&self);

	if (!status)
		status = weir_scheduler_create(self.graph, &options, &self.scheduler);
	if (!status)
		status = weir_scheduler_start(self.scheduler);
	if (!status)
		status = serve(&self);
	if (!status)
		status = weir_scheduler_wait(self.scheduler, -1, &outcome);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());
	for (int i = 0; i < 2; i++)
		printf("%s: %" PRId64 " numbers, %" PRId64 " wrong\n", self.results[i].name,
		       self.results[i].taken, self.results[i].wrong);
	close(self.set);
	weir_scheduler_destroy(self.scheduler);
	weir_graph_destroy(self.graph);
	weir_registry_destroy(self.registry);
	return status || self.results[0].wrong || self.results[1].wrong || self.results[0].taken != NUMBERS ||
	       self.results[1].taken != NUMBERS;
}
