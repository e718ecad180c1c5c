/*
 * weir.h: an event-driven scheduler for GPU pipelines.
 *
 * This header is the reference manual. It goes in the order in which data meets it: status, kinds (operators,
 * conditions), registry, description, graph, messages, streams, what an operator may call, running, counts.
 *
 * How to read it.
 *   gives / **out   the caller owns the result and destroys it
 *   takes           the library owns the argument from then on
 *   borrows         only for the call, or as long as it says
 *   getter          the parent owns what is returned
 *   Thread:         any | owner (the thread inside start, compute or stop of that entity) | worker
 *                   | device (the driver's thread)
 *
 * Time is int64_t nanoseconds on a monotonic clock, sizes are bytes, counts are size_t. A struct that the
 * caller fills begins with `size` (= sizeof it), and one without it is refused by name; zero is the default of
 * every other field. A function that
 * returns weir_status fails with a negative one, leaves **out untouched then, and says in words why:
 * weir_last_error(). No pointer may be NULL where it is not said; a stream that somebody could not get is
 * refused with what he was told.
 */
#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WEIR_C extern "C"
extern "C" {
#else
#define WEIR_C extern
#endif

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define WEIR_API
#define WEIR_PRINTF(at, first)
#endif

#define WEIR_VERSION "0.1.0"
#define WEIR_ABI 2u		/* grows when a table below changes so that older plugins cannot be loaded */

/* ---------------------------------------------------------------------------------------------- status -- */

/* X(name, value, text). */
#define WEIR_STATUS_TABLE(X)                                                   \
	X(WEIR_OK, 0, "ok")                                                    \
	X(WEIR_E_INVALID, -1, "invalid")                                       \
	X(WEIR_E_NOMEM, -2, "out of memory")                                   \
	X(WEIR_E_DEVICE, -3, "device failed")                                  \
	X(WEIR_E_DEADLOCK, -4, "deadlock")                                     \
	X(WEIR_E_ABANDONED, -5, "abandoned")                                   \
	X(WEIR_E_CLOSED, -6, "closed")                                         \
	X(WEIR_E_TIMEOUT, -7, "timed out")                                     \
	X(WEIR_E_BUSY, -8, "busy")                                             \
	X(WEIR_E_UNSUPPORTED, -9, "unsupported")                               \
	X(WEIR_E_IO, -10, "input/output failed")                               \
	X(WEIR_E_FAILED, -11, "operator failed")

typedef enum {
#define WEIR_STATUS_ENUM(name, value, text) name = value,
	WEIR_STATUS_TABLE(WEIR_STATUS_ENUM)
#undef WEIR_STATUS_ENUM
} weir_status;

WEIR_API const char *weir_status_text(weir_status status);	/* never NULL */
/* This thread's last failure, one line; "" if there was none. Borrowed until the next one. */
WEIR_API const char *weir_last_error(void);
/*
 * Text of others fit for a line on a terminal: control characters (C0, DEL, C1), marks that turn the direction of
 * writing, spaces of no width and bytes that are no UTF-8 are written as \n, \u009b, \xff; all else, backslashes
 * too, stays as it is. Writes whole characters, at most room bytes (at least 16) with the NUL, and returns how many
 * without it; *text is then at its end, or where the next call goes on. Errors, reports, outcomes and explanations
 * of weir have been through it; files' names that it was given have not. Thread: any.
 */
WEIR_API size_t weir_text_shown(char *out, size_t room, const char **text);
/* Of the library that runs: WEIR_VERSION of its header. */
WEIR_API const char *weir_version(void);

typedef enum { WEIR_LOG_ERROR = 1, WEIR_LOG_WARN, WEIR_LOG_INFO, WEIR_LOG_DEBUG } weir_log_level;
/*
 * One line of what the library does, without a newline, borrowed for the call; at: ns, the clock of the run.
 * Thread: any, also a worker, several at once; no lock of the library is held. It must not block for long, and
 * not call weir_log_set.
 */
typedef void weir_log_fn(weir_log_level level, int64_t at, const char *line, void *arg);
/*
 * From now on the library tells fn what it does, in the whole process, instead of whom it told before; NULL:
 * nobody, as in the beginning. When it returns, the function before is not running and will not be called.
 * Thread: any but within fn. Fails: WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_log_set(weir_log_fn *fn, void *arg);

/* ----------------------------------------------------------------------------------------------- nouns -- */

typedef struct weir_registry weir_registry;
typedef struct weir_description weir_description;
typedef struct weir_graph weir_graph;
typedef struct weir_entity weir_entity;
typedef struct weir_context weir_context;
typedef struct weir_message weir_message;
typedef struct weir_stream weir_stream;
typedef struct weir_scheduler weir_scheduler;
typedef struct weir_inlet weir_inlet;
typedef struct weir_outlet weir_outlet;
typedef struct weir_view weir_view;
typedef struct weir_verdict weir_verdict;
typedef struct weir_values weir_values;

/*
 * A point in a stream. A plain value that may outlive its
 * stream; {0, 0} is none, which counts as complete.
 */
typedef struct {
	uint64_t stream, point;
} weir_fence;

/* ------------------------------------------------------------------------ kinds: parameters and values -- */

typedef enum {
	WEIR_BOOL = 1,
	WEIR_INT,
	WEIR_NUMBER,
	WEIR_STRING,
	WEIR_DURATION,	/* "10ms", "1.5s", "60Hz", 0 or -1: read with weir_values_int, ns */
	WEIR_SIZE,	/* an integer of bytes, or "16MiB": read with weir_values_int, bytes */
	WEIR_CHOICE,	/* one of `choices`: read with weir_values_string */
	WEIR_INPUT,	/* the name of an input port of the entity: weir_values_int gives its index */
	WEIR_OUTPUT,	/* the name of an output port */
	WEIR_INPUTS,	/* a name or a list of names of input ports: weir_values_count, weir_values_at */
	WEIR_OUTPUTS,
} weir_parameter_type;

/* One parameter of an operator or a condition. */
typedef struct {
	size_t size;
	const char *name;
	weir_parameter_type type;
	const char *fallback;	/* the default as JSON text (`3`, `"out"`,
				   `true`); NULL: the parameter is required */
	const char *help;	/* one line: what it means, its unit */
	int64_t min, max;	/* bounds of integers, durations and sizes; both 0: any
				   that is not negative, or for WEIR_INT any */
	const char *choices;	/* WEIR_CHOICE: "pop|reject|fault" */
} weir_parameter;

/*
 * What a kind's start reads its parameters from: all declared ones, defaults filled in, types and bounds
 * checked. A name that the table does not declare, or a call of another type, gives 0, false or "", and the
 * start fails when it returns: WEIR_E_INVALID, by the name of the entity and the parameter.
 */
WEIR_API bool weir_values_bool(const weir_values *values, const char *name);
WEIR_API int64_t weir_values_int(const weir_values *values, const char *name);
WEIR_API double weir_values_number(const weir_values *values, const char *name);
/* Borrowed while the graph lives. */
WEIR_API const char *weir_values_string(const weir_values *values, const char *name);
/* WEIR_INPUTS, WEIR_OUTPUTS. */
WEIR_API size_t weir_values_count(const weir_values *values, const char *name);
/* Index of the i-th port. */
WEIR_API unsigned weir_values_at(const weir_values *values, const char *name, size_t i);

/* Reads "10ms", "1.5s", "5min" as a graph file's scheduler does: gives ns. Thread: any. Fails: WEIR_E_INVALID. */
WEIR_API weir_status weir_duration_read(const char *text, int64_t *out);

/* ------------------------------------------------------------------------------------ kinds: operators -- */

/* Flags of a port. */
enum { WEIR_PORT_OPTIONAL = 1, WEIR_PORT_ANY_SIZE = 2, WEIR_PORT_DEVICE = 4, WEIR_PORT_HOST = 8 };
/* Kinds of messages, as a mask; 0 = any. */
enum { WEIR_EMPTY = 1, WEIR_BYTES = 2, WEIR_TENSOR = 4, WEIR_USER = 8 };
typedef enum { WEIR_BLOCK, WEIR_POP, WEIR_REJECT, WEIR_FAULT } weir_policy;
#define WEIR_ALL UINT32_MAX		/* take: as many as there are */

/*
 * A port. OPTIONAL: may stay unconnected; what is emitted there is then dropped and counted; an unconnected
 * optional input is always empty. ANY_SIZE (inputs): any number of connections, each with a queue of its own;
 * `take` counts per queue.
 *
 * An input port is a *host* port: what compute receives from it is finished. While the device still works on
 * a message that the next tick would take there, the entity waits, and no worker does (its *implied gate*;
 * docs/conditions.md). DEVICE (inputs): compute does not look at the payloads itself, or orders itself by
 * weir_context_stream and its like; then there is no gate. WEIR_OPERATOR_STREAM sets DEVICE for all inputs,
 * HOST takes it back for one. A graph file has the last word: "gate" of a port.
 */
typedef struct {
	size_t size;
	const char *name;	/* [A-Za-z_][A-Za-z0-9_-]{0,63}; NULL ends the list */
	unsigned flags;
	unsigned kinds;		/* a connection whose two ends have no kind in common is refused;
				   so is, in a run, a message of any other kind */
	uint32_t capacity;	/* inputs: messages per connection; 0 = 1; at most 65536 */
	uint32_t take;		/* inputs: messages that one tick receives; 0 = 1; WEIR_ALL */
	uint32_t max_emits;	/* outputs: messages that one tick may emit; 0 = 1 */
	weir_policy policy;	/* inputs: what happens when a queue is full */
	const char *help;
} weir_port;

/*
 * Flags. STREAM: every tick uses weir_context_stream; the stream is made before the first tick, and
 * inputs without WEIR_PORT_HOST are device ports. EFFECTS: it
 * has effects of its own (a file, a line of text), beside what it emits: it does not end because all receivers
 * of its outputs are done, but with its inputs; what it emits then is dropped and counted `closed`. Without the
 * flag it ends as soon as it is told that nobody receives any more, with what its inputs still hold; how many
 * of those it received before is chance. A graph file can say otherwise of an entity ("effects").
 */
enum { WEIR_OPERATOR_STREAM = 1, WEIR_OPERATOR_EFFECTS = 2 };

/*
 * An operator: a const table. The library allocates `state_size` zeroed bytes per entity.
 *   start    once per run, before the first tick
 *   compute  one tick; must not block on the GPU. Returns weir_context_fail(...) or another failure to end
 *            the run. A failure without words (a bare `return WEIR_E_IO`) gets plain ones; a status above 0
 *            is refused
 *   stop     once per run that started, after the entity's streams have drained: late, if the run was cut
 *            short and they work on, by the thread that starts the next run or destroys the scheduler; never
 *            if the device hangs
 * compute runs on a worker; start on the thread that calls weir_scheduler_start, entity by entity; stop on
 * the thread of the run's loop (weir's own, or the caller's: see weir_scheduler_options). One of the three at
 * a time per entity. NULL = nothing to do.
 */
typedef struct {
	size_t size;
	const char *name, *help;
	unsigned flags;
	size_t state_size;
	const weir_parameter *parameters;	/* ends with a NULL name; NULL = none; likewise the ports */
	const weir_port *inputs, *outputs;
	weir_status (*start)(weir_context *context, void *state, const weir_values *values);
	weir_status (*compute)(weir_context *context, void *state);
	void (*stop)(weir_context *context, void *state);
} weir_operator;

/* ----------------------------------------------------------------------------------- kinds: conditions -- */

typedef enum { WEIR_GATHERING, WEIR_CONTENT } weir_phase;

/*
 * What is told to a condition from outside: weir_entity_tell.
 * NOTHING until it is told something in this run or before it.
 */
typedef enum {
	WEIR_TOLD_NOTHING,
	WEIR_TOLD_READY,
	WEIR_TOLD_WAIT,
	WEIR_TOLD_EVENT_WAITING,
	WEIR_TOLD_EVENT_DONE,
	WEIR_TOLD_NEVER
} weir_told;

/*
 * A condition: a const table, asked by the entity's only owner. `ask` looks at the view and fills the
 * verdict; it holds no thread, arms no timer, takes no lock, reads no clock, and asking again is always
 * right. A gathering condition looks at how many messages wait, at time, at what was told; a content
 * condition looks into the messages that the next tick will receive: it is asked only when all gathering
 * conditions hold, and what it saw is what compute receives. start: once per run, before the first ask (state
 * is zeroed before). ticked: after each successful compute; when that tick began says weir_view_began. flags:
 * TIMELESS: its ticked asks for no time, so the clock need not be read when a tick begins.
 */
enum { WEIR_CONDITION_TIMELESS = 1 };
typedef struct {
	size_t size;
	const char *name, *help;
	size_t state_size;
	const weir_parameter *parameters;	/* a parameter of type WEIR_INPUT(S)/WEIR_OUTPUT(S) says
						   which ports it stands for */
	weir_phase phase;
	weir_status (*start)(void *state, const weir_values *values);
	void (*ask)(const void *state, const weir_view *view, weir_verdict *verdict);
	void (*ticked)(void *state, const weir_view *view);
	unsigned flags;
} weir_condition;

/* The view: ports by index. Only inside ask and ticked. */

/* The clock is read once, and only if a condition asks. In ticked: after compute. */
WEIR_API int64_t weir_view_now(const weir_view *view);
/*
 * Only inside ticked: when the tick began, which is what weir_view_now says in the review that found all
 * conditions READY. How long compute took is not in it. 0 for a TIMELESS condition.
 */
WEIR_API int64_t weir_view_began(const weir_view *view);
/* When the run began, on the same clock. */
WEIR_API int64_t weir_view_started(const weir_view *view);
/* Only inside ticked: so many ticks that were due will never come (weir_entity_counts.lost). */
WEIR_API void weir_view_count_lost(const weir_view *view, uint64_t ticks);
/* Messages of all its queues: inbox + front. */
WEIR_API size_t weir_view_count(const weir_view *view, unsigned input);
/* Of its least filled queue. */
WEIR_API size_t weir_view_least(const weir_view *view, unsigned input);
/* Messages a tick needs: the port's take, 1 for WEIR_ALL. */
WEIR_API size_t weir_view_take(const weir_view *view, unsigned input);
WEIR_API bool weir_view_any_size(const weir_view *view, unsigned input);
WEIR_API bool weir_view_connected(const weir_view *view, unsigned input);
/* All senders are closed; ask BEFORE the count. */
WEIR_API bool weir_view_closed(const weir_view *view, unsigned input);
/*
 * It will never again have `needed` messages (0: what a tick needs, weir_view_take): of an any-size port, where
 * each queue must have that many, one sender has closed and its queue has fewer; of another port all senders have
 * closed and their queues have fewer together. Looks at the closing before it counts, so it may be asked in any
 * order with the calls above. False for a port without connection.
 */
WEIR_API bool weir_view_ended(const weir_view *view, unsigned input, size_t needed);
/* Least room of its live `block` queues; SIZE_MAX: no limit. */
WEIR_API size_t weir_view_room(const weir_view *view, unsigned output);
/* The port's max_emits. */
WEIR_API size_t weir_view_emits(const weir_view *view, unsigned output);
/* This condition's word from outside. */
WEIR_API weir_told weir_view_told(const weir_view *view);

/*
 * The entity's own ticks that used the device, its *device ticks*, numbered from 1 in each run; max_in_flight
 * bounds how many of them are on their way. What is asked of a device is asked by tick_pending alone.
 */

/* How many there were in this run. */
WEIR_API uint64_t weir_view_device_ticks(const weir_view *view);
/* How many there are from the oldest that is not known to be complete. */
WEIR_API size_t weir_view_in_flight(const weir_view *view);
/* The entity's max_in_flight, less while its ticks enqueue very much; 0: no bound. */
WEIR_API size_t weir_view_max_in_flight(const weir_view *view);
/*
 * Fences that the ends of the device ticks up to this one recorded and that are not seen complete: returns
 * how many, writes at most `room` of them, one per stream (the latest). Without a bound none are kept: 0.
 */
WEIR_API size_t weir_view_tick_pending(const weir_view *view, uint64_t tick, weir_fence *out, size_t room);

/* Content conditions only: the front of the port, what the next tick receives. */
WEIR_API size_t weir_view_front(const weir_view *view, unsigned input);
WEIR_API const weir_message *weir_view_message(const weir_view *view, unsigned input, size_t i);
/*
 * Fences of the front not seen complete: returns how many, writes
 * at most `room` of them, one per stream (the latest).
 */
WEIR_API size_t weir_view_pending(const weir_view *view, unsigned input, weir_fence *out, size_t room);

/*
 * The verdict: each ask gives exactly one of ready, never, wait; the sources of a wait add up. None, or ready
 * or never beside another, fails the run by the condition's name, and so does a port that is out of range.
 * `why` is borrowed for ever (a literal). Times are absolute.
 */
WEIR_API void weir_verdict_ready(weir_verdict *verdict);
WEIR_API void weir_verdict_never(weir_verdict *verdict, const char *why);
/* Wait, without a source: until somebody pokes. */
WEIR_API void weir_verdict_wait(weir_verdict *verdict, const char *why);
/*
 * Wait; ask again at this time. One that is not after weir_view_now is asked
 * again once; the same time named again fails the run: say READY when now >= at.
 */
WEIR_API void weir_verdict_until(weir_verdict *verdict, int64_t at);
/* Wait; ask again when it is complete. One that was never recorded in this graph fails the run. */
WEIR_API void weir_verdict_fence(weir_verdict *verdict, weir_fence fence);
/* Wait for something outside: holds the run open. */
WEIR_API void weir_verdict_external(weir_verdict *verdict);

/* ----------------------------------------------------------------------------- registry: kinds by name -- */

/*
 * A registry holds operators and conditions by name: the built-ins and what is added. Everywhere below NULL
 * means the built-ins alone. A registry must outlive the graphs that were made with it; tables that are added
 * are borrowed until it is destroyed.
 */
WEIR_API weir_status weir_registry_create(weir_registry **out);
/*
 * Fails: WEIR_E_INVALID for a bad table (size, name, ports)
 * or a name that is taken. Thread: one at a time.
 */
WEIR_API weir_status weir_registry_add_operator(weir_registry *registry, const weir_operator *table);
WEIR_API weir_status weir_registry_add_condition(weir_registry *registry, const weir_condition *table);
/*
 * Loads a plugin: a shared object that exports one `weir_plugin` (WEIR_PLUGIN below). The path must name a
 * regular file, owned by root or the caller, not writable by all; a name without '/' is a file of the working
 * directory, never of the linker's paths. A program that is linked with the static library exports its
 * symbols to plugins (-rdynamic), or they do not load. ABI number and struct sizes are checked before its
 * first function is called. It stays loaded until the registry is destroyed.
 */
WEIR_API weir_status weir_registry_load(weir_registry *registry, const char *path);
/* NULL after the last; sorted by name. */
WEIR_API const weir_operator *weir_registry_operator(const weir_registry *registry, size_t i);
WEIR_API const weir_condition *weir_registry_condition(const weir_registry *registry, size_t i);
WEIR_API void weir_registry_destroy(weir_registry *registry);

typedef struct {
	uint32_t abi, size;		/* WEIR_ABI, sizeof this struct */
	uint32_t operator_size, condition_size, port_size, parameter_size;
	weir_status (*add)(weir_registry *registry);
} weir_plugin_info;

/* Once in a plugin, C, C++ or CUDA C++: exports its `weir_plugin`, also where symbols are hidden. */
#define WEIR_PLUGIN(function)                                                                              \
	WEIR_C WEIR_API const weir_plugin_info weir_plugin;                                                \
	const weir_plugin_info weir_plugin = {                                                             \
		WEIR_ABI, sizeof(weir_plugin_info), sizeof(weir_operator), sizeof(weir_condition),         \
		sizeof(weir_port), sizeof(weir_parameter), function}

/* ------------------------------------------------------------------------- description: the plain data -- */

/*
 * A description says what a graph is: docs/graph-format.md. Reading one opens no device, starts no thread.
 * One that was read and one that was made by calls mean the same.
 */
typedef struct {
	size_t size;
	int number;			/* of W012, explained in docs/errors.md */
	const char *file, *pointer;	/* the file's name or NULL; JSON pointer ("/entities/2/operator") */
	unsigned line, column;		/* from 1; 0: not from a text */
	const char *text;		/* one line: what is wrong and the remedy */
	bool warning;
} weir_report;
typedef void weir_report_fn(const weir_report *report, void *arg);	/* borrows the report for the call */

/*
 * A syntax error is reported too (fn may be NULL); last_error has the
 * first line. Fails: WEIR_E_IO, WEIR_E_INVALID, WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_description_read(weir_description **out, const char *path, weir_report_fn *fn,
					   void *arg);
WEIR_API weir_status weir_description_parse(weir_description **out, const char *json, size_t length,
					    weir_report_fn *fn, void *arg);
WEIR_API weir_status weir_description_create(weir_description **out);
WEIR_API weir_status weir_description_add(weir_description *description, const char *entity,
					  const char *operator_name);
/* "blur.out", "write.in". */
WEIR_API weir_status weir_description_connect(weir_description *description, const char *from,
					      const char *to);
/*
 * Resources by name, and who uses them (docs/graph-format.md, "resources"). A stream pool: streams of one
 * device, shared by the entities that use it. A green context pool: a device's multiprocessors in partitions,
 * the remainder being one of its own; a green context names one of them. green_context: of a stream pool; the
 * name of a green context, or of a green context pool, whose default it then is; NULL: none.
 */
enum { WEIR_STREAM_BLOCKING = 1 };	/* flags of a stream pool: its streams and CUDA's
					   legacy default stream wait for each other */
typedef struct {
	size_t size;
	int device;		/* a GPU's index */
	unsigned flags;
	int priority;		/* CUDA's: lower is more urgent; outside of
				   the device's range it is clamped */
	uint32_t reserved_size;	/* streams made before the first tick; UINT32_MAX: none; 0: 1 */
	uint32_t max_size;	/* streams at most; 0: no bound */
	const char *green_context;
	bool is_default;	/* entities that name no pool use it */
} weir_stream_pool;
typedef struct {
	size_t size;
	int device;
	unsigned flags;			/* must be 0 */
	const uint32_t *sms_per_partition;
	size_t num_partitions;
	uint32_t min_sm_size;		/* the least size of a partition; 0: 2 */
	uint32_t default_context;	/* which partition is the pool's default, counted from 1; 0:
					   the remainder, or the last one if nothing remains */
	bool is_default;		/* entities that name no pool and no
					   context use its default context */
} weir_green_context_pool;
WEIR_API weir_status weir_description_add_stream_pool(weir_description *description, const char *name,
						      const weir_stream_pool *pool);
WEIR_API weir_status weir_description_add_green_context_pool(weir_description *description, const char *name,
							     const weir_green_context_pool *pool);
#define WEIR_REMAINDER (-2)
/* index: of a partition; -1: the pool's default; WEIR_REMAINDER: what remains beside those that are listed. */
WEIR_API weir_status weir_description_add_green_context(weir_description *description, const char *name,
							const char *pool, int index);
/* Once per resource. */
WEIR_API weir_status weir_description_use(weir_description *description, const char *entity,
					  const char *resource);
/*
 * Puts a JSON value at a JSON pointer, making what is missing on the
 * way ("/scheduler/workers", "4"). "-" appends to a list.
 */
WEIR_API weir_status weir_description_put(weir_description *description, const char *pointer,
					  const char *json);
/*
 * Sets "entity.param=value" (value: JSON, or else taken as a
 * string). Fails: WEIR_E_INVALID, naming the nearest entity.
 */
WEIR_API weir_status weir_description_set(weir_description *description, const char *assignment);
/*
 * Checks everything that can be known without running; all
 * errors and warnings in one go, in the order of the text.
 */
WEIR_API weir_status weir_description_check(const weir_description *description,
					    const weir_registry *registry, weir_report_fn *fn, void *arg);
typedef enum { WEIR_AS_TEXT, WEIR_AS_JSON, WEIR_AS_DOT } weir_format;
/*
 * Gives the resolved graph, defaults filled in, as text
 * that ends with a newline; free with weir_text_free.
 */
WEIR_API weir_status weir_description_print(const weir_description *description,
					    const weir_registry *registry, weir_format format, char **out);
WEIR_API void weir_text_free(char *text);
WEIR_API void weir_description_destroy(weir_description *description);

/* --------------------------------------------------------------------------- graph: the wired entities -- */

/*
 * Borrows the registry while the graph lives; copies what it needs of the
 * description. Fails: WEIR_E_INVALID (first error), WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_graph_create(weir_graph **out, const weir_registry *registry,
				       const weir_description *description);
/* Read + create with the built-ins. */
WEIR_API weir_status weir_graph_open(weir_graph **out, const char *path);
/* Getter; NULL: none of that name. */
WEIR_API weir_entity *weir_graph_entity(weir_graph *graph, const char *name);
WEIR_API const char *weir_entity_name(const weir_entity *entity);
WEIR_API const weir_operator *weir_entity_operator(const weir_entity *entity);	/* getter: its table */
/* Getter: its parameters, defaults filled in. */
WEIR_API const weir_values *weir_entity_values(const weir_entity *entity);
/*
 * Fails: WEIR_E_BUSY while a scheduler has it, or while the program holds messages of it: the graph stays,
 * unref them and call again. WEIR_E_ABANDONED: a hung GPU may still touch memory, which was
 * leaked on purpose. NULL is fine.
 */
WEIR_API weir_status weir_graph_destroy(weir_graph *graph);

/*
 * Asks for a review of the entity. Outside a run refused (WEIR_E_CLOSED),
 * nothing changes. Thread: any, also a signal handler.
 */
WEIR_API weir_status weir_entity_poke(weir_entity *entity);
/*
 * Tells the entity's condition of that name (its type, if it was given none) something, and pokes. Kept if no
 * run is on; forgotten when a run ends. Thread: any. Fails: WEIR_E_INVALID: no such condition.
 */
WEIR_API weir_status weir_entity_tell(weir_entity *entity, const char *condition, weir_told told);
/* Tells its `boolean` condition READY or WAIT. */
WEIR_API weir_status weir_entity_enable(weir_entity *entity, bool on);

/* -------------------------------------------------------------------------------- messages and tensors -- */

/*
 * A tensor in DLPack's terms. strides in elements, NULL = dense and
 * row-major. device: -1 = host memory, else a GPU's index.
 */
typedef struct {
	size_t size;
	void *data;
	int32_t device, dimensions;	/* at most WEIR_DIMENSIONS */
	const int64_t *shape, *strides;
	uint8_t code, bits;		/* 0 int, 1 uint, 2 float, 4 bfloat; 8, 16, 32, 64 */
	uint16_t lanes;			/* 0 = 1 */
} weir_tensor;
#define WEIR_DIMENSIONS 8
#define WEIR_HOST (-1)

/*
 * A message: a counted reference to a payload: nothing, bytes, a tensor, or a user's pointer. Immutable once
 * emitted, except by whoever holds the only reference. Messages of a graph are pooled: none may outlive it.
 * Making one: Thread: any, but not while a scheduler is created for the graph: it may replace what failed.
 */
WEIR_API weir_status weir_message_empty(weir_message **out, weir_graph *graph);
/* Host memory; weir_message_data to fill it. */
WEIR_API weir_status weir_message_bytes(weir_message **out, weir_graph *graph, size_t bytes);
/*
 * A new tensor like `like` (its data and strides are ignored); memory of like->device: zero-cost
 * pooled, not cleared. Fails: WEIR_E_NOMEM, WEIR_E_INVALID (no such device, bad shape). Before a scheduler
 * was created only WEIR_HOST works.
 */
WEIR_API weir_status weir_message_tensor_new(weir_message **out, weir_graph *graph, const weir_tensor *like);
/*
 * Wraps a caller's memory. destroy(arg) runs once, when host and GPU are done with it: on a worker, on the
 * caller's thread that drops the last reference, or, for what a run or a graph leaves, on the thread that
 * ends it. Never on the driver's.
 */
WEIR_API weir_status weir_message_wrap(weir_message **out, weir_graph *graph, const weir_tensor *tensor,
				       void (*destroy)(void *arg), void *arg);
WEIR_API weir_status weir_message_user(weir_message **out, weir_graph *graph, void *pointer,
				       void (*destroy)(void *pointer));
WEIR_API weir_message *weir_message_ref(weir_message *message);	/* returns it */
/* NULL is fine. One too many is seen where it can be, and fails the run. */
WEIR_API void weir_message_unref(weir_message *message);
/*
 * The caller holds the only reference, and no work that others enqueued still reads it: he may write in
 * place, after its producers. Ask before, each time: the yes is how weir knows who wrote.
 */
WEIR_API bool weir_message_unique(const weir_message *message);
/* WEIR_EMPTY, WEIR_BYTES, WEIR_TENSOR or WEIR_USER. */
WEIR_API unsigned weir_message_kind(const weir_message *message);
/* Getter; NULL if it is none. */
WEIR_API const weir_tensor *weir_message_tensor(const weir_message *message);
/* Bytes, the tensor's data, or the user's pointer; NULL if empty. */
WEIR_API void *weir_message_data(const weir_message *message);
/* Bytes of data; 0 for a user's pointer. */
WEIR_API size_t weir_message_size(const weir_message *message);
/*
 * The work behind `fence` (of a stream that weir does not know
 * was used) reads the payload: it outlives that work.
 */
WEIR_API weir_status weir_message_use(weir_message *message, weir_fence fence);
/*
 * For a program outside of ticks: the work behind `fence` produces the payload. Gates and device waits of whoever
 * receives it see that, and the payload outlives it; nobody has to wait before the push. Several fences add
 * up, the latest of each stream. What a tick enqueues on streams of weir's is noted without a word. Fails:
 * WEIR_E_INVALID: never recorded, or the message was pushed or emitted (and is not the caller's alone again by
 * weir_message_unique).
 */
WEIR_API weir_status weir_message_produced(weir_message *message, weir_fence fence);
/* Who produced it: returns how many there are. */
WEIR_API size_t weir_message_fences(const weir_message *message, weir_fence *out, size_t room);

/* ------------------------------------------------------------------------------------- streams, fences -- */

/*
 * A kernel: what it does on the host and how it is launched on CUDA. host: runs on a thread of the backend,
 * returns 0, or not: the stream has faulted, as after a CUDA error. cuda: enqueues on the cudaStream_t,
 * returns a cudaError_t; a capture that it begins it also ends. A kernel without a form for the backend is
 * refused.
 */
typedef struct {
	size_t size;
	const char *name;
	int (*host)(const void *arguments);
	int (*cuda)(void *native_stream, const void *arguments);
} weir_kernel;

#define WEIR_ARGUMENTS_MAX 256		/* bytes */
/* Copies the arguments. Of these two, record and wait: fails with WEIR_E_INVALID for a NULL stream. */
WEIR_API weir_status weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
					size_t bytes);
