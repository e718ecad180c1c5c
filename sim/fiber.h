/*
 * A world from the inside: fibers of one thread, of which one runs; the others are ready or blocked. Private
 * to sim.
 *
 * At a switching point the world's strategy (sim/strategy.c) chooses the next fiber, and the current one
 * switches straight to it. The thread that drives the world is one more coroutine (`driver`). It is switched
 * to when fn has returned, when no fiber can ever run (deadlock) or after too many switching points
 * (livelock); after the latter two the world is broken and can only be destroyed.
 *
 * A fiber blocks on the address of what it waits for. A fiber that changes the object wakes all that wait for
 * it, and they check again: the strategy, not the order of arrival, decides which one gets it. All fibers run
 * in one thread, so there are no locks and no atomics, and no other fiber runs between two switching points.
 *
 * A fiber that yields waits for others: the strategy prefers another one. If for a while all ready fibers
 * only yield, they wait for time, and it advances as if they all slept.
 */
#ifndef WR_SIM_FIBER_H
#define WR_SIM_FIBER_H

#include "base/fiber.h"
#include "sim/coroutine.h"
#include "sim/random.h"
#include "sim/simulation.h"

enum { WR_FIBER_NAME_BYTES = 16, WR_PCT_DEPTH = 3 };

enum wr_waits_for { WR_FOR_NOTHING, WR_FOR_TIME, WR_FOR_MUTEX, WR_FOR_COND, WR_FOR_TOKEN, WR_FOR_END };

struct wr_fiber {
	struct wr_coroutine coroutine;
	struct wr_here here; /* while it is suspended */
	struct wr_sim *sim;
	size_t place;   /* in sim->fibers */
	uint64_t index; /* number in the order of creation; hashed */
	void (*fn)(void *arg);
	void *arg;
	enum wr_waits_for what;
	const void *object; /* what it waits for; NULL while it is ready */
	int64_t until;
	bool ready, done;
	bool late;               /* it was woken by its time-out */
	uint64_t epoch;          /* the world's epoch in which the next two were counted */
	unsigned yields, points; /* yields in this epoch; points since the last one */
	uint64_t priority;       /* PCT */
	char name[WR_FIBER_NAME_BYTES];
	uint64_t role; /* a hash of its name: equal for fibers that do the same */
	struct wr_last_error error;
};

enum wr_manner { WR_GOES_ON, WR_YIELDS, WR_BLOCKS };

typedef struct wr_fiber *wr_strategy_next(struct wr_sim *sim, struct wr_fiber *self, enum wr_manner manner);

struct wr_sim {
	wr_strategy_next *next;
	/* started and not joined; `ready` has room for as many */
	struct wr_fiber **fibers;
	struct wr_fiber **ready;
	size_t fiber_count, fiber_room, ready_count, ready_room;
	struct wr_fiber driver;
	struct wr_fiber *main; /* runs the fn of wr_sim_call; NULL outside of it */
	/* main's record; embedded, so that wr_sim_call needs no memory: objects are also freed in it */
	struct wr_fiber visitor;
	struct wr_fiber *ended; /* it has ended, but its stack is not released yet */
	weir_status broken;
	struct wr_fiber *broken_by; /* the fiber that reached the limit */
	int64_t now;
	uint64_t next_index, switches, begun, allowance, hash; /* begun: switches when the call began */
	uint64_t epoch; /* grows when a fiber becomes ready or not ready */
	struct wr_random schedule, world;
	unsigned stay;                  /* uniform: chance of 256 */
	uint64_t quantum, turn;         /* round robin: points per fiber, and left for this one */
	uint64_t floor, streak;         /* PCT: the lowest priority; points in a row of one fiber */
	uint64_t changes[WR_PCT_DEPTH]; /* PCT: numbers of the choices at which a priority drops */
	uint64_t choices;
	struct wr_random pausing;
	unsigned pauses;   /* left */
	uint64_t pause_in; /* a pause comes at one of so many points */
	uint64_t pause_ns; /* at most */
	/* fibers with role % pause_of == pause_role are paused: all, or some that do the same */
	uint64_t pause_of, pause_role;
	unsigned paused;            /* number of fibers paused now */
	void (*at_rest)(void *arg); /* wr_sim_at_rest; NULL: none */
	void *at_rest_arg;
};

/* Called by the fiber `self` that runs, or by the driver where that is said. */
void wr_fiber_point(struct wr_fiber *self); /* a switching point */
/* Waits until a fiber wakes those that wait for the object; returns false if `until` has passed first. */
bool wr_fiber_block(struct wr_fiber *self, enum wr_waits_for what, const void *object, int64_t until);
void wr_fiber_make_ready(struct wr_fiber *fiber);
void wr_fiber_wake_all(struct wr_sim *sim, const void *object);
/* Switches to another fiber; returns when this one is chosen again. The driver calls it to start the world.
 */
void wr_fiber_leave(struct wr_fiber *self);

/* Makes room for one more fiber, and for main, which may be added later. */
weir_status wr_fiber_reserve(struct wr_sim *sim);
weir_status wr_fiber_add_main(struct wr_sim *sim, void (*fn)(void *arg), void *arg);
void wr_fiber_remove(struct wr_fiber *fiber); /* it has ended, or its world is destroyed */

/* Of the world's table (base/fiber.h). */
weir_status wr_fiber_start(struct wr_fiber **out, const char *name, void (*fn)(void *arg), void *arg);
void wr_fiber_join(struct wr_fiber *fiber);
void wr_fiber_yield(void);
void wr_fiber_sleep(int64_t ns);

/* sim/strategy.c: draws from the seed how the world chooses fibers, and where it pauses them. */
void wr_strategy_draw(struct wr_sim *sim, enum wr_sim_strategy strategy, uint64_t seed);

#endif
