/*
 * NVTX ranges for profilers. One domain "weir"; a push/pop range per tick on the thread that calls compute,
 * since tools project GPU work onto such ranges only. A range has the name of its entity, as a registered
 * string, so that a tool's table has one line per entity; the payload has the number of the tick, (entity <<
 * 40) | tick.
 *
 * The domain is made once per process and never destroyed: its name must be unique, other schedulers may use
 * the handle, and the tool reads it after main has returned. It is made before the threads of a run start,
 * because the initialization in NVTX's header has a data race. The handle shows whether a tool is present;
 * nvtxDomainIsEnabled returns 0 under some tools.
 */
#include "trace/trace.h"

#ifdef WEIR_WITH_NVTX

#include <nvtx3/nvToolsExt.h>
#ifdef WEIR_WITH_CUDA
#include <nvtx3/nvToolsExtCudaRt.h>
#endif
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"

enum category { CATEGORY_TICK = 1, CATEGORY_READY, CATEGORY_SLEEP };
enum { TICK_BITS = 40 };

struct nvtx {
	nvtxDomainHandle_t domain;
	nvtxStringHandle_t sleep;
	nvtxStringHandle_t *names; /* by entity */
	size_t room;
};

static nvtxDomainHandle_t make_domain(void)
{
	nvtxDomainHandle_t domain;

	nvtxInitialize(NULL);
	domain = nvtxDomainCreateA("weir");
	if (domain) {
		nvtxDomainNameCategoryA(domain, CATEGORY_TICK, "tick");
		nvtxDomainNameCategoryA(domain, CATEGORY_READY, "ready");
		nvtxDomainNameCategoryA(domain, CATEGORY_SLEEP, "sleep");
	}
	return domain;
}

/* NULL if no tool is present. If two threads open their first scheduler at once, one makes it, the other
 * waits. */
static nvtxDomainHandle_t shared_domain(void)
{
	enum { NOT_MADE, BEING_MADE, MADE };
	static _Atomic uint32_t state;
	static nvtxDomainHandle_t domain;
	uint32_t expected = NOT_MADE;

	if (wr_cas(&state, &expected, BEING_MADE)) {
		domain = make_domain();
		wr_store(&state, MADE);
	}
	while (wr_load(&state) != MADE)
		wr_thread_yield();
	return domain;
}

static weir_status nvtx_open(const struct wr_trace_options *options, void **self)
{
	nvtxDomainHandle_t domain = shared_domain();
	struct nvtx *nvtx;

	(void)options;
	if (!domain)
		return WEIR_OK;
	nvtx = wr_alloc(1, sizeof *nvtx);
	if (!nvtx)
		return WEIR_E_NOMEM;
	nvtx->domain = domain;
	nvtx->sleep = nvtxDomainRegisterStringA(domain, "sleep");
	*self = nvtx;
	return WEIR_OK;
}

static void nvtx_close(void *self)
{
	struct nvtx *nvtx = self;

	wr_free(nvtx->names);
	wr_free(nvtx);
}

/* If memory runs out, the entity has no name: a profile must not fail a run. */
static void nvtx_entity(void *self, uint32_t entity, const char *name)
{
	struct nvtx *nvtx = self;

	if (wr_grow(&nvtx->names, &nvtx->room, (size_t)entity + 1, sizeof nvtx->names[0]) == WEIR_OK)
		nvtx->names[entity] = nvtxDomainRegisterStringA(nvtx->domain, name);
}

static void nvtx_worker(void *self, unsigned worker)
{
	char name[24];

	(void)self;
	snprintf(name, sizeof name, "weir:%u", worker);
	nvtxNameOsThreadA((uint32_t)gettid(), name);
}

#ifdef WEIR_WITH_CUDA
static void nvtx_stream(void *self, void *native, const char *owner)
{
	char *name = native ? wr_format("weir:%s", owner) : NULL;

	(void)self;
	if (name)
		nvtxNameCudaStreamA(native, name);
	wr_free(name);
}
#endif

/* Sets the payload field by field: the header's macro for it lacks a ')' in some releases. */
static nvtxEventAttributes_t attributes(enum category category, nvtxStringHandle_t name, uint64_t payload)
{
	return (nvtxEventAttributes_t){
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.category = category,
		.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
		.payload.ullValue = payload,
		.messageType = name ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_UNKNOWN,
		.message.registered = name,
	};
}

static nvtxEventAttributes_t entity_attributes(const struct nvtx *nvtx, enum category category,
					       uint32_t entity, uint64_t tick)
{
	return attributes(category, entity < nvtx->room ? nvtx->names[entity] : NULL,
			  (uint64_t)entity << TICK_BITS | (tick & ((UINT64_C(1) << TICK_BITS) - 1)));
}

static void nvtx_tick_begin(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t range = entity_attributes(nvtx, CATEGORY_TICK, entity, tick);

	(void)at, (void)lane;
	nvtxDomainRangePushEx(nvtx->domain, &range);
}

static void nvtx_tick_end(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane, (void)entity, (void)tick;
	nvtxDomainRangePop(nvtx->domain);
}

static void nvtx_ready(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t mark = entity_attributes(nvtx, CATEGORY_READY, entity, 0);

	(void)at, (void)lane;
	nvtxDomainMarkEx(nvtx->domain, &mark);
}

static void nvtx_sleep_begin(void *self, int64_t at, unsigned lane)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t range = attributes(CATEGORY_SLEEP, nvtx->sleep, lane);

	(void)at;
	nvtxDomainRangePushEx(nvtx->domain, &range);
}

static void nvtx_sleep_end(void *self, int64_t at, unsigned lane)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane;
	nvtxDomainRangePop(nvtx->domain);
}

const struct wr_observer wr_nvtx = {
	.name = "nvtx",
	.open = nvtx_open,
	.close = nvtx_close,
	.entity = nvtx_entity,
	.worker = nvtx_worker,
#ifdef WEIR_WITH_CUDA /* tools do not know streams of other backends */
	.stream = nvtx_stream,
#endif
	.tick_begin = nvtx_tick_begin,
	.tick_end = nvtx_tick_end,
	.ready = nvtx_ready,
	.sleep_begin = nvtx_sleep_begin,
	.sleep_end = nvtx_sleep_end,
};

#else

static weir_status nvtx_open(const struct wr_trace_options *options, void **self)
{
	(void)options, (void)self;
	return WEIR_OK;
}

const struct wr_observer wr_nvtx = {.name = "nvtx", .open = nvtx_open};

#endif
