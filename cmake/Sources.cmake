# kedge_sources(KIND source.cpp ...): a folder of kedge/ says of each of its sources how it is compiled. kedge/CMakeLists.txt makes the libraries of them.
#   plain           without torch: its include folder is not there, so what is listed stays torch-free
#   plain_loops     the same, with loops that are worth the optimiser's time
#   plain_kernels   the same, with loops that are to be vectorised
#   torch, torch_loops, torch_kernels   with torch
#   cuda, no_cuda   for a build with CUDA alone, and in its place for one without
function(kedge_sources kind)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH path "${CMAKE_SOURCE_DIR}/kedge" "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    set_property(GLOBAL APPEND PROPERTY kedge_sources_${kind} "${path}")
  endforeach()
endfunction()
# kedge_listed(KIND VARIABLE): the sources of a kind, folder by folder, as paths below kedge/
function(kedge_listed kind variable)
  get_property(sources GLOBAL PROPERTY kedge_sources_${kind})
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()
