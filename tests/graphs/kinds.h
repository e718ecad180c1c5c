/*
 * Operators and conditions for tests of descriptions, with every type of parameter and port: source,
 * filter, relay, sink, bytes_sink. The linker takes kinds.c's lists instead of the library's, so that
 * golden texts do not change with the built-ins.
 */
#ifndef WEIR_TESTS_KINDS_H
#define WEIR_TESTS_KINDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir.h"

/* read -> blur -> write and show, with a gated writer: valid, and uses every feature. */
extern const char good_graph[];
/* Every type of resource, every way to name one, and unnamed ones. */
extern const char resource_graph[];

/* Memory pools of every form, of one block and unused; an inlet, outlets, an entity without ports. */
extern const char memory_graph[];

struct wr_plan;

/* All assert success. */
weir_description *kinds_read(const char *text);
struct wr_plan *kinds_plan(const char *text, bool open_ports);
char *kinds_print_text(const char *text, weir_format format); /* the description that the text is */
char *kinds_print(const weir_description *description, weir_format format);

#endif
