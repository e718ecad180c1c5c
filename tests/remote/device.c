/*
 * Two processes that are joined: the sender copies numbered frames to its device behind a kernel, the
 * receiver gets them on its own, alone or as a part of messages of parts, and looks at each number of each
 * frame. A payload that is read too early, or written too early, has the numbers of an older frame in that
 * block.
 *
 *     device PLUGIN BACKEND FRAMES BYTES alone|parts PLACE SPIN
 *
 * Exits with 0 if all is right.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#include "port.h"

static int64_t bytes;
static uint64_t wanted;

static int tell(const char *what)
{
	fprintf(stderr, "device: %s: %s\n", what, weir_last_error());
	return 1;
}

/* --- operators --- */

static weir_status make_numbers(weir_context *context, void *state)
{
	const int64_t count = bytes / 4;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 32, .lanes = 1};
	weir_message *message;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);
	uint32_t *data;

	(void)state;
	if (status)
		return status;
	data = weir_message_data(message);
	for (int64_t i = 0; i < count; i++)
		data[i] = (uint32_t)weir_context_tick(context);
	return weir_context_emit(context, 0, message);
}

/* The frame, and a note of the host. */
static weir_status pack(weir_context *context, void *state)
{
	weir_graph *graph = weir_context_graph(context);
	uint64_t number = weir_context_tick(context);
	weir_message *note, *packed;
	weir_status status = weir_message_create_bytes(graph, sizeof number, &note);

	(void)state;
	if (status)
		return status;
	memcpy(weir_message_data(note), &number, sizeof number);
	const weir_part parts[] = {
		{sizeof(weir_part), "note", note},
		{sizeof(weir_part), "frame", weir_message_ref(weir_context_message(context, 0, 0))},
		{sizeof(weir_part), "again", weir_message_ref(weir_context_message(context, 0, 0))},
	};
	status = weir_message_pack(graph, parts, 3, &packed);
	return status ? status : weir_context_emit(context, 0, packed);
}

/* Gives the frame only when the device has done the other input's work. */
static weir_status delay(weir_context *context, void *state)
{
	weir_stream *stream;
	weir_status status = weir_context_stream(context, &stream);

	(void)state;
	return status ? status : weir_context_forward(context, 0, 0, 0);
}

static weir_status unpack(weir_context *context, void *state)
{
	weir_message *message = weir_context_message(context, 0, 0);
	uint64_t number;

	(void)state;
	memcpy(&number, weir_message_data(weir_message_part(message, "note")), sizeof number);
	if (number != weir_context_tick(context))
		return weir_context_fail(context, "frame %" PRIu64 " has the note %" PRIu64,
					 weir_context_tick(context), number);
	return weir_context_emit(
		context, 0, weir_message_ref(weir_message_part(message, number % 2 ? "frame" : "again")));
}

static weir_status check(weir_context *context, void *state)
{
	const weir_message *message = weir_context_message(context, 0, 0);
	const uint32_t *data = weir_message_data(message);
	uint32_t number = (uint32_t)weir_context_tick(context);

	(void)state;
	for (size_t i = 0; i < weir_message_size(message) / 4; i++)
		if (data[i] != number)
			return weir_context_fail(context, "early: frame %" PRIu32 " has %" PRIu32 " at %zu",
						 number, data[i], i);
	return WEIR_OK;
}

static const weir_port host_in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port device_in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_DEVICE},
				      {.name = NULL}};
static const weir_port late_in[] = {{.size = sizeof(weir_port), .name = "in"},
				    {.size = sizeof(weir_port), .name = "after"},
				    {.name = NULL}};
static const weir_port any_out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static weir_status add_operators(weir_registry *registry)
{
	static const weir_operator operators[] = {
		{.size = sizeof(weir_operator),
		 .name = "numbers",
		 .outputs = any_out,
		 .compute = make_numbers},
		{.size = sizeof(weir_operator),
		 .name = "late",
		 .flags = WEIR_OPERATOR_STREAM,
		 .inputs = late_in,
		 .outputs = any_out,
		 .compute = delay},
		{.size = sizeof(weir_operator),
		 .name = "pack",
		 .inputs = device_in,
		 .outputs = any_out,
		 .compute = pack},
		{.size = sizeof(weir_operator),
		 .name = "unpack",
		 .inputs = host_in,
		 .outputs = any_out,
		 .compute = unpack},
		{.size = sizeof(weir_operator), .name = "check", .inputs = host_in, .compute = check},
	};
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < sizeof operators / sizeof operators[0] && !status; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	return status;
}

/* --- the two graphs --- */

