#!/bin/sh
# Managed communication on all three runtimes: every token of a topic model is counted once; what --budget cannot do is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 gen docs --out docs.txt --rows 60 --cols 40 --nnz 10 --topics 4
tokens=$(awk 'NF == 3 { sum += $3 } END { print sum }' docs.txt)
set -- train lda --data docs.txt --topics 4 --clocks 5 --workers 3 --sync ssp --staleness 2 --pieces 8 --budget 50Mbit --quiet --json run.json
for where in local sim; do
    expect 0 "$@" --runtime $where
    grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "$where: not $tokens tokens"
done
expect 0 launch --local 3 -- "$@"
grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "cluster: not $tokens tokens"

expect 2 train lda --data docs.txt --sync bsp --budget 50Mbit
says 'use --sync ssp'
expect 2 train lda --data docs.txt --budget fast
expect 2 train lda --data docs.txt --priority random
says 'without --budget'
