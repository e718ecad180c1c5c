/*
 * A description is one tree of values, whether it was read or made by calls: a call adds the JSON that a
 * graph file would have. So one check serves both (docs/graph-format.md).
 */
#include "graphs/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "graphs/json.h"
#include "graphs/plan.h"
#include "graphs/pointer.h"
#include "graphs/registry.h"
#include "graphs/report.h"

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
				     size_t length, size_t most, weir_diagnostic_fn *fn, void *arg)
{
	struct wr_reports reports = {.file = file, .text_most = most};
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
	return description_parse(out, NULL, json, length, 0, fn, arg);
}

weir_status weir_description_read(const char *path, size_t max_bytes, weir_diagnostic_fn *fn, void *arg,
				  weir_description **out)
{
	struct wr_text text = {0};
	weir_status status = path ? wr_file_read(&text, path, max_bytes ? max_bytes : WR_FILE_MAX)
				  : wr_fail(WEIR_E_INVALID, "a path is needed, NULL was given");

	if (!status)
		status = description_parse(out, strcmp(path, "-") ? path : "<stdin>",
					   text.text ? text.text : "", text.length, max_bytes, fn, arg);
	if (!status)
		(*out)->from_stdin = !strcmp(path, "-");
	wr_text_finish(&text);
	return status;
}

void wr_description_keep(const weir_description *description, struct wr_plan *plan)
{
	weir_description *own = (weir_description *)description;

	wr_plan_destroy(wr_exchange(&own->checked, plan));
}

weir_status wr_description_plan(struct wr_plan **out, const weir_registry *registry,
				const weir_description *description)
{
	weir_description *own = (weir_description *)description;
	struct wr_plan *plan = wr_exchange(&own->checked, NULL);

	if (plan && plan->registry == wr_registry_stamp(registry)) {
		*out = plan;
		return WEIR_OK;
	}
	wr_plan_destroy(plan);
	return wr_plan_create(out, registry, description, true, NULL, NULL);
}

/* Puts the value into the tree, which a plan then does not fit any more. Takes the value only on WEIR_OK. */
static weir_status description_change(weir_description *description, const struct wr_pointer *place,
				      struct wr_value *value)
{
	wr_description_keep(description, NULL);
	return wr_pointer_put(&description->root, place, value);
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

weir_status weir_description_put(weir_description *description, const char *pointer, const char *json)
{
	struct wr_value value = {0};
	struct wr_pointer place;
	weir_status status = wr_pointer_read(&place, pointer);

	if (!status)
		status = value_from_json(&value, json);
	if (!status)
		status = description_change(description, &place, &value);
	if (status)
		wr_value_finish(&value);
	wr_pointer_finish(&place);
	return status;
}

static weir_status find_entity(const weir_description *description, const char *name, size_t *out)
{
	const struct wr_value *root = &description->root;
	const struct wr_value *entities = root->type == WR_OBJECT ? wr_value_find(root, "entities") : NULL;
	const struct wr_value *resources = root->type == WR_OBJECT ? wr_value_find(root, "resources") : NULL;
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
	if (resources && resources->type == WR_OBJECT && wr_value_find(resources, name) && wr_name_ok(name))
		return wr_fail(WEIR_E_INVALID,
			       "'%s' is a resource, not an entity: change it in \"resources\"", name);
	return wr_fail(WEIR_E_INVALID, "there is no entity '%s'%s", wr_shown(name).text,
		       wr_nearest_hint(&nearest).text);
}

/* Takes the value only if it returns WEIR_OK. */
static weir_status set_parameter(weir_description *description, const char *entity, const char *parameter,
				 struct wr_value *value)
{
	struct wr_pointer place = {
		.text = "/entities", .keys = {"entities", NULL, "parameters", (char *)parameter}, .count = 4};
	char number[24];
	size_t index = 0;
	weir_status status = find_entity(description, entity, &index);

	if (status)
		return status;
	snprintf(number, sizeof(number), "%zu", index);
	place.keys[1] = number;
	return description_change(description, &place, value);
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
	status = value_from_json(&value, equals + 1);
	if (status == WEIR_E_INVALID) /* text that is not JSON becomes a string */
		status = wr_value_string(&value, equals + 1);
	if (!status)
		status = set_parameter(description, copy, dot + 1, &value);
	if (status)
		wr_value_finish(&value);
	wr_free(copy);
	return status;
}

weir_status weir_description_use(weir_description *description, const char *entity, const char *resource)
{
	struct wr_text item = {0};
	char pointer[64];
	size_t index = 0;
	weir_status status = find_entity(description, entity, &index);

	if (status)
		return status;
	snprintf(pointer, sizeof(pointer), "/entities/%zu/resources/-", index);
	wr_text_string(&item, resource);
	status = item.status;
	if (!status)
		status = weir_description_put(description, pointer, item.text);
	wr_text_finish(&item);
	return status;
}

/* --- check, destroy --- */

weir_status weir_description_check(const weir_description *description, const weir_registry *registry,
				   weir_diagnostic_fn *fn, void *arg)
{
	struct wr_plan *plan = NULL;
	weir_status status = wr_plan_create(&plan, registry, description, false, fn, arg);

	if (!status)
		wr_description_keep(description, plan);
	return status;
}

void weir_description_destroy(weir_description *description)
{
	if (!description)
		return;
	wr_description_keep(description, NULL);
	wr_description_forget_memory(description);
	wr_value_finish(&description->root);
	wr_free(description->file);
	wr_root_close(&description->confined);
	wr_free(description);
}

weir_status weir_description_set_root(weir_description *description, const char *root)
{
	struct wr_root opened = {0};
	weir_status status = root ? wr_root_open(&opened, root) : WEIR_OK;

	if (status) {
		wr_root_close(&opened);
		return status;
	}
	wr_description_keep(description, NULL);
	wr_root_close(&description->confined);
	description->confined = opened;
	return WEIR_OK;
}
