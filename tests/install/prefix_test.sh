#!/usr/bin/env bash
# Libraries and headers under another prefix than the compiler's own: with CMAKE_PREFIX_PATH their headers are compiled with and their libraries linked and
# run with, even where the system has others of the same names. The libraries are made here and hold a function each.
# prefix_test.sh
set -uo pipefail
unset CMAKE_PREFIX_PATH  # of the machine: the folders that are found here are to be known
modules=$(realpath "$(dirname "$0")/../../cmake")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
fail() {
  echo "FAILED: line ${BASH_LINENO[0]}: $1"
  failures=$((failures + 1))
}
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
compiler=${CXX:-g++}
prefix=$folder/prefix
names=(yaml-cpp pcre2-8 utf8proc z)
headers=(yaml-cpp/yaml.h pcre2.h utf8proc.h zlib.h)
mkdir -p "$prefix/lib" project
for i in "${!names[@]}"; do
  mkdir -p "$prefix/include/$(dirname "${headers[i]}")"
  # The comparison of signs would be a warning, hence an error, were this no system header.
  printf '#pragma once\nint ours_%d();\ninline bool warns_%d(int a, unsigned b) { return a < b; }\n' "$i" "$i" >"$prefix/include/${headers[i]}"
  echo "int ours_$i() { return $((i + 1)); }" | "$compiler" -shared -fPIC -x c++ - -Wl,-soname,"libours_$i.so" -o "$prefix/lib/libours_$i.so" || fail 'a library'
  ln -s "libours_$i.so" "$prefix/lib/lib${names[i]}.so"
done
for header in nlohmann/json.hpp boost/beast/core.hpp; do
  mkdir -p "$prefix/include/$(dirname "$header")"
  name=${header%%/*}
  echo "constexpr int ours_$name = 10;" >"$prefix/include/$header"
done
{
  echo '#include <cstdlib>' # finds its C header by #include_next
  printf '#include <%s>\n' "${headers[@]}" nlohmann/json.hpp boost/beast/core.hpp
  echo 'int main() { return ours_0() + ours_1() + ours_2() + ours_3() + ours_nlohmann + ours_boost == 30 ? EXIT_SUCCESS : EXIT_FAILURE; }'
} >project/main.cpp
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(other_prefix LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include(Libraries)
add_executable(ours main.cpp)
foreach(name IN LISTS KEDGE_LIBRARIES)
  target_link_libraries(ours PRIVATE kedge::${name})
endforeach()
target_link_libraries(ours PRIVATE kedge::headers)
file(WRITE "${CMAKE_BINARY_DIR}/folders.txt" "${KEDGE_LIBRARY_FOLDERS}\n")
END
configure() { cmake -S project -B "$1" "${generator[@]}" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_MODULE_PATH="$modules" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" "${@:2}" >log 2>&1; }

configure build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build build >log 2>&1 || { cat log; fail 'a program over libraries of another prefix cannot be built'; }
build/ours || fail "the program does not run with the prefix's libraries"
[ "$(cat build/folders.txt)" = "$prefix/lib" ] || fail "what an installed program must be told of: $(cat build/folders.txt)"

# Where the system's own are used, no folder of the compiler's is named a second time.
if configure plain; then
  grep -E -- '-(I|isystem) ?/usr/include( |")' plain/compile_commands.json && fail '/usr/include is passed to the compiler'
  [ -z "$(cat plain/folders.txt)" ] || fail "folders that the system knows: $(cat plain/folders.txt)"
else
  grep -qE 'is missing: run scripts/setup' log || { cat log; fail 'cmake'; }
  echo 'not checked here: the libraries of the system itself, which are not installed'
fi
exit $((failures > 0))
