#include "graphs/names.h"

#include <string.h>
#include <sys/auxv.h>

#include "base/memory.h"

struct wr_name_slot {
	const char *name; /* NULL: free */
	uint32_t hash, index;
};

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(struct sip *s)
{
	s->a += s->b;
	s->b = rotate(s->b, 13) ^ s->a;
	s->a = rotate(s->a, 32);
	s->c += s->d;
	s->d = rotate(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = rotate(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = rotate(s->b, 17) ^ s->c;
	s->c = rotate(s->c, 32);
}

static void sip_absorb(struct sip *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

/* Seeds from the 16 random bytes that the kernel gives to every process: needs no file and cannot fail. */
static struct sip sip_init(void)
{
	uint64_t key[2] = {0x5bd1e9955bd1e995u, 0x9e3779b97f4a7c15u};
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(key, random, sizeof(key));
	return (struct sip){key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
			    key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
}

/* SipHash-1-3 (Aumasson, Bernstein). */
static uint32_t hash_of(const char *name)
{
	struct sip s = sip_init();
	size_t length = strlen(name);
	uint64_t last = (uint64_t)length << 56;
	uint64_t word;

	for (; length >= sizeof(word); length -= sizeof(word), name += sizeof(word)) {
		memcpy(&word, name, sizeof(word));
		sip_absorb(&s, word);
	}
	for (size_t i = 0; i < length; i++)
		last |= (uint64_t)(unsigned char)name[i] << (8 * i);
	sip_absorb(&s, last);
	s.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return (uint32_t)(s.a ^ s.b ^ s.c ^ s.d);
}

/* The slot of that name, or the free slot where it belongs. At least half of the slots are free. */
static struct wr_name_slot *find_slot(const struct wr_names *names, const char *name, uint32_t hash)
{
	size_t i = hash & (names->room - 1);

	while (names->slots[i].name && (names->slots[i].hash != hash || strcmp(names->slots[i].name, name)))
		i = (i + 1) & (names->room - 1);
	return &names->slots[i];
}

static weir_status names_grow(struct wr_names *names)
{
	struct wr_names larger = {.room = names->room ? 2 * names->room : 16, .count = names->count};

	larger.slots = wr_alloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < names->room; i++)
		if (names->slots[i].name)
			*find_slot(&larger, names->slots[i].name, names->slots[i].hash) = names->slots[i];
	wr_free(names->slots);
	*names = larger;
	return WEIR_OK;
}

weir_status wr_names_add(struct wr_names *names, const char *name, size_t index)
{
	uint32_t hash = hash_of(name);
	struct wr_name_slot *slot;

	if (2 * (names->count + 1) > names->room && names_grow(names))
		return WEIR_E_NOMEM;
	slot = find_slot(names, name, hash);
	if (slot->name)
		return WEIR_OK;
	*slot = (struct wr_name_slot){name, hash, (uint32_t)index};
	names->count++;
	return WEIR_OK;
}

size_t wr_names_find(const struct wr_names *names, const char *name)
{
	const struct wr_name_slot *slot;

	if (!names->count)
		return WR_NO_INDEX;
	slot = find_slot(names, name, hash_of(name));
	return slot->name ? slot->index : WR_NO_INDEX;
}

void wr_names_finish(struct wr_names *names)
{
	wr_free(names->slots);
	*names = (struct wr_names){0};
}
