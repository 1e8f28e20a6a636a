# How tests are declared; tests/CMakeLists.txt only lists them.
find_package(GTest REQUIRED)

# Precompiled for the test programs: the test library, and what they test through. Nothing is gained by optimising tests.
function(kedge_test_headers name library)
  add_library(${name} OBJECT support/headers.cpp)
  target_link_libraries(${name} PUBLIC ${library} GTest::gtest GTest::gmock)
  target_compile_options(${name} PRIVATE ${KEDGE_TEST_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
kedge_test_headers(test_headers_plain kedge_plain ${KEDGE_PLAIN_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
kedge_test_headers(test_headers_torch kedge ../kedge/core/tensor.h <gmock/gmock.h> <gtest/gtest.h>)

function(kedge_test_program name library)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ${library})
  target_compile_options(${name} PRIVATE ${KEDGE_TEST_OPTIONS})
  if(library STREQUAL kedge_plain)
    target_precompile_headers(${name} REUSE_FROM test_headers_plain)
  else()
    target_precompile_headers(${name} REUSE_FROM test_headers_torch)
  endif()
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock)
  kedge_compile_together(${name})
endfunction()

# One test program a room, one for its torch-free pairs and one for the others. ctest runs each in a few shards, NAME.1, NAME.2, ...: a process
# a TEST would spend most of its time starting. One TEST alone: build/ci/tests/test_NAME --gtest_filter=Suite.Name
#   kedge_tests(core fast kedge_plain SHARDS 2 core/files_test.cpp ...)
function(kedge_tests name label library)
  cmake_parse_arguments(PARSE_ARGV 3 tests "" "SHARDS" "")
  kedge_test_program(test_${name} ${library} ${tests_UNPARSED_ARGUMENTS})
  target_link_libraries(test_${name} PRIVATE GTest::gtest_main)
  if(NOT tests_SHARDS)
    set(tests_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${tests_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME unit.${name}.${shard} COMMAND test_${name})
    set_tests_properties(unit.${name}.${shard} PROPERTIES LABELS ${label} TIMEOUT 600
      ENVIRONMENT "GTEST_BRIEF=1;GTEST_TOTAL_SHARDS=${tests_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# A test program that mpirun starts with several ranks; every rank runs every TEST, and the whole is one ctest entry a
# number of ranks. Its sources see their ranks through tests/support/ranks.h.
#   kedge_rank_tests(dist_ranks dist "2;3" dist/group_ranks_test.cpp ...)
set(KEDGE_MPIRUN_ENVIRONMENT  # root in a container and more ranks than cores are fine for a test; Open MPI 4, then 5
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  OMP_NUM_THREADS=1)
function(kedge_mpirun_test name label num_ranks target)
  add_test(NAME ${name} COMMAND "${MPIEXEC_EXECUTABLE}" -n ${num_ranks} $<TARGET_FILE:${target}>)
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 120 PROCESSORS ${num_ranks} ENVIRONMENT "${KEDGE_MPIRUN_ENVIRONMENT}")
endfunction()
function(kedge_rank_tests name label numbers_of_ranks)
  if(NOT KEDGE_HAVE_MPI)
    return()
  endif()
  kedge_test_program(test_${name} kedge ${ARGN} support/ranks_main.cpp)
  foreach(num_ranks IN LISTS numbers_of_ranks)
    kedge_mpirun_test(${name}_on_${num_ranks}_ranks ${label} ${num_ranks} test_${name})
  endforeach()
endfunction()

# The Python of the tests' packages, as scripts/setup --tests installs it for this checkout's tests/requirements.txt. It is looked
# for when a test runs: without it the test is reported as skipped.
if(DEFINED ENV{KEDGE_DEPS})
  set(deps "$ENV{KEDGE_DEPS}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(deps "$ENV{XDG_CACHE_HOME}/kedge")
else()
  set(deps "$ENV{HOME}/.cache/kedge")
endif()
file(SHA256 "${CMAKE_SOURCE_DIR}/tests/requirements.txt" wanted_packages)
string(SUBSTRING "${wanted_packages}" 0 12 wanted_packages)
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/requirements.txt")
set(KEDGE_TEST_PYTHON "${deps}/tests-${wanted_packages}/bin/python")
set(KEDGE_CLANG_FORMAT "${deps}/tests-${wanted_packages}/bin/clang-format")

file(SHA256 "${CMAKE_SOURCE_DIR}/tests/requirements-pytriton.txt" wanted_pytriton)
string(SUBSTRING "${wanted_pytriton}" 0 12 wanted_pytriton)
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/requirements-pytriton.txt")
set(KEDGE_PYTRITON_PYTHON "${deps}/pytriton-${wanted_pytriton}/bin/python")

file(SHA256 "${CMAKE_SOURCE_DIR}/tests/requirements-trackers.txt" wanted_trackers)
string(SUBSTRING "${wanted_trackers}" 0 12 wanted_trackers)
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/requirements-trackers.txt")
set(KEDGE_TRACKERS_PYTHON "${deps}/trackers-${wanted_trackers}/bin/python")

# A Python script that asks a real peer what it makes of our files or servers.
#   kedge_interop_test(metrics.tensorboard metrics/tensorboard_interop.py $<TARGET_FILE:write_events>)
function(kedge_python_test name python script)
  add_test(NAME ${name} COMMAND "${CMAKE_SOURCE_DIR}/tests/support/run_python" "${python}" "${CMAKE_SOURCE_DIR}/tests/${script}" ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS interop TIMEOUT 600 SKIP_RETURN_CODE 77)
endfunction()
function(kedge_interop_test name script)
  kedge_python_test(${name} "${KEDGE_TEST_PYTHON}" ${script} ${ARGN})
endfunction()
# The same where the peer is PyTriton, whose packages do not go together with the others.
function(kedge_pytriton_test name script)
  kedge_python_test(${name} "${KEDGE_PYTRITON_PYTHON}" ${script} ${ARGN})
endfunction()

# A test whose last argument says how much of it is done: a little every day (label e2e), all of it where there is time (slow).
#   kedge_sampled_test(cli.train_kill 6 20 240 script.sh ...) adds cli.train_kill.6 and cli.train_kill.20, of 240 s at most
function(kedge_sampled_test name little all timeout)
  foreach(label_size "e2e;${little}" "slow;${all}")
    list(GET label_size 0 label)
    list(GET label_size 1 size)
    add_test(NAME ${name}.${size} COMMAND ${ARGN} ${size})
    set_tests_properties(${name}.${size} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
  endforeach()
endfunction()
