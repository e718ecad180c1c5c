/*
 * Operators in Python: the GIL, start, compute and stop, and what an operator may call: its context, its
 * streams, copies and replay.
 */
#include "python/module.h"

#include <chrono>
#include <cmath>

namespace weir_python
{

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

/* As threading.Thread does at the start of each thread: profilers, coverage and debuggers see this one, too.
 */
static void follow_threading()
{
	try {
		nb::module_ threading = nb::module_::import_("threading"), sys = nb::module_::import_("sys");
		nb::object trace = threading.attr("gettrace")(), profile = threading.attr("getprofile")();

		if (!trace.is_none())
			sys.attr("settrace")(trace);
		if (!profile.is_none())
			sys.attr("setprofile")(profile);
	} catch (nb::python_error &error) {
		error.discard_as_unraisable("a thread of weir's");
	}
}

/* Holds the GIL on a thread of weir's, or on a Python thread that released it. */
class Hold
{
      public:
	Hold()
	{
		bool known = kept.state;
		mine = known || !PyGILState_GetThisThreadState();
		if (kept.state)
			PyEval_RestoreThread(kept.state);
		else
			gil = PyGILState_Ensure();
		if (mine)
			kept.state = PyThreadState_Get();
		takes.store(takes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
		depth++;
		if (mine && !known)
			follow_threading();
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

thread_local Context *current = nullptr;

uint64_t number_of_call(const Context *context)
{
	return context->calls;
}

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

thread_local Inside *Inside::innermost = nullptr;

bool is_inside(const Core *core)
{
	for (const Inside *call = Inside::innermost; call; call = call->outer)
		if (call->own->core == core)
			return true;
	return false;
}

/*
 * weir calls start, compute, stop and what is captured: nothing may be thrown through its frames of C. So the
 * functions that end such a call with an error throw nothing themselves, whatever memory there is.
 */

/* Makes one line of an exception the error text: "ValueError: no such file (operators.py:12)". */
static weir_status fail_with(weir_context *context, nb::handle error)
{
	nb::object module = nb::steal(PyImport_ImportModule("weir.errors")), line;

	if (module.is_valid())
		line = nb::steal(PyObject_CallMethod(module.ptr(), "line_of", "Os", error.ptr(),
						     weir_entity_name(weir_context_entity(context))));
	const char *text = line.is_valid() ? PyUnicode_AsUTF8AndSize(line.ptr(), nullptr) : nullptr;

	if (!text)
		PyErr_Clear();
	return weir_context_fail(context, "%s", text ? text : "an exception without a text");
}

/*
 * Keeps the exception for weir.Error, if there is memory. The first one of an entity stays; a later one is a
 * note of it. own: NULL, or without a core: it was not made.
 */
static void keep_failure(Context *own, const nb::object &error)
{
	nb::object first;

	if (!own || !own->core || !own->core->owner)
		return;
	try {
		nb::dict failures =
			nb::borrow<nb::dict>(own->core->owner->failures); /* checked: made as one */
		if (!failures.contains(own->name()))
			failures[own->name()] = error;
		else if (!(first = failures[own->name()]).is(error))
			nb::module_::import_("weir.errors").attr("add_later")(first, error, own->name());
	} catch (const std::exception &) {
		PyErr_Clear();
	}
}

/* Keeps the exception for weir.Error, and ends the run. */
static weir_status fail(weir_context *context, Context *own)
{
	nb::object error = take_exception();

	keep_failure(own, error);
	return fail_with(context, error);
}

/* In a handler: makes an exception of C++ Python's. */
static void set_error(std::exception &error)
{
	nb::python_error *raised = dynamic_cast<nb::python_error *>(&error);

	if (raised)
		raised->restore();
	else if (dynamic_cast<std::bad_alloc *>(&error))
		PyErr_NoMemory();
	else
		PyErr_SetString(PyExc_RuntimeError, error.what());
}

static Core *core_of(weir_graph *graph)
{
	std::lock_guard<std::mutex> guard(cores_lock);

	for (Core *core = cores; core; core = core->next)
		if (core->graph == graph)
			return core;
	return nullptr;
}

static nb::object value_of(const weir_values *values, const weir_parameter *parameter)
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
static weir_log_level log_level_of(const char *word)
{
	static const char *const words[] = {"error", "warn", "info", "debug"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(word, words[i]))
			return (weir_log_level)(WEIR_LOG_ERROR + i);
	throw nb::value_error(
		(std::string("a level is error, warn, info or debug, not '") + word + "'").c_str());
}

static const Kind *kind_of(weir_context *context)
{
	return (const Kind *)weir_entity_operator(
		weir_context_entity(context)); /* table is its first member */
}

/* The object that the program added to the graph as this entity, if it is one. */
static nb::object given_instance(const Context &own)
{
	const Graph *owner = own.core->owner;

	if (!owner || !PyDict_Contains(owner->given.ptr(), nb::str(own.name()).ptr()))
		return nb::object();
	return owner->given[own.name()];
}

static nb::list names_of(const Kind *kind, int direction)
{
	nb::list out;

	for (PyObject *name : kind->names[direction])
		out.append(nb::borrow(name));
	return out;
}

static void make_instance(State *state, weir_context *context, const weir_values *values)
{
	const Kind *kind = kind_of(context);
	if (!kind->type)
		raise(WEIR_E_STATE, "the class of the operator is gone");
	nb::object instance = given_instance(*state->own);

	if (!instance.is_valid())
		instance = nb::steal(PyObject_CallNoArgs(kind->type));
	if (!instance.is_valid())
		throw nb::python_error();
	for (const weir_parameter &parameter : kind->parameters)
		if (parameter.name)
			instance.attr(parameter.name) = value_of(values, &parameter);
	nb::object compute = instance.attr("compute");
	if (nb::cast<bool>(nb::module_::import_("inspect").attr("iscoroutinefunction")(compute)))
		compute = nb::module_::import_("weir.futures")
				  .attr("as_compute")(compute, names_of(kind, 0), names_of(kind, 1));
	state->compute = compute.release().ptr();
	if (state->own->core->owner)
		state->own->core->owner->instances[state->own->name()] = instance;
	state->instance = instance.release().ptr();
}

static void make_context(State *state, weir_context *context)
{
	state->context = object_of<Context>().release().ptr();
	state->own = nb::inst_ptr<Context>(state->context); /* checked: just made */
	state->own->kind = kind_of(context);
	state->own->entity = weir_entity_name(weir_context_entity(context));
	state->own->core = core_of(weir_context_graph(context));
	state->own->hold.set(state->own->core);
	state->own->chosen.resize(state->own->kind->ports[1].size());
	state->own->run = state->own->core->owner ? state->own->core->owner->runs : 0;
}

static void drop_state(State *state)
{
	if (state->own)
		state->own->hold.reset();
	state->own = nullptr;
	Py_CLEAR(state->compute);
	Py_CLEAR(state->instance);
	Py_CLEAR(state->context);
}

/* Calls instance.NAME(ctx), if there is one. */
static bool call_if_there(State *state, const char *name)
{
	nb::object method, result;

	if (!PyObject_HasAttrString(state->instance, name))
		return true;
	method = nb::steal(PyObject_GetAttrString(state->instance, name));
	if (method.is_valid())
		result = nb::steal(PyObject_CallFunctionObjArgs(method.ptr(), state->context, nullptr));
	return result.is_valid();
}

/* What its ticks emitted and is not there yet is cancelled. */
static bool stop_futures(PyObject *context)
{
	nb::object module = nb::steal(PyImport_ImportModule("weir.futures")), result;

	if (module.is_valid())
		result = nb::steal(PyObject_CallMethod(module.ptr(), "stop", "O", context));
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
	} catch (std::exception &error) {
		set_error(error);
		status = fail(context, state->own);
	}
	if (status)
		drop_state(state);
	return status;
}

static void refuse_returned(nb::handle result)
{
	nb::object name = nb::steal(PyObject_GetAttrString((PyObject *)Py_TYPE(result.ptr()), "__name__"));

	PyErr_Clear();
	PyErr_Format(PyExc_TypeError,
		     "compute returned %V, which nobody gets: emit it, ctx.emit(port, value)", name.ptr(),
		     "an object");
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
	bool returned = result && !nb::handle(result).is_none();
	if (returned)
		refuse_returned(result);
	if (!result || returned)
		status = fail(context, state->own);
	Py_XDECREF(result);
	settle();
	return status;
}

void operator_stop(weir_context *context, void *memory)
{
	State *state = (State *)memory;
	Hold hold;

	if (!state->instance)
		return;
	{
		Inside inside(state->own, context);
		if (!call_if_there(state, "stop")) {
			keep_failure(state->own, take_exception());
		}
		if (state->own->later && !stop_futures(state->context))
			keep_failure(state->own, take_exception());
		settle();
	}
	drop_state(state);
}

static unsigned port_of(const Context &self, int direction, nb::handle port)
{
	const std::vector<PyObject *> &names = self.kind->names[direction];
	std::string text;

	for (size_t i = 0; i < names.size(); i++)
		if (names[i] == port.ptr())
			return (unsigned)i;
	for (size_t i = 0; PyUnicode_Check(port.ptr()) && i < names.size(); i++)
		if (!PyUnicode_Compare(names[i], port.ptr()))
			return (unsigned)i;
	if (PyLong_Check(port.ptr())) {
		uint64_t number = PyLong_AsUnsignedLongLong(port.ptr());
		PyErr_Clear();
		if (number < names.size())
			return (unsigned)number;
	}
	const char *word = direction ? "output" : "input";
	bool named = PyUnicode_Check(port.ptr()) || PyLong_Check(port.ptr());
	nb::object said = named ? nb::repr(port) : nb::repr(nb::type_name(port.type()));
	text = "operator '" + std::string(self.kind->table.name) + "' has no " + word +
	       (named ? " " : " by an object of the type ") + nb::cast<std::string>(said);
	if (names.empty())
		text += std::string(": it has none; its class lists them, ") + word + "s = [\"" +
			(direction ? "out" : "in") + "\"]";
	for (size_t i = 0; i < names.size(); i++)
		text += (i ? ", '" : std::string("; its ") + word + "s are '") +
			self.kind->ports[direction][i].name + "'";
	raise(WEIR_E_INVALID, text.c_str(), self.name());
}

/* emit(value, "out") */
static void refuse_swapped(const Context &self, nb::handle port, nb::handle value)
{
	if (PyUnicode_Check(port.ptr()) || !PyUnicode_Check(value.ptr()))
		return;
	for (PyObject *name : self.kind->names[1])
		if (!PyUnicode_Compare(name, value.ptr()))
			throw nb::type_error(("the arguments of emit are swapped: ctx.emit(" +
					      nb::cast<std::string>(nb::repr(value)) + ", value)")
						     .c_str());
}

static nb::object receive_at(Context &self, unsigned input, size_t i)
{
	weir_message *message = resolved_of(weir_context_message(self.context, input, i));

	check_dense(self.kind, 0, input, message, self.name());
	nb::object object = message_of(message, self.core, self.calls);
	nb::inst_ptr<Message>(object)->borrowed = true; /* checked: just made */
	self.lent.push_back(object);
	return object;
}

static nb::object context_receive(Context &self, nb::handle port)
{
	weir_context *context = self.inside();
	unsigned input = port_of(self, 0, port);

	return weir_context_count(context, input) ? receive_at(self, input, 0) : nb::none();
}

static nb::object context_receive_all(Context &self, nb::handle port)
{
	weir_context *context = self.inside();
	unsigned input = port_of(self, 0, port);
	nb::list out;

	for (size_t i = 0; i < weir_context_count(context, input); i++)
		out.append(receive_at(self, input, i));
	return out;
}

static nb::object context_sender(Context &self, nb::handle port, size_t k)
{
	const char *sender = weir_context_sender(self.inside(), port_of(self, 0, port), k);

	return text_or_none(sender);
}

static nb::object context_age(Context &self, nb::handle port)
{
	int64_t age = weir_context_age(self.inside(), port_of(self, 0, port));

	if (age < 0)
		return nb::none();
	return nb::int_(age);
}

static nb::object stream_of(Context &self, weir_stream *stream, bool current = false)
{
	uintptr_t handle = (uintptr_t)weir_stream_native(stream);

	self.natives.push_back(native_of(handle));
	return object_of<Stream>(stream, &self, self.run, self.calls, current, nb::find(self), handle,
				 weir_stream_device(stream), weir_stream_id(stream));
}

static weir_stream *usable(const Context &self, const Stream &stream)
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
static void stream_use(Stream &self)
{
	Context &of = *self.of;
	weir_context *context = of.inside();

	(void)usable(of, self);
	if (self.call != of.calls && self.current) {
		weir_stream *now = nullptr;
		check(weir_context_stream(context, &now), of.name());
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
static uintptr_t stream_handle(Stream &self)
{
	if (self.of->context && pthread_equal(self.of->thread, pthread_self()) && self.run == self.of->run)
		stream_use(self);
	return self.handle;
}

static nb::object stream_record(const Stream &self)
{
	Fence fence = {};

	self.of->inside();
	check(weir_stream_record(usable(*self.of, self), &fence.fence), self.of->name());
	return object_of<Fence>(fence);
}

static void stream_wait(const Stream &self, const Fence &fence)
{
	self.of->inside();
	check(weir_stream_wait(usable(*self.of, self), fence.fence), self.of->name());
}

/* The address of device memory for this tick's work on that stream. */
static uintptr_t context_scratch(Context &self, size_t bytes, const Stream *stream)
{
	weir_context *context = self.inside();
	weir_stream *on = stream ? usable(self, *stream) : nullptr;
	void *data = nullptr;

	if (!on)
		check(weir_context_stream(context, &on), self.name());
	check(weir_context_scratch(context, on, bytes, &data), self.name());
	return (uintptr_t)data;
}

static nb::object context_stream(Context &self)
{
	weir_stream *stream = nullptr;

	check(weir_context_stream(self.inside(), &stream), self.name());
	return stream_of(self, stream, true);
}

static nb::object context_default_stream(Context &self)
{
	weir_stream *stream = nullptr;

	check(weir_context_default_stream(self.inside(), &stream), self.name());
	return stream_of(self, stream);
}

static nb::object context_receive_stream(Context &self, nb::handle port, bool allocate, bool sync_to_default)
{
	weir_context *context = self.inside();
	weir_stream *stream;

	check(weir_context_receive_stream(context, port_of(self, 0, port),
					  (allocate ? 0u : WEIR_RECEIVE_TAKE_NONE) |
						  (sync_to_default ? WEIR_RECEIVE_SYNC_DEFAULT : 0u),
					  &stream),
	      self.name());
	return stream_of(self, stream);
}

static nb::object context_receive_streams(Context &self, nb::handle port, size_t i)
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

static nb::object context_allocate_stream(Context &self, const char *name)
{
	weir_stream *stream;

	check(weir_context_allocate_stream(self.inside(), name, &stream), self.name());
	return stream_of(self, stream);
}

static void context_set_stream(Context &self, nb::handle port, const Stream &stream)
{
	weir_context *context = self.inside();
	unsigned output = port_of(self, 1, port);

	check(weir_context_set_stream(context, output, usable(self, stream)), self.name());
	self.chosen[output] = stream.stream;
}

static void context_synchronize_streams(Context &self, std::vector<Stream *> streams, const Stream &target)
{
	std::vector<weir_stream *> list;

	for (const Stream *stream : streams)
		list.push_back(usable(self, *stream));
	check(weir_context_synchronize_streams(self.inside(), list.data(), list.size(), usable(self, target)),
	      self.name());
}

static void context_emit(Context &self, nb::handle port, nb::handle value, nb::object stamp, nb::object when,
			 bool give)
{
	weir_context *context = self.inside();
	refuse_swapped(self, port, value);
	unsigned output = port_of(self, 1, port);
	bool later = false;
	Fence *at = held_by<Fence>(when);
	Draft draft;

	if (!when.is_none() && !at && !is_future(when))
		throw nb::type_error(
			"at is a fence of this tick, or a future that says when the value is whole");
	make_message(draft,
		     {self.core, context, self.chosen[output], give, self.name(),
		      self.kind->ports[1][output].name, &later, !when.is_none() && !at},
		     value);
	if (later && !when.is_none())
		throw nb::type_error("at belongs to a value that is there, not to a future");
	if (later && PyObject_HasAttrString(value.ptr(), "done") && nb::cast<bool>(value.attr("done")())) {
		context_emit(self, port, value.attr("result")(), stamp, when, give);
		return;
	}
	if (later) {
		emit_later(self, output, nullptr, value, stamp);
		return;
	}
	check_dense(self.kind, 1, output, draft.message, self.name());
	if (!when.is_none() && !at) {
		emit_later(self, output, draft.take(), when, stamp);
		return;
	}
	if (!stamp.is_none())
		check(weir_message_set_stamp(draft.message, stamp_of(stamp)), self.name());
	bool is_object = weir_message_kind(draft.message) == WEIR_KIND_USER;
	weir_status status = at ? weir_context_emit_at(context, output, draft.take(), at->fence)
				: weir_context_emit(context, output, draft.take());
	if (status == WEIR_E_INVALID && is_object)
		refuse_object(self, output, "an object of Python was emitted",
			      "emit an array, bytes or parts");
	check(status, self.name());
}

void tell_entity(weir_entity *entity, const char *condition, nb::handle told, const char *name)
{
	static const char *const words[] = {"nothing",       "ready",      "wait",
					    "event_waiting", "event_done", "never"};
	Fence *fence = held_by<Fence>(told);

	if (fence) {
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

static void context_tell(Context &self, const char *condition, nb::handle told)
{
	tell_entity(weir_context_entity(self.inside()), condition, told, self.name());
}

static unsigned watch_events(bool read, bool write)
{
	return (read ? (unsigned)WEIR_WATCH_READ : 0u) | (write ? (unsigned)WEIR_WATCH_WRITE : 0u);
}

static void context_watch(Context &self, int fd, bool read, bool write, const char *condition)
{
	weir_entity *entity = weir_context_entity(self.inside());

	check(weir_entity_watch(entity, condition, fd, fd < 0 ? 0 : watch_events(read, write)), self.name());
}

/* A new tensor in pooled memory: of the device, or of the host. */
static nb::object context_empty(Context &self, std::vector<int64_t> shape, const char *dtype, bool on_host)
{
	const Dtype *type = dtype_named(dtype);
	weir_tensor like = {};
	weir_message *message;

	if (!type)
		raise(WEIR_E_INVALID, ("there is no dtype '" + std::string(dtype) + "'").c_str(),
		      self.name());
	like = {sizeof like, nullptr,    0, (int32_t)shape.size(), shape.data(), nullptr,
		type->code,  type->bits, 1};
	check(weir_context_create_tensor(self.inside(), &like, on_host ? WEIR_TENSOR_HOST : 0, &message),
	      self.name());
	nb::object out = message_of(message, self.core, self.calls);
	nb::cast<Message *>(out)->writable = true;
	nb::cast<Message *>(out)->made = true;
	return out;
}

/* A negative number would be a large one. */
static size_t context_reserve(Context &self, size_t messages)
{
	return weir_context_reserve(self.inside(), messages);
}

/* Raises unless the message is one block of memory. what: "source" or "target". */
static void check_block(const Context &self, const Message &message, const char *what)
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
static void stream_copy(const Stream &self, const Message &target, const Message &source)
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
static void call_enqueue(Replay *call, weir_stream *stream)
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
static weir_status replay_enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	Replay *call = (Replay *)arg;
	weir_status status = WEIR_OK;

	PyEval_RestoreThread(call->state);
	try {
		call->error.reset();
		call_enqueue(call, stream);
	} catch (std::exception &error) {
		set_error(error);
		call->error = take_exception();
		status = fail_with(context, call->error);
	}
	call->state = PyEval_SaveThread();
	return status;
}

/* An exception of enqueue in a capture does not get here: the work is then enqueued as usual. */
static void context_replay(Context &self, nb::handle key, nb::handle enqueue)
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

void bind_streams(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Stream>(
		module, "Stream", nb::dynamic_attr(),
		"A CUDA stream of the entity; `with ctx.stream:` makes it current in CuPy and torch.")
		.def_prop_ro("handle", stream_handle,
			     "The native stream as a number; 0: none, or the default one.")
		.def("use", stream_use, "Marks the stream as used in this tick: `with` does it.")
		.def_prop_ro(
			"on_cuda",
			[](const Stream &self) { return self.of->inside() && self.of->core->on_cuda; },
			"True on a CUDA device; False: host threads stand for it.")
		.def_ro("device", &Stream::device, "The number of its device.")
		.def_ro("id", &Stream::id, "Its number in the graph, as fences name it.")
		.def("record", stream_record, "Returns a fence behind what is enqueued by now.")
		.def("wait", stream_wait, arg("fence"), "What is enqueued from now on waits for the fence.")
		.def("copy", stream_copy, arg("target"), arg("source"),
		     "Enqueues a copy between two contiguous messages of one size.")
		.def("__repr__",
		     [](const Stream &self) {
			     return "<weir.Stream " + std::to_string(self.id) + " of device " +
				    std::to_string(self.device) + ">";
		     })
		.def("__cuda_stream__", [](Stream &self) { return nb::make_tuple(0, stream_handle(self)); });
	nb::class_<Fence>(module, "Fence", "A place in the work of a stream.")
		.def("__repr__",
		     [](const Fence &self) {
			     return "Fence(stream=" + std::to_string(self.fence.stream) +
				    ", value=" + std::to_string(self.fence.value) + ")";
		     })
		.def_prop_ro(
			"stream", [](const Fence &self) { return self.fence.stream; }, "The stream's id.")
		.def_prop_ro(
			"value", [](const Fence &self) { return self.fence.value; }, "The place: it grows.");
	keep_types<Stream, Fence>();
}

using ContextClass = nb::class_<Context>;

static void bind_messages(ContextClass &type)
{
	using nb::arg;

	type.def("receive", context_receive, arg("port"), "The first message of this tick, or None.")
		.def("receive_all", context_receive_all, arg("port"), "All messages of this tick, as a list.")
		.def(
			"count",
			[](Context &self, nb::handle port) {
				return weir_context_count(self.inside(), port_of(self, 0, port));
			},
			arg("port"), "How many messages this tick received there.")
		.def("age", context_age, arg("port"),
		     "Of an input with the policy latest, or whose last message aligned gives again: "
		     "nanoseconds since the message of this tick was pushed; None: there is none, or it is a "
		     "new one of any other input.")
		.def("sender", context_sender, arg("port"), arg("connection") = 0,
		     "The output that sends on that connection, \"read.out\"; None: there is no such "
		     "connection.")
		.def("emit", context_emit, arg("port").none(), arg("value").none(), arg("stamp") = nb::none(),
		     arg("at").none() = nb::none(), arg("give") = false,
		     "Emits after compute has returned; a future (concurrent.futures, asyncio) or a "
		     "coroutine "
		     "stands for its result, for which the receivers wait. stamp: (time, tag); at: a fence "
		     "of "
		     "this tick, or a future, behind which the value is complete; give: the program does not "
		     "use the array any more, so receivers may "
		     "write it.")
		.def("empty", context_empty, arg("shape"), arg("dtype"), arg("on_host") = false,
		     "New pooled memory, of the device or pinned, to fill and emit.")
		.def("reserve", context_reserve, arg("messages"),
		     "Reserves memory for arrays that `empty` will make, in this tick or later ones, at most "
		     "as many as outputs have `ahead`; returns for how many there is some now.")
		.def("scratch", context_scratch, arg("nbytes"), arg("stream").none() = nb::none(),
		     "The address of device memory for what this tick enqueues on the stream.")
		.def("replay", context_replay, arg("key"), arg("enqueue"),
		     "Enqueues work that is captured once per key and then launched as a whole.");
}

static void bind_control(ContextClass &type)
{
	using nb::arg;

	type.def("tell", context_tell, arg("condition"), arg("told"),
		 "Tells a condition of this entity a word, or a fence.")
		.def("watch", context_watch, arg("fd"), arg("read") = true, arg("write") = false,
		     arg("condition") = "file_descriptor",
		     "Lets that condition wait for a descriptor; -1: none.")
		.def("waker", make_waker, "An object whose wake() pokes this entity, from any thread.")
		.def(
			"finish",
			[](Context &self) { check(weir_context_finish(self.inside()), self.name()); },
			"This is the entity's last tick.")
		.def(
			"drain", [](Context &self) { weir_context_drain(self.inside(), nullptr); },
			"Ends the run: sources stop, the rest is worked off.")
		.def(
			"fail_after_drain",
			[](Context &self, const char *text) {
				check(weir_context_fail_after_drain(self.inside(), WEIR_E_FAILED, "%s", text),
				      self.name());
			},
			arg("text"), "As finish and drain; then the run fails with this text.")
		.def(
			"log",
			[](Context &self, const char *text, const char *level) {
				log_inside(self.inside(), log_level_of(level), text);
			},
			arg("text"), arg("level") = "info",
			"Writes a line into the log: \"error\", \"warn\", \"info\" or \"debug\".")
		.def(
			"set_stamp",
			[](Context &self, int64_t time, uint64_t tag) {
				check(weir_context_set_stamp(self.inside(), {time, tag}), self.name());
			},
			arg("time"), arg("tag"), "The stamp of what this tick emits.");
}

static void bind_state(ContextClass &type)
{
	type.def_prop_ro(
		    "entity", [](Context &self) { return self.entity; }, "The entity's name.")
		.def_prop_ro(
			"_graph", [](Context &self) { return (uintptr_t)self.core; },
			"Tells the contexts of one graph.")
		.def_prop_ro(
			"tick", [](Context &self) { return weir_context_tick(self.inside()); },
			"The number of this tick in the run, from 0.")
		.def_prop_ro(
			"now", [](Context &self) { return weir_context_now(self.inside()); },
			"The clock of the run in nanoseconds.")
		.def_prop_ro(
			"stopping", [](Context &self) { return weir_context_stopping(self.inside()); },
			"True if the run is being stopped: a compute that takes long returns.")
		.def_prop_ro(
			"device", [](Context &self) { return weir_context_device(self.inside()); },
			"The number of the entity's device.")
		.def_prop_ro(
			"on_cuda", [](Context &self) { return self.inside() && self.core->on_cuda; },
			"True on a CUDA device; False: host threads stand for it.")
		.def("__repr__", [](Context &self) { return "<weir.Context of '" + self.entity + "'>"; });
}

void bind_context(nb::module_ &module)
{
	using nb::arg;
	ContextClass type(module, "Context",
			  "What start, compute and stop may call, on their thread and while they run.");

	bind_messages(type);
	bind_control(type);
	bind_state(type);
	type.def_prop_ro("stream", context_stream, "The current stream of this tick.")
		.def_prop_ro("default_stream", context_default_stream, "The default stream of the device.")
		.def("receive_stream", context_receive_stream, arg("port"), arg("allocate") = true,
		     arg("sync_to_default") = false,
		     "The stream of the port's messages, which becomes the current one.")
		.def("receive_streams", context_receive_streams, arg("port"), arg("i") = 0,
		     "The streams that a message carries, as a list; waits for nothing.")
		.def("allocate_stream", context_allocate_stream, arg("name"),
		     "Another stream of the entity's pool, kept for the run under that name.")
		.def("set_stream", context_set_stream, arg("port"), arg("stream"),
		     "What this tick emits there carries this stream instead of the current one.")
		.def("synchronize_streams", context_synchronize_streams, arg("streams"), arg("target"),
		     "What is enqueued on the target from now on waits for the streams.");
	keep_types<Context>();
}

} // namespace weir_python
