/* A port of this machine that nothing uses. */
#ifndef TESTS_REMOTE_PORT_H
#define TESTS_REMOTE_PORT_H

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Below those that the system gives to connections; another one for each call. Until the process ends no test
 * beside it gets that port: a socket keeps it, which a listener that reuses addresses may join.
 */
static inline int free_port(void)
{
	static int next;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;

	for (;;) {
		int keeper = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int port = 10000 + (getpid() * 31 + next++) % 20000;

		address.sin_port = htons((uint16_t)port);
		if (!bind(keeper, (struct sockaddr *)&address, sizeof address) &&
		    !setsockopt(keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on))
			return port;
		close(keeper);
	}
}

#endif
