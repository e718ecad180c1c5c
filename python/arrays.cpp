/* Arrays: how they come in as messages, and how messages go out as arrays. */
#include "python/module.h"

#include <unistd.h>

namespace weir_python
{

const Dtype *dtype_of(int code, int bits)
{
	for (const auto &dtype : dtypes)
		if (dtype.code == code && dtype.bits == bits)
			return &dtype;
	return (decltype(&dtypes[0]))nullptr;
}

const Dtype *dtype_named(const char *name)
{
	for (const auto &dtype : dtypes)
		if (!strcmp(dtype.name, name))
			return &dtype;
	return (decltype(&dtypes[0]))nullptr;
}

bool is_dense(const weir_tensor *tensor)
{
	int64_t expected = 1;

	for (int i = tensor->dimensions; tensor->strides && i--;) {
		if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
			return false;
		expected *= tensor->shape[i];
	}
	return true;
}

std::string described(const weir_tensor *tensor)
{
	const Dtype *dtype = dtype_of(tensor->code, tensor->bits);
	std::string text = dtype ? dtype->name : "another type";

	text += tensor->device < 0 ? " on the host" : " on device " + std::to_string(tensor->device);
	return text + (is_dense(tensor) ? "" : ", not contiguous");
}

void check_dense(const Kind *kind, int direction, unsigned port, const weir_message *message,
		 const char *entity)
{
	const weir_tensor *tensor;
	std::string text;

	if (!kind->dense[direction][port])
		return;
	tensor = weir_message_tensor(message);
	text = std::string(direction ? "output '" : "input '") + kind->ports[direction][port].name + "'";
	if (!tensor)
		raise(WEIR_E_INVALID, (text + " expects an array").c_str(), entity);
	if (!is_dense(tensor))
		raise(WEIR_E_INVALID,
		      (text + " refuses an array of " + described(tensor) + ": it expects a contiguous one")
			      .c_str(),
		      entity);
}

/* The strides in elements of a buffer; false if it is dense, so that none are needed. */
static bool strides_of(const Py_buffer *view, int64_t *strides)
{
	if (PyBuffer_IsContiguous(view, 'C'))
		return false;
	for (int i = 0; i < view->ndim; i++) {
		if (view->strides[i] % view->itemsize)
			raise(WEIR_E_INVALID, "the array's strides are no multiples of its element");
		if (view->strides[i] < 0 && view->shape[i] > 1 && !view->readonly)
			raise(WEIR_E_INVALID, "the array has a negative stride: emit array.copy()");
		strides[i] = view->strides[i] / view->itemsize;
	}
	return true;
}

/* What the array's library calls the type of its elements; "": nothing. */
static std::string elements_name(nb::handle array)
{
	nb::object type = nb::steal(PyObject_GetAttrString(array.ptr(), "dtype"));
	nb::object name = type.is_valid() ? nb::steal(PyObject_Str(type.ptr())) : nb::object();
	const char *text = name.is_valid() ? PyUnicode_AsUTF8AndSize(name.ptr(), nullptr) : nullptr;
	std::string out = text ? text : "";

	PyErr_Clear();
	return out;
}

/* A type of elements that weir does not have: by its name, else by `format`. */
[[noreturn]] static void refuse_type(nb::handle array, const std::string &format)
{
	std::string name = elements_name(array);

	raise(WEIR_E_INVALID, ("arrays of " + (name.empty() ? "the format '" + format + "'" : name) +
			       " are not messages of weir: emit array.view(\"uint8\") or "
			       "array.astype(...), or weir.Object(array)")
				      .c_str());
}

/* The type of a buffer's elements: "B", "<f4" of NumPy is "f". */
static const Dtype *dtype_of_buffer(const Py_buffer *view, nb::handle array)
{
	const char *format = view->format ? view->format : "B";
	std::string whole = format;
	const char *found;

	format += strchr("@=<", *format) && *format;
	found = *format && !format[1] ? strchr("bhilqnBHILQNefdc?", *format) : nullptr;
	if (!found)
		refuse_type(array, whole);
	return dtype_of(strchr("bhilqn", *found)    ? 0
			: strchr("BHILQNc", *found) ? 1
			: *found == '?'             ? 6
						    : 2,
			(int)view->itemsize * 8);
}

/* numpy.ndarray, once NumPy is imported: by far the most arrays, and they are what they look like. Else NULL.
 */
static PyObject *ndarray()
{
	static std::atomic<PyObject *> known; /* relaxed: the class is there before NumPy's module is */
	PyObject *type = known.load(std::memory_order_relaxed);

	if (!type) {
		nb::object module = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
		type = module.is_valid() ? PyObject_GetAttrString(module.ptr(), "ndarray") : nullptr;
		PyErr_Clear();
		known.store(type, std::memory_order_relaxed);
	}
	return type;
}

/* An array of a subclass of NumPy's that has more than its elements. */
static void check_mask(nb::handle value)
{
	if ((PyObject *)Py_TYPE(value.ptr()) != ndarray() && nb::hasattr(value.type(), "mask"))
		raise(WEIR_E_INVALID,
		      "the array is masked, and a message has no mask: emit array.filled(...), "
		      "or {\"data\": array.data, \"mask\": array.mask}");
}

/*
 * Takes the buffer of an array. NumPy exports none for elements that it does not know itself: for bfloat16 of
 * ml_dtypes its bits are taken. Returns the type of the elements.
 */
static const Dtype *take_buffer(nb::handle value, Py_buffer *view)
{
	if (!PyObject_GetBuffer(value.ptr(), view, PyBUF_FULL_RO))
		return nullptr;
	nb::python_error error;
	std::string name = elements_name(value);
	if (name.empty())
		throw error;
	if (name != "bfloat16")
		refuse_type(value, "");
	nb::object bits = value.attr("view")("uint16");
	if (PyObject_GetBuffer(bits.ptr(), view, PyBUF_FULL_RO))
		throw nb::python_error();
	return dtype_named("bfloat16");
}

/* --- what is lent, and what is given away --- */

/* What np.asarray(message) and what is made of it by slices refer to in the end. */
static bool is_of_message(nb::handle value)
{
	nb::object at = nb::borrow(value);

	for (int i = 0; i < 16 && at.is_valid() && !at.is_none(); i++) {
		if (held_by<Message>(at))
			return true;
		at = nb::steal(
			PyObject_GetAttrString(at.ptr(), PyMemoryView_Check(at.ptr()) ? "obj" : "base"));
		PyErr_Clear();
	}
	return false;
}

size_t extent_of(const weir_tensor *tensor)
{
	size_t element = tensor->bits / 8, last = 0, count = 1;

	for (int i = 0; i < tensor->dimensions; i++) {
		if (!tensor->shape[i])
			return 0;
		if (tensor->strides)
			last += (size_t)((tensor->shape[i] - 1) * tensor->strides[i]);
		count *= (size_t)tensor->shape[i];
	}
	return (tensor->strides ? last + 1 : count) * element;
}

/*
 * The message of the program's array is lent, unless it was given away and nothing else in the graph is of
 * the same memory.
 */
static void lend_or_give(weir_message *message, Holder *holder, const Destination &to, bool read_only,
			 const weir_tensor *tensor, nb::handle value)
{
	holder->begin = (const char *)tensor->data;
	holder->bytes = extent_of(tensor);
	holder->given = to.give && !read_only;
	Shared shared = find_shared(holder);
	if (shared == Shared::GIVEN && !is_of_message(value))
		raise(WEIR_E_INVALID, "the array was given away, and the graph still has it: emit a copy",
		      *to.entity ? to.entity : nullptr);
	if (!holder->given)
		weir_message_lend(message);
	if (!to.core->check_writes || tensor->device >= 0)
		return;
	if (holder->given || to.filled)
		forget_kept(to.core, tensor);
	else
		watch_writes(holder, to, tensor, value);
}

/* Of negative strides, which weir has not. */
static void copy_buffer(Draft &draft, Core *core, const weir_tensor *like, Py_buffer *view)
{
	check(weir_message_create_tensor(core->graph, like, &draft.message));
	if (PyBuffer_ToContiguous(weir_message_data(draft.message), view, view->len, 'C'))
		throw nb::python_error();
}

static bool has_negative(const Py_buffer *view)
{
	for (int i = 0; i < view->ndim; i++)
		if (view->strides && view->strides[i] < 0 && view->shape[i] > 1)
			return true;
	return false;
}

static void from_buffer(Draft &draft, const Destination &to, nb::handle value)
{
	int64_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	std::unique_ptr<Holder, void (*)(Holder *)> guard(take_holder(), drop_holder);
	Holder *holder = guard.get();
	Py_buffer *view = &holder->buffer;
	weir_tensor tensor = {};
	weir_status status;

	check_mask(value);
	const Dtype *dtype = take_buffer(value, view);
	holder->keeps = Keeps::BUFFER;
	if (!dtype)
		dtype = dtype_of_buffer(view, value);
	if (view->ndim > WEIR_DIMENSIONS_MAX)
		raise(WEIR_E_INVALID, "arrays have at most 8 dimensions");
	for (int i = 0; i < view->ndim; i++)
		shape[i] = view->shape[i];
	tensor = {sizeof tensor, view->buf,   WEIR_DEVICE_HOST,
		  view->ndim,    shape,       strides_of(view, strides) ? strides : nullptr,
		  dtype->code,   dtype->bits, 1};
	if (has_negative(view)) {
		tensor.strides = nullptr;
		return copy_buffer(draft, to.core, &tensor, view);
	}
	status = weir_message_wrap_tensor(to.core->graph, &tensor, let_go, holder, &draft.message);
	check(status);
	guard.release();
	lend_or_give(draft.message, holder, to, view->readonly, &tensor, value);
}

/* A stream of weir's on which the program's arrays of a device are finished: one per device. */
static weir_stream *program_stream(Core *core, int device)
{
	weir_stream *stream = nullptr;

	for (const auto &known : core->streams)
		if (known.first == device)
			return known.second;
	check(weir_graph_add_stream(core->graph, device, &stream));
	core->streams.emplace_back(device, stream);
	return stream;
}

/* The stream after which the exporter of a device's array has to put its work. */
static weir_stream *stream_for(const Destination &to, int device)
{
	weir_stream *stream = to.stream;

	if (!to.context)
		return program_stream(to.core, device);
	if (!stream)
		check(weir_context_stream(to.context, &stream));
	if (weir_stream_device(stream) != device)
		raise(WEIR_E_INVALID, ("the array is on device " + std::to_string(device) +
				       ", the stream on device " + std::to_string(weir_stream_device(stream)))
					      .c_str());
	return stream;
}

/* cudaStreamLegacy is 1 in DLPack; other handles are the address. */
static nb::object stream_number(const weir_stream *stream)
{
	void *native = weir_stream_native(stream);

	return nb::int_(native ? (uintptr_t)native : 1);
}

/* Calls __dlpack__; older exporters do not know max_version. */
static nb::object export_of(nb::handle value, nb::object stream)
{
	nb::object exporter = value.attr("__dlpack__");
	nb::dict arguments;

	if (!stream.is_none())
		arguments["stream"] = stream;
	arguments["max_version"] = nb::make_tuple(1, 0);
	try {
		return exporter(**arguments);
	} catch (nb::python_error &error) {
		if (!error.matches(PyExc_TypeError))
			throw;
	}
	nb::del(arguments["max_version"]);
	return exporter(**arguments);
}

/* Takes the capsule's tensor over into the holder. Returns the tensor. One without a version cannot tell. */
static const DLTensor *open_capsule(nb::handle capsule, Holder *holder, bool *read_only)
{
	void *pointer;

	*read_only = true;

	if ((pointer = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"))) {
		holder->versioned = (DLManagedVersioned *)pointer;
		if (holder->versioned->major != 1)
			raise(WEIR_E_INVALID, "the array's DLPack version is not 1");
		*read_only = holder->versioned->flags & DL_READ_ONLY;
		PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
		holder->keeps = Keeps::VERSIONED;
		return &holder->versioned->tensor;
	}
	PyErr_Clear();
	if (!(pointer = PyCapsule_GetPointer(capsule.ptr(), "dltensor"))) {
		PyErr_Clear();
		raise(WEIR_E_INVALID, ("__dlpack__ returned " + nb::cast<std::string>(nb::repr(capsule)) +
				       ", not a capsule of a tensor")
					      .c_str());
	}
	holder->managed = (DLManaged *)pointer;
	PyCapsule_SetName(capsule.ptr(), "used_dltensor");
	holder->keeps = Keeps::DLPACK;
	return &holder->managed->tensor;
}

static void check_dltensor(const DLTensor *from, nb::handle array)
{
	if (from->dimensions > WEIR_DIMENSIONS_MAX)
		raise(WEIR_E_INVALID, "arrays have at most 8 dimensions");
	if (from->type.lanes > 1 || !dtype_of(from->type.code, from->type.bits))
		refuse_type(array, "DLPack " + std::to_string(from->type.code) + ", " +
					   std::to_string(from->type.bits) + " bits");
}

/* (type, number) of a device, in DLPack's words. */
static int device_pair(nb::handle place, int *type)
{
	nb::object first, second;
	long kind = -1, id = -1;

	if (pair_of(place, first, second)) { /* NumPy's and torch's are enums and ints */
		kind = PyNumber_Check(first.ptr()) ? PyLong_AsLong(nb::int_(first).ptr()) : -1;
		id = PyNumber_Check(second.ptr()) ? PyLong_AsLong(nb::int_(second).ptr()) : -1;
		PyErr_Clear();
	}
	if (kind < 0 || id < 0 || kind > INT32_MAX || id > INT32_MAX)
		raise(WEIR_E_INVALID, ("__dlpack_device__ is (type, device), two whole numbers, not " +
				       nb::cast<std::string>(nb::repr(place)))
					      .c_str());
	*type = (int)kind;
	return (int)id;
}

static void from_dlpack(Draft &draft, const Destination &to, nb::handle value)
{
	int type, id = device_pair(value.attr("__dlpack_device__")(), &type);
	bool on_device = type == DL_CUDA || type == DL_CUDA_MANAGED;
	weir_stream *stream = on_device ? stream_for(to, id) : nullptr;
	nb::object capsule;
	weir_tensor tensor = {};
	weir_fence fence;
	bool read_only;

	if (!on_device && type != DL_CPU && type != DL_CUDA_HOST)
		raise(WEIR_E_UNSUPPORTED, "the array is neither on the host nor on a CUDA device");
	capsule = export_of(value, stream ? stream_number(stream) : nb::none());
	std::unique_ptr<Holder, void (*)(Holder *)> holder(take_holder(), drop_holder);
	const DLTensor *from = open_capsule(capsule, holder.get(), &read_only);
	check_dltensor(from, value);
	tensor = {sizeof tensor,
		  (char *)from->data + from->byte_offset,
		  on_device ? id : WEIR_DEVICE_HOST,
		  from->dimensions,
		  from->shape,
		  from->strides,
		  from->type.code,
		  from->type.bits,
		  1};
	check(weir_message_wrap_tensor(to.core->graph, &tensor, let_go, holder.get(), &draft.message));
	lend_or_give(draft.message, holder.release(), to, read_only, &tensor, value);
	if (!stream || to.context)
		return; /* the end of the tick records */
	check(weir_stream_record(stream, &fence));
	check(weir_message_add_producer(draft.message, fence));
}

static void from_bytes(Draft &draft, Core *core, const char *from, size_t bytes)
{
	check(weir_message_create_bytes(core->graph, bytes, &draft.message));
	if (bytes)
		memcpy(weir_message_data(draft.message), from, bytes);
}

static void from_object(Draft &draft, Core *core, nb::handle value)
{
	Holder *holder = take_holder();
	weir_status status;

	holder->object = value.inc_ref().ptr();
	holder->keeps = Keeps::OBJECT;
	status = weir_message_wrap_user(core->graph, holder, let_go, &draft.message);
	if (status)
		drop_holder(holder);
	check(status);
}

static void from_parts(Draft &draft, const Destination &to, nb::dict parts)
{
	std::vector<Draft> drafts(parts.size());
	std::vector<std::string> names;
	std::vector<weir_part> list;

	for (auto [name, value] : parts) {
		if (!nb::isinstance<nb::str>(name))
			raise(WEIR_E_INVALID,
			      "the names of parts are strings; weir.Object(value) passes a dict as it is");
		Py_ssize_t bytes;
		const char *text = PyUnicode_AsUTF8AndSize(name.ptr(), &bytes);
		if (!text)
			throw nb::python_error();
		if (strlen(text) != (size_t)bytes)
			raise(WEIR_E_INVALID, "the name of a part has a NUL");
		if (PyDict_Check(value.ptr())) /* it may even contain itself */
			raise(WEIR_E_INVALID,
			      (std::string("part '") + text +
			       "': it is a dict, and a part has no parts: put its values into the message, "
			       "or weir.Object(value)")
				      .c_str());
		make_message(drafts[names.size()], to, value);
		names.push_back(text);
	}
	for (size_t i = 0; i < names.size(); i++)
		list.push_back({sizeof(weir_part), names[i].c_str(), drafts[i].message});
	check(weir_message_pack(to.core->graph, list.data(), list.size(), &draft.message));
	for (Draft &part : drafts)
		part.take();
}

static PyObject *word_dlpack, *word_array, *word_cuda_array; /* interned names */

void intern_words()
{
	word_dlpack = PyUnicode_InternFromString("__dlpack__");
	word_array = PyUnicode_InternFromString("__array_interface__");
	word_cuda_array = PyUnicode_InternFromString("__cuda_array_interface__");
}

void make_message(Draft &draft, const Destination &to, nb::handle value)
{
	PyObject *object = value.ptr();
	Message *message = held_by<Message>(value);
	Object *wrapped = held_by<Object>(value);

	if (message) {
		if (message->core.get() != to.core)
			raise(WEIR_E_INVALID, "the message belongs to another graph");
		message->writable = false;
		draft.message = weir_message_ref(message->message);
	} else if (PyLong_Check(object) || PyUnicode_Check(object) || PyTuple_Check(object)) {
		from_object(draft, to.core, value);
	} else if (wrapped) {
		from_object(draft, to.core, wrapped->value);
	} else if (value.is_none()) {
		check(weir_message_create_empty(to.core->graph, &draft.message));
	} else if (PyBytes_Check(object)) {
		from_bytes(draft, to.core, PyBytes_AsString(object), (size_t)PyBytes_Size(object));
	} else if (PyByteArray_Check(object)) {
		from_bytes(draft, to.core, PyByteArray_AsString(object), (size_t)PyByteArray_Size(object));
	} else if (PyDict_Check(object)) {
		from_parts(draft, to, nb::borrow<nb::dict>(value));
	} else if (PyObject_CheckBuffer(object) &&
		   ((PyObject *)Py_TYPE(object) == ndarray() ||
		    !PyObject_HasAttr((PyObject *)Py_TYPE(object), word_cuda_array))) {
		from_buffer(draft, to, value); /* CuPy's arrays have one that only refuses */
	} else if (PyObject_HasAttr(object, word_dlpack)) {
		from_dlpack(draft, to, value);
	} else if (PyObject_HasAttr(object, word_array) || PyObject_HasAttr(object, word_cuda_array)) {
		raise(WEIR_E_INVALID, "the array exports neither DLPack nor a buffer; weir.Object(array) "
				      "passes it as an object");
	} else if (to.later && is_future(value)) {
		*to.later = true;
	} else {
		from_object(draft, to.core, value);
	}
}

/*
 * Waits for a fence. A worker may not wait for a device; without CUDA the device is some threads of the host,
 * and NumPy's work in compute is device work that runs at once, so it waits where a stream would.
 */
static weir_status wait_for_fence(const Core *core, weir_fence fence)
{
	nb::gil_scoped_release released;
	weir_status status;

	if (!depth)
		return weir_fence_wait(core->graph, fence, -1);
	while ((status = weir_fence_query(core->graph, fence)) == WEIR_E_BUSY && !core->on_cuda)
		usleep(20);
	return status;
}

/* The host may read only what is finished. */
static void check_finished(const Message &self)
{
	weir_fence fences[WEIR_PARTS_MAX];
	size_t count = weir_message_fences(self.message, WEIR_PARTS_MAX, fences);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && i < WEIR_PARTS_MAX && !status; i++) {
		status = weir_fence_query(self.core->graph, fences[i]);
		if (status == WEIR_E_BUSY)
			status = wait_for_fence(self.core.get(), fences[i]);
	}
	if (status == WEIR_E_BUSY)
		raise(status,
		      "the device still works on the message: a port that the host reads needs its gate "
		      "(a Port without device=True, or \"gate\": true)");
	check(status);
}

const weir_tensor *tensor_of(const Message &self)
{
	const weir_tensor *tensor;

	check_core(self.core.get());
	tensor = weir_message_tensor(self.message);
	if (!tensor)
		raise(WEIR_E_INVALID, "the message is not an array");
	return tensor;
}

static bool is_on_host(const Message &self, const weir_tensor *tensor)
{
	if (tensor->device >= 0 && self.core->strict)
		raise(WEIR_E_INVALID, "the array is in device memory, which is closed to the host (option "
				      "strict, the default on sim): put a 'download' before it");
	return tensor->device < 0 || !self.core->on_cuda;
}

/* Shape and strides of a buffer, which dies with the view. */
struct View {
	Py_ssize_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	char format[2];
};

static void fill_strides(const weir_tensor *tensor, int64_t unit, int64_t *strides)
{
	int64_t dense = unit;

	for (int i = tensor->dimensions; i--;) {
		strides[i] = tensor->strides ? tensor->strides[i] * unit : dense;
		dense *= tensor->shape[i];
	}
}

void check_readable(Message &self)
{
	const weir_tensor *tensor;

	check_core(self.core.get());
	check_finished(self);
	if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
		return;
	tensor = tensor_of(self);
	if (!is_on_host(self, tensor))
		raise(WEIR_E_INVALID, "the array is on the device: CuPy or torch read it, by DLPack");
	if (!dtype_of(tensor->code, tensor->bits) || tensor->lanes > 1)
		raise(WEIR_E_UNSUPPORTED, "the array's type is none of NumPy's; read it by DLPack");
}

static void view_tensor(const Message &self, Py_buffer *view)
{
	const weir_tensor *tensor = tensor_of(self);
	const Dtype *dtype = dtype_of(tensor->code, tensor->bits);

	if (!dtype->format)
		raise(WEIR_E_UNSUPPORTED,
		      (std::string(dtype->name) + " has no format of buffers: np.asarray reads it "
						  "with ml_dtypes, torch and JAX by DLPack")
			      .c_str());
	View *own = new View();
	own->format[0] = dtype->format;
	for (int i = 0; i < tensor->dimensions; i++)
		own->shape[i] = tensor->shape[i];
	fill_strides(tensor, tensor->bits / 8, own->strides);
	view->buf = tensor->data;
	view->len = (Py_ssize_t)weir_message_size(self.message);
	view->itemsize = tensor->bits / 8;
	view->ndim = tensor->dimensions;
	view->format = own->format;
	view->shape = own->shape;
	view->strides = own->strides;
	view->suboffsets = nullptr;
	view->internal = own;
}

int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
	Message &self = *nb::inst_ptr<Message>(object); /* checked: a slot of the type */

