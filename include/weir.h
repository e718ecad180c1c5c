/*
 * weir.h: an event-driven scheduler for GPU pipelines.
 *
 * This header is the reference manual. Read it from top to bottom: it begins with what a program needs that
 * runs a graph from a file, then shows how it feeds the graph and takes results, then how operators and
 * conditions are written, and ends with graphs that are put together by calls.
 *
 *     status, log              weir_status, weir_last_error
 *     graph                    weir_graph_open
 *     running                  weir_scheduler_run, how a run ended, why it stands still, counts
 *     inlets and outlets       messages into and out of a running graph
 *     messages and tensors     what travels
 *     parameters, operators    a const table with start, compute and stop
 *     context                  what these three may call
 *     streams, fences          device work, of a program or of an operator
 *     conditions               when an entity may tick
 *     registry, plugins        operators and conditions by name
 *     description              a graph as plain data
 *
 * Names: a type is weir_<noun>, a function weir_<noun>_<what>, a constant WEIR_<KIND>_<what>. A function that
 * makes something is named by a verb, the same verb for the same kind of making:
 *   create    makes an object; the caller owns it and destroys (a message: unrefs) it
 *   open      makes an object from a file; read, parse: from a file, from a text
 *   wrap      makes an object around something of the caller's, which must outlive it
 *   pack      makes one message of several, which it takes
 *   add       puts something new into the object, which owns it
 *   allocate, receive   give a stream of the entity, which owns it
 *   record    gives a fence; print and explain give a text; take gives a message that was there
 * A getter has no verb: it is named by what it gives, which belongs to its parent.
 *
 * Results: a function that can fail returns a weir_status, and gives what it is for through `out`. One that
 * cannot returns its value. A getter with an index i is called with 0, 1, ...: past the end it returns NULL
 * or, if it fills a struct, WEIR_E_INVALID; as every loop ends so, that leaves weir_last_error() as it was.
 *
 * Arguments: first the object that the call is about, then what goes in, then a function and its `arg`, last
 * what comes out: `out`. A list that comes out has its `room` before it. An index counts from 0; where a
 * default can be named, it is -1.
 * What a call may do otherwise is a flag: WEIR_<CALL>_<what>; 0 is the common case.
 *
 * Ownership: a function
 *   gives     a result through *out: the caller owns and destroys it, unless the comment names the owner
 *   takes     an argument: the library owns it after the call
 *   borrows   an argument or result: it must stay, or stays, valid during the call or as long as stated.
 *             Without a word about it an argument is borrowed for the call
 *
 * Units: time is int64_t nanoseconds on a monotonic clock, sizes are bytes, counts are size_t.
 *
 * Structs: one that the caller fills begins with `size` (its sizeof); without it the struct is refused by
 * name. Zero is the default of every other field: "not given"; of an index it is the first. Options,
 * outcomes, counts, pools, operators, ports, parameters, tensors, kernels and weir_unmet may grow at their
 * ends: a caller with an older, smaller struct stays valid, and a newer, larger one whose further fields are
 * zero. In a list all structs have the same size. The other structs change only with WEIR_ABI.
 *
 * NULL: a pointer may be NULL only where the comment says so.
 *
 * Thread: which thread may call. Each part below states a default; a function that differs has its own line.
 *   any       any thread, at any time, also several at once with the same object
 *   one       any thread, but one at a time with the same object: the program orders its calls
 *   owner     the thread that is inside start, compute or stop of that entity
 *   review    the thread that is inside ask or ticked of that condition
 * A worker is a thread of weir's that runs computes; the loop's thread handles timers while no worker sleeps,
 * signals and the end of a run. Calls that wait are refused on a worker.
 *
 * Fails: which statuses may come beside those that every function may return: WEIR_E_INVALID (an argument
 * that the comment rules out), WEIR_E_NOMEM and, if it uses the device, WEIR_E_DEVICE (the device failed).
 * Again each part has a default. A function that fails leaves *out untouched and sets weir_last_error().
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
#define WEIR_API               __attribute__((visibility("default")))
#define WEIR_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define WEIR_API
#define WEIR_PRINTF(at, first)
#endif

#define WEIR_VERSION "0.2.0"
/*
 * Grows when a change below breaks what was built before it. Until then there are only additions: functions,
 * and fields at the ends of options, outcomes, counts, pools, operators, ports, parameters, tensors, kernels
 * and weir_unmet. 4 is the one that weir 1.0 freezes: until 1.0 this header may grow in these ways; then its
 * functions are counted, too.
 */
#define WEIR_ABI 4u

/* ----------------------------------------------------------------------------------------- status, log -- */

/* Default. Thread: any. Fails: nothing else. */

/*
 * X(name, value, text). BUSY: not now; the same call may go well later without another (a full queue, an
 * unfinished fence, an exhausted pool). STATE: the wrong moment; something else must be done first (a run is
 * on, the graph has a scheduler, the call came inside `ended`).
 */
#define WEIR_STATUS_TABLE(X)                                                                                 \
	X(WEIR_OK, 0, "ok")                                                                                  \
	X(WEIR_E_INVALID, -1, "invalid")                                                                     \
	X(WEIR_E_NOMEM, -2, "out of memory")                                                                 \
	X(WEIR_E_DEVICE, -3, "device failed")                                                                \
	X(WEIR_E_DEADLOCK, -4, "deadlock")                                                                   \
	X(WEIR_E_ABANDONED, -5, "abandoned")                                                                 \
	X(WEIR_E_CLOSED, -6, "closed")                                                                       \
	X(WEIR_E_TIMEOUT, -7, "timed out")                                                                   \
	X(WEIR_E_BUSY, -8, "busy")                                                                           \
	X(WEIR_E_UNSUPPORTED, -9, "unsupported")                                                             \
	X(WEIR_E_IO, -10, "input/output failed")                                                             \
	X(WEIR_E_FAILED, -11, "operator failed")                                                             \
	X(WEIR_E_STATE, -12, "wrong moment")

typedef enum {
#define WEIR_STATUS_ENUM(name, value, text) name = value,
	WEIR_STATUS_TABLE(WEIR_STATUS_ENUM)
#undef WEIR_STATUS_ENUM
} weir_status;

/* One word or two; never NULL. */
WEIR_API const char *weir_status_text(weir_status status);
/*
 * This thread's last failure, one line; "" if there was none. Borrowed until this thread's next failure. It
 * is not cleared by a call that succeeds.
 */
WEIR_API const char *weir_last_error(void);
/*
 * Escapes untrusted text for one line on a terminal: control characters (C0, DEL, C1), characters that change
 * the writing direction, zero-width spaces and bytes that are not UTF-8 are written as \n, \u009b, \xff;
 * everything else, backslashes too, stays as it is. Writes whole characters and a NUL, at most room bytes
 * (room is at least 16), and returns the number of bytes without the NUL. *text then points at its end, or at
 * where the next call continues. weir's errors, diagnostics, outcomes and explanations are escaped already;
 * file names that the caller passed in are not.
 */
WEIR_API size_t weir_text_escape(const char **text, size_t room, char *out);
/* Frees a text that print or explain gave. NULL is allowed. */
WEIR_API void weir_text_free(char *text);
/* The WEIR_VERSION that the running library was built with. */
WEIR_API const char *weir_version(void);
/*
 * Returns true if the running library has the public function of that name, so that a program or plugin built
 * with a newer header runs on an older weir, too. Declare such a function weak, or the linker wants it at
 * once:
 *
 *     #pragma weak weir_scheduler_explain_line
 *     if (weir_has("weir_scheduler_explain_line"))
 *             status = weir_scheduler_explain_line(scheduler, &line);
 *
 * The fields of structs need no question: a field that the library does not know is refused with
 * WEIR_E_UNSUPPORTED unless it is zero.
 */
WEIR_API bool weir_has(const char *name);

typedef enum { WEIR_LOG_ERROR = 1, WEIR_LOG_WARN, WEIR_LOG_INFO, WEIR_LOG_DEBUG } weir_log_level;
/*
 * Receives one log line, without a newline, borrowed for the call; at: ns, the clock of the run. Must not
 * block for long and must not call weir_log_set. No lock of the library is held. It runs on any thread, also
 * on workers, on several at once.
 */
typedef void weir_log_fn(weir_log_level level, int64_t at, const char *line, void *arg);
/*
 * Sets the log function of the whole process and replaces the one before; arg is borrowed until then. NULL,
 * the state at the beginning, turns logging off. When it returns, the previous function is not running and
 * is not called again. Thread: any, but not inside fn.
 */
WEIR_API weir_status weir_log_set(weir_log_fn *fn, void *arg);

/* ----------------------------------------------------------------------------------------------- nouns -- */

typedef struct weir_graph weir_graph;
typedef struct weir_entity weir_entity;
typedef struct weir_scheduler weir_scheduler;
typedef struct weir_inlet weir_inlet;
typedef struct weir_outlet weir_outlet;
typedef struct weir_message weir_message;
typedef struct weir_stream weir_stream;
typedef struct weir_context weir_context;
typedef struct weir_values weir_values;
typedef struct weir_view weir_view;
typedef struct weir_verdict weir_verdict;
typedef struct weir_registry weir_registry;
typedef struct weir_description weir_description;
typedef struct weir_operator weir_operator;
typedef struct weir_ports weir_ports;

/*
 * A place in the work of a stream: a plain value that may outlive its stream. `value` counts on the stream's
 * timeline. Or a fence that the program completes (weir_graph_create_fence). {0, 0} is no fence and counts as
 * complete.
 */
typedef struct {
	uint64_t stream, value;
} weir_fence;

/*
 * What an entity waits for, or why a run ended. Programs and tools act on causes; the texts beside them are
 * for people, and change. X(name, value, text).
 *
 *   NONE        nothing is known, or nothing is to be said
 *   MESSAGES    an input has too few messages
 *   ROOM        a queue behind an output has too little room
 *   DEVICE      work on the device is not finished
 *   MEMORY      a memory pool has too little
 *   BOUND       max_in_flight of its ticks are on the device
 *   TIME        its time has not come
 *   DESCRIPTOR  a descriptor is not ready, or none is watched
 *   TOLD        the program has told it to wait, or has told nothing so far (boolean, asynchronous, fence),
 *               or has not completed a fence of weir_graph_create_fence
 *   OWN         a condition of the program's, or of a plugin's, that names no other cause
 *   WORKER      it is READY, or is being reviewed: it waits for a worker
 *   COMPUTE     it is in compute
 *   START       a start function, or what begins a run
 *   DRAIN       the run drains
 *   DONE        nothing is left to do: its ticks are counted out, or all its receivers are DONE
 */
#define WEIR_CAUSE_TABLE(X)                                                                                  \
	X(WEIR_CAUSE_NONE, 0, "none")                                                                        \
	X(WEIR_CAUSE_MESSAGES, 1, "messages")                                                                \
	X(WEIR_CAUSE_ROOM, 2, "room")                                                                        \
	X(WEIR_CAUSE_DEVICE, 3, "device")                                                                    \
	X(WEIR_CAUSE_MEMORY, 4, "memory")                                                                    \
	X(WEIR_CAUSE_BOUND, 5, "bound")                                                                      \
	X(WEIR_CAUSE_TIME, 6, "time")                                                                        \
	X(WEIR_CAUSE_DESCRIPTOR, 7, "descriptor")                                                            \
	X(WEIR_CAUSE_TOLD, 8, "told")                                                                        \
	X(WEIR_CAUSE_OWN, 9, "own")                                                                          \
	X(WEIR_CAUSE_WORKER, 10, "worker")                                                                   \
	X(WEIR_CAUSE_COMPUTE, 11, "compute")                                                                 \
	X(WEIR_CAUSE_START, 12, "start")                                                                     \
	X(WEIR_CAUSE_DRAIN, 13, "drain")                                                                     \
	X(WEIR_CAUSE_DONE, 14, "done")

typedef enum {
#define WEIR_CAUSE_ENUM(name, value, text) name = value,
	WEIR_CAUSE_TABLE(WEIR_CAUSE_ENUM)
#undef WEIR_CAUSE_ENUM
} weir_cause;

/* One word, as in statistics and traces; "unknown" for any other value. Thread: any. */
WEIR_API const char *weir_cause_text(weir_cause cause);

/* A failure in parts, for a program that acts on it. The texts are borrowed until this thread's next one. */
typedef struct {
	size_t size;
	weir_status status;
	weir_cause cause;   /* of a run that failed: as in its outcome; else NONE or what is known */
	const char *entity; /* that it is about; NULL: none */
	const char *on;     /* its port, or a pool; NULL: not known */
	const char *text;   /* the line without the entity's name before it */
} weir_error;
/*
 * Gives this thread's last failure, whose line weir_last_error() is; WEIR_OK and "" if there was none.
 * Thread: any. Fails: nothing else.
 */
WEIR_API weir_status weir_error_last(weir_error *out);

/* ----------------------------------------------------------------------------------------------- graph -- */

/*
 * A graph holds entities, each with an operator, its parameters, ports and conditions, and the connections
 * between their ports. It is made from a file (docs/graph-format.md) or from a description that the program
 * puts together (below). One scheduler at a time runs it.
 *
 * Default. Thread: any. Fails: nothing else.
 */

/*
 * Gives the graph that a file describes, with the built-in operators; "-" reads standard input. Fails:
 * WEIR_E_IO; WEIR_E_INVALID: weir_last_error() has the first error and its place.
 */
WEIR_API weir_status weir_graph_open(const char *path, weir_graph **out);
/*
 * Borrows the registry while the graph lives; copies what it needs of the description. Thread: one at a time
 * with the same registry or description. Fails: WEIR_E_INVALID: weir_last_error() has the first error.
 */
WEIR_API weir_status weir_graph_create(const weir_registry *registry, const weir_description *description,
				       weir_graph **out);
