/*
 * A plan: a description after all checks, with every name resolved and every default filled in.
 * scheduler/graph.c builds the graph from it, weir_description_print prints it. Plain data; it owns its
 * memory (names, values) and borrows the tables of the kinds.
 */
#ifndef WR_GRAPHS_PLAN_H
#define WR_GRAPHS_PLAN_H

#include "base/names.h"
#include "graphs/type.h"
#include "weir.h"

#define WR_LATEST_PLACES 3u /* of a `latest` queue: what is or will be shown, oldest, newest */

struct wr_plan_input {
	const weir_port *port;
	struct wr_port_type type;
	unsigned kinds;                      /* of messages; never 0 */
	uint32_t capacity, take;             /* take: WEIR_TAKE_ALL, or n */
	weir_policy policy;                  /* LATEST: capacity and take are 1 */
	unsigned policy_line, policy_column; /* place of the key; 0: the operator's table says so */
	uint32_t connections;                /* connections to this port; inlets are not counted */
	bool device;           /* device port: its messages are ordered on the device, no gate by default */
	int gate_given;        /* "gate" in the description: 0 or 1; -1: not given */
	unsigned line, column; /* place of "gate" in the text */
	bool gate;             /* has an implied gate (C8) */
	bool inlet;            /* the graph names an inlet here */
	bool timed;            /* a condition asks how long its messages have waited */
	bool reused;           /* a condition `aligned` gives its last message again: it is kept */
};

struct wr_plan_output {
	const weir_port *port;
	struct wr_port_type type;
	unsigned kinds; /* of messages; never 0 */
	uint32_t max_emits;
	uint32_t connections; /* connections from this port; outlets are not counted */
	uint32_t outlet;      /* capacity of the outlet that the graph names here; 0: none */
};

/* The room and the memory that a tick needs, in messages: one that may be full emits what fits (S3). */
static inline uint32_t wr_plan_output_needs(const struct wr_plan_output *output)
{
	return output->port->flags & WEIR_PORT_FULL ? 1 : output->max_emits;
}

/*
 * A memory pool, in one of two forms: `blocks` blocks of block_size bytes, or max_size bytes (blocks is 0).
 */
struct wr_plan_memory_pool {
	char *name;
	int device; /* WEIR_DEVICE_HOST: pinned host memory */
	uint32_t blocks;
	uint64_t block_size, max_size;
	void **memory;    /* the caller's blocks; NULL: weir allocates them */
	size_t users;     /* entities */
	uint64_t queued;  /* messages that the queues behind its users hold */
	uint64_t reached; /* the same, with queues behind entities that may pass them on, and `hidden` */
	uint64_t claimed; /* what one tick of each user claims, in sum, and `kept` */
	uint64_t kept;    /* what its users keep for messages that they make ahead, at most */
	uint64_t hidden;  /* messages in queues of instances that it reaches, and what further instances claim
			   */
};

/* The memory pool of one place that an entity uses, and what is claimed of it: blocks, or bytes. */
struct wr_plan_memory {
	uint32_t pool;  /* index */
	uint64_t units; /* for each tick, or for each message that is made ahead */
	uint64_t ahead; /* such messages, for which claims are kept (S3); 0: each tick claims */
};

/* What it claims at once, at most. */
static inline uint64_t wr_plan_memory_most(const struct wr_plan_memory *memory)
{
	return memory->units * (memory->ahead ? memory->ahead : 1);
}

struct wr_plan_condition {
	const weir_condition *kind;
	char *name; /* "name" in the description, else the kind's */
	weir_values *values;
	bool implied; /* a default, not in the description */
	bool brought; /* by the operator, not in the description */
	bool claims;  /* memory_available, which has no ask: the scheduler claims memory (S3) */
	bool inner;   /* inside any_of */
	size_t span;  /* of any_of and all_of: the conditions inside it, which follow it in the list */
	int signal;   /* cuda_stream: enum wr_signal_kind; -1: the scheduler's */
};

#define WR_NO_POOL    UINT32_MAX
#define WR_NO_CONTEXT UINT32_MAX

struct wr_plan_stream_pool {
	char *name; /* an implied one: "default", or "default of <green context>" */
	int device, priority;
	unsigned flags;                   /* WR_STREAM_BLOCKING */
	uint32_t reserved_size, max_size; /* max_size 0: unbounded */
	uint32_t green_context;           /* index, or WR_NO_CONTEXT */
	bool implied;                     /* not in the description */
	bool is_default;                  /* entities that name no resource use it */
	size_t users;                     /* entities */
};

struct wr_plan_green_context_pool {
	char *name;
	int device;
	unsigned flags;
	uint32_t *sizes; /* sms_per_partition */
	size_t count;
	uint32_t min_sm_size;
	int default_index; /* as given; -1: the remainder */
	bool is_default;   /* entities that name no resource use its default context */
};

struct wr_plan_green_context {
	char *name;    /* an implied one has its pool's */
	uint32_t pool; /* index */
	int index;     /* of the pool's partitions; -1: the remainder */
	bool implied;  /* made because a pool was named where a context is needed: its default */
};

#define WR_PLACES 2 /* at which an entity may use a memory pool: its device and the host */

#define WR_INSTANCES_MAX 1024
#define WR_NO_JOINER     UINT32_MAX

/* What an entity of the graph with instances is (instances.c); PLAIN: of itself. */
enum wr_role { WR_PLAIN, WR_DEALER, WR_INSTANCE, WR_JOINER };

void wr_described_destroy(struct weir_ports *described); /* NULL is fine */