/* Asynchronous; host memory should be pinned (weir's own is). */
WEIR_API weir_status weir_stream_copy(weir_stream *stream, void *to, const void *from, size_t bytes);
WEIR_API void *weir_stream_native(const weir_stream *stream);	/* cudaStream_t on CUDA, else NULL */
WEIR_API int weir_stream_device(const weir_stream *stream);
WEIR_API uint64_t weir_stream_id(const weir_stream *stream);	/* never reused */
/* One queue of the device, whoever works on it: one cudaStream_t. */
WEIR_API bool weir_stream_same(const weir_stream *a, const weir_stream *b);
/*
 * Makes a stream of the caller's known (NULL: CUDA's legacy default stream of that device); the native one
 * must outlive the graph, or be unwrapped. It may go to set_stream and synchronize_streams below and so
 * travel with messages. What the caller enqueues on it outside of a tick is not fenced by itself: record it
 * and tell the messages (weir_message_use). Needs a scheduler. Fails: WEIR_E_UNSUPPORTED without CUDA. A
 * native stream that was destroyed may only be unwrapped, between runs. What else becomes of it is undefined,
 * for CUDA cannot tell: the run may end with an error, or the process with a crash.
 */
WEIR_API weir_status weir_stream_wrap(weir_stream **out, weir_graph *graph, int device, void *native);
/*
 * The native stream is the caller's alone again. Fails: WEIR_E_BUSY: a run is
 * on, or work that was recorded on it is not complete. NULL is fine.
 */
