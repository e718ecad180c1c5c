/*
 * What the entities of dst_joins.c do: they note what a tick receives, by the addresses of its messages,
 * whether the work on them is finished or not; read the payloads, on the host or by a kernel; and emit a
 * message, or now and then none.
 */
#include <string.h>

#include "dst_joins.h"
#include "tests/calls.h"

enum { READ = 8 }; /* payloads that a kernel reads */

struct node {
	unsigned id;
	struct dst_joins_entity *entity;
	struct dst_joins_log *log;
	struct wr_random random;
};

static weir_status node_start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;

	(void)context;
	node->id = (unsigned)weir_values_int(values, "id");
	node->entity = &joins.entity[node->id];
	node->log = &joins.log[node->id];
	wr_random_seed(&node->random, joins.seed, 500 + 20 * node->id + node->log->started++);
	return WEIR_OK;
}

/* --- payloads --- */

static struct dst_joins_payload payload_of(uint32_t maker, uint32_t number)
{
	return (struct dst_joins_payload){
		maker, number, ((uint64_t)maker << 32 | number) * UINT64_C(0x9e3779b97f4a7c15) + 1};
}

static void check_payload(const struct dst_joins_payload *payload, struct dst_joins_payload due, unsigned id)
{
	if (payload &&
	    (payload->maker != due.maker || payload->number != due.number || payload->mark != due.mark))
		dst_fails("e%u read a payload of e%u before it was written, or of another one", id,
			  due.maker);
}

struct work {
	const struct dst_joins_payload *from[READ];
	struct dst_joins_payload due[READ], value;
	struct dst_joins_payload *to;
	unsigned id, reads;
	int64_t ns, at;
};

static int run_work(const void *arguments)
{
	const struct work *work = arguments;
	struct dst_joins_log *log = &joins.log[work->id];

	weir_sleep(work->ns);
	for (unsigned i = 0; i < work->reads; i++)
		check_payload(work->from[i], work->due[i], work->id);
	if (work->to)
		*work->to = work->value;
	if (wr_now() - work->at > log->longest)
		log->longest = wr_now() - work->at;
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "join", run_work, NULL};

/* --- what a tick receives --- */

/* Of messages with one address only the last one is there. */
static unsigned find_sent(const struct dst_joins_log *sender, const weir_message *message)
{
	unsigned i = sender->sent_count;

	while (i && sender->sent[i - 1].message != message)
		i--;
	return i - 1; /* UINT_MAX: none */
}

static unsigned pushed_to(const struct node *node, unsigned p, bool most)
{
	const struct wr_connection *connection = joins.graph->entities[node->id].inputs[p].connections[0];
	const struct dst_joins_port *port = &node->entity->port[p];

	if (port->policy == WEIR_POLICY_BLOCK)
		return (unsigned)(wr_read(&connection->queue.tail) - node->log->base[p]);
	return most ? joins.log[port->from].sent_count
		    : (unsigned)wr_read(&connection->queue.counters.pushed);
}

static struct dst_joins_sent note_message(struct node *node, struct dst_joins_tick *tick, unsigned p,
					  const weir_message *message, unsigned i)
{
	const struct dst_joins_log *sender = &joins.log[node->entity->port[p].from];
	unsigned at = find_sent(sender, message);
	weir_stamp stamp = weir_message_stamp(message);

	if (at >= sender->sent_count) {
		dst_fails("e%u.%c got what e%d did not send", node->id, 'a' + p, node->entity->port[p].from);
		return (struct dst_joins_sent){.maker = 0};
	}
	if (!i)
		tick->first[p] = at;
	else if (at != tick->first[p] + i)
		dst_fails("e%u.%c got message %u behind %u", node->id, 'a' + p, at, tick->first[p] + i - 1);
	if (stamp.time != sender->sent[at].stamp.time || stamp.tag != sender->sent[at].stamp.tag)
		dst_fails("message %u of e%d has the stamp %lld/%llu, not %lld/%llu", at,
			  node->entity->port[p].from, (long long)stamp.time, (unsigned long long)stamp.tag,
			  (long long)sender->sent[at].stamp.time,
			  (unsigned long long)sender->sent[at].stamp.tag);
	return sender->sent[at];
}

/* Host code reads what it was given, at once. A kernel reads it later. */
static void read_message(struct node *node, struct work *work, const struct dst_joins_sent *sent,
			 const weir_message *message)
{
	const struct dst_joins_payload *payload = weir_message_data((weir_message *)message);
	struct dst_joins_payload due = payload_of(sent->maker, sent->number);

	if (!node->entity->device) {
		check_payload(payload, due, node->id);
	} else if (work->reads < READ) {
		work->from[work->reads] = payload;
		work->due[work->reads++] = due;
	}
}

/* --- what it emits --- */

static bool is_earlier(const struct dst_joins_entity *entity, weir_stamp one, weir_stamp other)
{
	return entity->by_tag ? one.tag < other.tag : one.time < other.time;
}

