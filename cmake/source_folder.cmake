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
# What nearly every file of the simulator includes besides.
set(JITGEMM_PRECOMPILED_sim <sim/exec.h> <sim/float_math.h> <sim/lanes.h> <sim/machine_state.h> <sim/memory.h>)
file(GLOB JITGEMM_COMPILED_ALONE CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/plan/*.cpp               # small arithmetic
  ${PROJECT_SOURCE_DIR}/src/problem/*.cpp            # tables
  ${PROJECT_SOURCE_DIR}/src/ptx/rows_*.cpp           # the table's rows
  ${PROJECT_SOURCE_DIR}/src/support/log.cpp          # its twin is left out
  ${PROJECT_SOURCE_DIR}/src/selftest/*_case.cpp      # buffers of a case
  ${PROJECT_SOURCE_DIR}/src/sim/exec_*.cpp)          # opcodes, each file its own
list(FILTER JITGEMM_COMPILED_ALONE EXCLUDE REGEX "/plan/(plan_overrides|tuning_database)\\.cpp$")  # JSON
set_source_files_properties(${JITGEMM_COMPILED_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Some folders are compiled once more under sanitizers: a second set of objects that test programs put in front of the
# library's own (jitgemm_sanitized_test), so that one build has both.
#   address: those that read bytes of others or follow addresses of others, under the address and undefined-behaviour
#            sanitizers.
#   thread:  those that several threads are in at once, under the thread sanitizer; of the simulator all but most of
#            the opcodes, which reach what threads share through its other files.
option(JITGEMM_SANITIZED_TWINS "Run the tests of support, cache and ptx, the tiles, and threads, under sanitizers" OFF)
if(JITGEMM_SANITIZED_TWINS AND JITGEMM_SANITIZE)
  message(FATAL_ERROR "JITGEMM_SANITIZED_TWINS has no meaning where everything is sanitized")
endif()
set(JITGEMM_TWINS_address support cache ptx sim)
set(JITGEMM_TWINS_thread compile cache sim device runtime api)
set(JITGEMM_TWIN_SOURCES_thread_sim "/exec(_atomic|_barrier|_memory|_mbarrier)?\\.cpp$|/sim/[^e][^/]*\\.cpp$")
add_library(jitgemm_twin_options_address INTERFACE)
# Less what makes compiling dear and shows itself otherwise: a null address faults, x86-64 reads at any alignment. The
# preset asan-ubsan leaves nothing out.
target_compile_options(jitgemm_twin_options_address INTERFACE -g1 -fsanitize=address,undefined
  -fno-sanitize-recover=all -fno-omit-frame-pointer
  -fno-sanitize=null,alignment,object-size,vptr,nonnull-attribute,returns-nonnull-attribute)
target_link_options(jitgemm_twin_options_address INTERFACE -fsanitize=address,undefined)
add_library(jitgemm_twin_options_thread INTERFACE)
target_compile_options(jitgemm_twin_options_thread INTERFACE -g1 -fsanitize=thread)
target_link_options(jitgemm_twin_options_thread INTERFACE -fsanitize=thread)

function(jitgemm_sanitized_twin kind folder)
  # What is the libraries' own code comes from the archive.
  list(FILTER ARGN EXCLUDE REGEX "/(fmt_library|log)\\.cpp$")
  if(DEFINED JITGEMM_TWIN_SOURCES_${kind}_${folder})
    list(FILTER ARGN INCLUDE REGEX "${JITGEMM_TWIN_SOURCES_${kind}_${folder}}")
  endif()
  set(twin jitgemm_twin_${kind}_${folder})
  add_library(${twin} OBJECT ${ARGN})
  target_link_libraries(${twin} PRIVATE jitgemm_internal_headers jitgemm_twin_options_${kind})
  # Sanitizers make optimising three times as dear, which few tests would repay.
  target_compile_options(${twin} PRIVATE -O0)
  set_target_properties(${twin} PROPERTIES UNITY_BUILD ${JITGEMM_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(JITGEMM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${twin} PRIVATE -Wno-subobject-linkage)
  endif()
  list(GET JITGEMM_TWINS_${kind} 0 first)
  if(folder STREQUAL first OR folder STREQUAL sim)
    target_precompile_headers(${twin} PRIVATE ${JITGEMM_PRECOMPILED} ${JITGEMM_PRECOMPILED_${folder}})
  else()
    target_precompile_headers(${twin} REUSE_FROM jitgemm_twin_${kind}_${first})
  endif()
endfunction()

# A test program in which these folders are the sanitized ones: their objects leave nothing for the archives to resolve
# but what has no twin. The program's own code is sanitized only if it asks for the options.
function(jitgemm_sanitized_test target kind)
  target_link_options(${target} PRIVATE $<TARGET_PROPERTY:jitgemm_twin_options_${kind},INTERFACE_LINK_OPTIONS>)
  foreach(folder IN LISTS ARGN)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:jitgemm_twin_${kind}_${folder}>)
  endforeach()
endfunction()

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
    target_precompile_headers(jitgemm_src_${folder} PRIVATE ${JITGEMM_PRECOMPILED} ${JITGEMM_PRECOMPILED_${folder}})
  else()
    target_precompile_headers(jitgemm_src_${folder} REUSE_FROM jitgemm_src_support)
  endif()
  foreach(kind address thread)
    if(JITGEMM_SANITIZED_TWINS AND folder IN_LIST JITGEMM_TWINS_${kind})
      jitgemm_sanitized_twin(${kind} ${folder} ${sources})
    endif()
  endforeach()
  set(JITGEMM_OBJECTS ${JITGEMM_OBJECTS} $<TARGET_OBJECTS:jitgemm_src_${folder}> PARENT_SCOPE)
endfunction()
