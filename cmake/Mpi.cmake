# MPI's header as the target `kedge::mpi`; without it kedge/dist/no_mpi.cpp takes its place and one process still works. The library is not linked but
# loaded when a job has ranks, by the name that programs linked with it would ask for (KEDGE_MPI_LIBRARY).
set(KEDGE_HAVE_MPI OFF)
if(KEDGE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface is enough
  find_package(MPI COMPONENTS CXX QUIET)
  if(MPI_CXX_FOUND)
    set(KEDGE_HAVE_MPI ON)
    set(name libmpi.so)
    foreach(library IN LISTS MPI_CXX_LIBRARIES)
      if(library MATCHES "/lib(mpi|mpich)\\.so$")
        execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${library}" OUTPUT_VARIABLE facts)
        if(facts MATCHES "SONAME +([^ \n]+)")
          set(name "${CMAKE_MATCH_1}")
        endif()
      endif()
    endforeach()
    add_library(kedge::mpi INTERFACE IMPORTED GLOBAL)
    target_include_directories(kedge::mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})  # no warnings from its headers
    target_compile_definitions(kedge::mpi INTERFACE ${MPI_CXX_COMPILE_DEFINITIONS} "KEDGE_MPI_LIBRARY=\"${name}\"")
  else()
    message(STATUS "MPI not found: one process only (install libopenmpi-dev openmpi-bin for more)")
  endif()
endif()
