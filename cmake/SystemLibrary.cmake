# kedge_system_library(NAME HEADER): the system's libNAME as the imported target kedge::NAME, where both it and its header are found.
# kedge_system_headers(NAME HEADER): the same of a library that is headers alone. Either may lie under another prefix (CMAKE_PREFIX_PATH).
# kedge's own build and the installed package (kedgeConfig.cmake) both read this file.
function(kedge_system_headers name header)
  find_path(KEDGE_${name}_HEADER "${header}")
  mark_as_advanced(KEDGE_${name}_HEADER)
  if(KEDGE_${name}_HEADER AND NOT TARGET kedge::${name})
    add_library(kedge::${name} INTERFACE IMPORTED GLOBAL)
    # A folder that the compiler searches anyway is not named again: /usr/include would move before the standard library's own folders,
    # whose #include_next then finds nothing.
    if(NOT KEDGE_${name}_HEADER IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES AND NOT KEDGE_${name}_HEADER STREQUAL "/usr/include")
      target_include_directories(kedge::${name} SYSTEM INTERFACE "${KEDGE_${name}_HEADER}")
    endif()
  endif()
endfunction()

function(kedge_system_library name header)
  find_library(KEDGE_${name}_LIBRARY "${name}")
  mark_as_advanced(KEDGE_${name}_LIBRARY)
  if(KEDGE_${name}_LIBRARY AND NOT TARGET kedge::${name})
    kedge_system_headers(${name} "${header}")
    if(TARGET kedge::${name})
      target_link_libraries(kedge::${name} INTERFACE "${KEDGE_${name}_LIBRARY}")
    endif()
  endif()
endfunction()
