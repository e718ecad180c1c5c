/*
 * A rig for operators without a scheduler: what they call of weir.h is replaced by these (they come first
 * when the program is linked). The stream does its work at once; "device" memory is host memory with the
 * device's number.
 */
#ifndef TESTS_OPERATORS_RIG_H
#define TESTS_OPERATORS_RIG_H

#include "weir.h"

enum { RIG_DEVICE = 3, RIG_MESSAGES = 8 };

struct weir_message {
	unsigned references, kind;
	weir_tensor tensor;
	int64_t shape[WEIR_DIMENSIONS];
	void *data;
	size_t bytes;
	bool unfinished; /* its fence is pending */
};

struct weir_context {
	const weir_operator *kind;
	void *state;
	weir_message *in[RIG_MESSAGES], *out[RIG_MESSAGES];
	size_t in_count, out_count;
	uint64_t tick;
	bool finished, fails_to_allocate, fails_to_launch, has_no_stream;
	bool drained;
	char text[512]; /* what it failed with */
	int faults;     /* of the stream */
	int64_t slept;
};

struct rig {
	struct weir_context context;
	weir_status started;
};

/* parameters: "path=a/b repeat=2"; what is not named has its default (a duration has none here). */
void rig_start(struct rig *rig, const weir_operator *kind, const char *parameters);
void rig_give(struct rig *rig, weir_message *message); /* for the next tick; takes it */
weir_status rig_tick(struct rig *rig);                 /* what the last one emitted is let go */
void rig_stop(struct rig *rig);
size_t rig_messages(void); /* that exist */

/* On RIG_DEVICE or WEIR_HOST; filled with bytes that differ. */
weir_message *rig_image(int device, int64_t height, int64_t width, int64_t channels);
weir_message *rig_bytes(size_t bytes);

#endif
