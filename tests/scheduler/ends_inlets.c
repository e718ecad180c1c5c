/* Inlets and the worker that receives from them: no lock between them, and no free room
 * missed. Atomics are switching points. */
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/bugs/bug.h"

#define TEST(name) static void name(void **state_)

static weir_inlet *inlet_of(struct rig *rig, const char *port)
{
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, port, &inlet), WEIR_OK);
	return inlet;
}

/* Like a thread whose push woke a worker and that the kernel has descheduled inside the call. */
static void receive_while_a_thread_is_inside(void)
{
	struct rig *rig = rig_of("end enabled=false");
	weir_inlet *inlet = inlet_of(rig, "end.in");

	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 7), 0), WEIR_OK);
	rig_lock_inlet(inlet, true);
	rig_tell(rig, "end", WEIR_TOLD_READY);
	weir_sleep(MS);
	assert_string_equal(rig_text(rig, "end"), "7");
	rig_lock_inlet(inlet, false);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

TEST(xb26_a_message_is_received_while_a_thread_is_inside_its_inlet)
{
	(void)state_;
	rig_in_worlds(10, receive_while_a_thread_is_inside);
}

/* --- two threads wait for room of one message --- */

enum { PUSHES = 12, SEEDS = 400 };

struct pusher {
	struct rig *rig;
	weir_inlet *inlet;
	struct wr_thread thread;
};

static unsigned unseen;

/* The receiver takes microseconds. */
static void push_some(void *arg)
{
	struct pusher *pusher = arg;

	for (int i = 0; i < PUSHES; i++) {
		weir_message *message = rig_message(pusher->rig, i);
		while (weir_inlet_push(pusher->inlet, message, SECOND))
			unseen++;
	}
}

static void wait_for_one_place(void)
{
	struct rig *rig = rig_of("end capacity=1");
	struct pusher pushers[2];

	pushers[0] = pushers[1] = (struct pusher){.rig = rig, .inlet = inlet_of(rig, "end.in")};
	rig_start(rig);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_thread_start(&pushers[i].thread, "pusher", push_some, &pushers[i]),
				 WEIR_OK);
	for (int i = 0; i < 2; i++)
		wr_thread_join(&pushers[i].thread);
	weir_inlet_close(pushers[0].inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 2 * PUSHES);
	rig_destroy(rig);
}

static void wait_for_one_place_in_worlds(void)
{
	unseen = 0;
	rig_in_worlds(SEEDS, wait_for_one_place);
}

TEST(b02_room_is_seen_by_a_thread_that_is_about_to_wait_for_it)
{
	(void)state_;
	wait_for_one_place_in_worlds();
	assert_int_equal(unseen, 0);
}

TEST(b02_the_seeded_bug_of_missed_room_is_found)
{
	(void)state_;
	wr_bug_active = WR_BUG_INLET_WAITS_UNSEEN;
	wait_for_one_place_in_worlds();
	wr_bug_active = WR_BUG_NONE;
	assert_int_not_equal(unseen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb26_a_message_is_received_while_a_thread_is_inside_its_inlet),
		cmocka_unit_test(b02_room_is_seen_by_a_thread_that_is_about_to_wait_for_it),
		cmocka_unit_test(b02_the_seeded_bug_of_missed_room_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
