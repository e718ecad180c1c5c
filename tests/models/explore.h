/*
 * explore.h: a small explicit-state model checker, one header, no dependency.
 *
 * A model is a C file that defines, before including this header,
 *	struct state  { ... };      plain bytes, no pointers; the engine zeroes it, padding included
 *	#define THREADS n           how many actors there are (at most 32)
 * and after it
 *	static void begin(struct state *s);             the initial state; may choose()
 *	static bool step(struct state *s, int thread);  ONE atomic step of that actor; false = it cannot move now
 *	static void check(const struct state *s);       invariants, checked in every state; fail(...) if broken
 *	static void at_end(const struct state *s);      checked when no actor can move; fail(...) if that is wrong
 *	static const struct run runs[] = {...};         what to explore, and what must come out
 *
 * Inside step(): choose(n) branches over 0..n-1 (all are explored); say(...) is the line of the trace; fail(...) ends.
 * The engine explores ALL interleavings and choices breadth first (so a counterexample is a shortest one), then looks
 * for a WEAKLY FAIR CYCLE: a set of states that can repeat for ever although every actor either moves in it or
 * is unable to move somewhere in it. The models are bounded, so any such cycle is a livelock. No sampling, no bitstate.
 *
 * DEAD is what a model writes into what is not read again before it is written, so that states that differ in nothing
 * else are one. It is 0; with -DDEAD=0x5a all runs have the same numbers of states, or something was read.
 *
 * Run:  ./m1          all runs; a table; exit 1 if one differs from what runs[] expects
 *       ./m1 -v       with the trace of every failure        ./m1 -v NAME   only the runs whose name contains NAME
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef DEAD
#define DEAD 0
#endif
enum outcome { HOLDS, BREAKS };
struct run { const char *name; int mutation; int setting; enum outcome expected; };
static int mutation, setting __attribute__((unused)); /* of the run being explored; 0 = the rules as they should be */
static const struct run runs[] __attribute__((unused));
static void begin(struct state *s);
static bool step(struct state *s, int thread);
static void check(const struct state *s);
static void at_end(const struct state *s);

/* --- what a model calls --- */
static int script[32], width[32], depth, scripted;
static bool telling, verbose;
static char told[400], failure[400];
static jmp_buf broken;

__attribute__((unused)) static int choose(int n)
{
	if (depth == scripted) {
		script[depth] = 0;
		width[depth] = n;
		scripted++;
	}
	return script[depth++];
}

static void say(const char *format, ...)
{
	va_list list;

	if (!telling)
		return;
	size_t used = strlen(told);
	va_start(list, format);
	vsnprintf(told + used, sizeof told - used, format, list);
	va_end(list);
}

__attribute__((noreturn)) static void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(failure, sizeof failure, format, list);
	va_end(list);
	longjmp(broken, 1);
}

__attribute__((noreturn, unused)) static void give_up(const char *why)  /* the model's bounds are too small */
{
	fprintf(stderr, "%s\n", why);
	exit(2);
}

static bool next_choice(void)
{
	while (scripted && script[scripted - 1] + 1 == width[scripted - 1])
		scripted--;
	if (scripted)
		script[scripted - 1]++;
	return scripted > 0;
}

/* --- the engine --- */
struct origin { uint32_t parent; uint8_t thread; uint8_t choice; };
struct arc { uint32_t to; };
static struct state *states;
static struct origin *origins;
struct slot { uint32_t index, hash; };
static struct slot *table;                  /* open addressing; hash tells most states apart without a look at them */
static uint32_t *first_arc, *arcs;
static uint8_t *arc_thread;
static uint32_t *moves;                     /* bit per thread: can move in this state */
static size_t count, room, arc_count, arc_room, table_size;
static struct state scratch;

