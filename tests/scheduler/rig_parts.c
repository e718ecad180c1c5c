/* Operators that make and read messages of named parts (rig_parts.h). */
#include "rig_parts.h"
#include "tests/calls.h"

#include <stdio.h>

weir_part rig_part(const char *name, weir_message *message)
{
	return (weir_part){sizeof(weir_part), name, message};
}

weir_status rig_write_part(weir_context *context, weir_stream *stream, int64_t number, int64_t ns,
			   weir_message **out)
{
	struct rig_sum sum = {.plus = number, .ns = ns};
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, out);

	if (status)
		return status;
	sum.to = weir_message_data(*out);
	*sum.to = -1;
	return weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
}

/* "image" by the current stream, "boxes" by another one, "scores" by the host. */
weir_status rig_detect(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context), *side = NULL;
	int64_t tick = rig_tick(context);
	weir_part parts[3] = {rig_part("image", NULL), rig_part("boxes", NULL), rig_part("scores", NULL)};
	weir_message *pack = NULL;

	HOLDS(rig, !weir_context_allocate_stream(context, "side", &side));
	HOLDS(rig, !rig_write_part(context, stream, 10 + tick, 2 * MS, &parts[0].message));
	HOLDS(rig, !rig_write_part(context, side, 20 + tick, 5 * MS, &parts[1].message));
	parts[2].message = rig_number(context, 30 + tick);
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 3, &pack));
	return weir_context_emit(context, 0, pack);
}

int64_t rig_part_value(const weir_message *pack, const char *name)
{
	const weir_message *found = weir_message_part(pack, name);

	return found ? rig_value(found) : -2;
}

weir_status rig_note_parts(struct rig *rig, weir_context *context)
{
	const weir_message *pack = weir_context_message(context, 0, 0);
	char text[64];

	snprintf(text, sizeof text, "%lld/%lld/%lld", (long long)rig_part_value(pack, "image"),
		 (long long)rig_part_value(pack, "boxes"), (long long)rig_part_value(pack, "scores"));
	rig_note(rig, context, text);
	return WEIR_OK;
}

weir_status rig_note_image(struct rig *rig, weir_context *context)
{
	char text[24];

	snprintf(text, sizeof text, "%lld",
		 (long long)rig_part_value(weir_context_message(context, 0, 0), "image"));
	rig_note(rig, context, text);
	return WEIR_OK;
}

void rig_poison(void *arg)
{
	struct rig_payload *payload = arg;

	payload->value = -9;
	payload->freed++;
}
