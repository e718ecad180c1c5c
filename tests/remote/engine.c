/*
 * Two links of UCX in one process, on one thread, without graphs: one listens, the other one connects. What
 * the engine says when it is armed, and the time, are the test's; what it registers is counted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <ucp/api/ucp.h>

#include "remote/address.h"
#include "remote/link.h"
#include "port.h"

static bool unfinished; /* the other side stands still in mid-write: no engine can be armed */
static int64_t later;   /* ns that have passed beside those of the system's clock */
static bool ends;       /* the other process ends behind the next connection that is made to it */
static int last = -1;   /* that connection */

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

static struct {
	unsigned maps, unmaps; /* calls */
} memory;

static ucs_status_t (*real_arm)(ucp_worker_h worker);
static ucs_status_t (*real_map)(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *out);
static ucs_status_t (*real_unmap)(ucp_context_h context, ucp_mem_h memory);

static ucs_status_t arm(ucp_worker_h worker)
{
	return unfinished ? UCS_ERR_BUSY : real_arm(worker);
}

static ucs_status_t map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *out)
{
	memory.maps++;
	return real_map(context, params, out);
}

static ucs_status_t unmap(ucp_context_h context, ucp_mem_h handle)
{
	memory.unmaps++;
	return real_unmap(context, handle);
}

/* The test's, in place of the engine's function, which is kept. */
#define REPLACE(own)                                                                                         \
	do {                                                                                                 \
		*(void **)&real_##own = found;                                                               \
		*(__typeof__(&(own)) *)&found = (own);                                                       \
	} while (0)

void *__wrap_dlsym(void *handle, const char *name)
{
	void *found = __real_dlsym(handle, name);

	if (!strcmp(name, "ucp_worker_arm"))
		REPLACE(arm);
	else if (!strcmp(name, "ucp_mem_map"))
		REPLACE(map);
	else if (!strcmp(name, "ucp_mem_unmap"))
		REPLACE(unmap);
	return found;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int error = __real_clock_gettime(clock, out);

	out->tv_sec += (out->tv_nsec + later) / 1000000000;
	out->tv_nsec = (out->tv_nsec + later) % 1000000000;
	return error;
}

/* The functions of the system, also for the engine: the test's program exports them. */
#define SYSTEM(name) __asm__(#name) __attribute__((visibility("default")))
int connect_unless_it_ended(int socket, const void *address, socklen_t bytes) SYSTEM(connect);
ssize_t send_unless_it_ended(int socket, const void *data, size_t bytes, int flags) SYSTEM(send);

int connect_unless_it_ended(int socket, const void *address, socklen_t bytes)
{
	int (*real)(int, const void *, socklen_t);

	if (ends && last >= 0) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (ends)
		last = socket;
	*(void **)&real = __real_dlsym(RTLD_NEXT, "connect");
	return real(socket, address, bytes);
}

ssize_t send_unless_it_ended(int socket, const void *data, size_t bytes, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int);

	if (ends && socket == last) {
		errno = ECONNRESET;
		return -1;
	}
	*(void **)&real = __real_dlsym(RTLD_NEXT, "send");
	return real(socket, data, bytes, flags);
}

/* --- two sides --- */

struct side {
	int set;
	struct link *link;
	bool joined, lost;
	struct span span; /* where the next message goes */
	unsigned filled, sent;
};

static void on_joined(void *arg)
{
	((struct side *)arg)->joined = true;
}

static void on_accepted(void *arg, const char *peer)
{
	(void)peer;
	on_joined(arg);
}

static int on_arrived(void *arg, const void *head, size_t head_bytes, size_t bytes, struct span *spans,
		      void **cookie)
{
	(void)head, (void)head_bytes, (void)cookie;
	*spans = ((struct side *)arg)->span;
	return spans->bytes == bytes ? 1 : -1;
}

static void on_filled(void *arg, void *cookie, bool whole)
{
	(void)cookie;
	assert_true(whole);
	((struct side *)arg)->filled++;
}

static void on_sent(void *arg, void *cookie)
{
	(void)cookie;
	((struct side *)arg)->sent++;
}

static void on_lost(void *arg, const char *why)
{
	(void)why;
	((struct side *)arg)->lost = true;
}

