#include "graphs/parameter.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "graphs/field.h"
#include "graphs/json.h"
#include "graphs/table.h"

/* One parameter while it is read. */
struct reading {
	const struct wr_values_source *source;
	struct wr_reports *reports;
	const struct wr_at *at;
	struct wr_setting *setting;
};

bool wr_parameter_is_input(const weir_parameter *parameter)
{
	return parameter->type == WEIR_TYPE_INPUT || parameter->type == WEIR_TYPE_INPUTS;
}

bool wr_parameter_is_file(const weir_parameter *parameter)
{
	return parameter->type == WEIR_TYPE_READ_FILE || parameter->type == WEIR_TYPE_WRITE_FILE;
}

bool wr_parameter_is_descriptor(const weir_parameter *parameter)
{
	return parameter->type == WEIR_TYPE_READ_DESCRIPTOR || parameter->type == WEIR_TYPE_WRITE_DESCRIPTOR;
}

bool wr_parameter_is_output(const weir_parameter *parameter)
{
	return parameter->type == WEIR_TYPE_OUTPUT || parameter->type == WEIR_TYPE_OUTPUTS;
}

/* The JSON types that a parameter of this type may have. */
static unsigned json_types(weir_parameter_type type)
{
	switch (type) {
	case WEIR_TYPE_BOOL:
		return WR_BOOL;
	case WEIR_TYPE_INT:
	case WEIR_TYPE_READ_DESCRIPTOR:
	case WEIR_TYPE_WRITE_DESCRIPTOR:
		return WR_INTEGER;
	case WEIR_TYPE_NUMBER:
		return WR_INTEGER | WR_REAL;
	case WEIR_TYPE_DURATION:
	case WEIR_TYPE_SIZE:
		return WR_INTEGER | WR_STRING;
	case WEIR_TYPE_STRING:
	case WEIR_TYPE_CHOICE:
	case WEIR_TYPE_INPUT:
	case WEIR_TYPE_OUTPUT:
	case WEIR_TYPE_READ_FILE:
	case WEIR_TYPE_WRITE_FILE:
		return WR_STRING;
	case WEIR_TYPE_INPUTS:
	case WEIR_TYPE_OUTPUTS:
		return WR_STRING | WR_ARRAY;
	case WEIR_TYPE_NUMBERS:
		return WR_INTEGER | WR_REAL | WR_ARRAY;
	}
	return 0;
}

static struct wr_shown bound_shown(weir_parameter_type type, int64_t value)
{
	struct wr_shown shown;

	if (type == WEIR_TYPE_DURATION && value > 0)
		return wr_duration_shown(value);
	if (type == WEIR_TYPE_SIZE && value > 0)
		return wr_size_shown(value);
	snprintf(shown.text, sizeof(shown.text), "%lld", (long long)value);
	return shown;
}

/* INT64_MAX is no bound. */
static void report_range(const struct reading *reading, struct wr_place place, const char *given, int64_t min,
			 int64_t max)
{
	weir_parameter_type type = reading->setting->parameter->type;

	if (max == INT64_MAX)
		wr_report(reading->reports, WR_W_RANGE, reading->at, place,
			  "%s is out of range: must be at least %s", given, bound_shown(type, min).text);
	else
		wr_report(reading->reports, WR_W_RANGE, reading->at, place,
			  "%s is out of range: must be %s to %s", given, bound_shown(type, min).text,
			  bound_shown(type, max).text);
}

static void setting_check_bounds(const struct reading *reading, const struct wr_value *given, int64_t value)
{
	const weir_parameter *parameter = reading->setting->parameter;
	bool open = !parameter->min && !parameter->max;
	int64_t min = open && parameter->type == WEIR_TYPE_INT ? INT64_MIN : parameter->min;
	int64_t max = open ? INT64_MAX : parameter->max;

	if (wr_parameter_is_descriptor(parameter)) {
		min = -1;
		max = INT32_MAX;
	}
	if (value >= min && value <= max)
		reading->setting->integer = value;
	else if (given->type == WR_STRING) /* what was written with a unit is shown as it was written */
		report_range(reading, given->place, wr_shown(given->string).text, min, max);
	else
		report_range(reading, given->place, bound_shown(parameter->type, value).text, min, max);
}

