/* The formats of pictures that weir has operators for, and their layouts in GStreamer's buffers. */
#include <string.h>

#include "gst.h"

static const struct format formats[] = {
	{"rgb", GST_VIDEO_FORMAT_RGB, 3, 8, false},
	{"bgr", GST_VIDEO_FORMAT_BGR, 3, 8, false},
	{"rgba", GST_VIDEO_FORMAT_RGBA, 4, 8, false},
	{"bgra", GST_VIDEO_FORMAT_BGRA, 4, 8, false},
	{"gray", GST_VIDEO_FORMAT_GRAY8, 1, 8, false},
	{"gray16", G_BYTE_ORDER == G_LITTLE_ENDIAN ? GST_VIDEO_FORMAT_GRAY16_LE : GST_VIDEO_FORMAT_GRAY16_BE,
	 1, 16, false},
	{"nv12", GST_VIDEO_FORMAT_NV12, 1, 8, true},
	{"i420", GST_VIDEO_FORMAT_I420, 1, 8, true},
};

const struct format *format_named(const char *name)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct format *format_of(int64_t channels, int bits)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (formats[i].channels == channels && formats[i].bits == bits)
			return &formats[i];
	return NULL;
}

/* Bytes of a row of the plane, and its rows. */
static size_t plane_row(const GstVideoInfo *info, guint plane)
{
	gint components[GST_VIDEO_MAX_COMPONENTS];

	gst_video_format_info_component(info->finfo, plane, components);
	return (size_t)GST_VIDEO_INFO_COMP_WIDTH(info, components[0]) *
	       (size_t)GST_VIDEO_INFO_COMP_PSTRIDE(info, components[0]);
}

static int plane_rows(const GstVideoInfo *info, guint plane)
{
	gint components[GST_VIDEO_MAX_COMPONENTS];

	gst_video_format_info_component(info->finfo, plane, components);
	return GST_VIDEO_INFO_COMP_HEIGHT(info, components[0]);
}

void format_copy(const GstVideoInfo *info, const struct layout *to, const struct layout *from)
{
	for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(info); plane++) {
		size_t bytes = plane_row(info, plane);
		for (int row = 0; row < plane_rows(info, plane); row++)
			memcpy(to->planes[plane] + (ptrdiff_t)row * to->strides[plane],
			       from->planes[plane] + (ptrdiff_t)row * from->strides[plane], bytes);
	}
}

struct layout format_dense(const GstVideoInfo *info, uint8_t *data)
{
	struct layout layout = {{NULL}, {0}};

	for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(info); plane++) {
		layout.planes[plane] = data;
		layout.strides[plane] = (int)plane_row(info, plane);
		data += plane_row(info, plane) * (size_t)plane_rows(info, plane);
	}
	return layout;
}

size_t format_dense_bytes(const GstVideoInfo *info)
{
	size_t bytes = 0;

	for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(info); plane++)
		bytes += plane_row(info, plane) * (size_t)plane_rows(info, plane);
	return bytes;
}
