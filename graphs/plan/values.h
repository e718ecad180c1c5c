/* The values of the parameters of one operator or condition: what weir_values_... read. */
#ifndef WR_GRAPHS_PLAN_VALUES_H
#define WR_GRAPHS_PLAN_VALUES_H

#include "base/atomic.h"
#include "graphs/plan/report.h"

struct wr_setting {
	const weir_parameter *parameter;
	int64_t integer; /* bool, int, duration, size */
	double number;
	char *string;    /* strings and choices */
	unsigned *ports; /* indices */
	size_t port_count;
};

struct weir_values {
	const char *kind, *name;      /* "operator" and its name: of the source, borrowed */
	_Atomic bool misused;         /* by the first that was asked for what the table does not declare */
	char misuse[160];             /* what that was */
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
	const char *const *skip;          /* keys of the object that are no parameters; ends with NULL */
	const struct wr_at *at;           /* of the object, or of what lacks it */
	struct wr_place place;
};

/*
 * Checks and converts; what is wrong goes to `reports` and leaves zero there. Gives values also then, so that
 * the check goes on. Fails: WEIR_E_NOMEM.
 */
weir_status wr_values_create(weir_values **out, const struct wr_values_source *source,
			     struct wr_reports *reports);
void wr_values_destroy(weir_values *values); /* NULL is fine */
/*
 * Fails with WEIR_E_INVALID if a parameter was asked for that the table does not declare, or as another type,
 * and forgets it. Thread: the one whose call into the kind has just returned.
 */
weir_status wr_values_judge(const weir_values *values);
const struct wr_setting *wr_values_setting(const weir_values *values,
					   const char *name); /* NULL: no such parameter */
bool wr_parameter_is_input(const weir_parameter *parameter);  /* WEIR_INPUT, WEIR_INPUTS */
bool wr_parameter_is_output(const weir_parameter *parameter);

#endif
