/*
 * Kinds for tests of descriptions, with every type of parameter and port: operators source, filter, relay,
 * sink, bytes_sink. They stand in for the built-ins: the linker takes kinds.c's lists instead of the
 * library's, so that a golden text does not move when a built-in grows.
 */
#ifndef WEIR_TESTS_KINDS_H
#define WEIR_TESTS_KINDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir.h"

/* read -> blur -> write and show, with a gated writer: right, and with something of everything. */
extern const char good_graph[];
/* Every type of resource and every way to name one, and to name none. */
extern const char resource_graph[];

#endif
