/*
 * A program in C++: it describes a graph with an operator of its own, pushes numbers into it and takes their
 * squares. weir.hpp turns calls that fail into exceptions, and exceptions of an operator into a run that fails.
 */
#include <cstdint>
#include <iostream>
#include <stdexcept>

#include <weir.hpp>

static void square(weir::context &context)
{
	std::int64_t number = *context.message().data<std::int64_t>();
	weir::message out = context.bytes(sizeof number);

	if (number > 3037000499)
		throw std::range_error("the square does not fit in 64 bits"); /* ends the run, with this text */
	*out.data<std::int64_t>() = number * number;
	context.emit(0, out);
}

static void run(std::int64_t from, std::int64_t to)
{
	weir::registry registry;
	weir::description description;

	registry.add(weir::kind("square").input("in", WEIR_KIND_BYTES).output("out").compute(square));
	description.entity("square", "square");

	weir::graph graph(registry, description);
	weir::inlet in = graph.inlet("square.in");
	weir::outlet out = graph.outlet("square.out");
	weir::scheduler scheduler(graph);

	scheduler.start();
	for (std::int64_t number = from; number < to; number++) {
		weir::message message = weir::message::bytes(graph.get(), sizeof number);

		*message.data<std::int64_t>() = number;
		in.push(std::move(message));
		if (weir::message result = out.take())
			std::cout << *result.data<std::int64_t>() << '\n';
		else
			break; /* the run has failed: wait says why */
	}
	in.close();
	scheduler.wait();
}

int main()
{
	try {
		run(1, 11);
		run(INT64_C(1) << 40, (INT64_C(1) << 40) + 1);
	} catch (const weir::error &error) {
		std::cout << weir_status_text(error.status()) << ": " << error.what() << '\n';
		return error.status() == WEIR_E_FAILED ? 0 : 1;
	}
	return 1;
}