	view->obj = nullptr;
	try {
		check_readable(self);
		if (!self.writable && flags & PyBUF_WRITABLE)
			raise(WEIR_E_INVALID,
			      "messages are read-only; message.unique() tells whether it may be written");
		if (weir_message_kind(self.message) == WEIR_KIND_BYTES)
			return PyBuffer_FillInfo(view, object, weir_message_data(self.message),
						 (Py_ssize_t)weir_message_size(self.message), !self.writable,
						 flags);
		view_tensor(self, view);
	} catch (nb::python_error &error) {
		/* The protocol wants a BufferError. */
		nb::object text = nb::str(error.value());
		PyErr_SetObject(PyExc_BufferError, text.ptr());
		return -1;
	} catch (const std::bad_alloc &) { /* not through the interpreter's frames of C */
		PyErr_NoMemory();
		return -1;
	}
	view->readonly = !self.writable;
	view->obj = Py_NewRef(object);
	return 0;
}

void release_buffer(PyObject *, Py_buffer *view)
{
	delete (View *)view->internal;
	view->internal = nullptr;
}

/* An array that was exported: the capsule's tensor and what it keeps. */
struct Export {
	DLManaged plain = {};
	DLManagedVersioned versioned = {};
	int64_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
	Message message;
	bool reads = false;            /* a stream of the consumer's reads it */
	const Context *call = nullptr; /* that stream is the entity's, and the end of this call fences both */
	int device = 0;
	void *native = nullptr;

