/*
 * A plugin in C++: `bright` counts the bright bytes of pictures and prints the result. An operator's
 * functions are called from C, so no exception may leave them: each body runs inside `guarded`. C++20
 * accepts designated initializers as C does; for C++17, functions fill the tables, as here.
 */
#include <cstdio>
#include <exception>
#include <new>
#include <numeric>
#include <stdexcept>

#include <weir.h>

namespace {

/* The state is zeroed memory that weir owns: start constructs the object in it, stop destroys it. */
class Bright {
public:
	explicit Bright(int64_t least) : least_(least) {}

	void count(const weir_tensor &picture)
	{
		const auto *begin = static_cast<const uint8_t *>(picture.data);
		const auto *end = begin + std::accumulate(picture.shape, picture.shape + picture.dimensions, int64_t{1},
							  [](int64_t a, int64_t b) { return a * b; });

		if (picture.code != 1 || picture.bits != 8 || picture.device != WEIR_DEVICE_HOST)
			throw std::invalid_argument("input 'in' expects a tensor of uint8 in host memory");
		all_ += end - begin;
		for (; begin < end; begin++)
			bright_ += *begin >= least_;
	}

	~Bright()
	{
		std::printf("%lld of %lld bytes are bright\n", static_cast<long long>(bright_), static_cast<long long>(all_));
	}

private:
	int64_t least_, bright_ = 0, all_ = 0;
};

template <typename Body> weir_status guarded(weir_context *context, Body body)
{
	try {
		body();
		return WEIR_OK;
	} catch (const std::exception &thrown) {
		return weir_context_fail(context, "%s", thrown.what());
	}
}

weir_status start(weir_context *context, void *state, const weir_values *values)
{
	return guarded(context, [&] { new (state) Bright(weir_values_int(values, "least")); });
}

weir_status compute(weir_context *context, void *state)
{
	return guarded(context, [&] {
		static_cast<Bright *>(state)->count(*weir_message_tensor(weir_context_message(context, 0, 0)));
	});
}

void stop(weir_context *, void *state)
{
	static_cast<Bright *>(state)->~Bright();
}

weir_parameter parameters[2];
weir_port inputs[2];
weir_operator bright;

weir_status add(weir_registry *registry)
{
	parameters[0].size = sizeof(weir_parameter);
	parameters[0].name = "least";
	parameters[0].type = WEIR_TYPE_INT;
	parameters[0].fallback = "128";
	parameters[0].max = 255;
	parameters[0].help = "a byte of this value is bright";
	inputs[0].size = sizeof(weir_port);
	inputs[0].name = "in";
	inputs[0].kinds = WEIR_KIND_TENSOR;
	inputs[0].help = "uint8, any dense shape, in host memory";
	bright.size = sizeof bright;
	bright.name = "bright";
	bright.help = "counts the bright bytes of pictures";
	bright.state_size = sizeof(Bright);
	bright.parameters = parameters;
	bright.inputs = inputs;
	bright.start = start;
	bright.compute = compute;
	bright.stop = stop;
	return weir_registry_add_operator(registry, &bright);
}

} // namespace

WEIR_PLUGIN(add);
