/* The types of ports: reading them, and what fits them. agree.c compares those of connected ports. */
#include "graphs/type.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/status.h"

/* --- reading --- */

/* One text of a port. */
struct reading {
	const char *what, *text; /* "shape", "[H, W]" */
	const char *at;
	struct wr_scope *scope;
	struct wr_words *why;
};

static weir_status refuse(const struct reading *reading, const char *why)
{
	wr_words_add(reading->why, "has the %s '%s': %s", reading->what, wr_shown(reading->text).text, why);
	return WEIR_E_INVALID;
}

static void skip_spaces(struct reading *reading)
{
	while (*reading->at == ' ')
		reading->at++;
}

static bool skip(struct reading *reading, const char *token)
{
	skip_spaces(reading);
	if (strncmp(reading->at, token, strlen(token)))
		return false;
	reading->at += strlen(token);
	return true;
}

/* The next alternative of a list of words, without the spaces around it; false at the end. */
static bool next_word(struct reading *reading, char *word, size_t room)
{
	size_t length, used;

	skip_spaces(reading);
	used = length = strcspn(reading->at, "|");
	while (used && reading->at[used - 1] == ' ')
		used--;
	used = used < room ? used : room - 1;
	memcpy(word, reading->at, used);
	word[used] = 0;
	reading->at += length;
	return skip(reading, "|");
}

static const struct {
	const char *name;
	uint8_t code, bits;
} dtypes[] = {
	{"int8", 0, 8},     {"int16", 0, 16},    {"int32", 0, 32},  {"int64", 0, 64},   {"uint8", 1, 8},
	{"uint16", 1, 16},  {"uint32", 1, 32},   {"uint64", 1, 64}, {"float16", 2, 16}, {"float32", 2, 32},
	{"float64", 2, 64}, {"bfloat16", 4, 16}, {"bool", 6, 8},
};
#define DTYPES (sizeof dtypes / sizeof *dtypes)

static const char *const places[] = {"host", "device"}; /* in the order of the bits */
#define PLACES (sizeof places / sizeof *places)

static const char *word_at(bool is_dtype, size_t i)
{
	return is_dtype ? dtypes[i].name : places[i];
}

/* Reads "a|b" into a mask of known words. */
static weir_status read_words(struct reading *reading, bool is_dtype, unsigned *out)
{
	size_t count = is_dtype ? DTYPES : PLACES;
	char word[WR_NAME_MAX];
	bool more = true;

	*out = 0;
	while (more) {
		struct wr_nearest nearest = {.wanted = word};
		struct wr_offer offer = {.what = reading->what};
		size_t i = 0;

		more = next_word(reading, word, sizeof(word));
		if (!*word)
			return refuse(reading, "an alternative is empty");
		while (i < count && strcmp(word_at(is_dtype, i), word))
			wr_nearest_try(&nearest, word_at(is_dtype, i++));
		for (size_t k = 0; k < count && i == count; k++)
			wr_offer_add(&offer, word_at(is_dtype, k));
		if (i == count) {
			wr_words_add(reading->why, "has an unknown %s '%s'%s", reading->what,
				     wr_shown(word).text, wr_offer_hint(&offer, &nearest));
			return WEIR_E_INVALID;
		}
		*out |= 1u << i;
	}
	return WEIR_OK;
}

static bool is_letter(char c)
{
	return c == '_' || isalpha((unsigned char)c);
}

static weir_status read_name(struct reading *reading, struct wr_size *out)
{
	struct wr_scope *scope = reading->scope;
	const char *text = reading->at;
	size_t length = 0, i = 0;
	weir_status status;

	while (is_letter(text[length]) || isdigit((unsigned char)text[length]))
		length++;
	reading->at += length;
	while (i < scope->count &&
	       (scope->names[i].length != length || memcmp(scope->names[i].text, text, length)))
		i++;
	*out = (struct wr_size){{0, INT64_MAX}, (int)i};
	if (i < scope->count)
		return WEIR_OK;
	if (i == WR_SIZE_NAMES_MAX)
		return refuse(reading, "the operator has more than 64 names of sizes");
	status = wr_grow(&scope->names, &scope->room, i + 1, sizeof(*scope->names));
	if (!status)
		scope->names[scope->count++] =
			(struct wr_size_name){text, length, {0, INT64_MAX}, WR_NO_INDEX};
	return status;
}

static weir_status read_number(struct reading *reading, int64_t *out)
{
	int64_t number = 0;

	if (!isdigit((unsigned char)*reading->at))
		return refuse(reading, "a size is a number, a range such as 1..4, or a name");
	for (; isdigit((unsigned char)*reading->at); reading->at++) {
		int digit = *reading->at - '0';
		if (number > (INT64_MAX - digit) / 10)
			return refuse(reading, "a size does not fit into 63 bits");
		number = number * 10 + digit;
	}
	if (!number)
		return refuse(reading, "a size is at least 1; a name stands for any, also for 0");
	*out = number;
	return WEIR_OK;
}

