# kedge_system_library(NAME HEADER): the system's libNAME as the imported target kedge::NAME, where both it and its header are found.
# kedge's own build and the installed package (kedgeConfig.cmake) both read this file.
function(kedge_system_library name header)
  find_path(KEDGE_${name}_HEADER "${header}")
  find_library(KEDGE_${name}_LIBRARY "${name}")
  mark_as_advanced(KEDGE_${name}_HEADER KEDGE_${name}_LIBRARY)
  if(KEDGE_${name}_HEADER AND KEDGE_${name}_LIBRARY AND NOT TARGET kedge::${name})
    add_library(kedge::${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(kedge::${name} INTERFACE "${KEDGE_${name}_LIBRARY}")
  endif()
endfunction()
