/*
 * Values: a JSON text as a tree. Each value has its place in the text, {0, 0} if it was made by calls. An
 * object keeps its members in the order of the text, duplicate keys included: the check reports them.
 */
#ifndef WR_GRAPHS_VALUE_H
#define WR_GRAPHS_VALUE_H

#include "base/names.h"

enum wr_type { /* a mask, so that a field may take several */
	       WR_NULL = 1,
	       WR_BOOL = 2,
	       WR_INTEGER = 4,
	       WR_REAL = 8,
	       WR_STRING = 16,
	       WR_ARRAY = 32,
	       WR_OBJECT = 64,
};

#define WR_DEPTH_MAX 64 /* nested containers */

struct wr_place {
	unsigned line, column; /* from 1, in characters; 0: not from a text */
};

struct wr_value {
	enum wr_type type;
	struct wr_place place;
	union {
		bool boolean;
		int64_t integer;
		double real;
		char *string;
		struct wr_items *items; /* of arrays and objects */
	};
};

struct wr_member {
	char *key;             /* NULL in arrays */
	struct wr_place place; /* of the key */
	struct wr_value value;
};

/* These take ownership of what is passed in only if they return WEIR_OK. Fails: WEIR_E_NOMEM. */
weir_status wr_value_container(struct wr_value *value, enum wr_type type); /* an empty array or object */
weir_status wr_value_string(struct wr_value *value, const char *string);
weir_status wr_value_append(struct wr_value *array, const struct wr_value *item);
weir_status wr_value_set(struct wr_value *object, const char *key,
			 const struct wr_value *value); /* replaces the old one */
/* Adds a member, without a look at those that are there; after the last one, wr_value_sort lets keys be found
 * fast. */
weir_status wr_value_add(struct wr_value *object, char *key, struct wr_place place,
			 const struct wr_value *value);
weir_status wr_value_sort(struct wr_value *object);
void wr_value_finish(struct wr_value *value);
void wr_value_forget_places(struct wr_value *value);

size_t wr_value_count(const struct wr_value *value); /* of items; 0 for scalars */
const struct wr_member *wr_value_at(const struct wr_value *value, size_t i);
struct wr_value *wr_value_item(struct wr_value *value, size_t i);
size_t wr_value_index(const struct wr_value *object,
		      const char *key); /* the first of that key, or WR_NO_INDEX */
const struct wr_value *wr_value_find(const struct wr_value *object, const char *key);
unsigned wr_value_depth(const struct wr_value *value); /* 0 for scalars */
const char *wr_type_text(enum wr_type type);           /* "an integer" */

#endif
