#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * Messages of several inputs that belong together, by their times or their tags. A review with this condition
 * drops messages, so the choice is the scheduler's (scheduler/align.c).
 */
static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "ports",
		.type = WEIR_TYPE_INPUTS,
		.help = "the input ports, at least two, each with one connection",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "by",
		.type = WEIR_TYPE_CHOICE,
		.choices = "time|tag",
		.help = "what messages that belong together share: the time or the tag of their stamps",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "within",
		.type = WEIR_TYPE_DURATION,
		.fallback = "0",
		.max = INT64_MAX,
		.help = "by time: so far from the latest of them they may be",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "within_tags",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.max = INT64_MAX,
		.help = "by tag: so far from the latest of them they may be",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "missing",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"wait\"",
		.choices = "wait|empty|reuse",
		.help = "wait: a tick has all ports; empty: also less, if no partner can come; reuse: then a "
			"port gives its last message again",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "nearest",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "waits until later messages show that no nearer one will come",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "timeout",
		.type = WEIR_TYPE_DURATION,
		.fallback = "0",
		.max = INT64_MAX,
		.help = "with \"empty\" and \"reuse\": waits no longer for partners of a message that it has "
			"seen; 0: as long as it takes",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "max_age",
		.type = WEIR_TYPE_DURATION,
		.fallback = "-1",
		.min = -1,
		.max = INT64_MAX,
		.help = "with \"reuse\", by time: so far before the set the message may be that is given "
			"again; "
			"-1: any time",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "max_age_tags",
		.type = WEIR_TYPE_INT,
		.fallback = "-1",
		.min = -1,
		.max = INT64_MAX,
		.help = "with \"reuse\", by tag: likewise, in tags",
	},
	{.name = NULL},
};

static void aligned_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	wr_view_align(view, verdict);
}

static void aligned_ticked(void *state, weir_view *view)
{
	(void)state;
	wr_view_align_ticked(view);
}

const weir_condition wr_aligned = {
	.size = sizeof(weir_condition),
	.name = "aligned",
	.help = "messages of several inputs that belong together, by time or by tag",
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.flags = WEIR_CONDITION_TIMELESS,
	.ask = aligned_ask,
	.ticked = aligned_ticked,
};