	explicit Export(Message &&from) : message(std::move(from))
	{
	}
};

static weir_stream *consumer_stream_locked(Core *core, int device, void *native)
{
	weir_stream *stream = nullptr;

	for (const Consumer &known : core->consumers)
		if (known.device == device && known.native == native)
			return known.stream;
	if (weir_stream_wrap(core->graph, device, native, &stream))
		return nullptr;
	core->consumers.push_back({device, native, stream});
	return stream;
}

/*
 * The payload outlives what the consumer has enqueued by now. If its stream cannot be recorded, since the
 * consumer captures on it or there is no memory, the payload lives as long as the scheduler.
 */
static void note_reader(Core *core, weir_message *message, int device, void *native)
{
	std::lock_guard<std::mutex> guard(core->consumers_lock);
	weir_stream *stream;
	weir_fence fence;

	if (!core->scheduler)
		return;
	stream = consumer_stream_locked(core, device, native);
	if (!stream || weir_stream_record(stream, &fence) || weir_message_add_reader(message, fence))
		core->unfenced.push_back(weir_message_ref(message));
}

/* Runs on any thread, with or without the GIL. */
static void end_export(Export *self)
{
	bool fenced = self->call && self->call == current && self->message.call == number_of_call(current);

	if (self->reads && !fenced && is_ours(self->message.core.get()))
		note_reader(self->message.core.get(), self->message.message, self->device, self->native);
	delete self;
}