static void sender_graph(FILE *to, int port, bool parts, const char *duration)
{
	fprintf(to,
		"{\"weir\": 1, \"entities\": ["
		"{\"name\": \"numbers\", \"operator\": \"numbers\", \"conditions\": [{\"type\": \"count\", "
		"\"count\": %" PRIu64 "}]},"
		"{\"name\": \"spin\", \"operator\": \"spin\", \"parameters\": {\"duration\": \"%s\"}},"
		"{\"name\": \"late\", \"operator\": \"late\"}, {\"name\": \"upload\", \"operator\": "
		"\"upload\"},%s"
		"{\"name\": \"send\", \"operator\": \"remote_send\", \"parameters\": {\"to\": "
		"\"127.0.0.1:%d\"},"
		" \"ports\": {\"in\": {\"capacity\": 4}}}],"
		"\"connections\": [[\"numbers.out\", \"spin.in\"], [\"numbers.out\", \"late.in\"],"
		" [\"spin.out\", \"late.after\"], [\"late.out\", \"upload.in\"], %s]}",
		wanted, duration, parts ? "{\"name\": \"pack\", \"operator\": \"pack\"}," : "", port,
		parts ? "[\"upload.out\", \"pack.in\"], [\"pack.out\", \"send.in\"]"
		      : "[\"upload.out\", \"send.in\"]");
}

/* A tensor of the device is copied before it is looked at. */
static void receiver_graph(FILE *to, int port, bool parts, const char *place)
{
	bool copies = strcmp(place, "host");

	fprintf(to,
		"{\"weir\": 1, \"entities\": ["
		"{\"name\": \"receive\", \"operator\": \"remote_receive\", \"parameters\":"
		" {\"listen\": \"127.0.0.1:%d\", \"place\": \"%s\", \"credits\": 8}},"
		"%s%s{\"name\": \"check\", \"operator\": \"check\"}], \"connections\": [[\"receive.out\", "
		"%s%s\"check.in\"]]}",
		port, place, parts ? "{\"name\": \"unpack\", \"operator\": \"unpack\"}," : "",
		copies ? "{\"name\": \"download\", \"operator\": \"download\"}," : "",
		parts ? "\"unpack.in\"], [\"unpack.out\", " : "",
		copies ? "\"download.in\"], [\"download.out\", " : "");
}

static int run(const char *plugin, const char *backend, const char *json, bool receives)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = backend, .workers = 2};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_description *description;
	weir_scheduler *scheduler;
	weir_registry *registry;
	weir_entity_counts counts = {.size = sizeof counts};
	weir_graph *graph;
	uint64_t received = 0;

	if (weir_registry_create(&registry) || weir_registry_load(registry, plugin) ||
	    add_operators(registry) || weir_description_parse(json, strlen(json), NULL, NULL, &description) ||
	    weir_graph_create(registry, description, &graph) ||
	    weir_scheduler_create(graph, &options, &scheduler) || weir_scheduler_start(scheduler) ||
	    weir_scheduler_wait(scheduler, INT64_C(300000000000), &outcome))
		return tell(receives ? "receiver" : "sender");
	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++)
		if (!strcmp(counts.entity, receives ? "check" : "send"))
			received = counts.received;
	weir_description_destroy(description);
	if (weir_scheduler_destroy(scheduler) || weir_graph_destroy(graph))
		return tell("end");
	weir_registry_destroy(registry);
	if (received == wanted)
		return 0;
	fprintf(stderr, "device: %" PRIu64 " of %" PRIu64 " frames\n", received, wanted);
	return 1;
}

static pid_t child; /* the receiver */

/* It has failed, and said why: the sender does not wait for another one. */
static void on_child(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_pid == child && info->si_code == CLD_EXITED && info->si_status)
		_exit(1);
}

int main(int count, char **words)
{
	int port = free_port(), status = 0;
	char *json;
	size_t size;
	FILE *to;
	bool parts;
	const struct sigaction hear = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t blocked;

	if (count != 8) {
		fputs("usage: device PLUGIN BACKEND FRAMES BYTES alone|parts host|device|sent SPIN\n",
		      stderr);
		return 2;
	}
	wanted = strtoull(words[3], NULL, 10);
	bytes = strtoll(words[4], NULL, 10);
	parts = !strcmp(words[5], "parts");
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigaction(SIGCHLD, &hear, NULL);
	sigprocmask(SIG_BLOCK, &blocked, NULL); /* until `child` is known */
	child = fork();                         /* before either knows a device */
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	if (child < 0 || !(to = open_memstream(&json, &size)))
		return 1;
	if (child)
		sender_graph(to, port, parts, words[7]);
	else
		receiver_graph(to, port, parts, words[6]);
	fclose(to);
	count = run(words[1], words[2], json, !child);
	free(json);
	if (!child)
		return count;
	waitpid(child, &status, 0);
	return count || status;
}
