# SPDX-License-Identifier: Apache-2.0
# Warnings for our own code, warnings-as-errors in developer presets only, sanitizers on request.
add_library(jitgemm_options INTERFACE)
target_compile_options(jitgemm_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wcast-qual -Wformat=2 -Wundef
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wduplicated-cond -Wlogical-op>)
if(JITGEMM_WERROR)
  target_compile_options(jitgemm_options INTERFACE -Werror)
endif()
add_library(jitgemm_sanitize_link INTERFACE)
if(JITGEMM_SANITIZE)
  target_compile_options(jitgemm_options INTERFACE
    -fsanitize=${JITGEMM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(jitgemm_options INTERFACE -fsanitize=${JITGEMM_SANITIZE})
  target_link_options(jitgemm_sanitize_link INTERFACE -fsanitize=${JITGEMM_SANITIZE})
endif()
