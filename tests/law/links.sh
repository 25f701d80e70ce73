# Every relative link in the documents leads somewhere: the file is there, and so is the heading behind a '#'. Anchors are
# those that a page of the repository shows: the heading in small letters, without punctuation, blanks as dashes.
# Usage: links.sh ROOT. Proved to fail by test_checkers_fail.sh.
set -eu
LC_ALL=C
export LC_ALL
cd "$1"

links() { # FILE: LINE TARGET of each link in it, code left out
    awk '/^```/ {code = !code; next}
        code {next}
        {
            gsub(/`[^`]*`/, "")
            while (match($0, /\]\([^) ]+\)/)) {
                print FNR, substr($0, RSTART + 2, RLENGTH - 3)
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' "$1"
}
headings() { # FILE: the anchors of its headings
    awk '/^```/ {code = !code; next}
        !code && /^#+ / {
            sub(/^#+ +/, "")
            $0 = tolower($0)
            gsub(/[^a-z0-9 _\200-\377-]/, "")
            gsub(/ /, "-")
            print
        }' "$1"
}

# In a clone these are the tracked files (and new ones); elsewhere all but what was built.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard '*.md'
else
    find . -name '*.md' -not -path './build/*' -not -path './.git/*' | sed 's|^\./||'
fi | while read -r file; do
    [ -f "$file" ] || continue
    links "$file" | while read -r line target; do
        case $target in
        *:*) continue ;; # an address elsewhere
        '#'*) path=$file ;;
        *) path=$(dirname "$file")/${target%%#*} ;;
        esac
        if [ ! -e "$path" ]; then
            echo "$file:$line: $target: there is no such file"
        elif [ "$target" != "${target#*#}" ] && ! headings "$path" | grep -qxF -e "${target#*#}"; then
            echo "$file:$line: $target: no heading there has this anchor"
        fi
    done
done >"$TMPDIR/dead"
cat "$TMPDIR/dead"
[ ! -s "$TMPDIR/dead" ]
