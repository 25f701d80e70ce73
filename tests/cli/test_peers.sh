#!/bin/sh
# Training without servers: Hop, AD-PSGD and all-reduce on threads and in the simulator, with momentum and weight decay, compared with
# each other; what makes no sense is refused with the reason; the cost of an exchange is measured.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
learning='lr --data data.svm --workers 4 --clocks 12 --batch 10 --batches-per-clock 1'

# the same bits on both runtimes, with the paper's momentum and weight decay too
for options in '--sync hop --lr 0.5' '--sync hop --graph ring --order serial --lr 0.5' '--sync allreduce --lr 0.5' \
    '--sync hop --lr 0.1 --optimizer momentum --momentum 0.9 --l2 0.0001' \
    '--sync allreduce --lr 0.1 --optimizer momentum --momentum 0.9 --l2 0.0001'; do
    for runtime in local sim; do
        # shellcheck disable=SC2086 # options
        expect 0 train $learning $options --runtime $runtime --json $runtime.json --quiet
    done
    check local.json 'last["event"] == "done" and last["loss"] < 0.69 and last["updates"] == 48'
    [ "$(grep -o '"param_hash":"[^"]*"' local.json)" = "$(grep -o '"param_hash":"[^"]*"' sim.json)" ] ||
        fail "$options: local and sim give different bits"
done

# AD-PSGD: threads, simulator, found step size
for options in '--runtime local --lr 0.5' '--runtime sim --lr 0.5' '--runtime sim' '--runtime sim --optimizer momentum --lr 0.1'; do
    # shellcheck disable=SC2086 # options
    expect 0 train lr --data data.svm --workers 4 --clocks 12 --sync adpsgd $options --json pairs.json
    prints 'AD-PSGD on ring'
    check pairs.json 'last["event"] == "done" and last["loss"] < 0.69 and last["spread"] >= 0'
done

# refusals: the reason and the offending edge or worker
# shellcheck disable=SC2086 # options
{
    expect 2 train $learning --sync adpsgd --graph complete
    says 'needs a bipartite graph'
    says 'the edge between 1 and 2 lies within one half'
    expect 2 train lr --data data.svm --sync adpsgd --workers 5
    says 'needs a bipartite graph'
    for option in '--max-gap 3' '--backup 1' '--skip 4' '--staleness 2' '--order serial' '--notify-ack'; do
        expect 2 train $learning --sync adpsgd $option
        says 'makes no sense with --sync adpsgd, where peers average in pairs'
    done
    expect 2 train $learning --sync allreduce --graph ring
    says 'makes no sense with --sync allreduce'
    expect 2 train $learning --sync hop --graph ring --max-gap 5 --backup 2
    says '--backup 2: worker 0 has 2 in-neighbours besides itself, and would wait for none'
    expect 2 train $learning --sync hop --max-gap 5 --skip 1
    says '--skip 1 is a step as any other'
    expect 2 train $learning --sync hop --servers 2
    says 'is for servers'
    expect 2 launch --local 2 -- train lr --data data.svm --sync hop --on-worker-loss wait
    says 'nobody can come back in its place'
    expect 2 launch --local 2 -- train lr --data data.svm --sync allreduce --on-worker-loss continue
    says 'needs every worker'
}

# a sum over all ends with the first that is lost, as on a cluster
expect 7 train lr --data data.svm --runtime sim --workers 4 --clocks 20 --sync allreduce --faults crash=1,within=1ms
says 'all-reduce needs every worker, so the job ends'

# one table of peers and servers
expect 0 compare lr --data data.svm --runtime sim --workers 4 --clocks 6 --lr 0.5 \
    --protocols bsp,hop,hop:ring-based/max-gap=5/backup=1,hop:ring/notify-ack,adpsgd:ring,allreduce --json compare.json
prints 'hop:ring-based/max-gap=5/backup=1'
check compare.json 'len(last["table"]) == 6 and all(row["loss"] < 0.69 for row in last["table"])'
expect 2 compare lr --data data.svm --protocols hop:ring/backup
says "'backup' is no part of one for peers"

[ "${RUBATO_SANITIZED:-0}" -eq 0 ] || exit 0
expect 0 bench hop
prints 'ratio to what it needs'
