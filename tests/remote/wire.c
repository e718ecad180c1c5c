#include "remote/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1 << 20 };

static struct wire_record parts[WEIR_PARTS_MAX];

static bool reads(const void *head, size_t length, size_t bytes, struct wire *out)
{
	char why[LINK_WHY] = "";
	bool well = wire_read(head, length, bytes, MOST, parts, out, why);

	assert_int_equal(well, !why[0]); /* a refusal has a reason */
	assert_null(strchr(why, '\n'));
	return well;
}

/* A head of WIRE_DATA with two parts: 12 bytes, and a tensor [2, 3] of float32. */
static size_t two_parts(uint8_t head[200])
{
	static const uint8_t bytes[] = {
		WIRE_DATA, 7,
		0,         0,
		0,         0,
		0,         0,
		0,         1,
		2,         0,
		0,         0,
		0,         0,
		0,         WEIR_KIND_PARTS,
		9,         0,
		0,         0,
		0,         0,
		0,         0,
		5,         0,
		0,         0,
		0,         0,
		0,         0,
		2,         1,
		'a',       WEIR_KIND_BYTES,
		0,         0,
		0,         0,
		0,         0,
		0,         0,
		0,         0,
		0,         0,
		0,         0,
		0,         0,
		12,        0,
		0,         0,
		0,         0,
		0,         0,
		2,         'b',
		'c',       WEIR_KIND_TENSOR,
		1,         0,
		0,         0,
		0,         0,
		0,         0,
		2,         0,
		0,         0,
		0,         0,
		0,         0,
		2,         32,
		1,         0,
		1,         2,
		2,         0,
		0,         0,
		0,         0,
		0,         0,
		3,         0,
		0,         0,
		0,         0,
		0,         0,
	};

	memcpy(head, bytes, sizeof bytes);
	return sizeof bytes;
}

static void r02_a_head_is_read_as_it_was_written(void **unused)
{
	uint8_t head[WIRE_SMALL];
	struct wire out, in = {.kind = WIRE_WELCOME,
			       .session = UINT64_C(0x123456789abcdef0),
			       .number = 5,
			       .credits = 3,
			       .waiting = 2,
			       .most = 99};

	(void)unused;
	assert_true(reads(head, wire_write(&in, head), 0, &out));
	assert_int_equal(out.kind, WIRE_WELCOME);
	assert_true(out.session == in.session && out.number == 5 && out.credits == 3 && out.waiting == 2 &&
		    out.most == 99);
	in = (struct wire){.kind = WIRE_CREDIT,
			   .credits = 1,
			   .number = 7,
			   .times = {.said = 3, .asked = -1, .heard = 2}};
	assert_true(reads(head, wire_write(&in, head), 0, &out));
	assert_true(out.credits == 1 && out.number == 7);
	assert_true(out.times.said == 3 && out.times.asked == -1 && out.times.heard == 2);
	in = (struct wire){.kind = WIRE_END, .number = UINT64_MAX};
	assert_true(reads(head, wire_write(&in, head), 0, &out));
	assert_true(out.kind == WIRE_END && out.number == UINT64_MAX);
}

static void r02_parts_have_names_stamps_and_shapes(void **unused)
{
	struct wire out;
	uint8_t head[200];

	(void)unused;
	assert_true(reads(head, two_parts(head), 36, &out));
	assert_int_equal(out.number, 7);
	assert_int_equal(out.times.said, 0x201);
	assert_int_equal(out.count, 2);
	assert_int_equal(out.message.stamp.tag, 5);
	assert_int_equal(parts[0].bytes, 12);
	assert_memory_equal(parts[1].name, "bc", parts[1].name_length);
	assert_int_equal(parts[1].bytes, 24);
	assert_int_equal(parts[1].shape[1], 3);
	assert_int_equal(parts[1].stamp.time, 1);
}

/* The last word of the other side is shown on a terminal. */
static void e06_a_text_of_the_other_side_is_escaped(void **unused)
{
	struct wire out, in = {.kind = WIRE_BYE, .reason = WIRE_STOPPED};
	uint8_t head[WIRE_SMALL];

	(void)unused;
	memset(in.text, '\n', WIRE_SAID + 50);
	assert_true(reads(head, wire_write(&in, head), 0, &out));
	assert_null(strchr(out.text, '\n'));
	assert_true(strlen(out.text) <= WIRE_TEXT);
}

