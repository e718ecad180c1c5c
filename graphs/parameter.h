/* The parameter values of one operator or condition, read by weir_values_... */
#ifndef WR_GRAPHS_PARAMETER_H
#define WR_GRAPHS_PARAMETER_H

#include "base/atomic.h"
#include "graphs/report.h"

struct wr_setting {
	const weir_parameter *parameter;
	int64_t integer; /* bool, int, duration, size */
	double number;
	char *string;    /* strings and choices */
	unsigned *ports; /* indices */
	size_t port_count;
	double *numbers; /* a list */
	size_t number_count;
};

struct weir_values {
	const char *kind, *name; /* as in wr_values_source, borrowed */
	_Atomic bool misused; /* the kind's start asked for a parameter that its table does not declare so */
	char misuse[160];     /* the first such request, in words */
	size_t count;
	struct wr_setting settings[]; /* one per parameter, in the order of the table */
};

/* Where values come from. */
struct wr_values_source {
	const char *kind;                 /* "operator" or "condition", for messages */
	const char *name;                 /* of the kind */
	const weir_parameter *parameters; /* may be NULL */
	const weir_operator *ports;       /* whose ports the port parameters name */
	const struct wr_value *object;    /* NULL: nothing was given */
	const char *const *skip;          /* keys of the object that are not parameters; ends with NULL */
	const struct wr_at *at;           /* of the object; without one, of the object that lacks it */
	struct wr_place place;
};

/*
 * Checks and converts all parameters. Errors go to `reports`, and the value is then zero; the values are
 * given in that case, too, so that the check can continue. Fails: WEIR_E_NOMEM.
 */
weir_status wr_values_create(weir_values **out, const struct wr_values_source *source,
			     struct wr_reports *reports);
void wr_values_destroy(weir_values *values); /* NULL is fine */
/*
 * Fails with WEIR_E_INVALID if the kind asked for a parameter that its table does not declare, or declares
 * with another type; clears that record. Thread: the one whose call into the kind has just returned.
 */
weir_status wr_values_check(const weir_values *values);
const struct wr_setting *wr_values_setting(const weir_values *values,
					   const char *name); /* NULL: no such parameter */
bool wr_parameter_is_input(const weir_parameter *parameter);  /* WEIR_TYPE_INPUT, WEIR_TYPE_INPUTS */
bool wr_parameter_is_output(const weir_parameter *parameter);
bool wr_parameter_is_file(const weir_parameter *parameter);       /* WEIR_TYPE_READ_FILE, ..._WRITE_FILE */
bool wr_parameter_is_descriptor(const weir_parameter *parameter); /* likewise */

#endif
