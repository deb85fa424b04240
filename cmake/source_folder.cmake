# SPDX-License-Identifier: Apache-2.0
# One static library for a folder of src/: target jitgemm_src_<folder>, its objects appended to JITGEMM_OBJECTS.
#   jitgemm_source_folder(FOLDER [folders that it includes])
add_library(jitgemm_internal_headers INTERFACE)
target_include_directories(jitgemm_internal_headers INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(jitgemm_internal_headers INTERFACE
  jitgemm_third_party jitgemm_options Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(jitgemm_internal_headers INTERFACE JITGEMM_VERSION_STRING="${PROJECT_VERSION}")

# Headers cost more than half of a compile. Two means against that; each file still includes what it uses.
#   - What nearly every file includes is precompiled, once for each set of options.
#   - Files of a folder are compiled several at once, but for those that use one private name for different things.
option(JITGEMM_UNITY "Compile several files of a folder at once" ON)
set(JITGEMM_PRECOMPILED <fmt/format.h> <algorithm> <array> <cstdint> <cstring> <functional> <map> <memory> <optional>
    <span> <string> <string_view> <utility> <vector>)
file(GLOB JITGEMM_COMPILED_ALONE CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/plan/*.cpp               # small arithmetic
  ${PROJECT_SOURCE_DIR}/src/problem/*.cpp            # tables
  ${PROJECT_SOURCE_DIR}/src/ptx/rows_*.cpp           # the table's rows
  ${PROJECT_SOURCE_DIR}/src/selftest/*_case.cpp      # buffers of a case
  ${PROJECT_SOURCE_DIR}/src/sim/exec_*.cpp)          # opcodes, each file its own
set_source_files_properties(${JITGEMM_COMPILED_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

function(jitgemm_source_folder folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
  add_library(jitgemm_src_${folder} STATIC ${sources})
  target_link_libraries(jitgemm_src_${folder} PUBLIC jitgemm_internal_headers)
  foreach(needed IN LISTS ARGN)
    target_link_libraries(jitgemm_src_${folder} PUBLIC jitgemm_src_${needed})
  endforeach()
  set_target_properties(jitgemm_src_${folder} PROPERTIES UNITY_BUILD ${JITGEMM_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(JITGEMM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # It takes a source file in a batch for a header.
    target_compile_options(jitgemm_src_${folder} PRIVATE -Wno-subobject-linkage)
  endif()
  # The simulator has its own optimisation, and a precompiled header goes with the options that it was made with.
  if(folder MATCHES "^(support|sim)$")
    target_precompile_headers(jitgemm_src_${folder} PRIVATE ${JITGEMM_PRECOMPILED})
  else()
    target_precompile_headers(jitgemm_src_${folder} REUSE_FROM jitgemm_src_support)
  endif()
  set(JITGEMM_OBJECTS ${JITGEMM_OBJECTS} $<TARGET_OBJECTS:jitgemm_src_${folder}> PARENT_SCOPE)
endfunction()
