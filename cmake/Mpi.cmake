# MPI as the target `kedge::mpi`; without it kedge/dist/no_mpi.cpp takes its place and one process still works.
set(KEDGE_HAVE_MPI OFF)
if(KEDGE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface is enough
  find_package(MPI COMPONENTS CXX QUIET)
  if(MPI_CXX_FOUND)
    set(KEDGE_HAVE_MPI ON)
    add_library(kedge::mpi INTERFACE IMPORTED GLOBAL)
    target_link_libraries(kedge::mpi INTERFACE MPI::MPI_CXX)
    target_include_directories(kedge::mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})  # no warnings from its headers
  else()
    message(STATUS "MPI not found: one process only (install libopenmpi-dev openmpi-bin for more)")
  endif()
endif()
