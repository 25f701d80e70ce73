#!/bin/sh
# The swarm: 500 random jobs with faults keep every guarantee; one seed can be told, repeated and replayed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

seeds=700 # about a half of them, at least 300, are peers without servers
[ "${RUBATO_SANITIZED:-0}" = 0 ] || seeds=100 # several times slower

expect 0 swarm --seeds $seeds
prints "$seeds seeds from 1 on: every guarantee held"
! grep -v 'ASan does' "$err" | grep -q . || fail 'a swarm that passed complains' # a sanitizer may remark on coroutines

# other seeds than the first ones, and what each of them was
expect 0 swarm --seed 100001 --seeds 20 --verbose
[ "$(grep -c '^seed ' "$out")" -eq 20 ] || fail 'not one line per seed'
prints 'seed 100001: '
prints 'seed 100020: '
cp "$out" first.txt
expect 0 swarm --seed 100001 --seeds 20 --verbose
cmp "$out" first.txt || fail 'the same seeds went another way'

# together the seeds draw every kind of job
expect 0 swarm --seeds 60 --verbose
for word in 's=0,' 's=inf,' ' sum' ' con' ' dyn' ' adagrad' ' adarev' ' momentum' 'codec delta' 'fp16' 'synchronised' 'eager' 'prefetch' 'crashes' 'frac=0.3' 'lognormal' \
    ' peers, ' 'random graph' 'ring graph' 'complete graph' 'exponential graph' ' parallel' ' serial' ' notify-ack'; do
    prints "$word"
done
grep -q ' [1-9][0-9]* jumps' "$out" || fail 'nobody jumps over iterations'

# a replay runs one seed alone and tells the same of it
grep '^seed 100007: ' first.txt >line.txt
expect 0 swarm --replay 100007
head -n 1 "$out" | cmp - line.txt || fail 'a replay goes another way than the swarm'

expect 0 swarm --replay 18446744073709551615 # the last there is
prints 'seed 18446744073709551615: '

# seeds that have found something
for seed in 331678 351464 1008836 2006265; do
    expect 0 swarm --replay $seed
done

expect 2 swarm
says '--seeds'
expect 2 swarm --seeds 0
expect 2 swarm --seeds 5 --replay 3
says '--replay runs one seed'
