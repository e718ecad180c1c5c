/*
 * NVTX: how a profiler sees a run. One domain "weir"; a push/pop range per tick, open on the thread that
 * calls compute, since tools project GPU work onto such ranges only. A range is named as its entity, by a
 * registered string: stable names are what makes a tool's table one line per entity; the number of the tick
 * goes into the payload, (entity << 40) | tick.
 *
 * The domain is made once per process and never destroyed: its name must be unique, another scheduler may be
 * using the handle, and the tool reads it after main has returned. It is made before the threads of a run
 * start, as the header's own start is a data race to a thread that looks on. Whether a tool is there is told
 * by the handle; nvtxDomainIsEnabled is 0 under some tools.
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
	nvtxStringHandle_t *names;	/* by entity */
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

/* NULL: no tool listens. Two threads may open their first scheduler at once: one makes, the other waits. */
static nvtxDomainHandle_t the_domain(void)
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

static weir_status attach(void **self)
{
	nvtxDomainHandle_t domain = the_domain();
	struct nvtx *nvtx;

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

static void detach(void *self)
{
	struct nvtx *nvtx = self;

	wr_free(nvtx->names);
	wr_free(nvtx);
}

/* Without memory for its name an entity goes without one: a profile is no reason to fail a run. */
static void name_entity(void *self, uint32_t entity, const char *name)
{
	struct nvtx *nvtx = self;

	if (wr_grow(&nvtx->names, &nvtx->room, (size_t)entity + 1, sizeof nvtx->names[0]) == WEIR_OK)
		nvtx->names[entity] = nvtxDomainRegisterStringA(nvtx->domain, name);
}

static void name_worker(void *self, unsigned worker)
{
	char name[24];

	(void)self;
	snprintf(name, sizeof name, "weir:%u", worker);
	nvtxNameOsThreadA((uint32_t)gettid(), name);
}

#ifdef WEIR_WITH_CUDA
static void name_stream(void *self, void *native, const char *owner)
{
	char *name = native ? wr_format("weir:%s", owner) : NULL;

	(void)self;
	if (name)
		nvtxNameCudaStreamA(native, name);
	wr_free(name);
}
#endif

/* The payload is filled by hand: the header's macro for it lacks a ')' in some releases. */
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

static nvtxEventAttributes_t of_entity(const struct nvtx *nvtx, enum category category, uint32_t entity,
				       uint64_t tick)
{
	return attributes(category, entity < nvtx->room ? nvtx->names[entity] : NULL,
			  (uint64_t)entity << TICK_BITS | (tick & ((UINT64_C(1) << TICK_BITS) - 1)));
}

static void tick_begin(void *self, uint32_t entity, uint64_t tick)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t range = of_entity(nvtx, CATEGORY_TICK, entity, tick);

	nvtxDomainRangePushEx(nvtx->domain, &range);
}

static void tick_end(void *self, uint32_t entity, uint64_t tick)
{
	struct nvtx *nvtx = self;

	(void)entity, (void)tick;
	nvtxDomainRangePop(nvtx->domain);
}

static void ready(void *self, uint32_t entity)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t mark = of_entity(nvtx, CATEGORY_READY, entity, 0);

	nvtxDomainMarkEx(nvtx->domain, &mark);
}

static void sleep_begin(void *self, unsigned worker)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t range = attributes(CATEGORY_SLEEP, nvtx->sleep, worker);

	nvtxDomainRangePushEx(nvtx->domain, &range);
}

static void sleep_end(void *self, unsigned worker)
{
	struct nvtx *nvtx = self;

	(void)worker;
	nvtxDomainRangePop(nvtx->domain);
}

const struct wr_observer wr_nvtx = {
	.name = "nvtx",
	.open = attach,
	.close = detach,
	.entity = name_entity,
	.worker = name_worker,
#ifdef WEIR_WITH_CUDA	/* streams of the other backends are unknown to tools */
	.stream = name_stream,
#endif
	.tick_begin = tick_begin,
	.tick_end = tick_end,
	.ready = ready,
	.sleep_begin = sleep_begin,
	.sleep_end = sleep_end,
};

#else

static weir_status attach(void **self)
{
	(void)self;
	return WEIR_OK;
}

const struct wr_observer wr_nvtx = {.name = "nvtx", .open = attach};

#endif
