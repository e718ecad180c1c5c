/*
 * Reads JSON text with jansson.
 *
 * jansson decides what is JSON (syntax, UTF-8, numbers), but it keeps no places, and only the last of two
 * equal keys. So the text is read in three passes: (1) its size and depth are checked before anything is
 * allocated; (2) jansson accepts or refuses it; (3) a scanner of our own walks the valid text, keeps the
 * place of every value and key, and gives the text of each scalar to jansson for its value. After pass 2 the
 * scanner needs no checks of syntax.
 *
 * jansson ignores allocations that fail inside a token: it loses a character, reads past the end of the
 * token, or takes other text for it. So it never sees a failure: while a text is read, jansson allocates from
 * an arena, which is freed at the end, and if memory runs out, longjmp leaves the parser. Calls of jansson by
 * the program itself are not affected.
 */
#include "graphs/json.h"

#include <jansson.h>
#include <setjmp.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/units.h"

enum { BLOCK_BYTES = 8192, ALIGNED = 16 };

struct block {
	struct block *older;
	size_t room, used;
	_Alignas(ALIGNED) char bytes[];
};

/* The memory of one wr_json_read. */
struct arena {
	struct block *newest;
	jmp_buf full;
};

static _Thread_local struct arena *current_arena; /* of this thread, while it is in jansson_load */
static json_malloc_t program_allocates;           /* the functions that were set before */
static json_free_t program_frees;

static struct block *block_new(struct arena *arena, size_t bytes)
{
	size_t room = arena->newest ? 2 * arena->newest->room : BLOCK_BYTES;
	struct block *block;

	if (bytes > room)
		room = bytes;
	block = wr_alloc(1, sizeof *block + room);
	if (!block)
		return NULL;
	block->room = room;
	block->older = arena->newest;
	arena->newest = block;
	return block;
}