/* T10: of a set the earliest, by its key; else the first that was received. */
static const struct dst_joins_sent *stamp_giver(const struct node *node, const struct dst_joins_tick *tick)
{
	const struct dst_joins_sent *giver = NULL;

	for (unsigned p = 0; p < PORTS; p++) {
		const struct dst_joins_port *port = &node->entity->port[p];
		const struct dst_joins_sent *sent;
		if (port->from == NONE || !tick->count[p])
			continue;
		sent = &joins.log[port->from].sent[tick->first[p]];
		if (!giver || (node->entity->kind == ALIGNED && port->policy != WEIR_POLICY_LATEST &&
			       is_earlier(node->entity, sent->stamp, giver->stamp)))
			giver = sent;
	}
	return giver;
}

/* Sources jump and repeat; others follow what they receive. Neither goes back. */
static weir_stamp next_stamp(struct node *node, const struct dst_joins_sent *giver)
{
	const struct dst_joins_entity *entity = node->entity;
	weir_stamp *last = &node->log->last;

	if (!last->time)
		*last = (weir_stamp){1000000 + (int64_t)wr_random_below(&node->random, 2000), 1};
	last->time += 500 * (int64_t)wr_random_below(&node->random, 4);
	last->tag += wr_random_below(&node->random, 3);
	if (entity->jump && !wr_random_below(&node->random, entity->jump)) {
		last->time += (int64_t)wr_random_below(&node->random, 5000);
		last->tag += wr_random_below(&node->random, 6);
	}
	if (giver && giver->stamp.time > last->time)
		last->time = giver->stamp.time;
	if (giver && giver->stamp.tag > last->tag)
		last->tag = giver->stamp.tag;
	return *last;
}

/* In the order of ticks: instances compute later ones earlier. */
static void note_sent(struct node *node, const struct dst_joins_sent *sent)
{
	struct dst_joins_log *log = node->log;
	unsigned at = log->sent_count;

	if (at == SENT) {
		dst_fails("e%u sends without end", node->id);
		return;
	}
	for (; at && log->sent[at - 1].set > sent->set; at--)
		log->sent[at] = log->sent[at - 1];
	log->sent[at] = *sent;
	log->sent_count++;
}

static weir_status launch(weir_context *context, struct work *work)
{
	weir_stream *stream = current_stream(context);

	return stream ? weir_stream_launch(stream, &kernel, work, sizeof *work) : WEIR_E_DEVICE;
}

static weir_status emit_new(weir_context *context, struct node *node, struct work *work,
			    struct dst_joins_sent *sent)
{
	static const int64_t bytes = sizeof(struct dst_joins_payload);
	const weir_tensor like = {sizeof like, NULL, 0, 1, &bytes, NULL, 1, 8, 1};
	weir_fence fence = {0, 0};
	weir_status status = weir_context_create_tensor(
		context, &like, node->entity->device ? 0 : WEIR_TENSOR_HOST, &sent->message);

	if (status)
		return status;
	sent->maker = node->id;
	sent->number = node->log->made++;
	note_sent(node, sent);
	work->to = weir_message_data(sent->message);
	*work->to = (struct dst_joins_payload){0};
	work->value = payload_of(sent->maker, sent->number);
	if (node->entity->device)
		status = launch(context, work);
	else if (node->entity->promises)
		status = dst_joins_promise(work->to, work->value, &fence);
	else
		*work->to = work->value;
	if (status) {
		weir_message_unref(sent->message);
		return status;
	}
	return fence.value ? weir_context_emit_at(context, 0, sent->message, fence)
			   : weir_context_emit(context, 0, sent->message);
}

static weir_status emit(weir_context *context, struct node *node, struct work *work,
			const struct dst_joins_tick *tick)
{
	const struct dst_joins_sent *giver = stamp_giver(node, tick);
	struct dst_joins_sent sent = {.set = weir_context_tick(context), .at = wr_now()};
	unsigned p = 0;

	sent.stamp = giver ? giver->stamp : (weir_stamp){0, 0};
	if (node->entity->stamps || node->entity->role == SOURCE) {
		sent.stamp = next_stamp(node, giver);
		weir_context_set_stamp(context, sent.stamp);
	}
	while (p < PORTS && !tick->count[p])
		p++;
	if (!node->entity->forwards || p == PORTS)
		return emit_new(context, node, work, &sent);
	sent.message = weir_context_message(context, p, 0);
	sent.maker = joins.log[node->entity->port[p].from].sent[tick->first[p]].maker;
	sent.number = joins.log[node->entity->port[p].from].sent[tick->first[p]].number;
	sent.stamp = joins.log[node->entity->port[p].from].sent[tick->first[p]].stamp;
	note_sent(node, &sent);
	if (node->entity->device && launch(context, work))
		return WEIR_E_DEVICE;
	if (sent.set % 2)
		return weir_context_forward(context, p, 0, 0);
	return weir_context_emit(context, 0, weir_message_ref(sent.message));
}

/* --- the operators --- */