static void setting_read_duration(const struct reading *reading, const struct wr_value *value)
{
	int64_t ns;

	if (wr_field_duration(reading->reports, reading->at, value, true, &ns))
		setting_check_bounds(reading, value, ns);
}

/* An integer, or a size. */
static void setting_read_quantity(const struct reading *reading, const struct wr_value *value)
{
	const char *wrong;
	int64_t number;

	if (value->type == WR_INTEGER) {
		setting_check_bounds(reading, value, value->integer);
		return;
	}
	wrong = wr_size_read(value->string, &number);
	if (!wrong)
		setting_check_bounds(reading, value, number);
	else
		wr_report(reading->reports, WR_W_SIZE, reading->at, value->place, WR_SIZE_WRONG,
			  wr_shown(value->string).text, wrong);
}

static weir_status setting_copy_string(const struct reading *reading, const struct wr_value *value)
{
	const weir_parameter *parameter = reading->setting->parameter;

	if (parameter->type == WEIR_TYPE_CHOICE &&
	    wr_field_choice(reading->reports, reading->at, value, parameter->choices) < 0)
		return WEIR_OK;
	reading->setting->string = wr_strdup(value->string);
	return reading->setting->string ? WEIR_OK : WEIR_E_NOMEM;
}

static void setting_read_port(const struct reading *reading, const struct wr_at *at,
			      const struct wr_value *name)
{
	struct wr_setting *setting = reading->setting;
	bool input = wr_parameter_is_input(setting->parameter);
	int port;

	if (!wr_type_check(reading->reports, at, name, WR_STRING))
		return;
	port = wr_port_find(reading->reports, at, name->place, reading->source->ports, name->string, input);
	for (size_t i = 0; port >= 0 && i < setting->port_count; i++)
		if (setting->ports[i] == (unsigned)port) {
			wr_report(reading->reports, WR_W_DUPLICATE_NAME, at, name->place,
				  "port '%s' is named twice: name it once", wr_shown(name->string).text);
			return;
		}
	if (port >= 0)
		setting->ports[setting->port_count++] = (unsigned)port;
}

static weir_status setting_read_ports(const struct reading *reading, const struct wr_value *value)
{
	size_t count = value->type == WR_ARRAY ? wr_value_count(value) : 1;

	if (!count)
		wr_report(reading->reports, WR_W_RANGE, reading->at, value->place,
			  "is empty: name at least one port");
	reading->setting->ports = wr_alloc(count, sizeof(unsigned));
	if (!reading->setting->ports)
		return WEIR_E_NOMEM;
	if (value->type == WR_STRING)
		setting_read_port(reading, reading->at, value);
	for (size_t i = 0; i < wr_value_count(value); i++)
		setting_read_port(reading, &(struct wr_at){reading->at, NULL, i},
				  &wr_value_at(value, i)->value);
	return WEIR_OK;
}

static double value_number(const struct wr_value *value)
{
	return value->type == WR_REAL ? value->real : (double)value->integer;
}

/* Written so that NaN is within no bounds. */
static weir_status setting_read_number(const struct reading *reading, const struct wr_value *value)
{
	const weir_parameter *parameter = reading->setting->parameter;
	bool open = !parameter->min && !parameter->max, bounded = parameter->max < INT64_MAX;
	double number = value_number(value);
	struct wr_text given = {0};
	weir_status status;

	if (open || (number >= (double)parameter->min && (!bounded || number <= (double)parameter->max))) {
		reading->setting->number = number;
		return WEIR_OK;
	}
	if (value->type == WR_REAL)
		wr_text_real(&given, number);
	else
		wr_text_add(&given, "%lld", (long long)value->integer);
	status = given.status;
	if (!status)
		report_range(reading, value->place, given.text, parameter->min, parameter->max);
	wr_text_finish(&given);
	return status;
}

