/*
 * Where two links meet: a TCP connection of their own, on which they tell each other how their engines are
 * reached, and whose end is the end of the connection, noticed at once. An engine's own listener is not open
 * to whatever connects: UCX 1.13 ends the process on bytes that are not its own.
 *
 * Each side says one frame: a mark, whether it accepts, a tag, its keepalive, the address of its engine.
 * Behind it signs of life come (beat.h), beside which a large message under way holds nothing up. No call
 * here waits.
 */
#ifndef REMOTE_MEET_H
#define REMOTE_MEET_H

#include "remote/link.h"

enum { MEET_HEAD = 40, MEET_ADDRESS = 8192, MEET_PEER = 64 };

enum meet_answer { MEET_ACCEPTS, MEET_REFUSES };

struct meeting {
	int socket;      /* -1: none */
	bool connecting; /* the system has not said how that ended */
	bool unwelcome;  /* of an address that may not connect */
	uint64_t turn;   /* greater: accepted later */
	char peer[MEET_PEER];
	size_t have;
	uint8_t frame[MEET_HEAD + MEET_ADDRESS];
};

/* -1: `why` says why. */
int meet_listen(const struct address *address, char why[LINK_WHY]);
/* Ends listening. Of -1, nothing. */
void meet_deafen(int listener);
/* false: nothing has connected. */
bool meet_accept(int listener, const char *peers, struct meeting *out);
/* false: `why` says why. The socket is writable once it is known how it ended. */
bool meet_connect(const struct address *address, struct meeting *out, char why[LINK_WHY]);
/* How connecting ended: 0, or the system's error. */
int meet_connected(struct meeting *meeting);
struct meet_frame {
	enum meet_answer answer;
	uint64_t tag;
	int64_t keepalive;   /* ns */
	const void *address; /* NULL: none */
	size_t bytes;
};
/* Says this side's frame. false: it cannot. */
bool meet_say(const struct meeting *meeting, const struct meet_frame *frame);
/* Says a sign of life; not to one that reads none. */
void meet_beat(const struct meeting *meeting);

enum meet_news { MEET_WAITS, MEET_WHOLE, MEET_ENDED, MEET_STRANGE };
/* Reads the other frame. ENDED: the other side has closed; STRANGE: it is no weir. */
enum meet_news meet_read(struct meeting *meeting);
/* Behind the frame: signs of life (WHOLE), and the end. */
enum meet_news meet_look(struct meeting *meeting);
/* The parts of a whole frame. */
enum meet_answer meet_answer(const struct meeting *meeting);
uint64_t meet_tag(const struct meeting *meeting);
int64_t meet_keepalive(const struct meeting *meeting);
const void *meet_address(const struct meeting *meeting); /* NULL: it has none */
size_t meet_address_bytes(const struct meeting *meeting);
/* Of one without a socket, nothing. */
void meet_close(struct meeting *meeting);

#endif
