#include "remote/wire.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint8_t magic[4] = {'w', 'e', 'i', 'r'};

/* --- little-endian numbers --- */

struct writer {
	uint8_t *at, *end;
	bool full;
};

/* bytes: a constant, so that this is one store. */
static inline void put(struct writer *writer, uint64_t value, unsigned bytes)
{
	if ((size_t)(writer->end - writer->at) < bytes) {
		writer->full = true;
		return;
	}
	value = htole64(value);
	memcpy(writer->at, &value, bytes);
	writer->at += bytes;
}

static void put_bytes(struct writer *writer, const void *bytes, size_t length)
{
	if ((size_t)(writer->end - writer->at) < length) {
		writer->full = true;
		return;
	}
	memcpy(writer->at, bytes, length);
	writer->at += length;
}

struct reader {
	const uint8_t *at, *end;
	bool short_; /* it ended before what was wanted */
};

static inline uint64_t get(struct reader *reader, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(reader->end - reader->at) < bytes) {
		reader->short_ = true;
		return 0;
	}
	memcpy(&value, reader->at, bytes);
	reader->at += bytes;
	return le64toh(value);
}

static const void *get_bytes(struct reader *reader, size_t length)
{
	const void *at = reader->at;

	if ((size_t)(reader->end - reader->at) < length) {
		reader->short_ = true;
		return NULL;
	}
	reader->at += length;
	return at;
}

static struct wire_times get_times(struct reader *reader)
{
	struct wire_times times;

	times.said = (int64_t)get(reader, 8);
	times.asked = (int64_t)get(reader, 8);
	times.heard = (int64_t)get(reader, 8);
	return times;
}

/* --- writing --- */

static void put_times(struct writer *writer, const struct wire_times *times)
{
	put(writer, (uint64_t)times->said, 8);
	put(writer, (uint64_t)times->asked, 8);
	put(writer, (uint64_t)times->heard, 8);
}

static uint8_t order_of_bytes(void)
{
	const uint16_t one = 1;

	return *(const uint8_t *)&one; /* 1: little-endian, that of payloads */
}

size_t wire_write(const struct wire *wire, uint8_t head[WIRE_SMALL])
{
	struct writer writer = {head, head + WIRE_SMALL, false};

	put(&writer, wire->kind, 1);
	switch (wire->kind) {
	case WIRE_HELLO:
	case WIRE_WELCOME:
		put_bytes(&writer, magic, sizeof magic);
		put(&writer, WIRE_VERSION, 2);
		put(&writer, order_of_bytes(), 1);
		put(&writer, wire->session, 8);
		put(&writer, wire->number, 8);
		put(&writer, wire->waiting, 4);
		put(&writer, wire->credits, 4);
		put(&writer, wire->most, 8);
		put(&writer, wire->device, 1);
		put_times(&writer, &wire->times);
		break;
	case WIRE_CREDIT:
		put(&writer, wire->credits, 4);
		put(&writer, wire->number, 8);
		put_times(&writer, &wire->times);
		break;
	case WIRE_END:
		put(&writer, wire->number, 8);
		break;
	case WIRE_BYE:
		put(&writer, wire->reason, 1);
		put_bytes(&writer, wire->text, strnlen(wire->text, WIRE_SAID));
		break;
	case WIRE_DONE:
	case WIRE_DATA:   /* wire_write_message */
	case WIRE_BUNDLE: /* wire_bundle_add */
		break;
	}
	return (size_t)(writer.at - head);
}

static bool is_dense(const weir_tensor *tensor)
{
	int64_t stride = 1;

	for (int i = tensor->dimensions; tensor->strides && i--; stride *= tensor->shape[i])
		if (tensor->strides[i] != stride && tensor->shape[i] > 1)
			return false;
	return true;
}

static void put_tensor(struct writer *writer, const weir_tensor *tensor)
{
	put(writer, tensor->code, 1);
	put(writer, tensor->bits, 1);
	put(writer, tensor->lanes, 2);
	put(writer, tensor->device != WEIR_DEVICE_HOST, 1);
	put(writer, (uint64_t)tensor->dimensions, 1);
	for (int i = 0; i < tensor->dimensions; i++)
		put(writer, (uint64_t)tensor->shape[i], 8);
}

