/* Graphs: kinds of operators, building, running, counting. */
#include "python/module.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cmath>

extern "C" {
#include "base/words.h"
}

namespace weir_python
{

/*
 * -- */

static const char *keep_text(Kind *kind, nb::handle text)
{
	return text.is_none() ? nullptr : kind->keep(nb::cast<std::string>(text));
}

static void add_ports(Kind *kind, int direction, nb::list ports)
{
	for (nb::handle port : ports) {
		weir_port own = {sizeof own};

		own.name = kind->keep(nb::cast<std::string>(port["name"]));
		own.flags = nb::cast<unsigned>(port["flags"]);
		own.kinds = nb::cast<unsigned>(port["kinds"]);
		own.capacity = nb::cast<uint32_t>(port["capacity"]);
		own.take = nb::cast<uint32_t>(port["take"]);
		own.max_emits = nb::cast<uint32_t>(port["max_emits"]);
		own.ahead = nb::cast<uint32_t>(port["ahead"]);
		own.policy = (weir_policy)nb::cast<int>(port["policy"]);
		own.help = kind->keep(nb::cast<std::string>(port["help"]));
		own.dtype = keep_text(kind, port["dtype"]);
		own.place = keep_text(kind, port["place"]);
		own.shape = keep_text(kind, port["shape"]);
		kind->ports[direction].push_back(own);
		kind->dense[direction].push_back(nb::cast<bool>(port["dense"]));
		kind->names[direction].push_back(PyUnicode_InternFromString(own.name));
	}
	kind->ports[direction].push_back({});
}

static void add_parameters(Kind *kind, nb::list parameters)
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
static void check_table(const Kind *kind)
{
	weir_registry *registry = nullptr;
	weir_status status = weir_registry_create(&registry);

	if (!status)
		status = weir_registry_add_operator(registry, &kind->table);
	weir_registry_destroy(registry);
	check(status);
}

static nb::object make_kind(nb::handle type, std::string name, std::string help, unsigned flags,
			    nb::list inputs, nb::list outputs, nb::list parameters,
			    std::vector<std::string> conditions)
{
	std::shared_ptr<Kind> kind(new Kind());

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
	nb::object handle = object_of<KindHandle>(kind);
	kind->type = type.inc_ref().ptr();
	return handle;
}

static void add_diagnostic(const weir_diagnostic *from, void *arg)
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

weir_status add_kinds(weir_registry *registry, void *arg)
{
	weir_status status = WEIR_OK;

	for (const KindHandle *handle : *(const std::vector<KindHandle *> *)arg)
		if (!status)
			status = weir_registry_add_operator(registry, &handle->kind->table);
	return status;
}

static void read_plan(Plan &plan, const std::string &source, bool is_path,
		      const std::vector<std::string> &sets, const std::vector<std::string> &plugins,
		      const std::vector<KindHandle *> &kinds)
{
	void *list = &plan.diagnostics;

	plan.check(weir_registry_create(&plan.registry));
	plan.check(add_kinds(plan.registry, (void *)&kinds));
	for (const std::string &plugin : plugins)
		plan.check(weir_registry_load(plan.registry, plugin.c_str()));
	if (is_path)
		plan.check(weir_description_read(source.c_str(), 0, add_diagnostic, list, &plan.description));
	else
		plan.check(weir_description_parse(source.data(), source.size(), add_diagnostic, list,
						  &plan.description));
	for (const std::string &set : sets)
		plan.check(weir_description_set(plan.description, set.c_str()));
	/* A port without a connection may get an inlet: whether the graph can be made, its creation tells. */
	(void)weir_description_check(plan.description, plan.registry, add_diagnostic, list);
}

/* All that is wrong with a graph. A failure that has no diagnostic is raised. */
static nb::object check_graph(std::string source, bool is_path, std::vector<std::string> sets,
			      std::vector<std::string> plugins, std::vector<KindHandle *> kinds)
{
	Plan plan;

	read_plan(plan, source, is_path, sets, plugins, kinds);
	(void)weir_description_check_files(plan.description, plan.registry, add_diagnostic,
					   &plan.diagnostics);
	return plan.diagnostics;
}

nb::object new_graph()
{
	std::unique_ptr<Core> made(new Core());
	nb::object graph = object_of<Graph>(made.get());
	Core *core = made.release();

	core->references.fetch_sub(1); /* the first count is the object's */
	core->owner->warnings = nb::list();
	core->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (core->ended < 0)
		raise(WEIR_E_IO, (std::string("the graph's eventfd: ") + wr_errno_words(errno)).c_str());
	std::lock_guard<std::mutex> guard(cores_lock);
	core->next = cores;
	cores = core;
	return graph;
}

static nb::object make_graph(std::string source, bool is_path, std::vector<std::string> sets,
			     std::vector<std::string> plugins, nb::list handles, nb::dict given,
			     bool check_writes)
{
	Plan plan;
	auto kinds = nb::cast<std::vector<KindHandle *>>(handles);

	settle();
	nb::object made = new_graph();
	Graph *graph = nb::inst_ptr<Graph>(made); /* checked: just made */
	graph->kinds = handles;
	graph->given = given;
	graph->core->check_writes = check_writes;
	for (const KindHandle *handle : kinds)
		graph->core->kinds.push_back(handle->kind);
	read_plan(plan, source, is_path, sets, plugins, kinds);
	plan.check(weir_graph_create(plan.registry, plan.description, &graph->core->graph));
	graph->core->registry = plan.registry;
	plan.registry = nullptr;
	graph->warnings = plan.diagnostics;
	return made;
}

static std::string show_graph(std::string source, bool is_path, int format, std::vector<std::string> sets,
			      std::vector<std::string> plugins, std::vector<KindHandle *> kinds)
{
	Plan plan;
	char *text;

	read_plan(plan, source, is_path, sets, plugins, kinds);
	plan.check(weir_description_print(plan.description, plan.registry, (weir_format)format, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

static nb::list ports_of(const weir_port *ports)
{
	nb::list out;

	for (; ports && ports->name; ports++)
		out.append(text_of(ports->name));
	return out;
}

/*
 * {"inputs": names, "outputs": names, "parameters": {name: JSON of its default, or None}, "describes": True:
 * its ports come of its parameters}; None: no such operator.
 */
static nb::object operator_table(std::string name, std::vector<std::string> plugins,
				 std::vector<KindHandle *> kinds)
{
	Plan plan;
	const weir_operator *table;
	nb::dict out, parameters;
	size_t i = 0;

	plan.check(weir_registry_create(&plan.registry));
	plan.check(add_kinds(plan.registry, (void *)&kinds));
	for (const std::string &plugin : plugins)
		plan.check(weir_registry_load(plan.registry, plugin.c_str()));
	while ((table = weir_registry_operator(plan.registry, i)) && name != table->name)
		i++;
	if (!table)
		return nb::none();
	for (const weir_parameter *one = table->parameters; one && one->name; one++)
		parameters[text_of(one->name)] = text_or_none(one->fallback);
	out["inputs"] = ports_of(table->inputs);
	out["outputs"] = ports_of(table->outputs);
	out["parameters"] = parameters;
	out["describes"] = table->describe != nullptr;
	return out;
}

/*
 * Its run is cut short, and what is left of it ends at the next `settle` outside of computes: one that waited
 * for the computes of another graph could wait for one that waits for it.
 */
static void leave_later(Core *core)
{
	{
		std::lock_guard<std::mutex> guard(core->consumers_lock); /* another thread may be ending it */
		if (core->scheduler)
			weir_scheduler_stop(core->scheduler, 0);
	}
	retire(core);
}

static void leave_core(Core *core)
{
	bool ended = !depth && end_scheduler(core);

	core->owner = nullptr;
	core->dropped = true;
	if (!ended)
		leave_later(core);
}

Graph::~Graph()
{
	if (core.get() && is_ours(core.get()))
		leave_core(core.get());
}

Core *open_core(const Graph &self)
{
	if (!self.core.get())
		raise(WEIR_E_STATE, "the graph is closed");
	check_open(self.core.get());
	return self.core.get();
}

static Core *running_core(const Graph &self)
{
	if (!self.core.get() || !open_core(self)->scheduler)
		raise(WEIR_E_INVALID, "the graph was not started");
	return self.core.get();
}

static bool is_of_python(const weir_entity *entity)
{
	return entity && weir_entity_operator(entity)->compute == operator_compute;
}

const char *first_of_python(const Core *core)
{
	weir_entity_counts counts = {sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(core->scheduler, i, &counts); i++)
		if (is_of_python(weir_graph_entity(core->graph, counts.entity)))
			return counts.entity;
	return nullptr;
}

static void refuse_sim(Core *core)
{
	const char *first = first_of_python(core);

	if (!first)
		return;
	std::string entity = first;
	end_scheduler(core);
	raise(WEIR_E_UNSUPPORTED, NOT_ON_SIM, entity.c_str());
}

static void on_ended(weir_scheduler *, void *arg)
{
	uint64_t one = 1;

	if (write(((Core *)arg)->ended, &one, sizeof one) < 0)
		return; /* it is readable already */
}

template <typename Field> void give(nb::dict options, const char *name, Field &field)
{
	if (options.contains(name))
		field = nb::cast<Field>(options[name]);
}

/* A zero that was given is a value, not "as in the description". */
template <typename Field> void give_value(nb::dict options, const char *name, Field &field)
{
	give(options, name, field);
	if (!field && options.contains(name))
		field = (Field)WEIR_NONE;
}

void note_backend(Core *core, int strict)
{
	weir_backend backend = weir_scheduler_backend(core->scheduler);

	core->simulated = backend == WEIR_BACKEND_SIM;
	core->on_cuda = backend == WEIR_BACKEND_CUDA;
	core->strict = strict ? strict > 0 && !core->on_cuda : core->simulated;
}

/* One thread starts a graph, and no run is on. */
class Starting
{
      public:
	explicit Starting(Core *of) : core(of)
	{
		if (core->starting)
			raise(WEIR_E_STATE, "another thread is starting this graph");
		if (core->scheduler && weir_scheduler_running(core->scheduler))
			raise(WEIR_E_STATE,
			      "a run of this graph is on: wait for its end, or stop it and wait, "
			      "before the next start");
		core->starting = true;
	}
	~Starting()
	{
		core->starting = false;
	}

      private:
	Ref core;
};

/* Ends the scheduler of the run before, if there is one. */
static void make_scheduler(Graph &self, nb::dict from)
{
	Core *core = open_core(self);
	Starting starting(core);
	weir_scheduler_options options = {sizeof options};
	std::string texts[3];
	const char *names[3] = {"backend", "signal", "root"};
	const char **fields[3] = {&options.backend, &options.signal, &options.root};
	bool statistics = false, trace = false;
	weir_status status;

	for (int i = 0; i < 3; i++) {
		give(from, names[i], texts[i]);
		*fields[i] = texts[i].empty() ? nullptr : texts[i].c_str();
	}
	give(from, "workers", options.workers);
	give_value(from, "seed", options.seed);
	give_value(from, "drain", options.drain_ns);
	give_value(from, "deadlock_grace", options.deadlock_grace_ns);
	give_value(from, "max_duration", options.max_duration_ns);
	give_value(from, "worker_spin", options.worker_spin_ns);
	give(from, "max_in_flight", options.max_in_flight);
	give(from, "skip", options.skip);
	give(from, "statistics", statistics);
	give(from, "trace", trace);
	give(from, "trace_events", options.trace_events);
	give(from, "gpu_time", options.gpu_time);
	give(from, "strict", options.strict);
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

/* (entity or None, text) of the first write that check_writes found, or None. */
static nb::object take_written(Graph &self)
{
	std::string entity, text;

	settle();
	if (!self.core.get())
		return nb::none();
	Ref core(self.core); /* a finalizer of the program's may close the graph */
	check_all_kept(core.get());
	{
		std::lock_guard<std::mutex> guard(core->consumers_lock);
		entity = core->written_by;
		text.swap(core->written);
	}
	if (text.empty())
		return nb::none();
	return nb::make_tuple(entity.empty() ? nb::none() : text_of(entity.c_str()), text_of(text.c_str()));
}

/* Ctrl-C came while the run was started: nothing goes on behind the exception. */
static void cut_run(Core *core)
{
	nb::gil_scoped_release released;

	weir_scheduler_stop(core->scheduler, 0);
	(void)weir_scheduler_wait(core->scheduler, -1, nullptr);
}

/* Returns None, or the arguments of weir.errors.make for what failed. */
static nb::object start_run(Graph &self)
{
	Core *core = running_core(self);
	uint64_t count;
	weir_status status;
	Starting starting(core);
	Using use(core);
	(void)take_written(self);

	settle();
	if (!weir_scheduler_running(core->scheduler) && read(core->ended, &count, sizeof count) >= 0)
		count = 0; /* the end of the run before */
	self.runs++;
	{
		nb::gil_scoped_release released;
		status = weir_scheduler_start(core->scheduler);
	}
	if (!status && PyErr_CheckSignals()) {
		nb::python_error interrupt;
		cut_run(core);
		throw interrupt;
	}
	if (!status)
		return nb::none();
	weir_error error = {sizeof error};
	nb::dict failed;

	weir_error_last(&error);
	failed["status"] = (int)status;
	failed["text"] = text_of(weir_last_error());
	failed["entity"] = text_or_none(error.entity);
	failed["said"] = text_of(error.text);
	failed["cause"] = cause_or_none(error.cause);
	failed["on"] = text_or_none(error.on);
	return failed;
}

int64_t slice_of(const Core *core)
{
	return core->simulated ? SLICE_SIM_NS : SLICE_NS;
}

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

void check_waited(const Core *core, weir_status status)
{
	if (status == WEIR_E_TIMEOUT)
		check_open(core);
	check(status);
}

static nb::dict outcome_of(const weir_outcome *outcome)
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
static nb::object wait_run(Graph &self, nb::object timeout)
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
			weir_scheduler_stop(core->scheduler, !interrupt.is_valid() ? WEIR_STOP_DRAIN : 0);
			interrupt = nb::borrow(error.value());
			limit = -1;
		}
	}
	if (status != WEIR_E_TIMEOUT)
		drain_log();
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
static void collect_dropped(Graph &self, nb::object timeout)
{
	Core *core = open_core(self);
	int64_t limit = limit_of(timeout);
	Using use(core);

	check_waited(core,
		     in_slices(core, limit, [&](int64_t ns) { return weir_graph_collect(core->graph, ns); }));
}

static void stop_run(Graph &self, bool drain)
{
	if (self.core.get() && !finished && open_core(self)->scheduler)
		weir_scheduler_stop(self.core->scheduler, drain ? WEIR_STOP_DRAIN : 0);
}

/* Of a graph that is not closed, nor made before a fork. */
static void fail_run(Graph &self, const char *text)
{
	Core *core = self.core.get();

	if (core && is_ours(core) && !core->ending && core->scheduler)
		check(weir_scheduler_fail(core->scheduler, WEIR_E_FAILED, text));
}

static void close_graph(Graph &self)
{
	Core *core = self.core.get();

	if (!core || !is_ours(core))
		return;
	if (is_inside(core))
		raise(WEIR_E_STATE, "a graph is not closed by an operator: finish or drain instead");
	if (core->starting || (!depth && !end_scheduler(core)))
		raise(WEIR_E_BUSY, "another thread is inside a call of this graph");
	core->owner = nullptr;
	core->dropped = true;
	if (depth)
		leave_later(core);
	self.kinds = nb::list();
	self.given = nb::dict();
	self.core.reset();
	settle();
}

/* Asks the scheduler, if there is one: none while the graph is being closed, or made anew by a start. */
static bool ask(const Graph &self, bool (*question)(const weir_scheduler *))
{
	Core *core = self.core.get();

	if (!core)
		return false;
	check_core(core);
	return !core->ending && core->scheduler && question(core->scheduler);
}

static void add_explanation(const weir_unmet *unmet, void *arg)
{
	((nb::list *)arg)
		->append(nb::make_tuple(text_of(unmet->entity), text_of(unmet->condition),
					text_of(unmet->verdict), text_of(unmet->detail)));
}

static nb::object explain_run(Graph &self)
{
	nb::list out;

	weir_scheduler_explain(running_core(self)->scheduler, add_explanation, &out);
	return out;
}

static void add_unmet(const weir_unmet *unmet, void *arg)
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

static nb::list explain_causes(Graph &self)
{
	nb::list out;

	weir_scheduler_explain(running_core(self)->scheduler, add_unmet, &out);
	return out;
}

static std::string explain_line(Graph &self)
{
	char *text;

	check(weir_scheduler_explain_line(running_core(self)->scheduler, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

static std::string statistics_text(Graph &self)
{
	char *text;

	check(weir_scheduler_print_statistics(running_core(self)->scheduler, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

static std::string metrics_text(Graph &self)
{
	char *text;

	check(weir_scheduler_print_metrics(running_core(self)->scheduler, &text));
	std::unique_ptr<char, void (*)(char *)> guard(text, weir_text_free);
	return text;
}

/* Returns how many records were dropped. */
static uint64_t write_trace(Graph &self, const char *path)
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

static nb::dict replay_counts(const weir_entity_counts &counts)
{
	nb::dict out;

	out["hits"] = counts.replay_hits;
	out["captures"] = counts.replay_captures;
	out["evictions"] = counts.replay_evictions;
	out["failures"] = counts.replay_failures;
	return out;
}

static nb::object entity_counts(Graph &self)
{
	weir_scheduler *scheduler = running_core(self)->scheduler;
	weir_entity_counts counts = {sizeof counts};
	nb::dict all;

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		nb::dict out;
		out["ticks"] = counts.ticks;
		out["received"] = counts.received;
		out["emitted"] = counts.emitted;
		out["unconnected"] = counts.unconnected;
		out["done"] = counts.done;
		out["lost"] = counts.lost;
		out["most_in_flight"] = counts.most_in_flight;
		out["most_scratch"] = counts.most_scratch;
		out["held"] = counts.held;
		out["instances"] = counts.instances;
		out["unsent"] = counts.unsent;
		out["replay"] = replay_counts(counts);
		all[text_of(counts.entity)] = out;
	}
	return all;
}

static nb::object queue_counts(Graph &self)
{
	weir_scheduler *scheduler = running_core(self)->scheduler;
	weir_queue_counts counts = {sizeof counts};
	nb::list all;

	for (size_t i = 0; !weir_scheduler_queue_counts(scheduler, i, &counts); i++) {
		nb::dict out;
		out["from"] = text_of(counts.from);
		out["to"] = text_of(counts.to);
		out["pushed"] = counts.pushed;
		out["delivered"] = counts.delivered;
		out["dropped"] = counts.dropped;
		out["unmatched"] = counts.unmatched;
		out["reused"] = counts.reused;
		out["closed"] = counts.closed;
		out["queued"] = counts.queued;
		out["abandoned"] = counts.abandoned;
		out["capacity"] = counts.capacity;
		all.append(out);
	}
	return all;
}

static nb::object pool_counts(Graph &self)
{
	weir_scheduler *scheduler = running_core(self)->scheduler;
	weir_pool_counts counts = {sizeof counts};
	nb::dict all;

	for (size_t i = 0; !weir_scheduler_pool_counts(scheduler, i, &counts); i++) {
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

static weir_entity *entity_of(Graph &self, const char *name)
{
	weir_entity *entity = weir_graph_entity(open_core(self)->graph, name);

	if (!entity)
		throw nb::key_error(name);
	return entity;
}

static int graph_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	if (!nb::inst_ready(object))
		return 0;
	Graph *self = nb::inst_ptr<Graph>(object); /* checked: a slot of the type */
	Py_VISIT(self->instances.ptr());
	Py_VISIT(self->failures.ptr());
	Py_VISIT(self->kinds.ptr());
	Py_VISIT(self->given.ptr());
	return 0;
}

static int graph_clear(PyObject *object)
{
	Graph *self = nb::inst_ptr<Graph>(object); /* checked: a slot of the type */

	self->instances = nb::dict();
	self->failures = nb::dict();
	self->kinds = nb::list();
	self->given = nb::dict();
	return 0;
}

static int kind_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	if (nb::inst_ready(object)) /* checked: a slot of the type */
		Py_VISIT(nb::inst_ptr<KindHandle>(object)->kind->type);
	return 0;
}

static int kind_clear(PyObject *object)
{
	Py_CLEAR(nb::inst_ptr<KindHandle>(object)->kind->type); /* checked: a slot of the type */
	return 0;
}

PyType_Slot kind_slots[] = {
	{Py_tp_traverse, (void *)kind_traverse},
	{Py_tp_clear, (void *)kind_clear},
	{0, nullptr},
};

PyType_Slot graph_slots[] = {
	{Py_tp_traverse, (void *)graph_traverse},
	{Py_tp_clear, (void *)graph_clear},
	{0, nullptr},
};

static int backend_of(Graph &self)
{
	return (int)weir_scheduler_backend(running_core(self)->scheduler);
}

void bind_graph(nb::module_ &module)
{
	using nb::arg;

	nb::class_<KindHandle>(module, "Kind", nb::type_slots(kind_slots));
	module.def("make_kind", make_kind);
	nb::class_<Graph>(module, "Graph", nb::type_slots(graph_slots))
		.def_ro("instances", &Graph::instances)
		.def_ro("failures", &Graph::failures)
		.def_ro("runs", &Graph::runs)
		.def_ro("warnings", &Graph::warnings)
		.def("create", make_scheduler)
		.def("take_written", take_written)
		.def("closed", [](Graph &self) { return !self.core.get(); })
		.def("has_scheduler", [](Graph &self) { return open_core(self)->scheduler != nullptr; })
		.def("start", start_run)
		.def("wait", wait_run, arg("timeout").none())
		.def("stop", stop_run)
		.def("fail", fail_run)
		.def("collect", collect_dropped, arg("timeout").none())
		.def("close", close_graph)
		.def("running", [](Graph &self) { return ask(self, weir_scheduler_running); })
		.def("stopping", [](Graph &self) { return ask(self, weir_scheduler_stopping); })
		.def("backend", backend_of)
		.def("where",
		     [](Graph &self) { return text_of(weir_scheduler_where(running_core(self)->scheduler)); })
		.def("now", [](Graph &self) { return weir_scheduler_now(running_core(self)->scheduler); })
		.def("explain", explain_run)
		.def("explain_causes", explain_causes)
		.def("explain_line", explain_line)
		.def("entity_counts", entity_counts)
		.def("statistics", statistics_text)
		.def("metrics", metrics_text)
		.def("write_trace", write_trace)
		.def("queue_counts", queue_counts)
		.def("pool_counts", pool_counts)
		.def("fileno", [](Graph &self) { return open_core(self)->ended; })
		.def("poke", [](Graph &self,
				const char *entity) { check(weir_entity_poke(entity_of(self, entity))); })
		.def("tell",
		     [](Graph &self, const char *entity, const char *condition, nb::handle told) {
			     tell_entity(entity_of(self, entity), condition, told, entity);
		     })
		.def("inlet", add_inlet)
		.def("outlet", add_outlet);
	keep_types<KindHandle, Graph>();
	module.def("make_graph", make_graph);
	module.def("show_graph", show_graph);
	module.def("check_graph", check_graph);
	module.def("operator_table", operator_table);
}

} // namespace weir_python
