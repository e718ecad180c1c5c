# Makes libweir.so, libweir.a and the seam build for the tests from the rooms' files.
get_property(files GLOBAL PROPERTY WEIR_FILES)
get_property(cuda_files GLOBAL PROPERTY WEIR_CUDA_FILES)

add_library(weir_includes INTERFACE)	# for internal code: includes are relative to the root
target_include_directories(weir_includes INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

add_library(weir_packages INTERFACE)
target_link_libraries(weir_packages INTERFACE PkgConfig::libevent_core PkgConfig::jansson PkgConfig::libpng
	Threads::Threads ${CMAKE_DL_LIBS} m)

# weir_compile(TARGET files...): an object library; both builds of the sources use it.
function(weir_compile target)
	add_library(${target} OBJECT ${ARGN})
	target_link_libraries(${target} PRIVATE weir_flags weir_includes weir_packages)
	target_compile_definitions(${target} PRIVATE $<$<BOOL:${WEIR_NVTX_INCLUDE}>:WEIR_WITH_NVTX=1>)
	target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:C,GNU>:-fno-semantic-interposition>)
endfunction()

# A toolkit's headers are visible only to the files that use them.
if(WEIR_NVTX_INCLUDE)
	set_source_files_properties(${PROJECT_SOURCE_DIR}/trace/nvtx.c PROPERTIES
		COMPILE_OPTIONS -isystem${WEIR_NVTX_INCLUDE})
endif()

# The way of a message and of a wait for the device: there each call counts, and hardly a buffer lies on the stack. Functions
# that have one stay protected.
if(WEIR_HARDEN AND NOT WEIR_SANITIZE)
	foreach(file base/clock.c base/thread.c scheduler/ask.c scheduler/tick.c streams/signal.c streams/stream.c)
		set_property(SOURCE ${PROJECT_SOURCE_DIR}/${file} APPEND PROPERTY COMPILE_OPTIONS -fstack-protector)
	endforeach()
endif()

