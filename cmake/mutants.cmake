# Deliberately broken commands: rubato-mutant-NAME is `rubato` compiled with RBT_MUTANT_NAME. `rubato swarm` must catch
# each of them (tests/cli); a checker that never fails proves nothing.
#
# Only the files that mention the mutation, or include a header that does, are compiled again; linked before the static
# library, they take the place of its own.
file(GLOB mutant_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*/*.h")

foreach(name staleness duplicate slice reach early own undo rest budget expire release token late jump gossip held again)
    string(TOUPPER "RBT_MUTANT_${name}" macro)
    set(mentioned "")
    set(pattern "${macro}")
    while(pattern) # once more with the headers found, until there are no others
        set(headers "")
        foreach(file ${RBT_LIBRARY_SOURCES} ${mutant_headers})
            file(STRINGS "${file}" mentions REGEX "${pattern}" LIMIT_COUNT 1)
            if(mentions AND NOT file IN_LIST mentioned)
                list(APPEND mentioned "${file}")
                if(file MATCHES "src/([^/]+/[^/]+\\.h)$")
                    list(APPEND headers "#include \"${CMAKE_MATCH_1}\"")
                endif()
            endif()
        endforeach()
        list(JOIN headers "|" pattern)
    endwhile()
    set(changed ${mentioned})
    list(FILTER changed INCLUDE REGEX "\\.c$")
    if(NOT mentioned)
        message(WARNING "No file mentions ${macro}: rubato-mutant-${name} is not built.")
        continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mentioned})
    add_executable(rubato-mutant-${name} $<TARGET_OBJECTS:rbt_cli_objects> ${changed})
    target_compile_definitions(rubato-mutant-${name} PRIVATE ${macro}=1)
    target_include_directories(rubato-mutant-${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(rubato-mutant-${name} PRIVATE rbt_internal)
endforeach()