static weir_status read_size(struct reading *reading, struct wr_size *out)
{
	weir_status status;

	skip_spaces(reading);
	if (is_letter(*reading->at))
		return read_name(reading, out);
	out->name = -1;
	status = read_number(reading, &out->in.least);
	out->in.most = out->in.least;
	if (!status && skip(reading, "..")) {
		skip_spaces(reading);
		status = read_number(reading, &out->in.most);
	}
	if (!status && out->in.least > out->in.most)
		status = refuse(reading, "the end of a range is below its begin");
	return status;
}

static weir_status read_shape(struct reading *reading, struct wr_shape *out)
{
	weir_status status = WEIR_OK;

	if (!skip(reading, "["))
		return refuse(reading, *reading->at && *reading->at != '|' ? "an alternative begins with '['"
									   : "an alternative is empty");
	if (skip(reading, "]"))
		return WEIR_OK; /* one value */
	do {
		if (out->rank == WEIR_DIMENSIONS_MAX)
			return refuse(reading, "more than 8 sizes");
		status = read_size(reading, &out->sizes[out->rank++]);
	} while (!status && skip(reading, ","));
	if (!status && !skip(reading, "]"))
		status = refuse(reading, "',' or ']' is missing behind a size");
	return status;
}

static weir_status read_shapes(struct reading *reading, struct wr_port_type *out)
{
	weir_status status = WEIR_OK;

	out->shapes = wr_alloc(WR_SHAPES_MAX, sizeof(*out->shapes));
	if (!out->shapes)
		return WEIR_E_NOMEM;
	do {
		if (out->count == WR_SHAPES_MAX)
			return refuse(reading, "more than 8 alternatives");
		status = read_shape(reading, &out->shapes[out->count]);
		out->alive = (uint8_t)(out->alive | 1u << out->count++);
	} while (!status && skip(reading, "|"));
	skip_spaces(reading);
	if (!status && *reading->at)
		status = refuse(reading, "'|' is missing between alternatives");
	return status;
}

weir_status wr_port_type_read(struct wr_port_type *out, struct wr_scope *scope, const weir_port *port,
			      struct wr_words *why)
{
	struct reading dtype = {"dtype", port->dtype, port->dtype, scope, why};
	struct reading place = {"place", port->place, port->place, scope, why};
	struct reading shape = {"shape", port->shape, port->shape, scope, why};
	unsigned mask = (1u << DTYPES) - 1, where = WR_PLACE_ANY;
	weir_status status = WEIR_OK;

	*out = (struct wr_port_type){.port = port};
	if (port->dtype)
		status = read_words(&dtype, true, &mask);
	if (!status && port->place)
		status = read_words(&place, false, &where);
	out->dtypes = (uint16_t)mask;
	out->places = (uint8_t)where;
	if (!status && port->shape)
		status = read_shapes(&shape, out);
	return status;
}

void wr_port_type_finish(struct wr_port_type *type)
{
	wr_free(type->shapes);
	type->shapes = NULL;
	type->count = 0;
}

void wr_scope_finish(struct wr_scope *scope)
{
	wr_free(scope->names);
	*scope = (struct wr_scope){0};
}

unsigned wr_port_kinds(const weir_port *port)
{
	if (port->kinds)
		return port->kinds;
	return port->dtype || port->shape ? (unsigned)WEIR_KIND_TENSOR : ~0u;
}

/* --- texts --- */

static struct wr_words words_of(struct wr_type_words *text)
{
	return wr_words_in(text->text, sizeof(text->text));
}

struct wr_type_words wr_port_type_text(const struct wr_port_type *type)
{
	const weir_port *port = type->port;
	struct wr_type_words text;
	struct wr_words words = words_of(&text);

	wr_words_add(&words, "%s%s%s", port->dtype ? port->dtype : "", port->dtype && port->shape ? " " : "",
		     port->shape ? port->shape : "");
	if (!words.length)
		wr_words_add(&words, "tensors");
	if (type->places != WR_PLACE_ANY)
		wr_words_add(&words, type->places == WR_PLACE_HOST ? " in host memory" : " on a device");
	return text;
}

struct wr_type_words wr_tensor_words(const weir_tensor *tensor)
{
	struct wr_type_words text;
	struct wr_words words = words_of(&text);
	size_t i = 0;

	while (i < DTYPES && (tensor->code != dtypes[i].code || tensor->bits != dtypes[i].bits))
		i++;
	wr_words_add(&words, "%s", i < DTYPES ? dtypes[i].name : "another type");
	if (tensor->lanes > 1)
		wr_words_add(&words, "x%u", tensor->lanes);
	wr_words_add(&words, " [");
	for (int k = 0; k < tensor->dimensions; k++)
		wr_words_add(&words, "%s%" PRId64, k ? ", " : "", tensor->shape[k]);
	if (tensor->device == WEIR_DEVICE_HOST)
		wr_words_add(&words, "] in host memory");
	else
		wr_words_add(&words, "] on device %d", (int)tensor->device);
	return text;
}

/* --- what fits --- */

static unsigned place_of(const weir_tensor *tensor)
{
	return tensor->device == WEIR_DEVICE_HOST ? WR_PLACE_HOST : WR_PLACE_DEVICE;
}

