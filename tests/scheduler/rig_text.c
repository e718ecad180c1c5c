/* The text that describes a graph (rig.h): its entities, connections and settings become a description. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

struct parser {
	struct rig *rig;
	weir_description *description;
	char from[130], name[64], port[64]; /* what the arrow comes from; the item */
	bool item, arrow;
	int initial_messages;
};

static void set_json(struct parser *parser, const char *pointer, const char *json)
{
	if (weir_description_put(parser->description, pointer, json))
		fail_msg("%s: %s", pointer, weir_last_error());
}

/* "off", "8" keys, or "8,2": and warm_up. */
static void set_replay(struct parser *parser, size_t entity, const char *value)
{
	char pointer[64], json[64];
	unsigned keys = 0, warm_up = 1;

	snprintf(pointer, sizeof pointer, "/entities/%zu/replay", entity);
	sscanf(value, "%u,%u", &keys, &warm_up);
	snprintf(json, sizeof json, "{\"keys\": %u, \"warm_up\": %u}", keys, warm_up);
	set_json(parser, pointer, strcmp(value, "off") ? json : "false");
}

static size_t index_of(struct parser *parser, const char *name)
{
	size_t i = 0;

	while (i < parser->rig->entity_count && strcmp(parser->rig->entities[i].name, name))
		i++;
	return i;
}

/* The item's settings are complete: adds it, and connects it to the item before it. */
static void end_item(struct parser *parser)
{
	char json[400];
	const char *port = parser->port[0] && strncmp(parser->port, "out", 3) ? parser->port : "in";

	if (!parser->item)
		return;
	if (parser->arrow) {
		snprintf(json, sizeof json, "{\"from\":\"%s\",\"to\":\"%s.%s\",\"initial_messages\":%d}",
			 parser->from, parser->name, port, parser->initial_messages);
		set_json(parser, "/connections/-", json);
	}
	parser->item = parser->arrow = false;
	parser->initial_messages = 0;
}

static void begin_item(struct parser *parser, char *word)
{
	char *kind = strchr(word, ':'), *port = strchr(word, '.');

	end_item(parser);
	if (port)
		*port++ = 0;
	if (kind)
		*kind++ = 0;
	snprintf(parser->name, sizeof parser->name, "%s", word);
	snprintf(parser->port, sizeof parser->port, "%s", port ? port : "");
	if (index_of(parser, word) == parser->rig->entity_count) {
		struct rig_entity *entity = &parser->rig->entities[parser->rig->entity_count++];
		snprintf(entity->name, sizeof entity->name, "%s", word);
		kind = kind ? kind : word;
		if (!strcmp(kind, "pass")) /* the rig's, not the built-in one */
			kind = "rig_pass";
		assert_int_equal(weir_description_add_entity(parser->description, word, kind), WEIR_OK);
	}
	parser->item = true;
}

static void begin_arrow(struct parser *parser)
{
	const char *port = !strncmp(parser->port, "out", 3) ? parser->port : "out";

	end_item(parser);
	snprintf(parser->from, sizeof parser->from, "%s.%s", parser->name, port);
	parser->arrow = true;
}

static const char *quoted(const char *value, char *room, size_t size)
{
	char *end;

	strtod(value, &end);
	if (!*end || !strcmp(value, "true") || !strcmp(value, "false"))
		return value;
	snprintf(room, size, "\"%s\"", value);
	return room;
}

