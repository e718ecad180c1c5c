/*
 * A leveled log on stderr, off by default (B4); WEIR_LOG=error|warn|info|debug turns it on. A full or closed
 * stderr never blocks or ends the program.
 */
#ifndef WR_BASE_LOG_H
#define WR_BASE_LOG_H

#include <stdbool.h>

enum wr_level { WR_LOG_OFF, WR_LOG_ERROR, WR_LOG_WARN, WR_LOG_INFO, WR_LOG_DEBUG };

bool wr_log_on(enum wr_level level);
void wr_log_line(enum wr_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define wr_log(level, ...) (wr_log_on(level) ? wr_log_line(level, __VA_ARGS__) : (void)0)

#endif
