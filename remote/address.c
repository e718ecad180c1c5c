#include "remote/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The environment's name of a name: capitals, digits and _. */
static const char *of_environment(const char *name)
{
	char variable[ADDRESS_TEXT] = "WEIR_REMOTE_";
	size_t at = strlen(variable);

	for (; *name && at < sizeof variable - 1; name++)
		variable[at++] = isalnum((unsigned char)*name) ? (char)toupper((unsigned char)*name) : '_';
	variable[at] = 0;
	return getenv(variable);
}

/* What a file says of a name: lines "NAME ADDRESS"; # begins a comment. */
struct named {
	unsigned line;              /* 0: it has none */
	unsigned again;             /* a second one */
	bool more;                  /* than an address in the line */
	char address[ADDRESS_TEXT]; /* "": the line has none */
};

static void find_lines(FILE *file, const char *name, struct named *out)
{
	static const char mark[] =
		"\xef\xbb\xbf"; /* of the order of bytes: some editors begin a file with it */
	char line[2 * ADDRESS_TEXT], *rest, *word;

	*out = (struct named){.line = 0};
	for (unsigned number = 1; !out->again && fgets(line, sizeof line, file); number++) {
		bool marked = number == 1 && !strncmp(line, mark, strlen(mark));

		line[strcspn(line, "#\r\n")] = 0;
		word = strtok_r(marked ? line + strlen(mark) : line, " \t", &rest);
		if (!word || strcmp(word, name))
			continue;
		if (out->line) {
			out->again = number;
			continue;
		}
		out->line = number;
		word = strtok_r(NULL, " \t", &rest);
		snprintf(out->address, sizeof out->address, "%s", word ? word : "");
		out->more = word && strtok_r(NULL, " \t", &rest);
	}
}

static bool of_file(const char *path, const char *name, char address[ADDRESS_TEXT], char why[LINK_WHY])
{
	FILE *file = fopen(path, "re");
	struct named found;

	if (!file) {
		snprintf(why, LINK_WHY, "WEIR_REMOTE: %.200s: %s", path, strerror(errno));
		return false;
	}
	find_lines(file, name, &found);
	fclose(file);
	if (!found.line)
		snprintf(why, LINK_WHY, "no address of '%.80s': %.160s has no line that begins with it", name,
			 path);
	else if (found.again)
		snprintf(why, LINK_WHY, "%.120s: lines %u and %u are both of '%.80s': remove one of them",
			 path, found.line, found.again, name);
	else if (found.more)
		snprintf(why, LINK_WHY, "%.160s: line %u has more than a name and an address", path,
			 found.line);
	snprintf(address, ADDRESS_TEXT, "%s", found.address);
	return found.line && !found.again && !found.more;
}

/* The system would take the lower 16 bits of a larger one, and any port for 0. */
static bool has_port(const char *text)
{
	const char *digits = strrchr(text, ':') + 1;
	unsigned long port = strtoul(digits, NULL, 10);

	return *digits && strspn(digits, "0123456789") == strlen(digits) && port && port <= UINT16_MAX;
}

/* Brackets stand around all of it, or there are none. */
static bool has_host(const char *text)
{
	const char *colon = strrchr(text, ':'), *open = text + strcspn(text, "[]"), *close;

	if (!*open)
		return true;
	close = open + 1 + strcspn(open + 1, "[]");
	return open == text && *open == '[' && *close == ']' && close == colon - 1 && close > open + 1;
}

/* Of a text with a colon. */
static bool is_address(const char *address, char why[LINK_WHY])
{
	if (!has_port(address))
		snprintf(why, LINK_WHY, "'%.80s' has no port of 1 to 65535", address);
	else if (!has_host(address))
		snprintf(why, LINK_WHY,
			 "'%.80s' is no HOST:PORT: brackets stand around an IPv6 address, as in [::1]:9100",
			 address);
	else
		return true;
	return false;
}

static void say_unknown(const char *name, char why[LINK_WHY])
{
	snprintf(why, LINK_WHY,
		 "no address of '%.80s': write HOST:PORT, or name it in the environment or a file: see "
		 "docs/distributed.md",
		 name);
}

bool address_ok(const char *text, char why[LINK_WHY])
{
	if (strchr(text, ':'))
		return is_address(text, why);
	if (!*text)
		say_unknown(text, why);
	return *text;
}

bool address_named(const char *name, char text[ADDRESS_TEXT], char why[LINK_WHY])
{
	const char *given = of_environment(name), *path = getenv("WEIR_REMOTE");

	if (!address_ok(name, why))
		return false;
	if (strchr(name, ':')) {
		snprintf(text, ADDRESS_TEXT, "%s", name);
	} else if (given) {
		snprintf(text, ADDRESS_TEXT, "%s", given);
	} else if (!path) {
		say_unknown(name, why);
		return false;
	} else if (!of_file(path, name, text, why)) {
		return false;
	}
	if (strchr(text, ':'))
		return is_address(text, why);
	snprintf(why, LINK_WHY, "the address of '%.80s' is '%.80s': write HOST:PORT", name, text);
	return false;
}

bool address_find(const char *text, struct address *out, char why[LINK_WHY])
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	char host[ADDRESS_TEXT], *colon, *begin = host;
	struct addrinfo *found = NULL;
	int error;

	snprintf(host, sizeof host, "%s", text);
	colon = strrchr(host, ':');
	*colon = 0;
	if (*begin == '[' && colon > begin + 1 && colon[-1] == ']') {
		colon[-1] = 0;
		begin++;
	}
	error = getaddrinfo(*begin ? begin : "127.0.0.1", colon + 1, &hints, &found);
	if (error) {
		snprintf(why, LINK_WHY, "%.200s: %s", text, gai_strerror(error));
		return false;
	}
	memcpy(&out->socket, found->ai_addr, found->ai_addrlen);
	out->size = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

/* The next of the list, as inet_ntop writes it, "" if it is none; false: there is no other one. */
static bool next_peer(const char **list, char word[ADDRESS_TEXT], char peer[INET6_ADDRSTRLEN])
{
	const char *at = *list + strspn(*list, ", ");
	size_t length = strcspn(at, ", ");
	int families[] = {AF_INET, AF_INET6};
	struct in6_addr address;

	*list = at + length;
	snprintf(word, ADDRESS_TEXT, "%.*s", (int)(length < ADDRESS_TEXT ? length : ADDRESS_TEXT - 1), at);
	peer[0] = 0;
	for (unsigned i = 0; i < 2; i++)
		if (inet_pton(families[i], word, &address) == 1)
			inet_ntop(families[i], &address, peer, INET6_ADDRSTRLEN);
	return length;
}

bool address_peers_ok(const char *list, char why[LINK_WHY])
{
	char word[ADDRESS_TEXT], peer[INET6_ADDRSTRLEN];

	if (*list && !list[strspn(list, ", ")]) {
		snprintf(why, LINK_WHY,
			 "'peers' names no IP address, so no machine could connect: name some, or leave it "
			 "out");
		return false;
	}
	while (next_peer(&list, word, peer))
		if (!*peer) {
			snprintf(why, LINK_WHY,
				 "'peers' takes IP addresses, as 10.0.0.2 and fd00::2, separated by commas: "
				 "'%.80s' is none",
				 word);
			return false;
		}
	return true;
}

bool address_has_peer(const char *list, const char *peer)
{
	char word[ADDRESS_TEXT], one[INET6_ADDRSTRLEN];
	bool has = !*list;

	while (!has && next_peer(&list, word, one))
		has = !strcmp(one, peer);
	return has;
}
