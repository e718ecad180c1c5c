/* Draws the worlds of dst_held.c. */
#include <string.h>

#include "dst_held.h"

static unsigned draw(unsigned n)
{
	return (unsigned)wr_random_below(&held.shape, n);
}

/* Mostly the least that can be: each block, place and message more makes a bad order less likely. */
static void draw_chain(struct dst_chain *chain)
{
	static const char *const told[] = {NULL, NULL, NULL, NULL, "boolean", "asynchronous", "fence"};
	unsigned least;

	chain->units = 1 + draw(held.blocks[chain->pool]);
	chain->blocks = draw(4) ? chain->units : 1 + draw(chain->units);
	chain->messages = draw(4) ? chain->blocks : 1;
	chain->count = 1 + draw(6);
	least = chain->messages;
	chain->room = least + draw(2);
	chain->passes = !draw(3);
	chain->device = chain->pool && draw(2);
	chain->places = least + draw(PLACES + 1 - least);
	chain->takers = 1 + draw(TAKERS);
	chain->early = !draw(4);
	chain->receives = !draw(4);
	if (chain != held.chain && !draw(3)) { /* the graph alone uses this memory */
		chain->places = 0;
		chain->receives = true;
	}
	chain->pushers = draw(4) ? 0 : 1 + draw(2);
	chain->told = told[draw(sizeof told / sizeof *told)];
}

/*
 * The receiver of the first chain is disabled, so its queue fills; each message is handed to the program,
 * too. A second chain gives of the same memory to the program alone: what is freed of it may be too little
 * for the first one, and then nothing but the end of the run can follow.
 */
static void draw_stuck(struct dst_chain *chain)
{
	draw_chain(chain);
	chain->receives = chain == held.chain;
	if (!chain->receives)
		chain->units = chain->blocks = chain->messages = 1;
	chain->pushers = 0;
	chain->told = NULL;
	chain->places = chain->messages + draw(PLACES + 1 - chain->messages);
}

/* A tick needs the whole pool, and all of it goes to the program. */
static void draw_tight(struct dst_chain *chain)
{
	held.blocks[chain->pool] = chain->units = chain->blocks = 2;
	chain->messages = draw(8) ? chain->blocks : 1;
	chain->count = 20;
	chain->room = chain->places = 2 + draw(PLACES - 1);
	chain->device = chain->pool && draw(2);
	chain->takers = 2 + draw(TAKERS - 1);
	chain->early = chain->device && draw(2);
}

static void put_chain(unsigned c)
{
	const struct dst_chain *chain = &held.chain[c];
	bool stuck = held_shape == DST_HELD_STUCK;

	dst_put(",{\"name\":\"h%u\",\"operator\":\"head\",\"parameters\":{\"chain\":%u},\"resources\":[\"m%"
		"u\"],"
		"\"ports\":{\"out\":{\"max_emits\":%u},\"in\":{\"capacity\":%u}},\"conditions\":["
		"{\"type\":\"memory_available\",\"pool\":\"m%u\",\"min_blocks\":%u}",
		c, c, chain->pool, chain->messages, chain->room, chain->pool, chain->units);
	if (!chain->pushers)
		dst_put(",{\"type\":\"count\",\"count\":%u}", chain->count);
	if (chain->told)
		dst_put(",{\"type\":\"%s\"%s}", chain->told,
			strcmp(chain->told, "fence") ? "" : ",\"once\":false");
	dst_put("]}");
	if (chain->passes)
		dst_put(",{\"name\":\"p%u\",\"operator\":\"hand_on\",\"parameters\":{\"chain\":%u},"
			"\"ports\":{\"in\":{\"capacity\":%u}}}",
			c, c, chain->room);
	if (chain->receives)
		dst_put(",{\"name\":\"r%u\",\"operator\":\"receive\",\"parameters\":{\"chain\":%u},"
			"\"ports\":{\"in\":{\"capacity\":%u}}%s}",
			c, c, chain->room,
			stuck ? ",\"conditions\":[{\"type\":\"boolean\",\"enable_tick\":false}]" : "");
}

static void put_connections(void)
{
	const char *before = "";

	for (unsigned c = 0; c < held.chains; c++) {
		const struct dst_chain *chain = &held.chain[c];

		if (chain->passes)
			dst_put("%s[\"h%u.out\",\"p%u.in\"]", before, c, c);
		before = chain->passes ? "," : before;
		if (chain->receives)
			dst_put("%s[\"%c%u.out\",\"r%u.in\"]", before, chain->passes ? 'p' : 'h', c, c);
		before = chain->receives ? "," : before;
	}
}

/* A boolean that is off does not hold a run open, so there it must be on again within the grace time. */
static int64_t draw_grace(void)
{
	unsigned kind = draw(3);

	for (unsigned c = 0; c < held.chains; c++)
		if (held.chain[c].told && !strcmp(held.chain[c].told, "boolean"))
			return 10 * MS;
	return kind == 0 ? 10 * MS : kind == 1 ? 1 + (int64_t)draw(20000) : 0;
}

void dst_held_draw(uint64_t seed)
{
	static void (*const draw_as[])(struct dst_chain * chain) = {draw_chain, draw_stuck, draw_tight};

	memset(&held, 0, sizeof held);
	held.seed = seed;
	wr_random_seed(&held.shape, seed, 41);
	for (unsigned p = 0; p < POOLS; p++)
		held.blocks[p] = 1 + draw(BLOCKS);
	held.chains = held_shape == DST_HELD_TIGHT || draw(2)
			      ? 1
			      : 1 + draw(held_shape == DST_HELD_STUCK ? 2 : CHAINS);
	for (unsigned c = 0; c < held.chains; c++) {
		held.chain[c].pool = held_shape == DST_HELD_STUCK && c ? held.chain[0].pool : draw(POOLS);
		draw_as[held_shape](&held.chain[c]);
	}
	held.pokers = draw(3);
	held.workers = 1 + draw(3);
	held.grace = held_shape == DST_HELD_TIGHT ? 0 : draw_grace();
	held.brisk = held_shape != DST_HELD_FLOWING && draw(held_shape == DST_HELD_STUCK ? 4 : 2);
	held.patience = (int64_t)1 << (5 + draw(10));
	held.stop_after = held_shape != DST_HELD_FLOWING || draw(8) ? 0 : 1 + draw(20000);
	held.carries = draw(2);
	dst_put("{\"weir\":1,\"resources\":{"
		"\"m0\":{\"type\":\"memory_pool\",\"place\":\"host\",\"block_size\":64,\"blocks\":%u},"
		"\"m1\":{\"type\":\"memory_pool\",\"block_size\":64,\"blocks\":%u}},\"entities\":["
		"{\"name\":\"idle\",\"operator\":\"nothing\",\"conditions\":[{\"type\":\"boolean\",\"enable_"
		"tick\":"
		"false}]}",
		held.blocks[0], held.blocks[1]);
	for (unsigned c = 0; c < held.chains; c++)
		put_chain(c);
	dst_put("],\"connections\":[");
	put_connections();
	dst_put("]}");
}
