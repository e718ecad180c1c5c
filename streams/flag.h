/*
 * Flags from the inside (G4): words that the device writes. Thread: owner of the stream, or any where
 * none is named; the lock is taken inside and never held in the backend.
 */
#ifndef WR_STREAMS_FLAG_H
#define WR_STREAMS_FLAG_H

#include "base/thread.h"
#include "streams/streams.h"

#define WR_WORDS 1024		/* a page; each has a cache line of its own */
/* A word that is further behind says nothing: the points would come round to it. */
#define WR_WORD_SPAN (UINT64_C(1) << 30)

struct wr_words_page {
	struct wr_words_page *older;
	struct {
		_Alignas(64) _Atomic uint32_t value;
	} *at;				/* pinned */
};

struct wr_flag_words {
	struct wr_mutex lock;
	struct wr_words_page *pages;	/* the newest first; guarded by lock */
	uint32_t used;			/* of the newest; guarded by lock */
	_Atomic bool on;		/* streams get their words when they are made */
};

weir_status wr_flag_words_init(struct wr_system *system);
void wr_flag_words_finish(struct wr_system *system);
/*
 * A word that is 0, in memory that the device writes, for good; NULL: the device cannot, or there is none.
 * Not on hot paths: it is tried. Fails: WEIR_E_DEVICE. Thread: any.
 */
weir_status wr_flag_word(struct wr_system *system, int device, _Atomic uint32_t **out);
/* Gives it a word if flags are on. Nobody knows the stream yet. */
weir_status wr_flag_open(weir_stream *stream);

#endif
