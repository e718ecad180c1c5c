#!/bin/sh
# A project adds weir as a folder; building the target weir_installed is enough to install it, as in
# scripts/demo. Arguments: cmake, a folder that is kept (so that the next run compiles little), the compiler.
set -eu
cmake=$1
build=$2
compiler=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
log=$build.log

tell() {
	cat "$log"
	exit 1
}
"$cmake" -S "$here/added" -B "$build" -DCMAKE_C_COMPILER="$compiler" -DWEIR="$root" >"$log" || tell
"$cmake" --build "$build" --parallel 2 --target added_shared added_static >>"$log" || tell
"$build/added_shared"
"$build/added_static"

target=$(sed -n 's/.*--target \([a-z_]*\).*/\1/p' "$root/scripts/demo")
"$cmake" --build "$build" --parallel 2 --target "$target" >>"$log" || tell
rm -rf "$build.prefix"
"$cmake" --install "$build" --prefix "$build.prefix" >>"$log" || tell
env -i "$build.prefix/bin/weir" --version
