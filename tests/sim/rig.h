/* What the tests of sim/ share: a world, and what its fibers saw. */
#ifndef TESTS_SIM_RIG_H
#define TESTS_SIM_RIG_H

#include "base/thread.h"
#include "sim/simulation.h"
#include "tests/base/test.h"

#define SECOND INT64_C(1000000000)
enum { RIG_SEEDS = 200 };

/* No assertions inside of a world, since cmocka jumps out of it: fibers note here what they see. */
struct notes {
	struct wr_sim *sim;
	struct wr_mutex mutex;
	struct wr_cond cond;
	struct wr_parker parker, back;
	struct wr_thread thread;
	int64_t at[8];
	int count, inside, most;
	bool flag, wrong;
	char order[16];
	uint64_t hash;
};

struct notes *rig_begin(uint64_t seed, enum wr_sim_strategy strategy);
void rig_end(struct notes *notes);
weir_status rig_call(struct notes *notes, void (*fn)(void *arg));
/* Runs in worlds of many seeds, and so under all strategies. */
void rig_each_seed(void (*fn)(void *arg), void (*check)(struct notes *notes));
/* What fibers do; the argument is the notes. */
void rig_go_in(void *arg);
void rig_crowd(void *arg);
void rig_sleep_an_hour(void *arg);
void rig_answer(void *arg);
void rig_ask(void *arg);
void rig_wait_for_flag(void *arg);
void rig_raise_flag(void *arg);

#endif
