#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST         64
#define MOST_CANDIDATES 10000 /* bounds the time for one hint */

static unsigned char to_lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* The Levenshtein distance, ignoring case, of words of at most LONGEST bytes. */
static unsigned edit_distance(const char *a, const char *b, size_t length)
{
	unsigned row[LONGEST + 1];

	for (size_t j = 0; j <= length; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i]; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < length; j++) {
			unsigned least = diagonal + (to_lower(a[i]) != to_lower(b[j]));
			diagonal = row[j + 1];
			least = row[j] + 1 < least ? row[j] + 1 : least;
			row[j + 1] = diagonal + 1 < least ? diagonal + 1 : least;
		}
	}
	return row[length];
}

/* Terms of Holoscan and GXF, and former names, with their names here; `ours` NULL: there is none, and `why`.
 */
static const struct {
	const char *theirs, *ours, *why;
} terms[] = {
	{"initial", "initial_messages", NULL},
	{"spin", "worker_spin", NULL},
	{"dev_id", "device", NULL},
	{"stream_flags", "flags", NULL},
	{"stream_priority", "priority", NULL},
	{"receiver", "port", NULL},
	{"receivers", "ports", NULL},
	{"transmitter", "port", NULL},
	{"recess_period", "period", NULL},
	{"worker_thread_number", "workers", NULL},
	{"stop_on_deadlock_timeout", "deadlock_grace", NULL},
	{"max_duration_ms", "max_duration", NULL},
	{"MessageAvailableCondition", "message_available", NULL},
	{"MultiMessageAvailableCondition", "multi_message_available", NULL},
	{"MultiMessageAvailableTimeoutCondition", "multi_message_available", NULL},
	{"ExpiringMessageAvailableCondition", "expiring_message_available", NULL},
	{"DownstreamMessageAffordableCondition", "downstream_message_affordable", NULL},
	{"CudaStreamCondition", "cuda_stream", NULL},
	{"OrConditionCombiner", "any_of", NULL},
	{"CountCondition", "count", NULL},
	{"PeriodicCondition", "periodic", NULL},
	{"BooleanCondition", "boolean", NULL},
	{"AsynchronousCondition", "asynchronous", NULL},
	{"CudaStreamPool", "stream_pool", NULL},
	{"CudaGreenContextPool", "green_context_pool", NULL},
	{"CudaGreenContext", "green_context", NULL},
	{"pin_cores", NULL, "pin the threads with taskset"},
	{"pin_operator", NULL, "any worker runs any entity"},
	{"stop_on_deadlock", NULL, "a deadlock ends the run, unless \"deadlock_grace\" is -1"},
	{"check_recession_period_ms", NULL, "nothing is polled"},
	{"queue_id", NULL, "an any-size port has one queue per connection"},
};

static size_t term_of(const char *wanted)
{
	size_t i = 0;

	while (i < sizeof terms / sizeof terms[0] && strcmp(terms[i].theirs, wanted))
		i++;
	return i;
}

/* Accepts edits of a third of the word, two in a short word, but never of the whole word. */
void wr_nearest_try(struct wr_nearest *nearest, const char *candidate)
{
	size_t wanted = strlen(nearest->wanted), length = candidate ? strlen(candidate) : 0;
	size_t most = wanted < 6 ? 2 : wanted / 3, term = term_of(nearest->wanted);
	unsigned here;

	if (length && term < sizeof terms / sizeof terms[0] && terms[term].ours &&
	    !strcmp(terms[term].ours, candidate)) { /* our name of the wanted Holoscan or GXF term */
		nearest->best = candidate;
		nearest->distance = 0;
		return;
	}
	if (!length || wanted > LONGEST || length > LONGEST || ++nearest->seen > MOST_CANDIDATES)
		return;
	if (length > wanted + most || wanted > length + most)
		return;
	here = edit_distance(nearest->wanted, candidate, length);
	if (here > most || here >= wanted || (nearest->best && here >= nearest->distance))
		return;
	nearest->best = candidate;
	nearest->distance = here;
}

struct wr_shown wr_nearest_hint(const struct wr_nearest *nearest)
{
	struct wr_shown hint = {{0}};
	size_t i = term_of(nearest->wanted);

	if (i < sizeof terms / sizeof terms[0] && terms[i].why)
		snprintf(hint.text, sizeof(hint.text), " (%s)", terms[i].why);
	else if (nearest->best)
		snprintf(hint.text, sizeof(hint.text), " (did you mean '%.64s'?)", nearest->best);
	return hint;
}

void wr_offer_add(struct wr_offer *offer, const char *name)
{
	struct wr_words list = {offer->text, sizeof(offer->text), offer->length};

	if (offer->length)
		wr_words_add(&list, ", %s", name);
	else
		wr_words_add(&list, " (%ss: %s", offer->what, name);
	offer->length = list.length;
}

const char *wr_offer_hint(struct wr_offer *offer, const struct wr_nearest *nearest)
{
	size_t room = sizeof(offer->text);
	struct wr_shown hint = wr_nearest_hint(nearest);

	if (*hint.text)
		snprintf(offer->text, room, "%s", hint.text);
	else if (!offer->length)
		snprintf(offer->text, room, " (it has no %ss)", offer->what);
	else if (offer->length + 1 < room)
		memcpy(offer->text + offer->length, ")", 2);
	else
		memcpy(offer->text + room - 5, "...)", 5);
	return offer->text;
}
