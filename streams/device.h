/*
 * The device of a system: every call through the backend's table, with its contract (backend.h), and the
 * system's failure.
 *
 * A function that returns a status fails the system before it returns WEIR_E_DEVICE, so the failure is known
 * even if the caller ignores the status. No function takes a lock, and callers hold none: the device may
 * block, and a failure pokes entities. Thread: any.
 */
#ifndef WR_STREAMS_DEVICE_H
#define WR_STREAMS_DEVICE_H

#include "streams/backend.h"

/* --- opening. A backend that cannot be opened leaves nothing behind --- */
weir_status wr_device_open(struct wr_system *system, const struct wr_system_options *options);
/*
 * For "auto", after cuda returned `status`: opens the host backend if there is no device (UNSUPPORTED). A
 * device that exists but cannot be used is an error, so that a run does not silently use the slow host.
 */
weir_status wr_device_open_or_host(struct wr_system *system, weir_status status,
				   const struct wr_system_options *options);
void wr_device_close(struct wr_system *system);

/* --- failure --- */
/* Marks the device as lost (E2); `what` may be last_error. Returns once the report is written. */
void wr_system_fail(struct wr_system *system, const char *what);
/* WEIR_E_DEVICE, with the text */
weir_status wr_system_failure_status(struct wr_system *system);
/* Returns true if the system failed and nothing touches memory any more. */
bool wr_device_lost(struct wr_system *system);

/* --- the device --- */
int wr_device_count(struct wr_system *system);
/* Fails: WEIR_E_DEVICE: the system failed; WEIR_E_INVALID: no such device. */
weir_status wr_device_check(struct wr_system *system, int device);
void wr_device_select(struct wr_system *system, int device);
weir_status wr_device_alloc(struct wr_system *system, int device, size_t bytes, void **out);
void wr_device_release(struct wr_system *system, int device, void *memory);
/* only if the backend has partitions_create */
weir_status wr_device_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
					void **out, uint32_t *sms);
void wr_device_partition_destroy(struct wr_system *system, void *partition);

/* --- streams and events --- */
/* `partition` is the backend's; spec->partition is not read */
weir_status wr_device_stream_create(struct wr_system *system, const struct wr_stream_spec *spec,
				    void *partition, void **out);
weir_status wr_device_stream_default(struct wr_system *system, int device, void **out);
void wr_device_stream_destroy(struct wr_system *system, void *stream);
bool wr_device_capturing(struct wr_system *system, int device, void *stream);
weir_status wr_device_event_create(struct wr_system *system, int device, void **out);
void wr_device_event_destroy(struct wr_system *system, void *event);
weir_status wr_device_record(struct wr_system *system, int device, void *stream, void *event);
weir_status wr_device_query(struct wr_system *system, void *event);
weir_status wr_device_wait(struct wr_system *system, int device, void *stream, void *event);

/* --- work --- */
weir_status wr_device_launch(struct wr_system *system, int device, void *stream, const weir_kernel *kernel,
			     const void *arguments, size_t bytes);
weir_status wr_device_copy(struct wr_system *system, int device, void *stream, void *to, const void *from,
			   size_t bytes);
/* Several rows of at least one byte each; the strides were checked. */
weir_status wr_device_copy_rows(struct wr_system *system, int device, void *stream, const weir_copy *copy);
/* *out: a copy from or to this address makes the calling thread wait; always false without CUDA. */
weir_status wr_device_pageable(struct wr_system *system, const void *memory, bool *out);
weir_status wr_device_call(struct wr_system *system, int device, void *stream, void (*fn)(void *arg),
			   void *arg);
/* Fails: WEIR_E_UNSUPPORTED: the device (named) cannot. */
weir_status wr_device_can_write_flag(struct wr_system *system, int device);
weir_status wr_device_write_flag(struct wr_system *system, int device, void *stream, _Atomic uint32_t *word,
				 uint32_t value);

/* --- captures and graphs --- */
/* Returns true if the device has graphs; the others are called only then. */
bool wr_device_captures(const struct wr_system *system);
weir_status wr_device_capture_begin(struct wr_system *system, int device, void *stream, void **capture);
weir_status wr_device_capture_order(struct wr_system *system, void *capture, void *before, void *after);
weir_status wr_device_capture_end(struct wr_system *system, void *capture, void **graph);
size_t wr_device_graph_items(const struct wr_system *system, const void *graph);
weir_status wr_device_graph_launch(struct wr_system *system, int device, void *stream, void *graph);
void wr_device_graph_destroy(struct wr_system *system, void *graph);
bool wr_device_graph_differs(struct wr_system *system, const void *graph, const void *other, char *what,
			     size_t room);

/* --- timers --- */
/* Returns true if the device has timers; the others are called only then. */
bool wr_device_has_timers(const struct wr_system *system);
weir_status wr_device_timer_create(struct wr_system *system, int device, void **out);
void wr_device_timer_destroy(struct wr_system *system, void *timer);
weir_status wr_device_timer_record(struct wr_system *system, int device, void *stream, void *timer);
weir_status wr_device_timer_read(struct wr_system *system, int device, void *begin, void *end, int64_t *begun,
				 int64_t *ended);

/* --- waiting --- */
/* Returns true if the system is in a simulated world and the caller is not. Always false on real devices. */
bool wr_device_outside(const struct wr_system *system);
/* Runs fn where it may block: on a fiber of the simulated world, else on the calling thread. */
void wr_device_enter(struct wr_system *system, void (*fn)(void *arg), void *arg);
/* The same; returns what fn returns. Fails: WEIR_E_DEADLOCK: the world is broken and did not run fn. */
weir_status wr_device_enter_call(struct wr_system *system, weir_status (*fn)(void *arg), void *arg);
/*
 * Sleeps until done(arg), which is called from time to time, returns
 * true, or until `until`. Thread: any that may block, so no worker.
 */
void wr_system_sleep_until(struct wr_system *system, bool (*done)(void *arg), void *arg, int64_t until);

#endif
