/*
 * The extension module weir._weir: graphs, operators and messages of weir for CPython. It is the only C++ of
 * the package; what needs no C is in python/weir.
 *
 * Who owns what: a `Core` is one weir_graph with its scheduler. It is counted: by the Python object of the
 * graph, by each Message, Inlet and Outlet, and by each array that was exported. The scheduler ends with the
 * Python object, the weir_graph with the last count, since no message may outlive its graph.
 *
 * The GIL is taken around start, compute and stop of a Python operator (`Hold`) and nowhere else: what weir
 * calls on its threads besides, the destructors of payloads, only puts its argument on a list (`let_go`). The
 * list is emptied (`settle`) where Python calls the module anyway, and where a program drops a message, so it
 * never holds more than what was in flight at the last emit or push. A call that may block, or in which weir
 * calls an operator, releases the GIL.
 *
 * A worker keeps one thread state from its first compute to its end. At the exit of the interpreter
 * `shut_down` ends all runs, so no worker lives when the interpreter finalizes; what is destroyed later is
 * leaked.
 *
 * After a fork the child has the objects, but neither threads nor locks of the parent's graphs: each call
 * compares the generation and is refused, destructors leak.
 */
#include <nanobind/nanobind.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir.h>

extern "C" {
#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"
}

namespace nb = nanobind;

/*
 * Texts and lists as arguments. nanobind's own casters of them are noexcept though they allocate: without
 * memory they would end the program.
 */
namespace nanobind::detail
{

template <> struct type_caster<std::string> {
	NB_TYPE_CASTER(std::string, const_name("str"))

	bool from_python(handle from, uint32_t, cleanup_list *)
	{
		Py_ssize_t bytes = 0;
		const char *text =
			PyUnicode_Check(from.ptr()) ? PyUnicode_AsUTF8AndSize(from.ptr(), &bytes) : nullptr;

		if (text)
			value.assign(text, (size_t)bytes);
		else
			PyErr_Clear();
		return text;
	}
	static handle from_cpp(const std::string &text, rv_policy, cleanup_list *) noexcept
	{
		return PyUnicode_FromStringAndSize(text.data(), (Py_ssize_t)text.size());
	}
};

template <typename T> struct type_caster<std::vector<T>> {
	NB_TYPE_CASTER(std::vector<T>,
		       const_name("collections.abc.Sequence[") + make_caster<T>::Name + const_name("]"))

	bool from_python(handle from, uint32_t flags, cleanup_list *cleanup)
	{
		bool is_text = PyUnicode_Check(from.ptr()) || PyBytes_Check(from.ptr());
		object items = steal(is_text || !PySequence_Check(from.ptr()) ? nullptr
									      : PySequence_List(from.ptr()));

		PyErr_Clear();
		if (!items.is_valid())
			return false;
		for (handle item : borrow<list>(items)) {
			make_caster<T> one;
			if (!one.from_python(item, flags_for_local_caster<T>(flags), cleanup) ||
			    !one.template can_cast<T>())
				return false;
			value.push_back(one.operator cast_t<T>());
		}
		return true;
	}
};

} // namespace nanobind::detail

namespace
{

constexpr int64_t SLICE_NS = 20000000;          /* how soon Ctrl-C is seen */
constexpr int64_t SLICE_SIM_NS = 1000000000000; /* of virtual time, in which nothing else happens */

std::atomic<unsigned> generation{0}; /* counts forks */
std::atomic<bool> finished{false};   /* the interpreter exits; nothing is called any more */
std::atomic<uint64_t> takes{0};      /* of the GIL, by operators; for tests */
thread_local int depth = 0;          /* calls of operators that this thread is in */

struct Core;
bool is_inside(const Core *core);

/* ------------------------------------------------------------------------------------------- errors -- */

nb::object text_of(const char *text)
{
	return nb::steal(PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
}

nb::object text_or_none(const char *text)
{
	return text ? text_of(text) : nb::none();
}

/* Raises weir.Error, or its subclass for the status. diagnostics: a list of tuples, or none. */
[[noreturn]] void raise(weir_status status, const char *text, const char *entity = nullptr,
			nb::object diagnostics = nb::none(), nb::object said = nb::none())
{
	nb::object error =
		nb::module_::import_("weir.errors")
			.attr("make")((int)status, text_of(text), text_or_none(entity), diagnostics, said);

	PyErr_SetObject((PyObject *)Py_TYPE(error.ptr()), error.ptr());
	throw nb::python_error();
}

void check(weir_status status, const char *entity = nullptr)
{
	if (status)
		raise(status, weir_last_error(), entity ? entity : weir_last_error_entity(), nb::none(),
		      text_of(weir_last_error_text()));
}

/* The exception that is being raised, with its traceback. */
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

/* ---------------------------------------------------------------------------------------- the GIL -- */

/* A worker's thread state. It dies with the thread; weir joins its threads while no thread waits with the
 * GIL. */
struct Kept {
	PyThreadState *state = nullptr;

	~Kept()
	{
		if (!state || finished)
			return;
		PyEval_RestoreThread(state);
		PyGILState_Release(PyGILState_UNLOCKED);
	}
};
thread_local Kept kept;

/* Holds the GIL on a thread of weir's, or on a Python thread that released it. */
class Hold
{
      public:
	Hold()
	{
		mine = kept.state || !PyGILState_GetThisThreadState();
		if (kept.state)
			PyEval_RestoreThread(kept.state);
		else
			gil = PyGILState_Ensure();
		if (mine)
			kept.state = PyThreadState_Get();
		takes.store(takes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
		depth++;
	}

	~Hold()
	{
		depth--;
		if (mine)
			PyEval_SaveThread();
		else
			PyGILState_Release(gil);
	}

      private:
	bool mine;
	PyGILState_STATE gil = PyGILState_UNLOCKED;
};

/* --------------------------------------------------------------------------- what messages hold on to -- */

struct DLDevice {
	int32_t type, id;
};
struct DLDataType {
	uint8_t code, bits;
	uint16_t lanes;
};
struct DLTensor {
	void *data;
	DLDevice device;
	int32_t dimensions;
	DLDataType type;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};
struct DLManaged {
	DLTensor tensor;
	void *context;
	void (*deleter)(DLManaged *);
};
struct DLManagedVersioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(DLManagedVersioned *);
	uint64_t flags;
	DLTensor tensor;
};
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_READ_ONLY = 1 };

enum class Keeps { NOTHING, OBJECT, BUFFER, DLPACK, VERSIONED };

/* What a payload of Python's keeps alive. */
struct Holder {
	Holder *next;
	Keeps keeps;
	union {
		PyObject *object;
		Py_buffer buffer;
		DLManaged *managed;
		DLManagedVersioned *versioned;
	};
};

/*
 * Holders come from one range of addresses, so that the pointer of a user's message tells whether it is one.
 * Pages are touched when they are needed, and recycled.
 */
constexpr size_t HOLDERS = 1u << 21;
Holder *range = nullptr;
size_t used = 0; /* guarded by holders_lock, as is free_holders */
Holder *free_holders = nullptr;
nb::ft_mutex holders_lock; /* with a GIL, that is the lock */
std::atomic<Holder *> let_go_of{nullptr};

bool is_holder(const void *pointer)
{
	return pointer >= range && pointer < range + HOLDERS;
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
	}
	nb::ft_lock_guard guard(holders_lock);
	holder->next = free_holders;
	free_holders = holder;
}

/* Destructor of payloads: any thread of weir's, without the GIL. */
void let_go(void *arg)
{
	Holder *holder = (Holder *)arg;

	holder->next = let_go_of.load(std::memory_order_relaxed);
	while (!let_go_of.compare_exchange_weak(holder->next, holder, std::memory_order_release,
						std::memory_order_relaxed))
		;
}

/* ------------------------------------------------------------------------------------------- the core -- */

struct Graph;

struct Export;

/* A stream of another library, to which an array was exported. Its record is one thread's at a time. */
struct Consumer {
	int device;
	void *native;
	weir_stream *stream;
};

struct Core {
	std::atomic<long> references{1};
	unsigned born = generation;
	weir_registry *registry = nullptr;
	weir_graph *graph = nullptr;
	weir_scheduler *scheduler = nullptr;
	Graph *owner = nullptr;          /* guarded by the GIL */
	std::atomic<int> inside{0};      /* threads in a call that releases the GIL */
	std::atomic<bool> ending{false}; /* the scheduler is being destroyed */
	int ended = -1;                  /* eventfd: readable when a run has ended */
	bool simulated = false;          /* the backend is sim */
	bool on_cuda = false;            /* else a device's memory is the host's */
	bool strict = false;             /* but closed to it */
	bool leaked = false;             /* a hung device may touch its memory */
	std::mutex consumers_lock; /* guards the list, and `scheduler` against arrays that die elsewhere */
	std::vector<Consumer> consumers;
	std::vector<weir_message *> unfenced; /* of arrays whose readers' streams could not be recorded */
	std::vector<std::pair<int, weir_stream *>> streams; /* for arrays that a program pushes */
	Core *next_retired = nullptr;
	Core *next = nullptr; /* of all; guarded by cores_lock */
};

std::mutex cores_lock;
Core *cores = nullptr;
std::atomic<Core *> retired{nullptr};

bool is_ours(const Core *core)
{
	return core->born == generation && !finished;
}

void retire(Core *core)
{
	core->next_retired = retired.load(std::memory_order_relaxed);
	while (!retired.compare_exchange_weak(core->next_retired, core, std::memory_order_release,
					      std::memory_order_relaxed))
		;
}

void forget(Core *core)
{
	std::lock_guard<std::mutex> guard(cores_lock);
	Core **link = &cores;

	while (*link && *link != core)
		link = &(*link)->next;
	if (*link)
		*link = core->next;
}

/*
 * Ends the run and its scheduler; not inside an operator. With the GIL, which is released while it waits.
 * Calls that come meanwhile are refused; returns false if a thread does not leave one that it is in.
 */
