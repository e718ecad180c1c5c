#include "rig.h"

#include <string.h>

#include "base/clock.h"
#include "sim/simulation.h"
#include "test.h"
#include "tests/calls.h"

#define SECOND 1000000000

const char *rig_backend = "host";

bool rig_is(const char *backend)
{
	return !strcmp(rig_backend, backend);
}

bool rig_on_gpu(void)
{
#ifdef WEIR_ON_FAKE_CUDA
	return false;
#else
	return rig_is("cuda");
#endif
}

/* --- the waker --- */

static struct rig_waker *rig_of_waker(struct wr_waker *waker)
{
	return (struct rig_waker *)waker;
}

static void poke(struct wr_waker *waker, uint32_t entity, uint64_t token)
{
	if (token)
		wr_store(&rig_of_waker(waker)->fired[entity % RIG_ENTITIES], token);
	wr_fetch_add(&rig_of_waker(waker)->poked[entity % RIG_ENTITIES], 1);
}

static void kick(struct wr_waker *waker)
{
	wr_fetch_add(&rig_of_waker(waker)->kicked, 1);
}

static void take(struct wr_waker *waker)
{
	wr_fetch_add(&rig_of_waker(waker)->live, 1);
}

static void drop(struct wr_waker *waker)
{
	wr_fetch_sub(&rig_of_waker(waker)->live, 1);
}

void rig_fill_waker(struct rig_waker *waker)
{
	memset(waker, 0, sizeof *waker);
	waker->waker = (struct wr_waker){poke, kick, take, drop, take};
}

struct wr_backend *rig_own_backend(struct rig *rig)
{
	rig->backend = *rig->system->backend;
	rig->system->backend = &rig->backend;
	return &rig->backend;
}

/* --- kernels --- */

static int rest(const void *arguments)
{
	weir_sleep(((const struct rig_work *)arguments)->ns);
	return 0;
}

static int store(const void *arguments)
{
	const struct rig_work *work = arguments;

	weir_sleep(work->ns);
	*work->cell = work->value;
	return 0;
}

static int add(const void *arguments)
{
	const struct rig_work *work = arguments;

	weir_sleep(work->ns);
	*work->cell += work->value;
	return 0;
}

static int meet(const void *arguments)
{
	const struct rig_work *work = arguments;
	_Atomic int *met = (_Atomic int *)work->cell;
	int64_t deadline = wr_now() + work->ns;

	wr_fetch_add(met, 1);
	while (wr_load(met) < work->value && wr_now() < deadline)
		weir_sleep(100000);
	if (wr_load(met) < work->value)
		wr_fetch_sub(met, 1000);
	return 0;
}

static int break_down(const void *arguments)
{
	(void)arguments;
	return 42;
}

#ifdef WEIR_WITH_CUDA
#define CUDA_FORM(function) .cuda = function
#else
bool rig_cuda_capture(void *stream, bool begin)
{
	(void)stream;
	(void)begin;
	return false;
}

#define CUDA_FORM(function) .cuda = NULL
#endif
static const weir_kernel store_kernel = {
	.size = sizeof(weir_kernel), .name = "store", .host = store, CUDA_FORM(rig_cuda_store)};
static const weir_kernel add_kernel = {
	.size = sizeof(weir_kernel), .name = "add", .host = add, CUDA_FORM(rig_cuda_add)};
static const weir_kernel meet_kernel = {
	.size = sizeof(weir_kernel), .name = "meet", .host = meet, CUDA_FORM(rig_cuda_meet)};
const weir_kernel rig_sleep = {.size = sizeof(weir_kernel), .name = "sleep", .host = rest};
const weir_kernel rig_broken = {
	.size = sizeof(weir_kernel), .name = "broken", .host = break_down, CUDA_FORM(rig_cuda_break)};
const weir_kernel rig_places = {.size = sizeof(weir_kernel), .name = "places", CUDA_FORM(rig_cuda_places)};

/* --- streams and points --- */

weir_stream *rig_stream(struct rig *rig, const char *owner)
{
	weir_stream *stream = NULL;

	assert_int_equal(wr_stream_open(rig->system, &(struct wr_stream_spec){0}, owner, &stream), WEIR_OK);
	return stream;
}

static void launch(struct rig *rig, weir_stream *stream, const weir_kernel *kernel, int value, int64_t ns)
{
	struct rig_work work;

	memset(&work, 0, sizeof work); /* its padding, too: arguments are compared by their bytes */
	work.cell = rig->cell;
	work.ns = ns;
	work.value = value;
	assert_int_equal(weir_stream_launch(stream, kernel, &work, sizeof work), WEIR_OK);
}

