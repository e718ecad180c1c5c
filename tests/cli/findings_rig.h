/* What the tests of findings share. */
#ifndef TESTS_CLI_FINDINGS_RIG_H
#define TESTS_CLI_FINDINGS_RIG_H

#include "cli/findings.h"

#include "../base/test.h"

/* What weir report finds in a record of statistics; fails the test if it cannot be read. */
struct cli_findings findings_of(const char *bytes);
/* It has one finding, of that cause and entity, whose text has that part. */
void one_finding(const char *bytes, enum cli_cause cause, size_t entity, const char *part);

#endif
