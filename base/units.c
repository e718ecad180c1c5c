#include "base/units.h"

#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit durations[] = {
	{"h", 3600000000000},
	{"min", 60000000000},
	{"s", 1000000000},
	{"ms", 1000000},
	{"us", 1000},
	{"ns", 1},
	{NULL, 0},
};

/* In hertz. */
static const struct unit frequencies[] = {
	{"Hz", 1}, {"kHz", 1000}, {"MHz", 1000000}, {"GHz", 1000000000}, {NULL, 0}};

static const struct unit sizes[] = {
	{"TiB", (int64_t)1 << 40},
	{"GiB", (int64_t)1 << 30},
	{"MiB", (int64_t)1 << 20},
	{"KiB", (int64_t)1 << 10},
	{"T", (int64_t)1 << 40},
	{"G", (int64_t)1 << 30},
	{"M", (int64_t)1 << 20},
	{"k", (int64_t)1 << 10},
	{"K", (int64_t)1 << 10},
	{"TB", 1000000000000},
	{"GB", 1000000000},
	{"MB", 1000000},
	{"kB", 1000},
	{"B", 1},
	{NULL, 0},
};

static const char *const too_large = "is too large";

/* A decimal number in two parts, so that nothing is rounded. */
struct number {
	int64_t whole;
	char fraction[19]; /* digits */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *read_number(const char **at, struct number *out)
{
	size_t length = 0;

	*out = (struct number){0};
	if (!is_digit(**at))
		return "must begin with a digit";
	for (; is_digit(**at); ++*at)
		if (__builtin_mul_overflow(out->whole, 10, &out->whole) ||
		    __builtin_add_overflow(out->whole, **at - '0', &out->whole))
			return too_large;
	if (**at != '.')
		return NULL;
	for (++*at; is_digit(**at); ++*at)
		if (length + 1 < sizeof(out->fraction))
			out->fraction[length++] = **at;
		else if (**at != '0')
			return "has too many decimals";
	return length ? NULL : "needs a digit after the point";
}

static const struct unit *unit_of(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Multiplies the digits after the point by the factor; an inexact result is an error. */
static const char *multiply_fraction(const char *digits, int64_t factor, int64_t *out)
{
	int64_t numerator = 0, denominator = 1, common;

	for (; *digits; digits++) {
		numerator = 10 * numerator + (*digits - '0'); /* at most 18 digits */
		denominator *= 10;
	}
	common = common_divisor(denominator, factor);
	denominator /= common;
	if (numerator % denominator)
		return "is finer than the smallest unit";
	*out = numerator / denominator * (factor / common); /* less than the factor */
	return NULL;
}

static const char *multiply(const struct number *number, int64_t factor, int64_t *out)
{
	int64_t whole, rest;
	const char *wrong = multiply_fraction(number->fraction, factor, &rest);

	if (wrong)
		return wrong;
	if (__builtin_mul_overflow(number->whole, factor, &whole) || __builtin_add_overflow(whole, rest, out))
		return too_large;
	return NULL;
}

/* The period of a frequency, rounded to a nanosecond. Frequencies are exact to a thousandth of a hertz. */
static const char *frequency_period(const struct number *number, int64_t hertz, int64_t *out)
{
	const int64_t second = 1000000000000; /* in ns per thousandth of a hertz */
	int64_t thousandths;
	const char *wrong = multiply(number, hertz * 1000, &thousandths);

	if (wrong)
		return wrong == too_large ? wrong : "is finer than a thousandth of a hertz";
	if (!thousandths)
		return "is not a frequency above 0";
	if (thousandths > second)
		return "is faster than once a nanosecond";
	*out = (second + thousandths / 2) / thousandths;
	return NULL;
}

static const char *unknown_unit(const char *text)
{
	if (*text == ' ')
		return "has a space before its unit";
	return *text ? "has an unknown unit" : "has no unit";
}

/* Reads the number and the unit; *unit is NULL if it is not a unit of time. *text is left at the unit. */
static const char *read_duration(const char **text, struct number *number, const struct unit **unit)
{
	const char *wrong = read_number(text, number);

	*unit = unit_of(durations, *text);
	return wrong;
}

const char *wr_duration_read(const char *text, int64_t *out)
{
	const struct unit *unit;
	struct number number;
	const char *wrong = read_duration(&text, &number, &unit);

	if (wrong)
		return wrong;
	if (!unit && unit_of(frequencies, text))
		return "is a frequency";
	return unit ? multiply(&number, unit->factor, out) : unknown_unit(text);
}

const char *wr_period_read(const char *text, int64_t *out)
{
	const struct unit *unit, *frequency;
	struct number number;
	const char *wrong = read_duration(&text, &number, &unit);

	frequency = unit_of(frequencies, text);
	if (wrong)
		return wrong;
	if (frequency)
		return frequency_period(&number, frequency->factor, out);
	return unit ? multiply(&number, unit->factor, out) : unknown_unit(text);
}

const char *wr_size_read(const char *text, int64_t *out)
{
	struct number number;
	const char *wrong = read_number(&text, &number);
	const struct unit *unit = unit_of(sizes, *text ? text : "B");

	if (wrong)
		return wrong;
	return unit ? multiply(&number, unit->factor, out) : unknown_unit(text);
}

/* --- sampling --- */

static const char sample[] = "sample:";

const char *wr_sampling_read(const char *text, int *out)
{
	struct number number;

	if (!strcmp(text, "off") || !strcmp(text, "all")) {
		*out = *text == 'a';
		return NULL;
	}
	if (strncmp(text, sample, sizeof sample - 1))
		return "is not known";
	text += sizeof sample - 1;
	if (read_number(&text, &number) || *text || *number.fraction || !number.whole ||
	    number.whole > WR_SAMPLING_MAX)
		return "needs a number from 1 to 1000000";
	*out = (int)number.whole;
	return NULL;
}

struct wr_shown wr_sampling_shown(int every)
{
	struct wr_shown shown;

	if (every > 1)
		snprintf(shown.text, sizeof shown.text, "%s%d", sample, every);
	else
		snprintf(shown.text, sizeof shown.text, "%s", every ? "all" : "off");
	return shown;
}

/* --- printing --- */

static struct wr_shown unit_shown(int64_t value, const struct unit *units)
{
	struct wr_shown shown;

	while (units->factor != 1 && (!value || value % units->factor))
		units++;
	snprintf(shown.text, sizeof(shown.text), "%lld%s", (long long)(value / units->factor), units->name);
	return shown;
}

struct wr_shown wr_duration_shown(int64_t ns)
{
	return unit_shown(ns, durations);
}

struct wr_shown wr_size_shown(int64_t bytes)
{
	struct wr_shown shown = {{0}};
	const struct unit *unit = sizes;

	while (unit->factor > 1024 && (!bytes || bytes % unit->factor))
		unit++; /* the binary units come first, KiB last of them */
	if (!bytes || bytes % unit->factor)
		snprintf(shown.text, sizeof(shown.text), "%lldB", (long long)bytes);
	else
		snprintf(shown.text, sizeof(shown.text), "%lld%s", (long long)(bytes / unit->factor),
			 unit->name);
	return shown;
}

/* A value this close to the next power of ten is printed in the larger unit, since %g would use an exponent.
 */
#define ROUNDS_UP 0.9995

struct wr_shown wr_time_shown(int64_t ns)
{
	const struct unit *units = durations;
	struct wr_shown shown;

	while (units->factor > 1000000000) /* minutes and hours */
		units++;
	while (units->factor > 1000 && (double)ns < ROUNDS_UP * (double)units->factor)
		units++;
	if ((double)ns >= ROUNDS_UP * 1e12)
		snprintf(shown.text, sizeof shown.text, "%.0f s", (double)ns / 1e9);
	else
		snprintf(shown.text, sizeof shown.text, "%.3g %s", (double)ns / (double)units->factor,
			 units->name);
	return shown;
}
