/*
 * An NVTX tool linked into the test instead of loaded: it records every call as one line of JSON, in order.
 * Works under all sanitizers and without a GPU.
 */
#ifndef TESTS_TRACE_RECORDER_H
#define TESTS_TRACE_RECORDER_H

#include <stddef.h>

const char *recorder_line(size_t i);     /* NULL after the last; borrowed until recorder_clear */
size_t recorder_count(const char *part); /* lines that contain it */
void recorder_clear(void);               /* keeps the names that were registered */

#endif
