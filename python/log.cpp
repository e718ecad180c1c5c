/*
 * weir's log as records of Python's logger "weir". The log function runs on any thread of weir's, also where
 * the device calls it or where a fiber stands for a worker, so it neither waits for the GIL nor calls Python:
 * it puts the line on a list. A thread that lives while there are lines gives them to weir.log.deliver; the
 * end of a wait and ctx.log do so themselves. One thread at a time delivers, so the order stays.
 */
#include "python/module.h"

#include <ctime>
#include <unistd.h>

namespace weir_python
{

struct Line {
	Line *next;
	int level;
	double created;
	unsigned long thread;
	char name[16]; /* of the thread */
	char text[];
};

constexpr int MOST = 1 << 16;              /* lines that wait; a flood beyond is counted instead */
constexpr int PATIENCE = 1000;             /* ms that the end of a run waits for a handler */
static std::atomic<Line *> lines{nullptr}; /* the newest first */
static std::atomic<int> waiting{0}, lost{0};
static std::atomic<bool> delivering{false};
static std::atomic<bool> coming{false}; /* a thread that has not looked yet */
static std::atomic<int> threads{0};
static std::atomic<int> to_stderr{0};
static thread_local bool mine = false;          /* this thread is the one that delivers */
static thread_local bool delivers_soon = false; /* this thread is in `log_inside` */

/* No destructors here: at its end an interpreter ends a thread that asks for the GIL. */
static void *deliver_later(void *)
{
	if (!finished) {
		PyGILState_STATE gil = PyGILState_Ensure();
		PyObject *module, *result;

		coming = false;
		module = PyImport_ImportModule("weir.log");
		result = module ? PyObject_CallMethod(module, "deliver", nullptr) : nullptr;
		if (!result)
			PyErr_WriteUnraisable(module);
		Py_XDECREF(result);
		Py_XDECREF(module);
		PyGILState_Release(gil);
	}
	threads--;
	return nullptr;
}

/* If there can be no thread, the next one or the end of the run takes the line along. */
static void start_thread()
{
	pthread_t thread;

	if (delivering || coming.exchange(true))
		return;
	threads++;
	if (pthread_create(&thread, nullptr, deliver_later, nullptr)) {
		threads--;
		coming = false;
	} else {
		(void)pthread_detach(thread);
	}
}

static void put_line(weir_log_level level, const char *text)
{
	size_t bytes = strlen(text) + 1;
	Line *line = waiting < MOST ? (Line *)malloc(sizeof(Line) + bytes) : nullptr;
	struct timespec now;

	if (!line) {
		lost++;
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	line->level = level;
	line->created = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	line->thread = (unsigned long)pthread_self();
	if (pthread_getname_np(pthread_self(), line->name, sizeof line->name))
		line->name[0] = 0;
	memcpy(line->text, text, bytes);
	waiting++;
	line->next = lines.load(std::memory_order_relaxed);
	while (!lines.compare_exchange_weak(line->next, line))
		;
}

static void log_line(weir_log_level level, int64_t, const char *text, void *)
{
	int shown = to_stderr.load(std::memory_order_relaxed);

	if (shown) {
		if ((int)level <= shown)
			fprintf(stderr, "weir: %s\n", text);
		return;
	}
	if (finished)
		return;
	put_line(level, text);
	if (!delivers_soon)
		start_thread();
}

/* False: there are no lines, or a thread delivers, which looks again. Else `end_delivery` follows. */
static bool begin_delivery()
{
	if (mine || !lines.load() || delivering.exchange(true))
		return false;
	mine = true;
	return true;
}

static void end_delivery()
{
	mine = false;
	delivering = false;
}

/* (level, seconds, thread, its name, text) of all lines that wait, the oldest first. */
static nb::list take_lines()
{
	Line *line = lines.exchange(nullptr), *oldest = nullptr, *next;
	int missing = lost.exchange(0);
	nb::list out;

	for (; line; line = next) {
		next = line->next;
		line->next = oldest;
		oldest = line;
	}
	for (line = oldest; line; line = next) {
		next = line->next;
		out.append(nb::make_tuple(line->level, line->created, line->thread, text_of(line->name),
					  text_of(line->text)));
		waiting--;
		if (!next && missing)
			out.append(nb::make_tuple(
				(int)WEIR_LOG_WARN, line->created, line->thread, text_of(line->name),
				text_of((std::to_string(missing) + " lines of the log were lost").c_str())));
		free(line);
	}
	return out;
}

static void deliver()
{
	if (lines.load())
		nb::module_::import_("weir.log").attr("deliver")();
}

void drain_log()
{
	deliver();
	for (int i = 0; i < PATIENCE && !mine && (delivering || lines.load()); i++) {
		{
			nb::gil_scoped_release released;
			usleep(1000);
		}
		deliver();
	}
}

void log_inside(weir_context *context, weir_log_level level, const char *text)
{
	{
		nb::gil_scoped_release released;

		delivers_soon = true;
		weir_context_log(context, level, "%s", text);
		delivers_soon = false;
	}
	deliver();
}

void leave_log()
{
	nb::gil_scoped_release released;

	for (int i = 0; i < PATIENCE && threads; i++)
		usleep(1000);
}

/* The lines that wait are the parent's. */
void forget_log()
{
	lines = nullptr;
	waiting = lost = threads = 0;
	delivering = coming = false;
}

void set_log(bool on)
{
	nb::gil_scoped_release released;

	(void)weir_log_set(on ? log_line : nullptr, nullptr);
}

void bind_log(nb::module_ &module)
{
	module.def(
		"log_to_stderr", [](int level) { to_stderr = level; }, nb::arg("level"),
		"Prints weir's log on stderr up to a level, instead of giving it to logging: 1 errors, 2 "
		"warnings, 3 info, 4 debug; 0: to logging again.");
	module.def("begin_delivery", begin_delivery);
	module.def("end_delivery", end_delivery);
	module.def("take_lines", take_lines);
	set_log(true);
}

} // namespace weir_python
