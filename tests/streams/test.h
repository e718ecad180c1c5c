/* cmocka.h needs these headers before it. */
#ifndef TESTS_STREAMS_TEST_H
#define TESTS_STREAMS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
