# weir_embed(OUT NAME files...): a C file in the build folder with the files, one after the other, as the array of
# bytes wr_NAME, which a NUL ends. Run as a script it writes that file.
if(CMAKE_SCRIPT_MODE_FILE)
	set(hex "")
	foreach(file ${FILES})
		file(READ ${file} part HEX)
		string(APPEND hex ${part})
	endforeach()
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
	string(REGEX REPLACE "(................................................................................)" "\\1\n"
		bytes "${bytes}")
	file(WRITE ${OUT} "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
	return()
endif()

set(WEIR_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(weir_embed out name)
	set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
	add_custom_command(OUTPUT ${file} DEPENDS ${ARGN} ${WEIR_EMBED_SCRIPT} VERBATIM
		COMMAND ${CMAKE_COMMAND} "-DOUT=${file}" "-DNAME=${name}" "-DFILES=${ARGN}" -P ${WEIR_EMBED_SCRIPT})
	set(${out} ${file} PARENT_SCOPE)
endfunction()
