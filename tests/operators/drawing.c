#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/operators/drawing.h"

struct bytes {
	uint8_t *data;
	size_t count, room;
};

static void put(struct bytes *bytes, const void *data, size_t count)
{
	if (bytes->count + count > bytes->room) {
		bytes->room = 2 * (bytes->count + count);
		bytes->data = realloc(bytes->data, bytes->room);
		assert_non_null(bytes->data);
	}
	if (count)
		memcpy(bytes->data + bytes->count, data, count);
	bytes->count += count;
}

static void put_u32(struct bytes *bytes, uint32_t value)
{
	const uint8_t data[] = {value >> 24 & 255, value >> 16 & 255, value >> 8 & 255, value & 255};

	put(bytes, data, 4);
}

static uint32_t crc(const uint8_t *data, size_t count)
{
	uint32_t sum = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		sum ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
	}
	return ~sum;
}

static void put_chunk(struct bytes *bytes, const char *type, const uint8_t *data, size_t count)
{
	size_t begin = bytes->count + 4;

	put_u32(bytes, (uint32_t)count);
	put(bytes, type, 4);
	put(bytes, data, count);
	put_u32(bytes, crc(bytes->data + begin, count + 4));
}

unsigned drawing_channels(const struct drawing *drawing)
{
	static const unsigned channels[] = {1, 0, 3, 1, 2, 0, 4};

	return channels[drawing->type];
}

uint16_t drawing_sample(const struct drawing *drawing, uint32_t x, uint32_t y, unsigned channel)
{
	uint32_t value = (x * 37 + y * 101 + channel * 59 + 11) * 2654435761u >> 16;

	if (drawing->type == PALETTE)
		return value % (drawing->depth == 1 ? 2 : 4);
	return (uint16_t)(value & ((1u << drawing->depth) - 1));
}

uint8_t drawing_palette(unsigned entry, unsigned channel)
{
	return (uint8_t)(entry * 50 + channel * 13 + 1);
}

/* A row of the picture, or of one pass: every step-th pixel from x0, samples packed from the highest bit. */
static void put_row(struct bytes *raw, const struct drawing *drawing, uint32_t y, uint32_t x0, uint32_t step)
{
	uint8_t byte = 0;
	unsigned bits = 0;

	put(raw, "", 1); /* no filter */
	for (uint32_t x = x0; x < drawing->width; x += step)
		for (unsigned channel = 0; channel < drawing_channels(drawing); channel++)
			for (unsigned bit = drawing->depth; bit-- > 0;) {
				byte = (uint8_t)(byte << 1 |
						 (drawing_sample(drawing, x, y, channel) >> bit & 1));
				if (++bits % 8 == 0)
					put(raw, &byte, 1);
			}
	byte = (uint8_t)(byte << (8 - bits % 8) % 8);
	if (bits % 8)
		put(raw, &byte, 1);
}

static void put_rows(struct bytes *raw, const struct drawing *drawing)
{
	static const uint8_t x0[] = {0, 4, 0, 2, 0, 1, 0}, y0[] = {0, 0, 4, 0, 2, 0, 1};
	static const uint8_t dx[] = {8, 8, 4, 4, 2, 2, 1}, dy[] = {8, 8, 8, 4, 4, 2, 2};

	if (!drawing->interlaced)
		for (uint32_t y = 0; y < drawing->height; y++)
			put_row(raw, drawing, y, 0, 1);
	for (int pass = 0; drawing->interlaced && pass < 7; pass++)
		for (uint32_t y = y0[pass]; y < drawing->height && x0[pass] < drawing->width; y += dy[pass])
			put_row(raw, drawing, y, x0[pass], dx[pass]);
}

static uint32_t adler(const uint8_t *data, size_t count)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < count; i++) {
		a = (a + data[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static void put_pixels(struct bytes *file, const struct drawing *drawing)
{
	struct bytes raw = {0}, zlib = {0};
	uint8_t head[] = {0x78, 1, 1, 0, 0, 0, 0};

	put_rows(&raw, drawing);
	assert_in_range(raw.count, 1, 65535); /* one stored block */
	head[3] = (uint8_t)raw.count;
	head[4] = (uint8_t)(raw.count >> 8);
	head[5] = (uint8_t)~head[3];
	head[6] = (uint8_t)~head[4];
	put(&zlib, head, sizeof head);
	put(&zlib, raw.data, raw.count);
	put_u32(&zlib, adler(raw.data, raw.count));
	put_chunk(file, "IDAT", zlib.data, zlib.count);
	free(raw.data);
	free(zlib.data);
}

static void put_colours(struct bytes *file, const struct drawing *drawing)
{
	unsigned entries = drawing->depth == 1 ? 2 : 4;
	uint8_t data[12] = {0};

	for (unsigned i = 0; i < entries * 3; i++)
		data[i] = drawing_palette(i / 3, i % 3);
	if (drawing->type == PALETTE)
		put_chunk(file, "PLTE", data, (size_t)entries * 3);
	memset(data, 0, sizeof data);
	data[0] = drawing->type == PALETTE ? 7 : 0;
	if (drawing->transparent)
		put_chunk(file, "tRNS", data, drawing->type == PALETTE ? 1 : drawing->type == GREY ? 2 : 6);
}

uint8_t *drawing_bytes(const struct drawing *drawing, size_t *size)
{
	struct bytes file = {0}, head = {0};
	const uint8_t rest[] = {drawing->depth, drawing->type, 0, 0, drawing->interlaced};

	put(&file, "\211PNG\r\n\032\n", 8);
	put_u32(&head, drawing->claimed_width ? drawing->claimed_width : drawing->width);
	put_u32(&head, drawing->claimed_height ? drawing->claimed_height : drawing->height);
	put(&head, rest, sizeof rest);
	put_chunk(&file, "IHDR", head.data, head.count);
	free(head.data);
	put_colours(&file, drawing);
	put_pixels(&file, drawing);
	put_chunk(&file, "IEND", NULL, 0);
	*size = file.count;
	return file.data;
}
