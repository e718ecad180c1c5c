/*
 * A description is one tree of values, whether it was read or made by calls: a call adds the JSON that a
 * graph file would have. So one check serves both (docs/graph-format.md).
 */
#include "graphs/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/json.h"
#include "base/nearest.h"
#include "graphs/plan.h"
#include "base/file.h"
#include "base/text.h"

/* Makes a description whose root is null. */
static weir_status description_make(weir_description **out, const char *file)
{
	weir_description *description = wr_alloc(1, sizeof(*description));

	if (!description)
		return WEIR_E_NOMEM;
	description->root.type = WR_NULL;
	description->file = file ? wr_strdup(file) : NULL;
	if (file && !description->file) {
		weir_description_destroy(description);
		return WEIR_E_NOMEM;
	}
	*out = description;
	return WEIR_OK;
}

static weir_status description_parse(weir_description **out, const char *file, const char *json,
				     size_t length, weir_diagnostic_fn *fn, void *arg)
{
	struct wr_reports reports = {.file = file};
	weir_description *description = NULL;
	weir_status status = description_make(&description, file);
	weir_status delivered;

	if (!status)
		status = wr_json_read(&description->root, json, length, &reports);
	delivered = wr_reports_deliver(&reports, fn, arg);
	if (status != WEIR_E_NOMEM && delivered)
		status = delivered;
	if (status)
		weir_description_destroy(description);
	else
		*out = description;
	return status;
}

weir_status weir_description_parse(const char *json, size_t length, weir_diagnostic_fn *fn, void *arg,
				   weir_description **out)
{
	return description_parse(out, NULL, json, length, fn, arg);
}

weir_status weir_description_read(const char *path, weir_diagnostic_fn *fn, void *arg, weir_description **out)
{
	struct wr_text text = {0};
	weir_status status = wr_file_read(&text, path);

	if (!status)
		status = description_parse(out, path, text.text ? text.text : "", text.length, fn, arg);
	wr_text_finish(&text);
	return status;
}

/* A value in JSON: a scalar or a whole tree, without places. */
static weir_status value_from_json(struct wr_value *out, const char *json)
{
	struct wr_reports reports = {0};
	weir_status status = wr_json_read(out, json, strlen(json), &reports);
	weir_status delivered = wr_reports_deliver(&reports, NULL, NULL);

	if (!status)
		wr_value_forget_places(out);
	return delivered ? delivered : status; /* which also fails if memory ran out */
}

weir_status weir_description_create(weir_description **out)
{
	static const char empty[] = "{\"weir\": 1, \"entities\": [], \"connections\": []}";
	weir_description *description = NULL;
	weir_status status = description_make(&description, NULL);

	if (!status)
		status = value_from_json(&description->root, empty);
	if (status)
		weir_description_destroy(description);
	else
		*out = description;
	return status;
}

/* Adds an item, given as JSON text, to a list of the root. Finishes the item. */
static weir_status append_to_list(weir_description *description, const char *list, struct wr_text *item)
{
	char pointer[32] = "/";
	weir_status status = item->status;

	strcat(strcat(pointer, list), "/-");
	if (!status)
		status = weir_description_put(description, pointer, item->text);
	wr_text_finish(item);
	return status;
}

weir_status weir_description_add_entity(weir_description *description, const char *entity,
					const char *operator_name)
{
	struct wr_text item = {0};

	wr_text_add(&item, "{\"name\": ");
	wr_text_string(&item, entity);
	wr_text_add(&item, ", \"operator\": ");
	wr_text_string(&item, operator_name);
	wr_text_add(&item, "}");
	return append_to_list(description, "entities", &item);
}

weir_status weir_description_connect(weir_description *description, const char *from, const char *to)
{
	struct wr_text item = {0};

	wr_text_add(&item, "[");
	wr_text_string(&item, from);
	wr_text_add(&item, ", ");
	wr_text_string(&item, to);
	wr_text_add(&item, "]");
	return append_to_list(description, "connections", &item);
}

/* A JSON pointer, split into its keys. */
struct route {
	char *copy;
	char *keys[WR_DEPTH_MAX];
	size_t count;
};

