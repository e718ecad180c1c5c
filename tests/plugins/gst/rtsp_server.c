/*
 * An RTSP server on the loopback that sends a moving picture until it is killed.
 *
 *     rtsp_server PORT    prints "ready" when it listens; rtsp://127.0.0.1:PORT/camera
 */
#include <stdio.h>

#include <gst/rtsp-server/rtsp-server.h>

int main(int count, char **arguments)
{
	GstRTSPMediaFactory *factory;
	GstRTSPMountPoints *mounts;
	GstRTSPServer *server;

	if (count != 2)
		return 2;
	gst_init(NULL, NULL);
	server = gst_rtsp_server_new();
	gst_rtsp_server_set_address(server, "127.0.0.1");
	gst_rtsp_server_set_service(server, arguments[1]);
	factory = gst_rtsp_media_factory_new();
	gst_rtsp_media_factory_set_launch(factory,
					  "( videotestsrc is-live=true pattern=ball ! "
					  "video/x-raw,format=I420,width=320,height=240,framerate=30/1 "
					  "! jpegenc ! rtpjpegpay name=pay0 pt=26 )");
	gst_rtsp_media_factory_set_shared(factory, TRUE);
	mounts = gst_rtsp_server_get_mount_points(server);
	gst_rtsp_mount_points_add_factory(mounts, "/camera", factory);
	g_object_unref(mounts);
	if (!gst_rtsp_server_attach(server, NULL)) {
		fprintf(stderr, "rtsp_server: port %s is in use\n", arguments[1]);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	g_main_loop_run(g_main_loop_new(NULL, FALSE));
	return 0;
}