static void setting_check_length(const struct reading *reading, struct wr_place place, size_t count)
{
	const weir_parameter *parameter = reading->setting->parameter;
	const char *s = count == 1 ? "" : "s";

	if ((!parameter->min && !parameter->max) ||
	    ((int64_t)count >= parameter->min && (int64_t)count <= parameter->max))
		return;
	if (parameter->min == parameter->max)
		wr_report(reading->reports, WR_W_RANGE, reading->at, place,
			  "has %zu number%s: must have %lld", count, s, (long long)parameter->min);
	else
		wr_report(reading->reports, WR_W_RANGE, reading->at, place,
			  "has %zu number%s: must have %lld to %lld", count, s, (long long)parameter->min,
			  (long long)parameter->max);
}

static weir_status setting_read_numbers(const struct reading *reading, const struct wr_value *value)
{
	bool list = value->type == WR_ARRAY;
	size_t count = list ? wr_value_count(value) : 1;
	struct wr_setting *setting = reading->setting;

	setting_check_length(reading, value->place, count);
	setting->numbers = wr_alloc(count, sizeof(double));
	if (!setting->numbers)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct wr_value *item = list ? &wr_value_at(value, i)->value : value;

		if (wr_type_check(reading->reports, &(struct wr_at){reading->at, NULL, i}, item,
				  WR_INTEGER | WR_REAL))
			setting->numbers[setting->number_count++] = value_number(item);
	}
	return WEIR_OK;
}

static weir_status setting_read_value(const struct reading *reading, const struct wr_value *value)
{
	struct wr_setting *setting = reading->setting;

	if (!wr_type_check(reading->reports, reading->at, value, json_types(setting->parameter->type)))
		return WEIR_OK;
	switch (setting->parameter->type) {
	case WEIR_TYPE_BOOL:
		setting->integer = value->boolean;
		return WEIR_OK;
	case WEIR_TYPE_NUMBER:
		return setting_read_number(reading, value);
	case WEIR_TYPE_DURATION:
		setting_read_duration(reading, value);
		return WEIR_OK;
	case WEIR_TYPE_INT:
	case WEIR_TYPE_SIZE:
	case WEIR_TYPE_READ_DESCRIPTOR:
	case WEIR_TYPE_WRITE_DESCRIPTOR:
		setting_read_quantity(reading, value);
		return WEIR_OK;
	case WEIR_TYPE_STRING:
	case WEIR_TYPE_CHOICE:
	case WEIR_TYPE_READ_FILE:
	case WEIR_TYPE_WRITE_FILE:
		return setting_copy_string(reading, value);
	case WEIR_TYPE_INPUT:
	case WEIR_TYPE_OUTPUT:
	case WEIR_TYPE_INPUTS:
	case WEIR_TYPE_OUTPUTS:
		return setting_read_ports(reading, value);
	case WEIR_TYPE_NUMBERS:
		return setting_read_numbers(reading, value);
	}
	return WEIR_OK;
}

/* Reads the table's default as if the text had it, at the place of the object that lacks it. */
static weir_status setting_read_fallback(struct reading *reading)
{
	const struct wr_values_source *source = reading->source;
	const weir_parameter *parameter = reading->setting->parameter;
	struct wr_value value;
	weir_status status;

	if (!parameter->fallback) {
		wr_report(reading->reports, WR_W_MISSING_PARAMETER, source->at, source->place,
			  "%s '%s' needs the parameter '%s': %s", source->kind, source->name, parameter->name,
			  parameter->help && *parameter->help ? parameter->help : "it has no default");
		return WEIR_OK;
	}
	status = wr_json_read(&value, parameter->fallback, strlen(parameter->fallback), reading->reports);
	if (status)
		return status == WEIR_E_NOMEM ? status : WEIR_OK;
	wr_value_forget_places(&value);
	value.place = source->place;
	status = setting_read_value(reading, &value);
	wr_value_finish(&value);
	return status;
}

