/* Payloads: origin, number, the run's salt, a pattern of bytes that follows from these three, and the tag. */
#include <string.h>

#include "fuzz_api.h"

struct head {
	uint64_t mark; /* written last */
	uint64_t salt;
	uint32_t origin, number;
	uint64_t size, tag;
	unsigned char body[];
};

_Static_assert(sizeof(struct head) + 8 == FZ_PAYLOAD_LEAST, "eight bytes of body at least");

static uint64_t mark_of(uint64_t salt, uint32_t origin, uint32_t number)
{
	uint64_t x = salt ^ ((uint64_t)origin << 32 | number) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
	return (x ^ x >> 29) | 1;
}

static unsigned char byte_of(uint64_t mark, size_t i)
{
	return (unsigned char)(mark >> (i & 7) * 8) ^ (unsigned char)(i >> 3);
}

void fz_spoil(void *to, size_t size)
{
	memset(to, 0, size);
}

void fz_write(const struct fz *fz, void *to, size_t size, struct fz_made made, int64_t pause)
{
	struct head *head = to;
	uint64_t mark = mark_of(fz->salt, made.origin, made.number);
	size_t length = size - sizeof *head;

	head->mark = 0;
	head->salt = fz->salt;
	head->origin = made.origin;
	head->number = made.number;
	head->tag = made.tag;
	head->size = size;
	for (size_t i = 0; i < length / 2; i++)
		head->body[i] = byte_of(mark, i);
	if (pause)
		weir_sleep(pause); /* half written: a reader that does not wait finds that */
	for (size_t i = length / 2; i < length; i++)
		head->body[i] = byte_of(mark, i);
	head->mark = mark;
}

const struct fz_connection *fz_connection_into(const struct fz *fz, unsigned to, unsigned port, size_t index)
{
	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *connection = &fz->connections[i];
		if (connection->to == to && connection->port == port && connection->index == index)
			return connection;
	}
	return NULL;
}

static void check_whole(struct fz_entity *entity, const struct head *head, size_t size, const char *where)
{
	struct fz *fz = entity->fz;
	uint64_t mark = head->mark;

	if (size < FZ_PAYLOAD_LEAST || head->size != size || head->origin >= FZ_ORIGINS)
		fz_break(fz,
			 "e%u, %s: a payload that was not written: mark %llx, %zu bytes (it says %llu), "
			 "origin %u number %u",
			 entity->id, where, (unsigned long long)mark, size, (unsigned long long)head->size,
			 head->origin, head->number);
	if (head->salt != fz->salt || mark != mark_of(head->salt, head->origin, head->number))
		fz_break(fz, "e%u, %s: number %u of e%u is not finished, or of another run", entity->id,
			 where, head->number, head->origin);
	for (size_t i = 0; i < size - sizeof *head; i++)
		if (head->body[i] != byte_of(mark, i))
			fz_break(fz, "e%u, %s: number %u of e%u: byte %zu of %zu is wrong", entity->id, where,
				 head->number, head->origin, i, size - sizeof *head);
}

struct fz_received fz_received(const weir_message *message)
{
	return (struct fz_received){weir_message_data(message), weir_message_size(message),
				    weir_message_stamp(message).tag};
}

void fz_check(struct fz_entity *entity, struct fz_received received, const struct fz_connection *connection,
	      struct fz_seen *seen, const char *where)
{
	const struct head *head = received.from;
	struct fz *fz = entity->fz;
	uint32_t due;

	check_whole(entity, head, received.size, where);
	if (head->tag != received.tag)
		fz_break(fz, "e%u, %s: number %u of e%u has the tag %llx, it was made with %llx", entity->id,
			 where, head->number, head->origin, (unsigned long long)received.tag,
			 (unsigned long long)head->tag);
	atomic_fetch_add_explicit(&fz->checked, 1, memory_order_relaxed);
	if (!seen || !connection->ordered[head->origin])
		return;
	due = seen->next[head->origin];
	if (head->number < due)
		fz_break(fz, "e%u, %s: number %u of e%u came when %u was due", entity->id, where,
			 head->number, head->origin, due);
	if (head->number != due && connection->whole[head->origin] && !seen->unsure[head->origin])
		fz_break(fz, "e%u, %s: number %u of e%u came, %u is lost", entity->id, where, head->number,
			 head->origin, due);
	seen->next[head->origin] = head->number + 1;
}
