/*
 * libpng reports errors by longjmp. To keep this defined, a function that calls setjmp changes no local
 * variable after it, what must survive is in a struct of the caller, and nothing of weir is called between
 * setjmp and return.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>

#include "operators/path.h"
#include "operators/picture.h"

enum { DEFLATE_MAX = 1032 }; /* the most bytes that one byte of a deflate stream expands to */

struct writer {
	FILE *file;
	png_structp png;
	png_infop info;
	char *text;
};

static bool picture_fail(char *text, const char *reason)
{
	snprintf(text, WR_PICTURE_TEXT, "%s", reason);
	return false;
}

static void on_error(png_structp png, png_const_charp reason)
{
	picture_fail(png_get_error_ptr(png), reason);
	png_longjmp(png, 1);
}

/* libpng corrects what it warns of. */
static void on_warning(png_structp png, png_const_charp reason)
{
	(void)png;
	(void)reason;
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes)
{
	FILE *file = png_get_io_ptr(png);

	if (fread(to, 1, bytes, file) != bytes)
		png_error(png, ferror(file) ? strerror(errno) : "the file ends too early");
}

static void write_bytes(png_structp png, png_bytep from, size_t bytes)
{
	if (fwrite(from, 1, bytes, png_get_io_ptr(png)) != bytes)
		png_error(png, strerror(errno));
}

static void flush_bytes(png_structp png)
{
	if (fflush(png_get_io_ptr(png)))
		png_error(png, strerror(errno));
}

/* ---- reading ---- */

/* Rejects pipes and devices. Takes the descriptor. */
static bool picture_take_file(struct wr_picture *picture, int fd)
{
	struct stat about;

	if (fd < 0)
		return picture_fail(picture->text, wr_path_error(NULL, errno));
	if (fstat(fd, &about) || !S_ISREG(about.st_mode)) {
		close(fd);
		return picture_fail(picture->text, "not a regular file");
	}
	picture->file_size = (size_t)about.st_size;
	picture->file = fdopen(fd, "rb");
	if (picture->file)
		return true;
	close(fd);
	return picture_fail(picture->text, strerror(errno));
}

static bool create_reader(struct wr_picture *picture)
{
	unsigned char signature[8];

	if (fread(signature, 1, sizeof signature, picture->file) != sizeof signature ||
	    png_sig_cmp(signature, 0, sizeof signature))
		return picture_fail(picture->text, "not a PNG file");
	picture->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, picture->text, on_error, on_warning);
	picture->info = picture->png ? png_create_info_struct(picture->png) : NULL;
	return picture->info || picture_fail(picture->text, "out of memory");
}

/* Has libpng convert any format to 8 bits of grey, RGB or RGBA. */
static void request_bytes(png_structp png, png_infop info)
{
	png_byte type = png_get_color_type(png, info);
	bool alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, info, PNG_INFO_tRNS);

	png_set_expand(png);
	png_set_scale_16(png);
	if (alpha && !(type & PNG_COLOR_MASK_COLOR))
		png_set_gray_to_rgb(png);
	png_set_interlace_handling(png);
}

/* A few bytes can claim to be a huge picture: reject it before allocating. */
static void picture_check_size(png_structp png, png_infop info, size_t file_size)
{
	size_t raw = png_get_rowbytes(png, info) * png_get_image_height(png, info);

	if (raw / DEFLATE_MAX > file_size)
		png_error(png, "the file is too short for the size that its header names");
}

static bool picture_read_header(struct wr_picture *picture)
{
	png_structp png = picture->png;
	png_infop info = picture->info;

	if (setjmp(png_jmpbuf(png)))
		return false;
	png_set_read_fn(png, picture->file, read_bytes);
	png_set_sig_bytes(png, 8);
	png_set_user_limits(png, WR_PICTURE_SIDE_MAX, WR_PICTURE_SIDE_MAX);
	png_set_chunk_malloc_max(png, WR_PICTURE_CHUNK_MAX);
	/* Skip texts, profiles and other chunks, whatever sizes they claim. */
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	png_read_info(png, info);
	picture_check_size(png, info, picture->file_size);
	request_bytes(png, info);
	png_read_update_info(png, info);
	picture->image.width = (int32_t)png_get_image_width(png, info);
	picture->image.height = (int32_t)png_get_image_height(png, info);
	picture->image.channels = png_get_channels(png, info);
	return true;
}

