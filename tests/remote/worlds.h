/* A world of joined processes: worlds.c draws and runs it, worlds_check.c says what must hold. */
#ifndef TESTS_REMOTE_WORLDS_H
#define TESTS_REMOTE_WORLDS_H

#include "base/thread.h"
#include "simulated.h"
#include "tests/scheduler/dst_command.h"

enum {
	LIVES = 3, /* of a process, at most */
	SENDERS = 2,
	TIMEOUT = 12, /* s that a sender waits for its receiver */
	BEHIND = 2,   /* capacity behind the receiver */
	BESIDE_LONG = 10 * TIMEOUT,
};

#define LIMIT (120 * 1000 * MS) /* after which what has not ended stands still */
#define GRACE (2 * 1000 * MS)   /* that a receiver waits for a sender that does not come again */

enum on_lost { ON_FAIL, ON_WAIT, ON_DROP };
enum fate { LIVES_ON, IS_DRAINED, IS_STOPPED, DIES };

/* What a message has: which life of which sender made it (life_of), and its number in that. */
struct letter {
	uint32_t life, number;
};

struct side {
	enum simulated_side which;
	unsigned number;  /* of the sender */
	const char *name; /* of the entity that has the link */
	enum on_lost on_lost;
	enum fate fate;                      /* of all lives but the last of several */
	uint32_t workers, life, lives, spin; /* spin: us */
	uint32_t keepalive;                  /* ms */
	int64_t begins_after, fate_after;
	struct wr_random random;
	struct wr_thread fiber;
	weir_graph *graph;
	weir_scheduler *scheduler;
	/* how its last life ended */
	weir_status status;
	bool stopped; /* by the user, or it died */
	bool well;    /* by itself, at the end of all that was sent */
	bool away;    /* the receiver was, at the end of what is sent */
	int64_t over;
	unsigned greeted; /* hellos that were answered before this life */
	uint32_t lost;    /* messages, that it counts */
};

struct world {
	uint64_t seed;
	struct wr_random shape;
	uint32_t count, credits, source_slow, sink_slow; /* slow: per cent of ticks */
	uint32_t queued;                                 /* at the sender, at most */
	uint32_t blocks;                                 /* of the receiver's memory pool; 0: it has none */
	bool batches;                                    /* a tick sends and emits several */
	uint32_t source_beat, sink_beat;                 /* ms between two of its ticks; 0: none */
	uint32_t packs;                                  /* per cent of messages that have parts */
	uint32_t enough;                                 /* messages that the sink takes; 0: all */
	uint32_t beside; /* ticks of what goes on beside the receiver, five a second; 0: nothing does */
	bool closed;     /* the sink takes no message at all */
	struct simulated_plan plan;
	/* by simulated_side; the last one is a second sender, which is not in each world */
	struct side sides[1 + SENDERS];
	unsigned side_count;
	weir_registry *registry;
	/* of each life of a sender: emitted to it; came, and the next number that may come */
	uint32_t sent[SENDERS * LIVES], came[SENDERS * LIVES], next[SENDERS * LIVES];
	uint32_t newest[SENDERS], taken;
	uint32_t last, changes; /* which life what came last is of, + 1; how often that was another one */
	bool stopped;           /* a process was, or died */
};

extern struct world world;

static inline uint32_t life_of(const struct side *sender)
{
	return sender->number * LIVES + sender->life;
}

/* The log of the world: what each side counts as lost. */
void hear(weir_log_level level, int64_t at, const char *line, void *arg);
/* A life of the side is over. */
void check_end(struct side *side, const char *text);
/* All are. */
void check_all(void);

#endif
