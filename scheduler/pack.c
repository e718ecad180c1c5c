/* Makes a message of named parts; parts.c has what is done with it. */
#include <string.h>

#include "base/status.h"
#include "scheduler/graph.h"
#include "scheduler/pool.h"

static weir_status refuse_name(const weir_part *parts, size_t i)
{
	const char *name = parts[i].name;

	if (!name || !*name)
		return wr_fail(WEIR_E_INVALID, "part %zu: it has no name", i);
	if (strlen(name) > WEIR_PART_NAME_MAX)
		return wr_fail(WEIR_E_INVALID, "part '%.20s...': its name has %zu bytes, at most %d fit",
			       name, strlen(name), WEIR_PART_NAME_MAX);
	for (size_t k = 0; k < i; k++)
		if (!strcmp(parts[k].name, name))
			return wr_fail(WEIR_E_INVALID, "part '%s': two parts have this name", name);
	return WEIR_OK;
}

/* An operator that gives away a part of what it received must have referenced it. */
static bool lacks_reference(const weir_message *message)
{
	const struct wr_local *local = wr_thread_local();

	return local && local->context && wr_context_holds_all(local->context, message);
}

static weir_status refuse_part(const weir_graph *graph, const weir_part *part)
{
	const weir_message *message = part->message;

	if (!message)
		return wr_fail(WEIR_E_INVALID, "part '%s': it has no message", part->name);
	if (message->pool != graph->pool)
		return wr_fail(WEIR_E_INVALID, "part '%s': the message belongs to another graph", part->name);
	if (message->kind == WEIR_KIND_PARTS)
		return wr_fail(WEIR_E_INVALID, "part '%s': it has parts itself: put these into the message",
			       part->name);
	if (lacks_reference(message))
		return wr_fail(WEIR_E_INVALID,
			       "part '%s': the operator holds no reference to it: pass weir_message_ref(...)",
			       part->name);
	return WEIR_OK;
}

static weir_status check_parts(const weir_graph *graph, const weir_part *parts, size_t count)
{
	weir_status status = WEIR_OK;

	if (!parts || !count || count > WEIR_PARTS_MAX)
		return wr_fail(WEIR_E_INVALID, "a message has 1 to %d parts, not %zu", WEIR_PARTS_MAX,
			       parts ? count : 0);
	for (size_t i = 0; !status && i < count; i++) {
		if (parts[i].size != sizeof parts[i])
			return wr_fail(WEIR_E_INVALID,
				       "weir_part: size is %zu, must be %zu: set it to sizeof", parts[i].size,
				       sizeof parts[i]);
		status = refuse_name(parts, i);
		if (!status)
			status = refuse_part(graph, &parts[i]);
	}
	return status;
}

weir_status weir_message_pack(weir_graph *graph, const weir_part *parts, size_t count, weir_message **out)
{
	weir_status status = check_parts(graph, parts, count);
	weir_message *pack;

	if (status)
		return status;
	status = wr_message_empty(graph->pool, &pack);
	if (status)
		return status;
	if (!wr_pack_make_block(pack, parts, count)) {
		weir_message_unref(pack);
		return WEIR_E_NOMEM;
	}
	pack->kind = WEIR_KIND_PARTS;
	pack->payload = WR_PAYLOAD_PARTS;
	wr_pool_mark(graph->pool, WR_POOL_PACKS);
	if (wr_pool_has(graph->pool, WR_POOL_COUNTED))
		wr_message_note_kept(-(int64_t)count);
	*out = pack;
	return WEIR_OK;
}
