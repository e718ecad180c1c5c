#!/bin/sh
# find_package finds an installed weir that was moved to another folder, shared and static; the installed docs
# have no dead links. Arguments: cmake, weir's build folder, the compiler, python3.
set -eu
cmake=$1
build=$2
compiler=$3
python=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
"$cmake" -S "$here/found" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" &&
	"$cmake" --build "$work/build" >>"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/found_shared"
"$work/build/found_static"
readelf -d "$work/build/found_shared" | grep -q 'NEEDED.*libweir\.so\.[0-9]'
if readelf -d "$work/build/found_static" "$work/build/libfound_plugin.so" | grep 'NEEDED.*libweir'; then
	echo "the static program or the plugin needs the shared library" >&2
	exit 1
fi
papers=$(dirname "$(find "$work/moved/share" -name CONTRIBUTING.md)")
"$python" -B "$here/../house/papers.py" "$papers" "$compiler" -I "$work/moved/include"
