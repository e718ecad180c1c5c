#include "graphs/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/description.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"

/* --- the list --- */

weir_status wr_files_keep(struct wr_files *files, const struct wr_file *file)
{
	weir_status status = wr_grow(&files->list, &files->room, files->count + 1, sizeof *files->list);

	if (!status)
		files->list[files->count++] = *file;
	return status;
}

weir_status wr_files_add(struct wr_files *files, const struct wr_file *file, const char *place)
{
	bool known = files->live || file->path || file->kind == WR_FILE_PLAIN;
	bool beneath = file->entity != SIZE_MAX;
	struct wr_file own = *file;

	snprintf(own.place, sizeof own.place, "%s", place);
	if (known)
		wr_file_look(&own, beneath ? files->open : wr_file_open_anywhere,
			     beneath ? files->arg : NULL);
	return wr_files_keep(files, &own);
}

void wr_files_finish(struct wr_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->list[i].owned)
			wr_free((char *)files->list[i].path);
	wr_free(files->list);
	*files = (struct wr_files){0};
}

/* --- what parameters name --- */

struct naming {
	struct wr_files *files;
	const struct wr_plan_entity *entity;
	size_t index; /* of the entity */
};

/* Returns true, and the use, if the parameter names a file or a descriptor. */
static bool names_file(const weir_parameter *parameter, enum wr_file_use *use)
{
	weir_parameter_type type = parameter->type;

	*use = type == WEIR_TYPE_WRITE_FILE || type == WEIR_TYPE_WRITE_DESCRIPTOR ? WR_FILE_WRITE
										  : WR_FILE_READ;
	return wr_parameter_is_file(parameter) || wr_parameter_is_descriptor(parameter);
}

/* A descriptor that is given takes the place of the files of its direction. */
static bool is_replaced(const weir_values *values, enum wr_file_use use)
{
	for (size_t i = 0; i < values->count; i++) {
		enum wr_file_use other;

		if (names_file(values->settings[i].parameter, &other) && other == use &&
		    wr_parameter_is_descriptor(values->settings[i].parameter) &&
		    values->settings[i].integer >= 0)
			return true;
	}
	return false;
}

static weir_status add_use(const struct naming *naming, struct wr_file file, const char *parameter)
{
	char place[WR_FILE_PLACE];

	snprintf(place, sizeof place, "/entities/%zu%s%s", naming->index, *parameter ? "/parameters/" : "",
		 parameter);
	file.entity = naming->index;
	file.user = naming->entity->name;
	return wr_files_add(naming->files, &file, place);
}

static weir_status add_setting(const struct naming *naming, const struct wr_setting *setting)
{
	const weir_parameter *parameter = setting->parameter;
	const weir_values *values = naming->entity->values;
	struct wr_file file = {.fd = -1};
	const struct wr_setting *prefix;

	if (!names_file(parameter, &file.use))
		return WEIR_OK;
	if (wr_parameter_is_descriptor(parameter)) {
		file.fd = (int)setting->integer;
		return file.fd < 0 ? WEIR_OK : add_use(naming, file, parameter->name);
	}
	if (!*setting->string || is_replaced(values, file.use))
		return WEIR_OK;
	prefix = parameter->choices ? wr_values_setting(values, parameter->choices) : NULL;
	if (prefix)
		file.prefix = prefix->string;
	if (strcmp(setting->string, "-"))
		file.path = setting->string;
	else
		file.fd = file.use == WR_FILE_READ ? STDIN_FILENO : STDOUT_FILENO;
	return add_use(naming, file, parameter->name);
}

/* One that prints stands for all: lines go with lines. */
static weir_status add_entity(struct wr_files *files, const struct wr_plan *plan, size_t index, bool *printed)
{
	const struct wr_plan_entity *entity = &plan->entities[index];
	const struct wr_setting *quiet = wr_values_setting(entity->values, "quiet");
	const struct naming naming = {files, entity, index};
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->values->count; i++)
		status = add_setting(&naming, &entity->values->settings[i]);
	if (status || *printed || !(entity->kind->flags & WEIR_OPERATOR_PRINTS) ||
	    (quiet && quiet->parameter->type == WEIR_TYPE_BOOL && quiet->integer))
		return status;
	*printed = true;
	return add_use(&naming, (struct wr_file){.fd = STDOUT_FILENO, .use = WR_FILE_LINES}, "");
}

