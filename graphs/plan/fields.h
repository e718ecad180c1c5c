/* The keys that an object may have, as a table. */
#ifndef WR_GRAPHS_PLAN_FIELDS_H
#define WR_GRAPHS_PLAN_FIELDS_H

#include "graphs/plan/report.h"

struct wr_field {
	const char *name; /* NULL ends the list */
	unsigned types;   /* enum wr_type; 0: reserved, refused by name */
	bool required;
};

bool wr_type_check(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		   unsigned types);

/*
 * "comment", a text for readers: any object may have it, unless the key means something else there. True: it
 * was one, and its type has been checked.
 */
bool wr_is_comment(struct wr_reports *reports, const struct wr_at *at, const struct wr_member *member);

/*
 * Checks the keys of `object` and their types. found[i] is the value of the i-th field, or NULL: absent or of
 * a wrong type. `what` names the object in messages ("an entity").
 */
void wr_fields_read(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *object,
		    const char *what, const struct wr_field *fields, const struct wr_value **found);

/* An integer within bounds, or `fallback`, if there is no value or after a report. */
int64_t wr_field_integer(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
			 int64_t min, int64_t max, int64_t fallback);
/*
 * Nanoseconds: a text with its unit; of a period also a frequency. Of bare numbers 0 and negative ones alone, whose
 * bounds the caller checks. False after a report.
 */
bool wr_field_duration(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		       bool period, int64_t *out);
/* The index of one of the choices "a|b|c", or -1 after a report. */
int wr_field_choice(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		    const char *choices);

#endif
