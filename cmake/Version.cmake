# `kedge_version` holds the version and the commit the binary was built from; only its one file is rebuilt when they change.
set(KEDGE_VERSION_CPP "${CMAKE_BINARY_DIR}/generated/version.cpp")
add_custom_target(kedge_version_file
  COMMAND "${CMAKE_COMMAND}" -DOUT=${KEDGE_VERSION_CPP} -DSOURCE=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DBUILD=$<CONFIG> -P "${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake"
  BYPRODUCTS "${KEDGE_VERSION_CPP}"
  COMMENT "" VERBATIM)