bool wire_is_closed(const void *data)
{
	weir_device_memory where = {.size = sizeof where};

	return data && weir_running_device_memory(data, &where);
}

/* Why the message, which is none of parts, cannot be sent; NULL: it can. */
static const char *refusal(unsigned kind, const weir_tensor *tensor)
{
	if (kind == WEIR_KIND_USER)
		return "a user's pointer means nothing in another process: send bytes or a tensor";
	if (tensor && wire_is_closed(tensor->data))
		return "a tensor is in memory of the device, which is closed to the host, so to the link "
		       "too: run with --no-strict, or put a 'download' before it";
	if (tensor && !is_dense(tensor))
		return "a tensor has strides: send a dense copy";
	return NULL;
}

/* Where the payload is, and which side has it on a device. */
static struct span span_of(const weir_message *message, const weir_tensor *tensor,
			   const struct wire_data *data, size_t bytes)
{
	struct span span = {.data = weir_message_data(message), .bytes = bytes};

	if (!tensor)
		return span;
	span.device = data->devices && tensor->device != WEIR_DEVICE_HOST;
	span.apart = tensor->device != WEIR_DEVICE_HOST || data->theirs == WIRE_DEVICE_ALL;
	return span;
}

static bool put_record(struct writer *writer, const weir_message *message, const struct wire_data *data,
		       struct span *spans, unsigned *count, char why[LINK_WHY])
{
	unsigned kind = weir_message_kind(message);
	const weir_tensor *tensor = kind == WEIR_KIND_TENSOR ? weir_message_tensor(message) : NULL;
	const char *refused = refusal(kind, tensor);
	weir_stamp stamp = weir_message_stamp(message);
	size_t bytes = weir_message_size(message);

	if (refused) {
		snprintf(why, LINK_WHY, "%s", refused);
		return false;
	}
	put(writer, kind, 1);
	put(writer, (uint64_t)stamp.time, 8);
	put(writer, stamp.tag, 8);
	if (tensor)
		put_tensor(writer, tensor);
	if (kind == WEIR_KIND_BYTES)
		put(writer, bytes, 8);
	if (bytes)
		spans[(*count)++] = span_of(message, tensor, data, bytes);
	return true;
}

static bool put_parts(struct writer *writer, const weir_message *message, const struct wire_data *data,
		      struct span *spans, unsigned *count, char why[LINK_WHY])
{
	weir_stamp stamp = weir_message_stamp(message);

	put(writer, WEIR_KIND_PARTS, 1);
	put(writer, (uint64_t)stamp.time, 8);
	put(writer, stamp.tag, 8);
	put(writer, weir_message_parts(message), 1);
	for (size_t i = 0; i < weir_message_parts(message); i++) {
		const char *name = weir_message_part_name(message, i);

		put(writer, strlen(name), 1);
		put_bytes(writer, name, strlen(name));
		if (!put_record(writer, weir_message_part_at(message, i), data, spans, count, why))
			return false;
	}
	return true;
}

static bool put_any(struct writer *writer, const weir_message *message, const struct wire_data *data,
		    struct span *spans, unsigned *count, char why[LINK_WHY])
{
	*count = 0;
	return weir_message_kind(message) == WEIR_KIND_PARTS
		       ? put_parts(writer, message, data, spans, count, why)
		       : put_record(writer, message, data, spans, count, why);
}

static void put_number(struct writer *writer, enum wire_kind kind, const struct wire_data *data)
{
	put(writer, kind, 1);
	put(writer, data->number, 8);
	put(writer, (uint64_t)data->said, 8);
}

size_t wire_write_message(const weir_message *message, const struct wire_data *data, size_t room,
			  uint8_t *head, struct span spans[LINK_SPANS], unsigned *count, char why[LINK_WHY])
{
	struct writer writer = {head, head + room, false};
	bool well;

	put_number(&writer, WIRE_DATA, data);
	well = put_any(&writer, message, data, spans, count, why);
	if (well && writer.full) {
		snprintf(why, LINK_WHY,
			 "the names and shapes of a message's parts take more than %zu bytes: use fewer "
			 "parts, or shorter names",
			 room);
		well = false;
	}
	return well ? (size_t)(writer.at - head) : 0;
}