static void e06_a_head_that_cannot_be_is_refused(void **unused)
{
	struct wire out;
	uint8_t head[200], other[200];
	size_t length = two_parts(head);

	(void)unused;
	assert_false(reads(head, length, 35, &out)); /* other payloads than it says */
	assert_false(reads(head, length, 37, &out));
	assert_false(reads(head, length + 1, 36, &out)); /* more than there should be */
	for (size_t i = 0; i < length; i++)              /* less */
		assert_false(reads(head, i, 36, &out));
	memcpy(other, head, length);
	other[length - 1] = 0x80; /* a size that is negative */
	assert_false(reads(other, length, 36, &out));
	memcpy(other, head, length);
	memset(other + length - 16, 0x7f, 16); /* a product beyond 64 bits */
	assert_false(reads(other, length, 36, &out));
	memcpy(other, head, length);
	other[36] = 0; /* a name with a NUL */
	assert_false(reads(other, length, 36, &out));
	memcpy(other, head, length);
	other[17] = WEIR_KIND_USER;
	assert_false(reads(other, length, 36, &out));
	assert_false(reads(head, length, (size_t)MOST + 1, &out));
}

static void e06_another_version_is_refused_by_its_number(void **unused)
{
	const struct wire hello = {.kind = WIRE_HELLO};
	uint8_t head[WIRE_SMALL];
	char why[LINK_WHY];
	struct wire out;
	size_t length = wire_write(&hello, head);

	(void)unused;
	head[5]++;
	assert_false(wire_read(head, length, 0, MOST, parts, &out, why));
	assert_string_equal(why, "the other side speaks version 5, this one 4: use the same weir on both");
	head[1] = 'W';
	assert_false(wire_read(head, length, 0, MOST, parts, &out, why));
	assert_string_equal(why, "the other side is no weir: its first message is no greeting");
}

/* Under the sanitizers this looks for reads outside of the head; tests/fuzz looks longer. */
static void e06_any_head_is_read_without_harm(void **unused)
{
	uint32_t seed = 1;

	(void)unused;
	for (int round = 0; round < 200000; round++) {
		uint8_t head[200];
		size_t length = two_parts(head), sum = 0;
		struct wire out;

		for (int change = round % 4; change >= 0; change--) {
			seed = seed * 1664525 + 1013904223;
			head[(seed >> 8) % length] = (uint8_t)(seed >> 24);
		}
		if (round % 3 == 0)
			length = seed % (length + 1);
		if (!wire_read(head, length, 36, MOST, parts, &out, (char[LINK_WHY]){""}) ||
		    out.kind != WIRE_DATA)
			continue;
		sum = out.message.bytes;
		for (unsigned i = 0; i < out.count; i++)
			sum += parts[i].bytes;
		assert_int_equal(sum, 36);
	}
}

/* --- bundles --- */

static weir_registry *registry;
static weir_graph *graph;

static int make_graph(void **unused)
{
	static const char json[] = "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"ping\"}]}";
	weir_description *description;

	(void)unused;
	assert_false(weir_registry_create(&registry));
	assert_false(weir_description_parse(json, strlen(json), NULL, NULL, &description));
	assert_false(weir_graph_create(registry, description, &graph));
	weir_description_destroy(description);
	return 0;
}

static int destroy_graph(void **unused)
{
	(void)unused;
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_registry_destroy(registry);
	return 0;
}

/* Of a message of so many bytes, which are all the same; 0: of an empty one. */
static bool adds(struct wire_bundle *bundle, size_t size, int fill, uint64_t most)
{
	const struct wire_data data = {.number = 7, .said = 3, .most = most};
	weir_message *message;
	bool added;

	if (size)
		assert_false(weir_message_create_bytes(graph, size, &message));
	else
		assert_false(weir_message_create_empty(graph, &message));
	if (size)
		memset(weir_message_data(message), fill, size);
	added = wire_bundle_add(bundle, message, &data);
	weir_message_unref(message);
	return added;
}

static void add_three(struct wire_bundle *bundle)
{
	assert_true(adds(bundle, 8, 'a', MOST));
	assert_true(adds(bundle, 0, 0, MOST));
	assert_true(adds(bundle, 300, 'c', MOST));
}

/* How many messages are read before one cannot be, or all are. */
static unsigned count_read(const struct wire_bundle *bundle, size_t length, size_t most)
{
	char why[LINK_WHY] = "";
	unsigned count = 0;
	struct wire wire;

	if (!reads(bundle->head, length, 0, &wire))
		return 0;
	for (; wire.rest != wire.end; count++)
		if (!wire_next(&wire, most, parts, why)) {
			assert_true(why[0]);
			break;
		}
	return count;
}

