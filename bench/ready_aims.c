/* The table at the end: measured figures beside their aims. */
#include <stdio.h>

#include "ready.h"

enum { ROOM = 160 };

static struct aim {
	char figure[72];
	double measured, aim;
	const char *unit;
	bool least;
} aims[ROOM];
static size_t count;

static void add(const char *figure, double measured, double aim, const char *unit, bool least)
{
	if (count == ROOM)
		return;
	snprintf(aims[count].figure, sizeof aims[count].figure, "%s", figure);
	aims[count].measured = measured;
	aims[count].aim = aim;
	aims[count].unit = unit;
	aims[count].least = least;
	count++;
}

void ready_aim_most(const char *figure, double measured, double aim, const char *unit)
{
	add(figure, measured, aim, unit, false);
}

void ready_aim_least(const char *figure, double measured, double aim, const char *unit)
{
	add(figure, measured, aim, unit, true);
}

void ready_aim_floor(const char *figure, double p50, double floor)
{
	add(figure, p50, 1.2 * floor + 0.7, "us", false);
}

static const char *judged(const struct aim *aim)
{
	if (!ready_settings.gpu)
		return "(host)";
	if (isnan(aim->measured) || isnan(aim->aim))
		return "not measured";
	return (aim->least ? aim->measured >= aim->aim : aim->measured <= aim->aim) ? "yes" : "NO";
}

void ready_aims_print(void)
{
	printf("\naims\n%-66s %12s %15s\n", "figure", "measured", "aim");
	for (size_t i = 0; i < count; i++)
		printf("%-66s %12.2f  %s %10.2f %-9s %s\n", aims[i].figure, aims[i].measured,
		       aims[i].least ? ">=" : "<=", aims[i].aim, aims[i].unit, judged(&aims[i]));
}
