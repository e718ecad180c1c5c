#include "graphs/value.h"

#include <string.h>

#include "base/memory.h"

#define FEW 8 /* up to this many members are searched one by one */

struct wr_items {
	struct wr_member *list;
	size_t count, room;
	struct wr_names names; /* of objects with more than FEW members, once they are sorted */
};

weir_status wr_value_container(struct wr_value *value, enum wr_type type)
{
	struct wr_items *items = wr_alloc(1, sizeof(*items));

	if (!items)
		return WEIR_E_NOMEM;
	value->type = type;
	value->items = items;
	return WEIR_OK;
}

weir_status wr_value_string(struct wr_value *value, const char *string)
{
	char *copy = wr_strdup(string);

	if (!copy)
		return WEIR_E_NOMEM;
	value->type = WR_STRING;
	value->string = copy;
	return WEIR_OK;
}

weir_status wr_value_sort(struct wr_value *object)
{
	struct wr_items *items = object->items;
	weir_status status = WEIR_OK;

	wr_names_finish(&items->names);
	for (size_t i = 0; items->count > FEW && i < items->count && !status; i++)
		status = wr_names_add(&items->names, items->list[i].key, i);
	wr_names_sort(&items->names);
	if (status)
		wr_names_finish(
			&items->names); /* incomplete: without it the members are searched one by one */
	return status;
}

weir_status wr_value_add(struct wr_value *object, char *key, struct wr_place place,
			 const struct wr_value *value)
{
	struct wr_items *items = object->items;
	weir_status status = wr_grow(&items->list, &items->room, items->count + 1, sizeof(*items->list));

	if (status)
		return status;
	items->list[items->count++] = (struct wr_member){key, place, *value};
	return WEIR_OK;
}

weir_status wr_value_append(struct wr_value *array, const struct wr_value *item)
{
	return wr_value_add(array, NULL, (struct wr_place){0}, item);
}

/* Adds a member whose key is new, and keeps the members sorted. Takes the key and the value on WEIR_OK. */
static weir_status add_sorted(struct wr_value *object, char *key, const struct wr_value *value)
{
	struct wr_items *items = object->items;
	weir_status status = wr_value_add(object, key, (struct wr_place){0}, value);

	if (status)
		return status;
	status = items->names.count ? wr_names_insert(&items->names, key, items->count - 1)
				    : wr_value_sort(object);
	if (status)
		items->list[--items->count] = (struct wr_member){0};
	return status;
}

weir_status wr_value_set(struct wr_value *object, const char *key, const struct wr_value *value)
{
	size_t i = wr_value_index(object, key);
	weir_status status;
	char *copy;

	if (i != WR_NO_INDEX) {
		wr_value_finish(&object->items->list[i].value);
		object->items->list[i].value = *value;
		return WEIR_OK;
	}
	copy = wr_strdup(key);
	if (!copy)
		return WEIR_E_NOMEM;
	status = add_sorted(object, copy, value);
	if (status)
		wr_free(copy);
	return status;
}

void wr_value_finish(struct wr_value *value)
{
	for (size_t i = 0; i < wr_value_count(value); i++) {
		wr_free(value->items->list[i].key);
		wr_value_finish(&value->items->list[i].value);
	}
	if (value->type == WR_STRING)
		wr_free(value->string);
	if (value->type == WR_ARRAY || value->type == WR_OBJECT) {
		wr_names_finish(&value->items->names);
		wr_free(value->items->list);
		wr_free(value->items);
	}
	*value = (struct wr_value){0};
}

void wr_value_forget_places(struct wr_value *value)
{
	value->place = (struct wr_place){0};
	for (size_t i = 0; i < wr_value_count(value); i++) {
		value->items->list[i].place = (struct wr_place){0};
		wr_value_forget_places(&value->items->list[i].value);
	}
}

size_t wr_value_count(const struct wr_value *value)
{
	return value->type == WR_ARRAY || value->type == WR_OBJECT ? value->items->count : 0;
}

const struct wr_member *wr_value_at(const struct wr_value *value, size_t i)
{
	return &value->items->list[i];
}

struct wr_value *wr_value_item(struct wr_value *value, size_t i)
{
	return &value->items->list[i].value;
}

size_t wr_value_index(const struct wr_value *object, const char *key)
{
	const struct wr_items *items = object->items;

	if (items->names.count)
		return wr_names_find(&items->names, key);
	for (size_t i = 0; i < items->count; i++)
		if (!strcmp(items->list[i].key, key))
			return i;
	return WR_NO_INDEX;
}

const struct wr_value *wr_value_find(const struct wr_value *object, const char *key)
{
	size_t i = wr_value_index(object, key);

	return i == WR_NO_INDEX ? NULL : &object->items->list[i].value;
}

unsigned wr_value_depth(const struct wr_value *value)
{
	unsigned deepest = 0;

	if (value->type != WR_ARRAY && value->type != WR_OBJECT)
		return 0;
	for (size_t i = 0; i < value->items->count; i++) {
		unsigned depth = wr_value_depth(&value->items->list[i].value);
		if (depth > deepest)
			deepest = depth;
	}
	return deepest + 1;
}

const char *wr_type_text(enum wr_type type)
{
	switch (type) {
	case WR_NULL:
		return "null";
	case WR_BOOL:
		return "true or false";
	case WR_INTEGER:
		return "an integer";
	case WR_REAL:
		return "a number with a fraction or an exponent";
	case WR_STRING:
		return "a string";
	case WR_ARRAY:
		return "a list";
	case WR_OBJECT:
		return "an object";
	}
	return "nothing";
}
