# Toolchain of the preset aarch64: Debian's cross compiler, the libraries that scripts/install-deps aarch64 unpacks, and QEMU for the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

cmake_path(SET CMAKE_SYSROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)

# By the loader, and not `-L ${CMAKE_SYSROOT}`: that would take each path of the program to be in there if there is such a file, "/" included.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L / ${CMAKE_SYSROOT}/lib/ld-linux-aarch64.so.1
	--library-path ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