WEIR_API weir_status weir_stream_unwrap(weir_stream *stream);
/*
 * A stream of weir's own for a program outside of ticks, on every backend: to launch, copy, wait and record on,
 * one thread at a time. Its fences go to weir_message_produced and weir_message_use. It lives as long as the
 * graph is on its backend (on `sim`: as its scheduler); make one and keep it. On `sim` each call goes into the
 * simulated world, whose time goes on meanwhile, in a run or outside of one. Needs a scheduler. Fails:
 * WEIR_E_INVALID: no such device, or called on a worker.
 */
WEIR_API weir_status weir_graph_stream(weir_graph *graph, int device, weir_stream **out);
/*
 * On the device: later work of the stream waits for what the caller's cudaEvent_t was recorded after.
 * Source: cudaStreamWaitEvent. Fails: WEIR_E_UNSUPPORTED without CUDA.
 */
WEIR_API weir_status weir_stream_wait_native(weir_stream *stream, void *event);
/* A fence after all that was enqueued. */
WEIR_API weir_status weir_stream_record(weir_stream *stream, weir_fence *out);
/* On the device; later work waits; elided where already ordered. */
WEIR_API weir_status weir_stream_wait(weir_stream *stream, weir_fence fence);
/*
 * OK: complete. WEIR_E_BUSY: not yet. WEIR_E_INVALID: never recorded, or
 * of another graph. WEIR_E_DEVICE: the device failed. Thread: any.
 */
