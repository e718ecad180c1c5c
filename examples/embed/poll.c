/*
 * weir inside a program that polls: two descriptors. One is the scheduler's, with one function to call when it
 * is readable (time-outs of weir's own are in it, too); the other is the outlet's.
 */
#include <poll.h>

#include "squares.h"

int main(void)
{
	const weir_scheduler_options options = {.size = sizeof options, .own_loop = true};
	struct squares squares;
	weir_status status = squares_open(&squares, 100, &options);

	while (!status && squares_step(&squares)) {
		struct pollfd fds[] = {{.fd = weir_scheduler_fd(squares.scheduler), .events = POLLIN},
				       {.fd = weir_outlet_fd(squares.out), .events = POLLIN}};

		poll(fds, 2, -1);
		if (fds[0].revents)
			status = weir_scheduler_turn(squares.scheduler);
	}
	return squares_close(&squares, status);
}
