/* Text that may reach a terminal: no C0 or C1 character, no DEL, no other line ends, no direction marks. */
#ifndef TESTS_FUZZ_SHOWN_H
#define TESTS_FUZZ_SHOWN_H

#include <stdbool.h>
#include <string.h>

/* lines: the text may have several lines; newline and tab are accepted. */
static inline bool shown(const char *text, bool lines)
{
	const unsigned char *at = (const unsigned char *)text;

	for (; *at; at++) {
		bool breaks = *at == '\n' || *at == '\t';
		bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
		bool marks = at[0] == 0xe2 && at[1] == 0x80 &&
			     (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae));
		bool isolates = at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;
		bool arabic = at[0] == 0xd8 && at[1] == 0x9c;
		if (((*at < 0x20 || *at == 0x7f) && !(lines && breaks)) || c1 || marks || isolates || arabic)
			return false;
	}
	return true;
}

#endif