/* The entity of that name; NULL if there is none: calls about an entity that return a status refuse it. */
WEIR_API weir_entity *weir_graph_entity(weir_graph *graph, const char *name);
WEIR_API const char *weir_entity_name(const weir_entity *entity);
/* The table that was added to the registry; its copy, if that was built with structs of another size. */
WEIR_API const weir_operator *weir_entity_operator(const weir_entity *entity);
/* Its parameters, defaults filled in. */
WEIR_API const weir_values *weir_entity_values(const weir_entity *entity);
/*
 * Asks for a review of the entity: its conditions are asked again. Thread: any, also a POSIX signal handler.
 * Fails: WEIR_E_CLOSED: no run is on; nothing changes.
 */
WEIR_API weir_status weir_entity_poke(weir_entity *entity);
/*
 * Works off the messages without references that the device still used when they were dropped: their memory
 * returns to its pool, their destructors run, on the calling thread. For a program between two runs, and
 * before the first: in a run the workers do it. Waits for the device; a negative timeout: without limit.
 * Thread: any but a worker. Fails: WEIR_E_STATE: a run is on; WEIR_E_TIMEOUT: the device uses some;
 * WEIR_E_INVALID: a worker called it.
 */
WEIR_API weir_status weir_graph_collect(weir_graph *graph, int64_t timeout_ns);
/*
 * NULL is allowed. Thread: one; no other thread may be inside or enter a call about the graph. Fails:
 * WEIR_E_STATE: a scheduler uses the graph, the program holds messages of it, or some of its fences are not
 * completed. The graph stays; destroy the scheduler, unref the messages, complete the fences, and call again.
 * WEIR_E_ABANDONED: a hung GPU may still touch memory, which was leaked on purpose; the graph is gone.
 */
WEIR_API weir_status weir_graph_destroy(weir_graph *graph);

/* --------------------------------------------------------------------------------------------- running -- */

/*
 * A scheduler runs a graph, any number of times, on its own workers. The shortest program: weir_graph_open,
 * weir_scheduler_create, weir_scheduler_run, then weir_scheduler_destroy and weir_graph_destroy.
 *
 * On `sim` the thread that waits executes the run, in virtual time; without one it stands still, and a wait
 * of 0 moves nothing. Meanwhile other threads may poke, tell, complete fences, fail and stop, but must not
 * push, take, close, drop messages or explain; a POSIX signal handler may only stop.
 *
 * Default. Thread: one. Fails: WEIR_E_STATE: called inside `ended`; WEIR_E_INVALID: called in the child of a
 * fork, which may use neither the scheduler nor the graph.
 */

/*
 * In weir_scheduler_options a field of 0 means "not given": as in the graph's "scheduler", else the default
 * that is named. WEIR_NONE means the zero of the thing itself: no time to drain, no grace, no limit, seed 0.
 */
enum { WEIR_NONE = -1 };

/* What is recorded of a run: statistics; each event, for a timeline; of statistics the times in compute
 * alone. */
enum { WEIR_OBSERVE_STATISTICS = 1, WEIR_OBSERVE_TRACE = 2, WEIR_OBSERVE_COMPUTE = 4 };
/* For weir_scheduler_options.files: a file of the program, by its own names for it and for its use. */
typedef struct {
	size_t size;
	const char *name; /* "--trace": what an error says */
	const char *path; /* "-": standard input or output */
	bool write;
} weir_file;
typedef struct {
	size_t size;
	unsigned workers;          /* 0: the description's, else one per core, at most 64 */
	const char *backend;       /* "auto" (NULL), "cuda", "host", "sim" */
	const char *signal;        /* NULL: the description's, else "auto";
				      "callback", "callback_inline", "flag" */
	uint64_t seed;             /* sim; 0: the description's, else 0; WEIR_NONE: 0 */
	int64_t drain_ns;          /* how long a drain may go without progress (a message taken, a tick's
				      device work completed) before the rest is abandoned;
				      0: the description's, else 5 s */
	int64_t deadlock_grace_ns; /* how long nothing may tick before that is a deadlock; 0: the
				      description's, else none; INT64_MAX: the run stays open until
				      poked or stopped */
	int64_t max_duration_ns;   /* the run drains after it; 0: the description's, else no limit */
	int64_t worker_spin_ns;    /* how long an idle worker spins while GPU signals are
			       outstanding; 0: the description's, else not at all */
	void *event_base;          /* the caller's libevent base instead of weir's loop thread;
				      the base's thread also calls start, wait and destroy.
				      weir keeps one event in the base from start to the end of
				      the run, so its dispatch returns after the run unless the
				      caller has events of its own */
	bool own_loop;             /* instead of weir's loop thread the caller polls
				      weir_scheduler_fd and calls weir_scheduler_turn; without turns
				      no timer fires, and no deadlock is found or told */
	bool handle_signals;       /* SIGINT and SIGTERM drain; a second one exits at once with 130
				      or 143. All threads of the program must block both: create
				      blocks them in the calling thread only, and destroy, called
				      on that thread, unblocks what create blocked */
	int max_in_flight;         /* ticks of one entity that may be on the device at once; an
				      entity's own key overrides it. 0: the description's, else
				      64; WEIR_NONE: no bound; at most 65536 */
	/*
	 * Called once when a run has ended (weir_scheduler_running returns false, the outcome is published),
	 * also if destroy cut it short, but not after a failed start. It may only notify: start, wait, turn
	 * and destroy of this scheduler return WEIR_E_STATE inside it. Thread: that of the run's loop: weir's
	 * own or, with event_base or own_loop, the caller's thread inside the base's dispatch, turn, wait or
	 * destroy. NULL: no function.
	 */
	void (*ended)(weir_scheduler *scheduler, void *arg);
	void *ended_arg;
	const char *root;       /* the built-in operators, and all others that open files by
				   weir_context_open, cannot reach files outside of this folder;
				   NULL: no limit. Borrowed for the call of create, which fails
				   with WEIR_E_IO, also if the kernel does not support it */
	unsigned observe;       /* WEIR_OBSERVE_... bits; 0: nothing, which costs nothing */
	size_t trace_events;    /* records of the timeline that are kept per worker, the newest ones,
				   and as many of all other threads; 0: 1 Mi, which is 32 MiB; at
				   most 256 Mi */
	uint64_t skip;          /* statistics leave out the first ticks of each entity */
	int gpu_time;           /* the time on the device is measured in one tick of so many of each
				   entity, up to 1000000, if something observes the run: 1: in all;
				   WEIR_NONE: in none; 0: the description's, else 64 */
	const weir_file *files; /* what the program itself reads or writes meanwhile, or of the run
				   afterwards. Borrowed, with its texts, until destroy */
	size_t file_count;
	int strict; /* device memory is closed to the host, so that code which touches it
		       elsewhere than in device work gets SIGSEGV, as with a GPU: 1: also
		       on host, whose processor must have protection keys; WEIR_NONE: on
		       no backend; 0: on sim alone. Ignored on cuda */
} weir_scheduler_options;

/* How a run ended. Its texts and names are borrowed until the next start or destroy. */
typedef struct {
	size_t size;
	weir_status status; /* OK: finished or drained. DEADLOCK, ABANDONED (a drain ran
			       out of time), DEVICE, or what compute returned */
	const char *entity; /* the entity that failed, or NULL */
	const char *text;   /* one line; for a deadlock, root causes and circles first. If all is
			       well, why an operator drained the run, or NULL */
	uint64_t ticks;
	uint64_t leftover, abandoned; /* messages still queued at a normal end; dropped
					 because the run was cut short */
	int64_t duration_ns;
	int posix_signal;         /* SIGINT or SIGTERM that began the drain, or 0 */
	uint64_t discarded;       /* leftovers of the previous run, dropped by this run's start */
	const char *waiting;      /* one line: entities that wait for something from outside
				     (disabled, told to wait); NULL: none. Borrowed */
	weir_cause cause;         /* DONE: it has finished; DRAIN: it was drained, stopped, or failed by the
				     program, or the drain ran out of time; of a deadlock, also of a part: that of its
				     first root cause; else what failed: START, COMPUTE, DEVICE, or what a condition
				     waited for */
	const char *cause_entity; /* the entity that failed, or of that root cause; NULL: none. Borrowed */
	const char *cause_on;     /* what it waited for: its port, or a pool; NULL: not known. Borrowed */
	uint64_t held;            /* messages of the graph that are still referenced, beside those that
				     are queued: by operators that keep them
				     (weir_entity_counts.held), or by the program. 0 after a run
				     that was cut short */
	/*
	 * One line: a part of the graph that was found to stand for ever while the rest went on or was
	 * drained. It was logged when it was found, and the status is DEADLOCK unless the run failed or its
	 * drain took too long; NULL: none. Borrowed.
	 */
	const char *stuck;
} weir_outcome;

/*
 * Gives a scheduler for the graph, which it borrows; NULL options: all defaults. Fails: WEIR_E_STATE: the
 * graph has a scheduler; WEIR_E_DEVICE: the backend is not available here; WEIR_E_IO: `root` cannot be
 * opened.
 */
WEIR_API weir_status weir_scheduler_create(weir_graph *graph, const weir_scheduler_options *options,
					   weir_scheduler **out);
/* start, then wait without limit: a failure of start, or the outcome's status. */
WEIR_API weir_status weir_scheduler_run(weir_scheduler *scheduler);
/*
 * Starts a run; may be called again after a run has ended. Fails: WEIR_E_STATE: a run is on, another thread
 * starts one, or called inside `ended`; WEIR_E_BUSY: a stop function of the previous run still waits for the
 * device; WEIR_E_INVALID: a port has no connection, an inlet or outlet that the graph names was not added;
 * what an operator's start returned.
 */
WEIR_API weir_status weir_scheduler_start(weir_scheduler *scheduler);
/*
 * Waits for the end of the run; a negative timeout: without limit. Returns the outcome's status (also that of
 * a failed start); outcome may be NULL. With event_base or own_loop it runs the loop while it waits. Thread:
 * any but a worker of the run; with event_base or own_loop the thread that started the run. Fails:
 * WEIR_E_TIMEOUT: the run goes on and *outcome is untouched; since a compute may return the same status,
 * weir_scheduler_running tells the two apart; WEIR_E_STATE: called inside `ended`.
 */
WEIR_API weir_status weir_scheduler_wait(weir_scheduler *scheduler, int64_t timeout_ns,
					 weir_outcome *outcome);
/*
 * Stops the run; may be called any number of times. flags 0: the run is cut short and what is queued is
 * abandoned. WEIR_STOP_DRAIN: sources stop, the rest is worked off. A review that begins after the call leads
 * to no tick (of a drain: to no tick of a source). Thread: any, also inside compute and in POSIX signal
 * handlers.
 */
enum { WEIR_STOP_DRAIN = 1 };
WEIR_API void weir_scheduler_stop(weir_scheduler *scheduler, unsigned flags);
/*
 * Fails the run, by what the program has met outside of it: the run is cut short, and its outcome has this
 * status and text, one line, copied (NULL: that of the status), without an entity. A remote connection tells
 * the other process the text, as that of an operator that failed. The first failure of a run is kept. If no
 * run is on, nothing happens. Thread: any, also inside compute, but not a POSIX signal handler. Fails:
 * WEIR_E_INVALID: `failure` is none.
 */
WEIR_API weir_status weir_scheduler_fail(weir_scheduler *scheduler, weir_status failure, const char *text);
/*
 * own_loop: gives the descriptor to poll for reading, which the scheduler owns. Thread: any. Fails:
 * WEIR_E_INVALID: without own_loop.
 */
WEIR_API weir_status weir_scheduler_fd(weir_scheduler *scheduler, int *out);
/*
 * own_loop: handles all due events; never blocks. Thread: the one that started the run. Fails:
 * WEIR_E_INVALID: without own_loop; WEIR_E_STATE: called inside `ended`.
 */
WEIR_API weir_status weir_scheduler_turn(weir_scheduler *scheduler);
/* Returns true if a run has started and has not ended. Thread: any. */
WEIR_API bool weir_scheduler_running(const weir_scheduler *scheduler);
/*
 * Returns true if a run is on and ending: it drains, or it was cut short and waits for work in progress.
 * weir_scheduler_explain_line names what delays the end. Thread: any.
 */
WEIR_API bool weir_scheduler_stopping(const weir_scheduler *scheduler);
/*
 * The clock of the scheduler's runs, ns, for stamps: CLOCK_MONOTONIC, or the virtual time of `sim`. Thread:
 * any; on `sim` where the thread may push.
 */
WEIR_API int64_t weir_scheduler_now(weir_scheduler *scheduler);
/* "cuda: NVIDIA H100", "host", "sim: seed 7", for people. Borrowed while the scheduler lives. Thread: any. */
WEIR_API const char *weir_scheduler_where(const weir_scheduler *scheduler);
typedef enum { WEIR_BACKEND_CUDA = 1, WEIR_BACKEND_HOST, WEIR_BACKEND_SIM } weir_backend;
/* The backend that the scheduler's runs are on; with SIM times are virtual. Thread: any. */
WEIR_API weir_backend weir_scheduler_backend(const weir_scheduler *scheduler);

/*
 * What keeps an entity from being READY: values to act on, and texts for people. verdict: WAIT (for a poke),
 * WAIT_TIME, WAIT_EVENT, NEVER, BUSY (in compute now), or PARKED: all conditions hold, but the entity was not
 * woken. condition: one of the entity's; room behind an output counts as one ("room on out").
 */
typedef struct {
	size_t size;
	const char *entity;
	weir_cause cause;
	const char *on;     /* its port, or the pool; NULL: not known */
	const char *blames; /* the entity that could change it; NULL: none could: a root cause */
	const char *condition, *verdict, *detail;
} weir_unmet;
/* Borrows all for the call. */
typedef void weir_unmet_fn(const weir_unmet *unmet, void *arg);
/*
 * Explains why entities are not ready: calls fn once per unmet condition of every entity that is not DONE,
 * root causes first. Thread: any but a worker. Fails: WEIR_E_INVALID: called on a worker.
 */
