/*
 * `python3 -m weir`: the command itself, in this interpreter (cli/cli.h, struct cli_python). It has no GIL
 * while it runs.
 */
#include "python/module.h"

extern "C" {
#include "cli/cli.h"
}

namespace weir_python
{

/*
 * `python3 -m weir`: the command itself, in this interpreter (cli/cli.h, struct cli_python). It has no GIL
 * while it runs.
 */

/* Of the one command of a process. */
struct Command {
	nb::callable load, failed, flush; /* python/weir/__main__.py */
	nb::callable handles;
	nb::object graph; /* of the run */
	nb::object kinds; /* the handles of its operators */
};
Command *command = nullptr;

/* Calls it; an exception is reported as Python reports those of destructors. */
template <typename... Arguments> bool call_command(const nb::callable &callable, Arguments... arguments)
{
	try {
		return nb::cast<bool>(callable(arguments...));
	} catch (nb::python_error &error) {
		error.discard_as_unraisable("the command weir");
		return false;
	}
}

static bool command_load(const char *path)
{
	nb::gil_scoped_acquire hold;

	return call_command(command->load, nb::bytes(path, strlen(path)));
}

static weir_status command_add(weir_registry *registry)
{
	nb::gil_scoped_acquire hold;

	command->kinds = command->handles();
	auto kinds = nb::cast<std::vector<KindHandle *>>(command->kinds);

	return add_kinds(registry, &kinds);
}

static int command_begin(const cli_options *options, weir_registry *registry, weir_graph *graph,
			 weir_scheduler *scheduler)
{
	nb::gil_scoped_acquire hold;

	settle();
	nb::object made = new_graph();
	Core *core = nb::inst_ptr<Graph>(made)->core.get(); /* checked: just made */
	core->registry = registry;
	core->graph = graph;
	core->scheduler = scheduler;
	note_backend(core, options->strict);
	command->graph = made;
	const char *entity = core->simulated ? first_of_python(core) : nullptr;
	if (entity)
		cli_say("%s: '%s': %s", options->argument, entity, NOT_ON_SIM);
	return entity ? CLI_FAILED : CLI_OK;
}

static void command_turn()
{
	nb::gil_scoped_acquire hold;

	settle();
	if (PyErr_CheckSignals()) /* handlers that a file of --python installed */
		PyErr_WriteUnraisable(nullptr);
}

static void command_failed(const char *entity)
{
	nb::gil_scoped_acquire hold;
	Graph *graph = nb::cast<Graph *>(command->graph);
	nb::object error = graph->failures.attr("get")(entity);

	if (!error.is_none())
		call_command(command->failed, error);
}

static bool command_end()
{
	nb::gil_scoped_acquire hold;
	Ref core = nb::cast<Graph *>(command->graph)->core;

	(void)end_scheduler(core.get());
	command->graph.reset();
	return core->leaked;
}

static bool command_flush()
{
	nb::gil_scoped_acquire hold;

	return call_command(command->flush);
}

int run_command(std::vector<nb::bytes> words, nb::callable load, nb::callable failed, nb::callable flush,
		nb::callable handles)
{
	static const struct cli_python python = {command_load,   command_add, command_begin, command_turn,
						 command_failed, command_end, command_flush};
	Command own = {load, failed, flush, handles, nb::object(), nb::object()};
	std::vector<char *> argv;
	int code;

	for (nb::bytes &word : words)
		argv.push_back((char *)word.c_str());
	argv.push_back(nullptr);
	setvbuf(stdout, nullptr, _IOFBF, BUFSIZ); /* an unbuffered Python would write each word alone */
	command = &own;
	set_log(false); /* the command prints it */
	{
		nb::gil_scoped_release released;
		code = cli_main((int)words.size(), argv.data(), &python);
	}
	command = nullptr;
	settle();
	return code;
}

} // namespace weir_python
