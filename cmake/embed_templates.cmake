# SPDX-License-Identifier: Apache-2.0
# Turns kernels/templates/**/*.{cu,cuh} into one generated C++ file: a table of (name, text).
function(jitgemm_embed_templates out_variable)
  file(GLOB_RECURSE templates CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/kernels/templates
       ${PROJECT_SOURCE_DIR}/kernels/templates/*.cu ${PROJECT_SOURCE_DIR}/kernels/templates/*.cuh)
  list(SORT templates)
  set(paths ${templates})
  list(TRANSFORM paths PREPEND ${PROJECT_SOURCE_DIR}/kernels/templates/)
  set(output ${PROJECT_BINARY_DIR}/generated/embedded_templates.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/kernels/templates -DOUTPUT=${output}
            "-DTEMPLATES=${templates}" -P ${PROJECT_SOURCE_DIR}/cmake/write_embedded_templates.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/write_embedded_templates.cmake
    COMMENT "Embedding kernel templates" VERBATIM)
  set(${out_variable} ${output} PARENT_SCOPE)
endfunction()