WEIR_API weir_status weir_scheduler_explain(weir_scheduler *scheduler, weir_unmet_fn *fn, void *arg);
/*
 * Gives the same as one line: root causes first (entities that are disabled, busy, or wait for a time or for
 * the device; full and empty queues with their numbers; circles with a remedy), then how many entities wait
 * behind them, then inlets that keep the run open. "": no entity waits. Free it with weir_text_free. Thread:
 * any but a worker. Fails: WEIR_E_INVALID: called on a worker.
 */
WEIR_API weir_status weir_scheduler_explain_line(weir_scheduler *scheduler, char **out);

/*
 * Writes the timeline of the last run in Chrome's trace event format (JSON), which Perfetto and
 * chrome://tracing open; docs/profiling.md describes the rows. An old file is replaced when the new one is
 * whole, and stays if it cannot be written; a link is followed; a FIFO must have a reader. *out: how many
 * records were dropped, as there was room for newer ones only; out may be NULL. Thread: one, while no run is
 * on. Fails: WEIR_E_INVALID: options.observe is without WEIR_OBSERVE_TRACE; WEIR_E_STATE: a run is on, or
 * called inside `ended`; WEIR_E_IO; WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_scheduler_write_trace(weir_scheduler *scheduler, const char *path, uint64_t *out);

typedef struct {
	size_t size;
	const char *entity;
	uint64_t ticks, received, emitted, unconnected; /* unconnected: emitted on an optional
							   output without connection */
	bool done;
	uint64_t lost;           /* due ticks that never ran, as counted by its
				    conditions: the periods that `periodic` skips */
	uint64_t most_in_flight; /* most ticks on the device at once; the device is
				    queried rarely, so half of them, and up to 8, may
				    have been complete; 0 without a bound */
	uint64_t most_scratch;   /* most bytes of scratch memory that one tick
				    requested, on all its streams */
	/* weir_context_replay: captured work that was launched again; captures; keys evicted; keys FAILED */
	uint64_t replay_hits, replay_captures, replay_evictions, replay_failures;
	/*
	 * After a run with options.observe: messages that its computes referenced or made, did not
	 * emit, and that nothing has unref'd since; 0 where that cannot be told, since other threads or stop
	 * functions unref'd some as well.
	 */
	uint64_t held;
	uint64_t unsent; /* messages that its instances emitted, and that were not sent, as their turn has not
			    come */
	uint32_t instances; /* how many of its ticks compute at once: 1, or as the graph says */
} weir_entity_counts;
/*
 * At every stop: pushed = delivered + dropped + unmatched + closed + queued + abandoned. With instances
 * delivered counts what they have taken; what waits for one is queued.
 */
typedef struct {
	size_t size;
	const char *from, *to; /* "blur.out" ("inlet" for an inlet), "write.in" ("outlet") */
	uint64_t pushed, delivered, dropped, closed, queued, abandoned;
	uint32_t capacity;
	uint64_t unmatched; /* dropped by a condition `aligned`, as they belong to no other message */
	uint64_t reused;    /* ticks to which it gave the last message again; no part of the sum */
} weir_queue_counts;
/*
 * Snapshots of the current or last run: of the i-th entity. Thread: any. Fails: WEIR_E_INVALID: past the end.
 */
WEIR_API weir_status weir_scheduler_entity_counts(weir_scheduler *scheduler, size_t i,
						  weir_entity_counts *out);
/* Likewise, for each connection, inlet and outlet. Thread: any. Fails: WEIR_E_INVALID: past the end. */
WEIR_API weir_status weir_scheduler_queue_counts(weir_scheduler *scheduler, size_t i, weir_queue_counts *out);
typedef struct {
	size_t size;
	const char *pool;
	int device;          /* a GPU's index, or WEIR_DEVICE_HOST */
	uint64_t block_size; /* 0: a pool with max_size; then the next four are bytes, else blocks */
	uint64_t capacity, used, most_used; /* used: claimed by a tick, or not yet free; most: of this run */
	uint64_t outside; /* that the program took from outlets, and that are not yet free */
	uint64_t allocations, refused, busy; /* of this run: tensors made; claims that had to wait;
						tensors refused with WEIR_E_BUSY */
} weir_pool_counts;
/* Likewise, for each memory pool. Thread: any. Fails: WEIR_E_INVALID: past the end. */
WEIR_API weir_status weir_scheduler_pool_counts(weir_scheduler *scheduler, size_t i, weir_pool_counts *out);
typedef struct {
	size_t size;
	const char *entity; /* the main sink */
	uint64_t frames;    /* messages that its first connected input gave to computes; inputs that give one
			       several times do not count: without another one its ticks */
} weir_frames;
/*
 * The frames of the current or last run: the messages of the main sink. A sink receives messages and sends
 * none; the main one has "main" in its description, else it has the longest way from a source, and of several
 * received most. Thread: any. Fails: WEIR_E_INVALID: there is no sink.
 */
WEIR_API weir_status weir_scheduler_frames(weir_scheduler *scheduler, weir_frames *out);
/*
 * Gives all statistics of the current or last run as JSON text (docs/statistics.md has the format); free it
 * with weir_text_free. With WEIR_OBSERVE_COMPUTE alone it has the counters and the times in compute; times
 * that were not measured are left out, or 0. Thread: any. Fails: WEIR_E_INVALID: options.observe has neither
 * bit.
 */
WEIR_API weir_status weir_scheduler_print_statistics(weir_scheduler *scheduler, char **out);
/*
 * Gives the metrics of the current or last run in the text format of Prometheus (docs/metrics.md), for a
 * program that has an HTTP server; free it with weir_text_free. Counters and queues are always in it, times
 * with options.observe: those in compute with WEIR_OBSERVE_COMPUTE, all with WEIR_OBSERVE_STATISTICS. Thread:
 * any. Fails: WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_scheduler_print_metrics(weir_scheduler *scheduler, char **out);
/*
 * Stops a run that is on and destroys the scheduler. NULL is allowed. Thread: one, and no other thread may be
 * inside or enter a call about the scheduler or its graph's entities, inlets and outlets: before this call,
 * join every thread that may still poke, push or take. Fails: WEIR_E_INVALID: called on a worker of the run;
 * WEIR_E_STATE: called inside `ended`; WEIR_E_ABANDONED: a hung GPU may still touch memory, which was leaked
 * on purpose; the scheduler is gone.
 */
WEIR_API weir_status weir_scheduler_destroy(weir_scheduler *scheduler);

/* ---------------------------------------------------------------------------------- inlets and outlets -- */

/*
 * An inlet is one more connection into an input port ("blur.in"); an outlet takes what an output port
 * ("blur.out") emits. The graph owns both. Add them before the first scheduler of the graph. A port that
 * only an inlet or outlet uses counts as connected. An outlet's capacity (0: as in the graph's "outlets",
 * else 1) must hold what one tick may emit. A graph that names inlets or outlets does not start before all of
 * them are added.
 *
 * A message taken from an outlet is finished: the host may read it at once. Messages come in the order in
 * which they were emitted, so one with long device work delays those behind it. EARLY: messages are given as
 * soon as they are emitted; wait for their weir_message_fences before you touch the payload.
 *
 * Default. Thread: any. Fails: WEIR_E_STATE: the graph has a scheduler.
 */

enum { WEIR_OUTLET_EARLY = 1 }; /* flags of an outlet */
/*
 * Adds an inlet to an input port. Thread: one. Fails: WEIR_E_STATE: the graph has a scheduler;
 * WEIR_E_INVALID: it has no such input.
 */
WEIR_API weir_status weir_graph_add_inlet(weir_graph *graph, const char *port, weir_inlet **out);
/*
 * Adds an outlet to an output port. Thread: one. Fails: WEIR_E_STATE: the graph has a scheduler;
 * WEIR_E_INVALID: it has no such output, or the capacity is too small or above 65536.
 */
WEIR_API weir_status weir_graph_add_outlet(weir_graph *graph, const char *port, uint32_t capacity,
					   unsigned flags, weir_outlet **out);
/*
 * Pushes a message; takes it on OK only. timeout 0: does not wait for room; negative: waits without limit.
 * Fails: WEIR_E_BUSY: no room and timeout 0, or a full `fault` queue; WEIR_E_TIMEOUT; WEIR_E_INVALID: a
 * timeout on a worker, or a kind or a tensor that the port does not accept; WEIR_E_CLOSED: outside a run,
 * during a drain, or the receiver is done.
 */
WEIR_API weir_status weir_inlet_push(weir_inlet *inlet, weir_message *message, int64_t timeout_ns);
/* No more messages in this run; an open inlet keeps the run open. */
WEIR_API void weir_inlet_close(weir_inlet *inlet);
/*
 * Gives a descriptor for the program's own loop. A push with timeout 0 that fails for want of room (policies
 * `block` and `fault`) clears it; it is readable again as soon as there is room, or the inlet is
 * closed: then push again. So a loop waits for room without a thread or a timer. Level-triggered. Made at the
 * first call, which comes before the push, and owned by the inlet: watch it, but do not read or close it.
 * Fails: WEIR_E_IO: no descriptor is left.
 */
WEIR_API weir_status weir_inlet_fd(weir_inlet *inlet, int *out);
/*
 * Gives a message. timeout 0: does not wait; negative: waits without limit. Thread: any but a worker. Fails:
 * WEIR_E_TIMEOUT; WEIR_E_CLOSED: the outlet is empty, and the run has ended or the sender is done;
 * WEIR_E_INVALID: called on a worker.
 */
WEIR_API weir_status weir_outlet_take(weir_outlet *outlet, int64_t timeout_ns, weir_message **out);
/*
 * Gives a descriptor for the program's own loop. It is readable while a take would return at once, with a
 * message or with WEIR_E_CLOSED (the run has ended or the sender is done). Level-triggered; not readable
 * before the first run. Made at the first call and owned by the outlet: watch it, but do not read or close
 * it. Fails: WEIR_E_IO: no descriptor is left.
 */
WEIR_API weir_status weir_outlet_fd(weir_outlet *outlet, int *out);
/*
 * The program takes no more in this run: drops what the outlet holds and what is emitted there from now on,
 * without a wait for its device work. A take fails with WEIR_E_CLOSED. The sender goes on. Outside a run it
 * only drops what the last one left. Thread: any but a worker; destructors of payloads may run.
 */
WEIR_API void weir_outlet_close(weir_outlet *outlet);

/* -------------------------------------------------------------------------------- messages and tensors -- */

/*
 * A message is a counted reference to a payload: nothing, bytes, a tensor, a user's pointer, or named parts,
 * which are messages. It is immutable once emitted, unless weir_message_unique returns true. Messages are
 * pooled by their graph and must not outlive it.
 *
 * Default. Thread: any, by a holder of a reference; create and wrap not while a scheduler is being created
 * for the graph, since that may replace a failed backend. Fails: nothing else.
 */

/* Kinds of messages; as a mask, 0 = any. */
enum {
	WEIR_KIND_EMPTY = 1,
	WEIR_KIND_BYTES = 2,
	WEIR_KIND_TENSOR = 4,
	WEIR_KIND_USER = 8,
	WEIR_KIND_PARTS = 16
};

#define WEIR_DIMENSIONS_MAX 8
#define WEIR_DEVICE_HOST    (-1)
/*
 * A tensor in DLPack's terms. strides: in elements; NULL: dense and row-major. device: WEIR_DEVICE_HOST or a
 * GPU's index.
 */
typedef struct {
	size_t size;
	void *data;
	int32_t device, dimensions; /* at most WEIR_DIMENSIONS_MAX */
	const int64_t *shape, *strides;
	uint8_t code, bits; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool (0 or 1); 8, 16, 32, 64 */
	uint16_t lanes;     /* 0 = 1 */
} weir_tensor;

WEIR_API weir_status weir_message_create_empty(weir_graph *graph, weir_message **out);
/* Bytes of host memory, not cleared; fill them through weir_message_data. */
WEIR_API weir_status weir_message_create_bytes(weir_graph *graph, size_t bytes, weir_message **out);
/*
 * Gives a dense tensor with the shape, type and device of `like` (data and strides are ignored). The memory
 * comes from a pool and is not cleared. Before a scheduler was created only WEIR_DEVICE_HOST works. Fails:
 * WEIR_E_INVALID: no such device, or a shape or type that cannot be.
 */
WEIR_API weir_status weir_message_create_tensor(weir_graph *graph, const weir_tensor *like,
						weir_message **out);
/*
 * Wraps the caller's memory. destroy(arg) runs once, when host and GPU no longer use it: on a worker, on the
 * caller's thread that drops the last reference, or, for messages left by a run or a graph, on the thread
 * that ends it. It never runs on the driver's thread. While no run is on weir has no thread that could see
 * the device finish: what waits for it then is worked off, on the calling thread, by weir_graph_collect and
 * by weir_fence_query, weir_fence_wait, weir_scheduler_pool_counts and the weir_message_unref that frees
 * another payload; by nothing else before the next start. NULL: nothing is called. If the call fails, destroy
 * is not called.
 */
WEIR_API weir_status weir_message_wrap_tensor(weir_graph *graph, const weir_tensor *tensor,
					      void (*destroy)(void *arg), void *arg, weir_message **out);
/* Wraps a pointer that weir does not look into; destroy as above. */
WEIR_API weir_status weir_message_wrap_user(weir_graph *graph, void *pointer, void (*destroy)(void *pointer),
					    weir_message **out);
