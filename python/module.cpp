/* The module: what is called once. */
#include "python/module.h"

#include <dlfcn.h>

extern "C" {
#include "cli/cli.h"
}

namespace weir_python
{

/* At the exit of the interpreter, before it finalizes: ends all runs, so that no worker needs the GIL later.
 */
static void shut_down()
{
	std::vector<Core *> all;

	settle();
	{
		std::lock_guard<std::mutex> guard(cores_lock);
		for (Core *core = cores; core; core = core->next)
			if (core->born == generation)
				all.push_back(core);
	}
	for (Core *core : all)
		end_scheduler(core);
	settle();
	drain_log();
	finished = true;
	leave_log();
}

static int64_t parse_duration(const char *text)
{
	int64_t ns;

	check(weir_duration_parse(text, &ns));
	return ns;
}

/* Untrusted text as weir prints it. */
static std::string escape(const char *text)
{
	char shown[256];
	std::string out;

	while (*text)
		out.append(shown, weir_text_escape(&text, sizeof shown, shown));
	return out;
}

static void in_child()
{
	generation++;
	forget_log();
}

/* Plugins resolve weir's functions in the process, but Python loads extensions and what they need locally. */
static void publish_library()
{
	Dl_info info;

	if (dladdr((void *)weir_version, &info))
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static void prepare()
{
	reserve_holders();
	intern_words();
	pthread_atfork(nullptr, nullptr, in_child);
	publish_library();
}

} // namespace weir_python

/* Threads of weir's find the main interpreter alone, and nanobind's types are one interpreter's. */
static bool is_main_interpreter()
{
	if (!PyInterpreterState_GetID(PyInterpreterState_Get()))
		return true;
	PyErr_SetString(PyExc_ImportError,
			"weir runs in the main interpreter alone, not in a sub-interpreter");
	return false;
}

NB_MODULE(_weir_of_main, module)
{
	using namespace weir_python;

	nb::set_leak_warnings(false); /* globals of the main module live longer than the interpreter */
	prepare();
	bind_message(module);
	bind_streams(module);
	bind_context(module);
	bind_futures(module);
	bind_graph(module);
	bind_ends(module);
	bind_log(module);
	bind_report(module);
	module.def("version", weir_version);
	module.def("command", run_command);
	module.def("say", [](const char *text) { cli_say("%s", text); });
	module.def("parse_duration", parse_duration);
	module.def("escape", escape);
	module.def("status_text", [](int status) { return weir_status_text((weir_status)status); });
	module.def("settle", settle);
	module.def("gil_takes", [] { return takes.load(); });
	module.def("leaks", [] { return leaks.load(); });
	nb::module_::import_("logging"); /* first: it closes its handlers after shut_down */
	nb::module_::import_("atexit").attr("register")(nb::cpp_function(shut_down));
}

extern "C" NB_EXPORT PyObject *PyInit__weir(void)
{
	return is_main_interpreter() ? PyInit__weir_of_main() : nullptr;
}
