/*
 * The joint graph of several: their entities with their parameters, and connections in place of the remote
 * ones. The library checks it as any graph; of what it says only the types and kinds of messages count, as
 * the rest (conditions, resources, ports that are connected elsewhere) is left out of it.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/remotes.h"

/* Numbers of docs/errors.md, which the lines carry. */
enum { KINDS = 26, PORT_TYPES = 55 };

#define BETWEEN "to-the-other-graph-"

/* --- the resolved graph of a file --- */

static struct cli_slice raw(struct cli_json *json)
{
	const char *begin = json->at;

	cli_json_skip(json);
	return (struct cli_slice){begin, (size_t)(json->at - begin)};
}

static void read_part(struct cli_json *json, struct cli_remotes_part *part)
{
	struct cli_slice key;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "name"))
			cli_json_string(json, &part->name);
		else if (cli_slice_is(key, "operator"))
			cli_json_string(json, &part->kind);
		else if (cli_slice_is(key, "parameters"))
			part->parameters = raw(json);
		else if (cli_slice_is(key, "resources"))
			part->resources = raw(json);
		else if (cli_slice_is(key, "ports"))
			part->ports = raw(json);
		else if (cli_slice_is(key, "instances"))
			cli_json_count(json, &part->instances);
		else
			cli_json_skip(json);
}

static void read_way(struct cli_json *json, struct cli_remotes_way *way)
{
	struct cli_slice key;

	if (cli_json_next(json) == CLI_JSON_LIST) {
		cli_json_list(json);
		if (cli_json_item(json))
			cli_json_string(json, &way->from);
		if (cli_json_item(json))
			cli_json_string(json, &way->to);
		while (cli_json_item(json))
			cli_json_skip(json);
		return;
	}
	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "from"))
			cli_json_string(json, &way->from);
		else if (cli_slice_is(key, "to"))
			cli_json_string(json, &way->to);
		else
			cli_json_skip(json);
}

bool cli_remotes_read(struct cli_remotes_file *file)
{
	struct cli_json json = cli_json_of(file->text, strlen(file->text));
	struct cli_slice key;
	void *item = file;

	for (cli_json_object(&json); cli_json_member(&json, &key);)
		if (cli_slice_is(key, "entities")) {
			for (cli_json_list(&json); item && cli_json_item(&json);)
				if ((item = cli_list_add(&file->parts, sizeof(struct cli_remotes_part))))
					read_part(&json, item);
		} else if (cli_slice_is(key, "connections")) {
			for (cli_json_list(&json); item && cli_json_item(&json);)
				if ((item = cli_list_add(&file->ways, sizeof(struct cli_remotes_way))))
					read_way(&json, item);
		} else {
			cli_json_skip(&json);
		}
	return item && !json.fault;
}

/* --- the joint graph --- */

/* A connection of the joint graph. */
struct joint_way {
	size_t from_file, to_file;
	struct cli_slice from, to;
};

struct joint {
	struct cli_remotes *remotes;
	struct cli_list ways;
	int number; /* of the errors that are looked for */
	bool no_memory;
};

static bool same(struct cli_slice a, struct cli_slice b)
{
	return a.length == b.length && !memcmp(a.text, b.text, a.length);
}

/* Of "read.out". */
static struct cli_slice entity_of(struct cli_slice end)
{
	const char *dot = memchr(end.text, '.', end.length);

	return (struct cli_slice){end.text, dot ? (size_t)(dot - end.text) : end.length};
}

static struct cli_remotes_part *part_of(const struct cli_remotes *remotes, size_t file, struct cli_slice name)
{
	struct cli_remotes_part *parts = remotes->files[file].parts.items;
	size_t i = 0;

	while (i + 1 < remotes->files[file].parts.count && !same(parts[i].name, name))
		i++;
	return &parts[i];
}

