/*
 * A backend is a const table of functions over its own handles. All three (cuda, host, sim) pass one contract
 * test; the rest of this room is written once, over this table.
 *
 * Rules for every entry: the backend sets the text of a failure. WEIR_E_DEVICE means that the device is lost
 * for good (sticky); any other failure concerns that call alone; WEIR_E_BUSY sets no text. No lock of this
 * room is held during a call. After WEIR_E_DEVICE only ..._destroy, release, close, stopped and enter are
 * called, capture_end, and record, query, capturing and end_capture while it has not stopped.
 */
#ifndef WR_STREAMS_BACKEND_H
#define WR_STREAMS_BACKEND_H

#include "streams/streams.h"

#define WR_STRIDE_MAX INT32_MAX /* bytes: CUDA's largest pitch */

/* What a signal stream does for a signal. */
struct wr_firing {
	void *event;            /* waits for its latest record, as `wait` does; NULL: for nothing */
	_Atomic uint32_t *word; /* writes it, as `write_flag` does; NULL: none */
	uint32_t value;
	void (*fn)(void *arg); /* then calls it, as `call` does */
	void *arg;
};

struct wr_backend {
	const char *name;
	weir_backend kind;
	bool native_streams; /* handles are cudaStream_t: users may get ours, and wrap theirs */
	/* the handle that means a different stream in each thread, so it cannot be wrapped; NULL: none */
	void *per_thread;
	/*
	 * Writes a description ("host", "cuda: NVIDIA H100") into `where`.
	 * Fails: WEIR_E_UNSUPPORTED: this machine has no such device.
	 */
	weir_status (*open)(void **out, const struct wr_system_options *options, char *where, size_t room);
	void (*close)(void *self); /* all streams, events and memory were released */
	int (*devices)(void *self);

	/* `partition`: from partitions_create, or NULL for the whole device */
	weir_status (*stream_create)(void *self, int device, unsigned flags, int priority, void *partition,
				     void **out);
	/* only a drained stream, or one of a device that is lost and stopped */
	void (*stream_destroy)(void *self, void *stream);
	/*
	 * Instead of it, for a stream of the whole device whose handle was given to the program: it stays
	 * usable until the process exits. stream_again, instead of stream_create, gives one that was kept,
	 * whose handle is known outside; NULL: there is none. NULL, both: such streams are destroyed.
	 */
	void (*stream_keep)(void *self, int device, unsigned flags, int priority, void *stream);
	void *(*stream_again)(void *self, int device, unsigned flags, int priority);
	/* the device's legacy default stream; never destroyed */
	weir_status (*stream_default)(void *self, int device, void **out);
	weir_status (*event_create)(void *self, int device, void **out);
	void (*event_destroy)(void *self, void *event);
	/* Here and below `device` is the stream's: the default streams of all devices have one handle. */
	weir_status (*record)(void *self, int device, void *stream, void *event);
	/* OK (also if never recorded), BUSY or DEVICE, for the latest record of the event */
	weir_status (*query)(void *self, void *event);
	/* the stream waits for the latest record of the event, which may be another device's */
	weir_status (*wait)(void *self, int device, void *stream, void *event);
	weir_status (*launch)(void *self, int device, void *stream, const weir_kernel *kernel,
			      const void *arguments, size_t bytes);
	/* between any two devices */
	weir_status (*copy)(void *self, int device, void *stream, void *to, const void *from, size_t bytes);
	/* several rows of at least one byte; the strides are at least row_bytes and at most WR_STRIDE_MAX */
	weir_status (*copy_rows)(void *self, int device, void *stream, const weir_copy *copy);
	/*
	 * *out: a copy from or to this address makes the calling thread wait. NULL: no copy does. A host
	 * cannot tell memory that stands for a device's or that a program would register from other memory
	 */
	weir_status (*pageable)(void *self, const void *memory, bool *out);
	/* See weir_context_allocation; false: there is none. NULL: never */
	bool (*allocation)(void *self, const void *memory, weir_allocation *out);
	/*
	 * Calls fn(arg) on a thread of the backend once all earlier work of the
	 * stream is complete; never after the device was lost. Thread of fn: device.
	 */
	weir_status (*call)(void *self, int device, void *stream, void (*fn)(void *arg), void *arg);
	/* All of a signal in one call; NULL: it is done by wait, write_flag and call. Not in a capture */
	weir_status (*signal)(void *self, int device, void *stream, const struct wr_firing *firing);
	bool (*capturing)(void *self, int device, void *stream); /* NULL: never */
	/* Ends a capture that the program began on `stream`, if this thread may, and drops its graph. */
	void (*end_capture)(void *self, int device, void *stream); /* NULL: as capturing */

