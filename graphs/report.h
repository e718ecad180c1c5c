/* Reports: errors and warnings about a description, collected first, then delivered in the order of the text.
 */
#ifndef WR_GRAPHS_REPORT_H
#define WR_GRAPHS_REPORT_H

#include "graphs/value.h"

/*
 * Every error and warning about a graph: X(name, number, title). Numbers never change: a new error goes to
 * the end, the number of a dropped one is not used again. docs/errors.md has cause and remedy of each; a test
 * compares the two.
 */
#define WR_ERROR_TABLE(X)                                                                                    \
	X(WR_W_SYNTAX, 1, "not JSON")                                                                        \
	X(WR_W_TEXT_SIZE, 2, "text too large")                                                               \
	X(WR_W_DEPTH, 3, "nested too deeply")                                                                \
	X(WR_W_DUPLICATE_KEY, 4, "duplicate key")                                                            \
	X(WR_W_UNKNOWN_KEY, 5, "unknown key")                                                                \
	X(WR_W_TYPE, 6, "wrong type")                                                                        \
	X(WR_W_MISSING_KEY, 7, "missing key")                                                                \
	X(WR_W_RANGE, 8, "out of range")                                                                     \
	X(WR_W_UNSUPPORTED, 9, "not supported in this version")                                              \
	X(WR_W_VERSION, 10, "unknown version of the format")                                                 \
	X(WR_W_CHOICE, 11, "not one of the choices")                                                         \
	X(WR_W_DURATION, 12, "not a duration")                                                               \
	X(WR_W_SIZE, 13, "not a size")                                                                       \
	X(WR_W_NAME, 14, "bad name")                                                                         \
	X(WR_W_DUPLICATE_NAME, 15, "duplicate name")                                                         \
	X(WR_W_UNKNOWN_OPERATOR, 16, "unknown operator")                                                     \
	X(WR_W_UNKNOWN_CONDITION, 17, "unknown condition")                                                   \
	X(WR_W_UNKNOWN_PARAMETER, 18, "unknown parameter")                                                   \
	X(WR_W_MISSING_PARAMETER, 19, "missing parameter")                                                   \
	X(WR_W_UNKNOWN_PORT, 20, "unknown port")                                                             \
	X(WR_W_UNKNOWN_ENTITY, 21, "unknown entity")                                                         \
	X(WR_W_ENDPOINT, 22, "not a port of a connection")                                                   \
	X(WR_W_DIRECTION, 23, "wrong direction")                                                             \
	X(WR_W_SELF_CONNECTION, 24, "connected to itself")                                                   \
	X(WR_W_DOUBLE_CONNECTION, 25, "connected twice")                                                     \
	X(WR_W_KINDS, 26, "kinds of messages do not match")                                                  \
	X(WR_W_UNCONNECTED, 27, "unconnected port")                                                          \
	X(WR_W_TAKE, 28, "take larger than the capacity")                                                    \
	X(WR_W_MIN_SIZE, 29, "min_size that can never or must not be reached")                               \
	X(WR_W_INITIAL, 30, "more initial messages than fit")                                                \
	X(WR_W_CYCLE, 31, "cycle that can never start")                                                      \
	X(WR_W_ENDLESS_CYCLE, 32, "cycle that outlives its exits (warning)")                                 \
	X(WR_W_MAX_EMITS, 33, "max_emits larger than the capacity")                                          \
	X(WR_W_TOO_MANY, 34, "too many")                                                                     \
	X(WR_W_UNKNOWN_RESOURCE, 35, "unknown resource")                                                     \
	X(WR_W_RESOURCE_TYPE, 36, "resource of the wrong type")                                              \
	X(WR_W_TWO_POOLS, 37, "more than one pool")                                                          \
	X(WR_W_POOL_SIZES, 38, "sizes of a resource that disagree")                                          \
	X(WR_W_GREEN_CONTEXT, 39, "not possible in a green context")                                         \
	X(WR_W_TWO_DEFAULTS, 40, "more than one default")                                                    \
	X(WR_W_UNUSED_RESOURCE, 41, "unused resource (warning)")                                             \
	X(WR_W_FEW_STREAMS, 42, "fewer streams than entities (warning)")                                     \
	X(WR_W_NO_STREAM, 43, "source without a stream (warning)")                                           \
	X(WR_W_EFFECTS_CYCLE, 44, "cycle with effects that nothing ends (warning)")                          \
	X(WR_W_GATE_TWICE, 45, "gate switched off beside a cuda_stream")                                     \
	X(WR_W_NO_GATE, 46, "host code may see unfinished data (warning)")                                   \
	X(WR_W_DEVICE_PORT, 47, "host memory before a device port (warning)")                                \
	X(WR_W_CLAIM, 48, "claim of memory that cannot be")                                                  \
	X(WR_W_SMALL_POOL, 49, "memory pool smaller than its queues (warning)")                              \
	X(WR_W_FILE_TWICE, 50, "one file used in two ways")                                                  \
	X(WR_W_LOSSY_BRANCH, 51, "queue that drops on one of two ways that meet (warning)")                  \
	X(WR_W_STUCK_JOIN, 52, "ways that meet and stop for ever (warning)")                                 \
	X(WR_W_SHORT_BRANCH, 53, "way that holds another one back (warning)")                                \
	X(WR_W_MAIN, 54, "main sink that cannot be")                                                         \
	X(WR_W_PORT_TYPES, 55, "types of ports do not agree")                                                \
	X(WR_W_LATEST, 56, "not possible beside \"latest\"")                                                 \
	X(WR_W_ONLY_LATEST, 57, "nothing says when an entity ticks (warning)")                               \
	X(WR_W_ALIGNED, 58, "ports that cannot be aligned")                                                  \
	X(WR_W_INSTANCES, 59, "not possible with instances")                                                 \
	X(WR_W_DESCRIBE, 60, "the operator refuses its parameters")

enum wr_error {
#define WR_ERROR_ENUM(name, number, title) name = number,
	WR_ERROR_TABLE(WR_ERROR_ENUM)
#undef WR_ERROR_ENUM
};

#define WR_REPORTS_MAX 1000 /* of one text; a last one says that there are more */

/* A place in the tree: a chain on the stack, turned into a JSON pointer only for a report. NULL is the root.
 */
struct wr_at {
	const struct wr_at *up;
	const char *key; /* NULL: `index` of a list */
	size_t index;
};

struct wr_reports {
	struct wr_report *list;
	size_t count, room, errors;
	weir_status status; /* WEIR_E_NOMEM: a report was lost because memory ran out */
	const char *file;   /* borrowed; NULL: none */
	size_t text_most;   /* bytes of a text that is read; 0: WR_FILE_MAX */
};

void wr_report(struct wr_reports *reports, enum wr_error error, const struct wr_at *at, struct wr_place place,
	       const char *format, ...) WEIR_PRINTF(5, 6);

/*
 * Passes all reports to fn (may be NULL), sorted by place, and frees them. Returns WEIR_E_INVALID if there
 * was an error (last_error has the first one), WEIR_E_NOMEM if memory ran out, else WEIR_OK.
 */
weir_status wr_reports_deliver(struct wr_reports *reports, weir_diagnostic_fn *fn, void *arg);

#endif