/* Names stay where they can, as the errors have them: else "blur" of the second file is "blur-2". */
static void name_parts(struct cli_remotes *remotes)
{
	for (size_t f = 0; f < remotes->count; f++) {
		struct cli_remotes_part *parts = remotes->files[f].parts.items;

		for (size_t i = 0; i < remotes->files[f].parts.count; i++) {
			bool taken = false;

			for (size_t k = 0; k < remotes->count && !taken; k++)
				taken = k != f && remotes->files[k].parts.count &&
					same(part_of(remotes, k, parts[i].name)->name, parts[i].name);
			if (taken) /* at most 63 characters */
				snprintf(parts[i].joint, sizeof parts[i].joint, "%.*s-%zu",
					 (int)(parts[i].name.length < 58 ? parts[i].name.length : 58),
					 parts[i].name.text, f + 1);
			else
				snprintf(parts[i].joint, sizeof parts[i].joint, "%.*s",
					 (int)parts[i].name.length, parts[i].name.text);
		}
	}
}

static void add_way(struct joint *joint, struct joint_way way)
{
	struct joint_way *made = cli_list_add(&joint->ways, sizeof way);

	if (made)
		*made = way;
	joint->no_memory |= !made;
}

/* All that send to `send` send to all behind `receive`. */
static void add_pair(struct joint *joint, const struct cli_remotes_end *send,
		     const struct cli_remotes_end *receive)
{
	const struct cli_remotes_file *a = &joint->remotes->files[send->file],
				      *b = &joint->remotes->files[receive->file];
	const struct cli_remotes_way *from = a->ways.items, *to = b->ways.items;

	for (size_t i = 0; i < a->ways.count; i++)
		for (size_t k = 0; k < b->ways.count && same(entity_of(from[i].to), send->name); k++)
			if (same(entity_of(to[k].from), receive->name))
				add_way(joint, (struct joint_way){send->file, receive->file, from[i].from,
								  to[k].to});
}

static void find_ways(struct joint *joint)
{
	struct cli_remotes *remotes = joint->remotes;

	for (size_t i = 0; i < remotes->ends.count; i++) {
		const struct cli_remotes_end *end = cli_remotes_end(remotes, i);

		if (end->peer == CLI_NO_PEER)
			continue;
		add_pair(joint, end, cli_remotes_end(remotes, end->peer));
		part_of(remotes, end->file, end->name)->paired = true;
		end = cli_remotes_end(remotes, end->peer);
		part_of(remotes, end->file, end->name)->paired = true;
	}
	for (size_t f = 0; f < remotes->count; f++) {
		const struct cli_remotes_way *ways = remotes->files[f].ways.items;

		for (size_t i = 0; i < remotes->files[f].ways.count; i++)
			if (!part_of(remotes, f, entity_of(ways[i].from))->paired &&
			    !part_of(remotes, f, entity_of(ways[i].to))->paired)
				add_way(joint, (struct joint_way){f, f, ways[i].from, ways[i].to});
	}
}

/*
 * Between two files: tensors may go from one place to another there ('place'), so for their types there is an
 * entity between the two ends, whose output says their dtype and shape. It would take any kind.
 */
static bool is_between(const struct joint *joint, size_t i)
{
	const struct joint_way *way = (const struct joint_way *)joint->ways.items + i;

	return joint->number == PORT_TYPES && way->from_file != way->to_file;
}

/* "\"read.out\"", by the name that the entity has there. */
static void put_end(FILE *to, const struct cli_remotes *remotes, size_t file, struct cli_slice end)
{
	struct cli_slice name = entity_of(end);

	fprintf(to, "\"%s%.*s\"", part_of(remotes, file, name)->joint, (int)(end.length - name.length),
		end.text + name.length);
}

