#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct wr_name {
	const char *name;
	size_t index;
};

weir_status wr_names_add(struct wr_names *names, const char *name, size_t index)
{
	weir_status status = wr_grow(&names->list, &names->room, names->count + 1, sizeof(*names->list));

	if (!status)
		names->list[names->count++] = (struct wr_name){name, index};
	return status;
}

/* Of equal names the lowest index comes first. */
static int name_compare(const void *left, const void *right)
{
	const struct wr_name *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->index > b->index) - (a->index < b->index);
}

void wr_names_sort(struct wr_names *names)
{
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), name_compare);
}

/* The first place whose name is not before `name`. */
static size_t names_position(const struct wr_names *names, const char *name)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(names->list[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

weir_status wr_names_insert(struct wr_names *names, const char *name, size_t index)
{
	size_t at = names_position(names, name);
	weir_status status = wr_names_add(names, name, index);

	if (status)
		return status;
	memmove(&names->list[at + 1], &names->list[at], (names->count - 1 - at) * sizeof(*names->list));
	names->list[at] = (struct wr_name){name, index};
	return WEIR_OK;
}

size_t wr_names_find(const struct wr_names *names, const char *name)
{
	size_t at = names_position(names, name);

	return at < names->count && !strcmp(names->list[at].name, name) ? names->list[at].index : WR_NO_INDEX;
}

size_t wr_names_at(const struct wr_names *names, size_t rank)
{
	return rank < names->count ? names->list[rank].index : WR_NO_INDEX;
}

void wr_names_remove_from(struct wr_names *names, size_t index)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++)
		if (names->list[i].index < index)
			names->list[kept++] = names->list[i];
	names->count = kept;
}

void wr_names_finish(struct wr_names *names)
{
	wr_free(names->list);
	*names = (struct wr_names){0};
}
