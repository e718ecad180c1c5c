/*
 * weir.hpp: weir.h for C++17 and newer. Header only; weir.h is the reference, and every call of it can be mixed
 * in, since each class here gives its C object by get().
 *
 *     weir::message                          a reference: copies add one, the destructor drops it
 *     weir::registry, weir::description,
 *     weir::graph, weir::scheduler           owners: they move, and destroy what they own
 *     weir::inlet, weir::outlet              ends of a graph, which owns them
 *     weir::kind, weir::context              an operator as a lambda or a class, and what it may call
 *     weir::copy                             one copy on a stream
 *     weir::error                            the exception of a call that fails
 *
 * On the program's side a call that fails throws weir::error. In an operator no exception crosses C: one that
 * leaves it ends the run as weir_context_fail does, with what(). Objects that are declared first are destroyed
 * last, so declare a registry before its graphs, and a graph before its scheduler and messages.
 */
#ifndef WEIR_HPP
#define WEIR_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir.h"

namespace weir {

/* --- errors --- */

/* what() is the line of weir_last_error(); text() is the line without the entity's name. */
class error : public std::runtime_error {
public:
	explicit error(weir_status status) : std::runtime_error(weir_last_error()), status_(status)
	{
		weir_error last{};

		last.size = sizeof last;
		if (weir_error_last(&last))
			return;
		cause_ = last.cause;
		entity_ = last.entity ? last.entity : "";
		text_ = last.text;
	}
	weir_status status() const noexcept { return status_; }
	weir_cause cause() const noexcept { return cause_; }
	const std::string &entity() const noexcept { return entity_; } /* "": none */
	const std::string &text() const noexcept { return text_; }

private:
	weir_status status_;
	weir_cause cause_ = WEIR_CAUSE_NONE;
	std::string entity_, text_;
};

inline void check(weir_status status)
{
	if (status)
		throw error(status);
}

/* --- device work --- */

/* Enqueues one copy, without a fence; several, rows and flags: weir_stream_copies. */
inline void copy(weir_stream *stream, void *to, const void *from, std::size_t bytes)
{
	weir_copy one{};

	one.size = sizeof one;
	one.to = to;
	one.from = from;
	one.row_bytes = bytes;
	check(weir_stream_copies(stream, &one, 1, 0, nullptr));
}

/* --- messages --- */

class message {
public:
	message() = default;
	/* Takes the reference; borrow() adds one. */
	explicit message(weir_message *taken) noexcept : own_(taken) {}
	message(const message &other) noexcept : own_(other.own_ ? weir_message_ref(other.own_) : nullptr) {}
	message(message &&other) noexcept : own_(std::exchange(other.own_, nullptr)) {}
	message &operator=(message other) noexcept
	{
		std::swap(own_, other.own_);
		return *this;
	}
	~message() { weir_message_unref(own_); }

	static message borrow(weir_message *lent) { return message(weir_message_ref(lent)); }
	static message empty(weir_graph *graph)
	{
		weir_message *out = nullptr;

		check(weir_message_create_empty(graph, &out));
		return message(out);
	}
	static message bytes(weir_graph *graph, std::size_t size)
	{
		weir_message *out = nullptr;

		check(weir_message_create_bytes(graph, size, &out));
		return message(out);
	}
	static message tensor(weir_graph *graph, const weir_tensor &like)
	{
		weir_message *out = nullptr;

		check(weir_message_create_tensor(graph, &like, &out));
		return message(out);
	}
	/* destroy() is called once, when host and device no longer use the memory; it must not throw. */
	template <typename Destroy>
	static message wrap(weir_graph *graph, const weir_tensor &tensor, Destroy destroy)
	{
		auto owned = std::make_unique<Destroy>(std::move(destroy));
		weir_message *out = nullptr;

		check(weir_message_wrap_tensor(
			graph, &tensor,
			[](void *arg) { (*std::unique_ptr<Destroy>(static_cast<Destroy *>(arg)))(); }, owned.get(),
			&out));
		owned.release();
		return message(out);
	}

