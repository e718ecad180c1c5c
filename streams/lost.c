/*
 * Lost callbacks: the work that a signal waits for has been complete for a second, and it has not fired.
 * Thread: the loop, which alone gives signals back, so that one which has waited for long stays what it is
 * meanwhile.
 */
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"

#define LOST_AFTER 1000000000

static bool all_complete(struct wr_system *system, const weir_fence *fences, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (wr_fence_query(system, fences[i]))
			return false;
	return true;
}

/* A copy of its fences, if it is armed for long: asking the device goes without the lock. Free with wr_free.
 */
static weir_fence *copy_fences(struct wr_signal *signal, int64_t now, size_t *n)
{
	struct wr_signals *signals = &signal->system->signals;
	weir_fence *copy = NULL;

	wr_mutex_lock(&signals->lock);
	if (wr_load(&signal->token) && now - signal->armed_at >= LOST_AFTER)
		copy = wr_alloc(signal->count, sizeof *copy);
	*n = copy ? signal->count : 0;
	for (size_t i = 0; i < *n; i++)
		copy[i] = signal->fences[i];
	wr_mutex_unlock(&signals->lock);
	return copy;
}

struct look {
	int64_t now;
	bool lost;
};

static void look_at(struct wr_signal *signal, void *arg)
{
	struct look *look = arg;
	struct wr_system *system = signal->system;
	wr_token token = wr_load(&signal->token);
	size_t n;
	weir_fence *fences = token && wr_token_outstanding(token) ? copy_fences(signal, look->now, &n) : NULL;

	if (!fences)
		return;
	if (!all_complete(system, fences, n))
		signal->complete_at = 0;
	else if (!signal->complete_at)
		signal->complete_at = look->now;
	else if (look->now - signal->complete_at >= LOST_AFTER && wr_token_outstanding(token) &&
		 !look->lost) {
		look->lost = true;
		wr_fail(WEIR_E_DEVICE, "callback lost: the work of '%s' has been complete for 1 s",
			wr_fence_producer(system, fences[0], NULL));
	}
	wr_free(fences);
}

weir_status wr_signals_look(struct wr_system *system, int64_t now)
{
	struct look look = {now, false};

	if (wr_load(&system->signals.pending))
		wr_signals_each(system, look_at, &look);
	if (look.lost)
		wr_system_fail(system, weir_last_error());
	return wr_system_failed(system) ? wr_system_dead(system) : WEIR_OK;
}
