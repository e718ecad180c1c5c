/*
 * Ports that parameters decide (C14): what an operator's `describe` adds, behind the ports of its table. The
 * entity then has a kind of its own, a copy of the table with these lists, so that nothing else knows of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/build.h"
#include "graphs/layout.h"
#include "graphs/parameter.h"
#include "graphs/table.h"

enum { TEXTS = 6 }; /* of a port */

/* A list that ends with a NULL name. */
struct ports {
	weir_port *list;
	size_t count, room;
};

struct weir_ports {
	weir_operator kind;
	struct ports inputs, outputs;
	const struct wr_root *root; /* NULL once the ports are known */
	char **texts;               /* of the ports that were added */
	size_t text_count, text_room;
	char why[512]; /* of weir_ports_fail; "": nothing was said */
};

/* The list has room for the port and for its end, and stays valid if this fails. */
static weir_status put(struct ports *ports, const weir_port *port)
{
	int at = wr_port_index(ports->list, port->name);
	weir_status status = wr_grow(&ports->list, &ports->room, ports->count + 2, sizeof *ports->list);

	if (status)
		return status;
	if (at < 0)
		at = (int)ports->count++;
	ports->list[at] = *port;
	ports->list[ports->count] = (weir_port){0};
	return WEIR_OK;
}

static weir_status keep_text(weir_ports *ports, const char **text)
{
	weir_status status = WEIR_OK;

	if (!*text)
		return WEIR_OK;
	status = wr_grow(&ports->texts, &ports->text_room, ports->text_count + 1, sizeof *ports->texts);
	if (status)
		return status;
	ports->texts[ports->text_count] = wr_strdup(*text);
	*text = ports->texts[ports->text_count];
	if (!*text)
		return WEIR_E_NOMEM;
	ports->text_count++;
	return WEIR_OK;
}

static weir_status add(weir_ports *ports, struct ports *list, const weir_port *given)
{
	weir_port port;
	weir_status status = wr_layout_port(given, ports->kind.name, &port);
	const char **texts[TEXTS] = {&port.name,  &port.help,  &port.dtype,
				     &port.place, &port.shape, &port.like};

	for (int i = 0; !status && i < TEXTS; i++)
		status = keep_text(ports, texts[i]);
	return status ? status : put(list, &port);
}

weir_status weir_ports_add_input(weir_ports *ports, const weir_port *port)
{
	return add(ports, &ports->inputs, port);
}

weir_status weir_ports_add_output(weir_ports *ports, const weir_port *port)
{
	return add(ports, &ports->outputs, port);
}

/* O_NONBLOCK: a FIFO without a writer must not hold up a check. */
weir_status weir_ports_open(const weir_ports *ports, const char *path, int *out)
{
	int fd = wr_root_open_file(ports->root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0), error = errno;

	if (fd < 0) {
		wr_fail(WEIR_E_IO, "'%s': %s", wr_shown(path).text, wr_errno_words(error));
		errno = error;
		return WEIR_E_IO;
	}
	*out = fd;
	return WEIR_OK;
}

weir_status weir_ports_fail(weir_ports *ports, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(ports->why, sizeof ports->why, format, list);
	va_end(list);
	return WEIR_E_FAILED;
}

void wr_described_destroy(weir_ports *ports)
{
	if (!ports)
		return;
	for (size_t i = 0; i < ports->text_count; i++)
		wr_free(ports->texts[i]);
	wr_free(ports->texts);
	wr_free(ports->inputs.list);
	wr_free(ports->outputs.list);
	wr_free(ports);
}

/* Begins with the ports of the table. */
static weir_status make(struct wr_plan_entity *entity, const struct wr_root *root)
{
	const weir_operator *table = entity->kind;
	weir_ports *ports = wr_alloc(1, sizeof *ports);
	weir_status status = WEIR_OK;

	if (!ports)
		return WEIR_E_NOMEM;
	entity->described = ports;
	ports->kind = *table;
	ports->root = root;
	for (size_t i = 0; !status && i < wr_port_count(table->inputs); i++)
		status = put(&ports->inputs, &table->inputs[i]);
	for (size_t i = 0; !status && i < wr_port_count(table->outputs); i++)
		status = put(&ports->outputs, &table->outputs[i]);
	return status;
}

/* What describe has added is checked as a table is. */
static weir_status describe(struct wr_plan_entity *entity)
{
	weir_ports *ports = entity->described;
	weir_status status = entity->kind->describe(entity->values, ports);
	weir_status misused = wr_values_check(entity->values);

	ports->root = NULL;
	if (!status)
		status = misused;
	if (status)
		return status;
	ports->kind.inputs = ports->inputs.list;
	ports->kind.outputs = ports->outputs.list;
	return wr_operator_check(&ports->kind);
}

weir_status wr_build_described(struct wr_build *build, struct wr_plan_entity *entity, bool values_are_good,
			       const struct wr_at *at, struct wr_place place)
{
	const char *why;
	weir_status status = WEIR_OK;

	if (values_are_good)
		status = make(entity, build->root);
	if (values_are_good && !status) {
		wr_fail(WEIR_E_FAILED, "operator '%s' says no more", entity->kind->name);
		status = describe(entity);
	}
	if (status == WEIR_E_NOMEM)
		return status;
	if (values_are_good && !status) {
		entity->kind = &entity->described->kind;
		return WEIR_OK;
	}
	if (status) {
		why = entity->described->why;
		wr_report(&build->reports, WR_W_DESCRIBE, at, place, "%s%s",
			  *why ? "" : "the ports are not known: ", *why ? why : weir_last_error());
	}
	entity->kind = NULL; /* as an unknown operator: no more errors because of its ports */
	return WEIR_OK;
}