/* Adds a reference; returns the message. */
WEIR_API weir_message *weir_message_ref(weir_message *message);
/* NULL is allowed. An unref too many is detected where possible and fails the run. */
WEIR_API void weir_message_unref(weir_message *message);
/*
 * Returns true if the caller holds the only reference and no work enqueued by others still reads the payload.
 * The caller may then write in place, ordered after the message's producers. Call it before each write: after
 * a true answer weir counts the caller as a producer of the payload.
 */
WEIR_API bool weir_message_unique(const weir_message *message);
/*
 * Declares that the payload is lent: its owner outside of weir may read it on. Nobody may write it in place
 * from now on: weir_message_unique is false for the message, and for one of parts that has it. Of a message
 * of parts: lends each. Before the message is pushed or emitted. Thread: one, the only holder.
 */
WEIR_API void weir_message_lend(weir_message *message);
/* WEIR_KIND_EMPTY, WEIR_KIND_BYTES, WEIR_KIND_TENSOR, WEIR_KIND_USER or WEIR_KIND_PARTS. */
WEIR_API unsigned weir_message_kind(const weir_message *message);
/* NULL if the payload is not a tensor. */
WEIR_API const weir_tensor *weir_message_tensor(const weir_message *message);
/* Bytes, the tensor's data, or the user's pointer; NULL if empty or made of parts. */
WEIR_API void *weir_message_data(const weir_message *message);
/* Bytes of data; 0 for a user's pointer and for parts. */
WEIR_API size_t weir_message_size(const weir_message *message);
/*
 * Declares that the work before `fence` reads the payload, so that the payload outlives that work. Needed for
 * streams whose use weir does not see. Fails: WEIR_E_INVALID: the fence was never recorded in this graph.
 */
WEIR_API weir_status weir_message_add_reader(weir_message *message, weir_fence fence);
/*
 * For a program outside of ticks: declares that the work before `fence` produces the payload, so that the
 * program need not wait before the push. Gates and device waits of the receivers wait for the fence, and the
 * payload outlives the work. Calls add up; of each stream the latest fence counts. Ticks do not need it: weir
 * knows what they enqueue on its own streams. Fails: WEIR_E_INVALID: the fence was never recorded, or the
 * message was pushed or emitted and weir_message_unique has not returned true since; WEIR_E_FAILED: the
 * program completed the fence with a failure.
 */
WEIR_API weir_status weir_message_add_producer(weir_message *message, weir_fence fence);
/*
 * The fences of the work that produces the payload: returns how many, writes at most `room` of them. For a
 * message of parts whose fences do not fit the number may be too large, since parts may share a stream.
 */
WEIR_API size_t weir_message_fences(const weir_message *message, size_t room, weir_fence *out);

/*
 * A message of named parts travels as one message: it fills one place of a queue and counts once. Its parts
 * are messages of any kind but this one, each with its own device, fences and life. The fences of the whole
 * are those of its parts. What a tick does to the whole (receives it, emits it) holds for each part. A
 * receiver may take a part out, by weir_message_ref, and keep or emit it alone.
 *
 * weir_message_unique is true for the whole if it is for each part (none is referenced elsewhere) and then
 * licenses a write to each; for a part it is false while the whole exists. weir_message_add_reader of the
 * whole concerns each part, weir_message_add_producer too; the latter is refused if a part was pushed or
 * emitted before.
 */

#define WEIR_PARTS_MAX     64
#define WEIR_PART_NAME_MAX 127 /* bytes */
typedef struct {
	size_t size;
	const char *name; /* 1 to WEIR_PART_NAME_MAX bytes, unique in its message; copied */
	weir_message *message;
} weir_part;

/*
 * Gives a message made of 1 to WEIR_PARTS_MAX parts, in this order. Takes one reference of the caller's to
 * each part, on OK only. In compute, pass weir_context_graph(context) and a part of what was received by
 * weir_message_ref. Fails: WEIR_E_INVALID: a name or number that cannot be, a part that has parts, belongs to
 * another graph, or to which the operator holds no reference.
 */
WEIR_API weir_status weir_message_pack(weir_graph *graph, const weir_part *parts, size_t count,
				       weir_message **out);
/* Number of parts; 0 for a message of another kind. */
WEIR_API size_t weir_message_parts(const weir_message *message);
/* The i-th part, and its name; NULL after the last. Borrowed while the message lives. */
WEIR_API weir_message *weir_message_part_at(const weir_message *message, size_t i);
WEIR_API const char *weir_message_part_name(const weir_message *message, size_t i);
/* The part of that name; NULL: none. Borrowed while the message lives. */
WEIR_API weir_message *weir_message_part(const weir_message *message, const char *name);

/*
 * A stamp travels with the data: what a tick emits gets the stamp of the first message of the first input
 * that received any, so that results can be matched to requests and their age is known; with a condition
 * `aligned`, of the earliest message of the set that is new in it. A stamp that was set wins: that of the
 * message, then that of the tick (weir_context_set_stamp). A message that is passed on, and a part of one,
 * keep their own. A part without a stamp gets that of the message in which it is emitted or pushed. {0, 0}:
 * no stamp.
 */
typedef struct {
	int64_t time; /* when the data came to be, ns on the clock of weir_context_now and
			 weir_scheduler_now; latencies are counted from it. 0: unknown */
	uint64_t tag; /* the program's: the number of a frame or of a request */
} weir_stamp;

/*
 * Sets the stamp of a message before it is pushed or emitted. Fails: WEIR_E_INVALID: it was, and
 * weir_message_unique has not returned true since. Thread: one.
 */
WEIR_API weir_status weir_message_set_stamp(weir_message *message, weir_stamp stamp);
WEIR_API weir_stamp weir_message_stamp(const weir_message *message);

/* ------------------------------------------------------------------------------------------ parameters -- */

/*
 * An operator or a condition declares the parameters that a graph file may set. Its start reads them: all
 * declared ones, defaults filled in, types and bounds checked. A call with an undeclared name or the wrong
 * type returns 0, false or "", and the start then fails with WEIR_E_INVALID, naming the entity and the
 * parameter.
 *
 * Default. Thread: owner; those of weir_entity_values: one. Fails: nothing else.
 */

typedef enum {
	WEIR_TYPE_BOOL = 1,
	WEIR_TYPE_INT,
	WEIR_TYPE_NUMBER,
	WEIR_TYPE_STRING,
	WEIR_TYPE_DURATION, /* "10ms", "1.5s", "60Hz", 0 or -1: read with weir_values_int, ns */
	WEIR_TYPE_SIZE,     /* an integer of bytes, or "16MiB": read with weir_values_int, bytes */
	WEIR_TYPE_CHOICE,   /* one of `choices`: read with weir_values_string */
	WEIR_TYPE_INPUT,    /* the name of an input port of the entity: weir_values_int gives its index */
	WEIR_TYPE_OUTPUT,   /* the name of an output port */
	WEIR_TYPE_INPUTS,   /* a name or a list of names of input ports: weir_values_count, weir_values_at */
	WEIR_TYPE_OUTPUTS,
	WEIR_TYPE_NUMBERS, /* a number or a list of numbers: weir_values_count, weir_values_number_at */
	/* Files that the operator reads or writes, "The files of a run" below: weir_values_string */
	WEIR_TYPE_READ_FILE,
	WEIR_TYPE_WRITE_FILE,
	WEIR_TYPE_READ_DESCRIPTOR, /* an open descriptor, -1: none: weir_values_int */
	WEIR_TYPE_WRITE_DESCRIPTOR,
} weir_parameter_type;

/* One parameter of an operator or a condition. */
typedef struct {
	size_t size;
	const char *name;
	weir_parameter_type type;
	const char *fallback; /* the default as JSON text (`3`, `"out"`,
				 `true`); NULL: the parameter is required */
	const char *help;     /* one line: what it means, its unit */
	int64_t min, max;     /* bounds of integers, numbers, durations and sizes; both 0:
				 any that is not negative, or for WEIR_TYPE_INT and
				 WEIR_TYPE_NUMBER any. A max of INT64_MAX: no upper bound.
				 WEIR_TYPE_NUMBERS: bounds of the list's length */
	const char *choices;  /* WEIR_TYPE_CHOICE: "pop|reject|fault". WEIR_TYPE_WRITE_FILE: the
				 parameter with the prefix of the files, if it names a folder */
} weir_parameter;

WEIR_API bool weir_values_bool(const weir_values *values, const char *name);
/* Integers; durations in ns, sizes in bytes; the index of a port. */
WEIR_API int64_t weir_values_int(const weir_values *values, const char *name);
WEIR_API double weir_values_number(const weir_values *values, const char *name);
/* Borrowed while the graph lives. */
WEIR_API const char *weir_values_string(const weir_values *values, const char *name);
/* WEIR_TYPE_INPUTS, WEIR_TYPE_OUTPUTS: the number of ports. WEIR_TYPE_NUMBERS: the length of the list. */
WEIR_API size_t weir_values_count(const weir_values *values, const char *name);
/* Index of the i-th port. */
WEIR_API unsigned weir_values_at(const weir_values *values, const char *name, size_t i);
/* The i-th number of WEIR_TYPE_NUMBERS; 0 after the last. */
WEIR_API double weir_values_number_at(const weir_values *values, const char *name, size_t i);

/*
 * Parses a duration as graph files write it ("10ms", "1.5s", "5min"): gives ns. Thread: any. Fails:
 * WEIR_E_INVALID: it is no duration.
 */
WEIR_API weir_status weir_duration_parse(const char *text, int64_t *out);

/* ------------------------------------------------------------------------------------------- operators -- */

/*
 * The files of a run. What it writes, nothing else in the run may read or write, and what is consumed by
 * reading (a pipe, a descriptor), only one may read: weir_scheduler_start and weir_description_check_files
 * refuse the rest, by device and inode, so that a run destroys nothing. They know the graph's file, the
 * plugins, weir_scheduler_options.files, and of each entity its parameters of the types WEIR_TYPE_READ_FILE
 * and WEIR_TYPE_WRITE_FILE ("": none; "-": standard input or output), and WEIR_TYPE_READ_DESCRIPTOR and
 * WEIR_TYPE_WRITE_DESCRIPTOR (negative: none; else it takes the place of the entity's files of that
 * direction). A descriptor must be one that the process was started with, or a program's that is not
 * close-on-exec. Under a folder with a prefix (weir_parameter.choices) the operator writes files whose names
 * are the prefix and a number. Character devices (/dev/null, terminals) and sockets may be used by any
 * number. weir_context_open compares what it has opened once more.
 */

/* Flags of a port. */
enum {
	WEIR_PORT_OPTIONAL = 1,
	WEIR_PORT_ANY_SIZE = 2,
	WEIR_PORT_DEVICE = 4,
	WEIR_PORT_HOST = 8,
	WEIR_PORT_FULL = 16,
	WEIR_PORT_ONCE = 32
};
typedef enum {
	WEIR_POLICY_BLOCK,
	WEIR_POLICY_POP,
	WEIR_POLICY_REJECT,
	WEIR_POLICY_FAULT,
	WEIR_POLICY_LATEST /* each tick receives the newest finished message; no capacity, no take */
} weir_policy;
#define WEIR_TAKE_ALL UINT32_MAX /* take: all messages that are queued */

/*
 * A port. OPTIONAL: may stay unconnected. Messages emitted on an unconnected output are dropped and counted;
 * an unconnected optional input is always empty. ANY_SIZE (inputs): any number of connections, each with its
 * own queue; `take` counts per queue.
 *
 * By default an input port is a *host* port: what compute receives from it is finished. While the device
 * still works on a message that the next tick would take, the entity waits (its *implied gate*;
 * docs/conditions.md); no thread waits. DEVICE (inputs): compute does not read the payloads on the host, or
 * orders its work behind them with weir_context_stream and similar calls; such a port has no gate.
 * WEIR_OPERATOR_STREAM sets DEVICE for all inputs, HOST clears it for one. "gate" of a port in a graph file
 * overrides all of these.
 *
 * HOST (outputs): the device writes host memory, as download does; weir_description_check warns if such an
 * output leads to a DEVICE input of an operator that is not built in, since its compute may read that memory
 * too early.
 *
 * FULL (outputs): the entity ticks also while a queue behind the port is full, for an operator that does more
 * than emit, as one that answers another machine. Compute emits as many as weir_context_room says; max_emits
 * may be more than the queues behind the port hold. When to tick is for a condition that looks at
 * weir_view_room and at what else there is to do. Not for operators with WEIR_OPERATOR_INSTANCES.
 *
 * `ahead` (outputs): so many messages may be made before the tick that emits them, as by an operator that has
 * given buffers to a device or to another machine. With a memory pool no tick waits for a block then: compute
 * asks for memory by weir_context_reserve. Not for operators with WEIR_OPERATOR_INSTANCES.
 *
 * ONCE (inputs): the entity ticks for other reasons, too, and acts once on each message: the policy `latest`,
 * which gives the newest message to every tick, is refused.
 *
 * `dtype`, `place` and `shape` say what the tensors of the port are, in alternatives: "uint8|float32" (int8
 * to int64, uint8 to uint64, float16 to float64, bfloat16, bool), "host" or "device" (where the memory is;
 * the flags say when it is finished), "[H, W] | [H, W, 1..4]" (at most 8 sizes: a number, a range, or a
 * name). A name is one size, also 0, at all ports of an entity that have it. A dtype or a shape without
 * `kinds` means tensors; messages of other kinds have no type. Refused: a connection whose ends have no
 * tensor in common, and a tensor that is emitted or pushed and does not fit the port, or that of a receiver.
 * There a name is compared within one tensor only.
 *
 * `like` is for outputs that send what an input received, or a copy: a connection from there is compared with
 * what the sender of that input says, through any number of such operators.
 */
