#!/bin/sh
# An installed weir is enough: a program finds it by pkg-config, shared and static, and the installed command
# starts. The links of the installed papers lead somewhere. Arguments: cmake, the build folder, the compiler, python.
set -eu
cmake=$1
build=$2
compiler=$3
python=$4
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

"$cmake" --install "$build" --prefix "$prefix" >/dev/null
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name weir.pc)")
export PKG_CONFIG_PATH
lib=$(pkg-config --variable=libdir weir)
cat >"$prefix/program.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <weir.h>
int main(void)
{
	puts(weir_version());
	return strcmp(weir_version(), WEIR_VERSION) != 0;
}
END

# shellcheck disable=SC2046
"$compiler" -o "$prefix/shared" "$prefix/program.c" $(pkg-config --cflags --libs weir) -Wl,-rpath,"$lib"
# shellcheck disable=SC2046
"$compiler" -o "$prefix/static" "$prefix/program.c" $(pkg-config --cflags --static --libs weir | sed 's/-lweir/-l:libweir.a/')
"$prefix/shared"
"$prefix/static"
abi=$(sed -n 's/^#define WEIR_ABI *\([0-9]*\).*/\1/p' "$prefix/include/weir.h")
readelf -d "$prefix/shared" | grep -q "NEEDED.*\[libweir\.so\.$abi\]"
if readelf -d "$prefix/static" | grep 'NEEDED.*libweir'; then
	echo "linked statically, but needs the shared library" >&2
	exit 1
fi
env -i "$prefix/bin/weir" --version
for plugin in "$lib"/weir/libweir_*.so; do
	[ ! -e "$plugin" ] || env -i "$prefix/bin/weir" operators --plugin "$(basename "${plugin#*/libweir_}" .so)" >/dev/null
done
"$python" -B papers.py "$(dirname "$(find "$prefix" -name CONTRIBUTING.md)")" "$compiler" "-I$prefix/include"
