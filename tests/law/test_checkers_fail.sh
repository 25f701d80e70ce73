# A checker that cannot fail proves nothing: builds a small tree that keeps every law, sees all checkers pass, then
# breaks one law after the other and sees the right checker say so. Usage: test_checkers_fail.sh LAW_FOLDER CC NM.
set -eu
law=$1
cc=$2
nm=$3
status=0
git init -q . 2>/dev/null || true

fresh() { # a lawful tree in ./tree, its objects in ./objects
    rm -rf tree objects
    mkdir -p tree/include tree/cli objects
    echo '#include <stdint.h>' >tree/include/rubato.h
    for folder in base data sync wire node runtime; do
        mkdir -p "tree/src/$folder" "objects/$folder"
        echo "What lives here." >"tree/src/$folder/README.md"
        echo "int rbt_$folder(void);" >"tree/src/$folder/$folder.h"
        printf '#include "%s/%s.h"\n#include <string.h>\nint rbt_%s(void)\n{\n    return (int)strlen("");\n}\n' \
            "$folder" "$folder" "$folder" >"tree/src/$folder/$folder.c"
    done
    echo "All." >tree/cli/README.md
}
compile() {
    for source in tree/src/*/*.c; do
        folder=$(basename "$(dirname "$source")")
        "$cc" -O1 -fno-builtin -D_GNU_SOURCE -Itree/include -Itree/src -c "$source" -o "objects/$folder/$(basename "$source").o"
    done
}
check() { # CHECKER: runs it on the tree
    here=$PWD
    mkdir -p scratch
    rm -rf scratch/*
    case $1 in
    layers) TMPDIR=$here/scratch sh "$law/layers.sh" "$here/tree" "$cc" ;;
    purity) TMPDIR=$here/scratch sh "$law/purity.sh" "$here/tree" "$here/objects" "$nm" ;;
    tree) TMPDIR=$here/scratch sh "$law/tree.sh" "$here/tree" ;;
    links) TMPDIR=$here/scratch sh "$law/links.sh" "$here/tree" ;;
    esac >said 2>&1
}
must_pass() {
    if ! check "$1"; then
        echo "$1 refuses a lawful tree ($2):"
        cat said
        status=1
    fi
}
must_fail() { # CHECKER WORDS: it fails, and says so with these words
    if check "$1"; then
        echo "$1 let it pass, expected: $2"
        status=1
    elif ! grep -q "$2" said; then
        echo "$1 failed, but did not say '$2':"
        cat said
        status=1
    fi
}

fresh && compile
for checker in layers purity tree links; do
    must_pass $checker "nothing broken"
done

fresh && echo '#include "runtime/runtime.h"' >>tree/src/node/node.c
must_fail layers 'node may not include runtime'
fresh && echo '#include "cli/cli.h"' >>tree/src/node/node.c && echo >tree/cli/cli.h
must_fail layers 'node may not include cli'
fresh && echo '#include "../node/node.h"' >>tree/src/base/base.h
must_fail layers 'write the folder and the file'
fresh && echo '#include "base/base.h"' >>tree/include/rubato.h
must_fail layers 'public header stands alone'
fresh && echo '#include "sync/sync.h"' >>tree/src/wire/wire.c
must_pass layers "one folder of a level uses another"
echo '#include "wire/wire.h"' >>tree/src/sync/sync.c
must_fail layers 'need each other'
fresh && echo 'size_t rbt_size(void);' >>tree/src/base/base.h
must_fail layers 'base.h: cannot be included on its own'
fresh && mkdir tree/src/misc && echo >tree/src/misc/misc.c
must_fail layers 'folder misc has no place'

for header in time.h unistd.h pthread.h sys/socket.h stdio.h threads.h fcntl.h netinet/in.h; do
    fresh && compile && echo "#include <$header>" >>tree/src/sync/sync.h
    must_fail purity "sync.h:2:#include <$header>"
done
fresh && echo '#include "data/data.h"' >>tree/src/node/node.c && compile
must_fail purity 'data is read by the job'
fresh && echo 'long time(long *); long rbt_now(void); long rbt_now(void) { return time(0); }' >>tree/src/wire/wire.c && compile
must_fail purity 'src/wire/wire.c: calls time'
fresh && echo 'int rbt_runtime(void); int rbt_go(void); int rbt_go(void) { return rbt_runtime(); }' >>tree/src/node/node.c && compile
must_fail purity 'calls rbt_runtime of src/runtime/runtime.c'
fresh
must_fail purity 'build first'

fresh && rm tree/src/sync/README.md
must_fail tree 'src/sync: has no README.md'
fresh && yes '/* */' | head -n 1001 >tree/src/sync/long.c
must_fail tree 'src/sync/long.c: 1001 lines'
for place in root home work; do
    fresh && echo "see /$place/somebody/notes" >>tree/cli/README.md
    must_fail tree 'cli/README.md:2:see'
done

fresh && echo "See [base](../src/base/README.md), [below](#a-b-c), [elsewhere](https://example.org), \`[x](y)\`." >>tree/cli/README.md
printf '\n## A b: C\n' >>tree/cli/README.md
must_pass links "links that lead somewhere"
echo 'See [base](../src/base/readme.md).' >>tree/cli/README.md
must_fail links 'cli/README.md:5: ../src/base/readme.md: there is no such file'
fresh && echo 'See [base](../src/base/README.md#what).' >>tree/cli/README.md
must_fail links 'README.md#what: no heading there has this anchor'
exit "$status"
