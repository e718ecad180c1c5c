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
#ifndef WEIR_PYTHON_MODULE_H
#define WEIR_PYTHON_MODULE_H

#include <nanobind/nanobind.h>

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir.h>

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

namespace weir_python
{

/* The type of Python that stands for T, once `keep_types` has found it. */
template <typename T> inline PyObject *type_of = nullptr;

/* For the types of a bind function, at its end. nanobind's search for one may allocate, too: once a thread.
 */
template <typename... Types> void keep_types()
{
	((type_of<Types> = nb::borrow(nb::type<Types>()).release().ptr()), ...);
}

/* The T that the value holds; NULL: it is of another type. */
template <typename T> T *held_by(nb::handle value)
{
	bool is_one = PyObject_TypeCheck(value.ptr(), (PyTypeObject *)type_of<T>) && nb::inst_ready(value);

	return is_one ? nb::inst_ptr<T>(value) : nullptr; /* checked: above */
}

/*
 * A new object of Python that holds T{arguments...}. nanobind's casts of a T enter it into a map of all
 * instances, which may have to grow, within functions that are noexcept: without memory they would end the
 * program. Here std::bad_alloc is raised.
 */
template <typename T, typename... Arguments> nb::object object_of(Arguments &&...arguments)
{
	nb::object made = nb::inst_alloc(type_of<T>);

	new (nb::inst_ptr<T>(made)) T{std::forward<Arguments>(arguments)...}; /* checked: just made */
	nb::inst_mark_ready(made);
	return made;
}

constexpr int64_t SLICE_NS = 20000000;          /* how soon Ctrl-C is seen */
constexpr int64_t SLICE_SIM_NS = 1000000000000; /* of virtual time, in which nothing else happens */

extern std::atomic<unsigned> generation; /* counts forks */
extern std::atomic<bool> finished;       /* the interpreter exits; nothing is called any more */
extern std::atomic<uint64_t> takes;      /* of the GIL, by operators; for tests */
extern std::atomic<uint64_t> leaks; /* graphs that could not be freed, since something hangs; for tests */
extern thread_local int depth;      /* calls of operators that this thread is in */

struct Core;
struct Graph;
struct Context;
struct Message;
extern thread_local Context *current; /* of the compute that this thread is in */

nb::object text_of(const char *text);
nb::object text_or_none(const char *text);
nb::object cause_or_none(weir_cause cause);
/* Raises weir.Error, or its subclass for the status. diagnostics: a list of tuples, or none. */
[[noreturn]] void raise(weir_status status, const char *text, const char *entity = nullptr,
			nb::object diagnostics = nb::none(), nb::object said = nb::none(),
			nb::object cause = nb::none(), nb::object on = nb::none());
void check(weir_status status, const char *entity = nullptr);
bool is_ours(const Core *core);
void retire(Core *core);
void bury(Core *core);
/* Ends graphs without references, outside of computes, and drops what messages kept. With the GIL. */
void settle();
/* Returns true if this thread is in a call of an operator of the graph: it cannot end the run. */
bool is_inside(const Core *core);
int64_t slice_of(const Core *core);
/* Nanoseconds of a timeout in seconds; None: -1, no limit. */
int64_t limit_of(nb::handle timeout);

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

/* MESSAGE: the result of a future (future.cpp). */
enum class Keeps { NOTHING, OBJECT, BUFFER, DLPACK, VERSIONED, MESSAGE };

/* Of check_writes: who gave an array to the graph, and what it held then. */
struct Written;

/* Of check_writes: an array that was sent, and may outlive its message. */
struct KeptArray {
	nb::object owner; /* a weak reference: of the array, or of what it is a view of */
	std::shared_ptr<Written> written;
};

/* What a payload of Python's keeps alive. */
struct Holder {
	Holder *next;
	Keeps keeps;
	bool given;        /* away: receivers may write it */
	const char *begin; /* of an array's memory, `bytes` of it */
	size_t bytes;
	Written *written; /* NULL: writes are not looked for */
	union {
		PyObject *object;
		Py_buffer buffer;
		DLManaged *managed;
		DLManagedVersioned *versioned;
		weir_message *message;
	};
};

/* A stream of another library, to which an array was exported. Its record is one thread's at a time. */
struct Consumer {
	int device;
	void *native;
	weir_stream *stream;
};

constexpr const char *FORKED = "this graph belongs to the parent process: after a fork, make a new one";

struct Kind;
struct Core {
	std::atomic<long> references{1};
	std::atomic<bool> listed{false}; /* among the retired; written by a winner of the exchange */
	bool dropped = false;            /* Python's object of the graph is gone; guarded by the GIL */
	bool starting = false;           /* a thread creates the scheduler or a run; guarded by the GIL */
	std::vector<std::shared_ptr<Kind>> kinds; /* whose tables the registry borrows */
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
	bool check_writes = false;       /* find what a program writes after the emit */
	std::string written;             /* the first such write; guarded by consumers_lock */
	std::string written_by;          /* its entity; "": a push */
	std::unordered_map<const void *, KeptArray>
		kept;              /* of check_writes, by address; guarded by it, too */
	size_t kept_most = 64;     /* with so many, those that are gone are looked for */
	bool leaked = false;       /* a hung device may touch its memory */
	std::mutex consumers_lock; /* guards the list, and `scheduler` against arrays that die elsewhere */
	std::vector<Consumer> consumers;
	std::vector<weir_message *> unfenced; /* of arrays whose readers' streams could not be recorded */
	std::vector<std::pair<int, weir_stream *>> streams; /* for arrays that a program pushes */
	Core *next_retired = nullptr;
	Core *next = nullptr; /* of all; guarded by cores_lock */
};

/* A counted reference to a core; may be dropped on any thread. */
class Ref
{
      public:
	Ref() : core(nullptr)
	{
	}
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
		reset();
	}
	void set(Core *of)
	{
		Ref(of).swap(*this);
	}
	void reset()
	{
		Core *left = core;

		core = nullptr;
		if (left && left->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
			retire(left);
	}
	void swap(Ref &other)
	{
		std::swap(core, other.core);
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

/* A call that releases the GIL and uses the graph, its inlets or outlets: they stay until it ends. */
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
	Ref core;
};

/* An operator's table and all that it points to: kept by its handle and by the cores whose registry borrows
 * it. */
struct Kind {
	weir_operator table = {};
	PyObject *type =
		nullptr; /* its handle's, which the garbage collector visits; NULL: the handle is gone */
	std::deque<std::string> texts;
	std::vector<weir_port> ports[2];  /* inputs, outputs */
	std::vector<bool> dense[2];       /* arrays there must be contiguous */
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
	std::shared_ptr<Kind> kind;

	explicit KindHandle(std::shared_ptr<Kind> of) : kind(std::move(of))
	{
	}
	KindHandle(KindHandle &&) = default;
	~KindHandle()
	{
		if (kind && !finished)
			Py_CLEAR(kind->type);
	}
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
	{"bool", 6, 8, '?'},
};

struct Message {
	weir_message *message;
	Ref core;
	bool writable = false;
	bool borrowed = false;        /* received in the compute that goes on; see Context.lent */
	bool made = false;            /* by ctx.empty: in `call` it may be written even if it was emitted */
	bool shown = false;           /* by __cuda_array_interface__, which names no stream of the reader's */
	bool shown_on_legacy = false; /* the tick asked for none, or there was no tick */
	uint64_t call = 0; /* received or made in this call: the end of its tick fences the payload */

	Message(weir_message *taken, Core *of) : message(taken), core(of)
	{
	}
	Message(Message &&other) noexcept
	    : message(other.message), core(std::move(other.core)), writable(other.writable),
	      borrowed(other.borrowed), made(other.made), shown(other.shown),
	      shown_on_legacy(other.shown_on_legacy), call(other.call)
	{
		other.message = nullptr;
	}
	~Message();
};

/* Before the message is let go: fences what reads the array that was shown. */
void note_readers(Message &self);

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

/* Where an array comes to: the graph, and the tick that emits it, if it is one. */
struct Destination {
	Core *core;
	weir_context *context = nullptr; /* NULL: a program pushes */
	weir_stream *stream = nullptr;   /* of the tick, if the output has one of its own */
	bool give = false;               /* arrays are the graph's from now on; else they are lent */
	const char *entity = "";         /* where they come from, for check_writes; "": a push into `port` */
	const char *port = "";
	bool *later =
		nullptr;     /* set, and no message made, if the value is a future; NULL: that is an object */
	bool filled = false; /* a future of the program's says when the value is whole */
};

/* An object that is passed as it is, whatever it exports. */
struct Object {
	nb::object value;
};

/* What the operator of one entity may call; valid inside start, compute and stop, on their thread. */
struct Context {
	weir_context *context = nullptr; /* NULL: outside */
	const Kind *kind = nullptr;
	Core *core = nullptr;
	Ref hold; /* from start to stop: `core` lives at least as long */
	std::string entity;
	pthread_t thread = 0;
	uint64_t run = 0;
	uint64_t calls = 0;                /* of start, compute and stop */
	bool replaying = false;            /* within ctx.replay */
	bool later = false;                /* futures were emitted in this run */
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
		if (core->born != generation)
			raise(WEIR_E_INVALID, FORKED, entity.c_str());
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
			Message *message =
				nb::inst_ptr<Message>(object); /* checked: receive_at puts in no other */

			message->borrowed = false;
			if (Py_REFCNT(object.ptr()) > 1)
				weir_message_ref(message->message);
			else {
				note_readers(*message);
				message->message = nullptr;
			}
		}
		lent.clear();
	}
};

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

