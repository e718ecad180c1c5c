#include "remote/near.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t sign; /* of this process; written once, as the plugin's library is loaded */

__attribute__((constructor)) static void make_sign(void)
{
	if (getrandom(&sign, sizeof sign, GRND_NONBLOCK) != sizeof sign)
		sign = 0;
}

/* FNV-1a: a lie gains nothing, as memory is read to see whether it is true. */
static uint64_t add(uint64_t sum, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum = (sum ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
	return sum;
}

/* The names of namespaces have their numbers; a process with other rights may not be read. */
static bool find_place(uint64_t *place)
{
	static const char *const links[] = {"/proc/self/ns/pid", "/proc/self/ns/user", "/proc/self/ns/net",
					    "/proc/self/ns/ipc"};
	const uint32_t ids[] = {geteuid(), getuid(), getegid(), getgid()};
	uint64_t sum = add(UINT64_C(14695981039346656037), ids, sizeof ids);
	char text[4096];
	ssize_t bytes;
	int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	bytes = file >= 0 ? read(file, text, sizeof text) : -1;
	close(file);
	if (bytes <= 0)
		return false;
	sum = add(sum, text, (size_t)bytes);
	for (unsigned i = 0; i < sizeof links / sizeof links[0]; i++) {
		bytes = readlink(links[i], text, sizeof text);
		if (bytes <= 0)
			return false;
		sum = add(sum, text, (size_t)bytes);
	}
	*place = sum;
	return true;
}

/* The address and the port of one end; of IPv6, as a listener at [::] sees one of IPv4, too. */
static void name_end(struct sockaddr_storage *end)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)end;
	struct sockaddr_in four;

	if (end->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return;
	four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = six->sin6_port};
	memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof four.sin_addr);
	memset(end, 0, sizeof *end);
	memcpy(end, &four, sizeof four);
}

bool near_say(struct near *out, int socket)
{
	socklen_t size = sizeof out->socket;

	memset(out, 0, sizeof *out);
	out->at = (uint64_t)(uintptr_t)&sign;
	out->sign = sign;
	out->process = getpid();
	if (!sign || !find_place(&out->place) ||
	    getsockname(socket, (struct sockaddr *)&out->socket, &size)) {
		out->sign = 0;
		return false;
	}
	name_end(&out->socket);
	return true;
}

/* Behind a relay the end of one connection is not that of the other. */
static bool is_direct(const struct near *other, int socket)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;

	memset(&peer, 0, sizeof peer);
	if (getpeername(socket, (struct sockaddr *)&peer, &size))
		return false;
	name_end(&peer);
	return !memcmp(&peer, &other->socket, sizeof peer);
}

bool near_is(const struct near *other, int socket)
{
	uint64_t seen = 0;
	struct iovec to = {&seen, sizeof seen}, from = {(void *)(uintptr_t)other->at, sizeof seen};
	struct near own;

	return near_say(&own, socket) && other->sign && other->place == own.place &&
	       is_direct(other, socket) &&
	       process_vm_readv((pid_t)other->process, &to, 1, &from, 1, 0) == sizeof seen &&
	       seen == other->sign;
}

static uint8_t state_of(int socket)
{
	struct tcp_info info = {.tcpi_state = TCP_CLOSE};
	socklen_t size = sizeof info;

	return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) ? TCP_CLOSE : info.tcpi_state;
}

bool near_is_open(int socket)
{
	return state_of(socket) == TCP_ESTABLISHED;
}

bool near_end(int socket)
{
	uint8_t state;

	if (shutdown(socket, SHUT_WR))
		return true;
	state = state_of(socket);
	return state != TCP_ESTABLISHED && state != TCP_FIN_WAIT1 && state != TCP_CLOSING &&
	       state != TCP_LAST_ACK;
}
