/*
 * The conditions that an operator brings: texts in its table, each of which means the same as an item of
 * "conditions" in the graph file. They are checked when the operator is added, so that reading them for an
 * entity reports no errors. A condition of the file with the same name replaces one of them.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "graphs/build.h"
#include "graphs/json.h"
#include "graphs/parameter.h"
#include "graphs/table.h"

size_t wr_brought_count(const weir_operator *kind)
{
	const char *const *texts = kind->conditions;
	size_t count = 0;

	while (texts && texts[count])
		count++;
	return count;
}

/* The name of the condition: the key, else its type; NULL if it has neither. */
static const char *value_name(const struct wr_value *value)
{
	const struct wr_value *name = NULL;

	if (value->type == WR_OBJECT)
		name = wr_value_find(value, "name");
	if (value->type == WR_OBJECT && !name)
		name = wr_value_find(value, "type");
	return name && name->type == WR_STRING ? name->string : NULL;
}

/* Adds the condition of the text. Sets *twice, and adds nothing, if the entity has one of its name. */
static weir_status add_brought(struct wr_build *build, struct wr_plan_entity *entity, const char *text,
			       bool *twice)
{
	struct wr_value value = {0};
	weir_status status = wr_json_read(&value, text, strlen(text), &build->reports);
	const char *name = status ? NULL : value_name(&value);
	size_t before = entity->condition_count;

	if (status)
		return status;
	*twice = false;
	for (size_t i = 0; name && i < before; i++)
		*twice |= !strcmp(entity->conditions[i].name, name);
	if (!*twice && value.type == WR_OBJECT && wr_value_find(&value, "conditions"))
		wr_report(&build->reports, WR_W_UNSUPPORTED, NULL, value.place,
			  "an operator brings no tree of conditions: write it in the graph file");
	else if (!*twice)
		status = wr_build_condition(build, entity, &value, NULL, NULL);
	if (entity->condition_count > before)
		entity->conditions[before].brought = true;
	wr_value_finish(&value);
	return status;
}

weir_status wr_build_brought(struct wr_build *build, struct wr_plan_entity *entity)
{
	const char *const *texts = entity->kind->conditions;
	weir_status status = WEIR_OK;
	bool twice;

	for (size_t i = 0; texts && texts[i] && !status; i++)
		status = add_brought(build, entity, texts[i], &twice);
	return status;
}

/* --- the check of a table --- */

enum { WHY_ROOM = 256 };

static void keep_first_text(const weir_diagnostic *diagnostic, void *arg)
{
	char *first = arg;

	if (!*first && !diagnostic->warning)
		snprintf(first, WHY_ROOM, "%s", diagnostic->text);
}

static weir_status brought_error(const weir_operator *table, const char *text, const char *why)
{
	return wr_fail(WEIR_E_INVALID, "table of operator '%s': condition '%s': %s", table->name,
		       wr_shown(text).text, why);
}

/* `entity` has the conditions that were read before. */
static weir_status check_brought(const weir_registry *registry, struct wr_plan_entity *entity,
				 const char *text)
{
	struct wr_build build = {.registry = registry};
	char first[WHY_ROOM] = "";
	bool twice = false;
	weir_status status = add_brought(&build, entity, text, &twice), reported;

	reported = wr_reports_deliver(&build.reports, keep_first_text, first);
	if (reported == WEIR_E_INVALID)
		return brought_error(entity->kind, text, first);
	if (status || reported)
		return status ? status : reported;
	if (twice)
		return brought_error(entity->kind, text, "an earlier one has this name: give it a \"name\"");
	if (entity->conditions[entity->condition_count - 1].claims)
		return brought_error(entity->kind, text,
				     "memory pools are named in the graph file, and so are claims of them");
	return WEIR_OK;
}

weir_status wr_brought_check(const weir_registry *registry, const weir_operator *table)
{
	const char *const *texts = table->conditions;
	size_t count = wr_brought_count(table);
	struct wr_plan_entity entity = {.kind = table};
	weir_status status = WEIR_OK;

	if (!count)
		return WEIR_OK;
	entity.conditions = wr_alloc(count, sizeof(*entity.conditions));
	if (!entity.conditions)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < count && !status; i++)
		status = check_brought(registry, &entity, texts[i]);
	for (size_t i = 0; i < entity.condition_count; i++) {
		wr_values_destroy(entity.conditions[i].values);
		wr_free(entity.conditions[i].name);
	}
	wr_free(entity.conditions);
	return status;
}