static bool add_condition(struct parser *parser, const char *key, const char *value)
{
	char pointer[80], json[200] = "", *comma = strchr(value, ',');

	if (!strcmp(key, "count"))
		snprintf(json, sizeof json, "{\"type\":\"count\",\"count\":%s}", value);
	else if (!strcmp(key, "period") && comma)
		snprintf(json, sizeof json, "{\"type\":\"periodic\",\"period\":\"%.*s\",\"policy\":\"%s\"}",
			 (int)(comma - value), value, comma + 1);
	else if (!strcmp(key, "period"))
		snprintf(json, sizeof json, "{\"type\":\"periodic\",\"period\":\"%s\"}", value);
	else if (!strcmp(key, "enabled"))
		snprintf(json, sizeof json, "{\"type\":\"boolean\",\"enable_tick\":%s}", value);
	else if (!strcmp(key, "asynchronous"))
		snprintf(json, sizeof json, "{\"type\":\"asynchronous\"}");
	else if (!strcmp(key, "gate") && comma)
		snprintf(json, sizeof json, "{\"type\":\"cuda_stream\",\"port\":\"%.*s\",\"signal\":\"%s\"}",
			 (int)(comma - value), value, comma + 1);
	else if (!strcmp(key, "gate"))
		snprintf(json, sizeof json, "{\"type\":\"cuda_stream\",\"port\":\"%s\"}", value);
	else if (!strcmp(key, "min"))
		snprintf(json, sizeof json,
			 "{\"type\":\"message_available\",\"port\":\"%s\",\"min_size\":%s}",
			 parser->port[0] ? parser->port : "in", value);
	else if (!strcmp(key, "blocks"))
		snprintf(json, sizeof json, "{\"type\":\"memory_available\",\"min_blocks\":%s}", value);
	else if (!strcmp(key, "fence"))
		snprintf(json, sizeof json, "{\"type\":\"fence\",\"once\":%s}", value);
	else if (!strcmp(key, "descriptor"))
		snprintf(json, sizeof json, "{\"type\":\"file_descriptor\",\"warn_after\":\"%s\"}", value);
	else if (!strcmp(key, "condition"))
		snprintf(json, sizeof json, "{\"type\":\"%s\"}", value);
	snprintf(pointer, sizeof pointer, "/entities/%zu/conditions/-", index_of(parser, parser->name));
	if (json[0])
		set_json(parser, pointer, json);
	return json[0];
}

/* pool=NAME, pool=none, or pool=default: no pool, the device's default stream is its current one. */
static bool use_streams(struct parser *parser, const char *key, const char *value)
{
	char pointer[80], json[100];
	const char *what = strcmp(value, "none") ? "use_default_stream" : "default_stream_pool";
	bool named = strcmp(value, "none") && strcmp(value, "default");

	if (strcmp(key, "pool"))
		return false;
	snprintf(pointer, sizeof pointer, "/entities/%zu/%s", index_of(parser, parser->name),
		 named ? "resources/-" : what);
	if (named)
		snprintf(json, sizeof json, "\"%s\"", value);
	else
		snprintf(json, sizeof json, "%s", strcmp(value, "none") ? "true" : "false");
	set_json(parser, pointer, json);
	return true;
}

static void apply_setting(struct parser *parser, char *word)
{
	char pointer[200], room[200], *value = strchr(word, '=');
	size_t i = index_of(parser, parser->name);
	bool input = !parser->port[0] || strncmp(parser->port, "out", 3);

	*value++ = 0;
	if (!strcmp(word, "initial_messages")) {
		parser->initial_messages = atoi(value);
		return;
	}
	if (add_condition(parser, word, value) || use_streams(parser, word, value))
		return;
	if (!strcmp(word, "effects")) {
		snprintf(pointer, sizeof pointer, "/entities/%zu/effects", i);
		set_json(parser, pointer, value);
		return;
	}
	if (!strcmp(word, "gated"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/%s/gate", i,
			 parser->port[0] ? parser->port : "in");
	else if (!strcmp(word, "capacity") || !strcmp(word, "take") || !strcmp(word, "policy"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/%s/%s", i,
			 input && parser->port[0] ? parser->port : "in", word);
	else if (!strcmp(word, "in_flight"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/max_in_flight", i);
	else if (!strcmp(word, "replay")) {
		set_replay(parser, i, value);
		return;
	} else if (!strcmp(word, "max_emits"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/%s/%s", i,
			 input ? "out" : parser->port, word);
	else
		snprintf(pointer, sizeof pointer, "/entities/%zu/parameters/%s", i, word);
	set_json(parser, pointer, quoted(value, room, sizeof room));
}

void rig_parse(struct rig *rig, weir_description *description, const char *text)
{
	struct parser parser = {.rig = rig, .description = description};
	char *copy = strdup(text), *rest = NULL;

	assert_non_null(copy);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		size_t length = strlen(word);
		bool last = word[length - 1] == ';';
		if (last)
			word[length - 1] = 0;
		if (!strcmp(word, "->"))
			begin_arrow(&parser);
		else if (strchr(word, '='))
			apply_setting(&parser, word);
		else if (*word)
			begin_item(&parser, word);
		if (last)
			end_item(&parser);
	}
	end_item(&parser);
	free(copy);
}