typedef struct {
	size_t size;
	const char *name; /* [A-Za-z_][A-Za-z0-9_-]{0,63}; NULL ends the list */
	unsigned flags;
	unsigned kinds;     /* mask of accepted kinds. Refused: a connection between ports with no
			       kind in common and, in a run, a message of another kind */
	uint32_t capacity;  /* inputs: messages per connection; 0 = 1; at most 65536 */
	uint32_t take;      /* inputs: messages that one tick receives; 0 = 1; WEIR_TAKE_ALL */
	uint32_t max_emits; /* outputs: messages that one tick may emit; 0 = 1 */
	weir_policy policy; /* inputs: what happens when a queue is full */
	const char *help;
	const char *dtype; /* NULL: any; so are the next two */
	const char *place;
	const char *shape;
	const char *like; /* outputs: an input, whose dtypes and shapes what is sent here has */
	uint32_t ahead;   /* outputs: tensors made in other ticks than those that emit them, at most */
} weir_port;

/*
 * Flags. STREAM: every tick uses weir_context_stream; the stream is taken before the first tick, and inputs
 * without WEIR_PORT_HOST are device ports. EFFECTS: the operator does more than emit (it writes a file,
 * prints). Its entity ends when its inputs end, even if all receivers of its outputs are done; what it emits
 * for them is dropped and counted `closed`. Without the flag an entity ends once all its receivers are done,
 * and drops what its inputs still hold; how many messages it received before that depends on timing. A graph
 * file can override the flag for an entity ("effects"). PRINTS: it prints lines on standard output, unless it
 * has a boolean parameter `quiet` that is true; other entities may print, but none may write there otherwise.
 * INSTANCES: a tick needs nothing that an earlier tick left in the state, so a graph file may give an entity
 * several instances ("instances"): each has a state, a start and a stop of its own, and their computes run at
 * the same time; weir_context_tick and weir_context_received count the entity's, not the instance's.
 */
enum {
	WEIR_OPERATOR_STREAM = 1,
	WEIR_OPERATOR_EFFECTS = 2,
	WEIR_OPERATOR_PRINTS = 4,
	WEIR_OPERATOR_INSTANCES = 8
};

/*
 * An operator: a const table. The library allocates `state_size` zeroed bytes per entity; with 0 the state
 * that its functions get is NULL.
 *   start    once per run, before the first tick
 *   compute  one tick; must not block on the GPU. Returns weir_context_fail(...) or another failure to end
 *            the run. A failure without a text (a bare `return WEIR_E_IO`) gets a default text; a status
 *            above 0 is refused
 *   stop     once per run that started, after the entity's streams have drained. If the run was cut short and
 *            they are still busy, the thread that starts the next run or destroys the scheduler calls it. It
 *            is never called if the device hangs
 *   progress writes which object the operator waits for and how far its work is, for the line of the log
 * about a wait that is long (`warn_after` of file_descriptor): "nothing comes from standard input: frame 17
 * has 100 of 921600 bytes". At most `room` bytes with the NUL. On a worker, between ticks compute runs on a
 * worker; start on the thread that calls weir_scheduler_start, entity by entity; stop on the thread of the
 * run's loop (weir's own, or the caller's: see weir_scheduler_options). Per entity only one of the three runs
 * at a time. NULL: nothing to do.
 *
 * An operator may *bring conditions*: texts as in "conditions" of a graph file, for example
 * {"type": "file_descriptor"}. Each of its entities has them, unless the graph file gives the entity a
 * condition of that name (without a name: of that type). They are checked when the operator is added, so the
 * conditions of a plugin are added before its operators.
 */
struct weir_operator {
	size_t size;
	const char *name, *help;
	unsigned flags;
	size_t state_size;
	const weir_parameter *parameters; /* ends with a NULL name; NULL = none; likewise the ports */
	const weir_port *inputs, *outputs;
	weir_status (*start)(weir_context *context, void *state, const weir_values *values);
	weir_status (*compute)(weir_context *context, void *state);
	void (*stop)(weir_context *context, void *state);
	const char *const *conditions; /* JSON objects; ends with NULL; NULL = none */
	void (*progress)(const void *state, size_t room, char *out);
	weir_status (*describe)(const weir_values *values, weir_ports *ports);
};

/*
 * Ports that parameters decide: those of a network are its inputs and outputs, the type of a camera's is that
 * of its format. `describe` is called for each entity whenever a graph is checked or made, before anything
 * else looks at its ports, and adds them behind those of the table; one that has the name of a port of the
 * table takes its place. It opens no device and keeps nothing. In a run the indices of ports are in this
 * order. Such an operator has no parameter that names a port, and the conditions that it brings name those
 * of its table alone.
 *
 * Default. Thread: one, that of the check. Fails: WEIR_E_NOMEM.
 */

/*
 * Adds a port; it and its texts are copied. What a table may say may be said here, and is checked as there.
 * Fails: WEIR_E_INVALID: a size that cannot be; WEIR_E_UNSUPPORTED: a field that this library does not know.
 */
WEIR_API weir_status weir_ports_add_input(weir_ports *ports, const weir_port *port);
WEIR_API weir_status weir_ports_add_output(weir_ports *ports, const weir_port *port);
/*
 * Opens a file for reading, as weir_context_open would in a run: beneath the folder of
 * weir_description_set_root, if there is one. Gives a descriptor, which the caller closes; opening does not
 * wait for a FIFO's writer. Fails: WEIR_E_IO: the system's reason is in the text and in errno (EXDEV: the
 * path leads out).
 */
WEIR_API weir_status weir_ports_open(const weir_ports *ports, const char *path, int *out);
/*
 * Says in one line why there can be no ports, or no start anywhere: what is wrong and the remedy. It is an
 * error of the graph (W060), at the entity's parameters. Returns WEIR_E_FAILED.
 */
WEIR_API weir_status weir_ports_fail(weir_ports *ports, const char *format, ...) WEIR_PRINTF(2, 3);

/* --------------------------------------------------------------------- context: what an operator calls -- */

/*
 * The context belongs to one entity; it is valid inside that entity's start, compute and stop. Calls about
 * messages return 0 or NULL outside of compute. "The streams of an operator" below has more of these calls.
 *
 * Default. Thread: owner. Fails: nothing else.
 */

WEIR_API weir_graph *weir_context_graph(weir_context *context);
WEIR_API weir_entity *weir_context_entity(weir_context *context);
/* Number of this tick: the entity's ticks in this run before it. */
WEIR_API uint64_t weir_context_tick(const weir_context *context);
/*
 * How many messages the input had received in this run before this tick: so the number, from 0, of the tick's
 * first one there. With instances all that the entity received, whichever instance got it. No such input: 0.
 * Thread: owner.
 */
WEIR_API uint64_t weir_context_received(const weir_context *context, unsigned input);
/* The run's clock, ns. */
WEIR_API int64_t weir_context_now(const weir_context *context);
/*
 * Returns true if the run is ending: it drains, or it is cut short. A compute that takes long can ask again
 * and again, and return early. In stop it is also true if the run has failed, and false if the run has come
 * to its end by itself.
 */
WEIR_API bool weir_context_stopping(const weir_context *context);
/*
 * Returns true if an operator has drained the run (weir_context_drain), and it was not cut short and has not
 * failed. Then it ends well, as the graph wants it: an operator that tells its end to others may say so.
 */
WEIR_API bool weir_context_drained(const weir_context *context);
/*
 * In stop: why the run has failed, one line, as the outcome will say it: an operator that tells its end to
 * others may pass it on. NULL: it has not failed, or this is no stop. Borrowed until stop returns.
 */
WEIR_API const char *weir_context_failure(const weir_context *context);
/* Messages received by this tick on the input, all queues. */
WEIR_API size_t weir_context_count(const weir_context *context, unsigned input);
/* The i-th of them. Borrowed until compute returns. */
WEIR_API weir_message *weir_context_message(weir_context *context, unsigned input, size_t i);
/*
 * How old a message is that does not come with the others: ns since the one that this tick received on the
 * input was pushed there. Of an input with the policy `latest`, and of one of a condition `aligned` with
 * "reuse" that gives the message again. -1: none came, or it is a new one of any other input.
 */
WEIR_API int64_t weir_context_age(const weir_context *context, unsigned input);
/*
 * How many of them came by the k-th connection of the port; messages are listed connection by connection.
 */
WEIR_API size_t weir_context_queue_count(const weir_context *context, unsigned input, size_t k);
/*
 * The sender of the k-th connection of the port: "read.out", or "inlet" for an inlet; NULL if there is no
 * such connection. Also in start. Lives as long as the graph.
 */
WEIR_API const char *weir_context_sender(const weir_context *context, unsigned input, size_t k);
/*
 * Gives a tensor with the shape and type of `like` on the entity's device or, with WEIR_TENSOR_HOST, in
 * pinned host memory. It lives at least until the work of this tick is complete, even if it is unref'd right
 * after a launch; so it can serve as a temporary. If the entity uses a memory pool of that place, the memory
 * is the pool's: first what the tick claimed (memory_available). Fails: WEIR_E_INVALID: a shape or type that
 * cannot be, or larger than a block of the pool; WEIR_E_BUSY: nothing is left in the pool beside what was
 * claimed: go on without, or fail.
 */
enum { WEIR_TENSOR_HOST = 1 };
WEIR_API weir_status weir_context_create_tensor(weir_context *context, const weir_tensor *like,
						unsigned flags, weir_message **out);
/*
 * Reserves memory for `messages` messages that the entity will make, at most as many as its ports have
 * `ahead`, and returns for how many there is some now: all of them if it uses no memory pool. In each pool
 * that it uses a message is a block, or what its memory_available says. What is reserved stays so in later
 * ticks until a tensor is made of it; fewer than before give the rest back, and the end of the entity all. If
 * it is less than was asked for, the entity is reviewed once memory is free: weir_view_reserved of its
 * condition says so then. In start and compute.
 */
WEIR_API size_t weir_context_reserve(weir_context *context, size_t messages);
/*
 * Emits a message; it is delivered after compute returns OK. Takes one reference of the operator's, also on
 * failure; of a received message pass weir_message_ref(message), or forward it. Fails: WEIR_E_INVALID: no
 * such output, more than max_emits, a kind or a tensor that the port or a receiver does not accept, or the
 * operator holds no reference (then none is taken); WEIR_E_BUSY: no room behind a port with WEIR_PORT_FULL.
 */
WEIR_API weir_status weir_context_emit(weir_context *context, unsigned output, weir_message *message);
/* How many more messages this tick may emit on the output: what fits behind it, at most its max_emits. */
WEIR_API size_t weir_context_room(const weir_context *context, unsigned output);
/* As weir_view_receivers_done. False outside compute. */
WEIR_API bool weir_context_receivers_done(const weir_context *context, unsigned output);
/*
 * Emits the i-th message that this tick received on the input, as weir_context_emit would, with the reference
 * that the tick has of it: nothing is counted up, and down at the tick's end. The message stays borrowed
 * until compute returns, as before, and counts as received. It goes on so once: further outputs get
 * weir_message_ref(message), before or after. Fails: as weir_context_emit; WEIR_E_INVALID: no such message,
 * or it was forwarded already. Then the tick still has its reference.
 */
WEIR_API weir_status weir_context_forward(weir_context *context, unsigned input, size_t i, unsigned output);
/*
 * As weir_context_emit, but the message carries `fence`, an earlier point of this tick than its end: gates
 * and device waits of its receivers wait for the work before the fence alone, while its payload still
 * outlives all work of the tick. Or `fence` is one that the program completes (weir_graph_create_fence): the
 * message is not finished before, and carries what weir_context_emit gives it, too. The fence is one that
 * weir_stream_record gave in this compute, on a stream of this entity; the message carries that stream and no
 * other, also where streams were set for the output. Call it right after the record: the flag of a `flag`
 * signal is written at the call. That nothing enqueued after the fence writes the payload is the operator's
 * word. A message that is also emitted by weir_context_emit carries the end of the tick. Fails: as
 * weir_context_emit; WEIR_E_INVALID: any other fence, or, with one that the program completes, a message that
 * was emitted or pushed and for which weir_message_unique has not returned true since; the failure with which
 * that fence was completed.
 */
WEIR_API weir_status weir_context_emit_at(weir_context *context, unsigned output, weir_message *message,
					  weir_fence fence);
/*
 * Sets the stamp of what this tick emits, before or after it is emitted. A message keeps a stamp of its own
 * (weir_message_set_stamp), and so does one that is passed on. Fails: WEIR_E_INVALID: outside of compute.
 */
WEIR_API weir_status weir_context_set_stamp(weir_context *context, weir_stamp stamp);
/* Makes this tick the entity's last one, e.g. when a source has no more data. Fails: never. */
WEIR_API weir_status weir_context_finish(weir_context *context);
/*
 * Drains the run, as weir_scheduler_stop with WEIR_STOP_DRAIN does: for an operator that ends the whole run.
 * The text says why in one line: weir_outcome.text of a run that ends well, in which the first such line is
 * kept. format NULL: none.
 */
WEIR_API void weir_context_drain(weir_context *context, const char *format, ...) WEIR_PRINTF(2, 3);
/*
 * Drains the run, which then fails with this status and text, as if this compute had returned it: for input
 * that is broken behind what was read well, which is worked off first. This tick is the entity's last one;
 * what it emits is delivered. `return weir_context_fail_after_drain(context, WEIR_E_IO, ...)` returns OK. The
 * first failure of a run is kept; one that comes during the drain cuts it short. Fails: WEIR_E_INVALID:
 * outside of compute, or `failure` is none.
 */
WEIR_API weir_status weir_context_fail_after_drain(weir_context *context, weir_status failure,
						   const char *format, ...) WEIR_PRINTF(3, 4);
/*
 * Holds an input, or with WEIR_HOLD_END lets go of it: while it is held, the ticks that follow this one
 * receive nothing from it and need no message there, so that compute can finish what it took before (a write
 * that the other end does not accept yet). The messages stay queued. Another condition must decide when to
 * tick, as file_descriptor. All inputs are let go at the end of a run. Also in start. Fails: WEIR_E_INVALID:
 * no such input.
 */