	/*
	 * Captures: between capture_begin and capture_end, what launch and copy enqueue on `stream` is not
	 * run but becomes a graph, and so does what they enqueue on a stream that capture_order put behind
	 * one of the capture. These streams are idle and used by nothing else. One thread makes all calls of
	 * a capture, one capture at a time. NULL, all seven: the device has no graphs.
	 */
	weir_status (*capture_begin)(void *self, int device, void *stream, void **capture);
	/* later work of `after` follows what the capture has on `before` by now */
	weir_status (*capture_order)(void *self, void *capture, void *before, void *after);
	/*
	 * Ends the capture, also on failure; the streams are then as before it. *graph: NULL if nothing was
	 * enqueued. graph NULL: drops the work. Fails: WEIR_E_FAILED: a call was not allowed in a capture, or
	 * a stream was not ordered before the end of the first one again.
	 */
	weir_status (*capture_end)(void *self, void *capture, void **graph);
	size_t (*graph_items)(const void *graph);
	weir_status (*graph_launch)(void *self, int device, void *stream, void *graph);
	void (*graph_destroy)(void *self, void *graph); /* none of its launches runs */
	/* Returns true and writes the first difference if the items or their arguments differ. */
	bool (*graph_differs)(void *self, const void *graph, const void *other, char *what, size_t room);

	/*
	 * Timers (T15): *begun and *ended are when the streams of one device reached the latest records of
	 * two timers, on the clock of wr_now(). What recording them costs the device is not part of the
	 * difference, which is not negative. BUSY: one of them was not reached. A timer is not destroyed
	 * before it was. NULL, all four: the device has no timers.
	 */
	weir_status (*timer_create)(void *self, int device, void **out);
	void (*timer_destroy)(void *self, void *timer);
	weir_status (*timer_record)(void *self, int device, void *stream, void *timer);
	weir_status (*timer_read)(void *self, int device, void *begin, void *end, int64_t *begun,
				  int64_t *ended);

	/*
	 * Writes a completion flag: `word` (in memory of alloc(WEIR_DEVICE_HOST)) is
	 * set to value once all earlier work of the stream is complete.
	 */
	weir_status (*write_flag)(void *self, int device, void *stream, _Atomic uint32_t *word,
				  uint32_t value);
	/* Fails: WEIR_E_UNSUPPORTED, naming the device. NULL: every device can */
	weir_status (*can_write_flag)(void *self, int device);
	bool spins; /* the poller may spin on a flag: the work needs no core of this machine */

	/*
	 * Green contexts: writes spec->count partitions and the remainder (NULL
	 * and 0 if there is none) into out and sms, which have count + 1 places.
	 */
	weir_status (*partitions_create)(void *self, const struct wr_partitions_spec *spec, void **out,
					 uint32_t *sms);
	void (*partition_destroy)(void *self, void *partition); /* after its streams */
	/* sets the calling thread's current device; NULL: the backend has no such notion */
	void (*select)(void *self, int device);

	/* device WEIR_DEVICE_HOST: pinned host memory. Aligned to 256 bytes */
	weir_status (*alloc)(void *self, int device, size_t bytes, void **out);
	void (*release)(void *self, int device, void *memory);

	/* the address is of device memory that is closed to the host; NULL: there is none. Takes no lock */
	bool (*is_closed)(void *self, const void *address);
	bool (*stopped)(void *self); /* after WEIR_E_DEVICE: true if the device no longer touches memory */
	/* runs fn on a thread or fiber that may block; NULL: on the calling one */
	void (*enter)(void *self, void (*fn)(void *arg), void *arg);
};

extern const struct wr_backend wr_backend_host, wr_backend_sim;
#ifdef WEIR_WITH_CUDA
extern const struct wr_backend wr_backend_cuda;
#endif

#endif
