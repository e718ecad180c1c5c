#include "conditions/conditions.h"

const weir_condition *const wr_builtin_conditions[] = {
	&wr_aligned,
	&wr_all_of,
	&wr_any_of,
	&wr_asynchronous,
	&wr_boolean,
	&wr_count,
	&wr_cuda_stream,
	&wr_downstream_message_affordable,
	&wr_expiring_message_available,
	&wr_fence,
	&wr_file_descriptor,
	&wr_in_flight,
	&wr_memory_available,
	&wr_message_available,
	&wr_multi_message_available,
	&wr_periodic,
	NULL,
};