	explicit operator bool() const noexcept { return own_ != nullptr; }
	weir_message *get() const noexcept { return own_; }
	weir_message *release() noexcept { return std::exchange(own_, nullptr); }
	template <typename T = void> T *data() const { return static_cast<T *>(weir_message_data(own_)); }
	std::size_t size() const { return weir_message_size(own_); }
	unsigned kind() const { return weir_message_kind(own_); }
	const weir_tensor *tensor() const { return weir_message_tensor(own_); }
	weir_stamp stamp() const { return weir_message_stamp(own_); }
	void set_stamp(weir_stamp stamp) { check(weir_message_set_stamp(own_, stamp)); }

private:
	weir_message *own_ = nullptr;
};

/* --- operators --- */

/* What an operator may call; for the rest pass get() to the functions of weir.h. */
class context {
public:
	explicit context(weir_context *own) noexcept : own_(own) {}
	weir_context *get() const noexcept { return own_; }
	weir_graph *graph() const { return weir_context_graph(own_); }
	const char *name() const { return weir_entity_name(weir_context_entity(own_)); }
	std::uint64_t tick() const { return weir_context_tick(own_); }
	std::uint64_t received(unsigned input) const { return weir_context_received(own_, input); }
	std::int64_t now() const { return weir_context_now(own_); }
	bool stopping() const { return weir_context_stopping(own_); }
	std::size_t count(unsigned input = 0) const { return weir_context_count(own_, input); }
	/* The i-th message of the input; empty if there is none. */
	weir::message message(unsigned input = 0, std::size_t i = 0) const
	{
		weir_message *lent = weir_context_message(own_, input, i);

		return lent ? weir::message::borrow(lent) : weir::message();
	}
	void emit(unsigned output, weir::message message)
	{
		check(weir_context_emit(own_, output, message.release()));
	}

	/* Emits the i-th message of the input without a reference of its own: once for each. */
	void forward(unsigned input, std::size_t i, unsigned output)
	{
		check(weir_context_forward(own_, input, i, output));
	}

	/* With an earlier point of the tick, or a fence of weir_graph_create_fence. */
	void emit_at(unsigned output, weir::message message, weir_fence fence)
	{
		check(weir_context_emit_at(own_, output, message.release(), fence));
	}
	weir::message tensor(const weir_tensor &like, unsigned flags = 0)
	{
		weir_message *out = nullptr;

		check(weir_context_create_tensor(own_, &like, flags, &out));
		return weir::message(out);
	}
	weir::message bytes(std::size_t size) { return weir::message::bytes(graph(), size); }
	weir_stream *stream()
	{
		weir_stream *out = nullptr;

		check(weir_context_stream(own_, &out));
		return out;
	}
	/* Enqueues the kernel on the current stream, with a copy of the arguments. */
	template <typename Arguments> void launch(const weir_kernel &kernel, const Arguments &arguments)
	{
		static_assert(std::is_trivially_copyable<Arguments>::value, "weir copies the arguments as bytes");
		check(weir_stream_launch(stream(), &kernel, &arguments, sizeof arguments));
	}
	/* Enqueues one copy on the current stream. */
	void copy(void *to, const void *from, std::size_t bytes) { weir::copy(stream(), to, from, bytes); }
	void finish() { check(weir_context_finish(own_)); }
	void log(weir_log_level level, const std::string &line) { weir_context_log(own_, level, "%s", line.c_str()); }

private:
	weir_context *own_;
};

namespace detail {

/* No exception leaves it. */
template <typename Body> weir_status guarded(weir_context *context, Body &&body) noexcept
{
	try {
		body();
		return WEIR_OK;
	} catch (const error &thrown) {
		weir_context_fail(context, "%s", thrown.text().c_str());
		return thrown.status();
	} catch (const std::bad_alloc &) {
		weir_context_fail(context, "out of memory");
		return WEIR_E_NOMEM;
	} catch (const std::exception &thrown) {
		return weir_context_fail(context, "%s", thrown.what());
	} catch (...) {
		return weir_context_fail(context, "an exception that is no std::exception");
	}
}

template <typename T, typename = void> struct has_stop : std::false_type {};
template <typename T>
struct has_stop<T, std::void_t<decltype(std::declval<T &>().stop(std::declval<context &>()))>> : std::true_type {};

/* The state that weir keeps for an entity: the object lives from start to stop. */
template <typename T> struct state {
	T *object;

	static weir_status start(weir_context *own, void *memory, const weir_values *values)
	{
		return guarded(own, [&] {
			(void)values;
			if constexpr (std::is_constructible<T, context &, const weir_values *>::value) {
				context here(own);
				static_cast<state *>(memory)->object = new T(here, values);
			} else {
				static_cast<state *>(memory)->object = new T();
			}
		});
	}
	static weir_status compute(weir_context *own, void *memory)
	{
		return guarded(own, [&] {
			context here(own);
			static_cast<state *>(memory)->object->compute(here);
		});
	}
	static void stop(weir_context *own, void *memory)
	{
		std::unique_ptr<T> object(std::exchange(static_cast<state *>(memory)->object, nullptr));

		(void)own;
		if constexpr (has_stop<T>::value)
			if (object)
				guarded(own, [&] {
					context here(own);
					object->stop(here);
				});
	}
};

} // namespace detail

/*
 * The table of an operator, filled call by call. Texts must live as long as the registry (literals do).
 *
 *     registry.add(weir::kind("half").input("in").output("out").compute([](weir::context &context) {
 *             if (context.tick() % 2 == 0)
 *                     context.emit(0, context.message());
 *     }));
 *
 * or by a class: an object of it lives from start to stop of each run. Its constructor takes nothing, or
 * (weir::context &, const weir_values *); compute(weir::context &) is a tick; stop(weir::context &) may be
 * missing. `describe` names it and its ports:
 *
 *     struct half {
 *             static void describe(weir::kind &kind) { kind.input("in").output("out"); }
 *             void compute(weir::context &context);
 *     };
 *     registry.add<half>("half");
 */
class kind {
public:
	explicit kind(const char *name)
	{
		table_.size = sizeof table_;
		table_.name = name;
	}
	kind(kind &&) = default;
	kind &operator=(kind &&) = default;

