#include "remote/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "remote/address.h"

/* The mark has the version of these frames; numbers are little-endian, as they are in memory here. */
static const char mark[8] = {'w', 'e', 'i', 'r', 'm', 'e', 't', '2'};
enum { SIGN = 'b' };

struct head {
	char mark[8];
	uint32_t answer, bytes; /* bytes: of the address behind it */
	uint64_t tag, sum;      /* sum: of the address: the engine ends the process for one that is broken */
	int64_t keepalive;
};
_Static_assert(sizeof(struct head) == MEET_HEAD, "a frame's head has no gaps");

int meet_listen(const struct address *address, char why[LINK_WHY])
{
	const int on = 1;
	int listener = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* REUSEADDR: a receiver that is started again has its address at once. */
	if (listener >= 0 && !setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
	    !bind(listener, (const struct sockaddr *)&address->socket, address->size) &&
	    !listen(listener, 16))
		return listener;
	snprintf(why, LINK_WHY, "%s", errno == EADDRINUSE ? "the address is in use" : strerror(errno));
	if (listener >= 0)
		close(listener);
	return -1;
}

/* At a listener of IPv6 one of IPv4 has a prefix, which no list of peers has. */
static void name_peer(const struct sockaddr_storage *from, char peer[MEET_PEER])
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)from)->sin6_addr;
	bool is_six = from->ss_family == AF_INET6, mapped = is_six && IN6_IS_ADDR_V4MAPPED(six);
	const void *host = mapped   ? (const void *)&six->s6_addr[12]
			   : is_six ? (const void *)six
				    : (const void *)&((const struct sockaddr_in *)from)->sin_addr;

	if (!inet_ntop(mapped ? AF_INET : from->ss_family, host, peer, MEET_PEER))
		snprintf(peer, MEET_PEER, "unknown");
}

bool meet_accept(int listener, const char *peers, struct meeting *out)
{
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof from;
	int socket = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (socket < 0)
		return false;
	*out = (struct meeting){.socket = socket};
	name_peer(&from, out->peer);
	out->unwelcome = !address_has_peer(peers, out->peer);
	return true;
}

bool meet_connect(const struct address *address, struct meeting *out, char why[LINK_WHY])
{
	int socket_ = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*out = (struct meeting){.socket = socket_, .connecting = true};
	if (socket_ >= 0 && (!connect(socket_, (const struct sockaddr *)&address->socket, address->size) ||
			     errno == EINPROGRESS))
		return true;
	snprintf(why, LINK_WHY, "%s", errno == ECONNREFUSED ? "nothing listens there" : strerror(errno));
	meet_close(out);
	return false;
}

int meet_connected(struct meeting *meeting)
{
	int error = 0;
	socklen_t size = sizeof error;

	meeting->connecting = false;
	return getsockopt(meeting->socket, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

/* FNV-1a: against accidents, not against a peer that means harm. */
static uint64_t sum_of(const uint8_t *bytes, size_t count)
{
	uint64_t sum = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < count; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
	return sum;
}

/* A frame is far smaller than the buffer of a socket on which nothing was sent. */
bool meet_say(const struct meeting *meeting, const struct meet_frame *frame)
{
	struct head head = {
		.answer = frame->answer,
		.bytes = (uint32_t)frame->bytes,
		.tag = frame->tag,
		.sum = sum_of(frame->address, frame->bytes),
		.keepalive = frame->keepalive,
	};
	uint8_t said[MEET_HEAD + MEET_ADDRESS];

	if (frame->bytes > MEET_ADDRESS)
		return false;
	memcpy(head.mark, mark, sizeof mark);
	memcpy(said, &head, sizeof head);
	if (frame->bytes)
		memcpy(said + sizeof head, frame->address, frame->bytes);
	return send(meeting->socket, said, sizeof head + frame->bytes, MSG_NOSIGNAL) ==
	       (ssize_t)(sizeof head + frame->bytes);
}

/* What the buffer of the socket does not take would be read late: the other side reads none. */
void meet_beat(const struct meeting *meeting)
{
	const uint8_t sign = SIGN;

	(void)send(meeting->socket, &sign, sizeof sign, MSG_NOSIGNAL);
}

static struct head head_of(const struct meeting *meeting)
{
	struct head head;

	memcpy(&head, meeting->frame, sizeof head);
	return head;
}

/* How many bytes the frame has, as far as that is known; 0: it is none of weir's. */
static size_t wanted(const struct meeting *meeting)
{
	size_t seen = meeting->have < sizeof mark ? meeting->have : sizeof mark;

	if (memcmp(meeting->frame, mark, seen))
		return 0;
	if (meeting->have < MEET_HEAD)
		return MEET_HEAD;
	return head_of(meeting).bytes <= MEET_ADDRESS ? MEET_HEAD + head_of(meeting).bytes : 0;
}

/* `bytes` more, at most; what it means if none come. */
static enum meet_news get(struct meeting *meeting, void *to, size_t bytes, size_t *got)
{
	ssize_t received;

	do
		received = recv(meeting->socket, to, bytes, 0);
	while (received < 0 && errno == EINTR);
	*got = received > 0 ? (size_t)received : 0;
	if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return MEET_WAITS;
	return received > 0 ? MEET_WHOLE : MEET_ENDED;
}

enum meet_news meet_read(struct meeting *meeting)
{
	for (size_t want = wanted(meeting), got;; want = wanted(meeting)) {
		enum meet_news news;

		if (!want)
			return MEET_STRANGE;
		if (meeting->have == want && want > MEET_HEAD)
			return head_of(meeting).sum == sum_of(meeting->frame + MEET_HEAD, want - MEET_HEAD)
				       ? MEET_WHOLE
				       : MEET_STRANGE;
		if (meeting->have == want) /* a head without an address */
			return MEET_WHOLE;
		news = get(meeting, meeting->frame + meeting->have, want - meeting->have, &got);
		if (news != MEET_WHOLE)
			return news;
		meeting->have += got;
	}
}

enum meet_news meet_look(struct meeting *meeting)
{
	uint8_t more[64];
	enum meet_news news;
	bool heard = false;
	size_t got;

	while ((news = get(meeting, more, sizeof more, &got)) == MEET_WHOLE) {
		heard = true;
		for (size_t i = 0; i < got; i++)
			if (more[i] != SIGN)
				return MEET_STRANGE;
	}
	return news == MEET_WAITS && heard ? MEET_WHOLE : news;
}

enum meet_answer meet_answer(const struct meeting *meeting)
{
	return head_of(meeting).answer == MEET_ACCEPTS ? MEET_ACCEPTS : MEET_REFUSES;
}

uint64_t meet_tag(const struct meeting *meeting)
{
	return head_of(meeting).tag;
}

int64_t meet_keepalive(const struct meeting *meeting)
{
	return head_of(meeting).keepalive;
}

const void *meet_address(const struct meeting *meeting)
{
	return head_of(meeting).bytes ? meeting->frame + MEET_HEAD : NULL;
}

size_t meet_address_bytes(const struct meeting *meeting)
{
	return head_of(meeting).bytes;
}

/* shutdown: a process that the program forked meanwhile has a copy of the socket, which would keep it open.
 */
static void close_socket(int socket)
{
	(void)shutdown(socket, SHUT_RDWR);
	close(socket);
}

void meet_deafen(int listener)
{
	if (listener >= 0)
		close_socket(listener);
}

void meet_close(struct meeting *meeting)
{
	if (meeting->socket >= 0)
		close_socket(meeting->socket);
	meeting->socket = -1;
}