void rig_store(struct rig *rig, weir_stream *stream, int value, int64_t ns)
{
	launch(rig, stream, &store_kernel, value, ns);
}

void rig_add(struct rig *rig, weir_stream *stream, int value, int64_t ns)
{
	launch(rig, stream, &add_kernel, value, ns);
}

void rig_meet(struct rig *rig, weir_stream *stream, int count)
{
	launch(rig, stream, &meet_kernel, count, 5 * (int64_t)SECOND);
}

weir_fence rig_record(weir_stream *stream)
{
	weir_fence fence = {0, 0};

	assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
	return fence;
}

void rig_wait(struct rig *rig, weir_fence fence)
{
	assert_int_equal(wr_fence_wait(rig->system, fence, wr_now() + 10 * (int64_t)SECOND), WEIR_OK);
}

int rig_read(struct rig *rig, weir_stream *stream)
{
	assert_int_equal(copy_bytes(stream, rig->copy, rig->cell, sizeof *rig->cell), WEIR_OK);
	rig_wait(rig, rig_record(stream));
	return *rig->copy;
}

static void wait_for_count(_Atomic int *count, int n)
{
	int64_t deadline = wr_now() + 10 * (int64_t)SECOND;

	while (wr_load(count) < n && wr_now() < deadline)
		wr_thread_sleep(10000);
	assert_true(wr_load(count) >= n);
}

void rig_until_poked(struct rig *rig, uint32_t entity)
{
	wait_for_count(&rig->waker.poked[entity], 1);
}

void rig_until_kicked(struct rig *rig, int kicks)
{
	wait_for_count(&rig->waker.kicked, kicks);
}

void rig_until_none_outstanding(struct rig *rig)
{
	int64_t deadline = wr_now() + 10 * (int64_t)SECOND;

	while (wr_system_outstanding(rig->system) && wr_now() < deadline)
		wr_thread_sleep(10000);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

void rig_collect_until_poked(struct rig *rig, uint32_t entity)
{
	int64_t deadline = wr_now() + 10 * (int64_t)SECOND;

	do {
		wr_thread_sleep(10000);
		wr_system_collect(rig->system);
	} while (!wr_load(&rig->waker.poked[entity]) && wr_now() < deadline);
	assert_int_equal(wr_load(&rig->waker.poked[entity]), 1);
}

/* --- set up and tear down --- */

static void begin(struct rig *rig, uint64_t seed)
{
	struct wr_system_options options = {
		.backend = rig_backend, .seed = seed, .sim = rig->sim, .devices = 2};
	void *memory;

	assert_int_equal(wr_system_create(&rig->system, &options), WEIR_OK);
	rig_fill_waker(&rig->waker);
	wr_system_attach(rig->system, &rig->waker.waker);
	rig->a = rig_stream(rig, "a");
	rig->b = rig_stream(rig, "b");
	rig->c = rig_stream(rig, "c");
	assert_int_equal(wr_system_alloc(rig->system, 0, 3 * sizeof *rig->cell, &memory), WEIR_OK);
	rig->cell = memory;
	assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, sizeof *rig->copy, &memory), WEIR_OK);
	rig->copy = memory;
	rig_store(rig, rig->a, 0, 0);
	rig_wait(rig, rig_record(rig->a));
}

static void end(struct rig *rig)
{
	if (!rig->system)
		return; /* the test has destroyed the system */
	wr_system_detach(rig->system);
	wr_stream_close(rig->a);
	wr_stream_close(rig->b);
	wr_stream_close(rig->c);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_OK);
	assert_int_equal(wr_load(&rig->waker.live), 0);
}

struct job {
	struct rig *rig;
	void (*body)(struct rig *rig);
	uint64_t seed;
};

static void work(void *arg)
{
	struct job *job = arg;

	begin(job->rig, job->seed);
	job->body(job->rig);
	end(job->rig);
}

void rig_run(void (*body)(struct rig *rig), uint64_t seed)
{
	struct rig rig = {0};
	struct job job = {&rig, body, seed};

	if (!rig_is("sim")) {
		work(&job);
		return;
	}
	assert_int_equal(wr_sim_create(&rig.sim, seed, WR_SIM_BY_SEED), WEIR_OK);
	assert_int_equal(wr_sim_call(rig.sim, work, &job), WEIR_OK);
	wr_sim_destroy(rig.sim);
}

bool rig_device_answers(void)
{
	struct wr_system_options options = {.backend = rig_backend};
	struct wr_system *system = NULL;

	if (!rig_is("cuda"))
		return true;
	if (wr_system_create(&system, &options))
		return false;
	return !wr_system_destroy(system);
}

bool rig_in_capture(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	return true;
}
