# Deliberately broken commands: rubato-mutant-NAME is `rubato` compiled with RBT_MUTANT_NAME. `rubato swarm` must catch
# each of them (tests/cli); a checker that never fails proves nothing.
#
# Only the files that mention the mutation are compiled again; linked before the static library, they take the place
# of its own. When a header mentions it, everything is compiled again.
file(GLOB mutant_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*/*.h")

foreach(name staleness duplicate slice reach early own undo rest budget expire release token late jump gossip held again)
    string(TOUPPER "RBT_MUTANT_${name}" macro)
    set(mentioned "")
    foreach(file ${RBT_LIBRARY_SOURCES} ${mutant_headers})
        file(STRINGS "${file}" mentions REGEX "${macro}" LIMIT_COUNT 1)
        if(mentions)
            list(APPEND mentioned "${file}")
        endif()
    endforeach()
    if(mentioned MATCHES "\\.h(;|$)")
        set(changed ${RBT_LIBRARY_SOURCES})
    else()
        set(changed ${mentioned})
    endif()
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
