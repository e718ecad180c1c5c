/*
 * How many messages of a memory pool ticks hold, beside those that queues do: each takes its messages out of
 * the queues, which are filled meanwhile. By the resolved text of a graph (joint.c).
 */
#include <stdlib.h>
#include <string.h>

#include "cli/remotes.h"

bool cli_remotes_uses(const struct cli_remotes_file *file, size_t part, const char *pool)
{
	struct cli_slice list = ((const struct cli_remotes_part *)file->parts.items)[part].resources, item;
	struct cli_json json = cli_json_of(list.text, list.length);
	bool found = false;

	if (list.length)
		for (cli_json_list(&json); cli_json_item(&json);)
			found |= cli_json_string(&json, &item) && cli_slice_is(item, pool);
	return found;
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

/*
 * What ticks take of the port, {"capacity": 4, "take": 1, "policy": "block"} of the entity's `ports`: by
 * those of all instances, and of what deals to them and joins what they made. What `latest` shows has its
 * place in the queue.
 */
static uint64_t taken_by(const struct cli_remotes_part *part, struct cli_slice end)
{
	struct cli_json json = cli_json_of(part->ports.text, part->ports.length);
	const char *dot = memchr(end.text, '.', end.length);
	struct cli_slice key, value, port = {dot ? dot + 1 : end.text, 0};
	int64_t capacity = 1, take = 1;
	bool found = false, all = false, latest = false;

	port.length = end.length - (size_t)(port.text - end.text);
	for (cli_json_object(&json); part->ports.length && !found && cli_json_member(&json, &key);) {
		found = key.length == port.length && !memcmp(key.text, port.text, key.length);
		if (!found)
			cli_json_skip(&json);
	}
	for (cli_json_object(&json); found && cli_json_member(&json, &key);)
		if (cli_slice_is(key, "capacity"))
			cli_json_count(&json, &capacity);
		else if (cli_slice_is(key, "take") && cli_json_next(&json) == CLI_JSON_STRING)
			all = cli_json_string(&json, &value);
		else if (cli_slice_is(key, "take"))
			cli_json_count(&json, &take);
		else if (cli_slice_is(key, "policy"))
			latest = cli_json_string(&json, &value) && cli_slice_is(value, "latest");
		else
			cli_json_skip(&json);
	take = !found || latest ? 0 : all ? capacity : take;
	return (uint64_t)(part->instances > 1 ? take * (part->instances + 2) : take);
}

bool cli_remotes_held(const struct cli_remotes_file *file, size_t part, uint64_t *out)
{
	const struct cli_remotes_part *parts = file->parts.items;
	const struct cli_remotes_way *ways = file->ways.items;
	bool *sends = calloc(file->parts.count, sizeof *sends), more = sends;
	weir_pool_needs needs = {.size = sizeof needs};
	uint64_t held = 0;

	if (!sends)
		return false;
	sends[part] = true;
	while (more) {
		more = false;
		for (size_t i = 0; i < file->ways.count; i++) {
			size_t to = part_at(file, ways[i].to);
			bool passes = sends[part_at(file, ways[i].from)] && !sends[to];

			/* An entity that makes messages of a pool's memory passes none on: so `weir check`
			 * counts queues, too. */
			for (size_t k = 0; !weir_description_pool_needs(file->description, k, &needs); k++)
				passes = passes && !cli_remotes_uses(file, to, needs.pool);
			sends[to] |= passes;
			more |= passes;
		}
	}
	for (size_t i = 0; i < file->ways.count; i++)
		if (sends[part_at(file, ways[i].from)])
			held += taken_by(&parts[part_at(file, ways[i].to)], ways[i].to);
	free(sends);
	*out = held;
	return true;
}
