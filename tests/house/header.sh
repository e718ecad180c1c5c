#!/bin/sh
# weir.h compiles alone as strict C11 and C++11 without a warning. Arguments: the compiler, the header.
set -eu
compiler=$1
header=$2
warnings="-Wall -Wextra -Wpedantic -Werror -pedantic-errors -fsyntax-only"
for language in "c -std=c11 -Wstrict-prototypes" "c++ -std=c++11"; do
	# shellcheck disable=SC2086
	printf '#include "%s"\n' "$header" | "$compiler" $warnings -x $language -
done
