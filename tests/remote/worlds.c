/*
 * remote_send and remote_receive in simulated worlds: graphs with a scheduler each, as processes have them,
 * one of which receives and one or two send, joined by a simulated link (simulated.h) alone. A seed decides
 *what the processes do and what befalls them and their link, and in which order all of it happens.
 *
 *	worlds [--shape any|cut|ended|crashed|silent|rivals] [--bug NAME] [--seeds N] [--start S] [--rate]
 *
 * What must hold: docs/dev/rules.md R1 to R7, as worlds_check.c says, and what the link checks itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "any_link.h"
#include "tests/scheduler/rest.h"
#include "worlds.h"

struct world world;

static unsigned shape;
enum { ANY, CUT, ENDED, CRASHED, SILENT, RIVALS, SHAPES };

/* --- what is sent, and what must come --- */

/* What lies at each byte behind the letter, or in that further part. */
static int fill_of(struct letter letter, size_t part)
{
	return (int)(uint8_t)(letter.number * 7 + letter.life + 5 * part);
}

/* The letter, and behind it a few parts, some of which are empty. */
static size_t parts_of(struct letter letter)
{
	return 2 + letter.number % 3;
}

static size_t bytes_of_part(struct letter letter, size_t part)
{
	return (letter.number * 61 + part * 97) % 5 ? (letter.number * 31 + part * 89) % 400 : 0;
}

static weir_status pack(weir_graph *graph, struct letter letter, weir_message *first, weir_message **out)
{
	static const char *const names[] = {"letter", "b", "c", "d"};
	weir_part parts[4] = {{.size = sizeof *parts, .name = names[0], .message = first}};
	weir_status status = WEIR_OK;
	size_t made = 1;

	for (; made < parts_of(letter) && !status; made += !status) {
		size_t bytes = bytes_of_part(letter, made);

		parts[made] = (weir_part){.size = sizeof *parts, .name = names[made]};
		status = weir_message_create_bytes(graph, bytes, &parts[made].message);
		if (!status && bytes)
			memset(weir_message_data(parts[made].message), fill_of(letter, made), bytes);
	}
	if (!status)
		status = weir_message_pack(graph, parts, made, out);
	while (status && made)
		weir_message_unref(parts[--made].message);
	return status;
}

static struct side *side_of(weir_context *context)
{
	struct side *side = world.sides;

	while (side->graph != weir_context_graph(context))
		side++;
	return side;
}

/* Only tensors go into a memory pool. */
static weir_status make_first(weir_graph *graph, size_t bytes, weir_message **out)
{
	const int64_t extent = (int64_t)bytes;
	const weir_tensor like = {.size = sizeof like,
				  .device = WEIR_DEVICE_HOST,
				  .dimensions = 1,
				  .shape = &extent,
				  .code = 1,
				  .bits = 8};

	return world.blocks ? weir_message_create_tensor(graph, &like, out)
			    : weir_message_create_bytes(graph, bytes, out);
}

static weir_status number_compute(weir_context *context, void *state)
{
	struct side *side = side_of(context);
	struct wr_random *random = &side->random;
	struct letter letter = {life_of(side), (uint32_t)weir_context_tick(context)};
	/* Some lie in the message itself, some go in a bundle. */
	size_t bytes = sizeof letter + wr_random_below(random, wr_random_below(random, 2) ? 60 : 600);
	weir_message *message;
	weir_status status;

	(void)state;
	if (wr_random_below(random, 100) < world.source_slow)
		weir_sleep(1 + (int64_t)wr_random_below(random, 20 * MS));
	status = make_first(weir_context_graph(context), bytes, &message);
	if (status)
		return status;
	memset(weir_message_data(message), fill_of(letter, 0), bytes);
	memcpy(weir_message_data(message), &letter, sizeof letter);
	if (wr_random_below(random, 100) < world.packs)
		status = pack(weir_context_graph(context), letter, message, &message);
	if (status)
		return status;
	status = weir_context_emit(context, 0, message);
	world.sent[letter.life] += !status;
	return status || letter.number + 1 < world.count ? status : weir_context_finish(context);
}

static bool is_filled(const weir_message *message, size_t from, int with)
{
	const uint8_t *data = weir_message_data(message);

	for (size_t i = from; i < weir_message_size(message); i++)
		if (data[i] != with)
			return false;
	return true;
}

