# The compiler flags of everything in this project, as the interface target rbt_flags.
#
# -ffp-contract=off: a fused multiply-add rounds once where two operations round twice; results must not depend on the
# processor. -fno-trapping-math: nobody looks at the flags of exceptions, so both sides of a choice may be computed, which wide
# loops need. -ffast-math is never used: it deletes the checks for NaN. NDEBUG is never set: assertions stay on.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")

add_library(rbt_flags INTERFACE)
target_compile_definitions(rbt_flags INTERFACE _GNU_SOURCE)
target_compile_options(rbt_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -ffp-contract=off -fno-math-errno -fno-trapping-math
    "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=") # file names in messages do not depend on where it was built
if(RBT_WERROR)
    target_compile_options(rbt_flags INTERFACE -Werror)
endif()

if(RBT_SANITIZE)
    set(sanitize -fsanitize=${RBT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # gcc's guess about uninitialised variables is wrong too often in instrumented code; the other builds have it on.
    target_compile_options(rbt_flags INTERFACE -O1 -g ${sanitize} -Wno-maybe-uninitialized)
    target_link_options(rbt_flags INTERFACE ${sanitize})
endif()
if(RBT_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "RBT_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang (or run `make fuzz`).")
    endif()
    target_compile_options(rbt_flags INTERFACE -O1 -g -fsanitize=fuzzer-no-link,address,undefined
        -fno-sanitize-recover=all)
    target_link_options(rbt_flags INTERFACE -fsanitize=address,undefined)
endif()
