/*
 * Silence on a simulated link (R7): for a drawn time nothing comes to a side, or to both, or a process stands
 * still; what was under way comes then, or a side has called the other one silent before. When each side
 * heard of the other last is known here from what the link brings, apart from what the sides keep of it
 * (beat.c).
 */
#include <string.h>

#include "base/clock.h"
#include "simulated_net.h"

/* What ticks take, and the way of a sign, together at most. */
#define LATE (250 * MS)

void quiet_hear(struct line *line, unsigned side)
{
	line->quiet.heard[side] = wr_now();
}

int64_t quiet_due(const struct line *line, unsigned side, int64_t due)
{
	return line && line->quiet.until[side] > due ? line->quiet.until[side] : due;
}

bool quiet_is(const struct line *line)
{
	return line->quiet.calm > wr_now() || (line->ends[0] && line->ends[0]->stands) ||
	       (line->ends[1] && line->ends[1]->stands);
}

/* A silence of less than half of `keepalive` is no loss. */
static void excuse(struct quiet *quiet, unsigned side, int64_t ns)
{
	if (ns >= quiet->keepalive[side] / 2)
		quiet->excused[side] = wr_now() + ns;
}

static int64_t longest(const int64_t of[2])
{
	return of[of[1] > of[0]];
}

/* Until all that a silence has held up has come, and signs of life have. */
static void set_calm(struct quiet *quiet, int64_t end)
{
	quiet->calm = wr_time_add(end, LATE + longest(quiet->keepalive));
}

static struct line *draw_line(void)
{
	struct line *chosen = NULL;
	unsigned count = 0;

	for (struct line *line = net.lines; line; line = line->next)
		if (line->welcomed && !line->cut && line->ends[0] && line->ends[1] && !quiet_is(line) &&
		    !net_draw(++count))
			chosen = line;
	return chosen;
}

/* One that is made in a silence waits, on the side that has accepted, for the other one to know it. */
void quiet_join(struct link *link)
{
	struct quiet *quiet = &link->line->quiet;
	unsigned side = link->side;
	int64_t now = wr_now(), end = longest(quiet->until);

	quiet->heard[side] = now;
	if (end > now) {
		set_calm(quiet, end);
		excuse(quiet, side, end - now);
	}
	beat_begin(&link->beat, quiet->keepalive[!side], now);
}

void quiet_begin(void)
{
	struct line *line = draw_line();
	int64_t ns = (1 + (int64_t)net_draw((unsigned)(net.plan.silence / MS))) * MS;
	struct quiet *quiet;

	if (!line)
		return;
	net.plan.silences--;
	quiet = &line->quiet;
	set_calm(quiet, wr_now() + ns);
	if (!net_draw(3)) {
		line->ends[net_draw(2)]->stands = ns;
		return;
	}
	for (unsigned side = 0, both = 1 + net_draw(3); side < 2; side++) {
		if (!(both >> side & 1))
			continue;
		quiet->until[side] = wr_now() + ns;
		excuse(quiet, side, ns);
	}
	memcpy(line->ends[SIMULATED_SENDER]->until, quiet->until, sizeof quiet->until);
}

void quiet_stand(struct link *link)
{
	struct line *line = link->line;
	int64_t ns = link->stands;

	if (!ns)
		return;
	if (line && line->welcomed && !link->told && !link->dead) {
		excuse(&line->quiet, !link->side, ns);
		set_calm(&line->quiet, wr_now() + ns);
		wr_thread_sleep(ns);
		line->quiet.stood[link->side] = wr_now();
	}
	link->stands = 0;
}

void quiet_check_named(const struct link *link, int64_t now)
{
	const struct quiet *quiet = &link->line->quiet;
	int64_t heard = quiet->heard[link->side];

	if (now - heard < quiet->keepalive[link->side])
		net.fails("the %s calls the other side silent, and has heard it %lld us ago",
			  net_name(link->side), (long long)(now - heard) / 1000);
	if (!link->line->stranger && !link->line->cut && !link->line->answered &&
	    quiet->excused[link->side] < heard)
		net.fails("the %s calls the other side silent, which stood still no moment",
			  net_name(link->side));
}

static void check_heard(const struct link *link)
{
	const struct quiet *quiet = &link->line->quiet;
	int64_t keepalive = quiet->keepalive[link->side], heard = quiet->heard[link->side], now = wr_now();

	if (!heard || keepalive <= 0 || now - heard <= keepalive + LATE ||
	    now - quiet->stood[link->side] <= LATE)
		return;
	net.fails("the %s has heard nothing for %lld ms, and does not call the other side silent",
		  net_name(link->side), (long long)(now - heard) / 1000000);
}

void quiet_check(void)
{
	for (const struct link *link = net.links; link; link = link->next)
		if (link->line && !link->line->answered && !link->inside && !link->told && !link->dead)
			check_heard(link);
}