struct wr_plan_entity {
	char *name;
	const weir_operator *kind;
	struct weir_ports *described;            /* holds the kind, of an operator that describes its ports */
	uint32_t stream_pool;                    /* index, or WR_NO_POOL */
	int device;                              /* the pool's; 0 without one */
	struct wr_plan_memory memory[WR_PLACES]; /* in ascending order of the pools */
	uint8_t memory_count;
	bool use_default_stream;
	bool effects;          /* has effects of its own: it is not DONE when all its receivers are (S5) */
	bool main;             /* the main sink */
	uint32_t depth;        /* entities on the longest way to it, itself included */
	int64_t max_in_flight; /* -1: not given; 0: unbounded */
	bool replay_given;
	uint32_t replay_keys, replay_warm_up; /* T13. No keys: work is always enqueued as usual */
	weir_values *values;
	struct wr_plan_input *inputs; /* one per port of the kind, in its order */
	struct wr_plan_output *outputs;
	size_t input_count, output_count;
	uint32_t instances;      /* at least 1, which means none beside itself */
	enum wr_role role;       /* PLAIN before wr_plan_expand */
	uint32_t first, number;  /* index of the first instance; of an INSTANCE: which one it is */
	uint32_t dealer, joiner; /* indices; joiner: WR_NO_JOINER if there are no outputs */
	struct wr_scope scope;   /* the names of sizes in the types of its ports */
	struct wr_plan_condition *conditions; /* as in the text, then those that the operator
						 brings, then the implied ones: inputs, outputs */
	size_t condition_count;
};

struct wr_plan_connection {
	uint32_t from, output, to, input; /* indices */
	uint32_t initial_messages;
};

/* A port for which the description declares an inlet or an outlet. */
struct wr_plan_end {
	uint32_t entity, port;
};

struct wr_plan_scheduler {
	unsigned workers; /* 0: not given */
	int signal;       /* enum wr_signal_kind; -1: not given */
	int64_t drain_ns, deadlock_grace_ns, max_duration_ns, worker_spin_ns;
	bool has_drain, has_grace, has_duration, has_spin;
	char *backend; /* NULL: not given */
	uint64_t seed;
	bool has_seed;
	int64_t max_in_flight; /* -1: not given; 0: unbounded */
	int gpu_time;          /* is measured in one tick of so many; -1: not given; 0: off */
	/* Bytes to allocate before the first tick on a GPU; default 64 MiB each. */
	int64_t device_memory, host_memory;
};

struct wr_plan {
	char *name;
	char *file; /* NULL: not from a file */
	bool from_stdin;
	uint64_t registry; /* wr_registry_stamp of the one that it was made with */
	struct wr_plan_scheduler scheduler;
	struct wr_plan_stream_pool *stream_pools; /* in the order of the text, then the implied ones */
	struct wr_plan_green_context_pool *green_context_pools;
	struct wr_plan_green_context *green_contexts; /* likewise */
	size_t stream_pool_count, green_context_pool_count, green_context_count;
	struct wr_plan_memory_pool *memory_pools; /* in the order of the text */
	size_t memory_pool_count;
	int devices; /* 1 + the highest device that a pool names */
	struct wr_plan_entity *entities;
	size_t entity_count, shown_count;           /* after the shown ones: instances and joiners */
	struct wr_names names;                      /* of the entities, sorted */
	struct wr_plan_condition in_flight;         /* implied for every entity, beside its own list */
	struct wr_plan_connection *connections;     /* as in the text: "connection order" */
	size_t connection_count, shown_connections; /* after these: those of instances */
	struct wr_plan_end *inlets, *outlets;       /* as in the text */
	size_t inlet_count, outlet_count;
};

#define WR_IN_FLIGHT     64 /* default of max_in_flight */
#define WR_IN_FLIGHT_MAX 65536

#define WR_REPLAY_KEYS        16 /* default of "keys" */
#define WR_REPLAY_KEYS_MAX    4096
#define WR_REPLAY_WARM_UP     1
#define WR_REPLAY_WARM_UP_MAX 1000

/*
 * Checks the description and gives the plan. Passes every error and warning to fn (may be NULL), in the order
 * of the text; last_error has the first error. `open_ports` allows unconnected required ports: the program
 * may still add inlets and outlets, so they are checked when the graph is run.
 */
weir_status wr_plan_create(struct wr_plan **out, const weir_registry *registry,
			   const weir_description *description, bool open_ports, weir_diagnostic_fn *fn,
			   void *arg);
void wr_plan_destroy(struct wr_plan *plan);
/* Returns true if the entity has instances, or its file may give it some: its operator, ports and conditions
 * allow it. */
bool wr_instances_possible(const struct wr_plan_entity *entity);
/*
 * Makes the instances of the plan's entities, their joiners and connections (instances.c): for a graph that
 * runs. `condition` is what dealers, instances and joiners wait for. Fails: WEIR_E_NOMEM.
 */
weir_status wr_plan_expand(struct wr_plan *plan, const weir_condition *condition);
/* The port of the i-th inlet, or outlet, that the text names. */
const struct wr_plan_input *wr_plan_inlet(const struct wr_plan *plan, size_t i);
const struct wr_plan_output *wr_plan_outlet(const struct wr_plan *plan, size_t i);
/* Returns true if a parameter of the condition names that input, or output. */
bool wr_condition_names(const struct wr_plan_condition *condition, unsigned port, bool input);
/* The number of trees that the i-th condition is in. */
int wr_condition_depth(const struct wr_plan_entity *entity, size_t i);
/* The first port that a parameter of the condition names; returns false if there is none. */
bool wr_condition_port(const struct wr_plan_condition *condition, unsigned *port, bool *input);
/*
 * Returns true if no tick begins without messages of the input: message_available or cuda_stream names it.
 */
bool wr_plan_waits_for(const struct wr_plan_entity *entity, unsigned input);

#endif
