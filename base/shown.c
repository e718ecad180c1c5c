/*
 * Foreign text in a line of output: characters that could move a terminal's cursor, change its title, reverse
 * the order of characters or be invisible are written as escapes. A backslash is not escaped, so escaping a
 * text twice does not change it.
 */
#include "base/shown.h"

#include <stdio.h>
#include <string.h>

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

size_t weir_text_shown(char *out, size_t room, const char **text)
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
	size_t length = weir_text_shown(out, room, &rest);

	if (!*rest)
		return;
	rest = text;
	length = weir_text_shown(out, room - strlen("..."), &rest);
	memcpy(out + length, "...", sizeof("..."));
}
