/* Messages: what Python asks of them beside their arrays. */
#include "python/module.h"

namespace weir_python
{

nb::object message_of(weir_message *message, Core *core, uint64_t call)
{
	Message own(message, core);

	own.call = call;
	return object_of<Message>(std::move(own));
}

static const char *message_kind(const Message &self)
{
	check_process(self.core.get());
	switch (weir_message_kind(self.message)) {
	case WEIR_KIND_EMPTY:
		return "empty";
	case WEIR_KIND_BYTES:
		return "bytes";
	case WEIR_KIND_TENSOR:
		return "tensor";
	case WEIR_KIND_PARTS:
		return "parts";
	}
	return is_holder(weir_message_data(self.message)) ? "object" : "user";
}

static nb::object message_object(const Message &self)
{
	check_process(self.core.get());
	Holder *holder = (Holder *)weir_message_data(self.message);

	if (weir_message_kind(self.message) != WEIR_KIND_USER || !is_holder(holder))
		raise(WEIR_E_INVALID, ("the message is not an object of Python: its kind is " +
				       std::string(message_kind(self)))
					      .c_str());
	return nb::borrow(holder->object);
}

static nb::object message_part(const Message &self, const char *name)
{
	check_process(self.core.get());
	weir_message *part = weir_message_part(self.message, name);

	if (!part)
		throw nb::key_error(name);
	return message_of(weir_message_ref(part), self.core.get(), self.call);
}

static nb::object message_parts(const Message &self)
{
	nb::dict out;

	check_process(self.core.get());
	for (size_t i = 0; i < weir_message_parts(self.message); i++)
		out[text_of(weir_message_part_name(self.message, i))] = message_of(
			weir_message_ref(weir_message_part_at(self.message, i)), self.core.get(), self.call);
	return out;
}

static nb::object message_dtype(const Message &self)
{
	const weir_tensor *tensor = tensor_of(self);
	const Dtype *dtype = dtype_of(tensor->code, tensor->bits);

	return dtype ? text_of(dtype->name) : nb::none();
}

/* "Message(tensor, float32 on the host, shape (3, 4))" */
static std::string message_repr(const Message &self)
{
	const weir_tensor *tensor;
	std::string text = std::string("Message(") + message_kind(self);

	check_core(self.core.get());
	tensor = weir_message_tensor(self.message);
	if (tensor) {
		nb::object shape = numbers(tensor->shape, tensor->dimensions);
		text += ", " + described(tensor) + ", shape " + nb::cast<std::string>(nb::str(shape));
	}
	if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
		text += ", " + std::to_string(weir_message_size(self.message));
	if (weir_message_kind(self.message) == WEIR_KIND_USER && is_holder(weir_message_data(self.message)))
		text += ", " + nb::cast<std::string>(nb::type_name(message_object(self).type()));
	for (size_t i = 0; i < weir_message_parts(self.message); i++)
		text += (i ? " " : ", ") + std::string(weir_message_part_name(self.message, i));
	return text + ")";
}

/* Of the first element, for the keys of a replay. */
static uintptr_t message_address(const Message &self)
{
	check_core(self.core.get());
	if (!weir_message_tensor(self.message) && weir_message_kind(self.message) != WEIR_KIND_BYTES)
		raise(WEIR_E_INVALID, "the message is neither an array nor bytes");
	return (uintptr_t)weir_message_data(self.message);
}

static nb::object message_stamp(const Message &self)
{
	check_process(self.core.get());
	weir_stamp stamp = weir_message_stamp(self.message);

	return nb::make_tuple(stamp.time, stamp.tag);
}

bool pair_of(nb::handle value, nb::object &first, nb::object &second)
{
	nb::object both = nb::steal(PySequence_Check(value.ptr()) ? PySequence_Tuple(value.ptr()) : nullptr);

	PyErr_Clear();
	if (!both.is_valid() || PyTuple_Size(both.ptr()) != 2)
		return false;
	first = nb::borrow(PyTuple_GetItem(both.ptr(), 0));
	second = nb::borrow(PyTuple_GetItem(both.ptr(), 1));
	return true;
}

/* The number as an int of Python; nothing for what is none. */
static nb::object whole(nb::handle number)
{
	nb::object out = nb::steal(PyNumber_Index(number.ptr())); /* np.int64 has it, 1.0 does not */

	PyErr_Clear();
	return out;
}

weir_stamp stamp_of(nb::handle stamp)
{
	nb::object time, tag;

	if (pair_of(stamp, time, tag)) {
		time = whole(time);
		tag = whole(tag);
	}
	if (!time.is_valid() || !tag.is_valid())
		raise(WEIR_E_INVALID, "a stamp is (time, tag), two whole numbers");
	int64_t ns = PyLong_AsLongLong(time.ptr());
	uint64_t number = PyLong_AsUnsignedLongLong(tag.ptr());
	if (PyErr_Occurred())
		throw nb::python_error();
	return {ns, number};
}

static bool message_unique(Message &self)
{
	check_core(self.core.get());
	return self.writable = weir_message_unique(self.message);
}

PyType_Slot message_slots[] = {
	{Py_bf_getbuffer, (void *)get_buffer},
	{Py_bf_releasebuffer, (void *)release_buffer},
	{0, nullptr},
};

/* Parts; else the first axis, or bytes. */
static size_t message_len(const Message &self)
{
	check_core(self.core.get());
	const weir_tensor *tensor = weir_message_tensor(self.message);

	if (weir_message_kind(self.message) == WEIR_KIND_PARTS)
		return weir_message_parts(self.message);
	if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
		return weir_message_size(self.message);
	if (!tensor || !tensor->dimensions)
		throw nb::type_error("len() of a message is the number of its parts, its bytes, or the first "
				     "size of its shape");
	return (size_t)tensor->shape[0];
}

static nb::object message_names(const Message &self)
{
	check_core(self.core.get());
	nb::list out;

	if (weir_message_kind(self.message) != WEIR_KIND_PARTS)
		throw nb::type_error(
			"the message has no parts to iterate over: np.asarray(message) gives its array");
	for (size_t i = 0; i < weir_message_parts(self.message); i++)
		out.append(text_of(weir_message_part_name(self.message, i)));
	return nb::iter(out);
}

void bind_message(nb::module_ &module)
{
	using nb::arg;

	nb::class_<Message>(module, "Message", nb::type_slots(message_slots),
			    "What travels: an array, bytes, named parts, an object of Python, or nothing.")
		.def_prop_ro("kind", message_kind,
			     "\"tensor\", \"bytes\", \"object\", \"parts\", \"empty\" or \"user\".")
		.def("__repr__", message_repr)
		.def("__len__", message_len)
		.def("__bool__", [](const Message &) { return true; })
		.def("__iter__", message_names)
		.def("__contains__",
		     [](const Message &self, const char *name) {
			     check_core(self.core.get());
			     return weir_message_part(self.message, name) != nullptr;
		     })
		.def("__contains__", [](const Message &, nb::handle) { return false; })
		.def_prop_ro("object", message_object, "The object of Python that was emitted.")
		.def_prop_ro("parts", message_parts, "The named parts, a dict of messages.")
		.def("__getitem__", message_part)
		.def("__getitem__",
		     [](const Message &, nb::handle) -> nb::object {
			     throw nb::type_error(
				     "a message has parts by their names alone: "
				     "np.asarray(message)[...] is for the elements of its array");
		     })
		.def_prop_ro("dtype", message_dtype, "The type of the array's elements, \"float32\".")
		.def_prop_ro(
			"shape",
			[](Message &self) {
				return numbers(tensor_of(self)->shape, tensor_of(self)->dimensions);
			},
			"The sizes of the array, a tuple.")
		.def_prop_ro(
			"device", [](Message &self) { return tensor_of(self)->device; },
			"The number of the array's device; -1: the host.")
		.def_prop_ro(
			"nbytes",
			[](Message &self) {
				check_process(self.core.get());
				return weir_message_size(self.message);
			},
			"The bytes of the array, or of bytes; else 0.")
		.def_prop_ro("address", message_address, "The address of the first element.")
		.def_prop_ro("stamp", message_stamp, "(time, tag); (0, 0): none.")
		.def("unique", message_unique,
		     "Returns True if nobody else has the memory or reads it: then it may be written in "
		     "place.")
		.def("check_readable", check_readable,
		     "Raises why the host cannot read the array, if it cannot.")
		.def_prop_ro("__cuda_array_interface__", cuda_array_interface)
		.def_prop_ro("_bits", message_bits)
		.def("__dlpack_device__", message_dlpack_device)
		.def("__dlpack__", message_dlpack, nb::kw_only(), arg("stream") = nb::none(),
		     arg("max_version") = nb::none(), arg("dl_device") = nb::none(),
		     arg("copy") = nb::none());
	nb::class_<Object>(module, "Object",
			   "Passes a value as the object that it is, also an array or a dict.")
		.def(
			"__init__", [](Object *self, nb::object value) { new (self) Object{value}; },
			arg("value").none())
		.def("__repr__", [](const Object &self) {
			return "weir.Object(" + nb::cast<std::string>(nb::repr(self.value)) + ")";
		});
	keep_types<Message, Object>();
}

} // namespace weir_python
