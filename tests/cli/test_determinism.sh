#!/bin/sh
# Same seed, same options under sim: the same JSON file, byte for byte, on two runs and in the debug and release builds.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data

# train TO OPTIONS...: the job under the command $RUBATO, its JSON to the file TO
train()
{
    to=$1
    shift
    expect 0 train lr --data data.svm --valid data.svm --runtime sim --seed 5 --quiet --json run.json "$@"
    mv run.json "$to"
}

number=0
compare()
{
    number=$((number + 1))
    train "a$number.json" "$@"
    train "b$number.json" "$@"
    cmp "a$number.json" "b$number.json" || fail "two runs differ: $*"
    if [ -n "${RUBATO_DEBUG:-}" ]; then
        release=$RUBATO
        RUBATO=$RUBATO_DEBUG
        train "c$number.json" "$@"
        RUBATO=$release
        cmp "a$number.json" "c$number.json" || fail "debug and release builds differ: $*"
    fi
}

compare --workers 1 --clocks 3
compare --workers 4 --servers 2 --sync bsp --rule con --epochs 4 --batch 7 --l2 0.01
compare --workers 6 --servers 3 --sync ssp --staleness 3 --rule dyn --clocks 8 --straggler 'lognormal=1;p=0.1,slow=6'
compare --workers 6 --servers 3 --sync ssp --staleness 3 --rule sum --clocks 8 --eager on --decay sqrt:0.5
compare --workers 5 --servers 2 --sync asp --rule adagrad --clocks 8 --straggler frac=0.4,slow=3 --no-bias
compare --workers 6 --servers 2 --sync ssp --staleness 2 --rule adarev --clocks 8 --straggler frac=0.4,slow=3 --encode
compare --workers 5 --servers 2 --sync ssp --staleness 2 --rule momentum --clocks 8 --lr 0.05 --straggler p=0.2,slow=3
compare --workers 6 --servers 2 --sync ssp --staleness 2 --rule dyn --clocks 10 --encode --verify \
    --net bw=100Mbit,lat=50us,jitter=100us --faults drop=0.1,dup=0.2,delay=0.2,crash=2,partition=2,within=10ms
compare --workers 40 --servers 4 --sync ssp --staleness 1 --rule con --clocks 4 --target-loss 0.69 --decay mult:0.9

# another seed is another run
expect 0 train lr --data data.svm --runtime sim --seed 6 --quiet --json other.json --workers 1 --clocks 3
! cmp -s a1.json other.json || fail 'the seed does not matter'
