/*
 * Reads JSON text value by value, without a tree: the records of a run may have millions of events. The text
 *is the caller's, ends with a NUL after its last byte, and stays as it is.
 *
 *	if (cli_json_object(&json))
 *		while (cli_json_member(&json, &key))
 *			... read the value of the member, or cli_json_skip(&json)
 *
 * The first fault stops the reading: from then on each call returns false, so a caller need only look at
 * json.fault at the end.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string between its quotes, escapes as in the text. Borrowed from the text. */
struct cli_slice {
	const char *text;
	size_t length;
};

enum cli_json_kind { CLI_JSON_END, CLI_JSON_SCALAR, CLI_JSON_STRING, CLI_JSON_LIST, CLI_JSON_OBJECT };

struct cli_json {
	const char *text, *at, *end;
	const char *fault;    /* what is wrong at `at`; a literal; NULL: nothing so far */
	const char *fault_at; /* the place */
	bool cut;             /* the text ends too early */
	bool fresh;           /* a list or object has just begun */
	unsigned depth;
};

struct cli_json cli_json_of(const char *text, size_t length);
enum cli_json_kind cli_json_next(struct cli_json *json); /* the kind of the next value */

bool cli_json_object(struct cli_json *json);
bool cli_json_member(struct cli_json *json, struct cli_slice *key); /* false: the object has ended */
bool cli_json_list(struct cli_json *json);
bool cli_json_item(struct cli_json *json); /* true: a value follows; false: the list has ended */

bool cli_json_integer(struct cli_json *json, int64_t *out);
bool cli_json_count(struct cli_json *json, int64_t *out); /* an integer that is not below 0 */
bool cli_json_real(struct cli_json *json, double *out);   /* an integer, too */
bool cli_json_bool(struct cli_json *json, bool *out);
bool cli_json_string(struct cli_json *json, struct cli_slice *out);
bool cli_json_skip(struct cli_json *json);   /* any value */
bool cli_json_finish(struct cli_json *json); /* nothing may follow but blanks */

/* Sets the fault of the caller, unless there is one: `what` is a literal. Returns false. */
bool cli_json_refuse(struct cli_json *json, const char *what);
extern const char cli_json_no_memory[]; /* the fault if memory ran out, known by its address */
/* The place of the fault: line and column from 1, in bytes. */
void cli_json_place(const struct cli_json *json, unsigned *line, unsigned *column);

bool cli_slice_is(struct cli_slice slice, const char *text); /* of a text without escapes */
/* Returns the string as UTF-8, for free(), or NULL if memory ran out. */
char *cli_slice_decoded(struct cli_slice slice);

#endif
