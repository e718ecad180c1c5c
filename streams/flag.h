/*
 * Completion flags, private part (G4): words that the device writes. Thread: the stream's owner for functions
 * of a stream, else any. The lock is taken inside and never held in a call of the backend.
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
/* Gives the stream a word if flags are on. Called before the stream is visible to other threads. */
weir_status wr_flag_give_word(weir_stream *stream);

#endif
