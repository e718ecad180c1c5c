/*
 * The type of a port: what its tensors are. It is read from the texts of weir_port: `dtype`, `place` and
 * `shape`. A text that is NULL says nothing.
 *
 * A shape is a list of alternatives, each a list of sizes. A size is a number, a range, or a name, which
 * stands for any size, also 0, but at all ports of one entity for the same: its names are a scope.
 */
#ifndef WR_GRAPHS_TYPE_H
#define WR_GRAPHS_TYPE_H

#include "base/words.h"

#define WR_SHAPES_MAX     8   /* alternatives of one port */
#define WR_SIZE_NAMES_MAX 64  /* of one entity */
#define WR_TYPE_WHY       320 /* bytes for why a type is refused */

struct wr_interval {
	int64_t least, most;
};

struct wr_size {
	struct wr_interval in; /* of a name: all */
	int name;              /* index in the scope; -1: none */
};

struct wr_shape {
	int rank;
	struct wr_size sizes[WEIR_DIMENSIONS_MAX];
};

enum { WR_PLACE_HOST = 1, WR_PLACE_DEVICE = 2, WR_PLACE_ANY = 3 };

struct wr_port_type {
	const weir_port *port;   /* its texts; borrowed */
	uint16_t dtypes;         /* mask; never 0 */
	uint8_t places;          /* WR_PLACE_... mask; never 0 */
	uint8_t count;           /* of shapes; 0: any shape */
	uint8_t alive;           /* mask of the shapes that the connections leave: agree.c */
	struct wr_shape *shapes; /* owned */
};

struct wr_size_name {
	const char *text; /* not terminated; borrowed from a port */
	size_t length;
	struct wr_interval in; /* what the connections leave: agree.c */
	size_t by;             /* the connection that has narrowed it last; WR_NO_INDEX: none */
};

struct wr_scope {
	struct wr_size_name *names;
	size_t count, room;
};

/*
 * Reads the type of a port, and adds its names to the scope. Fails: WEIR_E_INVALID: a text that cannot be;
 * *why says so, as "has ...", and *out is to be finished all the same.
 */
weir_status wr_port_type_read(struct wr_port_type *out, struct wr_scope *scope, const weir_port *port,
			      struct wr_words *why);
void wr_port_type_finish(struct wr_port_type *type);
void wr_scope_finish(struct wr_scope *scope);

/* Returns true if some tensors do not fit the port, whatever its names are. */
static inline bool wr_port_type_says(const struct wr_port_type *type)
{
	return type->port->dtype || type->port->place || type->port->shape;
}
/* The kinds of messages of a port, never 0: a dtype or a shape without kinds means tensors. */
unsigned wr_port_kinds(const weir_port *port);
/*
 * Gives the bytes of the smallest and of the largest tensor that the port may have, as far as it and the
 * names of its scope say: 0 and INT64_MAX where they do not.
 */
void wr_port_type_bytes(const struct wr_port_type *type, const struct wr_scope *scope, int64_t *least,
			int64_t *most);
bool wr_port_type_takes(const struct wr_port_type *type, const weir_tensor *tensor);
/* "uint8 [H, W] | [H, W, 3] in host memory" */
struct wr_type_words {
	char text[256];
};
struct wr_type_words wr_port_type_text(const struct wr_port_type *type);
/* "float32 [2, 3] on device 0" */
struct wr_type_words wr_tensor_words(const weir_tensor *tensor);

/*
 * Returns true if some tensor has both shapes. Narrows what the names of both sides may be to what such a
 * tensor allows; these, indexed as the scopes, are only to be used if there is one.
 */
bool wr_shapes_meet(const struct wr_shape *a, struct wr_interval *of_a, const struct wr_shape *b,
		    struct wr_interval *of_b);

/* What passed a port last: a tensor that is alike need not be looked at again. All zero: nothing. */
struct wr_passed {
	int32_t rank; /* one more; 0: nothing */
	uint8_t code, bits, place;
	uint16_t lanes;
	int64_t shape[WEIR_DIMENSIONS_MAX];
};
bool wr_passed_is(const struct wr_passed *passed, const weir_tensor *tensor);
void wr_passed_set(struct wr_passed *passed, const weir_tensor *tensor);

#endif
