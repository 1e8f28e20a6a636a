# The headers that attention by cuDNN is compiled with, as the target `kedge::cudnn_frontend`: those of cuDNN, which come with the CUDA toolkit or with
# torch, and those of NVIDIA's frontend, which scripts/setup --cuda fetches. The library is the one that LibTorch loads. Without the headers flash
# attention is used alone.
if(NOT KEDGE_CUDNN_FRONTEND)
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/setup" --where-cudnn-frontend OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(KEDGE_CUDNN_FRONTEND "${found}" CACHE PATH "the folder of cudnn_frontend.h" FORCE)
endif()
find_path(KEDGE_CUDNN_INCLUDE cudnn.h HINTS "${KEDGE_TORCH}/../nvidia/cudnn/include" ${CUDAToolkit_INCLUDE_DIRS})
if(EXISTS "${KEDGE_CUDNN_FRONTEND}/cudnn_frontend.h" AND KEDGE_CUDNN_INCLUDE)
  add_library(kedge::cudnn_frontend INTERFACE IMPORTED GLOBAL)
  target_include_directories(kedge::cudnn_frontend SYSTEM INTERFACE "${KEDGE_CUDNN_FRONTEND}" "${KEDGE_CUDNN_INCLUDE}")
  target_compile_definitions(kedge::cudnn_frontend INTERFACE NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING CUDNN_FRONTEND_SKIP_JSON_LIB)
  target_link_libraries(kedge::cudnn_frontend INTERFACE ${CMAKE_DL_LIBS})
else()
  message(STATUS "without attention by cuDNN: cudnn_frontend.h is not in '${KEDGE_CUDNN_FRONTEND}' (scripts/setup --cuda), or there is no cudnn.h")
endif()
