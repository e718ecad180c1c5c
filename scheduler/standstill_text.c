/*
 * The answer to "why does the run stand still?". Each entity is followed along one of its causes: a root
 * cause if it has one, else to the entity that could change the cause. Each such path ends at a root cause
 * or in a circular wait. Those are printed, and the number of the other entities.
 */
#include <string.h>

#include "base/status.h"
#include "scheduler/memory_pool.h"
#include "scheduler/run.h"
#include "scheduler/standstill.h"

enum { PRINTED_MOST = 8 }; /* root causes and circular waits */

const char *wr_says_text(enum wr_says says)
{
	static const char *const words[] = {
		[WR_SAYS_WAIT] = "WAIT",      [WR_SAYS_TIME] = "WAIT_TIME", [WR_SAYS_EVENT] = "WAIT_EVENT",
		[WR_SAYS_NEVER] = "NEVER",    [WR_SAYS_BUSY] = "BUSY",      [WR_SAYS_PARKED] = "PARKED",
		[WR_SAYS_NOTHING] = "SILENT", [WR_SAYS_TWO] = "MISUSED",
	};

	return words[says];
}

/* At the end a time that an entity waits for beside other causes would not have helped: it is no root cause.
 */
static bool is_root(const struct wr_standstill *s, const struct wr_cause *cause)
{
	return cause->blames == WR_NO_ENTITY && !(s->at_end && cause->says == WR_SAYS_TIME);
}

/* The cause that the entity is followed along; NULL: it waits for nothing. */
static const struct wr_cause *followed_cause(const struct wr_standstill *s, size_t entity)
{
	const struct wr_cause *found = NULL;

	for (size_t i = s->first[entity]; i < s->first[entity + 1]; i++)
		if (is_root(s, &s->list[i]))
			return &s->list[i];
		else if (!found || found->says == WR_SAYS_TIME)
			found = &s->list[i];
	return found;
}

void wr_cause_print_queue(const struct wr_cause *cause, struct wr_text *text)
{
	const struct wr_connection *connection = cause->connection;

	if (cause->full) {
		wr_text_add(text, "%s -> %s is full (%zu of %zu)", connection->from, connection->to,
			    cause->held, cause->wanted);
		if (cause->blames == WR_NO_ENTITY && connection->outlet)
			wr_text_add(text, ": nothing takes from the outlet");
		return;
	}
	wr_text_add(text, "%s has %zu of %zu messages", connection->to, cause->held, cause->wanted);
	if (cause->inlet)
		wr_text_add(text, ": its inlet is open and nothing is pushed");
	else
		wr_text_add(text, " from %s", connection->from);
}

static void print_cause(const struct wr_standstill *s, const struct wr_cause *cause, struct wr_text *text)
{
	const char *name = wr_graph_entity_at(s->graph, cause->entity)->plan->name;

	if (cause->connection)
		wr_cause_print_queue(cause, text);
	else
		wr_text_add(text, "%s waits: %s: %s (%s)", name, cause->condition, cause->detail,
			    wr_says_text(cause->says));
}

/* All root causes of one entity. */
static void print_roots(const struct wr_standstill *s, size_t entity, struct wr_text *text)
{
	const char *between = "";

	for (size_t i = s->first[entity]; i < s->first[entity + 1]; i++) {
		if (!is_root(s, &s->list[i]) && &s->list[i] != followed_cause(s, entity))
			continue;
		wr_text_add(text, "%s", between);
		print_cause(s, &s->list[i], text);
		between = ", ";
	}
}

static void print_circle(struct wr_standstill *s, size_t begin, struct wr_text *text)
{
	const struct wr_cause *cause = followed_cause(s, begin), *full = NULL, *claim = NULL;
	size_t entity = begin;

	wr_text_add(text, "circular wait: ");
	do {
		cause = followed_cause(s, entity);
		full = full || !cause->full ? full : cause;
		claim = claim || !cause->claim ? claim : cause;
		wr_text_add(text, "%s", entity == begin ? "" : ", ");
		print_cause(s, cause, text);
		s->marks[entity] = WR_ROOT;
		entity = cause->blames;
	} while (entity != begin);
	if (claim)
		wr_text_add(text, "; raise the size of pool '%s', or wait for fewer messages at once",
			    wr_memory_pool_of(claim->claim)->plan->name);
	else if (full)
		wr_text_add(text, "; raise the capacity of %s, or wait for fewer messages at once",
			    full->connection->to);
	else
		wr_text_add(text, "; each waits for a message from the next: give one of these connections "
				  "\"initial_messages\"");
}

/*
 * Follows one entity to its root cause or circular wait and marks the entities on the path as waiting behind
 * it. Returns true if the root or circle was not found before.
 */
static bool follow_entity(struct wr_standstill *s, size_t from, struct wr_text *text, bool print)
{
	size_t entity = from;
	const struct wr_cause *cause;
	bool found = false;

	while (s->marks[entity] == WR_UNSEEN && (cause = followed_cause(s, entity)) &&
	       cause->blames != WR_NO_ENTITY) {
		s->marks[entity] = WR_WALKED;
		entity = cause->blames;
	}
	if (s->marks[entity] == WR_WALKED) {
		struct wr_text ignored = {0};

		print_circle(s, entity, print ? text : &ignored);
		wr_text_finish(&ignored);
		found = true;
	} else if (s->marks[entity] == WR_UNSEEN && followed_cause(s, entity)) {
		s->marks[entity] = WR_ROOT;
		if (print)
			print_roots(s, entity, text);
		found = true;
	}
	for (entity = from; s->marks[entity] == WR_WALKED; entity = followed_cause(s, entity)->blames)
		s->marks[entity] = WR_BEHIND;
	return found;
}

static void follow_all(struct wr_standstill *s, bool (*from)(weir_entity *entity), struct wr_text *text)
{
	size_t found = 0, behind = 0;

	for (size_t i = 0; i < wr_graph_count_all(s->graph); i++) {
		struct wr_text one = {0};

		if (from && !from(wr_graph_entity_at(s->graph, i)))
			continue;
		if (follow_entity(s, i, &one, found < PRINTED_MOST) && found++ < PRINTED_MOST) {
			wr_text_add(text, "%s%s", found > 1 ? "; " : "", one.text ? one.text : "");
			text->status = text->status ? text->status : one.status;
		}
		wr_text_finish(&one);
	}
	for (size_t i = 0; i < wr_graph_count_all(s->graph); i++)
		behind += s->marks[i] == WR_BEHIND;
	if (found > PRINTED_MOST)
		wr_text_add(text, "; and %zu more causes", found - PRINTED_MOST);
	if (behind)
		wr_text_add(text, "; %zu other%s wait%s behind %s", behind, behind == 1 ? "" : "s",
			    behind == 1 ? "s" : "", found == 1 ? "it" : "them");
}

void wr_standstill_text(struct wr_standstill *standstill, bool (*from)(weir_entity *entity),
			struct wr_text *text)
{
	if (standstill->status) {
		text->status = standstill->status;
		return;
	}
	memset(standstill->marks, WR_UNSEEN, wr_graph_count_all(standstill->graph));
	wr_text_bytes(text, "", 0);
	follow_all(standstill, from, text);
}

const struct wr_cause *wr_standstill_root(const struct wr_standstill *standstill)
{
	for (size_t i = 0; !standstill->status && i < standstill->count; i++)
		if (standstill->marks[standstill->list[i].entity] == WR_ROOT)
			return followed_cause(standstill, standstill->list[i].entity);
	return NULL;
}
