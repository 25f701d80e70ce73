#!/bin/sh
# {rank} in --data: every worker has files of its own, on every runtime and in shared memory.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

for m in 0 1 2; do
    "$RUBATO" gen lr --rows $((200 + 50 * m)) --cols 40 --nnz 6 --seed $((m + 1)) --out part-$m.svm
done
hash_of()
{
    python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["param_hash"])' "$1"
}

expect 0 train lr --data 'part-{rank}.svm' --workers 3 --sync bsp --clocks 5 --json a.json --quiet
expect 0 train lr --data 'part-{rank}.svm' --workers 3 --sync bsp --clocks 5 --runtime sim --json b.json --quiet
[ "$(hash_of a.json)" = "$(hash_of b.json)" ] || fail "local and sim differ"
check a.json "[w['rows'] for w in last['workers']] == [200, 250, 300]"
check a.json "all(sum(w['labels']) == w['rows'] for w in last['workers'])"

# Shared memory learns the same from them as from all files at once.
expect 0 train lr --data 'part-{rank}.svm' --workers 3 --optimizer sdca --json c.json --quiet --out c.rbt
expect 0 train lr --data 'part-*.svm' --workers 3 --optimizer sdca --json d.json --quiet
check c.json "abs(last['loss'] / $(python3 -c 'import json; print(json.loads(open("d.json").readlines()[-1])["loss"])') - 1) < 1e-2"

# A pattern within; several files per worker.
mkdir w0 w1 w2
for m in 0 1 2; do
    cp part-$m.svm w$m/a.svm
    cp part-0.svm w$m/b.svm
done
expect 0 train lr --data 'w{rank}/*.svm' --workers 3 --sync bsp --clocks 2 --json a.json --quiet
check a.json "[w['rows'] for w in last['workers']] == [400, 450, 500]"

expect 2 train lr --data 'part-{rank}.svm' --quiet
says "--workers"
expect 1 train lr --data 'part-{rank}.svm' --workers 4 --quiet
says "part-3.svm: cannot be opened"
: >part-3.svm
expect 1 train lr --data 'part-{rank}.svm' --workers 4 --quiet
says "worker 3 have no rows"
