/*
 * JSON text to values, by jansson.
 *
 * jansson decides what is JSON (syntax, UTF-8, numbers), but it keeps no places and of two equal keys only
 * the last. So the text is looked at three times: once for its size and depth, before anything is allocated;
 * once by jansson, which accepts or refuses it; and once by a scanner of our own, which walks the text that
 * is now known to be right, keeps the place of every value and every key, and hands each scalar's text to
 * jansson again for its meaning. Because of the second look the scanner checks nothing.
 */
#include "graphs/plan/json.h"

#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/plan/text.h"

struct scan {
	const char *at, *end;
	struct wr_place place; /* of *at */
};

static void step(struct scan *scan)
{
	unsigned char byte = (unsigned char)*scan->at++;

	if (byte == '\n') {
		scan->place.line++;
		scan->place.column = 1;
	} else if (scan->at == scan->end || ((unsigned char)*scan->at & 0xc0) != 0x80) {
		scan->place.column++; /* characters, not bytes: what follows begins a new one */
	}
}

static void skip_string(struct scan *scan)
{
	step(scan);
	while (scan->at < scan->end && *scan->at != '"') {
		if (*scan->at == '\\' && scan->at + 1 < scan->end)
			step(scan);
		step(scan);
	}
	if (scan->at < scan->end)
		step(scan);
}

/* Also of a text that is no JSON: then it says something, and jansson will refuse the text. */
static weir_status check_depth(const char *text, size_t length, struct wr_reports *reports)
{
	struct scan scan = {text, text + length, {1, 1}};
	unsigned depth = 0;

	while (scan.at < scan.end) {
		if (*scan.at == '"') {
			skip_string(&scan);
			continue;
		}
		if (*scan.at == '[' || *scan.at == '{')
			depth++;
		else if ((*scan.at == ']' || *scan.at == '}') && depth)
			depth--;
		if (depth > WR_DEPTH_MAX) {
			wr_report(reports, WR_W_DEPTH, NULL, scan.place,
				  "more than %d lists and objects within each other: make it flatter",
				  WR_DEPTH_MAX);
			return WEIR_E_INVALID;
		}
		step(&scan);
	}
	return WEIR_OK;
}

static weir_status check_size(size_t length, struct wr_reports *reports)
{
	if (length <= WR_TEXT_MAX)
		return WEIR_OK;
	wr_report(reports, WR_W_TEXT_SIZE, NULL, (struct wr_place){1, 1},
		  "the text has more than %zu MiB: split the graph", WR_TEXT_MAX >> 20);
	return WEIR_E_INVALID;
}

static weir_status check_syntax(const char *text, size_t length, struct wr_reports *reports)
{
	json_error_t error = {.line = 1, .column = 1};
	json_t *json = json_loadb(text, length, JSON_DECODE_ANY, &error);
	struct wr_place place = {error.line > 0 ? (unsigned)error.line : 1,
				 error.column > 0 ? (unsigned)error.column : 1};

	json_decref(json);
	if (json)
		return WEIR_OK;
	if (json_error_code(&error) == json_error_out_of_memory)
		return wr_fail(WEIR_E_NOMEM, "out of memory");
	wr_report(reports, WR_W_SYNTAX, NULL, place, "not JSON: %s",
		  json_error_code(&error) == json_error_null_character ? "\\u0000 cannot be in a string"
								       : wr_shown(error.text).text);
	return WEIR_E_INVALID;
}

static void skip_blanks(struct scan *scan)
{
	while (scan->at < scan->end && strchr(" \t\r\n", *scan->at))
		step(scan);
}

/* The text of one scalar to its meaning. */
static weir_status convert(struct wr_value *out, const char *text, size_t length)
{
	json_t *json = json_loadb(text, length, JSON_DECODE_ANY, NULL);
	weir_status status = WEIR_OK;

	if (!json)
		return wr_fail(WEIR_E_NOMEM, "out of memory"); /* it was right a moment ago */
	if (json_is_string(json))
		status = wr_value_string(out, json_string_value(json));
	else if (json_is_integer(json))
		*out = (struct wr_value){WR_INTEGER, out->place, {.integer = json_integer_value(json)}};
	else if (json_is_real(json))
		*out = (struct wr_value){WR_REAL, out->place, {.real = json_real_value(json)}};
	else if (json_is_boolean(json))
		*out = (struct wr_value){WR_BOOL, out->place, {.boolean = json_is_true(json)}};
	else
		out->type = WR_NULL;
	json_decref(json);
	return status;
}

static weir_status read_scalar(struct scan *scan, struct wr_value *out)
{
	const char *begin = scan->at;

	if (*begin == '"')
		skip_string(scan);
	else
		while (scan->at < scan->end && !strchr(" \t\r\n,:]}", *scan->at))
			step(scan);
	return convert(out, begin, (size_t)(scan->at - begin));
}

static weir_status read_value(struct scan *scan, struct wr_value *out);

static weir_status read_member(struct scan *scan, struct wr_value *object)
{
	struct wr_value key = {.place = scan->place}, value = {0};
	weir_status status = read_scalar(scan, &key);

	skip_blanks(scan);
	step(scan); /* the colon */
	if (!status)
		status = read_value(scan, &value);
	if (!status)
		status = wr_value_add(object, key.string, key.place, &value);
	if (status) {
		wr_value_finish(&key);
		wr_value_finish(&value);
	}
	return status;
}

static weir_status read_item(struct scan *scan, struct wr_value *array)
{
	struct wr_value value = {0};
	weir_status status = read_value(scan, &value);

	if (!status)
		status = wr_value_append(array, &value);
	if (status)
		wr_value_finish(&value);
	return status;
}

static weir_status read_items(struct scan *scan, struct wr_value *out)
{
	weir_status status = WEIR_OK;

	step(scan);
	skip_blanks(scan);
	while (!status && *scan->at != ']' && *scan->at != '}') {
		status = out->type == WR_ARRAY ? read_item(scan, out) : read_member(scan, out);
		skip_blanks(scan);
		if (!status && *scan->at == ',')
			step(scan);
		skip_blanks(scan);
	}
	if (!status)
		step(scan);
	return status;
}

/* Gives nothing on failure. Recursion is bounded by the depth. */
static weir_status read_value(struct scan *scan, struct wr_value *out)
{
	struct wr_value value;
	weir_status status;

	skip_blanks(scan);
	value = (struct wr_value){.place = scan->place};
	if (*scan->at != '[' && *scan->at != '{')
		status = read_scalar(scan, &value);
	else
		status = wr_value_container(&value, *scan->at == '[' ? WR_ARRAY : WR_OBJECT);
	if (!status && (value.type == WR_ARRAY || value.type == WR_OBJECT))
		status = read_items(scan, &value);
	if (status)
		wr_value_finish(&value);
	else
		*out = value;
	return status;
}

weir_status wr_json_read(struct wr_value *out, const char *text, size_t length, struct wr_reports *reports)
{
	struct scan scan = {text, text + length, {1, 1}};
	weir_status status = check_size(length, reports);

	if (!status)
		status = check_depth(text, length, reports);
	if (!status)
		status = check_syntax(text, length, reports);
	return status ? status : read_value(&scan, out);
}
