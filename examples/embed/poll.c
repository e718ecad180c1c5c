/*
 * weir inside a program that polls: one descriptor to watch, one function to call when it is readable.
 * Time-outs of weir's own are in that descriptor, too; the 1 ms here is the program's.
 */
#include <poll.h>

#include "squares.h"

int main(void)
{
	const weir_scheduler_options options = {.size = sizeof options, .own_loop = true};
	struct squares squares;
	weir_status status = squares_open(&squares, 100, &options);

	while (!status && squares_step(&squares)) {
		struct pollfd weir = {.fd = weir_scheduler_fd(squares.scheduler), .events = POLLIN};

		if (poll(&weir, 1, 1) > 0)
			status = weir_scheduler_turn(squares.scheduler);
	}
	return squares_close(&squares, status);
}