static void r02_a_bundle_is_read_as_it_was_written(void **unused)
{
	uint8_t head[WIRE_SMALL];
	struct wire_bundle bundle = {.head = head, .room = sizeof head};
	char why[LINK_WHY];
	struct wire wire;

	(void)unused;
	add_three(&bundle);
	assert_true(reads(head, bundle.bytes, 0, &wire));
	assert_true(wire.kind == WIRE_BUNDLE && wire.number == 7 && wire.times.said == 3);
	assert_true(wire_next(&wire, MOST, parts, why));
	assert_true(wire.message.kind == WEIR_KIND_BYTES && wire.message.bytes == 8);
	assert_memory_equal(wire.payload, "aaaaaaaa", 8);
	assert_true(wire_next(&wire, MOST, parts, why));
	assert_int_equal(wire.message.kind, WEIR_KIND_EMPTY);
	assert_true(wire_next(&wire, MOST, parts, why));
	assert_int_equal(wire.message.bytes, 300);
	assert_int_equal(((const char *)wire.payload)[299], 'c');
	assert_ptr_equal(wire.rest, wire.end);
}

static void r02_what_is_not_small_or_has_no_room_leaves_a_bundle_as_it_is(void **unused)
{
	static uint8_t head[4 * WIRE_BUNDLED], before[sizeof head];
	struct wire_bundle bundle = {.head = head, .room = sizeof head};

	(void)unused;
	assert_false(adds(&bundle, WIRE_BUNDLED + 1, 'x', MOST));
	assert_false(adds(&bundle, 8, 'x', 7)); /* than the receiver takes */
	assert_int_equal(bundle.bytes, 0);
	add_three(&bundle);
	memcpy(before, head, bundle.bytes);
	bundle.room = bundle.bytes + 8;
	assert_false(adds(&bundle, 1, 'x', MOST));
	assert_int_equal(count_read(&bundle, bundle.bytes, MOST), 3);
	assert_memory_equal(before, head, bundle.bytes);
}

static void e06_a_bundle_that_cannot_be_is_refused(void **unused)
{
	static const uint8_t on_device[] = {
		WEIR_KIND_TENSOR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 32, 1, 0, 1, 0};
	uint8_t head[WIRE_SMALL];
	struct wire_bundle bundle = {.head = head, .room = sizeof head};
	struct wire wire;

	(void)unused;
	add_three(&bundle);
	assert_false(reads(head, bundle.bytes, 1, &wire)); /* a payload */
	for (size_t i = 0; i < bundle.bytes; i++)          /* less than there should be */
		assert_true(count_read(&bundle, i, MOST) < 3);
	assert_int_equal(count_read(&bundle, bundle.bytes, 299), 2); /* the last is too large */
	memcpy(head + bundle.bytes, on_device, sizeof on_device);
	memset(head + bundle.bytes + sizeof on_device, 0, 4);
	assert_int_equal(count_read(&bundle, bundle.bytes + sizeof on_device + 4, MOST), 3);
	head[bundle.bytes + 21] = 0; /* on the host */
	assert_int_equal(count_read(&bundle, bundle.bytes + sizeof on_device + 4, MOST), 4);
	head[bundle.bytes + 21] = 1;
	head[bundle.bytes + 22] = 1; /* of one dimension, without elements */
	memset(head + bundle.bytes + sizeof on_device, 0, 8);
	assert_int_equal(count_read(&bundle, bundle.bytes + sizeof on_device + 8, MOST), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r02_a_head_is_read_as_it_was_written),
		cmocka_unit_test(r02_parts_have_names_stamps_and_shapes),
		cmocka_unit_test(e06_a_text_of_the_other_side_is_escaped),
		cmocka_unit_test(e06_a_head_that_cannot_be_is_refused),
		cmocka_unit_test(e06_another_version_is_refused_by_its_number),
		cmocka_unit_test(e06_any_head_is_read_without_harm),
		cmocka_unit_test(r02_a_bundle_is_read_as_it_was_written),
		cmocka_unit_test(r02_what_is_not_small_or_has_no_room_leaves_a_bundle_as_it_is),
		cmocka_unit_test(e06_a_bundle_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, make_graph, destroy_graph);
}