static void open_side(struct side *side)
{
	/* No sign of life is due: nothing but what a test does makes a set readable. */
	const struct link_events events = {
		.arg = side,
		.connected = on_joined,
		.accepted = on_accepted,
		.arrived = on_arrived,
		.filled = on_filled,
		.sent = on_sent,
		.lost = on_lost,
	};
	char why[LINK_WHY];

	*side = (struct side){.set = epoll_create1(EPOLL_CLOEXEC)};
	assert_true(transport_ucx.load(why));
	side->link = transport_ucx.open(&events, side->set, why);
	assert_non_null(side->link);
}

static void meet(struct side sides[2])
{
	char text[ADDRESS_TEXT], why[LINK_WHY];
	struct address address;

	snprintf(text, sizeof text, "127.0.0.1:%d", free_port());
	assert_true(address_find(text, &address, why));
	for (int i = 0; i < 2; i++)
		open_side(&sides[i]);
	assert_true(transport_ucx.listen(sides[0].link, &address, "", why));
	assert_true(transport_ucx.connect(sides[1].link, &address, why));
}

static void join(struct side sides[2])
{
	meet(sides);
	while (!sides[0].joined || !sides[1].joined)
		for (int i = 0; i < 2; i++)
			transport_ucx.progress(sides[i].link);
	for (int rounds = 0; rounds < 100; rounds++) /* what UCX has to say to itself is said */
		for (int i = 0; i < 2; i++)
			transport_ucx.progress(sides[i].link);
}

static void close_side(struct side *side, int64_t patience)
{
	transport_ucx.close(side->link, patience);
	close(side->set);
}

static bool is_readable(const struct side *side, int ms)
{
	struct pollfd set = {side->set, POLLIN, 0};

	return poll(&set, 1, ms) == 1;
}

static void r04_an_engine_that_cannot_be_armed_keeps_no_tick_and_is_tried_again(void **unused)
{
	struct side sides[2];

	(void)unused;
	join(sides);
	unfinished = true;
	for (int i = 0; i < 20; i++) {
		transport_ucx.progress(sides[0].link); /* else it would not return */
		assert_true(is_readable(&sides[0], -1));
	}
	unfinished = false;
	while (is_readable(&sides[0], 0))
		transport_ucx.progress(sides[0].link);
	assert_false(is_readable(&sides[0], 100)); /* it is armed: nothing is tried any more */
	assert_false(sides[0].lost);
	close_side(&sides[1], 0);
	close_side(&sides[0], 0);
}

static void r05_a_close_has_its_patience_with_an_engine_that_cannot_be_armed(void **unused)
{
	struct side sides[2];

	(void)unused;
	join(sides);
	unfinished = true;
	close_side(&sides[0], 50000000); /* the other side does not close: else it would not return */
	unfinished = false;
	close_side(&sides[1], 0);
}

static void r05_an_end_that_is_waited_for_makes_the_set_readable(void **unused)
{
	struct side sides[2];

	(void)unused;
	join(sides);
	while (!transport_ucx.end(sides[0].link))
		assert_true(is_readable(&sides[0], -1));
	while (!sides[1].lost) {
		assert_true(is_readable(&sides[1], -1));
		transport_ucx.progress(sides[1].link);
	}
	close_side(&sides[1], 0);
	close_side(&sides[0], 0);
}

static void r06_r07_sockets_are_looked_at_by_time_while_it_polls(void **unused)
{
	struct side sides[2];

	(void)unused;
	join(sides);
	transport_ucx.poll(sides[0].link);
	transport_ucx.drop(sides[1].link); /* by shared memory the socket alone tells it */
	later += 1000000000;               /* a tick of another entity takes so long */
	assert_true(is_readable(&sides[0], -1));
	transport_ucx.poll(sides[0].link);
	assert_true(sides[0].lost);
	close_side(&sides[1], 0);
	close_side(&sides[0], 0);
}

/* UCX would end this process, too: it connects, and cannot send its address. */
static void r06_a_sender_that_ends_as_it_connects_is_lost(void **unused)
{
	const char *transports = getenv("UCX_TLS");
	struct side sides[2];

	(void)unused;
	setenv("UCX_TLS", "tcp,self", 1);
	meet(sides);
	ends = true;
	for (; !sides[0].joined; transport_ucx.progress(sides[0].link))
		transport_ucx.progress(sides[1].link);
	while (!sides[0].lost) {
		assert_true(is_readable(&sides[0], -1));
		transport_ucx.progress(sides[0].link);
	}
	assert_true(last >= 0);
	ends = false;
	last = -1;
	close_side(&sides[1], 0);
	close_side(&sides[0], 0);
	setenv("UCX_TLS", transports, 1);
}

