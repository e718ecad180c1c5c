/* What a world of dst_joins.c is made of, and what its run has shown. */
#ifndef TESTS_SCHEDULER_DST_JOINS_H
#define TESTS_SCHEDULER_DST_JOINS_H

#include "dst_command.h"
#include "scheduler/graph.h"

/* See dst_joins.c. */
enum dst_joins_shape { ANY, ALIGNED_SHAPE, TREES_SHAPE, BATCHES_SHAPE, LATEST_SHAPE, INSTANCES_SHAPE };
enum { ENTITIES = 16, PORTS = 3, SENT = 128, TICKS = 256, ALTERNATIVES = 4, NONE = -1 };
enum dst_role { SOURCE, RELAY, JOIN, SINK };
enum dst_kind { PLAIN, ALIGNED, TREE, SUM, SIZES, EXPIRING };

#define FAR (100 * INT64_C(1000) * MS)

/* A payload, all of it written when the message's fences are complete. */
struct dst_joins_payload {
	uint32_t maker, number;
	uint64_t mark;
};

/* --- drawn --- */

struct dst_joins_port {
	int from;                /* the sender; NONE: not connected */
	unsigned capacity, take; /* take 0: all */
	weir_policy policy;
	unsigned size; /* SIZES */
};

struct dst_joins_alternative {
	unsigned ports; /* as bits; 0: a beat */
	bool told;      /* with a boolean that the program sets */
	int64_t period;
};

struct dst_joins_entity {
	enum dst_role role;
	enum dst_kind kind;
	struct dst_joins_port port[PORTS];
	bool device, promises, forwards, skips, stamps, effects, told;
	unsigned count, instances, blocks, bound; /* blocks 0: no pool */
	int64_t period, work;
	uint32_t fails_at;   /* this tick, from 1; 0: none */
	unsigned loss, jump; /* of the stamps of a source: none, or one in so many */

	bool by_tag, empty, reuse, nearest; /* reuse: empty, too */
	uint64_t within, oldest;
	int64_t timeout; /* ALIGNED, SUM, SIZES; EXPIRING: max_delay */
	unsigned sum;    /* SUM; EXPIRING: max_batch */
	struct dst_joins_alternative alternative[ALTERNATIVES];
	unsigned alternatives;
};

/* --- what was seen --- */

/* What an entity has emitted, in the order of its ticks. */
struct dst_joins_sent {
	weir_message *message;
	uint64_t set; /* the number of its tick */
	weir_stamp stamp;
	int64_t at;
	uint32_t maker, number; /* of its payload */
};

/* A tick. `visible`: what was pushed before the last one had ended; `arrived`: before compute began. */
struct dst_joins_tick {
	int64_t ready, now, ended;
	unsigned first[PORTS], count[PORTS], visible[PORTS], arrived[PORTS];
	unsigned again[PORTS]; /* which message it was given again, from 1; count is 0 then */
};

struct dst_joins_log {
	unsigned sent_count, ticks, made;
	struct dst_joins_sent sent[SENT];
	struct dst_joins_tick tick[TICKS];
	uint64_t base[PORTS];    /* of its queues: their tail before the run */
	unsigned visible[PORTS]; /* for the next tick */
	unsigned started;        /* its instances, so far */
	weir_stamp last;         /* that it has set */
	int64_t longest;         /* until what it made was finished */
};

struct dst_joins_world {
	struct wr_random shape;
	uint64_t seed;
	unsigned entities, workers;
	struct dst_joins_entity entity[ENTITIES];
	struct dst_joins_log log[ENTITIES];
	const char *signal;
	int64_t stop_after; /* 0: not stopped */
	bool drain, pokes, early;
	bool by_tag;   /* what sets share */
	int outlet;    /* of this entity; NONE: there is none */
	int64_t delay; /* of what the program completes */
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_outlet *taken_from;
	_Atomic bool opened, over;
	bool failed;
};

extern struct dst_joins_world joins;
extern unsigned joins_shape;

/* dst_joins_draw.c */
void dst_joins_draw(uint64_t seed);
uint64_t dst_joins_random(uint64_t n);
void dst_joins_put(void); /* writes the graph */

/* dst_joins_operators.c */
weir_status dst_joins_register(weir_registry *registry);

/* dst_joins_program.c: the program's threads of a run. */
enum { DST_JOINS_THREADS = 6 };
unsigned dst_joins_send(struct wr_thread *threads);
void dst_joins_forget(void);        /* what is to be completed, before a run */
void dst_joins_complete_rest(void); /* after it */
/* The fence of a payload that the program will write. */
weir_status dst_joins_promise(struct dst_joins_payload *to, struct dst_joins_payload value, weir_fence *out);

/* dst_joins_check.c: what the ticks of an entity have received is what they had to. After a run. */
struct dst_joins_found {
	uint64_t pushed[PORTS], delivered[PORTS], dropped[PORTS], unmatched[PORTS], reused[PORTS];
	bool whole; /* it ended because its inputs did */
	bool cut;   /* the run was stopped, or has failed */
};
void dst_joins_check(unsigned id, const struct dst_joins_found *found);
/* dst_joins_sets.c: the same for a condition `aligned`. */
void dst_joins_check_sets(unsigned id, const struct dst_joins_found *found);

#endif