/* false: it is not what was sent. */
static bool read_letter(const weir_message *message, struct letter *out)
{
	size_t count = weir_message_parts(message);
	const weir_message *first = count ? weir_message_part_at(message, 0) : message;

	if (weir_message_size(first) < sizeof *out)
		return false;
	memcpy(out, weir_message_data(first), sizeof *out);
	if (out->life >= SENDERS * LIVES || out->number >= world.count ||
	    !is_filled(first, sizeof *out, fill_of(*out, 0)) ||
	    (count && (count != parts_of(*out) || strcmp(weir_message_part_name(message, 0), "letter"))))
		return false;
	for (size_t i = 1; i < count; i++) {
		const weir_message *part = weir_message_part_at(message, i);

		if (weir_message_size(part) != bytes_of_part(*out, i) ||
		    !is_filled(part, 0, fill_of(*out, i)))
			return false;
	}
	return true;
}

/* Numbers only grow (R2, R6), and the payload is what it was (R3). */
static weir_status look_compute(weir_context *context, void *state)
{
	struct side *side = &world.sides[SIMULATED_RECEIVER];
	struct letter letter;
	uint32_t *newest;

	(void)state;
	simulated_came();
	if (!read_letter(weir_context_message(context, 0, 0), &letter)) {
		dst_fails("a payload is not what was sent");
		return WEIR_OK;
	}
	newest = &world.newest[letter.life / LIVES];
	if (letter.life < *newest || letter.number < world.next[letter.life])
		dst_fails("message %u of life %u came after %u of %u", letter.number, letter.life,
			  world.next[*newest], *newest);
	*newest = letter.life;
	world.changes += world.last && world.last != letter.life + 1;
	world.last = letter.life + 1;
	world.next[letter.life] = letter.number + 1;
	world.came[letter.life]++;
	if (wr_random_below(&side->random, 100) < world.sink_slow)
		weir_sleep(1 + (int64_t)wr_random_below(&side->random, 20 * MS));
	if (world.enough && ++world.taken == world.enough) {
		simulated_seen.enough = true;
		return weir_context_finish(context);
	}
	return WEIR_OK;
}

static weir_status beside_compute(weir_context *context, void *state)
{
	(void)context, (void)state;
	return WEIR_OK;
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out", .help = "numbers"},
				    {.name = NULL}};
static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in", .help = "numbers"},
				   {.name = NULL}};
static const weir_operator number = {.size = sizeof number,
				     .name = "number",
				     .help = "numbers",
				     .outputs = outputs,
				     .compute = number_compute};
static const weir_operator look = {.size = sizeof look,
				   .name = "look",
				   .help = "looks at numbers",
				   .inputs = inputs,
				   .compute = look_compute};
static const weir_operator beside = {
	.size = sizeof beside, .name = "beside", .help = "does nothing", .compute = beside_compute};

/* --- a process --- */

static void write_beat(uint32_t ms, char out[100])
{
	*out = 0;
	if (ms)
		snprintf(out, 100, "{\"type\": \"periodic\", \"period\": \"%ums\"}", ms);
}

/* What the receiver's run has to do beside it. */
static void write_beside(char out[200])
{
	*out = 0;
	if (world.beside)
		snprintf(out, 200,
			 ", {\"name\": \"beside\", \"operator\": \"beside\", \"conditions\": [{\"type\": "
			 "\"periodic\", \"period\": \"200ms\"}, {\"type\": \"count\", \"count\": %u}]}",
			 world.beside);
}

