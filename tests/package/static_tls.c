/*
 * A library that needs static TLS: copies of it use up what the C library reserves for libraries loaded
 * late.
 */
#include <stddef.h>

#define VISIBLE __attribute__((visibility("default")))

static _Thread_local char taken[128] __attribute__((tls_model("initial-exec")));

VISIBLE char *static_tls(size_t i);

char *static_tls(size_t i)
{
	return &taken[i];
}
