/* The owner's side of the fan-in set and the senders' slow path. fan_in.h explains the protocol. */
#include "scheduler/fan_in.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/stack.h"

struct wr_fan_in *wr_fan_in_make(size_t connections)
{
	struct wr_fan_in *set = wr_alloc_aligned(64, sizeof *set);

	if (!set)
		return NULL;
	*set = (struct wr_fan_in){.count = connections};
	set->known = wr_alloc(connections, sizeof *set->known);
	set->ring = wr_alloc(connections, sizeof *set->ring);
	set->fronts = wr_alloc(connections, sizeof *set->fronts);
	if (set->known && set->ring && set->fronts)
		return set;
	wr_fan_in_destroy(set);
	return NULL;
}

void wr_fan_in_destroy(struct wr_fan_in *set)
{
	if (!set)
		return;
	wr_free(set->known);
	wr_free(set->ring);
	wr_free(set->fronts);
	wr_free(set);
}

void wr_fan_in_forget(struct wr_fan_in *set)
{
	set->messages = set->ring_first = set->ring_count = 0;
	set->front_count = set->front_messages = set->at_front = set->at_message = set->taken_count = 0;
	set->least_count = 0;
	set->ended = SIZE_MAX;
	for (size_t i = 0; i < set->count; i++)
		set->known[i] = (struct wr_known){.closed = set->known[i].closed};
}

void wr_fan_in_reset(struct wr_fan_in *set, struct wr_connection **connections, bool each)
{
	wr_store(&set->news, NULL);
	wr_store(&set->open_senders, set->count);
	set->connections = connections;
	set->any_size = each;
	wr_fan_in_forget(set);
	for (size_t i = 0; i < set->count; i++) {
		struct wr_connection *connection = connections[i];
		set->known[i].closed = false;
		connection->set = set;
		connection->index = (uint32_t)i;
		wr_store(&connection->marked, false);
		if (wr_queue_count(&connection->queue))
			wr_connection_arrived(connection);
	}
}

/* --- senders --- */

/*
 * Many threads push, one takes the whole list: if `first` was taken and inserted again meanwhile, the link is
 * right.
 */
void wr_fan_in_insert(struct wr_connection *connection)
{
	struct wr_fan_in *set = connection->set;
	wr_stack_push(&set->news, connection, next_news);
}

void wr_connection_close(struct wr_connection *connection)
{
	wr_queue_close(&connection->queue);
	if (!connection->set)
		return;
	wr_connection_arrived(connection);
	wr_fetch_sub(&connection->set->open_senders, 1);
}

/* --- owner: what is new --- */

static void ring_add(struct wr_fan_in *set, uint32_t index)
{
	size_t at = set->ring_first + set->ring_count++;

	set->ring[at < set->count ? at : at - set->count] = index;
}

static uint32_t ring_take(struct wr_fan_in *set)
{
	uint32_t index = set->ring[set->ring_first];

	set->ring_first = set->ring_first + 1 == set->count ? 0 : set->ring_first + 1;
	set->ring_count--;
	return index;
}

static void fan_in_read_queue(struct wr_fan_in *set, struct wr_connection *connection)
{
	struct wr_known *known = &set->known[connection->index];
	size_t before = (size_t)known->inbox + known->front;
	size_t inbox, now;

	wr_exchange(&connection->marked, false);
	known->closed = wr_queue_closed(&connection->queue); /* before the count (S5) */
	inbox = wr_queue_inbox(&connection->queue);
	if (!known->inbox && inbox)
		ring_add(set, connection->index);
	set->messages += inbox - known->inbox;
	known->inbox = (uint32_t)inbox;
	if (!set->any_size)
		return;
	now = inbox + known->front; /* more than before, or the queue is now known to be closed */
	if (set->least_count && before == set->least && now > before)
		set->least_count--;
	if (known->closed && now < set->ended)
		set->ended = now;
}

static void fan_in_read_news(struct wr_fan_in *set)
{
	struct wr_connection *newest, *oldest = NULL, *next;

	if (!wr_load_acquire(&set->news))
		return;
	/* The oldest shall be the first. While a connection is marked, no other thread writes its link. */
	for (newest = wr_exchange(&set->news, NULL); newest; newest = next) {
		next = newest->next_news;
		newest->next_news = oldest;
		oldest = newest;
	}
	for (; oldest; oldest = next) {
		next = oldest->next_news; /* before its mark is reset */
		fan_in_read_queue(set, oldest);
	}
}

