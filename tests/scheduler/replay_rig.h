/* What the tests of replay (T13) share: an entity `a` that replays, and what is logged about replays. */
#ifndef TESTS_SCHEDULER_REPLAY_RIG_H
#define TESTS_SCHEDULER_REPLAY_RIG_H

#include "rig_inside.h"
#include "rig_streams.h"

#define TEST(name) static void name(void **state_)

/* What enqueue does beside its work. */
enum trouble {
	NONE,
	RECORDS,
	ALLOCATES,
	EMITS,
	WAITS_OUTSIDE,
	USES_DEFAULT,
	LEAVES_UNJOINED,
	TAKES_NEW_STREAM,
	SETS_STREAM,
	REPLAYS_WITHIN,
	FAILS_IN_CAPTURE,
	TROUBLES
};

struct replay_work {
	enum trouble trouble;
	bool on_side;   /* a part of the work is on a named stream */
	unsigned calls; /* of enqueue */
	weir_fence outside;
	const void *key_from; /* NULL: the key has the addresses */
	size_t key_bytes;
};

extern struct replay_work work;

struct replay_said {
	_Atomic unsigned lines;
	char text[1000]; /* the last one */
};

extern struct replay_said said;

#define TICKS 40
#define CHAIN "source ticks=40 work=5us -> a:call"

const char *sums(void); /* what `end` receives then */

enum { SIDE = 4, KEYS = SIDE * SIDE };
extern int64_t blocks[2][SIDE];

void note_line(weir_log_level level, int64_t at, const char *line, void *arg); /* for weir_log_set */
struct rig *rig_for(const char *text);     /* forgets what was before; `a` adds 7 to its input by a replay */
struct rig *alternating(const char *text); /* `a` replays each pair of two times four blocks in turn */
void assert_last_blocks(void);             /* those that it wrote last */
weir_status take_turns(struct rig *rig, weir_context *context); /* three keys, 8 ticks each in turn */
weir_status replay_sum(struct rig *rig, weir_context *context);
weir_status enqueue_block(weir_context *context, weir_stream *stream, void *arg); /* arg: a rig_sum */

#endif
