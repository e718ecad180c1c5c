#include "cli/remotes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "remote/address.h"

_Static_assert(sizeof((struct cli_remotes_end){0}.address) >= ADDRESS_TEXT, "an address fits");

void cli_remotes_say(struct cli_remotes *remotes, enum cli_remotes_level level, size_t file,
		     struct cli_slice name, const char *key, const char *format, ...)
{
	static const char *const words[] = {"note", "warning", "error"};
	char text[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	cli_print_escaped(stderr, remotes->files[file].path);
	fprintf(stderr, ": %s: %.*s%s%s: ", words[level], (int)name.length, name.text, key ? "." : "",
		key ? key : "");
	cli_print_escaped(stderr, text);
	fputc('\n', stderr);
	remotes->errors += level == CLI_ERROR;
}

static const char *key_of(const struct cli_remotes_end *end)
{
	return end->sends ? "to" : "listen";
}

static const char *path_of(const struct cli_remotes *remotes, const struct cli_remotes_end *end)
{
	return remotes->files[end->file].path;
}

#define NAME(end) (int)(end)->name.length, (end)->name.text

/* --- the ends of a graph --- */

/* Returns false if memory ran out: the text is the library's, and has no faults. */
static bool read_end(struct cli_remotes_end *end, struct cli_slice parameters)
{
	struct cli_json json = cli_json_of(parameters.text, parameters.length);
	struct cli_slice key, value;
	char size[32];

	for (cli_json_object(&json); cli_json_member(&json, &key);)
		if (cli_slice_is(key, key_of(end)) && !end->place) {
			if (cli_json_string(&json, &value) && !(end->place = cli_slice_decoded(value)))
				return false;
		} else if (cli_slice_is(key, "credits")) {
			cli_json_count(&json, &end->credits);
		} else if (cli_slice_is(key, "max_message")) {
			if (cli_json_next(&json) != CLI_JSON_STRING) {
				cli_json_count(&json, &end->most);
			} else if (cli_json_string(&json, &value)) {
				snprintf(size, sizeof size, "%.*s", (int)value.length, value.text);
				wr_size_read(size, &end->most);
			}
		} else if (cli_slice_is(key, "on_lost")) {
			end->waits = cli_json_string(&json, &value) && cli_slice_is(value, "wait");
		} else {
			cli_json_skip(&json);
		}
	return end->place;
}

/* A machine's own names for itself are one. */
static void find_address(struct cli_remotes *remotes, struct cli_remotes_end *end)
{
	static const char own[] = "127.0.0.1";
	char why[LINK_WHY], text[ADDRESS_TEXT];
	const char *colon;

	if (!address_named(end->place, text, why)) {
		/* A name, as the check of the graph let it pass: it may have its address elsewhere. */
		bool file = getenv("WEIR_REMOTE");

		cli_remotes_say(remotes, file ? CLI_ERROR : CLI_NOTE, end->file, end->name, key_of(end), "%s",
				why);
		return;
	}
	colon = strrchr(text, ':');
	if (colon == text || !strncmp(text, "localhost:", 10))
		snprintf(end->address, sizeof end->address, "%s%s", own, colon);
	else
		snprintf(end->address, sizeof end->address, "%s", text);
}

int cli_remotes_add(struct cli_remotes *remotes, const weir_registry *registry, const char *path,
		    const weir_description *description)
{
	struct cli_remotes_file *file = &remotes->files[remotes->count++];
	const struct cli_remotes_part *parts;
	char *text = NULL;
	weir_status status = weir_description_print(description, registry, WEIR_FORMAT_JSON, &text);
	bool good = !status;

	*file = (struct cli_remotes_file){.path = path, .description = description};
	if (good) {
		file->text = text;
		good = cli_remotes_read(file);
	}
	parts = file->parts.items;
	for (size_t i = 0; good && i < file->parts.count; i++) {
		bool sends = cli_slice_is(parts[i].kind, "remote_send");
		struct cli_remotes_end *end;

		if (!sends && !cli_slice_is(parts[i].kind, "remote_receive"))
			continue;
		end = cli_list_add(&remotes->ends, sizeof *end);
		good = end;
		if (!good)
			continue;
		*end = (struct cli_remotes_end){.file = remotes->count - 1,
						.part = i,
						.name = parts[i].name,
						.sends = sends,
						.resources = parts[i].resources,
						.peer = CLI_NO_PEER};
		good = read_end(end, parts[i].parameters);
		if (good)
			find_address(remotes, end);
	}
	if (!good)
		cli_say_error(status ? status : WEIR_E_NOMEM, path);
	return good ? CLI_OK : CLI_FAILED;
}

/* --- which sides meet --- */

/* 2: by their names or addresses; 1: the receiver listens at all addresses of its machine, at that port. */
static int meet(const struct cli_remotes_end *a, const struct cli_remotes_end *b)
{
	static const char *const any[] = {"0.0.0.0", "[::]", "*"};
	const char *colon = strrchr(a->address, ':'), *other = strrchr(b->address, ':');

	if (!strcmp(a->place, b->place) || (*a->address && !strcmp(a->address, b->address)))
		return 2;
	if (!colon || !other || strcmp(colon, other))
		return 0;
	for (size_t i = 0; i < sizeof any / sizeof *any; i++)
		if (!strncmp(b->address, any[i], (size_t)(other - b->address)) &&
		    strlen(any[i]) == (size_t)(other - b->address))
			return 1;
	return 0;
}

/* On one machine they would be in each other's way; two files may be of two machines. */
static void compare_receivers(struct cli_remotes *remotes, struct cli_remotes_end *a,
			      struct cli_remotes_end *b)
{
	int met = meet(a, b) > meet(b, a) ? meet(a, b) : meet(b, a);
	bool any = meet(a, a) && strncmp(a->address, "0.0.0.0:", 8) == 0;

