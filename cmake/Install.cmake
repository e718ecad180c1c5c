# Installs the command, the header, both libraries, the docs with their examples, weir.pc and
# weirConfig.cmake. The component `development` is what the Python package has, too.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")	# relative, so that the tree can be moved
set_target_properties(weir_command PROPERTIES INSTALL_RPATH "${CMAKE_INSTALL_RPATH}")
install(TARGETS weir_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES include/weir.h include/weir.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS weir_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development NAMELINK_COMPONENT link)
if(TARGET weir_onnx)
	install(TARGETS weir_onnx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir COMPONENT development)
endif()
if(TARGET weir_gst)	# not in the Python package, which needs nothing of the system
	install(TARGETS weir_gst LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir)
endif()
install(TARGETS weir_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES README.md LICENSE CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN __pycache__ EXCLUDE)

# Builds exactly what is installed: `cmake --build build --target weir_installed && cmake --install build`.
add_custom_target(weir_installed DEPENDS weir_command weir_shared weir_static
	$<$<TARGET_EXISTS:weir_onnx>:weir_onnx> $<$<TARGET_EXISTS:weir_gst>:weir_gst>)

# weir.pc and weirConfig.cmake locate the tree relative to themselves, so `cmake --install --prefix` and moved
# trees work.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
	OUTPUT_VARIABLE WEIR_PC_UP)
set(WEIR_PC_PRIVATE "-pthread -ldl -lm")
set(WEIR_STATIC_LIBRARIES dl m)
if(WEIR_WITH_CUDA)
	string(APPEND WEIR_PC_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lstdc++ -lrt")
	list(APPEND WEIR_STATIC_LIBRARIES ${CUDAToolkit_LIBRARY_DIR}/libcudart_static.a stdc++ rt)
endif()
configure_file(cmake/weir.pc.in weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
configure_package_config_file(cmake/weirConfig.cmake.in weirConfig.cmake INSTALL_DESTINATION ${config}
	PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake DESTINATION ${config}
	COMPONENT development)
