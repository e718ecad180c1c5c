#include "graphs/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/shown.h"
#include "base/status.h"

/* Makes room for `more` bytes and a NUL. */
static bool text_reserve(struct wr_text *text, size_t more)
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
	if (length < 0 || !text_reserve(text, (size_t)length))
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
	if (!text_reserve(text, length))
		return;
	if (length)
		memcpy(text->text + text->length, bytes, length);
	text->length += length;
	text->text[text->length] = '\0';
}

/* Escapes as in shown text; a byte that is not UTF-8 has no JSON form and is escaped, too. */
void wr_text_string(struct wr_text *text, const char *string)
{
	char shown[8];

	wr_text_bytes(text, "\"", 1);
	while (*string) {
		const char *at = string;
		size_t length = wr_shown_step(shown, &string);

		if (*at == '"' || *at == '\\' || (*shown == '\\' && shown[1] == 'x'))
			wr_text_bytes(text, "\\", 1);
		wr_text_bytes(text, shown, length);
	}
	wr_text_bytes(text, "\"", 1);
}

void wr_text_shown(struct wr_text *text, const char *string)
{
	char shown[64];

	while (*string)
		wr_text_bytes(text, shown, weir_text_shown(shown, sizeof shown, &string));
}

void wr_text_real(struct wr_text *text, double real)
{
	char digits[40];

	snprintf(digits, sizeof(digits), "%.17g", real);
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

struct wr_shown wr_shown(const char *string)
{
	struct wr_shown shown;

	wr_shown_cut(shown.text, sizeof shown.text, string);
	return shown;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool wr_name_ok(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > 64 || !is_letter(*name))
		return false;
	for (; *name; name++)
		if (!is_letter(*name) && !(*name >= '0' && *name <= '9') && *name != '-')
			return false;
	return true;
}

static weir_status read_all(struct wr_text *text, int fd)
{
	while (text->length <= WR_TEXT_MAX) {
		size_t want = WR_TEXT_MAX + 1 - text->length;
		ssize_t got;

		if (want > 65536)
			want = 65536;
		if (!text_reserve(text, want))
			return text->status;
		got = read(fd, text->text + text->length, want);
		if (got < 0 && errno != EINTR)
			return WEIR_E_IO;
		if (got == 0)
			break;
		if (got > 0)
			text->length += (size_t)got;
		text->text[text->length] = '\0';
	}
	return WEIR_OK;
}

/* Returns true, with its size, for a regular file that is too large to be read. */
static bool is_too_large(int fd, size_t *bytes)
{
	struct stat status;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size <= (off_t)WR_TEXT_MAX)
		return false;
	*bytes = (size_t)status.st_size;
	return true;
}

weir_status wr_text_read(struct wr_text *out, const char *path)
{
	struct wr_text text = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	weir_status status = fd < 0 ? WEIR_E_IO : WEIR_OK;

	if (!status && !is_too_large(fd, &text.length))
		status = read_all(&text, fd);
	if (status == WEIR_E_IO)
		wr_fail(WEIR_E_IO, "%s: cannot be read: %s", wr_shown(path).text, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (status)
		wr_text_finish(&text);
	else
		*out = text;
	return status;
}

void weir_text_free(char *text)
{
	wr_free(text);
}