static weir_status make(struct side *side)
{
	static const char sender[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"number\", \"operator\": \"number\", "
		"\"conditions\": [%s]},"
		" {\"name\": \"%s\", \"operator\": \"remote_send\", \"parameters\": {\"to\": "
		"\"127.0.0.1:1\", \"on_lost\": \"%s\", \"spin\": \"%uus\", \"keepalive\": \"%ums\", "
		"\"timeout\": \"%us\"}, \"ports\": "
		"{\"in\": "
		"{\"capacity\": %u, \"take\": %s}}}],"
		" \"connections\": [[\"number.out\", \"%s.in\"]]}";
	static const char receiver[] =
		"{\"weir\": 1, \"resources\": {\"pool\": {\"type\": \"memory_pool\", \"place\": \"host\", "
		"\"block_size\": 1024, \"blocks\": %u}}, "
		"\"entities\": [{\"name\": \"receive\", \"operator\": \"remote_receive\", \"resources\": "
		"[%s],"
		" \"parameters\": {\"listen\": \"127.0.0.1:1\", \"on_lost\": \"%s\", \"spin\": \"%uus\", "
		"\"keepalive\": \"%ums\", \"credits\": %u}, "
		"\"ports\": {\"out\": {\"max_emits\": %u}}},"
		" {\"name\": \"look\", \"operator\": \"look\", \"ports\": {\"in\": {\"capacity\": %u}}, "
		"\"conditions\": [{\"type\": \"boolean\"}%s%s]}%s],"
		" \"connections\": [[\"receive.out\", \"look.in\"]]}";
	static const char *const words[] = {"fail", "wait", "drop"};
	weir_scheduler_options options = {.workers = side->workers};
	weir_description *description = NULL;
	weir_status status;
	char json[1600], beat[100], more[200];

	write_beat(side->which == SIMULATED_SENDER ? world.source_beat : world.sink_beat, beat);
	write_beside(more);
	if (side->which == SIMULATED_SENDER)
		snprintf(json, sizeof json, sender, beat, side->name, words[side->on_lost], side->spin,
			 side->keepalive, TIMEOUT, world.queued, world.batches ? "\"all\"" : "1", side->name);
	else
		snprintf(json, sizeof json, receiver, world.blocks ? world.blocks : 1,
			 world.blocks ? "\"pool\"" : "", words[side->on_lost], side->spin, side->keepalive,
			 world.credits, world.batches ? BEHIND : 1, BEHIND, *beat ? ", " : "", beat, more);
	if (!side->life)
		dst_put("%s\n", json);
	status = weir_description_parse(json, strlen(json), NULL, NULL, &description);
	if (!status)
		status = weir_graph_create(world.registry, description, &side->graph);
	weir_description_destroy(description);
	if (!status && side->which == SIMULATED_RECEIVER && world.closed)
		status = weir_entity_tell(weir_graph_entity(side->graph, "look"), "boolean", WEIR_TOLD_NEVER);
	return status ? status : dst_make_scheduler(side->graph, options, &side->scheduler);
}

/* No sender will come again, and this one waits for one, or for a first one: the user ends it. */
static bool is_forsaken(const struct side *side)
{
	bool first = simulated_seen.greeted == side->greeted; /* none has come */
	bool well = false;

	if (side->which == SIMULATED_SENDER)
		return false;
	for (unsigned i = 0; i < world.side_count; i++) {
		const struct side *other = &world.sides[i];

		if (other != side && (!other->over || wr_now() - other->over <= GRACE))
			return false;
		well |= other != side && other->well;
	}
	/* With one sender its answer came from this life. */
	return first || (side->on_lost == ON_WAIT && !(well && (!side->life || world.side_count == 2)));
}

/* Returns false if it stands still. */
static bool wait_for_end(struct side *side, weir_outcome *outcome)
{
	int64_t until = wr_now() + LIMIT;
	bool forsaken = false;

	while (wr_now() < until && !dst_said.broken[0]) {
		side->status = weir_scheduler_wait(side->scheduler, forsaken ? LIMIT : GRACE / 4, outcome);
		if (side->status != WEIR_E_TIMEOUT) /* as no operator here fails by it */
			return true;
		if (is_forsaken(side)) {
			forsaken = side->stopped = true;
			weir_scheduler_stop(side->scheduler, 0);
		}
	}
	dst_fails("%s stands still", side->name);
	return false;
}

/* The entity that has the link. */
static weir_entity *joined(const struct side *side)
{
	weir_entity *entity = side->graph->entities;

	while (strcmp(entity->plan->name, side->name) != 0)
		entity++;
	return entity;
}

/* What befalls this life of the process. Returns false if it stands still. */
static bool suffer(struct side *side, enum fate fate, weir_outcome *outcome)
{
	if (fate == LIVES_ON)
		return wait_for_end(side, outcome);
	side->status = weir_scheduler_wait(side->scheduler, side->fate_after, outcome);
	if (side->status != WEIR_E_TIMEOUT)
		return true; /* it was over before */
	side->stopped = world.stopped = true;
	if (fate == DIES)
		simulated_crash(joined(side)->operator_state);
	weir_scheduler_stop(side->scheduler, fate == IS_DRAINED ? WEIR_STOP_DRAIN : 0);
	return wait_for_end(side, outcome);
}

static void live(struct side *side, enum fate fate)
{
	weir_outcome outcome = {.size = sizeof outcome};

	weir_sleep(side->begins_after);
	side->stopped = side->away = false;
	side->lost = 0;
	side->greeted = simulated_seen.greeted;
	if (make(side) || weir_scheduler_start(side->scheduler)) {
		dst_fails("start: %s", weir_last_error());
		return;
	}
	if (!suffer(side, fate, &outcome))
		return; /* the world is abandoned */
	dst_put("%s %u: %s: %s\n", side->name, side->life, weir_status_text(side->status),
		outcome.text ? outcome.text : "");
	check_end(side, outcome.text ? outcome.text : "");
	weir_scheduler_destroy(side->scheduler);
	side->scheduler = NULL;
	if (rest_memory_used(side->graph))
		dst_fails("%s keeps memory", side->name);
	if (weir_graph_destroy(side->graph))
		dst_fails("a message of %s is left: %s", side->name, weir_last_error());
	side->graph = NULL;
}

static void live_all(void *arg)
{
	struct side *side = arg;

	live(side, side->fate);
	while (side->stopped && side->life + 1 < side->lives && !dst_said.broken[0]) {
		side->life++;
		live(side, side->life + 1 < side->lives ? side->fate : LIVES_ON);
	}
	side->over = wr_now();
}

static weir_status make_registry(void)
{
	weir_status status = any_link_registry(&world.registry);

	if (!status)
		status = weir_registry_add_operator(world.registry, &number);
	if (!status)
		status = weir_registry_add_operator(world.registry, &beside);
	return status ? status : weir_registry_add_operator(world.registry, &look);
}

static void run(void)
{
	if (make_registry()) {
		dst_fails("%s", weir_last_error());
		return;
	}
	weir_log_set(hear, NULL);
	simulated_begin(world.seed, &world.plan, dst_fails);
	for (unsigned i = 0; i < world.side_count; i++)
		if (wr_thread_start(&world.sides[i].fiber, world.sides[i].name, live_all, &world.sides[i]))
			abort();
	for (unsigned i = 0; i < world.side_count; i++)
		wr_thread_join(&world.sides[i].fiber);
	if (dst_said.broken[0])
		return;
	check_all();
	simulated_end();
	weir_log_set(NULL, NULL);
	weir_registry_destroy(world.registry);
}

/* --- the world of a seed --- */

static unsigned draw(unsigned below)
{
	return (unsigned)wr_random_below(&world.shape, below);
}

static void draw_side(unsigned index)
{
	static const char *const names[] = {"send", "receive", "second"};
	struct side *side = &world.sides[index];
	enum simulated_side which = index == SIMULATED_RECEIVER ? SIMULATED_RECEIVER : SIMULATED_SENDER;

	side->which = which;
	side->number = index / 2;
	side->name = names[index];
	side->workers = 1 + draw(2);
	side->lives = 1;
	side->begins_after = 1 + (draw(4) ? draw(1000) : (int64_t)draw(1500) * MS);
	side->fate_after = 1 + (draw(3) ? (int64_t)draw(100) * MS : (int64_t)draw(1000000));
	side->spin = draw(4) ? 0 : 1 + draw(20000);
	side->on_lost = (enum on_lost)draw(which == SIMULATED_SENDER ? 3 : 2);
	side->keepalive = 10000;
	wr_random_seed(&side->random, world.seed, 62 + index);
}

/* Pauses longer than `keepalive` are no silence. */
static void draw_silence(void)
{
	uint32_t longest = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct side *side = &world.sides[i];

		side->keepalive = !draw(6) ? 0 : draw(4) ? 1200 + draw(1800) : 10000;
		if (side->keepalive < 10000 && side->keepalive > longest)
			longest = side->keepalive;
	}
	world.count = 1 + draw(7);
	world.source_beat = draw(2) ? 0 : 1 + draw(3000);
	world.sink_beat = draw(2) ? 0 : 1 + draw(4000);
	world.plan.silences = draw(4);
	world.plan.silence = (500 + 2 * (int64_t)longest) * MS;
	world.plan.cuts = draw(4) ? 0 : 1;
	if (draw(4))
		return;
	world.sides[draw(2)].fate = DIES;
	for (unsigned i = 0; i < 2; i++)
		world.sides[i].lives = 1 + draw(LIVES);
}