enum { WEIR_HOLD_END = 1 };
WEIR_API weir_status weir_context_hold(weir_context *context, unsigned input, unsigned flags);
/*
 * The ticks that follow this one receive at most so many messages from the input, and need no more there;
 * SIZE_MAX: what its `take` says. For an operator that can pass on no more than so many. Also in start. All
 * inputs are without it at the end of a run. Fails: WEIR_E_INVALID: no such input, or 0: that is
 * weir_context_hold; WEIR_E_STATE: one of several instances.
 */
WEIR_API weir_status weir_context_limit(weir_context *context, unsigned input, size_t messages);
/*
 * Returns true if no message comes behind those that this tick received: all senders of the input have
 * closed, and nothing is queued there. False for an unconnected input.
 */
WEIR_API bool weir_context_ended(const weir_context *context, unsigned input);
/* Sets the error text and returns WEIR_E_FAILED: `return weir_context_fail(context, ...)`. */
WEIR_API weir_status weir_context_fail(weir_context *context, const char *format, ...) WEIR_PRINTF(2, 3);
/*
 * Writes a line to the log (weir_log_set): the entity's name, ": " and the text, escaped as
 * weir_text_escape does and cut at 1 KiB, with the run's time. Nothing is formatted while the log is off. A
 * level that is none counts as the nearest one. The run goes on; to end it, weir_context_fail. Also in start
 * and stop. Thread: any, while start, compute or stop runs.
 */
WEIR_API void weir_context_log(weir_context *context, weir_log_level level, const char *format, ...)
	WEIR_PRINTF(3, 4);
/*
 * Tells statistics that this compute has waited so long for a lock that computes of several entities share,
 * as operators in Python share the GIL. `lock` names it: a literal, the same for all of them. May be called
 * several times in a tick. Thread: owner.
 */
WEIR_API void weir_context_count_lock(weir_context *context, const char *lock, int64_t waited_ns);
/*
 * Puts a JSON object of the operator's own into the statistics of the run, as "record" of its entity, in
 * place of the one before; the start of a run forgets it. For what only the operator knows, once a run or
 * seldom: it is checked and copied. Of instances it is that of the one that called last. Also in start and
 * stop. Thread: owner. Fails: WEIR_E_INVALID: it is no object of JSON; WEIR_E_NOMEM.
 */
WEIR_API weir_status weir_context_set_record(weir_context *context, const char *json);
/*
 * open(2) with O_CLOEXEC for paths from a graph file. With options.root, relative paths begin at the root and
 * no path leads out of it: not by "..", not by a link, not as an absolute path elsewhere. A link to an
 * absolute path counts as leading out. Gives a descriptor, which the caller closes. To create or list files
 * in a folder, open the folder and use its descriptor. Also in start. Fails: WEIR_E_IO: the system's reason
 * is in the text and, as a value, in errno (EXDEV: the path leads out); WEIR_E_INVALID: another user of the
 * file stands against it (errno is EBUSY).
 */
WEIR_API weir_status weir_context_open(weir_context *context, const char *path, int flags, unsigned mode,
				       int *out);
/*
 * The name of the entity whose compute the calling thread runs; NULL outside of compute. Borrowed while its
 * graph lives. Takes no lock and allocates nothing, so that a SIGSEGV handler can name the entity. Thread:
 * any, also in a POSIX signal handler.
 */
WEIR_API const char *weir_running_entity(void);
/* Where an address lies; the names are borrowed while the graph lives. */
typedef struct {
	size_t size;
	const char *port;   /* in the message that this tick took from this input; NULL: in none */
	const char *sender; /* which has it from this entity ("read.out") */
	const char *pool;   /* in memory of this pool; NULL: of none, or no message of this tick */
} weir_device_memory;
/*
 * Returns true if the calling thread is inside compute and the address lies in device memory that is closed
 * to the host (weir_scheduler_options.strict). Takes no lock and allocates nothing, so that a SIGSEGV handler
 * can say what was touched. Thread: any, also in a POSIX signal handler.
 */
WEIR_API bool weir_running_device_memory(const void *address, weir_device_memory *out);
/*
 * Sleeps by the clock of the caller's run: virtual on `sim`. Also inside a kernel's host function. Thread:
 * any.
 */
WEIR_API void weir_sleep(int64_t ns);

/* ------------------------------------------------------------------------------------- streams, fences -- */

/*
 * A stream is a queue of device work: of an entity, or of the program outside of ticks. A fence marks the
 * work enqueued on a stream so far.
 *
 * Default. Thread: one; a stream of an entity: owner. Fails: WEIR_E_INVALID: a NULL stream.
 */

/*
 * A kernel: a function for the host and one that launches it on CUDA. host: runs on a thread of the backend
 * and returns 0; any other value faults the stream as a CUDA error does. cuda: enqueues on the cudaStream_t
 * and returns a cudaError_t; a capture that it begins it must also end. A kernel without the function that
 * the backend needs is refused.
 */
typedef struct {
	size_t size;
	const char *name;
	int (*host)(const void *arguments);
	int (*cuda)(void *native_stream, const void *arguments);
} weir_kernel;

#define WEIR_ARGUMENTS_MAX 256 /* bytes */
/*
 * Enqueues the kernel; copies the arguments. Fails: WEIR_E_INVALID: a NULL stream, too many bytes, or the
 * kernel lacks the function that the backend needs.
 */
WEIR_API weir_status weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
					size_t bytes);
/*
 * A copy of `rows` rows (0 or 1: one row) of row_bytes bytes each, between any two devices or host memory,
 * which should be pinned (weir's own is). A plain one: {sizeof(weir_copy), to, from, .row_bytes = bytes}.
 * The strides, in bytes, lead from the begin of a row to that of the next; with several rows each is at least
 * row_bytes and below 2 GiB. The bytes written must not be among those read. No bytes: nothing is copied.
 */
typedef struct {
	size_t size;
	void *to;
	const void *from;
	size_t rows, row_bytes, to_stride, from_stride;
} weir_copy;
/*
 * Flags of weir_stream_copies. ASYNC: refuses pageable host memory, which CUDA copies only while the calling
 * thread waits. Weir's own memory is pinned; the program's is after cudaHostRegister or cudaHostAlloc. On
 * `host` and `sim` no copy makes the caller wait, so nothing is refused.
 */
enum { WEIR_COPY_ASYNC = 1 };
/*
 * Enqueues copies, in their order, and gives one fence for all of them; out NULL: none. All copies are
 * checked before the first is enqueued. If the device then refuses one of them, the error names it, those
 * before it stay enqueued, in the order of the stream, and no fence is given. Source: cudaMemcpyAsync,
 * cudaMemcpy2DAsync. Fails: WEIR_E_INVALID: a NULL stream or address, strides that are too small or too
 * large, memory that overlaps (where strides let it be seen); WEIR_E_UNSUPPORTED: ASYNC and pageable memory.
 */
WEIR_API weir_status weir_stream_copies(weir_stream *stream, const weir_copy *copies, size_t count,
					unsigned flags, weir_fence *out);
/* Gives a fence after all work enqueued so far. */
WEIR_API weir_status weir_stream_record(weir_stream *stream, weir_fence *out);
/*
 * Makes later work of the stream wait, on the device, for the fence; omitted where the order already holds.
 * Fails: WEIR_E_INVALID: a NULL stream, or the fence was never recorded in this graph; WEIR_E_UNSUPPORTED:
 * the program has yet to complete it.
 */
WEIR_API weir_status weir_stream_wait(weir_stream *stream, weir_fence fence);
/*
 * The cudaStream_t on CUDA, else NULL. Work that the owner enqueues on it is seen as weir's own is; so is
 * cudaStreamWaitEvent, which makes later work of the stream wait for an event of the caller's. The handle
 * stays valid until the process exits, since a library may keep it (that of a green context: until the graph
 * is destroyed; that of a wrapped stream is the program's).
 */
WEIR_API void *weir_stream_native(const weir_stream *stream);
/* A GPU's index. */
WEIR_API int weir_stream_device(const weir_stream *stream);
/* Never reused. */
WEIR_API uint64_t weir_stream_id(const weir_stream *stream);
/* Returns true if both are the same queue of the device (the same cudaStream_t), even with different ids. */
WEIR_API bool weir_stream_same(const weir_stream *a, const weir_stream *b);
/*
 * Gives a stream for a program outside of ticks, on every backend: to launch, copy, wait and record. Pass its
 * fences to weir_message_add_producer and weir_message_add_reader. The graph owns the stream, which lives as
 * long as the graph stays on its backend (on `sim`: as long as the scheduler); add one and keep it. On `sim`
 * each call advances the simulated time, inside or outside of a run. Thread: any but a worker. Fails:
 * WEIR_E_INVALID: the graph has no scheduler, no such device, or called on a worker.
 */
WEIR_API weir_status weir_graph_add_stream(weir_graph *graph, int device, weir_stream **out);
/*
 * Gives a stream that stands for one of the caller's (native NULL: CUDA's legacy default stream of that
 * device), which must outlive the graph or be unwrapped first. The wrapped one may be passed to set_stream
 * and synchronize_streams below and so travel with messages. Work that the caller enqueues on it outside of a
 * tick is not fenced automatically: record it and pass the fence to weir_message_add_reader. Thread: any.
 * Fails: WEIR_E_INVALID: the graph has no scheduler, or no such device; WEIR_E_UNSUPPORTED: without CUDA.
 */
WEIR_API weir_status weir_stream_wrap(weir_graph *graph, int device, void *native, weir_stream **out);
/*
 * Ends weir's use of the native stream. NULL is allowed. After the native stream was destroyed, this is the
 * only legal call, between runs: CUDA cannot detect a destroyed stream, so any other use is undefined (an
 * error or a crash). Waits for flags that the last run still has to write on the stream (signal "flag"), for
 * at most a second. Fails: WEIR_E_STATE: a run is on, or an entity uses it (weir_entity_use_stream);
 * WEIR_E_BUSY: work recorded on the stream is not complete; WEIR_E_INVALID: not a wrapped stream.
 */
WEIR_API weir_status weir_stream_unwrap(weir_stream *stream);
/*
 * Makes a stream of the program's, which weir_stream_wrap or weir_graph_add_stream gave, the current one of
 * an entity: its work and the program's are in one queue, in the order in which they are enqueued. The entity
 * works through a view of its own (another id; weir_stream_same is true), and so do several entities with one
 * stream. NULL: back to what the graph says. It stays for all runs of the graph on its backend; meanwhile
 * weir_stream_unwrap is refused. Thread: one. Fails: WEIR_E_STATE: a run is on; WEIR_E_INVALID: no scheduler,
 * another graph or device, or a stream that an operator got.
 */
WEIR_API weir_status weir_entity_use_stream(weir_entity *entity, weir_stream *stream);
/*
 * Returns WEIR_OK if the fence is complete. Thread: any. Fails: WEIR_E_BUSY: not yet; WEIR_E_FAILED: the
 * program completed it with a failure, whose text is the error's; WEIR_E_INVALID: never recorded, of another
 * graph, or stale (weir_graph_create_fence); WEIR_E_DEVICE: the device failed before the fence was seen
 * complete. Then the work before it must not be used. weir_error_last() has cause DEVICE, and as its entity
 * the only one that had unfinished work; NULL: there were several, which the text lists, oldest first.
 */
WEIR_API weir_status weir_fence_query(weir_graph *graph, weir_fence fence);
/*
 * Waits until the fence is complete; a negative timeout: without limit. On a worker, which would run no other
 * entity meanwhile, it is refused: emit the message, so that its receiver's gate waits, or tell the fence to
 * a condition (weir_entity_tell_fence). Thread: any but a worker. Fails: WEIR_E_TIMEOUT; WEIR_E_INVALID:
 * never recorded, or called on a worker; WEIR_E_DEVICE, WEIR_E_FAILED: as weir_fence_query.
 */
WEIR_API weir_status weir_fence_wait(weir_graph *graph, weir_fence fence, int64_t timeout_ns);
/*
 * Makes later work of the caller's cudaStream_t (NULL: the legacy default stream) wait, on the device, for
 * the fence; does nothing if it is complete. Lets the taker of an early outlet continue without a wait on the
 * host; it declares its reading by weir_message_add_reader. Source: cudaStreamWaitEvent. Thread: any. Fails:
 * WEIR_E_UNSUPPORTED: without CUDA, or a fence that the program has yet to complete; WEIR_E_INVALID: never
 * recorded, or no such device.
 */
WEIR_API weir_status weir_fence_enqueue(weir_graph *graph, weir_fence fence, int device, void *native);

/*
 * Gives a fence that the program completes, for work that goes on after compute and that no stream has: of a
 * pool of threads, of a library with callbacks, of another process. An operator emits a message with it
 * (weir_context_emit_at), a program pushes one (weir_message_add_producer). Until it is completed that
 * message is unfinished, as one whose device work goes on: its receivers wait, by gates (also ports without
 * one: a device cannot wait for the program), `cuda_stream` or `fence`; the tick counts as in flight
 * (max_in_flight); what the tick took and made is not freed; a run does not end, and a drain waits. Each
 * fence is completed once, by weir_fence_complete, also after the run: until then the graph can neither be
 * destroyed nor run on another backend. It costs no thread and no device, and works on every backend.
 *
 * The fence is a value that is never given out again in this graph. It is good until it is completed, and as
 * long as a message carries a failure; then until 1,024 fences that no message carries have failed since.
 * From then on it may be stale: calls refuse it with WEIR_E_INVALID, though a message that carries one that
 * was completed well stays finished. Where no fence fails none is stale. Thread: any. Fails: WEIR_E_INVALID:
 * the graph has no scheduler yet; WEIR_E_NOMEM: also, 262,144 are open or carried after they failed.
 */