/* Sixteen bytes a multiplication, each independent of the others. The two halves of the product are folded. */
static uint32_t hash_of(const struct state *s)
{
	const unsigned char *byte = (const void *)s;
	uint64_t h = 0, word[2];
	unsigned __int128 product;

	for (size_t i = 0; i < sizeof *s; i += sizeof word) {
		word[0] = word[1] = 0;
		memcpy(word, byte + i, sizeof *s - i < sizeof word ? sizeof *s - i : sizeof word);
		product = (unsigned __int128)(word[0] ^ (0x9e3779b97f4a7c15u + i)) * (word[1] ^ 0xff51afd7ed558ccdu);
		h += (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	h = (h ^ h >> 29) * 0xc4ceb9fe1a85ec53u;
	return (uint32_t)(h >> 32);
}

static void *grown(void *old, size_t n, size_t size)
{
	void *new = realloc(old, n * size);

	if (!new) {
		fprintf(stderr, "explore: out of memory\n");
		exit(2);
	}
	uintptr_t from = ((uintptr_t)new + 4095) & ~(uintptr_t)4095, to = ((uintptr_t)new + n * size) & ~(uintptr_t)4095;
	if (n * size > 4 << 20)     /* read at random: large pages where there are any */
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	return new;
}

static void clear_table(void)
{
	memset(table, 0xff, table_size * sizeof *table);
}

static void rehash(void)
{
	struct slot *old = table;
	size_t old_size = table_size;

	table_size = table_size ? table_size * 2 : 1 << 16;
	table = grown(NULL, table_size, sizeof *table);
	clear_table();
	for (size_t i = 0; i < old_size; i++) {
		if (old[i].index == UINT32_MAX)
			continue;
		size_t at = old[i].hash & (table_size - 1);
		while (table[at].index != UINT32_MAX)
			at = (at + 1) & (table_size - 1);
		table[at] = old[i];
	}
	free(old);
}

static uint32_t intern(const struct state *s, uint32_t hash, uint32_t parent, int thread, int choice)
{
	if ((count + 1) * 2 > table_size)
		rehash();
	size_t at = hash & (table_size - 1);
	for (; table[at].index != UINT32_MAX; at = (at + 1) & (table_size - 1))
		if (table[at].hash == hash && !memcmp(&states[table[at].index], s, sizeof *s))
			return table[at].index;
	if (count == room) {
		room = room ? room * 2 : 1 << 14;
		states = grown(states, room, sizeof *states);
		origins = grown(origins, room, sizeof *origins);
		first_arc = grown(first_arc, room + 1, sizeof *first_arc);
		moves = grown(moves, room, sizeof *moves);
	}
	table[at] = (struct slot){(uint32_t)count, hash};
	memcpy(&states[count], s, sizeof *s);
	origins[count] = (struct origin){parent, (uint8_t)thread, (uint8_t)choice};
	return (uint32_t)count++;
}

static void add_arc(uint32_t to, int thread)
{
	if (arc_count == arc_room) {
		arc_room = arc_room ? arc_room * 2 : 1 << 16;
		arcs = grown(arcs, arc_room, sizeof *arcs);
		arc_thread = grown(arc_thread, arc_room, 1);
	}
	arcs[arc_count] = to;
	arc_thread[arc_count++] = (uint8_t)thread;
}

/*
 * The successors of a state wait here until all are known: by then what memory must bring to look them up is on its way,
 * for all of them at once.
 */
enum { SUCCESSORS = 32 };
static struct { struct state state; uint32_t hash; uint8_t thread, choice; } batch[SUCCESSORS];
static int batched;

static void flush_batch(uint32_t parent)
{
	for (int i = 0; i < batched; i++) {
		batch[i].hash = hash_of(&batch[i].state);
		__builtin_prefetch(&table[batch[i].hash & (table_size - 1)]);
	}
	for (int i = 0; i < batched; i++) {
		const struct slot *slot = &table[batch[i].hash & (table_size - 1)];
		if (slot->hash == batch[i].hash && slot->index < count)
			__builtin_prefetch(&states[slot->index]);
	}
	for (int i = 0; i < batched; i++)
		add_arc(intern(&batch[i].state, batch[i].hash, parent, batch[i].thread, batch[i].choice), batch[i].thread);
	batched = 0;
}

/* One step of that actor in a copy of the state; returns false if it cannot move. */
static bool add_successor(uint32_t parent, int thread, int choice)
{
	if (batched == SUCCESSORS)
		flush_batch(parent);
	memcpy(&batch[batched].state, &states[parent], sizeof batch->state);
	if (!step(&batch[batched].state, thread))
		return false;
	batch[batched].thread = (uint8_t)thread;
	batch[batched++].choice = (uint8_t)choice;
	return true;
}

static const char *thread_name(int thread);
#ifndef THREAD_NAMES
static const char *thread_name(int thread) { static char n[16]; snprintf(n, sizeof n, "T%d", thread); return n; }
#endif

/* Replays one step with its choice number, and prints its line. */
static void tell_step(struct state *s, int thread, int choice)
{
	telling = true;
	told[0] = 0;
	scripted = 0;
	for (int i = 0; i < choice; i++) {
		struct state copy = *s;
		depth = 0;
		told[0] = 0;
		step(&copy, thread);
		next_choice();
	}
	depth = 0;
	told[0] = 0;
	if (!setjmp(broken))
		step(s, thread);
	printf("      %-8s %s\n", thread < 0 ? "" : thread_name(thread), told);
	telling = false;
}

static void tell(uint32_t at, int last_thread, int last_choice)
{
	size_t length = 0;
	uint32_t *path = malloc((count + 1) * sizeof *path);

	for (uint32_t i = at; i != UINT32_MAX; i = origins[i].parent)
		path[length++] = i;
	while (length-- > 1) {
		struct state copy = states[path[length]];
		tell_step(&copy, origins[path[length - 1]].thread, origins[path[length - 1]].choice);
	}
	if (last_thread >= 0) {
		struct state copy = states[at];
		tell_step(&copy, last_thread, last_choice);
	}
	free(path);
}

/* Tarjan, without recursion. Returns true if a weakly fair cycle exists: *where on it, *actors as bits. */
static bool fair_cycle(uint32_t *where, uint32_t *actors)
{
	uint32_t *low = malloc(count * 4), *order = calloc(count, 4), *stack = malloc(count * 4), *call = malloc(count * 4);
	uint32_t *edge = malloc(count * 4), *component = malloc(count * 4);
	uint8_t *on = calloc(count, 1);
	size_t stacked = 0, called = 0, clock = 1;
	uint32_t components = 0;
	bool found = false;
	memset(component, 0xff, count * 4);
	const uint32_t all = THREADS == 32 ? UINT32_MAX : (1u << THREADS) - 1;

	for (size_t root = 0; root < count && !found; root++) {
		if (order[root])
			continue;
		call[called++] = (uint32_t)root;
		while (called && !found) {
			uint32_t v = call[called - 1];
			if (!order[v]) {
				order[v] = low[v] = (uint32_t)clock++;
				edge[v] = first_arc[v];
				stack[stacked++] = v;
				on[v] = 1;
			}
			bool deeper = false;
			for (; edge[v] < first_arc[v + 1]; edge[v]++) {
				uint32_t w = arcs[edge[v]];
				if (!order[w]) {
					call[called++] = w;
					deeper = true;
					break;
				}
				if (on[w] && low[w] < low[v])
					low[v] = low[w];
			}
			if (deeper)
				continue;
			called--;
			if (called && low[v] < low[call[called - 1]])
				low[call[called - 1]] = low[v];
			if (low[v] != order[v])
				continue;
			uint32_t taken = 0, idle = 0;
			size_t bottom = stacked;
			do
				component[stack[--bottom]] = components;
			while (stack[bottom] != v);
			for (size_t i = bottom; i < stacked; i++) {
				uint32_t u = stack[i];
				on[u] = 0;
				idle |= ~moves[u] & all;
				for (uint32_t a = first_arc[u]; a < first_arc[u + 1]; a++)
					if (component[arcs[a]] == components)
						taken |= 1u << arc_thread[a];
			}
			stacked = bottom;
			if (taken && (taken | idle) == all) {
				*where = v;
				*actors = taken;
				found = true;
			}
			components++;
		}
	}
	free(low); free(order); free(stack); free(call); free(edge); free(component); free(on);
	return found;
}

static uint64_t grand_total __attribute__((unused));
static bool check_liveness = true;        /* off in models whose runs may rightly go on for ever */

/* Explores one run. Returns true if everything holds. */
static bool explore(void)
{
	static uint32_t at;
	static int thread, choice;

	count = arc_count = 0;
	failure[0] = 0;
	batched = 0;
	if (table)
		clear_table();
	thread = -1;
	at = UINT32_MAX;
	if (setjmp(broken)) {
		if (verbose && at != UINT32_MAX) {
			char kept[400];
			strcpy(kept, failure);
			tell(at, thread, choice);
			strcpy(failure, kept);
		}
		return false;
	}
	scripted = 0;
	do {
		depth = 0;
		memset(&scratch, 0, sizeof scratch);
		begin(&scratch);
		intern(&scratch, hash_of(&scratch), UINT32_MAX, 0, 0);
	} while (next_choice());
	for (at = 0; at < count; at++) {
		thread = -1;
		check(&states[at]);
		first_arc[at] = (uint32_t)arc_count;
		moves[at] = 0;
		for (thread = 0; thread < THREADS; thread++) {
			scripted = 0;
			choice = 0;
			do {
				depth = 0;
				if (add_successor(at, thread, choice))
					moves[at] |= 1u << thread;
			} while (choice++, next_choice());
		}
		thread = -1;
		flush_batch(at);
		first_arc[at + 1] = (uint32_t)arc_count;
		if (!moves[at])
			at_end(&states[at]);
		if (count > 120000000)
			fail("too many states");
	}
	uint32_t where = 0, actors = 0;
	if (check_liveness && fair_cycle(&where, &actors)) {
		snprintf(failure, sizeof failure, "livelock: a weakly fair cycle; it is gone round by");
		for (int i = 0; i < THREADS; i++)
			if (actors >> i & 1) {
				strncat(failure, " ", sizeof failure - strlen(failure) - 1);
				strncat(failure, thread_name(i), sizeof failure - strlen(failure) - 1);
			}
		if (verbose)
			tell(where, -1, 0);
		return false;
	}
	return true;
}

#ifndef OWN_MAIN
int main(int argc, char **argv)
{
	const char *only = NULL;
	int wrong = 0;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-v"))
			verbose = true;
		else
			only = argv[i];
	for (const struct run *run = runs; run->name; run++) {
		struct timespec a, b;
		if (only && !strstr(run->name, only))
			continue;
		mutation = run->mutation;
		setting = run->setting;
		clock_gettime(CLOCK_MONOTONIC, &a);
		bool holds = explore();
		clock_gettime(CLOCK_MONOTONIC, &b);
		bool expected = holds == (run->expected == HOLDS);
		wrong += !expected;
		grand_total += count;
		printf("%s %-62s %s %9zu states %6.2f s%s%s\n", expected ? "ok  " : "BAD ", run->name, holds ? "holds " : "BREAKS", count,
		       (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec), holds ? "" : "  <- ", holds ? "" : failure);
		fflush(stdout);
	}
	printf("%llu states in all, %d surprises\n", (unsigned long long)grand_total, wrong);
	return wrong != 0;
}
#endif
