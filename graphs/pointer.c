#include "graphs/pointer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/words.h"

/* ~1 is /, ~0 is ~ (RFC 6901). */
static bool key_unescape(char *key)
{
	char *to = key;

	for (; *key; key++) {
		bool escaped = *key == '~';

		key += escaped;
		if (escaped && *key != '0' && *key != '1')
			return false;
		*to++ = !escaped ? *key : *key == '1' ? '/' : '~';
	}
	*to = '\0';
	return true;
}

weir_status wr_pointer_read(struct wr_pointer *out, const char *text)
{
	*out = (struct wr_pointer){.text = text, .copy = wr_strdup(text)};
	if (!out->copy)
		return WEIR_E_NOMEM;
	for (char *at = out->copy, *end; at; at = end) {
		if (*at != '/' || out->count == WR_DEPTH_MAX)
			return wr_fail(WEIR_E_INVALID,
				       "'%s' is not a JSON pointer: write \"/key/key\" with at most %d keys",
				       wr_shown(text).text, WR_DEPTH_MAX);
		*at++ = '\0';
		end = strchr(at, '/');
		if (end)
			*end = '\0';
		out->keys[out->count++] = at;
		if (!key_unescape(at))
			return wr_fail(WEIR_E_INVALID, "'%s' is not a JSON pointer: write 0 or 1 after ~",
				       wr_shown(text).text);
		if (end)
			*end = '/';
	}
	return WEIR_OK;
}

void wr_pointer_finish(struct wr_pointer *pointer)
{
	wr_free(pointer->copy);
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

/* Inserts once, at the end, so that a failure changes nothing. */
weir_status wr_pointer_put(struct wr_value *root, const struct wr_pointer *pointer, struct wr_value *value)
{
	struct wr_value *parent = root, *child;
	weir_status status = WEIR_OK;
	size_t i = 0;

	if (pointer->count + wr_value_depth(value) > WR_DEPTH_MAX)
		return wr_fail(WEIR_E_INVALID, "%s: nested more than %d deep: make the graph flatter",
			       wr_shown(pointer->text).text, WR_DEPTH_MAX);
	for (; i + 1 < pointer->count && (child = child_of(parent, pointer->keys[i])); i++)
		parent = child;
	for (size_t k = pointer->count; --k > i && !status;)
		status = wrap_value(value, pointer->keys[k]);
	return status ? status : attach_value(parent, pointer->keys[i], value, pointer->text);
}
