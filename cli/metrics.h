/*
 * `weir run --metrics ADDRESS`: a thread that answers GET /metrics with the run's metrics
 * (weir_scheduler_print_metrics), and the only user of libevent's HTTP server.
 */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include "weir.h"

struct cli_metrics;

/* Returns false if the text is no address with a port. Without an address the loopback one is meant. */
bool cli_metrics_address(const char *text);
/*
 * Listens; *out stays NULL if text is NULL. Prints where it listens unless quiet, and why it cannot. Returns
 * an exit code.
 */
int cli_metrics_open(const char *text, bool quiet, struct cli_metrics **out);
/* Starts to answer. Until the end, which must come before the scheduler's. Returns an exit code. NULL is
 * allowed. */
int cli_metrics_serve(struct cli_metrics *metrics, weir_scheduler *scheduler);
void cli_metrics_close(struct cli_metrics *metrics); /* NULL is allowed */

#endif
