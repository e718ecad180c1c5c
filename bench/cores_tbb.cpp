/*
 * The same graphs as oneTBB's flow graph: serial function nodes, a queueing join node before one of two inputs.
 * A message is counted, as weir's are. A sink tells its source when it has taken a message, and the source makes
 * the next one: so between the two there are at most `bound`, what weir's queues between them hold.
 */
#include "cores.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <tuple>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

namespace flow = oneapi::tbb::flow;

namespace {

struct message {
	std::atomic<size_t> references;
};

void drop(message *m)
{
	if (m->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
		delete m;
}

class entity {
public:
	entity(flow::graph &graph, const cores_node &its) : node(its)
	{
		if (node.inputs == 2) {
			join = std::make_unique<both>(graph);
			two = std::make_unique<flow::function_node<std::tuple<message *, message *>, message *>>(
				graph, flow::serial, [this](const std::tuple<message *, message *> &in) {
					message *m = compute(std::get<0>(in));
					drop(std::get<1>(in));
					return m;
				});
			flow::make_edge(*join, *two);
			return;
		}
		one = std::make_unique<flow::function_node<message *, message *>>(
			graph, flow::serial, [this](message *in) { return compute(in); });
	}

	void connect(entity &to, unsigned input)
	{
		flow::sender<message *> &out = two ? static_cast<flow::sender<message *> &>(*two) : *one;

		receivers++;
		if (!to.join)
			flow::make_edge(out, *to.one);
		else if (input)
			flow::make_edge(out, flow::input_port<1>(*to.join));
		else
			flow::make_edge(out, flow::input_port<0>(*to.join));
	}

	/* The source makes a message. */
	void feed()
	{
		one->try_put(nullptr);
	}

	const cores_node &node;
	entity *source = nullptr;   /* of a sink */
	uint64_t left = 0;	    /* of a sink: messages that it still asks its source for */
	uint64_t taken = 0, ticks = 0;

private:
	using both = flow::join_node<std::tuple<message *, message *>, flow::queueing>;

	message *compute(message *in)
	{
		ticks++;
		if (node.works)
			cores_work(cores_iterations);
		if (!node.inputs)
			return new message{{receivers}};
		if (node.emits) {
			in->references.fetch_add(receivers, std::memory_order_relaxed);
			drop(in);
			return in;
		}
		drop(in);
		if (++taken % node.share == 0 && left) {
			left--;
			source->feed();
		}
		return nullptr; /* nothing takes it */
	}

	size_t receivers = 0;
	std::unique_ptr<both> join;
	std::unique_ptr<flow::function_node<message *, message *>> one;
	std::unique_ptr<flow::function_node<std::tuple<message *, message *>, message *>> two;
};

struct tbb_graph {
	flow::graph graph;
	std::vector<std::unique_ptr<entity>> entities;
	uint64_t bound;

	explicit tbb_graph(const cores_shape &shape) : bound(shape.bound)
	{
		for (size_t i = 0; i < shape.nodes; i++)
			entities.push_back(std::make_unique<entity>(graph, shape.node[i]));
		for (size_t i = 0; i < shape.edges; i++)
			entities[shape.edge[i].from]->connect(*entities[shape.edge[i].to], shape.edge[i].input);
		for (auto &each : entities)
			if (each->node.source != CORES_NO_SOURCE)
				each->source = entities[static_cast<size_t>(each->node.source)].get();
	}

	uint64_t run(uint64_t messages)
	{
		uint64_t first = messages < bound ? messages : bound, ticks = 0;

		for (auto &each : entities) {
			each->left = messages - first;
			each->taken = each->ticks = 0;
		}
		for (auto &each : entities)
			for (uint64_t i = 0; !each->node.inputs && i < first; i++)
				each->feed();
		graph.wait_for_all();
		for (auto &each : entities)
			ticks += each->ticks;
		return ticks;
	}
};

/* Its threads spin for a while before they sleep: they would run beside what is measured next. */
void settle()
{
	for (int i = 0; i < 100; i++) {
		int64_t cpu = cores_cpu();

		std::this_thread::sleep_for(std::chrono::milliseconds(1));
		if (cores_cpu() - cpu < 50000)
			return;
	}
}

} // namespace

void *cores_tbb_open(const cores_shape *shape)
{
	return new (std::nothrow) tbb_graph(*shape);
}

struct cores_run cores_tbb_run(void *graph, unsigned threads, uint64_t messages)
{
	using clock = std::chrono::steady_clock;
	oneapi::tbb::global_control control(oneapi::tbb::global_control::max_allowed_parallelism, threads);
	int64_t cpu = cores_cpu();
	auto begun = clock::now();
	struct cores_run run = {};

	run.ticks = static_cast<tbb_graph *>(graph)->run(messages);
	run.wall = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - begun).count();
	run.cpu = cores_cpu() - cpu;
	settle();
	return run;
}

void cores_tbb_close(void *graph)
{
	delete static_cast<tbb_graph *>(graph);
}
