# The dashboard's page becomes a part of the program: our own files, and Chart.js of the package libjs-chart.js. Where that is missing a stub takes
# the place of the file that holds it, and its error names the package.
find_file(KEDGE_CHART_JS_FILE chart.min.js HINTS ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH PATHS /usr PATH_SUFFIXES share/javascript/chart.js)
if(KEDGE_CHART_JS_FILE)
  set(KEDGE_CHART_JS_SOURCE dashboard/chart_js.cpp)
else()
  message(STATUS "Chart.js not found: kedge dashboard will not work (install libjs-chart.js)")
  set(KEDGE_CHART_JS_SOURCE dashboard/no_chart_js.cpp)
endif()

# What the assembler reads (cli/embed.h): the paths, and that a change of a file is a change of the source.
function(kedge_embed_web)
  set(pages answers.js app.js charts.js icon.svg index.html panels.js style.css tools.js)
  list(TRANSFORM pages PREPEND "${CMAKE_SOURCE_DIR}/cli/dashboard/web/")
  set_source_files_properties(dashboard/web_files.cpp PROPERTIES OBJECT_DEPENDS "${pages}" COMPILE_DEFINITIONS "KEDGE_WEB_FOLDER=\"${CMAKE_SOURCE_DIR}/cli/dashboard/web\"")
  set_source_files_properties(dashboard/chart_js.cpp PROPERTIES OBJECT_DEPENDS "${KEDGE_CHART_JS_FILE}" COMPILE_DEFINITIONS "KEDGE_CHART_JS=\"${KEDGE_CHART_JS_FILE}\"")
endfunction()
