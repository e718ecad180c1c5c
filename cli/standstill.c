/* Why a run stands still: told on SIGUSR1, and after a time without a tick. */
#include <signal.h>

#include "cli/cli.h"

/* While the run drains or is cut short, without being asked: a compute that hangs is named. */
#define DRAIN_PATIENCE_NS 5000000000

static volatile sig_atomic_t asked;

static void on_question(int number)
{
	(void)number;
	asked = 1;
}

void cli_standstill_listen(void)
{
	struct sigaction action = {.sa_handler = on_question, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

static void tell(const char *since, weir_scheduler *scheduler)
{
	char *text = NULL;

	if (weir_scheduler_why(scheduler, &text))
		cli_say("%s", weir_last_error());
	else
		cli_say("%s%s", since, *text ? text : "nothing waits");
	weir_text_free(text);
}

/* A drain that is not asked about is given its own time from its beginning. */
static bool begins_anew(struct cli_standstill *standstill, uint64_t ticks, bool stopping)
{
	bool anew = ticks != standstill->ticks || (stopping && !standstill->stopping && !standstill->after_ns);

	standstill->ticks = ticks;
	standstill->stopping = stopping;
	return anew;
}

/* Once for each time that it stands. */
static bool stands(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns)
{
	int64_t after = standstill->after_ns;
	bool stopping = weir_scheduler_stopping(scheduler);
	uint64_t ticks, frames;

	if (!after && stopping)
		after = DRAIN_PATIENCE_NS;
	cli_frames(scheduler, &ticks, &frames);
	if (begins_anew(standstill, ticks, stopping)) {
		standstill->stood_ns = 0;
		standstill->told = false;
	}
	standstill->stood_ns += turn_ns;
	return after && !standstill->told && standstill->stood_ns >= after;
}

void cli_standstill_look(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns)
{
	bool question = asked;
	char since[48] = "", time[24];

	asked = 0;
	if (stands(standstill, scheduler, turn_ns)) {
		snprintf(since, sizeof since, "no tick for %s: ", cli_duration(time, standstill->stood_ns));
		standstill->told = question = true;
	}
	if (question)
		tell(since, scheduler);
}
