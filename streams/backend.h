/*
 * A backend: a const table of functions over its own handles. Three of them (cuda, host, sim) pass one
 * contract test; the rest of this room is written once, over this table.
 *
 * Rules for all of them. Failures are put into last_error by the backend; WEIR_E_DEVICE means that the device
 * is lost for good (sticky), every other failure concerns that one call alone; WEIR_E_BUSY sets no text. No
 * lock of this room is held in any call. After WEIR_E_DEVICE only the giving back (..._destroy, release,
 * close), quiet and enter are called.
 */
#ifndef WR_STREAMS_BACKEND_H
#define WR_STREAMS_BACKEND_H

#include "streams/streams.h"

struct wr_backend {
	const char *name;
	bool native_streams;	/* handles are cudaStream_t: may be shown to users, and theirs wrapped */
	/* names another stream in each thread, so none that could be wrapped; NULL: there is no such thing */
	void *per_thread;
	/*
	 * Writes what it is ("host", "cuda: NVIDIA H100") into where.
	 * WEIR_E_UNSUPPORTED: this machine has no such device.
	 */
	weir_status (*open)(void **out, const struct wr_system_options *options, char *where, size_t room);
	void (*close)(void *self);			/* streams, events and memory are back */
	int (*devices)(void *self);

	/* `partition`: the backend's, or NULL. */
	weir_status (*stream_create)(void *self, int device, unsigned flags, int priority, void *partition,
				     void **out);
	/* nothing is left on it, or the device is lost and quiet */
	void (*stream_destroy)(void *self, void *stream);
	/* the device's legacy default stream; never destroyed */
	weir_status (*stream_default)(void *self, int device, void **out);
	weir_status (*event_create)(void *self, int device, void **out);
	void (*event_destroy)(void *self, void *event);
	/* `device`: the stream's, here and below: the default stream is named by it alone. */
	weir_status (*record)(void *self, int device, void *stream, void *event);
	/* of its latest record: OK, BUSY, DEVICE; never recorded: OK */
	weir_status (*query)(void *self, void *event);
	/* for its latest record; the event may be another device's */
	weir_status (*wait)(void *self, int device, void *stream, void *event);
	weir_status (*launch)(void *self, int device, void *stream, const weir_kernel *kernel,
			      const void *arguments, size_t bytes);
	/* between any two devices */
	weir_status (*copy)(void *self, int device, void *stream, void *to, const void *from, size_t bytes);
	/*
	 * fn(arg) on a thread of the backend once all before it is complete;
	 * never after the device was lost. Thread of fn: device.
	 */
	weir_status (*call)(void *self, int device, void *stream, void (*fn)(void *arg), void *arg);
	bool (*capturing)(void *self, int device, void *stream);		/* NULL: never */
	/*
	 * Flags: `word` lies in memory of alloc(WEIR_HOST); it gets
	 * the value when all before it on the stream is complete.
	 */
	weir_status (*write_flag)(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value);
	/* WEIR_E_UNSUPPORTED, naming the device; NULL: always */
	weir_status (*can_write_flag)(void *self, int device);
	bool spins;	/* waiting for a word is worth a core: the work is not done by this machine's own */

	/*
	 * Green contexts: spec->count partitions and, if something remains, the
	 * remainder, into out and sms (count + 1 places; NULL and 0: none).
	 */
	weir_status (*partitions_create)(void *self, const struct wr_partitions_spec *spec, void **out,
					 uint32_t *sms);
	void (*partition_destroy)(void *self, void *partition);		/* its streams are destroyed */
	/* the calling thread's current device from now on; NULL: there is no such thing */
	void (*select)(void *self, int device);

	/* WEIR_HOST: pinned; aligned to 256 */
	weir_status (*alloc)(void *self, int device, size_t bytes, void **out);
	void (*release)(void *self, int device, void *memory);

	bool (*quiet)(void *self);	/* after WEIR_E_DEVICE: nothing touches any memory any more */
	/* runs fn where waiting is possible; NULL: here */
	void (*enter)(void *self, void (*fn)(void *arg), void *arg);
};

extern const struct wr_backend wr_backend_host, wr_backend_sim;
#ifdef WEIR_WITH_CUDA
extern const struct wr_backend wr_backend_cuda;
#endif

#endif
