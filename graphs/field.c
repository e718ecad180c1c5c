#include "graphs/field.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"

/* "a string or a list" */
static struct wr_shown type_words(unsigned types)
{
	struct wr_shown words = {{0}};
	struct wr_words list = wr_words_in(words.text, sizeof(words.text));

	if (types & WR_REAL) /* "a number" covers both */
		types &= ~(unsigned)(WR_INTEGER);
	for (unsigned type = WR_NULL; type <= WR_OBJECT; type <<= 1) {
		const char *word = type == WR_REAL ? "a number" : wr_type_text((enum wr_type)type);
		if (types & type)
			wr_words_add(&list, "%s%s", list.length ? " or " : "", word);
	}
	return words;
}

bool wr_type_check(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		   unsigned types)
{
	if (value->type & types)
		return true;
	wr_report(reports, WR_W_TYPE, at, value->place, "is %s, must be %s", wr_type_text(value->type),
		  type_words(types).text);
	return false;
}

static const struct wr_field *field_of(const struct wr_field *fields, const char *name)
{
	for (; fields->name; fields++)
		if (!strcmp(fields->name, name))
			return fields;
	return NULL;
}

static void report_unknown_key(struct wr_reports *reports, const struct wr_at *at,
			       const struct wr_member *member, const char *what,
			       const struct wr_field *fields)
{
	struct wr_nearest nearest = {.wanted = member->key};
	struct wr_offer offer = {.what = "key"};

	for (; fields->name; fields++) {
		if (!fields->types)
			continue;
		wr_nearest_try(&nearest, fields->name);
		wr_offer_add(&offer, fields->name);
	}
	wr_nearest_try(&nearest, "comment");
	wr_offer_add(&offer, "comment");
	wr_report(reports, WR_W_UNKNOWN_KEY, at, member->place, "%s has no key '%s'%s", what,
		  wr_shown(member->key).text, wr_offer_hint(&offer, &nearest));
}

bool wr_is_comment(struct wr_reports *reports, const struct wr_at *at, const struct wr_member *member)
{
	if (strcmp(member->key, "comment"))
		return false;
	wr_type_check(reports, at, &member->value, WR_STRING);
	return true;
}

static void field_read(struct wr_reports *reports, const struct wr_at *at, const struct wr_member *member,
		       const char *what, const struct wr_field *fields, const struct wr_value **found)
{
	const struct wr_field *field = field_of(fields, member->key);

	if (!field && wr_is_comment(reports, at, member))
		return;
	if (!field)
		report_unknown_key(reports, at, member, what, fields);
	else if (!field->types)
		wr_report(reports, WR_W_UNSUPPORTED, at, member->place,
			  "'%s' is not supported in this version: remove it", field->name);
	else if (!found[field - fields] && wr_type_check(reports, at, &member->value, field->types))
		found[field - fields] = &member->value;
}

void wr_fields_read(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *object,
		    const char *what, const struct wr_field *fields, const struct wr_value **found)
{
	for (size_t i = 0; fields[i].name; i++)
		found[i] = NULL;
	for (size_t i = 0; i < wr_value_count(object); i++) {
		const struct wr_member *member = wr_value_at(object, i);
		field_read(reports, &(struct wr_at){at, member->key, 0}, member, what, fields, found);
	}
	for (; fields->name; fields++)
		if (fields->required && wr_value_index(object, fields->name) == WR_NO_INDEX)
			wr_report(reports, WR_W_MISSING_KEY, at, object->place, "%s needs the key '%s'", what,
				  fields->name);
}

int64_t wr_field_integer(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
			 int64_t min, int64_t max, int64_t fallback)
{
	if (!value)
		return fallback;
	if (value->integer >= min && value->integer <= max)
		return value->integer;
	if (min == max)
		wr_report(reports, WR_W_RANGE, at, value->place, "%lld is out of range: must be %lld",
			  (long long)value->integer, (long long)min);
	else if (max == INT64_MAX)
		wr_report(reports, WR_W_RANGE, at, value->place,
			  "%lld is out of range: must be at least %lld", (long long)value->integer,
			  (long long)min);
	else
		wr_report(reports, WR_W_RANGE, at, value->place, "%lld is out of range: must be %lld to %lld",
			  (long long)value->integer, (long long)min, (long long)max);
	return fallback;
}

bool wr_field_duration(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		       bool period, int64_t *out)
{
	const char *wrong;

	if (value->type == WR_INTEGER && value->integer <= 0) {
		*out = value->integer;
		return true;
	}
	if (value->type == WR_INTEGER) {
		wr_report(reports, WR_W_DURATION, at, value->place,
			  "%lld has no unit: write \"%lldms\", or \"%s\" for nanoseconds",
			  (long long)value->integer, (long long)value->integer,
			  wr_duration_shown(value->integer).text);
		return false;
	}
	wrong = period ? wr_period_read(value->string, out) : wr_duration_read(value->string, out);
	if (wrong)
		wr_report(reports, WR_W_DURATION, at, value->place,
			  period ? WR_PERIOD_WRONG : WR_DURATION_WRONG, wr_shown(value->string).text, wrong);
	return !wrong;
}

int wr_field_choice(struct wr_reports *reports, const struct wr_at *at, const struct wr_value *value,
		    const char *choices)
{
	struct wr_nearest nearest = {.wanted = value->string};
	char best[40] = "";
	const char *choice = choices;

	for (int i = 0; *choice; i++) {
		char word[40];
		size_t length = strcspn(choice, "|");

		snprintf(word, sizeof(word), "%.*s", (int)length, choice);
		if (!strcmp(word, value->string))
			return i;
		wr_nearest_try(&nearest, word);
		if (nearest.best == word)
			nearest.best = memcpy(best, word, sizeof(word));
		choice += length + (choice[length] == '|');
	}
	wr_report(reports, WR_W_CHOICE, at, value->place, "'%s' is not one of %s%s",
		  wr_shown(value->string).text, choices, wr_nearest_hint(&nearest).text);
	return -1;
}
