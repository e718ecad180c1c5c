/* Numbers as text: three or four digits, never an exponent. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/*
 * Values this close to the next power of ten are printed in the larger unit, since %g would use an
 * exponent.
 */
#define ROUNDS_UP 0.9995

const char *cli_duration(char text[24], int64_t ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	size_t unit = 0;

	while (unit < 2 && (double)ns < ROUNDS_UP * units[unit].ns)
		unit++;
	if ((double)ns >= ROUNDS_UP * 1e12)
		snprintf(text, 24, "%.0f s", (double)ns / 1e9);
	else
		snprintf(text, 24, "%.3g %s", (double)ns / units[unit].ns, units[unit].name);
	return text;
}

/* Copies the digits with thousands separators: 1,234,567. */
static void copy_with_commas(char *to, const char *digits)
{
	for (size_t left = strlen(digits); left; left--) {
		*to++ = *digits++;
		if (left > 1 && left % 3 == 1)
			*to++ = ',';
	}
	*to = '\0';
}

const char *cli_rate(char text[32], double rate)
{
	char digits[24];

	if (rate >= ROUNDS_UP * 1000) {
		snprintf(digits, sizeof digits, "%.0f", rate < 1e18 ? rate : 1e18);
		copy_with_commas(text, digits);
	} else {
		snprintf(text, 32, rate < 0.001 ? "%.6f" : "%.4g", rate);
	}
	return text;
}
