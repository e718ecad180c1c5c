/*
 * Two links of UCX in one process, on one thread, without graphs: one listens, the other one connects. What
 * the engine says when it is armed, and the time, are the test's.
 */
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

static ucs_status_t (*real_arm)(ucp_worker_h worker);

static ucs_status_t arm(ucp_worker_h worker)
{
	return unfinished ? UCS_ERR_BUSY : real_arm(worker);
}

void *__wrap_dlsym(void *handle, const char *name)
{
	void *found = __real_dlsym(handle, name);

	if (strcmp(name, "ucp_worker_arm") != 0)
		return found;
	*(void **)&real_arm = found;
	*(ucs_status_t(**)(ucp_worker_h)) & found = arm;
	return found;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int error = __real_clock_gettime(clock, out);

	out->tv_sec += (out->tv_nsec + later) / 1000000000;
	out->tv_nsec = (out->tv_nsec + later) % 1000000000;
	return error;
}

/* --- two sides --- */

struct side {
	int set;
	struct link *link;
	bool joined, lost;
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
	(void)arg, (void)head, (void)head_bytes, (void)bytes, (void)spans, (void)cookie;
	return -1;
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
		.lost = on_lost,
	};
	char why[LINK_WHY];

	*side = (struct side){.set = epoll_create1(EPOLL_CLOEXEC)};
	assert_true(transport_ucx.load(why));
	side->link = transport_ucx.open(&events, side->set, why);
	assert_non_null(side->link);
}

static void join(struct side sides[2])
{
	char text[ADDRESS_TEXT], why[LINK_WHY];
	struct address address;

	snprintf(text, sizeof text, "127.0.0.1:%d", free_port());
	assert_true(address_find(text, &address, why));
	for (int i = 0; i < 2; i++)
		open_side(&sides[i]);
	assert_true(transport_ucx.listen(sides[0].link, &address, "", why));
	assert_true(transport_ucx.connect(sides[1].link, &address, why));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r04_an_engine_that_cannot_be_armed_keeps_no_tick_and_is_tried_again),
		cmocka_unit_test(r05_a_close_has_its_patience_with_an_engine_that_cannot_be_armed),
		cmocka_unit_test(r05_an_end_that_is_waited_for_makes_the_set_readable),
		cmocka_unit_test(r06_r07_sockets_are_looked_at_by_time_while_it_polls),
	};

	alarm(50); /* what does not return fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
