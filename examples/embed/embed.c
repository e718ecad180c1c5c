/*
 * weir inside a program that has a libevent base: the scheduler's events are handled on the program's thread,
 * beside its own. Here those are a timer, which feeds the inlet and empties the outlet; neither call ever
 * waits.
 */
#include <event2/event.h>
#include <stdio.h>

#include "squares.h"

struct program {
	struct event_base *base;
	struct squares squares;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct program *program = arg;

	(void)fd;
	(void)what;
	if (!squares_step(&program->squares))
		event_base_loopbreak(program->base);
}

int main(void)
{
	const struct timeval period = {.tv_usec = 1000};
	struct program program = {.base = event_base_new()};
	struct event *timer =
		program.base ? event_new(program.base, -1, EV_PERSIST, on_timer, &program) : NULL;
	weir_scheduler_options options = {.size = sizeof options, .event_base = program.base};
	weir_status status;
	int code;

	if (!timer || event_add(timer, &period)) {
		fprintf(stderr, "libevent failed\n");
		return 1;
	}
	status = squares_open(&program.squares, 100, &options);
	if (!status)
		event_base_dispatch(program.base); /* until on_timer breaks it */
	code = squares_close(&program.squares, status);
	event_free(timer);
	event_base_free(program.base);	/* after the scheduler, which has an event in it */
	return code;
}
