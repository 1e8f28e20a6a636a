# CMake toolchain: builds for aarch64 on another kind of machine, against the Debian system in KEDGE_AARCH64_SYSTEM. bench/aarch64_tests uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KEDGE_AARCH64_SYSTEM)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${KEDGE_AARCH64_SYSTEM}")
# Programs are this machine's; libraries and headers are the other's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# MPI's compiler wrapper is this machine's too, so it is not asked.
set(openmpi "${KEDGE_AARCH64_SYSTEM}/usr/lib/aarch64-linux-gnu/openmpi")
set(MPI_CXX_COMPILER "${CMAKE_CXX_COMPILER}" CACHE STRING "")
set(MPI_CXX_COMPILER_INCLUDE_DIRS "${openmpi}/include" CACHE STRING "")
set(MPI_CXX_HEADER_DIR "${openmpi}/include" CACHE PATH "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY "${openmpi}/lib/libmpi.so" CACHE FILEPATH "")
# mold would need a name that the other kind's compiler looks for.
set(KEDGE_MOLD "" CACHE FILEPATH "")
