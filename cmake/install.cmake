# What `make install` puts in place: the command, both libraries, the header, pkg-config, CMake package, man page.
include(CMakePackageConfigHelpers)

if(TARGET rubato)
    install(TARGETS rubato)
endif()
install(TARGETS rbt_shared EXPORT rubato-targets)
install(TARGETS rbt_static EXPORT rubato-static-targets) # by itself: it may be left out (rubato-config.cmake.in)
install(FILES include/rubato.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES examples/poisson.c examples/moments.c DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES man/rubato.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Relative to the .pc file itself, so that the installed tree may be moved.
file(RELATIVE_PATH RBT_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" RBT_PC_PREFIX "${RBT_PC_PREFIX}")
list(JOIN RBT_PACKAGES ", " RBT_PC_REQUIRES)
configure_file(cmake/rubato.pc.in rubato.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/rubato.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rubato)
configure_package_config_file(cmake/rubato-config.cmake.in rubato-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(rubato-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/rubato-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/rubato-config-version.cmake" DESTINATION ${package_dir})
install(EXPORT rubato-targets NAMESPACE rubato:: DESTINATION ${package_dir})
install(EXPORT rubato-static-targets NAMESPACE rubato:: DESTINATION ${package_dir})
