/*
 * Signs of life on a connection (R7): a side sends one four times within what the other one allows, and
 * counts the other one as lost after `keepalive` without any. Time is an argument; the timer says when to
 * look.
 */
#ifndef REMOTE_BEAT_H
#define REMOTE_BEAT_H

#include <stdbool.h>
#include <stdint.h>

struct beat {
	int timer;           /* a descriptor, readable when it is time to look; -1: none */
	int64_t keepalive;   /* ns without a sign that mean a loss; 0: none do */
	int64_t every;       /* ns between the signs that the other side wants; 0: it wants none */
	int64_t heard, said; /* when the last sign came, and went */
};

/* On failure errno says why. */
bool beat_open(struct beat *beat, int64_t keepalive);
/* The connection is there. theirs: the other side's keepalive, whatever it says. */
void beat_begin(struct beat *beat, int64_t theirs, int64_t now);
/* A sign has come. */
void beat_hear(struct beat *beat, int64_t now);
/* Call when the timer is readable. Returns true if a sign is due, which the caller sends. */
bool beat_look(struct beat *beat, int64_t now);
/* Returns true if the other side counts as lost. All signs that came must have been heard. */
bool beat_is_silent(const struct beat *beat, int64_t now);
/* There is no connection any more. */
void beat_end(struct beat *beat);
/* Of one that was not opened, whose timer is -1, nothing. */
void beat_close(struct beat *beat);

#endif
