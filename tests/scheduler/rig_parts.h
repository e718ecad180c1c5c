/* For tests of messages of named parts: operators that make and read them, and payloads that note their end.
 */
#ifndef TESTS_SCHEDULER_RIG_PARTS_H
#define TESTS_SCHEDULER_RIG_PARTS_H

#include "rig_streams.h"

weir_part rig_part(const char *name, weir_message *message);
int64_t rig_part_value(const weir_message *pack, const char *name); /* -2: it has no such part */
/* A new tensor that a kernel on the stream sets to the number; -1 until then. */
weir_status rig_write_part(weir_context *context, weir_stream *stream, int64_t number, int64_t ns,
			   weir_message **out);

/* Functions of `call` and `host`. */
weir_status rig_detect(struct rig *rig,
		       weir_context *context); /* emits "image", "boxes" and "scores": 10, 20, 30 + tick,
						  by two streams and by the host */
weir_status rig_note_parts(struct rig *rig, weir_context *context); /* "image/boxes/scores" */
weir_status rig_note_image(struct rig *rig, weir_context *context);

struct rig_payload {
	int64_t value, freed;
};
void rig_poison(void *arg); /* the destructor of one */

#endif
