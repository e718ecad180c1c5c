/* What the library tells of itself: to the program's function, to nobody by default (B4, weir_log_set). */
#ifndef WR_BASE_LOG_H
#define WR_BASE_LOG_H

#include "weir.h"

bool wr_log_on(void);
/* Not under a lock. Without a listener nothing is formatted. */
void wr_log_line(weir_log_level level, const char *format, ...) WEIR_PRINTF(2, 3);
#define wr_log(level, ...) (wr_log_on() ? wr_log_line(level, __VA_ARGS__) : (void)0)

#endif