WEIR_API weir_status weir_graph_create_fence(weir_graph *graph, weir_fence *out);
/*
 * Completes a fence of weir_graph_create_fence: WEIR_OK, the work is done and its result is in the payload;
 * or a failure, with its text, one line, copied (NULL: none). Nothing needs to be locked: what the calling
 * thread has written before is seen by the receivers. `stop` does not wait for fences: an operator's stop is
 * the place to cancel what is left, and to complete it.
 *
 * After a failure no compute takes a message that carries the fence, in any run. The failure ends, with the
 * cause WEIR_CAUSE_COMPUTE:
 * - if a tick of the run has emitted it, that run, as a failure of the entity, drain or not: also if the
 *   taker of an early outlet has the message, or it was dropped;
 * - else, if an entity waits for it, be it for one of several fences, that run, as a failure of the entity;
 *   if none does yet, the run in which one begins to, as a failure of this one;
 * - if it is emitted later, that call of weir_context_emit_at;
 * - if its run has failed, was stopped or is over by then, nothing: a run ends for one reason.
 *
 * Thread: any, also inside compute and inside a host function of a stream (cudaLaunchHostFunc), but not a
 * POSIX signal handler or a child of fork; also while the scheduler is destroyed. Fails: WEIR_E_INVALID: no
 * such fence, completed before, or a status above 0.
 */
WEIR_API weir_status weir_fence_complete(weir_graph *graph, weir_fence fence, weir_status status,
					 const char *text);

/* -------------------------------------------------------------------------- the streams of an operator -- */

/*
 * docs/moving.md has Holoscan's names for these calls. The *current* stream of an entity comes from its
 * pool, is taken at first use and kept for the run. If the pool gives none (no pool, an exhausted one,
 * WEIR_RECEIVE_TAKE_NONE before one was taken), the first stream found in the messages is the current stream
 * of this tick; without one, the device's default stream is. If the current stream was used, every message
 * that the tick emits carries it, so that the receiver knows which stream produced it. The default stream is
 * not carried, unless the entity has "use_default_stream": then it is the current stream and is carried like
 * any other. A stream from these calls belongs to this entity; use it in this entity's calls only. All work
 * enqueued on it is fenced when the tick ends.
 *
 * Default. Thread: owner. Fails: WEIR_E_INVALID: outside of compute, or no such port.
 */

/* Gives the current stream, ordered after all inputs of the tick: receive_stream for every input. */
WEIR_API weir_status weir_context_stream(weir_context *context, weir_stream **out);
/*
 * Gives the current stream, ordered after the streams that the messages of this input carry, and makes the
 * entity's device the thread's current device. Flags. TAKE_NONE: takes no stream from the entity's pool, if
 * none was taken before. SYNC_DEFAULT: orders the device's default stream after them as well, for libraries
 * that use only that stream.
 */
enum { WEIR_RECEIVE_TAKE_NONE = 1, WEIR_RECEIVE_SYNC_DEFAULT = 2 };
WEIR_API weir_status weir_context_receive_stream(weir_context *context, unsigned input, unsigned flags,
						 weir_stream **out);
/*
 * The streams that message i of the input carries, one per queue of the device: returns how many, writes at
 * most `room`. 0: none, or no such message. Synchronizes, allocates and attaches nothing. If memory or the
 * device fails it, weir_context_synchronize_streams fails from then on, and so does the tick when it ends.
 */
WEIR_API size_t weir_context_receive_streams(weir_context *context, unsigned input, size_t i, size_t room,
					     weir_stream **out);
/*
 * Gives another stream of the entity's pool: taken at the first call with that name, kept for the run,
 * carried by no message. Also in start. Fails: WEIR_E_BUSY: the pool is exhausted; WEIR_E_UNSUPPORTED: the
 * entity has no pool. compute may go on after either.
 */
WEIR_API weir_status weir_context_allocate_stream(weir_context *context, const char *name, weir_stream **out);
/*
 * All messages that this tick emits on this output, before or after the call, carry this stream instead of
 * the current one; further calls add streams. Work on their payloads that is on the current stream is then
 * not seen by receivers, unless the current stream is set, too, or the set one was made to wait for it
 * (weir_context_synchronize_streams). Other outputs do not change. The stream may be any of this entity's,
 * one that a message carries, or a wrapped one. A received message that is passed on while others hold
 * references keeps the streams that it carries, unless weir_message_unique returned true for it.
 */
WEIR_API weir_status weir_context_set_stream(weir_context *context, unsigned output, weir_stream *stream);
/*
 * Orders later work of target after the work enqueued so far on the other streams. NULL entries and target
 * itself are skipped. Fails: WEIR_E_INVALID: target is NULL, or a stream is of another graph; the status of
 * a weir_context_receive_streams that failed in this tick.
 */
WEIR_API weir_status weir_context_synchronize_streams(weir_context *context, weir_stream *const *streams,
						      size_t count, weir_stream *target);
/* Gives the default stream of the entity's device, as weir_context_stream does to an entity without a pool.
 */
WEIR_API weir_status weir_context_default_stream(weir_context *context, weir_stream **out);
/*
 * Gives scratch memory on the device of the stream (NULL: the current stream, which is then used as by
 * weir_context_stream), aligned to 256 bytes and not cleared. It is for work of this tick on that stream, or
 * on other streams of the entity that were made to wait for that one meanwhile (weir_stream_wait,
 * weir_context_synchronize_streams). The host must not touch it, and no message may hold it. The end of the
 * tick takes it back without a wait, since the next tick's work on the stream comes after. The same requests
 * get the same addresses in every tick, unless the entity requests more than ever before. 0 bytes: gives
 * NULL. The memory is kept until the entity stops. Fails: WEIR_E_INVALID: outside of compute, or a stream
 * that is not of this entity; WEIR_E_NOMEM: the device has no more memory; compute may go on.
 */
WEIR_API weir_status weir_context_scratch(weir_context *context, weir_stream *stream, size_t bytes,
					  void **out);
/* An allocation on a device. */
typedef struct {
	size_t size;
	/* of no other allocation of the process, also of none that is made later at the same address */
	uint64_t id;
	void *data; /* all of it */
	size_t bytes;
} weir_allocation;
/*
 * Finds the allocation of cudaMalloc that the address lies in, for what is to be registered of it elsewhere
 * (with a network, with another process): that holds for as long as the address gives the same id, whatever
 * is freed meanwhile. It asks the driver, which takes 1 us. false: there is none; other memory, as the
 * host's, that of stream-ordered pools and all on `host` and `sim`, has no such id. Thread: any. Source:
 * cuPointerGetAttributes.
 */
WEIR_API bool weir_context_allocation(const weir_context *context, const void *memory, weir_allocation *out);
/* The device of the entity's pool, on which its current stream and its tensors are. */
WEIR_API int weir_context_device(const weir_context *context);
/*
 * The backend of the run. On WEIR_BACKEND_SIM threads of the operator's own must not drop messages
 * (weir_scheduler_create): what a library frees on its threads is a copy there.
 */
WEIR_API weir_backend weir_context_backend(const weir_context *context);

#define WEIR_REPLAY_KEY_MAX 256 /* bytes */
/*
 * Enqueues the work of a replay on the stream, the current one of the tick. It may be called twice in a tick,
 * or not at all, so it only enqueues: what it reads on the host is that of the tick which was captured.
 */
typedef weir_status weir_enqueue_fn(weir_context *context, weir_stream *stream, void *arg);
/*
 * Enqueues work on the current stream, behind all inputs of the tick: by a call of enqueue or, once a tick
 * has captured what enqueue does for this key, by one launch of that (a CUDA graph; on `host` and `sim` a
 * list). key: 1 to 256 bytes, copied: everything that the work depends on (addresses, shapes, parameters),
 * without padding that is not set. One key is replayed once a tick. Per entity and run a key is COLD for
 * `warm_up` ticks, which call enqueue; the next one captures; then it is READY, or FAILED if the work cannot
 * be captured: that is logged, and enqueue is called in that tick and in each later one. "replay" of the
 * entity in the graph file has the number of keys that are kept; the least recently used one goes.
 *
 * A capture may hold launches, copies, work of libraries on weir_stream_native(stream), and the entity's
 * named streams (allocated before, ordered behind `stream` and before its end again by
 * weir_context_synchronize_streams). Refused in it, so that the key is FAILED: new tensors and messages,
 * fences, waits for anything else, streams of messages, calls of CUDA that synchronize or allocate. Source:
 * cudaStreamBeginCapture, cudaGraphLaunch. Fails: WEIR_E_INVALID: outside of compute, within enqueue, a key
 * of another size, or one that was replayed in this tick; WEIR_E_UNSUPPORTED: the program captures the
 * stream; what enqueue returned.
 */
WEIR_API weir_status weir_context_replay(weir_context *context, const void *key, size_t bytes,
					 weir_enqueue_fn *enqueue, void *arg);

/* ------------------------------------------------------------------------------------------ conditions -- */

typedef enum { WEIR_PHASE_GATHERING, WEIR_PHASE_CONTENT } weir_phase;

/*
 * What weir_entity_tell told a condition. NOTHING until the first tell in this run or before its start.
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
 * A condition: a const table. Only the thread that owns the entity calls it. `ask` reads the view and fills
 * the verdict; it blocks no thread, arms no timer, takes no lock and reads no clock, and it may be called
 * again at any time. A gathering condition looks at the number of queued messages, at time, and at what was
 * told. A content condition looks into the messages that the next tick will receive: it is asked only when
 * all gathering conditions hold, and compute receives exactly what it saw. start: once per run, before the
 * first ask, with a zeroed state. ticked: after each successful compute; weir_view_began returns when that
 * tick began. flags, TIMELESS: its ticked does not use the time, so the clock need not be read when a tick
 * begins.
 */
enum { WEIR_CONDITION_TIMELESS = 1 };
typedef struct {
	size_t size;
	const char *name, *help;
	size_t state_size;
	const weir_parameter *parameters; /* those of type WEIR_TYPE_INPUT(S)/WEIR_TYPE_OUTPUT(S) name the
					     ports that the condition is about */
	weir_phase phase;
	weir_status (*start)(void *state, const weir_values *values);
	void (*ask)(const void *state, weir_view *view, weir_verdict *verdict);
	void (*ticked)(void *state, weir_view *view);
	unsigned flags;
} weir_condition;

/*
 * A program, or an operator, tells a condition (`asynchronous`, `boolean`, `fence`, `file_descriptor`, its
 * own) what happened or what to wait for outside.
 *
 * Default. Thread: any. Fails: WEIR_E_INVALID: no such condition.
 */

/*
 * Tells a condition of the entity something and pokes the entity. condition: its name, or its type if it has
 * no name. Outside a run the value is kept for the next run; it is forgotten when a run ends.
 */
WEIR_API weir_status weir_entity_tell(weir_entity *entity, const char *condition, weir_told told);
/*
 * Tells a `fence` condition of the entity a fence and pokes the entity: the entity waits for the work before
 * it, and no thread does. The fence may be one of the program's streams
 * (weir_stream_record) or one that a message carries (weir_message_fences); {0, 0} is complete. Of several
 * fences that are told while one is waited for, the last counts. Outside a run it is kept for the next run;
 * it is forgotten when a run ends. Thread: any, but not a POSIX signal handler. Fails: WEIR_E_INVALID: no
 * such condition, one of another kind, or the fence was never recorded in this graph.
 */
WEIR_API weir_status weir_entity_tell_fence(weir_entity *entity, const char *condition, weir_fence fence);

/* For weir_entity_watch. An end of file, a closed other end and an error count as readable and writable. */
enum { WEIR_WATCH_READ = 1, WEIR_WATCH_WRITE = 2 };
/*
 * Lets a condition of the entity (`file_descriptor`, or one of the program's own) wait for a descriptor: a
 * pipe, a socket, a timerfd, an eventfd, a device. The entity is not READY until one of `events` holds; no
 * thread waits meanwhile. A regular file is always ready. fd -1: none; events is then 0. One descriptor a
 * condition: a later call replaces the one before. The caller keeps the descriptor and calls this with -1, or
 * with another one, before it closes it; a closed one fails the run. It may be blocking or not: weir does not
 * read or write it. It is watched until the end of the run; outside a run it is kept for the next one.
 * Thread: any, also in start and compute, but not a POSIX signal handler. Fails: WEIR_E_INVALID: no such
 * condition, fd is not open, unknown events.
 */
WEIR_API weir_status weir_entity_watch(weir_entity *entity, const char *condition, int fd, unsigned events);
/* -------------------------------------------------------------------------------- conditions: the view -- */

/*
 * What a condition sees of its entity: ports by index. A port index out of range fails the run.
 *
 * Default. Thread: review.
 */

/*
 * Time of this review; the clock is read once, and only if a condition asks. In ticked: the time after
 * compute.
 */
WEIR_API int64_t weir_view_now(weir_view *view);
/*
 * Only inside ticked: when the tick began, before compute. Equals weir_view_now of the review that found all
 * conditions READY. 0 for a TIMELESS condition.
 */
WEIR_API int64_t weir_view_began(weir_view *view);
/* When the run began, on the same clock. */
WEIR_API int64_t weir_view_started(weir_view *view);
/*
 * Returns true if the run drains. The beginning of the drain pokes the entity: so a condition can let an
 * operator tick that holds an input, which then may let go of it (weir_context_stopping). False in ticked.
 */
WEIR_API bool weir_view_stopping(weir_view *view);
/* What weir_entity_tell last told this condition. */
WEIR_API weir_told weir_view_told(weir_view *view);
/*
 * Returns true if the fence is complete; queries the device. On a lost device it returns true as well, and
 * the entity does not compute any more. Name one that is not complete to weir_verdict_fence.
 */