/* ~1 is /, ~0 is ~ (RFC 6901). */
static bool unescape(char *key)
{
	char *to = key;

	for (; *key; key++) {
		if (*key == '~' && key[1] != '0' && key[1] != '1')
			return false;
		*to++ = *key != '~' ? *key : key[1] == '1' ? '/' : '~';
		key += *key == '~';
	}
	*to = '\0';
	return true;
}

static weir_status route_make(struct route *route, const char *pointer)
{
	*route = (struct route){.copy = wr_strdup(pointer)};
	if (!route->copy)
		return WEIR_E_NOMEM;
	for (char *at = route->copy, *end; at; at = end) {
		if (*at != '/' || route->count == WR_DEPTH_MAX)
			return wr_fail(WEIR_E_INVALID,
				       "'%s' is not a JSON pointer: write \"/key/key\" with at most %d keys",
				       wr_shown(pointer).text, WR_DEPTH_MAX);
		*at++ = '\0';
		end = strchr(at, '/');
		if (end)
			*end = '\0';
		route->keys[route->count++] = at;
		if (!unescape(at))
			return wr_fail(WEIR_E_INVALID, "'%s' is not a JSON pointer: write 0 or 1 after ~",
				       wr_shown(pointer).text);
		if (end)
			*end = '/';
	}
	return WEIR_OK;
}

/* Gives the index that a key means: that of an item, or the count of items, which appends (also "-"). */
static bool list_index(const struct wr_value *list, const char *key, size_t *out)
{
	char *end;

	*out = wr_value_count(list);
	if (!strcmp(key, "-"))
		return true;
	if (*key < '0' || *key > '9' || (*key == '0' && key[1]))
		return false;
	*out = strtoul(key, &end, 10);
	return !*end && *out <= wr_value_count(list);
}

/* The value under that key, or NULL. */
static struct wr_value *child_of(struct wr_value *parent, const char *key)
{
	size_t i = WR_NO_INDEX;

	if (parent->type == WR_OBJECT)
		i = wr_value_index(parent, key);
	else if (parent->type != WR_ARRAY || !list_index(parent, key, &i))
		return NULL;
	return i < wr_value_count(parent) ? wr_value_item(parent, i) : NULL;
}

/* Wraps the value in a list if the key is "-", else in an object. Takes the value only on WEIR_OK. */
static weir_status wrap_value(struct wr_value *value, const char *key)
{
	struct wr_value outer = {0};
	weir_status status = wr_value_container(&outer, strcmp(key, "-") ? WR_OBJECT : WR_ARRAY);

	if (!status)
		status = outer.type == WR_ARRAY ? wr_value_append(&outer, value)
						: wr_value_set(&outer, key, value);
	if (status)
		wr_value_finish(&outer);
	else
		*value = outer;
	return status;
}

static weir_status attach_value(struct wr_value *parent, const char *key, struct wr_value *value,
				const char *pointer)
{
	size_t i;

	if (parent->type == WR_OBJECT)
		return wr_value_set(parent, key, value);
	if (parent->type != WR_ARRAY)
		return wr_fail(WEIR_E_INVALID,
			       "%s: '%s' would be inside %s: put an object or a list there first",
			       wr_shown(pointer).text, wr_shown(key).text, wr_type_text(parent->type));
	if (!list_index(parent, key, &i))
		return wr_fail(WEIR_E_INVALID,
			       "%s: '%s' is not an index of a list of %zu: use \"-\" to append",
			       wr_shown(pointer).text, wr_shown(key).text, wr_value_count(parent));
	if (i == wr_value_count(parent))
		return wr_value_append(parent, value);
	wr_value_finish(wr_value_item(parent, i));
	*wr_value_item(parent, i) = *value;
	return WEIR_OK;
}

/* Inserts once, at the end, so that a failure changes nothing. Takes the value only if it returns WEIR_OK. */
static weir_status route_put(weir_description *description, const struct route *route, struct wr_value *value,
			     const char *pointer)
{
	struct wr_value *parent = &description->root, *child;
	weir_status status = WEIR_OK;
	size_t i = 0;

	if (route->count + wr_value_depth(value) > WR_DEPTH_MAX)
		return wr_fail(WEIR_E_INVALID, "%s: nested more than %d deep: make the graph flatter",
			       wr_shown(pointer).text, WR_DEPTH_MAX);
	for (; i + 1 < route->count && (child = child_of(parent, route->keys[i])); i++)
		parent = child;
	for (size_t k = route->count; --k > i && !status;)
		status = wrap_value(value, route->keys[k]);
	return status ? status : attach_value(parent, route->keys[i], value, pointer);
}