struct Graph {
	Ref core;                       /* none: it was closed */
	nb::object instances, failures; /* dicts: by entity */
	nb::object warnings;
	nb::object kinds; /* the handles of its operators */
	nb::object given; /* dict: the objects that the program added, by entity; other entities get a new one
			     per run */
	uint64_t runs = 0;

	explicit Graph(Core *of) : core(of), instances(nb::dict()), failures(nb::dict()), given(nb::dict())
	{
		of->owner = this;
	}
	Graph(const Graph &) = delete;
	~Graph();
};

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

struct Inlet {
	weir_inlet *inlet;
	Ref core;
	std::string port;
};

struct Outlet {
	weir_outlet *outlet;
	Ref core;
};

extern std::mutex cores_lock;
extern Core *cores;
extern std::atomic<Holder *> let_go_of;

/* --- core.cpp --- */
void reserve_holders(); /* first */
/* The exception that is being raised, with its traceback. */
nb::object take_exception();
bool is_holder(const void *pointer);
/* Whether the graph still has an array of overlapping memory, which was lent or given away. Then `other` is
 * lent. */
enum class Shared { NOT, LENT, GIVEN };
Shared find_shared(Holder *other);
Holder *take_holder();
void drop_holder(Holder *holder);
/* Destructor of payloads: any thread of weir's, without the GIL. */
void let_go(void *arg);
/*
 * Ends the run and its scheduler; not inside an operator. With the GIL, which is released while it waits.
 * Calls that come meanwhile are refused; returns false if a thread does not leave one that it is in.
 */
