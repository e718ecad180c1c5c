/*
 * A rig for conditions without a scheduler: the test fills the view, a struct, and reads the verdict. The
 * library's functions for both, those of scheduler/view.h too, are replaced by these, which are linked first.
 */
#ifndef TESTS_CONDITIONS_RIG_H
#define TESTS_CONDITIONS_RIG_H

#include "weir.h"

enum { RIG_PORTS = 4, RIG_FENCES = 4 };

struct rig_port {
	size_t count, least, take, room, emits, pending;
	bool any_size, unconnected, closed;
	int64_t oldest; /* when the oldest message was pushed */
	weir_fence fences[RIG_FENCES];
};

struct weir_view {
	int64_t now, began, started;
	uint64_t lost;
	weir_told told;
	weir_fence told_fence, next_fence; /* value 0: none */
	bool incomplete;                   /* all fences */
	unsigned used;                     /* calls of wr_view_fence_use */
	weir_watched watched;
	int64_t warn_after; /* of wr_view_watched */
	struct rig_port ports[RIG_PORTS];
	size_t in_flight; /* streams that an entity at its bound waits for; 0: it is below */
	unsigned clock_reads;
};

enum answer { NOTHING, READY, WAIT, NEVER };

struct weir_verdict {
	enum answer answer;
	const char *why;
	int64_t at; /* 0: no time */
	size_t fences;
	weir_fence last;
	bool external, watched;
	weir_cause cause;
	int port;
	size_t needed;
};

/* Parameters as text, "period=100 policy=no_catch_up_missed_ticks port=0,2"; ports by index. */
struct weir_values {
	const char *text;
};

struct rig {
	const weir_condition *kind;
	struct weir_view view;
	struct weir_verdict verdict;
	_Alignas(16) unsigned char state[1024];
};

struct rig rig_of(const weir_condition *kind, const char *parameters); /* started; ports empty */
enum answer rig_ask(struct rig *rig);
void rig_tick(struct rig *rig);                      /* a tick at view.now; asserts that it was ready */
void rig_tick_for(struct rig *rig, int64_t compute); /* compute advances view.now by that */

#endif