static void end_plain(DLManaged *managed)
{
	end_export((Export *)managed->context);
}

static void end_versioned(DLManagedVersioned *managed)
{
	end_export((Export *)managed->context);
}

static void end_capsule(PyObject *capsule)
{
	const char *name = PyCapsule_GetName(capsule);

	if (name && !strncmp(name, "dltensor", 8)) /* nothing took it */
		end_export((Export *)PyCapsule_GetContext(capsule));
}

/* As DLPack counts, and CUDA's handles: 0 and 1 are the legacy stream, 2 is the thread's. */
constexpr uintptr_t LEGACY = 1, PER_THREAD = 2;

void *native_of(uintptr_t handle)
{
	return handle <= LEGACY ? nullptr : (void *)handle;
}

/* Puts the consumer's stream behind the work that produces the message, without a wait on the host. */
static void order_consumer(Export *self, const weir_tensor *tensor, nb::handle stream)
{
	weir_fence fences[WEIR_PARTS_MAX];
	size_t count = weir_message_fences(self->message.message, WEIR_PARTS_MAX, fences);

	if (!stream.is_none() && nb::cast<int64_t>(stream) == -1)
		return;
	self->device = tensor->device;
	self->native = native_of(stream.is_none() ? LEGACY : nb::cast<uintptr_t>(stream));
	for (size_t i = 0; i < count && i < WEIR_PARTS_MAX; i++)
		check(weir_fence_enqueue(self->message.core->graph, fences[i], tensor->device, self->native));
	/* The array may end on another thread, where that handle is another stream; the legacy one is behind
	 * it. */
	if ((uintptr_t)self->native == PER_THREAD)
		self->native = nullptr;
	self->reads = true;
	if (is_own_stream(current, self->native))
		self->call = current;
}

