/* Reads JSON text. */
#ifndef WR_GRAPHS_JSON_H
#define WR_GRAPHS_JSON_H

#include "graphs/report.h"

/*
 * Gives the tree, with duplicate keys. Fails: WEIR_E_INVALID with a report (not JSON, too large, too deep),
 * WEIR_E_NOMEM.
 */
weir_status wr_json_read(struct wr_value *out, const char *text, size_t length, struct wr_reports *reports);

bool wr_json_is_object(const char *text); /* also false if memory runs out */

#endif
