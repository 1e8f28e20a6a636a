# The headers that attention by cuDNN is compiled with, as the target `kedge::cudnn_frontend`: those of cuDNN, which come with the CUDA toolkit or with
# torch, and those of NVIDIA's frontend, which scripts/setup --cuda fetches. The library is the one that LibTorch loads. Without the headers flash
# attention is used alone. KEDGE_CUDNN_FRONTEND names another folder with cudnn_frontend.h.
if(NOT KEDGE_CUDNN_FRONTEND)
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/setup" --where-cudnn-frontend OUTPUT_VARIABLE KEDGE_CUDNN_FRONTEND OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
find_path(KEDGE_CUDNN_INCLUDE cudnn.h HINTS "${KEDGE_TORCH}/../nvidia/cudnn/include" ${CUDAToolkit_INCLUDE_DIRS})
if(EXISTS "${KEDGE_CUDNN_FRONTEND}/cudnn_frontend.h" AND KEDGE_CUDNN_INCLUDE)
  add_library(kedge::cudnn_frontend INTERFACE IMPORTED GLOBAL)
  target_include_directories(kedge::cudnn_frontend SYSTEM INTERFACE "${KEDGE_CUDNN_FRONTEND}" "${KEDGE_CUDNN_INCLUDE}")
  target_compile_definitions(kedge::cudnn_frontend INTERFACE NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING CUDNN_FRONTEND_SKIP_JSON_LIB)
  target_link_libraries(kedge::cudnn_frontend INTERFACE ${CMAKE_DL_LIBS})
  set(KEDGE_HAS_CUDNN ON CACHE INTERNAL "")  # scripts/build configures again when the headers have come
else()
  set(KEDGE_HAS_CUDNN OFF CACHE INTERNAL "")
  message(STATUS "without attention by cuDNN: cudnn_frontend.h is not in '${KEDGE_CUDNN_FRONTEND}' (scripts/setup --cuda), or there is no cudnn.h")
endif()
