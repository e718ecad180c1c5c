#include "cli/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, NUMBER_BYTES = 128 };

const char cli_json_no_memory[] = "out of memory";

struct cli_json cli_json_of(const char *text, size_t length)
{
	return (struct cli_json){.text = text, .at = text, .end = text + length};
}

bool cli_json_refuse(struct cli_json *json, const char *what)
{
	if (json->fault)
		return false;
	json->fault = what;
	json->fault_at = json->at;
	return false;
}

static bool json_cut(struct cli_json *json)
{
	json->at = json->end;
	json->cut |= !json->fault;
	return cli_json_refuse(json, "the text ends here, too early: it was cut short");
}

void cli_json_place(const struct cli_json *json, unsigned *line, unsigned *column)
{
	const char *begin = json->text;

	*line = 1;
	for (const char *at = json->text; at < json->fault_at; at++)
		if (*at == '\n')
			++*line, begin = at + 1;
	*column = (unsigned)(json->fault_at - begin) + 1;
}

/* Skips blanks. Returns false at the end of the text and after a fault. */
static bool json_look(struct cli_json *json)
{
	if (json->fault)
		return false;
	while (json->at < json->end &&
	       (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
		json->at++;
	return json->at < json->end ? true : json_cut(json);
}

enum cli_json_kind cli_json_next(struct cli_json *json)
{
	if (!json_look(json))
		return CLI_JSON_END;
	switch (*json->at) {
	case '{':
		return CLI_JSON_OBJECT;
	case '[':
		return CLI_JSON_LIST;
	case '"':
		return CLI_JSON_STRING;
	default:
		return CLI_JSON_SCALAR;
	}
}

static bool json_open(struct cli_json *json, char bracket, const char *wanted)
{
	if (!json_look(json))
		return false;
	if (*json->at != bracket)
		return cli_json_refuse(json, wanted);
	if (++json->depth > DEPTH_MAX)
		return cli_json_refuse(json, "lists and objects are nested more than 64 deep");
	json->at++;
	json->fresh = true;
	return true;
}

/* Goes to the next item or member. Returns false at the closing bracket, which is consumed, and on a fault.
 */
static bool json_go_on(struct cli_json *json, char bracket, const char *wanted)
{
	bool fresh = json->fresh;

	if (!json_look(json))
		return false;
	json->fresh = false;
	if (*json->at == bracket) {
		json->at++;
		json->depth--;
		return false;
	}
	if (fresh)
		return true;
	if (*json->at != ',')
		return cli_json_refuse(json, wanted);
	json->at++;
	return json_look(json);
}

bool cli_json_object(struct cli_json *json)
{
	return json_open(json, '{', "an object is expected");
}

bool cli_json_list(struct cli_json *json)
{
	return json_open(json, '[', "a list is expected");
}

bool cli_json_item(struct cli_json *json)
{
	return json_go_on(json, ']', "',' or ']' is expected");
}

bool cli_json_member(struct cli_json *json, struct cli_slice *key)
{
	if (!json_go_on(json, '}', "',' or '}' is expected") || !cli_json_string(json, key) ||
	    !json_look(json))
		return false;
	if (*json->at != ':')
		return cli_json_refuse(json, "':' is expected");
	json->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The value of four hexadecimal digits, or -1. */
static int hex4(const char *at, const char *end)
{
	int value = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i];
		int digit = is_digit(c)            ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* The bytes of the escape at a backslash, 0 if there is no such escape; a pair of surrogates is one. */
static size_t escape_length(const char *at, const char *end, unsigned *code)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *letter = at + 1 < end && at[1] ? strchr(letters, at[1]) : NULL;
	int high, low;

	if (letter) {
		*code = (unsigned char)values[letter - letters];
		return 2;
	}
	if (end - at < 6 || at[1] != 'u' || (high = hex4(at + 2, end)) <= 0)
		return 0;
	*code = (unsigned)high;
	if (high < 0xd800 || high > 0xdfff)
		return 6;
	if (high > 0xdbff || end - at < 12 || at[6] != '\\' || at[7] != 'u')
		return 0;
	low = hex4(at + 8, end);
	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	*code = 0x10000u + (((unsigned)high - 0xd800u) << 10) + ((unsigned)low - 0xdc00u);
	return 12;
}

/* The bytes of the UTF-8 character at `at`, 0 if it is none. */
static size_t utf8_length(const char *text, const char *end)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length = at[0] < 0x80   ? 1
			: at[0] < 0xc2 ? 0
			: at[0] < 0xe0 ? 2
			: at[0] < 0xf0 ? 3
			: at[0] < 0xf5 ? 4
				       : 0;

	if (length > (size_t)(end - text))
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0; /* too long, a surrogate, or above U+10FFFF */
	return length;
}

bool cli_json_string(struct cli_json *json, struct cli_slice *out)
{
	unsigned code;

	if (!json_look(json))
		return false;
	if (*json->at != '"')
		return cli_json_refuse(json, "a string is expected");
	out->text = ++json->at;
	while (json->at < json->end && *json->at != '"') {
		size_t step = *json->at == '\\'                ? escape_length(json->at, json->end, &code)
			      : (unsigned char)*json->at < ' ' ? 0
							       : utf8_length(json->at, json->end);

		if (!step && json->end - json->at < 12 &&
		    !memchr(json->at, '"', (size_t)(json->end - json->at)))
			return json_cut(json);
		if (!step)
			return cli_json_refuse(json, "not a character of a JSON string");
		json->at += step;
	}
	if (json->at == json->end)
		return json_cut(json);
	out->length = (size_t)(json->at++ - out->text);
	return true;
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && is_digit(*at))
		at++;
	return at;
}

