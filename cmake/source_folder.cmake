# SPDX-License-Identifier: Apache-2.0
# One static library for a folder of src/: target jitgemm_src_<folder>, its objects appended to JITGEMM_OBJECTS.
#   jitgemm_source_folder(FOLDER [folders that it includes])
add_library(jitgemm_internal_headers INTERFACE)
target_include_directories(jitgemm_internal_headers INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(jitgemm_internal_headers INTERFACE
  jitgemm_third_party jitgemm_options Threads::Threads ${CMAKE_DL_LIBS})

function(jitgemm_source_folder folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
  add_library(jitgemm_src_${folder} STATIC ${sources})
  target_link_libraries(jitgemm_src_${folder} PUBLIC jitgemm_internal_headers)
  foreach(needed IN LISTS ARGN)
    target_link_libraries(jitgemm_src_${folder} PUBLIC jitgemm_src_${needed})
  endforeach()
  target_compile_definitions(jitgemm_src_${folder} PRIVATE JITGEMM_VERSION_STRING="${PROJECT_VERSION}")
  set(JITGEMM_OBJECTS ${JITGEMM_OBJECTS} $<TARGET_OBJECTS:jitgemm_src_${folder}> PARENT_SCOPE)
endfunction()