bool wire_bundle_add(struct wire_bundle *bundle, const weir_message *message, const struct wire_data *data)
{
	struct writer writer = {bundle->head + bundle->bytes, bundle->head + bundle->room, false};
	uint64_t left = data->most < WIRE_BUNDLED ? data->most : WIRE_BUNDLED;
	struct span spans[LINK_SPANS];
	char why[LINK_WHY];
	unsigned count;

	if (!bundle->bytes)
		put_number(&writer, WIRE_BUNDLE, data);
	if (!put_any(&writer, message, data, spans, &count, why))
		return false;
	for (unsigned i = 0; i < count; left -= spans[i++].bytes) {
		if (spans[i].device || spans[i].apart || spans[i].bytes > left)
			return false;
		put_bytes(&writer, spans[i].data, spans[i].bytes);
	}
	if (writer.full)
		return false;
	bundle->bytes = (size_t)(writer.at - bundle->head);
	return true;
}

/* --- reading --- */

static bool is_type(unsigned code, unsigned bits)
{
	return (code == 0 || code == 1 || code == 2 || code == 4 || code == 6) &&
	       (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

/* false: it is no tensor that a message can have, or larger than `most`. */
static bool get_tensor(struct reader *reader, struct wire_record *record, size_t most)
{
	weir_tensor *tensor = &record->tensor;
	uint64_t bytes;

	*tensor = (weir_tensor){.size = sizeof *tensor, .shape = record->shape};
	tensor->code = (uint8_t)get(reader, 1);
	tensor->bits = (uint8_t)get(reader, 1);
	tensor->lanes = (uint16_t)get(reader, 2);
	tensor->device = get(reader, 1) ? 0 : WEIR_DEVICE_HOST;
	tensor->dimensions = (int32_t)get(reader, 1);
	if (tensor->dimensions > WEIR_DIMENSIONS_MAX || !is_type(tensor->code, tensor->bits))
		return false;
	bytes = (uint64_t)tensor->bits / 8 * (tensor->lanes ? tensor->lanes : 1);
	for (int i = 0; i < tensor->dimensions; i++) {
		record->shape[i] = (int64_t)get(reader, 8);
		if (record->shape[i] < 0 || __builtin_mul_overflow(bytes, (uint64_t)record->shape[i], &bytes))
			return false;
	}
	record->bytes = bytes;
	return bytes <= most;
}

static bool get_record(struct reader *reader, struct wire_record *record, size_t most)
{
	record->kind = (unsigned)get(reader, 1);
	record->stamp.time = (int64_t)get(reader, 8);
	record->stamp.tag = get(reader, 8);
	record->bytes = 0;
	if (record->kind == WEIR_KIND_TENSOR)
		return get_tensor(reader, record, most);
	if (record->kind == WEIR_KIND_BYTES)
		record->bytes = get(reader, 8);
	return record->bytes <= most && (record->kind == WEIR_KIND_BYTES || record->kind == WEIR_KIND_EMPTY ||
					 record->kind == WEIR_KIND_PARTS);
}

static bool get_parts(struct reader *reader, struct wire_record *parts, struct wire *out, size_t most,
		      size_t *sum)
{
	out->parts = parts;
	out->count = (unsigned)get(reader, 1);
	if (!out->count || out->count > WEIR_PARTS_MAX)
		return false;
	for (unsigned i = 0; i < out->count; i++) {
		struct wire_record *part = &parts[i];

		part->name_length = get(reader, 1);
		part->name = get_bytes(reader, part->name_length);
		if (reader->short_ || !part->name_length || part->name_length > WEIR_PART_NAME_MAX ||
		    memchr(part->name, 0, part->name_length) || !get_record(reader, part, most) ||
		    part->kind == WEIR_KIND_PARTS)
			return false;
		*sum += part->bytes; /* at most 64 * most */
	}
	return true;
}

static bool get_any(struct reader *reader, struct wire_record *parts, struct wire *out, size_t most,
		    size_t *sum)
{
	bool well = get_record(reader, &out->message, most);

	out->count = 0;
	*sum = out->message.bytes;
	return well && out->message.kind == WEIR_KIND_PARTS ? get_parts(reader, parts, out, most, sum) : well;
}

/* Without a payload it is nowhere. */
static bool is_of_device(const struct wire_record *record)
{
	return record->bytes && record->kind == WEIR_KIND_TENSOR && record->tensor.device != WEIR_DEVICE_HOST;
}

/* Its payload is in memory of the host. */
static bool get_bundled(struct reader *reader, struct wire_record *parts, struct wire *out, size_t most)
{
	size_t sum;

	if (!get_any(reader, parts, out, most, &sum) || sum > most || is_of_device(&out->message))
		return false;
	for (unsigned i = 0; i < out->count; i++)
		if (is_of_device(&parts[i]))
			return false;
	out->payload = get_bytes(reader, sum);
	return !reader->short_;
}

bool wire_next(struct wire *bundle, size_t most, struct wire_record parts[WEIR_PARTS_MAX], char why[LINK_WHY])
{
	struct reader reader = {bundle->rest, bundle->end, false};

	if (!get_bundled(&reader, parts, bundle, most)) {
		snprintf(why, LINK_WHY,
			 "a small message is broken, or larger than 'max_message', %zu: the other side is no "
			 "weir, or another version",
			 most);
		return false;
	}
	bundle->rest = reader.at;
	return true;
}

static bool get_message(struct reader *reader, size_t bytes, size_t most, struct wire_record *parts,
			struct wire *out, char why[LINK_WHY])
{
	size_t sum;
	bool well;

	if (most < bytes) {
		snprintf(why, LINK_WHY, "a message of %zu bytes is larger than 'max_message', %zu", bytes,
			 most);
		return false;
	}
	out->number = get(reader, 8);
	out->times.said = (int64_t)get(reader, 8);
	well = get_any(reader, parts, out, most, &sum);
	if (!well || reader->short_ || reader->at != reader->end || sum != bytes) {
		snprintf(why, LINK_WHY,
			 "the head of a message is broken: it says %zu bytes, and %zu came: the other side "
			 "is no weir, or another version",
			 sum, bytes);
		return false;
	}
	return true;
}

static bool get_greeting(struct reader *reader, struct wire *out, char why[LINK_WHY])
{
	const void *mark = get_bytes(reader, sizeof magic);
	unsigned version = (unsigned)get(reader, 2), order = (unsigned)get(reader, 1);

	if (reader->short_ || memcmp(mark, magic, sizeof magic)) {
		snprintf(why, LINK_WHY, "the other side is no weir: its first message is no greeting");
		return false;
	}
	if (version != WIRE_VERSION) {
		snprintf(why, LINK_WHY,
			 "the other side speaks version %u, this one %d: use the same weir on both", version,
			 WIRE_VERSION);
		return false;
	}
	if (order != order_of_bytes()) {
		snprintf(why, LINK_WHY,
			 "the other side has another order of bytes: tensors cannot be sent there");
		return false;
	}
	out->session = get(reader, 8);
	out->number = get(reader, 8);
	out->waiting = (uint32_t)get(reader, 4);
	out->credits = (uint32_t)get(reader, 4);
	out->most = get(reader, 8);
	out->device = (enum wire_device)get(reader, 1);
	out->times = get_times(reader);
	return true;
}

static void get_text(struct reader *reader, char text[WIRE_TEXT])
{
	size_t length = (size_t)(reader->end - reader->at);
	char raw[WIRE_SAID + 1]; /* a byte becomes at most four */
	const char *from = raw;

	if (length > sizeof raw - 1)
		length = sizeof raw - 1;
	memcpy(raw, get_bytes(reader, length), length);
	raw[length] = 0;
	weir_text_escape(&from, WIRE_TEXT, text);
	reader->at = reader->end;
}

bool wire_read(const void *head, size_t head_bytes, size_t bytes, size_t most,
	       struct wire_record parts[WEIR_PARTS_MAX], struct wire *out, char why[LINK_WHY])
{
	struct reader reader = {head, (const uint8_t *)head + head_bytes, false};

	out->kind = (enum wire_kind)get(&reader, 1);
	switch (out->kind) {
	case WIRE_HELLO:
	case WIRE_WELCOME:
		if (!get_greeting(&reader, out, why))
			return false;
		break;
	case WIRE_DATA:
		return get_message(&reader, bytes, most, parts, out, why);
	case WIRE_BUNDLE:
		out->number = get(&reader, 8);
		out->times.said = (int64_t)get(&reader, 8);
		out->rest = reader.at;
		out->end = reader.end;
		if (!reader.short_ && reader.at != reader.end && !bytes)
			return true;
		break;
	case WIRE_CREDIT:
		out->credits = (uint32_t)get(&reader, 4);
		out->number = get(&reader, 8);
		out->times = get_times(&reader);
		break;
	case WIRE_END:
		out->number = get(&reader, 8);
		break;
	case WIRE_BYE:
		out->reason = (enum wire_reason)get(&reader, 1);
		get_text(&reader, out->text);
		break;
	case WIRE_DONE:
		break;
	}
	if (out->kind >= WIRE_HELLO && out->kind <= WIRE_BYE && !reader.short_ && reader.at == reader.end &&
	    !bytes)
		return true;
	snprintf(why, LINK_WHY,
		 "a head of %zu bytes, kind %d, is broken: the other side is no weir, or another version",
		 head_bytes, (int)out->kind);
	return false;
}

/* --- making messages --- */

/* The backend of a device's tensors is `cuda`; elsewhere they are in memory of the host, which may be closed.
 */
static weir_status make_tensor(weir_context *context, const struct wire_record *record,
			       enum wire_device device, struct span *span, weir_message **out)
{
	weir_tensor like = record->tensor;
	bool here =
		device == WIRE_DEVICE_ALL || (device == WIRE_DEVICE_SENT && like.device != WEIR_DEVICE_HOST);
	weir_status status;

	like.shape = record->shape;
	status = weir_context_create_tensor(context, &like, here ? 0 : WEIR_TENSOR_HOST, out);
	if (status || !here)
		return status;
	span->device = weir_context_backend(context) == WEIR_BACKEND_CUDA;
	if (!wire_is_closed(weir_message_data(*out)))
		return WEIR_OK;
	return weir_context_fail(context,
				 "memory of the device is closed to the host, so to the link too: run with "
				 "--no-strict, or with \"place\": \"host\"");
}

static weir_status make_one(weir_context *context, const struct wire_record *record, enum wire_device device,
			    struct span *spans, unsigned *count, weir_message **out)
{
	struct span span = {.bytes = record->bytes};
	weir_message *message = NULL;
	weir_status status;

	if (record->kind == WEIR_KIND_TENSOR)
		status = make_tensor(context, record, device, &span, &message);
	else if (record->kind == WEIR_KIND_BYTES)
		status = weir_message_create_bytes(weir_context_graph(context), record->bytes, &message);
	else
		status = weir_message_create_empty(weir_context_graph(context), &message);
	if (!status && (record->stamp.time || record->stamp.tag))
		status = weir_message_set_stamp(message, record->stamp);
	if (status) {
		weir_message_unref(message);
		return status;
	}
	span.data = weir_message_data(message);
	if (record->bytes)
		spans[(*count)++] = span;
	*out = message;
	return WEIR_OK;
}

static weir_status make_parts(weir_context *context, const struct wire *wire, enum wire_device device,
			      struct span *spans, unsigned *count, weir_message **out)
{
	weir_part parts[WEIR_PARTS_MAX];
	char names[WEIR_PARTS_MAX][WEIR_PART_NAME_MAX + 1];
	weir_status status = WEIR_OK;
	unsigned made = 0;

	for (; made < wire->count && !status; made += !status) {
		const struct wire_record *part = &wire->parts[made];

		memcpy(names[made], part->name, part->name_length);
		names[made][part->name_length] = 0;
		parts[made] = (weir_part){.size = sizeof(weir_part), .name = names[made]};
		status = make_one(context, part, device, spans, count, &parts[made].message);
	}
	if (!status)
		status = weir_message_pack(weir_context_graph(context), parts, made, out);
	while (status && made)
		weir_message_unref(parts[--made].message);
	if (status || !(wire->message.stamp.time || wire->message.stamp.tag))
		return status;
	status = weir_message_set_stamp(*out, wire->message.stamp);
	if (status)
		weir_message_unref(*out);
	return status;
}

weir_status wire_make(weir_context *context, const struct wire *wire, enum wire_device device,
		      struct span spans[LINK_SPANS], unsigned *count, weir_message **out)
{
	*count = 0;
	return wire->message.kind == WEIR_KIND_PARTS
		       ? make_parts(context, wire, device, spans, count, out)
		       : make_one(context, &wire->message, device, spans, count, out);
}
