/*
 * What is emitted before it is there: a message with a fence that a future of Python's completes (weir.h,
 * weir_graph_create_fence), and what wakes an entity from outside.
 *
 * `ctx.emit("out", future)` emits a message around a holder that has nothing yet. When the future is done, a
 * Completion makes a message of its result, puts that into the holder and completes the fence. So the
 * receiver, whose gate waits for the fence, finds the result: what it receives is the message in the holder.
 * With `at=future` the message has its value from the beginning, and the future says when that is whole.
 */
#include "python/module.h"

namespace weir_python
{

/*
 * Of one emit. Its future calls `succeed` or `fail`; if it is dropped before, that is a failure. A result
 * that is a message may be unfinished: the device works on it, or it waits for a fence of another future. No
 * thread that ends futures waits for that, since it may be the one that ends the other future: `succeed`
 * returns False then, and a thread of its own calls `finish` (weir/futures.py).
 */
struct Completion {
	Ref core;
	weir_fence fence;
	Holder *holder; /* of the message that was emitted; NULL: that has its value */
	std::string entity;
	uint64_t run;
	std::atomic<bool> done{
		false}; /* whoever sets it ends the fence; relaxed: the fence orders the rest */
	weir_message *result = nullptr; /* that is unfinished; of the thread that calls `finish` */

	Completion(Core *of, weir_fence to, Holder *of_message, const std::string &by, uint64_t in_run)
	    : core(of), fence(to), holder(of_message), entity(by), run(in_run)
	{
	}
	Completion(const Completion &) = delete;
	~Completion()
	{
		if (!is_ours(core.get()))
			return;
		end(WEIR_E_FAILED, "its future was dropped before it was done");
		weir_message_unref(result);
	}
	bool claim()
	{
		return !done.exchange(true, std::memory_order_relaxed);
	}
	void end(weir_status status, const char *text)
	{
		if (claim())
			(void)weir_fence_complete(core->graph, fence, status, text);
	}
};

/* Returns WEIR_E_BUSY if the message is unfinished after the time, and its failure if it will never be
 * finished. */
static weir_status wait_for_message(const Core *core, const weir_message *message, int64_t ns)
{
	weir_fence fences[WEIR_PARTS_MAX];
	size_t count = weir_message_fences(message, WEIR_PARTS_MAX, fences);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && i < WEIR_PARTS_MAX && !status; i++) {
		status = weir_fence_query(core->graph, fences[i]);
		if (status == WEIR_E_BUSY && ns)
			status = weir_fence_wait(core->graph, fences[i], ns);
	}
	return status == WEIR_E_TIMEOUT ? WEIR_E_BUSY : status;
}

static void completion_fail(Completion &self, nb::object error)
{
	Core *core = self.core.get();

	if (self.done || !is_ours(core))
		return;
	if (core->owner && core->owner->runs == self.run) {
		nb::dict failures = nb::borrow<nb::dict>(core->owner->failures); /* checked: made as one */
		if (!failures.contains(self.entity.c_str()))
			failures[self.entity.c_str()] = error;
	}
	nb::object line = nb::module_::import_("weir.errors").attr("line_of")(error, self.entity.c_str());
	self.end(WEIR_E_FAILED, nb::cast<std::string>(line).c_str());
}

/* The run has ended without it. */
static void completion_drop(Completion &self)
{
	if (is_ours(self.core.get()))
		self.end(WEIR_E_FAILED, "it was cancelled, as the run has ended");
}

/* The receivers get the message, which is taken. A failure of what it waited for has ended the run. */
static void end_with(Completion &self, weir_message *result, weir_status status)
{
	if (!self.claim()) {
		weir_message_unref(result);
		return;
	}
	if (!status) {
		self.holder->message = result;
		self.holder->keeps = Keeps::MESSAGE;
	} else {
		weir_message_unref(result);
	}
	(void)weir_fence_complete(self.core->graph, self.fence, status,
				  status ? "the message that it returns failed" : nullptr);
}

/* Returns False if the result is a message that is unfinished: `finish` waits for it. */
static bool completion_succeed(Completion &self, nb::object value)
{
	Core *core = self.core.get();
	Draft draft;

	if (self.done || !is_ours(core))
		return true;
	if (!self.holder) {
		self.end(WEIR_OK, nullptr);
		settle();
		return true;
	}
	make_message(draft, {core, nullptr, nullptr, false, "", ""}, value);
	weir_message_lend(draft.message); /* the holder's message may have several receivers */
	weir_status status = wait_for_message(core, draft.message, 0);
	if (status == WEIR_E_BUSY) {
		self.result = draft.take();
		return false;
	}
	end_with(self, draft.take(), status);
	settle();
	return true;
}

/* Waits for the result that `succeed` left, or for the end of the run. */
static void completion_finish(Completion &self)
{
	Core *core = self.core.get();
	weir_status status = WEIR_E_BUSY;

	while (status == WEIR_E_BUSY && !self.done && is_ours(core) && !core->ending) {
		Using use(core);
		nb::gil_scoped_release released;
		status = wait_for_message(core, self.result, SLICE_NS);
	}
	if (!is_ours(core))
		return;
	if (status != WEIR_E_BUSY) {
		end_with(self, self.result, status);
		self.result = nullptr;
	}
	completion_drop(self);
	settle();
}

bool is_future(nb::handle value)
{
	PyObject *type = (PyObject *)Py_TYPE(value.ptr());

	return PyObject_HasAttrString(type, "add_done_callback") || PyObject_HasAttrString(type, "cr_await");
}

