# Header, both libraries and weir.pc; the command installs itself in cli/.
install(FILES include/weir.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS weir_shared weir_static
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
	ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# weir_pc_folder(OUT FOLDER): as weir.pc writes it, so that a moved prefix still works.
function(weir_pc_folder out folder)
	if(IS_ABSOLUTE ${folder})
		set(${out} ${folder} PARENT_SCOPE)
	else()
		set(${out} "\${prefix}/${folder}" PARENT_SCOPE)
	endif()
endfunction()
weir_pc_folder(WEIR_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
weir_pc_folder(WEIR_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
set(WEIR_PC_PRIVATE "-pthread -ldl -lm")
if(WEIR_WITH_CUDA)
	string(APPEND WEIR_PC_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lstdc++ -lrt")
endif()
configure_file(cmake/weir.pc.in weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
