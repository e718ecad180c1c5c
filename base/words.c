/*
 * In foreign text characters that could move a terminal's cursor, change its title, reverse
 * the order of characters or be invisible are written as escapes. A backslash is not escaped, so escaping a
 * text twice does not change it.
 */
#include "base/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct wr_words wr_words_in(char *buffer, size_t room)
{
	*buffer = '\0';
	return (struct wr_words){.text = buffer, .room = room};
}

void wr_words_add(struct wr_words *words, const char *format, ...)
{
	size_t room = words->room - words->length;
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(words->text + words->length, room, format, list);
	va_end(list);
	if (length > 0)
		words->length += (size_t)length < room ? (size_t)length : room - 1;
}

void wr_words_put(struct wr_words *words, const char *text)
{
	while (*text && words->length + 1 < words->room)
		words->text[words->length++] = *text++;
	words->text[words->length] = '\0';
}

/* Returns the length of the character that begins here; 0 if it is not UTF-8. */
static size_t utf8_decode(const unsigned char *at, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *at < 0x80                  ? 1
			: *at >= 0xf0 && *at < 0xf8 ? 4
			: *at >= 0xe0               ? 3
			: *at >= 0xc0               ? 2
						    : 0;

	if (!length || *at >= 0xf8)
		return 0;
	*code = length == 1 ? *at : *at & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3f);
	}
	return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : length;
}

/* C0, DEL and C1; line and paragraph separators; marks and embeddings of direction; two zero-width spaces. */
static bool must_escape(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200b ||
	       code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

size_t wr_shown_step(char out[8], const char **text)
{
	static const char letters[] = "btn\0fr"; /* from \b on; \v has none */
	const unsigned char *at = (const unsigned char *)*text;
	uint32_t code = 0;
	size_t length = utf8_decode(at, &code);

	*text += length ? length : 1;
	if (!length)
		return (size_t)snprintf(out, 8, "\\x%02x", *at);
	if (code >= '\b' && code <= '\r' && letters[code - '\b'])
		return (size_t)snprintf(out, 8, "\\%c", letters[code - '\b']);
	if (must_escape(code))
		return (size_t)snprintf(out, 8, "\\u%04x", code & 0xffff);
	memcpy(out, at, length);
	return length;
}

size_t wr_shown_part(char *out, size_t room, const char **text)
{
	size_t length = 0;
	char one[8];

	while (**text) {
		const char *next = *text;
		size_t more = wr_shown_step(one, &next);

		if (length + more >= room)
			break;
		memcpy(out + length, one, more);
		length += more;
		*text = next;
	}
	if (room)
		out[length] = '\0';
	return length;
}

void wr_shown_cut(char *out, size_t room, const char *text)
{
	const char *rest = text;
	size_t length = wr_shown_part(out, room, &rest);

	if (!*rest)
		return;
	rest = text;
	length = wr_shown_part(out, room - strlen("..."), &rest);
	memcpy(out + length, "...", sizeof("..."));
}

struct wr_shown wr_shown(const char *string)
{
	struct wr_shown shown;

	wr_shown_cut(shown.text, sizeof shown.text, string);
	return shown;
}

const char *wr_errno_words(int error)
{
	if (error == EMFILE)
		return "Too many open files: raise the limit of descriptors (ulimit -n, RLIMIT_NOFILE)";
	return error == ENOMEM ? "out of memory" : strerror(error);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool wr_name_ok(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > WR_NAME_MAX || !is_letter(*name))
		return false;
	for (; *name; name++)
		if (!is_letter(*name) && !(*name >= '0' && *name <= '9') && *name != '-')
			return false;
	return true;
}
