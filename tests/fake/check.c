/* Handles, what is wrong with them, and what is left at the end. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

/* In the sanitizers' runtimes. */
void __sanitizer_symbolize_pc(void *pc, const char *format, char *out, size_t room) __attribute__((weak));

/* --- telling --- */

static char *caught;
static size_t caught_room;

void fake_catch(char *line, size_t room)
{
	caught = line;
	caught_room = room;
}

void fake_address_text(void *address, char *text, size_t room)
{
	Dl_info info;

	if (__sanitizer_symbolize_pc)
		__sanitizer_symbolize_pc((char *)address - 1, "%f at %S", text, room);
	else if (dladdr(address, &info) && info.dli_fname)
		snprintf(text, room, "%s %s+0x%tx", info.dli_sname ? info.dli_sname : "?", info.dli_fname,
			 (char *)address - (char *)info.dli_fbase);
	else
		snprintf(text, room, "%p", address);
}

void fake_problem(const char *format, ...)
{
	char line[600], from[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	if (caught) {
		snprintf(caught, caught_room, "%s: %s", fake_call_name(), line);
		return;
	}
	fake_address_text(fake_call_from(), from, sizeof from);
	fflush(NULL);
	fprintf(stderr, "fake CUDA: %s: %s; called from %s\n", fake_call_name(), line, from);
	abort();
}

/* --- the tables --- */

enum { STREAMS = 1024, EVENTS = 1 << 16, GRAPHS = 4096, GREENS = 64 };
static struct fake_stream streams[STREAMS];
static struct fake_event events[EVENTS];
static struct fake_graph graphs[GRAPHS];
static struct fake_exec execs[GRAPHS];
static struct fake_green greens[GREENS];

static struct {
	const char *name;
	char *rows;
	size_t size;
	unsigned count;
	_Atomic unsigned next;
} tables[] = {
	[FAKE_STREAM] = {"stream", (char *)streams, sizeof *streams, STREAMS, 0},
	[FAKE_EVENT] = {"event", (char *)events, sizeof *events, EVENTS, 0},
	[FAKE_GRAPH] = {"graph", (char *)graphs, sizeof *graphs, GRAPHS, 0},
	[FAKE_EXEC] = {"executable", (char *)execs, sizeof *execs, GRAPHS, 0},
	[FAKE_GREEN] = {"green context", (char *)greens, sizeof *greens, GREENS, 0},
};

/* A handle: kind + 1 in the upper bits, so that it is no address; the generation, the row, four zero bits. */
enum { KIND_AT = 56, GENERATION_AT = 24, ROW_AT = 4, ROW_BITS = 20, GENERATION_BITS = 32 };

static struct fake_object *row(enum fake_kind kind, unsigned at)
{
	return (struct fake_object *)(tables[kind].rows + at * tables[kind].size);
}

void fake_stream_row(unsigned at, struct fake_stream **out)
{
	*out = at < STREAMS ? &streams[at] : NULL;
}

unsigned fake_row_of(enum fake_kind kind, const void *object)
{
	return (unsigned)((size_t)((const char *)object - tables[kind].rows) / tables[kind].size);
}

void *fake_handle_of(enum fake_kind kind, const void *object)
{
	const struct fake_object *own = object;
	uint64_t generation = fake_get(&own->generation);

	return (void *)(uintptr_t)((uint64_t)(kind + 1) << KIND_AT | generation << GENERATION_AT |
				   (uint64_t)fake_row_of(kind, object) << ROW_AT);
}

/* The row that was not used for longest, so that handles come again late. */
void *fake_object_new(enum fake_kind kind)
{
	for (unsigned tries = 0; tries < tables[kind].count; tries++) {
		struct fake_object *object = row(kind, fake_add(&tables[kind].next, 1) % tables[kind].count);
		unsigned state = fake_get(&object->state);

		if ((state == FAKE_FREE || state == FAKE_GONE) &&
		    atomic_compare_exchange_strong_explicit(&object->state, &state, FAKE_LIVE,
							    memory_order_relaxed, memory_order_relaxed)) {
			fake_add(&object->generation, 1);
			return object;
		}
	}
	fake_problem("more than %u objects of the kind '%s' live", tables[kind].count, tables[kind].name);
	return NULL;
}

void fake_object_end(struct fake_object *object, enum fake_state state)
{
	fake_set(&object->ended_by, fake_call_name());
	fake_set(&object->ended_at, fake_call_from());
	fake_set(&object->state, (unsigned)state);
}

static void tell_ended(enum fake_kind kind, unsigned at, unsigned age)
{
	const struct fake_object *object = row(kind, at);
	char from[300];

	if (age > 1 || !fake_get(&object->ended_by)) {
		fake_problem("%s %u was destroyed long ago", tables[kind].name, at);
		return;
	}
	fake_address_text(fake_get(&object->ended_at), from, sizeof from);
	fake_problem("%s %u was destroyed by %s, called from %s", tables[kind].name, at,
		     fake_get(&object->ended_by), from);
}

void *fake_object_of(enum fake_kind kind, const void *handle)
{
	uint64_t number = (uintptr_t)handle;
	unsigned at = number >> ROW_AT & ((1u << ROW_BITS) - 1);
	unsigned generation = (unsigned)(number >> GENERATION_AT);
	struct fake_object *object;

	if (number >> KIND_AT != (uint64_t)kind + 1 || at >= tables[kind].count) {
		fake_problem("%p is no handle of a%s %s", handle,
			     kind == FAKE_EVENT || kind == FAKE_EXEC ? "n" : "", tables[kind].name);
		return NULL;
	}
	object = row(kind, at);
	if (fake_get(&object->state) == FAKE_LIVE && fake_get(&object->generation) == generation)
		return object;
	tell_ended(kind, at, fake_get(&object->generation) - generation);
	return NULL;
}

/* --- the end of the process --- */

enum { LISTED = 8 }; /* of each kind */
static unsigned listed = LISTED;

static void tell_left(const void *memory, size_t bytes, const char *call, void *from)
{
	char text[300];

	if (listed++ >= LISTED)
		return;
	fake_address_text(from, text, sizeof text);
	fprintf(stderr, "fake CUDA: at the end: %zu bytes at %p were not freed; %s was called from %s\n",
		bytes, memory, call, text);
}

static bool is_left(enum fake_kind kind, unsigned at)
{
	return fake_get(&row(kind, at)->state) == FAKE_LIVE &&
	       (kind != FAKE_STREAM || !fake_get(&streams[at].legacy));
}

static unsigned count_left(enum fake_kind kind, bool lists)
{
	unsigned left = 0, next = fake_get(&tables[kind].next);

	for (unsigned at = 0; at < next && at < tables[kind].count; at++)
		if (is_left(kind, at) && left++ < LISTED && lists)
			fprintf(stderr, "fake CUDA: at the end: %s %u was not destroyed\n", tables[kind].name,
				at);
	if (lists && left > LISTED)
		fprintf(stderr, "fake CUDA: at the end: %ss that were not destroyed: %u\n", tables[kind].name,
			left);
	return left;
}

static unsigned count_all(bool lists)
{
	unsigned left;

	listed = lists ? 0 : LISTED;
	left = fake_memory_left(tell_left);
	for (unsigned kind = 0; kind < FAKE_KINDS; kind++)
		left += count_left(kind, lists);
	return left;
}

unsigned fake_left_over(void)
{
	return count_all(false);
}

__attribute__((destructor)) static void look_at_the_end(void)
{
	if (fake_lost() || !count_all(true))
		return;
	fflush(NULL);
	_exit(FAKE_LEFT_OVER);
}
