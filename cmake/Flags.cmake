# Compiler settings of the project: C11 with the system's extensions, hidden symbols, warnings.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
	set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

find_program(WEIR_CCACHE ccache)
mark_as_advanced(WEIR_CCACHE)
if(WEIR_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
	set(CMAKE_C_COMPILER_LAUNCHER ${WEIR_CCACHE})
	set(CMAKE_CUDA_COMPILER_LAUNCHER ${WEIR_CCACHE})
endif()

# weir_flags: for everything in this tree, tests, examples and bench included; not for users of the library.
add_library(weir_flags INTERFACE)
set(c_flags -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(WEIR_WERROR)
	list(APPEND c_flags -Werror)
endif()
target_compile_options(weir_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${c_flags}>")
target_compile_definitions(weir_flags INTERFACE _GNU_SOURCE $<$<CONFIG:Debug>:WR_DEBUG=1>)

if(WEIR_SANITIZE)
	set(sanitize -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_compile_options(weir_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${sanitize}>")
	target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()

if(WEIR_DELAYS)	# base/delays.h
	target_compile_definitions(weir_flags INTERFACE WR_DELAYS=1)
endif()
include(Harden)
target_link_libraries(weir_flags INTERFACE weir_hardened)

if(WEIR_LTO)
	include(CheckIPOSupported)
	check_ipo_supported(LANGUAGES C)
	set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()