static DLTensor dltensor_of(Export *self, const weir_tensor *tensor, bool on_host)
{
	for (int i = 0; i < tensor->dimensions; i++)
		self->shape[i] = tensor->shape[i];
	fill_strides(tensor, 1, self->strides);
	return {tensor->data,
		{on_host ? DL_CPU : DL_CUDA, on_host ? 0 : tensor->device},
		tensor->dimensions,
		{tensor->code, tensor->bits, (uint16_t)(tensor->lanes ? tensor->lanes : 1)},
		self->shape,
		self->strides,
		0};
}

static nb::object capsule_of(Export *self, const DLTensor &tensor, bool with_version)
{
	PyObject *capsule;

	self->plain = {tensor, self, end_plain};
	self->versioned = {
		1, 0, self, end_versioned, self->message.writable ? 0u : (uint64_t)DL_READ_ONLY, tensor};
	if (with_version)
		capsule = PyCapsule_New(&self->versioned, "dltensor_versioned", end_capsule);
	else
		capsule = PyCapsule_New(&self->plain, "dltensor", end_capsule);
	if (!capsule || PyCapsule_SetContext(capsule, self))
		throw nb::python_error();
	return nb::steal(capsule);
}

nb::object message_dlpack(Message &self, nb::object stream, nb::object max_version, nb::object dl_device,
			  nb::object copy)
{
	const weir_tensor *tensor = tensor_of(self);
	bool on_host = is_on_host(self, tensor);
	nb::object major, minor;
	bool with_version = pair_of(max_version, major, minor) && PyLong_Check(major.ptr()) &&
			    PyLong_AsLong(major.ptr()) >= 1;
	int wanted = DL_CPU;
	Message held(weir_message_ref(self.message), self.core.get());

	held.writable = self.writable;
	held.call = self.call;
	if (!dl_device.is_none())
		(void)device_pair(dl_device, &wanted);
	if (!dl_device.is_none() && wanted != (on_host ? DL_CPU : DL_CUDA))
		throw nb::buffer_error("weir copies no arrays between devices: use 'upload' or 'download'");
	if (!copy.is_none() && nb::cast<bool>(copy))
		throw nb::buffer_error("weir makes no copies: copy the array that refers to the message");
	if (on_host)
		check_finished(self);
	std::unique_ptr<Export> exported(new Export(std::move(held)));
	if (!on_host)
		order_consumer(exported.get(), tensor, stream);
	nb::object capsule =
		capsule_of(exported.get(), dltensor_of(exported.get(), tensor, on_host), with_version);
	exported.release();
	return capsule;
}

