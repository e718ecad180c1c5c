/*
 * What the two sides say to each other: heads of a link's messages, little-endian. A sender says HELLO first,
 * a receiver WELCOME; both carry the version, so that others are refused. Reading a head touches nothing
 * else, and believes nothing that it says: all of it is checked before any memory is made (tests/fuzz).
 */
#ifndef REMOTE_WIRE_H
#define REMOTE_WIRE_H

#include <weir.h>

#include "remote/link.h"

enum {
	WIRE_VERSION = 4,
	WIRE_SAID = 300,               /* bytes of a text that is sent */
	WIRE_TEXT = 4 * WIRE_SAID + 1, /* of one that is read, and escaped */
	WIRE_SMALL = 512,
	WIRE_BUNDLED = 1024 /* bytes of a payload that goes behind its head, at most */
};

enum wire_kind {
	WIRE_HELLO = 1, /* sender: session, number: sent so far; said */
	WIRE_WELCOME, /* receiver: session, number: received so far; waiting, credits, most, device; times */
	WIRE_DATA,    /* sender: number, said, stamp, what the payload is */
	WIRE_BUNDLE,  /* sender: number of the first, said; small messages, each with its payload behind it */
	WIRE_CREDIT,  /* receiver: credits, more than before; number: emitted so far; times */
	WIRE_END,     /* sender: number: how many messages there were */
	WIRE_DONE,    /* receiver: it has emitted all */
	WIRE_BYE,     /* either: reason, text; it closes, and waits that the other does */
};

enum wire_reason {
	WIRE_STOPPED = 1, /* the run was stopped or has failed */
	WIRE_ENOUGH,      /* the receiver's graph takes no more */
	WIRE_REFUSED,     /* the greeting cannot be answered */
};

/* Which tensors the receiver puts into memory of its device (R9). */
enum wire_device { WIRE_DEVICE_NONE, WIRE_DEVICE_SENT, WIRE_DEVICE_ALL };

/* By the clock of the one that says it, but `asked`; ns (R8). */
struct wire_times {
	int64_t said;  /* this head was sent */
	int64_t asked; /* `said` of the last HELLO or DATA that came; 0: none */
	int64_t heard; /* that came */
};

/*
 * A message, or a part of one. Its tensor has no data; its shape is in `shape`, and its device is 0 if it was
 * on one at the sender.
 */
struct wire_record {
	unsigned kind;    /* WEIR_KIND_... */
	const char *name; /* of a part, in the head, not terminated */
	size_t name_length;
	weir_stamp stamp;
	weir_tensor tensor;
	int64_t shape[WEIR_DIMENSIONS_MAX];
	size_t bytes;
};

struct wire {
	enum wire_kind kind;
	enum wire_reason reason;
	uint64_t session, number, most;
	uint32_t credits, waiting; /* waiting: received, and not emitted */
	enum wire_device device;
	struct wire_times times;
	char text[WIRE_TEXT];
	/* WIRE_DATA */
	struct wire_record message;
	unsigned count; /* of parts */
	const struct wire_record *parts;
	/* WIRE_BUNDLE; the three above, and the payload, are of the message that wire_next read last */
	const void *payload;
	const uint8_t *rest, *end; /* what it has not read; the same: that was the last */
};

/*
 * Reads a head, whose payload has so many bytes, of which `most` are allowed. false: `why` says what is wrong
 * with it. The parts, of a message that has some, go into `parts`, and their names point into the head.
 */
bool wire_read(const void *head, size_t head_bytes, size_t bytes, size_t most,
	       struct wire_record parts[WEIR_PARTS_MAX], struct wire *out, char why[LINK_WHY]);
/* Reads the next message of a WIRE_BUNDLE, which wire_read has read: there is one. false: as of wire_read. */
bool wire_next(struct wire *bundle, size_t most, struct wire_record parts[WEIR_PARTS_MAX],
	       char why[LINK_WHY]);
/* Writes a head that is not of a message; at most WIRE_SMALL bytes, whose number it returns. */
size_t wire_write(const struct wire *wire, uint8_t head[WIRE_SMALL]);
/* Whether the memory is a device's that is closed to the host (strict). Inside of compute. */
bool wire_is_closed(const void *data);

/* What a message's head says besides. */
struct wire_data {
	uint64_t number;
	int64_t said;
	bool devices;            /* what tensors have on a device is memory of one, as on `cuda` */
	enum wire_device theirs; /* what the receiver says */
	uint64_t most;           /* likewise: bytes of a message */
};

/* Small messages that go as one head, in memory of the caller's. */
struct wire_bundle {
	uint8_t *head;
	size_t room, bytes; /* bytes 0: it has none */
};

/*
 * Adds the message, which is not needed any more then. false: it is not small, or may be on a device, or
 * cannot be sent, or there is no room, and the bundle stays as it is. Inside of compute.
 */
bool wire_bundle_add(struct wire_bundle *bundle, const weir_message *message, const struct wire_data *data);

/*
 * Writes the head of a message and says where its payload is: in *count pieces. Returns the bytes of the
 * head; 0: the message cannot be sent, and `why` says why and the remedy. Inside of compute.
 */
size_t wire_write_message(const weir_message *message, const struct wire_data *data, size_t room,
			  uint8_t *head, struct span spans[LINK_SPANS], unsigned *count, char why[LINK_WHY]);
/*
 * Makes the message that a head of WIRE_DATA describes, and says where its payload goes. It is the caller's,
 * which fills it before anything else. device: which tensors are made on the entity's.
 */
weir_status wire_make(weir_context *context, const struct wire *wire, enum wire_device device,
		      struct span spans[LINK_SPANS], unsigned *count, weir_message **out);

#endif