/* --- memory that is registered --- */

enum { BYTES = 1 << 20 };

/* The half of an allocation of so many bytes twice, filled with a number. */
static struct span half_of(uint8_t *data, uint64_t id, int number)
{
	memset(data, number, BYTES);
	return (struct span){.data = data + BYTES / 2,
			     .bytes = BYTES / 2,
			     .apart = true,
			     .whole = {.id = id, .data = data, .bytes = BYTES}};
}

static void begin_to_send(struct side sides[2], const struct span *from)
{
	assert_int_equal(transport_ucx.send(sides[1].link, "head", 4, from, 1, NULL), LINK_UNDER_WAY);
}

static void wait_for(struct side sides[2], unsigned messages)
{
	while (sides[0].filled < messages || sides[1].sent < messages)
		for (int i = 0; i < 2; i++)
			transport_ucx.progress(sides[i].link);
}

static void r09_an_allocation_is_registered_once(void **unused)
{
	uint8_t *from = test_malloc(BYTES), *to = test_malloc(BYTES);
	struct side sides[2];

	(void)unused;
	join(sides);
	memory.maps = memory.unmaps = 0;
	for (int i = 0; i < 10; i++) {
		uint64_t id = i < 5 ? 1 : 2; /* then another allocation has the same address */
		struct span piece = half_of(from, id, i);

		sides[0].span = half_of(to, 7, 255);
		begin_to_send(sides, &piece);
		wait_for(sides, (unsigned)i + 1);
		assert_memory_equal(from + BYTES / 2, to + BYTES / 2, BYTES / 2);
		assert_int_equal(memory.maps, i < 5 ? 2 : 3);
	}
	close_side(&sides[1], 0);
	close_side(&sides[0], 0);
	assert_int_equal(memory.unmaps, memory.maps);
	test_free(from);
	test_free(to);
}

/* Places are found by the remainder of the id: one that is in use is not given to another allocation. */
static void r09_an_allocation_in_use_stays_registered(void **unused)
{
	uint8_t *from[2] = {test_malloc(BYTES), test_malloc(BYTES)}, *to = test_malloc(BYTES);
	struct side sides[2];

	(void)unused;
	join(sides);
	memory.maps = memory.unmaps = 0;
	sides[0].span = half_of(to, 0, 255);
	for (int i = 0; i < 2; i++) {
		struct span piece = half_of(from[i], 3 + 256 * (uint64_t)i, i);

		begin_to_send(sides, &piece);
	}
	assert_int_equal(memory.maps, 1);
	assert_int_equal(memory.unmaps, 0);
	wait_for(sides, 2);
	assert_int_equal(to[BYTES / 2], 1); /* both went there, in order */
	for (int i = 0; i < 2; i++) {
		struct span piece = half_of(from[1], 3 + 256, 9);

		begin_to_send(sides, &piece);
		wait_for(sides, 3 + (unsigned)i);
	}
	assert_int_equal(memory.maps, 2); /* it is free now, and the other one's */
	assert_int_equal(memory.unmaps, 1);
	assert_int_equal(to[BYTES - 1], 9);
	close_side(&sides[1], 0);
	close_side(&sides[0], 0);
	assert_int_equal(memory.unmaps, memory.maps);
	for (int i = 0; i < 2; i++)
		test_free(from[i]);
	test_free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r04_an_engine_that_cannot_be_armed_keeps_no_tick_and_is_tried_again),
		cmocka_unit_test(r05_a_close_has_its_patience_with_an_engine_that_cannot_be_armed),
		cmocka_unit_test(r05_an_end_that_is_waited_for_makes_the_set_readable),
		cmocka_unit_test(r06_r07_sockets_are_looked_at_by_time_while_it_polls),
		cmocka_unit_test(r06_a_sender_that_ends_as_it_connects_is_lost),
		cmocka_unit_test(r09_an_allocation_is_registered_once),
		cmocka_unit_test(r09_an_allocation_in_use_stays_registered),
	};

	alarm(50); /* what does not return fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
