/*
 * Draws boxes and text on pictures, on the host. The picture is written in place if nothing else uses it,
 * else a copy of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "operators/canvas.h"
#include "operators/labels.h"
#include "operators/operators.h"
#include "operators/pixel.h"
#include "operators/resize.h"
#include "operators/tensor.h"

enum { IN, BOXES, TEXT };
enum { SCORE = 4, CLASS, COLUMNS_MAX };
enum { HEIGHT_PER_SCALE = 240, TEXT_MAX = WR_LABEL_MAX + 32 };

struct draw {
	struct wr_labels labels;
	struct wr_per_channel colour;
	double least;
	int32_t thickness, scale; /* 0: by the height of the picture */
	bool fractions;
	int32_t width, height; /* of the letterbox that the boxes belong to; 0: of the image */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "units",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"pixels\"",
		.choices = "pixels|fractions",
		.help = "of the boxes' coordinates; fractions: of width and height",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "letterbox",
		.type = WEIR_TYPE_NUMBERS,
		.fallback = "[]",
		.min = 0,
		.max = 2,
		.help = "[width, height] of the `resize` with letterbox that the boxes were found in; empty: "
			"they were found in the image",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "min_score",
		.type = WEIR_TYPE_NUMBER,
		.fallback = "0",
		.help = "boxes with a lower score are left out",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "labels",
		.type = WEIR_TYPE_READ_FILE,
		.fallback = "\"\"",
		.help = "a text file with the name of a class in each line, from class 0 on; empty: no names",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "colour",
		.type = WEIR_TYPE_NUMBERS,
		.fallback = "[255, 0, 0]",
		.min = 1,
		.max = WR_CHANNELS_MAX,
		.help = "of boxes and of the ground of text: integers from 0 to 255",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "thickness",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.min = 0,
		.max = 1024,
		.help = "of the lines of boxes in pixels; 0: a 240th of the image's height, at least 1",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "scale",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.min = 0,
		.max = WR_CANVAS_SCALE_MAX,
		.help = "pixels per dot of a letter of 5 x 7 dots; 0: a 240th of the image's height, at "
			"least 1",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint8 [height, width, 1 to 4 channels] in host memory",
		.dtype = "uint8",
		.place = "host",
		.shape = "[H, W] | [H, W, 1..4]",
	},
	{
		.size = sizeof(weir_port),
		.name = "boxes",
		.flags = WEIR_PORT_OPTIONAL,
		.kinds = WEIR_KIND_TENSOR | WEIR_KIND_PARTS,
		.help = "float32 [boxes, 4 to 6] in host memory: x0, y0, x1, y1, score, class; or its part "
			"`boxes`",
		.dtype = "float32",
		.place = "host",
		.shape = "[N, 4..6] | [1, N, 4..6]",
	},
	{
		.size = sizeof(weir_port),
		.name = "text",
		.flags = WEIR_PORT_OPTIONAL,
		.kinds = WEIR_KIND_BYTES | WEIR_KIND_PARTS,
		.help = "lines for the upper left corner; or its part `text`, as `top` emits it",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "the image with boxes and text",
		.dtype = "uint8",
		.place = "host",
		.shape = "[H, W] | [H, W, 1..4]",
	},
	{.name = NULL},
};

static weir_status letterbox_read(weir_context *context, struct draw *self, const weir_values *values)
{
	double width = weir_values_number_at(values, "letterbox", 0);
	double height = weir_values_number_at(values, "letterbox", 1);
	size_t count = weir_values_count(values, "letterbox");

	if (!count)
		return WEIR_OK;
	if (count < 2 ||
	    !(width >= 1 && width <= WR_IMAGE_SIDE_MAX && height >= 1 && height <= WR_IMAGE_SIDE_MAX) ||
	    width != floor(width) || height != floor(height))
		return weir_context_fail(context, "letterbox must be [width, height], integers from 1 to %d",
					 WR_IMAGE_SIDE_MAX);
	self->width = (int32_t)width;
	self->height = (int32_t)height;
	return WEIR_OK;
}

