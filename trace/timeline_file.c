/* Writing a timeline: the head of the file, then all records in the order of time. */
#include <errno.h>

#include "base/status.h"
#include "trace/tracks.h"

static void write_head(struct wr_tracks *tracks, const struct wr_timeline_about *about)
{
	const struct wr_timeline *timeline = tracks->timeline;
	struct wr_chrome *chrome = &tracks->chrome;
	int64_t from = tracks->merge.from;

	wr_chrome_count(chrome, "weir_trace", 1);
	wr_chrome_text(chrome, "version", about->version);
	wr_chrome_text(chrome, "graph", about->graph);
	wr_chrome_text(chrome, "where", about->where);
	wr_chrome_count(chrome, "workers", timeline->workers);
	wr_chrome_count(chrome, "duration_ns", (uint64_t)(timeline->ended_at - timeline->begun_at));
	wr_chrome_count(chrome, "begun_ns", (uint64_t)timeline->begun_at);
	wr_chrome_count(chrome, "dropped_records", tracks->merge.dropped);
	wr_chrome_count(chrome, "from_ns",
			from > timeline->begun_at ? (uint64_t)(from - timeline->begun_at) : 0);
	wr_chrome_events(chrome);
}

static uint64_t write_records(struct wr_tracks *tracks)
{
	struct wr_place place;
	uint64_t count = 0;

	for (; !tracks->chrome.error && !tracks->chrome.text.status && wr_merge_next(&tracks->merge, &place);
	     count++)
		wr_tracks_add(tracks, place);
	return count;
}

weir_status wr_timeline_write(struct wr_timeline *timeline, const struct wr_timeline_about *about, int fd,
			      struct wr_timeline_written *written)
{
	struct wr_tracks tracks;
	weir_status status = wr_tracks_init(&tracks, timeline);

	if (!status) {
		wr_chrome_begin(&tracks.chrome, fd, timeline->begun_at);
		write_head(&tracks, about);
		wr_tracks_name(&tracks);
		*written = (struct wr_timeline_written){write_records(&tracks), tracks.merge.dropped};
		wr_tracks_end(&tracks, timeline->ended_at);
		status = wr_chrome_finish(&tracks.chrome);
	}
	wr_tracks_finish(&tracks);
	if (status == WEIR_E_IO)
		errno = tracks.chrome.error;
	return status;
}
