/* Inlets and outlets: where a program feeds a graph, and takes from it. */
#include "python/module.h"

namespace weir_python
{

nb::object add_inlet(Graph &self, const char *port)
{
	weir_inlet *inlet;

	check(weir_graph_add_inlet(open_core(self)->graph, port, &inlet));
	return object_of<Inlet>(inlet, self.core, port);
}

nb::object add_outlet(Graph &self, const char *port, uint32_t capacity, bool early)
{
	weir_outlet *outlet;

	check(weir_graph_add_outlet(open_core(self)->graph, port, capacity, early ? WEIR_OUTLET_EARLY : 0,
				    &outlet));
	return object_of<Outlet>(outlet, self.core);
}

static void inlet_push(Inlet &self, nb::handle value, nb::object timeout, nb::object stamp, bool give)
{
	Core *core = self.core.get();
	int64_t limit = limit_of(timeout);
	weir_status status;
	Draft draft;

	check_open(core);
	make_message(draft, {core, nullptr, nullptr, give, "", self.port.c_str()}, value);
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

/*
 * For ends in asyncio: waits without the GIL, for some microseconds, which hold up the event loop. Not in a
 * simulated run, which the wait would execute.
 */
template <typename Call> static weir_status wait_briefly(Core *core, int64_t ns, Call call)
{
	Using use(core);
	nb::gil_scoped_release released;

	return call(core->simulated ? 0 : ns);
}

/*
 * As push, but waits at most `wait_ns`. None: it is pushed. If there is no room then: the message that was
 * made of the value, for the next try, which makes none.
 */
static nb::object inlet_try_push(Inlet &self, nb::handle value, nb::object stamp, bool give, int64_t wait_ns)
{
	Core *core = self.core.get();
	weir_status status;
	Draft draft;

	check_open(core);
	make_message(draft, {core, nullptr, nullptr, give, "", self.port.c_str()}, value);
	if (!stamp.is_none())
		check(weir_message_set_stamp(draft.message, stamp_of(stamp)));
	status = weir_inlet_push(self.inlet, draft.message, 0);
	if (status == WEIR_E_BUSY && wait_ns)
		status = wait_briefly(core, wait_ns, [&](int64_t ns) {
			return weir_inlet_push(self.inlet, draft.message, ns);
		});
	/* INVALID: a worker must not wait; all else that is invalid was told before the wait. */
	if (status == WEIR_E_BUSY || (wait_ns && (status == WEIR_E_TIMEOUT || status == WEIR_E_INVALID)))
		return message_of(draft.take(), core);
	check_waited(core, status);
	draft.take();
	settle();
	return nb::none();
}

static void inlet_close(Inlet &self)
{
	check_open(self.core.get());
	weir_inlet_close(self.inlet);
}

static nb::object taken_of(weir_message *message, Core *core)
{
	weir_message *result = resolved_of(message);

	if (result != message) {
		weir_message_ref(result);
		weir_message_unref(message);
	}
	return message_of(result, core);
}

static nb::object outlet_take(Outlet &self, nb::object timeout)
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
	return taken_of(message, core);
}

/* The next message, or None if none comes within `wait_ns`. */
static nb::object outlet_try_take(Outlet &self, int64_t wait_ns)
{
	Core *core = self.core.get();
	weir_message *message;
	weir_status status;

	check_open(core);
	status = weir_outlet_take(self.outlet, 0, &message);
	if (status == WEIR_E_TIMEOUT && wait_ns)
		status = wait_briefly(core, wait_ns, [&](int64_t ns) {
			return weir_outlet_take(self.outlet, ns, &message);
		});
	if (status == WEIR_E_TIMEOUT)
		return nb::none();
	check_waited(core, status);
	settle();
	return taken_of(message, core);
}

/* The next message, or None when no more will come. */
static nb::object outlet_next(Outlet &self)
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
	return taken_of(message, core);
}

static int inlet_fd(Inlet &self)
{
	int fd = -1;

	check_open(self.core.get());
	check(weir_inlet_fd(self.inlet, &fd));
	return fd;
}

static void outlet_close(Outlet &self)
{
	Core *core = self.core.get();

	check_open(core);
	Using use(core);
	{
		nb::gil_scoped_release released;
		weir_outlet_close(self.outlet);
	}
	settle();
}

static int outlet_fd(Outlet &self)
{
	int fd = -1;

	check_open(self.core.get());
	check(weir_outlet_fd(self.outlet, &fd));
	return fd;
}

void bind_ends(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Inlet>(module, "Inlet")
		.def("push", inlet_push, arg("value").none(), arg("timeout") = nb::none(),
		     arg("stamp") = nb::none(), arg("give") = false)
		.def("try_push", inlet_try_push, arg("value").none(), arg("stamp").none(), arg("give"),
		     arg("wait_ns") = 0)
		.def("fileno", inlet_fd)
		.def("close", inlet_close);
	nb::class_<Outlet>(module, "Outlet")
		.def("take", outlet_take, arg("timeout") = nb::none())
		.def("next_or_none", outlet_next)
		.def("try_take", outlet_try_take, arg("wait_ns") = 0)
		.def("close", outlet_close)
		.def("fileno", outlet_fd);
	keep_types<Inlet, Outlet>();
}

} // namespace weir_python
