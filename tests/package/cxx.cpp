/* weir.hpp: what it promises beyond weir.h. Prints the first promise that does not hold. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <weir.hpp>

#define HOLDS(what) ((what) ? (void)0 : fail(__LINE__, #what))

static void fail(int line, const char *what)
{
	std::printf("%d: does not hold: %s; last error: %s\n", line, what, weir_last_error());
	std::exit(1);
}

static int alive, stopped;
static std::size_t last_seen;

struct counted {
	counted(weir::context &context, const weir_values *values) : least(weir_values_int(values, "least"))
	{
		HOLDS(!std::strcmp(context.name(), "c"));
		alive++;
	}
	counted(const counted &) = delete;
	~counted()
	{
		alive--;
	}
	static void describe(weir::kind &kind)
	{
		kind.help("counts").input("in").parameter("least", WEIR_TYPE_INT, "7", "a number");
	}
	void compute(weir::context &context)
	{
		seen += context.count();
	}
	void stop(weir::context &)
	{
		stopped++;
		last_seen = seen;
		HOLDS(least == 8);
	}

	int64_t least;
	std::size_t seen = 0;
};

struct refuses {
	static void describe(weir::kind &kind)
	{
		kind.output("out");
	}
	refuses()
	{
		throw std::runtime_error("no camera");
	}
	void compute(weir::context &)
	{
	}
};

/* Runs "a -> c" with a source that does `body`; returns the error's text, "" if there was none. */
static std::string run_with(void (*body)(weir::context &), const char *sink = "counted")
{
	weir::registry registry;
	weir::description description;

	registry.add(weir::kind("source").output("out").compute(body));
	registry.add<counted>("counted");
	description.entity("a", "source").entity("c", sink).connect("a.out", "c.in").set("c.least=8");
	weir::graph graph(registry, description);
	weir::scheduler scheduler(graph);

	try {
		scheduler.run();
	} catch (const weir::error &error) {
		HOLDS(error.entity() == "a" && std::string(error.what()) == "a: " + error.text());
		HOLDS(error.cause() == WEIR_CAUSE_COMPUTE);
		return std::to_string(error.status()) + " " + error.text();
	}
	return "";
}

static void three(weir::context &context)
{
	context.emit(0, weir::message::empty(context.graph()));
	if (context.tick() == 2)
		context.finish();
}

static void an_object_lives_from_start_to_stop()
{
	HOLDS(run_with(three).empty());
	HOLDS(!alive && stopped == 1 && last_seen == 3);
}

static void no_exception_crosses_c()
{
	stopped = 0;
	HOLDS(run_with([](weir::context &) { throw std::runtime_error("100% empty"); }) == "-11 100% empty");
	HOLDS(run_with([](weir::context &) { throw 7; }) == "-11 an exception that is no std::exception");
	HOLDS(run_with([](weir::context &) { throw std::bad_alloc(); }) == "-2 out of memory");
	HOLDS(run_with([](weir::context &context) { context.emit(9, context.bytes(1)); }).rfind("-1 ", 0) ==
	      0);
}

static char copied[6];

static void a_copy_is_one_call()
{
	HOLDS(run_with([](weir::context &context) {
		      context.copy(copied, "bytes", sizeof copied);
		      context.finish();
	      }).empty());
	HOLDS(!std::strcmp(copied, "bytes"));
	HOLDS(run_with([](weir::context &context) { context.copy(nullptr, "bytes", 1); }).rfind("-1 ", 0) == 0);
}

static void a_constructor_that_throws_fails_the_start()
{
	weir::registry registry;
	weir::description description;

	registry.add<refuses>("refuses");
	registry.add<counted>("counted");
	description.entity("a", "refuses").entity("c", "counted").connect("a.out", "c.in");
	weir::graph graph(registry, description);
	weir::scheduler scheduler(graph);

	try {
		scheduler.start();
		HOLDS(!"it started");
	} catch (const weir::error &error) {
		HOLDS(error.text() == "no camera" && error.cause() == WEIR_CAUSE_START);
	}
	HOLDS(!alive);
}

static void messages_count_their_references()
{
	weir::description description = weir::description::parse(
		"{\"weir\": 1, \"entities\": [{\"name\": \"p\", \"operator\": \"print\"}]}");
	weir::graph graph(description);
	int64_t shape = 4, freed = 0;
	weir_tensor tensor{};
	char memory[4];

	tensor.size = sizeof tensor;
	tensor.data = memory;
	tensor.device = WEIR_DEVICE_HOST;
	tensor.dimensions = 1;
	tensor.shape = &shape;
	tensor.code = 1;
	tensor.bits = 8;
	weir::message one = weir::message::wrap(graph.get(), tensor, [&freed] { freed++; });
	{
		weir::message two = one, three;

		HOLDS(!weir_message_unique(one.get()));
		three = std::move(two);
		HOLDS(!two && three && three.data<char>() == memory && three.size() == 4);
	}
	HOLDS(weir_message_unique(one.get()) && !freed);
	one = weir::message();
	HOLDS(freed == 1);
}

static void what_fails_throws_with_status_and_text()
{
	try {
		weir::graph::open("no/such.json");
		HOLDS(!"it opened");
	} catch (const weir::error &error) {
		HOLDS(error.status() == WEIR_E_IO && std::strstr(error.what(), "no/such.json"));
	}
}

static void an_inlet_keeps_what_it_has_no_room_for()
{
	weir::registry registry;
	weir::description description;

	registry.add<counted>("counted");
	description.entity("c", "counted").set("c.least=8");
	weir::graph graph(registry, description);
	weir::inlet in = graph.inlet("c.in");
	weir::message message = weir::message::empty(graph.get());

	try {
		in.push(message, 0);
		HOLDS(!"there is no run");
	} catch (const weir::error &error) {
		HOLDS(error.status() == WEIR_E_CLOSED && message);
	}
}

int main()
{
	an_object_lives_from_start_to_stop();
	no_exception_crosses_c();
	a_copy_is_one_call();
	a_constructor_that_throws_fails_the_start();
	messages_count_their_references();
	what_fails_throws_with_status_and_text();
	an_inlet_keeps_what_it_has_no_room_for();
	return 0;
}
