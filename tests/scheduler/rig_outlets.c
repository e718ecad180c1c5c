/* Outlets of a rig's graph, used as by a program. */
#include <poll.h>

#include "rig.h"
#include "tests/calls.h"

weir_outlet *rig_outlet(struct rig *rig, const char *port, uint32_t capacity, unsigned flags)
{
	weir_outlet *outlet = NULL;

	assert_int_equal(weir_graph_add_outlet(rig->graph, port, capacity, flags, &outlet), WEIR_OK);
	return outlet;
}

int64_t rig_take(weir_outlet *outlet, int64_t timeout_ns)
{
	weir_message *message = NULL;
	weir_status status = weir_outlet_take(outlet, timeout_ns, &message);
	int64_t number = status ? (int64_t)status : rig_value(message);

	weir_message_unref(message);
	return number;
}

bool rig_readable(weir_outlet *outlet)
{
	struct pollfd fd = {.fd = outlet_fd(outlet), .events = POLLIN};

	assert_true(fd.fd >= 0);
	return poll(&fd, 1, 0) == 1;
}
