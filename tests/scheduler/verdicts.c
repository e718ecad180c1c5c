/*
 * The verdicts of several conditions become one (C2, C3), also beside gates (C8), and what a condition says
 * without the words or beside what it may.
 */
#include <string.h>

#include "base/thread.h"
#include "rig.h"
#include "rig_streams.h"

/* --- conditions --- */

static _Atomic int asked;
static _Atomic bool allowed;
static int64_t until_at; /* of `timed` and `once` */
static weir_fence fences[2];

static void ask_never(const void *state, const weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_never(verdict, "not wanted");
}

static void ask_nothing(const void *state, const weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

static void ask_silently(const void *state, const weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (wr_load(&allowed))
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, NULL);
}

static void ask_timed(const void *state, const weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_now(view) >= until_at)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, until_at);
}

/* Names a time that has come once before each tick. */
static void ask_once(const void *state, const weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (wr_fetch_add(&asked, 1) % 2)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, until_at);
}

static void ask_fence(const weir_view *view, weir_verdict *verdict, size_t i, int64_t at)
{
	if (!weir_fence_query(weir_entity_graph(weir_view_entity(view)), fences[i])) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_fence(verdict, fences[i]);
	if (at)
		weir_verdict_until(verdict, at);
}
