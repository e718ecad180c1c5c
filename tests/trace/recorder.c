#include <stdint.h>

/* The hooks, defined before the header that calls them, instead of its weak ones. */
extern int (*InitializeInjectionNvtx2_fnptr)(const void *(*export_table)(uint32_t id));
struct nvtxExtModuleInfo_t;
extern int (*InitializeInjectionNvtxExtension_fnptr)(struct nvtxExtModuleInfo_t *module);
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtCounters.h>)
#include <nvtx3/nvToolsExtCounters.h>
#define WITH_COUNTERS
#endif
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

enum { LINES = 4096, LINE = 160 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][LINE];
static size_t count;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	pthread_mutex_lock(&mutex);
	if (count < LINES)
		vsnprintf(lines[count++], LINE, format, list);
	pthread_mutex_unlock(&mutex);
	va_end(list);
}

const char *recorder_line(size_t i)
{
	return i < count ? lines[i] : NULL;
}

size_t recorder_count(const char *part)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += strstr(lines[i], part) != NULL;
	return found;
}

void recorder_clear(void)
{
	count = 0;
}

/* A handle is the text itself; it lives as long as the process, as with a real tool. */
struct nvtxDomainRegistration_st {
	char name[64];
};
struct nvtxStringRegistration_st {
	char text[64];
};

static nvtxDomainHandle_t domain_create(const char *name)
{
	static struct nvtxDomainRegistration_st domains[8];
	static size_t made;
	nvtxDomainHandle_t domain = &domains[made++ % 8];

	snprintf(domain->name, sizeof domain->name, "%s", name);
	add("{\"call\":\"domain\",\"name\":\"%s\"}", name);
	return domain;
}

static nvtxStringHandle_t string_register(nvtxDomainHandle_t domain, const char *text)
{
	static struct nvtxStringRegistration_st strings[256];
	static size_t made;
	nvtxStringHandle_t string = &strings[made++ % 256];

	(void)domain;
	snprintf(string->text, sizeof string->text, "%s", text);
	return string;
}

static void event(const char *call, nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	const char *name =
		event->messageType == NVTX_MESSAGE_TYPE_REGISTERED ? event->message.registered->text : "?";

	add("{\"call\":\"%s\",\"domain\":\"%s\",\"category\":%u,\"name\":\"%s\",\"payload\":%llu}", call,
	    domain->name, event->category, name, (unsigned long long)event->payload.ullValue);
}

static void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
	event("mark", domain, attributes);
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
	event("push", domain, attributes);
	return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
	add("{\"call\":\"pop\",\"domain\":\"%s\"}", domain->name);
	return 0;
}

/* A range has the number of its start, so that a test sees which one ends. */
static nvtxRangeId_t range_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
	static _Atomic unsigned long long ranges;
	unsigned long long range = ++ranges;
	const char *name = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED
				   ? attributes->message.registered->text
				   : "?";

	add("{\"call\":\"start\",\"domain\":\"%s\",\"category\":%u,\"name\":\"%s\",\"payload\":%llu,"
	    "\"range\":%llu}",
	    domain->name, attributes->category, name, (unsigned long long)attributes->payload.ullValue,
	    range);
	return range;
}

static void range_end(nvtxDomainHandle_t domain, nvtxRangeId_t range)
{
	add("{\"call\":\"end\",\"domain\":\"%s\",\"range\":%llu}", domain->name, (unsigned long long)range);
}

static void name_category(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
	add("{\"call\":\"category\",\"domain\":\"%s\",\"category\":%u,\"name\":\"%s\"}", domain->name,
	    category, name);
}

static void name_thread(uint32_t thread, const char *name)
{
	add("{\"call\":\"thread\",\"self\":%s,\"name\":\"%s\"}",
	    thread == (uint32_t)gettid() ? "true" : "false", name);
}

static void name_stream(void *stream, const char *name)
{
	add("{\"call\":\"stream\",\"stream\":%zu,\"name\":\"%s\"}", (size_t)stream, name);
}

static void hook(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, size_t id,
		 NvtxFunctionPointer fn)
{
	NvtxFunctionTable table = NULL;
	unsigned size = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &size) || id >= size)
		abort();
	*table[id] = fn;
}

static int start(NvtxGetExportTableFunc_t export_table)
{
	const NvtxExportTableCallbacks *to = export_table(NVTX_ETID_CALLBACKS);

	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)domain_create);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA,
	     (NvtxFunctionPointer)string_register);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, (NvtxFunctionPointer)mark);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)push);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)pop);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, (NvtxFunctionPointer)range_start);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, (NvtxFunctionPointer)range_end);
	hook(to, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainNameCategoryA,
	     (NvtxFunctionPointer)name_category);
	hook(to, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, (NvtxFunctionPointer)name_thread);
	hook(to, NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaStreamA, (NvtxFunctionPointer)name_stream);
	return 1;
}

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = start;

/* --- counters --- */

#ifdef WITH_COUNTERS
enum { COUNTERS = 64 };
static char counter_names[COUNTERS][64];

static uint64_t counter_register(nvtxDomainHandle_t domain, const nvtxCounterAttr_t *attributes)
{
	static uint64_t made;
	uint64_t counter = ++made;

	if (counter >= COUNTERS)
		abort();
	snprintf(counter_names[counter], sizeof counter_names[0], "%s", attributes->name);
	add("{\"call\":\"counter\",\"domain\":\"%s\",\"name\":\"%s\",\"description\":\"%s\"}", domain->name,
	    attributes->name, attributes->description);
	return counter;
}

static void counter_sample(nvtxDomainHandle_t domain, uint64_t counter, int64_t value)
{
	add("{\"call\":\"sample\",\"domain\":\"%s\",\"name\":\"%s\",\"value\":%lld}", domain->name,
	    counter && counter < COUNTERS ? counter_names[counter] : "?", (long long)value);
}

static int start_extension(nvtxExtModuleInfo_t *module)
{
	intptr_t *slots = module->segments[0].functionSlots;

	if (module->moduleId != NVTX_EXT_COUNTERS_MODULEID)
		return 0;
	slots[NVTX3EXT_CBID_nvtxCounterRegister] = (intptr_t)counter_register;
	slots[NVTX3EXT_CBID_nvtxCounterSampleInt64] = (intptr_t)counter_sample;
	return 1;
}

NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr = start_extension;
#endif