WEIR_API weir_status weir_fence_query(weir_graph *graph, weir_fence fence);
/* Negative: for ever; refused on a worker (WEIR_E_INVALID). */
WEIR_API weir_status weir_fence_wait(weir_graph *graph, weir_fence fence, int64_t timeout_ns);
/*
 * On the device: later work of the caller's cudaStream_t (NULL: the legacy default one) waits for the fence; nothing
 * if it is complete. So who takes from an early outlet goes on without waiting on the host; that it reads the
 * payload it says by weir_message_use. Source: cudaStreamWaitEvent. Thread: any. Fails: WEIR_E_UNSUPPORTED without
 * CUDA; as weir_fence_query.
 */
WEIR_API weir_status weir_fence_enqueue(weir_graph *graph, weir_fence fence, int device, void *native);
WEIR_API void weir_sleep(int64_t ns);	/* on the clock of the run the caller belongs to: virtual
					   on `sim`. Also inside a kernel's host form */

/* ---------------------------------------------------- what an operator calls. Thread: owner, that call -- */

WEIR_API weir_graph *weir_context_graph(weir_context *context);
WEIR_API weir_entity *weir_context_entity(weir_context *context);
/* Ticks of this entity in this run before this one. */
WEIR_API uint64_t weir_context_tick(const weir_context *context);
WEIR_API int64_t weir_context_now(const weir_context *context);		/* the run's clock */
/*
 * The name of the entity whose compute the calling thread is in; NULL: in none. Borrowed while its graph
 * lives. Thread: any, also in a POSIX signal handler: it takes no lock and allocates nothing, so a handler of
 * SIGSEGV can say whose compute it was.
 */