static bool dtype_fits(const struct wr_port_type *type, const weir_tensor *tensor)
{
	if (!type->port->dtype)
		return true;
	for (size_t i = 0; i < DTYPES && tensor->lanes <= 1; i++)
		if (tensor->code == dtypes[i].code && tensor->bits == dtypes[i].bits)
			return type->dtypes & 1u << i;
	return false;
}

/* A name that is there twice stands for one size. */
static bool shape_fits(const struct wr_shape *shape, const weir_tensor *tensor)
{
	if (shape->rank != tensor->dimensions)
		return false;
	for (int i = 0; i < shape->rank; i++) {
		const struct wr_size *size = &shape->sizes[i];
		if (tensor->shape[i] < size->in.least || tensor->shape[i] > size->in.most)
			return false;
		for (int k = 0; k < i && size->name >= 0; k++)
			if (shape->sizes[k].name == size->name && tensor->shape[k] != tensor->shape[i])
				return false;
	}
	return true;
}

bool wr_port_type_takes(const struct wr_port_type *type, const weir_tensor *tensor)
{
	if (!(type->places & place_of(tensor)) || !dtype_fits(type, tensor))
		return false;
	for (int i = 0; i < type->count; i++)
		if (shape_fits(&type->shapes[i], tensor))
			return true;
	return !type->count;
}

bool wr_passed_is(const struct wr_passed *passed, const weir_tensor *tensor)
{
	return passed->rank == tensor->dimensions + 1 && passed->code == tensor->code &&
	       passed->bits == tensor->bits && passed->lanes == tensor->lanes &&
	       passed->place == place_of(tensor) &&
	       !memcmp(passed->shape, tensor->shape, (size_t)tensor->dimensions * sizeof(*tensor->shape));
}

void wr_passed_set(struct wr_passed *passed, const weir_tensor *tensor)
{
	*passed = (struct wr_passed){.rank = tensor->dimensions + 1,
				     .code = tensor->code,
				     .bits = tensor->bits,
				     .place = (uint8_t)place_of(tensor),
				     .lanes = tensor->lanes};
	memcpy(passed->shape, tensor->shape, (size_t)tensor->dimensions * sizeof(*tensor->shape));
}

/* --- what two shapes have in common --- */

static struct wr_interval size_in(const struct wr_size *size, const struct wr_interval *names)
{
	return size->name < 0 ? size->in : names[size->name];
}

/* Returns true if the size is a name that could have been another size. */
static bool narrow(const struct wr_size *size, struct wr_interval *names, struct wr_interval to)
{
	struct wr_interval *name = size->name < 0 ? NULL : &names[size->name];

	if (!name || (name->least == to.least && name->most == to.most))
		return false;
	*name = to;
	return true;
}

/* Names may stand in several places, so what one place says goes on to the others until nothing changes. */
/* As large as it can be. */
static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static struct wr_interval elements_of(const struct wr_shape *shape, const struct wr_scope *scope)
{
	struct wr_interval product = {1, 1};

	for (int i = 0; i < shape->rank; i++) {
		const struct wr_size *size = &shape->sizes[i];
		struct wr_interval in = size->name < 0 ? size->in : scope->names[size->name].in;

		product.least = times(product.least, in.least);
		product.most = times(product.most, in.most);
	}
	return product;
}

void wr_port_type_bytes(const struct wr_port_type *type, const struct wr_scope *scope, int64_t *least,
			int64_t *most)
{
	struct wr_interval element = {INT64_MAX, 0}, all = {INT64_MAX, 0};

	for (size_t i = 0; i < DTYPES; i++) {
		int64_t bytes = dtypes[i].bits / 8;

		if (!(type->dtypes & 1u << i))
			continue;
		element.least = bytes < element.least ? bytes : element.least;
		element.most = bytes > element.most ? bytes : element.most;
	}
	for (int i = 0; i < type->count; i++) {
		struct wr_interval elements = elements_of(&type->shapes[i], scope);

		if (!(type->alive & 1u << i))
			continue;
		all.least = elements.least < all.least ? elements.least : all.least;
		all.most = elements.most > all.most ? elements.most : all.most;
	}
	*least = type->count ? times(element.least, all.least) : 0;
	*most = type->count && type->port->dtype ? times(element.most, all.most) : INT64_MAX;
}

bool wr_shapes_meet(const struct wr_shape *a, struct wr_interval *of_a, const struct wr_shape *b,
		    struct wr_interval *of_b)
{
	bool changed = a->rank == b->rank;

	if (!changed)
		return false;
	while (changed) {
		changed = false;
		for (int i = 0; i < a->rank; i++) {
			struct wr_interval one = size_in(&a->sizes[i], of_a),
					   other = size_in(&b->sizes[i], of_b);
			struct wr_interval both = {one.least > other.least ? one.least : other.least,
						   one.most < other.most ? one.most : other.most};

			if (both.least > both.most)
				return false;
			changed |= narrow(&a->sizes[i], of_a, both);
			changed |= narrow(&b->sizes[i], of_b, both);
		}
	}
	return true;
}