/* The end of the number at json->at, or NULL if there is none. */
static const char *number_end(const struct cli_json *json, bool *whole)
{
	const char *at = json->at + (*json->at == '-'), *end = json->end, *digits = at;

	at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
	if (at == digits)
		return NULL;
	*whole = at == end || (*at != '.' && *at != 'e' && *at != 'E');
	if (at < end && *at == '.') {
		digits = ++at;
		at = skip_digits(at, end);
		if (at == digits)
			return NULL;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < end && (*at == '+' || *at == '-');
		digits = at;
		at = skip_digits(at, end);
		if (at == digits)
			return NULL;
	}
	return at;
}

/* Copies the text of a number, so that strtod sees its end; one of more digits than that is no figure of
 * ours. */
static bool json_number(struct cli_json *json, char text[NUMBER_BYTES], bool *whole)
{
	const char *end;
	size_t length;

	if (!json_look(json))
		return false;
	end = number_end(json, whole);
	if (!end && strspn(json->at, "-+.eE0123456789") == (size_t)(json->end - json->at))
		return json_cut(json);
	if (!end)
		return cli_json_refuse(json, "a number is expected");
	length = (size_t)(end - json->at);
	length = length < NUMBER_BYTES ? length : NUMBER_BYTES - 1;
	memcpy(text, json->at, length);
	text[length] = '\0';
	json->at = end;
	return true;
}

bool cli_json_integer(struct cli_json *json, int64_t *out)
{
	const char *begin;
	char text[NUMBER_BYTES];
	bool whole;

	if (!json_look(json))
		return false;
	begin = json->at;
	if (!json_number(json, text, &whole))
		return false;
	errno = 0;
	*out = strtoll(text, NULL, 10);
	if (whole && !errno)
		return true;
	json->at = begin;
	return cli_json_refuse(json, "an integer is expected");
}

bool cli_json_count(struct cli_json *json, int64_t *out)
{
	const char *begin;

	if (!json_look(json))
		return false;
	begin = json->at;
	if (!cli_json_integer(json, out) || *out >= 0)
		return !json->fault;
	json->at = begin;
	return cli_json_refuse(json, "a number below 0");
}

bool cli_json_real(struct cli_json *json, double *out)
{
	char text[NUMBER_BYTES];
	bool whole;

	if (!json_number(json, text, &whole))
		return false;
	*out = strtod(text, NULL); /* the command runs in the C locale */
	return true;
}

static bool json_word(struct cli_json *json)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t room = (size_t)(json->end - json->at);

	for (int i = 0; i < 3; i++) {
		size_t length = strlen(words[i]);

		if (room >= length && !memcmp(json->at, words[i], length)) {
			json->at += length;
			return true;
		}
		if (room < length && !memcmp(json->at, words[i], room))
			return json_cut(json);
	}
	return cli_json_refuse(json, "a value is expected");
}

bool cli_json_bool(struct cli_json *json, bool *out)
{
	if (!json_look(json))
		return false;
	if (*json->at != 't' && *json->at != 'f')
		return cli_json_refuse(json, "true or false is expected");
	*out = *json->at == 't';
	return json_word(json);
}

/* The recursion is bounded by DEPTH_MAX. */
bool cli_json_skip(struct cli_json *json)
{
	struct cli_slice text;
	double number;

	switch (cli_json_next(json)) {
	case CLI_JSON_END:
		return false;
	case CLI_JSON_STRING:
		return cli_json_string(json, &text);
	case CLI_JSON_SCALAR:
		return *json->at == '-' || is_digit(*json->at) ? cli_json_real(json, &number)
							       : json_word(json);
	case CLI_JSON_LIST:
		for (cli_json_list(json); cli_json_item(json);)
			cli_json_skip(json);
		break;
	case CLI_JSON_OBJECT:
		for (cli_json_object(json); cli_json_member(json, &text);)
			cli_json_skip(json);
		break;
	}
	return !json->fault;
}

bool cli_json_finish(struct cli_json *json)
{
	if (json->fault)
		return false;
	while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at)
		json->at++;
	return json->at == json->end || cli_json_refuse(json, "more text than one value");
}

bool cli_slice_is(struct cli_slice slice, const char *text)
{
	return slice.length == strlen(text) && !memcmp(slice.text, text, slice.length);
}

static char *put_utf8(char *to, unsigned code)
{
	if (code < 0x80) {
		*to++ = (char)code;
		return to;
	}
	if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*to++ = (char)(0xe0 | code >> 12);
		} else {
			*to++ = (char)(0xf0 | code >> 18);
			*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (code & 0x3f));
	return to;
}

char *cli_slice_decoded(struct cli_slice slice)
{
	const char *at = slice.text, *end = slice.text + slice.length;
	char *text = malloc(slice.length + 1), *to = text; /* an escape is longer than what it stands for */
	unsigned code;

	if (!text)
		return NULL;
	while (at < end)
		if (*at == '\\') {
			at += escape_length(at, end, &code); /* not 0: cli_json_string has seen it */
			to = put_utf8(to, code);
		} else {
			*to++ = *at++;
		}
	*to = '\0';
	return text;
}
