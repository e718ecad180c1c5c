/*
 * libFuzzer: any head that another process may send, with a payload whose size its first two bytes say.
 * Nothing may crash; a refusal has a reason of one printable line, and what is accepted has the size of the
 * payload, or, in a bundle, has its payload within the head.
 */
#include <stdint.h>
#include <stdlib.h>

#include "remote/wire.h"
#include "shown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t bytes_of(const struct wire *wire)
{
	size_t sum = wire->message.bytes;

	for (unsigned i = 0; i < wire->count; i++)
		sum += wire->parts[i].bytes;
	return sum;
}

static void read_bundle(struct wire *bundle, struct wire_record *parts, size_t most)
{
	char why[LINK_WHY] = "";

	while (bundle->rest != bundle->end) {
		const uint8_t *before = bundle->rest, *payload;

		if (!wire_next(bundle, most, parts, why)) {
			if (!why[0] || !shown(why, false))
				abort();
			return;
		}
		payload = bundle->payload;
		if (payload <= before || payload + bytes_of(bundle) != bundle->rest ||
		    bundle->rest > bundle->end || bytes_of(bundle) > most)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wire_record parts[WEIR_PARTS_MAX];
	struct wire wire;
	char why[LINK_WHY] = "";
	size_t bytes;

	if (size < 2)
		return 0;
	bytes = data[0] | (size_t)data[1] << 8;
	if (!wire_read(data + 2, size - 2, bytes, 1 << 15, parts, &wire, why)) {
		if (!why[0] || !shown(why, false))
			abort();
		return 0;
	}
	if (wire.kind == WIRE_BYE && !shown(wire.text, false))
		abort();
	if (wire.kind == WIRE_BUNDLE)
		read_bundle(&wire, parts, 1 << 15);
	if (wire.kind == WIRE_DATA && bytes_of(&wire) != bytes)
		abort();
	return 0;
}
