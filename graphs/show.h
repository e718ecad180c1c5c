/* Printing a plan. */
#ifndef WR_GRAPHS_SHOW_H
#define WR_GRAPHS_SHOW_H

#include "base/text.h"
#include "graphs/plan.h"

struct wr_setting;

void wr_show_json(struct wr_text *text, const struct wr_plan *plan);
void wr_show_text(struct wr_text *text, const struct wr_plan *plan);
void wr_show_dot(struct wr_text *text, const struct wr_plan *plan);

/* --- show_value.c --- */
/* As in a graph file: with a unit, except 0 and -1. */
void wr_show_duration(struct wr_text *text, int64_t ns);
/* As JSON; with `people`, durations and sizes get a unit. */
void wr_show_setting(struct wr_text *text, const struct wr_plan_entity *entity,
		     const struct wr_setting *setting, bool people);

const char *wr_policy_text(weir_policy policy);
const char *wr_stream_flags_text(unsigned flags);
const char *wr_plan_output_name(const struct wr_plan *plan, const struct wr_plan_connection *connection);
const char *wr_plan_input_name(const struct wr_plan *plan, const struct wr_plan_connection *connection);
bool wr_plan_has_resources(const struct wr_plan *plan); /* the description has some */
/* The name for "resources" of the entity; NULL if it needs none or has no stream pool. */
const char *wr_plan_used_resource(const struct wr_plan *plan, const struct wr_plan_entity *entity);

#endif
