# SPDX-License-Identifier: Apache-2.0
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/jitgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