static weir_status draw_start(weir_context *context, void *state, const weir_values *values)
{
	struct draw *self = state;
	weir_status status;

	self->fractions = !strcmp(weir_values_string(values, "units"), "fractions");
	self->least = weir_values_number(values, "min_score");
	self->colour = wr_per_channel_read(values, "colour");
	self->thickness = (int32_t)weir_values_int(values, "thickness");
	self->scale = (int32_t)weir_values_int(values, "scale");
	status = wr_per_channel_check_levels(context, &self->colour);
	if (!status)
		status = letterbox_read(context, self, values);
	return status ? status : wr_labels_read(context, weir_values_string(values, "labels"), &self->labels);
}

static void draw_stop(weir_context *context, void *state)
{
	struct draw *self = state;

	(void)context;
	wr_labels_finish(&self->labels);
}

/* --- colours --- */

/* Of one or two channels the first is grey; the last of two or four is alpha, opaque unless given. */
static struct wr_colour colour_for(const uint8_t rgb[3], int32_t channels)
{
	struct wr_colour colour = {{rgb[0], rgb[1], rgb[2], 255}};

	if (channels < 3)
		colour = (struct wr_colour){{(uint8_t)wr_pixel_luma(rgb, 3), 255, 0, 0}};
	return colour;
}

static struct wr_colour own_colour(const struct draw *self, int32_t channels)
{
	uint8_t rgb[3];
	struct wr_colour colour;

	for (int32_t c = 0; c < 3; c++)
		rgb[c] = (uint8_t)self->colour.values[self->colour.count < 3 ? 0 : c];
	colour = colour_for(rgb, channels);
	if (self->colour.count == channels && channels % 2 == 0)
		colour.values[channels - 1] = (uint8_t)self->colour.values[channels - 1];
	return colour;
}

/* Black or white, whichever can be read on the own colour. */
static struct wr_colour ink_colour(const struct draw *self, int32_t channels)
{
	static const uint8_t black[] = {0, 0, 0}, white[] = {255, 255, 255};
	struct wr_colour ground = own_colour(self, 3);

	return colour_for(wr_pixel_luma(ground.values, 3) < 128 ? white : black, channels);
}

/* --- what a tick draws --- */

struct drawing {
	const struct draw *self;
	struct wr_canvas canvas;
	int32_t thickness, scale;
	struct wr_resize_arguments found_in; /* where the boxes' coordinates count */
	const float *boxes;
	int64_t box_count, columns;
	const char *text;
	size_t text_length;
};

static void draw_caption(const struct drawing *drawing, const char *text, size_t length, int32_t left,
			 int32_t top)
{
	int32_t channels = drawing->canvas.image.channels;
	const struct wr_caption caption = {
		.text = text,
		.length = length,
		.left = left,
		.top = top,
		.scale = drawing->scale,
		.ink = ink_colour(drawing->self, channels),
		.ground = own_colour(drawing->self, channels),
	};

	wr_canvas_caption(&drawing->canvas, &caption);
}

static void draw_lines(const struct drawing *drawing)
{
	const char *at = drawing->text, *end = at + drawing->text_length;
	int32_t top = drawing->scale, step = WR_CANVAS_LINE * drawing->scale;

	for (; at < end && top < drawing->canvas.image.height; top += step) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		if (length)
			draw_caption(drawing, at, length, drawing->scale, top);
		at += length + 1;
	}
}

/* Whole pixels, halves up; what is far outside is moved to where nothing shows. */
static int32_t whole(double value)
{
	const double far = 1 << 21;

	return (int32_t)fmin(fmax(floor(value + 0.5), -far), far);
}

static int32_t column_of(const struct drawing *drawing, double x)
{
	const struct wr_resize_arguments *in = &drawing->found_in;

	if (drawing->self->fractions)
		x *= in->width;
	return whole((x - in->left) * in->image.width / in->inner_width);
}

static int32_t row_of(const struct drawing *drawing, double y)
{
	const struct wr_resize_arguments *in = &drawing->found_in;

	if (drawing->self->fractions)
		y *= in->height;
	return whole((y - in->top) * in->image.height / in->inner_height);
}

/* Returns false if a coordinate is not a finite number. A box covers at least one pixel. */
static bool box_place(const struct drawing *drawing, const float *box, struct wr_rectangle *out)
{
	for (int i = 0; i < 4; i++)
		if (!isfinite(box[i]))
			return false;
	out->left = column_of(drawing, fmin(box[0], box[2]));
	out->top = row_of(drawing, fmin(box[1], box[3]));
	out->right = column_of(drawing, fmax(box[0], box[2]));
	out->bottom = row_of(drawing, fmax(box[1], box[3]));
	out->right += out->right == out->left;
	out->bottom += out->bottom == out->top;
	return true;
}

