/*
 * libFuzzer: any head that another process may send, with a payload whose size its first two bytes say.
 * Nothing may crash; a refusal has a reason of one printable line, and what is accepted has the size of the
 * payload.
 */
#include <stdint.h>
#include <stdlib.h>

#include "remote/wire.h"
#include "shown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wire_record parts[WEIR_PARTS_MAX];
	struct wire wire;
	char why[LINK_WHY] = "";
	size_t bytes, sum;

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
	if (wire.kind != WIRE_DATA)
		return 0;
	sum = wire.message.bytes;
	for (unsigned i = 0; i < wire.count; i++)
		sum += parts[i].bytes;
	if (sum != bytes)
		abort();
	return 0;
}