/* Each sender may be lost at any time, so that the other one gets its turn, and comes back. */
static void draw_rivals(void)
{
	draw_side(world.side_count++);
	world.source_beat = draw(2) ? 1 + draw(60) : 0;
	world.sink_beat = draw(2) ? 1 + draw(60) : 0;
	world.plan.full = draw(2);
	world.plan.cuts = draw(6);
	world.plan.tears = draw(4) ? 0 : draw(4);
	if (draw(5))
		world.sides[SIMULATED_RECEIVER].on_lost = ON_WAIT;
	if (!draw(3)) {
		world.plan.silences = 1 + draw(3);
		world.plan.silence = 4000 * MS;
	}
	for (unsigned i = 0; i < world.side_count; i++) {
		struct side *side = &world.sides[i];

		if (world.plan.silences)
			side->keepalive = 1200 + draw(1800);
		if (draw(side->which == SIMULATED_SENDER ? 2 : 6))
			continue;
		side->fate = (enum fate)draw(DIES + 1);
		side->lives = 1 + draw(LIVES);
	}
}

/* The sink takes so many messages, or none at all from the beginning, and the run may go on then. */
static void draw_enough(void)
{
	world.enough = 1 + draw(world.count);
	world.beside = draw(2) ? 0 : draw(2) ? BESIDE_LONG : 1 + draw(10);
	world.closed = world.beside && draw(2);
}