static void *arena_allocate(size_t bytes)
{
	struct arena *arena = current_arena;
	struct block *block;

	if (!arena)
		return program_allocates(bytes);
	bytes = (bytes + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
	block = arena->newest;
	if (!block || block->room - block->used < bytes)
		block = block_new(arena, bytes);
	if (!block)
		longjmp(arena->full, 1);
	block->used += bytes;
	return block->bytes + block->used - bytes;
}

static void arena_release(void *memory)
{
	if (!current_arena)
		program_frees(memory);
}

/* Set when the library is loaded and restored when it is unloaded: jansson may stay in the process. */
__attribute__((constructor)) static void hook_jansson(void)
{
	json_get_alloc_funcs(&program_allocates, &program_frees);
	json_set_alloc_funcs(arena_allocate, arena_release);
}

__attribute__((destructor)) static void unhook_jansson(void)
{
	json_malloc_t now;
	json_free_t free_now;

	json_get_alloc_funcs(&now, &free_now);
	if (now == arena_allocate)
		json_set_alloc_funcs(program_allocates, program_frees);
}

/* Frees all blocks; unless `all`, keeps the largest one for the next text. */
static void arena_clear(struct arena *arena, bool all)
{
	struct block *kept = all ? NULL : arena->newest;

	for (struct block *block = kept ? kept->older : arena->newest, *older; block; block = older) {
		older = block->older;
		wr_free(block);
	}
	if (kept)
		kept->older = NULL, kept->used = 0;
	arena->newest = kept;
}

/* The result lives until the next call. Returns NULL on failure; error->source is "" if memory ran out. */
static const json_t *jansson_load(struct arena *arena, const char *text, size_t length, json_error_t *error)
{
	const json_t *json;

	arena_clear(arena, false);
	*error = (json_error_t){.line = 1, .column = 1};
	if (setjmp(arena->full)) {
		current_arena = NULL;
		*error = (json_error_t){.line = 1, .column = 1};
		return NULL;
	}
	current_arena = arena;
	json = json_loadb(text, length, JSON_DECODE_ANY, error);
	current_arena = NULL;
	return json;
}

struct scan {
	const char *at, *end;
	struct wr_place place; /* of *at */
	struct arena *arena;
};

static void scan_step(struct scan *scan)
{
	unsigned char byte = (unsigned char)*scan->at++;

	if (byte == '\n') {
		scan->place.line++;
		scan->place.column = 1;
	} else if (scan->at == scan->end || ((unsigned char)*scan->at & 0xc0) != 0x80) {
		scan->place.column++; /* columns count characters: the next byte begins one */
	}
}

static void skip_string(struct scan *scan)
{
	scan_step(scan);
	while (scan->at < scan->end && *scan->at != '"') {
		if (*scan->at == '\\' && scan->at + 1 < scan->end)
			scan_step(scan);
		scan_step(scan);
	}
	if (scan->at < scan->end)
		scan_step(scan);
}

/*
 * Runs before jansson checks the syntax, so the text may not be JSON. jansson passes over a byte 0 behind a
 * number; one in a string is left to it.
 */
static weir_status check_bytes(const char *text, size_t length, struct wr_reports *reports)
{
	struct scan scan = {text, text + length, {1, 1}, NULL};
	unsigned depth = 0;

	while (scan.at < scan.end) {
		if (*scan.at == '"') {
			skip_string(&scan);
			continue;
		}
		if (*scan.at == '[' || *scan.at == '{')
			depth++;
		else if ((*scan.at == ']' || *scan.at == '}') && depth)
			depth--;
		if (depth > WR_DEPTH_MAX) {
			wr_report(reports, WR_W_DEPTH, NULL, scan.place,
				  "lists and objects are nested more than %d deep: make the graph flatter",
				  WR_DEPTH_MAX);
			return WEIR_E_INVALID;
		}
		if (!*scan.at) {
			wr_report(reports, WR_W_SYNTAX, NULL, scan.place,
				  "not JSON: a byte 0 (is the file UTF-16? save it as UTF-8)");
			return WEIR_E_INVALID;
		}
		scan_step(&scan);
	}
	return WEIR_OK;
}

static weir_status check_size(size_t length, struct wr_reports *reports)
{
	size_t most = reports->text_most ? reports->text_most : WR_FILE_MAX;

	if (length <= most)
		return WEIR_OK;
	wr_report(reports, WR_W_TEXT_SIZE, NULL, (struct wr_place){1, 1},
		  "the text has more than %s: split the graph, or raise the limit (--max-file)",
		  wr_size_shown((int64_t)most).text);
	return WEIR_E_INVALID;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What jansson does not know: what the writer probably meant. */
static const char *syntax_hint(const struct scan *scan, const json_error_t *error)
{
	bool known = error->position > 0 && error->position <= scan->end - scan->at;
	char last = known ? scan->at[error->position - 1] : ' '; /* the begin of the token that was refused */
	const char *at = scan->at;

	if (last == '/' || last == '#')
		return ": JSON has no comments, write \"comment\": \"...\" in an object";
	while (at < scan->end && is_space(*at))
		at++;
	return at == scan->end ? ": the text is empty" : "";
}

static weir_status check_syntax(struct scan *scan, struct wr_reports *reports)
{
	json_error_t error;
	const json_t *json = jansson_load(scan->arena, scan->at, (size_t)(scan->end - scan->at), &error);
	struct wr_place place = {error.line > 0 ? (unsigned)error.line : 1,
				 error.column > 0 ? (unsigned)error.column : 1};

	if (json)
		return WEIR_OK;
	if (!*error.source)
		return wr_fail(WEIR_E_NOMEM, "out of memory");
	wr_report(reports, WR_W_SYNTAX, NULL, place, "not JSON: %s%s",
		  json_error_code(&error) == json_error_null_character ? "\\u0000 cannot be in a string"
								       : wr_shown(error.text).text,
		  syntax_hint(scan, &error));
	return WEIR_E_INVALID;
}

static void skip_blanks(struct scan *scan)
{
	while (scan->at < scan->end && is_space(*scan->at))
		scan_step(scan);
}

/* Converts the text of one scalar. */
static weir_status convert_scalar(struct arena *arena, struct wr_value *out, const char *text, size_t length)
{
	json_error_t error;
	const json_t *json = jansson_load(arena, text, length, &error);

	if (!json)
		return wr_fail(WEIR_E_NOMEM, "out of memory"); /* its syntax is valid */
	if (json_is_string(json))
		return wr_value_string(out, json_string_value(json));
	if (json_is_integer(json))
		*out = (struct wr_value){WR_INTEGER, out->place, {.integer = json_integer_value(json)}};
	else if (json_is_real(json))
		*out = (struct wr_value){WR_REAL, out->place, {.real = json_real_value(json)}};
	else if (json_is_boolean(json))
		*out = (struct wr_value){WR_BOOL, out->place, {.boolean = json_is_true(json)}};
	else
		out->type = WR_NULL;
	return WEIR_OK;
}

static weir_status scan_scalar(struct scan *scan, struct wr_value *out)
{
	const char *begin = scan->at;

	if (*begin == '"')
		skip_string(scan);
	else
		while (scan->at < scan->end && !strchr(" \t\r\n,:]}", *scan->at))
			scan_step(scan);
	return convert_scalar(scan->arena, out, begin, (size_t)(scan->at - begin));
}

static weir_status scan_value(struct scan *scan, struct wr_value *out);

static weir_status scan_member(struct scan *scan, struct wr_value *object)
{
	struct wr_value key = {.place = scan->place}, value = {0};
	weir_status status = scan_scalar(scan, &key);

	skip_blanks(scan);
	scan_step(scan); /* the colon */
	if (!status)
		status = scan_value(scan, &value);
	if (!status)
		status = wr_value_add(object, key.string, key.place, &value);
	if (status) {
		wr_value_finish(&key);
		wr_value_finish(&value);
	}
	return status;
}

static weir_status scan_item(struct scan *scan, struct wr_value *array)
{
	struct wr_value value = {0};
	weir_status status = scan_value(scan, &value);

	if (!status)
		status = wr_value_append(array, &value);
	if (status)
		wr_value_finish(&value);
	return status;
}

static weir_status scan_items(struct scan *scan, struct wr_value *out)
{
	weir_status status = WEIR_OK;

	scan_step(scan);
	skip_blanks(scan);
	while (!status && *scan->at != ']' && *scan->at != '}') {
		status = out->type == WR_ARRAY ? scan_item(scan, out) : scan_member(scan, out);
		skip_blanks(scan);
		if (!status && *scan->at == ',')
			scan_step(scan);
		skip_blanks(scan);
	}
	if (!status)
		scan_step(scan);
	return status || out->type == WR_ARRAY ? status : wr_value_sort(out);
}

/* The recursion is bounded by check_bytes. */
static weir_status scan_value(struct scan *scan, struct wr_value *out)
{
	struct wr_value value;
	weir_status status;

	skip_blanks(scan);
	value = (struct wr_value){.place = scan->place};
	if (*scan->at != '[' && *scan->at != '{')
		status = scan_scalar(scan, &value);
	else
		status = wr_value_container(&value, *scan->at == '[' ? WR_ARRAY : WR_OBJECT);
	if (!status && (value.type == WR_ARRAY || value.type == WR_OBJECT))
		status = scan_items(scan, &value);
	if (status)
		wr_value_finish(&value);
	else
		*out = value;
	return status;
}

/* The byte order mark that some editors begin a text with; none of them counts it as a column. */
static size_t skip_mark(const char *text, size_t length)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};

	return length >= sizeof mark && !memcmp(text, mark, sizeof mark) ? sizeof mark : 0;
}

weir_status wr_json_read(struct wr_value *out, const char *text, size_t length, struct wr_reports *reports)
{
	struct arena arena = {.newest = NULL};
	struct scan scan = {text, text + length, {1, 1}, &arena};
	weir_status status = check_size(length, reports);

	if (!status) { /* what is too long was not read, so `text` may be shorter */
		scan.at += skip_mark(text, length);
		status = check_bytes(scan.at, (size_t)(scan.end - scan.at), reports);
	}
	if (!status)
		status = check_syntax(&scan, reports);
	if (!status)
		status = scan_value(&scan, out);
	arena_clear(&arena, true);
	return status;
}

bool wr_json_is_object(const char *text)
{
	struct wr_reports reports = {0};
	struct wr_value value = {0};
	weir_status status = wr_json_read(&value, text, strlen(text), &reports);
	bool is = !status && !reports.errors && value.type == WR_OBJECT;

	wr_value_finish(&value);
	(void)wr_reports_deliver(&reports, NULL, NULL);
	return is;
}
