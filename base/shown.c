/*
 * Text of others in a line of ours: what could move a terminal's cursor, change its title, turn the order of
 * the characters or cannot be seen is written as an escape. A backslash stays, so that a text that was shown can be
 * shown again.
 */
#include "base/shown.h"

#include <stdio.h>
#include <string.h>

/* The bytes of the character that begins here, from 1; 0: no UTF-8. */
static size_t decode(const unsigned char *at, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *at < 0x80 ? 1 : *at >= 0xf0 && *at < 0xf8 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 0;

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

/* C0, DEL and C1; ends of lines and paragraphs; marks and embeddings of a direction; two spaces of no width. */
static bool steers(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200b || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
	       code == 0xfeff;
}

size_t wr_shown_step(char out[8], const char **text)
{
	static const char letters[] = "btn\0fr"; /* from \b on; there is none for \v */
	const unsigned char *at = (const unsigned char *)*text;
	uint32_t code = 0;
	size_t length = decode(at, &code);

	*text += length ? length : 1;
	if (!length)
		return (size_t)snprintf(out, 8, "\\x%02x", *at);
	if (code >= '\b' && code <= '\r' && letters[code - '\b'])
		return (size_t)snprintf(out, 8, "\\%c", letters[code - '\b']);
	if (steers(code))
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