WEIR_API const char *weir_running_entity(void);
WEIR_API bool weir_context_stopping(const weir_context *context);	/* a drain is on */
/* Messages received by this tick, all queues. */
WEIR_API size_t weir_context_count(const weir_context *context, unsigned input);
/* Borrowed until compute returns. */
WEIR_API weir_message *weir_context_message(weir_context *context, unsigned input, size_t i);
/*
 * How many of them came by the k-th connection of the port (they are
 * listed connection by connection, in connection order).
 */
WEIR_API size_t weir_context_queue_count(const weir_context *context, unsigned input, size_t k);
/*
 * Who sends on the k-th connection of the port: "read.out", or "inlet" for one that a program made; NULL: there
 * are not so many. Also in start. A getter: lives as long as the graph.
 */
WEIR_API const char *weir_context_sender(const weir_context *context, unsigned input, size_t k);
/*
 * Delivered after compute returns OK. Takes a reference of the operator's, also on failure; a message that was
 * received is passed on by emit(..., weir_message_ref(message)). Fails: WEIR_E_INVALID: no such output, more
 * than max_emits, a kind that the port or one of its receivers does not take, or no reference that could be
 * taken (then none is).
 */
WEIR_API weir_status weir_context_emit(weir_context *context, unsigned output, weir_message *message);