static void put_joint(FILE *to, const struct joint *joint)
{
	const struct joint_way *ways = joint->ways.items;
	const char *before = "";

	fputs("{\"weir\": 1, \"entities\": [", to);
	for (size_t f = 0; f < joint->remotes->count; f++) {
		const struct cli_remotes_part *parts = joint->remotes->files[f].parts.items;

		for (size_t i = 0; i < joint->remotes->files[f].parts.count; i++, before = ",") {
			fprintf(to, "%s\n{\"name\": \"%s\", \"operator\": \"%.*s\"", before, parts[i].joint,
				(int)parts[i].kind.length, parts[i].kind.text);
			if (parts[i].parameters.length)
				fprintf(to, ", \"parameters\": %.*s", (int)parts[i].parameters.length,
					parts[i].parameters.text);
			fputs("}", to);
		}
	}
	for (size_t i = 0; i < joint->ways.count; i++)
		if (is_between(joint, i))
			fprintf(to, ",\n{\"name\": \"" BETWEEN "%zu\", \"operator\": \"pass\"}", i);
	fputs("],\n\"connections\": [", to);
	for (size_t i = 0; i < joint->ways.count; i++) { /* in this order: an error has its number */
		fputs(i ? ",\n[" : "\n[", to);
		if (is_between(joint, i))
			fprintf(to, "\"" BETWEEN "%zu.out\"", i);
		else
			put_end(to, joint->remotes, ways[i].from_file, ways[i].from);
		fputs(", ", to);
		put_end(to, joint->remotes, ways[i].to_file, ways[i].to);
		fputs("]", to);
	}
	for (size_t i = 0; i < joint->ways.count; i++)
		if (is_between(joint, i)) {
			fputs(",\n[", to);
			put_end(to, joint->remotes, ways[i].from_file, ways[i].from);
			fprintf(to, ", \"" BETWEEN "%zu.in\"]", i);
		}
	fputs("]}\n", to);
}

/* The text with the end that is meant, in place of the entity between: "read.out -> blur.in: ...". */
static void tell(const struct joint *joint, const struct joint_way *way, const char *text)
{
	const char *at = strstr(text, BETWEEN), *rest = at ? strchr(at, '.') : NULL;
	struct cli_slice name = entity_of(way->from);

	if (rest)
		rest += strcspn(rest, " ");
	cli_remotes_say(joint->remotes, CLI_ERROR, way->to_file, way->to, NULL,
			"W%03d: with the graphs together, %.*s%s%.*s%s", joint->number,
			(int)(rest ? at - text : (long)strlen(text)), text,
			rest ? part_of(joint->remotes, way->from_file, name)->joint : "",
			rest ? (int)(way->from.length - name.length) : 0, way->from.text + name.length,
			rest ? rest : "");
}

static void take_report(const weir_diagnostic *report, void *arg)
{
	static const char before[] = "/connections/";
	struct joint *joint = arg;
	const struct joint_way *way;
	size_t i;

	if (report->warning || report->number != joint->number ||
	    strncmp(report->pointer, before, strlen(before)))
		return;
	i = strtoul(report->pointer + strlen(before), NULL, 10);
	if (i >= joint->ways.count)
		return;
	way = (struct joint_way *)joint->ways.items + i;
	tell(joint, way, report->text);
}

static bool check_for(struct joint *joint, int number, const weir_registry *registry)
{
	weir_description *description = NULL;
	weir_status status = WEIR_OK;
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);
	bool good = false;

	joint->number = number;
	if (to) {
		put_joint(to, joint);
		good = !ferror(to);
		good &= !fclose(to);
	}
	if (good)
		status = weir_description_parse(text, length, NULL, NULL, &description);
	if (good && !status)
		status = weir_description_check(description, registry, take_report, joint);
	weir_description_destroy(description);
	free(text);
	return good && status != WEIR_E_NOMEM;
}

int cli_joint_check(struct cli_remotes *remotes, const weir_registry *registry)
{
	struct joint joint = {.remotes = remotes};
	bool good;

	name_parts(remotes);
	find_ways(&joint);
	good = !joint.no_memory && check_for(&joint, KINDS, registry) &&
	       check_for(&joint, PORT_TYPES, registry);
	free(joint.ways.items);
	if (good)
		return CLI_OK;
	cli_say("the graphs together: out of memory");
	return CLI_FAILED;
}
