/*
 * A stack that any thread pushes onto: a linked list whose head is an atomic pointer. A thread that takes
 * elements takes the whole list (wr_exchange with NULL), so an element that was taken and pushed again
 * meanwhile does no harm (no ABA).
 */
#ifndef WR_BASE_STACK_H
#define WR_BASE_STACK_H

#include "base/atomic.h"

/* Sets node->next (next: the field's name) and makes the node the head. seq_cst: publishes what the node
 * holds. */
#define wr_stack_push(head, node, next)                                                                      \
	do {                                                                                                 \
		__typeof__(node) top_ = wr_load(head);                                                       \
                                                                                                             \
		do                                                                                           \
			(node)->next = top_;                                                                 \
		while (!wr_cas(head, &top_, node));                                                          \
	} while (0)

#endif
