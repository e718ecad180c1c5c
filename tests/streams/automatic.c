/*
 * The signal `auto`: on which streams a flag is written, and what comes of a signal that does not come. Run
 * as `automatic BACKEND`.
 */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS     ((int64_t)1000000)
#define SECOND (1000 * MS)

static bool writes(weir_stream *stream, enum wr_flagging flagging)
{
	rig_record(stream);
	assert_int_equal(wr_flag_write(stream, flagging), WEIR_OK);
	return wr_load(&stream->flag_value) == wr_load(&stream->submitted);
}

/* --- where --- */

RIG_BODY(g04_auto_writes_flags_on_streams_of_its_own_alone)
{
	weir_stream *view = rig_share(rig->a);

	assert_true(writes(rig->a, WR_FLAGS_AUTO));
	assert_true(writes(view, WR_FLAGS_AUTO));
	rig->a->wrapped = true;
	assert_false(writes(rig->a, WR_FLAGS_AUTO));
	assert_false(writes(view, WR_FLAGS_AUTO));
	assert_true(writes(view, WR_FLAGS_ALL)); /* asked for by name */
	rig->a->wrapped = false;
	wr_store(&rig->a->users, 1); /* the program gave it to an entity */
	assert_false(writes(view, WR_FLAGS_AUTO));
	wr_store(&rig->a->users, 0);
	assert_true(writes(view, WR_FLAGS_AUTO));
	wr_stream_close(view);
}

/* Whoever was given the handle may have begun a capture right after the record. */
RIG_BODY(g04_auto_asks_for_a_capture_before_each_write)
{
	rig_own_backend(rig)->capturing = rig_in_capture;
	assert_true(writes(rig->a, WR_FLAGS_AUTO));
	rig_record(rig->a);
	wr_store(&rig->a->native_given, true);
	assert_false(wr_load(&rig->a->dirty));
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_AUTO), WEIR_OK);
	assert_true(wr_load(&rig->a->flag_value) < wr_load(&rig->a->submitted));
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_ALL), WEIR_OK);
	assert_true(wr_load(&rig->a->flag_value) == wr_load(&rig->a->submitted));
	rig->backend.capturing = NULL;
}

RIG_BODY(g04_auto_means_callbacks_where_this_machine_does_the_work)
{
	assert_false(wr_system_prefers_flags(rig->system));
	rig->system->poller.spins = true; /* as beside a device */
	assert_true(wr_system_prefers_flags(rig->system));
	rig_own_backend(rig)->write_flag = NULL;
	assert_false(wr_system_prefers_flags(rig->system));
}

/* --- devices without flags --- */

static int asked;

static weir_status cannot_write_flags(void *self, int device)
{
	(void)self;
	asked++;
	return wr_fail(WEIR_E_UNSUPPORTED, "device %d has no stream memory operations", device);
}

RIG_BODY(g04_auto_uses_callbacks_where_a_device_cannot_write_flags)
{
	weir_stream *stream;

	asked = 0;
	rig_own_backend(rig)->can_write_flag = cannot_write_flags;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_AUTO), WEIR_OK);
	assert_int_equal(asked, 0); /* a device that the graph does not use stays as it is */
	stream = rig_stream(rig, "new");
	assert_int_equal(asked, 1);
	assert_null(wr_load(&stream->word));
	for (int i = 0; i < 3; i++)
		assert_false(writes(stream, WR_FLAGS_AUTO));
	assert_int_equal(asked, 2);
	wr_stream_close(stream);
}

static weir_status refuse_write(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)word;
	(void)value;
	asked++;
	return wr_fail(WEIR_E_UNSUPPORTED, "not on this stream");
}

/* Such as one of a green context, on a driver that writes flags on others only. */
RIG_BODY(g04_a_stream_that_refuses_a_flag_is_not_asked_again)
{
	uint64_t id = wr_load(&rig->a->id);

	asked = 0;
	rig_own_backend(rig)->write_flag = refuse_write;
	for (int i = 0; i < 3; i++)
		assert_false(writes(rig->a, WR_FLAGS_AUTO));
	assert_int_equal(asked, 1);
	assert_false(writes(rig->a, WR_FLAGS_ALL));
	assert_int_equal(asked, 2);
	rig_wait(rig, rig_record(rig->a));
	wr_stream_close(rig->a);
	rig->a = rig_stream(rig, "a");
	assert_true(wr_load(&rig->a->id) != id);
	assert_false(wr_load_relaxed(&rig->a->flagless)); /* opened again, for another use */
}

static weir_status no_memory(void *self, int device, size_t bytes, void **out)
{
	(void)self;
	(void)device;
	(void)bytes;
	*out = NULL;
	return wr_fail(WEIR_E_NOMEM, "no pinned memory");
}

RIG_BODY(g04_auto_needs_no_memory_for_flags)
{
	rig_own_backend(rig)->alloc = no_memory;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_AUTO), WEIR_OK);
	assert_false(wr_system_flags(rig->system));
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_E_NOMEM);
}