/*
 * The streams of an operator; docs/streams.md has Holoscan's names for these calls. An entity has one
 * *internal* stream: from its pool, taken at first use and kept for the run. If there is none to be had (no
 * pool, an exhausted one, allocate = false before one was taken) the first stream that is found in the
 * messages serves as the internal one in this tick; if there is none either, the device's default stream.
 * Every message that the tick emits carries the internal stream, if it was used: who receives it knows which
 * stream produced it. The default stream is carried by nothing, unless the entity has "use_default_stream":
 * then it is the internal one and travels like every other. A stream got here belongs to this entity: use it
 * in its own calls alone. All that is enqueued on it is fenced when the tick ends.
 */

/*
 * The internal stream, after all inputs of the tick: receive_stream
 * for every input, allocating. NULL: last_error.
 */
WEIR_API weir_stream *weir_context_stream(weir_context *context);
/*
 * The internal stream, after the streams that the messages of this input carry; it makes the entity's device
 * the thread's current one. sync_to_default: the device's default stream comes after all that, too, for what
 * works there and knows of no other. Fails: WEIR_E_INVALID outside of compute: messages are received when it
 * begins.
 */
WEIR_API weir_status weir_context_receive_stream(weir_context *context, unsigned input, bool allocate,
						 bool sync_to_default, weir_stream **out);
/*
 * The streams that message i of the input carries, one per queue of the device: returns how many there are,
 * writes at most `room`. 0: none, or no such message. Nothing is synchronised, allocated or attached. Without
 * memory for one the tick fails when it ends.
 */
WEIR_API size_t weir_context_receive_streams(weir_context *context, unsigned input, size_t i,
					     weir_stream **out, size_t room);
/*
 * One more stream of the entity's pool, by a name of its own: made at the first call with that name, kept for
 * the run. Attached to nothing. Also in start. Fails: WEIR_E_BUSY: the pool is exhausted; WEIR_E_UNSUPPORTED:
 * the entity has no pool. compute may go on without.
 */
WEIR_API weir_status weir_context_allocate_stream(weir_context *context, const char *name, weir_stream **out);
/*
 * In this tick the messages of this output carry this stream, instead of the internal one; called again: this
 * one, too. Other outputs are as they were. The stream may be any of this entity's, one that a message
 * brought, or a wrapped one. A message that is passed on while others hold it, too, keeps what it carries,
 * unless weir_message_unique said yes before. Fails: WEIR_E_INVALID.
 */
WEIR_API weir_status weir_context_set_stream(weir_context *context, unsigned output, weir_stream *stream);
/*
 * What is enqueued on target from now on comes after what is enqueued on
 * the others now. NULL entries and target itself are passed over.
 */
WEIR_API weir_status weir_context_synchronize_streams(weir_context *context, weir_stream *const *streams,
						      size_t count, weir_stream *target);
/*
 * The default stream of the entity's device, as weir_context_stream
 * would give it to an entity without a pool. NULL: last_error.
 */
WEIR_API weir_stream *weir_context_default_stream(weir_context *context);
/*
 * The device of a native stream that one of these calls gave to
 * this entity. Fails: WEIR_E_INVALID: any other stream.
 */
WEIR_API weir_status weir_context_device_from_stream(weir_context *context, const void *native, int *out);
/* Of the entity's pool: where its internal stream and its tensors are. */
WEIR_API int weir_context_device(const weir_context *context);
/*
 * A new tensor with `like`'s shape and type on the entity's device, or, on_host, in pinned host memory. It
 * lives at least until the work that this tick enqueues is done, even if it is unref'd right after a launch:
 * good for temporaries.
 */