bool end_scheduler(Core *core)
{
	weir_scheduler *scheduler = core->scheduler;

	if (!scheduler || core->ending)
		return !core->ending;
	core->ending = true;
	weir_scheduler_stop(scheduler, false);
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
		core->leaked |= weir_scheduler_destroy(scheduler) == WEIR_E_ABANDONED;
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

	if (!is_ours(core) || !end_scheduler(core))
		return; /* another thread is inside: it is leaked */
	forget(core);
	status = weir_graph_destroy(core->graph);
	if (core->leaked || status)
		return;
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

void bury_retired()
{
	Core *core = retired.exchange(nullptr, std::memory_order_acquire);

	while (core) {
		Core *next = core->next_retired;

		if (is_inside(core))
			retire(core);
		else
			bury(core);
		core = next;
	}
}

/* Ends graphs without references, and drops what messages kept. With the GIL. */
void settle()
{
	if (retired.load(std::memory_order_relaxed))
		bury_retired();
	if (let_go_of.load(std::memory_order_relaxed))
		drop_holders();
}

/* A counted reference to a core; may be dropped on any thread. */
class Ref
{
      public:
	explicit Ref(Core *of) : core(of)
	{
		core->references.fetch_add(1, std::memory_order_relaxed);
	}
	Ref(const Ref &other) : Ref(other.core)
	{
	}
	Ref(Ref &&other) noexcept : core(other.core)
	{
		other.core = nullptr;
	}
	Ref &operator=(const Ref &) = delete;
	~Ref()
	{
		if (core && core->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
			retire(core);
	}
	Core *operator->() const
	{
		return core;
	}
	Core *get() const
	{
		return core;
	}

      private:
	Core *core;
};

void check_core(const Core *core)
{
	if (core->born != generation)
		raise(WEIR_E_INVALID,
		      "this graph belongs to the parent process: after a fork, make a new one");
	if (!core->graph || finished)
		raise(WEIR_E_INVALID, "the graph is closed");
}

/* For calls about the run. */
void check_open(const Core *core)
{
	check_core(core);
	if (core->ending)
		raise(WEIR_E_CLOSED, "the graph is being closed");
}

/* A call that releases the GIL and uses the scheduler, its inlets or outlets: they stay until it ends. */
class Using
{
      public:
	explicit Using(Core *of) : core(of)
	{
		core->inside++;
	}
	~Using()
	{
		core->inside--;
	}

      private:
	Core *core;
};

/* ------------------------------------------------------------------------------------------ the kinds -- */

/* What an array on a port must be, beside its kind of message. */
struct Demand {
	int code = -1, bits = 0; /* -1: any type */
	int place = 0;           /* 0: any; 1: host; 2: device */
	bool dense = false;
	bool any() const
	{
		return code >= 0 || place || dense;
	}
};

/* An operator's table and all that it points to. Never freed: graphs borrow it, and classes seldom go. */
struct Kind {
	weir_operator table = {};
	PyObject *type = nullptr;
	std::deque<std::string> texts;
	std::vector<weir_port> ports[2]; /* inputs, outputs */
	std::vector<Demand> demands[2];
	std::vector<PyObject *> names[2]; /* interned */
	std::vector<weir_parameter> parameters;
	std::vector<const char *> conditions; /* JSON */

	const char *keep(const std::string &text)
	{
		texts.push_back(text);
		return texts.back().c_str();
	}
};

struct KindHandle {
	Kind *kind;
};

struct Dtype {
	const char *name;
	uint8_t code, bits;
	char format; /* of the buffer protocol; 0: none */
};
const Dtype dtypes[] = {
	{"int8", 0, 8, 'b'},     {"int16", 0, 16, 'h'},   {"int32", 0, 32, 'i'},   {"int64", 0, 64, 'q'},
	{"uint8", 1, 8, 'B'},    {"uint16", 1, 16, 'H'},  {"uint32", 1, 32, 'I'},  {"uint64", 1, 64, 'Q'},
	{"float16", 2, 16, 'e'}, {"float32", 2, 32, 'f'}, {"float64", 2, 64, 'd'}, {"bfloat16", 4, 16, 0},
};

const Dtype *dtype_of(int code, int bits)
{
	for (const auto &dtype : dtypes)
		if (dtype.code == code && dtype.bits == bits)
			return &dtype;
	return (decltype(&dtypes[0]))nullptr;
}

const Dtype *dtype_named(const char *name)
{
	for (const auto &dtype : dtypes)
		if (!strcmp(dtype.name, name))
			return &dtype;
	return (decltype(&dtypes[0]))nullptr;
}

bool is_dense(const weir_tensor *tensor)
{
	int64_t expected = 1;

	for (int i = tensor->dimensions; tensor->strides && i--;) {
		if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
			return false;
		expected *= tensor->shape[i];
	}
	return true;
}

/* "uint8 on the host" */
std::string described(const weir_tensor *tensor)
{
	const Dtype *dtype = dtype_of(tensor->code, tensor->bits);
	std::string text = dtype ? dtype->name : "another type";

	text += tensor->device < 0 ? " on the host" : " on device " + std::to_string(tensor->device);
	return text + (is_dense(tensor) ? "" : ", not contiguous");
}

/* Raises unless the message is what the port demands. */
void check_demand(const Kind *kind, int direction, unsigned port, const weir_message *message,
		  const Core *core, const char *entity)
{
	const Demand &demand = kind->demands[direction][port];
	const weir_tensor *tensor;
	std::string text;

	if (!demand.any())
		return;
	tensor = weir_message_tensor(message);
	text = std::string(direction ? "output '" : "input '") + kind->ports[direction][port].name + "'";
	if (!tensor)
		raise(WEIR_E_INVALID, (text + " expects an array").c_str(), entity);
	text += " refuses an array of " + described(tensor) + ": it expects ";
	if (demand.code >= 0 && (tensor->code != demand.code || tensor->bits != demand.bits))
		raise(WEIR_E_INVALID, (text + dtype_of(demand.code, demand.bits)->name).c_str(), entity);
	if (demand.place && core->on_cuda && (tensor->device >= 0) != (demand.place == 2))
		raise(WEIR_E_INVALID,
		      (text + (demand.place == 2 ? "a device's memory" : "the host's memory")).c_str(),
		      entity);
	if (demand.dense && !is_dense(tensor))
		raise(WEIR_E_INVALID, (text + "a contiguous one").c_str(), entity);
}

/* ----------------------------------------------------------------------------------- messages: objects -- */

struct Message {
	weir_message *message;
	Ref core;
	bool writable = false;
	bool borrowed = false; /* received in the compute that goes on; see Context.lent */
	bool made = false;     /* by ctx.empty: in `call` it may be written even if it was emitted */
	bool shown = false;    /* by __cuda_array_interface__, which names no stream of the reader's */
	uint64_t call = 0;     /* received or made in this call: the end of its tick fences the payload */

	Message(weir_message *taken, Core *of) : message(taken), core(of)
	{
	}
	Message(Message &&other) noexcept
	    : message(other.message), core(std::move(other.core)), writable(other.writable),
	      borrowed(other.borrowed), made(other.made), shown(other.shown), call(other.call)
	{
		other.message = nullptr;
	}
	~Message();
};

/* A message that is being made: dropped unless it is taken. */
struct Draft {
	weir_message *message = nullptr;

	~Draft()
	{
		weir_message_unref(message);
	}
	weir_message *take()
	{
		weir_message *taken = message;

		message = nullptr;
		return taken;
	}
};

/* ------------------------------------------------------------------------------------ arrays, coming in --
 */

/* Where an array comes to: the graph, and the tick that emits it, if it is one. */
struct Destination {
	Core *core;
	weir_context *context = nullptr; /* NULL: a program pushes */
	weir_stream *stream = nullptr;   /* of the tick, if the output has one of its own */
};

/* The strides in elements of a buffer; false if it is dense, so that none are needed. */
bool strides_of(const Py_buffer *view, int64_t *strides)
{
	if (PyBuffer_IsContiguous(view, 'C'))
		return false;
	for (int i = 0; i < view->ndim; i++) {
		if (view->strides[i] % view->itemsize)
			raise(WEIR_E_INVALID, "the array's strides are no multiples of its element");
		if (view->strides[i] < 0 && view->shape[i] > 1 && !view->readonly)
			raise(WEIR_E_INVALID, "the array has a negative stride: emit array.copy()");
		strides[i] = view->strides[i] / view->itemsize;
	}
	return true;
}

/* A type of elements that weir does not have: by the name that the library gives it, else by `format`. */
[[noreturn]] void refuse_type(nb::handle array, const std::string &format)
{
	nb::object type = nb::steal(PyObject_GetAttrString(array.ptr(), "dtype"));
	nb::object name = type.is_valid() ? nb::steal(PyObject_Str(type.ptr())) : nb::object();
	const char *text = name.is_valid() ? PyUnicode_AsUTF8AndSize(name.ptr(), nullptr) : nullptr;

	PyErr_Clear();
	raise(WEIR_E_INVALID, ("arrays of " + (text ? text : "the format '" + format + "'") +
			       " are not messages of weir: emit array.view(\"uint8\") or "
			       "array.astype(...), or weir.Object(array)")
				      .c_str());
}

/* The type of a buffer's elements: "B", "<f4" of NumPy is "f". */
const Dtype *dtype_of_buffer(const Py_buffer *view, nb::handle array)
{
	const char *format = view->format ? view->format : "B";
	std::string whole = format;
	const char *found;

	format += strchr("@=<", *format) && *format;
	found = *format && !format[1] ? strchr("bhilqnBHILQNefdc", *format) : nullptr;
	if (!found)
		refuse_type(array, whole);
	return dtype_of(strchr("bhilqn", *found)    ? 0
			: strchr("BHILQNc", *found) ? 1
						    : 2,
			(int)view->itemsize * 8);
}

/* A receiver that is alone may write in place, so what is read-only is copied. */
void copy_buffer(Draft &draft, Core *core, const weir_tensor *like, Py_buffer *view)
{
	check(weir_message_create_tensor(core->graph, like, &draft.message));
	if (PyBuffer_ToContiguous(weir_message_data(draft.message), view, view->len, 'C'))
		throw nb::python_error();
}

void from_buffer(Draft &draft, const Destination &to, nb::handle value)
{
	int64_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	Holder *holder = take_holder();
	Py_buffer *view = &holder->buffer;
	weir_tensor tensor = {};
	weir_status status;

	if (PyObject_GetBuffer(value.ptr(), view, PyBUF_FULL_RO)) {
		drop_holder(holder);
		throw nb::python_error();
	}
	std::unique_ptr<Holder, void (*)(Holder *)> guard(holder, drop_holder);
	holder->keeps = Keeps::BUFFER;
	const Dtype *dtype = dtype_of_buffer(view, value);
	if (view->ndim > WEIR_DIMENSIONS_MAX)
		raise(WEIR_E_INVALID, "arrays have at most 8 dimensions");
	for (int i = 0; i < view->ndim; i++)
		shape[i] = view->shape[i];
	tensor = {sizeof tensor, view->buf,   WEIR_DEVICE_HOST,
		  view->ndim,    shape,       strides_of(view, strides) ? strides : nullptr,
		  dtype->code,   dtype->bits, 1};
	if (view->readonly) {
		tensor.strides = nullptr;
		return copy_buffer(draft, to.core, &tensor, view);
	}
	status = weir_message_wrap_tensor(to.core->graph, &tensor, let_go, holder, &draft.message);
	check(status);
	guard.release();
}

/* A stream of weir's on which the program's arrays of a device are finished: one per device. */
weir_stream *program_stream(Core *core, int device)
{
	weir_stream *stream = nullptr;

	for (const auto &known : core->streams)
		if (known.first == device)
			return known.second;
	check(weir_graph_add_stream(core->graph, device, &stream));
	core->streams.emplace_back(device, stream);
	return stream;
}

/* The stream after which the exporter of a device's array has to put its work. */
weir_stream *stream_for(const Destination &to, int device)
{
	weir_stream *stream;

	if (!to.context)
		return program_stream(to.core, device);
	stream = to.stream ? to.stream : weir_context_stream(to.context);
	if (!stream)
		check(WEIR_E_DEVICE);
	if (weir_stream_device(stream) != device)
		raise(WEIR_E_INVALID, ("the array is on device " + std::to_string(device) +
				       ", the stream on device " + std::to_string(weir_stream_device(stream)))
					      .c_str());
	return stream;
}

/* cudaStreamLegacy is 1 in DLPack; other handles are the address. */
nb::object stream_number(const weir_stream *stream)
{
	void *native = weir_stream_native(stream);

	return nb::int_(native ? (uintptr_t)native : 1);
}

/* Calls __dlpack__; older exporters do not know max_version. */
nb::object export_of(nb::handle value, nb::object stream)
{
	nb::object exporter = value.attr("__dlpack__");
	nb::dict arguments;

	if (!stream.is_none())
		arguments["stream"] = stream;
	arguments["max_version"] = nb::make_tuple(1, 0);
	try {
		return exporter(**arguments);
	} catch (nb::python_error &error) {
		if (!error.matches(PyExc_TypeError))
			throw;
	}
	nb::del(arguments["max_version"]);
	return exporter(**arguments);
}

/* Takes the capsule's tensor over into the holder. Returns the tensor. */
const DLTensor *open_capsule(nb::handle capsule, Holder *holder)
{
	void *pointer;

	if ((pointer = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"))) {
		holder->versioned = (DLManagedVersioned *)pointer;
		if (holder->versioned->major != 1)
			raise(WEIR_E_INVALID, "the array's DLPack version is not 1");
		if (holder->versioned->flags & DL_READ_ONLY)
			raise(WEIR_E_INVALID,
			      "the array is read-only, but a receiver may write in place: emit a copy");
		PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
		holder->keeps = Keeps::VERSIONED;
		return &holder->versioned->tensor;
	}
	PyErr_Clear();
	if (!(pointer = PyCapsule_GetPointer(capsule.ptr(), "dltensor")))
		throw nb::python_error();
	holder->managed = (DLManaged *)pointer;
	PyCapsule_SetName(capsule.ptr(), "used_dltensor");
	holder->keeps = Keeps::DLPACK;
	return &holder->managed->tensor;
}

void check_dltensor(const DLTensor *from, nb::handle array)
{
	if (from->dimensions > WEIR_DIMENSIONS_MAX)
		raise(WEIR_E_INVALID, "arrays have at most 8 dimensions");
	if (from->type.lanes > 1 || !dtype_of(from->type.code, from->type.bits))
		refuse_type(array, "DLPack " + std::to_string(from->type.code) + ", " +
					   std::to_string(from->type.bits) + " bits");
}

void from_dlpack(Draft &draft, const Destination &to, nb::handle value)
{
	nb::tuple place = nb::cast<nb::tuple>(value.attr("__dlpack_device__")());
	int type = nb::cast<int>(nb::int_(place[0])), id = nb::cast<int>(nb::int_(place[1]));
	bool on_device = type == DL_CUDA || type == DL_CUDA_MANAGED;
	weir_stream *stream = on_device ? stream_for(to, id) : nullptr;
	nb::object capsule;
	weir_tensor tensor = {};
	weir_fence fence;

	if (!on_device && type != DL_CPU && type != DL_CUDA_HOST)
		raise(WEIR_E_UNSUPPORTED, "the array is neither on the host nor on a CUDA device");
	capsule = export_of(value, stream ? stream_number(stream) : nb::none());
	std::unique_ptr<Holder, void (*)(Holder *)> holder(take_holder(), drop_holder);
	const DLTensor *from = open_capsule(capsule, holder.get());
	check_dltensor(from, value);
	tensor = {sizeof tensor,
		  (char *)from->data + from->byte_offset,
		  on_device ? id : WEIR_DEVICE_HOST,
		  from->dimensions,
		  from->shape,
		  from->strides,
		  from->type.code,
		  from->type.bits,
		  1};
	check(weir_message_wrap_tensor(to.core->graph, &tensor, let_go, holder.get(), &draft.message));
	holder.release();
	if (!stream || to.context)
		return; /* the end of the tick records */
	check(weir_stream_record(stream, &fence));
	check(weir_message_add_producer(draft.message, fence));
}

void from_bytes(Draft &draft, Core *core, const char *from, size_t bytes)
{
	check(weir_message_create_bytes(core->graph, bytes, &draft.message));
	if (bytes)
		memcpy(weir_message_data(draft.message), from, bytes);
}

void from_object(Draft &draft, Core *core, nb::handle value)
{
	Holder *holder = take_holder();
	weir_status status;

	holder->object = value.inc_ref().ptr();
	holder->keeps = Keeps::OBJECT;
	status = weir_message_wrap_user(core->graph, holder, let_go, &draft.message);
	if (status)
		drop_holder(holder);
	check(status);
}

/* An object that is passed as it is, whatever it exports. */
struct Object {
	nb::object value;
};

void make_message(Draft &draft, const Destination &to, nb::handle value);

void from_parts(Draft &draft, const Destination &to, nb::dict parts)
{
	std::vector<Draft> drafts(parts.size());
	std::vector<std::string> names;
	std::vector<weir_part> list;

	for (auto [name, value] : parts) {
		if (!nb::isinstance<nb::str>(name))
			raise(WEIR_E_INVALID,
			      "the names of parts are strings; weir.Object(value) passes a dict as it is");
		Py_ssize_t bytes;
		const char *text = PyUnicode_AsUTF8AndSize(name.ptr(), &bytes);
		if (!text)
			throw nb::python_error();
		if (strlen(text) != (size_t)bytes)
			raise(WEIR_E_INVALID, "the name of a part has a NUL");
		if (PyDict_Check(value.ptr())) /* it may even contain itself */
			raise(WEIR_E_INVALID,
			      (std::string("part '") + text +
			       "': it is a dict, and a part has no parts: put its values into the message, "
			       "or weir.Object(value)")
				      .c_str());
		make_message(drafts[names.size()], to, value);
		names.push_back(text);
	}
	for (size_t i = 0; i < names.size(); i++)
		list.push_back({sizeof(weir_part), names[i].c_str(), drafts[i].message});
	check(weir_message_pack(to.core->graph, list.data(), list.size(), &draft.message));
	for (Draft &part : drafts)
		part.take();
}

PyObject *word_dlpack, *word_array, *word_cuda_array; /* interned names */

/* Puts one reference to the message for a value of Python's into the draft. */
void make_message(Draft &draft, const Destination &to, nb::handle value)
{
	PyObject *object = value.ptr();
	Message *message;
	Object *wrapped;

	if (nb::try_cast<Message *>(value, message) && message) {
		if (message->core.get() != to.core)
			raise(WEIR_E_INVALID, "the message belongs to another graph");
		message->writable = false;
		draft.message = weir_message_ref(message->message);
	} else if (PyLong_Check(object) || PyUnicode_Check(object) || PyTuple_Check(object)) {
		from_object(draft, to.core, value);
	} else if (nb::try_cast<Object *>(value, wrapped) && wrapped) {
		from_object(draft, to.core, wrapped->value);
	} else if (value.is_none()) {
		check(weir_message_create_empty(to.core->graph, &draft.message));
	} else if (PyBytes_Check(object)) {
		from_bytes(draft, to.core, PyBytes_AsString(object), (size_t)PyBytes_Size(object));
	} else if (PyByteArray_Check(object)) {
		from_bytes(draft, to.core, PyByteArray_AsString(object), (size_t)PyByteArray_Size(object));
	} else if (PyDict_Check(object)) {
		from_parts(draft, to, nb::borrow<nb::dict>(value));
	} else if (PyObject_CheckBuffer(object) &&
		   !PyObject_HasAttr((PyObject *)Py_TYPE(object), word_cuda_array)) {
		from_buffer(draft, to, value); /* CuPy's arrays have one that only refuses */
	} else if (PyObject_HasAttr(object, word_dlpack)) {
		from_dlpack(draft, to, value);
	} else if (PyObject_HasAttr(object, word_array) || PyObject_HasAttr(object, word_cuda_array)) {
		raise(WEIR_E_INVALID, "the array exports neither DLPack nor a buffer; weir.Object(array) "
				      "passes it as an object");
	} else {
		from_object(draft, to.core, value);
	}
}

/* ----------------------------------------------------------------------------------- arrays, going out -- */

struct Context;
thread_local Context *current = nullptr; /* of the compute that this thread is in */
bool is_own_stream(const Context *context, const void *native);
uint64_t number_of_call(const Context *context);
const std::vector<void *> *streams_of_call(const Context *context, const Core *core);

/*
 * Waits for a fence. A worker may not wait for a device; without CUDA the device is some threads of the host,
 * and NumPy's work in compute is device work that runs at once, so it waits where a stream would.
 */
weir_status wait_for_fence(const Core *core, weir_fence fence)
{
	nb::gil_scoped_release released;
	weir_status status;

	if (!depth)
		return weir_fence_wait(core->graph, fence, -1);
	while ((status = weir_fence_query(core->graph, fence)) == WEIR_E_BUSY && !core->on_cuda)
		usleep(20);
	return status;
}

/* The host may read only what is finished. */
void check_finished(const Message &self)
{
	weir_fence fences[WEIR_PARTS_MAX];
	size_t count = weir_message_fences(self.message, WEIR_PARTS_MAX, fences);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && i < WEIR_PARTS_MAX && !status; i++) {
		status = weir_fence_query(self.core->graph, fences[i]);
		if (status == WEIR_E_BUSY)
			status = wait_for_fence(self.core.get(), fences[i]);
	}
	if (status == WEIR_E_BUSY)
		raise(status,
		      "the device still works on the message: a port that the host reads needs its gate "
		      "(a Port without device=True, or \"gate\": true)");
	check(status);
}

const weir_tensor *tensor_of(const Message &self)
{
	const weir_tensor *tensor;

	check_core(self.core.get());
	tensor = weir_message_tensor(self.message);
	if (!tensor)
		raise(WEIR_E_INVALID, "the message is not an array");
	return tensor;
}

bool is_on_host(const Message &self, const weir_tensor *tensor)
{
	if (tensor->device >= 0 && self.core->strict)
		raise(WEIR_E_INVALID, "the array is in device memory, which is closed to the host (option "
				      "strict, the default on sim): put a 'download' before it");
	return tensor->device < 0 || !self.core->on_cuda;
}

/* Shape and strides of a buffer, which dies with the view. */
struct View {
	Py_ssize_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	char format[2];
};

void fill_strides(const weir_tensor *tensor, int64_t unit, int64_t *strides)
{
	int64_t dense = unit;

	for (int i = tensor->dimensions; i--;) {
		strides[i] = tensor->strides ? tensor->strides[i] * unit : dense;
		dense *= tensor->shape[i];
	}
}

/* Raises why the host cannot read the message by a buffer. */
void check_readable(Message &self)
{
	const weir_tensor *tensor;
	const Dtype *dtype;

	check_core(self.core.get());
	check_finished(self);
	if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
		return;
	tensor = tensor_of(self);
	dtype = dtype_of(tensor->code, tensor->bits);
	if (!is_on_host(self, tensor))
		raise(WEIR_E_INVALID, "the array is on the device: CuPy or torch read it, by DLPack");
	if (!dtype || !dtype->format || tensor->lanes > 1)
		raise(WEIR_E_UNSUPPORTED, "the array's type has no buffer format; read it by DLPack");
}

void view_tensor(const Message &self, Py_buffer *view)
{
	const weir_tensor *tensor = tensor_of(self);
	View *own = new View();

	own->format[0] = dtype_of(tensor->code, tensor->bits)->format;
	for (int i = 0; i < tensor->dimensions; i++)
		own->shape[i] = tensor->shape[i];
	fill_strides(tensor, tensor->bits / 8, own->strides);
	view->buf = tensor->data;
	view->len = (Py_ssize_t)weir_message_size(self.message);
	view->itemsize = tensor->bits / 8;
	view->ndim = tensor->dimensions;
	view->format = own->format;
	view->shape = own->shape;
	view->strides = own->strides;
	view->suboffsets = nullptr;
	view->internal = own;
}

int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
	Message &self = *nb::inst_ptr<Message>(object);

	view->obj = nullptr;
	try {
		check_readable(self);
		if (!self.writable && flags & PyBUF_WRITABLE)
			raise(WEIR_E_INVALID,
			      "messages are read-only; message.unique() tells whether it may be written");
		if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
			return PyBuffer_FillInfo(view, object, weir_message_data(self.message),
						 (Py_ssize_t)weir_message_size(self.message), !self.writable,
						 flags);
		view_tensor(self, view);
	} catch (nb::python_error &error) {
		/* The protocol wants a BufferError. */
		nb::object text = nb::str(error.value());
		PyErr_SetObject(PyExc_BufferError, text.ptr());
		return -1;
	}
	view->readonly = !self.writable;
	view->obj = Py_NewRef(object);
	return 0;
}

void release_buffer(PyObject *, Py_buffer *view)
{
	delete (View *)view->internal;
	view->internal = nullptr;
}

/* An array that was exported: the capsule's tensor and what it keeps. */
struct Export {
	DLManaged plain = {};
	DLManagedVersioned versioned = {};
	int64_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	Message message;
	bool reads = false;            /* a stream of the consumer's reads it */
	const Context *call = nullptr; /* that stream is the entity's, and the end of this call fences both */
	int device = 0;
	void *native = nullptr;

	explicit Export(Message &&from) : message(std::move(from))
	{
	}
};

weir_stream *consumer_stream_locked(Core *core, int device, void *native)
{
	weir_stream *stream = nullptr;

	for (const Consumer &known : core->consumers)
		if (known.device == device && known.native == native)
			return known.stream;
	if (weir_stream_wrap(core->graph, device, native, &stream))
		return nullptr;
	core->consumers.push_back({device, native, stream});
	return stream;
}

/*
 * The payload outlives what the consumer has enqueued by now. If its stream cannot be recorded, since the
 * consumer captures on it or there is no memory, the payload lives as long as the scheduler.
 */
void note_reader(Core *core, weir_message *message, int device, void *native)
{
	std::lock_guard<std::mutex> guard(core->consumers_lock);
	weir_stream *stream;
	weir_fence fence;

	if (!core->scheduler)
		return;
	stream = consumer_stream_locked(core, device, native);
	if (!stream || weir_stream_record(stream, &fence) || weir_message_add_reader(message, fence))
		core->unfenced.push_back(weir_message_ref(message));
}

/* Runs on any thread, with or without the GIL. */
void end_export(Export *self)
{
	bool fenced = self->call && self->call == current && self->message.call == number_of_call(current);

	if (self->reads && !fenced && is_ours(self->message.core.get()))
		note_reader(self->message.core.get(), self->message.message, self->device, self->native);
	delete self;
}

void end_plain(DLManaged *managed)
{
	end_export((Export *)managed->context);
}

void end_versioned(DLManagedVersioned *managed)
{
	end_export((Export *)managed->context);
}

void end_capsule(PyObject *capsule)
{
	const char *name = PyCapsule_GetName(capsule);

	if (name && !strncmp(name, "dltensor", 8)) /* nothing took it */
		end_export((Export *)PyCapsule_GetContext(capsule));
}

/* As DLPack counts, and CUDA's handles: 0 and 1 are the legacy stream, 2 is the thread's. */
constexpr uintptr_t LEGACY = 1, PER_THREAD = 2;

/* One name for the legacy stream: NULL. */
void *native_of(uintptr_t handle)
{
	return handle <= LEGACY ? nullptr : (void *)handle;
}

/* Puts the consumer's stream behind the work that produces the message, without a wait on the host. */
void order_consumer(Export *self, const weir_tensor *tensor, nb::handle stream)
{
	weir_fence fences[WEIR_PARTS_MAX];
	size_t count = weir_message_fences(self->message.message, WEIR_PARTS_MAX, fences);

	if (!stream.is_none() && nb::cast<int64_t>(stream) == -1)
		return;
	self->device = tensor->device;
	self->native = native_of(stream.is_none() ? LEGACY : nb::cast<uintptr_t>(stream));
	for (size_t i = 0; i < count && i < WEIR_PARTS_MAX; i++)
		check(weir_fence_enqueue(self->message.core->graph, fences[i], tensor->device, self->native));
	/* The array may end on another thread, where that handle is another stream; the legacy one is behind
	 * it. */
	if ((uintptr_t)self->native == PER_THREAD)
		self->native = nullptr;
	self->reads = true;
	if (is_own_stream(current, self->native))
		self->call = current;
}

DLTensor dltensor_of(Export *self, const weir_tensor *tensor, bool on_host)
{
	for (int i = 0; i < tensor->dimensions; i++)
		self->shape[i] = tensor->shape[i];
	fill_strides(tensor, 1, self->strides);
	return {tensor->data,
		{on_host ? DL_CPU : DL_CUDA, on_host ? 0 : tensor->device},
		tensor->dimensions,
		{tensor->code, tensor->bits, (uint16_t)(tensor->lanes ? tensor->lanes : 1)},
		self->shape,
		self->strides,
		0};
}

nb::object capsule_of(Export *self, const DLTensor &tensor, bool with_version)
{
	PyObject *capsule;

	self->plain = {tensor, self, end_plain};
	self->versioned = {
		1, 0, self, end_versioned, self->message.writable ? 0u : (uint64_t)DL_READ_ONLY, tensor};
	if (with_version)
		capsule = PyCapsule_New(&self->versioned, "dltensor_versioned", end_capsule);
	else
		capsule = PyCapsule_New(&self->plain, "dltensor", end_capsule);
	if (!capsule || PyCapsule_SetContext(capsule, self))
		throw nb::python_error();
	return nb::steal(capsule);
}

nb::object message_dlpack(Message &self, nb::object stream, nb::object max_version, nb::object dl_device,
			  nb::object copy)
{
	const weir_tensor *tensor = tensor_of(self);
	bool on_host = is_on_host(self, tensor);
	bool with_version = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
	Message held(weir_message_ref(self.message), self.core.get());

	held.writable = self.writable;
	held.call = self.call;
	if (!dl_device.is_none() && nb::cast<int>(nb::int_(dl_device[0])) != (on_host ? DL_CPU : DL_CUDA))
		throw nb::buffer_error("weir copies no arrays between devices: use 'upload' or 'download'");
	if (!copy.is_none() && nb::cast<bool>(copy))
		throw nb::buffer_error("weir makes no copies: copy the array that refers to the message");
	if (on_host)
		check_finished(self);
	std::unique_ptr<Export> exported(new Export(std::move(held)));
	if (!on_host)
		order_consumer(exported.get(), tensor, stream);
	nb::object capsule =
		capsule_of(exported.get(), dltensor_of(exported.get(), tensor, on_host), with_version);
	exported.release();
	return capsule;
}

nb::object message_dlpack_device(Message &self)
{
	const weir_tensor *tensor = tensor_of(self);

	if (is_on_host(self, tensor))
		return nb::make_tuple((int)DL_CPU, 0);
	return nb::make_tuple((int)DL_CUDA, tensor->device);
}

/* The streams on which what is shown by __cuda_array_interface__ may be read now. */
std::vector<void *> readers_of(const Message &self)
{
	const std::vector<void *> *known = streams_of_call(current, self.core.get());

	return known && !known->empty() ? *known : std::vector<void *>(1, nullptr);
}

/* What was shown and is not of this tick has no fence of its readers yet. */
Message::~Message()
{
	if (!message || borrowed || !is_ours(core.get()))
		return;
	if (shown && !(current && call == number_of_call(current)))
		for (void *native : readers_of(*this))
			note_reader(core.get(), message, weir_message_tensor(message)->device, native);
	weir_message_unref(message);
	if (!depth && let_go_of.load(std::memory_order_relaxed))
		drop_holders(); /* a program that drops its last message may not call the module again */
}

/* "<f4" */
std::string array_type(const weir_tensor *tensor)
{
	return std::string(tensor->bits == 8 ? "|" : "<") + "iufxx"[tensor->code] +
	       std::to_string(tensor->bits / 8);
}

nb::object numbers(const int64_t *list, int count)
{
	nb::list out;

	for (int i = 0; i < count; i++)
		out.append(list[i]);
	return nb::tuple(out);
}

/*
 * The interface names no consumer. Inside compute the streams that the tick asked for are put behind the work
 * that produces the message, and a consumer on one of them needs no wait; if it asked for none, and outside,
 * the legacy stream is.
 */
nb::object cuda_array_interface(Message &self)
{
	const weir_tensor *tensor = weir_message_tensor(self.message);
	int64_t strides[WEIR_DIMENSIONS_MAX];
	weir_fence fences[WEIR_PARTS_MAX];
	nb::dict out;

	if (!tensor || is_on_host(self, tensor) || tensor->code > 2)
		throw nb::attribute_error("__cuda_array_interface__: the array is not on a CUDA device");
	check_core(self.core.get());
	out["version"] = 3;
	out["shape"] = numbers(tensor->shape, tensor->dimensions);
	out["typestr"] = array_type(tensor);
	out["data"] = nb::make_tuple((uintptr_t)tensor->data, !self.writable);
	fill_strides(tensor, tensor->bits / 8, strides);
	out["strides"] = is_dense(tensor) ? nb::none() : numbers(strides, tensor->dimensions);
	out["stream"] = nb::none();
	std::vector<void *> readers = readers_of(self);
	self.shown = true;
	for (size_t i = weir_message_fences(self.message, WEIR_PARTS_MAX, fences); i--;)
		for (void *native : readers) {
			check(weir_fence_enqueue(self.core->graph, fences[i], tensor->device, native));
			if (!native)
				out["stream"] = 1;
		}
	return out;
}

/* ------------------------------------------------------------------------------------ messages: the rest --
 */

/* call: 0, or the number of the call in which it was received or made. */
nb::object message_of(weir_message *message, Core *core, uint64_t call = 0)
{
	Message own(message, core);

	own.call = call;
	return nb::cast(std::move(own), nb::rv_policy::move);
}

const char *message_kind(const Message &self)
{
	switch (weir_message_kind(self.message)) {
	case WEIR_KIND_EMPTY:
		return "empty";
	case WEIR_KIND_BYTES:
		return "bytes";
	case WEIR_KIND_TENSOR:
		return "tensor";
	case WEIR_KIND_PARTS:
		return "parts";
	}
	return is_holder(weir_message_data(self.message)) ? "object" : "user";
}

nb::object message_object(const Message &self)
{
	Holder *holder = (Holder *)weir_message_data(self.message);

	if (weir_message_kind(self.message) != WEIR_KIND_USER || !is_holder(holder))
		raise(WEIR_E_INVALID, ("the message is not an object of Python: its kind is " +
				       std::string(message_kind(self)))
					      .c_str());
	return nb::borrow(holder->object);
}

nb::object message_part(const Message &self, const char *name)
{
	weir_message *part = weir_message_part(self.message, name);

	if (!part)
		throw nb::key_error(name);
	return message_of(weir_message_ref(part), self.core.get(), self.call);
}

nb::object message_parts(const Message &self)
{
	nb::dict out;

	for (size_t i = 0; i < weir_message_parts(self.message); i++)
		out[text_of(weir_message_part_name(self.message, i))] = message_of(
			weir_message_ref(weir_message_part_at(self.message, i)), self.core.get(), self.call);
	return out;
}

nb::object message_dtype(const Message &self)
{
	const weir_tensor *tensor = tensor_of(self);
	const Dtype *dtype = dtype_of(tensor->code, tensor->bits);

	return dtype ? text_of(dtype->name) : nb::none();
}

/* "Message(tensor, float32 on the host, shape (3, 4))" */
std::string message_repr(const Message &self)
{
	const weir_tensor *tensor;
	std::string text = std::string("Message(") + message_kind(self);

	check_core(self.core.get());
	tensor = weir_message_tensor(self.message);
	if (tensor) {
		nb::object shape = numbers(tensor->shape, tensor->dimensions);
		text += ", " + described(tensor) + ", shape " + nb::cast<std::string>(nb::str(shape));
	}
	if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
		text += ", " + std::to_string(weir_message_size(self.message));
	for (size_t i = 0; i < weir_message_parts(self.message); i++)
		text += (i ? " " : ", ") + std::string(weir_message_part_name(self.message, i));
	return text + ")";
}

/* Of the first element, for the keys of a replay. */
uintptr_t message_address(const Message &self)
{
	check_core(self.core.get());
	if (!weir_message_tensor(self.message) && weir_message_kind(self.message) != WEIR_KIND_BYTES)
		raise(WEIR_E_INVALID, "the message is neither an array nor bytes");
	return (uintptr_t)weir_message_data(self.message);
}

nb::object message_stamp(const Message &self)
{
	weir_stamp stamp = weir_message_stamp(self.message);

	return nb::make_tuple(stamp.time, stamp.tag);
}

weir_stamp stamp_of(nb::handle stamp)
{
	return {nb::cast<int64_t>(stamp[0]), nb::cast<uint64_t>(stamp[1])};
}

bool message_unique(Message &self)
{
	check_core(self.core.get());
	return self.writable = weir_message_unique(self.message);
}

/* ------------------------------------------------------------------------------------------- operators -- */

struct Stream;

/* What the operator of one entity may call; valid inside start, compute and stop, on their thread. */
struct Context {
	weir_context *context = nullptr; /* NULL: outside */
	const Kind *kind = nullptr;
	Core *core = nullptr;
	std::string entity;
	pthread_t thread = 0;
	uint64_t run = 0;
	uint64_t calls = 0;                /* of start, compute and stop */
	bool replaying = false;            /* within ctx.replay */
	std::vector<void *> natives;       /* streams given out in this call */
	std::vector<weir_stream *> chosen; /* per output: the stream set in this tick */
	std::vector<nb::object> lent;      /* messages received in this call */

	weir_context *inside() const
	{
		if (!context)
			raise(WEIR_E_INVALID, "ctx is used outside of start, compute and stop",
			      entity.c_str());
		if (!pthread_equal(thread, pthread_self()))
			raise(WEIR_E_INVALID, "ctx is used on another thread than that of the operator",
			      entity.c_str());
		return context;
	}
	const char *name() const
	{
		return entity.c_str();
	}
	/*
	 * A reference of Python's own would end weir_message_unique, so what compute receives is borrowed,
	 * and only what Python keeps is referenced at the end.
	 */
	void end_loans()
	{
		for (nb::object &object : lent) {
			Message *message = nb::inst_ptr<Message>(object);

			message->borrowed = false;
			if (Py_REFCNT(object.ptr()) > 1)
				weir_message_ref(message->message);
			else
				message->message = nullptr;
		}
		lent.clear();
	}
};

uint64_t number_of_call(const Context *context)
{
	return context->calls;
}

/* NULL: not inside a call of this graph's operators. */
const std::vector<void *> *streams_of_call(const Context *context, const Core *core)
{
	return context && context->core == core ? &context->natives : nullptr;
}

bool is_own_stream(const Context *context, const void *native)
{
	if (context)
		for (const void *known : context->natives)
			if (known == native)
				return true;
	return false;
}

/* weir's memory of one entity, zeroed before each run. */
struct State {
	PyObject *instance, *compute, *context;
	Context *own;
};

/* One call of an operator's function. */
class Inside
{
      public:
	Inside(Context *of, weir_context *context) : own(of), outer(innermost)
	{
		own->context = context;
		own->thread = pthread_self();
		own->calls = takes.load(std::memory_order_relaxed);
		own->natives.clear();
		own->chosen.assign(own->chosen.size(), nullptr);
		innermost = this;
		current = own;
	}
	~Inside()
	{
		own->end_loans();
		own->context = nullptr;
		innermost = outer;
		current = outer ? outer->own : nullptr;
	}
	Context *own;
	Inside *outer;
	static thread_local Inside *innermost;
};
thread_local Inside *Inside::innermost = nullptr;

/* Returns true if this thread is in a call of an operator of the graph: it cannot end the run. */
bool is_inside(const Core *core)
{
	for (const Inside *call = Inside::innermost; call; call = call->outer)
		if (call->own->core == core)
			return true;
	return false;
}

struct Graph {
	Ref core;
	nb::object instances, failures; /* dicts: by entity */
	nb::object warnings;
	uint64_t runs = 0;

	explicit Graph(Core *of) : core(of), instances(nb::dict()), failures(nb::dict())
	{
		of->owner = this;
	}
	Graph(const Graph &) = delete;
	~Graph();
};

/* Makes one line of an exception the error text: "ValueError: no such file (operators.py:12)". */
weir_status fail_with(weir_context *context, nb::handle error)
{
	nb::object line =
		nb::steal(PyObject_CallMethod(nb::module_::import_("weir.errors").ptr(), "line_of", "Os",
					      error.ptr(), weir_entity_name(weir_context_entity(context))));

	const char *text = line.is_valid() ? PyUnicode_AsUTF8AndSize(line.ptr(), nullptr) : nullptr;

	if (!text)
		PyErr_Clear();
	return weir_context_fail(context, "%s", text ? text : "an exception without a text");
}

/* Keeps the exception for weir.Error, and ends the run. */
weir_status fail(weir_context *context, Context *own)
{
	nb::object error = take_exception();

	if (own->core->owner)
		own->core->owner->failures[own->name()] = error;
	return fail_with(context, error);
}

Core *core_of(weir_graph *graph)
{
	std::lock_guard<std::mutex> guard(cores_lock);

	for (Core *core = cores; core; core = core->next)
		if (core->graph == graph)
			return core;
	return nullptr;
}

nb::object value_of(const weir_values *values, const weir_parameter *parameter)
{
	const char *name = parameter->name;
	nb::list out;

	switch (parameter->type) {
	case WEIR_TYPE_BOOL:
		return nb::bool_(weir_values_bool(values, name));
	case WEIR_TYPE_NUMBER:
		return nb::float_(weir_values_number(values, name));
	case WEIR_TYPE_STRING:
	case WEIR_TYPE_CHOICE:
	case WEIR_TYPE_READ_FILE:
	case WEIR_TYPE_WRITE_FILE:
		return text_of(weir_values_string(values, name));
	case WEIR_TYPE_INPUTS:
	case WEIR_TYPE_OUTPUTS:
		for (size_t i = 0; i < weir_values_count(values, name); i++)
			out.append(weir_values_at(values, name, i));
		return out;
	case WEIR_TYPE_NUMBERS:
		for (size_t i = 0; i < weir_values_count(values, name); i++)
			out.append(weir_values_number_at(values, name, i));
		return out;
	case WEIR_TYPE_INT:
	case WEIR_TYPE_DURATION:
	case WEIR_TYPE_SIZE:
	case WEIR_TYPE_INPUT:
	case WEIR_TYPE_OUTPUT:
	case WEIR_TYPE_READ_DESCRIPTOR:
	case WEIR_TYPE_WRITE_DESCRIPTOR:
		break;
	}
	return nb::int_(weir_values_int(values, name));
}

/* The words of WEIR_LOG. */
weir_log_level log_level_of(const char *word)
{
	static const char *const words[] = {"error", "warn", "info", "debug"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(word, words[i]))
			return (weir_log_level)(WEIR_LOG_ERROR + i);
	throw nb::value_error(
		(std::string("a level is error, warn, info or debug, not '") + word + "'").c_str());
}

const Kind *kind_of(weir_context *context)
{
	return (const Kind *)weir_entity_operator(
		weir_context_entity(context)); /* table is its first member */
}

void make_instance(State *state, weir_context *context, const weir_values *values)
{
	const Kind *kind = kind_of(context);
	nb::object instance = nb::steal(PyObject_CallNoArgs(kind->type));

	if (!instance.is_valid())
		throw nb::python_error();
	for (const weir_parameter &parameter : kind->parameters)
		if (parameter.name)
			instance.attr(parameter.name) = value_of(values, &parameter);
	state->compute = nb::object(instance.attr("compute")).release().ptr();
	if (state->own->core->owner)
		state->own->core->owner->instances[state->own->name()] = instance;
	state->instance = instance.release().ptr();
}

void make_context(State *state, weir_context *context)
{
	nb::object own = nb::cast(new Context(), nb::rv_policy::take_ownership);

	state->own = nb::cast<Context *>(own);
	state->own->kind = kind_of(context);
	state->own->core = core_of(weir_context_graph(context));
	state->own->entity = weir_entity_name(weir_context_entity(context));
	state->own->chosen.resize(state->own->kind->ports[1].size());
	state->own->run = state->own->core->owner ? state->own->core->owner->runs : 0;
	state->context = own.release().ptr();
}

void drop_state(State *state)
{
	Py_CLEAR(state->compute);
	Py_CLEAR(state->instance);
	Py_CLEAR(state->context);
}

/* Calls instance.NAME(ctx), if there is one. */
bool call_if_there(State *state, const char *name)
{
	nb::object method, result;

	if (!PyObject_HasAttrString(state->instance, name))
		return true;
	method = nb::steal(PyObject_GetAttrString(state->instance, name));
	if (method.is_valid())
		result = nb::steal(PyObject_CallFunctionObjArgs(method.ptr(), state->context, nullptr));
	return result.is_valid();
}

weir_status operator_start(weir_context *context, void *memory, const weir_values *values)
{
	State *state = (State *)memory;
	Hold hold;
	weir_status status = WEIR_OK;

	try {
		make_context(state, context);
		Inside inside(state->own, context);
		make_instance(state, context, values);
		if (!call_if_there(state, "start"))
			status = fail(context, state->own);
	} catch (nb::python_error &error) {
		error.restore();
		status = fail(context, state->own);
	}
	if (status)
		drop_state(state);
	return status;
}

weir_status operator_compute(weir_context *context, void *memory)
{
	State *state = (State *)memory;
	auto asked = std::chrono::steady_clock::now();
	Hold hold;
	auto held = std::chrono::steady_clock::now();
	Inside inside(state->own, context);
	PyObject *arguments[] = {nullptr, state->context};
	PyObject *result = PyObject_Vectorcall(state->compute, arguments + 1,
					       1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
	weir_status status = WEIR_OK;

	weir_context_count_lock(context, "GIL",
				std::chrono::duration_cast<std::chrono::nanoseconds>(held - asked).count());
	if (result)
		Py_DECREF(result);
	else
		status = fail(context, state->own);
	settle();
	return status;
}

/* The run is over: an exception here is reported as Python reports those of destructors. */
void operator_stop(weir_context *context, void *memory)
{
	State *state = (State *)memory;
	Hold hold;

	if (!state->instance)
		return;
	{
		Inside inside(state->own, context);
		if (!call_if_there(state, "stop")) {
			nb::object error = take_exception();
			if (state->own->core->owner)
				state->own->core->owner->failures[state->own->name()] = error;
		}
		settle();
	}
	drop_state(state);
}

/* -------------------------------------------------------------------------------------------- the context --
 */

unsigned port_of(const Context &self, int direction, nb::handle port)
{
	const std::vector<PyObject *> &names = self.kind->names[direction];
	std::string text;

	for (size_t i = 0; i < names.size(); i++)
		if (names[i] == port.ptr())
			return (unsigned)i;
	for (size_t i = 0; PyUnicode_Check(port.ptr()) && i < names.size(); i++)
		if (!PyUnicode_Compare(names[i], port.ptr()))
			return (unsigned)i;
	if (PyLong_Check(port.ptr()) && nb::cast<uint64_t>(port) < names.size())
		return nb::cast<unsigned>(port);
	text = "operator '" + std::string(self.kind->table.name) + "' has no " +
	       (direction ? "output " : "input ");
	raise(WEIR_E_INVALID, (text + nb::cast<std::string>(nb::repr(port))).c_str(), self.name());
}

nb::object receive_at(Context &self, unsigned input, size_t i)
{
	weir_message *message = weir_context_message(self.context, input, i);

	check_demand(self.kind, 0, input, message, self.core, self.name());
	nb::object object = message_of(message, self.core, self.calls);
	nb::inst_ptr<Message>(object)->borrowed = true;
	self.lent.push_back(object);
	return object;
}

nb::object context_receive(Context &self, nb::handle port)
{
	weir_context *context = self.inside();
	unsigned input = port_of(self, 0, port);

	return weir_context_count(context, input) ? receive_at(self, input, 0) : nb::none();
}

nb::object context_receive_all(Context &self, nb::handle port)
{
	weir_context *context = self.inside();
	unsigned input = port_of(self, 0, port);
	nb::list out;

	for (size_t i = 0; i < weir_context_count(context, input); i++)
		out.append(receive_at(self, input, i));
	return out;
}

nb::object context_sender(Context &self, nb::handle port, size_t k)
{
	const char *sender = weir_context_sender(self.inside(), port_of(self, 0, port), k);

	return text_or_none(sender);
}

/* A stream of the entity; used in this entity's calls only, in the run that gave it. */
struct Stream {
	weir_stream *stream;
	Context *of;
	uint64_t run;
	uint64_t call;      /* that gave it, or used it last */
	bool current;       /* it was asked for as the current stream */
	nb::object context; /* keeps `of` */
	uintptr_t handle;
	int device;
	uint64_t id;
};

/* A place in the work of a stream: what stream.record() gives. */
struct Fence {
	weir_fence fence;
};

nb::object stream_of(Context &self, weir_stream *stream, bool current = false)
{
	uintptr_t handle = (uintptr_t)weir_stream_native(stream);

	self.natives.push_back(native_of(handle));
	return nb::cast(Stream{stream, &self, self.run, self.calls, current, nb::find(self), handle,
			       weir_stream_device(stream), weir_stream_id(stream)},
			nb::rv_policy::move);
}

weir_stream *usable(const Context &self, const Stream &stream)
{
	if (stream.of != &self || stream.run != self.run)
		raise(WEIR_E_INVALID, "the stream was given to another entity or in another run",
		      self.name());
	return stream.stream;
}

/*
 * The stream is about to be used through its handle, which weir does not see: this marks it, so that the end
 * of the tick fences that work, also on a stream that was kept from an earlier call.
 */
void stream_use(Stream &self)
{
	Context &of = *self.of;
	weir_context *context = of.inside();

	(void)usable(of, self);
	if (self.call != of.calls && self.current) {
		weir_stream *now = weir_context_stream(context);
		if (!now)
			check(WEIR_E_DEVICE, of.name());
		self.stream = now;
		self.device = weir_stream_device(now);
		self.id = weir_stream_id(now);
	}
	self.handle = (uintptr_t)weir_stream_native(self.stream);
	if (self.call != of.calls)
		of.natives.push_back(native_of(self.handle));
	self.call = of.calls;
}

/* Outside of the entity's calls it is only a number. */
uintptr_t stream_handle(Stream &self)
{
	if (self.of->context && pthread_equal(self.of->thread, pthread_self()) && self.run == self.of->run)
		stream_use(self);
	return self.handle;
}

Fence stream_record(const Stream &self)
{
	Fence fence = {};

	self.of->inside();
	check(weir_stream_record(usable(*self.of, self), &fence.fence), self.of->name());
	return fence;
}

void stream_wait(const Stream &self, const Fence &fence)
{
	self.of->inside();
	check(weir_stream_wait(usable(*self.of, self), fence.fence), self.of->name());
}

/* The address of device memory for this tick's work on that stream. */
uintptr_t context_scratch(Context &self, size_t bytes, const Stream *stream)
{
	weir_context *context = self.inside();
	weir_stream *on = stream ? usable(self, *stream) : weir_context_stream(context);
	void *data = nullptr;

	if (!on)
		check(WEIR_E_DEVICE, self.name());
	check(weir_context_scratch(context, on, bytes, &data), self.name());
	return (uintptr_t)data;
}

nb::object context_stream(Context &self)
{
	weir_stream *stream = weir_context_stream(self.inside());

	if (!stream)
		check(WEIR_E_DEVICE, self.name());
	return stream_of(self, stream, true);
}

nb::object context_default_stream(Context &self)
{
	weir_stream *stream = weir_context_default_stream(self.inside());

	if (!stream)
		check(WEIR_E_DEVICE, self.name());
	return stream_of(self, stream);
}

nb::object context_receive_stream(Context &self, nb::handle port, bool allocate, bool sync_to_default)
{
	weir_context *context = self.inside();
	weir_stream *stream;

	check(weir_context_receive_stream(context, port_of(self, 0, port), allocate, sync_to_default,
					  &stream),
	      self.name());
	return stream_of(self, stream);
}

nb::object context_receive_streams(Context &self, nb::handle port, size_t i)
{
	weir_stream *streams[WEIR_PARTS_MAX];
	weir_context *context = self.inside();
	size_t count =
		weir_context_receive_streams(context, port_of(self, 0, port), i, WEIR_PARTS_MAX, streams);
	nb::list out;

	for (size_t k = 0; k < count && k < WEIR_PARTS_MAX; k++)
		out.append(stream_of(self, streams[k]));
	return out;
}

nb::object context_allocate_stream(Context &self, const char *name)
{
	weir_stream *stream;

	check(weir_context_allocate_stream(self.inside(), name, &stream), self.name());
	return stream_of(self, stream);
}

void context_set_stream(Context &self, nb::handle port, const Stream &stream)
{
	weir_context *context = self.inside();
	unsigned output = port_of(self, 1, port);

	check(weir_context_set_stream(context, output, usable(self, stream)), self.name());
	self.chosen[output] = stream.stream;
}

void context_synchronize_streams(Context &self, std::vector<Stream *> streams, const Stream &target)
{
	std::vector<weir_stream *> list;

	for (const Stream *stream : streams)
		list.push_back(usable(self, *stream));
	check(weir_context_synchronize_streams(self.inside(), list.data(), list.size(), usable(self, target)),
	      self.name());
}

void context_emit(Context &self, nb::handle port, nb::handle value, nb::object stamp, const Fence *at)
{
	weir_context *context = self.inside();
	unsigned output = port_of(self, 1, port);
	Draft draft;

	make_message(draft, {self.core, context, self.chosen[output]}, value);
	check_demand(self.kind, 1, output, draft.message, self.core, self.name());
	if (!stamp.is_none())
		check(weir_message_set_stamp(draft.message, stamp_of(stamp)), self.name());
	check(at ? weir_context_emit_at(context, output, draft.take(), at->fence)
		 : weir_context_emit(context, output, draft.take()),
	      self.name());
}

/* What a condition is told: a word, or a fence. */
void tell_entity(weir_entity *entity, const char *condition, nb::handle told, const char *name)
{
	static const char *const words[] = {"nothing",       "ready",      "wait",
					    "event_waiting", "event_done", "never"};
	Fence *fence = nullptr;

	if (nb::try_cast(told, fence)) {
		check(weir_entity_tell_fence(entity, condition, fence->fence), name);
		return;
	}
	for (int i = WEIR_TOLD_READY; i <= WEIR_TOLD_NEVER && nb::isinstance<nb::str>(told); i++)
		if (nb::cast<std::string>(told) == words[i]) {
			check(weir_entity_tell(entity, condition, (weir_told)i), name);
			return;
		}
	throw nb::value_error(
		(std::string(
			 "told is one of ready, wait, event_waiting, event_done, never, or a fence, not ") +
		 nb::cast<std::string>(nb::repr(told)))
			.c_str());
}

void context_tell(Context &self, const char *condition, nb::handle told)
{
	tell_entity(weir_context_entity(self.inside()), condition, told, self.name());
}

unsigned watch_events(bool read, bool write)
{
	return (read ? (unsigned)WEIR_WATCH_READ : 0u) | (write ? (unsigned)WEIR_WATCH_WRITE : 0u);
}

/* warn_after: seconds, after which a wait for the descriptor is logged; 0: never. */
void context_watch(Context &self, int fd, bool read, bool write, const char *condition, double warn_after)
{
	weir_entity *entity = weir_context_entity(self.inside());
	int64_t after_ns = warn_after < 1e9 ? llround(warn_after * 1e9) : INT64_MAX;

	check(weir_entity_watch_warn(entity, condition, after_ns, nullptr, nullptr), self.name());
	check(weir_entity_watch(entity, condition, fd, fd < 0 ? 0 : watch_events(read, write)), self.name());
}

/* A new tensor in pooled memory: of the device, or of the host. */
nb::object context_empty(Context &self, std::vector<int64_t> shape, const char *dtype, bool on_host)
{
	const Dtype *type = dtype_named(dtype);
	weir_tensor like = {};
	weir_message *message;

	if (!type)
		raise(WEIR_E_INVALID, ("there is no dtype '" + std::string(dtype) + "'").c_str(),
		      self.name());
	like = {sizeof like, nullptr,    0, (int32_t)shape.size(), shape.data(), nullptr,
		type->code,  type->bits, 1};
	check(weir_context_create_tensor(self.inside(), &like, on_host, &message), self.name());
	nb::object out = message_of(message, self.core, self.calls);
	nb::cast<Message *>(out)->writable = true;
	nb::cast<Message *>(out)->made = true;
	return out;
}

/* ------------------------------------------------------------------------------------ copies and replay --
 */

/* Raises unless the message is one block of memory. what: "source" or "target". */
void check_block(const Context &self, const Message &message, const char *what)
{
	const weir_tensor *tensor = weir_message_tensor(message.message);

	if (message.core.get() != self.core)
		raise(WEIR_E_INVALID, (std::string("the ") + what + " belongs to another graph").c_str(),
		      self.name());
	if (tensor ? !is_dense(tensor) : weir_message_kind(message.message) != WEIR_KIND_BYTES)
		raise(WEIR_E_INVALID,
		      (std::string("the ") + what + " of a copy is a contiguous array or bytes").c_str(),
		      self.name());
}

/*
 * Enqueues a copy. The end of the tick fences what the tick received or made. Another source is fenced here,
 * but not within a replay: what work that is launched again reads must stay anyway.
 */
void stream_copy(const Stream &self, const Message &target, const Message &source)
{
	const Context &of = *self.of;
	weir_stream *stream = (of.inside(), usable(of, self));
	size_t bytes = weir_message_size(source.message), room = weir_message_size(target.message);
	bool fenced = source.call == of.calls || of.replaying;
	weir_copy copy = {sizeof copy,
			  weir_message_data(target.message),
			  weir_message_data(source.message),
			  1,
			  bytes,
			  0,
			  0};
	weir_fence fence;

	check_block(of, target, "target");
	check_block(of, source, "source");
	if (bytes != room)
		raise(WEIR_E_INVALID,
		      ("a copy of " + std::to_string(bytes) + " bytes to " + std::to_string(room)).c_str(),
		      of.name());
	bool made_now = target.made && target.call == of.calls;
	if (!made_now && !(target.writable && weir_message_unique(target.message)))
		raise(WEIR_E_INVALID,
		      "the target of a copy is from ctx.empty of this tick, or one whose unique() returned "
		      "True",
		      of.name());
	check(weir_stream_copies(stream, &copy, 1, 0, fenced ? nullptr : &fence), of.name());
	if (!fenced)
		check(weir_message_add_reader(source.message, fence), of.name());
}

/* A call of ctx.replay. */
struct Replay {
	Context *own;
	nb::handle enqueue;
	PyThreadState *state; /* of this thread, while the GIL is released */
	nb::object error;     /* that the last call of enqueue raised */
};

/*
 * In a capture the stream's handle is another one, so the libraries' current stream is set here. Its number
 * is of no use after the call.
 */
void call_enqueue(Replay *call, weir_stream *stream)
{
	std::vector<void *> natives = call->own->natives;
	nb::object on = stream_of(*call->own, stream), none = nb::none();

	on.attr("__enter__")();
	try {
		call->enqueue(on);
	} catch (...) {
		on.attr("__exit__")(none, none, none);
		call->own->natives = natives;
		throw;
	}
	on.attr("__exit__")(none, none, none);
	call->own->natives = natives;
}

/* The GIL is released around the replay, in which a launch may wait for room in the device's queue. */
weir_status replay_enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	Replay *call = (Replay *)arg;
	weir_status status = WEIR_OK;

	PyEval_RestoreThread(call->state);
	try {
		call->error.reset();
		call_enqueue(call, stream);
	} catch (nb::python_error &error) {
		error.restore();
		call->error = take_exception();
		status = fail_with(context, call->error);
	} catch (const std::exception &error) { /* not through the frames of C */
		status = weir_context_fail(context, "%s", error.what());
	}
	call->state = PyEval_SaveThread();
	return status;
}

/* An exception of enqueue in a capture does not get here: the work is then enqueued as usual. */
void context_replay(Context &self, nb::handle key, nb::handle enqueue)
{
	weir_context *context = self.inside();
	Replay call = {&self, enqueue, nullptr, {}};
	weir_status status;
	bool outer = self.replaying;

	if (!PyBytes_Check(key.ptr()))
		throw nb::type_error("ctx.replay: the key is bytes: all that the work depends on, as in "
				     "f\"{a.data.ptr} {a.shape}\".encode()");
	if (!PyCallable_Check(enqueue.ptr()))
		throw nb::type_error("ctx.replay: enqueue is a function of a stream");
	self.replaying = true;
	call.state = PyEval_SaveThread();
	status = weir_context_replay(context, PyBytes_AsString(key.ptr()), (size_t)PyBytes_Size(key.ptr()),
				     replay_enqueue, &call);
	PyEval_RestoreThread(call.state);
	self.replaying = outer;
	if (status == WEIR_E_FAILED && call.error.is_valid()) {
		PyErr_SetObject((PyObject *)Py_TYPE(call.error.ptr()), call.error.ptr());
		throw nb::python_error();
	}
	check(status, self.name());
}

/* ----------------------------------------------------------------------------------------- building a graph
 * -- */

void add_ports(Kind *kind, int direction, nb::list ports)
{
	for (nb::handle port : ports) {
		weir_port own = {sizeof own};
		Demand demand;

		own.name = kind->keep(nb::cast<std::string>(port["name"]));
		own.flags = nb::cast<unsigned>(port["flags"]);
		own.kinds = nb::cast<unsigned>(port["kinds"]);
		own.capacity = nb::cast<uint32_t>(port["capacity"]);
		own.take = nb::cast<uint32_t>(port["take"]);
		own.max_emits = nb::cast<uint32_t>(port["max_emits"]);
		own.policy = (weir_policy)nb::cast<int>(port["policy"]);
		own.help = kind->keep(nb::cast<std::string>(port["help"]));
		if (!port["dtype"].is_none()) {
			const Dtype *dtype = dtype_named(nb::cast<std::string>(port["dtype"]).c_str());
			demand.code = dtype ? dtype->code : -1;
			demand.bits = dtype ? dtype->bits : 0;
		}
		demand.place = nb::cast<int>(port["place"]);
		demand.dense = nb::cast<bool>(port["dense"]);
		kind->ports[direction].push_back(own);
		kind->demands[direction].push_back(demand);
		kind->names[direction].push_back(PyUnicode_InternFromString(own.name));
	}
	kind->ports[direction].push_back({});
}

void add_parameters(Kind *kind, nb::list parameters)
{
	for (nb::handle parameter : parameters) {
		weir_parameter own = {sizeof own};

		own.name = kind->keep(nb::cast<std::string>(parameter["name"]));
		own.type = (weir_parameter_type)nb::cast<int>(parameter["type"]);
		if (!parameter["fallback"].is_none())
			own.fallback = kind->keep(nb::cast<std::string>(parameter["fallback"]));
		own.help = kind->keep(nb::cast<std::string>(parameter["help"]));
		own.min = nb::cast<int64_t>(parameter["min"]);
		own.max = nb::cast<int64_t>(parameter["max"]);
		std::string choices = nb::cast<std::string>(parameter["choices"]);
		if (!choices.empty())
			own.choices = kind->keep(choices);
		kind->parameters.push_back(own);
	}
	kind->parameters.push_back({});
}

/* weir checks the table, so a wrong one is refused where the class is written. */
void check_table(const Kind *kind)
{
	weir_registry *registry = nullptr;
	weir_status status = weir_registry_create(&registry);

	if (!status)
		status = weir_registry_add_operator(registry, &kind->table);
	weir_registry_destroy(registry);
	check(status);
}

KindHandle make_kind(nb::handle type, std::string name, std::string help, unsigned flags, nb::list inputs,
		     nb::list outputs, nb::list parameters, std::vector<std::string> conditions)
{
	std::unique_ptr<Kind> kind(new Kind());

	add_ports(kind.get(), 0, inputs);
	add_ports(kind.get(), 1, outputs);
	add_parameters(kind.get(), parameters);
	for (const std::string &condition : conditions)
		kind->conditions.push_back(kind->keep(condition));
	kind->conditions.push_back(nullptr);
	kind->table.size = sizeof kind->table;
	kind->table.conditions = kind->conditions.data();
	kind->table.name = kind->keep(name);
	kind->table.help = kind->keep(help);
	kind->table.flags = flags;
	kind->table.state_size = sizeof(State);
	kind->table.parameters = kind->parameters.data();
	kind->table.inputs = kind->ports[0].data();
	kind->table.outputs = kind->ports[1].data();
	kind->table.start = operator_start;
	kind->table.compute = operator_compute;
	kind->table.stop = operator_stop;
	check_table(kind.get());
	kind->type = type.inc_ref().ptr();
	return {kind.release()};
}

void add_diagnostic(const weir_diagnostic *from, void *arg)
{
	nb::list *list = (nb::list *)arg;

	list->append(nb::make_tuple(from->number, text_or_none(from->file), text_or_none(from->pointer),
				    from->line, from->column, text_of(from->text), from->warning));
}

/* A description that is being made, with the registry that it is checked against. */
struct Plan {
	weir_registry *registry = nullptr;
	weir_description *description = nullptr;
	nb::list diagnostics;

	~Plan()
	{
		weir_description_destroy(description);
		weir_registry_destroy(registry);
	}
	void check(weir_status status)
	{
		if (status)
			raise(status, weir_last_error(), nullptr, diagnostics);
	}
};

/* arg: a vector of KindHandle *. */
weir_status add_kinds(weir_registry *registry, void *arg)
{
	weir_status status = WEIR_OK;

	for (const KindHandle *handle : *(const std::vector<KindHandle *> *)arg)
		if (!status)
			status = weir_registry_add_operator(registry, &handle->kind->table);
	return status;
}

void read_plan(Plan &plan, const std::string &source, bool is_path, const std::vector<std::string> &sets,
	       const std::vector<std::string> &plugins, const std::vector<KindHandle *> &kinds)
{
	void *list = &plan.diagnostics;

	plan.check(weir_registry_create(&plan.registry));
	plan.check(add_kinds(plan.registry, (void *)&kinds));
	for (const std::string &plugin : plugins)
		plan.check(weir_registry_load(plan.registry, plugin.c_str()));
	if (is_path)
		plan.check(weir_description_read(source.c_str(), add_diagnostic, list, &plan.description));
	else
		plan.check(weir_description_parse(source.data(), source.size(), add_diagnostic, list,
						  &plan.description));
	for (const std::string &set : sets)
		plan.check(weir_description_set(plan.description, set.c_str()));
	/* A port without a connection may get an inlet: whether the graph can be made, its creation tells. */
	(void)weir_description_check(plan.description, plan.registry, add_diagnostic, list);
}

/* All that is wrong with a graph. A failure that has no diagnostic is raised. */
nb::object check_graph(std::string source, bool is_path, std::vector<std::string> sets,
		       std::vector<std::string> plugins, std::vector<KindHandle *> kinds)
{
	Plan plan;

	read_plan(plan, source, is_path, sets, plugins, kinds);
	(void)weir_description_check_files(plan.description, plan.registry, add_diagnostic,
					   &plan.diagnostics);
	return plan.diagnostics;
}

/* The Python object of a new core. If its graph cannot be made it is buried like any other. */
std::unique_ptr<Graph> new_graph()
{
	std::unique_ptr<Core> made(new Core());
	std::unique_ptr<Graph> graph(new Graph(made.get()));
	Core *core = made.release();

	core->references.fetch_sub(1); /* the first count is the object's */
	graph->warnings = nb::list();
	core->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (core->ended < 0)
		raise(WEIR_E_IO, (std::string("the graph's eventfd: ") + wr_errno_words(errno)).c_str());
	std::lock_guard<std::mutex> guard(cores_lock);
	core->next = cores;
	cores = core;
	return graph;
}

Graph *make_graph(std::string source, bool is_path, std::vector<std::string> sets,
		  std::vector<std::string> plugins, std::vector<KindHandle *> kinds)
{
	Plan plan;

	settle();
	std::unique_ptr<Graph> graph = new_graph();
	read_plan(plan, source, is_path, sets, plugins, kinds);
	plan.check(weir_graph_create(plan.registry, plan.description, &graph->core->graph));
	graph->core->registry = plan.registry;
	plan.registry = nullptr;
	graph->warnings = plan.diagnostics;
	return graph.release();
}

std::string show_graph(std::string source, bool is_path, int format, std::vector<std::string> sets,
		       std::vector<std::string> plugins, std::vector<KindHandle *> kinds)
{
	Plan plan;
	char *text;

	read_plan(plan, source, is_path, sets, plugins, kinds);
	plan.check(weir_description_print(plan.description, plan.registry, (weir_format)format, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

Graph::~Graph()
{
	if (!is_ours(core.get()))
		return;
	if (!is_inside(core.get()))
		end_scheduler(core.get()); /* else `bury` does */
	core->owner = nullptr;
}

/* ------------------------------------------------------------------------------------------------ running --
 */

Core *open_core(const Graph &self)
{
	check_open(self.core.get());
	return self.core.get();
}

Core *running_core(const Graph &self)
{
	if (!open_core(self)->scheduler)
		raise(WEIR_E_INVALID, "the graph was not started");
	return self.core.get();
}

bool is_of_python(const weir_entity *entity)
{
	return entity && weir_entity_operator(entity)->compute == operator_compute;
}

/*
 * On sim the workers are fibers of one thread, which weir may switch inside compute; an interpreter's frames
 * are the thread's.
 */
constexpr const char *NOT_ON_SIM = "operators in Python do not run on the backend 'sim': use 'host'";

/* The first entity whose operator is in Python, or NULL. */
const char *first_of_python(const Core *core)
{
	weir_entity_counts counts = {sizeof counts};

	for (size_t i = 0; weir_scheduler_entity_counts(core->scheduler, i, &counts); i++)
		if (is_of_python(weir_graph_entity(core->graph, counts.entity)))
			return counts.entity;
	return nullptr;
}

void refuse_sim(Core *core)
{
	const char *first = first_of_python(core);

	if (!first)
		return;
	std::string entity = first;
	end_scheduler(core);
	raise(WEIR_E_UNSUPPORTED, NOT_ON_SIM, entity.c_str());
}

void on_ended(weir_scheduler *, void *arg)
{
	uint64_t one = 1;

	if (write(((Core *)arg)->ended, &one, sizeof one) < 0)
		return; /* it is readable already */
}

template <typename Field>
void give(nb::dict options, const char *name, Field &field, unsigned *given, unsigned bit)
{
	if (!options.contains(name))
		return;
	field = nb::cast<Field>(options[name]);
	*given |= bit;
}

/* What arrays ask of the run. strict: as in its options. */
void note_backend(Core *core, int strict)
{
	weir_backend backend = weir_scheduler_backend(core->scheduler);

	core->simulated = backend == WEIR_BACKEND_SIM;
	core->on_cuda = backend == WEIR_BACKEND_CUDA;
	core->strict = strict ? strict == WEIR_STRICT_ON && !core->on_cuda : core->simulated;
}

/* Ends the scheduler of the run before, if there is one. */
void make_scheduler(Graph &self, nb::dict from)
{
	Core *core = open_core(self);
	weir_scheduler_options options = {sizeof options};
	std::string texts[3];
	const char *names[3] = {"backend", "signal", "root"};
	const char **fields[3] = {&options.backend, &options.signal, &options.root};
	unsigned none = 0;
	bool statistics = false, trace = false;
	weir_status status;

	for (int i = 0; i < 3; i++) {
		give(from, names[i], texts[i], &none, 0);
		*fields[i] = texts[i].empty() ? nullptr : texts[i].c_str();
	}
	give(from, "workers", options.workers, &none, 0);
	give(from, "seed", options.seed, &options.given, WEIR_GIVEN_SEED);
	give(from, "drain", options.drain_ns, &options.given, WEIR_GIVEN_DRAIN);
	give(from, "deadlock_grace", options.deadlock_grace_ns, &options.given, WEIR_GIVEN_DEADLOCK_GRACE);
	give(from, "max_duration", options.max_duration_ns, &options.given, WEIR_GIVEN_MAX_DURATION);
	give(from, "worker_spin", options.worker_spin_ns, &options.given, WEIR_GIVEN_WORKER_SPIN);
	give(from, "max_in_flight", options.max_in_flight, &none, 0);
	give(from, "measure", options.measure, &none, 0);
	give(from, "skip", options.skip, &none, 0);
	give(from, "statistics", statistics, &none, 0);
	give(from, "trace", trace, &none, 0);
	give(from, "trace_events", options.trace_events, &none, 0);
	give(from, "gpu_time", options.gpu_time, &none, 0);
	give(from, "strict", options.strict, &none, 0);
	options.observe = (statistics ? (unsigned)WEIR_OBSERVE_STATISTICS : 0u) |
			  (trace ? (unsigned)WEIR_OBSERVE_TRACE : 0u);
	options.ended = on_ended;
	options.ended_arg = core;
	if (is_inside(core) || !end_scheduler(core))
		raise(WEIR_E_BUSY, "another thread is inside a call of this graph");
	{
		nb::gil_scoped_release released;
		status = weir_scheduler_create(core->graph, &options, &core->scheduler);
	}
	check(status);
	note_backend(core, options.strict);
	if (core->simulated)
		refuse_sim(core);
}

/* Returns the status and the text of a failure. */
nb::tuple start_run(Graph &self)
{
	Core *core = running_core(self);
	uint64_t count;
	weir_status status;
	Using use(core);

	settle();
	if (!weir_scheduler_running(core->scheduler) && read(core->ended, &count, sizeof count) >= 0)
		count = 0; /* the end of the run before */
	self.runs++;
	{
		nb::gil_scoped_release released;
		status = weir_scheduler_start(core->scheduler);
	}
	if (!status)
		return nb::make_tuple(0, nb::none(), nb::none());
	return nb::make_tuple((int)status, text_of(weir_last_error()),
			      text_or_none(weir_last_error_entity()));
}

int64_t slice_of(const Core *core)
{
	return core->simulated ? SLICE_SIM_NS : SLICE_NS;
}

/* Nanoseconds of a timeout in seconds; None: -1, no limit. */
int64_t limit_of(nb::handle timeout)
{
	double seconds;

	if (timeout.is_none())
		return -1;
	seconds = nb::cast<double>(timeout);
	if (!(seconds >= 0) || seconds > 1e9)
		raise(WEIR_E_INVALID, "a timeout is a number of seconds, or None");
	return (int64_t)(seconds * 1e9);
}

/*
 * call(ns) waits at most that long. Python's signal handlers run between the slices, so that Ctrl-C ends the
 * wait.
 */
template <typename Call> weir_status in_slices(Core *core, int64_t limit, Call call)
{
	int64_t slice = slice_of(core), left = limit;
	int ending_slices = 10;
	weir_status status;
	Using use(core);

	do {
		int64_t now = limit < 0 || left > slice ? slice : left;
		{
			nb::gil_scoped_release released;
			status = call(now);
		}
		settle();
		if (status != WEIR_E_TIMEOUT)
			return status;
		if (core->ending && !ending_slices--)
			return status; /* a compute goes on, and `end_scheduler` waits for this thread */
		if (PyErr_CheckSignals())
			throw nb::python_error();
		left -= now;
	} while (limit < 0 || left > 0);
	return status;
}

/* As check, after in_slices: a call that was cut short by the end of the graph says so. */
void check_waited(const Core *core, weir_status status)
{
	if (status == WEIR_E_TIMEOUT)
		check_open(core);
	check(status);
}

nb::dict outcome_of(const weir_outcome *outcome)
{
	nb::dict out;

	out["status"] = (int)outcome->status;
	out["entity"] = text_or_none(outcome->entity);
	out["text"] = text_or_none(outcome->text);
	out["ticks"] = outcome->ticks;
	out["leftover"] = outcome->leftover;
	out["abandoned"] = outcome->abandoned;
	out["duration"] = (double)outcome->duration_ns / 1e9;
	out["discarded"] = outcome->discarded;
	out["waiting"] = text_or_none(outcome->waiting);
	out["held"] = outcome->held;
	out["stuck"] = text_or_none(outcome->stuck);
	out["cause"] = weir_cause_text(outcome->cause);
	out["cause_entity"] = text_or_none(outcome->cause_entity);
	out["cause_on"] = text_or_none(outcome->cause_on);
	return out;
}

/*
 * Waits for the end of the run. An exception of a signal handler (KeyboardInterrupt) drains the run, a second
 * one cuts it short; it is raised when the run has ended. Returns None after the timeout.
 */
nb::object wait_run(Graph &self, nb::object timeout)
{
	Core *core = running_core(self);
	weir_outcome outcome = {sizeof outcome};
	int64_t limit = limit_of(timeout);
	nb::object interrupt;
	weir_status status = WEIR_E_TIMEOUT;
	Using use(core);
	auto wait = [&](int64_t ns) { return weir_scheduler_wait(core->scheduler, ns, &outcome); };

	for (;;) {
		try {
			status = in_slices(core, limit, wait);
			break;
		} catch (nb::python_error &error) {
			weir_scheduler_stop(core->scheduler, !interrupt.is_valid());
			interrupt = nb::borrow(error.value());
			limit = -1;
		}
	}
	if (interrupt.is_valid()) {
		PyErr_SetObject((PyObject *)Py_TYPE(interrupt.ptr()), interrupt.ptr());
		throw nb::python_error();
	}
	if (status == WEIR_E_TIMEOUT)
		check_open(core);
	if (status == WEIR_E_TIMEOUT && weir_scheduler_running(core->scheduler))
		return nb::none();
	if (status && !outcome.status)
		check(status);
	return outcome_of(&outcome);
}

/* Between two runs, waits for the device to be done with what was dropped. */
void collect_dropped(Graph &self, nb::object timeout)
{
	Core *core = open_core(self);
	int64_t limit = limit_of(timeout);

	check_open(core);
	check_waited(core,
		     in_slices(core, limit, [&](int64_t ns) { return weir_graph_collect(core->graph, ns); }));
}

void stop_run(Graph &self, bool drain)
{
	if (open_core(self)->scheduler)
		weir_scheduler_stop(self.core->scheduler, drain);
}

void close_graph(Graph &self)
{
	Core *core = self.core.get();

	if (!is_ours(core))
		return;
	if (is_inside(core))
		raise(WEIR_E_BUSY, "a graph is not closed by an operator: finish or drain instead");
	if (!end_scheduler(core))
		raise(WEIR_E_BUSY, "another thread is inside a call of this graph");
	settle();
}

bool is_running(const Graph &self)
{
	return open_core(self)->scheduler && weir_scheduler_running(self.core->scheduler);
}

void add_explanation(const char *entity, const char *condition, const char *verdict, const char *detail,
		     void *arg)
{
	((nb::list *)arg)
		->append(nb::make_tuple(text_of(entity), text_of(condition), text_of(verdict),
					text_of(detail)));
}

nb::object explain_run(Graph &self)
{
	nb::list out;

	weir_scheduler_explain(running_core(self)->scheduler, add_explanation, &out);
	return out;
}

void add_unmet(const weir_unmet *unmet, void *arg)
{
	nb::dict one;

	one["entity"] = text_of(unmet->entity);
	one["cause"] = weir_cause_text(unmet->cause);
	one["on"] = text_or_none(unmet->on);
	one["blames"] = text_or_none(unmet->blames);
	one["condition"] = text_of(unmet->condition);
	one["verdict"] = text_of(unmet->verdict);
	one["detail"] = text_of(unmet->detail);
	((nb::list *)arg)->append(one);
}

nb::list explain_causes(Graph &self)
{
	nb::list out;

	weir_scheduler_explain_causes(running_core(self)->scheduler, add_unmet, &out);
	return out;
}

std::string explain_line(Graph &self)
{
	char *text;

	check(weir_scheduler_explain_line(running_core(self)->scheduler, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

std::string statistics_text(Graph &self)
{
	char *text;

	check(weir_scheduler_print_statistics(running_core(self)->scheduler, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

/* Returns how many records were dropped. */
uint64_t write_trace(Graph &self, const char *path)
{
	Core *core = running_core(self);
	uint64_t dropped = 0;
	weir_status status;
	Using use(core);

	{
		nb::gil_scoped_release released;
		status = weir_scheduler_write_trace(core->scheduler, path, &dropped);
	}
	check(status);
	return dropped;
}

nb::dict replay_counts(const weir_entity_counts &counts)
{
	nb::dict out;

	out["hits"] = counts.replay_hits;
	out["captures"] = counts.replay_captures;
	out["evictions"] = counts.replay_evictions;
	out["failures"] = counts.replay_failures;
	return out;
}

nb::object entity_counts(Graph &self)
{
	weir_scheduler *scheduler = running_core(self)->scheduler;
	weir_entity_counts counts = {sizeof counts};
	nb::dict all;

	for (size_t i = 0; weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		nb::dict out;
		out["ticks"] = counts.ticks;
		out["received"] = counts.received;
		out["emitted"] = counts.emitted;
		out["unconnected"] = counts.unconnected;
		out["compute_ns"] = counts.compute_ns;
		out["done"] = counts.done;
		out["lost"] = counts.lost;
		out["most_in_flight"] = counts.most_in_flight;
		out["stamped"] = counts.stamped;
		out["latency_ns"] = counts.latency_ns;
		out["max_latency_ns"] = counts.max_latency_ns;
		out["most_scratch"] = counts.most_scratch;
		out["held"] = counts.held;
		out["replay"] = replay_counts(counts);
		all[text_of(counts.entity)] = out;
	}
	return all;
}

nb::object queue_counts(Graph &self)
{
	weir_scheduler *scheduler = running_core(self)->scheduler;
	weir_queue_counts counts = {sizeof counts};
	nb::list all;

	for (size_t i = 0; weir_scheduler_queue_counts(scheduler, i, &counts); i++) {
		nb::dict out;
		out["from"] = text_of(counts.from);
		out["to"] = text_of(counts.to);
		out["pushed"] = counts.pushed;
		out["delivered"] = counts.delivered;
		out["dropped"] = counts.dropped;
		out["closed"] = counts.closed;
		out["queued"] = counts.queued;
		out["abandoned"] = counts.abandoned;
		out["capacity"] = counts.capacity;
		all.append(out);
	}
	return all;
}

nb::object pool_counts(Graph &self)
{
	weir_scheduler *scheduler = running_core(self)->scheduler;
	weir_pool_counts counts = {sizeof counts};
	nb::dict all;

	for (size_t i = 0; weir_scheduler_pool_counts(scheduler, i, &counts); i++) {
		nb::dict out;
		out["device"] = counts.device;
		out["block_size"] = counts.block_size;
		out["capacity"] = counts.capacity;
		out["used"] = counts.used;
		out["most_used"] = counts.most_used;
		out["outside"] = counts.outside;
		out["allocations"] = counts.allocations;
		out["refused"] = counts.refused;
		out["busy"] = counts.busy;
		all[text_of(counts.pool)] = out;
	}
	return all;
}

weir_entity *entity_of(Graph &self, const char *name)
{
	weir_entity *entity = weir_graph_entity(open_core(self)->graph, name);

	if (!entity)
		throw nb::key_error(name);
	return entity;
}

/* ------------------------------------------------------------------------------------------- the command --
 * `python3 -m weir`: the command itself, in this interpreter (cli/cli.h, struct cli_python). It has no GIL
 * while it runs.
 */

/* Of the one command of a process. */
struct Command {
	nb::callable load, failed, flush; /* python/weir/__main__.py */
	nb::callable handles;
	nb::object graph; /* of the run */
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

bool command_load(const char *path)
{
	nb::gil_scoped_acquire hold;

	return call_command(command->load, nb::bytes(path, strlen(path)));
}

weir_status command_add(weir_registry *registry)
{
	nb::gil_scoped_acquire hold;
	auto kinds = nb::cast<std::vector<KindHandle *>>(command->handles());

	return add_kinds(registry, &kinds);
}

int command_begin(const cli_options *options, weir_registry *registry, weir_graph *graph,
		  weir_scheduler *scheduler)
{
	nb::gil_scoped_acquire hold;

	settle();
	std::unique_ptr<Graph> made = new_graph();
	Core *core = made->core.get();
	core->registry = registry;
	core->graph = graph;
	core->scheduler = scheduler;
	note_backend(core, options->strict);
	command->graph = nb::cast(made.release(), nb::rv_policy::take_ownership);
	const char *entity = core->simulated ? first_of_python(core) : nullptr;
	if (entity)
		cli_say("%s: '%s': %s", options->argument, entity, NOT_ON_SIM);
	return entity ? CLI_FAILED : CLI_OK;
}

void command_turn()
{
	nb::gil_scoped_acquire hold;

	settle();
	if (PyErr_CheckSignals()) /* handlers that a file of --python installed */
		PyErr_WriteUnraisable(nullptr);
}

void command_failed(const char *entity)
{
	nb::gil_scoped_acquire hold;
	Graph *graph = nb::cast<Graph *>(command->graph);
	nb::object error = graph->failures.attr("get")(entity);

	if (!error.is_none())
		call_command(command->failed, error);
}

bool command_end()
{
	nb::gil_scoped_acquire hold;
	Ref core = nb::cast<Graph *>(command->graph)->core;

	(void)end_scheduler(core.get());
	command->graph.reset();
	return core->leaked;
}

bool command_flush()
{
	nb::gil_scoped_acquire hold;

	return call_command(command->flush);
}

/* Returns the exit code. words: of the command line, of bytes; the others return True. */
int run_command(std::vector<nb::bytes> words, nb::callable load, nb::callable failed, nb::callable flush,
		nb::callable handles)
{
	static const struct cli_python python = {command_load,   command_add, command_begin, command_turn,
						 command_failed, command_end, command_flush};
	Command own = {load, failed, flush, handles, nb::object()};
	std::vector<char *> argv;
	int code;

	for (nb::bytes &word : words)
		argv.push_back((char *)word.c_str());
	argv.push_back(nullptr);
	setvbuf(stdout, nullptr, _IOFBF, BUFSIZ); /* an unbuffered Python would write each word alone */
	command = &own;
	{
		nb::gil_scoped_release released;
		code = cli_main((int)words.size(), argv.data(), &python);
	}
	command = nullptr;
	settle();
	return code;
}

/* ------------------------------------------------------------------------------------- inlets and outlets --
 */

struct Inlet {
	weir_inlet *inlet;
	Ref core;
};

struct Outlet {
	weir_outlet *outlet;
	Ref core;
};

Inlet add_inlet(Graph &self, const char *port)
{
	weir_inlet *inlet;

	check(weir_graph_add_inlet(open_core(self)->graph, port, &inlet));
	return {inlet, self.core};
}

Outlet add_outlet(Graph &self, const char *port, uint32_t capacity, bool early)
{
	weir_outlet *outlet;

	check(weir_graph_add_outlet(open_core(self)->graph, port, capacity, early ? WEIR_OUTLET_EARLY : 0,
				    &outlet));
	return {outlet, self.core};
}

void inlet_push(Inlet &self, nb::handle value, nb::object timeout, nb::object stamp)
{
	Core *core = self.core.get();
	int64_t limit = limit_of(timeout);
	weir_status status;
	Draft draft;

	check_open(core);
	make_message(draft, {core}, value);
	if (!stamp.is_none())
		check(weir_message_set_stamp(draft.message, stamp_of(stamp)));
	status = weir_inlet_push(self.inlet, draft.message, 0);
	if (status == WEIR_E_BUSY && limit)
		status = in_slices(core, limit, [&](int64_t ns) {
			return weir_inlet_push(self.inlet, draft.message, ns);
		});
	check_waited(core, status);
	draft.take();
	settle();
}

void inlet_close(Inlet &self)
{
	check_open(self.core.get());
	weir_inlet_close(self.inlet);
}

nb::object outlet_take(Outlet &self, nb::object timeout)
{
	Core *core = self.core.get();
	int64_t limit = limit_of(timeout);
	weir_message *message;
	weir_status status;

	check_open(core);
	status = weir_outlet_take(self.outlet, 0, &message);
	if (status == WEIR_E_TIMEOUT && limit)
		status = in_slices(core, limit,
				   [&](int64_t ns) { return weir_outlet_take(self.outlet, ns, &message); });
	check_waited(core, status);
	settle();
	return message_of(message, core);
}

/* The next message, or None when no more will come. */
nb::object outlet_next(Outlet &self)
{
	Core *core = self.core.get();
	weir_message *message;
	weir_status status;

	check_core(core);
	if (core->ending)
		return nb::none();
	status = weir_outlet_take(self.outlet, 0, &message);
	if (status == WEIR_E_TIMEOUT)
		status = in_slices(core, -1,
				   [&](int64_t ns) { return weir_outlet_take(self.outlet, ns, &message); });
	if (status == WEIR_E_CLOSED || (status == WEIR_E_TIMEOUT && core->ending))
		return nb::none();
	check(status);
	return message_of(message, core);
}

int outlet_fd(Outlet &self)
{
	int fd;

	check_open(self.core.get());
	fd = weir_outlet_fd(self.outlet);
	if (fd < 0)
		check(WEIR_E_IO);
	return fd;
}

/* ------------------------------------------------------------------------------------------- the module --
 */

/* At the exit of the interpreter, before it finalizes: ends all runs, so that no worker needs the GIL later.
 */
void shut_down()
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
	finished = true;
}

int64_t parse_duration(const char *text)
{
	int64_t ns;

	check(weir_duration_parse(text, &ns));
	return ns;
}

void log_line(weir_log_level level, int64_t, const char *line, void *arg)
{
	if (level <= (weir_log_level)(intptr_t)arg)
		fprintf(stderr, "weir: %s\n", line);
}

void log_to_stderr(int level)
{
	nb::gil_scoped_release released;

	(void)weir_log_set(level ? log_line : nullptr, (void *)(intptr_t)level);
}

/* Untrusted text as weir prints it. */
std::string escape(const char *text)
{
	char shown[256];
	std::string out;

	while (*text)
		out.append(shown, weir_text_escape(&text, sizeof shown, shown));
	return out;
}

void in_child()
{
	generation++;
}

/* Plugins resolve weir's functions in the process, but Python loads extensions and what they need locally. */
void publish_library()
{
	Dl_info info;

	if (dladdr((void *)weir_version, &info))
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

void prepare()
{
	range = (Holder *)mmap(nullptr, HOLDERS * sizeof(Holder), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED)
		throw std::bad_alloc();
	word_dlpack = PyUnicode_InternFromString("__dlpack__");
	word_array = PyUnicode_InternFromString("__array_interface__");
	word_cuda_array = PyUnicode_InternFromString("__cuda_array_interface__");
	pthread_atfork(nullptr, nullptr, in_child);
	publish_library();
}

PyType_Slot message_slots[] = {
	{Py_bf_getbuffer, (void *)get_buffer},
	{Py_bf_releasebuffer, (void *)release_buffer},
	{0, nullptr},
};

int graph_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	if (!nb::inst_ready(object))
		return 0;
	Graph *self = nb::inst_ptr<Graph>(object);
	Py_VISIT(self->instances.ptr());
	Py_VISIT(self->failures.ptr());
	return 0;
}

int graph_clear(PyObject *object)
{
	Graph *self = nb::inst_ptr<Graph>(object);

	self->instances = nb::dict();
	self->failures = nb::dict();
	return 0;
}

PyType_Slot graph_slots[] = {
	{Py_tp_traverse, (void *)graph_traverse},
	{Py_tp_clear, (void *)graph_clear},
	{0, nullptr},
};

void bind_message(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Message>(module, "Message", nb::type_slots(message_slots))
		.def_prop_ro("kind", message_kind)
		.def("__repr__", message_repr)
		.def_prop_ro("object", message_object)
		.def_prop_ro("parts", message_parts)
		.def("__getitem__", message_part)
		.def_prop_ro("dtype", message_dtype)
		.def_prop_ro("shape",
			     [](Message &self) {
				     return numbers(tensor_of(self)->shape, tensor_of(self)->dimensions);
			     })
		.def_prop_ro("device", [](Message &self) { return tensor_of(self)->device; })
		.def_prop_ro("nbytes", [](Message &self) { return weir_message_size(self.message); })
		.def_prop_ro("address", message_address)
		.def_prop_ro("stamp", message_stamp)
		.def("unique", message_unique)
		.def("check_readable", check_readable)
		.def_prop_ro("__cuda_array_interface__", cuda_array_interface)
		.def("__dlpack_device__", message_dlpack_device)
		.def("__dlpack__", message_dlpack, nb::kw_only(), arg("stream") = nb::none(),
		     arg("max_version") = nb::none(), arg("dl_device") = nb::none(),
		     arg("copy") = nb::none());
	nb::class_<Object>(module, "Object").def("__init__", [](Object *self, nb::object value) {
		new (self) Object{value};
	});
}

void bind_streams(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Stream>(module, "Stream", nb::dynamic_attr())
		.def_prop_ro("handle", stream_handle)
		.def("use", stream_use)
		.def_prop_ro("on_cuda",
			     [](const Stream &self) { return self.of->inside() && self.of->core->on_cuda; })
		.def_ro("device", &Stream::device)
		.def_ro("id", &Stream::id)
		.def("record", stream_record)
		.def("wait", stream_wait, arg("fence"))
		.def("copy", stream_copy, arg("target"), arg("source"))
		.def("__cuda_stream__", [](Stream &self) { return nb::make_tuple(0, stream_handle(self)); });
	nb::class_<Fence>(module, "Fence")
		.def("__repr__",
		     [](const Fence &self) {
			     return "Fence(stream=" + std::to_string(self.fence.stream) +
				    ", value=" + std::to_string(self.fence.value) + ")";
		     })
		.def_prop_ro("stream", [](const Fence &self) { return self.fence.stream; })
		.def_prop_ro("value", [](const Fence &self) { return self.fence.value; });
}

void bind_context(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Context>(module, "Context")
		.def("receive", context_receive, arg("port"))
		.def("receive_all", context_receive_all, arg("port"))
		.def("emit", context_emit, arg("port"), arg("value").none(), arg("stamp") = nb::none(),
		     arg("at").none() = nb::none())
		.def("tell", context_tell, arg("condition"), arg("told"))
		.def("scratch", context_scratch, arg("nbytes"), arg("stream").none() = nb::none())
		.def("empty", context_empty, arg("shape"), arg("dtype"), arg("on_host") = false)
		.def("replay", context_replay, arg("key"), arg("enqueue"))
		.def("sender", context_sender, arg("port"), arg("connection") = 0)
		.def("watch", context_watch, arg("fd"), arg("read") = true, arg("write") = false,
		     arg("condition") = "file_descriptor", arg("warn_after") = 0.0)
		.def("count",
		     [](Context &self, nb::handle port) {
			     return weir_context_count(self.inside(), port_of(self, 0, port));
		     })
		.def("finish", [](Context &self) { check(weir_context_finish(self.inside()), self.name()); })
		.def("drain", [](Context &self) { weir_context_drain(self.inside()); })
		.def(
			"fail_after_drain",
			[](Context &self, const char *text) {
				check(weir_context_fail_after_drain(self.inside(), WEIR_E_FAILED, "%s", text),
				      self.name());
			},
			arg("text"))
		.def(
			"log",
			[](Context &self, const char *text, const char *level) {
				weir_context *context = self.inside();
				weir_log_level of = log_level_of(level);
				nb::gil_scoped_release released; /* the log function may want it */

				weir_context_log(context, of, "%s", text);
			},
			arg("text"), arg("level") = "info")
		.def(
			"set_stamp",
			[](Context &self, int64_t time, uint64_t tag) {
				check(weir_context_set_stamp(self.inside(), {time, tag}), self.name());
			},
			arg("time"), arg("tag"))
		.def_prop_ro("entity", [](Context &self) { return self.entity; })
		.def_prop_ro("tick", [](Context &self) { return weir_context_tick(self.inside()); })
		.def_prop_ro("now", [](Context &self) { return weir_context_now(self.inside()); })
		.def_prop_ro("stopping", [](Context &self) { return weir_context_stopping(self.inside()); })
		.def_prop_ro("device", [](Context &self) { return weir_context_device(self.inside()); })
		.def_prop_ro("on_cuda", [](Context &self) { return self.inside() && self.core->on_cuda; })
		.def_prop_ro("stream", context_stream)
		.def_prop_ro("default_stream", context_default_stream)
		.def("receive_stream", context_receive_stream, arg("port"), arg("allocate") = true,
		     arg("sync_to_default") = false)
		.def("receive_streams", context_receive_streams, arg("port"), arg("i") = 0)
		.def("allocate_stream", context_allocate_stream, arg("name"))
		.def("set_stream", context_set_stream, arg("port"), arg("stream"))
		.def("synchronize_streams", context_synchronize_streams, arg("streams"), arg("target"));
}

int backend_of(Graph &self)
{
	return (int)weir_scheduler_backend(running_core(self)->scheduler);
}

void bind_graph(nb::module_ &module)
{
	using nb::arg;

	nb::class_<KindHandle>(module, "Kind");
	module.def("make_kind", make_kind);
	nb::class_<Graph>(module, "Graph", nb::type_slots(graph_slots))
		.def_ro("instances", &Graph::instances)
		.def_ro("failures", &Graph::failures)
		.def_ro("warnings", &Graph::warnings)
		.def("create", make_scheduler)
		.def("has_scheduler", [](Graph &self) { return open_core(self)->scheduler != nullptr; })
		.def("start", start_run)
		.def("wait", wait_run, arg("timeout").none())
		.def("stop", stop_run)
		.def("collect", collect_dropped, arg("timeout").none())
		.def("close", close_graph)
		.def("running", is_running)
		.def("stopping",
		     [](Graph &self) {
			     return open_core(self)->scheduler &&
				    weir_scheduler_stopping(self.core->scheduler);
		     })
		.def("backend", backend_of)
		.def("where",
		     [](Graph &self) { return text_of(weir_scheduler_where(running_core(self)->scheduler)); })
		.def("now", [](Graph &self) { return weir_scheduler_now(running_core(self)->scheduler); })
		.def("explain", explain_run)
		.def("explain_causes", explain_causes)
		.def("explain_line", explain_line)
		.def("entity_counts", entity_counts)
		.def("statistics", statistics_text)
		.def("write_trace", write_trace)
		.def("queue_counts", queue_counts)
		.def("pool_counts", pool_counts)
		.def("fileno", [](Graph &self) { return open_core(self)->ended; })
		.def("poke", [](Graph &self,
				const char *entity) { check(weir_entity_poke(entity_of(self, entity))); })
		.def("enable", [](Graph &self, const char *entity,
				  bool on) { check(weir_entity_enable(entity_of(self, entity), on)); })
		.def("tell",
		     [](Graph &self, const char *entity, const char *condition, nb::handle told) {
			     tell_entity(entity_of(self, entity), condition, told, entity);
		     })
		.def("inlet", add_inlet)
		.def("outlet", add_outlet);
	module.def("make_graph", make_graph, nb::rv_policy::take_ownership);
	module.def("show_graph", show_graph);
	module.def("check_graph", check_graph);
}

void bind_ends(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Inlet>(module, "Inlet")
		.def("push", inlet_push, arg("value").none(), arg("timeout") = nb::none(),
		     arg("stamp") = nb::none())
		.def("close", inlet_close);
	nb::class_<Outlet>(module, "Outlet")
		.def("take", outlet_take, arg("timeout") = nb::none())
		.def("next_or_none", outlet_next)
		.def("fileno", outlet_fd);
}

} // namespace

NB_MODULE(_weir, module)
{
	nb::set_leak_warnings(false); /* globals of the main module live longer than the interpreter */
	prepare();
	bind_message(module);
	bind_streams(module);
	bind_context(module);
	bind_graph(module);
	bind_ends(module);
	module.def("version", weir_version);
	module.def("log_to_stderr", log_to_stderr);
	module.def("command", run_command);
	module.def("say", [](const char *text) { cli_say("%s", text); });
	module.def("parse_duration", parse_duration);
	module.def("escape", escape);
	module.def("status_text", [](int status) { return weir_status_text((weir_status)status); });
	module.def("settle", settle);
	module.def("gil_takes", [] { return takes.load(); });
	nb::module_::import_("atexit").attr("register")(nb::cpp_function(shut_down));
}
