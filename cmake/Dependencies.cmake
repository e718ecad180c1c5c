# External packages: libevent (the command: its HTTP server, too), jansson and libpng are required, a CUDA toolkit is optional.
set(THREADS_PREFER_PTHREAD_FLAG ON)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)	# a project that adds this folder links them, too
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
foreach(name libevent_core libevent_extra jansson libpng)
	pkg_check_modules(${name} IMPORTED_TARGET GLOBAL ${name})
	if(NOT ${name}_FOUND)
		message(FATAL_ERROR "${name} is missing: run scripts/install-deps")
	endif()
endforeach()

# Finds a toolkit that is not on the PATH, too.
find_program(WEIR_NVCC nvcc HINTS $ENV{CUDA_PATH}/bin $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
mark_as_advanced(WEIR_NVCC)
set(WEIR_WITH_CUDA OFF)
if(WEIR_CUDA AND WEIR_NVCC)
	# Set before the language is enabled: newer toolkits reject CMake 3.25's default.
	set(CMAKE_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING "GPUs to compile for; the last with PTX")
	set(ENV{CUDAARCHS} "${CMAKE_CUDA_ARCHITECTURES}")
	set(CMAKE_CUDA_COMPILER ${WEIR_NVCC})
	set(CMAKE_CUDA_RUNTIME_LIBRARY None)	# linked explicitly, so that it also gets into weir.pc
	include(CheckLanguage)
	check_language(CUDA)
	find_package(CUDAToolkit)
	if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cudart_static AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.5)
		enable_language(CUDA)
		set(CMAKE_CUDA_STANDARD 17)
		# nvcc's output needs two symbols of the C++ runtime: link these statically, not the shared library.
		set(CMAKE_CUDA_IMPLICIT_LINK_LIBRARIES)
		execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libstdc++.a
			OUTPUT_VARIABLE WEIR_CXX_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
		set(WEIR_WITH_CUDA ON)
	endif()
endif()
if(WEIR_CUDA STREQUAL "ON" AND NOT WEIR_WITH_CUDA)
	message(FATAL_ERROR "WEIR_CUDA=ON, but no working CUDA toolkit (12.5 or newer) was found: put its nvcc on the PATH, or use AUTO")
endif()
message(STATUS "CUDA: ${WEIR_WITH_CUDA} ${CUDAToolkit_VERSION}")

# NVTX is header-only: needs no GPU, driver or nvcc.
get_filename_component(toolkit "${WEIR_NVCC}" DIRECTORY)
find_path(WEIR_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${toolkit}/../include)
mark_as_advanced(WEIR_NVTX_INCLUDE)