weir_status weir_description_put(weir_description *description, const char *pointer, const char *json)
{
	struct wr_value value = {0};
	struct route route;
	weir_status status = route_make(&route, pointer);

	if (!status)
		status = value_from_json(&value, json);
	if (!status)
		status = route_put(description, &route, &value, pointer);
	if (status)
		wr_value_finish(&value);
	wr_free(route.copy);
	return status;
}

static bool is_resource(const struct wr_value *root, const char *name)
{
	const struct wr_value *resources = root->type == WR_OBJECT ? wr_value_find(root, "resources") : NULL;

	return resources && resources->type == WR_OBJECT && wr_value_find(resources, name) &&
	       wr_name_ok(name);
}

weir_status wr_description_entity(const weir_description *description, const char *name, size_t *out)
{
	const struct wr_value *root = &description->root;
	const struct wr_value *entities = root->type == WR_OBJECT ? wr_value_find(root, "entities") : NULL;
	struct wr_nearest nearest = {.wanted = name};

	for (size_t i = 0; entities && i < wr_value_count(entities); i++) {
		const struct wr_value *entity = &wr_value_at(entities, i)->value;
		const struct wr_value *found =
			entity->type == WR_OBJECT ? wr_value_find(entity, "name") : NULL;

		if (!found || found->type != WR_STRING)
			continue;
		*out = i;
		if (!strcmp(found->string, name))
			return WEIR_OK;
		wr_nearest_try(&nearest, found->string);
	}
	if (is_resource(root, name))
		return wr_fail(WEIR_E_INVALID,
			       "'%s' is a resource, not an entity: change it in \"resources\"", name);
	return wr_fail(WEIR_E_INVALID, "there is no entity '%s'%s", wr_shown(name).text,
		       wr_nearest_hint(&nearest).text);
}

/* Reads JSON; text that is not JSON becomes a string. */
static weir_status value_from_text(struct wr_value *out, const char *text)
{
	weir_status status = value_from_json(out, text);

	return status == WEIR_E_INVALID ? wr_value_string(out, text) : status;
}

/* Takes the value only if it returns WEIR_OK. */
static weir_status set_parameter(weir_description *description, const char *entity, const char *parameter,
				 struct wr_value *value)
{
	struct route route = {.keys = {"entities", NULL, "parameters", NULL}, .count = 4};
	char number[24];
	size_t index = 0;
	weir_status status = wr_description_entity(description, entity, &index);

	if (status)
		return status;
	snprintf(number, sizeof(number), "%zu", index);
	route.keys[1] = number;
	route.keys[3] = (char *)parameter;
	return route_put(description, &route, value, "/entities");
}

weir_status weir_description_set(weir_description *description, const char *assignment)
{
	struct wr_value value = {0};
	char *copy = wr_strdup(assignment), *equals = copy ? strchr(copy, '=') : NULL;
	char *dot = equals ? memchr(copy, '.', (size_t)(equals - copy)) : NULL;
	weir_status status;

	if (!copy)
		return WEIR_E_NOMEM;
	if (!dot || dot == copy || dot + 1 == equals) {
		wr_free(copy);
		return wr_fail(WEIR_E_INVALID, "'%s' is not an assignment: write entity.parameter=value",
			       wr_shown(assignment).text);
	}
	*dot = *equals = '\0';
	status = value_from_text(&value, equals + 1);
	if (!status)
		status = set_parameter(description, copy, dot + 1, &value);
	if (status)
		wr_value_finish(&value);
	wr_free(copy);
	return status;
}

weir_status weir_description_check(const weir_description *description, const weir_registry *registry,
				   weir_diagnostic_fn *fn, void *arg)
{
	struct wr_plan *plan = NULL;
	weir_status status = wr_plan_create(&plan, registry, description, false, fn, arg);

	wr_plan_destroy(plan);
	return status;
}

void weir_description_destroy(weir_description *description)
{
	if (!description)
		return;
	wr_value_finish(&description->root);
	wr_free(description->file);
	wr_free(description);
}
