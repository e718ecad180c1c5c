/*
 * weir inside a program that has a libevent base: the base handles the scheduler's events on the program's
 * thread, beside the program's own. Here that is one event: the outlet's descriptor, readable while there
 * is a message to take or the outlet is closed. No timer, and no call blocks.
 */
#include <event2/event.h>
#include <stdio.h>

#include "squares.h"

struct program {
	struct squares squares;
	struct event *event;
};

static void on_outlet(evutil_socket_t fd, short what, void *arg)
{
	struct program *program = arg;

	(void)fd;
	(void)what;
	if (!squares_step(&program->squares))
		event_del(program->event); /* a closed outlet stays readable */
}

/*
 * Dispatch returns when the base has no events left: weir's event ends with the run, on_outlet deletes
 * ours.
 */
static weir_status serve(struct program *program, struct event_base *base)
{
	int fd;
	weir_status status = weir_outlet_fd(program->squares.out, &fd);

	if (status)
		return status;
	program->event = event_new(base, fd, EV_READ | EV_PERSIST, on_outlet, program);
	if (!program->event || event_add(program->event, NULL))
		return WEIR_E_NOMEM;
	squares_step(&program->squares); /* pushes the first numbers; results ask for more */
	return event_base_dispatch(base) < 0 ? WEIR_E_IO : WEIR_OK;
}

int main(void)
{
	struct event_base *base = event_base_new();
	weir_scheduler_options options = {.size = sizeof options, .event_base = base};
	struct program program = {0};
	weir_status status;
	int code;

	if (!base) {
		fprintf(stderr, "libevent failed\n");
		return 1;
	}
	status = squares_open(&program.squares, 100, &options);
	if (!status)
		status = serve(&program, base);
	if (program.event)
		event_free(program.event); /* before the outlet and its descriptor are destroyed */
	code = squares_close(&program.squares, status);
	event_base_free(base); /* after the scheduler, which has an event in it */
	return code;
}
