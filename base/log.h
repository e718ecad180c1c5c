/* The library's log: passed to the program's function, if one is set (B4, weir_log_set). */
#ifndef WR_BASE_LOG_H
#define WR_BASE_LOG_H

#include "weir.h"

bool wr_log_on(void);
/* The caller holds no lock. Without a function set nothing is formatted. */
void wr_log_line(weir_log_level level, const char *format, ...) WEIR_PRINTF(2, 3);
#define WR_LOG_MAX         1024 /* bytes of a line with its NUL; a longer one is cut */
#define wr_log(level, ...) (wr_log_on() ? wr_log_line(level, __VA_ARGS__) : (void)0)

#endif