weir_status wr_files_add_plan(struct wr_files *files, const struct wr_plan *plan,
			      const weir_registry *registry)
{
	const struct wr_file graph = {.path = plan->from_stdin ? NULL : plan->file,
				      .fd = plan->from_stdin ? STDIN_FILENO : -1,
				      .entity = SIZE_MAX};
	const struct wr_plugin *plugin = wr_registry_plugins(registry);
	weir_status status = plan->file ? wr_files_add(files, &graph, "the graph") : WEIR_OK;
	bool printed = false;

	for (; !status && plugin; plugin = plugin->next) {
		const struct wr_file file = {
			.fd = plugin->fd, .entity = SIZE_MAX, .kind = WR_FILE_PLAIN}; /* it is open here */

		status = wr_files_add(files, &file, "a plugin");
	}
	for (size_t i = 0; !status && i < plan->shown_count; i++)
		status = add_entity(files, plan, i, &printed);
	return status;
}

/* --- what cannot be --- */

const struct wr_file *wr_files_clash(const struct wr_files *files, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (wr_file_clashes(&files->list[i], &files->list[k], files->open, files->arg))
			return &files->list[k];
	return NULL;
}

/* What a process was started with is never close-on-exec; what it opened should be. */
const char *wr_files_foreign(const struct wr_files *files, size_t i)
{
	const struct wr_file *file = &files->list[i];
	int flags = file->path || file->entity == SIZE_MAX ? 0 : fcntl(file->fd, F_GETFD);

	return flags >= 0 && flags & FD_CLOEXEC
		       ? "was opened by this process and is close-on-exec: name one that the process was "
			 "started with"
		       : NULL;
}

/* --- a description --- */

/* At the parameter in the text; at its entity if it has its default there, or is "". */
static void report_clash(struct wr_reports *reports, const weir_description *description,
			 const struct wr_file *file, const struct wr_file *other)
{
	const char *slash = strrchr(file->place, '/');
	const char *parameter = strstr(file->place, "/parameters/") ? slash + 1 : "";
	const struct wr_value *entities = wr_value_find(&description->root, "entities");
	const struct wr_value *entity = &wr_value_at(entities, file->entity)->value;
	const struct wr_value *parameters = wr_value_find(entity, "parameters");
	const struct wr_value *value = parameters ? wr_value_find(parameters, parameter) : NULL;
	const struct wr_at list = {NULL, "entities", 0}, at = {&list, NULL, file->entity},
			   keys = {&at, "parameters", 0}, key = {&keys, parameter, 0};
	char text[WR_FILE_TEXT];

	wr_file_clash_text(text, file, other);
	wr_report(reports, WR_W_FILE_TWICE, *parameter ? &key : &at, value ? value->place : entity->place,
		  "%s", text);
}

weir_status weir_description_check_files(const weir_description *description, const weir_registry *registry,
					 weir_diagnostic_fn *fn, void *arg)
{
	struct wr_files files = {.open = wr_file_open_anywhere};
	struct wr_reports reports = {.file = description->file};
	struct wr_plan *plan = NULL;
	weir_status status = wr_description_plan(&plan, registry, description), delivered;

	if (status)
		return status;
	status = wr_files_add_plan(&files, plan, registry);
	for (size_t i = 0; !status && i < files.count; i++) {
		const struct wr_file *other = wr_files_clash(&files, i);

		if (other && files.list[i].entity != SIZE_MAX)
			report_clash(&reports, description, &files.list[i], other);
	}
	delivered = wr_reports_deliver(&reports, status ? NULL : fn, arg);
	wr_files_finish(&files);
	wr_description_keep(description, plan);
	return status ? status : delivered;
}
