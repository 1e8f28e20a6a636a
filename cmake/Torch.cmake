# Finds LibTorch and, for a CUDA build, the CUDA compiler; the target itself is in TorchTarget.cmake.
if(NOT KEDGE_TORCH)
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/setup" --where OUTPUT_VARIABLE KEDGE_TORCH_DEFAULT OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(KEDGE_TORCH "${KEDGE_TORCH_DEFAULT}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS "${KEDGE_TORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no LibTorch in '${KEDGE_TORCH}': run scripts/setup, or name one with KEDGE_TORCH=DIR")
endif()

if(KEDGE_CUDA)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # CUDA::cudart, shared as torch's own
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
endif()
include(TorchTarget)
if(KEDGE_CUDA)
  include(Cudnn)
endif()