static weir_status mishap(weir_context *context, const struct node *node)
{
	if (weir_context_tick(context) + 1 != node->entity->fails_at)
		return WEIR_OK;
	joins.failed = true;
	return weir_context_fail(context, "told to fail");
}

static void pause_some(struct node *node)
{
	if (wr_random_below(&node->random, 2))
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 2000));
}

static weir_status source_compute(weir_context *context, void *state)
{
	struct node *node = state;
	struct dst_joins_tick tick = {.now = wr_now()};
	struct work work = {.id = node->id, .ns = node->entity->work, .at = wr_now()};
	weir_status status = mishap(context, node);

	if (!status && node->entity->loss && !wr_random_below(&node->random, node->entity->loss))
		return WEIR_OK;
	if (!wr_random_below(&node->random, 4))
		pause_some(node);
	return status ? status : emit(context, node, &work, &tick);
}

static struct dst_joins_tick *begin(weir_context *context, struct node *node)
{
	struct dst_joins_log *log = node->log;
	uint64_t set = weir_context_tick(context);
	struct dst_joins_tick *tick;

	if (set >= TICKS) {
		dst_fails("e%u ticks without end", node->id);
		return NULL;
	}
	tick = &log->tick[set];
	if (tick->now)
		dst_fails("e%u computes tick %llu twice", node->id, (unsigned long long)set);
	*tick = (struct dst_joins_tick){.ready = node->entity->instances ? 0 : context->entity->ready_at,
					.now = wr_now()};
	log->ticks += 1;
	return tick;
}

static struct dst_joins_sent receive(weir_context *context, struct node *node, struct work *work,
				     struct dst_joins_tick *tick, unsigned p)
{
	bool reuses = node->entity->reuse && node->entity->port[p].policy != WEIR_POLICY_LATEST;
	struct dst_joins_sent sent = {.maker = 0};

	tick->count[p] = (unsigned)weir_context_count(context, p);
	for (unsigned i = 0; i < tick->count[p]; i++) {
		sent = note_message(node, tick, p, weir_context_message(context, p, i), i);
		read_message(node, work, &sent, weir_context_message(context, p, i));
	}
	if (reuses && weir_context_age(context, p) >= 0) {
		tick->again[p] = tick->first[p] + 1;
		tick->first[p] = tick->count[p] = 0;
	}
	return sent;
}

static weir_status node_compute(weir_context *context, void *state)
{
	struct node *node = state;
	const struct dst_joins_entity *entity = node->entity;
	struct dst_joins_tick *tick = begin(context, node);
	struct work work = {.id = node->id, .ns = entity->work, .at = wr_now()};
	struct dst_joins_sent sent = {.maker = 0};
	bool silent = entity->role == SINK;
	weir_status status;

	if (!tick)
		return weir_context_fail(context, "too many ticks");
	for (unsigned p = 0; p < PORTS && !dst_said.broken[0]; p++) {
		if (entity->port[p].from == NONE)
			continue;
		tick->visible[p] = entity->instances ? 0 : node->log->visible[p];
		tick->arrived[p] = pushed_to(node, p, true);
		sent = receive(context, node, &work, tick, p);
	}
	status = mishap(context, node);
	pause_some(node);
	silent |= entity->skips && sent.number % 3 == 1;
	if (!status && !dst_said.broken[0])
		status = !silent          ? emit(context, node, &work, tick)
			 : entity->device ? launch(context, &work)
					  : 0;
	for (unsigned p = 0; p < PORTS; p++)
		if (entity->port[p].from != NONE)
			node->log->visible[p] = pushed_to(node, p, false);
	tick->ended = wr_now();
	return status;
}

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "id", .type = WEIR_TYPE_INT, .help = "its number"},
	{0},
};
#define IN(named, more)                                                                                      \
	{                                                                                                    \
		.size = sizeof(weir_port), .name = named, .flags = WEIR_PORT_OPTIONAL | (more)               \
	}
static const weir_port host[] = {IN("a", 0), IN("b", 0), IN("c", 0), {0}};
static const weir_port device[] = {
	IN("a", WEIR_PORT_DEVICE), IN("b", WEIR_PORT_DEVICE), IN("c", WEIR_PORT_DEVICE), {0}};
static const weir_port out[] = {IN("out", 0), {0}};
#define NODE(named, ...)                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_operator), .name = named, .help = "of a world", .outputs = out,          \
		.state_size = sizeof(struct node), .parameters = parameters, .start = node_start,            \
		__VA_ARGS__                                                                                  \
	}
static const weir_operator operators[] = {
	NODE("start", .compute = source_compute),
	NODE("on_host", .inputs = host, .flags = WEIR_OPERATOR_INSTANCES, .compute = node_compute),
	NODE("on_device", .inputs = device, .flags = WEIR_OPERATOR_INSTANCES, .compute = node_compute),
};

weir_status dst_joins_register(weir_registry *registry)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < sizeof operators / sizeof *operators && !status; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	return status;
}
