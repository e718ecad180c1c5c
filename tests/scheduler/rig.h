/*
 * A rig for runs: a graph from one line, operators that note what they receive, and access to the results.
 *
 *	"source ticks=3 -> p:pass -> end; p.out2 -> other:end capacity=4 policy=pop"
 *
 * Chains are separated by ';'. An item is `name:operator`, `operator` (also its name), or the name of an
 * earlier item; `name.port` names a port, by default `out` before an arrow and `in` after it. Settings follow
 * their item: capacity, take, policy (of the input that the item names), max_emits, initial (of the
 * connection into it); effects=true; gated=false or true (the input's "gate"); pool=NAME, of rig_resources,
 * or none, or default (its device's stream); the conditions count=3, period=10ms (or period=10ms,POLICY),
 * enabled=false, asynchronous, fence=true (its "once"), gate=in (or gate=in,SIGNAL), min=2, blocks=2 (of
 * memory), condition=NAME; in_flight=4; replay=off, 8 or 8,2; everything else is a parameter of the
 * operator.
 *
 * Operators: source (parameters ticks, first, emits, work: a kernel writes the number), pass (registered as
 * rig_pass, since there is a built-in pass), end, and call and host, whose functions the test supplies.
 * Inputs of pass and call are device ports, those of end and host are host ports. A failed check within an
 *operator is noted and asserted afterwards, by the test's own thread.
 */
#ifndef TESTS_SCHEDULER_RIG_H
#define TESTS_SCHEDULER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "weir.h"

#define US     INT64_C(1000)
#define MS     INT64_C(1000000)
#define SECOND INT64_C(1000000000)

enum { RIG_ENTITIES = 64, RIG_TEXT = 4096 };

struct rig;
struct wr_backend;
typedef weir_status rig_fn(struct rig *rig, weir_context *context);

/* What an entity does and what it did. During a run only the entity's owner writes the text. */
struct rig_entity {
	char name[64];
	rig_fn *compute, *start;
	void (*progress)(size_t room, char *out);
	void (*stop)(struct rig *rig, weir_context *context);
	char text[RIG_TEXT]; /* "0 1,2": numbers received, by tick; "|" before those of in2; "?": pending */
	size_t length;
	_Atomic unsigned computing; /* S2: at most 1 */
};

struct rig {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_scheduler_options options;
	weir_outcome outcome;
	struct rig_entity entities[RIG_ENTITIES];
	size_t entity_count;
	char *explained;
	_Atomic unsigned broken;           /* failed checks in operators */
	_Atomic unsigned started, stopped; /* operators of all kinds */
	_Atomic uint64_t told;             /* for the test */
	void *own;
	struct wr_backend *own_backend; /* rig_inside.h */
	const struct wr_backend *real_backend;
};

/* On rig_backend, two workers; the options may be changed before rig_make. */
struct rig *rig_of(const char *text);
/* One worker; of the built-in operators and the test's own, of which the last is NULL. */
struct rig *rig_of_json(const char *json, const weir_operator *const *operators);
struct rig *rig_observed(const char *text);                          /* with statistics */
struct rig *rig_described(const char *text, weir_description **out); /* without its graph */
void rig_on(struct rig *rig, const char *entity, rig_fn *compute);   /* the function of a `call` */
struct rig_entity *rig_entity(struct rig *rig, const char *name);
void rig_tell(struct rig *rig, const char *entity, weir_told told); /* its `boolean` */
void rig_make(struct rig *rig);                                     /* the scheduler */
void rig_here(struct rig *rig);        /* before this thread starts a run without rig_start */
void rig_start(struct rig *rig);       /* calls rig_make if needed */
weir_status rig_wait(struct rig *rig); /* asserts conservation (E5) and that no check failed */
weir_status rig_run(struct rig *rig);  /* start, wait */
void rig_destroy(struct rig *rig);

const char *rig_text(struct rig *rig, const char *entity); /* received in all runs so far */
weir_entity_counts rig_counts(struct rig *rig, const char *entity);
uint64_t rig_ticks(struct rig *rig, const char *entity);
bool rig_done(struct rig *rig, const char *entity);
weir_queue_counts rig_queue(struct rig *rig, const char *to); /* of the first connection into the port */
const char *
rig_explain(struct rig *rig); /* "entity: condition: VERDICT (detail)\n", for each unmet condition */

/* For functions of `call`. */
weir_message *rig_number(weir_context *context, int64_t number);
int64_t rig_value(const weir_message *message);
void rig_note(struct rig *rig, weir_context *context, const char *word); /* to its text */
void rig_break(struct rig *rig);
void assert_says(const char *text, const char *part);

/* A check within an operator: asserted afterwards, by the test's own thread. */
#define HOLDS(rig, what)                                                                                     \
	do {                                                                                                 \
		if (!(what)) {                                                                               \
			print_error("%s:%d: %s\n", __FILE__, __LINE__, #what);                               \
			rig_break(rig);                                                                      \
		}                                                                                            \
	} while (0)

/* Runs the body within worlds of several seeds on `sim`, then with real threads on `host`. */
void rig_everywhere(void (*body)(void));
void rig_in_world(uint64_t seed, void (*body)(void));
void rig_in_worlds(uint64_t seeds, void (*body)(void)); /* seeds 1, 2, ... */
void rig_on_host(void (*body)(void));

/* rig_text.c: adds what the text says to the description, and its entities to the rig. */
void rig_parse(struct rig *rig, weir_description *description, const char *text);

/* For graphs made from now on: */
extern _Thread_local const char *rig_backend;   /* "sim", unless a function above sets it */
extern _Thread_local const char *rig_resources; /* JSON; NULL: none */
extern const char *const rig_signals[3];        /* the kinds of signals; the flag is the last */

/* rig_outlets.c: the program's side of outlets. */
weir_outlet *rig_outlet(struct rig *rig, const char *port, uint32_t capacity, unsigned flags);
int64_t rig_take(weir_outlet *outlet, int64_t timeout_ns); /* the number taken, or the status; -1 if the
							      message is not complete */
bool rig_readable(weir_outlet *outlet);                    /* true if its descriptor is */

/* A message from outside, for inlets. */
weir_message *rig_message(struct rig *rig, int64_t number);
void rig_add_kinds(weir_registry *registry);        /* the rig's operators, and `rig_conditions` */
extern const weir_condition *const *rig_conditions; /* NULL-terminated; set by main */

#endif
