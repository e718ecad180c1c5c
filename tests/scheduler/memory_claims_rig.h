/* What the tests of claims see of the library: claims have no public form. */
#ifndef TESTS_SCHEDULER_CLAIMS_RIG_H
#define TESTS_SCHEDULER_CLAIMS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/graph.h"
#include "scheduler/memory.h"

#endif
