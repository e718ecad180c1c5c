# Finds cuBLAS and NPP in a CUDA toolkit; NPP also in the folder NPP_ROOT with lib and include, as in NVIDIA's
# wheels. Sets HAVE_CUBLAS and HAVE_NPP, and reports what is missing.
find_package(CUDAToolkit QUIET)
set(NPP_ROOT "" CACHE PATH "A folder with NPP's include and lib, if the CUDA toolkit has none")

find_path(CUBLAS_INCLUDE cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUBLAS_LIBRARY NAMES cublas libcublas.so.13 libcublas.so.12 HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(NPP_INCLUDE nppi_arithmetic_and_logical_operations.h HINTS ${NPP_ROOT} ${CUDAToolkit_INCLUDE_DIRS}
	PATH_SUFFIXES include)
# A wheel has no library names without a version.
foreach(name nppial nppc)
	string(TOUPPER ${name} variable)
	find_library(${variable}_LIBRARY NAMES ${name} lib${name}.so.13 lib${name}.so.12
		HINTS ${NPP_ROOT} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib)
	mark_as_advanced(${variable}_LIBRARY)
endforeach()
mark_as_advanced(CUBLAS_INCLUDE CUBLAS_LIBRARY NPP_INCLUDE)

set(HAVE_CUBLAS OFF)
set(HAVE_NPP OFF)
if(NOT TARGET CUDA::cudart_static)
	message(STATUS "libraries: not built: no CUDA toolkit found")
	return()
endif()
if(CUBLAS_INCLUDE AND CUBLAS_LIBRARY)
	set(HAVE_CUBLAS ON)
else()
	message(STATUS "libraries: gemm is not built: the CUDA toolkit has no cuBLAS (its package libcublas-dev)")
endif()
if(NPP_INCLUDE AND NPPIAL_LIBRARY AND NPPC_LIBRARY)
	set(HAVE_NPP ON)
else()
	message(STATUS "libraries: addc is not built: the CUDA toolkit has no NPP (its package libnpp-dev); or set NPP_ROOT")
endif()