static weir_status lost_device(void *self, int device, size_t bytes, void **out)
{
	(void)self;
	(void)device;
	(void)bytes;
	*out = NULL;
	return wr_fail(WEIR_E_DEVICE, "the device is lost");
}

RIG_BODY(g04_auto_tells_of_a_device_that_is_lost)
{
	rig_own_backend(rig)->alloc = lost_device;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_AUTO), WEIR_E_DEVICE);
	assert_false(wr_system_flags(rig->system));
}

/* --- signals that do not come: sim only --- */

static weir_status watch_for(struct rig *rig, int64_t ns)
{
	int64_t end = wr_now() + ns, next;
	weir_status status = WEIR_OK;

	while (!status && wr_now() < end) {
		status = wr_system_watch(rig->system, wr_now(), &next);
		wr_system_collect(rig->system);
		wr_thread_sleep(10 * MS);
	}
	return status;
}

static void forgive_all(struct rig *rig)
{
	struct wr_sim_knobs knobs = {.lost = 1000};

	wr_signals_forgive(rig->system, true);
	wr_system_set_knobs(rig->system, &knobs);
}

RIG_BODY(e02_f12_a_lost_callback_fires_in_its_place_where_it_is_forgiven)
{
	if (!rig_is("sim"))
		return;
	forgive_all(rig);
	rig->system->signals.bound = 1; /* its place must be free again */
	for (int i = 1; i <= 3; i++) {
		rig_store(rig, rig->a, 1, MS);
		rig_arm(rig, 5, rig_record(rig->a));
		assert_int_equal(watch_for(rig, 4 * SECOND), WEIR_OK);
		assert_int_equal(wr_load(&rig->waker.poked[5]), i);
		assert_int_equal(wr_system_outstanding(rig->system), 0);
		assert_int_equal(wr_signals_late(rig->system), i);
	}
}

RIG_BODY(e02_f12_an_inline_callback_that_is_lost_fires_with_later_work)
{
	int64_t begun = wr_now();

	if (!rig_is("sim"))
		return;
	forgive_all(rig);
	rig_store(rig, rig->a, 1, MS);
	assert_int_equal(rig_arm_inline(rig, 5, rig_record(rig->a)), WEIR_OK);
	while (wr_system_outstanding(rig->system)) {
		assert_int_equal(watch_for(rig, 50 * MS), WEIR_OK);
		rig_record(rig->a);
		assert_true(wr_now() - begun < 4 * SECOND);
	}
	assert_true(wr_load(&rig->waker.poked[5]) >= 1);
	assert_int_equal(wr_signals_late(rig->system), 1);
	wr_system_set_running(rig->system, false);
	assert_int_equal(wr_signals_late(rig->system), 1);
	wr_system_set_running(rig->system, true);
	assert_int_equal(wr_signals_late(rig->system), 0); /* of the run before */
}

RIG_BODY(e02_f12_a_stream_whose_flag_is_lost_gets_callbacks_where_it_is_forgiven)
{
	if (!rig_is("sim"))
		return;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_AUTO), WEIR_OK);
	assert_true(writes(rig->a, WR_FLAGS_AUTO));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	forgive_all(rig);
	assert_true(writes(rig->a, WR_FLAGS_AUTO));
	rig_arm_flag(rig, 5, (weir_fence){wr_load(&rig->a->id), wr_load(&rig->a->submitted)});
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1); /* the work was seen complete */
	assert_int_equal(wr_signals_late(rig->system), 0);
	assert_true(writes(rig->a, WR_FLAGS_AUTO));
	assert_int_equal(watch_for(rig, 5 * SECOND), WEIR_OK);
	assert_int_equal(wr_signals_late(rig->system), 1);
	assert_false(writes(rig->a, WR_FLAGS_AUTO));
	assert_true(writes(rig->b, WR_FLAGS_AUTO));
	assert_int_equal(watch_for(rig, 5 * SECOND), WEIR_OK);
	assert_int_equal(wr_signals_late(rig->system), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g04_auto_writes_flags_on_streams_of_its_own_alone),
		cmocka_unit_test(g04_auto_asks_for_a_capture_before_each_write),
		cmocka_unit_test(g04_auto_means_callbacks_where_this_machine_does_the_work),
		cmocka_unit_test(g04_auto_uses_callbacks_where_a_device_cannot_write_flags),
		cmocka_unit_test(g04_a_stream_that_refuses_a_flag_is_not_asked_again),
		cmocka_unit_test(g04_auto_needs_no_memory_for_flags),
		cmocka_unit_test(g04_auto_tells_of_a_device_that_is_lost),
		cmocka_unit_test(e02_f12_a_lost_callback_fires_in_its_place_where_it_is_forgiven),
		cmocka_unit_test(e02_f12_an_inline_callback_that_is_lost_fires_with_later_work),
		cmocka_unit_test(e02_f12_a_stream_whose_flag_is_lost_gets_callbacks_where_it_is_forgiven),
	};

	rig_backend = argc > 1 ? argv[1] : "host";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
