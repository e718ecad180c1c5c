/*
 * Prints a plan: as text, as a graph file that gives the same plan, as DOT for Graphviz. Everything is added
 * to one growing text that keeps its first failure, so that only the end has to check it.
 */
#include "graphs/show.h"

#include "graphs/description.h"

static void add_plan(struct wr_text *text, const struct wr_plan *plan, weir_format format)
{
	switch (format) {
	case WEIR_FORMAT_TEXT:
		wr_show_text(text, plan);
		break;
	case WEIR_FORMAT_JSON:
		wr_show_json(text, plan);
		break;
	case WEIR_FORMAT_DOT:
		wr_show_dot(text, plan);
		break;
	}
}

weir_status weir_description_print(const weir_description *description, const weir_registry *registry,
				   weir_format format, char **out)
{
	struct wr_text text = {0};
	struct wr_plan *plan = NULL;
	weir_status status = wr_description_plan(&plan, registry, description);

	if (status)
		return status;
	add_plan(&text, plan, format);
	wr_description_keep(description, plan);
	status = text.status;
	if (status)
		wr_text_finish(&text);
	else
		*out = text.text;
	return status;
}