static bool is_parameter(const struct wr_values_source *source, const char *key)
{
	for (const char *const *skip = source->skip; skip && *skip; skip++)
		if (!strcmp(*skip, key))
			return true;
	for (const weir_parameter *p = source->parameters; p && p->name; p++)
		if (!strcmp(p->name, key))
			return true;
	return false;
}

static void check_parameter_key(const struct wr_values_source *source, struct wr_reports *reports,
				const struct wr_member *member)
{
	struct wr_nearest nearest = {.wanted = member->key};
	struct wr_offer offer = {.what = "parameter"};
	struct wr_at at = {source->at, member->key, 0};

	if (is_parameter(source, member->key) || wr_is_comment(reports, &at, member))
		return;
	for (const weir_parameter *p = source->parameters; p && p->name; p++) {
		wr_nearest_try(&nearest, p->name);
		wr_offer_add(&offer, p->name);
	}
	wr_report(reports, WR_W_UNKNOWN_PARAMETER, &at, member->place, "%s '%s' has no parameter '%s'%s",
		  source->kind, source->name, wr_shown(member->key).text, wr_offer_hint(&offer, &nearest));
}

weir_status wr_values_create(weir_values **out, const struct wr_values_source *source,
			     struct wr_reports *reports)
{
	const weir_parameter *parameters = source->parameters;
	weir_status status = WEIR_OK;
	weir_values *values;
	size_t count = 0;

	while (parameters && parameters[count].name)
		count++;
	values = wr_alloc(1, sizeof(*values) + count * sizeof(values->settings[0]));
	if (!values)
		return WEIR_E_NOMEM;
	values->kind = source->kind;
	values->name = source->name;
	values->count = count;
	for (size_t i = 0; i < count; i++)
		values->settings[i].parameter = &parameters[i];
	for (size_t i = 0; source->object && i < wr_value_count(source->object); i++)
		check_parameter_key(source, reports, wr_value_at(source->object, i));
	for (size_t i = 0; i < count && !status; i++) {
		struct wr_at at = {source->at, parameters[i].name, 0};
		struct reading reading = {source, reports, &at, &values->settings[i]};
		const struct wr_value *value =
			source->object ? wr_value_find(source->object, parameters[i].name) : NULL;
		status = value ? setting_read_value(&reading, value) : setting_read_fallback(&reading);
	}
	if (status)
		wr_values_destroy(values);
	else
		*out = values;
	return status;
}

void wr_values_destroy(weir_values *values)
{
	for (size_t i = 0; values && i < values->count; i++) {
		wr_free(values->settings[i].string);
		wr_free(values->settings[i].ports);
		wr_free(values->settings[i].numbers);
	}
	wr_free(values);
}

const struct wr_setting *wr_values_setting(const weir_values *values, const char *name)
{
	for (size_t i = 0; i < values->count; i++)
		if (!strcmp(values->settings[i].parameter->name, name))
			return &values->settings[i];
	return NULL;
}

/* --- reading values --- */

static const char *const getters[] = {
	[WEIR_TYPE_BOOL] = "weir_values_bool",
	[WEIR_TYPE_INT] = "weir_values_int",
	[WEIR_TYPE_NUMBER] = "weir_values_number",
	[WEIR_TYPE_STRING] = "weir_values_string",
	[WEIR_TYPE_DURATION] = "weir_values_int",
	[WEIR_TYPE_SIZE] = "weir_values_int",
	[WEIR_TYPE_CHOICE] = "weir_values_string",
	[WEIR_TYPE_INPUT] = "weir_values_int",
	[WEIR_TYPE_OUTPUT] = "weir_values_int",
	[WEIR_TYPE_INPUTS] = "weir_values_count and weir_values_at",
	[WEIR_TYPE_OUTPUTS] = "weir_values_count and weir_values_at",
	[WEIR_TYPE_NUMBERS] = "weir_values_count and weir_values_number_at",
	[WEIR_TYPE_READ_FILE] = "weir_values_string",
	[WEIR_TYPE_WRITE_FILE] = "weir_values_string",
	[WEIR_TYPE_READ_DESCRIPTOR] = "weir_values_int",
	[WEIR_TYPE_WRITE_DESCRIPTOR] = "weir_values_int",
};

