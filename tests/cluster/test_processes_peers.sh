#!/bin/sh
# Without servers: in standard mode one process, the simulator and a process for each peer give the same bits, in both orders, with
# momentum and weight decay, and with sums around a ring. Variants that depend on time learn.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data
learning='lr --data d.svm --batch 10 --batches-per-clock 1 --clocks 20'

for options in '--sync hop --lr 0.5' '--sync hop --graph complete --order serial --lr 0.5' \
    '--sync hop --lr 0.05 --optimizer momentum --momentum 0.9 --l2 0.0001' \
    '--sync allreduce --lr 0.05 --optimizer momentum --momentum 0.9 --l2 0.0001'; do
    # shellcheck disable=SC2086 # options
    {
        job_local 4 $options
        expect 0 train $learning --runtime sim --workers 4 $options --json sim.json --quiet
        [ "$(job_hash sim.json)" = "$hash" ] || fail "$options: the simulator gives something else"
        expect 0 launch --local 4 -- train $learning $options --json c.json
    }
    job_clean "$err"
    [ "$(job_hash c.json)" = "$hash" ] || fail "$options: four processes give something else"
done

for options in '--sync adpsgd' '--sync hop --max-gap 4 --backup 1' '--sync hop --max-gap 5 --staleness 2 --skip 4'; do
    # shellcheck disable=SC2086 # options
    expect 0 launch --local 4 -- train $learning --lr 0.5 $options --json c.json
    job_clean "$err"
    check c.json 'last["event"] == "done" and last["loss"] < 0.69'
done
