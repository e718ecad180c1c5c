/* Draws the memory pool of a graph, by a generator of its own: the rest of the graph is as without it. */
#include <stdio.h>
#include <string.h>

#include "fuzz_api.h"

/*
 * Returns true if what a source needs for a tick always comes back: in a graph that must finish no tick waits
 * for several messages, and none go round. Nowhere do operators keep memory (certificate.h).
 */
static bool memory_comes_back(const struct fz *fz)
{
	for (unsigned id = 0; id < fz->entity_count; id++) {
		const struct fz_entity *entity = &fz->entities[id];

		if (entity->keeps)
			return false;
		for (unsigned port = 0; fz->tame && port < FZ_PORTS; port++)
			if (entity->ports[port].take > 1)
				return false;
	}
	for (unsigned i = 0; fz->tame && i < fz->connection_count; i++)
		if (fz->connections[i].initial_messages)
			return false;
	return true;
}

/* The first source makes its messages in a pool of hardly more blocks than a tick needs. */
void fz_draw_memory(struct fz *fz)
{
	struct fz_random random = {fz->seed * 1000033};
	struct fz_entity *source = &fz->entities[0];
	char others[sizeof source->uses];
	unsigned needed = 0;
	bool named;

	fz_next(&random);
	for (unsigned output = 0; output < FZ_OUTPUTS; output++)
		if (source->send[output] == FZ_PRODUCE)
			needed += source->max_emits[output] * (source->parts ? source->parts : 1);
	if (!source->device || !needed || fz_chance(&random, 4) || !memory_comes_back(fz))
		return;
	source->claims = needed;
	fz->blocks = needed + fz_below(&random, 3);
	memcpy(others, source->uses, sizeof others);
	named = !strncmp(others, "\"resources\":[", 13);
	snprintf(source->uses, sizeof source->uses, "\"resources\":[\"m\"%s%.90s", named ? "," : "],",
		 named ? others + 13 : others);
}
