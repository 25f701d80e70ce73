#!/bin/sh
# Managed communication on all three runtimes: every token of a topic model is counted once, whatever goes first; it saves clocks; workers
# of one process may be lost and come back; it goes with every other option about sending, and what it cannot do is refused. Every simulated run with a budget fails if a node's bytes
# in any 100 ms exceed it by more than the burst, or a strip that is larger.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 gen docs --out docs.txt --rows 60 --cols 40 --nnz 10 --topics 4
tokens=$(awk 'NF == 3 { sum += $3 } END { print sum }' docs.txt)
set -- train lda --data docs.txt --topics 4 --clocks 5 --workers 3 --sync ssp --staleness 2 --pieces 8 --quiet --json run.json
for where in local sim; do
    expect 0 "$@" --runtime $where --budget 50Mbit
    grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "$where: not $tokens tokens"
done
expect 0 launch --local 3 -- "$@" --budget 50Mbit
grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "cluster: not $tokens tokens"
for priority in round-robin random magnitude relative; do
    for budget in 100Kbit 2Mbit; do
        expect 0 "$@" --runtime sim --budget $budget --priority $priority --cost nnz=200us
        grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "$budget, $priority: not $tokens tokens"
    done
done

# A step size that is too large for workers who hear of each other at the ends of clocks is not for those who hear at once.
expect 0 gen ratings --out ratings.txt --rows 8000 --users 200 --items 100 --rank 4 --seed 3
set -- train mf --data ratings.txt --runtime sim --workers 8 --sync ssp --staleness 2 --rank 4 --step plain --clocks 12 --batch 100% --pieces 16 \
    --cost sample=40us --lr 0.03 --quiet --json run.json
expect 1 "$@"
says 'training diverged'
expect 0 "$@" --budget 50Mbit --priority relative
loss=$(tail -n 1 run.json | sed 's/.*"loss":\([0-9.e+-]*\).*/\1/')
awk -v loss="$loss" 'BEGIN { exit !(loss < 0.3) }' || fail "the loss is $loss, not below 0.3"

# Sparse tables: the same counts.
awk 'BEGIN { for (i = 1; i < 3000; i++) print "k" i * i % 97 }' >events.txt
for budget in '' '--budget 5Mbit --priority relative'; do
    # shellcheck disable=SC2086 # options
    expect 0 train sketch --data events.txt --workers 3 --runtime sim --sync ssp --staleness 1 --quiet --json run.json $budget
    hash=$(tail -n 1 run.json | sed 's/.*"param_hash":"\([0-9a-f]*\)".*/\1/')
    [ "${first:=$hash}" = "$hash" ] || fail "the sketch is $hash with a budget, $first without"
done

# Workers that come back, two in a process: their updates count once (--verify).
expect 0 gen lr --out rows.svm --rows 2000 --cols 50 --nnz 5
expect 0 train lr --data rows.svm --workers 4 --per-process 2 --runtime sim --sync ssp --staleness 2 --rule sum --lr 0.05 --clocks 20 --verify \
    --budget 50Mbit --priority magnitude --faults crash=3,dup=0.1,delay=0.1,within=2ms --quiet

# Strips larger than a burst, alone or for all who read them: over 100 ms no node sends more than one of them beyond its budget.
expect 0 gen lr --out wide.svm --rows 500 --cols 3000 --nnz 200
for rule in sum adarev; do
    expect 0 train lr --data wide.svm --workers 6 --runtime sim --sync ssp --staleness 2 --rule $rule --lr 0.05 --clocks 10 --verify --budget 2Mbit \
        --cost sample=10ms --quiet
done

# AdaptiveRevision: everywhere; with one worker that adds to every row once a clock it is AdaGrad, bit for bit.
set -- train mf --data ratings.txt --sync ssp --staleness 2 --rank 4 --clocks 12 --batch 100% --lr 0.3 --share items --quiet --json run.json
for where in 'local 0.5' 'sim 0.3'; do # what threads learn in 12 clocks depends on who comes first
    expect 0 "$@" --workers 4 --pieces 8 --runtime ${where% *} --rule adarev --budget 50Mbit --priority relative
    loss=$(tail -n 1 run.json | sed 's/.*"loss":\([0-9.e+-]*\).*/\1/')
    awk -v loss="$loss" -v most="${where#* }" 'BEGIN { exit !(loss < most) }' || fail "$where: the loss is $loss"
done
expect 0 launch --local 3 -- "$@" --pieces 8 --rule adarev --budget 50Mbit
first=
for how in 'adagrad' 'adarev' 'adarev --budget 20Mbit --priority magnitude'; do
    # shellcheck disable=SC2086 # options
    expect 0 "$@" --workers 1 --runtime sim --pieces 1 --rule $how
    hash=$(tail -n 1 run.json | sed 's/.*"param_hash":"\([0-9a-f]*\)".*/\1/')
    [ "${first:=$hash}" = "$hash" ] || fail "$how is $hash, adagrad $first"
done

# With everything else that is about sending.
for how in '--codec delta,keys,zeros' '--codec fp16' '--filter threshold=1e-4' '--filter significant=0.01' '--eager off' '--per-process 2' '--encode'; do
    for rule in sum con adarev; do
        case "$rule$how" in adarev*fp16 | adarev*significant*) continue ;; esac # refused: servers make the steps
        # shellcheck disable=SC2086 # options
        expect 0 train lr --data rows.svm --workers 4 --runtime sim --sync ssp --staleness 2 --rule $rule --lr 0.05 --clocks 10 --verify --budget 5Mbit --quiet $how
    done
done
for rule in sum adarev; do
    expect 0 train lr --data rows.svm --workers 4 --runtime sim --sync asp --rule $rule --lr 0.05 --clocks 10 --verify --budget 5Mbit --quiet
    expect 0 train lr --data rows.svm --workers 4 --runtime sim --sync ssp --staleness 2 --rule $rule --lr 0.05 --clocks 20 --verify --budget 5Mbit --priority relative \
        --faults crash=3,dup=0.1,delay=0.1,within=2ms --quiet
done
refuses() {
    words=$1
    shift
    expect 2 train lr --data rows.svm --workers 4 --budget 50Mbit "$@"
    says "$words"
}
refuses 'one term of a mean' --sync ssp --rule dyn
refuses 'use --rule adarev' --sync ssp --rule adagrad
refuses 'velocity' --sync ssp --rule momentum --momentum 0.5
refuses 'use --sync ssp' --sync bsp
refuses 'use --staleness 1' --sync ssp --staleness 0 --rule sum
refuses 'budget' --sync hop
refuses 'budget' --sync allreduce
refuses 'budget' --sync hogwild

expect 2 train lda --data docs.txt --sync bsp --budget 50Mbit
says 'use --sync ssp'
expect 2 train lda --data docs.txt --budget fast
expect 2 train lda --data docs.txt --priority random
says 'without --budget'
