/* Sources whose messages tell when they are freed, and a sink that notes what `aligned` gave it. */
#ifndef WR_TESTS_FILMS_H
#define WR_TESTS_FILMS_H

#include <stdio.h>

#include "cameras.h"
#include "rig.h"

/* --- operators --- */

enum { FREE, ALIVE, GIVEN_BACK };
struct frame {
	_Atomic int state;
	weir_message *message;
};
static struct frame frames[LISTS][MOST];
static _Atomic unsigned twice; /* given back */

static void give_back(void *pointer)
{
	struct frame *frame = pointer;

	if (wr_exchange(&frame->state, GIVEN_BACK) != ALIVE)
		wr_fetch_add(&twice, 1);
}

/* Messages that tell when they are freed. */
static weir_status film_compute(weir_context *context, void *state)
{
	struct camera *self = state;
	struct frame *frame = &frames[self->list][self->next];
	weir_stamp stamp = lists[self->list][self->next++];
	weir_message *message = NULL;
	weir_status status;

	if (!stamp.time)
		return weir_context_finish(context);
	wr_store(&frame->state, ALIVE);
	status = weir_message_wrap_user(weir_context_graph(context), frame, give_back, &message);
	frame->message = message;
	if (!status)
		status = weir_message_set_stamp(message, stamp);
	return status ? status : weir_context_emit(context, 0, message);
}

/* Blocks of its pool. */
static weir_status block_compute(weir_context *context, void *state)
{
	static const int64_t one = 1;
	static const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &one, .code = 1, .bits = 32};
	struct camera *self = state;
	weir_stamp stamp = lists[self->list][self->next++];
	weir_message *message = NULL;
	weir_status status;

	if (!stamp.time)
		return weir_context_finish(context);
	status = weir_context_create_tensor(context, &like, 0, &message);
	if (!status)
		status = weir_message_set_stamp(message, stamp);
	return status ? status : weir_context_emit(context, 0, message);
}

static char seen[4000];
static size_t length;
static uint64_t fails_at, drains_at, holds_at; /* ticks; 0: at none */
static _Atomic unsigned wrong;                 /* what a tick must never see */

static void check_message(weir_context *context, unsigned input)
{
	weir_message *message = weir_context_message(context, input, 0);
	const struct frame *frame =
		weir_message_kind(message) == WEIR_KIND_USER ? weir_message_data(message) : NULL;
	bool freed = frame && wr_load(&((struct frame *)frame)->state) != ALIVE;
	weir_fence fences[4];
	size_t count = weir_message_fences(message, 4, fences);
	bool unfinished = false;

	for (size_t i = 0; i < count; i++) /* C8 */
		unfinished |= weir_fence_query(weir_context_graph(context), fences[i]) != WEIR_OK;
	if (freed || unfinished || weir_message_unique(message))
		wr_fetch_add(&wrong, 1);
}

/* "10,20+": the times of what it receives, in ms; +: again. */
static weir_status see_compute(weir_context *context, void *state)
{
	uint64_t tick = weir_context_tick(context) + 1;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		size_t count = weir_context_count(context, i);
		const char *before = i ? "," : length ? " " : "";
		int64_t age = weir_context_age(context, i);

		if (i == 2 && !count)
			break;
		if (count && i < 2)
			check_message(context, i);
		if ((count > 1 && i < 2) || (!count && age != -1) || age < -1)
			wr_fetch_add(&wrong, 1);
		length +=
			count ? (size_t)snprintf(
					seen + length, sizeof seen - length, "%s%g%s", before,
					(double)weir_message_stamp(weir_context_message(context, i, 0)).time /
						1e6,
					age >= 0 ? "+" : "")
			      : (size_t)snprintf(seen + length, sizeof seen - length, "%s-", before);
	}
	if (holds_at && (tick == holds_at || tick == holds_at + 2))
		weir_context_hold(context, 1, tick == holds_at ? 0 : WEIR_HOLD_END);
	if (tick == drains_at)
		weir_context_drain(context, NULL);
	return tick == fails_at ? weir_context_fail(context, "as told") : WEIR_OK;
}

static const weir_port see_inputs[] = {{.size = sizeof(weir_port), .name = "a"},
				       {.size = sizeof(weir_port), .name = "b"},
				       {.size = sizeof(weir_port), .name = "c", .flags = WEIR_PORT_OPTIONAL},
				       {.name = NULL}};
static const weir_operator see = {.size = sizeof(weir_operator),
				  .name = "see",
				  .help = "notes what it receives",
				  .inputs = see_inputs,
				  .compute = see_compute};
static const weir_operator film = {.size = sizeof(weir_operator),
				   .name = "film",
				   .help = "emits what a list says",
				   .state_size = sizeof(struct camera),
				   .parameters = camera_parameters,
				   .outputs = camera_outputs,
				   .start = camera_start,
				   .compute = film_compute};
static const weir_operator block = {.size = sizeof(weir_operator),
				    .name = "block",
				    .help = "emits blocks of a pool, as a list says",
				    .state_size = sizeof(struct camera),
				    .parameters = camera_parameters,
				    .outputs = camera_outputs,
				    .start = camera_start,
				    .compute = block_compute};

/* --- graphs --- */

#define BOTH  "\"ports\": [\"a\", \"b\"], \"by\": \"time\", \"missing\": \"reuse\""
#define PORTS "\"ports\": {\"a\": {\"capacity\": %u}, \"b\": {\"capacity\": %u}}, "
#define PLAIN                                                                                                \
	"{\"weir\": 1, \"entities\": ["                                                                      \
	"{\"name\": \"l\", \"operator\": \"film\", \"parameters\": {\"list\": 0}},"                          \
	"{\"name\": \"r\", \"operator\": \"film\", \"parameters\": {\"list\": 1}},"                          \
	"{\"name\": \"p\", \"operator\": \"see\", " PORTS "\"conditions\": [{\"type\": \"aligned\", %s}]}]," \
	"\"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"p.b\"]]}"

static struct {
	const char *graph, *condition, *a, *b, *sets;
	unsigned capacity;
	uint64_t reused; /* at both ports */
} now;

static struct rig *begin(void)
{
	char json[2000];

	length = 0;
	seen[0] = 0;
	wr_store(&wrong, 0);
	wr_store(&twice, 0);
	for (size_t i = 0; i < LISTS; i++)
		for (size_t k = 0; k < MOST; k++)
			wr_store(&frames[i][k].state, FREE);
	fill(0, now.a);
	fill(1, now.b);
	snprintf(json, sizeof json, now.graph, now.capacity, now.capacity, now.condition);
	return rig_of_json(json, (const weir_operator *[]){&film, &block, &see, &camera, NULL});
}

static void check_given_back(void)
{
	assert_int_equal(wr_load(&wrong), 0);
	assert_int_equal(wr_load(&twice), 0);
	for (size_t i = 0; i < LISTS; i++)
		for (size_t k = 0; k < MOST; k++)
			assert_int_not_equal(wr_load(&frames[i][k].state), ALIVE);
}

#endif
