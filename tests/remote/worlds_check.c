#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worlds.h"

void hear(weir_log_level level, int64_t at, const char *line, void *arg)
{
	const char *said;
	unsigned count;

	(void)level, (void)arg;
	dst_put("%10.6f %s\n", (double)at / 1e9, line);
	if (!strncmp(line, "receive: ", 9) && (said = strstr(line, "is there: ")) &&
	    sscanf(said, "is there: %u messages", &count) == 1)
		world.sides[SIMULATED_RECEIVER].lost = count;
	else if (sscanf(line, "send: %u of %*u messages were lost", &count) == 1)
		world.sides[SIMULATED_SENDER].lost = count;
	else if (strstr(line, "send: the input has ended, and"))
		world.sides[SIMULATED_SENDER].away = true;
	if (strstr(line, "places are used")) /* what a right sender never does */
		dst_fails("%s", line);
}

static const char *name(const struct side *side)
{
	return side->which == SIMULATED_SENDER ? "sender" : "receiver";
}

static bool undisturbed(void)
{
	return !simulated_seen.cuts && !world.enough && !world.stopped;
}

void check_end(struct side *side, const char *text)
{
	/* A right sender and a right receiver never say of each other that they are not. */
	static const char *const never[] = {"places are used", "answers what was not asked",
					    "is it a remote_", "fewer messages than", "cannot be:"};

	for (unsigned i = 0; i < sizeof never / sizeof never[0]; i++)
		if (strstr(text, never[i]))
			dst_fails("the %s ends: %s", name(side), text);
	side->well = side->status == WEIR_OK && !side->stopped && !side->away && !world.enough;
	if (side->status && undisturbed())
		dst_fails("the %s fails, and nothing has befallen it: %s", name(side), text);
	if (side->status && side->status != WEIR_E_FAILED && side->status != WEIR_E_IO &&
	    side->fate != IS_DRAINED)
		dst_fails("the %s: %s: %s", name(side), weir_status_text(side->status), text);
	if (side->status && side->which == SIMULATED_RECEIVER && side->on_lost == ON_WAIT)
		dst_fails("the receiver waits for its sender, and fails: %s", text);
	if (side->status && side->which == SIMULATED_SENDER && side->on_lost == ON_DROP &&
	    world.came[side->life])
		dst_fails("the sender drops what its receiver misses, and fails: %s", text);
}

/* What came to a sink, or is lost, is what was sent (R6). */
static void check_sum(const struct side *side, uint32_t least, uint32_t most)
{
	uint32_t life = world.sides[SIMULATED_SENDER].life, sum = world.came[life] + side->lost;

	if (sum < least || sum > most)
		dst_fails("%u of %u messages came, %u are lost, says the %s", world.came[life],
			  world.sent[life], side->lost, name(side));
}

void check_both(void)
{
	const struct side *sender = &world.sides[SIMULATED_SENDER],
			  *receiver = &world.sides[SIMULATED_RECEIVER];
	uint32_t sent = world.sent[sender->life], died = receiver->life + receiver->stopped;

	if (sender->well && !receiver->well && !died)
		dst_fails("the sender got its answer, and the receiver has not ended");
	if (sender->well) /* what died with a receiver had come to it, or counts as lost though it came */
		check_sum(sender, sent - (sent < died * (BEHIND + 1) ? sent : died * (BEHIND + 1)),
			  sent + died * world.credits);
	if (receiver->well && !receiver->life && !sender->life)
		check_sum(receiver, sent, sent);
	/* One that does not wait for its sender ends well without an answer, if it has all. */
	if (receiver->well && sender->status && sender->on_lost == ON_WAIT && !sender->life &&
	    !sender->stopped && !simulated_seen.done_lost &&
	    (receiver->on_lost == ON_WAIT || !simulated_seen.cuts))
		dst_fails("the receiver has answered, and the sender fails");
	if (!died && !world.enough &&
	    world.came[0] + world.came[1] + world.came[2] != simulated_seen.received)
		dst_fails("the receiver got %u messages, and emitted %u", simulated_seen.received,
			  world.came[0] + world.came[1] + world.came[2]);
	if (simulated_seen.greeted == 1 && world.next[0] != world.came[0])
		dst_fails("%u of %u messages came by one connection", world.came[0], world.next[0]);
	if (world.enough && !simulated_seen.cuts && !world.stopped && sender->status)
		dst_fails("the receiver takes no more, and the sender fails");
}
