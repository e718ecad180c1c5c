/* A port of this machine that nothing uses. */
#ifndef TESTS_REMOTE_PORT_H
#define TESTS_REMOTE_PORT_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below those that the system gives to connections; another one for each call. */
static inline int free_port(void)
{
	static int next;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int port = 0;

	for (bool is_free = false; !is_free; next++) {
		int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		port = 10000 + (getpid() * 31 + next) % 20000;
		address.sin_port = htons((uint16_t)port);
		is_free = !bind(socket_, (struct sockaddr *)&address, sizeof address);
		close(socket_);
	}
	return port;
}

#endif
