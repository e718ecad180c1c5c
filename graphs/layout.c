/*
 * Tables that were built with another header. An entry of a list is as large as its `size` says, so that is
 * the step from one to the next. What a table lacks is zero; what this library does not know must be zero.
 * The rest of the library sees structs of its own size only.
 */
#include "graphs/layout.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/words.h"

#define SIZE_MOST 4096 /* of a struct; a larger value is an uninitialized field */

/* A list that ends with a NULL name. */
struct list {
	const char *type;
	const unsigned char *given; /* NULL: none */
	size_t own_size, first;     /* sizes: here, and the least */
	size_t step, count;         /* of the given one */
};

/* How each entry begins: checked below. */
struct entry {
	size_t size;
	const char *name;
};
_Static_assert(offsetof(weir_port, name) == offsetof(struct entry, name), "a port begins as an entry");
_Static_assert(offsetof(weir_parameter, name) == offsetof(struct entry, name),
	       "a parameter begins as an entry");

static struct list list_of_ports(const weir_port *ports)
{
	return (struct list){.type = "weir_port",
			     .given = (const unsigned char *)ports,
			     .own_size = sizeof(weir_port),
			     .first = WR_PORT_FIRST};
}

static struct list list_of_parameters(const weir_parameter *parameters)
{
	return (struct list){.type = "weir_parameter",
			     .given = (const unsigned char *)parameters,
			     .own_size = sizeof(weir_parameter),
			     .first = WR_PARAMETER_FIRST};
}

static struct entry list_at(const struct list *list, size_t i)
{
	struct entry entry;

	memcpy(&entry, list->given + i * list->step, sizeof(entry));
	return entry;
}

static bool has_unknown(const unsigned char *bytes, size_t size, size_t own_size)
{
	for (size_t i = own_size; i < size; i++)
		if (bytes[i])
			return true;
	return false;
}

static weir_status list_check_entry(const struct list *list, const char *of, size_t i)
{
	struct entry entry = list_at(list, i);

	if (entry.size != list->step)
		return wr_fail(WEIR_E_INVALID,
			       "%s: '%s' has a size of %zu, but '%s' of the same list has %zu: set size to "
			       "sizeof(%s) in each",
			       of, wr_shown(entry.name).text, entry.size,
			       wr_shown(list_at(list, 0).name).text, list->step, list->type);
	if (has_unknown(list->given + i * list->step, list->step, list->own_size))
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "%s: '%s' has a field set that this library (%s) does not know: update it", of,
			       wr_shown(entry.name).text, WEIR_VERSION);
	return WEIR_OK;
}

static weir_status list_check_step(const struct list *list, const char *of, const char *name)
{
	if (list->step < list->first || list->step > SIZE_MOST || list->step % sizeof(void *))
		return wr_fail(WEIR_E_INVALID, "%s: '%s' has a wrong size: set size to sizeof(%s)", of,
			       wr_shown(name).text, list->type);
	return WEIR_OK;
}

/* Finds the step and the count. */
static weir_status list_measure(struct list *list, const char *of)
{
	struct entry first = {list->own_size, NULL};
	weir_status status = WEIR_OK;

	if (list->given)
		first = list_at(list, 0);
	list->step = first.name ? first.size : list->own_size;
	status = list_check_step(list, of, first.name);
	while (!status && list->given && list_at(list, list->count).name)
		status = list_check_entry(list, of, list->count++);
	return status;
}

/* Copies the list to *at and advances *at past its end. Returns the copy; NULL for no list. */
static void *list_copy(const struct list *list, unsigned char **at)
{
	unsigned char *copy = *at;
	size_t bytes = list->step < list->own_size ? list->step : list->own_size;

	if (!list->given)
		return NULL;
	for (size_t i = 0; i < list->count; i++, *at += list->own_size) {
		memcpy(*at, list->given + i * list->step, bytes);
		memcpy(*at, &list->own_size, sizeof(list->own_size));
	}
	*at += list->own_size; /* the end: zeros */
	return copy;
}

static size_t list_bytes(const struct list *list)
{
	return list->given ? (list->count + 1) * list->own_size : 0;
}

/* --- operators --- */

