/* The last error in parts, for a program that acts on it. */
#include "base/status.h"
#include "base/struct.h"

weir_status weir_error_last(weir_error *out)
{
	const struct wr_last_error *error = wr_error_here();
	bool none = !*error->line;
	const weir_error own = {
		.size = sizeof own,
		.status = none ? WEIR_OK : error->status,
		.cause = none ? WEIR_CAUSE_NONE : error->cause,
		.entity = none || !*error->entity ? NULL : error->entity,
		.on = none || !*error->on ? NULL : error->on,
		.text = none ? "" : wr_error_text(error),
	};

	return wr_struct_fill(out, &own, sizeof own, "weir_error");
}
