/*
 * What carries bytes between two processes, as a table of functions, so that each engine enters by one file
 * and what is sent knows none of them. A link has at most one connection at a time. A message is a head of a
 * few bytes, in one piece, and a payload in up to LINK_SPANS pieces. The link may bring messages in any
 * order.
 *
 * All functions of a link are called by the owner of its entity, and all events come inside of `progress`,
 * `drop`, `end` and `close`, on that thread.
 */
#ifndef REMOTE_LINK_H
#define REMOTE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	LINK_SPANS = 64,
	LINK_WHY = 300, /* bytes of a line that says what failed */
};

/*
 * An allocation of this process. id: of no other one, also of none that is made later at the same address; 0:
 * it is not known, nor is the rest.
 */
struct whole {
	uint64_t id;
	void *data;
	size_t bytes;
};

/*
 * device: memory of a device, which the host cannot read. apart, of what is
 * sent: it may be on this side or the other one, so the receiver is asked where the bytes go before any come;
 * on each backend alike. whole: what the memory is a part of.
 */
struct span {
	void *data;
	size_t bytes;
	bool device, apart;
	struct whole whole;
};

static inline bool link_has_device(const struct span *spans, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (spans[i].device)
			return true;
	return false;
}

struct address {
	struct sockaddr_storage socket;
	socklen_t size;
};

struct link;

struct link_events {
	void *arg;
	/* `lost` comes, too, after so many ns without a sign of life of the other side (R7); 0: it does not.
	 */
	int64_t keepalive;
	/* The other side has accepted: messages can be sent. */
	void (*connected)(void *arg);
	/* The listener has accepted a connection; `peer` is its other end, a text to show. */
	void (*accepted)(void *arg, const char *peer);
	/* What connected was no link, and is gone. */
	void (*stranger)(void *arg, const char *peer);
	/*
	 * A message has come. Returns into how many pieces its payload of so many bytes goes, 0 to
	 * LINK_SPANS, which stay valid until `filled`, and which are as large together; negative: it is not
	 * wanted. cookie: for `filled`, which is called for each payload that is wanted, also one of 0 bytes.
	 */
	int (*arrived)(void *arg, const void *head, size_t head_bytes, size_t bytes, struct span *spans,
		       void **cookie);
	/* The link does not touch the payload any more; whole: all bytes came. */
	void (*filled)(void *arg, void *cookie, bool whole);
	/* The link does not touch what was sent any more, whatever became of it. */
	void (*sent)(void *arg, void *cookie);
	/* The connection, or the try to make one, is over. Told once; `drop` comes before the next one. */
	void (*lost)(void *arg, const char *why);
};

enum link_sent { LINK_BROKEN, LINK_DONE, LINK_UNDER_WAY };

struct transport {
	const char *name;
	/* Loads the engine, without a link. false: `why` says why it cannot be had. Thread: any. */
	bool (*load)(char why[LINK_WHY]);
	/*
	 * NULL: `why` says why. Copies the events. Adds its descriptors to the set, an epoll descriptor,
	 * which is readable then if something came since `progress`, and which outlives the link. What the
	 * caller has in the set has the data NULL.
	 */
	struct link *(*open)(const struct link_events *events, int set, char why[LINK_WHY]);
	/* Whether spans may be memory of a device; NULL: none may. */
	bool (*takes_devices)(const struct link *link);
	/* Whether the connection that is there uses `whole` of a span; NULL: none does. */
	bool (*uses_wholes)(const struct link *link);
	/* Largest head that can be sent. */
	size_t (*head_most)(const struct link *link);
	/* peers: the addresses that may connect, separated by commas or blanks; "": any. */
	bool (*listen)(struct link *link, const struct address *address, const char *peers,
		       char why[LINK_WHY]);
	/* Ends listening, and drops connections that were not accepted. */
	void (*deafen)(struct link *link);
	/* Begins to connect: `connected` comes, or `lost`. */
	bool (*connect)(struct link *link, const struct address *address, char why[LINK_WHY]);
	/* Handles what came until nothing does, and arms the descriptor; one that cannot be is readable later
	 * (R4). */
	void (*progress)(struct link *link);
	/* The same without arming: for a caller that calls again at once. NULL: `progress` is all there is.
	 */
	void (*poll)(struct link *link);
	/*
	 * Sends. The head is copied; with UNDER_WAY the payload stays valid until `sent`. DONE, BROKEN:
	 * `sent` is not called.
	 */
	enum link_sent (*send)(struct link *link, const void *head, size_t head_bytes,
			       const struct span *spans, unsigned count, void *cookie);
	/*
	 * Ends the connection at once. Every `sent` and `filled` has been called when it returns (R3). false:
	 * there can be no other connection.
	 */
	bool (*drop)(struct link *link);
	/*
	 * The same, and waits for nothing: false: it is to be called again when the set is readable, and no
	 * other function but `close` meanwhile. NULL: `close` waits for nothing.
	 */
	bool (*end)(struct link *link);
	/*
	 * Ends all. patience: how long it waits for the other side to close first, ns, so that what was sent
	 * last is read; 0: it does not. NULL is allowed.
	 */
	void (*close)(struct link *link, int64_t patience);
};

/* UCX: shared memory with a process that is near (near.h), else TCP, and what else it has for the network. */
extern const struct transport transport_ucx;

#endif
