/*
 * The remote connections between graphs that are checked together: which `remote_send` meets which
 * `remote_receive`, and whether what the one sends is what those behind the other take. docs/distributed.md.
 */
#ifndef CLI_REMOTES_H
#define CLI_REMOTES_H

#include "cli/cli.h"
#include "cli/recorded.h"

/* A graph that has passed weir_description_check. */
struct cli_remotes_file {
	const char *path;                    /* borrowed */
	const weir_description *description; /* borrowed */
	char *text;                          /* the resolved graph; owned */
	struct cli_list parts, ways;         /* entities and connections in the text */
};

struct cli_remotes {
	struct cli_remotes_file *files;
	size_t count;
	struct cli_list ends; /* of both kinds of operators */
	unsigned errors;      /* printed so far */
};

/* Takes the next graph over as far as it has remote connections. Returns an exit code. */
int cli_remotes_add(struct cli_remotes *remotes, const weir_registry *registry, const char *path,
		    const weir_description *description);
/* Prints errors, warnings and notes on stderr, and what meets what on stdout. Returns an exit code. */
int cli_remotes_check(struct cli_remotes *remotes, const weir_registry *registry);
void cli_remotes_finish(struct cli_remotes *remotes);

/* A remote_send or remote_receive. */
struct cli_remotes_end {
	size_t file, part; /* indices */
	struct cli_slice name;
	bool sends, waits; /* waits: on_lost */
	char *place;       /* `to` or `listen` */
	char address[320]; /* of the place; "": it has none */
	int64_t credits, most;
	size_t peer;      /* index of the end that it meets, or CLI_NO_PEER */
	unsigned senders; /* that meet it */
};
#define CLI_NO_PEER SIZE_MAX
/* Of a text: an entity; its parameters are JSON. */
struct cli_remotes_part {
	struct cli_slice name, kind, parameters, resources, ports;
	int64_t instances; /* 0: it has none */
	char joint[96];    /* its name in the joint graph */
	bool paired;       /* it is an end that meets another */
};
/* "read.out", "send.in" */
struct cli_remotes_way {
	struct cli_slice from, to;
};
/* joint.c: reads the file's text. Returns false if memory ran out. */
bool cli_remotes_read(struct cli_remotes_file *file);
/* held.c: whether the entity uses the memory pool. */
bool cli_remotes_uses(const struct cli_remotes_file *file, size_t part, const char *pool);
/* How many messages of the entity ticks behind it may hold at once. Returns false if memory ran out. */
bool cli_remotes_held(const struct cli_remotes_file *file, size_t part, uint64_t *out);
/*
 * Compares what is sent with what is taken: all files are checked as one graph, in which those that send to a
 * remote_send send to those behind the remote_receive that it meets. Returns an exit code.
 */
int cli_joint_check(struct cli_remotes *remotes, const weir_registry *registry);

static inline struct cli_remotes_end *cli_remotes_end(const struct cli_remotes *remotes, size_t i)
{
	return (struct cli_remotes_end *)remotes->ends.items + i;
}
/* One line: "FILE: error: NAME.KEY: ...". key: NULL: the name has it. */
enum cli_remotes_level { CLI_NOTE, CLI_WARNING, CLI_ERROR };
void cli_remotes_say(struct cli_remotes *remotes, enum cli_remotes_level level, size_t file,
		     struct cli_slice name, const char *key, const char *format, ...) WEIR_PRINTF(6, 7);

#endif
