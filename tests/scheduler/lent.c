/*
 * One part in messages of two threads: each packs it, one lends its pack, and both deliver
 * (weir_message_lend, B2). On real threads, for the thread sanitizer.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

enum { ROUNDS = 2000 };

struct deliverer {
	struct rig *rig;
	weir_inlet *inlet;
	weir_outlet *outlet;
	weir_message *part;
	bool lends;
	_Atomic unsigned wrong, taken;
	struct wr_thread pushing, taking;
};

static void push_packs(void *arg)
{
	struct deliverer *self = arg;

	for (int i = 0; i < ROUNDS; i++) {
		weir_part part = {
			.size = sizeof part, .name = "shared", .message = weir_message_ref(self->part)};
		weir_message *pack = NULL;

		if (weir_message_pack(self->rig->graph, &part, 1, &pack)) {
			wr_fetch_add(&self->wrong, 1);
			return;
		}
		if (self->lends)
			weir_message_lend(pack);
		if (weir_inlet_push(self->inlet, pack, -1))
			wr_fetch_add(&self->wrong, 1);
	}
	weir_inlet_close(self->inlet);
}

/* The part is shared, and lent since the first pack: it may not be written. */
static void take_packs(void *arg)
{
	struct deliverer *self = arg;
	weir_message *pack;

	while (!weir_outlet_take(self->outlet, -1, &pack)) {
		weir_message *part = weir_message_part(pack, "shared");
		bool writable = weir_message_unique(pack) || weir_message_unique(part);

		wr_fetch_add(&self->wrong, writable || rig_value(part) != 7);
		wr_fetch_add(&self->taken, 1);
		weir_message_unref(pack);
	}
}

static void b02_two_threads_lend_and_deliver_one_part(void **state)
{
	static struct deliverer both[2];
	struct rig *rig;

	(void)state;
	rig_backend = "host";
	rig = rig_of("p:pass; q:pass");
	for (int i = 0; i < 2; i++) {
		both[i] = (struct deliverer){.rig = rig, .lends = !i};
		assert_int_equal(weir_graph_add_inlet(rig->graph, i ? "q.in" : "p.in", &both[i].inlet),
				 WEIR_OK);
		both[i].outlet = rig_outlet(rig, i ? "q.out" : "p.out", 4, 0);
	}
	rig_start(rig);
	both[0].part = both[1].part = rig_message(rig, 7);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wr_thread_start(&both[i].pushing, "push", push_packs, &both[i]), WEIR_OK);
		assert_int_equal(wr_thread_start(&both[i].taking, "take", take_packs, &both[i]), WEIR_OK);
	}
	for (int i = 0; i < 2; i++) {
		wr_thread_join(&both[i].pushing);
		wr_thread_join(&both[i].taking);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wr_load(&both[i].wrong), 0);
		assert_int_equal(wr_load(&both[i].taken), ROUNDS);
	}
	assert_false(weir_message_unique(both[0].part)); /* lent, though one holder is left */
	weir_message_unref(both[0].part);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(b02_two_threads_lend_and_deliver_one_part)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
