# How our own code is compiled: caches and linkers when present, warnings, sanitizers.

find_program(KEDGE_CCACHE ccache)
if(KEDGE_CCACHE)
  # The sloppiness lets ccache work with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${KEDGE_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${KEDGE_CCACHE}")
endif()
find_program(KEDGE_MOLD mold)
if(KEDGE_MOLD AND NOT KEDGE_CUDA)
  add_link_options(-fuse-ld=mold)
endif()

# `kedge_flags` is linked by every target of ours and by nothing else.
add_library(kedge_flags INTERFACE)
target_include_directories(kedge_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(kedge_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wnull-dereference>
  # No fused multiply-add behind our back: the same source gives the same bits on x86_64, aarch64 and the GPU.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-math-errno>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false --expt-relaxed-constexpr>)
if(KEDGE_WERROR)
  target_compile_options(kedge_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Vectors wider than the machine's are passed to inline functions of ours only (psabi). g++ 12 reports the others inside the standard
  # library's own headers when it optimises.
  target_compile_options(kedge_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi -Wno-null-dereference -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds>)
endif()
if(KEDGE_UNITY)
  # A source that another one includes looks like a header, whose classes should not hold what is local to a file.
  target_compile_options(kedge_flags INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endif()
target_link_libraries(kedge_flags INTERFACE Threads::Threads)
if(KEDGE_FUZZ)
  target_compile_options(kedge_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
  target_link_options(kedge_flags INTERFACE -fsanitize=address,undefined)
endif()
if(KEDGE_SANITIZE)
  target_compile_options(kedge_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(kedge_flags INTERFACE -fsanitize=address,undefined)
endif()

# For what runs seldom: the compiler takes half the time. A precompiled header is good for one level only, so its users share one.
set(KEDGE_GLUE_OPTIONS $<$<CONFIG:Release>:-O1>)

# Precompiled for torch-free sources: of the standard library alone, so that a header of ours that changes does not make everything compile again.
set(KEDGE_PLAIN_HEADERS <algorithm> <array> <chrono> <filesystem> <functional> <map> <memory> <optional> <set> <span> <sstream> <string>
  <string_view> <variant> <vector>)
