/* The same chain as Taskflow's pipeline: serial pipes, one token for each, one thread. */
#include "chain.h"

#include <chrono>
#include <cmath>
#include <new>
#include <vector>

#include <taskflow/taskflow.hpp>
#include <taskflow/algorithm/pipeline.hpp>

namespace {

struct chain {
	using pipe = tf::Pipe<>;

	tf::Executor executor{1};
	tf::Taskflow flow;
	uint64_t messages = 0, seen = 0;
	size_t entities;
	std::vector<pipe> pipes;
	tf::ScalablePipeline<std::vector<pipe>::iterator> pipeline;

	explicit chain(size_t count) : entities(count)
	{
		pipes.emplace_back(tf::PipeType::SERIAL, [this](tf::Pipeflow &at) {
			if (at.token() == messages)
				at.stop();
		});
		for (size_t i = 2; i < entities; i++)
			pipes.emplace_back(tf::PipeType::SERIAL, [](tf::Pipeflow &) {});
		pipes.emplace_back(tf::PipeType::SERIAL, [this](tf::Pipeflow &) { seen++; });
		pipeline.reset(entities, pipes.begin(), pipes.end());
		flow.composed_of(pipeline);
	}

	double run(uint64_t count)
	{
		messages = count;
		seen = 0;
		pipeline.reset();
		auto begin = std::chrono::steady_clock::now();
		executor.run(flow).wait();
		std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
		if (seen != messages)
			return std::nan("");
		return took.count() / (static_cast<double>(messages) * static_cast<double>(entities));
	}
};

} // namespace

void *taskflow_chain_create(size_t entities)
{
	return new (std::nothrow) chain(entities);
}

double taskflow_chain_run(void *self, uint64_t messages)
{
	return static_cast<chain *>(self)->run(messages);
}

void taskflow_chain_destroy(void *self)
{
	delete static_cast<chain *>(self);
}
