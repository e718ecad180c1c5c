#include "tests/bugs/bug.h"

enum wr_bug wr_bug_active = WR_BUG_NONE;
bool wr_nets = true;
size_t wr_fan_in_few = 8;
