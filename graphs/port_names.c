#include "graphs/port_names.h"

#include <string.h>

#include "base/nearest.h"

size_t wr_port_count(const weir_port *ports)
{
	size_t count = 0;

	while (ports && ports[count].name)
		count++;
	return count;
}

int wr_port_index(const weir_port *ports, const char *name)
{
	for (int i = 0; ports && ports[i].name; i++)
		if (!strcmp(ports[i].name, name))
			return i;
	return -1;
}

int wr_port_find(struct wr_reports *reports, const struct wr_at *at, struct wr_place place,
		 const weir_operator *kind, const char *name, bool input)
{
	const weir_port *ports = input ? kind->inputs : kind->outputs;
	const char *direction = input ? "input" : "output";
	struct wr_nearest nearest = {.wanted = name};
	struct wr_offer offer = {.what = direction};
	int index = wr_port_index(ports, name);

	if (index >= 0)
		return index;
	for (size_t i = 0; i < wr_port_count(ports); i++) {
		wr_nearest_try(&nearest, ports[i].name);
		wr_offer_add(&offer, ports[i].name);
	}
	if (wr_port_index(input ? kind->outputs : kind->inputs, name) >= 0)
		wr_report(reports, WR_W_DIRECTION, at, place,
			  "'%s' of operator '%s' is an %s, but an %s is needed here%s", name, kind->name,
			  input ? "output" : "input", direction, wr_offer_hint(&offer, &nearest));
	else
		wr_report(reports, WR_W_UNKNOWN_PORT, at, place, "operator '%s' has no %s '%s'%s", kind->name,
			  direction, wr_shown(name).text, wr_offer_hint(&offer, &nearest));
	return -1;
}
