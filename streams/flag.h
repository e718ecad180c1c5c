/*
 * Completion flags, private part (G4): words that the device writes, and their poller. Thread: the stream's
 * owner for functions of a stream, else any. The lock is taken inside and never held in a call of the
 * backend.
 */
#ifndef WR_STREAMS_FLAG_H
#define WR_STREAMS_FLAG_H

#include "base/thread.h"
#include "streams/streams.h"

#define WR_WORDS 1024 /* per page; each has its own cache line */
/* A word further behind than this is not compared: the 32-bit difference would wrap around. */
#define WR_WORD_SPAN (UINT64_C(1) << 30)

struct wr_words_page {
	struct wr_words_page *older;
	struct {
		_Alignas(64) _Atomic uint32_t value;
	} * at; /* pinned memory */
};

struct wr_flag_words {
	struct wr_mutex lock;
	struct wr_words_page *pages; /* newest first; guarded by lock */
	uint32_t used;               /* in the newest page; guarded by lock */
	_Atomic bool on;             /* a stream gets its word when it is created */
};

weir_status wr_flag_words_init(struct wr_system *system);
void wr_flag_words_finish(struct wr_system *system);
/*
 * *out: a word set to 0 that the device can write; it is freed with the system. NULL if the device cannot
 * write flags or there is no memory. Not on hot paths: it tries a write on the device. Fails: WEIR_E_DEVICE.
 * Thread: any.
 */
weir_status wr_flag_word(struct wr_system *system, int device, _Atomic uint32_t **out);
/* Of a drained stream, so that no write is pending: a flag that was lost leaves the word behind. */
void wr_flag_catch_up(weir_stream *stream);
/* Gives the stream a word if its device can write flags. Thread: the owner. Fails: WEIR_E_DEVICE, NOMEM. */
weir_status wr_flag_give_word(weir_stream *stream);

/*
 * === the poller ===
 *
 * It has no lock: see flag.c. The scheduler's calls are in streams.h.
 */

struct wr_signal;
struct wr_armed_flag;

/* --- estimates: pure functions --- */
#define WR_ESTIMATE_MOST INT64_C(10000000000) /* samples are clamped to [0, 10 s] */

struct wr_estimate {
	int64_t mean, deviation;
	bool known;
};

void wr_estimate_learn(struct wr_estimate *estimate, int64_t sample);
/* For a sample known only as a range: uses the value of the range that is closest to the mean. */
void wr_estimate_learn_between(struct wr_estimate *estimate, int64_t least, int64_t most);
/* Completion is unlikely before this: mean - 2 deviations, at least half the mean. */
int64_t wr_estimate_early(const struct wr_estimate *estimate);
/* Completion is unlikely after this: mean + 2 deviations. */
int64_t wr_estimate_late(const struct wr_estimate *estimate);

/* A wait for one completion. */
struct wr_waiting {
	int64_t since;             /* when the work began */
	int64_t asked;             /* when the wait began */
	bool known;                /* the estimates below are valid */
	int64_t early, mean, late; /* estimated duration of the work */
};

/*
 * Returns when to check again for work that was not complete at `now`; `now` means at once. spins: polling
 * without a pause is worth a core when completion is near. margin: by how much a sleep may overrun.
 */
int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin);

/* --- the poller --- */
struct wr_poller {
	_Atomic(struct wr_signal *) inbox; /* armed, and not yet in the list */
	_Atomic size_t armed;              /* signals in the inbox or the list */
	_Atomic uint64_t version;          /* grows with each signal that is put into the inbox */
	_Atomic bool polling;              /* a thread polls, and owns list, count and room */
	struct wr_armed_flag *list;
	size_t count, room;
	struct wr_estimate lateness; /* of sleeps. Used by the worker that is the poller */
	_Atomic int64_t margin;      /* how much earlier a sleep must end */
	bool spins;                  /* the backend's; tests set it before a run */
	_Atomic bool notes;          /* a span wants to know when flags were seen written */
};

void wr_poller_init(struct wr_poller *poller, bool spins);
void wr_poller_finish(struct wr_poller *poller);
/*
 * Recycles all signals by flag, whose tokens have all ended, once no
 * thread polls any more. Thread: the one that detaches.
 */
void wr_flags_recycle_all(struct wr_system *system);

#endif
