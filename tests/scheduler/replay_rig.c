/* An entity that replays its work (replay_rig.h). */
#include "replay_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tests/calls.h"

struct replay_work work;
struct replay_said said;
int64_t blocks[2][SIDE];

/* --- what is logged --- */

void note_line(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)at;
	(void)arg;
	if (level > WEIR_LOG_WARN || !strstr(line, "replay"))
		return;
	wr_fetch_add(&said.lines, 1);
	snprintf(said.text, sizeof said.text, "%s", line);
}

static void forget_lines(void)
{
	wr_store(&said.lines, 0);
	said.text[0] = '\0';
}

/* --- the entity: adds 7 to its input by a replay; `work` says how --- */

struct step {
	struct rig *rig;
	int64_t *to;
	const int64_t *from;
};

static int64_t scratch[3];

static weir_status add_to(weir_stream *stream, int64_t *to, const int64_t *from, int64_t plus)
{
	struct rig_sum sum = {to, {from, NULL}, plus, 2 * US};

	return weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
}

static weir_status enqueue_again(weir_context *context, weir_stream *stream, void *arg)
{
	(void)context;
	(void)stream;
	(void)arg;
	return WEIR_OK;
}

/* Does what a capture refuses, and goes on as if it had been allowed. */
static weir_status make_trouble(weir_context *context, weir_stream *stream)
{
	static unsigned names;
	weir_message *message = NULL;
	weir_stream *other = NULL;
	weir_fence fence;
	char name[20];

	switch (work.trouble) {
	case RECORDS:
		return weir_stream_record(stream, &fence);
	case ALLOCATES:
		if (weir_context_create_tensor(context, &rig_one_number, 0, &message))
			return WEIR_E_UNSUPPORTED;
		weir_message_unref(message);
		return WEIR_OK;
	case EMITS:
		return weir_context_emit(context, 1, rig_number(context, 1));
	case WAITS_OUTSIDE:
		return weir_stream_wait(stream, work.outside);
	case USES_DEFAULT:
		return device_stream(context) ? WEIR_OK : WEIR_E_UNSUPPORTED;
	case LEAVES_UNJOINED:
		if (!weir_context_allocate_stream(context, "side", &other))
			return add_to(other, &scratch[2], NULL, 1);
		return WEIR_E_UNSUPPORTED;
	case TAKES_NEW_STREAM:
		snprintf(name, sizeof name, "s%u", names++ % 3);
		return weir_context_allocate_stream(context, name, &other);
	case SETS_STREAM:
		return weir_context_set_stream(context, 0, stream);
	case REPLAYS_WITHIN:
		return weir_context_replay(context, "k", 1, enqueue_again, NULL) ? WEIR_E_INVALID : WEIR_OK;
	case FAILS_IN_CAPTURE:
		return weir_stream_record(stream, &fence) ? weir_context_fail(context, "not this time")
							  : WEIR_OK;
	case NONE:
	case TROUBLES:
		break;
	}
	return WEIR_OK;
}

/* to = from + 7, on two streams or on one. */
static weir_status enqueue_sum(weir_context *context, weir_stream *stream, void *arg)
{
	const struct step *step = arg;
	weir_stream *side = stream;
	weir_status status = WEIR_OK;

	work.calls++;
	if (make_trouble(context, stream) && work.trouble == FAILS_IN_CAPTURE)
		return WEIR_E_FAILED;
	HOLDS(step->rig, current_stream(context) == stream);
	if (work.on_side)
		status = weir_context_allocate_stream(context, "side", &side);
	if (!status)
		status = add_to(stream, &scratch[0], step->from, 1);
	if (!status && side != stream)
		status = weir_context_synchronize_streams(context, &stream, 1, side);
	if (!status)
		status = add_to(side, &scratch[1], &scratch[0], 2);
	if (!status && side != stream)
		status = weir_context_synchronize_streams(context, &side, 1, stream);
	return status ? status : add_to(stream, step->to, &scratch[1], 4);
}

weir_status replay_sum(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	struct step step = {rig, status ? NULL : weir_message_data(message), rig_data_of(context, 0)};
	const void *key[2] = {step.to, step.from};

	if (status)
		return status;
	*step.to = -1;
	if (work.trouble == WAITS_OUTSIDE)
		status = weir_stream_record(current_stream(context), &work.outside);
	if (!status)
		status = weir_context_replay(context, work.key_from ? work.key_from : key,
					     work.key_from ? work.key_bytes : sizeof key, enqueue_sum, &step);
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

struct rig *rig_for(const char *text)
{
	struct rig *rig;

	memset(&work, 0, sizeof work);
	forget_lines();
	rig = rig_of(text);
	rig_on(rig, "a", replay_sum);
	return rig;
}

const char *sums(void)
{
	static char text[RIG_TEXT];
	size_t length = 0;

	for (int i = 0; i < TICKS; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, i ? " %d" : "%d", i + 7);
	return text;
}

weir_status enqueue_block(weir_context *context, weir_stream *stream, void *arg)
{
	const struct rig_sum *sum = arg;

	(void)context;
	work.calls++;
	return weir_stream_launch(stream, &rig_adder, sum, sizeof *sum);
}

/* --- many keys --- */

/* from and to alternate over all pairs. */
static weir_status alternate(struct rig *rig, weir_context *context)
{
	int64_t tick = rig_tick(context), i = tick % SIDE, j = tick / SIDE % SIDE;
	struct rig_sum sum = {&blocks[1][j], {&blocks[0][i], NULL}, 100 * j, 1 * US};
	const void *key[2] = {sum.to, sum.from[0]};
	weir_status status = weir_context_replay(context, key, sizeof key, enqueue_block, &sum);

	(void)rig;
	if (!status)
		status = rig_emit_sum(context, 0, current_stream(context), 0, 0);
	return status;
}

struct rig *alternating(const char *text)
{
	struct rig *rig = rig_for(text);

	for (int i = 0; i < SIDE; i++)
		blocks[0][i] = 1000 * i;
	memset(blocks[1], 0, sizeof blocks[1]);
	rig_on(rig, "a", alternate);
	return rig;
}

void assert_last_blocks(void)
{
	for (int j = 0; j < SIDE; j++)
		assert_int_equal(blocks[1][j], 1000 * (SIDE - 1) + 100 * j);
}

/* Two keys take turns for a while, then two others: one instance each. */
weir_status take_turns(struct rig *rig, weir_context *context)
{
	int64_t key = rig_tick(context) / 8 % 3;
	struct rig_sum sum = {&blocks[1][key], {&blocks[1][key], NULL}, 1, 50 * US};

	(void)rig;
	return weir_context_replay(context, &key, sizeof key, enqueue_block, &sum);
}
