/* Reads an object by a table of the keys that it may have. */
#ifndef WR_GRAPHS_FIELD_H
#define WR_GRAPHS_FIELD_H

#include "graphs/report.h"

struct wr_field {
	const char *name; /* NULL ends the list */
	unsigned types;   /* mask of enum wr_type; 0: reserved, reported as not supported */
	bool required;
};

bool wr_type_check(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		   unsigned types);

/*
 * Any object may have the key "comment", a string, unless its table gives that key a meaning. Returns true if
 * the member is such a comment; its type has then been checked.
 */
bool wr_is_comment(struct wr_reports *reports, const struct wr_at *at, const struct wr_member *member);

/*
 * Checks the keys of `object` and their types. Sets found[i] to the value of the i-th field, or to NULL if it
 * is absent or has a wrong type. `what` names the object in reports ("an entity").
 */
void wr_fields_read(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *object,
		    const char *what, const struct wr_field *fields, const struct wr_value **found);

/* Returns the integer, or `fallback` if there is no value or if it is out of range, which is reported. */
int64_t wr_field_integer(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
			 int64_t min, int64_t max, int64_t fallback);
/*
 * Reads nanoseconds from a string with a unit, for a period also from a frequency. A number without a unit
 * must be 0 or negative; the caller checks its bounds. Returns false if an error was reported.
 */
bool wr_field_duration(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		       bool period, int64_t *out);
/* Returns the index in the choices "a|b|c"; -1 if it is none of them, which is reported. */
int wr_field_choice(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		    const char *choices);

#endif
