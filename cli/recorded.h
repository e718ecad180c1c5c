/*
 * The statistics of a run, as `weir run --stats-file` writes them, read into structs. Times are in
 * nanoseconds. What a file lacks is 0 or NULL.
 */
#ifndef CLI_RECORDED_H
#define CLI_RECORDED_H

#include "base/words.h"
#include "cli/json.h"
#include "weir.h"

#define CLI_NO_ENTITY SIZE_MAX

struct cli_list {
	void *items;
	size_t count, room;
};

struct cli_histogram {
	int64_t count, sum, min, max, p50, p90, p99;
};

struct cli_wait {
	weir_cause cause;  /* NONE: the file does not say */
	char *on;          /* the pool or port that it was about; NULL: unknown */
	char *of, *why;    /* for people: the condition or port, and its reason */
	int64_t open;      /* how long the one was that had not ended, part of `time`; 0: none */
	int64_t instances; /* of how many instances together; 0: of the entity as one */
	struct cli_histogram time;
};

/* A condition that the graph's file or the operator gave. */
struct cli_times {
	int64_t period; /* 0: it has none */
};
struct cli_condition {
	char *type, *name;
	struct cli_times times;
};

/* What an entity did on a queue of a device: entities that name the same `stream` share it. */
struct cli_use {
	int64_t stream, device;
	int64_t count, time; /* measured spans, and their sum; `done_source` says how */
};

/* A lock that computes said they waited for: "GIL"; NULL: none. */
struct cli_lock {
	char *name;
	int64_t count, time;
};

/* Of `count` ticks: their time on a core, that in compute, and how often they waited for something. */
struct cli_cpu {
	int64_t count, time, of, waits;
};

/* How old messages with a stamp were where they ended. */
struct cli_stamped {
	int64_t count, sum, max;
};

/*
 * What a remote_send or remote_receive has recorded of its connection (remote/remote.h). session, peer: of
 * this side and of the other one; NULL: it is neither. offset: the other clock less this one; error: how far
 * that may be off; of `exchanges`. way: by both clocks, so that the offset is in it. numbers: from that
 * message emitted on.
 */
struct cli_way {
	int64_t count, min, p50, p99, max;
};
struct cli_numbers {
	int64_t emitted, number;
};
struct cli_remote {
	char *to, *listen, *session, *peer;
	int64_t count, lost, exchanges, offset, error, emitted;
	struct cli_way way;
	bool all_numbers;
	struct cli_list numbers; /* of struct cli_numbers */
};
struct cli_record {
	struct cli_remote weir_remote;
};

struct cli_entity {
	char *name,
		*operator, * resource; /* resource: of its streams; NULL: the default stream pool, or none */
	int64_t instances;             /* 0: none, one tick at a time */
	int64_t instances_max;         /* as many as its file may give it; 0: none */
	int64_t ticks, received, emitted, lost, most_in_flight, max_in_flight;
	struct cli_stamped stamped;
	struct cli_histogram submit, blocked, gpu_span, done_latency, ready_to_compute, waited;
	struct cli_cpu cpu;
	struct cli_lock lock;
	struct cli_list waits;      /* of struct cli_wait */
	struct cli_list conditions; /* of struct cli_condition */
	struct cli_list streams;    /* of struct cli_use */
	struct cli_record record;
	int64_t gpu_ticks;
	char *done_source; /* NULL: no device work was measured */
};

struct cli_depth {
	double mean;
	int64_t max, full_time;
};

struct cli_queue {
	char *from, *to, *sender, *receiver, *policy; /* sender, receiver: NULL: the program */
	size_t sender_at, receiver_at;                /* their entities, or CLI_NO_ENTITY */
	int64_t capacity, pushed, delivered, dropped;
	struct cli_depth depth;
};

struct cli_pool {
	char *name, *unit;
	int64_t capacity, most_used, allocations, waits;
	struct cli_histogram wait_time;
};

struct cli_path {
	struct cli_list entities; /* of char *: source to sink */
	bool other;               /* all other paths to the sink */
	int64_t count;
	struct cli_histogram latency;
};

struct cli_worker {
	int64_t ticks, busy, asleep;
};

struct cli_recorded {
	int64_t format; /* "weir_statistics" */
	char *version, *graph, *where, *backend, *ending;
	char *gpu_time;    /* "off", "all", "sample:64"; NULL: unknown */
	int64_t gpu_every; /* one tick of so many is timed; 0: none, or unknown */
	bool has_outcome;  /* it had ended, and the file says how: else what follows is not known */
	weir_status status;
	weir_cause cause; /* why it ended; NONE: it had not, or unknown */
	char *cause_entity, *cause_on, *text, *stuck;
	size_t cause_at; /* the cause's entity, or CLI_NO_ENTITY */
	bool drained;
	int64_t posix_signal, leftover, abandoned;
	int64_t duration, workers_count;
	char *main;     /* the entity whose messages are the frames; NULL: none */
	size_t main_at; /* likewise, or CLI_NO_ENTITY */
	int64_t frames;
	struct cli_list entities, queues, pools, workers, paths;
	struct cli_name *names; /* of the entities, sorted */
};

/*
 * Reads and checks the text. Returns true, or false with the reason in fault: one line that names the place
 * and the remedy, empty if memory ran out. cli_recorded_finish takes what either leaves.
 */
bool cli_recorded_read(struct cli_recorded *out, const char *text, size_t length, char fault[512]);
/* A new item at the end of the list, zeroed; NULL if memory ran out. */
void *cli_list_add(struct cli_list *list, size_t size);
void cli_recorded_finish(struct cli_recorded *recorded);
/* Returns true if some wait has no cause that this weir knows: then nothing is known of what it was for. */
bool cli_recorded_lacks_causes(const struct cli_recorded *recorded);

size_t cli_recorded_find(const struct cli_recorded *recorded, struct cli_slice name); /* or CLI_NO_ENTITY */
/* Returns NULL if there is no such entity. */
const struct cli_entity *cli_recorded_entity(const struct cli_recorded *recorded, size_t i);

/* How many ticks of it compute at once; at least 1. */
int64_t cli_recorded_lanes(const struct cli_entity *entity);
/* "blur", or "blur x4" of one with instances. */
struct wr_shown cli_recorded_name(const struct cli_entity *entity);
/* The entities that share the queue of a device. */
size_t cli_recorded_sharers(const struct cli_recorded *recorded, int64_t stream);

#endif
