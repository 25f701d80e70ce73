# Protocol logic is pure: node, sync, rule, table and wire know no clock, socket, thread or file.
# Their sources may include only the C headers listed here, and their objects may need only the symbols listed here,
# nothing that data, runtime, job or report define. Usage: purity.sh ROOT OBJECTS NM. Proved to fail by test_checkers_fail.sh.
set -eu
root=$1
objects=$2
nm=$3
pure='node sync rule comm table wire'
headers='assert|float|inttypes|limits|math|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdlib|stdnoreturn|string'

status=0
cd "$root"
for folder in $pure; do
    find "src/$folder" -name '*.[ch]' 2>/dev/null
done | sort >"$TMPDIR/sources"
if xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<' <"$TMPDIR/sources" |
    grep -vE "<($headers)\.h>"; then
    echo "these folders are pure: time, files, threads and sockets come in through the node's env (docs/architecture.md)"
    status=1
fi
if xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"data/' <"$TMPDIR/sources"; then
    echo "these folders are pure: data is read by the job, not by a node"
    status=1
fi

# Symbols: memory and strings, exact arithmetic, what the compiler itself calls, and our own.
cat >"$TMPDIR/allowed" <<'LIST'
memcpy|memmove|memset|memcmp|memchr|strlen|strnlen|strcmp|strncmp|strchr
qsort|bsearch|sqrt|sqrtf|fabs|fabsf|floor|floorf|ceil|ceilf|ldexp|ldexpf|frexp|isnan|isinf
__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__(asan|ubsan|tsan|sanitizer)_.*|__(mem|str)[a-z]*_chk|__popcount[a-z0-9]*|__u?(div|mod)ti3
rbt_.*
LIST
allowed="^($(paste -sd '|' "$TMPDIR/allowed"))\$"

symbols_of() { # KIND (undefined or defined) FOLDER...: lines of `symbol object`
    kind=$1
    shift
    for folder in "$@"; do
        for object in "$objects/$folder"/*.o; do
            [ -e "$object" ] || continue
            "$nm" -g --"$kind"-only "$object" | awk -v object="$folder/$(basename "$object" .o)" '{print $NF, object}'
        done
    done
}
# shellcheck disable=SC2086 # a list of folders
symbols_of undefined $pure >"$TMPDIR/needed"
symbols_of defined data runtime job report >"$TMPDIR/above"
for source in $(grep '\.c$' "$TMPDIR/sources" || true); do
    if [ ! -e "$objects/${source#src/}.o" ]; then
        echo "$source: no object under $objects, build first"
        status=1
    fi
done
if awk -v allowed="$allowed" '$1 !~ allowed {print "src/" $2 ": calls " $1; bad = 1} END {exit !bad}' \
    "$TMPDIR/needed"; then
    echo "a pure folder may not call these; tests/law/purity.sh has the list of what it may"
    status=1
fi
if awk 'NR == FNR {owner[$1] = $2; next} $1 in owner {print "src/" $2 ": calls " $1 " of src/" owner[$1]; bad = 1}
    END {exit !bad}' "$TMPDIR/above" "$TMPDIR/needed"; then
    echo "a pure folder may not call into data, runtime, job or report"
    status=1
fi
exit "$status"