	kind &help(const char *text) & { return table_.help = text, *this; }
	kind &flags(unsigned flags) & { return table_.flags = flags, *this; }
	kind &input(const char *name, unsigned kinds = 0, unsigned flags = 0) &
	{
		return inputs_.push_back(port_of(name, kinds, flags)), *this;
	}
	kind &input(const weir_port &port) & { return inputs_.push_back(port), *this; }
	kind &output(const char *name, unsigned kinds = 0, unsigned flags = 0) &
	{
		return outputs_.push_back(port_of(name, kinds, flags)), *this;
	}
	kind &output(const weir_port &port) & { return outputs_.push_back(port), *this; }
	/* fallback: the default as JSON text; nullptr: the parameter is required. */
	kind &parameter(const char *name, weir_parameter_type type, const char *fallback, const char *text = nullptr) &
	{
		weir_parameter parameter{};

		parameter.size = sizeof parameter;
		parameter.name = name;
		parameter.type = type;
		parameter.fallback = fallback;
		parameter.help = text;
		return parameters_.push_back(parameter), *this;
	}
	kind &parameter(const weir_parameter &parameter) & { return parameters_.push_back(parameter), *this; }
	/* One function object for all entities of the kind: they may call it at the same time. */
	kind &compute(std::function<void(context &)> body) &
	{
		body_ = std::move(body);
		table_.compute = [](weir_context *own, void *) -> weir_status {
			return detail::guarded(own, [own] {
				context here(own);
				of(own).body_(here);
			});
		};
		return *this;
	}
	template <typename T> kind &objects() &
	{
		table_.state_size = sizeof(detail::state<T>);
		table_.start = detail::state<T>::start;
		table_.compute = detail::state<T>::compute;
		table_.stop = detail::state<T>::stop;
		return *this;
	}

	/* The same of a kind that has no name yet. */
	kind &&help(const char *text) && { return std::move(help(text)); }
	kind &&flags(unsigned flags) && { return std::move(this->flags(flags)); }
	template <typename... A> kind &&input(A &&...a) && { return std::move(input(std::forward<A>(a)...)); }
	template <typename... A> kind &&output(A &&...a) && { return std::move(output(std::forward<A>(a)...)); }
	template <typename... A> kind &&parameter(A &&...a) && { return std::move(parameter(std::forward<A>(a)...)); }
	template <typename Body> kind &&compute(Body &&body) && { return std::move(compute(std::forward<Body>(body))); }

