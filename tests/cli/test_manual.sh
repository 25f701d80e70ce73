#!/bin/sh
# The manual page has every option that a command's help lists, and none that no help has; every exit code is in it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

manual=$(cd "$started" && cd "$(dirname "$0")/../.." && pwd)/man/rubato.1
"$RUBATO" --help | sed -n 's/^  \([a-z]*\) .*/\1/p' >commands
[ "$(wc -l <commands)" -gt 10 ] || fail 'rubato --help lists no commands'
while read -r command; do
    expect 0 "$command" --help
    sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' "$out"
    [ "$(awk 'length > 110' "$out" | wc -l)" -eq 0 ] || fail "$command --help has lines that are too long"
    grep -q "^.Cm $command\$" "$manual" || fail "the manual does not know the command $command"
done <commands >listed
# what the doctor says to itself
sort -u listed | grep -vx -e probe -e number >helped
tr ' ' '\n' <"$manual" | sed -n 's/^-\([a-z][a-z0-9-]*\)$/\1/p' | sort -u >described
while read -r option; do
    grep -qx -e "$option" described || fail "--$option is not in the manual"
done <helped
grep -vx -e help -e version -e images-idx3-ubyte -e labels-idx1-ubyte -e tag -e width -e compact -e offset -e literal described >others
while read -r option; do
    grep -qx -e "$option" helped || fail "the manual has --$option, which no command lists"
done <others
for code in 0 1 2 3 4 5 6 7 130 141; do
    grep -qx ".It $code" "$manual" || fail "the manual does not have exit code $code"
done
