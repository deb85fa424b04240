# SPDX-License-Identifier: Apache-2.0
# A relocatable package: header, both libraries, CMake package, pkg-config file; no path of this
# machine in any of them. Component "development" is all that a program needs to be built.
include(CMakePackageConfigHelpers)

set(JITGEMM_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/jitgemm)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/jitgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS jitgemm jitgemm_static EXPORT jitgemm_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT development)
if(JITGEMM_BUILD_CLI)
  install(TARGETS jitgemm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
endif()

install(EXPORT jitgemm_targets NAMESPACE jitgemm:: DESTINATION ${JITGEMM_PACKAGE_DIR} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/jitgemm-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/jitgemm-config.cmake INSTALL_DESTINATION ${JITGEMM_PACKAGE_DIR}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the ABI.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/jitgemm-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/jitgemm-config.cmake
              ${PROJECT_BINARY_DIR}/generated/jitgemm-config-version.cmake
  DESTINATION ${JITGEMM_PACKAGE_DIR} COMPONENT development)

# From the folder of the .pc file back to the prefix, so that a moved tree still works.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE JITGEMM_PC_PREFIX)
configure_file(${PROJECT_SOURCE_DIR}/cmake/jitgemm.pc.in ${PROJECT_BINARY_DIR}/generated/jitgemm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/jitgemm.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# Component "python": the one file of this build that the Python wheel carries (pyproject.toml). A wheel has no
# symbolic links, so it has the name that a link would have.
install(FILES $<TARGET_FILE:jitgemm> DESTINATION lib RENAME libjitgemm.so.0 COMPONENT python EXCLUDE_FROM_ALL)
