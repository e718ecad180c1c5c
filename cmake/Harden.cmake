# weir_hardened: the library, the command and the Python module are hardened by default. A damaged stack ends the process
# before a function returns to it, tables of functions are read-only once they are bound, programs are loaded at random
# addresses, and the C library checks the bounds that the compiler knows. Not under sanitizers: they find more, and
# replace the same functions.
option(WEIR_HARDEN "Stack protector, _FORTIFY_SOURCE, full RELRO, position-independent executables" ON)
add_library(weir_hardened INTERFACE)
if(NOT WEIR_HARDEN OR WEIR_SANITIZE)
	return()
endif()

include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_c_compiler_flag(-fstack-clash-protection WEIR_HAS_STACK_CLASH)
check_c_source_compiles("#if !__has_builtin(__builtin_dynamic_object_size)\n#error\n#endif\nint main(void) { return 0; }"
	WEIR_HAS_OBJECT_SIZE)
check_pie_supported(LANGUAGES C)	# links programs with -pie: CMAKE_POSITION_INDEPENDENT_CODE alone only compiles so
set(harden -fstack-protector-strong $<$<BOOL:${WEIR_HAS_STACK_CLASH}>:-fstack-clash-protection>)
set(fortify $<IF:$<BOOL:${WEIR_HAS_OBJECT_SIZE}>,3,2>)	# without optimization it would only warn
target_compile_options(weir_hardened INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${harden}>"
	"$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${fortify}>")
target_link_options(weir_hardened INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