WEIR_API weir_status weir_context_alloc(weir_context *context, const weir_tensor *like, bool on_host,
					weir_message **out);
/* This tick is the entity's last one (a source has no more). */
WEIR_API weir_status weir_context_finish(weir_context *context);
/*
 * As open(2), O_CLOEXEC added, for paths of a graph file: with options.root a relative one begins there, and none
 * leads out of it, by "..", by a link or as an absolute path of another folder. A link to an absolute path leads out.
 * Returns a descriptor; -1: errno, EXDEV: it leads out. For a file in a folder that is made or listed, open the
 * folder and use its descriptor. Also in start.
 */
WEIR_API int weir_context_open(weir_context *context, const char *path, int flags, unsigned mode);
/* From now on the run drains, as by weir_scheduler_stop(scheduler, true): nobody wants more of it. */
WEIR_API void weir_context_drain(weir_context *context);
/* Return its result: WEIR_E_FAILED. */
WEIR_API weir_status weir_context_fail(weir_context *context, const char *format, ...) WEIR_PRINTF(2, 3);

/* ---------------------------------------------------------------------------------- inlets and outlets -- */

/*
 * An inlet is one more connection into an input port ("blur.in"), an outlet takes what an output port
 * ("blur.out") emits. Made before the first scheduler of the graph; owned by the graph. A port that only an
 * inlet or outlet uses counts as connected. An outlet's capacity (0: what the graph's "outlets" says, else 1)
 * must hold what one tick may emit. A graph that names inlets or outlets does not start before all of them are
 * made.
 *
 * What is taken from an outlet is finished: the host may read it at once. It comes in the order in which it
 * was emitted, so one whose device work takes long keeps back those behind it. EARLY: messages are given as
 * soon as they were emitted; weir_message_fences says what to wait for before the payload is touched.
 */
enum { WEIR_OUTLET_EARLY = 1 };	/* flags of an outlet */
WEIR_API weir_status weir_graph_inlet(weir_graph *graph, const char *port, weir_inlet **out);
WEIR_API weir_status weir_graph_outlet(weir_graph *graph, const char *port, uint32_t capacity, unsigned flags,
				       weir_outlet **out);
/*
 * Takes the message on OK only. timeout 0: do not wait for room (WEIR_E_BUSY); negative: for ever. Refused
 * with WEIR_E_INVALID: a timeout on a worker, a kind that the port does not take. WEIR_E_CLOSED: outside a run,
 * draining, or the receiver is done. Thread: any.
 */
WEIR_API weir_status weir_inlet_push(weir_inlet *inlet, weir_message *message, int64_t timeout_ns);
WEIR_API void weir_inlet_close(weir_inlet *inlet);	/* no more messages in this run; an open
							   inlet holds the run open */
/*
 * Gives a message. WEIR_E_TIMEOUT (0: at once; negative: never), WEIR_E_CLOSED:
 * empty, and the run has ended or the sender is done. Thread: any but a worker.
 */
WEIR_API weir_status weir_outlet_take(weir_outlet *outlet, weir_message **out, int64_t timeout_ns);
/*
 * For a loop of the program's own: a descriptor that is readable as long as a take would answer at once, with
 * a message, or with WEIR_E_CLOSED because the run has ended or the sender is done. Level-triggered; before
 * the first run it is not readable. Made at the first call. The outlet's: watch it, but neither read nor
 * close it. -1: there is no descriptor left, see weir_last_error. Thread: any.
 */
WEIR_API int weir_outlet_fd(weir_outlet *outlet);
/*
 * Calls fn(arg) each time a take begins to answer at once, where one before would have waited: when something
 * comes while there was nothing, and at the end. So whoever is told takes until WEIR_E_TIMEOUT or
 * WEIR_E_CLOSED. fn may only hand on (wake a thread, write to a pipe): it is called on a worker or on the
 * loop's thread, at most by several threads at once, and must call nothing of this graph. NULL: nobody is
 * told. Fails: WEIR_E_BUSY while a run is on.
 */
WEIR_API weir_status weir_outlet_notify(weir_outlet *outlet, void (*fn)(void *arg), void *arg);

/* --------------------------------------------------------------------------------------------- running -- */

/*
 * On `sim` the run is worked by the thread that waits, in virtual time. Meanwhile other threads may poke, tell
 * and stop; they must not push, take, close or explain, and a signal handler may stop alone.
 */

/* Whose zero is meant: seed 0, no time to drain, no grace, no limit of time, no spinning. */
enum {
	WEIR_GIVEN_SEED = 1,
	WEIR_GIVEN_DRAIN = 2,
	WEIR_GIVEN_DEADLOCK_GRACE = 4,
	WEIR_GIVEN_MAX_DURATION = 8,
	WEIR_GIVEN_SPIN = 16
};

typedef struct {
	size_t size;
	unsigned workers;		/* 0: the description's, else one per core, at most 64 */
	const char *backend;		/* "auto" (NULL), "cuda", "host", "sim" */
	const char *signal;		/* NULL: the description's, else "callback";
					   "callback_inline", "flag" */
	uint64_t seed;			/* sim; 0: the description's, unless `given`. Likewise the next four */
	int64_t drain_ns;		/* 0: 5 s; how long a drain may take before the rest
					   is abandoned; negative: no time at all */
	int64_t deadlock_grace_ns;	/* 0: none; negative: stays open until poked or stopped */
	int64_t max_duration_ns;	/* 0: no limit; then it drains */
	int64_t spin_ns;		/* 0: none; how long a worker without work spins
					   while GPU signals are outstanding */
	void *event_base;		/* a libevent base of the caller's, whose thread also calls
					   start, wait and destroy; no loop thread of weir's then.
					   From start to the end of the run weir has one event in it:
					   the base's dispatch returns after the run, if the caller has
					   none of its own left */
	bool own_loop;			/* the caller polls weir_scheduler_fd and calls
					   weir_scheduler_turn; no loop thread of weir's */
	bool handle_signals;		/* SIGINT and SIGTERM drain, a second one exits at once with 130
					   or 143. All threads of the program must block both: create
					   blocks them in the caller's thread only; destroy, called
					   there, unblocks what create blocked */
	bool measure;			/* measure the time inside compute (two clock reads a
					   tick): weir_entity_counts.compute_ns */
	int max_in_flight;		/* ticks of one entity that may be on the device at once, where the entity
					   has no key of its own: 0: the description's, else 64; negative: no
					   bound; at most 65536 */
	/*
	 * Called once when a run has ended (weir_scheduler_running says false, the outcome is there), also
	 * one that destroy cut short; not for a start that failed. It may only hand on: of this scheduler,
	 * start, wait, turn and destroy answer WEIR_E_BUSY inside it. Thread: that of the run's loop, so
	 * weir's own, or, with event_base or own_loop, the caller's that is inside the base's dispatch,
	 * turn, wait or destroy then. NULL: nobody is told.
	 */
	void (*ended)(weir_scheduler *scheduler, void *arg);
	void *ended_arg;
	const char *root;		/* NULL: none. The built-in operators, and whatever else opens files by
					   weir_context_open, reach nothing outside of this folder. Borrowed for
					   the call of create. Fails: WEIR_E_IO, also where the kernel cannot */
	unsigned given;			/* WEIR_GIVEN_...: a zero there counts, before what the description says */
} weir_scheduler_options;