/* The first lines of errors are for a table without a usable name. */
static weir_status operator_check_size(const weir_operator *table)
{
	size_t size = table ? table->size : 0;

	if (size < WR_OPERATOR_FIRST || size > SIZE_MOST)
		return wr_fail(WEIR_E_INVALID,
			       "table of an operator: size is %zu, must be %zu: set it to sizeof the type",
			       size, sizeof(*table));
	if (has_unknown((const unsigned char *)table, size, sizeof(*table)))
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "table of an operator: a field is set that this library (%s) does not "
			       "know: update it",
			       WEIR_VERSION);
	return WEIR_OK;
}

/* "table of operator 'blur'" */
static struct wr_shown subject(const char *kind, const char *name)
{
	struct wr_shown shown = {{0}};
	struct wr_words words = wr_words_in(shown.text, sizeof(shown.text));

	wr_words_add(&words, "table of %s '%s'", kind, wr_shown(name ? name : "").text);
	return shown;
}

enum { INPUTS, OUTPUTS, PARAMETERS, LISTS };

static bool is_ours(const struct list *lists, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (lists[i].step != lists[i].own_size)
			return false;
	return true;
}

static weir_status operator_copy(const weir_operator *table, const struct list lists[LISTS],
				 weir_operator **out)
{
	size_t bytes = sizeof(*table);
	weir_operator *own;
	unsigned char *at;

	for (int i = 0; i < LISTS; i++)
		bytes += list_bytes(&lists[i]);
	own = wr_alloc(1, bytes);
	if (!own)
		return WEIR_E_NOMEM;
	memcpy(own, table, table->size < sizeof(*own) ? table->size : sizeof(*own));
	own->size = sizeof(*own);
	at = (unsigned char *)(own + 1);
	own->inputs = list_copy(&lists[INPUTS], &at);
	own->outputs = list_copy(&lists[OUTPUTS], &at);
	own->parameters = list_copy(&lists[PARAMETERS], &at);
	*out = own;
	return WEIR_OK;
}

weir_status wr_layout_operator(const weir_operator *table, weir_operator **out)
{
	weir_status status = operator_check_size(table);
	struct list lists[LISTS];
	struct wr_shown of;

	if (status)
		return status;
	of = subject("operator", table->name);
	lists[INPUTS] = list_of_ports(table->inputs);
	lists[OUTPUTS] = list_of_ports(table->outputs);
	lists[PARAMETERS] = list_of_parameters(table->parameters);
	for (int i = 0; i < LISTS && !status; i++)
		status = list_measure(&lists[i], of.text);
	if (status || (table->size == sizeof(*table) && is_ours(lists, LISTS)))
		return status;
	return operator_copy(table, lists, out);
}

weir_status wr_layout_port(const weir_port *port, const char *kind, weir_port *out)
{
	struct wr_shown of = subject("operator", kind);
	struct list list;
	weir_status status;

	if (!port || !port->name)
		return wr_fail(WEIR_E_INVALID, "%s: a port without a name", of.text);
	list = list_of_ports(port);
	list.step = port->size;
	status = list_check_step(&list, of.text, port->name);
	if (!status)
		status = list_check_entry(&list, of.text, 0);
	if (status)
		return status;
	memset(out, 0, sizeof(*out));
	memcpy(out, port, list.step < sizeof(*out) ? list.step : sizeof(*out));
	out->size = sizeof(*out);
	return WEIR_OK;
}

/* --- conditions --- */

weir_status wr_layout_condition(const weir_condition *table, weir_condition **out)
{
	weir_condition *own;
	struct list list;
	unsigned char *at;
	weir_status status;

	if (!table || table->size != sizeof(*table))
		return wr_fail(WEIR_E_INVALID,
			       "table of a condition: size is %zu, must be %zu: set it to sizeof the type",
			       table ? table->size : 0, sizeof(*table));
	list = list_of_parameters(table->parameters);
	status = list_measure(&list, subject("condition", table->name).text);
	if (status || is_ours(&list, 1))
		return status;
	own = wr_alloc(1, sizeof(*own) + list_bytes(&list));
	if (!own)
		return WEIR_E_NOMEM;
	*own = *table;
	at = (unsigned char *)(own + 1);
	own->parameters = list_copy(&list, &at);
	*out = own;
	return WEIR_OK;
}
