/*
 * The inside of a run and of its device. This file and rig_inside.c alone know the library's own structs; a
 * test that needs more of the inside than the public header shows adds a function here.
 */
#ifndef TESTS_SCHEDULER_RIG_INSIDE_H
#define TESTS_SCHEDULER_RIG_INSIDE_H

#include "rig.h"
#include "streams/backend.h"
#include "streams/host/sim.h"
#include "trace/histogram.h"
#include "trace/trace.h"

/* --- the device; after rig_make --- */

/* A copy of the backend's table, which the system uses from now on: the test replaces functions in it. */
struct wr_backend *rig_own_backend(struct rig *rig);
const struct wr_backend *rig_real_backend(struct rig *rig); /* what it was a copy of */
void rig_restore_backend(struct rig *rig);
void rig_set_knobs(struct rig *rig, struct wr_sim_knobs knobs); /* of the simulated device */
void rig_with_knobs(struct rig *rig, const char *signal, struct wr_sim_knobs knobs); /* makes it on `sim` */
bool rig_has_no_system(struct rig *rig);                                             /* nor pools */

/* --- signals --- */

struct rig_armed {
	size_t armed;   /* signals that wait for an entity */
	size_t inlined; /* callbacks that lie on the stream itself */
};

struct rig_armed rig_armed(struct rig *rig);
uint64_t rig_outstanding(struct rig *rig);               /* callbacks */
void rig_bound_signals(struct rig *rig, uint32_t bound); /* so many callbacks at once */
weir_entity *rig_first_refused(struct rig *rig,
			       size_t n); /* the first of at least n entities that wait for one */
uint64_t rig_token(struct rig *rig, const char *entity);   /* of its current wait; 0: none */
size_t rig_pending(struct rig *rig, const char *entity);   /* fences that its last verdict waits for */
size_t rig_waits_for(struct rig *rig, const char *entity); /* fences that its current wait is armed for */
weir_status rig_arm_in_vain(struct rig *rig, const weir_fence *promises,
			    size_t n);      /* entity 0 waits for them, and gives up */
size_t rig_promise_places(struct rig *rig); /* in use, and free ones */
int64_t rig_fence_age(struct rig *rig, weir_fence fence);
size_t rig_promise_waits(struct rig *rig, weir_fence promise); /* given up or not */
void rig_poller_sleeps(struct rig *rig);                       /* as long as it can, as beside a device */

/* --- entities --- */

/* What the entity waits for, as its last verdict was published: the index of a port. */
uint32_t rig_waits_on(struct rig *rig, const char *entity);

struct rig_gate {
	bool implied; /* input 0 has one */
	bool marked;  /* a sender had device work */
	bool asked;   /* by a review of this run */
};

struct rig_gate rig_gate(struct rig *rig, const char *entity);
weir_graph *rig_view_graph(weir_view *view);
uint64_t rig_flight_ticks(struct rig *rig, const char *entity); /* of this run, as its bound counts them */
bool rig_uses_no_stream(struct rig *rig,
			const char *entity); /* no current one, and none was used in its context */

/* How old the messages with a stamp were that ended at the entity, or at the outlet of that name. */
struct rig_age {
	uint64_t count;
	int64_t sum, max;
};

struct rig_age rig_age(struct rig *rig, const char *entity);
struct rig_age rig_age_at(struct rig *rig, const char *to); /* "outlet", or a port, where none is counted */

/* --- statistics; the numbers that their JSON text has --- */

struct rig_times {
	const char *entity, *done_source;
	struct wr_durations submit, blocked, ready_to_compute, waited, gpu_span, done_latency;
};
enum { RIG_PATH = 64 };
struct rig_path {
	const char *entities[RIG_PATH]; /* names of inlets and outlets are kept for the next few */
	size_t entity_count;
	bool other;
	uint64_t count;
	struct wr_durations latency;
};

/* i: 0, 1, ... until they return false. Thread: any. */
bool rig_times(weir_scheduler *scheduler, size_t i, struct rig_times *out);
bool rig_path(weir_scheduler *scheduler, size_t i, struct rig_path *out);

/* --- streams --- */

uint32_t rig_stream_count(struct rig *rig); /* open ones */
size_t rig_pool_count(struct rig *rig);
size_t rig_taken(struct rig *rig, size_t pool); /* streams taken from the plan's pool of that index */
weir_stream *rig_pool_take(struct rig *rig, size_t pool);
void rig_put_back(weir_stream *stream);
uint32_t rig_stream_flags(const weir_stream *stream);
int rig_stream_priority(const weir_stream *stream);
const void *rig_partition(const weir_stream *stream);        /* NULL: none */
bool rig_has_flag(weir_stream *stream, weir_fence fence);    /* the device writes a flag right after it */
void rig_give_native(weir_stream *stream);                   /* as if its native handle were given out */
bool rig_keeps_streams(struct rig *rig, const char *entity); /* until its work has ended and it is stopped */
uint64_t rig_highest_index(weir_context *context); /* of the entity's streams in the system's table */
size_t rig_own_stream_count(weir_context *context);
void rig_scratch_fix(weir_context *context, bool fixed); /* as a capture does */
void rig_scratch_return(weir_context *context);   /* all that this tick requested of the current stream */
size_t rig_scratch_height(weir_context *context); /* of the current stream's stack */
size_t rig_scratch_blocks(weir_context *context); /* stacks, and blocks of what did not fit */

/* --- messages --- */

size_t rig_uses(const weir_message *message); /* fences of its payload */
uint32_t rig_references(const weir_message *message);
size_t rig_carried_fences(const weir_message *message, weir_fence *fences, size_t room);
uint32_t rig_messages_made(struct rig *rig); /* by the graph's pool so far */

/* --- threads and the loop --- */

uint64_t rig_live(weir_scheduler *scheduler);         /* references that hold the run open */
bool rig_all_asleep(weir_scheduler *scheduler);       /* all workers */
bool rig_one_asleep(weir_scheduler *scheduler);       /* at least */
void rig_unpark(struct rig *rig, size_t worker);      /* as a thread that chose this worker for a wake-up */
void rig_lock_outlet(weir_outlet *outlet, bool lock); /* like a thread that was interrupted inside a call */
void rig_lock_inlet(weir_inlet *inlet, bool lock);
int64_t rig_kept_until(struct rig *rig); /* when the worker wakes that keeps the time */
int64_t rig_loop_until(struct rig *rig); /* when the loop's wait ends */
bool rig_fill_wake(struct rig *rig);     /* the loop's descriptor; false: one more write would have fit */
void rig_poke_late(weir_scheduler *scheduler,
		   int fd); /* a callback and a kick; the loop's descriptor is `fd` now */
void rig_lose_message(struct rig *rig, const char *to); /* as if it were pushed into that end and then gone */
void rig_lose_emission(struct rig *rig, const char *entity); /* as if one were emitted and not pushed */
weir_status rig_observe(struct rig *rig, const struct wr_observer *observer);
/* A device_work of observers that only have it so that GPU time is measured. */
void rig_ignore_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		     const char *stream, uint32_t queue, int64_t begin, int64_t end,
		     enum wr_trace_source source);
/* Statistics and the observer, of a rig that was made with WEIR_OBSERVE_STATISTICS. */
weir_status rig_observe_beside(struct rig *rig, const struct wr_observer *observer);

#endif