/* An error in the kind's code: wr_values_check fails its start. Only the first request is recorded. */
static void record_misuse(const weir_values *values, const char *name, const struct wr_setting *setting)
{
	weir_values *own = (weir_values *)values;

	if (wr_exchange(&own->misused, true))
		return;
	if (!setting)
		snprintf(own->misuse, sizeof(own->misuse),
			 "asked for the parameter '%.64s', which it does not declare", name);
	else
		snprintf(own->misuse, sizeof(own->misuse),
			 "asked for the parameter '%.64s' as another type: use %s", name,
			 getters[setting->parameter->type]);
}

weir_status wr_values_check(const weir_values *values)
{
	weir_values *own = (weir_values *)values;

	if (!wr_load(&own->misused))
		return WEIR_OK;
	wr_store(&own->misused, false);
	return wr_fail(WEIR_E_INVALID, "%s '%s' %s", own->kind, own->name, own->misuse);
}

/* The setting if its type is in `types`, a mask of 1 << type; else records a misuse and returns zeros. */
static const struct wr_setting *declared_setting(const weir_values *values, const char *name, unsigned types)
{
	static const struct wr_setting none;
	const struct wr_setting *setting = wr_values_setting(values, name);

	if (setting && types & 1u << setting->parameter->type)
		return setting;
	record_misuse(values, name, setting);
	return &none;
}

bool weir_values_bool(const weir_values *values, const char *name)
{
	return declared_setting(values, name, 1u << WEIR_TYPE_BOOL)->integer != 0;
}

int64_t weir_values_int(const weir_values *values, const char *name)
{
	const struct wr_setting *setting =
		declared_setting(values, name,
				 1u << WEIR_TYPE_INT | 1u << WEIR_TYPE_DURATION | 1u << WEIR_TYPE_SIZE |
					 1u << WEIR_TYPE_INPUT | 1u << WEIR_TYPE_OUTPUT |
					 1u << WEIR_TYPE_READ_DESCRIPTOR | 1u << WEIR_TYPE_WRITE_DESCRIPTOR);

	return setting->port_count ? setting->ports[0] : setting->integer;
}

double weir_values_number(const weir_values *values, const char *name)
{
	return declared_setting(values, name, 1u << WEIR_TYPE_NUMBER)->number;
}

const char *weir_values_string(const weir_values *values, const char *name)
{
	const char *string = declared_setting(values, name,
					      1u << WEIR_TYPE_STRING | 1u << WEIR_TYPE_CHOICE |
						      1u << WEIR_TYPE_READ_FILE | 1u << WEIR_TYPE_WRITE_FILE)
				     ->string;

	return string ? string : "";
}

size_t weir_values_count(const weir_values *values, const char *name)
{
	const struct wr_setting *setting = declared_setting(
		values, name, 1u << WEIR_TYPE_INPUTS | 1u << WEIR_TYPE_OUTPUTS | 1u << WEIR_TYPE_NUMBERS);

	return setting->numbers ? setting->number_count : setting->port_count;
}

unsigned weir_values_at(const weir_values *values, const char *name, size_t i)
{
	const struct wr_setting *setting =
		declared_setting(values, name, 1u << WEIR_TYPE_INPUTS | 1u << WEIR_TYPE_OUTPUTS);

	return i < setting->port_count ? setting->ports[i] : 0;
}

double weir_values_number_at(const weir_values *values, const char *name, size_t i)
{
	const struct wr_setting *setting = declared_setting(values, name, 1u << WEIR_TYPE_NUMBERS);

	return i < setting->number_count ? setting->numbers[i] : 0;
}

weir_status weir_duration_parse(const char *text, int64_t *out)
{
	int64_t ns;
	const char *wrong = wr_duration_read(text, &ns);

	if (wrong)
		return wr_fail(WEIR_E_INVALID, WR_DURATION_WRONG, wr_shown(text).text, wrong);
	*out = ns;
	return WEIR_OK;
}
