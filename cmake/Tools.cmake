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

# One of `kedge_flags` and, for sources with kernels, `kedge_vector_flags` is linked by every target of ours and by nothing else.
add_library(kedge_common_flags INTERFACE)
target_include_directories(kedge_common_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(kedge_common_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wnull-dereference>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false --expt-relaxed-constexpr>)
if(KEDGE_WERROR)
  target_compile_options(kedge_common_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# Vectors wider than the machine's are passed to inline functions of ours only.
target_compile_options(kedge_common_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside the standard library's own headers when it optimises.
  target_compile_options(kedge_common_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-null-dereference -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds>)
  # Beside a large precompiled header g++ spends a tenth of its time looking for memory to give back.
  target_compile_options(kedge_common_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-expand=400>)
endif()
if(KEDGE_UNITY)
  # A source that another one includes looks like a header, whose classes should not hold what is local to a file.
  target_compile_options(kedge_common_flags INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endif()
target_link_libraries(kedge_common_flags INTERFACE Threads::Threads)
if(KEDGE_FUZZ)
  target_compile_options(kedge_common_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
  target_link_options(kedge_common_flags INTERFACE -fsanitize=address,undefined)
endif()
if(KEDGE_SANITIZE STREQUAL "address")
  target_compile_options(kedge_common_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kedge_common_flags INTERFACE -fsanitize=address,undefined)
elseif(KEDGE_SANITIZE STREQUAL "thread")
  # Kernels run on one thread each and are chosen when the program is loaded, before ThreadSanitizer is ready: kedge_vector_flags is without.
  target_link_options(kedge_common_flags INTERFACE -fsanitize=thread)
elseif(KEDGE_SANITIZE)
  message(FATAL_ERROR "KEDGE_SANITIZE: found \"${KEDGE_SANITIZE}\", wanted address or thread")
endif()

# No fused multiply-add behind our back: the same source gives the same bits on x86_64, aarch64 and the GPU.
add_library(kedge_flags INTERFACE)
target_link_libraries(kedge_flags INTERFACE kedge_common_flags)
if(KEDGE_SANITIZE STREQUAL "thread")
  target_compile_options(kedge_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer -g1)
endif()
target_compile_options(kedge_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

# Loops that are to be vectorised: nobody reads the floating-point exception flags, and multiplications may be fused with additions. The
# order of their sums is fixed by the sources and stays as it is. A loop that begins anywhere can take twice the time: CPUs fetch
# instructions in aligned pieces. g++ would fuse or not by the shape of a loop on x86_64; decoding and training have different loops and
# must get the same bits.
add_library(kedge_vector_flags INTERFACE)
target_link_libraries(kedge_vector_flags INTERFACE kedge_common_flags)
target_compile_options(kedge_vector_flags INTERFACE -fno-trapping-math -ffp-contract=fast -falign-loops=64
  $<$<CXX_COMPILER_ID:GNU>:--param=avoid-fma-max-bits=0>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang forgets, where a template names them, that our vectors may begin at any float; it must not assume otherwise, nor report it.
  target_compile_options(kedge_vector_flags INTERFACE -fmax-type-align=4)
  if(KEDGE_SANITIZE STREQUAL "address")
    target_compile_options(kedge_vector_flags INTERFACE -fno-sanitize=alignment -O0)  # as KEDGE_GLUE_OPTIONS, below
  endif()
endif()

# For what runs seldom: the compiler takes half the time. A precompiled header is good for one level only, so its users share one.
set(KEDGE_GLUE_OPTIONS $<$<CONFIG:Release>:-O1>)
set(KEDGE_TEST_OPTIONS $<$<CONFIG:Release>:-Og>)
if(KEDGE_SANITIZE STREQUAL "address")
  # What AddressSanitizer adds to every access takes clang several times as long to optimise as to write down.
  set(KEDGE_GLUE_OPTIONS -O0)
  set(KEDGE_TEST_OPTIONS -O0)
endif()

# Precompiled for torch-free sources: of the standard library alone, so that a header of ours that changes does not make everything compile again.
set(KEDGE_PLAIN_HEADERS <algorithm> <array> <chrono> <filesystem> <functional> <map> <memory> <optional> <set> <span> <sstream> <string>
  <string_view> <variant> <vector>)
