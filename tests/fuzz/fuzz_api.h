/*
 * The fuzzer of the public API, written against weir.h; its threads are those of base/, so that they are
 * fibers in a simulated world, and the end of a run is certified from inside. fuzz_api.c is the command;
 * fuzz_draw.c draws a graph and writes it as JSON, fuzz_memory.c its memory pool; fuzz_payload.c writes and
 * checks payloads; fuzz_streams.c chooses streams and launches kernels; fuzz_operators.c has the operators;
 * fuzz_conditions.c the conditions; fuzz_parts.c packs, copies and stamps messages; fuzz_run.c runs a graph
 * and checks the result; fuzz_meddlers.c has the threads that interfere with it.
 */
#ifndef TESTS_FUZZ_API_H
#define TESTS_FUZZ_API_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "weir.h"

enum {
	FZ_ENTITIES = 12,
	FZ_ORIGINS = FZ_ENTITIES + 1, /* the last one is the inlet */
	FZ_INLET = FZ_ENTITIES,
	FZ_PORTS = 3,   /* in, in2, any */
	FZ_OUTPUTS = 2, /* out, out2 */
	FZ_CONNECTIONS = 40,
	FZ_JOBS = 4,
	FZ_KEPT = 3,
	FZ_SHELF = 4,
	FZ_PARTS = 3,
	FZ_TEXT = 16384,
};

#define FZ_US INT64_C(1000)
#define FZ_MS INT64_C(1000000)

/* --- random numbers --- */

struct fz_random {
	uint64_t state;
};

uint64_t fz_next(struct fz_random *random);
uint32_t fz_below(struct fz_random *random, uint32_t n); /* 0..n-1 */
bool fz_chance(struct fz_random *random, uint32_t one_in);

/* --- parts that can be excluded --- */

enum { FZ_MIXED = 1, FZ_LOOSE = 2, FZ_OWN_FENCES = 4 };

struct fz_options {
	const char *backend; /* NULL: drawn */
	unsigned without;    /* FZ_MIXED ... */
	bool verbose;
};

/* --- one graph, as drawn --- */

enum fz_way { FZ_INTERNAL, FZ_EACH, FZ_ONLY, FZ_AFTER_DEFAULT, FZ_NAMED, FZ_DEFAULT, FZ_WAYS };
enum fz_send { FZ_NOTHING, FZ_PASS, FZ_PRODUCE };
enum fz_shape { FZ_AS_IT_IS, FZ_FIRST_PART, FZ_REPACKED, FZ_COPIED, FZ_SHAPES };
enum fz_stamps { FZ_INHERITED, FZ_OF_TICK, FZ_OF_MESSAGE };

struct fz_connection {
	unsigned from, output, to, port; /* from FZ_INLET: from the inlet */
	unsigned initial_messages;
	bool ordered[FZ_ORIGINS]; /* a single path from that origin: numbers increase */
	bool whole[FZ_ORIGINS];   /* and no number is missing */
	size_t index;             /* within its port */
};

struct fz_port {
	unsigned connections;
	unsigned capacity, take; /* take 0: all */
	weir_policy policy;
	const char *gate; /* "true", "false", NULL: the operator's default */
	bool gated;       /* compute receives finished messages */
};

/* What a receiver has seen on one connection. */
struct fz_seen {
	uint32_t next[FZ_ORIGINS];
	bool unsure[FZ_ORIGINS]; /* unread payloads: a gap cannot be noticed */
};

struct fz;

struct fz_entity {
	/* drawn */
	unsigned id;
	char name[16];
	bool source, device, tells, keeps, wraps, effects;
	int max_in_flight; /* -1: the scheduler's */
	bool attaches;     /* sets the stream of its outputs */
	enum fz_way way;
	enum fz_send send[FZ_OUTPUTS];
	unsigned max_emits[FZ_OUTPUTS];
	bool wired[FZ_OUTPUTS]; /* the output is connected */
	struct fz_port ports[FZ_PORTS];
	uint32_t ticks;                                   /* a source's; 0: endless, until a stop */
	uint32_t fails_at, stops_at, faults_at, drags_at; /* ticks, from 1; 0: never */
	bool start_fails;
	bool asynchronous, boolean, own_fence;
	unsigned parts;             /* a message that it makes has up to so many; 0: it makes no packs */
	enum fz_shape passes;       /* what it makes of messages that it passes on */
	enum fz_stamps stamps;      /* where what it makes has its stamp from */
	unsigned claims;            /* blocks of the memory pool that a tick may need; 0: it has none */
	bool told_fence, once;      /* it has the condition fence, and tells it in each tick */
	int64_t work, delay, pause; /* of a kernel; of a tick; of the condition fz_pause */
	char conditions[1024], uses[128];

	/* during a run; used by the entity's owner */
	struct fz *fz;
	weir_entity *handle;
	struct fz_random random;
	bool busy;
	uint32_t number;
	uint64_t received[FZ_PORTS], emitted[FZ_OUTPUTS];
	struct fz_seen seen[FZ_PORTS][FZ_CONNECTIONS];
	weir_message *kept[FZ_KEPT];
	weir_fence own, told;
	weir_stamp stamp; /* what this tick emits gets this one */
	int64_t ticked_at;
	_Atomic unsigned started, stopped;
};

struct fz {
	const struct fz_options *options;
	struct fz_random random;
	uint64_t seed;
	unsigned slot;

