/*
 * A rig for operators without a scheduler: the functions of weir.h that they call are replaced by these,
 * which are linked first. The stream works synchronously; "device" memory is host memory with the device's
 * number.
 */
#ifndef TESTS_OPERATORS_RIG_H
#define TESTS_OPERATORS_RIG_H

#include "weir.h"

enum { RIG_DEVICE = 3, RIG_MESSAGES = 8, RIG_NOW = 1000000000 };

struct weir_message {
	unsigned references, kind;
	weir_tensor tensor;
	int64_t shape[WEIR_DIMENSIONS_MAX];
	void *data;
	size_t bytes;
	bool unfinished; /* its fence is pending */
	weir_stamp stamp;
	const weir_part *parts; /* of WEIR_KIND_PARTS; borrowed, with the messages in it */
	size_t part_count;
	weir_part packed[8]; /* by weir_message_pack: these are owned */
};

struct weir_context {
	const weir_operator *kind;
	void *state;
	weir_message *in[RIG_MESSAGES], *out[RIG_MESSAGES];
	weir_message *side[2]; /* of inputs 1 and 2; at most one each */
	unsigned latest;       /* bits of the inputs with that policy */
	size_t in_count, out_count;
	uint64_t tick, received; /* received: on input 0, by the ticks before */
	bool finished, fails_to_allocate, fails_to_launch, fails_to_pack, has_no_stream;
	size_t copies;       /* of its streams so far */
	unsigned copy_flags; /* of the last ones */
	bool drained;
	weir_status failed;                /* by weir_context_fail_after_drain */
	char text[512];                    /* error of the last failure */
	int faults;                        /* of the stream */
	char launched[WEIR_ARGUMENTS_MAX]; /* arguments of the last kernel */
	int64_t slept;
	weir_stamp stamp; /* of weir_context_set_stamp */
};

struct rig {
	struct weir_context context;
	weir_status started;
};

/* parameters: "path=a/b repeat=2"; others have their default (a duration has none here). */
void rig_start(struct rig *rig, const weir_operator *kind, const char *parameters);
void rig_give(struct rig *rig, weir_message *message);                      /* for the next tick; takes it */
void rig_give_side(struct rig *rig, unsigned input, weir_message *message); /* likewise */
weir_status rig_tick(struct rig *rig); /* releases what the last tick emitted; context.failed, too */
void rig_stop(struct rig *rig);
size_t rig_messages(void); /* number of live messages */

/* On RIG_DEVICE or WEIR_DEVICE_HOST, filled with varying bytes. */
weir_message *rig_image(int device, int64_t height, int64_t width, int64_t channels);
weir_message *rig_bytes(size_t bytes);
weir_message *rig_parts(const weir_part *parts, size_t count);

#endif
