/*
 * The loop that bench/network compares weir with: what a program does that knows OpenVINO and nothing else.
 * The stages are written here once more, in the arithmetic of docs/operators.md.
 */
#include <openvino/c/openvino.h>
#include <string.h>

#include "network.h"
#include "program.h"

enum { SIDE = NETWORK_SIDE, ONE = 2048 };

/* --- resize, normalize --- */

/* A place of the result: two places of the source, and the part of the second in 2048ths. */
struct tap {
	int first, second, part;
};

struct stages {
	struct tap columns[SIDE], rows[SIDE];
	float levels[3][256];
	uint16_t *line; /* a row of the source's width */
	uint8_t small[SIDE * SIDE * 3];
};

static struct tap tap_at(int64_t i, int64_t from, int64_t to)
{
	int64_t place = ((2 * i + 1) * from - to) * ONE + to;

	place = place < 0 ? 0 : place / (2 * to);
	if (place > ONE * (from - 1))
		place = ONE * (from - 1);
	return (struct tap){(int)(place / ONE), (int)(place / ONE < from - 1 ? place / ONE + 1 : from - 1),
			    (int)(place % ONE)};
}

static struct stages *make_stages(const struct network_work *work)
{
	static const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
	struct stages *stages = network_allocate(sizeof *stages);

	for (int i = 0; i < SIDE; i++) {
		stages->columns[i] = tap_at(i, work->width, SIDE);
		stages->rows[i] = tap_at(i, work->height, SIDE);
	}
	for (int c = 0; c < 3; c++)
		for (int level = 0; level < 256; level++)
			stages->levels[c][level] = (float)((level / 255.0 - mean[c]) / std[c]);
	stages->line = network_allocate((size_t)work->width * 3 * sizeof *stages->line);
	return stages;
}

static void resize_row(struct stages *stages, const struct network_work *work, const uint8_t *picture, int y)
{
	const struct tap row = stages->rows[y];
	const uint8_t *above = picture + (size_t)row.first * work->width * 3;
	const uint8_t *below = picture + (size_t)row.second * work->width * 3;
	uint8_t *to = stages->small + y * SIDE * 3;

	if (work->width > 2 * SIDE) { /* fewer columns are wanted than there are */
		for (int x = 0; x < SIDE; x++) {
			struct tap at = stages->columns[x];
			for (int c = 0; c < 3; c++) {
				int l = at.first * 3 + c, r = at.second * 3 + c;
				int left = (above[l] * ONE + (below[l] - above[l]) * row.part + 8) >> 4;
				int right = (above[r] * ONE + (below[r] - above[r]) * row.part + 8) >> 4;
				*to++ = (uint8_t)((left * ONE + (right - left) * at.part + (1 << 17)) >> 18);
			}
		}
		return;
	}
	for (int i = 0; i < work->width * 3; i++)
		stages->line[i] = (uint16_t)((above[i] * ONE + (below[i] - above[i]) * row.part + 8) >> 4);
	for (int x = 0; x < SIDE; x++) {
		struct tap at = stages->columns[x];
		for (int c = 0; c < 3; c++) {
			int left = stages->line[at.first * 3 + c], right = stages->line[at.second * 3 + c];
			*to++ = (uint8_t)((left * ONE + (right - left) * at.part + (1 << 17)) >> 18);
		}
	}
}

static void prepare(struct stages *stages, const struct network_work *work, const uint8_t *picture, float *to)
{
	for (int y = 0; y < SIDE; y++)
		resize_row(stages, work, picture, y);
	for (int c = 0; c < 3; c++)
		for (int i = 0; i < SIDE * SIDE; i++)
			*to++ = stages->levels[c][stages->small[i * 3 + c]];
}

/* --- requests --- */

struct slot {
	ov_infer_request_t *request;
	float *input, *output;
	int frame; /* in flight; -1: none */
};

static void must_openvino(ov_status_e status, const char *what)
{
	if (status == OK)
		return;
	fprintf(stderr, "%s: %s\n", what, ov_get_last_err_msg());
	exit(1);
}

static size_t bytes_of(const ov_tensor_t *tensor)
{
	size_t bytes = 0;

	must_openvino(ov_tensor_get_byte_size(tensor, &bytes), "tensor");
	return bytes;
}

static void set_properties(ov_core_t *core, const struct network_work *work)
{
	char streams[24], text[NETWORK_NAME], *rest = text;

	snprintf(streams, sizeof streams, "%d", work->requests);
	must_openvino(ov_core_set_property(core, "CPU", ov_property_key_num_streams, streams), "streams");
	snprintf(text, sizeof text, "%s", work->properties);
	for (char *key; (key = strtok_r(rest, " ", &rest));) {
		char *value = strchr(key, '=');
		if (!value)
			exit(1);
		*value++ = 0;
		must_openvino(ov_core_set_property(core, "CPU", key, value), key);
	}
}

/* The request's own tensors: a program that has one buffer for each request needs no others. */
static void open_slot(ov_compiled_model_t *compiled, struct slot *slot, size_t *classes)
{
	ov_tensor_t *input, *output;

	must_openvino(ov_compiled_model_create_infer_request(compiled, &slot->request), "request");
	must_openvino(ov_infer_request_get_input_tensor(slot->request, &input), "input");
	must_openvino(ov_infer_request_get_output_tensor(slot->request, &output), "output");
	must_openvino(ov_tensor_data(input, (void **)&slot->input), "input");
	must_openvino(ov_tensor_data(output, (void **)&slot->output), "output");
	*classes = bytes_of(output) / sizeof(float);
	if (bytes_of(input) != SIDE * SIDE * 3 * sizeof(float))
		exit(1);
	slot->frame = -1;
	ov_tensor_free(input);
	ov_tensor_free(output);
}

static void finish(const struct network_work *work, struct slot *slot, size_t classes,
		   struct network_run *run)
{
	if (slot->frame < 0)
		return;
	must_openvino(ov_infer_request_wait(slot->request), "inference");
	network_result(work, slot->frame, slot->output, classes, run);
	slot->frame = -1;
}

static void loop(const struct network_work *work, struct slot *slots, size_t classes, struct network_run *run)
{
	struct stages *stages = make_stages(work);
	uint8_t *picture = network_allocate((size_t)work->width * work->height * 3);

	network_begin(run);
	for (int i = 0; i < work->frames + work->requests; i++) {
		struct slot *slot = &slots[i % work->requests];
		finish(work, slot, classes, run);
		if (i >= work->frames)
			continue;
		network_camera(work, i, picture);
		prepare(stages, work, picture, slot->input);
		slot->frame = i;
		must_openvino(ov_infer_request_start_async(slot->request), "start");
	}
	network_end(run);
	free(stages->line);
	free(stages);
	free(picture);
}

void network_plain(const struct network_work *work, struct network_run *run)
{
	struct slot *slots = calloc((size_t)work->requests, sizeof *slots);
	ov_compiled_model_t *compiled = NULL;
	ov_core_t *core = NULL;
	size_t classes = 0;

	must_openvino(ov_core_create(&core), "OpenVINO");
	set_properties(core, work);
	must_openvino(ov_core_compile_model_from_file(core, work->model, "CPU", 0, &compiled), work->model);
	for (int i = 0; slots && i < work->requests; i++)
		open_slot(compiled, &slots[i], &classes);
	loop(work, slots, classes, run);
	for (int i = 0; i < work->requests; i++)
		ov_infer_request_free(slots[i].request);
	ov_compiled_model_free(compiled);
	ov_core_free(core);
	free(slots);
}
