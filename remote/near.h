/*
 * Whether the process at the other end of a connection shares this machine's memory: the two see each other
 * by the same process ids, network and rights, and what is written here can be read there. And the order that
 * reading another process's memory needs: its owner tells the end of the connection first, waits until the
 * other system has it, and only then uses the memory anew (R3); the reader looks for the end after it has
 * read.
 */
#ifndef REMOTE_NEAR_H
#define REMOTE_NEAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* What a process says of itself. */
struct near {
	uint64_t place;    /* a sum of machine, namespaces, user and rights */
	uint64_t at, sign; /* in its memory, and what is there */
	int64_t process;
	struct sockaddr_storage socket; /* its end of the connection */
};

/* false: it cannot be known, so the other process is not near. */
bool near_say(struct near *out, int socket);
/* Of what came by this socket. Reads the other process's memory. */
bool near_is(const struct near *other, int socket);
/* Whether the other side's end has not come. */
bool near_is_open(int socket);
/* Ends this side. Returns true when the other system has it; else it is to be asked again. */
bool near_end(int socket);

#endif
