/*
 * The device of the test: the tables of host and sim are replaced (--wrap=wr_backend_host,
 * --wrap=wr_backend_sim) by one that counts the calls and what is given, and lets one call fail.
 */
#ifndef TESTS_SCHEDULER_DEVICE_COUNTED_H
#define TESTS_SCHEDULER_DEVICE_COUNTED_H

#include "rig_inside.h"

/* Calls that can fail. */
enum call {
	OPEN,
	STREAM_CREATE,
	STREAM_DEFAULT,
	EVENT_CREATE,
	RECORD,
	QUERY,
	WAIT,
	LAUNCH,
	COPY,
	COPY_ROWS,
	PAGEABLE,
	CALL,
	WRITE_FLAG,
	CAN_WRITE_FLAG,
	PARTITIONS_CREATE,
	CAPTURE_BEGIN,
	CAPTURE_ORDER,
	CAPTURE_END,
	GRAPH_LAUNCH,
	ALLOC,
	TIMER_CREATE,
	TIMER_RECORD,
	TIMER_READ,
	CALLS
};

extern const char *const device_call_names[CALLS];

/* NO_MEMORY and INVALID concern one call. A kernel FAULTs beside the call, which goes on; or the call itself
 * finds the device LOST. */
enum error { NO_MEMORY, INVALID, FAULT, LOST, ERRORS };

struct counted_device {
	const struct wr_backend *real;
	enum call call;
	enum error error;
	unsigned nth; /* 0: never */
	bool goes_on; /* the LOST device, in truth: no kernel faults */
	_Atomic unsigned count;
	_Atomic bool hit;
	_Atomic(void *) broken; /* the stream of the kernel that faults */
	_Atomic int given;      /* streams, events, partitions, memory; and the backend itself */
};

extern struct counted_device device;

#endif