static size_t box_text(const struct drawing *drawing, const float *box, char text[TEXT_MAX])
{
	bool has_class = drawing->columns > CLASS && box[CLASS] >= 0 && (double)box[CLASS] < INT32_MAX;
	int32_t number = has_class ? (int32_t)box[CLASS] : -1;
	const char *name = wr_labels_name(&drawing->self->labels, number);

	if (drawing->columns <= SCORE)
		return 0;
	if (name)
		return (size_t)snprintf(text, TEXT_MAX, "%s %.2f", name, (double)box[SCORE]);
	if (has_class)
		return (size_t)snprintf(text, TEXT_MAX, "%d %.2f", number, (double)box[SCORE]);
	return (size_t)snprintf(text, TEXT_MAX, "%.2f", (double)box[SCORE]);
}

/* The text stands on the box, or in it if there is no room. */
static void draw_box(const struct drawing *drawing, const float *box)
{
	struct wr_image image = drawing->canvas.image;
	int32_t high = WR_CANVAS_LINE * drawing->scale;
	struct wr_rectangle where;
	char text[TEXT_MAX];
	size_t length;

	if (!box_place(drawing, box, &where) || where.left >= image.width || where.top >= image.height ||
	    where.right <= 0 || where.bottom <= 0)
		return;
	if (drawing->columns > SCORE && !(box[SCORE] >= drawing->self->least))
		return;
	wr_canvas_frame(&drawing->canvas, where, drawing->thickness,
			own_colour(drawing->self, image.channels));
	length = box_text(drawing, box, text);
	if (length)
		draw_caption(drawing, text, length, where.left < 0 ? 0 : where.left,
			     where.top < high ? where.top < 0 ? 0 : where.top : where.top - high);
}

/* --- what it receives --- */

static bool is_stamped(weir_stamp stamp)
{
	return stamp.time || stamp.tag;
}

/*
 * What was lost on one branch alone shifts all that follows: no picture may get the result of another. Not
 * asked of a `latest` port, which gives that of an earlier one on purpose.
 */
static weir_status tags_check(weir_context *context, const weir_message *image, const char *port,
			      const weir_message *side)
{
	weir_stamp of = weir_message_stamp(image), at = weir_message_stamp(side);

	if (!is_stamped(of) || !is_stamped(at) || of.tag == at.tag)
		return WEIR_OK;
	return weir_context_fail(context,
				 "input '%s' has tag %" PRIu64 " and the image has tag %" PRIu64
				 ": a branch lost messages; drop none between the output where they part and "
				 "'%s'",
				 port, at.tag, of.tag, weir_entity_name(weir_context_entity(context)));
}

/* The message of a port that belongs to the i-th image, or its part of the port's name; NULL: none. */
static weir_status side_message(weir_context *context, unsigned port, size_t i, const weir_message **out)
{
	const weir_message *message = NULL;
	const char *name = inputs[port].name;
	weir_status status = WEIR_OK;

	*out = NULL;
	if (i >= weir_context_count(context, port))
		return WEIR_OK;
	message = weir_context_message(context, port, i);
	if (weir_context_age(context, port) < 0 && weir_context_age(context, IN) < 0)
		status = tags_check(context, weir_context_message(context, IN, i), name, message);
	if (status)
		return status;
	if (weir_message_kind(message) == WEIR_KIND_PARTS)
		message = weir_message_part(message, name);
	if (!message)
		return weir_context_fail(context, "input '%s' has no part '%s'", name, name);
	*out = message;
	return wr_port_finished(context, name, message);
}

