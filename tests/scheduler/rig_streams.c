/* Operators that work on streams (rig_streams.h). */
#include "rig_streams.h"
#include "tests/calls.h"

#include <stdio.h>
#include <string.h>

void rig_refused(struct rig *rig, weir_status status, weir_status expected, const char *text)
{
	HOLDS(rig, status == expected);
	HOLDS(rig, strstr(weir_last_error(), text));
	if (!strstr(weir_last_error(), text))
		print_error("got: %s\n", weir_last_error());
}

_Atomic unsigned rig_read_early;

/* Reads its inputs when it begins: work that does not wait for them reads -1. */
static int add_up(const void *arguments)
{
	const struct rig_sum *sum = arguments;
	int64_t value = sum->plus;

	for (int i = 0; i < 2; i++) {
		value += sum->from[i] ? *sum->from[i] : 0;
		wr_fetch_add(&rig_read_early, sum->from[i] && *sum->from[i] == -1);
	}
	weir_sleep(sum->ns);
	*sum->to = value;
	return 0;
}

const weir_kernel rig_adder = {sizeof(weir_kernel), "add_up", add_up, NULL};
static const int64_t one = 1;
const weir_tensor rig_one_number = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

const int64_t *rig_data_of(weir_context *context, unsigned input)
{
	return weir_context_count(context, input) ? weir_message_data(weir_context_message(context, input, 0))
						  : NULL;
}

/* A new tensor, written by a kernel on the stream: the sum of input 0, input 1 and a number. */
weir_status rig_add(weir_context *context, weir_stream *stream, int64_t number, int64_t ns,
		    weir_message **out)
{
	struct rig_sum sum = {NULL, {rig_data_of(context, 0), rig_data_of(context, 1)}, number, ns};
	weir_status status =
		stream ? weir_context_create_tensor(context, &rig_one_number, 0, out) : WEIR_E_DEVICE;

	if (status)
		return status;
	sum.to = weir_message_data(*out);
	*sum.to = -1;
	status = weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
	if (status)
		weir_message_unref(*out);
	return status;
}

weir_status rig_emit_sum(weir_context *context, unsigned output, weir_stream *stream, int64_t number,
			 int64_t ns)
{
	weir_message *message = NULL;
	weir_status status = rig_add(context, stream, number, ns, &message);

	return status ? status : weir_context_emit(context, output, message);
}

int64_t rig_tick(weir_context *context)
{
	return (int64_t)weir_context_tick(context);
}

weir_status rig_emit_on_current(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_emit_sum(context, 0, current_stream(context),
			    weir_context_count(context, 0) ? 0 : rig_tick(context), MS);
}

/* On a named stream of its own, which the message then carries. */
weir_status rig_emit_on_allocated(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "work", &stream);

	(void)rig;
	if (!status)
		status = weir_context_set_stream(context, 0, stream);
	return status ? status : rig_emit_sum(context, 0, stream, rig_tick(context), MS);
}

weir_status rig_emit_on_one_of_four(struct rig *rig, weir_context *context)
{
	char name[8];
	weir_stream *stream = NULL;
	weir_status status;

	(void)rig;
	snprintf(name, sizeof name, "s%d", (int)(rig_tick(context) % 4));
	status = weir_context_allocate_stream(context, name, &stream);
	if (!status)
		status = weir_context_set_stream(context, 0, stream);
	return status ? status
		      : rig_emit_sum(context, 0, stream, rig_tick(context), (4 - rig_tick(context) % 4) * MS);
}

weir_stream *rig_carried(weir_context *context, unsigned input, size_t i)
{
	weir_stream *streams[4];

	return weir_context_receive_streams(context, input, i, 4, streams) ? streams[0] : NULL;
}

/* A stream that could not be received for lack of memory would not be waited for: so the tick fails. */
weir_status rig_emit_by_hand(struct rig *rig, weir_context *context)
{
	weir_stream *found[4] = {NULL}, *target = NULL;
	size_t count = weir_context_receive_streams(context, 0, 0, 4, found);
	weir_status status = weir_context_allocate_stream(context, "hand", &target);

	(void)rig;
	if (!status)
		status = weir_context_synchronize_streams(context, found, count, target);
	if (!status)
		status = weir_context_set_stream(context, 0, target);
	return status ? status : rig_emit_sum(context, 0, target, 0, MS);
}

weir_status rig_emit_on_all(struct rig *rig, weir_context *context)
{
	weir_stream *current = NULL, *own = NULL, *carried[4], *by_default;
	weir_status status = weir_context_receive_stream(context, 0, WEIR_RECEIVE_SYNC_DEFAULT, &current);
	size_t count = weir_context_receive_streams(context, 0, 0, 4, carried);

	(void)rig;
	if (!status)
		status = weir_context_allocate_stream(context, "own", &own);
	if (!status)
		status = weir_context_synchronize_streams(context, carried, count, own);
	if (!status)
		status = weir_context_set_stream(context, 0, own);
	if (!status)
		status = rig_emit_sum(context, 0, own, 0, 10 * US);
	by_default = status ? NULL : device_stream(context);
	if (by_default)
		status = weir_context_synchronize_streams(context, &current, 1, by_default);
	else if (!status)
		status = WEIR_E_DEVICE; /* the last error is that of the call */
	return status ? status : rig_emit_sum(context, 1, by_default, 100, 10 * US);
}
