#include "any_link.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

bool any_link_load(char why[LINK_WHY])
{
	(void)why;
	return true;
}

size_t any_link_head_most(const struct link *link)
{
	(void)link;
	return WIRE_SMALL;
}

unsigned any_link_count(const struct wire *wire)
{
	struct wire_record parts[WEIR_PARTS_MAX];
	struct wire bundle = *wire;
	char why[LINK_WHY];
	unsigned count = 0;

	for (; wire->kind == WIRE_BUNDLE && bundle.rest != bundle.end; count++)
		if (!wire_next(&bundle, SIZE_MAX, parts, why))
			return 0;
	return wire->kind == WIRE_DATA ? 1 : count;
}

void any_link_add(int set, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event))
		abort();
}

int any_link_descriptor(int set, unsigned value)
{
	int descriptor = eventfd(value, EFD_NONBLOCK | EFD_CLOEXEC);

	any_link_add(set, descriptor);
	return descriptor;
}

weir_status any_link_registry(weir_registry **out)
{
	weir_status status = weir_registry_create(out);

	if (!status)
		status = weir_registry_add_condition(*out, &remote_output_condition);
	if (!status)
		status = weir_registry_add_condition(*out, &remote_input_condition);
	if (!status)
		status = weir_registry_add_operator(*out, &remote_send_operator);
	return status ? status : weir_registry_add_operator(*out, &remote_receive_operator);
}
