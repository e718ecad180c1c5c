/*
 * Replay of an entity's work (T13): what an operator enqueues for a key is captured once, and launched in
 * later ticks. Thread, for all functions: the entity's owner.
 */
#ifndef WR_SCHEDULER_REPLAY_H
#define WR_SCHEDULER_REPLAY_H

#include "weir.h"

struct wr_replays; /* of an entity: its keys, in entity->replays; NULL: it has replayed nothing */

/*
 * Call at the end of a tick, after its streams were fenced and while streams.current is still that of the
 * tick: executables that it launched live until its fence is complete.
 */
void wr_replays_end_tick(weir_entity *entity);
/* Call before the entity's streams are closed: forgets all keys. Executables in flight end with the system.
 */
void wr_replays_close(weir_entity *entity);

#endif