static void draw_fate(void)
{
	struct side *side = &world.sides[draw(2)];

	switch (shape == ANY ? CUT + draw(SHAPES - CUT) : shape) {
	case CUT:
		world.plan.cuts = draw(6);
		world.plan.tears = draw(2) ? 0 : draw(4);
		world.plan.full = !draw(4);
		break;
	case ENDED:
		world.plan.cuts = draw(4) ? 0 : 1;
		if (draw(3))
			side->fate = draw(2) ? IS_DRAINED : IS_STOPPED;
		else
			draw_enough();
		break;
	case CRASHED:
		world.plan.cuts = draw(4) ? 0 : 1;
		side->fate = DIES;
		side->lives = 1 + draw(LIVES);
		break;
	case SILENT:
		draw_silence();
		break;
	case RIVALS:
		draw_rivals();
		break;
	}
}

static void draw_world(uint64_t seed)
{
	memset(&world, 0, sizeof world);
	world.seed = seed;
	wr_random_seed(&world.shape, seed, 59);
	world.count = 1 + draw(draw(3) ? 12 : 40);
	world.credits = 1 + draw(draw(3) ? 4 : 16);
	world.plan.places = world.credits;
	world.queued = 1 + draw(4);
	world.batches = draw(2);
	world.source_slow = draw(3) ? 0 : draw(60);
	world.sink_slow = draw(3) ? 0 : draw(60);
	world.sink_beat = draw(4) ? 0 : 1 + draw(100);
	world.packs = draw(2) ? 0 : draw(100);
	world.plan.strangers = draw(4) ? 0 : 1 + draw(2);
	world.plan.refusals = draw(6) ? 0 : 1 + draw(2);
	while (world.side_count < 2)
		draw_side(world.side_count++);
	draw_fate();
	world.blocks = draw(2) ? 0 : 1 + draw(world.credits + 3);
	dst_put("%u messages, %u credits, %u blocks, on_lost %d and %d, fates %d and %d after %" PRId64
		" and %" PRId64 ", %u cuts%s, %u tears, enough %u\n",
		world.count, world.credits, world.blocks, world.sides[0].on_lost, world.sides[1].on_lost,
		world.sides[0].fate, world.sides[1].fate, world.sides[0].fate_after,
		world.sides[1].fate_after, world.plan.cuts, world.plan.full ? " when full" : "",
		world.plan.tears, world.enough);
}

static void look_at_rest(weir_scheduler *unused)
{
	(void)unused;
	for (unsigned i = 0; i < world.side_count; i++) {
		struct side *side = &world.sides[i];

		if (!side->scheduler || wr_load(&side->scheduler->phase) != WR_OPEN)
			continue;
		if (rest_broken(side->scheduler))
			dst_fails("%s", rest_broken(side->scheduler));
		if (wr_read(&joined(side)->state) == WR_IDLE) /* it sleeps */
			simulated_look(joined(side)->operator_state);
		if (rest_memory_unheard(joined(side)))
			dst_fails("memory is free, and %s, which lacks some, sleeps", side->name);
	}
}

int main(int argc, char **argv)
{
	static const struct dst_command command = {
		.name = "worlds",
		.shapes = {"any", "cut", "ended", "crashed", "silent", "rivals"},
		.shape = &shape,
		.draw = draw_world,
		.run = run,
		.look = look_at_rest,
		.scheduler = &world.sides[SIMULATED_RECEIVER].scheduler,
	};

	return dst_command(&command, argc, argv);
}