size_t wr_fan_in_messages(struct wr_fan_in *set)
{
	fan_in_read_news(set);
	return set->messages;
}

/* --- owner: the emptiest queue of an any-size port --- */

/*
 * Called after a tick, or when no queue is at `least` any more: not more often than each queue got a message.
 */
static void fan_in_find_least(struct wr_fan_in *set)
{
	set->least = SIZE_MAX;
	set->ended = SIZE_MAX;
	for (size_t i = 0; i < set->count; i++) {
		size_t now = (size_t)set->known[i].inbox + set->known[i].front;
		if (now < set->least) {
			set->least = now;
			set->least_count = 0;
		}
		set->least_count += now == set->least;
		if (set->known[i].closed && now < set->ended)
			set->ended = now;
	}
}

size_t wr_fan_in_least(struct wr_fan_in *set)
{
	fan_in_read_news(set);
	if (!set->least_count || !set->any_size) /* other ports do not maintain it */
		fan_in_find_least(set);
	return set->least;
}

bool wr_fan_in_ended(struct wr_fan_in *set, size_t needed)
{
	wr_fan_in_least(set);
	return set->ended < needed;
}

/* --- owner: fronts --- */

static size_t move_to_front(struct wr_fan_in *set, uint32_t index, size_t n)
{
	struct wr_known *known = &set->known[index];

	n = n < known->inbox ? n : known->inbox;
	wr_queue_close_front(&set->connections[index]->queue, n);
	if (!known->front)
		set->fronts[set->front_count++] = index;
	known->front += (uint32_t)n;
	known->inbox -= (uint32_t)n;
	set->front_messages += n;
	if (known->inbox)
		ring_add(set, index);
	return n;
}

static int compare_indices(const void *a, const void *b)
{
	uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

	return (first > second) - (first < second);
}

/*
 * Compute receives the fronts in connection order. If many queues have one, a walk is cheaper than sorting.
 */
static void fan_in_sort_fronts(struct wr_fan_in *set)
{
	if (set->front_count < set->count / 8) {
		qsort(set->fronts, set->front_count, sizeof *set->fronts, compare_indices);
		return;
	}
	set->front_count = 0;
	for (size_t i = 0; i < set->count; i++)
		if (set->known[i].front)
			set->fronts[set->front_count++] = (uint32_t)i;
}

void wr_fan_in_close_fronts(struct wr_fan_in *set, size_t n)
{
	fan_in_read_news(set);
	for (size_t i = 0; i < set->taken_count; i++) /* the counts of the last tick */
		set->known[set->fronts[i]].taken = 0;
	set->taken_count = 0;
	if (!n)
		return; /* held */
	if (set->any_size || n == SIZE_MAX)
		for (size_t i = set->ring_count; i; i--)
			move_to_front(set, ring_take(set), n);
	else
		while (n && set->ring_count)
			n -= move_to_front(set, ring_take(set), 1);
	if (set->front_count > 1)
		fan_in_sort_fronts(set);
}

struct weir_message *wr_fan_in_at(struct wr_fan_in *set, size_t i)
{
	if (i >= set->front_messages)
		return NULL;
	if (i < set->at_message)
		set->at_front = set->at_message = 0;
	while (i - set->at_message >= set->known[set->fronts[set->at_front]].front)
		set->at_message += set->known[set->fronts[set->at_front++]].front;
	return wr_queue_at(&set->connections[set->fronts[set->at_front]]->queue, i - set->at_message);
}

void wr_fan_in_taken(struct wr_fan_in *set)
{
	for (size_t i = 0; i < set->front_count; i++) {
		struct wr_known *known = &set->known[set->fronts[i]];
		known->taken = known->front;
		known->front = 0;
	}
	set->taken_count = set->front_count;
	set->messages -= set->front_messages;
	set->front_count = set->front_messages = set->at_front = set->at_message = 0;
	set->least_count = 0;
}
