#include "graphs/plan/nearest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST         64
#define MOST_CANDIDATES 10000 /* a hint is not worth more time than this */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned smaller = a < b ? a : b;

	return smaller < c ? smaller : c;
}

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Levenshtein's distance, case ignored, of words of at most LONGEST bytes. */
static unsigned distance(const char *a, const char *b, size_t length)
{
	unsigned row[LONGEST + 1];

	for (size_t j = 0; j <= length; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i]; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < length; j++) {
			unsigned changed = diagonal + (lower(a[i]) != lower(b[j]));
			diagonal = row[j + 1];
			row[j + 1] = least(row[j] + 1, diagonal + 1, changed);
		}
	}
	return row[length];
}

/* A third of the word may be wrong, and two letters of a short one, but never all of it. */
void wr_nearest_try(struct wr_nearest *nearest, const char *candidate)
{
	size_t wanted = strlen(nearest->wanted), length = candidate ? strlen(candidate) : 0;
	size_t most = wanted < 6 ? 2 : wanted / 3;
	unsigned here;

	if (!length || wanted > LONGEST || length > LONGEST || ++nearest->seen > MOST_CANDIDATES)
		return;
	if (length > wanted + most || wanted > length + most)
		return;
	here = distance(nearest->wanted, candidate, length);
	if (here > most || here >= wanted || (nearest->best && here >= nearest->distance))
		return;
	nearest->best = candidate;
	nearest->distance = here;
}

struct wr_shown wr_nearest_hint(const struct wr_nearest *nearest)
{
	struct wr_shown hint = {{0}};

	if (nearest->best)
		snprintf(hint.text, sizeof(hint.text), " (did you mean '%.64s'?)", nearest->best);
	return hint;
}

void wr_offer_add(struct wr_offer *offer, const char *name)
{
	bool first = !offer->length;

	if (offer->length < sizeof(offer->text))
		offer->length += (size_t)snprintf(
			offer->text + offer->length, sizeof(offer->text) - offer->length, "%s%s%s%s",
			first ? " (" : ", ", first ? offer->what : "", first ? "s: " : "", name);
}

const char *wr_offer_hint(struct wr_offer *offer, const struct wr_nearest *nearest)
{
	size_t room = sizeof(offer->text);

	if (nearest->best)
		snprintf(offer->text, room, "%s", wr_nearest_hint(nearest).text);
	else if (!offer->length)
		snprintf(offer->text, room, " (it has no %ss)", offer->what);
	else if (offer->length + 1 < room)
		memcpy(offer->text + offer->length, ")", 2);
	else
		memcpy(offer->text + room - 5, "...)", 5);
	return offer->text;
}
