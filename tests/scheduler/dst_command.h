/*
 * What dst_claims and dst_held share: the command line, a world of a seed, and what is promised of blocks and
 * messages in both.
 */
#ifndef TESTS_SCHEDULER_DST_COMMAND_H
#define TESTS_SCHEDULER_DST_COMMAND_H

#include "base/clock.h"
#include "base/thread.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "sim/random.h"
#include "streams/host/sim.h"
#include "streams/signal.h"
#include "streams/system.h"
#include "tests/bugs/bug.h"

#define US INT64_C(1000)
#define MS (1000 * US)

/* Of the present world: its graph, and the first broken promise. */
struct dst_said {
	char json[8192], broken[512];
};
extern struct dst_said dst_said;

void dst_fails(const char *format, ...) WEIR_PRINTF(1, 2);
void dst_put(const char *format, ...) WEIR_PRINTF(1, 2); /* appends to `json` */

struct dst_command {
	const char *name;
	const char *shapes[8]; /* the list ends with NULL */
	unsigned *shape;       /* the chosen one */
	void (*draw)(uint64_t seed);
	void (*run)(
		void); /* in a world; it returns early if a promise is broken: then the world is abandoned */
	/* Looks while the world is at rest and a run is open. */
	void (*look)(weir_scheduler *scheduler);
	weir_scheduler **scheduler; /* of the world; NULL: none now */
};
int dst_command(const struct dst_command *command, int argc, char **argv);

/* A scheduler on `sim` whose device and driver take random times. */
weir_status dst_make_scheduler(weir_graph *graph, weir_scheduler_options options, weir_scheduler **out);
/*
 * A block for a tick. `device`: a kernel works on it for a while, and finds out if another message gets the
 * block meanwhile.
 */
weir_status dst_make_block(weir_context *context, struct wr_random *random, bool on_host, bool device,
			   weir_message **out);
/* S3, for `look`: no entity is parked while a pool has what it was refused. */
void dst_check_pools(weir_scheduler *scheduler);
/* No entity could go on after a run that ended by itself: certificate.h. */
void dst_check_over(weir_scheduler *scheduler);
/* E5 of all queues; returns how many messages they still hold. Between two runs. */
uint64_t dst_left_over(weir_scheduler *scheduler);

#endif