WEIR_API bool weir_view_fence_complete(weir_view *view, weir_fence fence);
/*
 * What the descriptor is that weir_entity_watch let this condition wait for. Asks the system once (poll), and
 * does not wait. If it is WAITING, say so by weir_verdict_watched.
 */
typedef enum { WEIR_WATCHED_NOTHING, WEIR_WATCHED_WAITING, WEIR_WATCHED_READY } weir_watched;
WEIR_API weir_watched weir_view_watched(weir_view *view);
/* Messages in all queues of the port: inbox + front. */
WEIR_API size_t weir_view_count(weir_view *view, unsigned input);
/* Messages a tick needs: the port's take, 1 for WEIR_TAKE_ALL, 0 while the port is held. */
WEIR_API size_t weir_view_take(weir_view *view, unsigned input);
/* Returns true if the port has a connection, or an inlet. */
WEIR_API bool weir_view_connected(weir_view *view, unsigned input);
/* Returns true if all senders have closed. Call it BEFORE the count: a sender may push, then close, in
 * between. */
WEIR_API bool weir_view_closed(weir_view *view, unsigned input);
/*
 * Returns true if the port can never again hold `needed` messages (0: weir_view_take). Any-size port, where
 * each queue needs that many: some queue's sender has closed and the queue has fewer. Other ports: all
 * senders have closed and the queues together have fewer. Reads "closed" before it counts, so its order with
 * the calls above does not matter. False for an unconnected port.
 */
WEIR_API bool weir_view_ended(weir_view *view, unsigned input, size_t needed);
/* Least room in the port's live `block` queues; SIZE_MAX: no limit. */
WEIR_API size_t weir_view_room(weir_view *view, unsigned output);
/*
 * Returns true if all receivers of the output (at least one) are DONE, so that what is emitted there is
 * dropped, and stays so until the run ends. Their end pokes the entity: with WEIR_OPERATOR_EFFECTS a
 * condition can let it tick then. False if an outlet is one of them.
 */
WEIR_API bool weir_view_receivers_done(weir_view *view, unsigned output);
/*
 * Returns true if more memory is reserved than at the end of the entity's last tick (weir_context_reserve),
 * so that it has a reason to tick. Memory that becomes free for what is lacking pokes the entity.
 */
WEIR_API bool weir_view_reserved(weir_view *view);
/*
 * Content conditions only: the i-th message of the port's front, which the next tick receives; borrowed for
 * the call. NULL after the last.
 */
WEIR_API const weir_message *weir_view_message(weir_view *view, unsigned input, size_t i);
/*
 * Content conditions only: incomplete fences of the front: returns how many, writes at most `room` of them,
 * the latest of each stream.
 */
WEIR_API size_t weir_view_pending(weir_view *view, unsigned input, size_t room, weir_fence *out);

/* ----------------------------------------------------------------------------- conditions: the verdict -- */

/*
 * Each ask gives exactly one of ready, never, wait; several wait calls add up their wake sources. No verdict,
 * or ready or never combined with another, fails the run and names the condition. `why` must stay valid for
 * ever (a literal). Times are absolute.
 *
 * Default. Thread: review.
 */

WEIR_API void weir_verdict_ready(weir_verdict *verdict);
WEIR_API void weir_verdict_never(weir_verdict *verdict, const char *why);
/* Wait without a wake source: until the entity is poked. */
WEIR_API void weir_verdict_wait(weir_verdict *verdict, const char *why);
/*
 * Wait; ask again at this time. If `at` is not after weir_view_now, the condition is asked again once; if it
 * names such a time again, the same or another, the run fails. Give ready when now >= at.
 */
WEIR_API void weir_verdict_until(weir_verdict *verdict, int64_t at);
/* Wait; ask again when the fence is complete. A fence that was never recorded in this graph fails the run. */
WEIR_API void weir_verdict_fence(weir_verdict *verdict, weir_fence fence);
/* Wait for something outside weir; keeps the run open. */
WEIR_API void weir_verdict_external(weir_verdict *verdict);
/* Wait; ask again when the watched descriptor (weir_entity_watch) is ready; keeps the run open. */
WEIR_API void weir_verdict_watched(weir_verdict *verdict);
/*
 * The same, but does not keep the run open: for what an entity still does for others while the rest of its
 * run goes on. If it is all that an entity waits for, the run ends as if the entity were DONE.
 */
WEIR_API void weir_verdict_watched_meanwhile(weir_verdict *verdict);
/*
 * Beside wait or never: what it is for; beside ready it says nothing. Explanations, statistics and reports
 * judge by it, never by `why`. Without it the cause is WEIR_CAUSE_OWN, about the first port that a parameter
 * names. port: the output for WEIR_CAUSE_ROOM, else the input; -1: none. needed: the messages, or the room,
 * that the port must have; 0: what a tick takes or emits. A cause or port that there is not fails the run and
 * names the condition.
 */
WEIR_API void weir_verdict_set_cause(weir_verdict *verdict, weir_cause cause, int port, size_t needed);

/* ----------------------------------------------------------------------------------- registry, plugins -- */

/*
 * A registry holds operators and conditions by name: the built-ins and the added ones. A NULL registry below
 * means the built-ins only. A registry must outlive the graphs made with it, and borrows the added tables
 * until it is destroyed.
 *
 * Default. Thread: one. Fails: WEIR_E_INVALID: a bad table (size, name, ports), or a name in use.
 */

/* Gives a registry with the built-ins. */
WEIR_API weir_status weir_registry_create(weir_registry **out);
WEIR_API weir_status weir_registry_add_operator(weir_registry *registry, const weir_operator *table);
WEIR_API weir_status weir_registry_add_condition(weir_registry *registry, const weir_condition *table);
/*
 * Loads a plugin: a shared object that exports one `weir_plugin` (WEIR_PLUGIN below). What has a '/' or a '.'
 * is its path, of the working directory if it is relative; the linker's search path is not used. Else it is a
 * name: "onnx" is the file libweir_onnx.so in the folder `weir` beside the library that is loaded (beside the
 * program that is linked with the static one). The file must be a regular one, owned by root or the caller,
 * not world-writable. A program linked with the static library must export its symbols (-rdynamic), or
 * plugins do not load. ABI number and struct sizes are checked before any function of the plugin is called.
 * It stays loaded until the registry is destroyed. Fails: WEIR_E_IO: it is not found or cannot be opened;
 * WEIR_E_INVALID: not such a file, another ABI, a name in use; what its function returned.
 */
WEIR_API weir_status weir_registry_load(weir_registry *registry, const char *path);
/* The i-th in order of names; NULL after the last. */
WEIR_API const weir_operator *weir_registry_operator(const weir_registry *registry, size_t i);
WEIR_API const weir_condition *weir_registry_condition(const weir_registry *registry, size_t i);
/* NULL is allowed. */
WEIR_API void weir_registry_destroy(weir_registry *registry);

typedef struct {
	uint32_t abi, size; /* WEIR_ABI, sizeof this struct */
	uint32_t operator_size, condition_size, port_size, parameter_size;
	weir_status (*add)(weir_registry *registry);
} weir_plugin_info;

/* Exports `weir_plugin`, even with hidden visibility. Use it once per plugin, in C, C++ or CUDA C++. */
#define WEIR_PLUGIN(function)                                                                                \
	WEIR_C WEIR_API const weir_plugin_info weir_plugin;                                                  \
	const weir_plugin_info weir_plugin = {WEIR_ABI,                                                      \
					      sizeof(weir_plugin_info),                                      \
					      sizeof(weir_operator),                                         \
					      sizeof(weir_condition),                                        \
					      sizeof(weir_port),                                             \
					      sizeof(weir_parameter),                                        \
					      function}

/* ------------------------------------------------------------------ description: a graph as plain data -- */

/*
 * A description declares a graph: docs/graph-format.md. It can be read from JSON or built by calls, with the
 * same result. Reading one opens no device and starts no thread. What a call adds is checked when the whole
 * description is: by weir_description_check and weir_graph_create.
 *
 * Default. Thread: one. Fails: WEIR_E_INVALID: a name or value that cannot be.
 */

/* An error or a warning, with its place. */
typedef struct {
	size_t size;
	int number;                 /* 12 for W012; docs/errors.md explains each */
	const char *file, *pointer; /* the file's name or NULL; JSON pointer ("/entities/2/operator") */
	unsigned line, column;      /* from 1; 0: not read from a text */
	const char *text;           /* one line: what is wrong and the remedy */
	bool warning;
} weir_diagnostic;
/* Borrows the diagnostic for the call. */
typedef void weir_diagnostic_fn(const weir_diagnostic *diagnostic, void *arg);

/*
 * Reads a file; "-" is standard input. A text of more than max_bytes (0: 256 MiB) is refused. Syntax errors
 * are reported to fn as well (it may be NULL); weir_last_error() returns the first one. Fails: WEIR_E_IO;
 * WEIR_E_INVALID: it is no graph file.
 */
WEIR_API weir_status weir_description_read(const char *path, size_t max_bytes, weir_diagnostic_fn *fn,
					   void *arg, weir_description **out);
/* Likewise, from `length` bytes of JSON, at most 256 MiB. Fails: WEIR_E_INVALID. */
WEIR_API weir_status weir_description_parse(const char *json, size_t length, weir_diagnostic_fn *fn,
					    void *arg, weir_description **out);
/* Gives an empty description. */
WEIR_API weir_status weir_description_create(weir_description **out);
WEIR_API weir_status weir_description_add_entity(weir_description *description, const char *entity,
						 const char *operator_name);
/* "blur.out", "write.in". */
WEIR_API weir_status weir_description_connect(weir_description *description, const char *from,
					      const char *to);
/*
 * Lets a memory pool of the description give away blocks of the caller's, each of block_size bytes and
 * aligned for what is put there, in place of blocks that weir allocates: "/resources/frames" is described as
 * {"type": "memory_pool", "block_size": 4096, "blocks": 2} then, with the size and number of this call. They
 * must stay until the graph is destroyed, and are never freed; the list is copied. Of several calls for one
 * pool the last counts. Fails: WEIR_E_INVALID: no block, or one that is NULL.
 */
WEIR_API weir_status weir_description_set_pool_memory(weir_description *description, const char *pool,
						      size_t block_size, void *const *blocks, size_t count);
/* With reached + claimed blocks a memory pool cannot stall a run, unless operators keep messages. */
typedef struct {
	size_t size;
	const char *pool;
	uint64_t blocks;  /* that it has; 0: it has max_size */
	uint64_t reached; /* messages in all queues, and in instances, that its blocks may reach, when these
			     are full */
	uint64_t claimed; /* what one tick of each user claims, in sum */
} weir_pool_needs;
/*
 * For each memory pool of a description that weir_description_check has passed since its last change. Borrows
 * `pool` until the description changes. Fails: WEIR_E_INVALID: past the end, or it was not checked.
 */
WEIR_API weir_status weir_description_pool_needs(const weir_description *description, size_t i,
						 weir_pool_needs *out);
/* Bytes of the tensors that come to an input, as far as the types of the ports that send them say. */
typedef struct {
	size_t size;
	int64_t least, most; /* of the smallest, of the largest; 0 and INT64_MAX: not known */
} weir_sent_bytes;
/*
 * For an input ("write.in") of a description that weir_description_check has passed since its last change.
 * What may be no tensor, or comes of an inlet, is not known. Thread: any. Fails: WEIR_E_INVALID: there is no
 * such input, or it was not checked.
 */
WEIR_API weir_status weir_description_sent_bytes(const weir_description *description, const char *input,
						 weir_sent_bytes *out);
/*
 * Confines what `describe` of operators opens to a folder, as weir_scheduler_options.root does for a run: set
 * both. NULL: none. Fails: WEIR_E_IO: the folder cannot be opened.
 */
WEIR_API weir_status weir_description_set_root(weir_description *description, const char *root);
/* Lets the entity use the resource; one call per resource. */
WEIR_API weir_status weir_description_use(weir_description *description, const char *entity,
					  const char *resource);
/*
 * Puts a JSON value at a JSON pointer ("/scheduler/workers", "4") and creates missing parents. "-" appends to
 * a list. A resource is put at "/resources/NAME", for example "{\"type\": \"stream_pool\", \"max_size\": 4}".
 */
WEIR_API weir_status weir_description_put(weir_description *description, const char *pointer,
					  const char *json);
/*
 * Applies "entity.param=value". A value that is not JSON is taken as a string. Fails: WEIR_E_INVALID: no such
 * entity; the nearest name is suggested.
 */
WEIR_API weir_status weir_description_set(weir_description *description, const char *assignment);
/*
 * Checks all that can be checked without running. Reports all errors and warnings to fn (it may be NULL), in
 * the order of the text. Fails: WEIR_E_INVALID: there is an error.
 */
WEIR_API weir_status weir_description_check(const weir_description *description,
					    const weir_registry *registry, weir_diagnostic_fn *fn, void *arg);
/*
 * Checks "The files of a run" as weir_scheduler_start does, as far as the description says them: paths begin
 * at the working folder, and of descriptors only the numbers are known. Opens no file for reading or writing.
 * Fails: WEIR_E_INVALID: there is an error, here or in the description.
 */
WEIR_API weir_status weir_description_check_files(const weir_description *description,
						  const weir_registry *registry, weir_diagnostic_fn *fn,
						  void *arg);
typedef enum { WEIR_FORMAT_TEXT, WEIR_FORMAT_JSON, WEIR_FORMAT_DOT } weir_format;
/*
 * Gives the resolved graph, defaults filled in, as text that ends with a newline; free it with
 * weir_text_free. Fails: WEIR_E_INVALID: there is an error.
 */
WEIR_API weir_status weir_description_print(const weir_description *description,
					    const weir_registry *registry, weir_format format, char **out);
/* NULL is allowed. */
WEIR_API void weir_description_destroy(weir_description *description);

#ifdef __cplusplus
}
#endif

#endif
