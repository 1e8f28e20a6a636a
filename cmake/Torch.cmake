# LibTorch as one imported target, `torch`, straight on the wheel's libraries: find_package(Torch) would demand the
# CUDA toolkit the wheel was built with even for a CPU build.

if(NOT KEDGE_TORCH)
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/setup" --where OUTPUT_VARIABLE KEDGE_TORCH_DEFAULT OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(KEDGE_TORCH "${KEDGE_TORCH_DEFAULT}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS "${KEDGE_TORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no LibTorch in '${KEDGE_TORCH}': run scripts/setup, or name one with KEDGE_TORCH=DIR")
endif()

add_library(torch INTERFACE)
target_include_directories(torch SYSTEM INTERFACE "${KEDGE_TORCH}/include" "${KEDGE_TORCH}/include/torch/csrc/api/include")
target_link_directories(torch INTERFACE "${KEDGE_TORCH}/lib")
# libtorch_cpu.so wants the CUDA runtime even on a machine without a GPU; in a wheel it lies beside torch.
set(KEDGE_NVIDIA_LIB "${KEDGE_TORCH}/../nvidia/cu13/lib")
target_link_options(torch INTERFACE
  "LINKER:-rpath,${KEDGE_TORCH}/lib" "LINKER:-rpath-link,${KEDGE_TORCH}/lib" "LINKER:-rpath-link,${KEDGE_NVIDIA_LIB}")

# at::parallel_for is a template over OpenMP: without the flag it compiles to one thread. The runtime must be the one torch's own
# libraries use, or there would be two pools of threads.
target_compile_options(torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
file(GLOB KEDGE_OPENMP "${KEDGE_TORCH}/lib/libgomp*.so*" "${KEDGE_TORCH}/../torch.libs/libgomp*.so*")
if(KEDGE_OPENMP)
  list(GET KEDGE_OPENMP 0 KEDGE_OPENMP)
else()
  set(KEDGE_OPENMP gomp)
endif()
target_link_libraries(torch INTERFACE "${KEDGE_OPENMP}")

if(KEDGE_CUDA)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # CUDA::cudart below, shared as torch's own
  enable_language(CUDA)
  # The host compiler knows where its libraries are. nvcc's idea of it can name another gcc, whose libstdc++ would then be
  # linked in beside torch's and crash the program when it ends.
  set(CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES "")
  set(CMAKE_CUDA_IMPLICIT_LINK_LIBRARIES "")
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know how to ask nvcc 13 for C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${KEDGE_CUDA_ARCHITECTURES}")
  find_package(CUDAToolkit 13.0 REQUIRED)
  target_include_directories(torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  # torch_cuda is reached through registration only, so the linker must not drop it; its own libraries (cuBLAS, cuDNN)
  # lie with the torch of the machine that runs the program.
  target_link_options(torch INTERFACE "LINKER:--unresolved-symbols=ignore-in-shared-libs")
  target_link_libraries(torch INTERFACE "-Wl,--no-as-needed" torch_cpu torch_cuda c10 c10_cuda "-Wl,--as-needed" CUDA::cudart)
else()
  target_link_libraries(torch INTERFACE torch_cpu c10)
endif()
