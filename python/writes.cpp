/*
 * What check_writes finds: arrays of the host into which the program writes after their emit or push. Each is
 * read when it is sent and when its message ends. If the program keeps it after that, it is read again when
 * it is sent once more, and at the end of the run: a program cannot know when a message ends, so a write that
 * met no reader this time meets one the next.
 */
#include "python/module.h"

namespace weir_python
{

struct Written {
	Core *core;               /* which no message outlives */
	std::string entity, port; /* entity "": pushed */
	weir_tensor tensor;
	int64_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	uint64_t sum;
};

static uint64_t sum_bytes(uint64_t sum, const unsigned char *from, size_t bytes)
{
	uint64_t word = 0;

	for (; bytes >= sizeof word; bytes -= sizeof word, from += sizeof word) {
		memcpy(&word, from, sizeof word);
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	for (; bytes; bytes--)
		sum = (sum ^ *from++) * UINT64_C(0x100000001b3);
	return sum;
}

static uint64_t sum_axis(uint64_t sum, const weir_tensor *tensor, int axis, const unsigned char *from)
{
	size_t element = tensor->bits / 8;

	if (axis == tensor->dimensions)
		return sum_bytes(sum, from, element);
	for (int64_t i = 0; i < tensor->shape[axis]; i++)
		sum = sum_axis(sum, tensor, axis + 1, from + i * tensor->strides[axis] * (int64_t)element);
	return sum;
}

static uint64_t sum_of(const weir_tensor *tensor)
{
	size_t bytes = tensor->bits / 8;

	if (tensor->strides && !is_dense(tensor))
		return sum_axis(1, tensor, 0, (const unsigned char *)tensor->data);
	for (int i = 0; i < tensor->dimensions; i++)
		bytes *= (size_t)tensor->shape[i];
	return sum_bytes(1, (const unsigned char *)tensor->data, bytes);
}

void drop_written(Holder *holder)
{
	delete holder->written;
	holder->written = nullptr;
}

/* The run ends: what its receivers saw is not what was emitted. */
static void note_write(const Written *written)
{
	Core *core = written->core;
	std::lock_guard<std::mutex> guard(core->consumers_lock);

	if (!core->written.empty())
		return;
	core->written_by = written->entity;
	core->written =
		(written->entity.empty() ? "inlet of " + written->port : "output '" + written->port + "'") +
		": the program wrote into an array after it had " +
		(written->entity.empty() ? "pushed" : "emitted") +
		" it: make a new array each time, or copy it";
	if (core->scheduler)
		weir_scheduler_stop(core->scheduler, 0);
}

void check_written(const Holder *holder)
{
	if (is_ours(holder->written->core) && sum_of(&holder->written->tensor) != holder->written->sum)
		note_write(holder->written);
}

/* --- arrays that the program keeps --- */

static void point(Written *written)
{
	written->tensor.shape = written->shape;
	written->tensor.strides = written->tensor.strides ? written->strides : nullptr;
}

/* What the array is a view of. */
static nb::object owner_of(nb::handle value)
{
	nb::object at = nb::borrow(value);

	for (int i = 0; i < 16; i++) {
		nb::object base = nb::steal(
			PyObject_GetAttrString(at.ptr(), PyMemoryView_Check(at.ptr()) ? "obj" : "base"));
		PyErr_Clear();
		if (!base.is_valid() || base.is_none())
			break;
		at = base;
	}
	return at;
}

/* Whether the owner's memory, which it may have moved, still has that of the tensor. */
static bool still_has(nb::handle owner, const weir_tensor *tensor)
{
	Py_buffer view;
	bool has = false;

	if (PyObject_GetBuffer(owner.ptr(), &view, PyBUF_FULL_RO)) {
		PyErr_Clear();
		return false;
	}
	if (PyBuffer_IsContiguous(&view, 'A')) {
		const char *begin = (const char *)tensor->data;
		has = begin >= view.buf && begin + extent_of(tensor) <= (const char *)view.buf + view.len;
	}
	PyBuffer_Release(&view);
	return has;
}

/* Looks at an array whose owner is alive. Returns whether that is so. */
static bool check_kept(const KeptArray &kept)
{
	nb::object owner = kept.owner();

	if (owner.is_none())
		return false;
	if (still_has(owner, &kept.written->tensor) && sum_of(&kept.written->tensor) != kept.written->sum)
		note_write(kept.written.get());
	return true;
}

/* Forgets those whose owners are gone, when they have become twice as many as were alive last time. */
static void forget_dead(Core *core)
{
	std::unordered_map<const void *, KeptArray> all;

	{
		std::lock_guard<std::mutex> guard(core->consumers_lock);
		if (core->kept.size() < core->kept_most)
			return;
		all.swap(core->kept);
	}
	for (auto at = all.begin(); at != all.end();)
		at = at->second.owner().is_none() ? all.erase(at) : std::next(at);
	std::lock_guard<std::mutex> guard(core->consumers_lock);
	core->kept.merge(all);
	core->kept_most = 2 * core->kept.size() + 64;
}

/* The array is sent: it is as the program left it when it sent it last. */
static void keep_watch(Core *core, const Written &written, nb::handle value)
{
	nb::object owner = owner_of(value), reference;

	if (!PyObject_CheckBuffer(owner.ptr()) || held_by<Message>(owner))
		return;
	try {
		reference = nb::module_::import_("weakref").attr("ref")(owner);
	} catch (nb::python_error &) { /* a type that has none: as bytearray */
		return;
	}
	forget_dead(core);
	auto copy = std::make_shared<Written>(written);
	point(copy.get());
	std::unique_lock<std::mutex> guard(core->consumers_lock);
	auto before = core->kept.extract(written.tensor.data);
	core->kept.emplace(written.tensor.data, KeptArray{reference, copy});
	guard.unlock();
	if (before)
		(void)check_kept(before.mapped());
}

void forget_kept(Core *core, const weir_tensor *tensor)
{
	std::unique_lock<std::mutex> guard(core->consumers_lock);
	auto before = core->kept.extract(tensor->data);
	guard.unlock();

	if (before)
		(void)check_kept(before.mapped());
}

void check_all_kept(Core *core)
{
	std::unordered_map<const void *, KeptArray> all;

	{
		std::lock_guard<std::mutex> guard(core->consumers_lock);
		all.swap(core->kept);
	}
	for (const auto &[data, kept] : all)
		(void)check_kept(kept);
}

void watch_writes(Holder *holder, const Destination &to, const weir_tensor *tensor, nb::handle value)
{
	std::unique_ptr<Written> written(new Written{to.core, to.entity, to.port, *tensor, {}, {}, 0});

	for (int i = 0; i < tensor->dimensions; i++) {
		written->shape[i] = tensor->shape[i];
		written->strides[i] = tensor->strides ? tensor->strides[i] : 0;
	}
	point(written.get());
	written->sum = sum_of(&written->tensor);
	keep_watch(to.core, *written, value);
	holder->written = written.release();
}

} // namespace weir_python
