/*
 * The parts of a message. A *pack* is a message of named parts (pack.c makes it). It has no fences of its
 * own: its producers are those of its parts, and what uses it uses each of them. So a part that is taken out
 * of a pack is a message like any other: its producers travel with it, and its memory waits for all its
 * readers, those of the pack included. A pack itself is never deferred: the device does not use it.
 *
 * A pack holds two references to each part: the caller's and one more. So a part that is looked at alone
 * never seems to have one holder; only the pack knows whether it may be written.
 *
 * Parts and names are in one block: the pointers, the names' offsets, the names. A small one is inside the
 * message, so that packing allocates nothing.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/pool.h"

_Static_assert(WEIR_PARTS_MAX *(WEIR_PART_NAME_MAX + 1) <= UINT16_MAX, "an offset of a name has 16 bits");

enum { FEW = 16 };

/* --- the block --- */

static weir_message **pack_parts(const weir_message *pack)
{
	return pack->parts.block;
}

static uint16_t *pack_name_offsets(const weir_message *pack)
{
	return (uint16_t *)(pack_parts(pack) + pack->parts.count);
}

static char *pack_names(const weir_message *pack)
{
	return (char *)(pack_name_offsets(pack) + pack->parts.count);
}

bool wr_pack_make_block(weir_message *pack, const weir_part *parts, size_t count)
{
	size_t bytes = count * (sizeof(weir_message *) + sizeof(uint16_t)), at = 0;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(parts[i].name) + 1;
	pack->parts.count = (uint32_t)count;
	pack->parts.freed = 0;
	pack->parts.block = bytes <= sizeof pack->parts.few ? (void *)pack->parts.few : wr_alloc(1, bytes);
	if (!pack->parts.block)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(parts[i].name) + 1;
		weir_message *message = parts[i].message;

		wr_message_ref_many(message, 1);
		pack_parts(pack)[i] = message;
		if (wr_load_relaxed(&message->outside))
			wr_store_relaxed(&pack->outside, true);
		pack_name_offsets(pack)[i] = (uint16_t)at;
		memcpy(pack_names(pack) + at, parts[i].name, length);
		at += length;
	}
	return true;
}

/*
 * The destructor of a part may end the thread, or free another pack. So a worker notes the pack that it frees
 * and how far it is (wr_message_finish_packs).
 */
void wr_pack_free(weir_message *pack)
{
	struct wr_local *local = wr_thread_local();

	if (local) {
		pack->arg = local->freeing;
		local->freeing = pack;
	}
	while (pack->parts.freed < pack->parts.count) {
		weir_message *part = pack_parts(pack)[pack->parts.freed++];
		for (int k = 0; k < WR_PART_HELD; k++)
			wr_message_unref(part);
	}
	if (local)
		local->freeing = pack->arg;
	wr_store_relaxed(&pack->outside, false);
	if (pack->parts.block != (void *)pack->parts.few)
		wr_free(pack->parts.block);
}

/* --- what holds for each part --- */

size_t weir_message_parts(const weir_message *message)
{
	return message->kind == WEIR_KIND_PARTS ? message->parts.count : 0;
}

weir_message *weir_message_part_at(const weir_message *message, size_t i)
{
	return i < weir_message_parts(message) ? pack_parts(message)[i] : NULL;
}

const char *weir_message_part_name(const weir_message *message, size_t i)
{
	if (i >= weir_message_parts(message))
		return NULL;
	return pack_names(message) + pack_name_offsets(message)[i];
}

weir_message *weir_message_part(const weir_message *message, const char *name)
{
	for (size_t i = 0; name && i < weir_message_parts(message); i++)
		if (!strcmp(weir_message_part_name(message, i), name))
			return pack_parts(message)[i];
	return NULL;
}

size_t wr_pack_count_held(const weir_message *pack, const weir_message *message)
{
	size_t count = 0;

	for (size_t i = 0; i < weir_message_parts(pack); i++)
		count += pack_parts(pack)[i] == message ? WR_PART_HELD : 0;
	return count;
}

/* A part that was delivered before is only read by work on the pack: others must not wait for that work. */
weir_status wr_pack_add_fence(const weir_message *pack, weir_fence fence, enum wr_part part)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < pack->parts.count; i++) {
		weir_message *message = pack_parts(pack)[i];
		status = wr_message_add_fence(message, fence, wr_message_delivered(message) ? WR_USED : part);
	}
	return status;
}

bool wr_pack_has_fences(const weir_message *pack)
{
	for (size_t i = 0; i < pack->parts.count; i++)
		if (wr_message_has_fences(pack_parts(pack)[i]))
			return true;
	return false;
}

static bool is_listed(const weir_fence *list, size_t count, uint64_t stream)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].stream == stream)
			return true;
	return false;
}

/*
 * Those that do not fit are counted, perhaps several of one stream: with as much room as the result says
 * they fit.
 */
size_t wr_pack_fences(const weir_message *pack, wr_fence_getter *get, weir_fence *out, size_t room)
{
	size_t count = 0, beyond = 0;
	weir_fence few[FEW];

	for (size_t i = 0; i < pack->parts.count; i++) {
		size_t n = get(pack_parts(pack)[i], few, FEW);
		weir_fence *found = n > FEW && n <= room - count ? out + count : few;
		if (found != few)
			n = get(pack_parts(pack)[i], found, room - count);
		if (n > (found == few ? FEW : room - count)) {
			beyond += n;
			continue;
		}
		for (size_t k = 0; k < n; k++) {
			if (count < room || is_listed(out, count, found[k].stream))
				count = wr_fences_add(out, count, found[k]);
			else
				beyond++;
		}
	}
	return count + beyond;
}

bool wr_pack_unique(const weir_message *pack)
{
	for (size_t i = 0; i < pack->parts.count; i++) {
		const weir_message *part = pack_parts(pack)[i];
		if (wr_message_references(part) != WR_PART_HELD || wr_message_still_read(part))
			return false;
	}
	return true;
}

void wr_pack_set_delivered(const weir_message *pack, bool delivered)
{
	for (size_t i = 0; i < pack->parts.count; i++)
		wr_message_set_delivered(pack_parts(pack)[i], delivered);
}

weir_status wr_pack_check_producer(const weir_message *pack)
{
	for (size_t i = 0; i < pack->parts.count; i++)
		if (wr_message_delivered(pack_parts(pack)[i]))
			return wr_fail(WEIR_E_INVALID,
				       "part '%s' was pushed or emitted before: call "
				       "weir_message_add_producer on the parts that the work writes",
				       weir_message_part_name(pack, i));
	return WEIR_OK;
}
