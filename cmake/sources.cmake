# Which files make the library and the command. A file that lies in one of these folders is part of the build.
set(RBT_FOLDERS base math data table sync wire rule comm model method solve node runtime runtime/cluster job report)

set(RBT_LIBRARY_SOURCES "")
foreach(folder ${RBT_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${folder}/*.c")
    list(APPEND RBT_LIBRARY_SOURCES ${found})
endforeach()
file(GLOB RBT_CLI_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.c")

if(NOT RBT_LIBRARY_SOURCES)
    message(FATAL_ERROR "There is no .c file under ${PROJECT_SOURCE_DIR}/src: is the tree complete?")
endif()
