/*
 * Completion flags (G4): the device writes a fence's timeline value into a word of the stream, at most once
 * per value. This file makes the words, gives them to streams and enqueues the writes; poller.c polls them.
 *
 * Words are compared by their signed 32-bit difference. They are in pages of pinned memory that are freed
 * with the system. A recycled stream keeps its word, and its values go on counting. A word that was not
 * written for a long time (WR_WORD_SPAN) is caught up before the next write.
 *
 * A word has one writer at a time: the thread that gives it out, before others see it; then the device, in
 * stream order; and the stream's owner when it catches the word up, while no write is pending. The device
 * writes it once all earlier work of the stream is visible to the host, so a thread that reads the value also
 * sees the results of that work.
 */
#include "streams/flag.h"

#include "base/memory.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/system.h"

/* --- words --- */

static weir_status words_add_page(struct wr_system *system)
{
	struct wr_flag_words *words = &system->flag_words;
	struct wr_words_page *page = wr_alloc(1, sizeof *page);
	void *memory = NULL;
	weir_status status;

	if (!page)
		return WEIR_E_NOMEM;
	status = wr_device_alloc(system, WEIR_DEVICE_HOST, WR_WORDS * sizeof *page->at, &memory);
	if (status) {
		wr_free(page);
		return status;
	}
	page->at = memory;
	wr_mutex_lock(&words->lock);
	page->older = words->pages;
	words->pages = page;
	words->used = 0;
	wr_mutex_unlock(&words->lock);
	return WEIR_OK;
}

static _Atomic uint32_t *word_next(struct wr_flag_words *words)
{
	_Atomic uint32_t *word = NULL;

	wr_mutex_lock(&words->lock);
	if (words->pages && words->used < WR_WORDS)
		word = &words->pages->at[words->used++].value;
	wr_mutex_unlock(&words->lock);
	return word;
}

static weir_status word_take(struct wr_system *system, _Atomic uint32_t **out)
{
	_Atomic uint32_t *word = word_next(&system->flag_words);

	while (!word) {
		weir_status status = words_add_page(system);

		if (status)
			return status;
		word = word_next(&system->flag_words);
	}
	*out = word;
	return WEIR_OK;
}

static weir_status stream_give_word(weir_stream *stream)
{
	_Atomic uint32_t *word;
	weir_status status = word_take(stream->system, &word);

	if (status)
		return status;
	stream->flag_missed.value = wr_load(&stream->completed); /* read by watch.c only after the word */
	wr_store(word, (uint32_t)stream->flag_missed.value);
	wr_store(&stream->word, word);
	return WEIR_OK;
}

weir_status wr_flag_give_word(weir_stream *stream)
{
	return wr_load(&stream->system->flag_words.on) ? stream_give_word(stream) : WEIR_OK;
}

weir_status wr_flag_word(struct wr_system *system, int device, _Atomic uint32_t **out)
{
	weir_status status = wr_device_can_write_flag(system, device);

	*out = NULL;
	if (!status)
		status = word_take(system, out);
	if (!status)
		wr_store(*out, 0);
	return status == WEIR_E_DEVICE ? status : WEIR_OK; /* without a word the device is queried */
}

bool wr_system_flags(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->flag_words.on);
}

weir_status wr_flag_check(struct wr_system *system)
{
	weir_status status = WEIR_OK;

	for (int device = 0; device < system->devices && !status; device++)
		status = wr_device_can_write_flag(system, device);
	if (!status && !wr_exchange(&system->flag_words.on, true))
		status = words_add_page(system);
	return status;
}

/* --- writing --- */

/*
 * Catches the word up if its last write was long ago. A later record is
 * complete, so that write has been made and none is pending.
 */
static void word_catch_up(weir_stream *stream, uint64_t value)
{
	uint64_t flag_value = wr_load(&stream->flag_value), seen = wr_load(&stream->completed);

	if (value - flag_value > WR_WORD_SPAN && seen > flag_value)
		wr_store(wr_load(&stream->word), (uint32_t)seen);
}

/* Right after a record the stream cannot be in a capture; once it is dirty again it may be. */
static bool stream_can_write_flag(weir_stream *stream)
{
	if (!stream->system->backend->write_flag || (wr_load(&stream->dirty) && wr_stream_capturing(stream)))
		return false;
	return wr_load(&stream->word) || !stream_give_word(stream);
}

weir_status wr_flag_write(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	uint64_t value = wr_load(&stream->submitted);
	weir_status status;

	if (wr_load(&stream->flag_value) >= value)
		return WEIR_OK;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (!stream_can_write_flag(stream))
		return WEIR_OK;
	word_catch_up(stream, value);
	wr_store(&stream->flag_after_record, true);
	status = wr_device_write_flag(system, stream->spec.device, wr_load(&stream->native),
				      wr_load(&stream->word), (uint32_t)value);
	if (!status) {
		struct wr_event *event = wr_stream_event(stream, value);

		wr_store(&event->marks, wr_load(&event->marks) | WR_EVENT_FLAG);
		wr_store(&stream->flag_value, value);
	}
	return status == WEIR_E_DEVICE ? status : WEIR_OK;
}

/* --- life --- */

weir_status wr_flag_words_init(struct wr_system *system)
{
	return wr_mutex_init(&system->flag_words.lock);
}

void wr_flag_words_finish(struct wr_system *system)
{
	struct wr_flag_words *words = &system->flag_words;

	while (words->pages) {
		struct wr_words_page *older = words->pages->older;

		wr_device_release(system, WEIR_DEVICE_HOST, words->pages->at);
		wr_free(words->pages);
		words->pages = older;
	}
	wr_mutex_finish(&words->lock);
}
