/* Errors, what messages hold on to, and the life of a core. */
#include "python/module.h"

#include <sys/mman.h>
#include <unistd.h>

namespace weir_python
{

std::atomic<unsigned> generation{0};
std::atomic<bool> finished{false};
std::atomic<uint64_t> takes{0}, leaks{0};
thread_local int depth = 0;

nb::object text_of(const char *text)
{
	return nb::steal(PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
}

nb::object text_or_none(const char *text)
{
	return text ? text_of(text) : nb::none();
}

[[noreturn]] void raise(weir_status status, const char *text, const char *entity, nb::object diagnostics,
			nb::object said, nb::object cause, nb::object on)
{
	if (finished) { /* late in the exit nothing is imported */
		PyErr_SetString(PyExc_RuntimeError, text);
		throw nb::python_error();
	}
	nb::object error = nb::module_::import_("weir.errors")
				   .attr("make")((int)status, text_of(text), text_or_none(entity),
						 diagnostics, said, cause, on);

	PyErr_SetObject((PyObject *)Py_TYPE(error.ptr()), error.ptr());
	throw nb::python_error();
}

nb::object cause_or_none(weir_cause cause)
{
	return cause ? text_of(weir_cause_text(cause)) : nb::none();
}

void check(weir_status status, const char *entity)
{
	weir_error error = {sizeof error};

	if (!status)
		return;
	weir_error_last(&error);
	raise(status, weir_last_error(), entity ? entity : error.entity, nb::none(), text_of(error.text),
	      cause_or_none(error.cause), text_or_none(error.on));
}

nb::object take_exception()
{
#if PY_VERSION_HEX >= 0x030C0000
	return nb::steal(PyErr_GetRaisedException());
#else
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	if (trace)
		PyException_SetTraceback(value, trace);
	Py_XDECREF(type);
	Py_XDECREF(trace);
	return nb::steal(value);
#endif
}

/*
 * Holders come from one range of addresses, so that the pointer of a user's message tells whether it is one.
 * Pages are touched when they are needed, and recycled.
 */
constexpr size_t HOLDERS = 1u << 21;
static Holder *range = nullptr;
static size_t used = 0; /* guarded by holders_lock, as is free_holders */
static Holder *free_holders = nullptr;
static nb::ft_mutex holders_lock; /* with a GIL, that is the lock */
std::atomic<Holder *> let_go_of{nullptr};

void reserve_holders()
{
	range = (Holder *)mmap(nullptr, HOLDERS * sizeof(Holder), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED)
		throw std::bad_alloc();
}

bool is_holder(const void *pointer)
{
	return pointer >= range && pointer < range + HOLDERS;
}

static size_t givens = 0; /* holders of arrays that were given away; guarded by holders_lock */

Shared find_shared(Holder *other)
{
	Shared found = Shared::NOT;

	if (!other->given && !givens)
		return found;
	drop_holders(); /* what the graph has done with is not shared */
	nb::ft_lock_guard guard(holders_lock);
	for (const Holder *holder = range; holder < range + used && found != Shared::GIVEN; holder++)
		if (holder != other && holder->keeps > Keeps::OBJECT && holder->bytes &&
		    holder->begin < other->begin + other->bytes &&
		    other->begin < holder->begin + holder->bytes)
			found = holder->given ? Shared::GIVEN : Shared::LENT;
	other->given = other->given && found == Shared::NOT;
	givens += other->given;
	return found;
}

Holder *take_holder()
{
	nb::ft_lock_guard guard(holders_lock);
	Holder *holder = free_holders;

	if (holder)
		free_holders = holder->next;
	else if (used < HOLDERS)
		holder = &range[used++];
	if (!holder)
		raise(WEIR_E_NOMEM, "too many objects of Python are in messages");
	holder->keeps = Keeps::NOTHING;
	holder->given = false;
	holder->bytes = 0;
	holder->written = nullptr;
	return holder;
}

void drop_holder(Holder *holder)
{
	switch (holder->keeps) {
	case Keeps::NOTHING:
		break;
	case Keeps::OBJECT:
		Py_DECREF(holder->object);
		break;
	case Keeps::BUFFER:
		PyBuffer_Release(&holder->buffer);
		break;
	case Keeps::DLPACK:
		if (holder->managed->deleter)
			holder->managed->deleter(holder->managed);
		break;
	case Keeps::VERSIONED:
		if (holder->versioned->deleter)
			holder->versioned->deleter(holder->versioned);
		break;
	case Keeps::MESSAGE: /* let_go has dropped it: the graph may be gone by now */
		break;
	}
	drop_written(holder);
	nb::ft_lock_guard guard(holders_lock);
	givens -= holder->given;
	holder->keeps = Keeps::NOTHING;
	holder->next = free_holders;
	free_holders = holder;
}

void let_go(void *arg)
{
	Holder *holder = (Holder *)arg;

	if (holder->written)
		check_written(holder);
	if (holder->keeps == Keeps::MESSAGE)
		weir_message_unref(holder->message);
	holder->next = let_go_of.load(std::memory_order_relaxed);
	while (!let_go_of.compare_exchange_weak(holder->next, holder, std::memory_order_release,
						std::memory_order_relaxed))
		;
}

std::mutex cores_lock;
Core *cores = nullptr;
static std::atomic<Core *> retired{nullptr};

bool is_ours(const Core *core)
{
	return core->born == generation && !finished;
}

static int settle_later(void *)
{
	settle();
	return 0;
}

/* The main thread ends it, unless a call of the module comes before. */
void retire(Core *core)
{
	if (core->listed.exchange(true))
		return;
	core->next_retired = retired.load(std::memory_order_relaxed);
	while (!retired.compare_exchange_weak(core->next_retired, core, std::memory_order_release,
					      std::memory_order_relaxed))
		;
	if (!finished)
		(void)Py_AddPendingCall(settle_later, nullptr);
}

static void forget(Core *core)
{
	std::lock_guard<std::mutex> guard(cores_lock);
	Core **link = &cores;

	while (*link && *link != core)
		link = &(*link)->next;
	if (*link)
		*link = core->next;
}

static void leak(Core *core)
{
	leaks += !core->leaked;
	core->leaked = true;
}

bool end_scheduler(Core *core)
{
	weir_scheduler *scheduler = core->scheduler;

	if (!scheduler || core->ending)
		return !core->ending;
	core->ending = true;
	weir_scheduler_stop(scheduler, 0);
	for (int i = 0; core->inside && i < 200; i++) {
		nb::gil_scoped_release released;
		usleep(5000);
	}
	if (!core->inside) {
		nb::gil_scoped_release released;
		std::vector<weir_message *> unfenced;
		std::vector<Consumer> consumers;
		{
			std::lock_guard<std::mutex> guard(core->consumers_lock);
			core->scheduler = nullptr;
			consumers.swap(core->consumers);
			core->streams.clear();
			unfenced.swap(core->unfenced);
		}
		if (weir_scheduler_destroy(scheduler) == WEIR_E_ABANDONED)
			leak(core);
		for (const Consumer &consumer : consumers) /* one that is still busy stays wrapped */
			(void)weir_stream_unwrap(consumer.stream);
		for (weir_message *message : unfenced)
			weir_message_unref(message);
	}
	core->ending = false;
	return !core->scheduler;
}

void bury(Core *core)
{
	weir_status status;

	if (!is_ours(core))
		return;
	if (!end_scheduler(core)) /* another thread is inside */
		return leak(core);
	forget(core);
	status = weir_graph_destroy(core->graph);
	if (core->leaked || status)
		return leak(core);
	weir_registry_destroy(core->registry);
	if (core->ended >= 0)
		close(core->ended);
	delete core;
}

void drop_holders()
{
	Holder *holder = let_go_of.exchange(nullptr, std::memory_order_acquire);

	while (holder) {
		Holder *next = holder->next;

		drop_holder(holder);
		holder = next;
	}
}

/* A graph that was dropped inside an operator ends here, though messages may keep its memory. */
static void end_retired(Core *core)
{
	core->listed = false;
	if (!core->references) {
		bury(core);
	} else if (core->dropped && core->scheduler && is_ours(core)) {
		Ref hold(core); /* the last of its operators may go now */
		(void)end_scheduler(core);
	}
}

static void bury_retired()
{
	Core *core = retired.exchange(nullptr, std::memory_order_acquire);

	while (core) {
		Core *next = core->next_retired;

		end_retired(core);
		core = next;
	}
}

void settle()
{
	if (!depth && retired.load(std::memory_order_relaxed))
		bury_retired();
	if (let_go_of.load(std::memory_order_relaxed))
		drop_holders();
}

void check_process(const Core *core)
{
	if (core->born != generation)
		raise(WEIR_E_INVALID, FORKED);
}

void check_core(const Core *core)
{
	check_process(core);
	if (!core->graph || finished)
		raise(WEIR_E_INVALID, "the graph is closed");
}

void check_open(const Core *core)
{
	check_core(core);
	if (core->ending)
		raise(WEIR_E_CLOSED, "the graph is being closed");
}

} // namespace weir_python
