# The tree stays readable: every folder in src/, tests/ and cli/ says what lives there, no source file is longer than
# 1000 lines, and nothing names a place on somebody's machine. Usage: tree.sh ROOT. Proved to fail by test_checkers_fail.sh.
set -eu
cd "$1"
status=0

for folder in src tests cli; do
    [ ! -d "$folder" ] || find "$folder" -type d -not -path src
done | while read -r folder; do
    # A folder that holds only files of another kind (seeds of the fuzzer, data) is explained by the one above it.
    if ! find "$folder" -maxdepth 1 -type f \( -name '*.[ch]' -o -name '*.sh' \) | grep -q . &&
        [ "$(find "$folder" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 0 ]; then
        continue
    fi
    [ -s "$folder/README.md" ] || echo "$folder: has no README.md that says what lives there and what does not"
done >"$TMPDIR/silent"
if [ -s "$TMPDIR/silent" ]; then
    cat "$TMPDIR/silent"
    status=1
fi

find src cli include -name '*.[ch]' -exec wc -l {} + |
    awk '$2 != "total" && $1 > 1000 {print $2 ": " $1 " lines; past 1000 it is two files"; bad = 1} END {exit bad}' ||
    status=1

# In a clone these are the tracked files (and new ones); elsewhere all but what was built.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
else
    find . -type f -not -path './build/*' -not -path './.git/*' | sed 's|^\./||'
fi | grep -vx 'tests/law/tree.sh' | while read -r file; do
    [ ! -f "$file" ] || grep -nHIE '(^|[^[:alnum:]_./~-])/(work|root|home)($|[^[:alnum:]_])' "$file" || true
done >"$TMPDIR/places"
if [ -s "$TMPDIR/places" ]; then
    cat "$TMPDIR/places"
    echo "these lines name a place on one machine; write it relative to the project"
    status=1
fi
exit "$status"