/* As weir does it for ports without `kinds`. */
static bool takes_objects(const weir_port *port)
{
	return port->kinds ? port->kinds & WEIR_KIND_USER : !port->dtype && !port->shape;
}

/* Whether "entity.port" is an input of that entity which takes no objects. */
static bool is_refusing_input(Core *core, const std::string &end)
{
	size_t dot = end.find('.');
	const weir_entity *receiver = weir_graph_entity(core->graph, end.substr(0, dot).c_str());
	const weir_port *port = receiver ? weir_entity_operator(receiver)->inputs : nullptr;

	for (; port && port->name && dot != std::string::npos; port++)
		if (end.substr(dot + 1) == port->name)
			return !takes_objects(port);
	return false;
}

void refuse_object(const Context &self, unsigned output, const char *what, const char *remedy)
{
	Core *core = self.core;
	const weir_port *port = &self.kind->ports[1][output];
	weir_queue_counts counts = {sizeof counts};
	std::string own = self.entity + "." + port->name, end = takes_objects(port) ? "" : own;

	weir_scheduler *scheduler = core->scheduler; /* NULL: it is being ended, and waits for this call */
	for (size_t i = 0; scheduler && end.empty() && !weir_scheduler_queue_counts(scheduler, i, &counts);
	     i++)
		if (own == counts.from && is_refusing_input(core, counts.to))
			end = counts.to;
	if (end.empty())
		return;
	raise(WEIR_E_INVALID,
	      (std::string(what) + " on output '" + port->name + "', and " + end +
	       " takes none, by its dtype, shape or kinds: " + remedy)
		      .c_str(),
	      self.name());
}

void emit_later(Context &self, unsigned output, weir_message *given, nb::handle future, nb::object stamp)
{
	Draft draft;
	weir_fence fence;
	Holder *holder = nullptr;

	self.later = true;
	draft.message = given;
	if (!given) {
		holder = take_holder();
		weir_status status = weir_message_wrap_user(self.core->graph, holder, let_go, &draft.message);
		if (status)
			drop_holder(holder);
		check(status, self.name());
	}
	if (!stamp.is_none())
		check(weir_message_set_stamp(draft.message, stamp_of(stamp)), self.name());
	check(weir_graph_create_fence(self.core->graph, &fence), self.name());
	nb::object completion = object_of<Completion>(self.core, fence, holder, self.entity, self.run);
	weir_status status = weir_context_emit_at(self.context, output, draft.take(), fence);
	if (status) { /* the message and its holder are gone */
		weir_error error = {sizeof error};
		nb::cast<Completion *>(completion)->holder = nullptr;
		weir_error_last(&error);
		std::string text = error.text;
		nb::cast<Completion *>(completion)->end(WEIR_OK, nullptr);
		if (status == WEIR_E_INVALID && !given)
			refuse_object(
				self, output, "a future was emitted, whose result travels as an object,",
				"emit the array that the future fills, ctx.emit(port, array, at=future), "
				"or leave these out of the port");
		raise(status, text.c_str(), self.name());
	}
	nb::module_::import_("weir.futures")
		.attr("watch")(future, completion, nb::find(self), self.entity.c_str());
}

/* What a message stands for: that of the future's result, if it is one of emit(port, future). Borrowed. */
weir_message *resolved_of(weir_message *message)
{
	Holder *holder;
	static nb::ft_mutex stamps_lock;

	if (weir_message_kind(message) != WEIR_KIND_USER)
		return message;
	holder = (Holder *)weir_message_data(message);
	if (!is_holder(holder) || holder->keeps != Keeps::MESSAGE)
		return message;
	nb::ft_lock_guard guard(stamps_lock);
	weir_stamp stamp = weir_message_stamp(holder->message), given = weir_message_stamp(message);
	if (!stamp.time && !stamp.tag && (given.time || given.tag))
		(void)weir_message_set_stamp(holder->message, given);
	return holder->message;
}

/* Pokes an entity from any thread, at any time. */
struct Waker {
	Ref core;
	weir_entity *entity;
};

static bool waker_wake(const Waker &self)
{
	Core *core = self.core.get();

	if (!is_ours(core) || core->ending || !core->scheduler)
		return false;
	Using use(core);
	return !core->ending && !weir_entity_poke(self.entity);
}

nb::object make_waker(Context &self)
{
	return object_of<Waker>(Ref(self.core), weir_context_entity(self.inside()));
}

void bind_futures(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Completion>(module, "Completion", "Completes what ctx.emit(port, future) has emitted.")
		.def("succeed", completion_succeed, arg("value").none(),
		     "The future's result. False: that is an unfinished message, for which `finish` waits.")
		.def("finish", completion_finish, "Waits for the result, on a thread of its own.")
		.def("drop", completion_drop, "The run has ended without it.")
		.def("fail", completion_fail, arg("error"), "Its exception, which ends the run.")
		.def_prop_ro(
			"done", [](const Completion &self) { return self.done.load(); },
			"True after either.");
	nb::class_<Waker>(module, "Waker", "What ctx.waker() gives: wakes the entity from any thread.")
		.def("wake", waker_wake,
		     "Asks for a review of the entity: its conditions are asked again. Any thread, at any "
		     "time; returns "
		     "False if no run is on.")
		.def("__repr__", [](const Waker &self) {
			return std::string("<weir.Waker of '") + weir_entity_name(self.entity) + "'>";
		});
	keep_types<Completion, Waker>();
}

} // namespace weir_python
