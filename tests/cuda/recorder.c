/*
 * Records a run's calls of CUDA and their times: a shared object that the driver loads
 * (CUDA_INJECTION64_PATH), and the NVTX header too (NVTX_INJECTION64_PATH). CUPTI reports every call of the
 * runtime and of the driver, NVTX every tick; both have the same clock and thread ids, so that calls can be
 * assigned to ticks. Only CUPTI sees the runtime's calls, since weir links it statically.
 *
 * WEIR_RECORD names the file written at exit, a line per event: ns, thread, kind (runtime, driver, push,
 * pop), name. WEIR_CUPTI names libcupti; without it only ticks are recorded.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef WEIR_WITH_CUPTI
#include <cupti.h>
#endif

#define EXPORT __attribute__((visibility("default")))

struct event {
	int64_t at;
	const char *kind, *name; /* in memory that is never freed */
	pid_t thread;
};

enum { ROOM = 1 << 20 };
static struct event events[ROOM];
static _Atomic size_t count;

static void add(const char *kind, const char *name)
{
	size_t i = atomic_fetch_add(&count, 1);
	struct timespec now;

	if (i >= ROOM)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	events[i] = (struct event){now.tv_sec * INT64_C(1000000000) + now.tv_nsec, kind, name, gettid()};
}

__attribute__((destructor)) static void write_all(void)
{
	const char *path = getenv("WEIR_RECORD");
	FILE *file = path && count ? fopen(path, "w") : NULL;

	if (!file)
		return;
	if (count > ROOM)
		fprintf(file, "0\t0\tlost\t%zu\n", count - ROOM);
	for (size_t i = 0; i < count && i < ROOM; i++)
		fprintf(file, "%" PRId64 "\t%d\t%s\t%s\n", events[i].at, (int)events[i].thread,
			events[i].kind, events[i].name ? events[i].name : "?");
	fclose(file);
}

/* --- NVTX --- */

struct nvtxStringRegistration_st {
	char text[96];
};

static nvtxDomainHandle_t create_domain(const char *name)
{
	static int domain;

	(void)name;
	return (nvtxDomainHandle_t)&domain; /* any handle: the library makes one domain */
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text)
{
	nvtxStringHandle_t string = calloc(1, sizeof *string);

	(void)domain;
	if (string)
		snprintf(string->text, sizeof string->text, "%s", text);
	return string;
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
	nvtxStringHandle_t name = range->message.registered;

	(void)domain;
	add("push", range->messageType == NVTX_MESSAGE_TYPE_REGISTERED && name ? name->text : NULL);
	return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
	(void)domain;
	add("pop", NULL);
	return 0;
}

static void hook(const NvtxExportTableCallbacks *callbacks, size_t id, NvtxFunctionPointer fn)
{
	NvtxFunctionTable table = NULL;
	unsigned size = 0;

	if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) && id < size)
		*table[id] = fn;
}

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table);
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table)
{
	const NvtxExportTableCallbacks *to = export_table(NVTX_ETID_CALLBACKS);

	hook(to, NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)create_domain);
	hook(to, NVTX_CBID_CORE2_DomainRegisterStringA, (NvtxFunctionPointer)register_string);
	hook(to, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)push);
	hook(to, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)pop);
	return 1;
}

/* --- CUPTI --- */

#ifdef WEIR_WITH_CUPTI

static void CUPTIAPI see(void *arg, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = data;

	(void)arg, (void)id;
	if (call->callbackSite == CUPTI_API_ENTER)
		add(domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "runtime" : "driver", call->functionName);
}

static void *find(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : NULL;

	if (!function)
		fprintf(stderr, "recorder: no %s: set WEIR_CUPTI to libcupti\n", name);
	return function;
}

/* Called by the driver once, inside cuInit. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
	CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
	CUptiResult (*enable)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
	const char *path = getenv("WEIR_CUPTI");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	CUpti_SubscriberHandle subscriber;

	*(void **)&subscribe = find(library, "cuptiSubscribe");
	*(void **)&enable = find(library, "cuptiEnableDomain");
	if (!subscribe || !enable || subscribe(&subscriber, see, NULL))
		return 0;
	return !enable(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) &&
	       !enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
}

#endif
