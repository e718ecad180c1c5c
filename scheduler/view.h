/*
 * The door of scheduler/ for conditions/: what the built-in kinds ask beside weir.h. These kinds say what the
 * scheduler also finds by itself, for ports without a condition and in reviews that ask none; so each of
 * these questions has one answer, here. Ports are those of the condition's values. Thread, for all functions:
 * the entity's owner.
 */
#ifndef WR_SCHEDULER_VIEW_H
#define WR_SCHEDULER_VIEW_H

#include "weir.h"

/* SILENT: a condition gave no verdict yet. MISUSED: it gave READY or NEVER together with another verdict. */
enum wr_answer { WR_READY, WR_WAIT, WR_NEVER, WR_SILENT, WR_MISUSED };

/*
 * READY: the port holds `needed` messages (0: what a tick takes), an any-size port in each queue; or it has
 * no connection. NEVER: it will not hold them again, as weir_view_ended says. Else WAIT: a message pokes.
 */
enum wr_answer wr_view_messages(weir_view *view, unsigned input, size_t needed);
/* Returns true if the port is an any-size one. */
bool wr_view_any_size(weir_view *view, unsigned input);
/*
 * Of an `aligned` (C12): chooses the messages of the next tick. A review drops those without a partner; a
 * look does not. Call the other in `ticked`.
 */
void wr_view_align(weir_view *view, weir_verdict *verdict);
void wr_view_align_ticked(weir_view *view);
/*
 * When the oldest message of the port was pushed; INT64_MAX: it has none. Of a port whose plan is `timed`: it
 * looks at each of its queues.
 */
int64_t wr_view_oldest_at(weir_view *view, unsigned input);
/*
 * Returns true if each live `block` queue of the port has room for `needed` messages (0: what a tick may
 * emit).
 */
bool wr_view_has_room(weir_view *view, unsigned output, size_t needed);
/*
 * Returns true if work for messages of the port's front is not finished: the verdict is then a wait for its
 * fences.
 */
bool wr_view_wait_for_device(weir_view *view, unsigned input, weir_verdict *verdict, const char *why);
/*
 * The fences that an entity at its bound of ticks in flight waits for (T8), the latest of each stream:
 * returns how many, writes at most `room` of them; 0: fewer ticks than the bound are in flight.
 */
size_t wr_view_flight_pending(weir_view *view, size_t room, weir_fence *out);

/*
 * The fence that weir_entity_tell_fence told this condition last; NULL if none was told in this run or before
 * its start. Borrowed for the call.
 */
const weir_fence *wr_view_fence_told(weir_view *view);
/* Likewise the oldest one that no tick has used; further ones that are told meanwhile replace each other. */
const weir_fence *wr_view_fence_next(weir_view *view);
/*
 * The fence that the condition was told, which either of these gave, is complete: it stays so, also when it
 * is stale (T17).
 */
void wr_view_fence_done(weir_view *view, weir_fence fence);
bool wr_view_is_promise(weir_fence fence); /* the program completes it (T17) */
/* Only inside ticked: the tick has used the fence that wr_view_fence_next gave to the review before it. */
void wr_view_fence_use(weir_view *view);
/* Only inside ticked: adds to the entity's count of due ticks that will never run. */
void wr_view_add_lost(weir_view *view, uint64_t ticks);
/* As weir_view_watched. A wait for the descriptor that is as long is logged, and its end; 0: none is. */
weir_watched wr_view_watched(weir_view *view, int64_t warn_after);

/* The answer of the any_of that is asked: of its conditions the first that holds will do (C11). */
void wr_view_ask_any_of(weir_view *view, weir_verdict *verdict);
/* Only inside ticked: tells those of its conditions that held of the tick. */
void wr_view_any_of_ticked(weir_view *view);

#endif
