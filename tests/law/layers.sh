# The include order: a file may include its own folder, folders of its level and of the levels below, never upwards.
# Within a level no two folders may need each other. Nothing under src/ includes cli/ or tests/, and every header can
# be included on its own. Usage: layers.sh ROOT CC. Proved to fail by test_checkers_fail.sh.
set -eu
root=$1
cc=$2
cd "$root"

find src cli include -name '*.[ch]' | sort >"$TMPDIR/files"
xargs awk '
BEGIN {
    # The layer law of CONTRIBUTING.md, lowest first.
    split("base|math|data table sync wire|rule comm model method|solve|node|runtime|job|report|cli", levels, "|")
    for (l = 1; l in levels; l++) {
        n = split(levels[l], names, " ")
        for (i = 1; i <= n; i++)
            level[names[i]] = l
    }
}
function say(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; bad = 1 }
FNR == 1 {
    split(FILENAME, path, "/")
    public = path[1] == "include"
    folder = path[1] == "src" ? path[2] : path[1]
    if (!public && !(folder in level)) {
        say("folder " folder " has no place in the layer law; add it to CONTRIBUTING.md and tests/law/layers.sh")
        level[folder] = 99
    }
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    header = quoted[2]
    if (header == "rubato.h")
        next
    if (public) {
        say("\"" header "\": the public header stands alone, it may only include the C library")
        next
    }
    if (header ~ /(^|\/)\.\.?\//) {
        say("\"" header "\": write the folder and the file, as in \"base/error.h\"")
        next
    }
    to = header
    if (!sub(/\/.*/, "", to))
        to = folder
    if (!(to in level))
        say("\"" header "\": " to " is not a folder of the library")
    else if (level[to] > level[folder])
        say("\"" header "\": " folder " may not include " to ", which stands above it")
    else if (level[to] == level[folder] && to != folder) {
        if (!((folder, to) in needs))
            where[folder, to] = FILENAME ":" FNR
        needs[folder, to] = 1
        beside[folder] = beside[to] = 1
    }
}
END {
    for (k in beside) # who needs whom in the end
        for (i in beside)
            for (j in beside)
                if (((i, k) in needs) && ((k, j) in needs))
                    needs[i, j] = 1
    for (pair in where) {
        split(pair, p, SUBSEP)
        if ((p[2], p[1]) in needs) {
            printf "%s: %s and %s stand on one level and need each other\n", where[pair], p[1], p[2]
            bad = 1
        }
    }
    exit bad
}' <"$TMPDIR/files" || status=1

grep '\.h$' "$TMPDIR/files" | while read -r header; do
    echo "#include \"$header\"" >"$TMPDIR/alone.c"
    "$cc" -std=c17 -D_GNU_SOURCE -fsyntax-only -I. -Iinclude -Isrc "$TMPDIR/alone.c" ||
        echo "$header: cannot be included on its own" >>"$TMPDIR/broken"
done
if [ -e "$TMPDIR/broken" ]; then
    cat "$TMPDIR/broken"
    status=1
fi
exit "${status:-0}"