bool wr_picture_take(struct wr_picture *picture, int fd)
{
	*picture = (struct wr_picture){0};
	return picture_take_file(picture, fd) && create_reader(picture) && picture_read_header(picture);
}

static void picture_read_rows(png_structp png, struct wr_image image, uint8_t *to)
{
	size_t row = (size_t)image.width * (size_t)image.channels;

	for (int32_t y = 0; y < image.height; y++)
		png_read_row(png, to + (size_t)y * row, NULL);
}

/* An interlaced picture comes in seven passes, each of which fills in more of `to`. */
bool wr_picture_rows(struct wr_picture *picture, uint8_t *to)
{
	png_structp png = picture->png;

	if (setjmp(png_jmpbuf(png)))
		return false;
	if (png_get_interlace_type(png, picture->info) == PNG_INTERLACE_ADAM7)
		for (int pass = 1; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
			picture_read_rows(png, picture->image, to);
	picture_read_rows(png, picture->image, to);
	png_read_end(png, NULL);
	return true;
}

void wr_picture_close(struct wr_picture *picture)
{
	png_structp png = picture->png;
	png_infop info = picture->info;

	png_destroy_read_struct(&png, &info, NULL);
	if (picture->file)
		fclose(picture->file);
	picture->png = picture->info = picture->file = NULL;
}

/* ---- writing ---- */

static bool create_writer(struct writer *writer, int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	writer->file = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!writer->file) {
		picture_fail(writer->text, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	writer->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, writer->text, on_error, on_warning);
	writer->info = writer->png ? png_create_info_struct(writer->png) : NULL;
	return writer->info || picture_fail(writer->text, "out of memory");
}

/* One filter, instead of trying all five on each row: faster, and the files are only a little larger. */
static bool picture_encode(const struct writer *writer, const uint8_t *from, struct wr_image image,
			   int compression)
{
	static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
				    PNG_COLOR_TYPE_RGB_ALPHA};
	size_t row = (size_t)image.width * (size_t)image.channels;

	if (setjmp(png_jmpbuf(writer->png)))
		return false;
	png_set_write_fn(writer->png, writer->file, write_bytes, flush_bytes);
	png_set_user_limits(writer->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_set_compression_level(writer->png, compression);
	png_set_filter(writer->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
	png_set_IHDR(writer->png, writer->info, (png_uint_32)image.width, (png_uint_32)image.height, 8,
		     types[image.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
		     PNG_FILTER_TYPE_DEFAULT);
	png_write_info(writer->png, writer->info);
	for (int32_t y = 0; y < image.height; y++)
		png_write_row(writer->png, from + (size_t)y * row);
	png_write_end(writer->png, writer->info);
	return true;
}

/* Keeps the first error: closing a broken file may fail too. */
static bool close_writer(struct writer *writer, bool written)
{
	bool closed = !fclose(writer->file);

	if (written && !closed)
		picture_fail(writer->text, strerror(errno));
	png_destroy_write_struct(&writer->png, &writer->info);
	return written && closed;
}

bool wr_picture_write(int folder, const char *name, const uint8_t *from, struct wr_image image,
		      int compression, char text[WR_PICTURE_TEXT])
{
	struct writer writer = {.text = text};
	bool written = create_writer(&writer, folder, name);

	if (!writer.file)
		return false;
	if (written)
		written = picture_encode(&writer, from, image, compression);
	if (close_writer(&writer, written))
		return true;
	unlinkat(folder, name, 0);
	return false;
}
