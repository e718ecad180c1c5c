#include "rig.h"

#include "base/clock.h"
#include "base/memory.h"

struct notes *rig_begin(uint64_t seed, enum wr_sim_strategy strategy)
{
	struct notes *notes = wr_alloc(1, sizeof(*notes));

	assert_int_equal(wr_sim_create(&notes->sim, seed, strategy), WEIR_OK);
	wr_mutex_init(&notes->mutex);
	wr_cond_init(&notes->cond);
	return notes;
}

void rig_end(struct notes *notes)
{
	wr_sim_destroy(notes->sim);
	wr_cond_finish(&notes->cond);
	wr_mutex_finish(&notes->mutex);
	wr_free(notes);
}

weir_status rig_call(struct notes *notes, void (*fn)(void *arg))
{
	return wr_sim_call(notes->sim, fn, notes);
}

void rig_each_seed(void (*fn)(void *arg), void (*check)(struct notes *notes))
{
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		struct notes *notes = rig_begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(rig_call(notes, fn), WEIR_OK);
		check(notes);
		rig_end(notes);
	}
}

/* --- what fibers do --- */

void rig_go_in(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 5; i++) {
		wr_mutex_lock(&notes->mutex);
		if (++notes->inside > notes->most)
			notes->most = notes->inside;
		wr_thread_yield();
		notes->inside--;
		notes->count++;
		wr_mutex_unlock(&notes->mutex);
	}
}

void rig_crowd(void *arg)
{
	struct wr_thread threads[3];

	for (int i = 0; i < 3; i++)
		wr_thread_start(&threads[i], "goes in", rig_go_in, arg);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
}

void rig_sleep_an_hour(void *arg)
{
	struct notes *notes = arg;

	notes->at[0] = wr_now();
	weir_sleep(3600 * SECOND);
	notes->at[1] = wr_now();
}

void rig_answer(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 20; i++) {
		wr_park(&notes->parker, WR_FOREVER);
		wr_unpark(&notes->back);
	}
}

void rig_ask(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "answers", rig_answer, notes);
	for (int i = 0; i < 20; i++) {
		wr_unpark(&notes->parker);
		notes->count += wr_park(&notes->back, wr_now() + SECOND);
	}
	wr_thread_join(&notes->thread);
}

void rig_wait_for_flag(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	while (!notes->flag)
		wr_cond_wait(&notes->cond, &notes->mutex, WR_FOREVER);
	notes->count++;
	wr_mutex_unlock(&notes->mutex);
}

void rig_raise_flag(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	notes->flag = true;
	wr_cond_broadcast(&notes->cond);
	wr_mutex_unlock(&notes->mutex);
}