# weir_seed(OUT FOLDER lists...): copies of the sources, with the seeded bugs of these lists of tests/bugs in as run-time switches. OUT: the
# files to compile.
set(bugs ${PROJECT_SOURCE_DIR}/tests/bugs)
file(GLOB others CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/cli/*.c	# seeded for the command and its tests
	${PROJECT_SOURCE_DIR}/remote/*.c	# for the worlds of tests/remote
	${PROJECT_SOURCE_DIR}/python/*.cpp)	# and for the package (tests/python)
function(weir_seed out folder)
	find_package(Python3 COMPONENTS Interpreter REQUIRED)
	list(TRANSFORM WEIR_ROOMS PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE headers)
	list(TRANSFORM headers APPEND /*.h)
	file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${headers})
	foreach(file ${files} ${headers})
		cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
		list(APPEND names ${file})
		list(APPEND copies ${folder}/${file})
	endforeach()
	list(TRANSFORM others PREPEND ${folder}/ OUTPUT_VARIABLE other_copies)
	list(TRANSFORM others PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE other_files)
	add_custom_command(OUTPUT ${copies} ${other_copies}
		COMMAND ${Python3_EXECUTABLE} -B ${bugs}/seed.py ${PROJECT_SOURCE_DIR} ${folder}
			--names ${bugs}/bugs.txt ${bugs}/mutants.txt --seed ${ARGN} --files ${names} ${others}
		DEPENDS ${bugs}/seed.py ${bugs}/bugs.txt ${bugs}/mutants.txt ${files} ${headers} ${other_files}
		COMMENT "Seeding bugs")
	set_source_files_properties(${folder}/trace/nvtx.c PROPERTIES COMPILE_OPTIONS "-isystem${WEIR_NVTX_INCLUDE}")
	set(${out} ${copies} ${bugs}/bug.c PARENT_SCOPE)
endfunction()

set(objects ${files})
option(WEIR_MUTANTS "Seed tests/bugs/mutants.txt into all builds (scripts/mutants)" OFF)
mark_as_advanced(WEIR_MUTANTS)
if(WEIR_MUTANTS)
	set(mutated ${PROJECT_BINARY_DIR}/mutated)
	set(mutants ${bugs}/mutants.txt)
	weir_seed(objects ${mutated} ${mutants})
endif()
weir_compile(weir_objects ${objects})
target_include_directories(weir_objects BEFORE PRIVATE ${mutated})
if(WEIR_WITH_CUDA)
	target_sources(weir_objects PRIVATE ${cuda_files})
	target_compile_definitions(weir_objects PRIVATE WEIR_WITH_CUDA=1)
	target_compile_options(weir_objects PRIVATE
		"$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-fno-exceptions;$<$<BOOL:${WEIR_WERROR}>:-Werror=all-warnings>>")
	set_target_properties(weir_objects PROPERTIES CUDA_VISIBILITY_PRESET hidden)
	list(GET CUDAToolkit_INCLUDE_DIRS 0 WEIR_CUDA_INCLUDE)
	list(FILTER cuda_files INCLUDE REGEX "streams/cuda/.*\\.c$")
	set_source_files_properties(${cuda_files} PROPERTIES COMPILE_OPTIONS -isystem${WEIR_CUDA_INCLUDE})
	target_link_libraries(weir_packages INTERFACE $<LINK_ONLY:CUDA::cudart_static> ${WEIR_CXX_RUNTIME} rt)
endif()

# All targets are linked as C, those with kernels included.
function(weir_link target)
	set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
	target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
	target_link_libraries(${target} PRIVATE weir_packages $<BUILD_INTERFACE:weir_flags>)
endfunction()

# The library's soname carries the ABI number, so a program that was built before a break does not start with a later one.
file(STRINGS ${PROJECT_SOURCE_DIR}/include/weir.h abi REGEX "^#define WEIR_ABI ")
string(REGEX MATCH "[0-9]+" abi "${abi}")
add_library(weir_shared SHARED $<TARGET_OBJECTS:weir_objects>)
weir_link(weir_shared)
set_target_properties(weir_shared PROPERTIES OUTPUT_NAME weir VERSION ${abi} SOVERSION ${abi}
	LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libweir.map)
target_link_options(weir_shared PRIVATE -Wl,-Bsymbolic-functions
	-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libweir.map)
if(NOT WEIR_SANITIZE)
	target_link_options(weir_shared PRIVATE -Wl,-z,defs)
endif()

add_library(weir_static STATIC $<TARGET_OBJECTS:weir_objects>)
weir_link(weir_static)
set_target_properties(weir_static PROPERTIES OUTPUT_NAME weir)
target_include_directories(weir_static BEFORE PRIVATE ${mutated})

# What plugins need: the header. The same target names as in an installed weir (weirConfig.cmake.in).
add_library(weir_plugin INTERFACE)
target_include_directories(weir_plugin INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
add_library(weir::weir ALIAS weir_shared)
add_library(weir::weir_static ALIAS weir_static)
add_library(weir::plugin ALIAS weir_plugin)

# weir_program(NAME files...): a program of this tree that uses only weir.h and the shared library.
function(weir_program name)
	add_executable(${name} ${ARGN})
	set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
	target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
	target_link_libraries(${name} PRIVATE weir_flags weir_shared)
endfunction()

# The seam build has the seeded bugs of tests/bugs. The coverage build has none, so that the lines of both builds are the same.
set(WEIR_BUGS ${bugs}/bugs.txt CACHE FILEPATH "The seeded bugs of the seam build; /dev/null: none")
mark_as_advanced(WEIR_BUGS)
if(BUILD_TESTING AND PROJECT_IS_TOP_LEVEL)
	set(seam ${PROJECT_BINARY_DIR}/seam)
	weir_seed(objects ${seam} ${WEIR_BUGS} ${mutants})
	weir_compile(weir_seam_objects ${objects})
	target_include_directories(weir_seam_objects BEFORE PRIVATE ${seam})
	target_compile_definitions(weir_seam_objects PRIVATE WR_SEAM=1)
	add_library(weir_seam STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:weir_seam_objects>)
	weir_link(weir_seam)
	target_include_directories(weir_seam BEFORE PUBLIC ${seam})
	target_compile_definitions(weir_seam PUBLIC WR_SEAM=1)
endif()
