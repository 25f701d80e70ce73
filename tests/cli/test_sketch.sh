#!/bin/sh
# sketch on what is next to nothing: files without events, empty lines; and what the table says of its workers.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf 'a\nb\na\n' >events
: >nothing
printf '\n\n' >blank
expect 0 train sketch --data events --workers 1 --out model.rbt --json j.json
check j.json 'last["workers"][0]["rows"] == 3'

for file in nothing blank; do
    expect 1 train sketch --data $file --out none.rbt --quiet
    says "$file: has no events, which are lines with a key"
    [ ! -e none.rbt ] || fail "a model of nothing"
    expect 1 eval --model model.rbt --data $file
    says "$file: has no events"
done

# An answer for every line, so that they stay side by side; what was never counted is not there.
printf 'a\n\nb\n\n' >asked
expect 0 predict --model model.rbt --data asked
[ "$(tr '\n' ' ' <"$out")" = '2 0 1 0 ' ] || fail "four lines, four answers"
"$RUBATO" predict --model model.rbt --data - <asked >piped || fail "predict from a pipe"
cmp piped "$out" || fail "a pipe is answered otherwise"

# It knows what its events are called, and has nothing else that could be named.
expect 0 info model.rbt
prints 'most frequent 2 a'
for command in 'info model.rbt' 'export --model model.rbt --format json --out j.json'; do
    # shellcheck disable=SC2086 # words
    expect 2 $command --vocab events
    says '--vocab names features, and a model of sketch has none'
done
