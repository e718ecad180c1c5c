/* `files` and `png_decode` in one: for graphs in which reading is not what takes the time. */
#include "operators/files.h"
#include "operators/operators.h"
#include "operators/png_decode.h"

struct png_read {
	struct wr_files files;
	int64_t max_bytes;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "path",
		.type = WEIR_TYPE_READ_FILE,
		.help = "a PNG file, or a folder whose *.png are read in the order of their names; "
			"at most 32768 x 32768 pixels",
	},
	WR_FILES_REPEAT,
	WR_PNG_MAX_BYTES,
	{.name = NULL},
};

static weir_status png_read_start(weir_context *context, void *state, const weir_values *values)
{
	struct png_read *self = state;

	self->max_bytes = weir_values_int(values, "max_bytes");
	return wr_files_start(context, &self->files, values, ".png");
}

static weir_status png_read_compute(weir_context *context, void *state)
{
	struct png_read *self = state;
	weir_status status = wr_png_emit(context, wr_files_next(context, &self->files), self->max_bytes);

	return status ? status : wr_files_advance(context, &self->files);
}

static void png_read_stop(weir_context *context, void *state)
{
	struct png_read *self = state;

	(void)context;
	wr_files_stop(&self->files);
}

const weir_operator wr_png_read = {
	.size = sizeof(weir_operator),
	.name = "png_read",
	.help = "reads PNG files, one a tick, and ends after the last; stamps each with the time and its "
		"number",
	.state_size = sizeof(struct png_read),
	.parameters = parameters,
	.outputs = wr_png_outputs,
	.start = png_read_start,
	.compute = png_read_compute,
	.stop = png_read_stop,
};
