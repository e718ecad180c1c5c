/* libweir_ucx.so: remote_send and remote_receive. */
#include <stdio.h>

#include "remote/remote.h"

const struct transport *const remote_transport = &transport_ucx;

/*
 * UCX is loaded here and not at the first start: weir_registry_load comes before a program's threads, which
 * could read the environment meanwhile.
 */
static weir_status add(weir_registry *registry)
{
	char why[LINK_WHY];
	weir_status status = weir_registry_add_condition(registry, &remote_output_condition);

	(void)remote_transport->load(why); /* a start says what is missing: a graph can be checked without */
	if (!status)
		status = weir_registry_add_condition(registry, &remote_input_condition);
	if (!status)
		status = weir_registry_add_operator(registry, &remote_send_operator);
	if (!status)
		status = weir_registry_add_operator(registry, &remote_receive_operator);
	return status;
}
WEIR_PLUGIN(add);