bool end_scheduler(Core *core);
void drop_holders();
void check_core(const Core *core);
/* Raises in a child of fork. */
void check_process(const Core *core);
/* For calls about the run. */
void check_open(const Core *core);

/* --- arrays.cpp --- */
void intern_words(); /* first */
const Dtype *dtype_of(int code, int bits);
const Dtype *dtype_named(const char *name);
bool is_dense(const weir_tensor *tensor);
/* "uint8 on the host" */
std::string described(const weir_tensor *tensor);
/* Raises if the port wants contiguous arrays and the message is no such one. weir has checked the rest. */
void check_dense(const Kind *kind, int direction, unsigned port, const weir_message *message,
		 const char *entity);
/* Puts one reference to the message for a value of Python's into the draft. */
void make_message(Draft &draft, const Destination &to, nb::handle value);
const weir_tensor *tensor_of(const Message &self);
/* Raises why the host cannot read the message by a buffer. */
void check_readable(Message &self);
int get_buffer(PyObject *object, Py_buffer *view, int flags);
void release_buffer(PyObject *, Py_buffer *view);
/* One name for the legacy stream: NULL. */
void *native_of(uintptr_t handle);
nb::object message_dlpack(Message &self, nb::object stream, nb::object max_version, nb::object dl_device,
			  nb::object copy);
nb::object message_dlpack_device(Message &self);
nb::object numbers(const int64_t *list, int count);
/*
 * The interface names no consumer. Inside compute the streams that the tick asked for are put behind the work
 * that produces the message, and a consumer on one of them needs no wait; if it asked for none, and outside,
 * the legacy stream is.
 */
nb::object cuda_array_interface(Message &self);
nb::object message_bits(Message &self);

/* Bytes from the first to the last element. */
size_t extent_of(const weir_tensor *tensor);

