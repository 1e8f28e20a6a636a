# LibTorch as one imported target, `kedge::torch`, straight on the wheel's libraries: find_package(Torch) would demand the CUDA toolkit
# the wheel was built with even for a CPU build. Wants KEDGE_TORCH, a folder with include/ and lib/, and KEDGE_CUDA. kedge's own build
# and the installed package (kedgeConfig.cmake) both read this file, so that a program is linked the same way in either.
add_library(kedge::torch INTERFACE IMPORTED GLOBAL)
target_include_directories(kedge::torch SYSTEM INTERFACE "${KEDGE_TORCH}/include" "${KEDGE_TORCH}/include/torch/csrc/api/include")
# libtorch_cpu.so wants the CUDA runtime even on a machine without a GPU; in a wheel it lies beside torch, installed among its libraries.
target_link_options(kedge::torch INTERFACE
  "LINKER:-rpath-link,${KEDGE_TORCH}/lib" "LINKER:-rpath-link,${KEDGE_TORCH}/../nvidia/cu13/lib")

# at::parallel_for is a template over OpenMP: without the flag it compiles to one thread. The runtime must be the one torch's own
# libraries use, or there would be two pools of threads.
target_compile_options(kedge::torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
# Without it <ATen/TensorOperators.h> includes every operator there is.
target_compile_definitions(kedge::torch INTERFACE AT_PER_OPERATOR_HEADERS)
file(GLOB kedge_openmp "${KEDGE_TORCH}/lib/libgomp*.so*" "${KEDGE_TORCH}/../torch.libs/libgomp*.so*")
if(kedge_openmp)
  list(GET kedge_openmp 0 kedge_openmp)
else()
  set(kedge_openmp gomp)
endif()
# Full names: CMake then knows which folder a program that is not installed must find them in.
target_link_libraries(kedge::torch INTERFACE "${kedge_openmp}")
set(kedge_torch_cpu "${KEDGE_TORCH}/lib/libtorch_cpu.so" "${KEDGE_TORCH}/lib/libc10.so")
if(KEDGE_CUDA)
  find_package(CUDAToolkit 13.0 REQUIRED)
  target_include_directories(kedge::torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  # torch_cuda is reached through registration only, so the linker must not drop it; its own libraries (cuBLAS, cuDNN)
  # lie with the torch of the machine that runs the program.
  target_link_options(kedge::torch INTERFACE "LINKER:--unresolved-symbols=ignore-in-shared-libs")
  target_link_libraries(kedge::torch INTERFACE "-Wl,--no-as-needed" ${kedge_torch_cpu} "${KEDGE_TORCH}/lib/libtorch_cuda.so"
    "${KEDGE_TORCH}/lib/libc10_cuda.so" "-Wl,--as-needed" CUDA::cudart)
else()
  target_link_libraries(kedge::torch INTERFACE ${kedge_torch_cpu})
endif()

# torch's libraries use the shared C++ library. A compiler that comes with the static one alone would give the program a copy of its own beside it, and
# objects that cross the border between them are freed by the wrong one.
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libstdc++.so OUTPUT_VARIABLE kedge_shared_stdcxx OUTPUT_STRIP_TRAILING_WHITESPACE)
if(kedge_shared_stdcxx STREQUAL "libstdc++.so")  # the name it was asked for: not found
  target_link_libraries(kedge::torch INTERFACE "-l:libstdc++.so.6")
endif()
