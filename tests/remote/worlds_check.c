#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worlds.h"

/* What that side says; NULL: another one does. */
static const char *said_by(const struct side *side, const char *line)
{
	size_t length = strlen(side->name);

	return !strncmp(line, side->name, length) && !strncmp(line + length, ": ", 2) ? line + length + 2
										      : NULL;
}

void hear(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)level, (void)arg;
	dst_put("%10.6f %s\n", (double)at / 1e9, line);
	for (unsigned i = 0; i < world.side_count; i++) {
		struct side *side = &world.sides[i];
		const char *said = said_by(side, line), *there = said ? strstr(said, "is there: ") : NULL;
		unsigned count;

		if (!said)
			continue;
		if (sscanf(there ? there : said,
			   there ? "is there: %u messages" : "%u of %*u messages were lost", &count) == 1)
			side->lost = count;
		side->away |= strstr(said, "the input has ended, and") != NULL;
	}
	if (strstr(line, "places are used")) /* what a right sender never does */
		dst_fails("%s", line);
}

static bool undisturbed(void)
{
	return !simulated_seen.cuts && !world.enough && !world.stopped && world.side_count == 2;
}

void check_end(struct side *side, const char *text)
{
	/* A right sender and a right receiver never say of each other that they are not. */
	static const char *const never[] = {"places are used", "answers what was not asked",
					    "is it a remote_", "fewer messages than", "cannot be:"};

	for (unsigned i = 0; i < sizeof never / sizeof never[0]; i++)
		if (strstr(text, never[i]))
			dst_fails("%s ends: %s", side->name, text);
	side->well = side->status == WEIR_OK && !side->stopped && !side->away && !world.enough;
	if (side->status && undisturbed())
		dst_fails("%s fails, and nothing has befallen it: %s", side->name, text);
	if (side->status && side->status != WEIR_E_FAILED && side->status != WEIR_E_IO &&
	    side->fate != IS_DRAINED)
		dst_fails("%s: %s: %s", side->name, weir_status_text(side->status), text);
	if (side->status && side->which == SIMULATED_RECEIVER && side->on_lost == ON_WAIT)
		dst_fails("the receiver waits for its sender, and fails: %s", text);
	if (side->status && side->which == SIMULATED_SENDER && side->on_lost == ON_DROP &&
	    side->fate != IS_DRAINED && world.came[life_of(side)])
		dst_fails("the sender drops what its receiver misses, and fails: %s", text);
	if (side->which == SIMULATED_RECEIVER && side->lost != simulated_seen.missed)
		dst_fails("the receiver says that %u messages are lost, and misses %u", side->lost,
			  simulated_seen.missed);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* What came to a sink, or is lost, is what was sent (R6). */
static void check_sum(const struct side *sender, const struct side *side, uint32_t least_sum,
		      uint32_t most_sum)
{
	uint32_t life = life_of(sender), sum = world.came[life] + side->lost;

	if (sum < least_sum || sum > most_sum)
		dst_fails("%u of %u messages of %s came, %u are lost, says %s", world.came[life],
			  world.sent[life], sender->name, side->lost, side->name);
}

/* died: receivers. What died with one had come to it, or counts as lost though it came, as with one that
 * another sender has had meanwhile. */
static void check_sender(const struct side *sender, uint32_t died)
{
	const struct side *receiver = &world.sides[SIMULATED_RECEIVER];
	uint32_t sent = world.sent[life_of(sender)];

	if (!sender->well)
		return;
	if (!receiver->well && !died)
		dst_fails("%s got its answer, and the receiver has not ended", sender->name);
	check_sum(sender, sender, sent - least(sent, died * (BEHIND + 1)),
		  sent + (died + simulated_seen.replaced) * world.credits);
}

/* What its drain drops before the two first meet is lost to the sender alone. */
static bool may_drop_first(const struct side *sender)
{
	return sender->fate == IS_DRAINED && sender->on_lost == ON_DROP;
}

/* Of two processes. */
static void check_pair(const struct side *sender, const struct side *receiver)
{
	uint32_t sent = world.sent[life_of(sender)], told = sent - simulated_seen.first;

	if (receiver->well && !receiver->life && !sender->life)
		check_sum(sender, receiver, told, told);
	/* One that does not wait for its sender ends well without an answer, if it has all. */
	if (receiver->well && sender->status && sender->on_lost == ON_WAIT && !sender->life &&
	    !sender->stopped && !simulated_seen.done_lost &&
	    (receiver->on_lost == ON_WAIT || !simulated_seen.cuts))
		dst_fails("the receiver has answered, and the sender fails");
	if (world.enough && !simulated_seen.cuts && !world.stopped && !world.closed && sender->status)
		dst_fails("the receiver takes no more, and the sender fails");
	if (world.closed && world.beside == BESIDE_LONG && (sender->status || sent > world.queued))
		dst_fails("the receiver takes nothing, and the sender has not heard it");
}

void check_all(void)
{
	const struct side *receiver = &world.sides[SIMULATED_RECEIVER];
	uint32_t died = receiver->life + receiver->stopped, came = 0, next = 0;
	bool drops = false;

	for (unsigned i = 0; i < world.side_count; i++)
		if (world.sides[i].which == SIMULATED_SENDER) {
			check_sender(&world.sides[i], died);
			drops |= may_drop_first(&world.sides[i]);
		}
	if (world.side_count == 2)
		check_pair(&world.sides[SIMULATED_SENDER], receiver);
	for (unsigned life = 0; life < SENDERS * LIVES; life++) {
		came += world.came[life];
		next += world.next[life];
	}
	if (!died && !world.enough && came != simulated_seen.received)
		dst_fails("the receiver got %u messages, and emitted %u", simulated_seen.received, came);
	if (simulated_seen.first && !receiver->life && !drops)
		dst_fails("the first hello says that %u messages were sent before", simulated_seen.first);
	if (simulated_seen.greeted == 1 && came && next != came + simulated_seen.first)
		dst_fails("%u of %u messages came by one connection", came, next);
	if (came && world.changes >= simulated_seen.greeted)
		dst_fails("messages of several senders are mixed");
}