	/* The registry borrows the table: the kind must stay where it is as long as the registry lives. */
	weir_status add_to(weir_registry *registry)
	{
		table_.inputs = ended(inputs_);
		table_.outputs = ended(outputs_);
		table_.parameters = ended(parameters_);
		return weir_registry_add_operator(registry, &table_);
	}

private:
	static weir_port port_of(const char *name, unsigned kinds, unsigned flags)
	{
		weir_port port{};

		port.size = sizeof port;
		port.name = name;
		port.kinds = kinds;
		port.flags = flags;
		return port;
	}
	template <typename Entry> static const Entry *ended(std::vector<Entry> &list)
	{
		if (list.empty() || list.back().name)
			list.push_back(Entry{});
		return list.data();
	}
	/* The table is its first member. */
	static const kind &of(weir_context *own)
	{
		return *reinterpret_cast<const kind *>(weir_entity_operator(weir_context_entity(own)));
	}

	weir_operator table_{};
	std::vector<weir_port> inputs_, outputs_;
	std::vector<weir_parameter> parameters_;
	std::function<void(context &)> body_;
};

/* For WEIR_PLUGIN: adds the operator class T; its table lives as long as the plugin. */
template <typename T> weir_status add(weir_registry *registry, const char *name) noexcept
{
	try {
		static kind table = [name] {
			kind made(name);

			T::describe(made);
			made.template objects<T>();
			return made;
		}();
		return table.add_to(registry);
	} catch (...) {
		return WEIR_E_NOMEM;
	}
}

/* --- owners --- */

namespace detail {

struct destroyer {
	void operator()(weir_registry *own) const noexcept { weir_registry_destroy(own); }
	void operator()(weir_description *own) const noexcept { weir_description_destroy(own); }
	void operator()(weir_graph *own) const noexcept { weir_graph_destroy(own); }
	void operator()(weir_scheduler *own) const noexcept { weir_scheduler_destroy(own); }
	void operator()(char *text) const noexcept { weir_text_free(text); }
};
template <typename C> using owned = std::unique_ptr<C, destroyer>;

/* The result of a function that gives through its last argument. */
template <typename C, typename Function, typename... Arguments>
owned<C> made(Function function, Arguments... arguments)
{
	C *out = nullptr;

	check(function(arguments..., &out));
	return owned<C>(out);
}

} // namespace detail

class registry {
public:
	registry() : own_(detail::made<weir_registry>(weir_registry_create)) {}
	weir_registry *get() const noexcept { return own_.get(); }
	void load(const char *path) { check(weir_registry_load(get(), path)); }
	void add(kind &&table)
	{
		kinds_->push_back(std::move(table));
		check(kinds_->back().add_to(get()));
	}
	template <typename T> void add(const char *name)
	{
		kind made(name);

		T::describe(made);
		made.template objects<T>();
		add(std::move(made));
	}

private:
	std::unique_ptr<std::list<kind>> kinds_ = std::make_unique<std::list<kind>>(); /* goes last */
	detail::owned<weir_registry> own_;
};

class description {
public:
	description() : own_(detail::made<weir_description>(weir_description_create)) {}
	static description read(const char *path)
	{
		return description(detail::made<weir_description>(weir_description_read, path, std::size_t{0},
								  static_cast<weir_diagnostic_fn *>(nullptr),
								  static_cast<void *>(nullptr)));
	}
	static description parse(const std::string &json)
	{
		return description(detail::made<weir_description>(weir_description_parse, json.c_str(), json.size(),
								  static_cast<weir_diagnostic_fn *>(nullptr),
								  static_cast<void *>(nullptr)));
	}
	weir_description *get() const noexcept { return own_.get(); }
	description &entity(const char *name, const char *kind)
	{
		return check(weir_description_add_entity(get(), name, kind)), *this;
	}
	description &connect(const char *from, const char *to)
	{
		return check(weir_description_connect(get(), from, to)), *this;
	}
	description &put(const char *pointer, const char *json)
	{
		return check(weir_description_put(get(), pointer, json)), *this;
	}
	description &set(const char *assignment) { return check(weir_description_set(get(), assignment)), *this; }
	description &use(const char *entity, const char *resource)
	{
		return check(weir_description_use(get(), entity, resource)), *this;
	}

private:
	explicit description(detail::owned<weir_description> own) : own_(std::move(own)) {}
	detail::owned<weir_description> own_;
};

class inlet {
public:
	explicit inlet(weir_inlet *own) noexcept : own_(own) {}
	weir_inlet *get() const noexcept { return own_; }
	/* Returns false if there was no room in time; the message is the caller's then. */
	bool push(message &message, std::int64_t timeout_ns = -1)
	{
		weir_status status = weir_inlet_push(own_, message.get(), timeout_ns);

		if (status == WEIR_E_BUSY || status == WEIR_E_TIMEOUT)
			return false;
		check(status);
		message.release();
		return true;
	}
	bool push(message &&message, std::int64_t timeout_ns = -1) { return push(message, timeout_ns); }
	void close() { weir_inlet_close(own_); }
	/* Readable when a push that found no room may come again. */
	int fd()
	{
		int out = -1;

		check(weir_inlet_fd(own_, &out));
		return out;
	}

private:
	weir_inlet *own_;
};

class outlet {
public:
	explicit outlet(weir_outlet *own) noexcept : own_(own) {}
	weir_outlet *get() const noexcept { return own_; }
	/* Empty: no more messages will come. Throws if none came in time (WEIR_E_TIMEOUT). */
	message take(std::int64_t timeout_ns = -1)
	{
		weir_message *out = nullptr;
		weir_status status = weir_outlet_take(own_, timeout_ns, &out);

		if (status == WEIR_E_CLOSED)
			return message();
		check(status);
		return message(out);
	}
	/* Takes no more in this run. */
	void close() { weir_outlet_close(own_); }
	int fd()
	{
		int out = -1;

		check(weir_outlet_fd(own_, &out));
		return out;
	}

private:
	weir_outlet *own_;
};

class graph {
public:
	static graph open(const char *path) { return graph(detail::made<weir_graph>(weir_graph_open, path)); }
	explicit graph(const description &from)
		: own_(detail::made<weir_graph>(weir_graph_create, static_cast<const weir_registry *>(nullptr),
						static_cast<const weir_description *>(from.get())))
	{
	}
	graph(const registry &kinds, const description &from)
		: own_(detail::made<weir_graph>(weir_graph_create, static_cast<const weir_registry *>(kinds.get()),
						static_cast<const weir_description *>(from.get())))
	{
	}
	weir_graph *get() const noexcept { return own_.get(); }
	weir_entity *entity(const char *name) const { return weir_graph_entity(get(), name); }
	weir::inlet inlet(const char *port)
	{
		weir_inlet *out = nullptr;

		check(weir_graph_add_inlet(get(), port, &out));
		return weir::inlet(out);
	}
	weir::outlet outlet(const char *port, std::uint32_t capacity = 0, unsigned flags = 0)
	{
		weir_outlet *out = nullptr;

		check(weir_graph_add_outlet(get(), port, capacity, flags, &out));
		return weir::outlet(out);
	}

private:
	explicit graph(detail::owned<weir_graph> own) : own_(std::move(own)) {}
	detail::owned<weir_graph> own_;
};

/* Options with their size set: the rest as in weir.h, 0 is not given. */
inline weir_scheduler_options options()
{
	weir_scheduler_options made{};

	made.size = sizeof made;
	return made;
}

class scheduler {
public:
	explicit scheduler(const graph &graph)
		: own_(detail::made<weir_scheduler>(weir_scheduler_create, graph.get(),
						    static_cast<const weir_scheduler_options *>(nullptr)))
	{
	}
	scheduler(const graph &graph, const weir_scheduler_options &options)
		: own_(detail::made<weir_scheduler>(weir_scheduler_create, graph.get(), &options))
	{
	}
	weir_scheduler *get() const noexcept { return own_.get(); }
	void run() { check(weir_scheduler_run(get())); }
	void start() { check(weir_scheduler_start(get())); }
	/* Throws if the run failed, or goes on after the time. The texts live until the next start. */
	weir_outcome wait(std::int64_t timeout_ns = -1)
	{
		weir_outcome outcome{};

		outcome.size = sizeof outcome;
		check(weir_scheduler_wait(get(), timeout_ns, &outcome));
		return outcome;
	}
	void stop(unsigned flags = 0) noexcept { weir_scheduler_stop(get(), flags); }
	/* Ends the run by what the program has met outside of it. */
	void fail(weir_status failure, const char *text)
	{
		check(weir_scheduler_fail(get(), failure, text));
	}
	bool running() const noexcept { return weir_scheduler_running(get()); }
	/* Why it stands still, in one line. */
	std::string explain() const
	{
		return detail::made<char>(weir_scheduler_explain_line, get()).get();
	}

private:
	detail::owned<weir_scheduler> own_;
};

} // namespace weir

#endif
