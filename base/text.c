#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

bool wr_text_reserve(struct wr_text *text, size_t more)
{
	if (!text->status)
		text->status = wr_grow(&text->text, &text->room, text->length + more + 1, 1);
	return !text->status;
}

void wr_text_vadd(struct wr_text *text, const char *format, va_list list)
{
	va_list again;
	int length;

	va_copy(again, list);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0 || !wr_text_reserve(text, (size_t)length))
		return;
	vsnprintf(text->text + text->length, (size_t)length + 1, format, list);
	text->length += (size_t)length;
}

void wr_text_add(struct wr_text *text, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	wr_text_vadd(text, format, list);
	va_end(list);
}

void wr_text_bytes(struct wr_text *text, const char *bytes, size_t length)
{
	if (!wr_text_reserve(text, length))
		return;
	if (length)
		memcpy(text->text + text->length, bytes, length);
	text->length += length;
	text->text[text->length] = '\0';
}

/* Of the ASCII characters that a JSON string has as they are; most strings have no others. */
static size_t plain_length(const char *string)
{
	size_t length = 0;

	while (string[length] >= ' ' && string[length] <= '~' && string[length] != '"' &&
	       string[length] != '\\')
		length++;
	return length;
}

/* Escapes as in shown text; a byte that is not UTF-8 has no JSON form and is escaped, too. */
void wr_text_string(struct wr_text *text, const char *string)
{
	char shown[8];

	wr_text_bytes(text, "\"", 1);
	while (*string) {
		const char *at = string;
		size_t plain = plain_length(string), length;

		if (plain) {
			wr_text_bytes(text, string, plain);
			string += plain;
			continue;
		}
		length = wr_shown_step(shown, &string);
		if (*at == '"' || *at == '\\' || (*shown == '\\' && shown[1] == 'x'))
			wr_text_bytes(text, "\\", 1);
		wr_text_bytes(text, shown, length);
	}
	wr_text_bytes(text, "\"", 1);
}

void wr_text_escaped(struct wr_text *text, const char *string)
{
	char shown[64];

	while (*string)
		wr_text_bytes(text, shown, wr_shown_part(shown, sizeof shown, &string));
}

void wr_text_real(struct wr_text *text, double real)
{
	char digits[40];
	int count = 15;

	do /* the fewest digits that are read as the same number; 17 always are */
		snprintf(digits, sizeof(digits), "%.*g", count, real);
	while (strtod(digits, NULL) != real && ++count <= 17);
	for (char *c = digits; *c; c++)
		if (*c == ',')
			*c = '.'; /* the locale's decimal point */
	wr_text_add(text, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

void wr_text_finish(struct wr_text *text)
{
	wr_free(text->text);
	*text = (struct wr_text){0};
}

size_t weir_text_escape(const char **text, size_t room, char *out)
{
	return wr_shown_part(out, room, text);
}

void weir_text_free(char *text)
{
	wr_free(text);
}
