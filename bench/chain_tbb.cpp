/* The same chain as oneTBB's flow graph: an input node, serial function nodes, one thread. */
#include "chain.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

namespace flow = oneapi::tbb::flow;

namespace {

struct chain {
	using node = flow::function_node<uint64_t, uint64_t>;

	oneapi::tbb::global_control one_thread{oneapi::tbb::global_control::max_allowed_parallelism, 1};
	flow::graph graph;
	uint64_t left = 0, seen = 0;
	std::vector<std::unique_ptr<node>> nodes;
	flow::input_node<uint64_t> source{graph, [this](oneapi::tbb::flow_control &control) {
		if (!left)
			control.stop();
		else
			left--;
		return left;
	}};
	flow::function_node<uint64_t> sink{graph, flow::serial, [this](uint64_t) { seen++; return flow::continue_msg(); }};

	explicit chain(size_t entities)
	{
		flow::sender<uint64_t> *last = &source;

		for (size_t i = 2; i < entities; i++) {
			nodes.push_back(std::make_unique<node>(graph, flow::serial, [](uint64_t message) { return message; }));
			flow::make_edge(*last, *nodes.back());
			last = nodes.back().get();
		}
		flow::make_edge(*last, sink);
	}

	double run(uint64_t messages)
	{
		left = messages;
		seen = 0;
		auto begin = std::chrono::steady_clock::now();
		source.activate();
		graph.wait_for_all();
		std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
		graph.reset();
		if (seen != messages)
			return std::nan("");	/* messages were lost: no figure */
		return took.count() / (static_cast<double>(messages) * static_cast<double>(nodes.size() + 2));
	}
};

} // namespace

void *tbb_chain_create(size_t entities)
{
	return new (std::nothrow) chain(entities);
}

double tbb_chain_run(void *self, uint64_t messages)
{
	return static_cast<chain *>(self)->run(messages);
}

void tbb_chain_destroy(void *self)
{
	delete static_cast<chain *>(self);
}
