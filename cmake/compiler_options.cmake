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
# GCC's own memory is collected from 128 MiB on, which is a tenth of the time of such files as ours; a developer's
# machine has a GiB for each.
if(JITGEMM_BUILD_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(jitgemm_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()
add_library(jitgemm_sanitize_link INTERFACE)
if(JITGEMM_SANITIZE)
  target_compile_options(jitgemm_options INTERFACE
    -fsanitize=${JITGEMM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(jitgemm_options INTERFACE -fsanitize=${JITGEMM_SANITIZE})
  target_link_options(jitgemm_sanitize_link INTERFACE -fsanitize=${JITGEMM_SANITIZE})
endif()

# How programs under the thread sanitizer are started. That of GCC 12 and 13 does not start where the kernel spreads
# addresses over more bits (vm.mmap_rnd_bits of 32) than its map of memory has room for, so they are not spread, where
# the system lets us say so.
set(JITGEMM_START_THREAD_SANITIZED "")
find_program(JITGEMM_SETARCH setarch)
mark_as_advanced(JITGEMM_SETARCH)
if(JITGEMM_SETARCH)
  execute_process(COMMAND ${JITGEMM_SETARCH} -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(refused EQUAL 0)
    set(JITGEMM_START_THREAD_SANITIZED ${JITGEMM_SETARCH} -R)
  endif()
endif()
if(JITGEMM_SANITIZE MATCHES thread)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${JITGEMM_START_THREAD_SANITIZED})
endif()