static weir_status boxes_read(weir_context *context, const weir_message *message, struct drawing *drawing)
{
	const weir_tensor *tensor = message ? weir_message_tensor(message) : NULL;
	char text[WR_TENSOR_TEXT];
	int32_t n;

	if (!message)
		return WEIR_OK;
	if (!tensor)
		return weir_context_fail(context,
					 "input 'boxes' expects a tensor, got a message without one");
	n = tensor->dimensions;
	if (tensor->code != 2 || tensor->bits != 32 || tensor->lanes > 1 || !wr_tensor_is_dense(tensor) ||
	    n < 2 || n > 3 || (n == 3 && tensor->shape[0] != 1) || tensor->shape[n - 1] < 4 ||
	    tensor->shape[n - 1] > COLUMNS_MAX || tensor->device != WEIR_DEVICE_HOST)
		return weir_context_fail(context,
					 "input 'boxes' expects dense float32 [boxes, 4 to 6] in host "
					 "memory, got %s",
					 wr_tensor_text(tensor, text));
	drawing->found_in.image = drawing->canvas.image;
	drawing->found_in.width = drawing->self->width ? drawing->self->width : drawing->canvas.image.width;
	drawing->found_in.height =
		drawing->self->width ? drawing->self->height : drawing->canvas.image.height;
	wr_resize_place(&drawing->found_in, drawing->self->width);
	drawing->boxes = weir_message_data(message);
	drawing->box_count = tensor->shape[n - 2];
	drawing->columns = tensor->shape[n - 1];
	return WEIR_OK;
}

static weir_status text_read(weir_context *context, const weir_message *message, struct drawing *drawing)
{
	if (!message)
		return WEIR_OK;
	if (weir_message_kind(message) != WEIR_KIND_BYTES)
		return weir_context_fail(context, "input 'text' expects bytes, got a message without any");
	drawing->text = weir_message_data(message);
	drawing->text_length = weir_message_size(message);
	return WEIR_OK;
}

static weir_status drawing_read(weir_context *context, size_t i, struct drawing *drawing)
{
	const weir_message *image = weir_context_message(context, IN, i), *boxes = NULL, *text = NULL;
	const weir_tensor *tensor = weir_message_tensor(image);
	weir_status status = wr_tensor_image(context, tensor, &drawing->canvas.image);
	int32_t automatic;

	if (!status)
		status = wr_tensor_on_host(context, tensor);
	if (!status)
		status = wr_message_finished(context, image);
	if (!status)
		status = side_message(context, BOXES, i, &boxes);
	if (!status)
		status = boxes_read(context, boxes, drawing);
	if (!status)
		status = side_message(context, TEXT, i, &text);
	if (!status)
		status = text_read(context, text, drawing);
	automatic = drawing->canvas.image.height / HEIGHT_PER_SCALE;
	automatic = automatic < 1 ? 1 : automatic < WR_CANVAS_SCALE_MAX ? automatic : WR_CANVAS_SCALE_MAX;
	drawing->scale = drawing->self->scale ? drawing->self->scale : automatic;
	drawing->thickness = drawing->self->thickness ? drawing->self->thickness : automatic;
	return status;
}

/* The received message if it may be written, else a copy. */
static weir_status create_picture(weir_context *context, weir_message *from, weir_message **out)
{
	weir_status status;

	if (weir_message_unique(from)) {
		*out = weir_message_ref(from);
		return WEIR_OK;
	}
	status = weir_context_create_tensor(context, weir_message_tensor(from), WEIR_TENSOR_HOST, out);
	if (!status)
		memcpy(weir_message_data(*out), weir_message_data(from), weir_message_size(from));
	return status;
}

static weir_status draw_message(weir_context *context, const struct draw *self, size_t i)
{
	struct drawing drawing = {.self = self};
	weir_message *out = NULL;
	weir_status status = drawing_read(context, i, &drawing);

	if (!status)
		status = create_picture(context, weir_context_message(context, IN, i), &out);
	if (status)
		return status;
	drawing.canvas.pixels = weir_message_data(out);
	for (int64_t box = 0; box < drawing.box_count; box++)
		draw_box(&drawing, drawing.boxes + box * drawing.columns);
	if (drawing.text)
		draw_lines(&drawing);
	return weir_context_emit(context, 0, out);
}

static weir_status draw_compute(weir_context *context, void *state)
{
	size_t count = weir_context_count(context, IN);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && !status; i++)
		status = draw_message(context, state, i);
	return status;
}

const weir_operator wr_draw = {
	.size = sizeof(weir_operator),
	.name = "draw",
	.help = "draws boxes and text on uint8 images, on the host",
	.flags = WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct draw),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = draw_start,
	.compute = draw_compute,
	.stop = draw_stop,
};
