/*
 * weir inside a program that uses poll, with two descriptors: the scheduler's, with one function to call
 * when it is readable (weir's timers are part of it), and the outlet's.
 */
#include <poll.h>

#include "squares.h"

int main(void)
{
	const weir_scheduler_options options = {.size = sizeof options, .own_loop = true};
	struct squares squares;
	int loop = -1, out = -1;
	weir_status status = squares_open(&squares, 100, &options);

	if (!status)
		status = weir_scheduler_fd(squares.scheduler, &loop);
	if (!status)
		status = weir_outlet_fd(squares.out, &out);
	while (!status && squares_step(&squares)) {
		struct pollfd fds[] = {{.fd = loop, .events = POLLIN}, {.fd = out, .events = POLLIN}};

		poll(fds, 2, -1);
		if (fds[0].revents)
			status = weir_scheduler_turn(squares.scheduler);
	}
	return squares_close(&squares, status);
}
