/* Sources that stamp their messages as lists say, for the tests of `aligned`. */
#ifndef WR_TESTS_CAMERAS_H
#define WR_TESTS_CAMERAS_H

#include <stdio.h>

#include "rig.h"

enum { LISTS = 3, MOST = 200 };

static weir_stamp lists[LISTS][MOST]; /* end with {0, 0} */
struct camera {
	size_t list, next;
};

static weir_status camera_start(weir_context *context, void *state, const weir_values *values)
{
	struct camera *self = state;

	(void)context;
	self->list = (size_t)weir_values_int(values, "list");
	return WEIR_OK;
}

static weir_status camera_compute(weir_context *context, void *state)
{
	struct camera *self = state;
	weir_stamp stamp = lists[self->list][self->next++];
	weir_message *message = NULL;
	weir_status status;

	if (!stamp.time && !stamp.tag)
		return weir_context_finish(context);
	status = weir_message_create_empty(weir_context_graph(context), &message);
	if (!status && stamp.tag < UINT64_MAX) /* that: a message without a stamp */
		status = weir_message_set_stamp(message, stamp);
	return status ? status : weir_context_emit(context, 0, message);
}

static const weir_parameter camera_parameters[] = {
	{.size = sizeof(weir_parameter), .name = "list", .type = WEIR_TYPE_INT, .help = "of `lists`"},
	{.name = NULL}};
static const weir_port camera_outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator camera = {.size = sizeof(weir_operator),
				     .name = "camera",
				     .help = "emits what a list says",
				     .state_size = sizeof(struct camera),
				     .parameters = camera_parameters,
				     .outputs = camera_outputs,
				     .start = camera_start,
				     .compute = camera_compute};

/* Times in ms. */
static void fill(size_t list, const char *times)
{
	size_t count = 0;
	double ms;
	int used;

	for (; sscanf(times, "%lf%n", &ms, &used) == 1; times += used, count++)
		lists[list][count] = (weir_stamp){(int64_t)(ms * 1e6), (uint64_t)count + 1};
	lists[list][count] = (weir_stamp){0, 0};
}

#endif