nb::object message_dlpack_device(Message &self)
{
	const weir_tensor *tensor = tensor_of(self);

	if (is_on_host(self, tensor))
		return nb::make_tuple((int)DL_CPU, 0);
	return nb::make_tuple((int)DL_CUDA, tensor->device);
}

/* The streams on which what is shown by __cuda_array_interface__ may be read now. */
static std::vector<void *> readers_of(const Message &self)
{
	const std::vector<void *> *known = streams_of_call(current, self.core.get());

	return known && !known->empty() ? *known : std::vector<void *>(1, nullptr);
}

/*
 * What was shown has no fence of its readers yet, unless it is of this tick, whose end fences it, and they
 * are on the tick's streams: the legacy stream is none of these.
 */
void note_readers(Message &self)
{
	int device = self.shown ? weir_message_tensor(self.message)->device : 0;

	if (self.shown_on_legacy)
		note_reader(self.core.get(), self.message, device, nullptr);
	else if (self.shown && !(current && self.call == number_of_call(current)))
		for (void *native : readers_of(self))
			note_reader(self.core.get(), self.message, device, native);
}

Message::~Message()
{
	if (!message || borrowed || !is_ours(core.get()))
		return;
	note_readers(*this);
	weir_message_unref(message);
	if (!depth && let_go_of.load(std::memory_order_relaxed))
		drop_holders(); /* a program that drops its last message may not call the module again */
}