	/* drawn */
	const char *backend, *signal;
	bool inside; /* on `sim`, in a world that the program made: its threads are fibers of it */
	bool tame;   /* must finish: no tick needs two ports, or all queues of one */
	bool inlet, outlet, early;
	unsigned bound; /* max_in_flight of the scheduler */
	unsigned outlet_from, outlet_capacity, takers, inlet_to, pushes;
	unsigned blocks; /* of the memory pool; 0: there is none */
	unsigned entity_count, connection_count;
	struct fz_entity entities[FZ_ENTITIES + 1]; /* the last one is the inlet */
	struct fz_connection connections[FZ_CONNECTIONS];
	struct fz_connection outlet_way; /* the messages that the outlet must give in order */
	weir_scheduler_options scheduler_options;
	unsigned runs;
	char text[FZ_TEXT];

	/* alive */
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *inlet_handle;
	weir_stream *stream; /* the program's own: writes the messages pushed */
	weir_outlet *outlet_handle;
	uint64_t salt; /* of the run: distinguishes payloads of earlier runs */
	_Atomic bool failed, stopped, faulted, over;
	_Atomic bool fences_told;              /* by other threads */
	weir_message *_Atomic shelf[FZ_SHELF]; /* taken, and dropped by another thread */
	_Atomic unsigned wrapped, unwrapped;
	_Atomic uint64_t checked; /* number of payloads */
	bool overflows;           /* a queue with the policy fault may fail the run */
	uint64_t ticks;           /* of all runs */
	unsigned ends[3];         /* finished, deadlock, failed */
};

#define FZ_STRANGE "\x1b[31m\x07\x7f\x9bm\xc2\x9b\xe2\x80\xae\xd8\x9c\xe2\x81\xa6\n" /* must be escaped */

/* Prints the fault with the seed and the graph, and ends the process. */
_Noreturn void fz_break(struct fz *fz, const char *format, ...) WEIR_PRINTF(2, 3);
struct fz *fz_of(int64_t slot); /* of the job with that number */

/* fuzz_draw.c */
void fz_draw(struct fz *fz);
void fz_draw_memory(struct fz *fz); /* fuzz_memory.c; when all else but the text is drawn */
bool fz_alone(const struct fz *fz); /* no other thread of the program may enter the run */

/* fuzz_payload.c: {origin, number, the tag of its stamp, the run's salt} and a pattern in the remaining
 * bytes. */
enum { FZ_PAYLOAD_LEAST = 48 };
void fz_spoil(void *to, size_t size); /* invalid until it is written */
struct fz_made {
	uint32_t origin, number;
	uint64_t tag;
};
void fz_write(const struct fz *fz, void *to, size_t size, struct fz_made made, int64_t pause);
/* A payload that was received, and the tag of the message's stamp. */
struct fz_received {
	const void *from;
	size_t size;
	uint64_t tag;
};
struct fz_received fz_received(const weir_message *message);
/* Breaks unless the payload is complete, its stamp is its own, and its number follows those seen on that
 * connection. */
void fz_check(struct fz_entity *entity, struct fz_received received, const struct fz_connection *connection,
	      struct fz_seen *seen, const char *where);
const struct fz_connection *fz_connection_into(const struct fz *fz, unsigned to, unsigned port, size_t index);

/* fuzz_streams.c */
struct fz_work {
	struct fz_entity *entity;
	void *to;
	size_t to_size;
	struct fz_received received;
	const struct fz_connection *connection;
	struct fz_seen *seen;
	struct fz_made made;
	bool fault, tells;
	int64_t ns;
};
weir_stream *fz_stream(struct fz_entity *entity, weir_context *context);
weir_status fz_launch(weir_stream *stream, const struct fz_work *work);
weir_status fz_drag(struct fz_entity *entity, weir_context *context);       /* outlasts an aborted run */
weir_status fz_own_fence(struct fz_entity *entity, weir_context *context);  /* for fz_own */
weir_status fz_tell_fence(struct fz_entity *entity, weir_context *context); /* for the condition fence */

/* fuzz_operators.c, fuzz_conditions.c */
weir_status fz_add_operators(weir_registry *registry);
weir_status fz_add_conditions(weir_registry *registry);
weir_status fz_produce(struct fz_entity *entity, weir_graph *graph, size_t size, weir_message **out);

/* fuzz_parts.c */
typedef weir_status fz_make(struct fz_entity *entity, weir_context *context, weir_message **out);
size_t fz_payloads(const weir_message *message); /* 1, or the number of parts */
weir_message *fz_payload(weir_message *message, size_t i);
/* One message by make, or a pack of several. */
weir_status fz_make_whole(struct fz_entity *entity, weir_context *context, fz_make *make, weir_message **out);
/* What the entity emits for a message that it passes on. */
weir_status fz_pass(struct fz_entity *entity, weir_context *context, weir_message *message,
		    weir_message **out);
void fz_begin_stamps(struct fz_entity *entity, weir_context *context);
uint64_t fz_stamp(struct fz_entity *entity,
		  weir_message *message); /* a new one; gives the tag that it will have */

/* fuzz_meddlers.c: starts the threads of a run; returns how many. */
enum { FZ_MEDDLERS = 10 };
struct fz_meddler {
	struct fz *fz;
	struct fz_random random;
	struct wr_thread thread;
};
unsigned fz_send(struct fz_meddler *meddlers, struct fz *fz, bool stops);
void fz_join(struct fz *fz, struct fz_meddler *meddlers, unsigned n);
void fz_expect_ok(struct fz *fz, weir_status status, const char *what);
/* Texts of operators and conditions contain control characters, which must have been escaped. */
void fz_expect_harmless(struct fz *fz, const char *text, const char *what);

/* fuzz_run.c: creates the graph, runs it, destroys it. */
void fz_run(struct fz *fz);

#endif
