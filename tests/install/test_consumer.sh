# Installs the build, moves the installed tree, and uses it as a stranger would: through pkg-config and through CMake.
# Usage: test_consumer.sh BUILD SOURCES CC NM VERSION
set -eu
build=$1
sources=$2
cc=$3
nm=$4
version=$5

DESTDIR=$PWD/staged cmake --install "$build" --prefix /opt/rubato >install.log || { cat install.log; exit 1; }
mv staged/opt/rubato prefix
prefix=$PWD/prefix
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name rubato.pc)")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(pkg-config --variable=libdir rubato)
export LD_LIBRARY_PATH

expect() { # WHAT COMMAND...: the command prints the version
    what=$1
    shift
    said=$("$@") || true
    if [ "$said" != "$version" ]; then
        echo "$what: expected $version, got '$said'"
        exit 1
    fi
}
same() {
    [ "$2" = "$3" ] || { echo "$1: expected $3, got $2"; exit 1; }
}

same "pkg-config" "$(pkg-config --modversion rubato)" "$version"
# shellcheck disable=SC2046 # flags are meant to be split
{
    "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "$sources/consumer.c" -o shared $(pkg-config --cflags --libs rubato)
    "$cc" "$sources/consumer.c" -o static $(pkg-config --cflags rubato) "$LD_LIBRARY_PATH/librubato.a" \
        $(pkg-config --static --libs-only-l --libs-only-other rubato | sed 's/-lrubato//')
}
expect "by pkg-config, shared" ./shared
expect "by pkg-config, static" env -u LD_LIBRARY_PATH ./static
if ! readelf -d shared | grep -q 'NEEDED.*librubato\.so\.0\]'; then
    echo "the program does not ask for librubato.so.0"
    exit 1
fi

if ! { cmake -S "$sources" -B by-cmake -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build by-cmake; } >cmake.log 2>&1; then
    cat cmake.log
    exit 1
fi
expect "by CMake, shared" by-cmake/by_cmake
expect "by CMake, static" env -u LD_LIBRARY_PATH by-cmake/by_cmake_static
# where nothing is installed that the static library needs, the shared one serves all the same, and what is missing is named
if ! { env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$PWD/nothing" cmake -S "$sources" -B bare -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" -DPKG_CONFIG_USE_CMAKE_PREFIX_PATH=OFF && cmake --build bare; } >cmake.log 2>&1; then
    cat cmake.log
    exit 1
fi
expect "by CMake, shared, alone" bare/by_cmake
[ ! -e bare/by_cmake_static ] || { echo "the static library was linked without what it needs"; exit 1; }
for package in $(pkg-config --print-requires-private rubato); do
    grep -q "rubato_static, .*[ :]${package}[ .]" cmake.log || { echo "CMake is not told that $package is missing"; cat cmake.log; exit 1; }
done

if "$nm" -D --defined-only "$LD_LIBRARY_PATH/librubato.so" | awk '{print $NF}' | grep -v '^rbt_'; then
    echo "the shared library exports these, which are not part of the interface"
    exit 1
fi
# Whatever the header promises, the library has; and it has nothing else.
grep -oE '\brbt_[a-z0-9_]+\(' "$prefix/include/rubato.h" | tr -d '(' | sort -u >mentioned
"$nm" -D --defined-only "$LD_LIBRARY_PATH/librubato.so" | awk '{print $NF}' | sort >exported
if comm -13 mentioned exported | grep .; then
    echo "these are exported but not in rubato.h"
    exit 1
fi
[ -s "$prefix/share/man/man1/rubato.1" ] || { echo "the man page was not installed"; exit 1; }
if [ -x "$build/rubato" ]; then
    env -u LD_LIBRARY_PATH "$prefix/bin/rubato" --version | grep -qF "$version" || { echo "rubato --version does not say $version"; exit 1; }
fi