/* "<f4" */
static std::string array_type(const weir_tensor *tensor)
{
	return std::string(tensor->bits == 8 ? "|" : "<") + "iufxxxb"[tensor->code] +
	       std::to_string(tensor->bits / 8);
}

nb::object numbers(const int64_t *list, int count)
{
	nb::list out;

	for (int i = 0; i < count; i++)
		out.append(list[i]);
	return nb::tuple(out);
}

static nb::dict array_interface(const Message &self, const weir_tensor *tensor, const std::string &type)
{
	int64_t strides[WEIR_DIMENSIONS_MAX];
	nb::dict out;

	fill_strides(tensor, tensor->bits / 8, strides);
	out["version"] = 3;
	out["shape"] = numbers(tensor->shape, tensor->dimensions);
	out["typestr"] = type;
	out["data"] = nb::make_tuple((uintptr_t)tensor->data, !self.writable);
	out["strides"] = is_dense(tensor) ? nb::none() : numbers(strides, tensor->dimensions);
	return out;
}

/* The elements as unsigned numbers of their size: for python/weir/arrays.py, which has asked check_readable.
 */
nb::object message_bits(Message &self)
{
	const weir_tensor *tensor = tensor_of(self);

	return array_interface(self, tensor, "<u" + std::to_string(tensor->bits / 8));
}

nb::object cuda_array_interface(Message &self)
{
	const weir_tensor *tensor = weir_message_tensor(self.message);
	weir_fence fences[WEIR_PARTS_MAX];

	if (!tensor || is_on_host(self, tensor) || tensor->code == 4)
		throw nb::attribute_error(
			"__cuda_array_interface__: the array is not on a CUDA device, or of "
			"bfloat16, which it does not know");
	check_core(self.core.get());
	nb::dict out = array_interface(self, tensor, array_type(tensor));
	out["stream"] = nb::none();
	std::vector<void *> readers = readers_of(self);
	self.shown = true;
	for (size_t i = weir_message_fences(self.message, WEIR_PARTS_MAX, fences); i--;)
		for (void *native : readers) {
			check(weir_fence_enqueue(self.core->graph, fences[i], tensor->device, native));
			if (!native)
				out["stream"] = 1;
		}
	for (void *native : readers)
		self.shown_on_legacy |= !native;
	return out;
}

} // namespace weir_python
