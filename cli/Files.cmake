# WEIR_COMMAND_FILES: the command but for its main, for all that have it: the program `weir` and the Python module. The files
# of base/ need nothing but libc and are compiled into these, too: the library does not export them.
include(${CMAKE_CURRENT_LIST_DIR}/../cmake/Embed.cmake)
weir_embed(page_html wr_page_html ${CMAKE_CURRENT_LIST_DIR}/page/report.html)
weir_embed(page_style wr_page_style ${CMAKE_CURRENT_LIST_DIR}/page/report.css)
weir_embed(page_script wr_page_script ${CMAKE_CURRENT_LIST_DIR}/page/report.js)
set(WEIR_COMMAND_FILES check.c command.c crash.c crossing.c event.c findings.c held.c joined.c joint.c json.c kinds.c load.c loads.c log.c metrics.c options.c output.c page.c
	progress.c python.c recorded.c remotes.c report.c root.c run.c say.c signals.c slowest.c standard.c statistics.c summary.c traced.c
	../base/files.c ../base/nearest.c ../base/output.c ../base/units.c ../base/words.c ../remote/address.c)
list(TRANSFORM WEIR_COMMAND_FILES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND WEIR_COMMAND_FILES ${page_html} ${page_style} ${page_script})