/* --- writes.cpp --- */
/* Notes what an array holds that is sent. Looks whether it was written since it was sent before. */
void watch_writes(Holder *holder, const Destination &to, const weir_tensor *tensor, nb::handle value);
/* Looks whether a lent array was written. Any thread. */
void check_written(const Holder *holder);
void drop_written(Holder *holder);
/* The array is given away: looks at it, and then others may write it. */
void forget_kept(Core *core, const weir_tensor *tensor);
/* Looks at the arrays that the program has kept, and forgets them. */
void check_all_kept(Core *core);

/* --- message.cpp --- */
/* call: 0, or the number of the call in which it was received or made. */
nb::object message_of(weir_message *message, Core *core, uint64_t call = 0);
/* Both of a sequence of two; false if it is no such one. Subscripts of nanobind check nothing. */
bool pair_of(nb::handle value, nb::object &first, nb::object &second);
weir_stamp stamp_of(nb::handle stamp);
void bind_message(nb::module_ &module);

/* --- context.cpp --- */
uint64_t number_of_call(const Context *context);
/* NULL: not inside a call of this graph's operators. */
const std::vector<void *> *streams_of_call(const Context *context, const Core *core);
bool is_own_stream(const Context *context, const void *native);
weir_status operator_start(weir_context *context, void *memory, const weir_values *values);
weir_status operator_compute(weir_context *context, void *memory);
/* The run is over: an exception here is reported as Python reports those of destructors. */
void operator_stop(weir_context *context, void *memory);
/* What a condition is told: a word, or a fence. */
void tell_entity(weir_entity *entity, const char *condition, nb::handle told, const char *name);
void bind_streams(nb::module_ &module);
void bind_context(nb::module_ &module);

/* --- graph.cpp --- */
/* arg: a vector of KindHandle *. */
weir_status add_kinds(weir_registry *registry, void *arg);
/* The Python object of a new core: a Graph. If its graph cannot be made it is buried like any other. */
nb::object new_graph();
Core *open_core(const Graph &self);
/*
 * On sim the workers are fibers of one thread, which weir may switch inside compute; an interpreter's frames
 * are the thread's.
 */
constexpr const char *NOT_ON_SIM = "operators in Python do not run on the backend 'sim': use 'host'";
/* The first entity whose operator is in Python, or NULL. */
const char *first_of_python(const Core *core);
/* What arrays ask of the run. strict: as in its options. */
void note_backend(Core *core, int strict);
/* As check, after in_slices: a call that was cut short by the end of the graph says so. */
void check_waited(const Core *core, weir_status status);
void bind_graph(nb::module_ &module);

/* --- future.cpp --- */
/* A future of concurrent.futures or asyncio, or a coroutine. */
bool is_future(nb::handle value);
/* Emits the message `given`, which it takes, or, if that is NULL, one of the future's result, with a fence
 * that the future completes. */
void emit_later(Context &self, unsigned output, weir_message *given, nb::handle future, nb::object stamp);
/* Raises if the output, or what it is connected with, takes no objects of Python. remedy: ends the text. */
void refuse_object(const Context &self, unsigned output, const char *what, const char *remedy);
/* The message of a future's result, or the message itself. Borrowed. */
weir_message *resolved_of(weir_message *message);
nb::object make_waker(Context &self);
void bind_futures(nb::module_ &module);

/* --- ends.cpp --- */
nb::object add_inlet(Graph &self, const char *port);
nb::object add_outlet(Graph &self, const char *port, uint32_t capacity, bool early);
void bind_ends(nb::module_ &module);

/* --- log.cpp --- */
void bind_log(nb::module_ &module);
/* Whether weir's log goes to logging. No handler of the log calls it. */
void set_log(bool on);
/* Gives logging the lines that wait, and waits a while for a handler that another thread is in. */
void drain_log();
/* ctx.log: the line has reached logging when it returns, unless another thread delivers. */
void log_inside(weir_context *context, weir_log_level level, const char *text);
/* At the end, after `finished`: waits for the thread of the log. */
void leave_log();
/* In a child of fork. */
void forget_log();

/* --- report.cpp --- */
void bind_report(nb::module_ &module);

/* --- command.cpp --- */
/* Returns the exit code. words: of the command line, of bytes; the others return True. */
int run_command(std::vector<nb::bytes> words, nb::callable load, nb::callable failed, nb::callable flush,
		nb::callable handles);

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

} // namespace weir_python

#endif
