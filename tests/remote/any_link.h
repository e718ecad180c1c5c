/* What the links of tests have in common, and what their tests do before a run. */
#ifndef TESTS_REMOTE_ANY_LINK_H
#define TESTS_REMOTE_ANY_LINK_H

#include "remote/remote.h"

/* Functions of a transport. */
bool any_link_load(char why[LINK_WHY]);
size_t any_link_head_most(const struct link *link);

/* How many messages the head has, which was read; 0: it is none of messages, or its bundle is broken. */
unsigned any_link_count(const struct wire *wire);
/* A new eventfd with this value, which is in the set: the caller's. */
int any_link_descriptor(int set, unsigned value);
/* Adds it to the set, as what is the link's own. */
void any_link_add(int set, int descriptor);
/* A registry with what the plugin has. */
weir_status any_link_registry(weir_registry **out);

#endif
