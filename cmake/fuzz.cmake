# One libFuzzer executable per tests/fuzz/fuzz_*.c. `make fuzz` runs each for a while.
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c")
foreach(source ${fuzz_sources})
    get_filename_component(name "${source}" NAME_WE)
    add_executable(${name} "${source}")
    target_link_libraries(${name} PRIVATE rbt_internal rbt_packers)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