	if (met == 2 && (a->file == b->file || !any))
		cli_remotes_say(remotes, CLI_ERROR, b->file, b->name, "listen",
				"%s is where '%.*s' of %s listens: give each a port of its own", b->place,
				NAME(a), path_of(remotes, a));
	else if (met)
		cli_remotes_say(remotes, a->file == b->file ? CLI_ERROR : CLI_NOTE, b->file, b->name,
				"listen", "%s and %s, of '%.*s' of %s, cannot be on one machine", b->place,
				a->place, NAME(a), path_of(remotes, a));
}

static void find_peer(struct cli_remotes *remotes, size_t i)
{
	struct cli_remotes_end *send = cli_remotes_end(remotes, i);
	size_t found[3] = {CLI_NO_PEER, CLI_NO_PEER, CLI_NO_PEER}, count[3] = {0};

	for (size_t k = 0; k < remotes->ends.count; k++) {
		struct cli_remotes_end *receive = cli_remotes_end(remotes, k);
		int met = receive->sends ? 0 : meet(send, receive);

		found[met] = count[met]++ ? found[met] : k;
		receive->senders += met == 2;
	}
	if (count[2]) {
		send->peer = found[2];
	} else if (count[1] == 1) {
		send->peer = found[1];
		cli_remotes_end(remotes, send->peer)->senders++;
	} else if (count[1]) {
		cli_remotes_say(remotes, CLI_NOTE, send->file, send->name, "to",
				"%zu remote_receive listen at the port of %s: which one it is, these files "
				"do not say",
				count[1], send->place);
	} else {
		cli_remotes_say(remotes, CLI_NOTE, send->file, send->name, "to",
				"no remote_receive of these files listens at %s", send->place);
	}
}

/* --- sizes --- */

static void check_size(struct cli_remotes *remotes, const struct cli_remotes_end *send)
{
	const struct cli_remotes_end *receive = cli_remotes_end(remotes, send->peer);
	weir_sent_bytes bytes = {.size = sizeof bytes};
	char input[80];

	snprintf(input, sizeof input, "%.*s.in", NAME(send));
	if (weir_description_sent_bytes(remotes->files[send->file].description, input, &bytes))
		return;
	if (bytes.least > receive->most)
		cli_remotes_say(remotes, CLI_ERROR, receive->file, receive->name, "max_message",
				"%s, and '%.*s' of %s sends messages of %s: raise it",
				wr_size_shown(receive->most).text, NAME(send), path_of(remotes, send),
				wr_size_shown(bytes.least).text);
	else if (bytes.most != INT64_MAX && bytes.most > receive->most)
		cli_remotes_say(remotes, CLI_WARNING, receive->file, receive->name, "max_message",
				"%s, and '%.*s' of %s may send messages of up to %s: raise it",
				wr_size_shown(receive->most).text, NAME(send), path_of(remotes, send),
				wr_size_shown(bytes.most).text);
}

/* Each credit has a block. */
static void check_pools(struct cli_remotes *remotes, const struct cli_remotes_end *end)
{
	weir_pool_needs needs = {.size = sizeof needs};

	for (size_t i = 0; !weir_description_pool_needs(remotes->files[end->file].description, i, &needs);
	     i++) {
		struct cli_json json = cli_json_of(end->resources.text, end->resources.length);
		struct cli_slice name;
		bool uses = false;

		if (end->resources.length)
			for (cli_json_list(&json); cli_json_item(&json);)
				uses |= cli_json_string(&json, &name) && cli_slice_is(name, needs.pool);
		if (!needs.blocks || needs.blocks >= (uint64_t)end->credits || !uses)
			continue;
		cli_remotes_say(remotes, CLI_WARNING, end->file, end->name, "credits",
				"%" PRId64 ", and pool '%s' has %" PRIu64
				" block%s, so no more credits are given: "
				"give it more, or fewer credits",
				end->credits, needs.pool, needs.blocks, needs.blocks == 1 ? "" : "s");
	}
}

/* --- all --- */

int cli_remotes_check(struct cli_remotes *remotes, const weir_registry *registry)
{
	int code = CLI_OK;

	for (size_t i = 0; i < remotes->ends.count; i++)
		for (size_t k = 0; k < i; k++)
			if (!cli_remotes_end(remotes, i)->sends && !cli_remotes_end(remotes, k)->sends)
				compare_receivers(remotes, cli_remotes_end(remotes, k),
						  cli_remotes_end(remotes, i));
	for (size_t i = 0; i < remotes->ends.count; i++)
		if (cli_remotes_end(remotes, i)->sends)
			find_peer(remotes, i);
	for (size_t i = 0; i < remotes->ends.count; i++) {
		const struct cli_remotes_end *end = cli_remotes_end(remotes, i);

		if (!end->sends && !end->senders)
			cli_remotes_say(remotes, CLI_NOTE, end->file, end->name, "listen",
					"no remote_send of these files sends to %s", end->place);
		if (!end->sends && end->senders > 1)
			cli_remotes_say(remotes, end->waits ? CLI_NOTE : CLI_ERROR, end->file, end->name,
					"listen",
					"%u entities send to %s, which takes one at a time: give each a "
					"remote_receive of its own",
					end->senders, end->place);
	}
	for (size_t i = 0; i < remotes->ends.count; i++) {
		const struct cli_remotes_end *end = cli_remotes_end(remotes, i);

		if (!end->sends)
			check_pools(remotes, end);
		else if (end->peer != CLI_NO_PEER)
			check_size(remotes, end);
	}
	if (remotes->ends.count)
		code = cli_joint_check(remotes, registry);
	if (!code && remotes->errors)
		code = CLI_REFUSED;
	for (size_t i = 0; !code && i < remotes->ends.count; i++) {
		const struct cli_remotes_end *send = cli_remotes_end(remotes, i), *receive;

		if (!send->sends || send->peer == CLI_NO_PEER)
			continue;
		receive = cli_remotes_end(remotes, send->peer);
		cli_print_escaped(stdout, path_of(remotes, send));
		printf(": %.*s -> ", NAME(send));
		cli_print_escaped(stdout, path_of(remotes, receive));
		printf(": %.*s: ", NAME(receive));
		cli_print_escaped(stdout, send->place);
		printf(", no errors\n");
	}
	return code;
}

void cli_remotes_finish(struct cli_remotes *remotes)
{
	for (size_t i = 0; i < remotes->ends.count; i++)
		free(cli_remotes_end(remotes, i)->place);
	free(remotes->ends.items);
	for (size_t i = 0; i < remotes->count; i++) {
		weir_text_free(remotes->files[i].text);
		free(remotes->files[i].parts.items);
		free(remotes->files[i].ways.items);
	}
	free(remotes->files);
}
