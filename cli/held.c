/*
 * How many messages of a memory pool ticks hold, beside those that queues do: each takes its messages out of
 * the queues, which are filled meanwhile. By the resolved text of a graph (joint.c).
 */
#include <stdlib.h>
#include <string.h>

#include "cli/remotes.h"

static bool lists(struct cli_slice list, const char *name)
{
	struct cli_json json = cli_json_of(list.text, list.length);
	struct cli_slice item;
	bool found = false;

	if (list.length)
		for (cli_json_list(&json); cli_json_item(&json);)
			found |= cli_json_string(&json, &item) && cli_slice_is(item, name);
	return found;
}

bool cli_remotes_uses(const struct cli_remotes_file *file, size_t part, const char *pool)
{
	return lists(((const struct cli_remotes_part *)file->parts.items)[part].resources, pool);
}

/* An entity that makes messages of a pool's memory passes none on: so `weir check` counts queues, too. */
static bool passes_on(const struct cli_remotes_file *file, size_t part)
{
	weir_pool_needs needs = {.size = sizeof needs};

	for (size_t i = 0; !weir_description_pool_needs(file->description, i, &needs); i++)
		if (cli_remotes_uses(file, part, needs.pool))
			return false;
	return true;
}

static size_t part_at(const struct cli_remotes_file *file, struct cli_slice end)
{
	const struct cli_remotes_part *parts = file->parts.items;
	const char *dot = memchr(end.text, '.', end.length);
	size_t length = dot ? (size_t)(dot - end.text) : end.length, i = 0;

	while (i < file->parts.count &&
	       (parts[i].name.length != length || memcmp(parts[i].name.text, end.text, length) != 0))
		i++;
	return i;
}

/* What a tick takes of the port: {"capacity": 4, "take": 1, "policy": "block"}. */
static int64_t taken_of(struct cli_json *json)
{
	int64_t capacity = 1, take = 1;
	bool all = false, latest = false;
	struct cli_slice key, value;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "capacity"))
			cli_json_count(json, &capacity);
		else if (cli_slice_is(key, "take") && cli_json_next(json) == CLI_JSON_STRING)
			all = cli_json_string(json, &value);
		else if (cli_slice_is(key, "take"))
			cli_json_count(json, &take);
		else if (cli_slice_is(key, "policy"))
			latest = cli_json_string(json, &value) && cli_slice_is(value, "latest");
		else
			cli_json_skip(json);
	return latest ? 0 : all ? capacity : take; /* what `latest` shows has its place in the queue */
}

/* By the ticks of all instances, and of those that deal to them and join what they made. */
static uint64_t taken_by(const struct cli_remotes_part *part, struct cli_slice end)
{
	struct cli_json json = cli_json_of(part->ports.text, part->ports.length);
	const char *dot = memchr(end.text, '.', end.length);
	struct cli_slice key, port = {dot ? dot + 1 : end.text, 0};
	uint64_t taken = 0;

	port.length = end.length - (size_t)(port.text - end.text);
	if (!part->ports.length)
		return 0;
	for (cli_json_object(&json); cli_json_member(&json, &key);)
		if (key.length == port.length && !memcmp(key.text, port.text, key.length))
			taken = (uint64_t)taken_of(&json);
		else
			cli_json_skip(&json);
	return part->instances > 1 ? taken * (uint64_t)(part->instances + 2) : taken;
}

bool cli_remotes_held(const struct cli_remotes_file *file, size_t part, uint64_t *out)
{
	const struct cli_remotes_part *parts = file->parts.items;
	const struct cli_remotes_way *ways = file->ways.items;
	bool *sends = calloc(file->parts.count, sizeof *sends), more = sends;
	uint64_t held = 0;

	if (!sends)
		return false;
	sends[part] = true;
	while (more) {
		more = false;
		for (size_t i = 0; i < file->ways.count; i++) {
			size_t to = part_at(file, ways[i].to);

			if (!sends[part_at(file, ways[i].from)] || sends[to] || !passes_on(file, to))
				continue;
			sends[to] = more = true;
		}
	}
	for (size_t i = 0; i < file->ways.count; i++)
		if (sends[part_at(file, ways[i].from)])
			held += taken_by(&parts[part_at(file, ways[i].to)], ways[i].to);
	free(sends);
	*out = held;
	return true;
}
