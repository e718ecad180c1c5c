/*
 * The inside of a simulated link: simulated_net.c is what goes on between the two sides, on a fiber of its
 * own, simulated.c what each side calls.
 */
#ifndef TESTS_REMOTE_SIMULATED_NET_H
#define TESTS_REMOTE_SIMULATED_NET_H

#include "base/thread.h"
#include "remote/beat.h"
#include "sim/random.h"
#include "simulated.h"

#define US INT64_C(1000)
#define MS (1000 * US)

/* What the sides of a connection hear of each other, by side. */
struct quiet {
	int64_t keepalive[2];
	int64_t heard[2];   /* when there was a sign; 0: it is not joined */
	int64_t stood[2];   /* until then it stood still itself */
	int64_t until[2];   /* nothing comes before */
	int64_t excused[2]; /* until then it may call the other side silent */
	int64_t calm;       /* when all is well again */
};

/* A connection. A stranger's has no link at its first end. */
struct line {
	struct line *next;
	struct link *ends[2]; /* by side; NULL: it has dropped it, or has not accepted yet */
	bool cut, stranger;
	int64_t credits;        /* that the receiver has given, less those that the sender has used */
	unsigned limit;         /* places of the receiver; 0: there was no welcome */
	uint64_t sent, came;    /* messages, since the welcome; came: also what waited then */
	uint64_t hello;         /* the number of the last one */
	uint64_t session;       /* of the sender */
	uint64_t wanted, whole; /* of messages that the receiver gets in order; bit n: it has wanted + n */
	bool welcomed;          /* the sender knows that it was */
	bool answered;          /* the end was: the receiver has had its last tick, and gives no more signs */
	struct quiet quiet;
};

enum kind { MESSAGE, CONNECT, CONNECTED, LOST, STRANGER, SIGN };
/*
 * A message flies, then it has arrived; a payload that is wanted is filled, then it is whole or torn; then it
 * is over. All else flies, arrives, and is over.
 */
enum phase { FLYING, ARRIVED, FILLING, FILLED, TORN, PAST };

struct parcel {
	struct parcel *next;
	struct line *line;
	struct link *to; /* of a kind that is not MESSAGE, and FLYING to the listener: NULL */
	enum kind kind;
	enum phase phase;
	unsigned side; /* of the receiver of the parcel */
	int64_t due;   /* of the next step of the link */

	size_t head_bytes, bytes;
	unsigned messages; /* that it has; of a bundle several */
	uint8_t head[WIRE_SMALL];
	uint8_t *payload; /* as it was when it was sent */
	struct span from[LINK_SPANS], into[LINK_SPANS];
	unsigned from_count, into_count;
	void *place;       /* the receiver's cookie */
	void *cookie;      /* the sender's; NULL: none, or it was told */
	int64_t told_due;  /* when the sender is told */
	bool eager, tells; /* eager: the payload was copied at once; tells: told_due has passed */
	bool held;         /* it is not freed yet */
};

struct link {
	struct link *next;
	struct link_events events;
	struct beat beat;
	int64_t stands;   /* ns that its next look takes, as its process stands still */
	int64_t until[2]; /* of a sender: of the quiet of its connections */
	/* Of the receiver: the last one with a welcome; messages of its sender that came; missed before that.
	 */
	struct line *greeted;
	uint64_t had;
	unsigned missed;
	int set, descriptor;
	unsigned side;
	struct line *line;
	bool listens, told, dead;
	bool armed, inside; /* inside: of one of its functions */
	bool torn;          /* it has told that a payload was, and the connection is still there */
};

extern struct net {
	struct wr_random random;
	struct wr_thread fiber;
	struct wr_mutex mutex; /* of the two below, and of waiting */
	struct wr_cond changed;
	bool over, has_changed;
	struct simulated_plan plan;
	void (*fails)(const char *format, ...) WEIR_PRINTF(1, 2);
	struct link *links;
	struct line *lines;
	struct parcel *parcels;
} net;

unsigned net_draw(unsigned below);
/* When a step of the link is due: mostly at once, which is a matter of the schedule; in up to 40 ms else. */
int64_t net_draw_due(void);
struct parcel *net_post(enum kind kind, struct line *line, struct link *to, unsigned side);
struct line *net_make_line(struct link *sender);
const char *net_name(unsigned side);
/* The link whose entity has this state; NULL: there is none. */
struct link *net_link_of(const void *state);
/* The receiver's; NULL: there is none. */
struct link *net_receiver(void);
/* Until a payload is whole anything may lie where it goes. */
void net_write_garbage(const struct parcel *parcel);
/* R3: the sender's block must be as it was. */
void net_check_block(const struct parcel *parcel);
/* It does not come, or no more of it does. What waits for it is told. */
void net_lose(struct parcel *parcel);
/* Something has come for this side. */
void net_signal(struct link *link);
/* Ends a connection. Some of what is under way still comes. gone: the side that is told nothing, or 2. */
void net_cut(struct line *line, unsigned gone);

/* --- simulated_silence.c --- */

/* This side of the link's connection is joined: from now on it hears of the other one, and says signs of
 * life. */
void quiet_join(struct link *link);
/* A sign has come to this side. */
void quiet_hear(struct line *line, unsigned side);
/* A silence begins, if there is a connection that can have one. */
void quiet_begin(void);
/* The process stands still now if it is to. Ends when it goes on. */
void quiet_stand(struct link *link);
/* When what comes to this side may come. */
int64_t quiet_due(const struct line *line, unsigned side, int64_t due);
/* Whether there is a silence, or was one of which something may be late. */
bool quiet_is(const struct line *line);
/* The link calls the other side silent; now: when it looked last at what had come. */
void quiet_check_named(const struct link *link, int64_t now);
/* That each side is not longer without a sign than it may be. */
void quiet_check(void);

#endif