/* How a run ended. `text` and `entity` are borrowed until the next start or destroy. */
typedef struct {
	size_t size;
	weir_status status;		/* OK: finished or drained. DEADLOCK, ABANDONED (a drain ran
					   out of time), DEVICE, or what compute returned */
	const char *entity;		/* whose failure it was; NULL if nobody's */
	const char *text;		/* one line; a deadlock's names root causes and circles first */
	uint64_t ticks;
	uint64_t leftover, abandoned;	/* messages still queued at a normal end; given
					   up when the run was cut short */
	int64_t duration_ns;
	int posix_signal;		/* SIGINT or SIGTERM that began the drain, or 0 */
	uint64_t discarded;		/* leftovers of the run before that this one's start threw away */
	const char *waiting;		/* one line: who is not done and waits for something from outside
					   (disabled, told to wait); NULL: nobody. Borrowed */
} weir_outcome;

/*
 * NULL options are all defaults. One scheduler per graph at a time.
 * Fails: WEIR_E_BUSY, WEIR_E_DEVICE (no such backend here), ...
 */
WEIR_API weir_status weir_scheduler_create(weir_scheduler **out, weir_graph *graph,
					   const weir_scheduler_options *options);
/* Start + wait; returns the outcome's status. */
WEIR_API weir_status weir_scheduler_run(weir_scheduler *scheduler);
/*
 * May be called again after a run has ended. Fails: WEIR_E_BUSY: a run is on, another thread starts one, or
 * the device still works for the run before and a stop function waits for that. After a fork the child may
 * use neither scheduler nor graph: start, wait, turn and destroy answer WEIR_E_INVALID there.
 */
WEIR_API weir_status weir_scheduler_start(weir_scheduler *scheduler);
/*
 * Waits for the end of the run; negative: for ever. WEIR_E_TIMEOUT: it goes on, *outcome is untouched
 * (weir_scheduler_running tells it from a compute that returned the same). Otherwise the outcome's status (of
 * a start that failed, too); outcome may be NULL. With event_base or own_loop it turns the loop meanwhile.
 * Refused on a worker of the run (WEIR_E_INVALID).
 */
WEIR_API weir_status weir_scheduler_wait(weir_scheduler *scheduler, int64_t timeout_ns,
					 weir_outcome *outcome);
/*
 * Thread: any, also inside compute and in signal handlers; any number of
 * times. drain = false: cut short at once, the rest is abandoned. No
 * review that begins after it leads to a tick (with drain: to one of a source).
 */
WEIR_API void weir_scheduler_stop(weir_scheduler *scheduler, bool drain);
/* own_loop: poll it for reading; -1 otherwise. */
WEIR_API int weir_scheduler_fd(weir_scheduler *scheduler);
/* own_loop: does what is due, never blocks. Thread: the one that started it. */
WEIR_API weir_status weir_scheduler_turn(weir_scheduler *scheduler);
/* A run is on: not yet ended. Thread: any. */
WEIR_API bool weir_scheduler_running(const weir_scheduler *scheduler);
/*
 * It is on and ends: it drains, whoever asked for that, or is cut short, and what is at work is waited for.
 * For who wants to name what holds it up (weir_scheduler_why). Thread: any.
 */
WEIR_API bool weir_scheduler_stopping(const weir_scheduler *scheduler);
/* "cuda: NVIDIA H100", "host", "sim: seed 7". */
WEIR_API const char *weir_scheduler_where(const weir_scheduler *scheduler);
/*
 * Why entities are not ready: one call per condition of every entity that is not DONE, root causes first; room
 * behind outputs counts, too ("room on out"). verdict: WAIT (for a poke), WAIT_TIME, WAIT_EVENT, NEVER, BUSY
 * (computes now), or PARKED: nothing is unmet, and it was not woken. What is handed to fn is borrowed for the call.
 * Thread: any but a worker.
 */
typedef void weir_explain_fn(const char *entity, const char *condition, const char *verdict,
			     const char *detail, void *arg);
WEIR_API void weir_scheduler_explain(weir_scheduler *scheduler, weir_explain_fn *fn, void *arg);

/*
 * The same as one line, for who asks why a run stands still: root causes first (what is disabled, busy, waits for a
 * time or for the device, full and empty queues with their numbers, circles with a remedy), then how many entities
 * wait behind them, then inlets that keep the run open. "": none waits. Gives text; free with weir_text_free.
 * Thread: any but a worker. Fails: WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_scheduler_why(weir_scheduler *scheduler, char **out);

typedef struct {
	size_t size;
	const char *entity;
	uint64_t ticks, received, emitted, unconnected;	/* unconnected: emitted on an optional
							   output without connection */
	int64_t compute_ns;				/* wall time inside ticks; 0 unless options.measure */
	bool done;
	uint64_t lost;					/* ticks that a condition says were due and never
							   came: the beats that `periodic` passes over */
	uint64_t most_in_flight;			/* most ticks that were on the device at once; the
							   device is asked rarely, so up to 8 of them may
							   have been complete; 0 without a bound */
} weir_entity_counts;
/* At every stop: pushed = delivered + dropped + closed + queued + abandoned. */
typedef struct {
	size_t size;
	const char *from, *to;		/* "blur.out" ("inlet" for an inlet), "write.in" ("outlet") */
	uint64_t pushed, delivered, dropped, closed, queued, abandoned;
	uint32_t capacity;
} weir_queue_counts;
/*
 * Snapshots of the current or last run. i: 0, 1, ... until false (also for an *out without
 * size: last_error says so). Thread: any.
 */
WEIR_API bool weir_scheduler_entity_counts(weir_scheduler *scheduler, size_t i, weir_entity_counts *out);
WEIR_API bool weir_scheduler_queue_counts(weir_scheduler *scheduler, size_t i, weir_queue_counts *out);
/*
 * Stops a run that is on. NULL is fine. By then no other thread may be in, or come to, a call about the
 * scheduler or about its graph's entities, inlets and outlets: join who pokes, pushes or takes before.
 * Refused on a worker of the run (WEIR_E_INVALID).
 */
WEIR_API weir_status weir_scheduler_destroy(weir_scheduler *scheduler);

#ifdef __cplusplus
}
#endif

#endif
