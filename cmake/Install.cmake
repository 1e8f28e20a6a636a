# What `cmake --install build/PRESET --prefix DIR` puts where: the program, the two static libraries with their headers, the CMake package
# (find_package(kedge)), and configurations, pages and examples. The tree may be moved: nothing in it names the folder it was made in.
#
# LibTorch goes to a folder of its own, lib/kedge/torch, and not among DIR/lib: with DIR=/usr/local every program of the machine would
# otherwise be given its libgomp and libcudart. A CPU build's tree holds what the program needs of it. A CUDA build's has a link there to the LibTorch
# that it was built with: with cuBLAS, cuDNN and NCCL it takes gigabytes, and GPU machines have it already.
include(CMakePackageConfigHelpers)
set(package lib/cmake/kedge)
set(torch_home lib/kedge/torch)

install(TARGETS kedge_program RUNTIME DESTINATION bin)
# lib/kedge/lib is where scripts/package puts libraries of the system; the folders are those of libraries under another prefix.
set(rpath "$ORIGIN/../${torch_home}/lib" "$ORIGIN/../lib/kedge/lib" ${KEDGE_LIBRARY_FOLDERS})
if(KEDGE_CUDA)  # the CUDA runtime: in a wheel it lies beside torch, else it is the toolkit's
  list(APPEND rpath "$ORIGIN/../${torch_home}/../nvidia/cu13/lib" "${CUDAToolkit_LIBRARY_DIR}")
endif()
set_target_properties(kedge_program PROPERTIES INSTALL_RPATH "${rpath}")
set_target_properties(kedge_plain PROPERTIES EXPORT_NAME plain)
install(TARGETS kedge kedge_plain EXPORT kedge ARCHIVE DESTINATION lib INCLUDES DESTINATION include)
install(DIRECTORY kedge/ DESTINATION include/kedge FILES_MATCHING PATTERN "*.h")

install(EXPORT kedge NAMESPACE kedge:: FILE kedgeTargets.cmake DESTINATION ${package})
configure_package_config_file(cmake/kedgeConfig.cmake.in "${CMAKE_BINARY_DIR}/generated/kedgeConfig.cmake" INSTALL_DESTINATION ${package}
  PATH_VARS torch_home NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/generated/kedgeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/generated/kedgeConfig.cmake" "${CMAKE_BINARY_DIR}/generated/kedgeConfigVersion.cmake" cmake/TorchTarget.cmake
  cmake/SystemLibrary.cmake DESTINATION ${package})

install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/kedge)
foreach(folder configs docs examples launch)
  if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/${folder}")
    install(DIRECTORY ${folder} DESTINATION share/kedge USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
  endif()
endforeach()

install(PROGRAMS scripts/quickstart DESTINATION share/kedge/scripts)  # it finds the program that it was installed with

install(CODE "set(PROGRAM \"$<TARGET_FILE:kedge_program>\")\nset(FOLDER \"${CMAKE_BINARY_DIR}/generated/completion\")")
if(EXISTS "${CMAKE_SOURCE_DIR}/cli/completion.h")
  install(SCRIPT cmake/InstallCompletion.cmake)
endif()

if(KEDGE_CUDA)
  install(CODE "
    set(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${torch_home}\")
    message(STATUS \"Installing: \${link} -> ${KEDGE_TORCH}\")
    get_filename_component(parent \"\${link}\" DIRECTORY)
    file(REMOVE_RECURSE \"\${link}\")  # what a CPU build left there, or an older link
    file(MAKE_DIRECTORY \"\${parent}\")
    file(CREATE_LINK \"${KEDGE_TORCH}\" \"\${link}\" SYMBOLIC)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${torch_home}\")")
else()
  install(CODE "set(TORCH \"${KEDGE_TORCH}\")\nset(TORCH_HOME \"${torch_home}\")")
  install(SCRIPT cmake/InstallTorch.cmake)
  install(DIRECTORY "${KEDGE_TORCH}/include" DESTINATION ${torch_home} MESSAGE_NEVER)
  # Their licences go where they go.
  file(GLOB licences LIST_DIRECTORIES true "${KEDGE_TORCH}/../torch-*.dist-info/licenses" "${KEDGE_TORCH}/../nvidia_cuda_*.dist-info/licenses")
  foreach(folder IN LISTS licences)
    string(REGEX REPLACE ".*/([a-z_]+)-[^/]*/licenses$" "\\1" owner "${folder}")
    install(DIRECTORY "${folder}/" DESTINATION share/kedge/licenses/${owner} MESSAGE_NEVER)
  endforeach()
endif()
